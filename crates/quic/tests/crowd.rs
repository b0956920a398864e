//! Many watches and many writers at once, on threads of their own.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

mod world;

use std::sync::Arc;

use quic::Limits;
use tokio::task::JoinSet;
use world::{Watch, World, limits};

const CONNECTIONS: usize = 10;
const WATCHES_PER_CONNECTION: usize = 50;
const WRITERS: usize = 4;
const WRITES: usize = 40;

/// Reads until all writes were told; each comes once, in order.
async fn follow(mut watch: Watch, writes: usize) -> Watch {
    let mut last = 0;
    for _ in 0..writes {
        let event = watch.event().await;
        let seq = event.get("cursor").unwrap().rsplit(':').next().unwrap();
        let seq: u64 = seq.parse().unwrap();
        assert!(seq > last, "{seq} after {last}");
        last = seq;
    }
    watch
}

// T6, T48
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_watch_is_told_of_every_write_once_while_others_come_and_go() {
    let many = Limits {
        watches: 2 * CONNECTIONS * WATCHES_PER_CONNECTION,
        ..limits()
    };
    let world = Arc::new(World::open(many).await);
    let mut following = JoinSet::new();
    let mut clients = Vec::new();
    for number in 0..CONNECTIONS {
        let client = Arc::new(world.dial().await);
        for watch in 0..WATCHES_PER_CONNECTION {
            // Half watch everything, half what one writer writes.
            let (path, writes) = if watch % 2 == 0 {
                ("/".to_owned(), WRITERS * WRITES)
            } else {
                (format!("/{}/", number % WRITERS), WRITES)
            };
            following.spawn(follow(client.watch(&path).await, writes));
        }
        clients.push(client);
    }
    let mut working = JoinSet::new();
    for writer in 0..WRITERS {
        let world = world.clone();
        working.spawn(async move {
            for write in 0..WRITES {
                let path = format!("/{writer}/{}.md", write % 7);
                world.publish(&path, &format!("{write}")).await;
            }
        });
    }
    for client in &clients {
        let client = client.clone();
        working.spawn(async move {
            for _ in 0..20 {
                client.watch("/").await.cancel();
            }
        });
    }
    while let Some(worked) = working.join_next().await {
        worked.unwrap();
    }
    let mut watches = Vec::new();
    while let Some(watch) = following.join_next().await {
        watches.push(watch.unwrap());
    }
    let running = (CONNECTIONS * WATCHES_PER_CONNECTION) as u64;
    world.metric_reaches("tidings_mark_watches ", running).await;
    drop(watches);
    world.metric_reaches("tidings_mark_watches ", 0).await;
    assert_eq!(world.store.feed().stats().subscriptions, 0);
}
