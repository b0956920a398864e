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
    /// When it joined or last said so, in milliseconds since 1970.
    pub at_ms: u64,
    /// The time or count of `meta` by the member's own reckoning; the last writer wins (C45).
    pub(crate) stamp: u64,
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
