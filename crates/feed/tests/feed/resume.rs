//! A cursor resumes exactly, or is refused with the reason.

use feed::{Next, Outlet};
use wire::{Cursor, GapReason, Seq};

use super::{Note, cursor, empty_feed, epoch, exact, prefix, read_seqs, ready, watch};

const RING_LEN: usize = 8;

#[test]
fn every_boundary_of_the_ring_resumes_exactly() {
    for published in 0..=3 * RING_LEN as u64 {
        let feed = empty_feed(RING_LEN);
        for _ in 0..published {
            feed.publish(Note("/a"));
        }
        let floor = published.saturating_sub(RING_LEN as u64);
        let outlet = Outlet::new();
        for since in 0..=published + 1 {
            let resumed = feed.subscribe(prefix("/"), Some(&cursor(since)), &outlet);
            match resumed {
                Ok(mut subscription) => {
                    assert!((floor..=published).contains(&since));
                    let expected: Vec<u64> = (since + 1..=published).collect();
                    assert_eq!(read_seqs(&mut subscription), expected);
                    assert_eq!(subscription.position(), cursor(published));
                }
                Err(refused) => {
                    let reason = if since < floor {
                        GapReason::TooOld
                    } else {
                        assert!(since > published);
                        GapReason::Ahead
                    };
                    assert_eq!(refused.reason, reason);
                    assert_eq!(refused.head, cursor(published));
                }
            }
        }
    }
}

#[test]
fn a_sparse_sequence_keeps_the_whole_length_of_the_ring() {
    let feed = empty_feed(RING_LEN);
    for turn in 1..=RING_LEN as u64 + 1 {
        feed.publish_at(Seq::new(turn * 1_000), Note("/a"))
            .expect("the places rise");
    }
    let outlet = Outlet::new();
    // The change at 1,000 is gone, so that a cursor just before it is too old and one at it isn't.
    let refused = feed.subscribe(prefix("/"), Some(&cursor(999)), &outlet);
    assert_eq!(refused.expect_err("too old").reason, GapReason::TooOld);
    for since in [1_000, 1_500, 1_999] {
        let mut resumed = feed
            .subscribe(prefix("/"), Some(&cursor(since)), &outlet)
            .expect("everything after is kept");
        assert_eq!(read_seqs(&mut resumed).len(), RING_LEN);
    }
}

#[test]
fn a_place_at_or_below_the_head_is_refused() {
    let feed = empty_feed(RING_LEN);
    feed.publish_at(Seq::new(5), Note("/a"))
        .expect("above the head");
    feed.publish_at(Seq::new(5), Note("/a")).expect_err("taken");
    feed.publish_at(Seq::new(4), Note("/a"))
        .expect_err("passed");
    assert_eq!(feed.publish(Note("/a")), Seq::new(6));
}

#[test]
fn a_restored_feed_resumes_from_what_was_put_back() {
    // F15: a durable source gives the head before the oldest change that it kept.
    let feed = super::Feed::new(epoch("e1"), Seq::new(100), RING_LEN);
    for seq in 101..=104 {
        feed.publish_at(Seq::new(seq), Note("/a"))
            .expect("in order");
    }
    let outlet = Outlet::new();
    let mut resumed = feed
        .subscribe(prefix("/"), Some(&cursor(100)), &outlet)
        .expect("all after 100 is kept");
    assert_eq!(read_seqs(&mut resumed), [101, 102, 103, 104]);
    let refused = feed.subscribe(prefix("/"), Some(&cursor(99)), &outlet);
    assert_eq!(refused.expect_err("too old").reason, GapReason::TooOld);
}

#[test]
fn a_cursor_of_another_epoch_is_refused_whatever_its_place() {
    let feed = empty_feed(RING_LEN);
    feed.publish(Note("/a"));
    let outlet = Outlet::new();
    for seq in [0, 1, 9] {
        let other = Cursor::new(epoch("e0"), Seq::new(seq));
        let refused = feed.subscribe(prefix("/"), Some(&other), &outlet);
        assert_eq!(refused.expect_err("another epoch").reason, GapReason::Epoch);
    }
    assert_eq!(feed.stats().refused_epoch, 3);
    assert_eq!(feed.stats().subscriptions, 0);
}

#[test]
fn a_backlog_without_a_change_in_scope_advances_to_the_head_without_a_wake() {
    let feed = empty_feed(RING_LEN);
    for _ in 0..4 {
        feed.publish(Note("/b"));
    }
    let outlet = Outlet::new();
    let mut subscription = feed
        .subscribe(exact("/a"), Some(&cursor(1)), &outlet)
        .expect("kept");
    assert_eq!(subscription.position(), cursor(4));
    assert!(ready(&outlet).is_empty());
    assert!(matches!(subscription.next(), Next::Idle));
}

#[test]
fn a_position_is_a_cursor_that_gives_the_rest() {
    // F19: what a position leaves out is exactly what a resume from it tells.
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut subscription = watch(&feed, prefix("/a/"), &outlet);
    for name in ["/b", "/a/1", "/b", "/a/2", "/b"] {
        feed.publish(Note(name));
    }
    for (position, rest) in [(1, vec![2, 4]), (3, vec![4]), (5, vec![])] {
        assert_eq!(subscription.position(), cursor(position));
        let mut resumed = feed
            .subscribe(prefix("/a/"), Some(&cursor(position)), &outlet)
            .expect("kept");
        assert_eq!(read_seqs(&mut resumed), rest);
        subscription.next();
    }
}

#[test]
fn a_change_that_its_face_withholds_moves_the_position_all_the_same() {
    // T37: the face reads the change, finds that it may not be seen and drops it.
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut subscription = watch(&feed, prefix("/"), &outlet);
    feed.publish(Note("/open"));
    feed.publish(Note("/closed"));
    assert!(matches!(subscription.next(), Next::Change(_)));
    assert_eq!(subscription.position(), cursor(1));
    drop(subscription.next());
    assert_eq!(subscription.position(), cursor(2));
}
