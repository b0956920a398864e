//! What the channels count.

use std::fmt;

use channels::Hub;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::sources::Encoder;

/// The channels of this node.
#[derive(Debug)]
pub(super) struct ChannelMetrics(pub(super) Hub);

impl Collector for ChannelMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Encoder(encoder);
        let stats = self.0.stats();
        let help = "Topics that sockets follow or are about to.";
        to.gauge("topics", help, stats.topics as u64)?;
        let help = "Sockets that are present somewhere.";
        to.gauge("present", help, stats.present as u64)?;
        let help = "Bytes of the kept events.";
        to.gauge("history_bytes", help, stats.history_bytes as u64)?;
        for (name, help, value) in [
            ("joined", "Seats that were taken.", stats.joined),
            ("published", "Events published.", stats.published),
            ("gaps", "Gaps told.", stats.gaps),
            (
                "losses",
                "Times that a watch without history lost events.",
                stats.losses,
            ),
            (
                "recovered",
                "Watches that the history brought up to date.",
                stats.recovered,
            ),
            (
                "history_evicted",
                "Kept events forgotten for want of room.",
                stats.history_evicted,
            ),
            ("deltas", "Changes of rosters announced.", stats.deltas),
            (
                "leases_expired",
                "Leases that ran out.",
                stats.leases_expired,
            ),
            (
                "seats_ended",
                "Seats that a later check ended.",
                stats.seats_ended,
            ),
            (
                "seats_suspended",
                "Seats that a later check suspended.",
                stats.seats_suspended,
            ),
            (
                "updates_stale",
                "Words of members that came too late.",
                stats.updates_stale,
            ),
        ] {
            to.counter(name, help, value)?;
        }
        to.counters(
            ("refusals", "cause"),
            "Joins and publications refused.",
            [
                ("denied", stats.denied),
                ("denied_again", stats.denied_again),
                ("event", stats.refused_events),
                ("leaving", stats.refused_leaving),
                ("taken", stats.refused_taken),
                ("topics", stats.refused_node_topics),
                ("topics_per_socket", stats.refused_socket_topics),
                ("undecided", stats.undecided),
                ("undeclared", stats.undeclared),
            ],
        )
    }
}
