//! Who is seen to come and go, how often, and by whom.

mod support;

use std::time::Duration;

use auth::Claims;
use channels::limits::{ANNOUNCE_INTERVAL, LEASE, ROSTER_MAX, SWEEP_INTERVAL};
use channels::{Content, Hub, Joined, Limits, Movement, Next, Payload, Settled, Socket};
use serde_json::json;
use support::*;

const SCOPE: &str = "present?id=1";

fn enter(hub: &Hub, session: &str, millis: u64) -> (Socket, Joined) {
    let socket = hub.open(session, ada());
    let joined = join_since(&socket, SCOPE, None, at(millis)).expect("it is open to all");
    (socket, joined)
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("it is short")
}

fn interval() -> u64 {
    ms(ANNOUNCE_INTERVAL)
}

fn total(joined: &Joined) -> usize {
    joined.roster.as_ref().expect("it has presence").total
}

// C41
#[test]
fn a_join_is_told_once_and_a_beat_is_no_news() {
    let hub = default_hub();
    let (_watcher, mut watching) = enter(&hub, "w", 0);
    assert_eq!(total(&watching), 1);
    let (socket, joined) = enter(&hub, "s", interval());
    assert_eq!(total(&joined), 2);
    assert_eq!(told(&mut watching.watch), ["join s"]);
    for beat in 1..5 {
        socket
            .reserve(&scope(SCOPE), at(interval() + beat * 1000))
            .unwrap();
        socket.beat(at(interval() + beat * 1000));
        hub.sweep(at(interval() + beat * 1000));
    }
    assert!(told(&mut watching.watch).is_empty());
    assert!(socket.unsubscribe(&scope(SCOPE)));
    hub.sweep(at(9 * interval()));
    hub.sweep(at(20 * interval()));
    assert_eq!(told(&mut watching.watch), ["leave s"]);
}

// C41, C51
#[test]
fn two_tabs_are_two_members_and_one_actor() {
    let hub = default_hub();
    let (_watcher, mut watching) = enter(&hub, "w", 0);
    let (one, _) = enter(&hub, "1", 10);
    let (_two, _) = enter(&hub, "2", 20);
    hub.sweep(at(interval()));
    assert_eq!(told(&mut watching.watch), ["join 1,2"]);
    drop(one);
    hub.sweep(at(2 * interval()));
    assert_eq!(told(&mut watching.watch), ["leave 1"]);
    let roster = hub.roster(&watching.topic).unwrap();
    let actors: Vec<_> = roster
        .members
        .iter()
        .map(|member| member.actor.as_deref())
        .collect();
    assert_eq!(actors, [Some("ada"); 2]);
}

// C43, C46
#[test]
fn a_member_who_vanishes_leaves_once_when_its_lease_is_over() {
    let hub = default_hub();
    let (watcher, mut watching) = enter(&hub, "w", 0);
    let (silent, mut kept) = enter(&hub, "s", 1000);
    told(&mut watching.watch);
    let last_beat = 16_000;
    silent.beat(at(last_beat));
    let mut now = 1000;
    while now < last_beat + ms(LEASE) {
        watcher.beat(at(now));
        hub.sweep(at(now));
        now += ms(SWEEP_INTERVAL);
        assert!(told(&mut watching.watch).is_empty(), "at {now}");
    }
    let mut skewed = at(now);
    skewed.unix_ms -= 3_600_000;
    hub.sweep(skewed);
    assert_eq!(told(&mut watching.watch), ["leave s"]);
    hub.sweep(at(now + 2 * interval()));
    assert!(told(&mut watching.watch).is_empty());
    assert_eq!(hub.stats().leases_expired, 1);

    publish(&hub, SCOPE, 7);
    assert_eq!(
        told(&mut kept.watch).last().unwrap(),
        "7",
        "its seat is kept"
    );
    silent.beat(at(now + 3 * interval()));
    assert_eq!(told(&mut watching.watch), ["7", "join s"]);
}

// C43
#[test]
fn one_lost_beat_is_no_leave() {
    let hub = default_hub();
    let (watcher, mut watching) = enter(&hub, "w", 0);
    let (socket, _) = enter(&hub, "s", 0);
    for now in (0..120_000).step_by(500) {
        // Of the beats every 15 s every other one is lost; that just fits the lease.
        if now % 29_500 == 0 {
            socket.beat(at(now));
        }
        watcher.beat(at(now));
        hub.sweep(at(now));
    }
    assert_eq!(told(&mut watching.watch), ["join s"]);
}

// C42
#[test]
fn a_large_room_gives_the_first_members_and_the_true_total() {
    let hub = default_hub();
    let mut sockets: Vec<(Socket, Joined)> = (0..5000)
        .map(|n| enter(&hub, &format!("{n:05}"), n))
        .collect();
    hub.sweep(at(20_000));
    let (_last, mut last) = enter(&hub, "last", 20_000);
    hub.sweep(at(22_000));
    let roster = last.roster.clone().unwrap();
    let mut count = roster.total;
    assert_eq!((roster.members.len(), count), (ROSTER_MAX, 5000));
    sockets.truncate(4000);
    hub.sweep(at(24_000));
    loop {
        match last.watch.next() {
            Next::Event(event) => {
                let Content::Presence(delta) = event.content() else {
                    panic!("nobody published");
                };
                match delta.movement {
                    Movement::Join => count += delta.members.len(),
                    Movement::Leave => count -= delta.members.len(),
                    Movement::Update => {}
                }
            }
            Next::Idle => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(count, 4001);
    assert_eq!(hub.roster(&last.topic).unwrap().total, 4001);
}

// C47, C49
#[test]
fn a_storm_costs_a_few_changes_and_a_flap_none() {
    let hub = default_hub();
    let mut sockets = Vec::new();
    for n in 0..2000_u64 {
        let now = n * 5 / 2;
        sockets.push(enter(&hub, &n.to_string(), now).0);
        if n % 100 == 0 {
            hub.sweep(at(now));
        }
    }
    hub.sweep(at(6000));
    let deltas = hub.stats().deltas;
    assert!(deltas <= 6 + 2000 / 256 + 6, "{deltas} changes");

    let (_watcher, mut watching) = enter(&hub, "w", 7000);
    hub.sweep(at(8500));
    told(&mut watching.watch);
    let before = hub.stats().deltas;
    for n in 0..200_u64 {
        drop(sockets.pop());
        sockets.insert(0, enter(&hub, &format!("again-{n}"), 9000 + n * 10).0);
        hub.sweep(at(9000 + n * 10));
    }
    hub.sweep(at(12_000));
    assert!(hub.stats().deltas - before <= 8);
}

// C45
#[test]
fn what_a_member_says_about_itself_is_told_in_order() {
    let hub = default_hub();
    let (_watcher, mut watching) = enter(&hub, "w", 0);
    let (socket, joined) = enter(&hub, "s", interval());
    told(&mut watching.watch);
    let meta = |text: &str| Payload::parse(text.as_bytes()).unwrap();
    let topic = &joined.topic;
    assert!(socket.describe(topic, meta("\"typing\""), 5, at(3 * interval())));
    assert!(!socket.describe(topic, meta("\"late\""), 4, at(3 * interval())));
    assert!(!socket.describe(topic, meta("\"tie\""), 5, at(3 * interval())));
    let long = format!("\"{}\"", "a".repeat(2000));
    assert!(!socket.describe(topic, meta(&long), 6, at(3 * interval())));
    assert_eq!(told(&mut watching.watch), ["update s"]);
    let roster = hub.roster(topic).unwrap();
    assert_eq!(roster.members[1].meta, Some(meta("\"typing\"")));
}

// C50
#[test]
fn a_channel_without_presence_tells_of_nobody() {
    let hub = default_hub();
    let (one, two) = (hub.open("1", ada()), hub.open("2", ada()));
    let mut watching = join(&one, "kept?id=1").unwrap();
    let joined = join(&two, "kept?id=1").unwrap();
    assert!(joined.roster.is_none() && hub.roster(&joined.topic).is_none());
    two.beat(at(5000));
    two.identify(Claims::anonymous(), at(6000));
    drop(two);
    hub.sweep(at(100_000));
    hub.drain();
    assert_eq!(hub.announce_leaves(10, at(101_000)), 0);
    assert!(told(&mut watching.watch).is_empty());
    assert_eq!(hub.stats().deltas, 0);
}

// C53
#[test]
fn a_drain_announces_every_leave_in_batches() {
    let hub = default_hub();
    let mut sockets: Vec<_> = (0..600).map(|n| enter(&hub, &n.to_string(), 0)).collect();
    hub.sweep(at(interval()));
    let (_, watching) = &mut sockets[0];
    told(&mut watching.watch);
    let mut count = 600;
    hub.drain();
    let mut now = 2 * interval();
    let mut left = usize::MAX;
    while left > 0 {
        let next = hub.announce_leaves(100, at(now));
        assert!(next < left);
        left = next;
        now += interval();
    }
    while let Next::Event(event) = watching.watch.next() {
        let Content::Presence(delta) = event.content() else {
            panic!("nobody published");
        };
        assert_eq!(delta.movement, Movement::Leave);
        count -= delta.members.len();
    }
    assert_eq!(count, 0);
    sockets[1].0.beat(at(now));
    assert_eq!(hub.stats().present, 0);
    hub.close();
    assert_eq!(told(&mut sockets[0].1.watch), ["closed"]);
}

#[test]
fn a_watch_that_lost_changes_is_given_the_whole_roster() {
    let limits = Limits {
        ring_len: 4,
        ..Limits::default()
    };
    let (hub, _) = hub(limits);
    let (_watcher, mut watching) = enter(&hub, "w", 0);
    let (_other, _) = enter(&hub, "s", interval());
    for number in 1..=5 {
        publish(&hub, SCOPE, number);
    }
    let (_third, _) = enter(&hub, "t", 2 * interval());
    let mut expected = vec!["roster 3".to_owned()];
    expected.extend(numbers(1..=5));
    assert_eq!(told(&mut watching.watch), expected);
    let (_fourth, _) = enter(&hub, "u", 3 * interval());
    assert_eq!(told(&mut watching.watch), ["join u"]);

    for number in 6..=20 {
        publish(&hub, SCOPE, number);
    }
    assert!(matches!(watching.watch.next(), Next::Gap { .. }));
    let (_fifth, _) = enter(&hub, "v", 4 * interval());
    assert_eq!(
        told(&mut watching.watch),
        ["roster 5"],
        "which has the join already"
    );
}

#[test]
fn a_member_who_is_somebody_else_is_told_as_changed() {
    let hub = default_hub();
    let (_watcher, mut watching) = enter(&hub, "w", 0);
    let (socket, _) = enter(&hub, "s", interval());
    told(&mut watching.watch);
    let bob = claims(json!({ "sub": "bob" }));
    let recheck = socket.identify(bob, at(2 * interval()));
    let ended = |(_, settled): &(_, Settled)| *settled == Settled::Ended;
    assert!(!recheck.settled.iter().any(ended));
    assert_eq!(told(&mut watching.watch), ["update s"]);
    let roster = hub.roster(&watching.topic).unwrap();
    assert_eq!(roster.members[1].actor.as_deref(), Some("bob"));
}
