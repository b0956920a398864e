//! How seats are reserved, decided, taken, checked again and given back.

mod support;

use std::sync::atomic::Ordering;

use auth::Claims;
use channels::{Decision, Limits, Refusal, Reserved, Right, Settled, Start, Verdict};
use feed::Outlet;
use serde_json::json;
use support::*;

// C18, C19
#[test]
fn what_is_not_declared_is_refused_like_what_is_denied() {
    let hub = default_hub();
    let socket = hub.open("s", ada());
    for text in [
        "nothing",
        "nothing?id=1",
        "rooms",
        "rooms?id=",
        "rooms?id=a.b",
        "rooms?id=%2A",
        "rooms?__proto__=1",
        "rooms?id=3",
        "rooms?id=3&extra=1",
    ] {
        let refusal = join(&socket, text).unwrap_err();
        assert_eq!(refusal, Refusal::NotPermitted, "{text}");
        assert!(!refusal.is_worth_retrying());
    }
    let joined = join(&socket, "rooms?extra=1&id=2").unwrap();
    assert_eq!(joined.topic.as_str(), "channel:rooms?id=2");
}

#[test]
fn the_anonymous_are_heard_by_expressions_and_by_others_where_declared() {
    let hub = default_hub();
    let socket = hub.open("s", Claims::anonymous());
    assert!(join(&socket, "plain?id=1").is_ok());
    assert_eq!(
        join(&socket, "rooms?id=1").unwrap_err(),
        Refusal::NotPermitted
    );
    let reservation = reserve(&socket, "asked?id=1").unwrap();
    assert!(matches!(
        reservation.decide(),
        Decision::Made(Verdict::Denied)
    ));
}

#[test]
fn a_back_end_is_asked_with_the_topic_and_its_answer_decides() {
    let hub = default_hub();
    let socket = hub.open("s", ada());
    let reservation = reserve(&socket, "asked?id=7").unwrap();
    let Decision::Ask(question) = reservation.decide() else {
        panic!("a back end decides");
    };
    assert_eq!(question.url(), "http://127.0.0.1:8000/may");
    assert_eq!(question.right(), Right::Join);
    assert_eq!(question.topic().params()["id"], "7");
    let denied = reservation.join(Verdict::Denied, None, &Outlet::new(), at(0));
    assert_eq!(denied.unwrap_err(), Refusal::NotPermitted);
}

// C21
#[test]
fn a_policy_that_fails_refuses_a_first_join_and_is_counted_apart() {
    let hub = default_hub();
    let socket = hub.open("s", claims(json!({ "sub": "broken" })));
    let refusal = join(&socket, "checked?id=1").unwrap_err();
    assert_eq!(refusal, Refusal::Undecided);
    assert!(refusal.is_worth_retrying());
    assert_eq!(
        join(&socket, "checked?id=1").unwrap_err(),
        Refusal::Undecided
    );
    let stats = hub.stats();
    assert_eq!((stats.undecided, stats.denied, stats.topics), (2, 0, 0));
}

// C21
#[test]
fn a_check_that_fails_suspends_the_seat_until_one_passes_and_then_tells_one_gap() {
    let hub = default_hub();
    let socket = hub.open("s", ada());
    let mut joined = join(&socket, "asked?id=1").unwrap();
    publish(&hub, "asked?id=1", 1);
    assert_eq!(told(&mut joined.watch), ["1"]);

    let question = socket.recheck().questions.remove(0);
    publish(&hub, "asked?id=1", 2);
    assert_eq!(
        socket.settle(&question, Verdict::Undecided),
        Settled::Suspended
    );
    publish(&hub, "asked?id=1", 3);
    assert_eq!(socket.settle(&question, Verdict::Undecided), Settled::Kept);
    assert!(told(&mut joined.watch).is_empty());
    publish(&hub, "asked?id=1", 4);
    assert_eq!(socket.settle(&question, Verdict::Allowed), Settled::Resumed);
    assert_eq!(told(&mut joined.watch), ["gap revoked"]);
    publish(&hub, "asked?id=1", 5);
    assert_eq!(told(&mut joined.watch), ["5"]);
    assert_eq!(socket.settle(&question, Verdict::Denied), Settled::Ended);
    publish(&hub, "asked?id=1", 6);
    assert_eq!(told(&mut joined.watch), ["ended"]);
    assert_eq!(hub.stats().topics, 0);
}

// C21
#[test]
fn a_suspension_that_nobody_looked_at_still_leaves_its_gap() {
    let hub = default_hub();
    let socket = hub.open("s", ada());
    let mut joined = join(&socket, "asked?id=1").unwrap();
    let question = socket.recheck().questions.remove(0);
    socket.settle(&question, Verdict::Undecided);
    publish(&hub, "asked?id=1", 1);
    socket.settle(&question, Verdict::Allowed);
    let from = joined.watch.position();
    let mut resumed = socket.resume(&joined.topic, &from, &Outlet::new()).unwrap();
    assert_eq!(told(&mut resumed), ["gap revoked"]);
    publish(&hub, "asked?id=1", 2);
    assert_eq!(told(&mut joined.watch).last().unwrap(), "2");
}

// C21
#[test]
fn what_happened_during_a_suspension_is_told_to_no_watch_of_the_seat() {
    let limits = Limits {
        ring_len: 4,
        ..Limits::default()
    };
    let (hub, _) = hub(limits);
    let socket = hub.open("s", ada());
    let joined = join(&socket, "asked?id=1").unwrap();
    let from = joined.watch.position();
    let question = socket.recheck().questions.remove(0);
    socket.settle(&question, Verdict::Undecided);
    for number in 1..=6 {
        publish(&hub, "asked?id=1", number);
    }
    let mut behind = socket.resume(&joined.topic, &from, &Outlet::new()).unwrap();
    socket.settle(&question, Verdict::Allowed);
    assert_eq!(told(&mut behind), ["gap revoked"]);
    assert_eq!(behind.position(), hub.head());
}

// C22
#[test]
fn who_signs_out_loses_every_seat_that_needs_somebody_at_once() {
    let hub = default_hub();
    let socket = hub.open("s", ada());
    let mut seats = ["rooms?id=1", "asked?id=1", "checked?id=1", "plain?id=1"]
        .map(|text| join(&socket, text).unwrap());
    let recheck = socket.identify(Claims::anonymous(), at(1));
    assert!(recheck.questions.is_empty());
    let mut ended: Vec<&str> = recheck
        .settled
        .iter()
        .map(|(topic, _)| topic.as_str())
        .collect();
    ended.sort_unstable();
    assert_eq!(
        ended,
        [
            "channel:asked?id=1",
            "channel:checked?id=1",
            "channel:rooms?id=1"
        ]
    );
    assert!(
        recheck
            .settled
            .iter()
            .all(|(_, settled)| *settled == Settled::Ended)
    );
    for seat in &mut seats[..3] {
        assert_eq!(told(&mut seat.watch), ["ended"]);
    }
    assert!(told(&mut seats[3].watch).is_empty());
    assert_eq!(socket.topics(), 1);
}

// C22
#[test]
fn somebody_else_is_told_nothing_until_the_back_end_knows_them() {
    let hub = default_hub();
    let socket = hub.open("s", ada());
    let mut joined = join(&socket, "asked?id=1").unwrap();
    let old = socket.recheck().questions.remove(0);
    let recheck = socket.identify(claims(json!({ "sub": "bob" })), at(1));
    assert_eq!(recheck.settled[0].1, Settled::Suspended);
    publish(&hub, "asked?id=1", 1);
    assert!(told(&mut joined.watch).is_empty());
    assert_eq!(socket.settle(&old, Verdict::Allowed), Settled::Stale);
    assert_eq!(
        socket.settle(&recheck.questions[0], Verdict::Allowed),
        Settled::Resumed
    );
    assert_eq!(told(&mut joined.watch), ["gap revoked"]);

    let newer = socket.identify(claims(json!({ "sub": "bob", "iat": 2 })), at(2));
    assert!(newer.settled.is_empty() && newer.questions.len() == 1);
    publish(&hub, "asked?id=1", 2);
    assert_eq!(told(&mut joined.watch), ["2"]);
}

// C22
#[test]
fn a_verdict_about_who_the_caller_was_is_none() {
    let hub = default_hub();
    let socket = hub.open("s", ada());
    let reservation = reserve(&socket, "asked?id=1").unwrap();
    socket.identify(claims(json!({ "sub": "bob" })), at(0));
    let joined = reservation.join(Verdict::Allowed, None, &Outlet::new(), at(0));
    assert_eq!(joined.unwrap_err(), Refusal::Undecided);
    assert_eq!(socket.topics(), 0);
}

// C23
#[test]
fn a_denial_is_remembered_until_the_caller_changes() {
    let (hub, calls) = hub(Limits::default());
    let socket = hub.open("s", claims(json!({ "sub": "eve" })));
    for _ in 0..1000 {
        let refusal = join(&socket, "checked?id=1").unwrap_err();
        assert_eq!(refusal, Refusal::NotPermitted);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert_eq!(hub.stats().denied_again, 999);
    socket.identify(ada(), at(0));
    assert!(join(&socket, "checked?id=1").is_ok());
}

// C23
#[test]
fn the_memory_of_denials_is_bounded() {
    let (hub, calls) = hub(Limits::default());
    let socket = hub.open("s", claims(json!({ "sub": "eve" })));
    let limit = Limits::default().topics_per_socket;
    for id in 0..limit {
        let refusal = join(&socket, &format!("checked?id={id}")).unwrap_err();
        assert_eq!(refusal, Refusal::NotPermitted);
    }
    assert_eq!(
        join(&socket, "checked?id=x").unwrap_err(),
        Refusal::SocketTopics
    );
    assert_eq!(calls.load(Ordering::Relaxed), limit);
}

// C25
#[test]
fn places_are_counted_before_any_policy_answers() {
    let hub = default_hub();
    let socket = hub.open("s", ada());
    let mut reserved = Vec::new();
    let mut refused = 0;
    for id in 0..200 {
        match reserve(&socket, &format!("asked?id={id}")) {
            Ok(reservation) => reserved.push(reservation),
            Err(refusal) => {
                assert_eq!(refusal, Refusal::SocketTopics);
                refused += 1;
            }
        }
    }
    assert_eq!((reserved.len(), refused), (64, 136));
    for id in 0..10 {
        assert!(socket.unsubscribe(&scope(&format!("asked?id={id}"))));
    }
    let more = (200..220).filter_map(|id| reserve(&socket, &format!("asked?id={id}")).ok());
    reserved.extend(more);
    assert_eq!(socket.topics(), 64);
    let joined: Vec<_> = reserved
        .into_iter()
        .map(|reservation| reservation.join(Verdict::Allowed, None, &Outlet::new(), at(0)))
        .collect();
    let dropped = |one: &&Result<_, Refusal>| matches!(one, Err(Refusal::Dropped));
    assert_eq!(joined.iter().filter(dropped).count(), 10);
    assert_eq!(joined.iter().filter(|one| one.is_ok()).count(), 64);
}

// C25
#[test]
fn a_full_node_takes_more_of_the_topics_that_it_has() {
    let limits = Limits {
        topics: 2,
        ..Limits::default()
    };
    let (hub, _) = hub(limits);
    let (one, two) = (hub.open("1", ada()), hub.open("2", ada()));
    join(&one, "plain?id=1").unwrap();
    let pending = reserve(&one, "asked?id=2").unwrap();
    let refusal = join(&two, "plain?id=3").unwrap_err();
    assert_eq!(refusal, Refusal::NodeTopics);
    assert!(refusal.is_worth_retrying());
    assert!(join(&two, "plain?id=1").is_ok());
    drop(pending);
    assert!(join(&two, "plain?id=3").is_ok());
    assert_eq!(hub.stats().refused_node_topics, 1);
}

// C26
#[test]
fn a_second_subscribe_while_the_first_is_decided_is_refused() {
    let hub = default_hub();
    let (one, two) = (hub.open("1", ada()), hub.open("2", ada()));
    let first = reserve(&one, "asked?id=1").unwrap();
    assert_eq!(reserve(&one, "asked?id=1").unwrap_err(), Refusal::Taken);
    let mut other = join(&two, "asked?id=1").unwrap();
    let joined = first.join(Verdict::Allowed, None, &Outlet::new(), at(0));
    let mut joined = joined.unwrap();
    let again = one.reserve(&scope("asked?id=1"), at(0)).unwrap();
    assert!(matches!(again, Reserved::Seated(_)));
    assert!(two.unsubscribe(&scope("asked?id=1")));
    publish(&hub, "asked?id=1", 1);
    assert_eq!(told(&mut joined.watch), ["1"]);
    assert_eq!(told(&mut other.watch), ["ended"]);
}

// C27
#[test]
fn the_last_word_of_subscribe_and_unsubscribe_holds() {
    let hub = default_hub();
    let socket = hub.open("s", ada());
    let dropped = reserve(&socket, "asked?id=1").unwrap();
    assert!(socket.unsubscribe(&scope("asked?id=1")));
    assert!(!socket.unsubscribe(&scope("asked?id=1")));
    let second = reserve(&socket, "asked?id=1").unwrap();
    let late = dropped.join(Verdict::Allowed, None, &Outlet::new(), at(0));
    assert_eq!(late.unwrap_err(), Refusal::Dropped);
    let joined = second.join(Verdict::Allowed, None, &Outlet::new(), at(0));
    assert_eq!(joined.unwrap().start, Start::Fresh);
    assert_eq!((socket.topics(), hub.stats().topics), (1, 1));
}

// C30
#[test]
fn what_races_a_close_or_a_drain_leaves_nothing_behind() {
    let hub = default_hub();
    let socket = hub.open("s", ada());
    let reservation = reserve(&socket, "asked?id=1").unwrap();
    drop(socket);
    let joined = reservation.join(Verdict::Allowed, None, &Outlet::new(), at(0));
    assert_eq!(joined.unwrap_err(), Refusal::Dropped);
    assert_eq!(hub.stats().topics, 0);
    let socket = hub.open("s", ada());
    let reservation = reserve(&socket, "asked?id=1").unwrap();
    hub.drain();
    let joined = reservation.join(Verdict::Allowed, None, &Outlet::new(), at(0));
    assert_eq!(joined.unwrap_err(), Refusal::Leaving);
    assert_eq!(hub.stats().topics, 0);
    assert_eq!(join(&socket, "plain?id=1").unwrap_err(), Refusal::Leaving);
}

// C31
#[test]
fn churn_leaves_nothing_behind() {
    let hub = default_hub();
    let socket = hub.open("s", ada());
    for id in 0..20_000 {
        let text = format!("plain?id={id}");
        join(&socket, &text).unwrap();
        assert!(socket.unsubscribe(&scope(&text)));
    }
    let others: Vec<_> = (0..50)
        .map(|id| join(&socket, &format!("present?id={id}")))
        .collect();
    assert_eq!(hub.stats().topics, 50);
    drop(socket);
    let stats = hub.stats();
    assert_eq!((stats.topics, stats.present), (0, 0));
    drop(others);
    assert_eq!(hub.feed().stats().subscriptions, 0);
}

#[test]
fn publishing_from_a_socket_wants_the_channels_leave() {
    let hub = default_hub();
    let verdict = |text: &str, claims: &Claims| {
        let decision = hub.decide(Right::Publish, &scope(text), claims)?;
        match decision {
            Decision::Made(verdict) => hub.permit(verdict),
            Decision::Ask(question) => panic!("{question:?} is asked"),
        }
    };
    assert_eq!(verdict("kept?id=1", &ada()), Ok(()));
    for (text, claims) in [
        ("kept?id=1", Claims::anonymous()),
        ("plain?id=1", ada()),
        ("nothing", ada()),
        ("kept", ada()),
    ] {
        assert_eq!(verdict(text, &claims), Err(Refusal::NotPermitted), "{text}");
    }
    let data = channels::Payload::parse(b"1").unwrap();
    let other = hub.publish(&scope("kept?id=1"), "typing", data, at(0));
    assert_eq!(other.unwrap_err(), Refusal::UndeclaredEvent);
}
