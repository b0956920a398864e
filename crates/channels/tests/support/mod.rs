//! A hub with a few channels, and sockets that join them in one step.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use auth::Claims;
use channels::{
    Content, Decision, Declaration, Declarations, Hub, Joined, Limits, Next, Now, Payload, Refusal,
    Reservation, Reserved, Rule, Socket, Undecided, Verdict, Watch,
};
use feed::Outlet;
use serde_json::{Value, json};
use wire::{ChannelScope, Cursor, Epoch};

/// `plain` at most once, `kept` with history, `present` with presence, `rooms` by claims, `asked`
/// by a back end and with history, `checked` by a closure that counts its calls.
pub(crate) fn hub(limits: Limits) -> (Hub, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let check = move |claims: &Claims, _: &serde_json::Map<String, Value>| {
        counted.fetch_add(1, Ordering::Relaxed);
        match claims.subject() {
            Some("ada") => Ok(true),
            Some("broken") => Err(Undecided),
            _ => Ok(false),
        }
    };
    let open = |name: &str| {
        let channel = Declaration::named(name).param("id", "string");
        channel.policy("true").events(["message"])
    };
    let all = [
        open("plain").build(),
        open("kept")
            .history(8)
            .publish("claims.sub == 'ada'")
            .build(),
        open("present").history(8).presence().build(),
        open("rooms")
            .policy("claims.rooms contains params.id")
            .build(),
        open("asked")
            .policy(Rule::ask("http://127.0.0.1:8000/may"))
            .history(8)
            .build(),
        open("checked").policy(Rule::check(check)).build(),
    ];
    let all = all.into_iter().map(|one| one.expect("it is sound"));
    let declarations = Declarations::new(all).expect("names differ");
    (
        Hub::new(declarations, Epoch::from_random([7; 6]), limits),
        calls,
    )
}

pub(crate) fn default_hub() -> Hub {
    hub(Limits::default()).0
}

pub(crate) fn claims(value: Value) -> Claims {
    match value {
        Value::Object(members) => Claims::new(members, None),
        _ => Claims::anonymous(),
    }
}

pub(crate) fn ada() -> Claims {
    claims(json!({ "sub": "ada", "rooms": ["1", "2"] }))
}

pub(crate) fn scope(text: &str) -> ChannelScope {
    text.parse().expect("it is a scope")
}

pub(crate) fn at(millis: u64) -> Now {
    Now {
        elapsed: Duration::from_millis(millis),
        unix_ms: 1_800_000_000_000 + millis,
    }
}

pub(crate) fn reserve(socket: &Socket, text: &str) -> Result<Reservation, Refusal> {
    match socket.reserve(&scope(text), at(0))? {
        Reserved::New(reservation) => Ok(reservation),
        Reserved::Seated(topic) => panic!("{topic} has a seat already"),
    }
}

/// Joins, with whoever is asked saying yes.
pub(crate) fn join_since(
    socket: &Socket,
    text: &str,
    since: Option<&Cursor>,
    now: Now,
) -> Result<Joined, Refusal> {
    let reservation = reserve(socket, text)?;
    let verdict = match reservation.decide() {
        Decision::Made(verdict) => verdict,
        Decision::Ask(_) => Verdict::Allowed,
    };
    reservation.join(verdict, since, &Outlet::new(), now)
}

pub(crate) fn join(socket: &Socket, text: &str) -> Result<Joined, Refusal> {
    join_since(socket, text, None, at(0))
}

pub(crate) fn publish(hub: &Hub, text: &str, number: u64) -> Option<Cursor> {
    let data = Payload::parse(number.to_string().as_bytes()).expect("a number is JSON");
    let published = hub.publish(&scope(text), "message", data, at(0));
    published.expect("it is declared").cursor
}

/// What a watch tells until it is idle, one word each: the data of a message, a movement with its
/// members, `roster` with the total, `gap` with the reason, `ended`, `closed`.
pub(crate) fn told(watch: &mut Watch) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        told.push(match watch.next() {
            Next::Event(event) => match event.content() {
                Content::Message(message) => message.data.as_str().to_owned(),
                Content::Presence(delta) => {
                    let ids: Vec<&str> = delta.members.iter().map(|member| &*member.id).collect();
                    format!("{} {}", delta.movement.as_str(), ids.join(","))
                }
            },
            Next::Gap { reason, .. } => format!("gap {reason}"),
            Next::Roster(roster) => format!("roster {}", roster.total),
            Next::Ended => "ended".to_owned(),
            Next::Closed => "closed".to_owned(),
            Next::Idle => return told,
        });
        if told
            .last()
            .is_some_and(|last| last == "ended" || last == "closed")
        {
            return told;
        }
    }
}

pub(crate) fn numbers(range: std::ops::RangeInclusive<u64>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}
