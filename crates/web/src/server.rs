//! The listener: accepts connections, and leaves in order when it is told to.
//!
//! Leaving goes in four steps, each bounded: new streams are refused, and each that is held is
//! told to leave at its own moment of a window that grows with their number; when the last was
//! told, no new connections; requests under way are finished; then what is left is closed. A
//! second order to leave changes nothing.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use auth::Authority;
use documents::FileStore;
use gate::{Certificate, CertificateError, Memory, Network, Phase, Verdict};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use socket2::{Domain, Protocol, Socket, Type};
use storage::Storage;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::call::Peer;
use crate::connection::{self, Client, Place};
use crate::face::{Face, Sources};
use crate::fanout::Fanout;
use crate::idempotency::{Keys, KeysError};
use crate::limits::{Limit, Limits, LimitsError};
use crate::metrics::Metrics;
use crate::origin::Origins;
use crate::stream::StreamConfig;
use crate::who::WebTokens;

/// Dials that wait in the kernel. A herd that comes back fills it faster than it is emptied; the
/// kernel cuts it to its own bound.
const BACKLOG: i32 = 4_096;

/// After an accept failed for want of descriptors, others need a moment to give some back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The protocols of a TLS handshake, best first.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// What a listener is made of.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub addr: SocketAddr,
    /// The certificate that clients are shown; without one the listener is plain.
    pub certificate: Option<Certificate>,
    /// The bounds.
    pub limits: Limits,
    /// Whether there is room for more.
    pub memory: Memory,
    /// Origins of pages that may use the server from elsewhere.
    pub origins: Origins,
    /// The data directory, which the store has opened: idempotency keys lie there too.
    pub storage: Arc<dyn Storage>,
    /// How JSON web tokens are checked; without it only capability tokens are known.
    pub web_tokens: Option<WebTokens>,
    /// What streams and sockets draw on.
    pub streams: StreamConfig,
}

/// A bound listener that serves once [`run`](Self::run) is called.
pub struct WebServer {
    acceptor: Option<TlsAcceptor>,
    addr: SocketAddr,
    certificate: Option<Certificate>,
    face: Arc<Face>,
    listener: TcpListener,
    /// Connections that may be open; one is taken before each accept.
    places: Arc<Semaphore>,
}

impl WebServer {
    /// Binds the socket and opens the idempotency keys, which blocks on the disk. Must be called
    /// within a tokio runtime.
    pub fn bind(
        config: Config,
        store: FileStore,
        authority: Authority,
        registry: &mut Registry,
    ) -> Result<Self, BindError> {
        config.limits.check()?;
        let acceptor = config.certificate.clone().map(acceptor).transpose()?;
        let listening = |source| BindError::Socket {
            addr: config.addr,
            source,
        };
        let listener = listen(config.addr).map_err(listening)?;
        let addr = listener.local_addr().map_err(listening)?;
        let metrics = Metrics::register(registry);
        let keys = Keys::open(
            config.storage,
            config.limits.idempotency_keys,
            store.feed().head().epoch,
            Timestamp::now(),
            &mut |intent| crate::documents::judge(&store, intent),
        )?;
        let places = Arc::new(Semaphore::new(config.limits.connections));
        let now = Instant::now().into_std();
        let face = Face::new(
            config.limits,
            config.origins,
            Sources {
                store,
                authority,
                keys,
                memory: config.memory,
                web_tokens: config.web_tokens,
                streams: config.streams,
            },
            metrics,
            now,
        );
        Ok(Self {
            acceptor,
            addr,
            certificate: config.certificate,
            face,
            listener,
            places,
        })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Reads the certificate again for the handshakes to come; open connections aren't touched.
    /// Blocks on the disk.
    pub fn reload_certificate(&self) -> Result<(), CertificateError> {
        self.certificate
            .as_ref()
            .map_or(Ok(()), Certificate::reload)
    }

    /// Says which build of the application is current; sockets that said another are told.
    pub fn set_build(&self, build: Option<&str>) {
        let build = build.map(Arc::from);
        self.face.streams.build.send_if_modified(|current| {
            let is_other = *current != build;
            *current = build;
            is_other
        });
    }

    /// Serves until `leave` is cancelled, then drains and returns.
    ///
    /// Not cancel-safe: dropping the future closes nothing in order. A drain takes at most the
    /// closing window, the stall limit and the drain timeout of [`Limits`] together.
    pub async fn run(&self, leave: CancellationToken) {
        Fanout::start(&self.face);
        let accepting = self.accept();
        tokio::pin!(accepting);
        tokio::select! {
            () = &mut accepting => {}
            () = leave.cancelled() => {
                info!(held = self.face.held.len(), "leaving");
                tokio::select! {
                    () = &mut accepting => {}
                    () = self.close_held() => {}
                }
                self.finish().await;
            }
        }
    }

    async fn accept(&self) {
        loop {
            // Nobody closes the semaphore.
            let Ok(place) = self.places.clone().acquire_owned().await else {
                return;
            };
            match self.listener.accept().await {
                Ok((stream, addr)) => self.admit(stream, addr, place),
                Err(error) => {
                    warn!(%error, "accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn admit(&self, stream: TcpStream, addr: SocketAddr, place: Place) {
        let network = Network::of(addr.ip());
        let now = Instant::now().into_std();
        let mut seat = match self.face.admission.dial(network, true, now) {
            Verdict::Admit(seat) => seat,
            // A TCP address is proved, so it is never asked for.
            Verdict::Prove => return,
            Verdict::Refuse(over) => return self.face.metrics.refused(Limit::from(over)),
        };
        // A small frame that waits for the last one's acknowledgement would come late.
        let _ = stream.set_nodelay(true);
        let peer = Peer {
            addr,
            network,
            is_plain: self.acceptor.is_none(),
        };
        if self.acceptor.is_none() {
            seat.established();
        }
        let client = Client {
            face: self.face.clone(),
            peer,
            place,
            seat,
        };
        let connections = self.face.metrics.connections.clone();
        let acceptor = self.acceptor.clone();
        self.face.connections.spawn(async move {
            connections.inc();
            match acceptor {
                Some(acceptor) => connection::serve_tls(stream, client, acceptor).await,
                None => connection::serve_plain(stream, client).await,
            }
            connections.dec();
        });
    }

    /// Tells everything that is held to leave within the window, and waits until it has.
    async fn close_held(&self) {
        let face = &self.face;
        let window = face.window(Instant::now().into_std());
        face.enter(Phase::Closing(window));
        let latest = Instant::from_std(window.ends_at()) + face.limits.write_stall;
        face.held.close();
        if timeout_at(latest, face.held.wait()).await.is_err() {
            warn!(
                held = face.held.len(),
                "held streams were not told of the end in time"
            );
        }
    }

    /// Lets requests finish, then closes all connections.
    async fn finish(&self) {
        let face = &self.face;
        face.enter(Phase::Stopping);
        face.connections.close();
        let ended = timeout(face.limits.drain_timeout, face.connections.wait()).await;
        if ended.is_err() {
            debug!(
                connections = face.connections.len(),
                "connections were cut by the end of the drain"
            );
        }
        info!("closed");
    }
}

impl fmt::Debug for WebServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebServer")
            .field("addr", &self.addr)
            .finish_non_exhaustive()
    }
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

fn acceptor(certificate: Certificate) -> Result<TlsAcceptor, BindError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(BindError::Tls)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificate));
    config.alpn_protocols = ALPN.map(<[u8]>::to_vec).into();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Why a listener can't be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The idempotency keys can't be opened.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The limits can't work.
    #[error("limits: {0}")]
    Limits(#[from] LimitsError),
    /// The socket can't be had.
    #[error("listen on {addr} (TCP)")]
    Socket {
        /// Where.
        addr: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// TLS can't be set up.
    #[error("set up TLS")]
    Tls(#[source] rustls::Error),
}
