//! What may be declared, and which topics a declaration has.

use std::collections::BTreeMap;

use serde::Deserialize;
use wire::ChannelScope;

use super::*;
use crate::policy::{Rule, Undecided};
use crate::topic::Topic;

fn room() -> Builder {
    Declaration::named("room").param("id", "int").policy("true")
}

fn fault(builder: Builder) -> Fault {
    let error = builder.build().unwrap_err();
    assert_eq!(error.channel, "room");
    error.fault
}

fn topic(declaration: &Arc<Declaration>, scope: &str) -> Option<Topic> {
    Topic::of(declaration, &scope.parse().unwrap())
}

// C17
#[test]
fn every_fault_is_told_with_the_channel() {
    let bare = Declaration::named("room");
    assert_eq!(fault(bare), Fault::NoPolicy);
    assert_eq!(
        fault(room().param("id", "string")),
        Fault::ParamRepeated("id".into())
    );
    assert_eq!(
        fault(room().param("a.b", "int")),
        Fault::ParamName("a.b".into())
    );
    let kind = Fault::ParamKind {
        param: "at".into(),
        kind: "date".into(),
    };
    assert_eq!(fault(room().param("at", "date")), kind);
    assert_eq!(
        fault(room().policy("params.team == 1")),
        Fault::PolicyParam("team".into())
    );
    assert!(matches!(fault(room().policy("claims.")), Fault::Policy(error) if error.at == 7));
    assert!(matches!(fault(room().publish("nobody")), Fault::Publish(_)));
    for url in [
        "",
        "ftp://host/",
        "http://",
        "http:///x",
        "https://a b",
        "/may-join",
    ] {
        assert_eq!(
            fault(room().policy(Rule::ask(url))),
            Fault::AskUrl(url.into())
        );
    }
    for event in ["", "a b", "a\nb", "é", &"e".repeat(65)] {
        assert_eq!(
            fault(room().events([event])),
            Fault::EventName(event.into())
        );
    }
    for history in [0, -1, i64::MIN, i64::MAX, HISTORY_MAX as i64 + 1] {
        assert_eq!(fault(room().history(history)), Fault::History(history));
    }
    for place in [
        "",
        "rooms/{id}",
        "//evil/{id}",
        "/rooms/{name}",
        "/rooms/{id",
        "/a\nb",
    ] {
        assert_eq!(fault(room().catch_up(place)), Fault::CatchUp(place.into()));
    }
    let names: Vec<String> = (0..=EVENTS_MAX).map(|n| format!("e{n}")).collect();
    let many = room().events(names.iter().map(String::as_str));
    assert_eq!(fault(many), Fault::TooManyEvents);
    let many = names[..=PARAMS_MAX]
        .iter()
        .fold(room(), |room, name| room.param(name, "int"));
    assert_eq!(fault(many), Fault::TooManyParams);
    for name in ["", "ro om", "ro.om", "room/1", &"r".repeat(65)] {
        let error = Declaration::named(name).policy("true").build().unwrap_err();
        assert_eq!((error.channel.as_str(), error.fault), (name, Fault::Name));
    }
}

// C17
#[test]
fn two_channels_of_one_name_are_refused() {
    let both = [room().build().unwrap(), room().build().unwrap()];
    let error = Declarations::new(both).unwrap_err();
    assert_eq!(error.to_string(), "channel `room`: it is declared twice");
}

// C18, C63
#[test]
fn params_name_a_topic_exactly_or_not_at_all() {
    let declaration = room().param("team", "string").build().unwrap().into();
    let own = topic(&declaration, "room?team=a-b&id=42").unwrap();
    assert_eq!(own.as_str(), "channel:room?id=42&team=a-b");
    assert_eq!(own.params()["id"], 42);
    assert_eq!(
        topic(&declaration, "room?extra=1&id=42&team=a-b"),
        Some(own)
    );
    for scope in [
        "room",
        "room?id=42",
        "room?id=42&team=",
        "room?id=42&team=a.b",
        "room?id=42&team=*",
        "room?id=42&team=%3E",
        "room?id=42&team=a/b",
        "room?id=42&team=a%20b",
        "room?id=042&team=a",
        "room?id=%2B42&team=a",
        "room?id=-0&team=a",
        "room?id=4.2&team=a",
        "room?id=9223372036854775808&team=a",
        "room?__proto__=1&constructor=2",
    ] {
        assert_eq!(topic(&declaration, scope), None, "{scope}");
    }
    assert!(topic(&declaration, "room?id=-42&team=__proto__").is_some());
}

#[test]
fn the_place_to_catch_up_at_has_the_params_filled_in() {
    let declaration = room()
        .param("team", "string")
        .catch_up("/teams/{team}/rooms/{id}?last=50")
        .build()
        .unwrap()
        .into();
    let topic = topic(&declaration, "room?id=42&team=a-b").unwrap();
    let place = topic.catch_up().unwrap();
    assert_eq!(place, "/teams/a-b/rooms/42?last=50");
}

#[derive(Deserialize)]
struct Config {
    channels: BTreeMap<String, Spec>,
}

fn declared(text: &str) -> Result<Declarations, String> {
    let config: Config = toml::from_str(text).map_err(|error| error.to_string())?;
    let declarations: Result<Vec<_>, _> = config
        .channels
        .into_iter()
        .map(|(name, spec)| spec.declare(&name))
        .collect();
    let declarations = declarations.and_then(Declarations::new);
    declarations.map_err(|error| error.to_string())
}

#[test]
fn the_configuration_declares_channels() {
    let all = declared(
        r#"
        [channels.room]
        params = { id = "int" }
        policy = "claims.rooms contains params.id"
        events = ["message", "typing"]
        publish = "claims.sub != null"
        history = 100
        presence = true
        catch_up = "/rooms/{id}"

        [channels.desk]
        policy = { ask = "http://127.0.0.1:8000/may-join" }
        anonymous = true
        "#,
    )
    .unwrap();
    let room = all.get("room").unwrap();
    assert_eq!(room.history(), Some(100));
    assert!(room.has_presence() && room.is_open_to_sockets() && !room.admits_anonymous());
    assert_eq!(room.events().collect::<Vec<_>>(), ["message", "typing"]);
    let desk = all.get("desk").unwrap();
    assert!(desk.join_policy().is_asked() && desk.admits_anonymous());
    assert!(!desk.has_presence() && !desk.is_open_to_sockets() && desk.history().is_none());
}

// C17
#[test]
fn a_configuration_with_a_fault_is_refused() {
    let room = |line: &str| declared(&format!("[channels.room]\n{line}")).unwrap_err();
    assert!(room("presence = true").starts_with("channel `room`: it has no policy"));
    assert!(room("policy = \"true\"\nhistory = -1").contains("history -1"));
    for line in [
        "history = nan",
        "policy = 7",
        "policy = { ask = 1 }",
        "colour = \"red\"",
    ] {
        assert!(!room(line).is_empty());
    }
}

#[test]
fn a_scope_has_nothing_of_a_declaration_but_its_name() {
    let check = |_: &auth::Claims, _: &serde_json::Map<String, serde_json::Value>| Err(Undecided);
    let declaration = Declaration::named("desk")
        .policy(Rule::check(check))
        .build();
    let declaration = Arc::new(declaration.unwrap());
    let scope = ChannelScope::new("desk", [("any", "thing")]).unwrap();
    let topic = Topic::of(&declaration, &scope).unwrap();
    assert_eq!(topic.as_str(), "channel:desk");
}
