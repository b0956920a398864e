//! How watches end under load: their places come back at once, and their last word comes next.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quinn::VarInt;
use tokio::task::JoinHandle;
use wire::{Request, Status, Verb};
use world::{World, limits};

/// Writes until it is stopped.
struct Load {
    stop: Arc<AtomicBool>,
    writing: JoinHandle<()>,
}

impl Load {
    fn on(world: &Arc<World>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (world, stopped) = (Arc::clone(world), Arc::clone(&stop));
        let writing = tokio::spawn(async move {
            for number in 0.. {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                world.publish("/load.md", &format!("{number}")).await;
            }
        });
        Self { stop, writing }
    }

    async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.writing.await.unwrap();
    }
}

/// Waits until `count` watches are left, and of their places in the feed as many.
async fn left(world: &World, count: u64) {
    world.metric_reaches("tidings_mark_watches ", count).await;
    // A watch is counted out a moment before its place in the feed is let go.
    while world.store.feed().stats().subscriptions as u64 != count {
        tokio::task::yield_now().await;
    }
}

// T23, T48
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn places_come_back_however_a_client_leaves_under_load() {
    let world = Arc::new(World::open(limits()).await);
    let load = Load::on(&world);
    let mut clients = Vec::new();
    let mut watches = Vec::new();
    for _ in 0..3 {
        let client = world.dial().await;
        for _ in 0..20 {
            watches.push(client.watch("/").await);
        }
        clients.push(client);
    }
    for watch in watches.drain(..10) {
        watch.cancel();
    }
    left(&world, 50).await;
    drop(watches.remove(0));
    left(&world, 49).await;
    clients.remove(1).connection.close(VarInt::from_u32(7), b"");
    left(&world, 29).await;
    drop(watches);
    left(&world, 0).await;
    load.stop().await;
}

// T24
#[tokio::test]
async fn the_last_word_comes_right_after_what_was_on_its_way() {
    /// What the stream of an unread watch may hold, and less than an event takes of it.
    const WINDOW: u32 = 1024;
    const EVENT_LEN_MIN: u32 = 100;
    let world = World::with_ring(limits(), 16).await;
    let mut transport = quinn::TransportConfig::default();
    transport.stream_receive_window(WINDOW.into());
    let client = world.dial_with(transport).await;
    let mut unread = client.watch("/").await;
    for number in 0..400 {
        world.publish("/a.md", &format!("{number}")).await;
    }
    let mut told = 0;
    let last = loop {
        let block = unread.next().await.unwrap();
        if block.get("status").is_some() {
            break block;
        }
        told += 1;
    };
    assert_eq!(last.get("status"), Some("resync"));
    // One more was being written when the stream stopped.
    assert!(
        told <= WINDOW / EVENT_LEN_MIN + 1,
        "{told} changes came first"
    );
    assert_eq!(unread.next().await, None);
}

// T32: what can't be told is never cut: the watcher is told that it misses something.
#[tokio::test]
async fn a_change_that_fits_no_block_is_a_resync_and_what_follows_is_told() {
    let world = World::open(limits()).await;
    let client = world.dial().await;
    let mut watch = client.watch("/").await;
    let mut elsewhere = client.watch("/notes/").await;
    // Each face is four bytes of a path and ten of a block.
    let face = "\u{1f600}";
    let long = format!("{}.md", format!("/{}", face.repeat(50)).repeat(17));
    assert!(long.len() < wire::limits::PATH_LEN_MAX);
    world.publish(&long, "told nowhere").await;
    let last = watch.last().await;
    assert_eq!(last.get("status"), Some("resync"));
    assert_eq!(last.get("reason"), Some("overflow"));
    let counted = "tidings_mark_gaps_total{reason=\"overflow\"}";
    assert_eq!(world.metric(counted), 1);
    // From the cursor of the resync the watch goes on, and the document is there to be read.
    let since = last.get("cursor").unwrap();
    let again = Request::new(Verb::Watch, "/").with("since", since);
    let mut watch = client.open_watch(again).await;
    assert_eq!(watch.next().await.unwrap().get("cursor"), Some(since));
    world.publish("/notes/tea.md", "tea").await;
    for watch in [&mut watch, &mut elsewhere] {
        assert_eq!(watch.event().await.get("path"), Some("/notes/tea.md"));
    }
    let there = client.get(Verb::Fetch, &long).await;
    assert_eq!(
        (there.status, &there.body[..]),
        (Status::Ok, &b"told nowhere"[..])
    );
}
