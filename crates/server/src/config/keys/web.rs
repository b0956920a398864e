//! The bounds of the web faces.

use super::super::key::{Key, Kind, key};
use super::limits::{DAY_MS, MANY, MANY_32, STREAMS_MAX};

/// `[limits.web]`.
pub(super) const KEYS: &[Key] = &[
    key(
        "limits.web",
        "accepts_burst",
        Kind::Count32(1, MANY_32, |s| &mut s.web_limits.streams.accepts_burst),
        "Streams and sockets that may begin at once after a pause.",
    ),
    key(
        "limits.web",
        "accepts_per_second",
        Kind::Count32(0, MANY_32, |s| &mut s.web_limits.streams.accepts_per_second),
        "Streams and sockets begun per second, whoever asks. 0 is off.",
    ),
    key(
        "limits.web",
        "answer_bytes",
        Kind::Count(4 << 20, MANY, |s| &mut s.web_limits.answer_bytes),
        "Bytes of answers that wait for their readers.",
    ),
    key(
        "limits.web",
        "closing_step_ms",
        Kind::Millis(0, 1000, |s| &mut s.web_limits.closing_step),
        "How much the window of a drain grows with each held stream.",
    ),
    key(
        "limits.web",
        "closing_window_max_ms",
        Kind::Millis(0, 10 * 60 * 1000, |s| &mut s.web_limits.closing_window_max),
        "The longest window in which a drain ends what is held.",
    ),
    key(
        "limits.web",
        "connections",
        Kind::Count(1, MANY, |s| &mut s.web_limits.connections),
        "Open connections, held streams among them.",
    ),
    key(
        "limits.web",
        "connections_per_address",
        Kind::Count(1, MANY, |s| &mut s.web_limits.connections_per_address),
        "Open connections of one address. A reverse proxy is one address.",
    ),
    key(
        "limits.web",
        "drain_timeout_ms",
        Kind::Millis(0, 10 * 60 * 1000, |s| &mut s.web_limits.drain_timeout),
        "How long requests may take to finish once a drain has begun.",
    ),
    key(
        "limits.web",
        "frames_burst",
        Kind::Count32(1, MANY_32, |s| &mut s.web_limits.streams.frames_burst),
        "Frames that a socket may send at once after a pause.",
    ),
    key(
        "limits.web",
        "frames_per_second",
        Kind::Count32(0, MANY_32, |s| &mut s.web_limits.streams.frames_per_second),
        "Frames of a socket per second. 0 is off.",
    ),
    key(
        "limits.web",
        "handshake_timeout_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.web_limits.handshake_timeout),
        "A TLS handshake that takes longer is given up.",
    ),
    key(
        "limits.web",
        "handshakes",
        Kind::Count(1, MANY, |s| &mut s.web_limits.handshakes),
        "TLS handshakes in progress.",
    ),
    key(
        "limits.web",
        "head_bytes",
        Kind::Count(8 << 10, MANY, |s| &mut s.web_limits.head_bytes),
        "Bytes of a request's head.",
    ),
    key(
        "limits.web",
        "head_fields",
        Kind::Count(1, MANY, |s| &mut s.web_limits.head_fields),
        "Fields of a request's head.",
    ),
    key(
        "limits.web",
        "head_timeout_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.web_limits.head_timeout),
        "How long a head may take to arrive, and a connection be idle between two requests.",
    ),
    key(
        "limits.web",
        "heartbeat_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.web_limits.streams.heartbeat),
        "Every stream hears something at least this often.",
    ),
    key(
        "limits.web",
        "hello_timeout_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.web_limits.streams.hello_timeout),
        "A socket's first frame comes within this time.",
    ),
    key(
        "limits.web",
        "idempotency_keys",
        Kind::Count(1, MANY, |s| &mut s.web_limits.idempotency_keys),
        "Idempotency keys that are remembered.",
    ),
    key(
        "limits.web",
        "idle_timeout_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.web_limits.streams.idle_timeout),
        "A socket of which nothing is heard for this long is closed.",
    ),
    key(
        "limits.web",
        "lifetime_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.web_limits.streams.lifetime),
        "A stream ends after this time at the latest; its client comes back.",
    ),
    key(
        "limits.web",
        "min_gap_max_ms",
        Kind::Millis(0, DAY_MS, |s| &mut s.web_limits.streams.min_gap_max),
        "The longest time between two frames that a watch may ask for.",
    ),
    key(
        "limits.web",
        "outbox_bytes",
        Kind::Count(1, MANY, |s| &mut s.web_limits.streams.outbox_bytes),
        "Bytes that may wait for one socket.",
    ),
    key(
        "limits.web",
        "rate_addresses",
        Kind::Count(1, MANY, |s| &mut s.web_limits.rate_addresses),
        "Addresses whose request rate is remembered; the rest share one budget.",
    ),
    key(
        "limits.web",
        "rate_burst",
        Kind::Count32(1, MANY_32, |s| &mut s.web_limits.rate_burst),
        "Requests that an address may make at once after a pause.",
    ),
    key(
        "limits.web",
        "rate_per_second",
        Kind::Count32(0, MANY_32, |s| &mut s.web_limits.rate_per_second),
        "Requests per second and address. 0 is off, which it is in dev mode unless set.",
    ),
    key(
        "limits.web",
        "request_timeout_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.web_limits.request_timeout),
        "How long a body may take to arrive, and a request wait for its turn.",
    ),
    key(
        "limits.web",
        "requests",
        Kind::Count(1, MANY, |s| &mut s.web_limits.requests),
        "Requests that are worked on at once.",
    ),
    key(
        "limits.web",
        "streams",
        Kind::Count(1, MANY, |s| &mut s.web_limits.streams.streams),
        "Streams and sockets at once.",
    ),
    key(
        "limits.web",
        "streams_per_connection",
        Kind::Count32(1, STREAMS_MAX, |s| &mut s.web_limits.streams_per_connection),
        "Requests that one HTTP/2 connection may have open, held streams among them.",
    ),
    key(
        "limits.web",
        "uploads",
        Kind::Count(1, MANY, |s| &mut s.web_limits.uploads),
        "Bodies beyond a few KiB that are read at once.",
    ),
    key(
        "limits.web",
        "watches_per_socket",
        Kind::Count(1, MANY, |s| &mut s.web_limits.streams.watches_per_socket),
        "Watches of one socket.",
    ),
    key(
        "limits.web",
        "write_stall_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.web_limits.write_stall),
        "A client that takes nothing of what is written for this long loses its connection.",
    ),
];
