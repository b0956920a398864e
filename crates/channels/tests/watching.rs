//! What a watch tells: live, resumed, behind the ring, without history.

mod support;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use channels::{Limits, Next, Start};
use feed::{Encoding, Outlet};
use support::*;
use wire::{Cursor, GapReason, Seq};

fn small_ring() -> Limits {
    Limits {
        ring_len: 4,
        ..Limits::default()
    }
}

// C1, C6
#[test]
fn a_first_join_begins_at_the_head_and_its_position_resumes() {
    let hub = default_hub();
    let socket = hub.open("1", ada());
    let joined = join(&socket, "kept?id=1").unwrap();
    assert_eq!((joined.start, joined.cursor.seq), (Start::Fresh, Seq::ZERO));
    let position = joined.watch.position();
    drop((joined, socket));
    publish(&hub, "kept?id=1", 1);
    publish(&hub, "kept?id=2", 2);
    let socket = hub.open("2", ada());
    let mut again = join_since(&socket, "kept?id=1", Some(&position), at(0)).unwrap();
    assert_eq!((again.start, &again.cursor), (Start::Resumed, &position));
    assert_eq!(again.watch.position(), position);
    publish(&hub, "kept?id=1", 3);
    assert_eq!(told(&mut again.watch), ["1", "3"]);
    assert_eq!(again.watch.position(), hub.head());
}

// C2, C3, C5
#[test]
fn a_cursor_gives_everything_after_it_or_one_reason() {
    let hub = default_hub();
    let cursors: Vec<Cursor> = (1..=20)
        .filter_map(|n| publish(&hub, "kept?id=1", n))
        .collect();
    let ahead = Cursor::new(cursors[0].epoch.clone(), Seq::new(21));
    let other: Cursor = "other:20".parse().unwrap();
    for (since, start, replayed) in [
        (&cursors[15], Start::Resumed, numbers(17..=20)),
        (&cursors[11], Start::Resumed, numbers(13..=20)),
        (&cursors[19], Start::Resumed, vec![]),
        (&cursors[10], Start::Gap(GapReason::TooOld), vec![]),
        (&ahead, Start::Gap(GapReason::Ahead), vec![]),
        (&other, Start::Gap(GapReason::Epoch), vec![]),
    ] {
        let socket = hub.open("1", ada());
        let mut joined = join_since(&socket, "kept?id=1", Some(since), at(0)).unwrap();
        assert_eq!(joined.start, start, "{since}");
        assert_eq!(told(&mut joined.watch), replayed, "{since}");
        assert_eq!(joined.watch.position(), hub.head());
    }
}

// C7
#[test]
fn what_is_published_right_after_the_join_is_told() {
    let hub = default_hub();
    for number in 0..1000 {
        let socket = hub.open("1", ada());
        let mut joined = join(&socket, "plain?id=1").unwrap();
        publish(&hub, "plain?id=1", number);
        assert_eq!(told(&mut joined.watch), [number.to_string()]);
    }
}

// C9
#[test]
fn joins_amid_a_storm_lose_nothing_and_repeat_nothing() {
    let hub = default_hub();
    let start = hub.head();
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let publisher = threads.spawn(|| {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                publish(&hub, "kept?id=1", number);
                std::thread::yield_now();
            }
            number
        });
        let mut since = start;
        let mut next = 1;
        let mut resumed = 0;
        for _ in 0..400 {
            let socket = hub.open("1", ada());
            let joined = join_since(&socket, "kept?id=1", Some(&since), at(0)).unwrap();
            let mut watch = joined.watch;
            if joined.start == Start::Resumed {
                resumed += 1;
            } else {
                next = joined.cursor.seq.get() + 1;
            }
            for _ in 0..50 {
                match watch.next() {
                    Next::Event(event) => {
                        assert_eq!(event.cursor().seq.get(), next);
                        assert_eq!(event.message().unwrap().data.as_str(), next.to_string());
                        next += 1;
                    }
                    Next::Gap { cursor, .. } => next = cursor.seq.get() + 1,
                    _ => break,
                }
            }
            since = watch.position();
            assert_eq!(since.seq.get(), next - 1);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(publisher.join().unwrap() > 0);
        assert!(resumed > 0);
    });
}

#[test]
fn a_watch_behind_the_ring_is_brought_up_to_date_from_the_history() {
    let (hub, _) = hub(small_ring());
    let socket = hub.open("1", ada());
    let mut joined = join(&socket, "kept?id=1").unwrap();
    publish(&hub, "kept?id=1", 1);
    assert_eq!(told(&mut joined.watch), ["1"]);
    for number in 2..=7 {
        publish(&hub, "kept?id=1", number);
        publish(&hub, "kept?id=2", 0);
    }
    assert_eq!(told(&mut joined.watch), numbers(2..=7));
    assert_eq!(joined.watch.position(), hub.head());
    for number in 8..=20 {
        publish(&hub, "kept?id=1", number);
    }
    assert_eq!(told(&mut joined.watch), ["gap lapped"]);
    publish(&hub, "kept?id=1", 21);
    assert_eq!(told(&mut joined.watch), ["21"]);
    for number in 22..=34 {
        publish(&hub, "kept?id=1", number);
    }
    let gap = joined.watch.next();
    assert!(matches!(gap, Next::Gap { .. }));
    for number in 35..=40 {
        publish(&hub, "kept?id=1", number);
    }
    assert_eq!(
        told(&mut joined.watch),
        numbers(35..=40),
        "from the gap on, not from before it"
    );
    let stats = hub.stats();
    assert_eq!((stats.recovered, stats.gaps, stats.losses), (2, 2, 0));
}

#[test]
fn the_position_amid_a_recovery_is_that_of_what_was_told() {
    let (hub, _) = hub(small_ring());
    let socket = hub.open("1", ada());
    let mut joined = join(&socket, "kept?id=1").unwrap();
    for number in 1..=6 {
        publish(&hub, "kept?id=1", number);
    }
    for number in 1..=6 {
        let Next::Event(event) = joined.watch.next() else {
            panic!("{number} is due");
        };
        assert_eq!(event.cursor().seq, Seq::new(number));
        assert_eq!(joined.watch.position().seq, Seq::new(number));
    }
    assert!(matches!(joined.watch.next(), Next::Idle));
}

// C54
#[test]
fn without_history_events_are_told_at_most_once_and_never_later() {
    let (hub, _) = hub(small_ring());
    let socket = hub.open("1", ada());
    let before = hub.head();
    assert_eq!(publish(&hub, "plain?id=1", 1), None);
    let mut joined = join_since(&socket, "plain?id=1", Some(&before), at(0)).unwrap();
    assert_eq!(joined.start, Start::Fresh);
    publish(&hub, "plain?id=1", 2);
    assert_eq!(told(&mut joined.watch), ["2"]);
    for number in 3..=12 {
        publish(&hub, "plain?id=1", number);
    }
    assert!(told(&mut joined.watch).is_empty());
    publish(&hub, "plain?id=1", 13);
    assert_eq!(told(&mut joined.watch), ["13"]);
    let stats = hub.stats();
    assert_eq!((stats.losses, stats.gaps, stats.history_bytes), (1, 0, 0));
}

#[test]
fn a_socket_that_leaves_a_shared_watch_goes_on_from_its_position() {
    let (hub, _) = hub(small_ring());
    let socket = hub.open("1", ada());
    let joined = join(&socket, "kept?id=1").unwrap();
    let from = joined.watch.position();
    drop(joined.watch);
    let mut shared = hub.follow(&joined.topic, &from, &Outlet::new());
    for number in 1..=3 {
        publish(&hub, "kept?id=1", number);
    }
    let mut own = socket.resume(&joined.topic, &from, &Outlet::new()).unwrap();
    assert_eq!(told(&mut own), numbers(1..=3));
    for number in 4..=7 {
        publish(&hub, "kept?id=1", number);
    }
    let mut late = socket.resume(&joined.topic, &from, &Outlet::new()).unwrap();
    assert_eq!(late.position(), from);
    assert_eq!(told(&mut late), numbers(1..=7));
    assert_eq!(told(&mut shared), numbers(1..=7));
    socket.unsubscribe(&scope("kept?id=1"));
    assert_eq!(told(&mut late), ["ended"]);
    assert!(
        socket
            .resume(&joined.topic, &from, &Outlet::new())
            .is_none()
    );
    publish(&hub, "kept?id=1", 8);
    assert_eq!(told(&mut shared), ["8"]);
}

#[test]
fn one_encoding_serves_all_who_are_told_live_or_later() {
    let hub = default_hub();
    let sockets: Vec<_> = (0..10).map(|n| hub.open(&n.to_string(), ada())).collect();
    let mut watches: Vec<_> = sockets
        .iter()
        .map(|socket| join(socket, "kept?id=1").unwrap().watch)
        .collect();
    let before = hub.head();
    publish(&hub, "kept?id=1", 1);
    let late = hub.open("late", ada());
    watches.push(
        join_since(&late, "kept?id=1", Some(&before), at(0))
            .unwrap()
            .watch,
    );
    let mut encodings = 0;
    let mut places = HashSet::new();
    for watch in &mut watches {
        let Next::Event(event) = watch.next() else {
            panic!("an event is due");
        };
        let bytes = event.encoded(Encoding::Json, |event| {
            encodings += 1;
            event.topic().to_string().into()
        });
        places.insert(bytes.as_ptr());
    }
    assert_eq!((encodings, places.len()), (1, 1));
}

#[test]
fn closing_ends_every_watch_after_what_is_there() {
    let hub = default_hub();
    let socket = hub.open("1", ada());
    let mut joined = join(&socket, "plain?id=1").unwrap();
    publish(&hub, "plain?id=1", 1);
    hub.close();
    assert_eq!(told(&mut joined.watch), ["1", "closed"]);
}
