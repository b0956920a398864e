//! One look at the counters.

use std::time::Instant;

use serde_json::{Value, json};

use crate::face::Face;

/// When the listener began, for the uptime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began(pub(crate) Instant);

/// What the server does at one moment. Counts are totals; whoever looks makes rates of two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample<'a> {
    face: &'a Face,
}

impl<'a> Sample<'a> {
    pub(super) fn of(face: &'a Face) -> Self {
        Self { face }
    }

    pub(super) fn to_json(self) -> Value {
        let face = self.face;
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": face.began.0.elapsed().as_secs(),
            "connections": face.metrics.connections.get(),
            "held": face.held.len(),
            "requests": face.metrics.requests_total(),
            "worlds": [self.documents()],
        })
    }

    fn documents(self) -> Value {
        let store = &self.face.store;
        let (stats, health) = (store.feed().stats(), store.health());
        let gaps = stats.gaps_epoch + stats.gaps_hole + stats.gaps_lapped;
        let resyncs = stats.refused_ahead + stats.refused_epoch + stats.refused_too_old;
        json!({
            "name": "documents",
            "documents": health.documents,
            "writable": health.poisoned.is_none(),
            "cursor": store.feed().head().to_string(),
            "watches": stats.subscriptions,
            "changes": stats.published,
            "told": stats.touched,
            "gaps": gaps + resyncs,
        })
    }
}
