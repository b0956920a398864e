//! The cache: it saves bodies and never serves what the server didn't confirm (D85).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use client::{Cache, Client, Draft, Trust, Which};
use fake::{Call, FakeServer, Part};
use tokio::sync::Notify;
use wire::{ContentHash, DocPath, Response, Status, Verb};

fn tea() -> DocPath {
    DocPath::parse("/tea.md").unwrap()
}

fn version(number: u64) -> Response {
    let body = format!("body {number}");
    Response::new(Status::Ok)
        .with("version", number.to_string())
        .with("content-hash", ContentHash::of(body.as_bytes()).to_string())
        .with("etag", format!("e{number}"))
        .with_body(body)
}

/// Serves the version that `current` names, or confirms it.
fn serve(current: &AtomicU64, call: &Call) -> Response {
    let number = current.load(Ordering::SeqCst);
    if call.request.verb == Verb::Publish {
        let number = current.fetch_add(1, Ordering::SeqCst) + 1;
        return Response::new(Status::Created).with("version", number.to_string());
    }
    if call.key("if-none-match") == Some(&format!("e{number}")) {
        return Response::new(Status::NotModified);
    }
    version(number)
}

fn server(current: &Arc<AtomicU64>) -> FakeServer {
    let current = Arc::clone(current);
    FakeServer::start(move |call| vec![serve(&current, call).into()])
}

fn cached(server: &FakeServer, cache: &Cache, token: &str) -> Client {
    server
        .builder()
        .trust(Trust::Anyone)
        .cache(cache.clone())
        .token(token)
        .build()
}

async fn fetched(client: &Client) -> Option<u64> {
    client.fetch(&tea(), Which::Current).await.unwrap().version
}

fn conditions(server: &FakeServer) -> Vec<Option<String>> {
    let requests = server.requests();
    let reads = requests
        .iter()
        .filter(|request| request.verb == Verb::Fetch);
    reads
        .map(|read| read.metadata.get("if-none-match").map(str::to_owned))
        .collect()
}

// D85
#[tokio::test]
async fn a_kept_answer_is_served_only_when_the_server_confirms_it() {
    let current = Arc::new(AtomicU64::new(1));
    let server = server(&current);
    let dir = tempfile::tempdir().unwrap();
    let client = cached(&server, &Cache::new(dir.path()), "a");
    assert_eq!(fetched(&client).await, Some(1));
    assert_eq!(fetched(&client).await, Some(1));
    current.store(2, Ordering::SeqCst);
    assert_eq!(fetched(&client).await, Some(2));
    assert_eq!(fetched(&client).await, Some(2));
    let e = |text: &str| Some(text.to_owned());
    assert_eq!(conditions(&server), [None, e("e1"), e("e1"), e("e2")]);
}

// D85
#[tokio::test]
async fn another_token_does_not_share_entries() {
    let server = server(&Arc::new(AtomicU64::new(1)));
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::new(dir.path());
    assert_eq!(fetched(&cached(&server, &cache, "a")).await, Some(1));
    assert_eq!(fetched(&cached(&server, &cache, "b")).await, Some(1));
    assert_eq!(conditions(&server), [None, None]);
}

// D85
#[tokio::test]
async fn an_own_write_drops_the_entry() {
    let server = server(&Arc::new(AtomicU64::new(1)));
    let dir = tempfile::tempdir().unwrap();
    let client = cached(&server, &Cache::new(dir.path()), "a");
    assert_eq!(fetched(&client).await, Some(1));
    let draft = Draft {
        body: "new".into(),
        ..Draft::default()
    };
    client.publish(&tea(), &draft).await.unwrap();
    assert_eq!(fetched(&client).await, Some(2));
    assert_eq!(conditions(&server), [None, None]);
}

// D85
#[tokio::test]
async fn a_slow_answer_does_not_put_an_old_version_back() {
    let current = Arc::new(AtomicU64::new(3));
    let go_on = Arc::new(Notify::new());
    let arrived = Arc::new(Notify::new());
    let slow = Mutex::new(true);
    let server = {
        let (go_on, arrived) = (Arc::clone(&go_on), Arc::clone(&arrived));
        FakeServer::start(move |call| {
            let answer = serve(&current, call).into();
            if std::mem::take(&mut *slow.lock().unwrap()) {
                current.store(4, Ordering::SeqCst);
                arrived.notify_one();
                return vec![Part::Until(Arc::clone(&go_on)), answer];
            }
            vec![answer]
        })
    };
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::new(dir.path());
    let builder = server.builder().trust(Trust::Anyone).cache(cache);
    let client = builder.patience(std::time::Duration::from_secs(10)).build();
    let late = tokio::spawn({
        let client = client.clone();
        async move { fetched(&client).await }
    });
    arrived.notified().await;
    assert_eq!(fetched(&client).await, Some(4));
    go_on.notify_one();
    assert_eq!(late.await.unwrap(), Some(3));
    assert_eq!(fetched(&client).await, Some(4));
    assert_eq!(conditions(&server).last().unwrap().as_deref(), Some("e4"));
}

// D85
#[tokio::test]
async fn a_cache_that_cannot_be_written_costs_speed_alone() {
    let server = server(&Arc::new(AtomicU64::new(1)));
    let file = tempfile::NamedTempFile::new().unwrap();
    let client = cached(&server, &Cache::new(file.path().join("under")), "a");
    for _ in 0..2 {
        assert_eq!(fetched(&client).await, Some(1));
    }
}

// D85
#[tokio::test]
async fn a_damaged_entry_is_read_again() {
    let server = server(&Arc::new(AtomicU64::new(1)));
    let dir = tempfile::tempdir().unwrap();
    let client = cached(&server, &Cache::new(dir.path()), "a");
    assert_eq!(fetched(&client).await, Some(1));
    let entry = std::fs::read_dir(dir.path()).unwrap().next().unwrap();
    let entry = entry.unwrap().path();
    let whole = std::fs::read(&entry).unwrap();
    for cut in [4, whole.len() - 1] {
        std::fs::write(&entry, &whole[..cut]).unwrap();
        assert_eq!(fetched(&client).await, Some(1));
    }
    assert_eq!(conditions(&server), [None, None, None]);
}
