//! The bounds of the Mark face, and of the process.

use super::super::key::{Key, Kind, key};

pub(super) const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Above any machine's reach, and below what the counters behind it can hold.
pub(super) const MANY: u64 = 1 << 30;
pub(super) const MANY_32: u32 = 1 << 30;

/// More than any machine has, and exact in every reader of TOML.
const MEMORY_MAX: u64 = 1 << 50;

/// A transport counts its streams in 62 bits; each costs memory at once, so far fewer make sense.
pub(super) const STREAMS_MAX: u32 = 65_536;

/// `[limits]`.
pub(super) const KEYS: &[Key] = &[
    key(
        "limits",
        "accepts_per_second",
        Kind::Count32(0, MANY_32, |s| &mut s.limits.accepts_per_second),
        "Handshakes begun per second; beyond it a dial is refused. 0 is off.",
    ),
    key(
        "limits",
        "answer_bytes",
        Kind::Count(4 << 20, MANY, |s| &mut s.limits.answer_bytes),
        "Bytes of answers that wait for their readers.",
    ),
    key(
        "limits",
        "closing_step_ms",
        Kind::Millis(0, 1000, |s| &mut s.limits.closing_step),
        "How much the window of a drain grows with each watch.",
    ),
    key(
        "limits",
        "closing_window_max_ms",
        Kind::Millis(0, 10 * 60 * 1000, |s| &mut s.limits.closing_window_max),
        "The longest window in which a drain ends its watches.",
    ),
    key(
        "limits",
        "connections",
        Kind::Count(1, MANY, |s| &mut s.limits.connections),
        "Open connections.",
    ),
    key(
        "limits",
        "connections_per_address",
        Kind::Count(1, MANY, |s| &mut s.limits.connections_per_address),
        "Open connections of one address.",
    ),
    key(
        "limits",
        "drain_timeout_ms",
        Kind::Millis(0, 10 * 60 * 1000, |s| &mut s.limits.drain_timeout),
        "How long requests may take to finish once a drain has begun.",
    ),
    key(
        "limits",
        "handshake_timeout_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.limits.handshake_timeout),
        "A handshake that takes longer is given up.",
    ),
    key(
        "limits",
        "handshakes",
        Kind::Count(1, MANY, |s| &mut s.limits.handshakes),
        "Handshakes in progress.",
    ),
    key(
        "limits",
        "handshakes_unproved",
        Kind::Count(0, MANY, |s| &mut s.limits.handshakes_unproved),
        "Handshakes in progress from which on a dialler must prove its address.",
    ),
    key(
        "limits",
        "heartbeat_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.limits.heartbeat),
        "A watch is told its position this long after its last block.",
    ),
    key(
        "limits",
        "idle_timeout_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.limits.idle_timeout),
        "A connection on which nothing arrives for this long is gone.",
    ),
    key(
        "limits",
        "memory_bytes",
        Kind::OptionalCount(0, MEMORY_MAX, |s| &mut s.memory_bytes),
        "Resident memory above which new connections, watches and large uploads are refused. 0 is \
         off; unset, it is three quarters of what the machine or the control group has.",
    ),
    key(
        "limits",
        "rate_addresses",
        Kind::Count(1, MANY, |s| &mut s.limits.rate_addresses),
        "Addresses whose request rate is remembered; the rest share one budget.",
    ),
    key(
        "limits",
        "rate_burst",
        Kind::Count32(1, MANY_32, |s| &mut s.limits.rate_burst),
        "Requests that an address may make at once after a pause.",
    ),
    key(
        "limits",
        "rate_per_second",
        Kind::Count32(0, MANY_32, |s| &mut s.limits.rate_per_second),
        "Requests per second and address. 0 is off, which it is in dev mode unless set.",
    ),
    key(
        "limits",
        "request_timeout_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.limits.request_timeout),
        "From a stream's acceptance to the end of its request, and again for its answer.",
    ),
    key(
        "limits",
        "requests",
        Kind::Count(1, MANY, |s| &mut s.limits.requests),
        "Requests that are worked on at once.",
    ),
    key(
        "limits",
        "requests_per_connection",
        Kind::Count(1, MANY, |s| &mut s.limits.requests_per_connection),
        "Requests of one connection that are worked on at once.",
    ),
    key(
        "limits",
        "streams_initial",
        Kind::Count32(1, STREAMS_MAX, |s| &mut s.limits.streams_initial),
        "Streams that a connection may have open at first.",
    ),
    key(
        "limits",
        "streams_max",
        Kind::Count32(1, STREAMS_MAX, |s| &mut s.limits.streams_max),
        "Streams that a connection may have open at most; watches may take half.",
    ),
    key(
        "limits",
        "udp_buffer_bytes",
        Kind::Count(0, MANY, |s| &mut s.limits.udp_buffer_bytes),
        "The socket's buffers, each way. The kernel may grant less.",
    ),
    key(
        "limits",
        "uploads",
        Kind::Count(1, MANY, |s| &mut s.limits.uploads),
        "Requests beyond a few KiB that are read at once.",
    ),
    key(
        "limits",
        "watches",
        Kind::Count(1, MANY, |s| &mut s.limits.watches),
        "Watches in all.",
    ),
    key(
        "limits",
        "write_stall_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.limits.write_stall),
        "A watch whose client takes no byte of a block for this long is ended.",
    ),
];
