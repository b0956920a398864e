//! What all connections of one Mark listener share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use auth::Authority;
use documents::{Change, FileStore};
use feed::Feed;
use gate::{Admission, Buckets, Memory, Network, Phase, Rate, Window};
use jiff::Timestamp;
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;

use crate::handler::Handler;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::share::Shares;

/// What every serving task follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    /// The revision of the grants: when it moves, each running watch is asked for its right again.
    pub(crate) grants: u64,
    pub(crate) phase: Phase,
}

/// What a face is made of besides its sources.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) memory: Memory,
    pub(crate) metrics: Metrics,
}

#[derive(Debug)]
pub(crate) struct Face {
    pub(crate) admission: Admission,
    /// Bytes of answers that may wait for their readers.
    pub(crate) answers: Semaphore,
    /// What of them one network may leave unread.
    pub(crate) answer_shares: Shares,
    pub(crate) authority: Authority,
    pub(crate) feed: Feed<Change>,
    pub(crate) handler: Handler,
    pub(crate) limits: Limits,
    pub(crate) memory: Memory,
    pub(crate) metrics: Metrics,
    /// Requests under way, and terminal blocks that nobody has acknowledged: what a drain waits
    /// for before it closes the connections under them.
    pub(crate) pending: TaskTracker,
    /// Slots of requests that are worked on.
    pub(crate) requests: Semaphore,
    /// What of them one network may take.
    pub(crate) request_shares: Shares,
    pub(crate) signal: watch::Sender<Signal>,
    pub(crate) uploads: Arc<Semaphore>,
    /// What of them one network may take.
    pub(crate) upload_shares: Shares,
    /// Places of running watches.
    pub(crate) watches: Arc<Semaphore>,
    rates: Mutex<Buckets>,
    tickets: AtomicU64,
}

impl Face {
    pub(crate) fn new(
        shared: Shared,
        store: FileStore,
        authority: Authority,
        now: Instant,
    ) -> Arc<Self> {
        let Shared {
            limits,
            memory,
            metrics,
        } = shared;
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
            answers: Semaphore::new(limits.answer_bytes),
            answer_shares: Shares::new(limits.answer_bytes_per_address()),
            feed: store.feed().clone(),
            handler: Handler::new(store, authority.clone(), Timestamp::now),
            memory,
            metrics,
            pending: TaskTracker::new(),
            rates: Mutex::new(Buckets::new(rate, limits.rate_addresses, now)),
            requests: Semaphore::new(limits.requests),
            request_shares: Shares::new(limits.requests_per_address()),
            signal: watch::Sender::new(start),
            tickets: AtomicU64::new(0),
            upload_shares: Shares::new(limits.uploads_per_address()),
            uploads: Arc::new(Semaphore::new(limits.uploads)),
            watches: Arc::new(Semaphore::new(limits.watches)),
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

    /// Takes one of the requests that `network` may make now.
    pub(crate) fn take_rate(&self, network: Network, now: Instant) -> bool {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        rates.take(network, now)
    }

    /// Where the server is on its way out.
    pub(crate) fn phase(&self) -> Phase {
        self.signal.borrow().phase
    }

    /// Goes on to `phase`.
    pub(crate) fn enter(&self, phase: Phase) {
        self.signal.send_modify(|signal| signal.phase = phase);
    }

    /// Watches that run or wait for the acknowledgement of their last block.
    pub(crate) fn watch_count(&self) -> usize {
        self.limits.watches - self.watches.available_permits()
    }

    /// The window of a drain that begins at `now`.
    pub(crate) fn window(&self, now: Instant) -> Window {
        let Limits {
            closing_step,
            closing_window_max,
            ..
        } = self.limits;
        Window::new(now, self.watch_count(), closing_step, closing_window_max)
    }

    /// The next place in the order of leaving.
    pub(crate) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }
}
