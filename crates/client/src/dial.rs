//! Making connections: names to addresses, sockets, TLS, and why none came about.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, IdleTimeout, TransportConfig};
use rustls::crypto::aws_lc_rs;
use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use wire::ContentHash;

use crate::address::ServerAddress;
use crate::trust::{OnFirstUse, Roots, Trust, TrustError, Verifier};

/// The protocol's name in the handshake.
const ALPN: &[u8] = b"mark";

/// How long a dial may take over all addresses of a host.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// The lead of one address over the next; long enough for a handshake across an ocean.
const ADDRESS_STAGGER: Duration = Duration::from_millis(250);

/// The most addresses of a host that are tried.
const ADDRESSES_MAX: usize = 8;

/// A quarter of the server's idle timeout of 30 s, so that lost pings don't end a connection. A
/// client that only listens learns from its next ping that the server was killed and is back, and
/// half of a herd is to be back within 10 s.
const KEEP_ALIVE: Duration = Duration::from_millis(7500);

/// A peer that is silent for this long, our pings unanswered, is gone.
const IDLE_TIMEOUT_MS: u32 = 30_000;

/// What is asked of the kernel for received datagrams: a burst on a hundred watches.
const SOCKET_BUFFER_BYTES: usize = 1 << 20;

/// Why there is no connection.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum DialError {
    /// The handshake failed or the server closed at once.
    #[error("the connection failed ({0})")]
    Handshake(ConnectionError),
    /// The server speaks something else on this port.
    #[error("the server does not speak Mark on this port")]
    NotMark,
    /// The host's name leads nowhere.
    #[error("the host is not found ({0})")]
    Resolve(Arc<io::Error>),
    /// Nothing listens on the port.
    #[error("nothing listens there; start a server with `tidings serve` or give another --url")]
    Silent,
    /// No socket can be had on this machine.
    #[error("no socket can be had ({0})")]
    Socket(Arc<io::Error>),
    /// Nobody answered in time.
    #[error("nobody answered within {} s", DIAL_TIMEOUT.as_secs())]
    Timeout,
    /// The server isn't believed.
    #[error(transparent)]
    Trust(Box<TrustError>),
}

impl DialError {
    /// Whether another dial in a moment may fare better.
    pub(crate) const fn is_passing(&self) -> bool {
        matches!(self, Self::Handshake(_) | Self::Silent)
    }
}

/// Makes connections from one socket per address family.
pub(crate) struct Dialer {
    roots: Arc<Roots>,
    on_first_use: OnFirstUse,
    /// Made when they are first needed: an endpoint wants a running runtime.
    endpoints: Mutex<Endpoints>,
}

#[derive(Default)]
struct Endpoints {
    v4: Option<Endpoint>,
    v6: Option<Endpoint>,
}

impl Dialer {
    pub(crate) fn new(on_first_use: Option<OnFirstUse>) -> Self {
        let provider = Arc::new(aws_lc_rs::default_provider());
        Self {
            roots: Arc::new(Roots::new(provider)),
            on_first_use: on_first_use.unwrap_or_else(|| Arc::new(log_first_use)),
            endpoints: Mutex::new(Endpoints::default()),
        }
    }

    /// Connects to the first address of `server` that answers. Cancelling leaves nothing behind.
    pub(crate) async fn dial(
        &self,
        server: &ServerAddress,
        trust: &Trust,
    ) -> Result<Connection, DialError> {
        tokio::time::timeout(DIAL_TIMEOUT, self.race(server, trust))
            .await
            .unwrap_or(Err(DialError::Timeout))
    }

    async fn race(&self, server: &ServerAddress, trust: &Trust) -> Result<Connection, DialError> {
        let mut dials = JoinSet::new();
        for (place, address) in resolve(server).await?.into_iter().enumerate() {
            let dial = self.dial_address(server, trust, address)?;
            let lead = ADDRESS_STAGGER * u32::try_from(place).unwrap_or(u32::MAX);
            dials.spawn(async move {
                tokio::time::sleep(lead).await;
                dial.await
            });
        }
        let mut failure = DialError::Timeout;
        while let Some(dialled) = dials.join_next().await {
            match dialled {
                Ok(Ok(connection)) => return Ok(connection),
                // Who answers and isn't believed is the one that the caller has to hear of.
                Ok(Err(error)) if !matches!(failure, DialError::Trust(_)) => failure = error,
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Err(failure)
    }

    fn dial_address(
        &self,
        server: &ServerAddress,
        trust: &Trust,
        address: SocketAddr,
    ) -> Result<impl Future<Output = Result<Connection, DialError>> + use<>, DialError> {
        let endpoint = self.endpoint(address.ip()).map_err(socket_error)?;
        let verifier = Arc::new(Verifier::new(
            server.clone(),
            trust.clone(),
            Arc::clone(&self.roots),
            Arc::clone(&self.on_first_use),
        ));
        let config = self.config(Arc::clone(&verifier));
        let host = server.host().to_owned();
        Ok(async move {
            let connecting = endpoint
                .connect_with(config, address, &host)
                .map_err(|error| socket_error(io::Error::other(error)))?;
            tokio::select! {
                connected = connecting => {
                    connected.map_err(|error| handshake_error(error, &verifier))
                }
                () = until_refused(address) => Err(DialError::Silent),
            }
        })
    }

    fn config(&self, verifier: Arc<Verifier>) -> ClientConfig {
        let mut tls =
            rustls::ClientConfig::builder_with_provider(Arc::clone(self.roots.provider()))
                .with_protocol_versions(&[&rustls::version::TLS13])
                .expect("the provider has the cipher suites of TLS 1.3")
                .dangerous()
                .with_custom_certificate_verifier(verifier)
                .with_no_client_auth();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        let quic = QuicClientConfig::try_from(tls)
            .expect("the provider has the cipher suite of QUIC's first packets");
        let mut transport = TransportConfig::default();
        transport
            .keep_alive_interval(Some(KEEP_ALIVE))
            .max_idle_timeout(Some(IdleTimeout::from(quinn::VarInt::from_u32(
                IDLE_TIMEOUT_MS,
            ))))
            .max_concurrent_bidi_streams(quinn::VarInt::from_u32(0))
            .max_concurrent_uni_streams(quinn::VarInt::from_u32(0))
            .datagram_receive_buffer_size(None);
        let mut config = ClientConfig::new(Arc::new(quic));
        config.transport_config(Arc::new(transport));
        config
    }

    fn endpoint(&self, ip: IpAddr) -> io::Result<Endpoint> {
        let mut endpoints = self
            .endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let slot = if ip.is_ipv4() {
            &mut endpoints.v4
        } else {
            &mut endpoints.v6
        };
        if let Some(endpoint) = slot {
            return Ok(endpoint.clone());
        }
        let endpoint = Endpoint::new(
            quinn::EndpointConfig::default(),
            None,
            socket(ip.is_ipv4())?,
            Arc::new(quinn::TokioRuntime),
        )?;
        *slot = Some(endpoint.clone());
        Ok(endpoint)
    }

    /// Moves every connection to new sockets, as after a change of network (T49).
    pub(crate) fn rebind(&self) -> io::Result<()> {
        for (is_v4, endpoint) in self.open_endpoints() {
            endpoint.rebind(socket(is_v4)?)?;
        }
        Ok(())
    }

    /// Tells every server goodbye and waits until that is on its way.
    pub(crate) async fn close(&self) {
        for (_, endpoint) in self.open_endpoints() {
            endpoint.close(quinn::VarInt::from_u32(0), b"");
            endpoint.wait_idle().await;
        }
    }

    fn open_endpoints(&self) -> Vec<(bool, Endpoint)> {
        let endpoints = self
            .endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let v4 = endpoints.v4.clone().map(|endpoint| (true, endpoint));
        let v6 = endpoints.v6.clone().map(|endpoint| (false, endpoint));
        v4.into_iter().chain(v6).collect()
    }
}

fn log_first_use(server: &ServerAddress, shown: ContentHash) {
    tracing::info!(%server, %shown, "certificate pinned at first use");
}

async fn resolve(server: &ServerAddress) -> Result<Vec<SocketAddr>, DialError> {
    let found = tokio::net::lookup_host((server.host(), server.port()))
        .await
        .map_err(|error| DialError::Resolve(Arc::new(error)))?;
    Ok(found.take(ADDRESSES_MAX).collect())
}

fn socket(is_v4: bool) -> io::Result<std::net::UdpSocket> {
    let (domain, any) = if is_v4 {
        (Domain::IPV4, IpAddr::from(Ipv4Addr::UNSPECIFIED))
    } else {
        (Domain::IPV6, IpAddr::from(Ipv6Addr::UNSPECIFIED))
    };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    // What the kernel grants will do; less only means earlier losses, which QUIC repairs.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
    socket.bind(&SocketAddr::new(any, 0).into())?;
    Ok(socket.into())
}

/// Ends when the address says that nothing listens on the port; otherwise never.
///
/// QUIC's own socket isn't connected and so never hears of it; the caller would wait for the whole
/// time of a dial. One byte is enough to be told, and no server takes it for a packet.
async fn until_refused(address: SocketAddr) {
    let refused = async {
        let any: IpAddr = if address.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        let socket = UdpSocket::bind((any, 0)).await?;
        socket.connect(address).await?;
        socket.send(&[0]).await?;
        socket.recv(&mut [0; 1]).await
    };
    match refused.await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        _ => std::future::pending().await,
    }
}

fn socket_error(error: io::Error) -> DialError {
    DialError::Socket(Arc::new(error))
}

fn handshake_error(error: ConnectionError, verifier: &Verifier) -> DialError {
    /// The alert `no_application_protocol` as QUIC carries it.
    const NO_APPLICATION_PROTOCOL: u64 = 0x178;
    if let Some(refusal) = verifier.refusal() {
        return DialError::Trust(refusal);
    }
    match &error {
        ConnectionError::ConnectionClosed(close)
            if u64::from(close.error_code) == NO_APPLICATION_PROTOCOL =>
        {
            DialError::NotMark
        }
        _ => DialError::Handshake(error),
    }
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialer").finish_non_exhaustive()
    }
}
