//! Documents over HTTP, by a client that speaks plain bytes.

mod world;

use serde_json::json;
use world::{World, ask, token, within};

const TEA: &str = "/v1/documents/notes/tea.md";

#[tokio::test]
async fn a_published_body_reads_back_as_it_was_stored() {
    let world = World::open().await;
    let written = world.put(TEA, &[], "# Tea\n\nGreen ☕\n").await;
    assert_eq!(written.status, 201, "{written:?}");
    let etag = written.field("etag").unwrap().to_owned();
    assert_eq!(written.json()["version"], 1);
    assert_eq!(written.json()["path"], "/notes/tea.md");

    let read = world.get(TEA).await;
    assert_eq!((read.status, read.text()), (200, "# Tea\n\nGreen ☕\n"));
    assert_eq!(read.field("etag"), Some(etag.as_str()));
    assert_eq!(read.field("tidings-version"), Some("1"));
    assert_eq!(
        read.field("tidings-cursor"),
        written.field("tidings-cursor")
    );
    assert_eq!(read.field("cache-control"), Some("no-cache, no-transform"));
    assert_eq!(
        read.field("content-type"),
        Some("text/markdown; charset=utf-8")
    );

    let again = world.put(TEA, &[], "# Tea\n\nGreen ☕\n").await;
    assert_eq!(
        (again.status, again.json()["outcome"].clone()),
        (200, json!("unchanged"))
    );

    let head = world.ask("HEAD", TEA, &[], b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(
        head.field("content-length"),
        Some(&*read.body.len().to_string())
    );
    world.stop().await;
}

// D83
#[tokio::test]
async fn a_conditional_read_answers_304_for_the_copy_that_is_current() {
    let world = World::open().await;
    let etag = world
        .put(TEA, &[], "tea")
        .await
        .field("etag")
        .unwrap()
        .to_owned();
    for (value, status) in [
        (etag.clone(), 304),
        (format!("W/{etag}"), 304),
        (format!("\"x\", {etag}"), 304),
        ("*".to_owned(), 304),
        ("\"sha256-nothing\"".to_owned(), 200),
        (etag.trim_matches('"').to_owned(), 200),
    ] {
        let answer = world
            .ask("GET", TEA, &[("If-None-Match", &value)], b"")
            .await;
        assert_eq!(answer.status, status, "{value}");
        assert_eq!(answer.field("etag"), Some(etag.as_str()));
        assert_eq!(answer.body.is_empty(), status == 304);
    }
    world.stop().await;
}

// D83
#[tokio::test]
async fn a_write_with_if_match_happens_for_the_exact_tag_alone() {
    let world = World::open().await;
    let first = world
        .put(TEA, &[], "one")
        .await
        .field("etag")
        .unwrap()
        .to_owned();
    let gzip = first.trim_end_matches('"').to_owned() + "-gzip\"";
    let bare = first.trim_matches('"').to_owned();
    for (value, cause) in [
        (format!("W/{first}"), "weak"),
        (gzip, "content hash"),
        (bare, "content hash"),
        ("\"sha256-0\"".to_owned(), "content hash"),
        ("nonsense".to_owned(), "content hash"),
    ] {
        let refused = world.put(TEA, &[("If-Match", &value)], "two").await;
        assert_eq!(
            (refused.status, refused.code()),
            (412, "condition-failed".into()),
            "{value}"
        );
        let detail = refused.json()["error"]["detail"].to_string();
        assert!(detail.contains(cause), "{value}: {detail}");
    }
    let second = world.put(TEA, &[("If-Match", &first)], "two").await;
    assert_eq!(
        (second.status, second.json()["version"].clone()),
        (201, json!(2))
    );
    let stale = world.put(TEA, &[("If-Match", &first)], "three").await;
    assert_eq!(stale.status, 412);
    let created_only = world.put(TEA, &[("If-None-Match", "*")], "three").await;
    assert_eq!(created_only.status, 412);
    for (expect, status) in [("1", 412), ("0", 412), ("2", 201), ("x", 400), ("-1", 400)] {
        let target = format!("{TEA}?expect={expect}");
        assert_eq!(
            world.put(&target, &[], "three").await.status,
            status,
            "{expect}"
        );
    }
    let missing = world
        .put("/v1/documents/new.md", &[("If-Match", "*")], "x")
        .await;
    assert_eq!(missing.status, 412);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_thousand_writers_with_one_tag_exactly_one_wins() {
    const WRITERS: usize = 1_000;
    let world = World::open().await;
    let etag = world
        .put(TEA, &[], "start")
        .await
        .field("etag")
        .unwrap()
        .to_owned();
    let writers = (0..WRITERS).map(|number| {
        let (addr, etag) = (world.addr, etag.clone());
        tokio::spawn(async move {
            let body = format!("writer {number}");
            let fields = [("If-Match", etag.as_str())];
            ask(addr, "PUT", TEA, &fields, body.as_bytes()).await.status
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut statuses = Vec::new();
    for writer in writers {
        statuses.push(within(writer).await.unwrap());
    }
    let count = |status| statuses.iter().filter(|it| **it == status).count();
    assert_eq!((count(201), count(412)), (1, WRITERS - 1));
    assert_eq!(world.get(TEA).await.field("tidings-version"), Some("2"));
    world.stop().await;
}

#[tokio::test]
async fn append_archive_and_unarchive_go_their_way() {
    let world = World::open().await;
    world.put(TEA, &[], "one").await;
    let target = format!("{TEA}?append");
    let appended = world.ask("POST", &target, &[], b"two").await;
    assert_eq!(
        (appended.status, appended.json()["version"].clone()),
        (201, json!(2))
    );
    assert_eq!(world.get(TEA).await.text(), "one\ntwo");
    let stale = world
        .ask("POST", &format!("{TEA}?append&expect=1"), &[], b"x")
        .await;
    assert_eq!(stale.status, 412);

    let archived = world
        .ask("DELETE", TEA, &[("If-Match", "\"sha256-0\"")], b"")
        .await;
    assert_eq!(archived.status, 412);
    let stale = world
        .ask("DELETE", &format!("{TEA}?expect=1"), &[], b"")
        .await;
    assert_eq!(stale.status, 412);
    let archived = world
        .ask("DELETE", &format!("{TEA}?expect=2"), &[], b"")
        .await;
    assert_eq!(
        (archived.status, archived.json()["outcome"].clone()),
        (200, json!("archived"))
    );
    let read = world.get(TEA).await;
    assert_eq!((read.status, read.code()), (409, "archived".into()));
    assert_eq!(world.get(&format!("{TEA}?version=1")).await.text(), "one");
    assert_eq!(world.put(TEA, &[], "three").await.code(), "archived");

    let live = world
        .ask("POST", &format!("{TEA}?unarchive"), &[], b"")
        .await;
    assert_eq!(
        (live.status, live.json()["outcome"].clone()),
        (200, json!("unarchived"))
    );
    assert_eq!(world.get(TEA).await.status, 200);
    let neither = world.ask("POST", TEA, &[], b"x").await;
    assert_eq!(
        (neither.status, neither.code()),
        (400, "bad-parameter".into())
    );
    world.stop().await;
}

#[tokio::test]
async fn a_directory_lists_in_pages_and_a_document_has_a_history() {
    let world = World::open().await;
    for name in ["a.md", "b.md", "sub/c.md"] {
        world
            .put(&format!("/v1/documents/notes/{name}"), &[], name)
            .await;
    }
    world.put("/v1/documents/notes/a.md", &[], "again").await;
    let first = world.get("/v1/documents/notes/?page_size=2").await.json();
    assert_eq!(first["path"], "/notes/");
    assert_eq!(first["entries"][0]["name"], "a.md");
    assert_eq!(first["entries"][0]["version"], 2);
    let next = first["next"].as_str().unwrap();
    let second = world
        .get(&format!("/v1/documents/notes/?page_size=2&cursor={next}"))
        .await
        .json();
    assert_eq!(
        second["entries"],
        json!([{"kind": "directory", "name": "sub"}])
    );
    assert!(second["next"].is_null());
    assert_eq!(
        world.get("/v1/documents/").await.json()["entries"][0]["name"],
        "notes"
    );
    assert_eq!(world.get("/v1/documents/none/").await.status, 404);

    let history = world.get("/v1/documents/notes/a.md?versions").await.json();
    assert_eq!(history["current"], 2);
    assert_eq!(history["versions"][1]["version"], 1);
    assert_eq!(history["chain_valid"], true);
    let hash = history["versions"][1]["hash"].as_str().unwrap();
    assert_eq!(
        world.get(&format!("/v1/documents/{hash}")).await.text(),
        "a.md"
    );
    world.stop().await;
}

#[tokio::test]
async fn metadata_travels_in_fields_and_parameters() {
    let world = World::open().await;
    let fields = [("Tidings-Meta-agent", "caf%C3%A9 100%25")];
    let target = format!("{TEA}?tag=drinks&tag=warm&title=Green%20tea");
    assert_eq!(world.put(&target, &fields, "# Tea\n").await.status, 201);
    let read = world.get(TEA).await;
    assert_eq!(read.field("tidings-meta-agent"), Some("caf%C3%A9%20100%25"));
    assert_eq!(read.field("tidings-meta-tags"), Some("drinks,warm"));
    let found = world.get("/v1/lookup?tag=warm").await.json();
    assert_eq!(found["matches"][0]["path"], "/notes/tea.md");
    assert_eq!(found["matches"][0]["title"], "Green tea");
    assert_eq!(world.get("/v1/lookup?q=x").await.code(), "bad-parameter");
    assert_eq!(
        world.get("/v1/lookup?tag=cold").await.json()["matches"],
        json!([])
    );

    let twice = world
        .put(
            &format!("{TEA}?title=a"),
            &[("Tidings-Meta-title", "b")],
            "x",
        )
        .await;
    assert_eq!(twice.code(), "bad-document");
    let reserved = world.put(TEA, &[("Tidings-Meta-version", "9")], "x").await;
    assert_eq!(
        (reserved.status, reserved.code()),
        (422, "bad-document".into())
    );
    world.stop().await;
}

#[tokio::test]
async fn what_is_no_document_is_refused_with_its_cause() {
    let world = World::open().await;
    let put = |path: &'static str, body: &'static [u8]| {
        let world = &world;
        async move { world.ask("PUT", path, &[], body).await }
    };
    assert_eq!(
        put("/v1/documents/a.txt", b"x").await.code(),
        "bad-document"
    );
    assert_eq!(
        put("/v1/documents/a.md", b"\xff\xfe").await.code(),
        "bad-document"
    );
    assert_eq!(put("/v1/documents/a.md", b"").await.code(), "bad-document");
    assert_eq!(
        put("/v1/documents/a.md/", b"x").await.code(),
        "bad-document"
    );
    assert_eq!(
        put("/v1/documents/versions/a.md", b"x").await.code(),
        "bad-document"
    );
    assert_eq!(
        put("/v1/documents/.tidings/a.md", b"x").await.code(),
        "bad-document"
    );
    assert_eq!(put("/v1/documents/%2e%2e/a.md", b"x").await.status, 404);
    assert_eq!(put("/v1/documents/a%0Ab.md", b"x").await.code(), "bad-path");
    assert_eq!(put("/v1/documents/a%ff.md", b"x").await.code(), "bad-path");
    assert_eq!(put("/v1/documents/a%zz.md", b"x").await.code(), "bad-path");
    let unknown = put("/v1/documents/a.md?expct=1", b"x").await;
    assert_eq!(unknown.code(), "unknown-parameter");
    let zipped = world
        .ask("PUT", TEA, &[("Content-Encoding", "gzip")], b"x")
        .await;
    assert_eq!((zipped.status, zipped.code()), (415, "encoded-body".into()));
    world.stop().await;
}

// T15, T65
#[tokio::test]
async fn rights_hold_for_every_spelling_of_a_path() {
    let tokens = token("reader", "/private/**", &["read"])
        + &token("writer", "/private/**", &["read", "publish"]);
    let world = World::with_tokens(&tokens).await;
    let bearer = |token: &str| format!("Bearer {token}");
    let writer = bearer("writer");
    let secret = "/v1/documents/private/a.md";
    let denied = world.put(secret, &[], "x").await;
    assert_eq!((denied.status, denied.code()), (401, "unauthorized".into()));
    assert_eq!(denied.field("www-authenticate"), Some("Bearer"));
    let read_only = world
        .put(secret, &[("Authorization", &bearer("reader"))], "x")
        .await;
    assert_eq!(
        (read_only.status, read_only.code()),
        (403, "not-permitted".into())
    );
    assert_eq!(
        world
            .put(secret, &[("Authorization", &writer)], "x")
            .await
            .status,
        201
    );
    for target in [
        secret,
        "/v1/documents/private%2Fa.md",
        "/v1/documents//private//a.md",
        "/v1/documents/%70rivate/a.md",
        "/v1/documents/./private/a.md",
        "/v1/documents/private/a.md?version=1",
        "/v1/documents/private/a.md/v1",
    ] {
        assert_eq!(world.get(target).await.status, 401, "{target}");
        let reader = [("Authorization", &*bearer("reader"))];
        assert_eq!(
            world.ask("GET", target, &reader, b"").await.status,
            200,
            "{target}"
        );
        let forged = [("Authorization", "Bearer forged")];
        assert_eq!(
            world.ask("GET", target, &forged, b"").await.status,
            401,
            "{target}"
        );
        let basic = [("Authorization", "Basic eDp5")];
        assert_eq!(
            world.ask("GET", target, &basic, b"").await.status,
            401,
            "{target}"
        );
    }
    let hash = wire::ContentHash::of(b"x");
    assert_eq!(
        world.get(&format!("/v1/documents/{hash}")).await.status,
        404
    );
    world.stop().await;
}
