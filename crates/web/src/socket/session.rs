//! The state of one socket of the sync protocol: who it is, what it follows, when it was heard.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gate::{Bucket, Rate, spread};
use wire::limits::SYNC_FRAME_LEN_MAX;
use wire::websocket::Decoder;

use crate::face::Face;
use crate::fanout::Key;
use crate::stream::StreamLimits;
use crate::who::Who;

/// How often a back end is asked again about the seats of a socket.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// How far a subscription is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subscription {
    /// A policy is being heard.
    Pending,
    /// It runs.
    Running(Key),
}

/// One socket.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) decoder: Decoder,
    pub(super) who: Who,
    /// Names it to other members of its channels, and in the log.
    pub(super) name: Arc<str>,
    /// The build that the application said last.
    pub(super) build: Option<Arc<str>>,
    /// The build that it was told of last.
    pub(super) told_build: Option<Arc<str>>,
    pub(super) is_greeted: bool,
    /// By their canonical scope; those that are being decided count as well.
    pub(super) subscriptions: HashMap<Arc<str>, Subscription>,
    /// Its seats, once it has asked for one.
    channels: Option<Box<channels::Socket>>,
    budget: Bucket,
    /// When the client last said something that was taken.
    pub(super) heard: Instant,
    /// When it is looked after next.
    pub(super) beats: Instant,
    /// When its policies are asked again.
    asks: Instant,
    /// The handshake, or the end of the patience with it.
    began: Instant,
    idle: Duration,
    hello: Duration,
}

impl Session {
    pub(super) fn new(face: &Face, who: Who, build: Option<String>) -> Self {
        let limits = &face.limits.streams;
        let now = Instant::now();
        Self {
            decoder: Decoder::new(SYNC_FRAME_LEN_MAX),
            who,
            name: face.streams.session().into(),
            build: build.map(Arc::from),
            told_build: None,
            is_greeted: false,
            subscriptions: HashMap::new(),
            channels: None,
            budget: Bucket::new(rate(limits), now),
            heard: now,
            beats: now + limits.heartbeat / 2 + spread(face.ticket(), limits.heartbeat / 2),
            asks: now + ASK_AGAIN,
            began: now,
            idle: limits.idle_timeout,
            hello: limits.hello_timeout,
        }
    }

    /// Its seats, if it ever asked for one.
    pub(crate) fn channels(&self) -> Option<&channels::Socket> {
        self.channels.as_deref()
    }

    /// Its seats.
    pub(super) fn channels_of(&mut self, hub: &channels::Hub) -> &channels::Socket {
        let (name, claims) = (&self.name, &self.who.claims);
        self.channels
            .get_or_insert_with(|| Box::new(hub.open(name, claims.clone())))
    }

    /// Takes a frame from its budget. One that is refused is no sign of life (T40).
    pub(super) fn take(&mut self, limits: &StreamLimits, now: Instant) -> bool {
        let is_taken = self.budget.take(rate(limits), now);
        if is_taken {
            self.heard = now;
        }
        is_taken
    }

    /// True once it has not said hello in time.
    pub(super) fn is_mute(&self, now: Instant) -> bool {
        !self.is_greeted && now >= self.began + self.hello
    }

    /// True once nothing was heard of it for too long.
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        now >= self.heard + self.idle
    }

    /// True once in a while: then its policies are asked again.
    pub(super) fn asks_again(&mut self, now: Instant) -> bool {
        let asks = now >= self.asks;
        if asks {
            self.asks = now + ASK_AGAIN;
        }
        asks
    }

    /// When it must be looked after although nothing happened.
    pub(crate) fn alarm_at(&self) -> Instant {
        let patience = match self.is_greeted {
            true => self.heard + self.idle,
            false => self.began + self.hello,
        };
        patience.min(self.beats)
    }
}

const fn rate(limits: &StreamLimits) -> Rate {
    Rate {
        per_second: limits.frames_per_second,
        burst: limits.frames_burst,
    }
}
