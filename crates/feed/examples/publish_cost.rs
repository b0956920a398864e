//! Prints what a publish costs: beside watches that it doesn't concern, and per watch that it does.
//!
//! Run it with `cargo run --release -p tidings-feed --example publish_cost`.

use std::task::{Context, Waker};
use std::time::Instant;

use feed::{Change, Feed, Next, Outlet, RING_LEN, Scope};
use wire::{Epoch, Seq};

/// Of so many rounds the fastest counts, so that what else the machine does stays out of it.
const ROUNDS: usize = 20;
/// More than two rings a round, so that slots are overwritten as in a server that runs for long.
const PUBLISHES_PER_ROUND: u32 = 10_000;
/// As many as one connection carries in the benchmark of the fan-out.
const WATCHES_PER_TASK: usize = 100;

#[derive(Debug)]
struct Note;

impl Change for Note {
    fn name(&self) -> &str {
        "/notes/kitchen/tea.md"
    }
}

fn main() {
    for count in [0, 1, 1_000, 100_000] {
        println!(
            "{count:>7} others: {:>6.0} ns a publish",
            beside_others(count)
        );
    }
    for count in [1, 1_000, 100_000] {
        let (publish, read) = to_concerned(count);
        println!("{count:>7} concerned: {publish:>6.1} ns to note, {read:>6.1} ns to read, each");
    }
}

/// Nanoseconds a publish takes beside `count` watches of other names and prefixes.
fn beside_others(count: usize) -> f64 {
    let feed = Feed::new(Epoch::from_random([7; 6]), Seq::ZERO, RING_LEN);
    let outlet = Outlet::new();
    let subscribe = |number| {
        let scope = if number % 2 == 0 {
            Scope::Exact(format!("/notes/kitchen/{number}.md").into())
        } else {
            Scope::Prefix(format!("/notes/{number}/").into())
        };
        feed.subscribe(scope, None, &outlet)
            .expect("a watch without a cursor is never refused")
    };
    let _watches: Vec<_> = (0..count).map(subscribe).collect();
    let round = |_| {
        let start = Instant::now();
        for _ in 0..PUBLISHES_PER_ROUND {
            feed.publish(Note);
        }
        start.elapsed().as_nanos()
    };
    let fastest = (0..ROUNDS).map(round).min().unwrap_or_default();
    fastest as f64 / f64::from(PUBLISHES_PER_ROUND)
}

/// Nanoseconds per watch that a publish takes to `count` concerned ones, and that reading takes.
fn to_concerned(count: usize) -> (f64, f64) {
    let feed = Feed::new(Epoch::from_random([7; 6]), Seq::ZERO, RING_LEN);
    let mut tasks = Vec::new();
    for _ in 0..count.div_ceil(WATCHES_PER_TASK) {
        let outlet = Outlet::new();
        let subscribe = |_| {
            feed.subscribe(Scope::Prefix("/notes/".into()), None, &outlet)
                .expect("a watch without a cursor is never refused")
        };
        let watches: Vec<_> = (0..count.min(WATCHES_PER_TASK)).map(subscribe).collect();
        tasks.push((outlet, watches));
    }
    let mut cx = Context::from_waker(Waker::noop());
    let (mut publish, mut read) = (u128::MAX, u128::MAX);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        feed.publish(Note);
        publish = publish.min(start.elapsed().as_nanos());
        let start = Instant::now();
        for (outlet, watches) in &mut tasks {
            while outlet.poll_ready(&mut cx).is_ready() {}
            for watch in watches {
                while let Next::Change(_) = watch.next() {}
            }
        }
        read = read.min(start.elapsed().as_nanos());
    }
    (publish as f64 / count as f64, read as f64 / count as f64)
}
