//! Channels whose policy is a question to a back end.

#![allow(
    clippy::unwrap_used,
    reason = "a panic of a helper is the failure report"
)]

mod listener;
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use channels::{Declaration, Declarations, Hub, Rule};
use listener::Socket;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use web::StreamConfig;
use wire::Epoch;
use world::{World, limits};

/// A back end that answers by the params, and counts.
struct BackEnd {
    url: String,
    asked: Arc<AtomicUsize>,
}

impl BackEnd {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/may", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, count.clone()));
            }
        });
        Self { url, asked }
    }
}

async fn answer(mut stream: TcpStream, count: Arc<AtomicUsize>) {
    let mut bytes = Vec::new();
    while stream.read_buf(&mut bytes).await.is_ok_and(|len| len > 0) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        if !body.ends_with('}') {
            continue;
        }
        count.fetch_add(1, Ordering::Relaxed);
        assert!(head.contains("authorization: Bearer tea"), "{head}");
        let question: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(question["channel"], "room");
        let status = match question["params"]["id"].as_i64() {
            Some(1) => "204 No Content",
            Some(2) => "403 Forbidden",
            // It never answers.
            Some(3) => return std::future::pending().await,
            _ => "500 Internal Server Error",
        };
        let reply = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(reply.as_bytes()).await.unwrap();
        bytes.clear();
    }
}

async fn world(back_end: &BackEnd) -> World {
    let room = Declaration::named("room")
        .param("id", "int")
        .policy(Rule::ask(&back_end.url))
        .anonymous()
        .events(["message"])
        .build()
        .unwrap();
    let epoch = Epoch::from_random([7; 6]);
    let declarations = Declarations::new([room]).unwrap();
    let streams = StreamConfig {
        channels: Some(Hub::new(declarations, epoch, channels::Limits::default())),
        ..StreamConfig::default()
    };
    World::with_streams(limits(), streams).await
}

async fn greet(world: &World) -> Socket {
    let mut socket = Socket::open(world.addr, &[]).await;
    socket
        .send(&json!({"t": "hello", "v": 1, "token": "tea"}))
        .await;
    assert_eq!(socket.frame().await["t"], "hello");
    socket
}

// C23, C26, C29
#[tokio::test]
async fn a_back_end_decides_and_one_that_hangs_delays_nobody() {
    let back_end = BackEnd::start().await;
    let world = world(&back_end).await;
    let mut socket = greet(&world).await;
    let hanging = json!({"t": "subscribe", "id": "3", "scope": "channel:room?id=3"});
    socket.send(&hanging).await;
    let taken = socket.subscribe("3b", "channel:room?id=3", None).await;
    assert_eq!(taken["code"], "subscription-taken");
    assert_eq!(
        socket.subscribe("1", "channel:room?id=1", None).await["t"],
        "ack"
    );
    assert_eq!(socket.subscribe("d", "/notes/", None).await["t"], "ack");
    let denied = socket.subscribe("2", "channel:room?id=2", None).await;
    assert_eq!(
        (&denied["code"], &denied["retry"]),
        (&json!("not-permitted"), &json!(false))
    );
    let asked = back_end.asked.load(Ordering::Relaxed);
    for _ in 0..50 {
        let denied = socket.subscribe("2", "channel:room?id=2", None).await;
        assert_eq!(denied["code"], "not-permitted");
    }
    assert_eq!(
        back_end.asked.load(Ordering::Relaxed),
        asked,
        "a denial is remembered"
    );
    let broken = socket.subscribe("4", "channel:room?id=4", None).await;
    assert_eq!(
        (&broken["code"], &broken["retry"]),
        (&json!("policy-undecided"), &json!(true))
    );
    let late = socket.frame_of("3").await;
    assert_eq!(
        late["code"], "policy-undecided",
        "it is given up after its time"
    );
    world.stop().await;
}

// C27, F28
#[tokio::test]
async fn what_is_dropped_while_it_is_decided_leaves_nothing_and_a_herd_asks_once() {
    let back_end = BackEnd::start().await;
    let world = world(&back_end).await;
    let mut socket = greet(&world).await;
    let hanging = json!({"t": "subscribe", "id": "3", "scope": "channel:room?id=3"});
    socket.send(&hanging).await;
    let drop = json!({"t": "unsubscribe", "id": "u", "scope": "channel:room?id=3"});
    socket.send(&drop).await;
    assert_eq!(socket.frame().await["id"], "u");
    assert_eq!(
        socket.subscribe("1", "channel:room?id=1", None).await["t"],
        "ack"
    );
    let asked = back_end.asked.load(Ordering::Relaxed);
    for _ in 0..10 {
        let mut other = greet(&world).await;
        assert_eq!(
            other.subscribe("1", "channel:room?id=1", None).await["t"],
            "ack"
        );
    }
    assert_eq!(back_end.asked.load(Ordering::Relaxed), asked);
    world.stop().await;
}
