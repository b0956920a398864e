//! A server over a store in a temporary directory, and a client that speaks raw bytes to it.
//!
//! Nothing here sleeps: whatever may take time is awaited, within a bound that only a hang
//! reaches.

#![allow(
    clippy::unused_async,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of it, and a panic is its failure report"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use auth::{Authority, Files};
use documents::FileStore;
use gate::{Certificate, Memory};
use prometheus_client::registry::Registry;
use storage::Disk;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use web::{Config, Limits, Origins, StreamConfig, WebServer};

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

/// A tokens file in which `token` may do `operations` at `paths`.
pub fn token(token: &str, paths: &str, operations: &[&str]) -> String {
    let hash = wire::ContentHash::of(token.as_bytes());
    format!(
        "[tokens.{token}]\nhash = \"{hash}\"\npaths = [\"{paths}\"]\noperations = {operations:?}\n"
    )
}

/// A running server with its store.
pub struct World {
    pub dir: TempDir,
    pub store: FileStore,
    pub authority: Authority,
    pub addr: SocketAddr,
    pub registry: Registry,
    leave: CancellationToken,
    serving: JoinHandle<()>,
}

impl World {
    /// A world in which everyone may do everything.
    pub async fn open() -> Self {
        Self::with(limits(), Origins::default()).await
    }

    /// The same with these bounds and pages from elsewhere.
    pub async fn with(limits: Limits, origins: Origins) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::start(dir, Authority::dev(), limits, origins, None).await
    }

    /// A world with these tokens.
    pub async fn with_tokens(tokens: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("tokens.toml"), tokens).unwrap();
        let authority = Authority::open(Files {
            tokens: dir.path().join("tokens.toml"),
            tokens_required: true,
            closed: dir.path().join("closed.toml"),
        });
        let origins = Origins::parse(["https://app.example"]).unwrap();
        Self::start(dir, authority.unwrap(), limits(), origins, None).await
    }

    /// A world in `dir`.
    pub async fn start(
        dir: TempDir,
        authority: Authority,
        limits: Limits,
        origins: Origins,
        certificate: Option<Certificate>,
    ) -> Self {
        let streams = StreamConfig::default();
        Self::stream(dir, authority, limits, origins, certificate, streams).await
    }

    /// A world in which everyone may do everything, with these channels.
    pub async fn with_streams(limits: Limits, streams: StreamConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (authority, origins) = (Authority::dev(), Origins::default());
        Self::stream(dir, authority, limits, origins, None, streams).await
    }

    /// A world in `dir` whose streams draw on `streams`.
    pub async fn stream(
        dir: TempDir,
        authority: Authority,
        limits: Limits,
        origins: Origins,
        certificate: Option<Certificate>,
        streams: StreamConfig,
    ) -> Self {
        let config = documents::Config::default();
        let store = FileStore::open(dir.path(), config, &mut |_| {}).unwrap();
        let config = Config {
            addr: ([127, 0, 0, 1], 0).into(),
            certificate,
            limits,
            memory: Memory::default(),
            origins,
            storage: Arc::new(Disk::open(dir.path()).unwrap()),
            web_tokens: None,
            streams,
        };
        let mut registry = Registry::default();
        let server =
            WebServer::bind(config, store.clone(), authority.clone(), &mut registry).unwrap();
        let addr = server.local_addr();
        let leave = CancellationToken::new();
        let left = leave.clone();
        let serving = tokio::spawn(async move { server.run(left).await });
        Self {
            dir,
            store,
            authority,
            addr,
            registry,
            leave,
            serving,
        }
    }

    /// Tells the server to leave.
    pub fn leave(&self) {
        self.leave.cancel();
    }

    /// Leaves, and opens the same directory afresh.
    pub async fn restart(self) -> Self {
        let (dir, authority) = (self.stop().await, Authority::dev());
        Self::start(dir, authority, limits(), Origins::default(), None).await
    }

    /// Leaves, and gives the directory.
    pub async fn stop(self) -> TempDir {
        self.leave.cancel();
        within(self.serving).await.unwrap();
        self.store.close().unwrap();
        self.dir
    }

    /// The metrics as text.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text
    }

    /// Sends a request on a connection of its own and reads the answer.
    pub async fn ask(
        &self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        ask(self.addr, method, target, fields, body).await
    }

    pub async fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, &[], b"").await
    }

    pub async fn put(&self, target: &str, fields: &[(&str, &str)], body: &str) -> Answer {
        self.ask("PUT", target, fields, body.as_bytes()).await
    }

    /// Sends `bytes` and reads until the server closes.
    pub async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        // The server may have seen enough before it has seen all.
        let _ = stream.write_all(bytes).await;
        String::from_utf8_lossy(&read_all(&mut stream).await).into_owned()
    }
}

/// Sends a request on a connection of its own and reads the answer.
pub async fn ask(
    addr: SocketAddr,
    method: &str,
    target: &str,
    fields: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut head = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
    if !fields
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        head.push_str(&format!("Host: {addr}\r\n"));
    }
    if !body.is_empty() {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut stream = within(TcpStream::connect(addr)).await.unwrap();
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    let _ = stream.write_all(&bytes).await;
    Answer::parse(&read_all(&mut stream).await)
}

/// What the server says until it closes.
pub async fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset after the answer loses nothing of it.
    let _ = within(stream.read_to_end(&mut bytes)).await;
    bytes
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let end = bytes.windows(4).position(|it| it == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head: {text:?}"));
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let fields = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap_or((line, ""));
            (name.to_ascii_lowercase(), value.to_owned())
        });
        Self {
            status: status.parse().unwrap(),
            fields: fields.collect(),
            body: bytes[end + 4..].to_vec(),
        }
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    /// The code of a refusal.
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap().to_owned()
    }
}
