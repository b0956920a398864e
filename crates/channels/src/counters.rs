//! Counts for the metrics of whoever owns the hub.

use std::sync::atomic::{AtomicU64, Ordering};

/// One count.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        /// What a hub has done so far, and what it holds.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
            /// Topics that sockets follow or are about to.
            pub topics: usize,
            /// Sockets that are present somewhere.
            pub present: usize,
            /// Bytes of the kept events, their encodings included.
            pub history_bytes: usize,
        }

        impl Counters {
            /// The counts; what the hub holds is for the hub to add.
            pub(crate) fn stats(&self) -> Stats {
                Stats {
                    $($name: self.$name.value(),)*
                    ..Stats::default()
                }
            }
        }
    };
}

counters! {
    /// Seats that were taken.
    joined,
    /// Joins and publications refused because a policy said no.
    denied,
    /// Joins refused without asking because the policy had said no already.
    denied_again,
    /// Joins and publications of what is not declared, or with bad params.
    undeclared,
    /// Policies that could not decide.
    undecided,
    /// Joins refused because the socket follows as many topics as it may.
    refused_socket_topics,
    /// Joins refused because the node follows as many topics as it may.
    refused_node_topics,
    /// Joins refused because another of the same topic was being decided.
    refused_taken,
    /// Joins refused because the node is leaving.
    refused_leaving,
    /// Publications of events that the channel does not declare.
    refused_events,
    /// Seats that ended because a later check said no.
    seats_ended,
    /// Seats that were suspended because a later check could not decide.
    seats_suspended,
    /// Events that were published.
    published,
    /// Kept events that were forgotten for want of room.
    history_evicted,
    /// Watches behind the ring that their topic's history brought up to date.
    recovered,
    /// Gaps that were told.
    gaps,
    /// Times that a watch of a topic without history lost events, which is not told.
    losses,
    /// Changes of rosters that were announced.
    deltas,
    /// Leases that ran out.
    leases_expired,
    /// What members said about themselves and came too late.
    updates_stale,
}
