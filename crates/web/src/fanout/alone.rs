//! Watches that go their own way: those that resume from a position of their own, and those whose
//! socket was blocked when their cohort was told something.
//!
//! Such a watch reads the ring at its own pace. Once it has read everything it is at the position
//! of the feed, which the cohort may not have reached yet; it joins the cohort with its position,
//! and the cohort passes it over up to there. The cohort's position is taken before the last
//! reading, so the watch is never behind it.

use std::time::{Duration, Instant};

use gate::spread;
use wire::{Cursor, GapReason};

use super::cohort::{Member, Way};
use super::line::Sent;
use super::slab::Key;
use super::worker::{Owner, Worker};
use crate::fault::Code;
use crate::stream::{FrameKind, Left, Miss, Rights};

/// Frames that a line catches up by before others have their turn.
const FRAMES_PER_TURN: usize = 32;

/// Those who return after a gap of their own are rarely alone with it: they read what they missed
/// over this time.
const CATCH_UP_OVER: Duration = Duration::from_secs(1);

/// How a watch goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It is over.
    Ended,
    /// The socket is gone.
    Gone,
    /// It has nothing more for now, or is with its cohort again.
    Idle,
    /// There may be more.
    More,
}

/// How a line goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaughtUp {
    /// As far as the socket takes it.
    Done,
    /// The socket is gone.
    Gone,
    /// It gives way with more to tell.
    More,
}

impl Worker {
    /// Tells the watches of `key` that go their own way what is due to them.
    pub(super) fn catch_up(&mut self, key: Key) -> CaughtUp {
        let mut place = 0;
        let mut frames = 0;
        while let Some(line) = self.lines.get(key) {
            if line.is_blocked() || line.alone == 0 {
                return CaughtUp::Done;
            }
            let Some(&watch) = line.watches.get(place) else {
                return CaughtUp::Done;
            };
            if frames == FRAMES_PER_TURN {
                return CaughtUp::More;
            }
            frames += 1;
            match self.step_alone(watch) {
                // Another took its place.
                Step::Ended | Step::More => {}
                Step::Gone => return CaughtUp::Gone,
                Step::Idle => {
                    place += 1;
                    frames -= 1;
                }
            }
        }
        CaughtUp::Gone
    }

    fn step_alone(&mut self, key: Key) -> Step {
        if let Some(step) = self.tell_missed(key) {
            return step;
        }
        let watch = &self.watches[key];
        // Before the reading, so that the watch comes at least as far.
        let told = self.cohorts[watch.cohort].reader.position();
        let line = watch.line;
        let (left, sent) = self.read_alone(key);
        if sent == Sent::Gone {
            return Step::Gone;
        }
        match left {
            Left::Closed => {
                self.leave(line, self.farewell(Instant::now()));
                Step::Idle
            }
            Left::Ended => {
                self.end_watch(key, Code::NotPermitted);
                Step::Ended
            }
            Left::Gap(reason, cursor) => {
                self.note_missed(key, reason, cursor);
                Step::More
            }
            Left::Idle => {
                self.rejoin(key, &told);
                Step::Idle
            }
            Left::More => Step::More,
        }
    }

    /// Tells what was missed, if something was.
    fn tell_missed(&mut self, key: Key) -> Option<Step> {
        let watch = &mut self.watches[key];
        let Way::Alone(alone) = &mut watch.way else {
            return Some(Step::Idle);
        };
        let (reason, cursor) = alone.missed.take()?;
        let manner = &self.cohorts[watch.cohort].manner;
        let miss = Miss {
            reason,
            cursor: Some(&cursor),
            delay: spread(self.face.ticket(), CATCH_UP_OVER),
            catch_up: alone.reader.catch_up(),
        };
        let mut bytes = Vec::new();
        manner.voice.gap(&manner.scopes, &miss, &mut bytes);
        self.face.metrics.streams.told_gap(reason);
        let sent = self.lines[watch.line].send(&bytes.into(), Instant::now());
        Some(match sent {
            Sent::Gone => Step::Gone,
            _ => Step::More,
        })
    }

    /// Reads what is due and tells it.
    fn read_alone(&mut self, key: Key) -> (Left, Sent) {
        let watch = &mut self.watches[key];
        let Way::Alone(alone) = &mut watch.way else {
            return (Left::Idle, Sent::Taken);
        };
        let cohort = &self.cohorts[watch.cohort];
        let grants = self.face.authority.current();
        let rights = Rights {
            grants: &grants,
            time: self.face.now(),
        };
        self.batch.clear();
        let left = alone.reader.read(cohort.mode(), rights, &mut self.batch);
        let metrics = &self.face.metrics.streams;
        metrics.withheld.inc_by(alone.reader.take_withheld());
        let Some(last) = self.batch.cursor() else {
            return (left, Sent::Taken);
        };
        let after = match left {
            // The position is behind the gap, which is yet to be told.
            Left::Gap(..) => last.clone(),
            _ => alone.reader.position(),
        };
        let manner = &cohort.manner;
        let mut bytes = Vec::new();
        manner
            .voice
            .batch(&manner.scopes, &self.batch, &after, &mut bytes);
        metrics.wrote(manner.voice, FrameKind::Changes, 1);
        let sent = self.lines[watch.line].send(&bytes.into(), Instant::now());
        (left, sent)
    }

    fn note_missed(&mut self, key: Key, reason: GapReason, cursor: Cursor) {
        let watch = &mut self.watches[key];
        let Way::Alone(alone) = &mut watch.way else {
            return;
        };
        alone.missed = Some((reason, cursor));
        if self.cohorts[watch.cohort].manner.scopes.len() > 1 {
            // Several scopes begin again together, under other names.
            self.owners.retain(|_, owner| *owner != Owner::Watch(key));
        }
        let owners = &mut self.owners;
        alone
            .reader
            .visit_tokens(|token| _ = owners.insert(token, Owner::Watch(key)));
    }

    /// Has a watch that has read everything join its cohort, which was told everything up to
    /// `told`.
    fn rejoin(&mut self, key: Key, told: &Cursor) {
        let watch = &mut self.watches[key];
        let Way::Alone(alone) = &watch.way else {
            return;
        };
        let position = alone.reader.position();
        let is_there = position.epoch == told.epoch && position.seq >= told.seq;
        if watch.is_suspended || !is_there {
            return;
        }
        let members = &mut self.cohorts[watch.cohort].members;
        let together = Way::Together(members.len());
        members.push(Member {
            line: watch.line,
            watch: key,
            from: position.seq,
        });
        let line = watch.line;
        if let Way::Alone(alone) = std::mem::replace(&mut watch.way, together) {
            self.disown(&alone.reader);
        }
        self.lines[line].alone -= 1;
    }
}
