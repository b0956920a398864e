//! Makes the UDP socket and the QUIC endpoint on it.
//!
//! The one place where endpoints come from: several sockets on one address, told apart by the
//! first byte of their connection ids, would be made here and nothing else would change.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use gate::Certificate;
use quinn::crypto::rustls::{NoInitialCipherSuite, QuicServerConfig};
use quinn::{EndpointConfig, IdleTimeout, ServerConfig, TokioRuntime, TransportConfig, VarInt};
use quinn_proto::HashedConnectionIdGenerator;
use rustls::crypto::aws_lc_rs as tls_provider;
use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;
use tracing::info;

use crate::limits::Limits;

/// The protocol's name in the handshake.
pub const ALPN: &[u8] = b"mark";

/// What a connection may have sent without an acknowledgement. A slow reader is held to this much
/// of the server's memory; the library's default is 10 MB.
const SEND_WINDOW_BYTES: u64 = 256 << 10;

/// What a client may send on one stream, and on all of a connection's, before somebody reads: the
/// values of the original, which let the longest body through in two round trips.
const STREAM_WINDOW_BYTES: u32 = 512 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 768 << 10;

/// What packets of dials that nobody has looked at yet may take, each and together.
const INCOMING_BYTES: u64 = 16 << 10;
const INCOMING_TOTAL_BYTES: u64 = 8 << 20;

/// At most so often a client of a killed server is told that its connection is gone. The library's
/// 20 ms leave a herd asking in vain, each at growing intervals; with this, 10,000 connections hear
/// within a second. Noise asks for nothing: an id that we never gave out fails its keyed hash.
const RESET_INTERVAL_MIN: Duration = Duration::from_micros(100);

/// Binds `addr` and serves QUIC on it.
pub(crate) fn bind(
    addr: SocketAddr,
    limits: &Limits,
    certificate: &Certificate,
) -> Result<quinn::Endpoint, EndpointError> {
    let server = server_config(limits, certificate)?;
    let socket = socket(addr, limits.udp_buffer_bytes)
        .map_err(|source| EndpointError::Socket { addr, source })?;
    quinn::Endpoint::new(
        endpoint_config(certificate),
        Some(server),
        socket,
        Arc::new(TokioRuntime),
    )
    .map_err(|source| EndpointError::Socket { addr, source })
}

/// Keeps the secrets behind connection ids and stateless resets over a restart: a client whose
/// server was killed then hears from the next process at once that its connection is gone, and
/// doesn't wait for its idle timeout.
fn endpoint_config(certificate: &Certificate) -> EndpointConfig {
    let reset = certificate.secret("tidings stateless reset");
    let mut config = EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &reset)));
    let [a, b, c, d, e, f, g, h, ..] = certificate.secret("tidings connection ids");
    let id_key = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    config
        .cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(id_key)))
        .min_reset_interval(RESET_INTERVAL_MIN);
    config
}

fn socket(addr: SocketAddr, buffer_bytes: usize) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_recv_buffer_size(buffer_bytes)?;
    socket.set_send_buffer_size(buffer_bytes)?;
    socket.bind(&addr.into())?;
    info!(
        %addr,
        asked_bytes = buffer_bytes,
        receive_bytes = socket.recv_buffer_size()?,
        send_bytes = socket.send_buffer_size()?,
        "bound the UDP socket"
    );
    Ok(socket.into())
}

fn server_config(
    limits: &Limits,
    certificate: &Certificate,
) -> Result<ServerConfig, EndpointError> {
    let provider = Arc::new(tls_provider::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificate.clone()));
    tls.alpn_protocols = vec![ALPN.to_vec()];
    // A replayed request must never have an effect, so there is no early data.
    tls.max_early_data_size = 0;
    let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    server
        .transport_config(Arc::new(transport(limits)?))
        .migration(true)
        .max_incoming(limits.handshakes)
        .incoming_buffer_size(INCOMING_BYTES)
        .incoming_buffer_size_total(INCOMING_TOTAL_BYTES);
    Ok(server)
}

fn transport(limits: &Limits) -> Result<TransportConfig, EndpointError> {
    let idle = IdleTimeout::try_from(limits.idle_timeout)
        .map_err(|_| EndpointError::IdleTimeout(limits.idle_timeout))?;
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(limits.streams_initial))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        .send_window(SEND_WINDOW_BYTES)
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW_BYTES))
        .max_idle_timeout(Some(idle))
        // Small blocks of many streams go out whole, one after the other, in few packets.
        .send_fairness(false);
    Ok(transport)
}

/// Why there is no endpoint.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The cipher suite that QUIC starts with is missing.
    #[error("the TLS provider lacks QUIC's first cipher suite")]
    CipherSuite(#[from] NoInitialCipherSuite),
    /// QUIC can't express the idle timeout.
    #[error("an idle timeout of {0:?} is too long")]
    IdleTimeout(Duration),
    /// The socket couldn't be made or bound.
    #[error("bind udp {addr}")]
    Socket {
        /// Where.
        addr: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// TLS 1.3 isn't available.
    #[error("set up TLS")]
    Tls(#[from] rustls::Error),
}
