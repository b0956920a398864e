//! Collectors that ask what keeps numbers of its own.

use std::fmt;
use std::time::Duration;

use auth::Authority;
use documents::{Change, FileStore};
use feed::Feed;
use gate::Memory;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use wire::GapReason;

/// Writes one metric after the other.
pub(super) struct Encoder<'a>(pub(super) DescriptorEncoder<'a>);

impl Encoder<'_> {
    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.one(name, help, &ConstCounter::new(value))
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.one(name, help, &ConstGauge::new(value))
    }

    fn one(&mut self, name: &str, help: &str, metric: &dyn EncodeMetric) -> fmt::Result {
        let encoder = self
            .0
            .encode_descriptor(name, help, None, metric.metric_type())?;
        metric.encode(encoder)
    }

    /// A counter with one series per value of `label`.
    pub(super) fn counters<const N: usize>(
        &mut self,
        (name, label): (&str, &'static str),
        help: &str,
        values: [(&'static str, u64); N],
    ) -> fmt::Result {
        let kind = ConstCounter::new(0u64).metric_type();
        let mut family = self.0.encode_descriptor(name, help, None, kind)?;
        for (of, value) in values {
            let labels = [(label, of)];
            ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// The store of documents.
#[derive(Debug)]
pub(crate) struct DocumentsMetrics {
    pub(crate) store: FileStore,
    /// How long the store took to open.
    pub(crate) opening: Duration,
}

impl Collector for DocumentsMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Encoder(encoder);
        let stats = self.store.stats();
        let poisoned = self.store.health().poisoned.is_some();
        let report = self.store.report();
        to.gauge(
            "stored",
            "Documents, archived ones included.",
            stats.documents as u64,
        )?;
        to.gauge(
            "poisoned",
            "1 while writes are refused until a restart.",
            poisoned.into(),
        )?;
        to.counter(
            "broken_chains",
            "Answers of VERSIONS that said that the chain is broken.",
            stats.chains_broken,
        )?;
        to.counter(
            "edits_by_hand",
            "Current versions that were found edited by hand.",
            stats.edits_by_hand,
        )?;
        to.one(
            "opening_seconds",
            "How long the store took to open.",
            &ConstGauge::new(self.opening.as_secs_f64()),
        )?;
        to.gauge(
            "opening_set_aside",
            "Files that the opening gave hidden names because nothing proved them.",
            report.set_aside.len() as u64,
        )?;
        to.gauge(
            "opening_taken_back",
            "Writes that the opening took back because their version never landed.",
            report.taken_back as u64,
        )?;
        to.gauge(
            "opening_new_epoch",
            "1 if the opening began a new epoch.",
            report.new_epoch.is_some().into(),
        )
    }
}

/// The feed of one source.
#[derive(Debug)]
pub(crate) struct FeedMetrics(pub(crate) Feed<Change>);

impl Collector for FeedMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Encoder(encoder);
        let stats = self.0.stats();
        to.counter("published", "Changes published.", stats.published)?;
        to.counter(
            "touched",
            "Watches that changes concerned, one per change and watch.",
            stats.touched,
        )?;
        to.gauge(
            "subscriptions",
            "Subscriptions that are alive.",
            stats.subscriptions as u64,
        )?;
        to.gauge("head", "The last sequence number.", self.0.head().seq.get())?;
        to.counters(
            ("gaps", "reason"),
            "Gaps that running subscriptions met.",
            [
                (GapReason::Epoch.as_str(), stats.gaps_epoch),
                (GapReason::Hole.as_str(), stats.gaps_hole),
                (GapReason::Lapped.as_str(), stats.gaps_lapped),
            ],
        )?;
        to.counters(
            ("cursors_refused", "reason"),
            "Cursors that could not be resumed from.",
            [
                (GapReason::Ahead.as_str(), stats.refused_ahead),
                (GapReason::Epoch.as_str(), stats.refused_epoch),
                (GapReason::TooOld.as_str(), stats.refused_too_old),
            ],
        )
    }
}

/// The journal of one source.
#[derive(Debug)]
pub(crate) struct JournalMetrics(pub(crate) FileStore);

impl Collector for JournalMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Encoder(encoder);
        let stats = self.0.stats().journal;
        to.counter(
            "syncs",
            "Batches made durable, each by one sync.",
            stats.batches,
        )?;
        to.counter(
            "failures",
            "Batches that could not be made durable.",
            stats.failures,
        )?;
        to.counter("records", "Records made durable.", stats.records)?;
        to.counter("written_bytes", "Bytes made durable.", stats.bytes)?;
        to.counters(
            ("refusals", "limit"),
            "Records refused, by the limit that was met.",
            [("queue_bytes", stats.refusals)],
        )
    }
}

/// The grants in force.
#[derive(Debug)]
pub(crate) struct AuthMetrics(pub(crate) Authority);

impl Collector for AuthMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Encoder(encoder);
        let grants = self.0.current();
        let stale = self.0.problem().is_some();
        to.gauge("tokens", "Tokens in force.", grants.token_count() as u64)?;
        to.gauge(
            "closed_places",
            "Places closed for reading.",
            grants.closed_count() as u64,
        )?;
        to.gauge(
            "stale",
            "1 while the files can't be taken and older grants are in force.",
            stale.into(),
        )
    }
}

/// The memory budget.
#[derive(Debug)]
pub(crate) struct MemoryMetrics(pub(crate) Memory);

impl Collector for MemoryMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Encoder(encoder);
        let Self(memory) = self;
        to.gauge(
            "resident_bytes",
            "Resident memory at the last sample.",
            memory.resident_bytes(),
        )?;
        to.gauge(
            "budget_bytes",
            "Resident memory above which newcomers are refused; 0 is no bound.",
            memory.budget_bytes(),
        )?;
        to.gauge(
            "over",
            "1 while newcomers are refused for want of memory.",
            memory.is_over().into(),
        )
    }
}
