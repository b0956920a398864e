//! Publishes whose answers are lost on the way, against a real server (D2).
//!
//! 1. The client speaks to the server through a relay that counts packets.
//! 2. A publish begins; after a given number of packets the network is cut, or the server killed.
//! 3. The network comes back, or the server does.
//! 4. The client must say that its version is done, and the document must hold it exactly once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use client::{Client, Draft, Error, ServerAddress, Trust, Which};
use testkit::link::Link;
use testkit::process::ServerProcess;
use wire::DocPath;

/// Short, so that the client notices in this test's lifetime.
const PATIENCE: Duration = Duration::from_millis(250);

/// A publish and its answer are a handful of packets; the last of these cuts come after it.
const CUTS: u64 = 12;

struct Bench {
    server: ServerProcess,
    link: Link,
    client: Client,
    version: u64,
    _dir: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let binary = env!("CARGO_BIN_EXE_tidings");
        let server = ServerProcess::start(binary, &dir.path().join("data"), &["--dev"]);
        let link = Link::to(server.mark(), 7).await.unwrap();
        let address = ServerAddress::new("127.0.0.1", link.address().port());
        let client = Client::builder(address)
            .trust(Trust::Anyone)
            .patience(PATIENCE)
            .build();
        let bench = Self {
            server,
            link,
            client,
            version: 0,
            _dir: dir,
        };
        bench.publish(0).await.unwrap();
        Self {
            version: 1,
            ..bench
        }
    }

    async fn publish(&self, expected: u64) -> Result<u64, Error> {
        let draft = Draft {
            body: format!("version {}\n", expected + 1).into(),
            expected: Some(expected),
            ..Draft::default()
        };
        self.client
            .publish(&path(), &draft)
            .await
            .map(|written| written.version)
    }

    /// Waits until `count` more packets have come to the relay; the publish may need fewer.
    async fn packets(&self, count: u64) {
        let target = self.link.packets() + count;
        let arrived = async {
            while self.link.packets() < target {
                tokio::task::yield_now().await;
            }
        };
        // Whoever waits for packets that never come cuts after the answer, which is a case too.
        let _ = tokio::time::timeout(PATIENCE, arrived).await;
    }

    /// The version is there once, and it is the newest.
    async fn check(&mut self, done: Result<u64, Error>, round: u64) {
        assert_eq!(done.unwrap(), self.version + 1, "round {round}");
        self.version += 1;
        let current = self.client.fetch(&path(), Which::Current).await.unwrap();
        assert_eq!(current.version, Some(self.version), "round {round}");
        let body = format!("version {}\n", self.version);
        assert_eq!(&current.body[..], body.as_bytes(), "round {round}");
    }
}

fn path() -> DocPath {
    DocPath::parse("/notes/tea.md").unwrap()
}

// D2
#[tokio::test]
async fn a_network_cut_at_any_packet_of_a_publish_leaves_it_done_once() {
    let mut bench = Bench::new().await;
    for round in 0..CUTS {
        let cut = async {
            bench.packets(round).await;
            bench.link.set_cut(true);
            tokio::time::sleep(PATIENCE * 2).await;
            bench.link.set_cut(false);
        };
        let (done, ()) = tokio::join!(bench.publish(bench.version), cut);
        bench.check(done, round).await;
    }
}

// D2
#[tokio::test]
async fn a_server_killed_at_any_packet_of_a_publish_leaves_it_done_once() {
    let mut bench = Bench::new().await;
    for round in 0..CUTS / 2 {
        let version = bench.version;
        let client = bench.client.clone();
        let publish = tokio::spawn(async move {
            let draft = Draft {
                body: format!("version {}\n", version + 1).into(),
                expected: Some(version),
                ..Draft::default()
            };
            let written = client.publish(&path(), &draft).await;
            written.map(|written| written.version)
        });
        bench.packets(round).await;
        let mut server = bench.server;
        bench.server = tokio::task::spawn_blocking(move || {
            server.kill();
            server.restart();
            server
        })
        .await
        .unwrap();
        let done = publish.await.unwrap();
        bench.check(done, round).await;
    }
}
