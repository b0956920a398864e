//! No spelling of a path reads, lists, watches or writes more than another (D30, D32, T46).

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

mod world;

use wire::{Request, Response, Status, Verb};
use world::{Client, World, limits, within};

const TOKENS: &str = include_str!("../testdata/vectors-tokens.toml");

/// The document `/private/x.md`, in every way to write it.
const DOCUMENT: [&str; 9] = [
    "/private/x.md",
    "//private/x.md",
    "/./private/x.md",
    "/private//x.md",
    "/private/./x.md",
    "/private/x.md/",
    "/private/x.md/.",
    "///private///x.md///",
    "/.//./private/.//x.md",
];

/// Its directory.
const DIRECTORY: [&str; 6] = [
    "/private",
    "/private/",
    "//private",
    "//private//",
    "/./private/.",
    "/private/./",
];

/// Asks and takes the first answer, of a watch the acknowledgement.
async fn ask(client: &Client, verb: Verb, path: &str, token: Option<&str>) -> Status {
    let mut request = Request::new(verb, path.to_owned());
    if let Some(token) = token {
        request = request.with("auth", token);
    }
    match verb {
        Verb::Append => request = request.with("expected-version", "1").with_body("more"),
        Verb::Publish => request = request.with_body("# Mine"),
        Verb::Lookup => request = request.with("query", "*"),
        Verb::Watch => {
            let mut watch = client.open_watch(request).await;
            let mut bytes = Vec::new();
            while let Some(chunk) = within(watch.recv.read_chunk(8192, true)).await.unwrap() {
                bytes.extend_from_slice(&chunk.bytes);
                if let Ok(answer) = Response::decode(&bytes.clone().into()) {
                    return answer.status;
                }
            }
            panic!("a watch without an answer");
        }
        _ => {}
    }
    client.ask(request).await.status
}

// D30: every verb, every spelling, no token and the wrong one.
#[tokio::test]
async fn no_spelling_of_a_closed_place_is_open() {
    let world = World::with_tokens(TOKENS, limits()).await;
    world.publish("/private/x.md", "# Secret").await;
    let client = world.dial().await;
    for path in DOCUMENT.iter().chain(&DIRECTORY) {
        for verb in Verb::ALL {
            let anonymous = ask(&client, verb, path, None).await;
            assert_eq!(anonymous, Status::Unauthorized, "{verb} {path}");
            let wrong = if verb.is_write() {
                "reader-token"
            } else {
                "keeper-token"
            };
            let other = ask(&client, verb, path, Some(wrong)).await;
            assert_eq!(other, Status::NotPermitted, "{verb} {path}");
        }
    }
}

// D30: the right token gets the same from every spelling.
#[tokio::test]
async fn the_right_token_reads_the_same_by_every_spelling() {
    let world = World::with_tokens(TOKENS, limits()).await;
    world.publish("/private/x.md", "# Secret").await;
    let client = world.dial().await;
    let reader = Some("reader-token");
    for path in DOCUMENT {
        for (verb, status) in [
            (Verb::Fetch, Status::Ok),
            (Verb::Versions, Status::Ok),
            (Verb::List, Status::NotFound),
            (Verb::Lookup, Status::NotFound),
            (Verb::Watch, Status::Ok),
        ] {
            assert_eq!(
                ask(&client, verb, path, reader).await,
                status,
                "{verb} {path}"
            );
        }
    }
    for path in DIRECTORY {
        for (verb, status) in [
            (Verb::Fetch, Status::Ok),
            (Verb::List, Status::Ok),
            (Verb::Lookup, Status::Ok),
            (Verb::Versions, Status::NotFound),
            (Verb::Watch, Status::Ok),
        ] {
            assert_eq!(
                ask(&client, verb, path, reader).await,
                status,
                "{verb} {path}"
            );
        }
    }
    for path in DOCUMENT {
        let written = ask(&client, Verb::Publish, path, Some("keeper-token")).await;
        assert!(matches!(written, Status::Created | Status::Ok), "{path}");
    }
    assert_eq!(world.store.health().documents, 1);
}

// D32
#[tokio::test]
async fn a_parent_segment_is_not_found_on_every_verb_and_percent_is_a_character() {
    let world = World::with_tokens(TOKENS, limits()).await;
    world.publish("/..notes/a.md", "x").await;
    world.publish("/.../a.md", "x").await;
    world.publish("/%2e%2e/x.md", "x").await;
    let client = world.dial().await;
    for verb in Verb::ALL {
        for path in [
            "/..",
            "/../etc/passwd",
            "/a/../private/x.md",
            "/a/..",
            "/../private/x.md/v1",
        ] {
            let status = ask(&client, verb, path, Some("editor-token")).await;
            assert_eq!(status, Status::NotFound, "{verb} {path}");
        }
    }
    for path in ["/..notes/a.md", "/.../a.md", "/%2e%2e/x.md"] {
        assert_eq!(
            ask(&client, Verb::Fetch, path, None).await,
            Status::Ok,
            "{path}"
        );
    }
    assert_eq!(
        ask(&client, Verb::Fetch, "/%2e%2e/private/x.md", None).await,
        Status::NotFound
    );
}

// D34
#[tokio::test]
async fn versions_are_versions_and_directories_named_like_one_are_directories() {
    let world = World::open(limits()).await;
    world.publish("/api/v2/guide.md", "guide").await;
    world.publish("/doc.md", "first").await;
    let client = world.dial().await;
    for path in ["/doc.md/v1", "/doc.md/v01"] {
        let version = client.get(Verb::Fetch, path).await;
        assert_eq!(
            (version.status, &version.body[..]),
            (Status::Ok, &b"first"[..]),
            "{path}"
        );
        assert_eq!(version.metadata.get("current-version"), Some("1"));
    }
    for path in [
        "/doc.md/v0",
        "/doc.md/v9",
        "/doc.md/v99999999999999999999",
        "/doc.md/v",
    ] {
        let version = client.get(Verb::Fetch, path).await;
        assert_eq!(version.status, Status::NotFound, "{path}");
    }
    assert_eq!(client.get(Verb::List, "/api/v2/").await.status, Status::Ok);
    assert_eq!(
        client.get(Verb::Fetch, "/api/v2/guide.md").await.body,
        "guide"
    );
}

// D26
#[tokio::test]
async fn the_servers_own_files_are_out_of_reach_of_every_verb() {
    let world = World::with_tokens(TOKENS, limits()).await;
    world.publish("/a.md", "x").await;
    let client = world.dial().await;
    let editor = Some("editor-token");
    for path in [
        "/.tidings",
        "/.tidings/lock",
        "/.tidings/index",
        "//.tidings/./lock",
    ] {
        for verb in [Verb::Fetch, Verb::List, Verb::Versions, Verb::Lookup] {
            let status = ask(&client, verb, path, editor).await;
            assert_eq!(status, Status::NotFound, "{verb} {path}");
        }
    }
    let written = ask(&client, Verb::Publish, "/.tidings/x.md", editor).await;
    assert_eq!(written, Status::BadRequest);
    let root = client.get(Verb::List, "/").await;
    assert_eq!(root.metadata.get("entries"), Some("1"));
}
