//! What a watcher did not get, it is told of.

use feed::{Next, Outlet};
use wire::{Cursor, GapReason, Seq};

use super::{Note, assert_gap, cursor, empty_feed, epoch, exact, prefix, read_seqs, ready, watch};

const RING_LEN: usize = 8;

#[test]
fn a_slow_reader_is_told_a_gap_while_a_fast_one_gets_everything() {
    // T6, T7: the publisher runs on the reader's own thread, so it can't have waited for it.
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut slow = watch(&feed, prefix("/"), &outlet);
    let mut fast = watch(&feed, prefix("/"), &outlet);
    for seq in 1..=3 * RING_LEN as u64 {
        feed.publish(Note("/a"));
        assert_eq!(read_seqs(&mut fast), [seq]);
    }
    assert_eq!(slow.position(), cursor(0));
    assert_gap(&slow.next(), GapReason::Lapped, &cursor(24));
    assert_eq!(slow.position(), cursor(24));
    feed.publish(Note("/a"));
    assert_eq!(read_seqs(&mut slow), [25]);
    assert_eq!(feed.stats().gaps_lapped, 1);
}

#[test]
fn a_reader_a_whole_ring_behind_is_not_lapped() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut subscription = watch(&feed, prefix("/"), &outlet);
    for _ in 0..RING_LEN {
        feed.publish(Note("/a"));
    }
    assert_eq!(read_seqs(&mut subscription).len(), RING_LEN);
}

#[test]
fn a_narrow_watch_is_not_lapped_by_what_does_not_concern_it() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut narrow = watch(&feed, exact("/a"), &outlet);
    for _ in 0..10 * RING_LEN {
        feed.publish(Note("/b"));
    }
    assert_eq!(narrow.position(), cursor(80));
    assert!(ready(&outlet).is_empty());
    feed.publish(Note("/a"));
    for _ in 1..RING_LEN {
        feed.publish(Note("/b"));
    }
    assert_eq!(narrow.position(), cursor(80));
    assert_eq!(read_seqs(&mut narrow), [81]);
    assert_eq!(narrow.position(), cursor(88));
}

#[test]
fn a_half_read_narrow_watch_is_lapped_only_with_its_next_change() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut narrow = watch(&feed, exact("/a"), &outlet);
    for name in ["/a", "/b", "/b", "/b", "/a"] {
        feed.publish(Note(name));
    }
    assert!(matches!(narrow.next(), Next::Change(_)));
    // Overwrites 1 to 4, and then the change at 5.
    for _ in 0..7 {
        feed.publish(Note("/b"));
    }
    assert_eq!(narrow.position(), cursor(4));
    assert_eq!(read_seqs(&mut narrow), [5]);
    feed.publish(Note("/a"));
    for _ in 0..RING_LEN {
        feed.publish(Note("/b"));
    }
    assert_gap(&narrow.next(), GapReason::Lapped, &cursor(21));
}

#[test]
fn a_skip_tells_everyone_a_hole_and_what_follows() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut behind = watch(&feed, prefix("/"), &outlet);
    feed.publish(Note("/a"));
    let mut at_head = watch(&feed, exact("/never"), &outlet);
    feed.skip(Seq::new(7));
    assert_eq!(ready(&outlet), [behind.token(), at_head.token()]);
    assert_eq!(behind.position(), cursor(0));
    assert_eq!(at_head.position(), cursor(1));
    feed.publish(Note("/a"));
    for subscription in [&mut behind, &mut at_head] {
        assert_gap(&subscription.next(), GapReason::Hole, &cursor(8));
        assert!(matches!(subscription.next(), Next::Idle));
        assert_eq!(subscription.position(), cursor(8));
    }
    let refused = feed.subscribe(prefix("/"), Some(&cursor(6)), &outlet);
    assert_eq!(refused.expect_err("lost").reason, GapReason::TooOld);
    let mut resumed = feed
        .subscribe(prefix("/"), Some(&cursor(7)), &outlet)
        .expect("all after the hole is kept");
    assert_eq!(read_seqs(&mut resumed), [8]);
    assert_eq!(feed.stats().gaps_hole, 2);
}

#[test]
fn a_skip_to_below_the_head_tells_nobody() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut subscription = watch(&feed, prefix("/"), &outlet);
    feed.publish(Note("/a"));
    feed.skip(Seq::new(1));
    feed.skip(Seq::ZERO);
    assert_eq!(read_seqs(&mut subscription), [1]);
}

#[test]
fn a_restart_tells_everyone_the_new_epoch_once() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut subscription = watch(&feed, prefix("/"), &outlet);
    feed.publish(Note("/a"));
    feed.restart(epoch("e2"), Seq::new(40));
    feed.restart(epoch("e3"), Seq::new(2));
    // Until it was told, its position is one of the epoch that it knows.
    assert_eq!(subscription.position(), cursor(0));
    let head = Cursor::new(epoch("e3"), Seq::new(2));
    assert_gap(&subscription.next(), GapReason::Epoch, &head);
    assert_eq!(subscription.position(), head);
    assert_eq!(feed.publish(Note("/a")), Seq::new(3));
    match subscription.next() {
        Next::Change(slot) => assert_eq!(slot.cursor().epoch, epoch("e3")),
        other => panic!("a change, not {other:?}"),
    }
    let refused = feed.subscribe(prefix("/"), Some(&cursor(1)), &outlet);
    assert_eq!(refused.expect_err("old").reason, GapReason::Epoch);
}

#[test]
fn a_closed_feed_is_read_to_its_end_and_then_stays_closed() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut early = watch(&feed, prefix("/"), &outlet);
    feed.publish(Note("/a"));
    feed.close();
    let mut late = watch(&feed, prefix("/"), &outlet);
    let mut resumed = feed
        .subscribe(prefix("/"), Some(&cursor(0)), &outlet)
        .expect("kept");
    assert_eq!(ready(&outlet).len(), 3);
    for subscription in [&mut early, &mut resumed] {
        assert!(matches!(subscription.next(), Next::Change(_)));
    }
    // A write that was under way takes its place; nobody takes its absence for silence.
    feed.publish(Note("/a"));
    for subscription in [&mut early, &mut resumed, &mut late] {
        assert!(matches!(subscription.next(), Next::Change(_)));
        assert!(matches!(subscription.next(), Next::Closed));
        assert!(matches!(subscription.next(), Next::Closed));
        assert_eq!(subscription.position(), cursor(2));
    }
}
