//! Leaving in order (T19, P13).

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

mod world;

use std::collections::HashSet;
use std::time::Duration;

use quic::Limits;
use quinn::ConnectionError;
use wire::{Response, Status, Verb};
use world::{World, limits, read, within};

#[tokio::test]
async fn each_watch_is_told_to_leave_at_its_own_moment_and_when_to_return() {
    let spread = Limits {
        closing_step: Duration::from_millis(20),
        ..limits()
    };
    let mut world = World::open(spread).await;
    let client = world.dial().await;
    let mut watches = Vec::new();
    for _ in 0..20 {
        watches.push(client.watch("/").await);
    }
    world.leave();
    let mut returns = HashSet::new();
    for watch in &mut watches {
        let last = watch.last().await;
        assert_eq!(last.get("status"), Some("closing"));
        assert!(last.get("cursor").is_some());
        let millis: u64 = last.get("retry-after").unwrap().parse().unwrap();
        assert!((500..=900).contains(&millis), "{millis}");
        returns.insert(millis);
    }
    assert!(
        returns.len() > 15,
        "they come back at the same moments: {returns:?}"
    );
    let closed = within(client.connection.closed()).await;
    match closed {
        ConnectionError::ApplicationClosed(close) => {
            assert_eq!(close.error_code, 0u32.into());
            assert_eq!(&close.reason[..], b"server closed");
        }
        other => panic!("{other}"),
    }
    assert!(world.try_dial().await.is_err());
    world.left().await;
}

#[tokio::test]
async fn until_its_moment_a_watch_goes_on_and_no_other_is_admitted() {
    let long = Limits {
        closing_step: Duration::from_secs(1),
        ..limits()
    };
    let mut world = World::open(long).await;
    let client = world.dial().await;
    let mut first = client.watch("/").await;
    let mut second = client.watch("/").await;
    world.leave();
    // The first ticket leaves at once.
    let gone = tokio::select! {
        last = first.last() => last,
        last = second.last() => last,
    };
    assert_eq!(gone.get("status"), Some("closing"));
    let refused = client.get(Verb::Watch, "/").await;
    assert_eq!(refused.status, Status::RateLimited);
    assert!(refused.metadata.get("retry-after").is_some());
    assert_eq!(
        refused.metadata.get("message"),
        Some("the server is leaving")
    );
    assert_eq!(client.get(Verb::Fetch, "/health").await.status, Status::Ok);
    world.left().await;
}

#[tokio::test]
async fn a_request_under_way_is_finished_before_the_connection_is_closed() {
    let mut world = World::open(limits()).await;
    let client = world.dial().await;
    let (mut send, mut recv) = client.connection.open_bi().await.unwrap();
    send.write_all(b"PUBLISH /a.md\n# Half").await.unwrap();
    // The server has the stream by the time it answers another.
    client.get(Verb::Fetch, "/health").await;
    world.leave();
    world.leave();
    send.write_all(b" and whole").await.unwrap();
    send.finish().unwrap();
    let answer = Response::decode(&read(&mut recv).await).unwrap();
    assert_eq!(answer.status, Status::Created);
    let store = world.store.clone();
    world.left().await;
    let path = wire::DocPath::parse("/a.md").unwrap();
    let stored = tokio::task::spawn_blocking(move || store.fetch(&path, documents::Which::Current));
    assert_eq!(stored.await.unwrap().unwrap().body, "# Half and whole");
}

#[tokio::test]
async fn a_client_that_reads_nothing_does_not_hold_a_drain_up() {
    let quick = Limits {
        write_stall: Duration::from_millis(200),
        ..limits()
    };
    let mut world = World::open(quick).await;
    let mut transport = quinn::TransportConfig::default();
    transport.stream_receive_window(256u32.into());
    let client = world.dial_with(transport).await;
    let _unread = client.watch("/").await;
    for number in 0..10 {
        world.publish("/a.md", &format!("{number}")).await;
    }
    world.leave();
    world.left().await;
}
