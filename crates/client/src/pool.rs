//! Connections that are kept: one for each server and each kind of trust in it.
//!
//! A connection carries any number of requests and watches. It is given up when it failed, not
//! when one of its streams did: giving up means that nobody gets it again, while whoever still uses
//! it, an open watch for one, goes on undisturbed. Two callers that need the same server at once
//! wait for one dial. Who waits for a dial that fails tries its own, within its own deadline.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use quinn::Connection;
use tokio::task::JoinSet;
use wire::{Request, Verb};

use crate::address::ServerAddress;
use crate::dial::{DialError, Dialer};
use crate::exchange;
use crate::network::{self, Finding, LOOK_PERIOD, Monitor};
use crate::trust::{OnFirstUse, Trust};

/// How long a connection may take to give a sign of life after the machine slept.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Empty places are swept when the pool has this many: a client rarely speaks to more servers.
const SLOTS_SWEEP: usize = 64;

/// Connections to any number of servers. Clones share them.
#[derive(Clone, Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    dialer: Dialer,
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
    /// The task that notices changes of the network runs.
    is_monitored: AtomicBool,
}

/// Who is connected to, and how it has to prove itself: a connection that was made without a
/// check is never handed to somebody who wants one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) server: ServerAddress,
    pub(crate) trust: Trust,
}

/// Held for the length of a dial, so that the others wait for it.
type Slot = tokio::sync::Mutex<Option<Connection>>;

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

impl Pool {
    /// An empty pool. A certificate that is pinned at first use is logged.
    pub fn new() -> Self {
        Self::with(None)
    }

    /// An empty pool that tells `on_first_use` of each certificate that is pinned.
    pub fn telling(
        on_first_use: impl Fn(&ServerAddress, wire::ContentHash) + Send + Sync + 'static,
    ) -> Self {
        Self::with(Some(Arc::new(on_first_use)))
    }

    fn with(on_first_use: Option<OnFirstUse>) -> Self {
        Self {
            shared: Arc::new(Shared {
                dialer: Dialer::new(on_first_use),
                slots: Mutex::new(HashMap::new()),
                is_monitored: AtomicBool::new(false),
            }),
        }
    }

    /// Moves all connections to new sockets. Requests and watches go on without a new cursor: call
    /// this when the network of the machine has changed.
    pub fn rebind(&self) -> io::Result<()> {
        self.shared.dialer.rebind()
    }

    /// Moves all connections to new sockets and asks each for a sign of life; one that gives none
    /// within three seconds is closed, so that its watches reconnect at once. For a program that
    /// knows better than the clock that the machine slept or the network was away.
    ///
    /// Cancelling leaves some connections unasked.
    pub async fn check(&self) -> io::Result<()> {
        self.rebind()?;
        let mut probes = JoinSet::new();
        for connection in self.open_connections() {
            probes.spawn(async move {
                let probe = tokio::time::timeout(PROBE_TIMEOUT, probe(&connection));
                if !matches!(probe.await, Ok(true)) {
                    tracing::debug!(server = %connection.remote_address(), "no sign of life");
                    connection.close(quinn::VarInt::from_u32(0), b"");
                }
            });
        }
        probes.join_all().await;
        Ok(())
    }

    /// Closes all connections and waits until the servers were told.
    ///
    /// Cancelling leaves the connections closed, and the servers perhaps untold.
    pub async fn close(&self) {
        self.shared.dialer.close().await;
    }

    /// The connection to `key`, dialled if there is none. Cancelling leaves none half made.
    pub(crate) async fn get(&self, key: &Key) -> Result<Connection, DialError> {
        let slot = self.slot(key);
        let mut place = slot.lock().await;
        if let Some(connection) = place.as_ref().filter(|kept| kept.close_reason().is_none()) {
            return Ok(connection.clone());
        }
        let connection = self.shared.dialer.dial(&key.server, &key.trust).await?;
        *place = Some(connection.clone());
        Ok(connection)
    }

    /// Hands out `connection` no more. What runs on it goes on.
    pub(crate) async fn evict(&self, key: &Key, connection: &Connection) {
        let slot = self.slot(key);
        let mut place = slot.lock().await;
        if place
            .as_ref()
            .is_some_and(|kept| kept.stable_id() == connection.stable_id())
        {
            *place = None;
            tracing::debug!(server = %key.server, "connection given up");
        }
    }

    /// Begins to notice changes of the network, once. The task ends with the pool.
    pub(crate) fn monitor(&self) {
        if !self.shared.is_monitored.swap(true, Ordering::AcqRel) {
            tokio::spawn(monitor(Arc::downgrade(&self.shared)));
        }
    }

    /// The connections that are kept and open. One that is being dialled is none yet.
    fn open_connections(&self) -> Vec<Connection> {
        let slots = self
            .shared
            .slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        slots
            .values()
            .filter_map(|slot| slot.try_lock().ok()?.clone())
            .filter(|kept| kept.close_reason().is_none())
            .collect()
    }

    fn slot(&self, key: &Key) -> Arc<Slot> {
        let mut slots = self
            .shared
            .slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= SLOTS_SWEEP {
            slots.retain(|_, slot| slot.try_lock().map_or(true, |place| is_open(&place)));
        }
        Arc::clone(slots.entry(key.clone()).or_default())
    }
}

/// Asks a connection for an answer to anything; true if one came.
async fn probe(connection: &Connection) -> bool {
    let request = Request::new(Verb::Fetch, "/health").encode();
    match request {
        Ok(request) => exchange::probe(connection, request).await,
        Err(_) => false,
    }
}

async fn monitor(shared: Weak<Shared>) {
    let mut monitor = Monitor::new(Instant::now(), SystemTime::now());
    loop {
        tokio::time::sleep(LOOK_PERIOD).await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let pool = Pool { shared };
        let connections = pool.open_connections();
        let routes = connections
            .iter()
            .map(Connection::remote_address)
            .filter_map(|server| Some((server, network::route(server)?)));
        let done = match monitor.look(Instant::now(), SystemTime::now(), routes) {
            Finding::Same => Ok(()),
            Finding::Moved => pool.rebind(),
            Finding::Slept => pool.check().await,
        };
        if let Err(error) = done {
            tracing::debug!(%error, "no new socket after a change of the network");
        }
    }
}

fn is_open(place: &Option<Connection>) -> bool {
    place
        .as_ref()
        .is_some_and(|kept| kept.close_reason().is_none())
}
