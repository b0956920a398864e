//! The publisher's side: the head moves, the ring takes the change, the concerned are called.
//!
//! Everything that changes what is true of the feed happens under one lock: publishing,
//! subscribing, dropping a subscription, skipping, closing and beginning a new epoch. So a change
//! is either before a subscription's first position or told to it, and a position never overtakes
//! a change. Readers don't take that lock to read, only to learn of the head.

use std::fmt;
use std::sync::Arc;

use wire::{Cursor, Epoch, GapReason, Seq};

use crate::index::Index;
use crate::outlet::{Outlet, Wakes};
use crate::registration::Registration;
use crate::ring::{Ring, Turn};
use crate::scope::{Change, Scope};
use crate::slot::Slot;
use crate::stats::Stats;
use crate::subscription::Subscription;
use crate::sync::{Mutex, lock};

/// The ring. A cheap handle: clones share it.
pub struct Feed<C> {
    pub(crate) shared: Arc<Shared<C>>,
}

pub(crate) struct Shared<C> {
    pub(crate) ring: Ring<C>,
    pub(crate) state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) epoch: Epoch,
    pub(crate) head: Seq,
    /// Every change above the floor lies in the ring; of those below some are gone.
    floor: Seq,
    /// The turn of the newest change.
    turn: Turn,
    /// How many changes lie in the ring.
    kept: usize,
    closed: bool,
    pub(crate) index: Index,
    pub(crate) stats: Stats,
}

impl<C> Clone for Feed<C> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<C> fmt::Debug for Feed<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.shared.state);
        f.debug_struct("Feed")
            .field("head", &state.head())
            .field("floor", &state.floor)
            .field("closed", &state.closed)
            .finish_non_exhaustive()
    }
}

impl<C: Change> Feed<C> {
    /// An empty ring of `ring_len` slots that continues after `head`.
    ///
    /// # Panics
    ///
    /// If `ring_len` is no power of two; [`RING_LEN`](crate::RING_LEN) is the usual one.
    pub fn new(epoch: Epoch, head: Seq, ring_len: usize) -> Self {
        let state = State {
            epoch,
            head,
            floor: head,
            turn: Turn::ZERO,
            kept: 0,
            closed: false,
            index: Index::default(),
            stats: Stats::default(),
        };
        Self {
            shared: Arc::new(Shared {
                ring: Ring::new(ring_len),
                state: Mutex::new(state),
            }),
        }
    }

    /// Gives `change` the next place and wakes the watches that it concerns.
    ///
    /// After [`close`](Self::close) a change still takes its place, so that positions stay true,
    /// and reaches whoever has not been told of the end.
    pub fn publish(&self, change: C) -> Seq {
        let mut wakes = Wakes::default();
        let mut state = lock(&self.shared.state);
        let seq = state.head.next();
        let evicted = state.place(&self.shared.ring, seq, change, &mut wakes);
        drop(state);
        drop(evicted);
        seq
    }

    /// Puts `change` at the source's own place, above the head; places between are empty, not lost.
    pub fn publish_at(&self, seq: Seq, change: C) -> Result<(), StaleSeq> {
        let mut wakes = Wakes::default();
        let mut state = lock(&self.shared.state);
        if seq <= state.head {
            return Err(StaleSeq);
        }
        let evicted = state.place(&self.shared.ring, seq, change, &mut wakes);
        drop(state);
        drop(evicted);
        Ok(())
    }

    /// Moves the head to `to` over changes that nobody can name: every watch is told a gap of
    /// reason `hole`, in place of what it had not read, and a cursor below `to` is too old.
    ///
    /// Does nothing if the head is at `to` or above.
    pub fn skip(&self, to: Seq) {
        let mut wakes = Wakes::default();
        let mut state = lock(&self.shared.state);
        if to > state.head {
            state.lose(&self.shared.ring, GapReason::Hole, to, &mut wakes);
        }
        drop(state);
    }

    /// Ends every subscription once it has read what is there, later subscriptions too.
    pub fn close(&self) {
        let mut wakes = Wakes::default();
        let mut state = lock(&self.shared.state);
        state.closed = true;
        for registration in state.index.iter() {
            registration.mark_closed(&mut wakes);
        }
        drop(state);
    }

    /// Begins a new epoch: every watch is told a gap of reason `epoch`, in place of what it had
    /// not read.
    pub fn restart(&self, epoch: Epoch, head: Seq) {
        let mut wakes = Wakes::default();
        let mut state = lock(&self.shared.state);
        state.lose(&self.shared.ring, GapReason::Epoch, head, &mut wakes);
        state.epoch = epoch;
        drop(state);
    }

    /// The position of the newest change.
    pub fn head(&self) -> Cursor {
        lock(&self.shared.state).head()
    }

    /// What the feed has done so far.
    pub fn stats(&self) -> Stats {
        let state = lock(&self.shared.state);
        Stats {
            subscriptions: state.index.len(),
            ..state.stats
        }
    }

    /// Follows `scope` from after `since`, or from the head.
    ///
    /// Every change in scope after that is told, or a gap is. A cursor of another epoch, above the
    /// head, or from before the oldest change that is kept is refused with the reason.
    ///
    /// # Panics
    ///
    /// If a prefix doesn't end in `/`: it would miss changes without a word.
    pub fn subscribe(
        &self,
        scope: Scope,
        since: Option<&Cursor>,
        outlet: &Arc<Outlet>,
    ) -> Result<Subscription<C>, Refused> {
        assert!(
            !scope.is_prefix() || scope.text().ends_with('/'),
            "a prefix ends in a slash"
        );
        let mut wakes = Wakes::default();
        let mut state = lock(&self.shared.state);
        if let Some(reason) = since.and_then(|since| state.refusal(since)) {
            state.stats.count_refusal(reason);
            return Err(Refused {
                reason,
                head: state.head(),
            });
        }
        let registration = Arc::new(Registration::new(state.index.shared_scope(scope), outlet));
        let since = since.map_or(state.head, |since| since.seq);
        let has_backlog = since < state.head && state.kept > 0;
        if has_backlog {
            let first = self.shared.ring.first_above(since, state.turn, state.kept);
            registration.mark_backlog(first, state.turn, since);
        }
        if state.closed {
            registration.mark_closed(&mut wakes);
        }
        state.index.insert(registration.clone());
        let epoch = state.epoch.clone();
        drop(state);
        let subscription = Subscription::new(self.clone(), registration, epoch);
        if has_backlog {
            subscription.seek_backlog(&mut wakes);
        }
        Ok(subscription)
    }
}

impl State {
    pub(crate) fn head(&self) -> Cursor {
        Cursor::new(self.epoch.clone(), self.head)
    }

    /// Puts `change` in the ring and calls the watches that it concerns. Gives what it displaced,
    /// to be dropped without the lock.
    fn place<C: Change>(
        &mut self,
        ring: &Ring<C>,
        seq: Seq,
        change: C,
        wakes: &mut Wakes,
    ) -> Option<Arc<Slot<C>>> {
        let turn = self.turn.next();
        let cursor = Cursor::new(self.epoch.clone(), seq);
        let slot = Arc::new(Slot::new(turn, cursor, change));
        // Asked for before anything moves, so that a name which panics changes nothing.
        let name = slot.change().name();
        let evicted = ring.put(slot.clone());
        match &evicted {
            Some(evicted) => self.floor = evicted.seq(),
            None => self.kept += 1,
        }
        self.turn = turn;
        let before = self.head;
        self.head = seq;
        let mut touched = 0;
        self.index.visit_concerned(name, |registration| {
            registration.mark_change(turn, before, wakes);
            touched += 1;
        });
        self.stats.published += 1;
        self.stats.touched += touched;
        evicted
    }

    /// Moves to `head` over a loss that concerns everyone.
    fn lose<C>(&mut self, ring: &Ring<C>, reason: GapReason, head: Seq, wakes: &mut Wakes) {
        for registration in self.index.iter() {
            registration.mark_gap(reason, self.head, wakes);
        }
        ring.clear();
        self.kept = 0;
        self.head = head;
        self.floor = head;
    }

    /// Why `since` can't be resumed from, if it can't.
    fn refusal(&self, since: &Cursor) -> Option<GapReason> {
        if since.epoch != self.epoch {
            Some(GapReason::Epoch)
        } else if since.seq > self.head {
            Some(GapReason::Ahead)
        } else if since.seq < self.floor {
            Some(GapReason::TooOld)
        } else {
            None
        }
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
