//! What whoever runs a server relies on: metrics that are documented, a memory budget that spares
//! those who are here, no rate in dev mode.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use client::{Client, Draft, ListQuery, Notice, Pool, ServerAddress, Trust};
use testkit::process::{ServerProcess, wait_for};
use wire::{DocPath, DocumentScope, Metadata};

const TIDINGS: &str = env!("CARGO_BIN_EXE_tidings");

/// A client with a connection of its own.
fn client_of(server: &ServerProcess) -> Client {
    let mark = server.mark();
    Client::builder(ServerAddress::new(&mark.ip().to_string(), mark.port()))
        .trust(Trust::Anyone)
        .pool(&Pool::default())
        .build()
}

fn everything() -> DocumentScope {
    DocumentScope {
        path: DocPath::root(),
        subtree: true,
    }
}

fn draft(body: &str) -> Draft {
    Draft {
        body: body.to_owned().into(),
        expected: None,
        metadata: Metadata::new(),
    }
}

fn metrics(server: &ServerProcess) -> String {
    server.admin_get("/metrics").unwrap().1
}

// P11
#[tokio::test]
async fn every_metric_of_a_running_server_is_documented() {
    let documentation = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let documentation = fs::read_to_string(documentation).unwrap();
    let rows = documentation.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("| `")?.split_once('`')?;
        Some(name)
    });
    let documented: BTreeSet<&str> = rows.collect();
    let dir = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(TIDINGS, &dir.path().join("data"), &[]);
    // What has an open list of labels is there once it was counted.
    let path = DocPath::parse("/a.md").unwrap();
    client_of(&server)
        .publish(&path, &draft("a"))
        .await
        .unwrap();
    let text = metrics(&server);
    let helps = text.lines().filter_map(|line| line.strip_prefix("# HELP "));
    let served: BTreeSet<&str> = helps.filter_map(|line| line.split(' ').next()).collect();
    assert!(served.len() > 30, "{text}");
    let missing: Vec<_> = served.difference(&documented).collect();
    assert!(missing.is_empty(), "not in docs/metrics.md: {missing:?}");
}

// T58
#[test]
fn every_cause_has_its_series_before_it_came_up() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(TIDINGS, &dir.path().join("data"), &[]);
    let text = metrics(&server);
    for series in [
        "tidings_mark_gaps_total{reason=\"lapped\"} 0",
        "tidings_mark_refusals_total{limit=\"memory\"} 0",
        "tidings_mark_watches_ended_total{cause=\"stalled\"} 0",
        "tidings_feed_gaps_total{source=\"documents\",reason=\"hole\"} 0",
        "tidings_feed_cursors_refused_total{source=\"documents\",reason=\"too-old\"} 0",
        "tidings_auth_reloads_total{outcome=\"kept\"} 0",
        "tidings_certificate_reloads_total{outcome=\"kept\"} 0",
    ] {
        assert!(
            text.contains(&format!("{series}\n")),
            "{series} in:\n{text}"
        );
    }
}

// P11, P12
#[tokio::test]
async fn above_the_memory_budget_newcomers_are_refused_and_those_who_are_here_are_served() {
    /// What a hundred idle connections and the difference between two starts take.
    const ROOM_BYTES: u64 = 8 << 20;
    const DIALS_MAX: usize = 2_000;

    let dir = tempfile::tempdir().unwrap();
    let at_rest = {
        let server = ServerProcess::start(TIDINGS, &dir.path().join("measured"), &["--dev"]);
        let client = client_of(&server);
        let _watch = client.watch(&everything(), None).await.unwrap();
        server.usage().resident_bytes
    };
    let file = dir.path().join("tidings.toml");
    let budget = at_rest + ROOM_BYTES;
    fs::write(&file, format!("[limits]\nmemory_bytes = {budget}\n")).unwrap();
    let arguments = ["--dev", "--config", file.to_str().unwrap()];
    let server = ServerProcess::start(TIDINGS, &dir.path().join("data"), &arguments);
    let client = client_of(&server);
    let mut watch = client.watch(&everything(), None).await.unwrap();
    let over = || metrics(&server).contains("tidings_memory_over 1\n");
    let mut crowd = Vec::new();
    for _ in 0..DIALS_MAX {
        let one = client_of(&server);
        let answered = one.list(&DocPath::root(), &ListQuery::default()).await;
        crowd.push(one);
        if answered.is_err() || over() {
            break;
        }
    }
    wait_for("the budget to be passed", over);
    assert!(client_of(&server).watch(&everything(), None).await.is_err());
    let refused = client.watch(&everything(), None).await.unwrap_err();
    assert!(format!("{refused:?}").contains("memory"), "{refused:?}");
    let large = "x".repeat(256 << 10);
    let path = DocPath::parse("/large.md").unwrap();
    assert!(client.publish(&path, &draft(&large)).await.is_err());
    let path = DocPath::parse("/small.md").unwrap();
    client.publish(&path, &draft("small")).await.unwrap();
    loop {
        let next = tokio::time::timeout(Duration::from_secs(60), watch.next());
        if let Notice::Change(change) = next.await.unwrap().unwrap() {
            assert_eq!(change.path, path);
            break;
        }
    }
    let (status, body) = server.admin_get("/readyz").unwrap();
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("\"over\":true"), "{body}");
    assert!(!metrics(&server).contains("tidings_mark_refusals_total{limit=\"memory\"} 0\n"));
    server.assert_quiet(&["over the memory budget"]);
}

#[tokio::test]
async fn in_dev_mode_a_burst_is_not_slowed_unless_somebody_set_a_rate() {
    let dir = tempfile::tempdir().unwrap();
    let path = DocPath::parse("/a.md").unwrap();
    let burst = async |server: &ServerProcess| {
        let client = client_of(server);
        client.publish(&path, &draft("a")).await.unwrap();
        for _ in 0..300 {
            // With a rate some are refused.
            let _ = client.versions(&path, None).await;
        }
        metrics(server)
    };
    let free = "tidings_mark_refusals_total{limit=\"rate_per_second\"} 0\n";
    let server = ServerProcess::start(TIDINGS, &dir.path().join("free"), &["--dev"]);
    assert!(burst(&server).await.contains(free));
    let file = dir.path().join("tidings.toml");
    fs::write(&file, "[limits]\nrate_per_second = 50\n").unwrap();
    let arguments = ["--dev", "--config", file.to_str().unwrap()];
    let server = ServerProcess::start(TIDINGS, &dir.path().join("bound"), &arguments);
    assert!(!burst(&server).await.contains(free));
}

// T58
#[tokio::test]
async fn the_log_names_connection_request_and_scope_and_no_payload() {
    const BODY: &str = "a-body-that-is-nobodys-business";
    const AGENT: &str = "an-agent-that-is-nobodys-business";

    let dir = tempfile::tempdir().unwrap();
    let arguments = ["--dev", "--log", "quic=debug"];
    let mut server = ServerProcess::start(TIDINGS, &dir.path().join("data"), &arguments);
    let client = client_of(&server);
    let watch = client.watch(&everything(), None).await.unwrap();
    let path = DocPath::parse("/notes/tea.md").unwrap();
    let draft = Draft {
        metadata: [("agent", AGENT)].into_iter().collect(),
        ..draft(BODY)
    };
    client.publish(&path, &draft).await.unwrap();
    drop(watch);
    server.stop();
    let log = server.log();
    for part in [
        "connection{id=",
        "remote=127.0.0.1:",
        "request{verb=PUBLISH path=/notes/tea.md}",
        "a watch begins scope=/",
        "a watch is over scope=/ cause=",
    ] {
        assert!(log.contains(part), "{part} in:\n{log}");
    }
    assert!(!log.contains(BODY) && !log.contains(AGENT), "{log}");
}

// T57
#[tokio::test]
async fn a_source_that_is_not_required_does_not_decide_on_readiness() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tidings.toml");
    fs::write(&file, "[documents]\nrequired = false\n").unwrap();
    let arguments = ["--dev", "--config", file.to_str().unwrap()];
    let server = ServerProcess::start(TIDINGS, &dir.path().join("data"), &arguments);
    for path in ["/readyz", "/readyz/documents"] {
        assert_eq!(server.admin_get(path).unwrap().0, 200);
    }
    assert_eq!(server.admin_get("/readyz/nothing").unwrap().0, 404);
}
