//! One look at the counters.

use std::time::Instant;

use channels::Hub;
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
        let channels = face.streams.channels.as_ref();
        let worlds: Vec<Value> = std::iter::once(self.documents())
            .chain(channels.map(Self::channels))
            .collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": face.began.0.elapsed().as_secs(),
            "connections": face.metrics.connections.get(),
            "held": face.held.len(),
            "requests": face.metrics.requests_total(),
            "worlds": worlds,
        })
    }

    fn channels(hub: &Hub) -> Value {
        let (stats, feed) = (hub.stats(), hub.feed().stats());
        json!({
            "name": "channels",
            "topics": stats.topics,
            "present": stats.present,
            "cursor": hub.head().to_string(),
            "watches": feed.subscriptions,
            "changes": stats.published,
            "told": feed.touched,
            "gaps": gaps(&feed),
        })
    }

    fn documents(self) -> Value {
        let store = &self.face.store;
        let (stats, health) = (store.feed().stats(), store.health());
        json!({
            "name": "documents",
            "documents": health.documents,
            "writable": health.poisoned.is_none(),
            "cursor": store.feed().head().to_string(),
            "watches": stats.subscriptions,
            "changes": stats.published,
            "told": stats.touched,
            "gaps": gaps(&stats),
        })
    }
}

/// Everything that was told to have been missed: on the way, and by a cursor at the start.
fn gaps(stats: &feed::Stats) -> u64 {
    let on_the_way = stats.gaps_epoch + stats.gaps_hole + stats.gaps_lapped;
    on_the_way + stats.refused_ahead + stats.refused_epoch + stats.refused_too_old
}
