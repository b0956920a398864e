//! Watches that are cut anywhere and opened again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake;

use std::sync::Arc;

use client::{Notice, Watch};
use fake::{Call, FakeServer, Part};
use tokio::sync::Notify;
use wire::{Cursor, DocumentScope, Target};

fn scope(path: &str) -> DocumentScope {
    Target::parse(path.as_bytes()).unwrap().into()
}

/// Where the call goes on from: the head is `a:0` for one that asks for nothing.
fn since(call: &Call) -> u64 {
    let since = call.key("since").unwrap_or("a:0");
    since.parse::<Cursor>().unwrap().seq.get()
}

fn acknowledgement(at: u64) -> String {
    format!("---\ncursor: a:{at}\nstatus: ok\n---\n")
}

fn event(at: u64) -> String {
    format!("---\ncursor: a:{at}\nop: publish\npath: /notes/tea.md\nversion: \"{at}\"\n---\n")
}

async fn next_change(watch: &mut Watch) -> u64 {
    loop {
        match watch.next().await.unwrap() {
            Notice::Change(change) => return change.cursor.seq.get(),
            Notice::Position(_) => {}
            Notice::Gap(gap) => panic!("{gap:?}"),
        }
    }
}

// L65, L73
#[tokio::test]
async fn a_stream_cut_at_any_byte_of_a_change_goes_on_with_that_change() {
    let whole = event(1000);
    let cuts = whole.len() as u64;
    let server = FakeServer::start(move |call| {
        let at = since(call);
        // The end cuts the change after next, at another byte in each run.
        let (next, rest) = (event(at + 1), event(at + 2));
        let cut = usize::try_from(at).unwrap() % rest.len();
        let bytes = acknowledgement(at) + &next + &rest[..cut];
        let end = match call.number % 10 {
            0 => Part::Close,
            _ => Part::Bytes(Vec::new()),
        };
        vec![bytes.as_str().into(), end]
    });
    let client = server.client();
    let mut watch = client.watch(&scope("/notes/"), None).await.unwrap();
    for expected in 1..=cuts {
        assert_eq!(next_change(&mut watch).await, expected);
    }
    assert!(server.requests().len() as u64 >= cuts);
}

// L64, L76
#[tokio::test]
async fn each_watch_is_asked_for_once_again_from_its_own_cursor_and_a_dropped_one_never() {
    let cut = Arc::new(Notify::new());
    let later = Arc::clone(&cut);
    let server = FakeServer::start(move |call| {
        // The n-th watch is told of change n; the first one's answer ends with the connection.
        let at = since(call);
        let told = if call.number <= 3 {
            call.number as u64
        } else {
            at + 1
        };
        let bytes = acknowledgement(at) + &event(told);
        let mut parts = vec![bytes.as_str().into()];
        if call.number == 1 {
            parts.extend([Part::Until(Arc::clone(&later)), Part::Close]);
        }
        parts.push(Part::Hang);
        parts
    });
    let client = server.client();
    let mut watches = Vec::new();
    for (path, seq) in [("/notes/", 1), ("/", 2), ("/notes/tea.md", 3)] {
        let mut watch = client.watch(&scope(path), None).await.unwrap();
        assert_eq!(next_change(&mut watch).await, seq);
        watches.push(watch);
    }
    drop(watches.pop());
    cut.notify_one();
    for (watch, seq) in watches.iter_mut().zip(2..) {
        assert_eq!(next_change(watch).await, seq);
    }
    let mut again: Vec<(String, u64)> = server.requests()[3..]
        .iter()
        .map(|request| {
            let since = request.metadata.get("since").unwrap();
            let path = String::from_utf8(request.path.to_vec()).unwrap();
            (path, since.parse::<Cursor>().unwrap().seq.get())
        })
        .collect();
    again.sort_unstable();
    assert_eq!(again, [("/".to_owned(), 2), ("/notes/".to_owned(), 1)]);
    assert_eq!(server.connections(), 2);
}
