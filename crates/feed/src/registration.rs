//! What the publisher and the reader of one watch share.
//!
//! The publisher doesn't queue changes: it notes the first that the reader has yet to read and the
//! last, and the reader finds those between in the ring. Because the first is always a change in
//! scope, a narrow watch in a busy feed is lapped only when a change of its own was overwritten.
//! Looking from the reader's position to the head instead was rejected: it costs every watcher a
//! look at every change, and laps the narrow ones for what doesn't concern them.
//!
//! Locks are taken in the order feed, due, outlet.

use std::sync::Arc;

use wire::{GapReason, Seq};

use crate::outlet::{Outlet, Token, Wakes};
use crate::ring::Turn;
use crate::scope::Scope;
use crate::sync::{AtomicBool, AtomicUsize, Mutex, lock};

pub(crate) struct Registration {
    pub(crate) scope: Scope,
    pub(crate) token: Token,
    /// Where its bucket of the index keeps it. Guarded by the feed's lock.
    pub(crate) place: AtomicUsize,
    /// It lies in its outlet's queue. Guarded by the outlet's lock.
    pub(crate) queued: AtomicBool,
    /// Its subscription was dropped. Guarded by the outlet's lock.
    pub(crate) gone: AtomicBool,
    pub(crate) due: Mutex<Due>,
}

/// What a reader has yet to be told.
pub(crate) struct Due {
    /// The first change in scope that wasn't read. While the reader looks for the next one, the
    /// one it came from.
    first: Option<Turn>,
    /// The last change in scope; never before `first`.
    last: Turn,
    /// Everything up to here was read or is out of scope, while anything is due.
    before: Seq,
    /// Changes were lost; this stands before everything else and swallows it.
    gap: Option<GapReason>,
    /// The feed was closed.
    closed: bool,
    /// The reader was told that there is nothing and waits to be named.
    waiting: bool,
    /// Empty once the subscription was dropped: an outlet keeps queued watches, so that a watch
    /// which kept its outlet would keep both for ever.
    outlet: Option<Arc<Outlet>>,
}

/// What a reader finds due.
pub(crate) enum Found {
    Change(Turn),
    End,
    Gap,
    Nothing,
}

impl Registration {
    pub(crate) fn new(scope: Scope, outlet: &Arc<Outlet>) -> Self {
        Self {
            scope,
            token: outlet.join(),
            place: AtomicUsize::new(0),
            queued: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            due: Mutex::new(Due {
                first: None,
                last: Turn::ZERO,
                before: Seq::ZERO,
                gap: None,
                closed: false,
                waiting: true,
                outlet: Some(outlet.clone()),
            }),
        }
    }

    /// Notes a change in scope; `before` is the head that it moved on from.
    pub(crate) fn mark_change(self: &Arc<Self>, turn: Turn, before: Seq, wakes: &mut Wakes) {
        let mut due = lock(&self.due);
        if due.gap.is_some() {
            return;
        }
        if due.first.is_none() {
            due.first = Some(turn);
            due.before = before;
        }
        due.last = turn;
        self.call(&mut due, wakes);
    }

    /// Notes a loss; `before` is the head that it happened after.
    pub(crate) fn mark_gap(self: &Arc<Self>, reason: GapReason, before: Seq, wakes: &mut Wakes) {
        let mut due = lock(&self.due);
        if due.first.is_none() && due.gap.is_none() {
            due.before = before;
        }
        due.gap = Some(reason);
        self.call(&mut due, wakes);
    }

    /// Notes the end of the feed.
    pub(crate) fn mark_closed(self: &Arc<Self>, wakes: &mut Wakes) {
        let mut due = lock(&self.due);
        due.closed = true;
        self.call(&mut due, wakes);
    }

    /// Makes the changes from `first` to `last` due, of which the first in scope is yet unknown.
    pub(crate) fn mark_backlog(&self, first: Turn, last: Turn, before: Seq) {
        let mut due = lock(&self.due);
        due.first = Some(first);
        due.last = last;
        due.before = before;
    }

    /// Has the outlet name this watch if anything is due.
    pub(crate) fn call_if_due(self: &Arc<Self>, wakes: &mut Wakes) {
        let mut due = lock(&self.due);
        if due.first.is_some() || due.gap.is_some() || due.closed {
            self.call(&mut due, wakes);
        }
    }

    /// What is due first; the outlet is armed if nothing is.
    pub(crate) fn find(&self) -> Found {
        let mut due = lock(&self.due);
        match (due.gap, due.first, due.closed) {
            (Some(_), ..) => Found::Gap,
            (None, Some(turn), _) => Found::Change(turn),
            (None, None, true) => Found::End,
            (None, None, false) => {
                due.waiting = true;
                Found::Nothing
            }
        }
    }

    fn call(self: &Arc<Self>, due: &mut Due, wakes: &mut Wakes) {
        if !due.waiting {
            return;
        }
        if let Some(outlet) = &due.outlet {
            outlet.queue(self, wakes);
            due.waiting = false;
        }
    }
}

impl Due {
    /// The last change in scope that is known.
    pub(crate) const fn last(&self) -> Turn {
        self.last
    }

    /// The reader is past everything up to `before`, and `first` is the next in scope.
    pub(crate) const fn advance(&mut self, first: Option<Turn>, before: Seq) {
        self.first = first;
        self.before = before;
    }

    /// The reader starts anew at the head; the reason is that of the loss which was noted.
    pub(crate) fn restart(&mut self) -> Option<GapReason> {
        self.first = None;
        self.gap.take()
    }

    /// How far the reader came, or nothing if it is at the head.
    pub(crate) fn behind(&self) -> Option<Seq> {
        (self.first.is_some() || self.gap.is_some()).then_some(self.before)
    }

    pub(crate) const fn take_outlet(&mut self) -> Option<Arc<Outlet>> {
        self.outlet.take()
    }
}
