//! Writes whose answers are lost: the client finds out what became of them (D2, D14).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake;

use std::sync::{Arc, Mutex};

use client::{Draft, Error, RequestError, Written};
use fake::{Call, FakeServer, Part};
use wire::{ContentHash, DocPath, Metadata, Response, Status, Verb};

/// A store of one document, right in all it does.
#[derive(Default)]
struct Store {
    versions: Vec<(Vec<u8>, Metadata)>,
}

impl Store {
    fn answer(&mut self, call: &Call) -> Response {
        match call.request.verb {
            Verb::Fetch => self.fetch(call.path()),
            Verb::Publish | Verb::Append => self.write(call),
            verb => panic!("{verb}"),
        }
    }

    fn fetch(&self, path: &str) -> Response {
        let current = self.versions.len();
        let version = match path.rsplit_once("/v") {
            Some((_, digits)) => digits.parse().unwrap(),
            None => current,
        };
        let Some((body, metadata)) = version.checked_sub(1).and_then(|at| self.versions.get(at))
        else {
            return Response::error(Status::NotFound, "not found");
        };
        let mut response = Response::new(Status::Ok)
            .with("version", version.to_string())
            .with("current-version", current.to_string())
            .with_body(body.clone());
        for (key, value) in metadata.iter() {
            response.metadata.set(key, value);
        }
        response
    }

    fn write(&mut self, call: &Call) -> Response {
        let current = self.versions.len();
        let expected: Option<usize> = call
            .key("expected-version")
            .map(|text| text.parse().unwrap());
        if expected.is_some_and(|expected| expected != current) {
            return Response::new(Status::Conflict)
                .with("server-version", current.to_string())
                .with("your-version", "0");
        }
        let mut body = match call.request.verb {
            Verb::Append => self.versions[current - 1].0.clone(),
            _ => Vec::new(),
        };
        if !body.is_empty() && !body.ends_with(b"\n") {
            body.push(b'\n');
        }
        body.extend_from_slice(&call.request.body);
        let mut metadata = call.request.metadata.clone();
        metadata.remove("expected-version");
        self.versions.push((body, metadata));
        Response::new(Status::Created).with("version", (current + 1).to_string())
    }
}

type Shared = Arc<Mutex<Store>>;

/// What happens to the answer of a write.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    /// It is lost before the write happens.
    Before,
    /// It is lost after the write happened.
    After,
    /// It is lost after the write happened, and another writer is next.
    Overwritten,
    /// It is lost and another writer came first.
    Overtaken,
}

/// A server that loses the answer of the first write, by a reset or with the whole connection.
fn losing(store: &Shared, loss: Loss, how: fn() -> Part) -> FakeServer {
    let store = Arc::clone(store);
    let lost = Mutex::new(false);
    FakeServer::start(move |call| {
        let mut store = store.lock().unwrap();
        let mut lost = lost.lock().unwrap();
        if *lost || !call.request.verb.is_write() {
            return vec![store.answer(call).into()];
        }
        *lost = true;
        let other = || (b"other".to_vec(), Metadata::new());
        match loss {
            Loss::Before => {}
            Loss::After => drop(store.answer(call)),
            Loss::Overwritten => {
                store.answer(call);
                store.versions.push(other());
            }
            Loss::Overtaken => store.versions.push(other()),
        }
        vec![how()]
    })
}

fn store(bodies: &[&str]) -> Shared {
    let versions = bodies
        .iter()
        .map(|body| (body.as_bytes().to_vec(), Metadata::new()))
        .collect();
    Arc::new(Mutex::new(Store { versions }))
}

fn draft(body: &str, expected: Option<u64>) -> Draft {
    Draft {
        body: body.to_owned().into(),
        expected,
        metadata: Metadata::new(),
    }
}

fn tea() -> DocPath {
    DocPath::parse("/tea.md").unwrap()
}

fn count(store: &Shared, body: &str) -> usize {
    let store = store.lock().unwrap();
    store
        .versions
        .iter()
        .filter(|(kept, _)| kept == body.as_bytes())
        .count()
}

const LOSSES: [fn() -> Part; 3] = [|| Part::Reset, || Part::Close, || Part::Hang];

const fn created(version: u64) -> Written {
    Written {
        version,
        created: true,
    }
}

// D2
#[tokio::test]
async fn a_publish_that_expected_a_version_is_done_once_however_its_answer_is_lost() {
    for how in LOSSES {
        for loss in [Loss::Before, Loss::After, Loss::Overwritten] {
            let store = store(&["one"]);
            let server = losing(&store, loss, how);
            let written = server
                .client()
                .publish(&tea(), &draft("two", Some(1)))
                .await;
            assert_eq!(written.unwrap(), created(2), "{loss:?}");
            assert_eq!(count(&store, "two"), 1, "{loss:?}");
        }
    }
}

// D2
#[tokio::test]
async fn a_publish_that_was_overtaken_is_a_conflict_however_its_answer_is_lost() {
    for how in LOSSES {
        let store = store(&["one"]);
        let server = losing(&store, Loss::Overtaken, how);
        let error = server
            .client()
            .publish(&tea(), &draft("two", Some(1)))
            .await;
        assert!(matches!(
            error,
            Err(Error::Conflict {
                current: 2,
                expected: 1,
                ..
            })
        ));
        assert_eq!(count(&store, "two"), 0);
    }
}

// D2
#[tokio::test]
async fn a_publish_without_expectation_is_found_by_its_content_or_its_outcome_is_unknown() {
    let cases = [
        (&["one"][..], Loss::After, Some(2), 1),
        (&[], Loss::Before, Some(1), 1),
        (&[], Loss::After, Some(1), 1),
        (&["one"], Loss::Before, None, 0),
        (&["one"], Loss::Overwritten, None, 1),
        (&[], Loss::Overtaken, None, 0),
    ];
    for (before, loss, version, times) in cases {
        let store = store(before);
        let server = losing(&store, loss, || Part::Reset);
        let written = server.client().publish(&tea(), &draft("two", None)).await;
        match version {
            Some(version) => assert_eq!(written.unwrap(), created(version), "{loss:?}"),
            None => assert!(matches!(written, Err(Error::UnknownOutcome { .. }))),
        }
        assert_eq!(count(&store, "two"), times, "{before:?} {loss:?}");
    }
}

// D2
#[tokio::test]
async fn the_same_content_with_other_metadata_is_not_taken_for_ones_own() {
    let store = store(&["two"]);
    let server = losing(&store, Loss::Before, || Part::Reset);
    let mut draft = draft("two", None);
    draft.metadata.set("tags", "hot");
    let written = server.client().publish(&tea(), &draft).await;
    assert!(matches!(written, Err(Error::UnknownOutcome { .. })));
}

// D2
#[tokio::test]
async fn a_write_whose_resend_meets_itself_is_no_conflict() {
    // The first send stays under way while the client looks, and lands before the second.
    let store = store(&["one"]);
    let shared = Arc::clone(&store);
    let writes = Mutex::new(0);
    let server = FakeServer::start(move |call| {
        let mut store = shared.lock().unwrap();
        if !call.request.verb.is_write() {
            return vec![store.answer(call).into()];
        }
        let mut writes = writes.lock().unwrap();
        *writes += 1;
        if *writes == 1 {
            return vec![Part::Reset];
        }
        store.answer(call);
        vec![store.answer(call).into()]
    });
    let written = server
        .client()
        .publish(&tea(), &draft("two", Some(1)))
        .await;
    assert_eq!(written.unwrap(), created(2));
    assert_eq!(count(&store, "two"), 1);
}

// D14
#[tokio::test]
async fn an_append_is_done_once_however_its_answer_is_lost() {
    for how in LOSSES {
        for loss in [Loss::Before, Loss::After, Loss::Overwritten] {
            for expected in [None, Some(1)] {
                let store = store(&["one"]);
                let server = losing(&store, loss, how);
                let written = server
                    .client()
                    .append(&tea(), &draft("two", expected))
                    .await;
                assert_eq!(written.unwrap(), created(2), "{loss:?} {expected:?}");
                assert_eq!(count(&store, "one\ntwo"), 1, "{loss:?} {expected:?}");
            }
        }
    }
}

// D14
#[tokio::test]
async fn appends_at_once_all_land_once() {
    let store = store(&["start\n"]);
    let shared = Arc::clone(&store);
    let server = FakeServer::start(move |call| vec![shared.lock().unwrap().answer(call).into()]);
    let client = server.client();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..16 {
        let client = client.clone();
        writers.spawn(async move {
            for line in 0..10 {
                let draft = draft(&format!("{writer}-{line}\n"), None);
                client.append(&tea(), &draft).await.unwrap();
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    let store = store.lock().unwrap();
    let (last, _) = store.versions.last().unwrap();
    let mut lines: Vec<_> = std::str::from_utf8(last).unwrap().lines().collect();
    assert_eq!(lines.len(), 161);
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 161);
}

// D12
#[tokio::test]
async fn an_empty_or_too_long_body_is_not_sent() {
    let server = FakeServer::start(|_| vec![]);
    let client = server.client();
    let empty = client.publish(&tea(), &draft("", None)).await;
    assert!(matches!(
        empty,
        Err(Error::Request(RequestError::EmptyBody))
    ));
    let long = "x".repeat(wire::limits::BODY_LEN_MAX + 1);
    let long = client.publish(&tea(), &draft(&long, None)).await;
    assert!(matches!(
        long,
        Err(Error::Request(RequestError::BodyTooLong { .. }))
    ));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_write_that_nobody_received_is_unreachable_and_not_unknown() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let client = client::Client::builder(client::ServerAddress::new("127.0.0.1", port))
        .trust(client::Trust::Anyone)
        .build();
    let written = client.publish(&tea(), &draft("two", None)).await;
    assert!(matches!(written, Err(Error::Unreachable { .. })));
}

// D41
#[tokio::test]
async fn a_body_arrives_byte_for_byte() {
    for body in ["---\n", "---\na: b\n---\n", "\u{feff}x\r\n\r", "\0", "x  "] {
        let store = store(&[]);
        let shared = Arc::clone(&store);
        let server =
            FakeServer::start(move |call| vec![shared.lock().unwrap().answer(call).into()]);
        let client = server.client();
        client.publish(&tea(), &draft(body, None)).await.unwrap();
        let document = client.fetch(&tea(), client::Which::Current).await.unwrap();
        assert_eq!(document.content_hash, ContentHash::of(body.as_bytes()));
    }
}
