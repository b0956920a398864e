//! Who is present, and how that is told.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use wire::Seq;

use crate::payload::Payload;

/// A socket that follows a topic with presence.
///
/// One person with two sockets is two members; `actor` says that they are one (C51).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The session of its socket.
    pub id: Arc<str>,
    /// Who it is: the `sub` of its claims.
    pub actor: Option<Arc<str>>,
    /// What it says about itself.
    pub meta: Option<Payload>,
    /// When it joined or last changed, in milliseconds since 1970; each change is later than the
    /// one before, whatever the clock does.
    pub at_ms: u64,
    /// The time or count of `meta` by the member's own reckoning; the last writer wins (C45).
    pub(crate) stamp: u64,
}

impl Member {
    /// Appends the member as JSON: `{"id":…,"actor":…,"meta":…,"at":…}` on one line, without what
    /// is not known.
    pub fn write_json(&self, json: &mut Vec<u8>) {
        json.extend_from_slice(b"{\"id\":");
        write_text(&self.id, json);
        if let Some(actor) = &self.actor {
            json.extend_from_slice(b",\"actor\":");
            write_text(actor, json);
        }
        if let Some(meta) = &self.meta {
            json.extend_from_slice(b",\"meta\":");
            json.extend_from_slice(meta.as_str().as_bytes());
        }
        json.extend_from_slice(format!(",\"at\":{}}}", self.at_ms).as_bytes());
    }

    /// The time of a change at `now_ms` by the wall clock.
    pub(crate) fn next_at_ms(&self, now_ms: u64) -> u64 {
        now_ms.max(self.at_ms.saturating_add(1))
    }
}

fn write_text(text: &str, json: &mut Vec<u8>) {
    serde_json::to_writer(json, text).expect("a text can be written to memory");
}

/// How members moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// They came.
    Join,
    /// They went.
    Leave,
    /// They say something else about themselves.
    Update,
}

impl Movement {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Leave => "leave",
            Self::Update => "update",
        }
    }
}

/// A change of a roster: members that moved in one way since the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// How they moved.
    pub movement: Movement,
    /// The members; never empty, at most [`DELTA_MEMBERS_MAX`](crate::limits::DELTA_MEMBERS_MAX).
    pub members: Vec<Arc<Member>>,
}

/// The members of a topic at one position: the deltas after it apply to it exactly, so that a
/// total that is counted up and down stays true.
pub struct Roster {
    /// Those who are here for longest, at most [`ROSTER_MAX`](crate::limits::ROSTER_MAX).
    pub members: Vec<Arc<Member>>,
    /// How many are here.
    pub total: usize,
    /// The last delta that it contains.
    pub(crate) as_of: Seq,
    encoded: OnceLock<Bytes>,
}

impl Roster {
    pub(crate) const fn new(members: Vec<Arc<Member>>, total: usize, as_of: Seq) -> Self {
        Self {
            members,
            total,
            as_of,
            encoded: OnceLock::new(),
        }
    }

    /// Its bytes, made on first use and shared by all who join between two deltas.
    pub fn encoded(&self, encode: impl FnOnce(&Self) -> Bytes) -> Bytes {
        self.encoded.get_or_init(|| encode(self)).clone()
    }
}

impl fmt::Debug for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roster")
            .field("total", &self.total)
            .field("as_of", &self.as_of)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_one_line_of_json() {
        let member = Member {
            id: "s-1".into(),
            actor: Some("a\"\n".into()),
            meta: Some(Payload::parse(b"[ 1 ]").unwrap()),
            at_ms: 7,
            stamp: 0,
        };
        let mut json = Vec::new();
        member.write_json(&mut json);
        let expected = r#"{"id":"s-1","actor":"a\"\n","meta":[1],"at":7}"#;
        assert_eq!(String::from_utf8(json).unwrap(), expected);
    }
}
