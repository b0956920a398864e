//! A herd of watchers whose server is killed: all of them come back, and none misses anything.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use client::{Client, Draft, Notice, Pool, ServerAddress, Trust, Watch};
use testkit::process::ServerProcess;
use tokio::task::JoinSet;
use wire::{DocPath, DocumentScope};

const CLIENTS: usize = 10;
const WATCHES_PER_CLIENT: usize = 100;

/// How long a herd may take to be back and told: the bound of its 99th percentile.
const BACK_WITHIN: Duration = Duration::from_secs(25);

fn client(server: &ServerProcess) -> Client {
    let address = ServerAddress::new("127.0.0.1", server.mark().port());
    let builder = Client::builder(address).trust(Trust::Anyone);
    builder.pool(&Pool::default()).build()
}

async fn publish(client: &Client, number: u64) {
    let draft = Draft {
        body: format!("version {number}\n").into(),
        ..Draft::default()
    };
    let path = DocPath::parse("/a.md").unwrap();
    let written = client.publish(&path, &draft).await.unwrap();
    assert_eq!(written.version, number);
}

/// Reads up to the next change, which must be this version. A gap would be a loss.
async fn follow(mut watch: Watch, version: u64) -> Watch {
    loop {
        match watch.next().await.unwrap() {
            Notice::Change(change) => {
                assert_eq!(change.version, version);
                return watch;
            }
            Notice::Position(_) => {}
            Notice::Gap(gap) => panic!("{gap:?}"),
        }
    }
}

async fn all_follow(watches: Vec<Watch>, version: u64) -> Vec<Watch> {
    let mut following = JoinSet::new();
    for watch in watches {
        following.spawn(follow(watch, version));
    }
    following.join_all().await
}

// F27
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_watchers_are_back_after_a_kill_and_miss_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let configuration = dir.path().join("tidings.toml");
    std::fs::write(&configuration, "[limits]\nrate_per_second = 0\n").unwrap();
    let flags = ["--dev", "--config", configuration.to_str().unwrap()];
    let binary = env!("CARGO_BIN_EXE_tidings");
    let mut server = ServerProcess::start(binary, &dir.path().join("data"), &flags);
    let everything = DocumentScope {
        path: DocPath::root(),
        subtree: true,
    };
    let clients: Vec<Client> = (0..CLIENTS).map(|_| client(&server)).collect();
    let mut watches = Vec::new();
    for client in &clients {
        for _ in 0..WATCHES_PER_CLIENT {
            watches.push(client.watch(&everything, None).await.unwrap());
        }
    }
    publish(&client(&server), 1).await;
    let watches = all_follow(watches, 1).await;

    let killed = Instant::now();
    let mut server = tokio::task::spawn_blocking(move || {
        server.kill();
        server.restart();
        server
    })
    .await
    .unwrap();
    publish(&client(&server), 2).await;
    // It answers while they come back.
    assert_eq!(server.admin_get("/readyz").unwrap().0, 200);
    let watches = all_follow(watches, 2).await;
    assert!(killed.elapsed() < BACK_WITHIN, "{:?}", killed.elapsed());
    assert_eq!(watches.len(), CLIENTS * WATCHES_PER_CLIENT);
    drop(watches);
    assert!(server.stop().success());
}
