//! Watches against servers that close, cut, lap, lie and refuse.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake;

use std::sync::Arc;

use client::{Gap, Notice, QUEUE_LEN, Watch, WatchError};
use fake::{Call, FakeServer, Part};
use tokio::sync::Notify;
use wire::{Control, Cursor, DocumentScope, GapReason, Response, Status, Target};

fn scope(path: &str) -> DocumentScope {
    Target::parse(path.as_bytes()).unwrap().into()
}

fn cursor(text: &str) -> Cursor {
    text.parse().unwrap()
}

fn control(control: &Control) -> Part {
    let mut out = bytes::BytesMut::new();
    control.encode_into(&mut out).unwrap();
    Part::Bytes(out.to_vec())
}

fn ok(at: &str) -> Part {
    control(&Control::new(Status::Ok, cursor(at)))
}

fn event(at: &str) -> Part {
    let version = cursor(at).seq;
    let text = format!(
        "---\ncursor: {at}\nop: publish\npath: /notes/tea.md\nversion: \"{version}\"\n---\n"
    );
    text.as_str().into()
}

/// Acknowledges the cursor that was asked for, or the head `a:0`.
fn acknowledge(call: &Call) -> Part {
    ok(call.key("since").unwrap_or("a:0"))
}

/// The sequence numbers of the next changes.
async fn changes(watch: &mut Watch, count: usize) -> Vec<u64> {
    let mut seqs = Vec::new();
    while seqs.len() < count {
        if let Notice::Change(change) = watch.next().await.unwrap() {
            seqs.push(change.cursor.seq.get());
        }
    }
    seqs
}

async fn gap(watch: &mut Watch) -> Gap {
    loop {
        if let Notice::Gap(gap) = watch.next().await.unwrap() {
            return gap;
        }
    }
}

/// What each WATCH asked to go on from.
fn sinces(server: &FakeServer) -> Vec<Option<String>> {
    server
        .requests()
        .iter()
        .map(|request| request.metadata.get("since").map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn a_watch_goes_on_from_its_cursor_after_every_kind_of_end() {
    let server = FakeServer::start(|call| {
        let next = cursor(call.key("since").unwrap_or("a:0")).seq.next();
        let mut parts = vec![acknowledge(call), event(&format!("a:{next}"))];
        parts.push(match call.number {
            1 => Part::Reset,
            2 => Part::Close,
            3 => control(&Control::closing(cursor(&format!("a:{next}")), 5)),
            4 => "---\nnonsense\n---\n".into(),
            5 => Part::Bytes(vec![b'x'; 20_000]),
            _ => return parts,
        });
        parts
    });
    let client = server.client();
    let mut watch = client.watch(&scope("/notes/"), None).await.unwrap();
    assert_eq!(changes(&mut watch, 7).await, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(watch.cursor(), &cursor("a:7"));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_resync_is_a_notice_and_the_watch_continues() {
    let server = FakeServer::start(|call| match call.number {
        1 => vec![control(&Control::resync(GapReason::Epoch, cursor("b:40")))],
        _ => vec![acknowledge(call), event("b:41"), Part::Hang],
    });
    let client = server.client();
    let old = cursor("a:7");
    let mut watch = client.watch(&scope("/notes/"), Some(&old)).await.unwrap();
    assert_eq!(watch.cursor(), &old);
    let told = gap(&mut watch).await;
    assert_eq!(told.reason, Some(GapReason::Epoch));
    assert_eq!(watch.cursor(), &cursor("b:40"));
    assert_eq!(changes(&mut watch, 1).await, [41]);
}

#[tokio::test]
async fn five_resyncs_in_a_row_end_the_watch_and_keep_the_cursor() {
    let server =
        FakeServer::start(|_| vec![control(&Control::resync(GapReason::TooOld, cursor("a:9")))]);
    let client = server.client();
    let since = cursor("a:1");
    let mut watch = client.watch(&scope("/"), Some(&since)).await.unwrap();
    let error = loop {
        match watch.next().await {
            Ok(notice) => assert!(matches!(notice, Notice::Gap(_))),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, WatchError::Resyncs { .. }));
    assert_eq!(watch.cursor(), &cursor("a:9"));
    assert!(watch.next().await.is_err());
}

#[tokio::test]
async fn a_refusal_of_the_first_request_is_an_error() {
    let server = FakeServer::start(|_| {
        vec![
            Response::error(Status::NotPermitted, "insufficient permissions")
                .with("message", "insufficient permissions")
                .into(),
        ]
    });
    let error = server.client().watch(&scope("/"), None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "watch refused: not-permitted: insufficient permissions"
    );
}

#[tokio::test]
async fn a_server_without_watch_is_told_at_once() {
    for status in [Status::BadRequest, Status::ServerError] {
        let server =
            FakeServer::start(move |_| vec![Response::error(status, "bad request").into()]);
        let error = server.client().watch(&scope("/"), None).await;
        assert!(matches!(error, Err(WatchError::Unsupported { .. })));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_reopening_that_is_rate_limited_is_tried_again() {
    let server = FakeServer::start(|call| match call.number {
        1 => vec![acknowledge(call), event("a:1")],
        2 => vec![Response::new(Status::RateLimited).into()],
        3 => vec![Response::error(Status::ServerError, "internal error").into()],
        _ => vec![acknowledge(call), event("a:2"), Part::Hang],
    });
    let client = server.client();
    let mut watch = client.watch(&scope("/"), None).await.unwrap();
    assert_eq!(changes(&mut watch, 2).await, [1, 2]);
}

#[tokio::test]
async fn a_refusal_on_a_reopening_ends_the_watch() {
    let server = FakeServer::start(|call| match call.number {
        1 => vec![acknowledge(call), event("a:1")],
        _ => vec![Response::error(Status::Unauthorized, "authentication required").into()],
    });
    let client = server.client();
    let mut watch = client.watch(&scope("/"), None).await.unwrap();
    assert_eq!(changes(&mut watch, 1).await, [1]);
    assert!(matches!(
        watch.next().await,
        Err(WatchError::Refused(refusal)) if refusal.status == Status::Unauthorized
    ));
    assert_eq!(watch.cursor(), &cursor("a:1"));
}

#[tokio::test]
async fn a_reader_three_queues_behind_loses_nothing() {
    let total = 3 * QUEUE_LEN as u64;
    let server = FakeServer::start(move |call| {
        let since = call.key("since").unwrap_or("a:0");
        let next = cursor(since).seq.get() + 1;
        let mut parts = vec![ok(since)];
        parts.extend((next..=total).map(|seq| event(&format!("a:{seq}"))));
        parts.push(Part::Hang);
        parts
    });
    let client = server.client();
    let mut watch = client.watch(&scope("/"), None).await.unwrap();
    while server.requests().len() < 2 {
        // Nothing is taken until the queue was full once and half of it must be.
        changes(&mut watch, 1).await;
        tokio::task::yield_now().await;
        if watch.cursor().seq.get() > QUEUE_LEN as u64 {
            break;
        }
    }
    let taken = watch.cursor().seq.get();
    let rest = changes(&mut watch, (total - taken) as usize).await;
    assert!(rest.into_iter().eq(taken + 1..=total));
}

#[tokio::test]
async fn a_full_queue_drops_the_stream_and_its_last_notice_is_where_it_goes_on() {
    let total = 2 * QUEUE_LEN as u64;
    let server = FakeServer::start(move |call| {
        let since = call.key("since").unwrap_or("a:0");
        let next = cursor(since).seq.get() + 1;
        let mut parts = vec![ok(since)];
        parts.extend((next..=total).map(|seq| event(&format!("a:{seq}"))));
        parts.push(Part::Hang);
        parts
    });
    let client = server.client();
    let mut watch = client.watch(&scope("/"), None).await.unwrap();
    // The reader sleeps until the task has filled the queue: the acknowledgement and 1023 changes.
    watch_is_full(&watch).await;
    let all = changes(&mut watch, total as usize).await;
    assert!(all.into_iter().eq(1..=total));
    let asked = sinces(&server);
    assert!(asked.len() >= 2, "the stream was reopened");
    assert_eq!(asked[1].as_deref(), Some("a:1024"));
}

async fn watch_is_full(watch: &Watch) {
    while watch.queued() < QUEUE_LEN {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_server_whose_cursors_go_back_is_dropped_and_asked_from_the_last_good_one() {
    let server = FakeServer::start(|call| match call.number {
        1 => vec![acknowledge(call), event("a:5"), event("a:3"), Part::Hang],
        _ => vec![acknowledge(call), event("a:6"), Part::Hang],
    });
    let client = server.client();
    let mut watch = client.watch(&scope("/"), None).await.unwrap();
    assert_eq!(changes(&mut watch, 2).await, [5, 6]);
    assert_eq!(sinces(&server)[1].as_deref(), Some("a:5"));
}

#[tokio::test]
async fn a_restarted_server_is_found_again() {
    let script = |call: &Call| {
        let since = call.key("since").unwrap_or("a:0");
        let next = cursor(since).seq.get() + 1;
        vec![ok(since), event(&format!("a:{next}")), Part::Hang]
    };
    let server = FakeServer::start(script);
    let at = server.address;
    let client = server.client();
    let mut watch = client.watch(&scope("/"), None).await.unwrap();
    assert_eq!(changes(&mut watch, 1).await, [1]);
    server.stop().await;
    let _again = FakeServer::start_at(at, script);
    assert_eq!(changes(&mut watch, 1).await, [2]);
}

// T49
#[tokio::test]
async fn a_watch_survives_a_change_of_the_clients_address_on_its_stream() {
    let go_on = Arc::new(Notify::new());
    let later = Arc::clone(&go_on);
    let server = FakeServer::start(move |call| {
        vec![
            acknowledge(call),
            Part::Until(Arc::clone(&later)),
            event("a:1"),
            Part::Hang,
        ]
    });
    let client = server.client();
    let mut watch = client.watch(&scope("/"), None).await.unwrap();
    client.pool().rebind().unwrap();
    go_on.notify_one();
    assert_eq!(changes(&mut watch, 1).await, [1]);
    assert_eq!((server.requests().len(), server.connections()), (1, 1));
}

#[tokio::test]
async fn a_dropped_watch_stops_its_stream() {
    let server = FakeServer::start(|call| vec![acknowledge(call), Part::Endless]);
    let client = server.client();
    let watch = client.watch(&scope("/"), None).await.unwrap();
    drop(watch);
    // Were the stream still open, its window would stay full and hold the connection's.
    client.close().await;
}

// L66, T61
#[tokio::test]
async fn a_connection_without_a_sign_of_life_is_replaced_at_once() {
    let server = FakeServer::start(|call| {
        if call.path() == "/health" {
            return vec![Part::Hang];
        }
        let since = call.key("since").unwrap_or("a:0");
        let next = cursor(since).seq.next();
        vec![ok(since), event(&format!("a:{next}")), Part::Hang]
    });
    let client = server.client();
    let mut watch = client.watch(&scope("/"), None).await.unwrap();
    assert_eq!(changes(&mut watch, 1).await, [1]);
    client.pool().check().await.unwrap();
    assert_eq!(changes(&mut watch, 1).await, [2]);
    assert_eq!(server.connections(), 2);
}

// L66
#[tokio::test]
async fn a_connection_that_lives_goes_on_after_a_check() {
    let go_on = Arc::new(Notify::new());
    let later = Arc::clone(&go_on);
    let server = FakeServer::start(move |call| {
        if call.path() == "/health" {
            return vec![Response::new(Status::Ok).into()];
        }
        let later = Part::Until(Arc::clone(&later));
        vec![acknowledge(call), later, event("a:1"), Part::Hang]
    });
    let client = server.client();
    let mut watch = client.watch(&scope("/"), None).await.unwrap();
    client.pool().check().await.unwrap();
    go_on.notify_one();
    assert_eq!(changes(&mut watch, 1).await, [1]);
    assert_eq!(server.connections(), 1);
}
