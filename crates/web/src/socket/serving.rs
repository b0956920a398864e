//! Serving the sync protocol: what a worker does with the frames of a socket.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use auth::{Caller, WatchRight};
use channels::{
    Decision, Hub, Payload, Question, Recheck, Refusal, Reservation, Reserved, Right, Settled,
    Verdict,
};
use serde_json::value::RawValue;
use wire::sync::{self, Ack, ClientFrame, ErrorFrame, FrameError, Hello, Reconnect};
use wire::websocket::{self, CloseCode, Message};
use wire::{ChannelScope, DocumentScope, Scope};

use super::session::{Session, Subscription};
use crate::call;
use crate::fanout::{Begun, End, Key, Manner, Word, Worker};
use crate::fault::{Code, Fault};
use crate::limits::Limit;
use crate::stream::{Farewell, Miss, Scopes, Since, Voice, millis, refused, tell_roster};
use crate::who::Who;

/// What the server calls itself.
const SERVER: &str = concat!("tidings/", env!("CARGO_PKG_VERSION"));

/// Bytes that are taken of one socket before others have their turn.
const READ_BYTES_PER_TURN: usize = 256 << 10;

/// An answer that was waited for elsewhere.
#[derive(Debug)]
pub(crate) enum Answered {
    /// A policy was asked about a subscribe.
    Join(Box<Subscribing>, Verdict),
    /// A policy was asked about a publication.
    Publish(Box<Publishing>, Verdict),
    /// A policy was asked about a seat again.
    Seat(Box<Question>, Verdict),
}

/// A subscribe whose policy is being heard.
#[derive(Debug)]
pub(crate) struct Subscribing {
    id: String,
    reservation: Reservation,
    since: Since,
}

/// A publication whose policy is being heard.
#[derive(Debug)]
pub(crate) struct Publishing {
    id: String,
    scope: ChannelScope,
    event: String,
    data: Payload,
}

/// Where a refusal belongs.
#[derive(Clone, Copy, Debug, Default)]
struct About<'a> {
    id: Option<&'a str>,
    scope: Option<&'a str>,
    has_ended: bool,
}

impl<'a> About<'a> {
    fn request(id: &'a str) -> Self {
        Self {
            id: Some(id),
            ..Self::default()
        }
    }

    fn scope(self, scope: &'a str) -> Self {
        Self {
            scope: Some(scope),
            ..self
        }
    }
}

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
                && line.flush(now) == crate::fanout::Sent::Gone
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
                Ok(who) => self.identify(key, who),
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

    fn on_subscribe(
        &mut self,
        key: Key,
        id: &str,
        scope: &str,
        since: Since,
        min_gap: Duration,
    ) -> Result<(), Fault> {
        let bad = |error: wire::ScopeError| Fault::detailed(Code::BadScope, error.to_string());
        match scope.parse().map_err(bad)? {
            Scope::Document(scope) => self.follow_documents(key, id, scope, &since, min_gap),
            Scope::Channel(scope) => self.follow_channel(key, id, &scope, since),
            _ => Err(Fault::detailed(Code::BadScope, "it can't be watched here")),
        }
    }

    fn follow_documents(
        &mut self,
        key: Key,
        id: &str,
        scope: DocumentScope,
        since: &Since,
        min_gap: Duration,
    ) -> Result<(), Fault> {
        let text: Arc<str> = Scope::Document(scope.clone()).to_string().into();
        if self.renew(key, id, &text)? {
            return Ok(());
        }
        let limits = &self.face.limits.streams;
        let manner = Manner {
            voice: Voice::Socket,
            scopes: Arc::from([text.clone()]),
            caller: Caller::anonymous(),
            min_gap: min_gap.min(limits.min_gap_max),
        };
        let caller = self.caller(key);
        let grants = self.face.authority.current();
        let right = WatchRight::admit(&grants, caller.clone(), scope, self.face.now());
        let right = right.map_err(call::denied)?;
        let manner = Manner { caller, ..manner };
        let begun = self.begin_documents(key, manner, vec![right], since);
        self.subscribed(key, id, &text, &begun);
        Ok(())
    }

    /// True if `text` is followed already: then it is acknowledged again, as the beat it is.
    fn renew(&mut self, key: Key, id: &str, text: &Arc<str>) -> Result<bool, Fault> {
        let max = self.face.limits.streams.watches_per_socket;
        let Some(session) = self.session(key) else {
            return Ok(true);
        };
        let count = session.subscriptions.len();
        match session.subscriptions.get(text).copied() {
            Some(Subscription::Pending) => Err(Code::SubscriptionTaken.into()),
            Some(Subscription::Running(watch)) => {
                let cursor = self.position(watch);
                let ack = Ack {
                    id,
                    scope: Some(text),
                    cursor: Some(&cursor),
                    resumed: Some(true),
                    ended: None,
                };
                self.say_frame(key, |out| ack.encode_into(out));
                Ok(true)
            }
            None if count >= max => {
                self.face.metrics.refused(Limit::WatchesPerSocket);
                Err(Code::SubscriptionLimit.into())
            }
            None => Ok(false),
        }
    }

    fn follow_channel(
        &mut self,
        key: Key,
        id: &str,
        scope: &ChannelScope,
        since: Since,
    ) -> Result<(), Fault> {
        let hub = self.hub()?;
        let topic = hub.topic(scope).map_err(refused)?;
        let text: Arc<str> = topic.as_str().into();
        let now = self.face.streams.now();
        if self.renew(key, id, &text)? {
            return Ok(());
        }
        let Some(session) = self.session(key) else {
            return Ok(());
        };
        let reserved = session
            .channels_of(&hub)
            .reserve(scope, now)
            .map_err(refused)?;
        let Reserved::New(reservation) = reserved else {
            return Err(Code::SubscriptionTaken.into());
        };
        session
            .subscriptions
            .insert(text.clone(), Subscription::Pending);
        let who = session.who.clone();
        let subscribing = Box::new(Subscribing {
            id: id.to_owned(),
            reservation,
            since,
        });
        match subscribing.reservation.decide() {
            Decision::Made(verdict) => self.on_join(key, *subscribing, verdict),
            Decision::Ask(question) => self.ask(key, question, who, |verdict, _| {
                Answered::Join(subscribing, verdict)
            }),
        }
        Ok(())
    }

    /// Has a back end asked, and its answer brought back here.
    fn ask(
        &self,
        line: Key,
        question: Question,
        who: Who,
        answered: impl FnOnce(Verdict, Question) -> Answered + Send + 'static,
    ) {
        let face = self.face.clone();
        let speaking = self.speaking();
        tokio::spawn(async move {
            let verdict = face.streams.asker.ask(&question, &who).await;
            let answered = answered(verdict, question);
            // A worker that is gone has no sockets left.
            let _ = speaking.send(Word { line, answered }).await;
        });
    }

    /// Takes an answer that was waited for.
    pub(crate) fn on_word(&mut self, word: Word) {
        let Word { line, answered } = word;
        // The socket may be gone; what was reserved for it goes with the answer.
        if self.session(line).is_none() {
            return;
        }
        match answered {
            Answered::Join(subscribing, verdict) => self.on_join(line, *subscribing, verdict),
            Answered::Publish(publishing, verdict) => {
                let id = publishing.id.clone();
                if let Err(fault) = self.publish(line, *publishing, verdict) {
                    self.refuse(line, &fault, About::request(&id));
                }
            }
            Answered::Seat(question, verdict) => {
                let Some(session) = self.session(line) else {
                    return;
                };
                let Some(channels) = session.channels() else {
                    return;
                };
                let settled = channels.settle(&question, verdict);
                let text = question.topic().as_str().to_owned();
                self.on_settled(line, &text, settled);
            }
        }
        self.step(line);
    }

    fn on_join(&mut self, key: Key, subscribing: Subscribing, verdict: Verdict) {
        let Subscribing {
            id,
            reservation,
            since,
        } = subscribing;
        let text: Arc<str> = reservation.topic().as_str().into();
        let position = match &since {
            Since::After(cursor) => Some(cursor),
            Since::Head | Since::Malformed => None,
        };
        let now = self.face.streams.now();
        let outlet = self.outlet().clone();
        match reservation.join(verdict, position, &outlet, now) {
            Ok(joined) => {
                let manner = Manner {
                    voice: Voice::Socket,
                    scopes: Arc::from([text.clone()]),
                    caller: Caller::anonymous(),
                    min_gap: Duration::ZERO,
                };
                let begun = self.begin_channel(key, manner, joined);
                self.subscribed(key, &id, &text, &begun);
            }
            // It was dropped on purpose, and that was answered.
            Err(Refusal::Dropped) => {}
            Err(refusal) => {
                if let Some(session) = self.session(key) {
                    session.subscriptions.remove(&text);
                }
                self.refuse(key, &refused(refusal), About::request(&id).scope(&text));
            }
        }
    }

    /// Acknowledges a subscribe, and tells what was missed.
    fn subscribed(&mut self, key: Key, id: &str, text: &Arc<str>, begun: &Begun) {
        if let Some(session) = self.session(key) {
            let running = Subscription::Running(begun.watch);
            session.subscriptions.insert(text.clone(), running);
        }
        let ack = Ack {
            id,
            scope: Some(text),
            cursor: Some(&begun.cursor),
            resumed: Some(begun.is_resumed),
            ended: None,
        };
        self.say_frame(key, |out| ack.encode_into(out));
        let scopes: Scopes = Arc::from([text.clone()]);
        let mut words = Vec::new();
        if let Some(reason) = begun.missed {
            self.face.metrics.streams.told_gap(reason);
            let catch_up = self.catch_up_of(begun.watch);
            let miss = Miss {
                reason,
                cursor: Some(&begun.cursor),
                delay: Duration::ZERO,
                catch_up: catch_up.as_deref(),
            };
            Voice::Socket.gap(&scopes, &miss, &mut words);
        }
        if let Some(roster) = &begun.roster {
            tell_roster(Voice::Socket, &scopes, roster, &mut words);
        }
        self.say(key, &words);
    }

    fn on_unsubscribe(&mut self, key: Key, id: &str, scope: &str) {
        let hub = self.face.streams.channels.clone();
        let text: Option<Arc<str>> = match scope.parse() {
            Ok(Scope::Document(scope)) => Some(Scope::Document(scope).to_string().into()),
            Ok(Scope::Channel(scope)) => hub.and_then(|hub| {
                let topic = hub.topic(&scope).ok()?;
                let session = self.session(key)?;
                session.channels()?.unsubscribe(&scope);
                Some(topic.as_str().into())
            }),
            _ => None,
        };
        let text = text.unwrap_or_else(|| scope.into());
        let was = self
            .session(key)
            .and_then(|session| session.subscriptions.remove(&text));
        if let Some(Subscription::Running(watch)) = was {
            self.drop_watch(watch);
        }
        // What isn't followed has ended as well.
        let ack = Ack {
            id,
            scope: Some(&text),
            ended: Some(true),
            ..Ack::default()
        };
        self.say_frame(key, |out| ack.encode_into(out));
    }

    fn on_publish(
        &mut self,
        key: Key,
        id: &str,
        channel: &str,
        event: &str,
        data: Option<&RawValue>,
    ) -> Result<(), Fault> {
        let hub = self.hub()?;
        let scope: ChannelScope = channel.parse().map_err(|_| Code::NotPermitted)?;
        let json = data.map_or("null", RawValue::get);
        let data = Payload::parse(json.as_bytes())
            .map_err(|error| Fault::detailed(Code::BadFrame, error.to_string()))?;
        let Some(session) = self.session(key) else {
            return Ok(());
        };
        let who = session.who.clone();
        let publishing = Publishing {
            id: id.to_owned(),
            scope,
            event: event.to_owned(),
            data,
        };
        let decision = hub.decide(Right::Publish, &publishing.scope, &who.claims);
        match decision.map_err(refused)? {
            Decision::Made(verdict) => self.publish(key, publishing, verdict)?,
            Decision::Ask(question) => self.ask(key, question, who, |verdict, _| {
                Answered::Publish(Box::new(publishing), verdict)
            }),
        }
        Ok(())
    }

    fn publish(&mut self, key: Key, publishing: Publishing, verdict: Verdict) -> Result<(), Fault> {
        let hub = self.hub()?;
        hub.permit(verdict).map_err(refused)?;
        let now = self.face.streams.now();
        let Publishing {
            id,
            scope,
            event,
            data,
        } = publishing;
        let published = hub.publish(&scope, &event, data, now).map_err(refused)?;
        let ack = Ack {
            id: &id,
            cursor: published.cursor.as_ref(),
            ..Ack::default()
        };
        self.say_frame(key, |out| ack.encode_into(out));
        Ok(())
    }

    /// A fresh token: what was followed under the old one goes on under the new one, or ends.
    fn on_token(&mut self, key: Key, token: &str) {
        match Who::identify(&self.face, Some(token)) {
            Ok(who) => self.identify(key, who),
            Err(fault) => self.refuse(key, &fault, About::default()),
        }
    }

    fn identify(&mut self, key: Key, who: Who) {
        let now = self.face.streams.now();
        let Some(session) = self.session(key) else {
            return;
        };
        let is_other = session.who.caller != who.caller;
        session.who = who.clone();
        let recheck = session
            .channels()
            .map(|channels| channels.identify(who.claims.clone(), now));
        if is_other {
            self.change_caller(key, &who.caller);
        }
        if let Some(recheck) = recheck {
            self.on_recheck(key, recheck, true);
        }
    }

    /// Has the documents that a socket follows read under other rights.
    fn change_caller(&mut self, key: Key, caller: &Caller) {
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
        for (text, watch) in running {
            let Ok(Scope::Document(scope)) = text.parse() else {
                continue;
            };
            let since = Since::After(self.position(watch));
            let manner = self.manner_of(watch);
            let grants = self.face.authority.current();
            match WatchRight::admit(&grants, caller.clone(), scope, self.face.now()) {
                Ok(right) => {
                    self.drop_watch(watch);
                    let manner = Manner {
                        caller: caller.clone(),
                        ..(*manner).clone()
                    };
                    let begun = self.begin_documents(key, manner, vec![right], &since);
                    if let Some(session) = self.session(key) {
                        let running = Subscription::Running(begun.watch);
                        session.subscriptions.insert(text, running);
                    }
                }
                Err(denied) => self.end_subscription(watch, call::denied(denied).code),
            }
        }
    }

    fn on_recheck(&mut self, key: Key, recheck: Recheck, asks: bool) {
        for (topic, settled) in recheck.settled {
            self.on_settled(key, topic.as_str(), settled);
        }
        let Some(who) = self.session(key).map(|session| session.who.clone()) else {
            return;
        };
        for question in recheck.questions.into_iter().filter(|_| asks) {
            self.ask(key, question, who.clone(), |verdict, question| {
                Answered::Seat(Box::new(question), verdict)
            });
        }
    }

    fn on_settled(&mut self, key: Key, text: &str, settled: Settled) {
        let Some(session) = self.session(key) else {
            return;
        };
        let Some(Subscription::Running(watch)) = session.subscriptions.get(text) else {
            return;
        };
        let watch = *watch;
        match settled {
            Settled::Ended => self.end_subscription(watch, Code::NotPermitted),
            Settled::Kept | Settled::Stale => {}
            Settled::Resumed => self.set_suspended(watch, false),
            Settled::Suspended => self.set_suspended(watch, true),
        }
    }

    /// Ends one subscription of a socket, and says so.
    pub(crate) fn end_subscription(&mut self, watch: Key, code: Code) {
        let Some((key, text)) = self.line_of(watch) else {
            return;
        };
        self.drop_watch(watch);
        if let Some(session) = self.session(key) {
            session.subscriptions.remove(&text);
        }
        let about = About {
            id: None,
            scope: Some(&text),
            has_ended: true,
        };
        self.refuse(key, &code.into(), about);
        self.look_again(key);
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
    fn close(&mut self, key: Key, code: CloseCode, reason: &str) {
        let mut words = Vec::new();
        websocket::close(code, reason, &mut words);
        let line = &mut self.lines[key];
        line.say(&words, usize::MAX);
        line.end();
        self.look_again(key);
    }

    /// Says that something was refused.
    fn refuse(&mut self, key: Key, fault: &Fault, about: About<'_>) {
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

    fn say_frame(&mut self, key: Key, write: impl FnOnce(&mut Vec<u8>)) {
        let mut json = Vec::new();
        write(&mut json);
        let mut words = Vec::new();
        websocket::text(&json, &mut words);
        self.say(key, &words);
    }

    /// Says something to one socket, which is closed if more waits for it than may.
    fn say(&mut self, key: Key, words: &[u8]) {
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

    fn session(&mut self, key: Key) -> Option<&mut Session> {
        self.lines.get_mut(key)?.session.as_deref_mut()
    }

    fn caller(&mut self, key: Key) -> Caller {
        let session = self.session(key);
        session.map_or_else(Caller::anonymous, |session| session.who.caller.clone())
    }

    fn hub(&self) -> Result<Hub, Fault> {
        let hub = self.face.streams.channels.clone();
        hub.ok_or_else(|| Code::NotPermitted.into())
    }
}
