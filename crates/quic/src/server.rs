//! The listener: admits connections, and leaves in order when it is told to.
//!
//! Leaving goes in four steps, each bounded: no new watches, and each running one is told
//! `closing` at its own moment of a window that grows with their number; when the last was told,
//! no new connections and streams; what is under way is finished; then every connection is closed
//! with code 0. A second order to leave changes nothing.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use auth::Authority;
use documents::FileStore;
use gate::{Certificate, CertificateError, Memory, Network, Phase, Seat, Verdict};
use prometheus_client::registry::Registry;
use quinn::{Incoming, VarInt};
use thiserror::Error;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use crate::connection;
use crate::endpoint::{self, EndpointError};
use crate::face::{Face, Shared};
use crate::limits::{Limit, Limits, LimitsError};
use crate::metrics::Metrics;

/// The code and the reason with which connections are closed at the end.
const CLOSED: VarInt = VarInt::from_u32(0);
const CLOSED_REASON: &[u8] = b"server closed";

/// How long the closing of connections may take to reach their clients. A lost one notices by its
/// idle timeout.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

/// What a listener is made of.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub addr: SocketAddr,
    /// The certificate that clients are shown.
    pub certificate: Certificate,
    /// The bounds.
    pub limits: Limits,
    /// Whether the process has room for more clients.
    pub memory: Memory,
}

/// A bound listener that serves once [`run`](Self::run) is called.
pub struct MarkServer {
    endpoint: quinn::Endpoint,
    certificate: Certificate,
    face: Arc<Face>,
    addr: SocketAddr,
}

impl MarkServer {
    /// Binds the socket. Must be called within a tokio runtime.
    pub fn bind(
        config: Config,
        store: FileStore,
        authority: Authority,
        registry: &mut Registry,
    ) -> Result<Self, BindError> {
        config.limits.check()?;
        let endpoint = endpoint::bind(config.addr, &config.limits, &config.certificate)?;
        let addr = endpoint
            .local_addr()
            .map_err(|source| EndpointError::Socket {
                addr: config.addr,
                source,
            })?;
        let metrics = Metrics::register(registry);
        let now = Instant::now().into_std();
        let shared = Shared {
            limits: config.limits,
            memory: config.memory,
            metrics,
        };
        let face = Face::new(shared, store, authority, now);
        Ok(Self {
            endpoint,
            certificate: config.certificate,
            face,
            addr,
        })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Reads the certificate again for the handshakes to come; open connections aren't touched.
    /// Blocks on the disk.
    pub fn reload_certificate(&self) -> Result<(), CertificateError> {
        self.certificate.reload()
    }

    /// Serves until `leave` is cancelled, then drains and returns.
    ///
    /// Not cancel-safe: dropping the future closes nothing in order; clients then notice by their
    /// idle timeouts. A drain takes at most the closing window, the stall limit and the drain
    /// timeout of [`Limits`] together, and a second.
    pub async fn run(&self, leave: CancellationToken) {
        let accepting = self.accept();
        tokio::pin!(accepting);
        tokio::select! {
            () = &mut accepting => {}
            () = leave.cancelled() => {
                info!(watches = self.face.watch_count(), "leaving");
                tokio::select! {
                    () = &mut accepting => {}
                    () = self.close_watches() => {}
                }
                self.finish().await;
            }
        }
    }

    async fn accept(&self) {
        while let Some(incoming) = self.endpoint.accept().await {
            self.admit(incoming);
        }
    }

    fn admit(&self, incoming: Incoming) {
        if self.face.memory.is_over() {
            self.face.metrics.refused(Limit::Memory);
            return incoming.refuse();
        }
        let network = Network::of(incoming.remote_address().ip());
        let proved = incoming.remote_address_validated();
        let now = Instant::now().into_std();
        match self.face.admission.dial(network, proved, now) {
            Verdict::Admit(seat) => {
                tokio::spawn(shake_hands(incoming, seat, self.face.clone()));
            }
            Verdict::Prove => {
                self.face.metrics.retries.inc();
                // It fails only for an address that is proved already.
                let _ = incoming.retry();
            }
            Verdict::Refuse(over) => {
                self.face.metrics.refused(over.into());
                incoming.refuse();
            }
        }
    }

    /// Tells every watch to leave within the window, and waits until their clients know.
    async fn close_watches(&self) {
        let face = &self.face;
        let window = face.window(Instant::now().into_std());
        face.enter(Phase::Closing(window));
        let latest = Instant::from_std(window.ends_at()) + face.limits.write_stall;
        let all = u32::try_from(face.limits.watches).unwrap_or(u32::MAX);
        // All places free again: nobody watches. They stay taken, so nobody can.
        match timeout_at(latest, face.watches.acquire_many(all)).await {
            Ok(Ok(places)) => places.forget(),
            // Clients that take nothing; their idle timeouts tell them.
            _ => info!(
                watches = face.watch_count(),
                "some clients did not take the end of their watches"
            ),
        }
    }

    /// Lets requests finish, then closes all connections.
    async fn finish(&self) {
        let face = &self.face;
        face.enter(Phase::Stopping);
        face.pending.close();
        if timeout(face.limits.drain_timeout, face.pending.wait())
            .await
            .is_err()
        {
            info!(
                requests = face.pending.len(),
                "requests were cut by the end of the drain"
            );
        }
        self.endpoint.close(CLOSED, CLOSED_REASON);
        if timeout(FAREWELL_MAX, self.endpoint.wait_idle())
            .await
            .is_err()
        {
            debug!("some connections did not confirm their end");
        }
        info!("closed");
    }
}

impl fmt::Debug for MarkServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MarkServer")
            .field("addr", &self.addr)
            .finish_non_exhaustive()
    }
}

/// Turns a dial into a connection in time, and serves it.
async fn shake_hands(incoming: Incoming, mut seat: Seat, face: Arc<Face>) {
    let remote = incoming.remote_address();
    let failed = |error: &dyn fmt::Display| {
        face.metrics.handshakes_failed.inc();
        debug!(%remote, %error, "a handshake failed");
    };
    let connecting = match incoming.accept() {
        Ok(connecting) => connecting,
        Err(error) => return failed(&error),
    };
    match timeout(face.limits.handshake_timeout, connecting).await {
        Ok(Ok(connection)) => {
            face.metrics.handshakes.inc();
            seat.established();
            connection::serve(connection, seat, face).await;
        }
        Ok(Err(error)) => failed(&error),
        Err(_) => {
            face.metrics.refused(Limit::HandshakeTimeout);
            failed(&"it took too long");
        }
    }
}

/// Why a listener can't be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The endpoint can't be made.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The limits can't work.
    #[error("limits: {0}")]
    Limits(#[from] LimitsError),
}
