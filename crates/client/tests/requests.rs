//! Requests against servers that break off, lie, or never end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake;

use client::{
    AnswerError, Client, DialError, Error, ExchangeError, KnownServers, Proof, Trust, TrustError,
    Which,
};
use fake::{FakeServer, Part};
use std::sync::Arc;
use tokio::sync::Notify;
use wire::{ContentHash, DocPath, Response, Status, Verb};

fn path(text: &str) -> DocPath {
    DocPath::parse(text).unwrap()
}

fn document(version: u64, body: &str) -> Part {
    Response::new(Status::Ok)
        .with("version", version.to_string())
        .with("content-hash", ContentHash::of(body.as_bytes()).to_string())
        .with_body(body.to_owned())
        .into()
}

#[tokio::test]
async fn a_document_comes_with_what_its_publisher_said() {
    let server = FakeServer::start(|_| {
        vec![
            Response::new(Status::Ok)
                .with("version", "3")
                .with("etag", "e")
                .with("title", "Tea")
                .with_body("# Tea\n")
                .into(),
        ]
    });
    let client = server.client();
    let document = client.fetch(&path("/tea.md"), Which::Current).await;
    let document = document.unwrap();
    assert_eq!(document.version, Some(3));
    assert_eq!(document.etag.as_deref(), Some("e"));
    assert_eq!(document.metadata.len(), 1);
    assert_eq!(&document.body[..], b"# Tea\n");
    client.close().await;
}

#[tokio::test]
async fn a_reset_stream_is_tried_again_on_the_same_connection() {
    let server = FakeServer::start(|call| match call.number {
        1 | 2 => vec![Part::Reset],
        _ => vec![document(1, "tea")],
    });
    let client = server.client();
    client
        .fetch(&path("/tea.md"), Which::Current)
        .await
        .unwrap();
    assert_eq!((server.requests().len(), server.connections()), (3, 1));
}

#[tokio::test]
async fn a_closed_connection_is_given_up_and_the_next_one_answers() {
    let server = FakeServer::start(|call| match call.connection {
        1 => vec![Part::Close],
        _ => vec![document(1, "tea")],
    });
    let client = server.client();
    client
        .fetch(&path("/tea.md"), Which::Current)
        .await
        .unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_server_that_resets_every_stream_is_told_after_five_tries() {
    let server = FakeServer::start(|_| vec![Part::Reset]);
    let error = server
        .client()
        .fetch(&path("/tea.md"), Which::Current)
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        Error::Unreachable {
            error: ExchangeError::Reset(9),
            ..
        }
    ));
    assert_eq!((server.requests().len(), server.connections()), (5, 1));
}

#[tokio::test]
async fn a_server_that_closes_at_once_is_told_after_five_tries() {
    let server = FakeServer::start(|_| vec![Part::Close]);
    let error = server
        .client()
        .fetch(&path("/tea.md"), Which::Current)
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        Error::Unreachable {
            error: ExchangeError::Lost(_),
            ..
        }
    ));
    assert_eq!(server.connections(), 5);
}

#[tokio::test]
async fn an_answer_that_never_ends_is_cut_at_its_bound() {
    let server = FakeServer::start(|_| vec!["---\nstatus: ok\n---\n".into(), Part::Endless]);
    let client = server
        .builder()
        .trust(Trust::Anyone)
        .patience(std::time::Duration::from_secs(10))
        .build();
    let error = client.fetch(&path("/tea.md"), Which::Current).await;
    assert!(matches!(
        error,
        Err(Error::Answer {
            error: AnswerError::TooLong,
            ..
        })
    ));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_that_never_comes_ends_with_the_patience_and_keeps_the_connection() {
    let server = FakeServer::start(|call| match call.number {
        1 => vec![Part::Hang],
        _ => vec![document(1, "tea")],
    });
    let client = server.client();
    client
        .fetch(&path("/tea.md"), Which::Current)
        .await
        .unwrap();
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn an_answer_whose_hash_is_not_its_bodys_is_refused() {
    let server = FakeServer::start(|_| {
        vec![
            Response::new(Status::Ok)
                .with("content-hash", ContentHash::of(b"tea").to_string())
                .with_body("poison")
                .into(),
        ]
    });
    let error = server
        .client()
        .fetch(&path("/tea.md"), Which::Current)
        .await;
    assert!(matches!(
        error,
        Err(Error::Answer {
            error: AnswerError::Hash,
            ..
        })
    ));
}

#[tokio::test]
async fn a_listing_that_gives_its_cursor_back_is_not_followed_for_ever() {
    let server = FakeServer::start(|_| {
        vec![
            Response::new(Status::Ok)
                .with("complete", "false")
                .with("next-cursor", "again")
                .into(),
        ]
    });
    let error = server
        .client()
        .list_all(&DocPath::root(), &client::ListQuery::default())
        .await;
    assert!(matches!(error, Err(Error::Answer { .. })));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_refusal_carries_status_and_words_and_is_not_repeated() {
    let server = FakeServer::start(|_| {
        vec![Response::error(Status::NotPermitted, "insufficient permissions").into()]
    });
    let error = server
        .client()
        .fetch(&path("/tea.md"), Which::Current)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "not-permitted: insufficient permissions");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_request_that_was_one_too_many_is_sent_again() {
    let server = FakeServer::start(|call| match call.number {
        1 => vec![Response::new(Status::RateLimited).into()],
        _ => vec![document(1, "tea")],
    });
    let client = server.client();
    client
        .fetch(&path("/tea.md"), Which::Current)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_fetch_that_is_reset_leaves_a_watch_on_its_connection_delivering() {
    let go_on = Arc::new(Notify::new());
    let later = Arc::clone(&go_on);
    let server = FakeServer::start(move |call| match (call.request.verb, call.number) {
        (Verb::Watch, _) => vec![
            "---\ncursor: a:0\nstatus: ok\n---\n".into(),
            Part::Until(Arc::clone(&later)),
            "---\ncursor: a:1\nop: publish\npath: /tea.md\nversion: \"1\"\n---\n".into(),
            Part::Hang,
        ],
        (_, 2) => vec![Part::Reset],
        _ => vec![document(1, "tea")],
    });
    let client = server.client();
    let scope = wire::DocumentScope {
        path: DocPath::root(),
        subtree: true,
    };
    let mut watch = client.watch(&scope, None).await.unwrap();
    client
        .fetch(&path("/tea.md"), Which::Current)
        .await
        .unwrap();
    go_on.notify_one();
    while !matches!(watch.next().await.unwrap(), client::Notice::Change(_)) {}
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_port_where_nothing_listens_is_told_without_waiting() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let client = Client::builder(client::ServerAddress::new("localhost", port))
        .trust(Trust::Anyone)
        .build();
    let error = client
        .fetch(&path("/tea.md"), Which::Current)
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::Unreachable {
                error: ExchangeError::Dial(DialError::Silent),
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_of_another_protocol_is_named_as_such() {
    let server = FakeServer::start_with("127.0.0.1:0".parse().unwrap(), b"h3", |_| vec![]);
    let error = server
        .client()
        .fetch(&path("/tea.md"), Which::Current)
        .await;
    assert!(matches!(
        error,
        Err(Error::Unreachable {
            error: ExchangeError::Dial(DialError::NotMark),
            ..
        })
    ));
}

#[tokio::test]
async fn a_certificate_is_pinned_at_first_use_and_a_changed_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let known = KnownServers::new(dir.path().join("known_servers"));
    let script = |_: &fake::Call| vec![document(1, "tea")];
    let server = FakeServer::start(script);
    let trust = || Trust::FirstUse(known.clone());
    for _ in 0..2 {
        let client = server.builder().trust(trust()).build();
        client
            .fetch(&path("/tea.md"), Which::Current)
            .await
            .unwrap();
    }
    let pinned = ContentHash::of(&server.certificate);
    let address = server.server();
    assert_eq!(known.proof(&address).unwrap(), Some(Proof::Pinned(pinned)));

    let at = server.address;
    server.stop().await;
    let other = FakeServer::start_at(at, script);
    let client = other.builder().trust(trust()).build();
    let error = client.fetch(&path("/tea.md"), Which::Current).await;
    let error = error.unwrap_err();
    assert!(error.is_untrusted(), "{error}");
    let text = error.to_string();
    assert!(text.contains("known_servers") && text.contains(&pinned.to_string()));
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn without_pinning_a_self_made_certificate_is_not_trusted() {
    let server = FakeServer::start(|_| vec![document(1, "tea")]);
    let client = server.builder().trust(Trust::Roots).build();
    let error = client.fetch(&path("/tea.md"), Which::Current).await;
    let Err(Error::Unreachable {
        error: ExchangeError::Dial(DialError::Trust(error)),
        ..
    }) = error
    else {
        panic!("{error:?}");
    };
    assert!(matches!(*error, TrustError::Unknown { .. }));
}

#[tokio::test]
async fn known_servers_that_cannot_be_written_trust_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let server = FakeServer::start(|_| vec![document(1, "tea")]);
    // A directory stands where the file should be.
    let trust = Trust::FirstUse(KnownServers::new(dir.path()));
    let client = server.builder().trust(trust).build();
    let error = client.fetch(&path("/tea.md"), Which::Current).await;
    assert!(error.unwrap_err().to_string().contains("TIDINGS_HOME"));
}
