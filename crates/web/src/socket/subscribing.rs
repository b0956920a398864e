//! Subscriptions of a socket: a place is taken before a policy is heard, and given back when it
//! says no or the client no longer wants it.

use std::sync::Arc;
use std::time::Duration;

use auth::{Caller, WatchRight};
use channels::{Decision, Refusal, Reservation, Reserved, Verdict};
use wire::sync::Ack;
use wire::{ChannelScope, DocumentScope, Scope};

use super::saying::About;
use super::seats::Answered;
use super::session::Subscription;
use crate::call;
use crate::fanout::{Begun, Key, Manner, Worker};
use crate::fault::{Code, Fault};
use crate::limits::Limit;
use crate::stream::{Miss, Scopes, Since, Voice, refused, tell_roster};

/// A subscribe whose policy is being heard.
#[derive(Debug)]
pub(crate) struct Subscribing {
    pub(super) id: String,
    reservation: Reservation,
    since: Since,
}

impl Worker {
    pub(super) fn on_subscribe(
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

    pub(super) fn follow_documents(
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
    pub(super) fn renew(&mut self, key: Key, id: &str, text: &Arc<str>) -> Result<bool, Fault> {
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

    pub(super) fn follow_channel(
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

    pub(super) fn on_join(&mut self, key: Key, subscribing: Subscribing, verdict: Verdict) {
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
    pub(super) fn subscribed(&mut self, key: Key, id: &str, text: &Arc<str>, begun: &Begun) {
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
            let miss = Miss {
                reason,
                cursor: Some(&begun.cursor),
                delay: Duration::ZERO,
                catch_up: self.catch_up_of(begun.watch),
            };
            Voice::Socket.gap(&scopes, &miss, &mut words);
        }
        if let Some(roster) = &begun.roster {
            tell_roster(Voice::Socket, &scopes, roster, &mut words);
        }
        self.say(key, &words);
    }

    pub(super) fn on_unsubscribe(&mut self, key: Key, id: &str, scope: &str) {
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
}
