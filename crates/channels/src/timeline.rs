//! The order of everything that happens: the feed and the histories, moved together.
//!
//! One lock covers publishing and joining. Within it a join sees the history exactly up to the
//! position at which its subscription begins, so that what is replayed lies strictly before what
//! comes live, and nothing lies between (C9). The feed's own ring is for those who are a moment
//! behind; whoever is further behind is recovered from the history of its topic.
//!
//! Publishing wakes tasks under this lock, so a waker must not publish.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use feed::{Feed, Outlet, Subscription};
use wire::{Cursor, Epoch, GapReason, Seq};

use crate::event::{Content, Event};
use crate::history::History;
use crate::limits::Limits;
use crate::topic::Topic;

pub(crate) struct Timeline {
    feed: Feed<Event>,
    history: Mutex<History>,
}

/// Where a join begins.
pub(crate) struct Followed {
    pub(crate) subscription: Subscription<Event>,
    /// The position from which on everything comes live.
    pub(crate) head: Cursor,
    /// What happened between the cursor that was given and the head, or why that can't be said.
    pub(crate) missed: Result<VecDeque<Event>, GapReason>,
}

impl Timeline {
    pub(crate) fn new(epoch: Epoch, limits: &Limits) -> Self {
        Self {
            feed: Feed::new(epoch, Seq::ZERO, limits.ring_len),
            history: Mutex::new(History::new(limits.histories, limits.history_bytes)),
        }
    }

    pub(crate) const fn feed(&self) -> &Feed<Event> {
        &self.feed
    }

    /// Publishes to `topic`; gives its position and how many older events had to go for it.
    pub(crate) fn publish(&self, topic: &Topic, content: Content) -> (Cursor, u64) {
        let mut history = self.lock();
        let head = self.feed.head();
        let cursor = Cursor::new(head.epoch, head.seq.next());
        let event = Event::new(topic.clone(), cursor.clone(), content);
        let limit = topic.declaration().history();
        let forgotten = match (limit, event.message()) {
            (Some(limit), Some(_)) => history.keep(event.clone(), limit),
            _ => 0,
        };
        let seq = self.feed.publish(event);
        debug_assert_eq!(seq, cursor.seq, "everything is published under the lock");
        (cursor, forgotten)
    }

    /// Follows `topic` from its head, with what came after `since`.
    pub(crate) fn follow(
        &self,
        topic: &Topic,
        since: Option<&Cursor>,
        outlet: &Arc<Outlet>,
    ) -> Followed {
        let history = self.lock();
        let subscription = self.subscribe(topic, outlet);
        let head = self.feed.head();
        let missed = match since {
            Some(since) if since.epoch != head.epoch => Err(GapReason::Epoch),
            Some(since) if since.seq > head.seq => Err(GapReason::Ahead),
            Some(since) => history
                .between(topic, since.seq, head.seq)
                .ok_or(GapReason::TooOld),
            None => Ok(VecDeque::new()),
        };
        Followed {
            subscription,
            head,
            missed,
        }
    }

    /// Follows `topic` from after a position that was told live: from the ring if it still has
    /// everything, else from the head, which is given as well.
    pub(crate) fn resume(
        &self,
        topic: &Topic,
        from: &Cursor,
        outlet: &Arc<Outlet>,
    ) -> (Subscription<Event>, Option<Cursor>) {
        let _history = self.lock();
        let resumed = self.feed.subscribe(topic.feed_scope(), Some(from), outlet);
        resumed.map_or_else(
            |refused| (self.subscribe(topic, outlet), Some(refused.head)),
            |subscription| (subscription, None),
        )
    }

    fn subscribe(&self, topic: &Topic, outlet: &Arc<Outlet>) -> Subscription<Event> {
        self.feed
            .subscribe(topic.feed_scope(), None, outlet)
            .expect("only a cursor is refused")
    }

    /// What happened to `topic` after `since` up to `upto`, unless some of it is gone.
    pub(crate) fn between(&self, topic: &Topic, since: Seq, upto: Seq) -> Option<VecDeque<Event>> {
        self.lock().between(topic, since, upto)
    }

    pub(crate) fn history_bytes(&self) -> usize {
        self.lock().bytes()
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        // Nothing of a caller runs under this lock but wakers, after the history was changed.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
