//! What a watch does next, decided without a socket and without a clock.
//!
//! The methods come in two families. [`State::step`] says what to do: open a stream, read a block
//! until a moment, wait until a moment. The `handle_*` methods take in what came of it and the
//! time, and give what the caller of the watch is to hear. The shell calls them in turn.
//!
//! The promise is kept here: the cursor moves forward only, with every block, and each stream is
//! opened from it, so nothing in scope is missed without a [`Notice::Gap`].

use std::time::Duration;

use tokio::time::Instant;
use wire::{Control, Cursor, DocumentScope, Event, Status};

use super::{Change, Gap, Notice};
use crate::backoff::{Backoff, Jitter};
use crate::client::TRIES_MAX;
use crate::error::Refusal;

/// How long the first block of a stream may take.
pub(crate) const FIRST_BLOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Three heartbeats of 20 s missed: the stream is dead.
pub(crate) const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Before a reopening that isn't at once; doubled each time that it brings nothing, up to the
/// longest.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Around this long a server that closed without naming a time is left alone.
const CLOSING_PAUSE: Duration = Duration::from_millis(500);

/// A server that names a longer time is asked again after this one.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// Around this long after a lost connection the next is made, so that a crowd doesn't come at once.
const LOST_PAUSE: Duration = Duration::from_millis(50);

/// As many streams in a row that begin with a resync mean that the server takes no cursor, not
/// even its own.
pub(crate) const RESYNCS_MAX: u32 = 5;

/// What the shell is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Open a stream from the cursor; from the head if there is none.
    Open(Option<Cursor>),
    /// Read a block, until this moment at most.
    Read(Instant),
    /// Do nothing until this moment.
    Wait(Instant),
}

/// How a stream came to its end, or why none was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A block that can't be read, or that can't be true.
    BadBlock,
    /// The stream ended, was reset or stalled.
    Cut,
    /// The connection was lost.
    Lost,
    /// No connection, or no stream of it.
    Unopened,
}

/// Why a watch is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The server says no, and asking again wouldn't change that.
    Refused(Refusal),
    /// The server answers every cursor with a resync.
    Resyncs,
    /// The first request found nobody, in all its tries.
    Unreachable,
}

/// A watch, seen from inside.
#[derive(Debug)]
pub(crate) struct State {
    scope: DocumentScope,
    /// Everything in scope up to here was handed out.
    cursor: Option<Cursor>,
    phase: Phase,
    /// Grows while streams bring nothing.
    pauses: Backoff,
    /// How many streams in a row began with a resync.
    resyncs: u32,
    /// Tries that the first request has left; absent once a stream was acknowledged.
    tries_left: Option<u32>,
}

#[derive(Debug)]
enum Phase {
    /// No stream before this moment.
    Waiting(Instant),
    /// A stream whose first block is due by then.
    Opening(Instant),
    /// An acknowledged stream, and when its next block is due.
    Live { due: Instant, carried: bool },
}

impl State {
    /// A watch that begins after `since`, or with the next change.
    pub(crate) const fn new(
        scope: DocumentScope,
        since: Option<Cursor>,
        jitter: Jitter,
        now: Instant,
    ) -> Self {
        Self {
            scope,
            cursor: since,
            phase: Phase::Waiting(now),
            pauses: Backoff::new(PAUSE, PAUSE_MAX, jitter),
            resyncs: 0,
            tries_left: Some(TRIES_MAX),
        }
    }

    /// What to do now.
    pub(crate) fn step(&self, now: Instant) -> Step {
        match self.phase {
            Phase::Waiting(until) if until <= now => Step::Open(self.cursor.clone()),
            Phase::Waiting(until) => Step::Wait(until),
            Phase::Opening(due) | Phase::Live { due, .. } => Step::Read(due),
        }
    }

    /// The request is on its way.
    pub(crate) fn handle_open(&mut self, now: Instant) {
        self.phase = Phase::Opening(now + FIRST_BLOCK_TIMEOUT);
    }

    /// The shell gave the stream up for its own reason; the next one may follow at once.
    pub(crate) const fn handle_dropped(&mut self, now: Instant) {
        self.phase = Phase::Waiting(now);
    }

    /// Somebody has reason to believe that the network is back.
    pub(crate) fn handle_wake(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Waiting(_)) {
            self.pauses.reset();
            self.phase = Phase::Waiting(now);
        }
    }

    /// A change came.
    pub(crate) fn handle_event(&mut self, event: Event, now: Instant) -> Result<Notice, Failure> {
        let is_true = matches!(self.phase, Phase::Live { .. })
            && self.moves_forward(&event.cursor)
            && self.scope.contains(&event.path);
        if !is_true {
            return Err(Failure::BadBlock);
        }
        self.advance(&event.cursor, now);
        Ok(Notice::Change(Change::from(event)))
    }

    /// A change came whose operation isn't known. It only moves the cursor.
    pub(crate) fn handle_unknown(
        &mut self,
        cursor: &Cursor,
        now: Instant,
    ) -> Result<Notice, Failure> {
        if !matches!(self.phase, Phase::Live { .. }) || !self.moves_forward(cursor) {
            return Err(Failure::BadBlock);
        }
        self.advance(cursor, now);
        Ok(Notice::Position(cursor.clone()))
    }

    /// A block about the watch itself came. `Ok(None)` means that the stream is over, without a
    /// word to the caller.
    pub(crate) fn handle_control(
        &mut self,
        control: Control,
        now: Instant,
    ) -> Result<Option<Notice>, Verdict> {
        match (control.status, control.cursor) {
            (Status::Ok, Some(cursor)) => self.handle_position(cursor, now).map(Some),
            (Status::Resync, Some(cursor)) => {
                let reason = control.reason;
                self.handle_resync(Gap { reason, cursor }, now).map(Some)
            }
            (Status::Ok | Status::Resync, None) => Err(Verdict::Failed(Failure::BadBlock)),
            (Status::Closing, _) => {
                self.spend_try()?;
                let named = control.retry_after_ms.map(Duration::from_millis);
                let pause = named.map_or_else(
                    || self.pauses.pause_around(CLOSING_PAUSE),
                    |named| named.min(RETRY_AFTER_MAX),
                );
                self.phase = Phase::Waiting(now + pause);
                Ok(None)
            }
            (status, _) => self.handle_refusal(
                Refusal {
                    status,
                    message: control.message.unwrap_or_default(),
                },
                now,
            ),
        }
    }

    /// The stream failed, or none came about.
    pub(crate) fn handle_failure(&mut self, failure: Failure, now: Instant) -> Result<(), Verdict> {
        self.spend_try()?;
        let carried = matches!(self.phase, Phase::Live { carried: true, .. });
        let pause = match failure {
            Failure::Lost if carried => self.pauses.pause_around(LOST_PAUSE),
            Failure::BadBlock | Failure::Cut if carried => Duration::ZERO,
            _ => self.pauses.pause(),
        };
        self.phase = Phase::Waiting(now + pause);
        Ok(())
    }

    /// An acknowledgement as the first block, a heartbeat later.
    fn handle_position(&mut self, cursor: Cursor, now: Instant) -> Result<Notice, Verdict> {
        if !self.moves_forward(&cursor) {
            return Err(Verdict::Failed(Failure::BadBlock));
        }
        let is_first = matches!(self.phase, Phase::Opening(_));
        let skipped = is_first && self.cursor.as_ref().is_some_and(|since| *since != cursor);
        self.tries_left = None;
        self.resyncs = 0;
        self.advance(&cursor, now);
        if is_first {
            self.phase = Phase::Live {
                due: now + STALL_TIMEOUT,
                carried: false,
            };
        }
        Ok(if skipped {
            // What lies between the cursor that was asked for and this one was never sent.
            Notice::Gap(Gap {
                reason: None,
                cursor,
            })
        } else {
            Notice::Position(cursor)
        })
    }

    fn handle_resync(&mut self, gap: Gap, now: Instant) -> Result<Notice, Verdict> {
        if matches!(self.phase, Phase::Opening(_)) {
            self.resyncs += 1;
        }
        if self.resyncs >= RESYNCS_MAX {
            return Err(Verdict::Over(End::Resyncs));
        }
        let pause = match self.resyncs {
            0 | 1 => Duration::ZERO,
            _ => self.pauses.pause(),
        };
        self.tries_left = None;
        self.cursor = Some(gap.cursor.clone());
        self.phase = Phase::Waiting(now + pause);
        Ok(Notice::Gap(gap))
    }

    /// Ends the watch, unless the server may think better of it: it accepted the watch before.
    fn handle_refusal(
        &mut self,
        refusal: Refusal,
        now: Instant,
    ) -> Result<Option<Notice>, Verdict> {
        let may_pass = matches!(refusal.status, Status::RateLimited | Status::ServerError);
        if self.tries_left.is_some() || !may_pass {
            return Err(Verdict::Over(End::Refused(refusal)));
        }
        self.phase = Phase::Waiting(now + self.pauses.pause());
        Ok(None)
    }

    /// Takes one of the tries of the first request, as long as nothing was ever acknowledged.
    fn spend_try(&mut self) -> Result<(), Verdict> {
        let Some(left) = &mut self.tries_left else {
            return Ok(());
        };
        *left = left.saturating_sub(1);
        if *left == 0 {
            Err(Verdict::Over(End::Unreachable))
        } else {
            Ok(())
        }
    }

    fn advance(&mut self, cursor: &Cursor, now: Instant) {
        self.cursor = Some(cursor.clone());
        if let Phase::Live { due, carried } = &mut self.phase {
            *due = now + STALL_TIMEOUT;
            *carried = true;
            self.pauses.reset();
        }
    }

    /// True unless `cursor` is of another epoch or goes back: a change of epoch is a resync.
    fn moves_forward(&self, cursor: &Cursor) -> bool {
        self.cursor
            .as_ref()
            .is_none_or(|last| last.epoch == cursor.epoch && last.seq <= cursor.seq)
    }
}

/// What a block does to the stream or to the whole watch, when it isn't good news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The stream failed; hand it to [`State::handle_failure`].
    Failed(Failure),
    /// The watch is over.
    Over(End),
}

#[cfg(test)]
mod tests;
