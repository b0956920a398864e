//! What all connections of one web listener share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use auth::Authority;
use documents::FileStore;
use gate::{Admission, Buckets, Memory, Network, Phase, Rate, Window};
use jiff::Timestamp;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::idempotency::Keys;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::origin::Origins;
use crate::status::{self, Began};
use crate::stream::{Feeds, StreamConfig, Streams};
use crate::who::WebTokens;

/// What everything that is held follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    /// The revision of the grants: when it moves, each held stream is asked for its right again.
    pub(crate) grants: u64,
    pub(crate) phase: Phase,
}

/// What the handlers draw on.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    pub(crate) store: FileStore,
    pub(crate) authority: Authority,
    pub(crate) keys: Keys,
    pub(crate) memory: Memory,
    pub(crate) web_tokens: Option<WebTokens>,
    pub(crate) streams: StreamConfig,
}

#[derive(Debug)]
pub(crate) struct Face {
    pub(crate) admission: Admission,
    /// Bytes of answers that may wait for their readers.
    pub(crate) answers: Arc<Semaphore>,
    pub(crate) authority: Authority,
    pub(crate) began: Began,
    /// Connections: what a drain waits for at its end.
    pub(crate) connections: TaskTracker,
    /// Streams that are held, whichever way: what a drain waits for before its end.
    pub(crate) held: TaskTracker,
    pub(crate) keys: Keys,
    pub(crate) limits: Limits,
    pub(crate) memory: Memory,
    pub(crate) metrics: Metrics,
    pub(crate) origins: Origins,
    /// Slots of requests that are worked on.
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) signal: watch::Sender<Signal>,
    /// Cancelled with [`Phase::Stopping`]. Apart from the signal, so that an idle connection isn't
    /// woken for whatever else that says.
    pub(crate) stopping: CancellationToken,
    pub(crate) store: FileStore,
    pub(crate) streams: Streams,
    pub(crate) uploads: Arc<Semaphore>,
    /// Places of those who look at the status.
    pub(crate) viewers: Arc<Semaphore>,
    pub(crate) web_tokens: Option<WebTokens>,
    rates: Mutex<Buckets>,
    tickets: AtomicU64,
}

impl Face {
    pub(crate) fn new(
        limits: Limits,
        origins: Origins,
        sources: Sources,
        metrics: Metrics,
        now: Instant,
    ) -> Arc<Self> {
        let Sources {
            store,
            authority,
            keys,
            memory,
            web_tokens,
            streams,
        } = sources;
        let rate = Rate {
            per_second: limits.rate_per_second,
            burst: limits.rate_burst,
        };
        let start = Signal {
            grants: authority.revision(),
            phase: Phase::Serving,
        };
        let face = Arc::new(Self {
            admission: Admission::new(limits.bounds(), now),
            answers: Arc::new(Semaphore::new(limits.answer_bytes)),
            began: Began(now),
            connections: TaskTracker::new(),
            held: TaskTracker::new(),
            keys,
            memory,
            metrics,
            origins,
            rates: Mutex::new(Buckets::new(rate, limits.rate_addresses, now)),
            requests: Arc::new(Semaphore::new(limits.requests)),
            signal: watch::Sender::new(start),
            stopping: CancellationToken::new(),
            store,
            streams: Streams::new(streams, &limits.streams, now),
            tickets: AtomicU64::new(0),
            uploads: Arc::new(Semaphore::new(limits.uploads)),
            viewers: Arc::new(Semaphore::new(status::VIEWERS_MAX)),
            web_tokens,
            authority,
            limits,
        });
        face.follow_grants();
        face
    }

    fn follow_grants(self: &Arc<Self>) {
        // The authority outlives a listener and must not keep it alive.
        let face = Arc::downgrade(self);
        self.authority.on_change(move || {
            if let Some(face) = face.upgrade() {
                let grants = face.authority.revision();
                face.signal.send_modify(|signal| signal.grants = grants);
            }
        });
    }

    /// The feeds that can be followed.
    pub(crate) fn feeds(&self) -> Feeds<'_> {
        Feeds {
            documents: self.store.feed(),
        }
    }

    /// Takes one of the requests that `network` may make now.
    pub(crate) fn take_rate(&self, network: Network, now: Instant) -> bool {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        rates.take(network, now)
    }

    /// The time by the clock that expiries go by.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Where the server is on its way out.
    pub(crate) fn phase(&self) -> Phase {
        self.signal.borrow().phase
    }

    /// Goes on to `phase`.
    pub(crate) fn enter(&self, phase: Phase) {
        self.signal.send_modify(|signal| signal.phase = phase);
        if phase == Phase::Stopping {
            self.stopping.cancel();
        }
    }

    /// The window of a drain that begins at `now`.
    pub(crate) fn window(&self, now: Instant) -> Window {
        let Limits {
            closing_step,
            closing_window_max,
            ..
        } = self.limits;
        Window::new(now, self.held.len(), closing_step, closing_window_max)
    }

    /// The next place in the order of leaving.
    pub(crate) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }
}
