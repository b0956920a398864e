//! Connections that are kept: one for each server and each kind of trust in it.
//!
//! A connection carries any number of requests and watches. It is given up when it failed, not
//! when one of its streams did: giving up means that nobody gets it again, while whoever still uses
//! it, an open watch for one, goes on undisturbed. Two callers that need the same server at once
//! wait for one dial. Who waits for a dial that fails tries its own, within its own deadline.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use quinn::Connection;

use crate::address::ServerAddress;
use crate::dial::{DialError, Dialer};
use crate::trust::{OnFirstUse, Trust};

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
            }),
        }
    }

    /// Moves all connections to new sockets. Requests and watches go on without a new cursor: call
    /// this when the network of the machine has changed.
    pub fn rebind(&self) -> io::Result<()> {
        self.shared.dialer.rebind()
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

fn is_open(place: &Option<Connection>) -> bool {
    place
        .as_ref()
        .is_some_and(|kept| kept.close_reason().is_none())
}
