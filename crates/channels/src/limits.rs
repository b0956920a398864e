//! Every bound of the channels, by name (P11).

use std::time::Duration;

/// Params of one channel; a scope has no room for more.
pub const PARAMS_MAX: usize = wire::limits::CHANNEL_PARAMS_MAX;

/// Events that one channel may declare: a page handles each by name.
pub const EVENTS_MAX: usize = 64;

/// Bytes of the name of an event.
pub const EVENT_NAME_LEN_MAX: usize = 64;

/// Bytes of the data of an event. An event says what happened; what is larger is a document.
pub const PAYLOAD_LEN_MAX: usize = 64 * 1024;

/// How deep the data of an event may nest.
pub const PAYLOAD_DEPTH_MAX: usize = 32;

/// Values in the data of an event, lists and objects included.
pub const PAYLOAD_VALUES_MAX: usize = 10_000;

/// Bytes of what a member says about itself; a roster carries it 256 times.
pub const META_LEN_MAX: usize = 1024;

/// Events that a topic may keep at most.
pub const HISTORY_MAX: usize = 10_000;

/// Members that a roster names; the total says how many more there are.
pub const ROSTER_MAX: usize = 256;

/// Members that one change of the roster names; more become several changes.
pub const DELTA_MEMBERS_MAX: usize = 256;

/// How long a member counts as present after its last beat: two beats of 15 s may be lost.
pub const LEASE: Duration = Duration::from_secs(30);

/// How soon after the last renewal a beat renews again; those before cost a look.
pub const RENEWAL_INTERVAL: Duration = Duration::from_secs(10);

/// The least time between two announcements of a topic's comings and goings: a storm of joins
/// costs members × seconds and not members².
pub const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(1);

/// How often [`Hub::sweep`](crate::Hub::sweep) wants to be called: what is announced is late by at
/// most a quarter of its interval.
pub const SWEEP_INTERVAL: Duration = Duration::from_millis(250);

const _: () = assert!(RENEWAL_INTERVAL.as_secs() * 2 < LEASE.as_secs());
const _: () = assert!(SWEEP_INTERVAL.as_millis() < ANNOUNCE_INTERVAL.as_millis());

/// Topics that one socket may follow: a page with more follows too finely.
pub const SOCKET_TOPICS_DEFAULT: usize = 64;

/// Topics of a node that are followed, and those whose history is kept: enough for a topic per
/// person of a large site, at a few kilobytes each when quiet.
pub const NODE_TOPICS_DEFAULT: usize = 10_000;

/// Bytes of all histories together: a hundred kept events of some hundred bytes in each of a
/// thousand topics.
pub const HISTORY_BYTES_DEFAULT: usize = 128 * 1024 * 1024;

/// The bounds that a configuration may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Topics that one socket may follow, those that are being decided included.
    pub topics_per_socket: usize,
    /// Topics that all sockets of this node together follow.
    pub topics: usize,
    /// Topics whose history is kept; the one with the oldest event is forgotten first.
    pub histories: usize,
    /// Bytes of all histories together; the oldest events are forgotten first.
    pub history_bytes: usize,
    /// Slots of the ring that all topics share; a power of two.
    pub ring_len: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            topics_per_socket: SOCKET_TOPICS_DEFAULT,
            topics: NODE_TOPICS_DEFAULT,
            histories: NODE_TOPICS_DEFAULT,
            history_bytes: HISTORY_BYTES_DEFAULT,
            ring_len: feed::RING_LEN,
        }
    }
}
