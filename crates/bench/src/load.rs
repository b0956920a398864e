//! The load: connections with watches, and writers, all in this process.
//!
//! A writer puts the time of sending into the write's `agent`, which every event carries, so a
//! watcher knows an event's age without any bookkeeping between the two. Arrival is taken when the
//! block is parsed, so the figures include the cost of the load client on the same cores.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, Endpoint, EndpointConfig, RecvStream, TokioRuntime, VarInt};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::task::JoinSet;
use wire::{BlockReader, BlockView, Request, Response, Status, Verb};

use crate::spread::Spread;

/// Asked of the kernel, so that the load client doesn't measure its own losses.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;
/// Handshakes under way at once: enough to keep the server busy, few enough to see no time-outs.
const DIALS_AT_ONCE: usize = 32;
/// The largest answer to a request of ours.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long a scenario waits for its last delivery before it reports what is missing.
const PATIENCE: Duration = Duration::from_secs(60);
/// Histograms that the reading tasks spread over, so that they don't wait for each other.
const SHARDS: usize = 16;

/// Makes connections to one server.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    endpoint: Endpoint,
    server: SocketAddr,
}

impl Dialer {
    /// A dialer that believes the development certificate in `data`.
    pub(crate) fn new(server: SocketAddr, data: &Path) -> anyhow::Result<Self> {
        let socket = socket2::Socket::from(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
        socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
        socket.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
        let mut endpoint = Endpoint::new(
            EndpointConfig::default(),
            None,
            UdpSocket::from(socket),
            Arc::new(TokioRuntime),
        )?;
        endpoint.set_default_client_config(client_config(data)?);
        Ok(Self { endpoint, server })
    }

    /// One connection.
    pub(crate) async fn dial(&self) -> anyhow::Result<Connection> {
        Ok(self.endpoint.connect(self.server, "localhost")?.await?)
    }

    /// `count` connections, in no particular order.
    pub(crate) async fn dial_many(&self, count: usize) -> anyhow::Result<Vec<Connection>> {
        let mut connections = Vec::with_capacity(count);
        let mut dials = JoinSet::new();
        let mut begun = 0;
        while connections.len() < count {
            while begun < count && dials.len() < DIALS_AT_ONCE {
                let dialer = self.clone();
                dials.spawn(async move { dialer.dial().await });
                begun += 1;
            }
            connections.push(dials.join_next().await.context("a dial is under way")???);
        }
        Ok(connections)
    }
}

fn client_config(data: &Path) -> anyhow::Result<quinn::ClientConfig> {
    let certificate = CertificateDer::from_pem_file(data.join(".tidings/cert.pem"))
        .context("the server's development certificate")?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut tls = rustls::ClientConfig::builder_with_protocol_versions(&[&rustls::version::TLS13])
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"mark".to_vec()];
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let mut transport = quinn::TransportConfig::default();
    transport.keep_alive_interval(Some(Duration::from_secs(15)));
    transport.max_concurrent_bidi_streams(VarInt::from_u32(0));
    transport.datagram_receive_buffer_size(None);
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// Watches that record the age of every event.
#[derive(Debug)]
pub(crate) struct Swarm {
    tally: Arc<Tally>,
    readers: JoinSet<anyhow::Result<()>>,
    /// Held so that the connections stay open.
    _connections: Vec<Connection>,
}

#[derive(Debug)]
struct Tally {
    delivered: AtomicU64,
    shards: Vec<Mutex<Spread>>,
}

impl Swarm {
    /// Opens `watches` of `scope` on each of `connections` and waits for every acknowledgement.
    pub(crate) async fn open(
        connections: Vec<Connection>,
        watches: usize,
        scope: &'static str,
    ) -> anyhow::Result<Self> {
        let tally = Arc::new(Tally {
            delivered: AtomicU64::new(0),
            shards: (0..SHARDS).map(|_| Mutex::new(Spread::new())).collect(),
        });
        let mut readers = JoinSet::new();
        for (index, connection) in connections.iter().enumerate() {
            let mut opening = JoinSet::new();
            for _ in 0..watches {
                opening.spawn(Watching::open(connection.clone(), scope));
            }
            while let Some(watching) = opening.join_next().await {
                readers.spawn(watching??.read(Arc::clone(&tally), index % SHARDS));
            }
        }
        Ok(Self {
            tally,
            readers,
            _connections: connections,
        })
    }

    /// Waits until `expected` events arrived over all watches.
    pub(crate) async fn wait_for(&mut self, expected: u64) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.delivered() < expected {
            if let Some(ended) = self.readers.try_join_next() {
                ended??;
                bail!("a watch ended");
            }
            ensure!(
                Instant::now() < deadline,
                "{} of {expected} deliveries came within {PATIENCE:?}",
                self.delivered()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Events delivered up to now, over all watches.
    pub(crate) fn delivered(&self) -> u64 {
        self.tally.delivered.load(Ordering::Relaxed)
    }

    /// Takes the ages recorded since the last call.
    pub(crate) fn take_ages(&self) -> Spread {
        let mut all = Spread::new();
        for shard in &self.tally.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            all.merge(&std::mem::replace(&mut shard, Spread::new()));
        }
        all
    }
}

/// One watch's stream, and the reader of a block that has begun: between blocks a watch keeps no
/// buffer, since a hundred thousand of them would be measured instead of the server.
struct Watching {
    stream: RecvStream,
    begun: Option<BlockReader>,
}

/// What a chunk of a watch's stream held.
#[derive(Debug, Default)]
struct Heard {
    /// The age of each event.
    ages: Vec<Duration>,
    /// The watch was acknowledged, or a heartbeat came.
    alive: bool,
}

impl Watching {
    async fn open(connection: Connection, scope: &str) -> anyhow::Result<Self> {
        let (mut send, stream) = connection.open_bi().await?;
        send.write_all(&Request::new(Verb::Watch, scope.to_owned()).encode()?)
            .await?;
        send.finish()?;
        let mut watching = Self {
            stream,
            begun: None,
        };
        while !watching.hear().await?.alive {}
        Ok(watching)
    }

    /// Waits for the next chunk. An end of the watch is an error.
    async fn hear(&mut self) -> anyhow::Result<Heard> {
        let chunk = self.stream.read_chunk(usize::MAX, true).await?;
        let chunk = chunk.context("the watch's stream ended")?;
        let mut reader = self.begun.take().unwrap_or_default();
        let mut input = &*chunk.bytes;
        let mut heard = Heard::default();
        while let Some(block) = reader.read(&mut input)? {
            match block {
                BlockView::Event(event) => heard.ages.extend(event.agent.and_then(age_of)),
                BlockView::Control(control) if control.status == Status::Ok => heard.alive = true,
                BlockView::Control(control) => bail!("the watch ended: {control:?}"),
            }
        }
        self.begun = Some(reader).filter(|reader| !reader.is_between_blocks());
        Ok(heard)
    }

    async fn read(mut self, tally: Arc<Tally>, shard: usize) -> anyhow::Result<()> {
        loop {
            let heard = self.hear().await?;
            let mut spread = tally.shards[shard]
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            heard.ages.iter().for_each(|age| spread.record(*age));
            drop(spread);
            tally
                .delivered
                .fetch_add(heard.ages.len() as u64, Ordering::Relaxed);
        }
    }
}

/// Opens `count` watches of which nothing is read after the acknowledgement, as a suspended
/// client's; drop the streams to let go.
pub(crate) async fn open_unread(
    connection: &Connection,
    count: usize,
    scope: &str,
) -> anyhow::Result<Vec<RecvStream>> {
    let mut streams = Vec::new();
    for _ in 0..count {
        streams.push(Watching::open(connection.clone(), scope).await?.stream);
    }
    Ok(streams)
}

/// Publishes `body` at `path` with the time of sending, and waits for the answer.
pub(crate) async fn publish(
    connection: &Connection,
    path: &str,
    body: Bytes,
) -> anyhow::Result<()> {
    let request = Request::new(Verb::Publish, path.to_owned())
        .with("agent", format!("t{}", since_start().as_nanos()))
        .with_body(body);
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&request.encode()?).await?;
    send.finish()?;
    let answer = receive.read_to_end(ANSWER_BYTES_MAX).await?;
    let answer = Response::decode(&answer.into())?;
    ensure!(
        answer.status == Status::Created,
        "the write was answered {answer:?}"
    );
    Ok(())
}

/// How long ago the event was sent, by the agent that [`publish`] writes.
fn age_of(agent: &str) -> Option<Duration> {
    let sent = Duration::from_nanos(agent.strip_prefix('t')?.parse().ok()?);
    since_start().checked_sub(sent)
}

fn since_start() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
