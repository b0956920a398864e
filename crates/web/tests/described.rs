//! The description holds for what is served, and the pages are there.

#![allow(
    clippy::unwrap_used,
    reason = "a panic of a helper is the failure report"
)]

mod world;

use std::collections::BTreeSet;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use world::{Answer, World, token, within};

/// Reads the head of an answer whose body may never end.
async fn head(world: &World, method: &str, target: &str, fields: &str) -> Answer {
    let mut stream = within(TcpStream::connect(world.addr)).await.unwrap();
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{fields}\r\n",
        world.addr
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|it| it == b"\r\n\r\n") {
        let mut piece = [0; 1024];
        let len = within(stream.read(&mut piece)).await.unwrap();
        assert!(
            len > 0,
            "{method} {target}: {}",
            String::from_utf8_lossy(&bytes)
        );
        bytes.extend_from_slice(&piece[..len]);
    }
    Answer::parse(&bytes)
}

#[tokio::test]
async fn every_route_answers_as_it_is_described() {
    let world = World::open().await;
    let described = world.get("/v1/openapi.json").await;
    assert_eq!(described.field("content-type"), Some("application/json"));
    let described = described.json();
    assert_eq!(described["openapi"], "3.1.0");
    let mut routes = 0;
    for (path, operations) in described["paths"].as_object().unwrap() {
        let target = path.replace("{path}", "a.md").replace(['{', '}'], "");
        for (method, operation) in operations.as_object().unwrap() {
            let method = method.to_ascii_uppercase();
            let answer = head(&world, &method, &target, "").await;
            let responses: BTreeSet<_> =
                operation["responses"].as_object().unwrap().keys().collect();
            let status = answer.status.to_string();
            assert!(
                responses.contains(&status),
                "{method} {target} answered {status}"
            );
            let options = head(&world, "OPTIONS", &target, "").await;
            assert!(
                options.field("allow").unwrap().contains(&method),
                "{target}"
            );
            routes += 1;
        }
    }
    assert!(routes >= 9, "only {routes} routes");
    world.stop().await;
}

#[tokio::test]
async fn an_unknown_parameter_is_refused_on_every_route() {
    let world = World::open().await;
    let described = world.get("/v1/openapi.json").await.json();
    for (path, operations) in described["paths"].as_object().unwrap() {
        let open = operations.as_object().unwrap().values();
        if open.clone().any(|it: &Value| it["x-open-query"] == true) {
            continue;
        }
        let target = path.replace("{path}", "a.md").replace(['{', '}'], "");
        for method in operations.as_object().unwrap().keys() {
            let method = method.to_ascii_uppercase();
            let answer = world
                .ask(&method, &format!("{target}?nonsense=1"), &[], b"")
                .await;
            assert_eq!(answer.code(), "unknown-parameter", "{method} {target}");
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn whoami_tells_what_a_token_allows() {
    let world = World::with_tokens(&token("editor", "/notes/**", &["read", "publish"])).await;
    let nobody = world.get("/v1/whoami").await.json();
    assert_eq!(
        (&nobody["anonymous"], &nobody["dev"]),
        (&true.into(), &false.into())
    );
    let fields = [("Authorization", "bearer editor")];
    let editor = world.ask("GET", "/v1/whoami", &fields, b"").await.json();
    assert_eq!(editor["anonymous"], false);
    assert_eq!(editor["label"], "editor");
    assert_eq!(editor["publish"], serde_json::json!(["/notes/**"]));
    world.stop().await;
}

#[tokio::test]
async fn the_pages_need_nothing_from_elsewhere() {
    let world = World::open().await;
    let root = world.get("/").await;
    assert_eq!(
        (root.status, root.field("location")),
        (307, Some("/status"))
    );
    for target in ["/status", "/v1/docs"] {
        let page = world.get(target).await;
        assert_eq!(page.field("content-type"), Some("text/html; charset=utf-8"));
        let policy = page.field("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(!page.text().contains("://"), "{target}");
    }
    world.stop().await;
}

#[tokio::test]
async fn the_status_is_for_this_machine_or_a_token_that_may_read_everything() {
    let tokens = token("all", "/**", &["read"]) + &token("some", "/notes/**", &["read"]);
    let world = World::with_tokens(&tokens).await;
    let ask = |fields: &'static str| head(&world, "GET", "/v1/status/stream", fields);
    assert_eq!(ask("").await.status, 200);
    for (fields, status) in [
        ("X-Forwarded-For: 192.0.2.1\r\n", 401),
        ("Origin: https://other.example\r\n", 401),
        ("Via: 1.1 proxy\r\nAuthorization: Bearer some\r\n", 403),
        ("Via: 1.1 proxy\r\nAuthorization: Bearer all\r\n", 200),
    ] {
        assert_eq!(ask(fields).await.status, status, "{fields}");
    }
    world.stop().await;
}

#[tokio::test]
async fn the_status_stream_counts_what_happens_and_says_goodbye() {
    let world = World::open().await;
    world.put("/v1/documents/a.md", &[], "a").await;
    let mut stream = within(TcpStream::connect(world.addr)).await.unwrap();
    let request = format!(
        "GET /v1/status/stream HTTP/1.1\r\nHost: {}\r\n\r\n",
        world.addr
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut said = String::new();
    let mut read = async |until: &str| {
        while !said.contains(until) {
            let mut piece = [0; 1024];
            let len = within(stream.read(&mut piece)).await.unwrap();
            assert!(len > 0, "{said}");
            said.push_str(&String::from_utf8_lossy(&piece[..len]));
        }
    };
    read("\"changes\":1").await;
    world.leave();
    read("event: closing").await;
    world.stop().await;
}
