//! What a server sends. Every function appends the JSON text of one frame.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::cursor::{Cursor, GapReason};
use crate::record::append;

use super::VERSION;

/// Answers the client's hello.
#[derive(Clone, Debug, Serialize)]
pub struct Hello<'a> {
    /// Names the socket in the server's log; it is of no other use.
    pub session: &'a str,
    /// How often a socket hears something at least.
    pub heartbeat_ms: u64,
    /// The server and its version.
    pub server: &'a str,
    /// The build of the application that is current, if the server was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<&'a str>,
}

/// Answers a request that was granted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Ack<'a> {
    /// The request's.
    pub id: &'a str,
    /// The canonical scope by which the subscription is known from here on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<&'a str>,
    /// The position from which on everything is told, or that of a published event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<&'a Cursor>,
    /// Nothing was missed since the position that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<bool>,
    /// The subscription is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<bool>,
}

/// Tells that changes were missed.
#[derive(Clone, Debug, Serialize)]
pub struct Gap<'a> {
    /// Whose.
    pub scope: &'a str,
    /// Why.
    pub reason: GapReason,
    /// The position that what follows continues from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<&'a Cursor>,
    /// Wait so long before reading what was missed, since others read too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Where to read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<&'a str>,
}

/// Tells that the server ends the socket, which it does next.
#[derive(Clone, Debug, Serialize)]
pub struct Reconnect<'a, C> {
    /// When to come back.
    pub delay_ms: u64,
    /// Why: `draining`, `lifetime`.
    pub reason: &'a str,
    /// The positions by scope.
    pub cursors: C,
}

/// Tells of a refusal or of a subscription's end.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ErrorFrame<'a> {
    /// The request that is refused, if it was one and could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    /// The subscription that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<&'a str>,
    /// The stable name.
    pub code: &'a str,
    /// What is wrong.
    pub message: &'a str,
    /// What to do about it.
    pub fix: &'a str,
    /// More of this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<&'a str>,
    /// True if the same request may succeed later.
    pub retry: bool,
    /// When to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The subscription is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<bool>,
}

/// What a presence frame says of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PresenceKind {
    /// They came.
    Join,
    /// They left.
    Leave,
    /// They are there; whoever isn't named and isn't beyond the count is not.
    Sync,
    /// What they say of themselves changed.
    Update,
}

/// Somebody who is present.
#[derive(Clone, Debug, Serialize)]
pub struct Member<'a> {
    /// One per socket.
    pub id: &'a str,
    /// Who it is, if known; the same over several sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<&'a str>,
    /// What it says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<&'a RawValue>,
    /// Since when, by the server's clock, in milliseconds since 1970.
    pub at: u64,
}

/// A frame with its kind in front.
#[derive(Serialize)]
struct Tagged<'a, F> {
    t: &'a str,
    #[serde(flatten)]
    frame: &'a F,
}

fn tagged(kind: &str, frame: &impl Serialize, out: &mut Vec<u8>) {
    append(&Tagged { t: kind, frame }, out);
}

macro_rules! frames {
    ($($frame:ty: $kind:literal;)*) => {$(
        impl $frame {
            /// Appends the frame.
            pub fn encode_into(&self, out: &mut Vec<u8>) {
                tagged($kind, self, out);
            }
        }
    )*};
}

frames! {
    Ack<'_>: "ack";
    ErrorFrame<'_>: "error";
    Gap<'_>: "gap";
}

impl Hello<'_> {
    /// Appends the frame.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        #[derive(Serialize)]
        struct Versioned<'a> {
            v: u64,
            #[serde(flatten)]
            hello: &'a Hello<'a>,
        }
        let versioned = Versioned {
            v: VERSION,
            hello: self,
        };
        tagged("hello", &versioned, out);
    }
}

impl<C: Serialize> Reconnect<'_, C> {
    /// Appends the frame.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        tagged("reconnect", self, out);
    }
}

/// Appends the frame of `changes`, each the object of a [`ChangeRecord`](crate::ChangeRecord).
pub fn changes<'a>(
    scope: &str,
    cursor: &Cursor,
    changes: impl IntoIterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) {
    list("changes", scope, Some(cursor), changes, out);
}

/// Appends the frame of `events`, each an object that [`event`] made.
pub fn events<'a>(
    scope: &str,
    cursor: Option<&Cursor>,
    events: impl IntoIterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) {
    list("events", scope, cursor, events, out);
}

fn list<'a>(
    kind: &str,
    scope: &str,
    cursor: Option<&Cursor>,
    items: impl IntoIterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"{\"t\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"scope\":");
    append(scope, out);
    if let Some(cursor) = cursor {
        out.extend_from_slice(b",\"cursor\":");
        append(cursor, out);
    }
    out.extend_from_slice(b",\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\":[");
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(item);
    }
    out.extend_from_slice(b"]}");
}

/// Appends an event of a channel as an object; `data` is the text of a JSON value.
/// `at` is in milliseconds since 1970.
pub fn event(name: &str, data: &str, cursor: Option<&Cursor>, at: Option<u64>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"event\":");
    append(name, out);
    out.extend_from_slice(b",\"data\":");
    out.extend_from_slice(data.as_bytes());
    if let Some(cursor) = cursor {
        out.extend_from_slice(b",\"cursor\":");
        append(cursor, out);
    }
    if let Some(at) = at {
        out.extend_from_slice(b",\"at\":");
        append(&at, out);
    }
    out.push(b'}');
}

/// Appends members or their moves as an object without the scope.
pub fn presence(
    kind: PresenceKind,
    members: &[Member<'_>],
    total: Option<usize>,
    out: &mut Vec<u8>,
) {
    #[derive(Serialize)]
    struct Object<'a> {
        kind: PresenceKind,
        members: &'a [Member<'a>],
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<usize>,
    }
    let object = Object {
        kind,
        members,
        total,
    };
    append(&object, out);
}

/// Appends a heartbeat with the positions of `cursors`; scopes that are not named stand where they
/// stood.
pub fn beat<'a>(cursors: impl IntoIterator<Item = (&'a str, &'a Cursor)>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"t\":\"beat\",\"cursors\":");
    positions(cursors, out);
    out.push(b'}');
}

fn positions<'a>(cursors: impl IntoIterator<Item = (&'a str, &'a Cursor)>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (place, (scope, cursor)) in cursors.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        append(scope, out);
        out.push(b':');
        append(cursor, out);
    }
    out.push(b'}');
}

/// Appends the frame that tells of a newer build of the application.
pub fn update_available(build: &str, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Build<'a> {
        build: &'a str,
    }
    tagged("update-available", &Build { build }, out);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    fn frame(write: impl FnOnce(&mut Vec<u8>)) -> Value {
        let mut out = Vec::new();
        write(&mut out);
        serde_json::from_slice(&out).unwrap()
    }

    fn cursor() -> Cursor {
        "e:9".parse().unwrap()
    }

    #[test]
    fn a_hello_names_the_version() {
        let hello = Hello {
            session: "s1",
            heartbeat_ms: 15_000,
            server: "tidings/0.1.0",
            build: None,
        };
        let expected = json!({"t": "hello", "v": 1, "session": "s1", "heartbeat_ms": 15_000,
                              "server": "tidings/0.1.0"});
        assert_eq!(frame(|out| hello.encode_into(out)), expected);
    }

    #[test]
    fn changes_due_at_once_are_one_frame() {
        let items: [&[u8]; 2] = [br#"{"a":1}"#, br#"{"a":2}"#];
        assert_eq!(
            frame(|out| changes("doc:/\"", &cursor(), items, out)),
            json!({"t": "changes", "scope": "doc:/\"", "cursor": "e:9",
                   "changes": [{"a": 1}, {"a": 2}]})
        );
        assert_eq!(
            frame(|out| {
                let mut item = Vec::new();
                event("message", "[1]", None, None, &mut item);
                events("channel:room", None, [&item[..]], out);
            }),
            json!({"t": "events", "scope": "channel:room",
                   "events": [{"event": "message", "data": [1]}]})
        );
    }

    #[test]
    fn what_is_absent_is_left_out() {
        let ack = Ack {
            id: "1",
            ..Ack::default()
        };
        assert_eq!(
            frame(|out| ack.encode_into(out)),
            json!({"t": "ack", "id": "1"})
        );
        let gap = Gap {
            scope: "doc:/",
            reason: GapReason::Lapped,
            cursor: Some(&cursor()),
            delay_ms: None,
            catch_up: None,
        };
        assert_eq!(
            frame(|out| gap.encode_into(out)),
            json!({"t": "gap", "scope": "doc:/", "reason": "lapped", "cursor": "e:9"})
        );
    }

    #[test]
    fn positions_go_by_scope() {
        let cursors = [("doc:/a/", &cursor()), ("doc:/b/", &cursor())];
        assert_eq!(
            frame(|out| beat(cursors, out)),
            json!({"t": "beat", "cursors": {"doc:/a/": "e:9", "doc:/b/": "e:9"}})
        );
        let reconnect = Reconnect {
            delay_ms: 1_200,
            reason: "draining",
            cursors: BTreeMap::from([("doc:/a/", cursor())]),
        };
        assert_eq!(
            frame(|out| reconnect.encode_into(out)),
            json!({"t": "reconnect", "delay_ms": 1_200, "reason": "draining",
                   "cursors": {"doc:/a/": "e:9"}})
        );
        assert_eq!(
            frame(|out| update_available("42", out)),
            json!({"t": "update-available", "build": "42"})
        );
    }
}
