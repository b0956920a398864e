//! The ring of recent changes that every watcher reads at its own pace.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use wire::{Cursor, Epoch, GapReason, Seq};

/// What a feed carries.
pub trait Change: fmt::Debug + Send + Sync + 'static {
    /// The name that scopes are matched against: segments joined by `/`, such as `/notes/tea.md`.
    fn name(&self) -> &str;
}

/// Which changes a subscription is told of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The changes with exactly this name.
    Exact(Arc<str>),
    /// The changes whose name begins with this text, which ends in `/`.
    Prefix(Arc<str>),
}

/// How a change is written for a face; each slot keeps one encoding per value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// A watch block of the Mark protocol.
    Block,
    /// A JSON object.
    Json,
    /// A server-sent event.
    Sse,
}

/// The ring. A cheap handle: clones share it.
#[derive(Debug)]
pub struct Feed<C>(PhantomData<C>);

impl<C> Clone for Feed<C> {
    fn clone(&self) -> Self {
        todo!()
    }
}

impl<C: Change> Feed<C> {
    /// An empty ring of `ring_len` (a power of two) slots that continues after `head`.
    pub fn new(_epoch: Epoch, _head: Seq, _ring_len: usize) -> Self {
        todo!()
    }
    /// Gives `change` the next place and wakes the watches that it concerns.
    pub fn publish(&self, _change: C) -> Seq {
        todo!()
    }
    /// Puts `change` at the source's own place, above the head; places between are empty, not lost.
    pub fn publish_at(&self, _seq: Seq, _change: C) -> Result<(), StaleSeq> {
        todo!()
    }
    /// Moves the head to `to` over changes that nobody can name: every watch is told a gap.
    pub fn skip(&self, _to: Seq) {
        todo!()
    }
    /// Ends every subscription once it has read what is there.
    pub fn close(&self) {
        todo!()
    }
    /// Begins a new epoch: every watch is told a gap of reason `epoch`.
    pub fn restart(&self, _epoch: Epoch, _head: Seq) {
        todo!()
    }
    /// The position of the newest change.
    pub fn head(&self) -> Cursor {
        todo!()
    }
    /// Follows `scope` from after `since`, or from the head.
    pub fn subscribe(
        &self,
        _scope: Scope,
        _since: Option<&Cursor>,
        _outlet: &Arc<Outlet>,
    ) -> Result<Subscription<C>, Refused> {
        todo!()
    }
}

/// The place was not above the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the place is not above the head")]
pub struct StaleSeq;

/// A cursor that can't be resumed from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cursor can't be resumed: {reason}")]
pub struct Refused {
    /// Why.
    pub reason: GapReason,
    /// Where to go on from after a rebuild.
    pub head: Cursor,
}

/// Names a subscription within its outlet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// Collects which of one serving task's subscriptions have something to read.
#[derive(Debug)]
pub struct Outlet(());

impl Outlet {
    /// An outlet without subscriptions.
    pub fn new() -> Arc<Self> {
        todo!()
    }
    /// The next subscription that has something to read (a change, a gap, the end).
    pub fn poll_ready(&self, _cx: &mut Context<'_>) -> Poll<Token> {
        todo!()
    }
}

/// One watch's place in the ring. Dropping it unsubscribes.
#[derive(Debug)]
pub struct Subscription<C>(PhantomData<C>);

impl<C: Change> Subscription<C> {
    /// Its name in the outlet.
    pub fn token(&self) -> Token {
        todo!()
    }
    /// The next thing to tell. After `Idle` the outlet names this subscription again when there is more.
    pub fn next(&mut self) -> Next<C> {
        todo!()
    }
    /// Everything up to here was returned by `next` or does not concern the scope.
    pub fn position(&self) -> Cursor {
        todo!()
    }
}

/// What a subscription finds.
#[derive(Debug)]
pub enum Next<C> {
    /// A change in scope.
    Change(Arc<Slot<C>>),
    /// The feed was closed and everything before was read.
    Closed,
    /// Changes were missed; the subscription continues after `head`.
    Gap {
        /// Why.
        reason: GapReason,
        /// The position to continue from.
        head: Cursor,
    },
    /// Nothing more for now.
    Idle,
}

/// A change in its place, with its encodings.
#[derive(Debug)]
pub struct Slot<C> {
    _change: C,
}

impl<C: Change> Slot<C> {
    /// The change.
    pub fn change(&self) -> &C {
        todo!()
    }
    /// Its position.
    pub fn cursor(&self) -> Cursor {
        todo!()
    }
    /// The bytes for one face, made on first use and shared by all watchers.
    pub fn encoded(
        &self,
        _encoding: Encoding,
        _encode: impl FnOnce(&Cursor, &C) -> Bytes,
    ) -> Bytes {
        todo!()
    }
}
