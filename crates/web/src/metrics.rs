//! What the web faces count, under names that begin with `tidings_web_`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};

use crate::limits::Limit;
use crate::stream::StreamMetrics;

/// A request by its route and the status of its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: &'static str,
    status: u16,
}

/// The bound that somebody was over.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    limit: &'static str,
}

/// The counters; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) connections: Gauge,
    pub(crate) handshakes_failed: Counter,
    pub(crate) foreign: Counter,
    pub(crate) malformed: Counter,
    pub(crate) replayed: Counter,
    pub(crate) streams: StreamMetrics,
    requests: Family<Answered, Counter>,
    refusals: Family<Refused, Counter>,
    /// The sum of `requests`, for the status page.
    total: Arc<AtomicU64>,
}

impl Metrics {
    /// Makes the counters known to `registry`.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let streams = StreamMetrics::register(registry);
        let web = registry.sub_registry_with_prefix("tidings_web");
        let refusals: Family<Refused, Counter> =
            add(web, "refusals", "Refusals by the limit that was met");
        for limit in Limit::ALL {
            // Each has its series from the start, so that its first refusal is a change.
            let limit = limit.as_str();
            drop(refusals.get_or_create(&Refused { limit }));
        }
        Self {
            connections: add(web, "connections", "Open connections"),
            handshakes_failed: add(
                web,
                "handshakes_failed",
                "TLS handshakes that ended without a connection",
            ),
            foreign: add(
                web,
                "foreign",
                "Requests of a foreign host or origin refused",
            ),
            malformed: add(
                web,
                "malformed",
                "Connections ended by a request that is none",
            ),
            replayed: add(
                web,
                "replayed",
                "Writes answered from their idempotency key",
            ),
            streams,
            requests: add(web, "requests", "Requests by route and status"),
            refusals,
            total: Arc::default(),
        }
    }

    /// Counts an answer of `route`, the operation's name or `none`.
    pub(crate) fn answered(&self, route: &'static str, status: u16) {
        self.total.fetch_add(1, Ordering::Relaxed);
        let answered = Answered { route, status };
        self.requests.get_or_create(&answered).inc();
    }

    /// All answers so far.
    pub(crate) fn requests_total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Counts a refusal.
    pub(crate) fn refused(&self, limit: Limit) {
        let limit = limit.as_str();
        self.refusals.get_or_create(&Refused { limit }).inc();
    }
}

/// Registers a metric of the kind that is wanted.
pub(crate) fn add<M>(registry: &mut Registry, name: &'static str, help: &'static str) -> M
where
    M: Metric + Clone + Default,
{
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}
