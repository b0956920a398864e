//! The reading side of a seat.
//!
//! A watch reads its topic from the feed and mends what the feed's ring lost: on a channel with
//! history from the history, all or nothing, else with a gap; on one without, not at all, as
//! declared. Where members are present, whatever was lost is followed by the whole roster.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use feed::{Outlet, Subscription, Token};
use wire::{Cursor, GapReason, Seq};

use crate::event::{Content, Event};
use crate::hub::Hub;
use crate::member::Roster;
use crate::seat::Seat;
use crate::topic::Topic;

/// What a watch finds.
#[derive(Debug)]
pub enum Next {
    /// The hub was closed and everything before was read.
    Closed,
    /// The seat is gone: the subscriber left or may not any more. There is nothing after it.
    Ended,
    /// Something happened.
    Event(Event),
    /// Something was missed; the watch continues after `cursor`.
    Gap {
        /// Why.
        reason: GapReason,
        /// The position to continue from.
        cursor: Cursor,
    },
    /// Nothing more for now.
    Idle,
    /// The members from here on, in place of what was known of them.
    Roster(Arc<Roster>),
}

/// The reading side of a seat. Dropping it does not give the seat back.
pub struct Watch {
    hub: Hub,
    topic: Topic,
    seat: Arc<Seat>,
    subscription: Subscription<Event>,
    /// What is to be told before the subscription.
    replay: VecDeque<Event>,
    /// Everything of the topic up to here was told.
    told: Cursor,
    /// Where the subscription begins, if what lies between was not looked for yet.
    behind: Option<Cursor>,
    /// A roster is to be told before anything else.
    owes_roster: bool,
    /// Deltas up to here are in the roster that was told.
    roster_as_of: Seq,
}

impl Watch {
    pub(crate) fn new(
        hub: Hub,
        topic: Topic,
        seat: Arc<Seat>,
        subscription: Subscription<Event>,
        replay: VecDeque<Event>,
        told: Cursor,
    ) -> Self {
        Self {
            hub,
            topic,
            seat,
            subscription,
            replay,
            told,
            behind: None,
            owes_roster: false,
            roster_as_of: Seq::ZERO,
        }
    }

    /// Goes on from after a position that was told live.
    pub(crate) fn resume(
        hub: &Hub,
        topic: &Topic,
        seat: Arc<Seat>,
        from: &Cursor,
        outlet: &Arc<Outlet>,
    ) -> Self {
        let (subscription, behind) = hub.timeline().resume(topic, from, outlet);
        let (hub, topic) = (hub.clone(), topic.clone());
        Self {
            behind,
            ..Self::new(
                hub,
                topic,
                seat,
                subscription,
                VecDeque::new(),
                from.clone(),
            )
        }
    }

    /// Its name in the outlet.
    pub fn token(&self) -> Token {
        self.subscription.token()
    }

    /// What it is told of.
    pub const fn topic(&self) -> &Topic {
        &self.topic
    }

    /// Everything of the topic up to here was told.
    pub fn position(&self) -> Cursor {
        if self.replay.is_empty() && self.behind.is_none() {
            self.subscription.position()
        } else {
            self.told.clone()
        }
    }

    /// The next thing to tell. After `Idle` the outlet names the watch again when there is more;
    /// after [`Socket::settle`](crate::Socket::settle), `recheck` and `identify` it is to be read
    /// as well, for those who changed a seat know it without being woken.
    // Not an iterator's `next`: that one's `None` means the end, and `Idle` doesn't.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Next {
        loop {
            if self.seat.has_ended() {
                return Next::Ended;
            }
            if self.seat.is_suspended() {
                return self.discard();
            }
            if self.seat.take_gap() {
                return self.tell_suspension();
            }
            if let Some(head) = self.behind.take()
                && let Some(gap) = self.mend(GapReason::Lapped, head)
            {
                return gap;
            }
            if std::mem::take(&mut self.owes_roster)
                && let Some(roster) = self.hub.roster(&self.topic)
            {
                self.roster_as_of = roster.as_of;
                return Next::Roster(roster);
            }
            if let Some(event) = self.replay.pop_front() {
                self.told.seq = event.cursor().seq;
                return Next::Event(event);
            }
            match self.subscription.next() {
                feed::Next::Change(slot) => {
                    let event = slot.change();
                    self.told.seq = event.cursor().seq;
                    if !self.is_in_roster(event) {
                        return Next::Event(event.clone());
                    }
                }
                feed::Next::Gap { reason, head } => {
                    if let Some(gap) = self.mend(reason, head) {
                        return gap;
                    }
                }
                feed::Next::Idle => {
                    self.told = self.subscription.position();
                    return Next::Idle;
                }
                feed::Next::Closed => return Next::Closed,
            }
        }
    }

    fn is_in_roster(&self, event: &Event) -> bool {
        let is_delta = matches!(event.content(), Content::Presence(_));
        is_delta && event.cursor().seq <= self.roster_as_of
    }

    /// Makes up for what the ring lost before `head`; gives the gap to tell if that can't be done.
    fn mend(&mut self, reason: GapReason, head: Cursor) -> Option<Next> {
        let declaration = self.topic.declaration();
        self.owes_roster = declaration.has_presence();
        if declaration.history().is_none() {
            self.hub.counters().losses.add(1);
            self.told = head;
            return None;
        }
        let timeline = self.hub.timeline();
        let missed = timeline.between(&self.topic, self.told.seq, head.seq);
        if let (GapReason::Lapped, Some(missed)) = (reason, missed) {
            self.hub.counters().recovered.add(1);
            self.replay = missed;
            return None;
        }
        self.hub.counters().gaps.add(1);
        self.told = head.clone();
        Some(Next::Gap {
            reason,
            cursor: head,
        })
    }

    /// Passes over everything that is there.
    fn discard(&mut self) -> Next {
        self.replay.clear();
        self.behind = None;
        loop {
            match self.subscription.next() {
                feed::Next::Change(_) | feed::Next::Gap { .. } => {}
                feed::Next::Idle => return Next::Idle,
                feed::Next::Closed => return Next::Closed,
            }
        }
    }

    /// Tells the gap that suspensions left, once.
    fn tell_suspension(&mut self) -> Next {
        if let Next::Closed = self.discard() {
            return Next::Closed;
        }
        self.told = self.subscription.position();
        self.owes_roster = self.topic.declaration().has_presence();
        self.hub.counters().gaps.add(1);
        Next::Gap {
            reason: GapReason::Revoked,
            cursor: self.told.clone(),
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("topic", &self.topic)
            .field("told", &self.told)
            .finish_non_exhaustive()
    }
}
