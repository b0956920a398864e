//! WATCH as its client sees it, over a real connection.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

mod world;

use std::time::Duration;

use quic::Limits;
use tokio::time::Instant;
use wire::{Request, Verb};
use world::{World, dial, endpoint, limits, within};

fn watch_since(path: &str, since: &str) -> Request {
    Request::new(Verb::Watch, path.to_owned()).with("since", since)
}

// T31, D-P7
#[tokio::test]
async fn a_change_after_the_acknowledgement_is_told_even_where_nothing_is_yet() {
    let world = World::open(limits()).await;
    let client = world.dial().await;
    let mut watch = client.watch("/inbox/agent/").await;
    world
        .publish_by("/inbox/agent/1.md", "# Hello", "tea-bot")
        .await;
    let event = watch.event().await;
    assert_eq!(event.get("path"), Some("/inbox/agent/1.md"));
    assert_eq!(event.get("version"), Some("1"));
    assert_eq!(event.get("op"), Some("publish"));
    assert_eq!(event.get("agent"), Some("tea-bot"));
    // F22: what was told can be read.
    let hash = event.get("hash").unwrap();
    let content = client.get(Verb::Fetch, &format!("/{hash}")).await;
    assert_eq!(content.body, "# Hello");
}

// T33
#[tokio::test]
async fn a_cursor_that_is_none_is_refused_and_one_of_elsewhere_gets_a_resync() {
    let world = World::open(limits()).await;
    world.publish("/a.md", "a").await;
    let client = world.dial().await;
    let head = client.watch("/").await;
    drop(head);
    let too_long = format!("{}:1", "e".repeat(65));
    for since in [
        "e:007",
        "e:+7",
        "e:-1",
        "e: 7",
        "e:18446744073709551616",
        &too_long,
        "e",
        "",
    ] {
        let answer = client.ask(watch_since("/", since)).await;
        assert_eq!(answer.status, wire::Status::BadRequest, "{since}");
        assert_eq!(answer.message(), Some("invalid since cursor"), "{since}");
    }
    let mut watch = client.open_watch(watch_since("/", "elsewhere:7")).await;
    assert_eq!(watch.last().await.get("reason"), Some("epoch"));
}

// T35
#[tokio::test]
async fn a_position_that_cannot_be_resumed_gets_one_resync_that_can() {
    let world = World::with_ring(limits(), 4).await;
    let client = world.dial().await;
    let mut other = client.watch("/").await;
    for number in 0..6 {
        world.publish(&format!("/{number}.md"), "x").await;
    }
    let epoch = other
        .event()
        .await
        .get("cursor")
        .unwrap()
        .split(':')
        .next()
        .unwrap()
        .to_owned();
    for (since, reason) in [
        (format!("{epoch}:0"), "too-old"),
        (format!("{epoch}:999"), "ahead"),
        ("feedface:3".to_owned(), "epoch"),
    ] {
        let mut watch = client.open_watch(watch_since("/", &since)).await;
        let resync = watch.next().await.unwrap();
        assert_eq!(resync.get("status"), Some("resync"), "{since}");
        assert_eq!(resync.get("reason"), Some(reason), "{since}");
        assert_eq!(resync.get("cursor"), Some(format!("{epoch}:6").as_str()));
        assert_eq!(watch.next().await, None);
        // The original resumes from the cursor of the resync, so it must be taken.
        let since = resync.get("cursor").unwrap();
        let mut resumed = client.open_watch(watch_since("/", since)).await;
        assert_eq!(resumed.next().await.unwrap().get("cursor"), Some(since));
    }
    // Other watches of the connection go on.
    world.publish("/last.md", "x").await;
    while other.event().await.get("path") != Some("/last.md") {}
}

#[tokio::test]
async fn a_watch_resumes_after_its_cursor() {
    let world = World::open(limits()).await;
    let client = world.dial().await;
    let mut watch = client.watch("/").await;
    for number in 1..=5 {
        world.publish(&format!("/{number}.md"), "x").await;
    }
    watch.event().await;
    let second = watch.event().await.get("cursor").unwrap().to_owned();
    let mut resumed = client.open_watch(watch_since("/", &second)).await;
    assert_eq!(
        resumed.next().await.unwrap().get("cursor"),
        Some(second.as_str())
    );
    for number in 3..=5 {
        let path = format!("/{number}.md");
        assert_eq!(resumed.event().await.get("path"), Some(path.as_str()));
    }
}

// T46
#[tokio::test]
async fn a_prefix_ends_at_a_slash_and_a_document_is_only_itself() {
    let world = World::open(limits()).await;
    let client = world.dial().await;
    let mut prefix = client.watch("//docs/./").await;
    let mut exact = client.watch("/docs/a.md").await;
    let mut all = client.watch("/").await;
    for path in ["/docs-old/a.md", "/docs/a.md", "/docs/b/c.md", "/z.md"] {
        world.publish(path, "x").await;
    }
    world.publish("/docs/a.md", "y").await;
    assert_eq!(prefix.event().await.get("path"), Some("/docs/a.md"));
    assert_eq!(prefix.event().await.get("path"), Some("/docs/b/c.md"));
    assert_eq!(prefix.event().await.get("version"), Some("2"));
    assert_eq!(exact.event().await.get("version"), Some("1"));
    assert_eq!(exact.event().await.get("version"), Some("2"));
    assert_eq!(all.event().await.get("path"), Some("/docs-old/a.md"));
    let dotted = client.get(Verb::Watch, "/docs/../secret/").await;
    assert_eq!(dotted.status, wire::Status::NotFound);
    let hash = format!("/sha256-{}", "0".repeat(64));
    let reserved = client.get(Verb::Watch, &hash).await;
    assert_eq!(reserved.status, wire::Status::BadRequest);
    assert_eq!(
        reserved.message(),
        Some("paths matching /sha256-<hash> are reserved")
    );
}

fn heartbeat_of(millis: u64) -> Limits {
    Limits {
        heartbeat: Duration::from_millis(millis),
        ..limits()
    }
}

// T36
#[tokio::test]
async fn a_heartbeat_carries_the_position_and_is_due_after_the_last_block() {
    let world = World::open(heartbeat_of(200)).await;
    let client = world.dial().await;
    let mut watch = client.watch("/mine/").await;
    world.publish("/mine/a.md", "x").await;
    watch.event().await;
    let written = Instant::now();
    world.publish("/other/b.md", "x").await;
    let beat = watch.next().await.unwrap();
    assert_eq!(beat.get("status"), Some("ok"));
    // P4: a watch that nothing concerns advances.
    assert!(beat.get("cursor").unwrap().ends_with(":2"), "{beat:?}");
    assert!(
        written.elapsed() >= Duration::from_millis(150),
        "{:?}",
        written.elapsed()
    );
}

// T36
#[tokio::test]
async fn under_constant_delivery_there_are_no_heartbeats() {
    let world = World::open(heartbeat_of(300)).await;
    let client = world.dial().await;
    let mut watch = client.watch("/").await;
    let start = Instant::now();
    for number in 0.. {
        world.publish("/a.md", &format!("{number}")).await;
        let block = watch.next().await.unwrap();
        assert_eq!(block.get("op"), Some("publish"), "{block:?}");
        if start.elapsed() > Duration::from_millis(900) {
            break;
        }
    }
}

const TOKENS: &str = r#"
[tokens.a]
hash = "sha256-ba5005a40cf5212e4ac0190104cc127edab013294bb71279a975b27a80982d45"
paths = ["/a/**"]
operations = ["read"]

[tokens.b]
hash = "sha256-b71fe355e1e1872b6134ef9de0231788e7e636b097457e5da3ef054138474780"
paths = ["/b/**"]
operations = ["read"]
"#;

fn watch_as(path: &str, token: &str) -> Request {
    Request::new(Verb::Watch, path.to_owned()).with("auth", token)
}

// T37
#[tokio::test]
async fn what_may_not_be_seen_leaves_no_trace_and_the_position_moves_past_it() {
    let world = World::with_tokens(TOKENS, heartbeat_of(200)).await;
    let client = world.dial().await;
    let mut watch = client.open_watch(watch_as("/", "reader-token")).await;
    assert_eq!(watch.next().await.unwrap().get("status"), Some("ok"));
    for path in ["/b/1.md", "/a/2.md", "/3.md", "/b/4.md"] {
        world.publish(path, "x").await;
    }
    assert_eq!(watch.next().await.unwrap().get("path"), Some("/a/2.md"));
    assert_eq!(watch.next().await.unwrap().get("path"), Some("/3.md"));
    let beat = watch.next().await.unwrap();
    assert!(beat.get("cursor").unwrap().ends_with(":4"), "{beat:?}");
    assert_eq!(world.metric("tidings_mark_withheld_total"), 2);
}

#[tokio::test]
async fn a_scope_in_which_nothing_could_be_read_is_refused() {
    let world = World::with_tokens(TOKENS, limits()).await;
    let client = world.dial().await;
    for path in ["/a/", "/a/x.md", "/a", "//a/", "/./a/"] {
        let path = path.to_owned();
        let anonymous = client.ask(Request::new(Verb::Watch, path.clone())).await;
        assert_eq!(anonymous.status, wire::Status::Unauthorized, "{path}");
        assert_eq!(
            anonymous.metadata.get("message"),
            Some("authentication required")
        );
        let other = client.ask(watch_as(&path, "keeper-token")).await;
        assert_eq!(other.status, wire::Status::NotPermitted, "{path}");
    }
}

#[tokio::test]
async fn a_token_that_is_revoked_ends_its_watch_at_the_reload() {
    let world = World::with_tokens(TOKENS, limits()).await;
    let client = world.dial().await;
    let mut revoked = client.open_watch(watch_as("/a/", "reader-token")).await;
    let mut other = client.open_watch(watch_as("/b/", "keeper-token")).await;
    revoked.next().await.unwrap();
    other.next().await.unwrap();
    world.set_tokens(&TOKENS.replace("ba5005", "ba5006"));
    let last = revoked.last().await;
    assert_eq!(last.get("status"), Some("unauthorized"));
    assert!(last.get("cursor").is_some());
    world.publish("/b/1.md", "x").await;
    other.event().await;
}

// T36
#[tokio::test]
async fn a_right_that_runs_out_ends_the_watch_within_a_heartbeat_under_a_flood() {
    let expires = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(400);
    let tokens = TOKENS.replacen(
        "operations",
        &format!("expires = \"{expires}\"\noperations"),
        1,
    );
    let world = World::with_tokens(&tokens, heartbeat_of(200)).await;
    let client = world.dial().await;
    let mut watch = client.open_watch(watch_as("/", "reader-token")).await;
    watch.next().await.unwrap();
    let flood = async {
        for number in 0.. {
            world.publish("/b/flood.md", &format!("{number}")).await;
        }
    };
    let last = tokio::select! {
        last = watch.last() => last,
        () = flood => unreachable!("the flood has no end"),
    };
    assert_eq!(last.get("status"), Some("unauthorized"));
    assert!(jiff::Timestamp::now().duration_since(expires) < jiff::SignedDuration::from_secs(2));
}

// T43
#[tokio::test]
async fn over_the_limit_a_watch_is_refused_by_name_and_requests_go_on() {
    let few = Limits {
        streams_initial: 8,
        streams_max: 8,
        watches: 5,
        ..limits()
    };
    let world = World::open(few).await;
    let client = world.dial().await;
    let mut watches = Vec::new();
    for _ in 0..4 {
        watches.push(client.watch("/").await);
    }
    let fifth = client.get(Verb::Watch, "/").await;
    assert_eq!(fifth.status, wire::Status::RateLimited);
    assert!(
        fifth
            .metadata
            .get("message")
            .unwrap()
            .contains("watches_per_connection")
    );
    assert!(fifth.body.is_empty());
    world.publish("/a.md", "x").await;
    assert_eq!(client.get(Verb::Fetch, "/a.md").await.body, "x");
    for watch in &mut watches {
        watch.event().await;
    }
    let neighbour = world.dial().await;
    let _fifth = neighbour.watch("/").await;
    let sixth = neighbour.get(Verb::Watch, "/").await;
    assert!(
        sixth
            .metadata
            .get("message")
            .unwrap()
            .ends_with("limit watches"),
        "{sixth:?}"
    );
    watches.pop().unwrap().cancel();
    world.metric_reaches("tidings_mark_watches ", 4).await;
    neighbour.watch("/").await;
}

// T48
#[tokio::test]
async fn a_cancelled_watch_and_a_closed_connection_free_their_places_at_once() {
    let world = World::open(limits()).await;
    let client = world.dial().await;
    let watch = client.watch("/").await;
    let _second = client.watch("/").await;
    assert_eq!(world.store.feed().stats().subscriptions, 2);
    watch.cancel();
    world.metric_reaches("tidings_mark_watches ", 1).await;
    client.connection.close(0u32.into(), b"");
    world.metric_reaches("tidings_mark_watches ", 0).await;
    world.metric_reaches("tidings_mark_connections ", 0).await;
    assert_eq!(world.store.feed().stats().subscriptions, 0);
}

// T43, T44: the number of streams grows while they are used.
#[tokio::test]
async fn a_hundred_watches_fit_on_a_connection_that_began_with_sixteen_streams() {
    let world = World::open(limits()).await;
    let client = world.dial().await;
    let mut watches = Vec::new();
    for _ in 0..100 {
        watches.push(client.watch("/a.md").await);
    }
    let refused = client.get(Verb::Watch, "/").await;
    assert_eq!(refused.status, wire::Status::RateLimited);
    world.publish("/a.md", "x").await;
    for watch in &mut watches {
        assert_eq!(watch.event().await.get("version"), Some("1"));
    }
}

/// A connection whose streams hold little that was not read.
async fn dial_narrow(world: &World) -> world::Client {
    let mut transport = quinn::TransportConfig::default();
    transport.stream_receive_window(2_048u32.into());
    world.dial_with(transport).await
}

// T6, P12
#[tokio::test]
async fn a_watch_that_is_not_read_delays_no_neighbour_on_its_connection() {
    let world = World::open(limits()).await;
    let client = dial_narrow(&world).await;
    let _unread = client.watch("/").await;
    let mut read = client.watch("/").await;
    for number in 0..200 {
        world.publish("/a.md", &format!("{number}")).await;
        let version = (number + 1).to_string();
        assert_eq!(read.event().await.get("version"), Some(version.as_str()));
    }
    assert_eq!(client.get(Verb::Fetch, "/a.md").await.body, "199");
}

// T7, T35
#[tokio::test]
async fn a_reader_that_was_overtaken_is_told_and_its_stream_ends() {
    let world = World::with_ring(limits(), 8).await;
    let client = dial_narrow(&world).await;
    let mut lapped = client.watch("/").await;
    for number in 0..200 {
        world.publish("/a.md", &format!("{number}")).await;
    }
    let last = lapped.last().await;
    assert_eq!(last.get("status"), Some("resync"));
    assert_eq!(last.get("reason"), Some("lapped"));
    assert!(last.get("cursor").unwrap().ends_with(":200"));
    assert_eq!(
        world.metric("tidings_mark_gaps_total{reason=\"lapped\"}"),
        1
    );
}

// T22
#[tokio::test]
async fn a_client_that_takes_nothing_loses_its_watch_and_nothing_else() {
    let quick = Limits {
        write_stall: Duration::from_millis(200),
        ..limits()
    };
    let world = World::open(quick).await;
    let client = dial_narrow(&world).await;
    let mut stalled = client.watch("/").await;
    let mut read = client.watch("/").await;
    for number in 0..100 {
        world.publish("/a.md", &format!("{number}")).await;
        read.event().await;
    }
    world
        .metric_reaches("tidings_mark_watches_ended_total{cause=\"stalled\"}", 1)
        .await;
    // It is reset: what it had not read is no clean end.
    let reset = within(async {
        loop {
            match stalled.try_next().await {
                Ok(Some(_)) => {}
                other => break other,
            }
        }
    });
    assert!(matches!(reset.await, Err(quinn::ReadError::Reset(_))));
    world.publish("/a.md", "more").await;
    read.event().await;
}

// T49
#[tokio::test]
async fn a_client_that_changes_its_address_keeps_its_watch() {
    let world = World::open(limits()).await;
    let client = world.dial().await;
    let mut watch = client.watch("/").await;
    world.publish("/a.md", "1").await;
    assert_eq!(watch.event().await.get("version"), Some("1"));
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    client.endpoint.rebind(socket).unwrap();
    world.publish("/a.md", "2").await;
    assert_eq!(watch.event().await.get("version"), Some("2"));
    assert_eq!(client.get(Verb::Fetch, "/a.md").await.body, "2");
}

#[tokio::test]
async fn a_client_with_another_protocol_is_refused_in_the_handshake() {
    let world = World::open(limits()).await;
    let endpoint = endpoint(&world.certificate, b"h3");
    assert!(dial(&endpoint, world.addr).await.is_err());
}
