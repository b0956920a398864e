//! What the Mark face counts, under names that begin with `tidings_mark_`.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use wire::GapReason;

use crate::limits::Limit;

/// A request by its verb and the status of its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    verb: &'static str,
    status: &'static str,
}

/// The bound that somebody was over.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    limit: &'static str,
}

/// What kind of block was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Written {
    kind: &'static str,
}

/// Why a watcher was told of a gap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Told {
    reason: &'static str,
}

/// How a watch ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    cause: &'static str,
}

impl Refused {
    const fn of(limit: Limit) -> Self {
        Self {
            limit: limit.as_str(),
        }
    }
}

impl Told {
    const fn of(reason: GapReason) -> Self {
        Self {
            reason: reason.as_str(),
        }
    }
}

impl Ended {
    const fn of(end: WatchEnd) -> Self {
        Self {
            cause: end.as_str(),
        }
    }
}

/// What a block says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Acknowledgement,
    Event,
    Heartbeat,
    Last,
}

impl BlockKind {
    const ALL: [Self; 4] = [
        Self::Acknowledgement,
        Self::Event,
        Self::Heartbeat,
        Self::Last,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Acknowledgement => "acknowledgement",
            Self::Event => "event",
            Self::Heartbeat => "heartbeat",
            Self::Last => "last",
        }
    }
}

/// How a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchEnd {
    Closing,
    Left,
    Resync,
    Revoked,
    Stalled,
}

impl WatchEnd {
    const ALL: [Self; 5] = [
        Self::Closing,
        Self::Left,
        Self::Resync,
        Self::Revoked,
        Self::Stalled,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Closing => "closing",
            Self::Left => "left",
            Self::Resync => "resync",
            Self::Revoked => "revoked",
            Self::Stalled => "stalled",
        }
    }
}

/// The counters; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) connections: Gauge,
    pub(crate) handshakes: Counter,
    pub(crate) handshakes_failed: Counter,
    pub(crate) retries: Counter,
    pub(crate) request_bytes: Counter,
    pub(crate) answer_bytes: Counter,
    pub(crate) malformed: Counter,
    pub(crate) watches: Gauge,
    pub(crate) withheld: Counter,
    requests: Family<Answered, Counter>,
    refusals: Family<Refused, Counter>,
    /// By [`BlockKind`]: a look into a family per block and watcher would cost more than the block.
    blocks: [Counter; BlockKind::ALL.len()],
    block_bytes: Counter,
    gaps: Family<Told, Counter>,
    watches_ended: Family<Ended, Counter>,
}

impl Metrics {
    /// Makes the counters known to `registry`.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let mark = registry.sub_registry_with_prefix("tidings_mark");
        let blocks: Family<Written, Counter> =
            family(mark, "blocks", "Blocks written to watches by kind");
        let metrics = Self {
            connections: gauge(mark, "connections", "Open connections"),
            handshakes: counter(mark, "handshakes", "Handshakes completed"),
            handshakes_failed: counter(
                mark,
                "handshakes_failed",
                "Handshakes that ended without a connection",
            ),
            retries: counter(
                mark,
                "address_proofs",
                "Dialers asked to prove their address",
            ),
            requests: family(mark, "requests", "Requests by verb and status"),
            refusals: family(mark, "refusals", "Refusals by the limit that was met"),
            malformed: counter(mark, "malformed", "Requests that broke the grammar"),
            request_bytes: counter(mark, "request_bytes", "Bytes of requests read"),
            answer_bytes: counter(mark, "answer_bytes", "Bytes of answers written"),
            watches: gauge(mark, "watches", "Running watches"),
            watches_ended: family(mark, "watches_ended", "Watches that ended, by cause"),
            blocks: BlockKind::ALL.map(|kind| {
                blocks.get_or_create_owned(&Written {
                    kind: kind.as_str(),
                })
            }),
            block_bytes: counter(mark, "block_bytes", "Bytes of blocks written"),
            withheld: counter(mark, "withheld", "Changes left out for lack of a right"),
            gaps: family(mark, "gaps", "Gaps told to watchers by reason"),
        };
        metrics.begin_at_zero();
        metrics
    }

    /// Makes every label known that can come up: a series that appears with its first count is
    /// one whose first count no rate shows.
    fn begin_at_zero(&self) {
        for limit in Limit::ALL {
            self.refusals.get_or_create(&Refused::of(limit)).inc_by(0);
        }
        for reason in GapReason::ALL {
            self.gaps.get_or_create(&Told::of(reason)).inc_by(0);
        }
        for end in WatchEnd::ALL {
            self.watches_ended.get_or_create(&Ended::of(end)).inc_by(0);
        }
    }

    pub(crate) fn answered(&self, verb: &'static str, status: &'static str) {
        self.requests
            .get_or_create(&Answered { verb, status })
            .inc();
    }

    pub(crate) fn refused(&self, limit: Limit) {
        self.refusals.get_or_create(&Refused::of(limit)).inc();
    }

    pub(crate) fn wrote_block(&self, kind: BlockKind, bytes: usize) {
        self.blocks[kind as usize].inc();
        self.block_bytes.inc_by(bytes as u64);
    }

    pub(crate) fn told_gap(&self, reason: GapReason) {
        self.gaps.get_or_create(&Told::of(reason)).inc();
    }

    pub(crate) fn watch_ended(&self, end: WatchEnd) {
        self.watches_ended.get_or_create(&Ended::of(end)).inc();
    }
}

fn counter(registry: &mut Registry, name: &str, help: &str) -> Counter {
    let made = Counter::default();
    registry.register(name, help, made.clone());
    made
}

fn gauge(registry: &mut Registry, name: &str, help: &str) -> Gauge {
    let made = Gauge::default();
    registry.register(name, help, made.clone());
    made
}

fn family<L>(registry: &mut Registry, name: &str, help: &str) -> Family<L, Counter>
where
    L: Clone + std::fmt::Debug + Eq + std::hash::Hash + EncodeLabelSet + Send + Sync + 'static,
{
    let made = Family::default();
    registry.register(name, help, made.clone());
    made
}
