//! `GET /v1/watch` over real sockets.

#![allow(
    clippy::unwrap_used,
    reason = "a panic of a helper is the failure report"
)]

mod listener;
mod world;

use std::time::{Duration, Instant};

use listener::{Event, Stream, tell};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use web::{Limits, Origins, StreamLimits};
use world::{World, limits, token, within};

fn short(streams: StreamLimits) -> Limits {
    Limits {
        streams,
        ..limits()
    }
}

fn seq(event: &Event) -> u64 {
    let id = event.id.as_deref().expect("an id");
    id.rsplit_once('-').unwrap().1.parse().unwrap()
}

// T1, T2, T3
#[tokio::test]
async fn a_stream_begins_with_its_position_and_tells_every_change() {
    let world = World::open().await;
    let began = Instant::now();
    let (mut stream, first) = Stream::follow(world.addr, "doc:/notes/").await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "the first event comes at once"
    );
    assert!(
        stream.head.starts_with("HTTP/1.1 200 OK\r\n"),
        "{}",
        stream.head
    );
    for field in [
        "content-type: text/event-stream\r\n",
        "cache-control: no-cache, no-transform\r\n",
        "x-accel-buffering: no\r\n",
        "x-content-type-options: nosniff\r\n",
    ] {
        assert!(stream.head.contains(field), "{field} in {}", stream.head);
    }
    assert_eq!(first.event, "beat");
    assert!(
        stream
            .retry
            .is_some_and(|retry| (1_000..=2_000).contains(&retry))
    );
    tell(&world.store, "/notes/tea.md", 3);
    tell(&world.store, "/bills/may.md", 1);
    tell(&world.store, "/notes/a b.md", 1);
    let event = stream.next_told().await;
    assert_eq!(event.event, "publish");
    assert_eq!(event.data["name"], "/notes/tea.md");
    assert_eq!(event.data["version"], 3);
    assert_eq!(event.data["scope"], "doc:/notes/");
    assert_eq!(
        event.data["cursor"].as_str().unwrap().replace(':', "-"),
        event.id.unwrap()
    );
    assert_eq!(seq(&stream.next_told().await), seq(&first) + 3);
    world.stop().await;
}

// T11, T33
#[tokio::test]
async fn a_stream_goes_on_from_a_position_in_any_spelling() {
    let world = World::open().await;
    let (_, first) = Stream::follow(world.addr, "/").await;
    let from = first.id.unwrap();
    for version in 1..=3 {
        tell(&world.store, "/a", version);
    }
    let colon = from.replace('-', ":");
    let targets = [
        (format!("/v1/watch?scope=/&since={from}"), None),
        (format!("/v1/watch?scope=/&since={colon}"), None),
        (format!("/v1/watch?scope=/&last_event_id={from}"), None),
        (format!("/v1/watch?scope=/&lastEventId={from}"), None),
        (format!("/v1/watch?scope=/&lastEventID={from}"), None),
        ("/v1/watch?scope=/&since=e:7".to_owned(), Some(from.clone())),
    ];
    for (target, header) in targets {
        let fields: Vec<_> = header
            .iter()
            .map(|id| ("Last-Event-ID", id.as_str()))
            .collect();
        let mut stream = Stream::open(world.addr, &target, &fields).await;
        let versions = [
            stream.next_told().await,
            stream.next_told().await,
            stream.next_told().await,
        ];
        let versions = versions.map(|event| event.data["version"].as_u64().unwrap());
        assert_eq!(versions, [1, 2, 3], "{target}");
    }
    for (since, reason) in [
        ("e:007", "malformed"),
        ("e:7", "epoch"),
        (
            &format!("{}:99", colon.rsplit_once(':').unwrap().0),
            "ahead",
        ),
    ] {
        let target = format!("/v1/watch?scope=/&since={since}");
        let mut stream = Stream::open(world.addr, &target, &[]).await;
        let gap = stream.next_told().await;
        assert_eq!(
            (gap.event.as_str(), &gap.data["reason"]),
            ("gap", &reason.into())
        );
        let at = tell(&world.store, "/a", 9);
        assert_eq!(
            seq(&stream.next_told().await),
            at,
            "it goes on after the gap"
        );
        assert_eq!(seq(&gap) + 1, at);
    }
    world.stop().await;
}

#[tokio::test]
async fn lines_of_json_say_the_same() {
    let world = World::open().await;
    let accept = [("Accept", "application/x-ndjson")];
    let mut stream = Stream::open(world.addr, "/v1/watch?scope=/&scope=/a", &accept).await;
    assert!(
        stream.head.contains("content-type: application/x-ndjson"),
        "{}",
        stream.head
    );
    tell(&world.store, "/a", 2);
    let lines = [stream.line().await, stream.line().await];
    let lines = lines.map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap());
    assert_eq!(lines[0]["op"], "beat");
    assert_eq!(lines[1]["op"], "publish");
    assert_eq!(lines[1]["scope"], "doc:/");
    world.stop().await;
}

// T50
#[tokio::test]
async fn what_can_not_be_watched_is_refused_with_its_code() {
    let world = World::open().await;
    for (target, status, code) in [
        ("/v1/watch", 400, "bad-parameter"),
        ("/v1/watch?scope=notes", 400, "bad-parameter"),
        ("/v1/watch?scope=/&min_gap_ms=NaN", 400, "bad-parameter"),
        ("/v1/watch?scope=/&min_gap_ms=-1", 400, "bad-parameter"),
        (
            "/v1/watch?scope=/&since=a:1&since=a:2",
            400,
            "bad-parameter",
        ),
        ("/v1/watch?scope=/&token=x", 400, "bad-parameter"),
        ("/v1/watch?scope=/&colour=red", 400, "unknown-parameter"),
        ("/v1/watch?scope=/&scope=channel:room", 400, "many-feeds"),
        ("/v1/watch?scope=channel:room", 403, "not-permitted"),
        ("/v1/socket", 426, "upgrade-required"),
    ] {
        let answer = world.get(target).await;
        assert_eq!(answer.status, status, "{target}");
        let error: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(error["error"]["code"], code, "{target}");
    }
    let post = world.ask("POST", "/v1/watch?scope=/", &[], b"x").await;
    assert_eq!(post.status, 405);
    let head = world.ask("HEAD", "/v1/watch?scope=/", &[], b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    world.stop().await;
}

// T5, T9
#[tokio::test]
async fn a_quiet_stream_is_told_its_position() {
    let streams = StreamLimits {
        heartbeat: Duration::from_millis(100),
        ..StreamLimits::default()
    };
    let world = World::with(short(streams), Origins::default()).await;
    let (mut stream, first) = Stream::follow(world.addr, "/notes/").await;
    tell(&world.store, "/bills/may.md", 1);
    loop {
        let beat = stream.next().await.unwrap();
        assert_eq!(beat.event, "beat");
        if seq(&beat) == seq(&first) + 1 {
            break;
        }
    }
    world.stop().await;
}

// T19, T68
#[tokio::test]
async fn a_drain_tells_each_stream_when_to_come_back() {
    let world = World::open().await;
    let mut streams = Vec::new();
    for _ in 0..50 {
        streams.push(Stream::follow(world.addr, "/").await.0);
    }
    let at = tell(&world.store, "/a", 1);
    world.leave();
    let mut retries = Vec::new();
    for mut stream in streams {
        assert_eq!(seq(&stream.next_told().await), at);
        let closing = stream.next_told().await;
        assert_eq!(closing.event, "closing");
        assert_eq!(closing.data["reason"], "draining");
        assert_eq!(seq(&closing), at);
        assert_eq!(closing.data["retry_after_ms"], stream.retry.unwrap());
        retries.push(stream.retry.unwrap());
        assert_eq!(stream.next().await, None);
    }
    retries.sort_unstable();
    retries.dedup();
    assert!(
        retries.len() > 10,
        "they come back at different times: {retries:?}"
    );
    world.stop().await;
}

// T53
#[tokio::test]
async fn nothing_is_lost_or_told_twice_over_ends_of_lifetime() {
    let streams = StreamLimits {
        heartbeat: Duration::from_millis(10),
        lifetime: Duration::from_millis(60),
        ..StreamLimits::default()
    };
    let world = World::with(short(streams), Origins::default()).await;
    let (mut stream, first) = Stream::follow(world.addr, "/").await;
    let mut last = first.id.clone().unwrap();
    let mut told = Vec::new();
    let mut rotations = 0;
    let mut published = 0;
    while rotations < 10 {
        published += 1;
        tell(&world.store, "/a", published);
        tokio::task::yield_now().await;
        match stream.next().await {
            Some(event) => {
                if event.event == "publish" {
                    told.push(event.data["version"].as_u64().unwrap());
                }
                if event.event == "closing" {
                    assert_eq!(event.data["reason"], "lifetime");
                }
                last = event.id.unwrap_or(last);
            }
            None => {
                rotations += 1;
                let target = format!("/v1/watch?scope=/&since={last}");
                stream = Stream::open(world.addr, &target, &[]).await;
            }
        }
    }
    while told.len() < published as usize {
        let event = stream.next_told().await;
        match event.event.as_str() {
            "publish" => told.push(event.data["version"].as_u64().unwrap()),
            "closing" => {
                let target = format!("/v1/watch?scope=/&since={}", event.id.unwrap());
                stream = Stream::open(world.addr, &target, &[]).await;
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(told, (1..=published).collect::<Vec<_>>());
    world.stop().await;
}

// T10
#[tokio::test]
async fn a_refusal_that_will_pass_is_told_inside_a_stream() {
    let streams = StreamLimits {
        streams: 1,
        ..StreamLimits::default()
    };
    let world = World::with(short(streams), Origins::default()).await;
    let (_open, _) = Stream::follow(world.addr, "/").await;
    let accept = [("Accept", "text/event-stream")];
    let mut refused = Stream::open(world.addr, "/v1/watch?scope=/", &accept).await;
    assert!(
        refused.head.starts_with("HTTP/1.1 200 "),
        "{}",
        refused.head
    );
    let error = refused.next().await.unwrap();
    assert_eq!(error.event, "error");
    assert_eq!(error.data["error"]["code"], "busy");
    assert!(refused.retry.unwrap() >= 1_000);
    let plain = world.get("/v1/watch?scope=/").await;
    assert_eq!(plain.status, 503);
    assert!(
        world
            .metrics()
            .contains("refusals_total{limit=\"streams\"} 2"),
        "{}",
        world.metrics()
    );
    world.stop().await;
}

// T15, T18, T37, P10
#[tokio::test]
async fn a_watcher_is_told_what_it_may_see_and_ends_with_its_right() {
    let tokens = [
        token("reader", "/open/*", &["read"]),
        token("writer", "/**", &["read", "publish"]),
    ];
    let world = World::with_tokens(&tokens.concat()).await;
    let refused = world.get("/v1/watch?scope=/open/").await;
    assert_eq!(refused.status, 401);
    let bad = [("Authorization", "Bearer nobody")];
    let refused = world.ask("GET", "/v1/watch?scope=/open/", &bad, b"").await;
    assert_eq!(refused.status, 401);
    let fields = [("Authorization", "Bearer reader")];
    let mut stream = Stream::open(world.addr, "/v1/watch?scope=/", &fields).await;
    tell(&world.store, "/closed/a", 1);
    tell(&world.store, "/open/a", 1);
    assert_eq!(stream.next_told().await.data["name"], "/open/a");
    std::fs::write(
        world.dir.path().join("tokens.toml"),
        token("writer", "/**", &["read"]),
    )
    .unwrap();
    world.authority.reload();
    let closing = stream.next_told().await;
    assert_eq!(
        (closing.event.as_str(), &closing.data["reason"]),
        ("closing", &"revoked".into())
    );
    assert_eq!(stream.next().await, None);
    world.stop().await;
}

// T23
#[tokio::test]
async fn a_client_that_leaves_frees_its_watch_at_once() {
    let world = World::open().await;
    let (stream, _) = Stream::follow(world.addr, "/").await;
    let count = || world.store.feed().stats().subscriptions;
    assert_eq!(count(), 1);
    drop(stream);
    within(async {
        while count() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    world.stop().await;
}

// T50
#[tokio::test]
async fn bytes_after_a_request_change_nothing_and_too_many_end_it() {
    let world = World::open().await;
    let (mut stream, _) = Stream::follow(world.addr, "/").await;
    stream
        .socket
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    tell(&world.store, "/a", 1);
    assert_eq!(stream.next_told().await.event, "publish");
    let flood = vec![b'x'; 1 << 20];
    let _ = within(stream.socket.write_all(&flood)).await;
    assert_eq!(stream.next().await, None);
    world.stop().await;
}

/// A reader that has the kernel hold as little as possible.
fn narrow(world: &World) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.connect(&world.addr.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    TcpStream::from_std(socket.into()).unwrap()
}

// T6, T7, T20, T22
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stops_hurts_itself_alone_and_is_told_what_it_missed() {
    let limits = Limits {
        write_stall: Duration::from_secs(60),
        ..limits()
    };
    let world = World::with(limits, Origins::default()).await;
    let mut stuck = narrow(&world);
    let request = format!(
        "GET /v1/watch?scope=/ HTTP/1.1\r\nHost: {}\r\n\r\n",
        world.addr
    );
    stuck.write_all(request.as_bytes()).await.unwrap();
    let (mut neighbour, _) = Stream::follow(world.addr, "/").await;
    // Enough to fill what the kernel keeps and to pass the ring. The neighbour keeps up with each
    // part of it, so the one that is stuck delays nobody.
    let count = 16_000;
    let path = format!("/{}", ["x".repeat(200).as_str(); 4].join("/"));
    for version in 1..=count {
        tell(&world.store, &path, version);
        if version % 100 == 0 {
            let told =
                async |stream: &mut Stream| stream.next_told().await.data["version"].as_u64();
            while told(&mut neighbour).await != Some(version) {}
        }
    }
    let mut stream = Stream::over(stuck).await;
    let (mut last, mut gaps) = (0, 0);
    while last < count {
        let event = stream.next_told().await;
        match event.event.as_str() {
            "publish" => {
                let version = event.data["version"].as_u64().unwrap();
                assert!(version == last + 1 || gaps > 0, "{version} after {last}");
                last = version;
            }
            "gap" => {
                assert_eq!(event.data["reason"], "lapped");
                gaps += 1;
                // What lies before the gap's position is what was missed.
                last = seq(&event);
            }
            other => panic!("{other}"),
        }
    }
    assert!(gaps >= 1, "it was lapped");
    assert!(world.metrics().contains("gaps_total{reason=\"lapped\"}"));
    world.stop().await;
}

// T22
#[tokio::test]
async fn a_reader_that_takes_nothing_is_closed_after_the_stall_limit() {
    let limits = Limits {
        write_stall: Duration::from_millis(200),
        ..limits()
    };
    let world = World::with(limits, Origins::default()).await;
    let mut stuck = narrow(&world);
    let request = format!(
        "GET /v1/watch?scope=/ HTTP/1.1\r\nHost: {}\r\n\r\n",
        world.addr
    );
    stuck.write_all(request.as_bytes()).await.unwrap();
    let path = format!("/{}", "x".repeat(2_000));
    let is_stalled = || world.metrics().contains("cause=\"stalled\"} 1");
    within(async {
        let mut version = 0;
        while !is_stalled() {
            version += 1;
            tell(&world.store, &path, version);
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(world.store.feed().stats().subscriptions, 0);
    world.stop().await;
}

// C64
#[tokio::test]
async fn a_watch_with_a_least_time_is_told_the_latest_of_each() {
    let world = World::open().await;
    let target = "/v1/watch?scope=/&min_gap_ms=200";
    let mut stream = Stream::open(world.addr, target, &[]).await;
    assert_eq!(stream.next().await.unwrap().event, "beat");
    tell(&world.store, "/a", 2);
    let first = stream.next_told().await;
    for version in 3..=20 {
        tell(&world.store, "/a", version);
        tell(&world.store, "/b", version);
    }
    let (a, b) = (stream.next_told().await, stream.next_told().await);
    let versions = [&a, &b].map(|event| event.data["version"].as_u64().unwrap());
    assert!(
        versions.iter().all(|version| *version == 20),
        "{versions:?} after {first:?}"
    );
    assert!(seq(&a) < seq(&b));
    world.stop().await;
}
