//! Serving the sync protocol: what a worker does with the frames of a socket, and with its silence.

use std::task::Poll;
use std::time::{Duration, Instant};

use wire::sync::{self, ClientFrame, FrameError, Hello};
use wire::websocket::{self, CloseCode, Message};

use super::saying::About;
use super::session::Session;
use crate::fanout::{End, Key, Sent, Worker};
use crate::fault::{Code, Fault};
use crate::limits::Limit;
use crate::stream::{Since, millis};
use crate::who::Who;

/// What the server calls itself.
const SERVER: &str = concat!("tidings/", env!("CARGO_PKG_VERSION"));

/// Bytes that are taken of one socket before others have their turn.
const READ_BYTES_PER_TURN: usize = 256 << 10;

impl Worker {
    /// Takes a socket in.
    pub(crate) fn begin_session(&mut self, key: Key, session: Box<Session>, read: &[u8]) {
        self.lines[key].session = Some(session);
        if let Err(end) = self.take_bytes(key, read) {
            self.remove_line(key, end);
        }
    }

    /// Reads what a client sent, as long as it takes what it is told.
    pub(crate) fn read_session(&mut self, key: Key, scratch: &mut [u8]) -> Result<(), End> {
        let mut taken = 0;
        while let Some(line) = self.lines.get_mut(key) {
            if line.is_blocked() {
                return Ok(());
            }
            if taken >= READ_BYTES_PER_TURN {
                self.look_again(key);
                return Ok(());
            }
            match line.io.poll_read(&mut line.waker.context(), scratch) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok([]) | Err(_)) => return Err(End::Left),
                Poll::Ready(Ok(bytes)) => {
                    taken += bytes.len();
                    self.take_bytes(key, bytes)?;
                }
            }
            // What was answered goes out before more is read.
            let now = Instant::now();
            if let Some(line) = self.lines.get_mut(key)
                && line.flush(now) == Sent::Gone
            {
                return Err(End::Left);
            }
        }
        Ok(())
    }

    fn take_bytes(&mut self, key: Key, bytes: &[u8]) -> Result<(), End> {
        let mut input = bytes;
        loop {
            let Some(line) = self.lines.get_mut(key).filter(|line| !line.is_ending()) else {
                return Ok(());
            };
            let Some(session) = &mut line.session else {
                return Ok(());
            };
            match session.decoder.next(&mut input) {
                Ok(None) => return Ok(()),
                Ok(Some(message)) => self.on_message(key, message)?,
                Err(violation) => {
                    self.face.metrics.streams.refused("protocol");
                    self.close(key, violation.code(), &violation.to_string());
                }
            }
        }
    }

    fn on_message(&mut self, key: Key, message: Message) -> Result<(), End> {
        let now = Instant::now();
        let limits = &self.face.limits.streams;
        let Some(session) = &mut self.lines[key].session else {
            return Ok(());
        };
        let is_taken = session.take(limits, now);
        if is_taken && let Some(channels) = session.channels() {
            // Every sign of life keeps it present.
            channels.beat(self.face.streams.now());
        }
        match message {
            Message::Text(text) if is_taken => self.on_text(key, &text),
            Message::Text(_) => {
                self.face.metrics.refused(Limit::Frames);
                self.refuse(key, &Code::RateLimited.into(), About::default());
            }
            Message::Ping(payload) if is_taken => {
                let mut pong = Vec::new();
                websocket::pong(&payload, &mut pong);
                self.say(key, &pong);
            }
            Message::Ping(_) | Message::Pong => {}
            Message::Close(code) => {
                let code = code.unwrap_or(CloseCode::NORMAL);
                self.close(key, code, "");
            }
        }
        Ok(())
    }

    fn on_text(&mut self, key: Key, text: &str) {
        let frame = match ClientFrame::parse(text) {
            Ok(frame) => frame,
            Err((error, id)) => {
                let code = match error {
                    FrameError::UnknownKind => Code::UnknownFrame,
                    FrameError::Version => Code::UnknownVersion,
                    _ => Code::BadFrame,
                };
                let about = About {
                    id: id.as_deref(),
                    ..About::default()
                };
                return self.refuse(key, &Fault::detailed(code, error.to_string()), about);
            }
        };
        let is_greeted = self.session(key).is_some_and(|session| session.is_greeted);
        match frame {
            ClientFrame::Hello { build, token } => {
                self.on_hello(key, build.as_deref(), token.as_deref());
            }
            ClientFrame::Beat | ClientFrame::Ignored => {}
            ClientFrame::Publish { id, .. }
            | ClientFrame::Subscribe { id, .. }
            | ClientFrame::Unsubscribe { id, .. }
                if !is_greeted =>
            {
                self.refuse(key, &Code::HelloRequired.into(), About::request(&id));
            }
            ClientFrame::Publish {
                id,
                channel,
                event,
                data,
            } => {
                if let Err(fault) = self.on_publish(key, &id, &channel, &event, data) {
                    self.refuse(key, &fault, About::request(&id));
                }
            }
            ClientFrame::Subscribe {
                id,
                scope,
                since,
                min_gap_ms,
            } => {
                let since = since.as_deref().map_or(Since::Head, Since::parse);
                let min_gap = Duration::from_millis(min_gap_ms.unwrap_or(0));
                if let Err(fault) = self.on_subscribe(key, &id, &scope, since, min_gap) {
                    self.refuse(key, &fault, About::request(&id).scope(&scope));
                }
            }
            ClientFrame::Token { token } => self.on_token(key, &token),
            ClientFrame::Unsubscribe { id, scope } => self.on_unsubscribe(key, &id, &scope),
        }
    }

    fn on_hello(&mut self, key: Key, build: Option<&str>, token: Option<&str>) {
        if let Some(token) = token {
            match Who::identify(&self.face, Some(token)) {
                Ok(who) => self.identify(key, &who),
                Err(fault) => {
                    self.refuse(key, &fault, About::default());
                    return self.close(key, CloseCode::POLICY, fault.code.as_str());
                }
            }
        }
        let heartbeat = self.face.limits.streams.heartbeat;
        let current = self.face.streams.build.borrow().clone();
        let Some(session) = self.session(key) else {
            return;
        };
        session.is_greeted = true;
        if let Some(build) = build {
            session.build = Some(build.into());
        }
        let name = session.name.clone();
        let hello = Hello {
            session: &name,
            heartbeat_ms: millis(heartbeat),
            server: SERVER,
            build: current.as_deref(),
        };
        self.say_frame(key, |out| hello.encode_into(out));
        self.tell_build(key);
    }

    /// Tells of the current build if the application runs another one.
    pub(crate) fn tell_build(&mut self, key: Key) {
        let Some(current) = self.face.streams.build.borrow().clone() else {
            return;
        };
        let Some(session) = self.session(key) else {
            return;
        };
        let is_told = session.told_build.as_ref() == Some(&current);
        let runs = session.build.clone();
        if !session.is_greeted || is_told || runs.is_none_or(|own| own == current) {
            return;
        }
        session.told_build = Some(current.clone());
        self.say_frame(key, |out| sync::update_available(&current, out));
    }

    /// The grants have changed: is the token still in force, and may its seats be kept?
    pub(crate) fn recheck_session(&mut self, key: Key) {
        self.face.streams.asker.forget();
        self.look_after(key, true);
    }

    /// The time of a socket came.
    pub(crate) fn on_session_alarm(&mut self, key: Key, now: Instant) {
        let heartbeat = self.jittered(self.face.limits.streams.heartbeat);
        let Some(session) = self.session(key) else {
            return;
        };
        if session.is_mute(now) {
            return self.close(key, CloseCode::POLICY, "no hello");
        }
        if session.is_idle(now) {
            return self.close(key, CloseCode::IDLE, "idle");
        }
        if now < session.beats {
            return;
        }
        session.beats = now + heartbeat;
        let is_silent = now >= session.heard + heartbeat / 2;
        let follows_nothing = session.is_greeted && session.subscriptions.is_empty();
        let asks = session.asks_again(now);
        let mut words = Vec::new();
        if follows_nothing {
            let mut json = Vec::new();
            sync::beat([], &mut json);
            websocket::text(&json, &mut words);
        }
        if is_silent {
            websocket::ping(&mut words);
        }
        self.say(key, &words);
        self.look_after(key, asks);
    }

    /// Closes a socket whose token is no longer in force, and decides its seats anew.
    fn look_after(&mut self, key: Key, asks: bool) {
        let face = self.face.clone();
        let Some(session) = self.session(key) else {
            return;
        };
        if !session.who.is_in_force(&face) {
            let fault = Fault::detailed(Code::Unauthorized, "the token is no longer in force");
            self.refuse(key, &fault, About::default());
            return self.close(key, CloseCode::POLICY, fault.code.as_str());
        }
        let recheck = session.channels().map(channels::Socket::recheck);
        if let Some(recheck) = recheck {
            self.on_recheck(key, recheck, asks);
        }
    }
}
