//! One watch's place in its feed, whatever the feed is of.

use std::sync::Arc;

use auth::{Denied, Grants};
use channels::{Hub, Socket, Topic};
use documents::Change;
use feed::{Feed, Outlet, Token};
use jiff::Timestamp;
use wire::{Cursor, GapReason};

use super::batch::Batch;
use super::channel::Channel;
use super::documents::Documents;

/// Scopes that one stream may follow.
pub(crate) const SCOPES_MAX: usize = 64;

/// Where a reading left off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The feed was closed and everything was read.
    Closed,
    /// The right is gone.
    Ended,
    /// Something was missed, which is to be told after what the batch holds. The tokens may be
    /// others.
    Gap(GapReason, Cursor),
    /// Everything was read; the outlet tells of more.
    Idle,
    /// There is more to read.
    More,
}

/// The grants and the time that a reading goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rights<'a> {
    pub(crate) grants: &'a Grants,
    pub(crate) time: Timestamp,
}

/// How changes are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Each is told.
    Every,
    /// Those of one document are merged.
    Latest,
}

/// Where feeds are to be had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feeds<'a> {
    pub(crate) documents: &'a Feed<Change>,
}

/// A place in a feed.
#[derive(Debug)]
pub(crate) enum Reader {
    /// A topic of a channel.
    Channel(Channel),
    /// Documents.
    Documents(Documents),
}

/// A place in a feed, and what was missed before it.
#[derive(Debug)]
pub(crate) struct Resumed {
    pub(crate) reader: Reader,
    /// To be told before anything else.
    pub(crate) missed: Option<(GapReason, Cursor)>,
}

impl Reader {
    /// One more place for somebody else's watch of the same, from after `from`, which this one
    /// told. `socket` has the seat if it is a channel; without one nothing is had.
    pub(crate) fn resume(
        &self,
        feeds: Feeds<'_>,
        socket: Option<&Socket>,
        from: &Cursor,
        outlet: &Arc<Outlet>,
    ) -> Option<Resumed> {
        match self {
            Self::Channel(channel) => {
                let watch = socket?.resume(channel.topic(), from, outlet)?;
                Some(Resumed {
                    reader: Self::Channel(Channel::new(watch)),
                    missed: None,
                })
            }
            Self::Documents(own) => {
                let rights: Vec<_> = own.rights().cloned().collect();
                let opened = Documents::open(feeds.documents, rights.clone(), Some(from), outlet);
                let (documents, missed) = match opened {
                    Ok(documents) => (documents, None),
                    Err(refused) => {
                        let reason = match refused.reason {
                            // It was here all the time, and slow.
                            GapReason::TooOld => GapReason::Lapped,
                            reason => reason,
                        };
                        let head = Documents::open_at_head(feeds.documents, &rights, outlet);
                        let position = head.position();
                        (head, Some((reason, position)))
                    }
                };
                Some(Resumed {
                    reader: Self::Documents(documents),
                    missed,
                })
            }
        }
    }

    /// A place that is shared by all who follow `topic`.
    pub(crate) fn shared(hub: &Hub, topic: &Topic, outlet: &Arc<Outlet>) -> Self {
        Self::Channel(Channel::new(hub.follow(topic, &hub.head(), outlet)))
    }

    /// Calls `visit` with each of its names in the outlet.
    pub(crate) fn visit_tokens(&self, visit: impl FnMut(Token)) {
        match self {
            Self::Channel(channel) => std::iter::once(channel.token()).for_each(visit),
            Self::Documents(documents) => documents.tokens().for_each(visit),
        }
    }

    /// Everything up to here was told or does not concern it.
    pub(crate) fn position(&self) -> Cursor {
        match self {
            Self::Channel(channel) => channel.position(),
            Self::Documents(documents) => documents.position(),
        }
    }

    /// May the watch go on at all? The seat of a channel is its socket's to check.
    pub(crate) fn recheck(&self, rights: Rights<'_>) -> Result<(), Denied> {
        match self {
            Self::Channel(_) => Ok(()),
            Self::Documents(documents) => documents.recheck(rights),
        }
    }

    /// Adds to `batch` what is due, until it is full or nothing is.
    pub(crate) fn read(&mut self, mode: Mode, rights: Rights<'_>, batch: &mut Batch) -> Left {
        match self {
            Self::Channel(channel) => channel.read(batch),
            Self::Documents(documents) => documents.read(mode, rights, batch),
        }
    }

    /// How many changes were passed over for lack of a right since this was last asked.
    pub(crate) fn take_withheld(&mut self) -> u64 {
        match self {
            Self::Channel(_) => 0,
            Self::Documents(documents) => documents.take_withheld(),
        }
    }

    /// Where the state can be read after something was missed, if there is such a place.
    pub(crate) fn catch_up(&self) -> Option<String> {
        match self {
            Self::Channel(channel) => channel.topic().catch_up(),
            Self::Documents(_) => None,
        }
    }
}
