//! How watches and lines end: by a client that left, a right that is gone, a goodbye.

use std::time::{Duration, Instant};

use super::cohort::Way;
use super::line::End;
use super::slab::Key;
use super::whose::Whose;
use super::worker::Worker;
use crate::fault::Code;
use crate::stream::{Farewell, Rights, retry};

impl Worker {
    /// Takes a watch away from its line and its cohort, and the cohort if it was the last.
    pub(crate) fn drop_watch(&mut self, key: Key) {
        if self.watches.get(key).is_none() {
            return;
        }
        self.take_out(key);
        let Some(watch) = self.watches.remove(key) else {
            return;
        };
        if let Way::Alone(alone) = &watch.way {
            self.disown(&alone.reader);
        }
        if let Some(line) = self.lines.get_mut(watch.line) {
            line.watches.retain(|own| *own != key);
            if matches!(watch.way, Way::Alone(_)) {
                line.alone -= 1;
            }
        }
        let cohort = &mut self.cohorts[watch.cohort];
        cohort.watches -= 1;
        if cohort.watches == 0
            && let Some(mut cohort) = self.cohorts.remove(watch.cohort)
        {
            self.schedule
                .clear(Whose::Cohort(watch.cohort), &mut cohort.alarm);
            self.manners.remove(&cohort.manner);
            self.disown(&cohort.reader);
        }
    }

    /// Lets go of a line and of everything that it follows.
    pub(crate) fn remove_line(&mut self, key: Key, end: End) {
        let Some(line) = self.lines.get_mut(key) else {
            return;
        };
        for watch in std::mem::take(&mut line.watches) {
            self.drop_watch(watch);
        }
        if let Some(mut line) = self.lines.remove(key) {
            self.schedule.clear(Whose::Line(key), &mut line.alarm);
            self.face.metrics.streams.closed(line.voice, end);
        }
    }

    /// Says goodbye on a line, which ends once it was taken.
    pub(crate) fn leave(&mut self, key: Key, farewell: Farewell) {
        let Some(line) = self.lines.get(key) else {
            return;
        };
        if line.is_ending() {
            return;
        }
        let mut words = Vec::new();
        if line.session.is_some() {
            self.say_reconnect(key, farewell, &mut words);
        } else if let Some(watch) = line.watches.first() {
            let position = self.position(*watch);
            line.voice.closing(&position, farewell, &mut words);
        }
        let line = &mut self.lines[key];
        if !line.say(&words, usize::MAX) {
            self.face.metrics.streams.unsaid.inc();
        }
        line.end();
        self.look_again(key);
    }

    /// Says goodbye on every line of a cohort: its feed is over.
    pub(crate) fn leave_all(&mut self, key: Key) {
        let members = self.cohorts[key].members.clone();
        let farewell = self.farewell(Instant::now());
        for member in members {
            self.leave(member.line, farewell);
        }
    }

    /// Where a watch stands.
    pub(crate) fn position(&self, key: Key) -> wire::Cursor {
        let watch = &self.watches[key];
        match &watch.way {
            Way::Alone(alone) => match &alone.missed {
                Some((_, cursor)) => cursor.clone(),
                None => alone.reader.position(),
            },
            Way::Together(place) => {
                let cohort = &self.cohorts[watch.cohort];
                let mut position = cohort.reader.position();
                position.seq = position.seq.max(cohort.members[*place].from);
                position
            }
        }
    }

    /// Asks for the rights of a cohort again and ends its watches if they are gone.
    pub(crate) fn recheck(&mut self, key: Key) {
        let Some(cohort) = self.cohorts.get(key) else {
            return;
        };
        let grants = self.face.authority.current();
        let rights = Rights {
            grants: &grants,
            time: self.face.now(),
        };
        let Err(denied) = cohort.reader.recheck(rights) else {
            return;
        };
        let code = match denied {
            auth::Denied::Unauthorized => Code::Unauthorized,
            auth::Denied::NoTokens | auth::Denied::NotPermitted => Code::NotPermitted,
        };
        let all = self.watches.keys();
        let own: Vec<_> = all
            .filter(|watch| self.watches[*watch].cohort == key)
            .collect();
        for watch in own {
            self.end_watch(watch, code);
        }
    }

    /// Ends a watch whose right is gone: a stream with it, a socket's one alone.
    pub(crate) fn end_watch(&mut self, key: Key, code: Code) {
        let Some(watch) = self.watches.get(key) else {
            return;
        };
        let line = watch.line;
        self.face.metrics.streams.revoked.inc();
        if self.lines[line].session.is_some() {
            return self.end_subscription(key, code);
        }
        let farewell = Farewell {
            reason: "revoked",
            come_back: None,
        };
        self.leave(line, farewell);
    }

    /// The goodbye of a server that leaves.
    pub(crate) fn farewell(&self, now: Instant) -> Farewell {
        let window = self.face.window(now);
        Farewell {
            reason: "draining",
            come_back: Some(window.returns_after(self.face.ticket())),
        }
    }

    /// When a client should come back that has no reason to wait.
    pub(super) fn come_back(&self) -> Duration {
        retry(&self.face)
    }
}
