//! Every bound of the Mark face: its default, what meets who goes over it, and the reason.
//!
//! Each refusal is counted in `tidings_mark_refusals_total` under the limit's name
//! ([`Limit::as_str`]); the table of `docs/limits.md` has the same rows.

use std::time::Duration;

use gate::{Bounds, Over};
use thiserror::Error;

/// The bounds of one Mark listener. `Default` is meant for production.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Handshakes begun per second; beyond it a dial is refused. 0 is off. A handshake costs about
    /// 0.6 ms of CPU, so 1,000 is more than one core's worth.
    pub accepts_per_second: u32,
    /// Bytes of answers that wait for their readers; beyond it an answer waits for room until its
    /// deadline. One address may take a quarter.
    pub answer_bytes: usize,
    /// How much the window of a drain grows with each watch.
    pub closing_step: Duration,
    /// The longest window in which a drain spreads its `closing` blocks.
    pub closing_window_max: Duration,
    /// Open connections; beyond it a dial is refused. An idle one costs about 33 KiB.
    pub connections: usize,
    /// Open connections of one address (an IPv6 /64 counts as one); beyond it a dial is refused.
    pub connections_per_address: usize,
    /// How long requests may take to finish once a drain has begun.
    pub drain_timeout: Duration,
    /// A handshake that takes longer is given up.
    pub handshake_timeout: Duration,
    /// Handshakes in progress; beyond it a dial is refused.
    pub handshakes: usize,
    /// Handshakes in progress from which on a dialler must prove its address first.
    pub handshakes_unproved: usize,
    /// A watch is told its position this long after the last block written.
    pub heartbeat: Duration,
    /// A connection on which nothing arrives for this long is gone. Above 25 s, the interval at
    /// which the original client pings.
    pub idle_timeout: Duration,
    /// Addresses whose request rate is remembered; beyond it the rest share one budget.
    pub rate_addresses: usize,
    /// Requests that an address may make at once after a pause.
    pub rate_burst: u32,
    /// Requests per second and address, watches included; beyond it `rate-limited`. 0 is off.
    pub rate_per_second: u32,
    /// From a stream's acceptance to the end of its request, and again for its answer.
    pub request_timeout: Duration,
    /// Requests that are worked on at once; beyond it a request waits until its deadline, then
    /// `rate-limited`. One address may take a quarter.
    pub requests: usize,
    /// Requests of one connection that are worked on or answered at once; more wait their turn.
    pub requests_per_connection: usize,
    /// Streams that a connection may have open at first. QUIC's state is made for each allowed
    /// stream at once, so a connection starts small.
    pub streams_initial: u32,
    /// Streams that a connection may have open at most, reached in steps while it uses them.
    /// Watches may take half.
    pub streams_max: u32,
    /// The socket's buffers, each way. The kernel may grant less.
    pub udp_buffer_bytes: usize,
    /// Requests beyond a few KiB that are read at once; more stay unread until their deadline. One
    /// address may take a quarter.
    pub uploads: usize,
    /// Watches of the world; beyond it `rate-limited`.
    pub watches: usize,
    /// A watch whose client doesn't take a block whole in this time is ended.
    pub write_stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            accepts_per_second: 1_000,
            answer_bytes: 64 << 20,
            closing_step: Duration::from_millis(1),
            closing_window_max: Duration::from_secs(10),
            connections: 65_536,
            connections_per_address: 4_096,
            drain_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            handshakes: 1_024,
            handshakes_unproved: 256,
            heartbeat: Duration::from_secs(20),
            idle_timeout: Duration::from_secs(30),
            rate_addresses: 65_536,
            rate_burst: 100,
            rate_per_second: 50,
            request_timeout: Duration::from_secs(10),
            requests: 256,
            requests_per_connection: 16,
            streams_initial: 16,
            streams_max: 200,
            udp_buffer_bytes: 4 << 20,
            uploads: 64,
            watches: 1_024,
            write_stall: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// Watches that one connection may have: half of its streams, at least one.
    pub fn watches_per_connection(&self) -> usize {
        (self.streams_max as usize / 2).max(1)
    }

    /// The bounds of admission.
    pub(crate) const fn bounds(&self) -> Bounds {
        Bounds {
            accepts_per_second: self.accepts_per_second,
            connections: self.connections,
            connections_per_address: self.connections_per_address,
            handshakes: self.handshakes,
            handshakes_unproved: self.handshakes_unproved,
        }
    }

    /// Bytes of answers that one address may leave unread: a quarter of all.
    pub fn answer_bytes_per_address(&self) -> usize {
        share_of(self.answer_bytes)
    }

    /// Requests of one address that are worked on at once: a quarter of all, at least one.
    pub fn requests_per_address(&self) -> usize {
        share_of(self.requests)
    }

    /// Uploads that one address may have read at once: a quarter of all, at least one.
    pub fn uploads_per_address(&self) -> usize {
        share_of(self.uploads)
    }

    /// Refuses values that can't work, alone or together.
    pub fn check(&self) -> Result<(), LimitsError> {
        self.check_counts()?;
        self.check_times()
    }

    fn check_counts(&self) -> Result<(), LimitsError> {
        let positive = [
            ("answer_bytes", self.answer_bytes),
            ("connections", self.connections),
            ("connections_per_address", self.connections_per_address),
            ("handshakes", self.handshakes),
            ("rate_addresses", self.rate_addresses),
            ("rate_burst", self.rate_burst as usize),
            ("requests", self.requests),
            ("requests_per_connection", self.requests_per_connection),
            ("streams_initial", self.streams_initial as usize),
            ("uploads", self.uploads),
            ("watches", self.watches),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(LimitsError::Zero(name));
        }
        if self.answer_bytes < ANSWER_BYTES_MIN {
            return Err(LimitsError::AnswerBytes);
        }
        let semaphores = [self.answer_bytes, self.requests, self.uploads, self.watches];
        if semaphores.iter().any(|value| *value > COUNT_MAX) {
            return Err(LimitsError::TooLarge);
        }
        if self.streams_initial > self.streams_max {
            return Err(LimitsError::Streams);
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), LimitsError> {
        let positive = [
            ("handshake_timeout", self.handshake_timeout),
            ("heartbeat", self.heartbeat),
            ("idle_timeout", self.idle_timeout),
            ("request_timeout", self.request_timeout),
            ("write_stall", self.write_stall),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| value.is_zero()) {
            return Err(LimitsError::Zero(name));
        }
        if self.heartbeat >= self.idle_timeout {
            return Err(LimitsError::Heartbeat);
        }
        Ok(())
    }
}

/// Into how many shares a bound is cut that one address could use up: three others are served
/// beside the worst client.
const SHARES: usize = 4;

fn share_of(bound: usize) -> usize {
    (bound / SHARES).max(1)
}

/// The longest answer, a whole document with its metadata, must fit.
const ANSWER_BYTES_MIN: usize = 4 << 20;

/// What a semaphore counts to; no sensible limit is near it.
const COUNT_MAX: usize = u32::MAX as usize >> 1;

/// Values of [`Limits`] that can't work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// The largest answer would never be sent.
    #[error("answer_bytes must be at least 4 MiB, the longest answer")]
    AnswerBytes,
    /// Every idle watch would lose its connection between two heartbeats.
    #[error("heartbeat must be shorter than idle_timeout")]
    Heartbeat,
    /// A connection would start above its own limit.
    #[error("streams_initial must not be above streams_max")]
    Streams,
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
    Accepts,
    AnswerBytes,
    Connections,
    ConnectionsPerAddress,
    Draining,
    HandshakeTimeout,
    Handshakes,
    Memory,
    Rate,
    RequestSize,
    RequestTimeout,
    Requests,
    RequestsPerConnection,
    Uploads,
    Watches,
    WatchesPerConnection,
    WriteStall,
}

impl Limit {
    /// All of them, so that each has its counter from the start.
    pub(crate) const ALL: [Self; 17] = [
        Self::Accepts,
        Self::AnswerBytes,
        Self::Connections,
        Self::ConnectionsPerAddress,
        Self::Draining,
        Self::HandshakeTimeout,
        Self::Handshakes,
        Self::Memory,
        Self::Rate,
        Self::RequestSize,
        Self::RequestTimeout,
        Self::Requests,
        Self::RequestsPerConnection,
        Self::Uploads,
        Self::Watches,
        Self::WatchesPerConnection,
        Self::WriteStall,
    ];

    /// The label of the refusal's counter.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Accepts => "accepts_per_second",
            Self::AnswerBytes => "answer_bytes",
            Self::Connections => "connections",
            Self::ConnectionsPerAddress => "connections_per_address",
            Self::Draining => "draining",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::Handshakes => "handshakes",
            Self::Memory => "memory",
            Self::Rate => "rate_per_second",
            Self::RequestSize => "request_size",
            Self::RequestTimeout => "request_timeout",
            Self::Requests => "requests",
            Self::RequestsPerConnection => "requests_per_connection",
            Self::Uploads => "uploads",
            Self::Watches => "watches",
            Self::WatchesPerConnection => "watches_per_connection",
            Self::WriteStall => "write_stall",
        }
    }
}

impl From<Over> for Limit {
    fn from(over: Over) -> Self {
        match over {
            Over::Accepts => Self::Accepts,
            Over::Connections => Self::Connections,
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
        assert_eq!(Limits::default().watches_per_connection(), 100);
    }

    // T56
    #[test]
    fn a_heartbeat_above_the_idle_timeout_is_refused() {
        let limits = Limits {
            heartbeat: Duration::from_secs(31),
            ..Limits::default()
        };
        assert_eq!(limits.check(), Err(LimitsError::Heartbeat));
    }

    // T56
    #[test]
    fn a_limit_of_zero_is_refused_by_name() {
        let limits = Limits {
            watches: 0,
            ..Limits::default()
        };
        assert_eq!(limits.check(), Err(LimitsError::Zero("watches")));
    }
}
