//! What all streams of one listener share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use channels::{Hub, Now};
use tokio::sync::watch;

use super::admission::Admission;
use super::limits::StreamLimits;
use crate::ask::Asker;
use crate::fanout::Fanout;

/// What streams and sockets draw on beside the documents.
#[derive(Clone, Debug, Default)]
pub struct StreamConfig {
    /// The build of the application that is current, if it is known at the start.
    pub build: Option<String>,
    /// The channels, if any are declared. Whoever made them also runs them.
    pub channels: Option<Hub>,
    /// Takes a token from `?token=` too, for clients that can't set a header. It may then stand in
    /// the logs of proxies.
    pub query_tokens: bool,
}

/// What all streams of one listener share.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) admission: Admission,
    pub(crate) asker: Asker,
    /// The current build; whoever is told of a newer one tells its application.
    pub(crate) build: watch::Sender<Option<Arc<str>>>,
    pub(crate) channels: Option<Hub>,
    pub(crate) fanout: Fanout,
    pub(crate) query_tokens: bool,
    began: Instant,
    /// Names this run in the names of sessions.
    run: String,
    sessions: AtomicU64,
}

impl Streams {
    pub(crate) fn new(config: StreamConfig, limits: &StreamLimits, now: Instant) -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            admission: Admission::new(limits, now),
            asker: Asker::default(),
            build: watch::Sender::new(config.build.map(Arc::from)),
            channels: config.channels,
            fanout: Fanout::default(),
            query_tokens: config.query_tokens,
            began: now,
            run: format!("{:x}", unix.map_or(0, |since| since.as_millis())),
            sessions: AtomicU64::new(0),
        }
    }

    /// A name that no other session has, on this node or after a restart.
    pub(crate) fn session(&self) -> String {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.run)
    }

    /// The time as the channels take it.
    pub(crate) fn now(&self) -> Now {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        Now {
            elapsed: self.began.elapsed(),
            unix_ms: unix.map_or(0, |since| {
                u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
            }),
        }
    }
}
