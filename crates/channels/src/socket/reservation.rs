//! A place that is reserved while its policy is heard, and the seat that comes of it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use auth::Claims;
use feed::Outlet;
use wire::{Cursor, GapReason};

use super::{Own, Place, Shared};
use crate::member::Roster;
use crate::moment::Now;
use crate::policy::{Decision, Right, Verdict};
use crate::refusal::Refusal;
use crate::seat::Seat;
use crate::topic::Topic;
use crate::watch::Watch;

/// A place that counts against every cap, while its policy is heard. Dropping it gives it back.
pub struct Reservation {
    shared: Arc<Shared>,
    topic: Topic,
    ticket: u64,
    claims: Arc<Claims>,
    identity: u64,
}

/// A seat that was taken.
#[derive(Debug)]
pub struct Joined {
    /// The topic; its text is what the subscriber is told.
    pub topic: Topic,
    /// Where the watch begins; everything after it is told.
    pub cursor: Cursor,
    /// How it begins.
    pub start: Start,
    /// The members, where they are told of each other.
    pub roster: Option<Arc<Roster>>,
    /// The reading side.
    pub watch: Watch,
}

/// How a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// No cursor was given, or the channel keeps nothing to resume from.
    Fresh,
    /// Something after the cursor is gone; the watch begins at the head.
    Gap(GapReason),
    /// Everything after the cursor is told.
    Resumed,
}

impl Reservation {
    pub(super) fn new(shared: Arc<Shared>, topic: Topic, ticket: u64, own: &Own) -> Self {
        Self {
            shared,
            topic,
            ticket,
            claims: own.claims.clone(),
            identity: own.identity,
        }
    }

    /// The topic.
    pub const fn topic(&self) -> &Topic {
        &self.topic
    }

    /// Hears the policy. Locks nothing: a closure of the application may run.
    pub fn decide(&self) -> Decision {
        let policy = self.topic.declaration().join_policy();
        policy.decide(Right::Join, &self.topic, &self.claims, self.identity)
    }

    /// Takes the seat if the verdict allows it, and watches from after `since` or from the head.
    ///
    /// A verdict about a caller who has changed meanwhile counts as undecided.
    pub fn join(
        self,
        verdict: Verdict,
        since: Option<&Cursor>,
        outlet: &Arc<Outlet>,
        now: Now,
    ) -> Result<Joined, Refusal> {
        let hub = &self.shared.hub;
        let mut own = self.shared.own();
        if !own.holds(&self.topic, self.ticket) {
            return Err(Refusal::Dropped);
        }
        if hub.is_draining() {
            hub.counters().refused_leaving.add(1);
            self.shared.vacate(&self.topic, &mut own);
            return Err(Refusal::Leaving);
        }
        let is_stale = own.identity != self.identity;
        let verdict = if is_stale {
            Verdict::Undecided
        } else {
            verdict
        };
        if let Err(refusal) = hub.permit(verdict) {
            self.shared.vacate(&self.topic, &mut own);
            if verdict == Verdict::Denied {
                own.denied.insert(self.topic.clone());
            }
            return Err(refusal);
        }
        let seat = Arc::new(Seat::default());
        own.places
            .insert(self.topic.clone(), Place::Taken(seat.clone()));
        hub.counters().joined.add(1);
        Ok(self.take(&own.claims, seat, since, outlet, now))
    }

    /// Enters the room and begins the watch under one lock, so that the roster is the one at the
    /// position from which on deltas are told.
    fn take(
        &self,
        claims: &Claims,
        seat: Arc<Seat>,
        since: Option<&Cursor>,
        outlet: &Arc<Outlet>,
        now: Now,
    ) -> Joined {
        let hub = &self.shared.hub;
        let topic = &self.topic;
        let keeps = topic.declaration().history().is_some();
        let mut rooms = hub.rooms();
        let has_presence = topic.declaration().has_presence();
        if has_presence {
            let member = self.shared.member(claims, now);
            rooms.enter(self.shared.key, topic, member, now.elapsed);
            hub.announce(&mut rooms, topic, now);
        }
        let since = since.filter(|_| keeps);
        let followed = hub.timeline().follow(topic, since, outlet);
        let roster = has_presence.then(|| rooms.roster(topic)).flatten();
        drop(rooms);
        let (start, cursor, replay) = match (since, followed.missed) {
            (Some(since), Ok(missed)) => (Start::Resumed, since.clone(), missed),
            (None, Ok(missed)) => (Start::Fresh, followed.head, missed),
            (_, Err(reason)) => {
                hub.counters().gaps.add(1);
                (Start::Gap(reason), followed.head, VecDeque::new())
            }
        };
        let watch = Watch::new(
            hub.clone(),
            topic.clone(),
            seat,
            followed.subscription,
            replay,
            cursor.clone(),
        );
        Joined {
            topic: topic.clone(),
            cursor,
            start,
            roster,
            watch,
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut own = self.shared.own();
        if own.holds(&self.topic, self.ticket) {
            self.shared.vacate(&self.topic, &mut own);
        }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}
