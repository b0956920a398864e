//! A server over a store in a temporary directory, and a client that speaks raw bytes to it.
//!
//! Nothing here sleeps: whatever may take time is awaited, within a bound that only a hang
//! reaches.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of it"
)]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use auth::{Authority, Files};
use bytes::Bytes;
use documents::FileStore;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use quic::{Certificate, Config, Limits, MarkServer};
use quinn::{RecvStream, SendStream, VarInt};
use rustls::RootCertStore;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::{Metadata, Request, Response, Verb};

/// Only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for `future`; panics if it hangs.
pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("it takes too long")
}

/// The limits that tests start from: no rate, so that a test may be quick.
pub fn limits() -> Limits {
    Limits {
        rate_per_second: 0,
        ..Limits::default()
    }
}

/// A running server with its store.
pub struct World {
    pub dir: TempDir,
    pub store: FileStore,
    pub authority: Authority,
    pub certificate: Certificate,
    pub addr: SocketAddr,
    pub registry: Registry,
    leave: CancellationToken,
    serving: JoinHandle<()>,
}

impl World {
    /// A world in which everyone may do everything.
    pub async fn open(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::start(dir, Authority::dev(), limits, 4096).await
    }

    /// The same with a ring of `ring_len` changes.
    pub async fn with_ring(limits: Limits, ring_len: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::start(dir, Authority::dev(), limits, ring_len).await
    }

    /// A world with these tokens.
    pub async fn with_tokens(tokens: &str, limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("tokens.toml"), tokens).unwrap();
        let authority = Authority::open(Files {
            tokens: dir.path().join("tokens.toml"),
            tokens_required: true,
            closed: dir.path().join("closed.toml"),
        });
        Self::start(dir, authority.unwrap(), limits, 4096).await
    }

    async fn start(dir: TempDir, authority: Authority, limits: Limits, ring_len: usize) -> Self {
        let root = dir.path().join("tree");
        std::fs::create_dir(&root).unwrap();
        let config = documents::Config {
            ring_len,
            ..documents::Config::default()
        };
        let open = move || FileStore::open(&root, config, &mut |_| {}).unwrap();
        let store = tokio::task::spawn_blocking(open).await.unwrap();
        let certificate = certificate(dir.path());
        let config = Config {
            addr: "127.0.0.1:0".parse().unwrap(),
            certificate: certificate.clone(),
            limits,
            memory: gate::Memory::default(),
        };
        let mut registry = Registry::default();
        let server =
            MarkServer::bind(config, store.clone(), authority.clone(), &mut registry).unwrap();
        let leave = CancellationToken::new();
        let addr = server.local_addr();
        let order = leave.clone();
        let serving = tokio::spawn(async move { server.run(order).await });
        Self {
            dir,
            store,
            authority,
            certificate,
            addr,
            registry,
            leave,
            serving,
        }
    }

    /// Replaces the tokens file and has it read.
    pub fn set_tokens(&self, tokens: &str) {
        std::fs::write(self.dir.path().join("tokens.toml"), tokens).unwrap();
        self.authority.reload();
    }

    /// Writes a document past the network.
    pub async fn publish(&self, path: &str, body: &str) {
        self.publish_by(path, body, "").await;
    }

    /// Writes a document with an `agent` past the network.
    pub async fn publish_by(&self, path: &str, body: &str, agent: &str) {
        let path = wire::DocPath::parse(path).unwrap();
        let (body, store) = (body.to_owned(), self.store.clone());
        let agent = agent.to_owned();
        let publish = move || {
            let metadata = [("agent", agent.as_str())];
            let metadata = metadata.into_iter().filter(|(_, value)| !value.is_empty());
            let draft = documents::Draft::publish(path, body.into(), metadata).unwrap();
            store.publish(draft, None, &|| true).unwrap();
        };
        tokio::task::spawn_blocking(publish).await.unwrap();
    }

    /// A new connection.
    pub async fn dial(&self) -> Client {
        self.try_dial().await.unwrap()
    }

    /// A new connection, or why there is none.
    pub async fn try_dial(&self) -> Result<Client, quinn::ConnectionError> {
        let endpoint = endpoint(&self.certificate, b"mark");
        dial(&endpoint, self.addr).await
    }

    /// A new connection from another address of this machine.
    pub async fn dial_from(&self, address: &str) -> Client {
        let mut endpoint = quinn::Endpoint::client(address.parse().unwrap()).unwrap();
        endpoint.set_default_client_config(client_config(&self.certificate, b"mark"));
        dial(&endpoint, self.addr).await.unwrap()
    }

    /// A new connection with a transport of its own.
    pub async fn dial_with(&self, transport: quinn::TransportConfig) -> Client {
        let mut endpoint = endpoint(&self.certificate, b"mark");
        let mut config = client_config(&self.certificate, b"mark");
        config.transport_config(Arc::new(transport));
        endpoint.set_default_client_config(config);
        dial(&endpoint, self.addr).await.unwrap()
    }

    /// Orders the server to leave.
    pub fn leave(&self) {
        self.leave.cancel();
    }

    /// Waits until the server has left.
    pub async fn left(&mut self) {
        within(&mut self.serving).await.unwrap();
    }

    /// The value of a metric line that begins with `name`.
    pub fn metric(&self, name: &str) -> u64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let line = text.lines().find(|line| line.starts_with(name));
        line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    }

    /// Waits until a metric reaches `value`.
    pub async fn metric_reaches(&self, name: &str, value: u64) {
        within(async {
            while self.metric(name) != value {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// The development certificate of `dir`.
pub fn certificate(dir: &Path) -> Certificate {
    let (certificate, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    Certificate::load_or_create(&certificate, &key, Timestamp::now()).unwrap()
}

/// A client's endpoint that trusts `certificate` as a root.
pub fn endpoint(certificate: &Certificate, alpn: &[u8]) -> quinn::Endpoint {
    let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    endpoint.set_default_client_config(client_config(certificate, alpn));
    endpoint
}

fn client_config(certificate: &Certificate, alpn: &[u8]) -> quinn::ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.leaf()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![alpn.to_vec()];
    let tls = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
    quinn::ClientConfig::new(Arc::new(tls))
}

/// A connection of `endpoint`.
pub async fn dial(
    endpoint: &quinn::Endpoint,
    addr: SocketAddr,
) -> Result<Client, quinn::ConnectionError> {
    let connection = within(endpoint.connect(addr, "localhost").unwrap()).await?;
    Ok(Client {
        endpoint: endpoint.clone(),
        connection,
    })
}

/// One connection to the server.
pub struct Client {
    pub endpoint: quinn::Endpoint,
    pub connection: quinn::Connection,
}

impl Client {
    /// Sends bytes and the end of the stream, gives what comes back.
    pub async fn exchange(&self, request: &[u8]) -> Bytes {
        let (mut send, mut recv) = within(self.connection.open_bi()).await.unwrap();
        within(send.write_all(request)).await.unwrap();
        send.finish().unwrap();
        read(&mut recv).await
    }

    /// Sends a request, gives the answer.
    pub async fn ask(&self, request: Request) -> Response {
        let answer = self.exchange(&request.encode().unwrap()).await;
        Response::decode(&answer).unwrap()
    }

    /// Sends a request without metadata and body.
    pub async fn get(&self, verb: Verb, path: &str) -> Response {
        self.ask(Request::new(verb, path.to_owned())).await
    }

    /// Opens a watch and reads its first block.
    pub async fn watch(&self, path: &str) -> Watch {
        let mut watch = self
            .open_watch(Request::new(Verb::Watch, path.to_owned()))
            .await;
        let first = watch.next().await.unwrap();
        assert_eq!(first.get("status"), Some("ok"), "{first:?}");
        watch
    }

    /// Opens a watch.
    pub async fn open_watch(&self, request: Request) -> Watch {
        let (mut send, recv) = within(self.connection.open_bi()).await.unwrap();
        within(send.write_all(&request.encode().unwrap()))
            .await
            .unwrap();
        send.finish().unwrap();
        Watch {
            send,
            recv,
            read: Vec::new(),
        }
    }
}

/// Reads a stream to its end.
pub async fn read(recv: &mut RecvStream) -> Bytes {
    within(recv.read_to_end(wire::limits::RESPONSE_LEN_MAX))
        .await
        .unwrap()
        .into()
}

/// A running watch, read block by block.
pub struct Watch {
    pub send: SendStream,
    pub recv: RecvStream,
    read: Vec<u8>,
}

impl Watch {
    /// The next block as its map; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Metadata> {
        within(self.try_next()).await.unwrap()
    }

    /// The next block, or the reset that came instead.
    pub async fn try_next(&mut self) -> Result<Option<Metadata>, quinn::ReadError> {
        const FENCE: &[u8] = b"\n---\n";
        loop {
            let end = self
                .read
                .windows(FENCE.len())
                .position(|window| window == FENCE);
            if let Some(end) = end {
                let rest = self.read.split_off(end + FENCE.len());
                let block = std::mem::replace(&mut self.read, rest);
                return Ok(Some(Metadata::decode(&block[4..=end]).unwrap()));
            }
            match self.recv.read_chunk(1 << 16, true).await? {
                Some(chunk) => self.read.extend_from_slice(&chunk.bytes),
                None => {
                    assert!(self.read.is_empty(), "a cut block");
                    return Ok(None);
                }
            }
        }
    }

    /// The next event, past heartbeats.
    pub async fn event(&mut self) -> Metadata {
        loop {
            let block = self.next().await.expect("the watch ended");
            match block.get("status") {
                None => return block,
                Some("ok") => {}
                Some(_) => panic!("{block:?}"),
            }
        }
    }

    /// The last block, past all others; the stream ends after it.
    pub async fn last(&mut self) -> Metadata {
        loop {
            let block = self.next().await.expect("the watch ended without a word");
            if !matches!(block.get("status"), None | Some("ok")) {
                assert_eq!(self.next().await, None);
                return block;
            }
        }
    }

    /// Cancels as a client does.
    pub fn cancel(mut self) {
        self.recv.stop(VarInt::from_u32(0)).unwrap();
    }
}
