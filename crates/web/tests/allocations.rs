//! A further watcher of a change costs no allocation.

#![allow(
    clippy::unwrap_used,
    reason = "a panic of a helper is the failure report"
)]

mod listener;
mod world;

use std::io::{Read, Write};
use std::net::TcpStream;

use listener::tell;
use tokio::runtime::{Builder, Runtime};
use world::World;

const EVENTS: u64 = 50;

/// Sockets whose answers are never read: the kernel keeps that little.
fn watchers(runtime: &Runtime, world: &World, count: usize) -> Vec<TcpStream> {
    let request = format!(
        "GET /v1/watch?scope=/ HTTP/1.1\r\nHost: {}\r\n\r\n",
        world.addr
    );
    let begin = |_| {
        let mut socket = TcpStream::connect(world.addr).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut first = [0; 2_048];
        while socket.read(&mut first).is_err() {
            turn(runtime);
        }
        socket
    };
    (0..count).map(begin).collect()
}

/// Lets every task of the server go on.
fn turn(runtime: &Runtime) {
    runtime.block_on(async {
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    });
}

/// Allocations while `EVENTS` changes are told to `count` watchers.
fn allocations(count: usize) -> u64 {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let world = runtime.block_on(World::open());
    let _watchers = watchers(&runtime, &world, count);
    // The first change finds rooms of its size.
    tell(&world.store, "/a", 1);
    turn(&runtime);
    let measured = allocation_counter::measure(|| {
        for version in 0..EVENTS {
            tell(&world.store, "/a", version + 2);
            turn(&runtime);
        }
    });
    let copies = (EVENTS + 1) * count as u64;
    let counted = format!("frames_total{{face=\"sse\",kind=\"changes\"}} {copies}");
    assert!(world.metrics().contains(&counted), "{}", world.metrics());
    measured.count_total
}

#[test]
fn a_further_watcher_costs_no_allocation() {
    let (few, many) = (allocations(4), allocations(64));
    assert_eq!(few, many, "{EVENTS} changes");
}
