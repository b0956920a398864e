//! Watches that are told the same, byte for byte, and so are told together.
//!
//! A cohort has one place in the feed. Its members are at that place, or ahead of it: one that
//! joined from a later position is passed over until the cohort is there, so nothing is lost or
//! told twice to it. A member whose socket is blocked when it is told something leaves with the
//! position before that, and goes its own way until it has caught up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use auth::Caller;
use wire::Seq;

use super::slab::Key;
use crate::stream::{Mode, Reader, Scopes, Voice};
use gate::Alarm;

/// What members have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Manner {
    pub(crate) voice: Voice,
    /// The canonical scopes in their order.
    pub(crate) scopes: Scopes,
    /// Whose rights they read under. Channels are read under those of each seat.
    pub(crate) caller: Caller,
    /// The least time between two frames; zero tells every change.
    pub(crate) min_gap: Duration,
}

/// A member at the cohort's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) line: Key,
    pub(crate) watch: Key,
    /// It was told everything up to here.
    pub(crate) from: Seq,
}

/// Watches that are told the same.
#[derive(Debug)]
pub(crate) struct Cohort {
    pub(crate) manner: Arc<Manner>,
    pub(crate) reader: Reader,
    pub(crate) members: Vec<Member>,
    /// Watches of this manner, those that go their own way included.
    pub(crate) watches: usize,
    /// When all members were last told something.
    pub(crate) told: Instant,
    /// How long after that they hear a sign of life.
    pub(crate) heartbeat: Duration,
    /// Something is due that waits for the least time to pass.
    pub(crate) is_held_back: bool,
    pub(crate) gave_way: bool,
    pub(crate) alarm: Alarm,
}

impl Cohort {
    pub(crate) fn new(
        manner: Arc<Manner>,
        reader: Reader,
        now: Instant,
        heartbeat: Duration,
    ) -> Self {
        Self {
            manner,
            reader,
            members: Vec::new(),
            watches: 0,
            told: now,
            heartbeat,
            is_held_back: false,
            gave_way: false,
            alarm: Alarm::default(),
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        if self.manner.min_gap.is_zero() {
            Mode::Every
        } else {
            Mode::Latest
        }
    }

    /// How long it must still hold back at `now`, if it must.
    pub(crate) fn must_wait(&self, now: Instant) -> bool {
        !self.manner.min_gap.is_zero() && now < self.told + self.manner.min_gap
    }

    /// When it must be looked at although nothing happened.
    pub(crate) fn alarm_at(&self) -> Instant {
        let beat = self.told + self.heartbeat;
        if self.is_held_back {
            beat.min(self.told + self.manner.min_gap)
        } else {
            beat
        }
    }
}

/// One watch of a line.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) line: Key,
    pub(crate) cohort: Key,
    pub(crate) way: Way,
    /// Its seat is suspended: it must not be told what the others are.
    pub(crate) is_suspended: bool,
}

/// Where a watch is.
#[derive(Debug)]
pub(crate) enum Way {
    /// It has a place in the feed of its own, until it has caught up.
    Alone(Box<Alone>),
    /// At this place among the members of its cohort.
    Together(usize),
}

/// A watch that goes its own way.
#[derive(Debug)]
pub(crate) struct Alone {
    pub(crate) reader: Reader,
    /// What is to be told before anything else.
    pub(crate) missed: Option<(wire::GapReason, wire::Cursor)>,
}
