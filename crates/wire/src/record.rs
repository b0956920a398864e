//! What a watch is told, as JSON: the same objects on SSE, NDJSON, WebSocket and `--json`.
//!
//! A [`ChangeRecord`] without its scope is what a change looks like to everyone, so those bytes are
//! made once; [`with_scope`] adds the scope that it answers. Nothing in here ever has a line end.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::cursor::{Cursor, GapReason};
use crate::hash::ContentHash;

/// A change.
#[derive(Clone, Debug, Serialize)]
pub struct ChangeRecord<'a> {
    /// Its position.
    pub cursor: &'a Cursor,
    /// What happened: `publish`, `append`, `archive`.
    pub op: &'a str,
    /// What it happened to.
    pub name: &'a str,
    /// The version after it.
    pub version: u64,
    /// The hash of that version's content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
    /// Who did it, as they said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<&'a str>,
    /// When, by the clock of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<&'a str>,
    /// The content, for those who asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<&'a RawValue>,
    /// The scope that it answers, in its canonical text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<&'a str>,
}

/// What is told beside changes where one line or event says one thing.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum NoticeRecord<'a> {
    /// Everything up to here was told.
    Beat {
        /// The position.
        cursor: &'a Cursor,
    },
    /// The server ends the stream; nothing was missed up to here.
    Closing {
        /// The position to come back with.
        cursor: &'a Cursor,
        /// Why: `draining`, `lifetime`, `revoked`.
        reason: &'a str,
        /// When to come back. Absent if it is of no use.
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// Changes were missed; what follows continues after here.
    Gap {
        /// The position to continue from.
        #[serde(skip_serializing_if = "Option::is_none")]
        cursor: Option<&'a Cursor>,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<GapReason>,
        /// Wait so long before reading what was missed, since others read too.
        #[serde(skip_serializing_if = "Option::is_none")]
        delay_ms: Option<u64>,
        /// The scope that missed something, where several are told on one stream.
        #[serde(skip_serializing_if = "Option::is_none")]
        scope: Option<&'a str>,
    },
}

impl ChangeRecord<'_> {
    /// Appends the object.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        append(self, out);
    }
}

impl NoticeRecord<'_> {
    /// Appends the object.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        append(self, out);
    }
}

/// Appends `record`, an object that has members and no scope, with `scope` as a further member.
pub fn with_scope(record: &[u8], scope: &str, out: &mut Vec<u8>) {
    let open = record.strip_suffix(b"}").unwrap_or(record);
    out.extend_from_slice(open);
    out.extend_from_slice(b",\"scope\":");
    append(scope, out);
    out.push(b'}');
}

/// Appends `value` as JSON.
pub(crate) fn append(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    serde_json::to_writer(out, value)
        .expect("a buffer takes any text, and no map of ours has keys that aren't texts");
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for GapReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(cursor: &Cursor) -> ChangeRecord<'_> {
        ChangeRecord {
            cursor,
            op: "publish",
            name: "/notes/tea \"x\"\n.md",
            version: 3,
            hash: None,
            agent: None,
            at: None,
            data: None,
            scope: None,
        }
    }

    #[test]
    fn a_scope_that_is_added_is_the_scope_that_is_written() {
        let cursor: Cursor = "e:9".parse().unwrap();
        let (mut alone, mut joined, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        record(&cursor).encode_into(&mut alone);
        with_scope(&alone, "doc:/notes/\u{2028}\"", &mut joined);
        let scoped = ChangeRecord {
            scope: Some("doc:/notes/\u{2028}\""),
            ..record(&cursor)
        };
        scoped.encode_into(&mut whole);
        assert_eq!(joined, whole);
        assert!(!whole.contains(&b'\n'), "a record is one line");
    }

    #[test]
    fn notices_name_their_op() {
        let cursor: Cursor = "e:9".parse().unwrap();
        let mut out = Vec::new();
        let gap = NoticeRecord::Gap {
            cursor: Some(&cursor),
            reason: Some(GapReason::TooOld),
            delay_ms: None,
            scope: None,
        };
        gap.encode_into(&mut out);
        assert_eq!(out, br#"{"op":"gap","cursor":"e:9","reason":"too-old"}"#);
    }
}
