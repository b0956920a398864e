//! A server in this process that does what a script says, right or wrong.
//!
//! Each request that arrives is handed to the script with its place in the run; the script gives
//! the parts of the answer. Everything that arrived can be looked at afterwards.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::{Builder, Client, ServerAddress, Trust};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, Endpoint, RecvStream, SendStream, ServerConfig, VarInt};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::Notify;
use wire::{Request, RequestDecoder, Response};

/// A request as the script sees it.
pub(crate) struct Call {
    /// Which connection it came on, from 1.
    pub(crate) connection: usize,
    /// Which request of the whole run it is, from 1.
    pub(crate) number: usize,
    pub(crate) request: Request,
}

impl Call {
    pub(crate) fn path(&self) -> &str {
        std::str::from_utf8(&self.request.path).unwrap()
    }

    pub(crate) fn key(&self, key: &str) -> Option<&str> {
        self.request.metadata.get(key)
    }
}

/// A part of an answer.
pub(crate) enum Part {
    Bytes(Vec<u8>),
    /// Bytes until the client has enough of them.
    Endless,
    /// Nothing until the test says so.
    Until(Arc<Notify>),
    /// Nothing more, and no end either.
    Hang,
    Reset,
    /// The whole connection.
    Close,
}

impl From<Response> for Part {
    fn from(response: Response) -> Self {
        Self::Bytes(response.encode().to_vec())
    }
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

type Script = Arc<dyn Fn(&Call) -> Vec<Part> + Send + Sync>;

pub(crate) struct FakeServer {
    pub(crate) address: SocketAddr,
    pub(crate) certificate: CertificateDer<'static>,
    endpoint: Endpoint,
    shared: Arc<Shared>,
}

struct Shared {
    script: Script,
    connections: AtomicUsize,
    requests: Mutex<Vec<Request>>,
}

impl FakeServer {
    /// Serves `script` on a free port of this machine.
    pub(crate) fn start(script: impl Fn(&Call) -> Vec<Part> + Send + Sync + 'static) -> Self {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), script)
    }

    pub(crate) fn start_at(
        address: SocketAddr,
        script: impl Fn(&Call) -> Vec<Part> + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(address, b"mark", script)
    }

    pub(crate) fn start_with(
        address: SocketAddr,
        alpn: &[u8],
        script: impl Fn(&Call) -> Vec<Part> + Send + Sync + 'static,
    ) -> Self {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        tls.alpn_protocols = vec![alpn.to_vec()];
        let quic = QuicServerConfig::try_from(tls).unwrap();
        let config = ServerConfig::with_crypto(Arc::new(quic));
        let endpoint = Endpoint::server(config, address).unwrap();
        let shared = Arc::new(Shared {
            script: Arc::new(script),
            connections: AtomicUsize::new(0),
            requests: Mutex::new(Vec::new()),
        });
        tokio::spawn(accept(endpoint.clone(), Arc::clone(&shared)));
        Self {
            address: endpoint.local_addr().unwrap(),
            certificate,
            endpoint,
            shared,
        }
    }

    /// A client that believes anyone and has little patience.
    pub(crate) fn client(&self) -> Client {
        self.builder().trust(Trust::Anyone).build()
    }

    pub(crate) fn builder(&self) -> Builder {
        Client::builder(self.server()).patience(Duration::from_millis(300))
    }

    pub(crate) fn server(&self) -> ServerAddress {
        ServerAddress::new("127.0.0.1", self.address.port())
    }

    /// How many connections were made so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Every request so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Stops, and frees the port.
    pub(crate) async fn stop(self) {
        self.endpoint.close(VarInt::from_u32(0), b"");
        self.endpoint.wait_idle().await;
        drop(self.endpoint);
        // The port is free once the endpoint's own task has let go of the socket.
        while std::net::UdpSocket::bind(self.address).is_err() {
            tokio::task::yield_now().await;
        }
    }
}

async fn accept(endpoint: Endpoint, shared: Arc<Shared>) {
    while let Some(incoming) = endpoint.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else {
                return;
            };
            let place = shared.connections.fetch_add(1, Ordering::SeqCst) + 1;
            while let Ok((sending, receiving)) = connection.accept_bi().await {
                tokio::spawn(serve(
                    Arc::clone(&shared),
                    connection.clone(),
                    place,
                    sending,
                    receiving,
                ));
            }
        });
    }
}

async fn serve(
    shared: Arc<Shared>,
    connection: Connection,
    place: usize,
    mut sending: SendStream,
    mut receiving: RecvStream,
) {
    let Ok(bytes) = receiving.read_to_end(4 << 20).await else {
        return;
    };
    let mut decoder = RequestDecoder::new();
    decoder.feed(&bytes).unwrap();
    let request = decoder.finish().unwrap();
    let number = {
        let mut requests = shared.requests.lock().unwrap();
        requests.push(request.clone());
        requests.len()
    };
    let call = Call {
        connection: place,
        number,
        request,
    };
    for part in (shared.script)(&call) {
        let sent = match part {
            Part::Bytes(bytes) => sending.write_all(&bytes).await,
            Part::Endless => loop {
                if let Err(error) = sending.write_all(&[b'x'; 16_384]).await {
                    break Err(error);
                }
            },
            Part::Until(notify) => {
                notify.notified().await;
                Ok(())
            }
            Part::Hang => {
                let _ = sending.stopped().await;
                return;
            }
            Part::Reset => {
                let _ = sending.reset(VarInt::from_u32(9));
                return;
            }
            Part::Close => {
                connection.close(VarInt::from_u32(0), b"bye");
                return;
            }
        };
        if sent.is_err() {
            return;
        }
    }
    let _ = sending.finish();
    let _ = sending.stopped().await;
}
