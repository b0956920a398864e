//! What streams and sockets count, under names that begin with `tidings_stream_`.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use wire::GapReason;

use super::voice::Voice;
use crate::fanout::End;
use crate::metrics::add;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// A position.
    Beat,
    /// Changes that were due at once.
    Changes,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Face {
    face: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Written {
    face: &'static str,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    face: &'static str,
    cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Gap {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    code: &'static str,
}

/// The counters; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct StreamMetrics {
    open: Family<Face, Gauge>,
    ended: Family<Ended, Counter>,
    frames: Family<Written, Counter>,
    gaps: Family<Gap, Counter>,
    refused: Family<Refused, Counter>,
    pub(crate) departed: Counter,
    pub(crate) revoked: Counter,
    pub(crate) turned_away: Counter,
    pub(crate) unsaid: Counter,
    pub(crate) withheld: Counter,
}

impl StreamMetrics {
    /// Makes the counters known to `registry`.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let streams = registry.sub_registry_with_prefix("tidings_stream");
        Self {
            open: add(streams, "open", "Streams and sockets that are open"),
            ended: add(streams, "ended", "Streams and sockets that ended, by cause"),
            frames: add(
                streams,
                "frames",
                "Copies of frames handed to sockets, by kind",
            ),
            gaps: add(streams, "gaps", "Gaps told, by reason"),
            refused: add(streams, "refused", "Frames of sockets refused, by code"),
            departed: add(
                streams,
                "departed",
                "Watches that went their own way because their socket was blocked",
            ),
            revoked: add(
                streams,
                "revoked",
                "Watches ended for a right that was taken away",
            ),
            turned_away: add(
                streams,
                "turned_away",
                "Sockets closed because their worker had too many to take in",
            ),
            unsaid: add(streams, "unsaid", "Goodbyes that could not be said"),
            withheld: add(streams, "withheld", "Changes left out for lack of a right"),
        }
    }

    pub(crate) fn opened(&self, voice: Voice) {
        self.open.get_or_create(&Face { face: name(voice) }).inc();
    }

    pub(crate) fn closed(&self, voice: Voice, end: End) {
        let face = name(voice);
        let cause = match end {
            End::Closed => "closed",
            End::Left => "left",
            End::Stalled => "stalled",
        };
        self.open.get_or_create(&Face { face }).dec();
        self.ended.get_or_create(&Ended { face, cause }).inc();
    }

    pub(crate) fn wrote(&self, voice: Voice, kind: FrameKind, copies: u64) {
        let written = Written {
            face: name(voice),
            kind: match kind {
                FrameKind::Beat => "beat",
                FrameKind::Changes => "changes",
            },
        };
        self.frames.get_or_create(&written).inc_by(copies);
    }

    pub(crate) fn told_gap(&self, reason: GapReason) {
        let reason = reason.as_str();
        self.gaps.get_or_create(&Gap { reason }).inc();
    }

    pub(crate) fn refused(&self, code: &'static str) {
        self.refused.get_or_create(&Refused { code }).inc();
    }
}

const fn name(voice: Voice) -> &'static str {
    match voice {
        Voice::Lines => "ndjson",
        Voice::Socket => "websocket",
        Voice::Sse => "sse",
    }
}
