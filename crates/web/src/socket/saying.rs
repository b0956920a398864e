//! What a socket is told beside what it follows: answers, refusals, goodbyes.

use std::collections::BTreeMap;
use std::sync::Arc;

use auth::Caller;
use channels::Hub;
use wire::sync::{ErrorFrame, Reconnect};
use wire::websocket::{self, CloseCode};

use super::session::{Session, Subscription};
use crate::fanout::{Key, Worker};
use crate::fault::{Code, Fault};
use crate::limits::Limit;
use crate::stream::{Farewell, millis};

/// Where a refusal belongs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct About<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) scope: Option<&'a str>,
    pub(super) has_ended: bool,
}

impl<'a> About<'a> {
    pub(super) fn request(id: &'a str) -> Self {
        Self {
            id: Some(id),
            ..Self::default()
        }
    }

    pub(super) fn scope(self, scope: &'a str) -> Self {
        Self {
            scope: Some(scope),
            ..self
        }
    }
}
impl Worker {
    /// Appends the goodbye of a socket: when to come back, and with which positions.
    pub(crate) fn say_reconnect(&mut self, key: Key, farewell: Farewell, words: &mut Vec<u8>) {
        let Some(session) = self.session(key) else {
            return;
        };
        let running: Vec<(Arc<str>, Key)> = session
            .subscriptions
            .iter()
            .filter_map(|(text, subscription)| match subscription {
                Subscription::Pending => None,
                Subscription::Running(watch) => Some((text.clone(), *watch)),
            })
            .collect();
        let cursors: BTreeMap<&str, wire::Cursor> = running
            .iter()
            .map(|(text, watch)| (&**text, self.position(*watch)))
            .collect();
        let reconnect = Reconnect {
            delay_ms: farewell.come_back.map_or(0, millis),
            reason: farewell.reason,
            cursors,
        };
        let mut json = Vec::new();
        reconnect.encode_into(&mut json);
        websocket::text(&json, words);
        websocket::close(CloseCode::LEAVING, farewell.reason, words);
    }

    /// Closes a socket after what was said.
    pub(super) fn close(&mut self, key: Key, code: CloseCode, reason: &str) {
        let mut words = Vec::new();
        websocket::close(code, reason, &mut words);
        let line = &mut self.lines[key];
        line.say(&words, usize::MAX);
        line.end();
        self.look_again(key);
    }

    /// Says that something was refused.
    pub(super) fn refuse(&mut self, key: Key, fault: &Fault, about: About<'_>) {
        self.face.metrics.streams.refused(fault.code.as_str());
        let status = fault.code.status();
        let error = ErrorFrame {
            id: about.id,
            scope: about.scope,
            code: fault.code.as_str(),
            message: fault.code.message(),
            fix: fault.code.fix(),
            detail: fault.detail.as_deref(),
            retry: status.is_server_error() || status == hyper::StatusCode::TOO_MANY_REQUESTS,
            retry_after_ms: fault.retry_after.map(millis),
            ended: about.has_ended.then_some(true),
        };
        self.say_frame(key, |out| error.encode_into(out));
    }

    pub(super) fn say_frame(&mut self, key: Key, write: impl FnOnce(&mut Vec<u8>)) {
        let mut json = Vec::new();
        write(&mut json);
        let mut words = Vec::new();
        websocket::text(&json, &mut words);
        self.say(key, &words);
    }

    /// Says something to one socket, which is closed if more waits for it than may.
    pub(super) fn say(&mut self, key: Key, words: &[u8]) {
        let max = self.face.limits.streams.outbox_bytes;
        let Some(line) = self.lines.get_mut(key).filter(|line| !line.is_ending()) else {
            return;
        };
        if line.say(words, max) {
            return self.look_again(key);
        }
        self.face.metrics.refused(Limit::Outbox);
        self.close(key, CloseCode::TRY_LATER, "outbox");
    }

    pub(super) fn session(&mut self, key: Key) -> Option<&mut Session> {
        self.lines.get_mut(key)?.session.as_deref_mut()
    }

    pub(super) fn caller(&mut self, key: Key) -> Caller {
        let session = self.session(key);
        session.map_or_else(Caller::anonymous, |session| session.who.caller.clone())
    }

    pub(super) fn hub(&self) -> Result<Hub, Fault> {
        let hub = self.face.streams.channels.clone();
        hub.ok_or_else(|| Code::NotPermitted.into())
    }
}
