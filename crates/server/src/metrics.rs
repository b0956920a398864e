//! What the server counts beside its faces: the sources read at each scrape, and reloads.
//!
//! Feed, journal and store keep plain numbers of their own and know no registry; they are asked
//! when somebody scrapes, so a number costs nothing until it is read. Every label that can come up
//! has its series from the start. `docs/metrics.md` lists every name.

mod certificate;
mod channels;
mod sources;

use std::borrow::Cow;
use std::time::Duration;

use ::channels::Hub;
use auth::Authority;
use documents::FileStore;
use gate::{Certificate, Memory};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use certificate::CertificateMetrics;
use channels::ChannelMetrics;
use sources::{AuthMetrics, DocumentsMetrics, FeedMetrics, JournalMetrics, MemoryMetrics};

/// What is asked at each scrape.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) authority: Authority,
    pub(crate) certificate: Certificate,
    pub(crate) channels: Hub,
    pub(crate) memory: Memory,
    /// How long the store took to open.
    pub(crate) opening: Duration,
    pub(crate) store: FileStore,
}

/// Feed and journal bear the name of what they carry, since each source has its own.
const OF_DOCUMENTS: (Cow<'static, str>, Cow<'static, str>) =
    (Cow::Borrowed("source"), Cow::Borrowed("documents"));

impl Sources {
    /// Makes everything known to `registry`; gives the counters of reloads, of the grants and of
    /// the certificate.
    pub(crate) fn register(&self, registry: &mut Registry) -> (Reloads, Reloads) {
        let documents = registry.sub_registry_with_prefix("tidings_documents");
        documents.register_collector(Box::new(DocumentsMetrics {
            store: self.store.clone(),
            opening: self.opening,
        }));
        let channels = registry.sub_registry_with_prefix("tidings_channels");
        channels.register_collector(Box::new(ChannelMetrics(self.channels.clone())));
        let feed = registry.sub_registry_with_prefix("tidings_feed");
        feed.sub_registry_with_label(OF_DOCUMENTS)
            .register_collector(Box::new(FeedMetrics(self.store.feed().clone())));
        let journal = registry.sub_registry_with_prefix("tidings_journal");
        journal
            .sub_registry_with_label(OF_DOCUMENTS)
            .register_collector(Box::new(JournalMetrics(self.store.clone())));
        let memory = registry.sub_registry_with_prefix("tidings_memory");
        memory.register_collector(Box::new(MemoryMetrics(self.memory.clone())));
        let auth = registry.sub_registry_with_prefix("tidings_auth");
        auth.register_collector(Box::new(AuthMetrics(self.authority.clone())));
        let authority_reloads = Reloads::register(auth, "Reloads of tokens and closed places");
        let certificate = registry.sub_registry_with_prefix("tidings_certificate");
        certificate.register_collector(Box::new(CertificateMetrics(self.certificate.clone())));
        let certificate_reloads = Reloads::register(certificate, "Reloads of the certificate");
        (authority_reloads, certificate_reloads)
    }
}

/// What a reload led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It could not be taken; what was in force stays.
    Kept,
    /// It is in force.
    Taken,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reloaded {
    outcome: &'static str,
}

/// Counts reloads of one thing. Clones share the counts.
#[derive(Clone, Debug)]
pub(crate) struct Reloads(Family<Reloaded, Counter>);

impl Reloads {
    /// Makes the counter known under the prefix of `registry`.
    pub(crate) fn register(registry: &mut Registry, help: &str) -> Self {
        let counted: Family<Reloaded, Counter> = Family::default();
        registry.register("reloads", help, counted.clone());
        for outcome in [Outcome::Kept, Outcome::Taken] {
            counted.get_or_create(&outcome.label()).inc_by(0);
        }
        Self(counted)
    }

    pub(crate) fn count(&self, outcome: Outcome) {
        self.0.get_or_create(&outcome.label()).inc();
    }
}

impl Outcome {
    const fn label(self) -> Reloaded {
        let outcome = match self {
            Self::Kept => "kept",
            Self::Taken => "taken",
        };
        Reloaded { outcome }
    }
}
