//! Watch blocks: what a watch's stream consists of.
//!
//! Each block is a fence, a flat map and a fence, at most [`limits::BLOCK_LEN_MAX`] bytes. A map
//! with a `status` is a [`Control`]: the acknowledgement, a heartbeat, or the last block of the
//! watch. A map without is an [`Event`]. Keys that aren't known are ignored on reading.

mod reader;

use std::fmt;

use bytes::{BufMut, BytesMut};
use thiserror::Error;

pub use reader::{BlockError, BlockReader, BlockView, ControlView, EventView};

use crate::cursor::{Cursor, Epoch, GapReason, Seq};
use crate::hash::ContentHash;
use crate::limits;
use crate::metadata::{LineBreaks, write_entry};
use crate::path::DocPath;
use crate::status::Status;

const FENCE: &[u8] = b"---\n";

const AGENT: &str = "agent";
const CURSOR: &str = "cursor";
const HASH: &str = "hash";
const MESSAGE: &str = "message";
const OP: &str = "op";
const PATH: &str = "path";
const REASON: &str = "reason";
const RETRY_AFTER: &str = "retry-after";
const STATUS: &str = "status";
const VERSION: &str = "version";

/// A watch block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A word about the watch itself.
    Control(Control),
    /// A change in its scope.
    Event(Event),
}

impl Block {
    /// Appends the block; on an error `out` is as it was.
    pub fn encode_into(&self, out: &mut BytesMut) -> Result<(), BlockTooLong> {
        match self {
            Self::Control(control) => control.encode_into(out),
            Self::Event(event) => event.encode_into(out),
        }
    }
}

impl From<Control> for Block {
    fn from(control: Control) -> Self {
        Self::Control(control)
    }
}

impl From<Event> for Block {
    fn from(event: Event) -> Self {
        Self::Event(event)
    }
}

/// A word about the watch itself: the acknowledgement, a heartbeat, or why it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// `ok` for the acknowledgement and heartbeats; any other ends the watch.
    pub status: Status,
    /// The position up to which everything in scope was told, or to continue from.
    pub cursor: Option<Cursor>,
    /// A text for people.
    pub message: Option<String>,
    /// Why something was missed.
    pub reason: Option<GapReason>,
    /// When to come back, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl Control {
    /// A block with nothing but a status and a position.
    pub const fn new(status: Status, cursor: Cursor) -> Self {
        Self {
            status,
            cursor: Some(cursor),
            message: None,
            reason: None,
            retry_after_ms: None,
        }
    }

    /// A block that ends a watch which missed something.
    pub const fn resync(reason: GapReason, head: Cursor) -> Self {
        let mut control = Self::new(Status::Resync, head);
        control.reason = Some(reason);
        control
    }

    /// A block that ends a watch because the server is leaving.
    pub const fn closing(position: Cursor, retry_after_ms: u64) -> Self {
        let mut control = Self::new(Status::Closing, position);
        control.retry_after_ms = Some(retry_after_ms);
        control
    }

    /// Appends the block; on an error `out` is as it was.
    pub fn encode_into(&self, out: &mut BytesMut) -> Result<(), BlockTooLong> {
        write_block(out, |out| {
            if let Some(cursor) = &self.cursor {
                write_line(out, CURSOR, &cursor.to_string());
            }
            if let Some(message) = &self.message {
                write_line(out, MESSAGE, message);
            }
            if let Some(reason) = self.reason {
                write_line(out, REASON, reason.as_str());
            }
            if let Some(retry_after_ms) = self.retry_after_ms {
                write_line(out, RETRY_AFTER, &retry_after_ms.to_string());
            }
            write_line(out, STATUS, self.status.as_str());
        })
    }
}

/// A change in the scope of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its position.
    pub cursor: Cursor,
    /// What happened.
    pub op: Op,
    /// To which document.
    pub path: DocPath,
    /// The document's current version after it; at least 1.
    pub version: u64,
    /// The hash of that version's body.
    pub hash: Option<ContentHash>,
    /// Who wrote, as the write's metadata said.
    pub agent: Option<String>,
}

impl Event {
    /// Appends the block; on an error `out` is as it was.
    ///
    /// An event that doesn't fit is written without its `agent`. What doesn't fit then either is
    /// an error, and the watcher must be told a gap in its place.
    pub fn encode_into(&self, out: &mut BytesMut) -> Result<(), BlockTooLong> {
        self.write(out, self.agent.as_deref())
            .or_else(|BlockTooLong| self.write(out, None))
    }

    /// True if every event of the document at `path` fits a block, whatever its other values.
    ///
    /// A source that refuses other paths never meets [`BlockTooLong`].
    pub fn fits(path: &DocPath) -> bool {
        let widest = Self {
            cursor: Cursor::new(widest_epoch(), Seq::new(u64::MAX)),
            op: Op::Archive,
            path: path.clone(),
            version: u64::MAX,
            hash: Some(ContentHash::from_bytes([0; 32])),
            agent: None,
        };
        widest.encode_into(&mut BytesMut::new()).is_ok()
    }

    fn write(&self, out: &mut BytesMut, agent: Option<&str>) -> Result<(), BlockTooLong> {
        write_block(out, |out| {
            if let Some(agent) = agent {
                write_line(out, AGENT, agent);
            }
            write_line(out, CURSOR, &self.cursor.to_string());
            if let Some(hash) = &self.hash {
                write_line(out, HASH, &hash.to_string());
            }
            write_line(out, OP, self.op.as_str());
            write_line(out, PATH, self.path.as_str());
            write_line(out, VERSION, &self.version.to_string());
        })
    }
}

/// An epoch whose cursors take the most bytes: as long as may be, and quoted for its start.
fn widest_epoch() -> Epoch {
    Epoch::new(&"-".repeat(Epoch::LEN_MAX)).expect("64 hyphens are an epoch")
}

/// Appends fences and what `write` puts between them; takes all of it back if it is too long.
fn write_block(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) -> Result<(), BlockTooLong> {
    let begin = out.len();
    out.put_slice(FENCE);
    write(out);
    out.put_slice(FENCE);
    if out.len() - begin > limits::BLOCK_LEN_MAX {
        out.truncate(begin);
        return Err(BlockTooLong);
    }
    Ok(())
}

fn write_line(out: &mut BytesMut, key: &str, value: &str) {
    write_entry(out, key, value, LineBreaks::Escape);
}

/// What happened to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Something was added to its end.
    Append,
    /// It was archived.
    Archive,
    /// A version was written, or the document was taken out of the archive.
    Publish,
}

impl Op {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Archive => "archive",
            Self::Publish => "publish",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Append, Self::Archive, Self::Publish]
            .into_iter()
            .find(|op| op.as_str() == word)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The block would pass [`limits::BLOCK_LEN_MAX`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the block is longer than {} bytes", limits::BLOCK_LEN_MAX)]
pub struct BlockTooLong;
