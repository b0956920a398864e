//! The bounds of the channels.

use super::super::key::{Key, Kind, key};
use super::limits::MANY;

/// All of a large machine's memory.
const HISTORY_BYTES_MAX: u64 = 1 << 40;

/// `[limits.channels]`.
pub(super) const KEYS: &[Key] = &[
    key(
        "limits.channels",
        "histories",
        Kind::Count(1, MANY, |s| &mut s.channel_limits.histories),
        "Topics whose history is kept; the one with the oldest event is forgotten first.",
    ),
    key(
        "limits.channels",
        "history_bytes",
        Kind::Count(1, HISTORY_BYTES_MAX, |s| {
            &mut s.channel_limits.history_bytes
        }),
        "Bytes of all histories together; the oldest events are forgotten first.",
    ),
    key(
        "limits.channels",
        "ring_len",
        Kind::PowerOfTwo(16, 1 << 20, |s| &mut s.channel_limits.ring_len),
        "Events that a watch may be behind before it is served from the history alone.",
    ),
    key(
        "limits.channels",
        "topics",
        Kind::Count(1, MANY, |s| &mut s.channel_limits.topics),
        "Topics that all sockets together follow.",
    ),
    key(
        "limits.channels",
        "topics_per_socket",
        Kind::Count(1, MANY, |s| &mut s.channel_limits.topics_per_socket),
        "Topics that one socket follows.",
    ),
];
