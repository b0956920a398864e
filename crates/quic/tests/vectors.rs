//! The captured answers of the original, one after the other on one world.
//!
//! The captures are of the older generation; this server speaks the newer one and, in a few
//! places, better than both. Each difference stands once in [`difference`] with its reason, and
//! everything else is compared byte for byte. Times are any time, and an etag is the hash of a
//! file that is stored here.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

mod world;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use wire::{ContentHash, Request, Response, Status, Verb};
use world::{World, limits};

const INDEX: &str = include_str!("../testdata/vectors.tsv");
const TOKENS: &str = include_str!("../testdata/vectors-tokens.toml");

/// How an answer differs from the captured one.
enum Difference {
    /// These keys come to it. An empty value stands for the hash that it must be.
    Adds(&'static [(&'static str, &'static str)]),
    /// The same, and the heading of the listing ends in a slash.
    Slash(&'static [(&'static str, &'static str)]),
    /// It is this refusal instead.
    Refuses(Status, &'static str),
    /// It is an answer of the newer generation's verb.
    Verb,
}

/// The differences of the generations, by vector.
#[rustfmt::skip]
fn difference(vector: &str) -> Option<Difference> {
    use Difference::{Adds, Refuses, Slash, Verb};
    use Status::{BadRequest, Unauthorized};
    Some(match vector {
        // A document without a type is of the type Document.
        "005-fetch" | "016-fetch-odd-values" | "020-fetch-odd-values-3"
        | "025-fetch-unquoted-number-and-bool" | "031-fetch-joined"
        | "055-fetch-if-none-match-other" | "058-fetch-if-modified-since-garbage"
        | "074-fetch-hidden-name" | "092-fetch-crlf-body" | "103-fetch-private"
        | "136-odd-crlf-line" | "137-odd-no-final-newline" | "148-odd-metadata-unknown-key"
        | "149-odd-fetch-with-body" => Adds(&[("type", "Document")]),
        // A version that is asked for by number has an etag too.
        "040-fetch-version" | "043-fetch-version-leading-zero" | "112-fetch-archived-version" =>
            Adds(&[("etag", ""), ("type", "Document")]),
        // An APPEND keeps the metadata of the version before.
        "047-fetch-by-hash" => Adds(&[
            ("importance", "0.7"), ("tags", "drinks,hot"), ("title", "Coffee"), ("type", "Note"),
        ]),
        // A page says whether it is the last.
        "059-list" | "061-list-root" => Adds(&[("complete", "true")]),
        // The text of a directory can be cached.
        "001-fetch-root-empty-world" | "064-fetch-directory" =>
            Adds(&[("content-hash", ""), ("etag", "")]),
        "065-fetch-directory-no-slash" => Slash(&[("content-hash", ""), ("etag", "")]),
        // More metadata fits.
        "026-publish-51-keys" => Refuses(BadRequest, "too many metadata keys (max 50)"),
        "027-publish-metadata-too-large" =>
            Refuses(BadRequest, "metadata too large (max 1024 bytes)"),
        // The document contract: Markdown by name, UTF-8 by content.
        "076-publish-not-md" | "078-publish-root" | "086-publish-over-directory"
        | "087-publish-name-ends-in-version" =>
            Refuses(BadRequest, "publish path must end in .md"),
        "088-publish-invalid-utf8" =>
            Refuses(BadRequest, "document body must be valid UTF-8 text"),
        // The place of versions is not for documents (D35), nor is the place below one (D33).
        "083-publish-under-versions" => Refuses(
            BadRequest, "the path is reserved: a segment named `versions` holds versions",
        ),
        "085-publish-below-document" =>
            Refuses(BadRequest, "path collision: /notes/tea.md is in the way"),
        // A closed directory is closed in every spelling.
        "106-list-private-no-slash-no-token" =>
            Refuses(Unauthorized, "authentication required"),
        // A request that breaks the grammar is the client's fault, and is told which one.
        "124-bad-newline-only" | "125-bad-no-path" =>
            Refuses(BadRequest, "bad request: the line has no path"),
        "127-bad-relative-path" | "131-bad-two-spaces" =>
            Refuses(BadRequest, "bad request: the path must begin with a slash"),
        "128-bad-unknown-verb" | "130-bad-leading-space" =>
            Refuses(BadRequest, "bad request: unknown verb"),
        "133-bad-control-char" =>
            Refuses(BadRequest, "bad request: the path has a control character"),
        "139-odd-line-at-limit" =>
            Refuses(BadRequest, "bad request: the path is longer than 4087 bytes"),
        "140-bad-unclosed-metadata" | "142-odd-empty-metadata" =>
            Refuses(BadRequest, "bad request: metadata has no closing fence"),
        "143-bad-metadata-not-a-map" =>
            Refuses(BadRequest, "bad request: a line of metadata is not `key: value`"),
        "145-bad-metadata-duplicate-key" =>
            Refuses(BadRequest, "bad request: metadata has a key twice"),
        "146-bad-metadata-tab" => Refuses(BadRequest, "bad request: metadata is not flat"),
        // The older generation doesn't know these verbs.
        "151-lookup" | "152-watch" => Verb,
        _ => return None,
    })
}

#[tokio::test]
async fn the_captured_requests_are_answered_as_the_original_answers_them() {
    let world = World::with_tokens(TOKENS, limits()).await;
    let client = world.dial().await;
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/testdata/vectors");
    let mut differing = 0;
    for line in INDEX.lines().skip(1) {
        let vector = line.split('\t').next().unwrap();
        let request = fs::read(dir.join(format!("{vector}.req"))).unwrap();
        let captured = fs::read(dir.join(format!("{vector}.res"))).unwrap();
        let mut expected = Response::decode(&captured.into()).unwrap();
        let difference = difference(vector);
        differing += usize::from(difference.is_some());
        match difference {
            None => {}
            Some(Difference::Adds(keys)) => add(&mut expected, keys),
            Some(Difference::Slash(keys)) => {
                let text = String::from_utf8(expected.body.to_vec()).unwrap();
                expected.body = text.replacen("\n\n-", "/\n\n-", 1).into();
                add(&mut expected, keys);
            }
            Some(Difference::Refuses(status, message)) => {
                expected = Response::error(status, message);
            }
            // Their answers have tests of their own.
            Some(Difference::Verb) => continue,
        }
        let bytes = client.exchange(&request).await;
        let answer = Response::decode(&bytes).unwrap();
        check_etag(&world, vector, &answer);
        for key in ["etag", "modified"] {
            if let (Some(_), Some(ours)) = (expected.metadata.get(key), answer.metadata.get(key)) {
                let ours = ours.to_owned();
                expected.metadata.set(key, ours);
            }
        }
        assert_eq!(
            without_times(&bytes),
            without_times(&expected.encode()),
            "{vector}"
        );
    }
    assert_eq!(differing, 48, "a difference that no vector has");
}

fn add(expected: &mut Response, keys: &[(&str, &str)]) {
    let hash = ContentHash::of(&expected.body);
    for (key, value) in keys {
        let value = match (*key, *value) {
            ("content-hash", _) => hash.to_string(),
            ("etag", _) => hash.hex(),
            (_, value) => value.to_owned(),
        };
        expected.metadata.set(*key, value);
    }
}

/// An etag is the hash of the stored file, or of the text of a directory.
fn check_etag(world: &World, vector: &str, answer: &Response) {
    let Some(etag) = answer.metadata.get("etag") else {
        return;
    };
    let mut known = BTreeSet::from([ContentHash::of(&answer.body).hex()]);
    if answer.metadata.get("version").is_some() {
        known.clear();
        hash_files(&world.dir.path().join("tree"), &mut known);
    }
    assert!(
        known.contains(etag),
        "{vector}: nothing stored has the hash {etag}"
    );
}

fn hash_files(dir: &Path, into: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            hash_files(&path, into);
        } else if path.components().any(|name| name.as_os_str() == "versions") {
            into.insert(ContentHash::of(&fs::read(path).unwrap()).hex());
        }
    }
}

/// The text with every `2026-11-29T23:24:21Z` made alike.
fn without_times(bytes: &[u8]) -> String {
    const SHAPE: &str = "0000-00-00T00:00:00Z";
    let mut text = bytes.escape_ascii().to_string();
    let is_time = |text: &str| {
        text.bytes()
            .zip(SHAPE.bytes())
            .all(|(byte, shape)| match shape {
                b'0' => byte.is_ascii_digit(),
                shape => byte == shape,
            })
    };
    let mut at = 0;
    while let Some(window) = text.get(at..at + SHAPE.len()) {
        if is_time(window) {
            text.replace_range(at..at + SHAPE.len(), SHAPE);
        }
        at += 1;
    }
    text
}

#[tokio::test]
async fn lookup_answers_with_a_table() {
    let world = World::with_tokens(TOKENS, limits()).await;
    let client = world.dial().await;
    let coffee = Request::new(Verb::Publish, "/notes/coffee.md")
        .with("auth", "editor-token")
        .with("tags", "drinks,hot")
        .with("importance", "0.7")
        .with_body("# Coffee\n");
    assert_eq!(client.ask(coffee).await.status, Status::Created);
    let answer = client
        .ask(Request::new(Verb::Lookup, "/notes/").with("query", "HOT"))
        .await;
    assert_eq!(answer.metadata.get("matches"), Some("1"));
    assert_eq!(
        answer.body,
        "\n# Lookup matches for \"HOT\" in /notes/\n\n\
         | Path | Importance | Title | Tags |\n\
         |------|------------|-------|------|\n\
         | /notes/coffee.md | 0.70 | Coffee | drinks, hot |\n"
    );
    let echoed = Request::new(Verb::Lookup, "/")
        .with("query", "zz")
        .with("match", "body");
    assert_eq!(
        client.ask(echoed).await.metadata.get("match"),
        Some("catalog")
    );
    let short = client
        .ask(Request::new(Verb::Lookup, "/").with("query", "x"))
        .await;
    assert_eq!(short.message(), Some("query must be at least 2 characters"));
}

#[tokio::test]
async fn a_directory_is_read_by_pages_to_its_end() {
    let world = World::open(limits()).await;
    for name in ["a", "b", "c", "d", "e"] {
        world.publish(&format!("/dir/{name}.md"), name).await;
    }
    let client = world.dial().await;
    let mut names = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut request = Request::new(Verb::List, "/dir").with("page-size", "2");
        if let Some(cursor) = &cursor {
            request = request.with("cursor", cursor.clone());
        }
        let page = client.ask(request).await;
        let text = String::from_utf8(page.body.to_vec()).unwrap();
        names.extend(
            text.lines()
                .filter_map(|line| Some(line.strip_prefix("- [")?[..1].to_owned())),
        );
        cursor = page.metadata.get("next-cursor").map(str::to_owned);
        let complete = page.metadata.get("complete").unwrap();
        assert_eq!(complete == "true", cursor.is_none());
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    for (key, value, message) in [
        ("page-size", "0", "page-size must be between 1 and 1000"),
        ("page-size", "1001", "page-size must be between 1 and 1000"),
        (
            "include-archived",
            "yes",
            "include-archived must be true or false",
        ),
        ("cursor", "!", "invalid LIST cursor"),
    ] {
        let answer = client
            .ask(Request::new(Verb::List, "/dir").with(key, value))
            .await;
        assert_eq!(answer.message(), Some(message), "{key}: {value}");
    }
}

#[tokio::test]
async fn a_history_is_read_by_pages_to_its_end() {
    let world = World::open(limits()).await;
    for number in 0..5 {
        world.publish("/a.md", &format!("{number}")).await;
    }
    let client = world.dial().await;
    let first = client
        .ask(Request::new(Verb::Versions, "/a.md").with("page-size", "3"))
        .await;
    assert_eq!(first.metadata.get("complete"), Some("false"));
    assert_eq!(first.metadata.get("total"), Some("5"));
    let cursor = first.metadata.get("next-cursor").unwrap().to_owned();
    let rest = client
        .ask(Request::new(Verb::Versions, "/a.md").with("cursor", cursor))
        .await;
    assert_eq!(rest.metadata.get("complete"), None);
    let text = String::from_utf8(rest.body.to_vec()).unwrap();
    assert_eq!(
        text.lines().filter(|line| line.starts_with("- [v")).count(),
        2
    );
}

// D82
#[tokio::test]
async fn a_second_write_within_one_second_is_not_hidden_by_the_first_ones_date() {
    let world = World::open(limits()).await;
    let client = world.dial().await;
    world.publish("/a.md", "1").await;
    let first = client.get(Verb::Fetch, "/a.md").await;
    world.publish("/a.md", "2").await;
    let again = Request::new(Verb::Fetch, "/a.md")
        .with("if-none-match", first.metadata.get("etag").unwrap())
        .with("if-modified-since", first.metadata.get("modified").unwrap());
    assert_eq!(client.ask(again).await.body, "2");
}
