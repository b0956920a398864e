//! The silence checker over SSE, NDJSON and the sync protocol, under load.
//!
//! One writer tells changes in bursts, each when a keen watcher has seen the last. Watchers of
//! every kind follow it in four manners: keen; slow, in that they stop until thousands of changes
//! were made; cut, in that they drop their connection and come back with their last position;
//! narrow, in that the kernel keeps little for them, so that frames are taken in parts. Each
//! reports what it is told, and at the end nobody may have missed a change without a word.

#![allow(
    clippy::unwrap_used,
    reason = "a panic of a helper is the failure report"
)]

mod listener;
mod world;

use std::sync::Arc;

use listener::{Socket, Stream, tell};
use serde_json::Value;
use testkit::silence::{Checker, Fact, Watcher};
use tokio::net::TcpStream;
use tokio::sync::{Barrier, watch};
use web::{Limits, Origins};
use wire::{Cursor, GapReason};
use world::{World, limits, within};

/// Changes that are made: some rings full.
const CHANGES: u64 = 9_000;
/// Changes that are made in one go.
const BURST: u64 = 500;
/// Things that a watcher is told before its manner shows.
const PATIENCE: usize = 500;
/// Changes that a slow watcher lets pass: more than a ring.
const SLUMBER: u64 = 4_500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Lines,
    Socket,
    Sse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Cut,
    Keen,
    Narrow,
    Slow,
}

/// One line, event or frame, as what it says.
enum Told {
    Change(Cursor, Fact),
    Gap(Cursor, GapReason),
    Position(Cursor),
}

fn cursor(value: &Value) -> Cursor {
    value.as_str().expect("a cursor").parse().unwrap()
}

/// What an object of a stream says.
fn told(object: &Value) -> Told {
    let at = cursor(&object["cursor"]);
    match object["op"].as_str().unwrap() {
        "beat" => Told::Position(at),
        "gap" => Told::Gap(at, reason(object)),
        op => Told::Change(at, fact(object, op)),
    }
}

fn fact(object: &Value, op: &str) -> Fact {
    Fact::new(
        object["name"].as_str().unwrap(),
        object["version"].as_u64().unwrap(),
        op,
    )
}

fn reason(object: &Value) -> GapReason {
    GapReason::parse(object["reason"].as_str().unwrap()).unwrap()
}

enum Link {
    Lines(Stream),
    Socket(Socket),
    Sse(Stream),
}

impl Link {
    async fn open(
        world: &World,
        kind: Kind,
        manner: Manner,
        scope: &str,
        since: Option<&Cursor>,
    ) -> Self {
        let since = since.map(ToString::to_string);
        let socket = match manner {
            Manner::Narrow | Manner::Slow => narrow(world),
            Manner::Cut | Manner::Keen => TcpStream::connect(world.addr).await.unwrap(),
        };
        if kind == Kind::Socket {
            let mut socket = Socket::greet_on(socket).await;
            let ack = socket.subscribe("1", scope, since.as_deref()).await;
            assert_eq!(ack["t"], "ack", "{ack}");
            return Self::Socket(socket);
        }
        let since = since.map_or_else(String::new, |since| format!("&since={since}"));
        let target = format!("/v1/watch?scope={scope}{since}");
        let accept = match kind {
            Kind::Lines => "application/x-ndjson",
            _ => "text/event-stream",
        };
        let stream = Stream::ask(socket, &target, &[("Accept", accept)]).await;
        match kind {
            Kind::Lines => Self::Lines(stream),
            _ => Self::Sse(stream),
        }
    }

    async fn next(&mut self) -> Vec<Told> {
        match self {
            Self::Lines(stream) => vec![told(&serde_json::from_str(&stream.line().await).unwrap())],
            Self::Sse(stream) => {
                let event = stream.next().await.expect("the stream goes on");
                let told = told(&event.data);
                if let (Some(id), Told::Change(at, _)) = (&event.id, &told) {
                    assert_eq!(Cursor::from_event_id(id).unwrap(), *at);
                }
                vec![told]
            }
            Self::Socket(socket) => {
                let frame = socket.frame().await;
                match frame["t"].as_str().unwrap() {
                    "gap" => vec![Told::Gap(cursor(&frame["cursor"]), reason(&frame))],
                    "changes" => {
                        let changes = frame["changes"].as_array().unwrap().iter().map(told);
                        let position = Told::Position(cursor(&frame["cursor"]));
                        changes.chain([position]).collect()
                    }
                    kind => panic!("{kind}"),
                }
            }
        }
    }
}

fn narrow(world: &World) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(2_048).unwrap();
    socket.connect(&world.addr.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    TcpStream::from_std(socket.into()).unwrap()
}

/// What the watchers share.
#[derive(Clone)]
struct Course {
    world: Arc<World>,
    /// Everybody has begun.
    begun: Arc<Barrier>,
    /// How many changes were made.
    made: watch::Receiver<u64>,
    /// How many the keen one has seen.
    seen: Arc<watch::Sender<u64>>,
    first: Cursor,
}

/// Follows `scope` until it knows of the last change, or of a gap that hides it.
async fn follow(course: Course, watcher: Watcher, kind: Kind, manner: Manner, scope: &'static str) {
    let Course {
        world,
        begun,
        mut made,
        seen,
        first,
    } = course;
    let is_leader = (kind, manner, scope) == (Kind::Sse, Manner::Keen, "/");
    let mut link = Link::open(&world, kind, manner, scope, Some(&first)).await;
    watcher.acknowledged(first.clone());
    begun.wait().await;
    let mut last = first;
    let mut count = 0;
    // The very last change is out of its scope.
    let end = if scope == "/b/" { CHANGES - 1 } else { CHANGES };
    while last.seq.get() < end {
        for told in link.next().await {
            match told {
                Told::Change(at, fact) => {
                    last = at.clone();
                    watcher.change(at, fact);
                    count += 1;
                }
                Told::Gap(at, reason) => {
                    last = at.clone();
                    watcher.gap(at, reason);
                }
                Told::Position(at) => {
                    last = at.clone();
                    watcher.position(at);
                }
            }
        }
        if is_leader {
            seen.send_replace(last.seq.get());
        }
        if count < PATIENCE {
            continue;
        }
        count = 0;
        match manner {
            Manner::Cut => {
                link = Link::open(&world, kind, manner, scope, Some(&last)).await;
                watcher.acknowledged(last.clone());
            }
            Manner::Slow => {
                let until = (*made.borrow() + SLUMBER).min(CHANGES);
                made.wait_for(|made| *made >= until).await.unwrap();
            }
            Manner::Keen | Manner::Narrow => {}
        }
    }
}

// T6, T7, T20, T73, P3, P6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_misses_a_change_without_being_told() {
    let limits = Limits {
        // Those who stop are to be told, not cut.
        write_stall: std::time::Duration::from_secs(120),
        ..limits()
    };
    let world = Arc::new(World::with(limits, Origins::default()).await);
    let checker = Checker::new();
    let (making, made) = watch::channel(0);
    let first = world.store.feed().head();
    assert_eq!(first.seq.get(), 0);
    let course = Course {
        world: world.clone(),
        begun: Arc::new(Barrier::new(25)),
        made,
        seen: Arc::new(watch::Sender::new(0)),
        first,
    };
    let mut watchers = Vec::new();
    for kind in [Kind::Lines, Kind::Socket, Kind::Sse] {
        for manner in [Manner::Cut, Manner::Keen, Manner::Narrow, Manner::Slow] {
            for scope in ["/", "/b/"] {
                let label = format!("{kind:?} {manner:?} {scope}");
                let watcher = checker.watcher(label, move |name| name.starts_with(scope));
                let course = course.clone();
                watchers.push(tokio::spawn(follow(course, watcher, kind, manner, scope)));
            }
        }
    }
    course.begun.wait().await;
    let mut seen = course.seen.subscribe();
    for number in 1..=CHANGES {
        let place = number % 8;
        let name = match place {
            0..4 => format!("/a/{place}/{}", "x".repeat(180)),
            _ => format!("/b/{place}/{}", "x".repeat(180)),
        };
        let begun = checker.begin(name.as_str());
        let seq = tell(&world.store, &name, number);
        assert_eq!(seq, number);
        begun.acknowledged(number, "publish");
        if number % BURST == 0 {
            making.send_replace(number);
            within(seen.wait_for(|seen| *seen >= number)).await.unwrap();
        }
    }
    making.send_replace(CHANGES);
    for watcher in watchers {
        watcher.await.unwrap();
    }
    drop(course);
    let report = checker.verify().unwrap();
    assert_eq!(report.commits as u64, CHANGES);
    assert!(report.gaps["lapped"] > 0, "somebody was lapped: {report:?}");
    assert!(report.deliveries as u64 > CHANGES, "{report:?}");
    let metrics = world.metrics();
    assert!(
        !metrics.contains("tidings_stream_departed_total 0"),
        "somebody left a cohort and joined it again: {metrics}"
    );
    let world = Arc::into_inner(world).expect("the watchers are done");
    within(world.stop()).await;
}
