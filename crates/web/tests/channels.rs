//! Channels over HTTP: who may publish, and who is told of whom.

#![allow(
    clippy::unwrap_used,
    reason = "a panic of a helper is the failure report"
)]

mod world;

use auth::{Authority, Files};
use channels::{Declaration, Declarations, Hub, Limits};
use serde_json::json;
use web::{Origins, StreamConfig};
use wire::Epoch;
use world::{World, limits, token};

/// Two rooms: one that anybody may follow and nobody publish to, one that is for nobody.
fn hub() -> Hub {
    let room = Declaration::named("room").param("id", "int");
    let room = room.policy("true").events(["message"]).history(10);
    let closed = Declaration::named("closed").policy("false");
    let closed = closed.presence().events(["message"]);
    let open = Declaration::named("open").policy("true").publish("true");
    let open = open.presence().events(["message"]);
    let all = [room, closed, open].map(|it| it.build().unwrap());
    let declarations = Declarations::new(all).unwrap();
    Hub::new(declarations, Epoch::from_random([7; 6]), Limits::default())
}

async fn world(tokens: Option<&str>) -> World {
    let dir = tempfile::tempdir().unwrap();
    let authority = tokens.map_or_else(Authority::dev, |tokens| {
        std::fs::write(dir.path().join("tokens.toml"), tokens).unwrap();
        let files = Files {
            tokens: dir.path().join("tokens.toml"),
            tokens_required: true,
            closed: dir.path().join("closed.toml"),
        };
        Authority::open(files).unwrap()
    });
    let streams = StreamConfig {
        channels: Some(hub()),
        ..StreamConfig::default()
    };
    World::stream(dir, authority, limits(), Origins::default(), None, streams).await
}

const MESSAGE: &[u8] = br#"{"event":"message","data":{"text":"hello"}}"#;

#[tokio::test]
async fn an_event_has_a_position_where_a_history_is_kept() {
    let world = world(None).await;
    let kept = world
        .ask("POST", "/v1/channels/room?id=42", &[], MESSAGE)
        .await;
    assert_eq!(kept.status, 200);
    assert!(kept.json()["cursor"].as_str().unwrap().ends_with(":1"));
    let ephemeral = world.ask("POST", "/v1/channels/open", &[], MESSAGE).await;
    assert_eq!(ephemeral.json(), json!({}));
    world.stop().await;
}

// C19
#[tokio::test]
async fn what_is_denied_and_what_is_not_declared_are_one_refusal() {
    let tokens = token("app", "/**", &["publish"]) + &token("editor", "/notes/**", &["publish"]);
    let world = world(Some(&tokens)).await;
    let editor = [("Authorization", "Bearer editor")];
    let mut refusals = Vec::new();
    for target in [
        "/v1/channels/closed",
        "/v1/channels/room?id=42",
        "/v1/channels/room?id=many",
        "/v1/channels/nowhere",
        "/v1/channels/room?id=1&id=2",
    ] {
        let refused = world.ask("POST", target, &editor, MESSAGE).await;
        assert_eq!(refused.code(), "not-permitted", "{target}");
        refusals.push(refused.json());
    }
    assert!(refusals.iter().all(|it| *it == refusals[0]), "{refusals:?}");
    let opened = world
        .ask("POST", "/v1/channels/open", &editor, MESSAGE)
        .await;
    assert_eq!(opened.status, 200);
    let app = [("Authorization", "Bearer app")];
    let published = world
        .ask("POST", "/v1/channels/closed", &app, MESSAGE)
        .await;
    assert_eq!(published.status, 200, "the application needs no policy");
    let nowhere = world
        .ask("POST", "/v1/channels/nowhere", &app, MESSAGE)
        .await;
    assert_eq!(nowhere.code(), "not-permitted");
    world.stop().await;
}

// C35
#[tokio::test]
async fn what_is_no_event_is_refused_by_name() {
    let world = world(None).await;
    let deep = format!(
        r#"{{"event":"message","data":{}1{}}}"#,
        "[".repeat(40),
        "]".repeat(40)
    );
    let long = format!(r#"{{"event":"message","data":"{}"}}"#, "x".repeat(65 << 10));
    for (body, code) in [
        ("", "bad-body"),
        ("[]", "bad-body"),
        (r#"{"data":1}"#, "bad-body"),
        (r#"{"event":"message","data":1e400}"#, "bad-body"),
        (&deep, "bad-body"),
        (&long, "too-large"),
        (r#"{"event":"unheard"}"#, "undeclared-event"),
    ] {
        let target = "/v1/channels/room?id=42";
        let refused = world.ask("POST", target, &[], body.as_bytes()).await;
        let start: String = body.chars().take(40).collect();
        assert_eq!(refused.code(), code, "{start}");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_roster_is_for_those_who_may_follow() {
    let world = world(Some(&token("app", "/**", &["publish"]))).await;
    let roster = world.get("/v1/channels/open/presence").await;
    assert_eq!(roster.json()["total"], 0);
    assert_eq!(roster.json()["scope"], "channel:open");
    let none = world.get("/v1/channels/room/presence?id=42").await;
    assert_eq!(none.code(), "not-found");
    let closed = world.get("/v1/channels/closed/presence").await;
    assert_eq!(closed.code(), "not-permitted");
    world.stop().await;
}
