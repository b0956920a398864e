//! `GET /v1/socket`: the sync protocol over real sockets.

#![allow(
    clippy::unwrap_used,
    reason = "a panic of a helper is the failure report"
)]

mod listener;
mod world;

use std::time::Duration;

use channels::{Declaration, Declarations, Hub};
use listener::{Heard, Socket, masked, tell};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use web::{Limits, Origins, StreamConfig, StreamLimits};
use wire::Epoch;
use world::{World, limits, token, within};

fn short(streams: StreamLimits) -> Limits {
    Limits {
        streams,
        ..limits()
    }
}

fn hub(declarations: Vec<Declaration>) -> Hub {
    let epoch = Epoch::from_random([7; 6]);
    Hub::new(
        Declarations::new(declarations).unwrap(),
        epoch,
        channels::Limits::default(),
    )
}

/// A world with a room that keeps a history and one that does not.
async fn rooms() -> (World, Hub) {
    let room = Declaration::named("room")
        .param("id", "int")
        .policy("params.id < 100")
        .publish("true")
        .events(["message"])
        .history(100)
        .presence()
        .build()
        .unwrap();
    let plain = Declaration::named("plain")
        .policy("true")
        .events(["message"])
        .build()
        .unwrap();
    let hub = hub(vec![room, plain]);
    let streams = StreamConfig {
        channels: Some(hub.clone()),
        ..StreamConfig::default()
    };
    (World::with_streams(limits(), streams).await, hub)
}

fn publish(hub: &Hub, scope: &str, data: &str) {
    let data = channels::Payload::parse(data.as_bytes()).unwrap();
    let now = channels::Now::default();
    hub.publish(&scope.parse().unwrap(), "message", data, now)
        .unwrap();
}

#[tokio::test]
async fn a_socket_says_hello_subscribes_and_is_told_in_batches() {
    let world = World::open().await;
    let mut socket = Socket::open(world.addr, &[]).await;
    assert!(
        socket
            .head
            .contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n")
    );
    socket
        .send(&json!({"t": "hello", "v": 1, "extra": [1]}))
        .await;
    let hello = socket.frame().await;
    assert_eq!(
        (&hello["t"], &hello["v"], &hello["heartbeat_ms"]),
        (&json!("hello"), &json!(1), &json!(15_000))
    );
    let ack = socket.subscribe("1", "/notes/", None).await;
    assert_eq!(ack["scope"], "doc:/notes/");
    assert_eq!(ack["resumed"], false);
    let from = ack["cursor"].as_str().unwrap().to_owned();
    for version in 1..=3 {
        tell(&world.store, "/notes/tea.md", version);
    }
    let mut versions = Vec::new();
    while versions.len() < 3 {
        let frame = socket.frame().await;
        assert_eq!(
            (&frame["t"], &frame["scope"]),
            (&json!("changes"), &json!("doc:/notes/"))
        );
        for change in frame["changes"].as_array().unwrap() {
            versions.push(change["version"].as_u64().unwrap());
        }
    }
    assert_eq!(versions, [1, 2, 3]);
    let mut again = Socket::greet(world.addr).await;
    let ack = again.subscribe("1", "doc:/notes/", Some(&from)).await;
    assert_eq!(
        (&ack["resumed"], &ack["cursor"]),
        (&json!(true), &json!(from))
    );
    let frame = again.frame().await;
    assert_eq!(
        frame["changes"].as_array().unwrap().len(),
        3,
        "one frame for what is due: {frame}"
    );
    again
        .send(&json!({"t": "unsubscribe", "id": "2", "scope": "/notes/"}))
        .await;
    assert_eq!(again.frame_of("2").await["ended"], true);
    tell(&world.store, "/notes/tea.md", 4);
    again
        .send(&json!({"t": "subscribe", "id": "3", "scope": "/other"}))
        .await;
    assert_eq!(again.frame().await["id"], "3", "nothing of what was ended");
    world.stop().await;
}

// C34, C35, C38, C39
#[tokio::test]
async fn what_a_client_says_wrongly_is_refused_and_the_socket_stays() {
    let world = World::open().await;
    let mut socket = Socket::open(world.addr, &[]).await;
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    let long = json!({"t": "beat", "x": "y".repeat(200 << 10)}).to_string();
    let cases = [
        (r#"{"t":"hello","v":3}"#, "unknown-version"),
        (
            r#"{"t":"subscribe","id":"0","scope":"/"}"#,
            "hello-required",
        ),
        ("{", "bad-frame"),
        (&deep, "bad-frame"),
        (r#"{"t":"dance"}"#, "unknown-frame"),
    ];
    for (text, code) in cases {
        socket.send_bytes(&masked(0x81, text.as_bytes())).await;
        let error = socket.frame().await;
        assert_eq!(
            (&error["t"], &error["code"]),
            (&json!("error"), &json!(code)),
            "{text}"
        );
        assert_eq!(error["retry"], false);
    }
    socket.send(&json!({"t": "hello", "v": 1})).await;
    assert_eq!(socket.frame().await["t"], "hello");
    socket.send_bytes(&masked(0x81, long.as_bytes())).await;
    socket.send(&json!({"t": "ack", "id": "1"})).await;
    for (scope, code) in [
        ("notes", "bad-scope"),
        ("channel:room", "not-permitted"),
        ("/\0", "bad-scope"),
    ] {
        let error = socket.subscribe("9", scope, None).await;
        assert_eq!(
            (&error["code"], &error["scope"]),
            (&json!(code), &json!(scope)),
            "{error}"
        );
    }
    let gap = socket.subscribe("10", "/a", Some("e:007")).await;
    assert_eq!(gap["resumed"], false);
    let gap = socket.frame().await;
    assert_eq!(
        (&gap["t"], &gap["reason"]),
        (&json!("gap"), &json!("malformed"))
    );
    world.stop().await;
}

// T39, T54
#[tokio::test]
async fn broken_framing_is_closed_with_its_code_and_a_close_is_echoed() {
    let world = World::open().await;
    let too_big = [0x81, 0x80 | 127, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0, 0];
    let cases: [(&[u8], u16); 6] = [
        (&[0x81, 1, b'x'], 1002),
        (&masked(0xc1, b"x"), 1002),
        (&masked(0x81, b"\xff"), 1007),
        (&masked(0x82, b"x"), 1003),
        (&too_big, 1009),
        (&masked(0x88, &[0x03, 0xe8]), 1000),
    ];
    for (bytes, code) in cases {
        let mut socket = Socket::greet(world.addr).await;
        socket.send_bytes(bytes).await;
        assert_eq!(socket.closed().await.0, code);
        assert_eq!(socket.next().await, None);
    }
    let mut socket = Socket::greet(world.addr).await;
    socket.send_bytes(&masked(0x89, b"abc")).await;
    assert_eq!(socket.next().await, Some(Heard::Pong(b"abc".to_vec())));
    let text = json!({"t": "subscribe", "id": "1", "scope": "/"}).to_string();
    let (head, tail) = text.as_bytes().split_at(9);
    socket
        .send_bytes(&[masked(0x01, head), masked(0x89, b"x"), masked(0x80, tail)].concat())
        .await;
    assert_eq!(socket.next().await, Some(Heard::Pong(b"x".to_vec())));
    assert_eq!(socket.frame_of("1").await["t"], "ack");
    world.stop().await;
}

// T16
#[tokio::test]
async fn a_page_of_another_origin_gets_no_socket() {
    let world = World::with_tokens(&token("t", "/**", &["read"])).await;
    for (origin, status) in [
        ("https://app.example", "101"),
        ("https://evil.example", "403"),
        ("null", "403"),
    ] {
        let socket = Socket::open(world.addr, &[("Origin", origin)]).await;
        assert!(
            socket.head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{}",
            socket.head
        );
    }
    let own = format!("https://{}", world.addr);
    let socket = Socket::open(world.addr, &[("Origin", &own)]).await;
    assert!(socket.head.starts_with("HTTP/1.1 101 "), "{}", socket.head);
    world.stop().await;
}

// T29
#[tokio::test]
async fn a_socket_over_the_budget_is_told_when_to_come_back() {
    let streams = StreamLimits {
        accepts_per_second: 1,
        accepts_burst: 1,
        ..StreamLimits::default()
    };
    let world = World::with(short(streams), Origins::default()).await;
    let _first = Socket::greet(world.addr).await;
    let mut hints = Vec::new();
    for _ in 0..20 {
        let mut refused = Socket::open(world.addr, &[]).await;
        if refused.head.starts_with("HTTP/1.1 101 ") {
            continue;
        }
        assert!(
            refused.head.starts_with("HTTP/1.1 503 "),
            "{}",
            refused.head
        );
        assert!(refused.head.contains("retry-after: "), "{}", refused.head);
        let mut body = Vec::new();
        while !body.ends_with(b"}}") {
            let mut bytes = [0; 512];
            let len = within(refused.socket.read(&mut bytes)).await.unwrap();
            body.extend_from_slice(&bytes[..len]);
            if len == 0 {
                break;
            }
        }
        body.splice(0..0, refused.rest().iter().copied());
        let error: Value = serde_json::from_slice(&body).unwrap();
        hints.push(error["error"]["retry_after_ms"].as_u64().unwrap());
    }
    let (least, most) = (hints.iter().min().unwrap(), hints.iter().max().unwrap());
    assert!(
        most >= &(least * 3),
        "they come back at different times: {hints:?}"
    );
    world.stop().await;
}

// C33
#[tokio::test]
async fn frames_over_the_budget_are_refused() {
    let world = World::open().await;
    let mut socket = Socket::greet(world.addr).await;
    let burst = masked(0x81, br#"{"t":"beat"}"#).repeat(400);
    socket.send_bytes(&burst).await;
    let error = socket.frame().await;
    assert_eq!(
        (&error["code"], &error["retry"]),
        (&json!("rate-limited"), &json!(true))
    );
    world.stop().await;
}

// C25
#[tokio::test]
async fn a_thousand_subscribes_in_one_write_meet_the_cap_exactly() {
    let streams = StreamLimits {
        frames_per_second: 0,
        ..StreamLimits::default()
    };
    let world = World::with(short(streams), Origins::default()).await;
    let mut socket = Socket::greet(world.addr).await;
    let mut bytes = Vec::new();
    for id in 0..1_000 {
        let frame = json!({"t": "subscribe", "id": id.to_string(), "scope": format!("/{id}")});
        bytes.extend(masked(0x81, frame.to_string().as_bytes()));
    }
    socket.send_bytes(&bytes).await;
    let (mut acks, mut refused) = (0, 0);
    for _ in 0..1_000 {
        match socket.frame().await["code"].as_str() {
            None => acks += 1,
            Some("subscription-limit") => refused += 1,
            Some(code) => panic!("{code}"),
        }
    }
    assert_eq!((acks, refused), (64, 936));
    for id in 0..10 {
        let scope = format!("/{id}");
        socket
            .send(&json!({"t": "unsubscribe", "id": "u", "scope": scope}))
            .await;
        socket.frame_of("u").await;
    }
    for id in 0..11 {
        let frame = socket.subscribe("s", &format!("/new/{id}"), None).await;
        assert_eq!(frame["t"] == "ack", id < 10, "{frame}");
    }
    assert_eq!(world.store.feed().stats().subscriptions, 64);
    drop(socket);
    within(async {
        while world.store.feed().stats().subscriptions > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    world.stop().await;
}

// T40
#[tokio::test]
async fn a_silent_socket_is_pinged_and_then_closed() {
    let streams = StreamLimits {
        heartbeat: Duration::from_millis(50),
        idle_timeout: Duration::from_millis(300),
        ..StreamLimits::default()
    };
    let world = World::with(short(streams), Origins::default()).await;
    let mut socket = Socket::greet(world.addr).await;
    let (mut pings, mut beats) = (0, 0);
    let code = loop {
        match socket.next().await.unwrap() {
            Heard::Ping => pings += 1,
            Heard::Frame(frame) if frame["t"] == "beat" => beats += 1,
            Heard::Close(code) => break code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(code, 4001);
    assert!(pings >= 1 && beats >= 1, "{pings} pings, {beats} beats");
    let streams = StreamLimits {
        hello_timeout: Duration::from_millis(50),
        ..StreamLimits::default()
    };
    let patient = World::with(short(streams), Origins::default()).await;
    let mut mute = Socket::open(patient.addr, &[]).await;
    assert_eq!(mute.closed().await.0, 1008);
    patient.stop().await;
    world.stop().await;
}

// P4, T9
#[tokio::test]
async fn beats_carry_the_positions_by_scope() {
    let streams = StreamLimits {
        heartbeat: Duration::from_millis(100),
        ..StreamLimits::default()
    };
    let world = World::with(short(streams), Origins::default()).await;
    let mut socket = Socket::greet(world.addr).await;
    socket.subscribe("1", "/notes/", None).await;
    let at = tell(&world.store, "/bills/may.md", 1);
    loop {
        if let Some(Heard::Frame(frame)) = socket.next().await
            && let Some(cursor) = frame["cursors"]["doc:/notes/"].as_str()
            && cursor.ends_with(&format!(":{at}"))
        {
            break;
        }
    }
    world.stop().await;
}

// T19
#[tokio::test]
async fn a_drain_sends_each_socket_away_with_its_positions() {
    let world = World::open().await;
    let mut sockets = Vec::new();
    for _ in 0..20 {
        let mut socket = Socket::greet(world.addr).await;
        socket.subscribe("1", "/", None).await;
        sockets.push(socket);
    }
    let at = tell(&world.store, "/a", 1);
    world.leave();
    for mut socket in sockets {
        let (code, frames) = socket.closed().await;
        assert_eq!(code, 1001);
        let last = frames.last().unwrap();
        assert_eq!(
            (&last["t"], &last["reason"]),
            (&json!("reconnect"), &json!("draining"))
        );
        assert!(last["delay_ms"].as_u64().unwrap() >= 500);
        let cursor = last["cursors"]["doc:/"].as_str().unwrap();
        assert!(cursor.ends_with(&format!(":{at}")), "{last}");
        assert_eq!(frames[0]["t"], "changes", "what was due came first");
    }
    world.stop().await;
}

// T18
#[tokio::test]
async fn a_socket_ends_with_its_token_and_a_fresh_one_keeps_it() {
    let tokens = [
        token("old", "/**", &["read"]),
        token("new", "/**", &["read"]),
    ]
    .concat();
    let world = World::with_tokens(&tokens).await;
    let fields = [("Authorization", "Bearer old")];
    let mut kept = Socket::open(world.addr, &fields).await;
    let mut lost = Socket::open(world.addr, &fields).await;
    for socket in [&mut kept, &mut lost] {
        socket.send(&json!({"t": "hello", "v": 1})).await;
        socket.frame().await;
        assert_eq!(socket.subscribe("1", "/", None).await["t"], "ack");
    }
    kept.send(&json!({"t": "token", "token": "nobody"})).await;
    assert_eq!(kept.frame().await["code"], "unauthorized");
    kept.send(&json!({"t": "token", "token": "new"})).await;
    // An answer behind it says that it was taken.
    assert_eq!(kept.subscribe("2", "/", None).await["resumed"], true);
    std::fs::write(
        world.dir.path().join("tokens.toml"),
        token("new", "/**", &["read"]),
    )
    .unwrap();
    world.authority.reload();
    let (code, frames) = lost.closed().await;
    assert_eq!(code, 1008);
    assert_eq!(frames.last().unwrap()["code"], "unauthorized", "{frames:?}");
    tell(&world.store, "/a", 1);
    assert_eq!(kept.frame().await["t"], "changes");
    let mut bad = Socket::open(world.addr, &[]).await;
    bad.send(&json!({"t": "hello", "v": 1, "token": "old"}))
        .await;
    assert_eq!(bad.closed().await.0, 1008);
    world.stop().await;
}

#[tokio::test]
async fn an_application_of_another_build_is_told() {
    let streams = StreamConfig {
        build: Some("2".to_owned()),
        ..StreamConfig::default()
    };
    let world = World::with_streams(limits(), streams).await;
    let mut socket = Socket::open_at(world.addr, "/v1/socket?build=1", &[]).await;
    socket.send(&json!({"t": "hello", "v": 1})).await;
    assert_eq!(socket.frame().await["build"], "2");
    assert_eq!(
        socket.frame().await,
        json!({"t": "update-available", "build": "2"})
    );
    let mut current = Socket::open_at(world.addr, "/v1/socket?build=1", &[]).await;
    current
        .send(&json!({"t": "hello", "v": 1, "build": "2"}))
        .await;
    assert_eq!(current.frame().await["t"], "hello", "the later word wins");
    assert_eq!(current.subscribe("1", "/", None).await["t"], "ack");
    world.stop().await;
}

// C2, C5, C41, C54
#[tokio::test]
async fn events_of_a_channel_reach_its_members_and_resume_from_its_history() {
    let (world, hub) = rooms().await;
    let mut socket = Socket::greet(world.addr).await;
    let ack = socket.subscribe("1", "channel:room?id=42", None).await;
    assert_eq!(ack["scope"], "channel:room?id=42");
    let from = ack["cursor"].as_str().unwrap().to_owned();
    let roster = socket.frame().await;
    assert_eq!(
        (&roster["t"], &roster["kind"], &roster["total"]),
        (&json!("presence"), &json!("sync"), &json!(1))
    );
    publish(&hub, "room?id=42", r#"{"text":"hello"}"#);
    publish(&hub, "room?id=43", "1");
    let mut told = socket.frame().await;
    if told["t"] == "presence" {
        told = socket.frame().await;
    }
    assert_eq!(told["events"][0]["event"], "message");
    assert_eq!(told["events"][0]["data"], json!({"text": "hello"}));
    assert!(told["events"][0]["cursor"].is_string());
    let mut late = Socket::greet(world.addr).await;
    let ack = late.subscribe("1", "channel:room?id=42", Some(&from)).await;
    assert_eq!(ack["resumed"], true);
    let mut frame = late.frame().await;
    while frame["t"] == "presence" {
        frame = late.frame().await;
    }
    assert_eq!(frame["events"][0]["data"], json!({"text": "hello"}));
    // Live again, for both, from a client.
    let publishing = json!({
        "t": "publish", "id": "p", "channel": "room?id=42", "event": "message", "data": [1],
    });
    late.send(&publishing).await;
    assert!(late.frame_of("p").await["cursor"].is_string());
    for socket in [&mut socket, &mut late] {
        loop {
            let frame = socket.frame().await;
            if frame["t"] == "events" && frame["events"][0]["data"] == json!([1]) {
                break;
            }
        }
    }
    world.stop().await;
}

// C18, C19, C23
#[tokio::test]
async fn what_is_not_declared_and_what_is_denied_look_the_same() {
    let (world, _hub) = rooms().await;
    let mut socket = Socket::greet(world.addr).await;
    let mut texts = Vec::new();
    for scope in [
        "channel:room?id=100",
        "channel:nothing",
        "channel:room",
        "channel:room?id=x",
    ] {
        let mut error = socket.subscribe("1", scope, None).await;
        error["scope"].take();
        texts.push(error.to_string());
    }
    texts.dedup();
    assert_eq!(texts.len(), 1, "{texts:?}");
    for (channel, event, code) in [
        ("plain", "message", "not-permitted"),
        ("room?id=1", "dance", "undeclared-event"),
        ("nothing", "message", "not-permitted"),
    ] {
        socket
            .send(
                &json!({"t": "publish", "id": "p", "channel": channel, "event": event, "data": 1}),
            )
            .await;
        assert_eq!(socket.frame_of("p").await["code"], code, "{channel}");
    }
    world.stop().await;
}

// C54
#[tokio::test]
async fn a_channel_follows_as_a_stream_too() {
    let (world, hub) = rooms().await;
    let (mut stream, first) = listener::Stream::follow(world.addr, "channel:plain").await;
    assert_eq!(first.event, "beat");
    publish(&hub, "plain", r#""x""#);
    let event = stream.next_told().await;
    assert_eq!(event.event, "event");
    assert_eq!(event.data["event"], "message");
    assert_eq!(event.data["scope"], "channel:plain");
    assert_eq!(event.data["data"], "x");
    world.stop().await;
}
