//! What a watch costs in memory, counted by the allocator.

use std::sync::Arc;
use std::task::{Context, Waker};

use allocation_counter::measure;
use bytes::Bytes;
use feed::{Encoding, Feed, Next, Outlet, Subscription};

use super::{Note, empty_feed, exact, prefix, watch};

const RING_LEN: usize = 64;

fn watches(feed: &Feed<Note>, count: usize, outlet: &Arc<Outlet>) -> Vec<Subscription<Note>> {
    (0..count)
        .map(|_| watch(feed, prefix("/a/"), outlet))
        .collect()
}

#[test]
fn a_publish_allocates_the_same_for_no_watcher_and_for_a_thousand() {
    let publish_count = |watcher_count| {
        let feed = empty_feed(RING_LEN);
        let outlet = Outlet::new();
        let _watches = watches(&feed, watcher_count, &outlet);
        assert!(
            outlet
                .poll_ready(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        measure(|| {
            feed.publish(Note("/a/b"));
        })
        .count_total
    };
    // The slot itself.
    assert_eq!(publish_count(0), 1);
    assert_eq!(publish_count(1), 1);
    assert_eq!(publish_count(1_000), 1);
}

#[test]
fn a_further_watcher_is_named_reads_and_gets_the_bytes_without_allocating() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut watches = watches(&feed, 1_000, &outlet);
    feed.publish(Note("/a/b"));
    let tell = |subscription: &mut Subscription<Note>| {
        let Next::Change(slot) = subscription.next() else {
            panic!("a change is due")
        };
        let bytes = slot.encoded(Encoding::Block, |cursor, note| {
            Bytes::from(format!("{cursor} {}", note.0))
        });
        assert!(matches!(subscription.next(), Next::Idle));
        bytes.len()
    };
    tell(&mut watches[0]);
    let further = measure(|| {
        for subscription in &mut watches[1..] {
            tell(subscription);
        }
        let mut cx = Context::from_waker(Waker::noop());
        while outlet.poll_ready(&mut cx).is_ready() {}
        let _position = watches[1].position();
    });
    assert_eq!(further.count_total, 0);
}

#[test]
fn queueing_stays_free_of_allocation_while_watches_come_and_go() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut cx = Context::from_waker(Waker::noop());
    let mut alive = watches(&feed, 10, &outlet);
    for round in 0..200 {
        // Every third round leaves the named in the queue, some of them dropped.
        if round % 3 > 0 {
            while outlet.poll_ready(&mut cx).is_ready() {}
        }
        for subscription in &mut alive {
            while !matches!(subscription.next(), Next::Idle) {}
        }
        alive.drain(..round % 4);
        alive.extend(watches(&feed, round % 5, &outlet));
        let publish = measure(|| {
            feed.publish(Note("/a/b"));
        });
        assert_eq!(publish.count_total, 1);
    }
}

#[test]
fn an_idle_watch_is_small() {
    // The aim for a further idle watch on a connection is 0.6 KiB in all; this is the feed's part,
    // with the queue's spare room that doubling leaves.
    const SHARED_SCOPE_BYTES_MAX: u64 = 208;
    const OWN_SCOPE_BYTES_MAX: u64 = 384;
    const COUNT: usize = 10_000;

    let bytes_each = |scope: fn(usize) -> feed::Scope| {
        let feed = empty_feed(RING_LEN);
        let outlet = Outlet::new();
        let mut watches = Vec::new();
        let grown = measure(|| {
            watches = (0..COUNT)
                .map(|number| watch(&feed, scope(number), &outlet))
                .collect();
        });
        assert_eq!(watches.len(), COUNT);
        grown.bytes_current as u64 / COUNT as u64
    };
    let shared = bytes_each(|_| prefix("/a/"));
    let own = bytes_each(|number| exact(&format!("/notes/{number:08}.md")));
    println!("{shared} bytes with a shared scope, {own} with one of its own");
    assert!(shared <= SHARED_SCOPE_BYTES_MAX, "{shared} bytes");
    assert!(own <= OWN_SCOPE_BYTES_MAX, "{own} bytes");
}
