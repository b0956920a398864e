//! The feed as its callers see it: one thread, no clock, no sleeps.

mod allocations;
mod loss;
mod model;
mod outlets;
mod publishers;
mod resume;

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use feed::{Change, Feed, Next, Outlet, Scope, Subscription, Token};
use wire::{Cursor, Epoch, GapReason, Seq};

/// A change that is nothing but its name.
#[derive(Debug)]
struct Note(&'static str);

impl Change for Note {
    fn name(&self) -> &str {
        self.0
    }
}

fn epoch(name: &str) -> Epoch {
    Epoch::new(name).expect("a legal epoch")
}

fn empty_feed(ring_len: usize) -> Feed<Note> {
    Feed::new(epoch("e1"), Seq::ZERO, ring_len)
}

fn cursor(seq: u64) -> Cursor {
    Cursor::new(epoch("e1"), Seq::new(seq))
}

fn exact(name: &str) -> Scope {
    Scope::Exact(name.into())
}

fn prefix(name: &str) -> Scope {
    Scope::Prefix(name.into())
}

fn watch(feed: &Feed<Note>, scope: Scope, outlet: &Arc<Outlet>) -> Subscription<Note> {
    feed.subscribe(scope, None, outlet)
        .expect("a watch without a cursor is never refused")
}

/// The places of the changes up to the next idle; anything but a change fails the test.
fn read_seqs(subscription: &mut Subscription<Note>) -> Vec<u64> {
    let mut seqs = Vec::new();
    loop {
        match subscription.next() {
            Next::Change(slot) => seqs.push(slot.seq().get()),
            Next::Idle => return seqs,
            other => panic!("a change or idle, not {other:?}"),
        }
    }
}

fn assert_gap(next: &Next<Note>, reason: GapReason, head: &Cursor) {
    match next {
        Next::Gap {
            reason: told,
            head: at,
        } => assert_eq!((*told, at), (reason, head)),
        other => panic!("a gap, not {other:?}"),
    }
}

/// The tokens that are ready, in the order in which the outlet names them.
fn ready(outlet: &Outlet) -> Vec<Token> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut tokens = Vec::new();
    while let Poll::Ready(token) = outlet.poll_ready(&mut cx) {
        tokens.push(token);
    }
    tokens
}
