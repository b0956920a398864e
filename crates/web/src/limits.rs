//! Every bound of the web faces: its default, what meets who goes over it, and the reason.
//!
//! Each refusal is counted in `tidings_web_refusals_total` under the limit's name
//! ([`Limit::as_str`]); the table of `docs/limits.md` has the same rows.

use std::time::Duration;

use gate::{Bounds, Over};
use thiserror::Error;

use crate::stream::StreamLimits;

/// The bounds of one web listener. `Default` is meant for production.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of answers that wait for their readers; beyond it an answer waits for room until its
    /// deadline, then 503.
    pub answer_bytes: usize,
    /// How much the window of a drain grows with each held stream.
    pub closing_step: Duration,
    /// The longest window in which a drain spreads its goodbyes.
    pub closing_window_max: Duration,
    /// Open connections, held streams among them; beyond it a dial waits in the kernel's queue.
    pub connections: usize,
    /// Open connections of one address (an IPv6 /64 counts as one); beyond it a dial is closed. A
    /// reverse proxy is one address, so it is as high as `connections`.
    pub connections_per_address: usize,
    /// How long requests may take to finish once a drain has begun.
    pub drain_timeout: Duration,
    /// A TLS handshake that takes longer is given up.
    pub handshake_timeout: Duration,
    /// TLS handshakes in progress; beyond it a dial is closed.
    pub handshakes: usize,
    /// Bytes of a request's head; beyond it 431.
    pub head_bytes: usize,
    /// Fields of a request's head; beyond it 431.
    pub head_fields: usize,
    /// How long a head may take to arrive, and how long a connection may be idle between two
    /// requests; beyond it the connection is closed.
    pub head_timeout: Duration,
    /// Idempotency keys that are remembered; beyond it a request with a further key gets 503. One
    /// costs some 400 bytes of memory.
    pub idempotency_keys: usize,
    /// Addresses whose request rate is remembered; beyond it the rest share one budget.
    pub rate_addresses: usize,
    /// Requests that an address may make at once after a pause.
    pub rate_burst: u32,
    /// Requests per second and address; beyond it 429. 0 is off. A reverse proxy is one address.
    pub rate_per_second: u32,
    /// How long a body may take to arrive, and how long a request may wait for its turn.
    pub request_timeout: Duration,
    /// Requests that are worked on at once; beyond it a request waits until its deadline, then 503.
    pub requests: usize,
    /// The bounds of what is held.
    pub streams: StreamLimits,
    /// Requests that one HTTP/2 connection may have open, held streams among them.
    pub streams_per_connection: u32,
    /// Bodies beyond a few KiB that are read at once; more wait until their deadline, then 503.
    pub uploads: usize,
    /// A client that takes nothing of its answer for this long loses its connection.
    pub write_stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer_bytes: 64 << 20,
            closing_step: Duration::from_millis(1),
            closing_window_max: Duration::from_secs(10),
            connections: 65_536,
            connections_per_address: 65_536,
            drain_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            handshakes: 1_024,
            head_bytes: 64 << 10,
            head_fields: 100,
            head_timeout: Duration::from_secs(10),
            idempotency_keys: 65_536,
            rate_addresses: 65_536,
            rate_burst: 2_000,
            rate_per_second: 1_000,
            request_timeout: Duration::from_secs(10),
            requests: 256,
            streams: StreamLimits::default(),
            streams_per_connection: 128,
            uploads: 64,
            write_stall: Duration::from_secs(10),
        }
    }
}

/// The smallest buffer that HTTP/1 takes.
const HEAD_BYTES_MIN: usize = 8 << 10;

/// The longest answer, a whole document with its head, must fit.
const ANSWER_BYTES_MIN: usize = 4 << 20;

/// What a semaphore counts to; no sensible limit is near it.
const COUNT_MAX: usize = u32::MAX as usize >> 1;

impl Limits {
    /// The bounds of admission. There is no budget of dials: a connection costs nothing before its
    /// first request, and streams have a budget of their own.
    pub(crate) const fn bounds(&self) -> Bounds {
        Bounds {
            accepts_per_second: 0,
            connections: self.connections,
            connections_per_address: self.connections_per_address,
            handshakes: self.handshakes,
            handshakes_unproved: self.handshakes,
        }
    }

    /// Refuses values that can't work, alone or together.
    pub fn check(&self) -> Result<(), LimitsError> {
        self.check_counts()?;
        self.streams.check()?;
        let positive = [
            ("handshake_timeout", self.handshake_timeout),
            ("head_timeout", self.head_timeout),
            ("request_timeout", self.request_timeout),
            ("write_stall", self.write_stall),
        ];
        match positive.iter().find(|(_, value)| value.is_zero()) {
            Some((name, _)) => Err(LimitsError::Zero(name)),
            None => Ok(()),
        }
    }

    fn check_counts(&self) -> Result<(), LimitsError> {
        let positive = [
            ("answer_bytes", self.answer_bytes),
            ("connections", self.connections),
            ("connections_per_address", self.connections_per_address),
            ("handshakes", self.handshakes),
            ("head_fields", self.head_fields),
            ("idempotency_keys", self.idempotency_keys),
            ("rate_addresses", self.rate_addresses),
            ("rate_burst", self.rate_burst as usize),
            ("requests", self.requests),
            (
                "streams_per_connection",
                self.streams_per_connection as usize,
            ),
            ("uploads", self.uploads),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(LimitsError::Zero(name));
        }
        if self.head_bytes < HEAD_BYTES_MIN {
            return Err(LimitsError::HeadBytes);
        }
        if self.answer_bytes < ANSWER_BYTES_MIN {
            return Err(LimitsError::AnswerBytes);
        }
        let semaphores = [
            self.answer_bytes,
            self.connections,
            self.requests,
            self.uploads,
        ];
        if semaphores.iter().any(|value| *value > COUNT_MAX) {
            return Err(LimitsError::TooLarge);
        }
        Ok(())
    }
}

/// Values of [`Limits`] that can't work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// The largest answer would never be sent.
    #[error("answer_bytes must be at least 4 MiB, the longest answer")]
    AnswerBytes,
    /// Sockets would be idle before they could answer a heartbeat, or end before they heard one.
    #[error("heartbeat must be at most half of idle_timeout, and shorter than lifetime")]
    Heartbeat,
    /// Fewer bytes than HTTP/1 reads at once.
    #[error("head_bytes must be at least 8 KiB")]
    HeadBytes,
    /// A count that nothing can reach.
    #[error("a limit is above 2^31")]
    TooLarge,
    /// Nothing would be served.
    #[error("{0} must not be zero")]
    Zero(&'static str),
}

/// Names the bound that somebody was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Limit {
    AnswerBytes,
    BodyBytes,
    Connections,
    ConnectionsPerAddress,
    Draining,
    Frames,
    HandshakeTimeout,
    Handshakes,
    HeadFields,
    IdempotencyKeys,
    Memory,
    Outbox,
    Rate,
    RequestTimeout,
    Requests,
    StreamAccepts,
    Streams,
    Uploads,
    WatchesPerSocket,
}

impl Limit {
    /// Every limit that is counted.
    pub(crate) const ALL: &'static [Self] = &[
        Self::AnswerBytes,
        Self::BodyBytes,
        Self::Connections,
        Self::ConnectionsPerAddress,
        Self::Draining,
        Self::Frames,
        Self::HandshakeTimeout,
        Self::Handshakes,
        Self::HeadFields,
        Self::IdempotencyKeys,
        Self::Memory,
        Self::Outbox,
        Self::Rate,
        Self::RequestTimeout,
        Self::Requests,
        Self::StreamAccepts,
        Self::Streams,
        Self::Uploads,
        Self::WatchesPerSocket,
    ];

    /// The label of the refusal's counter.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::AnswerBytes => "answer_bytes",
            Self::BodyBytes => "body_bytes",
            Self::Connections => "connections",
            Self::ConnectionsPerAddress => "connections_per_address",
            Self::Draining => "draining",
            Self::Frames => "frames_per_second",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::Handshakes => "handshakes",
            Self::HeadFields => "head_fields",
            Self::IdempotencyKeys => "idempotency_keys",
            Self::Memory => "memory",
            Self::Outbox => "outbox_bytes",
            Self::Rate => "rate_per_second",
            Self::RequestTimeout => "request_timeout",
            Self::Requests => "requests",
            Self::StreamAccepts => "accepts_per_second",
            Self::Streams => "streams",
            Self::Uploads => "uploads",
            Self::WatchesPerSocket => "watches_per_socket",
        }
    }
}

impl From<Over> for Limit {
    fn from(over: Over) -> Self {
        match over {
            // The budget of dials is off.
            Over::Accepts | Over::Connections => Self::Connections,
            Over::ConnectionsPerAddress => Self::ConnectionsPerAddress,
            Over::Handshakes => Self::Handshakes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_can_work() {
        assert_eq!(Limits::default().check(), Ok(()));
    }

    #[test]
    fn every_limit_is_in_the_documents() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limits.md");
        let documented = std::fs::read_to_string(path).unwrap();
        for limit in Limit::ALL {
            let name = format!("`{}`", limit.as_str());
            assert!(documented.contains(&name), "docs/limits.md lacks {name}");
        }
    }

    // T56
    #[test]
    fn limits_that_can_not_work_are_refused_by_name() {
        let zero = Limits {
            uploads: 0,
            ..Limits::default()
        };
        assert_eq!(zero.check(), Err(LimitsError::Zero("uploads")));
        let idle = Limits {
            head_timeout: Duration::ZERO,
            ..Limits::default()
        };
        assert_eq!(idle.check(), Err(LimitsError::Zero("head_timeout")));
        let short = Limits {
            head_bytes: 100,
            ..Limits::default()
        };
        assert_eq!(short.check(), Err(LimitsError::HeadBytes));
    }
}
