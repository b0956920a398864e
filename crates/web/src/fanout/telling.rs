//! Telling a cohort what is due: read once, encode once, hand to the kernel once per member.

use std::time::{Duration, Instant};

use bytes::Bytes;
use gate::spread;
use wire::{Cursor, GapReason, Seq};

use super::cohort::{Alone, Way};
use super::line::{End, Sent};
use super::slab::Key;
use super::worker::{Owner, Worker};
use crate::metrics::Metrics;
use crate::stream::{FrameKind, Left, Miss, Rights};

/// Frames that a cohort is told before others have their turn.
const FRAMES_PER_TURN: usize = 32;

/// Sockets that are written before the worker lets the rest of its thread's tasks go first: a
/// millisecond of sends.
const WRITES_PER_YIELD: usize = 128;

/// How much the time over which readers come back after a gap grows with each of them.
const CATCH_UP_STEP: Duration = Duration::from_millis(1);

/// Nobody waits longer than this to read what was missed.
const CATCH_UP_MAX: Duration = Duration::from_secs(10);

/// A frame on its way to every member.
struct Frame<'a> {
    bytes: &'a Bytes,
    /// The position before it.
    before: &'a Cursor,
    /// The first and the last place that it tells of.
    first: Seq,
    last: Seq,
    kind: FrameKind,
}

/// What happened to members that a frame did not reach.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// Their sockets are gone.
    gone: Vec<Key>,
    /// They go on from a position of their own.
    departing: Vec<(Key, Seq)>,
}

impl Worker {
    /// Tells a cohort what is due, as far as it may now.
    pub(super) async fn tell(&mut self, key: Key) {
        for _ in 0..FRAMES_PER_TURN {
            if !self.tell_once(key).await {
                return;
            }
        }
        if let Some(cohort) = self.cohorts.get_mut(key)
            && !cohort.gave_way
        {
            cohort.gave_way = true;
            self.again_cohorts.push_back(key);
        }
    }

    /// Tells a cohort one frame. True if more is due.
    async fn tell_once(&mut self, key: Key) -> bool {
        let now = Instant::now();
        let Some(cohort) = self.cohorts.get_mut(key) else {
            return false;
        };
        if cohort.must_wait(now) {
            cohort.is_held_back = true;
            self.set_cohort_alarm(key);
            return false;
        }
        cohort.is_held_back = false;
        let before = cohort.reader.position();
        let grants = self.face.authority.current();
        let rights = Rights {
            grants: &grants,
            time: self.face.now(),
        };
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        let left = cohort.reader.read(cohort.mode(), rights, &mut batch);
        let withheld = cohort.reader.take_withheld();
        self.face.metrics.streams.withheld.inc_by(withheld);
        if let Some(last) = batch.cursor() {
            let after = match left {
                // The position is behind the gap, which is yet to be told.
                Left::Gap(..) => last.clone(),
                _ => cohort.reader.position(),
            };
            let mut bytes = Vec::new();
            let manner = &cohort.manner;
            manner
                .voice
                .batch(&manner.scopes, &batch, &after, &mut bytes);
            let frame = Frame {
                bytes: &bytes.into(),
                before: &before,
                first: batch.first(),
                last: batch.last(),
                kind: FrameKind::Changes,
            };
            cohort.told = now;
            self.give(key, &frame).await;
        }
        let had_some = !batch.is_empty();
        self.batch = batch;
        match left {
            Left::Closed => self.leave_all(key),
            Left::Gap(reason, cursor) => {
                self.tell_gap(key, reason, &cursor, &before);
                return true;
            }
            Left::Idle if had_some => self.set_cohort_alarm(key),
            // A cohort's own place has no seat that could be taken away.
            Left::Ended | Left::Idle => {}
            Left::More => return true,
        }
        false
    }

    /// Gives `frame` to every member that has not got it.
    async fn give(&mut self, key: Key, frame: &Frame<'_>) {
        let Some(cohort) = self.cohorts.get(key) else {
            return;
        };
        let now = Instant::now();
        let mut aside = std::mem::take(&mut self.aside);
        let mut written = 0;
        for member in &cohort.members {
            if member.from >= frame.last {
                continue;
            }
            if member.from >= frame.first {
                // It has a part of this already.
                aside.departing.push((member.watch, member.from));
                continue;
            }
            let Some(line) = self.lines.get_mut(member.line) else {
                continue;
            };
            match line.send(frame.bytes, now) {
                Sent::Taken => {
                    written += 1;
                    if line.is_blocked() {
                        self.blocked.push(member.line);
                    }
                }
                Sent::Blocked if line.is_ending() => {}
                Sent::Blocked => {
                    let from = member.from.max(frame.before.seq);
                    aside.departing.push((member.watch, from));
                }
                Sent::Gone => aside.gone.push(member.line),
            }
            if written % WRITES_PER_YIELD == WRITES_PER_YIELD - 1 {
                written += 1;
                tokio::task::yield_now().await;
            }
        }
        let metrics = &self.face.metrics.streams;
        metrics.wrote(cohort.manner.voice, frame.kind, written as u64);
        self.settle(frame.before, &mut aside);
        self.aside = aside;
    }

    /// Sees to the members that a frame did not reach.
    fn settle(&mut self, before: &Cursor, aside: &mut Aside) {
        for (watch, from) in aside.departing.drain(..) {
            self.depart(watch, &Cursor::new(before.epoch.clone(), from));
        }
        for line in aside.gone.drain(..) {
            self.remove_line(line, End::Left);
        }
        while let Some(line) = self.blocked.pop() {
            self.set_line_alarm(line);
        }
    }

    /// Has a member go its own way from after `from`.
    pub(super) fn depart(&mut self, key: Key, from: &Cursor) {
        let Some(watch) = self.watches.get(key) else {
            return;
        };
        if matches!(watch.way, Way::Alone(_)) {
            return;
        }
        let (line, cohort) = (watch.line, watch.cohort);
        let resumed = self.lines.get(line).and_then(|line| {
            let reader = &self.cohorts[cohort].reader;
            reader.resume(self.face.feeds(), line.channels(), from, &self.outlet)
        });
        let Some(resumed) = resumed else {
            // Its seat is gone, and whoever took it says so.
            return;
        };
        self.face.metrics.streams.departed.inc();
        self.take_out(key);
        resumed
            .reader
            .visit_tokens(|token| _ = self.owners.insert(token, Owner::Watch(key)));
        self.watches[key].way = Way::Alone(Box::new(Alone {
            reader: resumed.reader,
            missed: resumed.missed,
        }));
        self.lines[line].alone += 1;
    }

    /// Takes a watch out of the members of its cohort.
    pub(super) fn take_out(&mut self, key: Key) {
        let watch = &self.watches[key];
        let Way::Together(place) = watch.way else {
            return;
        };
        let members = &mut self.cohorts[watch.cohort].members;
        members.swap_remove(place);
        if let Some(moved) = members.get(place)
            && let Some(moved) = self.watches.get_mut(moved.watch)
        {
            moved.way = Way::Together(place);
        }
    }

    /// Tells every member that something was missed; each is asked to wait for another while
    /// before it reads again.
    fn tell_gap(&mut self, key: Key, reason: GapReason, cursor: &Cursor, before: &Cursor) {
        self.own_tokens(key);
        let now = Instant::now();
        let cohort = &mut self.cohorts[key];
        let manner = cohort.manner.clone();
        let catch_up = cohort.reader.catch_up();
        let many = u32::try_from(cohort.members.len()).unwrap_or(u32::MAX);
        let over = CATCH_UP_STEP.saturating_mul(many).min(CATCH_UP_MAX);
        let mut aside = std::mem::take(&mut self.aside);
        let metrics: &Metrics = &self.face.metrics;
        for member in &mut cohort.members {
            let has_it = member.from >= cursor.seq && before.epoch == cursor.epoch;
            // Places of another epoch say nothing.
            member.from = if has_it { member.from } else { Seq::ZERO };
            let Some(line) = self.lines.get_mut(member.line) else {
                continue;
            };
            if has_it || line.is_ending() {
                continue;
            }
            let miss = Miss {
                reason,
                cursor: Some(cursor),
                delay: spread(self.face.ticket(), over),
                catch_up: catch_up.clone(),
            };
            let mut bytes = Vec::new();
            manner.voice.gap(&manner.scopes, &miss, &mut bytes);
            match line.send(&bytes.into(), now) {
                Sent::Taken => metrics.streams.told_gap(reason),
                Sent::Blocked => aside.departing.push((member.watch, before.seq)),
                Sent::Gone => aside.gone.push(member.line),
            }
            if line.is_blocked() {
                self.blocked.push(member.line);
            }
        }
        cohort.told = now;
        self.settle(before, &mut aside);
        self.aside = aside;
    }

    /// The time of a cohort came: its rights are asked for again and its members told where they
    /// stand.
    pub(super) async fn beat(&mut self, key: Key) {
        let now = Instant::now();
        self.recheck(key);
        self.tell(key).await;
        let heartbeat = self.jittered(self.face.limits.streams.heartbeat);
        let Some(cohort) = self.cohorts.get_mut(key) else {
            return;
        };
        if now >= cohort.told + cohort.heartbeat && !cohort.gave_way {
            cohort.told = now;
            cohort.heartbeat = heartbeat;
            let position = cohort.reader.position();
            let manner = cohort.manner.clone();
            let mut bytes = Vec::new();
            manner.voice.beat(&manner.scopes, &position, &mut bytes);
            self.give_beat(key, &bytes.into(), &position).await;
        }
        self.set_cohort_alarm(key);
    }

    /// Gives a sign of life to every member that can take it. Nobody leaves for missing one.
    async fn give_beat(&mut self, key: Key, bytes: &Bytes, position: &Cursor) {
        let Some(cohort) = self.cohorts.get(key) else {
            return;
        };
        let now = Instant::now();
        let mut aside = std::mem::take(&mut self.aside);
        let mut written = 0;
        for member in &cohort.members {
            if member.from > position.seq {
                continue;
            }
            let Some(line) = self.lines.get_mut(member.line) else {
                continue;
            };
            match line.send(bytes, now) {
                Sent::Taken => written += 1,
                Sent::Blocked => {}
                Sent::Gone => aside.gone.push(member.line),
            }
            if line.is_blocked() {
                self.blocked.push(member.line);
            }
            if written % WRITES_PER_YIELD == WRITES_PER_YIELD - 1 {
                written += 1;
                tokio::task::yield_now().await;
            }
        }
        let metrics = &self.face.metrics.streams;
        metrics.wrote(cohort.manner.voice, FrameKind::Beat, written as u64);
        self.settle(position, &mut aside);
        self.aside = aside;
    }
}
