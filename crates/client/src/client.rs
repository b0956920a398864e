//! The handle on one server: its address, the token, whom to trust, and the tries of a request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wire::{DocPath, Metadata, Request, Response, Status, Verb};

use crate::address::ServerAddress;
use crate::backoff::{Backoff, Jitter};
use crate::cache::Cache;
use crate::error::{Error, Refusal, RequestError};
use crate::exchange::{DEADLINE, ExchangeError, exchange};
use crate::pool::{Key, Pool};
use crate::trust::Trust;

/// How often a request is sent at most.
pub(crate) const TRIES_MAX: u32 = 5;

/// Between two tries of a request that got no answer; jittered by half.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Before a request that was refused as one too many; doubled each time. A server's bucket refills
/// tens of requests in a second.
const RATE_PAUSE: Duration = Duration::from_millis(250);

/// A handle on one server. Clones are cheap and share its connections.
///
/// Every method may be called from any task of a Tokio runtime. A dropped (cancelled) call resets
/// its stream. Reads have then had no effect; a write may have landed or not.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    key: Key,
    token: Option<String>,
    pool: Pool,
    cache: Option<Cache>,
    patience: Duration,
}

/// What a [`Client`] is made of.
#[derive(Clone)]
pub struct Builder {
    server: ServerAddress,
    trust: Trust,
    token: Option<String>,
    pool: Option<Pool>,
    cache: Option<Cache>,
    patience: Duration,
}

impl Builder {
    /// Sends `token` with every request. Without one only what is public can be done.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Decides which certificates are accepted; the system's roots if this isn't called.
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Shares the connections of `pool` instead of having own ones.
    #[must_use]
    pub fn pool(mut self, pool: &Pool) -> Self {
        self.pool = Some(pool.clone());
        self
    }

    /// Keeps answers in `cache` and asks for what changed alone.
    #[must_use]
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Gives each try of a request this long for its answer; 10 s if this isn't called.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The client. Nothing is dialled before the first request.
    pub fn build(self) -> Client {
        Client {
            shared: Arc::new(Shared {
                key: Key {
                    server: self.server,
                    trust: self.trust,
                },
                token: self.token,
                pool: self.pool.unwrap_or_default(),
                cache: self.cache,
                patience: self.patience,
            }),
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("server", &self.server)
            .field("trust", &self.trust)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Begins a client of `server`.
    pub const fn builder(server: ServerAddress) -> Builder {
        Builder {
            server,
            trust: Trust::Roots,
            token: None,
            pool: None,
            cache: None,
            patience: DEADLINE,
        }
    }

    /// The server.
    pub fn server(&self) -> &ServerAddress {
        &self.shared.key.server
    }

    /// The connections.
    pub fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    /// Says goodbye on every connection of the pool. See [`Pool::close`].
    pub async fn close(&self) {
        self.shared.pool.close().await;
    }

    pub(crate) fn key(&self) -> &Key {
        &self.shared.key
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.shared.token.as_deref()
    }

    pub(crate) fn patience(&self) -> Duration {
        self.shared.patience
    }

    pub(crate) fn cache(&self) -> Option<&Cache> {
        self.shared.cache.as_ref()
    }

    /// A request with the token.
    pub(crate) fn request(&self, verb: Verb, path: &str) -> Request {
        let mut metadata = Metadata::new();
        if let Some(token) = self.token() {
            metadata.set("auth", token);
        }
        Request {
            metadata,
            ..Request::new(verb, path.to_owned())
        }
    }

    /// Sends a request that may be repeated and gives its answer, whatever its status.
    pub(crate) async fn ask(&self, request: &Request) -> Result<Response, Error> {
        let bytes = request.encode().map_err(RequestError::from)?;
        let mut tries = Tries::new();
        loop {
            let answer = self.send(bytes.clone()).await;
            match tries.after(&answer) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return answer.map_err(|error| self.failed(error)),
            }
        }
    }

    /// Sends a request once.
    pub(crate) async fn send(&self, request: Bytes) -> Result<Response, ExchangeError> {
        let shared = &self.shared;
        exchange(&shared.pool, &shared.key, request, shared.patience).await
    }

    /// Sends a request that may be repeated; an answer other than `ok` is an error.
    pub(crate) async fn ask_for_ok(&self, request: &Request) -> Result<Response, Error> {
        match self.ask(request).await? {
            response if response.status == Status::Ok => Ok(response),
            response => Err(Refusal::of(&response).into()),
        }
    }

    pub(crate) fn failed(&self, error: ExchangeError) -> Error {
        Error::of_exchange(self.server(), error)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("server", self.server())
            .finish_non_exhaustive()
    }
}

/// The tries that a request has left, and the pauses between them.
pub(crate) struct Tries {
    left: u32,
    failures: Backoff,
    refusals: Backoff,
}

impl Tries {
    pub(crate) fn new() -> Self {
        let jitter = Jitter::from_system();
        Self {
            left: TRIES_MAX - 1,
            failures: Backoff::new(RETRY_PAUSE, RETRY_PAUSE, jitter.clone()),
            refusals: Backoff::new(RATE_PAUSE, RATE_PAUSE * 16, jitter),
        }
    }

    /// The pause before the next try; `None` if `answer` stands. A request that was refused as one
    /// too many was not carried out, so even a write may be sent again.
    pub(crate) fn after(&mut self, answer: &Result<Response, ExchangeError>) -> Option<Duration> {
        let pause = match answer {
            Ok(response) if response.status == Status::RateLimited => &mut self.refusals,
            Err(error) if error.is_passing() => &mut self.failures,
            Ok(_) | Err(_) => return None,
        };
        self.left = self.left.checked_sub(1)?;
        Some(pause.pause())
    }
}

/// The path of one version of `path`.
pub(crate) fn version_path(path: &DocPath, version: u64) -> String {
    format!("{path}/v{version}")
}
