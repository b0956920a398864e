//! The reader's side: one watch's place in the ring.
//!
//! The place is the next change in scope, found as soon as the one before it was read, so that
//! a reader is lapped only by the loss of a change that it was owed. The one exception errs
//! towards telling: changes that are overwritten while a reader passes over them on its way to
//! the next one count as owed, since nobody can tell any more.

use std::fmt;
use std::sync::Arc;

use wire::{Cursor, Epoch, GapReason, Seq};

use crate::feed::Feed;
use crate::outlet::{Token, Wakes};
use crate::registration::{Found, Registration};
use crate::ring::Turn;
use crate::scope::{Change, Scope};
use crate::slot::Slot;
use crate::sync::lock;

/// One watch's place in the ring. Dropping it unsubscribes.
pub struct Subscription<C: Change> {
    feed: Feed<C>,
    registration: Arc<Registration>,
    /// The epoch of what it reads; it follows the feed's when the gap of a new epoch is told.
    epoch: Epoch,
    /// It was told of the end.
    ended: bool,
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

impl<C: Change> Subscription<C> {
    pub(crate) const fn new(feed: Feed<C>, registration: Arc<Registration>, epoch: Epoch) -> Self {
        Self {
            feed,
            registration,
            epoch,
            ended: false,
        }
    }

    /// Its name in the outlet.
    pub fn token(&self) -> Token {
        self.registration.token
    }

    /// What it is told of.
    pub fn scope(&self) -> &Scope {
        &self.registration.scope
    }

    /// The next thing to tell. After `Idle` the outlet names this subscription again when there is
    /// more; before it, it doesn't. After `Closed` there is only `Closed`.
    // Not an iterator's `next`: that one's `None` means the end, and `Idle` doesn't.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Next<C> {
        if self.ended {
            return Next::Closed;
        }
        match self.registration.find() {
            Found::Change(turn) => match self.feed.shared.ring.slot(turn) {
                Some(slot) => {
                    self.seek(turn, slot.seq());
                    Next::Change(slot)
                }
                None => self.resync(),
            },
            Found::End => {
                self.ended = true;
                Next::Closed
            }
            Found::Gap => self.resync(),
            Found::Nothing => Next::Idle,
        }
    }

    /// Everything up to here was returned by `next` or does not concern the scope.
    ///
    /// It is the head when nothing is due, so a watch that nothing concerns advances.
    pub fn position(&self) -> Cursor {
        // The feed's lock first: no change can move the head between the two looks.
        let state = lock(&self.feed.shared.state);
        let behind = lock(&self.registration.due).behind();
        Cursor::new(self.epoch.clone(), behind.unwrap_or(state.head))
    }

    /// Finds the first change in scope of a backlog and has the outlet name this subscription.
    pub(crate) fn seek_backlog(&self, wakes: &mut Wakes) {
        if let Found::Change(first) = self.registration.find() {
            let before = lock(&self.registration.due).behind();
            self.seek(first.previous(), before.unwrap_or(Seq::ZERO));
        }
        self.registration.call_if_due(wakes);
    }

    /// Finds the next change in scope after `read`, up to which all was told (`before`).
    fn seek(&self, mut read: Turn, mut before: Seq) {
        let mut last = lock(&self.registration.due).last();
        loop {
            while read < last {
                let next = read.next();
                let Some(slot) = self.feed.shared.ring.slot(next) else {
                    // Overwritten: `next` finds the same and tells it.
                    return lock(&self.registration.due).advance(Some(next), before);
                };
                if self.registration.scope.contains(slot.change().name()) {
                    return lock(&self.registration.due).advance(Some(next), before);
                }
                (read, before) = (next, slot.seq());
            }
            let mut due = lock(&self.registration.due);
            if due.last() == last {
                return due.advance(None, before);
            }
            last = due.last();
        }
    }

    /// Takes its place at the head and says why.
    fn resync(&mut self) -> Next<C> {
        let mut state = lock(&self.feed.shared.state);
        let noted = lock(&self.registration.due).restart();
        let reason = noted.unwrap_or(GapReason::Lapped);
        state.stats.count_gap(reason);
        self.epoch = state.epoch.clone();
        Next::Gap {
            reason,
            head: state.head(),
        }
    }
}

impl<C: Change> Drop for Subscription<C> {
    fn drop(&mut self) {
        lock(&self.feed.shared.state)
            .index
            .remove(&self.registration);
        let outlet = lock(&self.registration.due).take_outlet();
        if let Some(outlet) = outlet {
            outlet.leave(&self.registration);
        }
    }
}

impl<C: Change> fmt::Debug for Subscription<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("token", &self.registration.token)
            .field("scope", &self.registration.scope)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}
