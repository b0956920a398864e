//! How the same things are said on each kind of stream.
//!
//! SSE says one event a change, NDJSON one line, and the sync protocol one frame for all that is
//! due at once. Whatever is due is written into one buffer, which goes out in one write to every
//! socket that is told the same.

use std::sync::Arc;
use std::time::Duration;

use wire::{Cursor, GapReason, NoticeRecord, sse, sync, websocket, with_scope};

use super::batch::{Batch, Item, Kind};

/// A kind of stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Voice {
    /// Lines of JSON.
    Lines,
    /// Frames of the sync protocol in WebSocket frames.
    Socket,
    /// Server-sent events.
    Sse,
}

/// The canonical texts of what a watch follows.
pub(crate) type Scopes = Arc<[Arc<str>]>;

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Farewell {
    /// The word for why.
    pub(crate) reason: &'static str,
    /// When the client should come back; nothing if it should not.
    pub(crate) come_back: Option<Duration>,
}

/// What is to be said of a miss.
#[derive(Clone, Debug)]
pub(crate) struct Miss<'a> {
    pub(crate) reason: GapReason,
    pub(crate) cursor: Option<&'a Cursor>,
    /// How long to wait before the state is read.
    pub(crate) delay: Duration,
    /// Where it can be read, if there is such a place.
    pub(crate) catch_up: Option<String>,
}

impl Voice {
    /// Appends what is due. `after` is the position that it leads to.
    pub(crate) fn batch(self, scopes: &Scopes, batch: &Batch, after: &Cursor, out: &mut Vec<u8>) {
        match self {
            Self::Lines => batch.iter().for_each(|item| {
                scoped(scopes, item, out);
                out.push(b'\n');
            }),
            Self::Sse => {
                let mut json = Vec::new();
                for item in batch.iter() {
                    json.clear();
                    scoped(scopes, item, &mut json);
                    let name = match item.kind {
                        Kind::Change(op) => op,
                        Kind::Event => "event",
                        Kind::Presence => "presence",
                    };
                    sse_event(name, Some(&item.cursor), &json, out);
                }
            }
            Self::Socket => socket_batch(&scopes[0], batch, after, out),
        }
    }

    /// Appends the position, which is also a sign of life.
    pub(crate) fn beat(self, scopes: &Scopes, cursor: &Cursor, out: &mut Vec<u8>) {
        match self {
            Self::Socket => {
                let mut json = Vec::new();
                sync::beat([(&*scopes[0], cursor)], &mut json);
                websocket::text(&json, out);
            }
            _ => self.notice("beat", Some(cursor), &NoticeRecord::Beat { cursor }, out),
        }
    }

    /// Appends that something was missed.
    pub(crate) fn gap(self, scopes: &Scopes, miss: &Miss<'_>, out: &mut Vec<u8>) {
        let scope = &scopes[0];
        let delay = Some(millis(miss.delay)).filter(|delay| *delay > 0);
        if self == Self::Socket {
            let gap = sync::Gap {
                scope,
                reason: miss.reason,
                cursor: miss.cursor,
                delay_ms: delay,
                catch_up: miss.catch_up.as_deref(),
            };
            let mut json = Vec::new();
            gap.encode_into(&mut json);
            return websocket::text(&json, out);
        }
        let gap = NoticeRecord::Gap {
            cursor: miss.cursor,
            reason: Some(miss.reason),
            delay_ms: delay,
            // Where there are several, all of them missed something.
            scope: (scopes.len() == 1).then_some(&**scope),
        };
        self.notice("gap", miss.cursor, &gap, out);
    }

    /// Appends the end of a stream of one watch. A socket says it for all of its watches.
    pub(crate) fn closing(self, cursor: &Cursor, farewell: Farewell, out: &mut Vec<u8>) {
        if self == Self::Sse
            && let Some(come_back) = farewell.come_back
        {
            sse::retry(come_back, out);
        }
        let closing = NoticeRecord::Closing {
            cursor,
            reason: farewell.reason,
            retry_after_ms: farewell.come_back.map(millis),
        };
        self.notice("closing", Some(cursor), &closing, out);
    }

    fn notice(
        self,
        name: &'static str,
        id: Option<&Cursor>,
        notice: &NoticeRecord<'_>,
        out: &mut Vec<u8>,
    ) {
        let mut json = Vec::new();
        notice.encode_into(&mut json);
        match self {
            Self::Lines => {
                out.append(&mut json);
                out.push(b'\n');
            }
            Self::Sse => sse_event(name, id, &json, out),
            Self::Socket => debug_assert!(false, "the sync protocol has frames of its own"),
        }
    }
}

/// Milliseconds as they are written.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn sse_event(name: &'static str, id: Option<&Cursor>, json: &[u8], out: &mut Vec<u8>) {
    let text = str::from_utf8(json).expect("JSON is made of texts");
    sse::event(name, id, text, out);
}

fn scoped(scopes: &Scopes, item: &Item, out: &mut Vec<u8>) {
    with_scope(&item.json, &scopes[item.scope], out);
}

/// One frame for each run of things of one kind, in their order.
fn socket_batch(scope: &str, batch: &Batch, after: &Cursor, out: &mut Vec<u8>) {
    let items: Vec<&Item> = batch.iter().collect();
    let is_one_frame = |a: &&Item, b: &&Item| match (a.kind, b.kind) {
        (Kind::Change(_), Kind::Change(_)) | (Kind::Event, Kind::Event) => true,
        (a, b) => a == b && a != Kind::Presence,
    };
    let mut json = Vec::new();
    let mut left = items.len();
    for run in items.chunk_by(is_one_frame) {
        left -= run.len();
        let last = &run[run.len() - 1];
        let cursor = if left == 0 { after } else { &last.cursor };
        let objects = run.iter().map(|item| &item.json[..]);
        json.clear();
        match last.kind {
            Kind::Change(_) => sync::changes(scope, cursor, objects, &mut json),
            Kind::Event => sync::events(scope, Some(cursor), objects, &mut json),
            Kind::Presence => with_kind("presence", scope, &last.json, &mut json),
        }
        websocket::text(&json, out);
    }
}

/// Appends `object` as a frame of its own.
pub(crate) fn with_kind(kind: &'static str, scope: &str, object: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"t\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",");
    with_scope(object.get(1..).unwrap_or_default(), scope, out);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn batch(kinds: &[Kind]) -> Batch {
        let mut batch = Batch::default();
        for (seq, kind) in (1..).zip(kinds) {
            batch.push(Item {
                kind: *kind,
                cursor: format!("e:{seq}").parse().unwrap(),
                json: Bytes::from(format!("{{\"n\":{seq}}}")),
                scope: 0,
            });
        }
        batch
    }

    fn said(voice: Voice, kinds: &[Kind]) -> String {
        let scopes: Scopes = Arc::from([Arc::from("doc:/")]);
        let mut out = Vec::new();
        let after = "e:9".parse().unwrap();
        voice.batch(&scopes, &batch(kinds), &after, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    const CHANGES: [Kind; 2] = [Kind::Change("publish"), Kind::Change("append")];

    #[test]
    fn events_and_lines_say_each_change_alone() {
        assert_eq!(
            said(Voice::Sse, &CHANGES),
            "event: publish\nid: e-1\ndata: {\"n\":1,\"scope\":\"doc:/\"}\n\n\
             event: append\nid: e-2\ndata: {\"n\":2,\"scope\":\"doc:/\"}\n\n"
        );
        assert_eq!(
            said(Voice::Lines, &CHANGES),
            "{\"n\":1,\"scope\":\"doc:/\"}\n{\"n\":2,\"scope\":\"doc:/\"}\n"
        );
    }

    #[test]
    fn a_socket_says_what_is_due_in_one_frame() {
        let frame = said(Voice::Socket, &CHANGES);
        assert_eq!(
            frame.trim_start_matches(|c| c != '{'),
            r#"{"t":"changes","scope":"doc:/","cursor":"e:9","changes":[{"n":1},{"n":2}]}"#
        );
    }

    #[test]
    fn things_of_other_kinds_keep_their_order_in_frames_of_their_own() {
        let kinds = [Kind::Event, Kind::Presence, Kind::Event, Kind::Event];
        let frames = said(Voice::Socket, &kinds);
        let first = r#"{"t":"events","scope":"doc:/","cursor":"e:1","events":[{"n":1}]}"#;
        let second = r#"{"t":"presence","n":2,"scope":"doc:/"}"#;
        let third = r#"{"t":"events","scope":"doc:/","cursor":"e:9","events":[{"n":3},{"n":4}]}"#;
        let at = |text| {
            frames
                .find(text)
                .unwrap_or_else(|| panic!("{text} in {frames}"))
        };
        assert!(at(first) < at(second) && at(second) < at(third));
    }
}
