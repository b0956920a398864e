//! Reads watch blocks from pieces of any size, without allocating.

use std::ops::Range;

use thiserror::Error;

use super::{
    AGENT, CURSOR, Control, Event, FENCE, HASH, MESSAGE, OP, Op, PATH, REASON, RETRY_AFTER, STATUS,
    VERSION,
};
use crate::cursor::{CursorRef, GapReason};
use crate::hash::ContentHash;
use crate::limits;
use crate::metadata::EntryReader;
use crate::path::{self, DocPath};
use crate::status::Status;

/// Decoded text is at most this many times as long as it stands in a block: the two bytes of an
/// escaped line separator become three.
const DECODED_GROWTH: usize = 2;

/// Reads watch blocks from pieces of any size.
///
/// Both buffers are made once and never grow, so reading doesn't allocate; a view borrows from
/// them and lasts until the next call. A stream with a bad block is not to be trusted further:
/// drop it and watch again from the last cursor. Where the framing is lost the same error comes
/// back for good.
#[derive(Debug)]
pub struct BlockReader {
    /// The block so far, with its fences.
    block: Vec<u8>,
    /// Where the last line of `block` begins.
    line_start: usize,
    stage: Stage,
    /// The decoded values of the block that was given out.
    values: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// `block` is being filled.
    Filling,
    /// `block` is whole and was given out.
    Given,
    Failed(BlockError),
}

impl Default for BlockReader {
    fn default() -> Self {
        Self::new()
    }
}

impl BlockReader {
    /// A reader at the start of a stream.
    pub fn new() -> Self {
        Self {
            block: Vec::with_capacity(limits::BLOCK_LEN_MAX),
            line_start: 0,
            stage: Stage::Filling,
            values: String::with_capacity(limits::BLOCK_LEN_MAX * DECODED_GROWTH),
        }
    }

    /// Takes bytes from the front of `input` up to the end of one block.
    ///
    /// Gives the block, or `None` once `input` is used up in the middle of one.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<BlockView<'_>>, BlockError> {
        match self.stage {
            Stage::Filling => {}
            Stage::Given => {
                self.block.clear();
                self.line_start = 0;
                self.stage = Stage::Filling;
            }
            Stage::Failed(error) => return Err(error),
        }
        match self.fill(input) {
            Ok(false) => Ok(None),
            Ok(true) => {
                self.stage = Stage::Given;
                self.view().map(Some)
            }
            Err(error) => {
                self.stage = Stage::Failed(error);
                Err(error)
            }
        }
    }

    /// True if the stream may end here: no block has begun.
    pub const fn is_between_blocks(&self) -> bool {
        match self.stage {
            Stage::Filling => self.block.is_empty(),
            Stage::Given => true,
            Stage::Failed(_) => false,
        }
    }

    /// Takes bytes up to the end of a block; tells whether it came.
    fn fill(&mut self, input: &mut &[u8]) -> Result<bool, BlockError> {
        while !input.is_empty() {
            if self.take_line(input)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes bytes up to the end of a line; tells whether it closed the block.
    fn take_line(&mut self, input: &mut &[u8]) -> Result<bool, BlockError> {
        let end = input.iter().position(|byte| *byte == b'\n');
        let (piece, rest) = input.split_at(end.map_or(input.len(), |end| end + 1));
        if self.block.len() + piece.len() > limits::BLOCK_LEN_MAX {
            return Err(BlockError::TooLong);
        }
        self.block.extend_from_slice(piece);
        *input = rest;
        if end.is_none() {
            return Ok(false);
        }
        let line = &self.block[self.line_start..];
        let is_fence = line == FENCE;
        let is_first = self.line_start == 0;
        self.line_start = self.block.len();
        match (is_first, is_fence) {
            (true, false) => Err(BlockError::NoFence),
            (true, true) => Ok(false),
            (false, is_fence) => Ok(is_fence),
        }
    }

    fn view(&mut self) -> Result<BlockView<'_>, BlockError> {
        let inner = &self.block[FENCE.len()..self.block.len() - FENCE.len()];
        let text = std::str::from_utf8(inner).map_err(|_| BlockError::Grammar)?;
        let fields = Fields::read(text, &mut self.values)?;
        fields.view(&self.values)
    }
}

/// Where the values of the known keys lie in the decoded text.
#[derive(Debug, Default)]
struct Fields {
    agent: Option<Range<usize>>,
    cursor: Option<Range<usize>>,
    hash: Option<Range<usize>>,
    message: Option<Range<usize>>,
    op: Option<Range<usize>>,
    path: Option<Range<usize>>,
    reason: Option<Range<usize>>,
    retry_after: Option<Range<usize>>,
    status: Option<Range<usize>>,
    version: Option<Range<usize>>,
}

impl Fields {
    fn read(text: &str, values: &mut String) -> Result<Self, BlockError> {
        values.clear();
        let mut fields = Self::default();
        let mut reader = EntryReader::new(text).map_err(|_| BlockError::Grammar)?;
        while let Some(entry) = reader.next().map_err(|_| BlockError::Grammar)? {
            let begin = values.len();
            entry
                .key
                .decode_into(values)
                .map_err(|_| BlockError::Grammar)?;
            let field = fields.named(&values[begin..]);
            values.truncate(begin);
            entry
                .value
                .decode_into(values)
                .map_err(|_| BlockError::Grammar)?;
            match field {
                Some(Some(_)) => return Err(BlockError::Grammar),
                Some(field @ None) => *field = Some(begin..values.len()),
                None => values.truncate(begin),
            }
        }
        Ok(fields)
    }

    fn named(&mut self, key: &str) -> Option<&mut Option<Range<usize>>> {
        Some(match key {
            AGENT => &mut self.agent,
            CURSOR => &mut self.cursor,
            HASH => &mut self.hash,
            MESSAGE => &mut self.message,
            OP => &mut self.op,
            PATH => &mut self.path,
            REASON => &mut self.reason,
            RETRY_AFTER => &mut self.retry_after,
            STATUS => &mut self.status,
            VERSION => &mut self.version,
            _ => return None,
        })
    }

    fn view(self, values: &str) -> Result<BlockView<'_>, BlockError> {
        let text = |range: Option<Range<usize>>| range.map(|range| &values[range]);
        let cursor = text(self.cursor)
            .map(CursorRef::parse)
            .transpose()
            .map_err(|_| BlockError::Cursor)?;
        if let Some(status) = text(self.status) {
            return Ok(BlockView::Control(ControlView {
                status: Status::parse(status).unwrap_or(Status::Unknown),
                cursor,
                message: text(self.message),
                reason: text(self.reason).and_then(GapReason::parse),
                retry_after_ms: text(self.retry_after).and_then(|text| text.parse().ok()),
            }));
        }
        let hash = text(self.hash)
            .map(ContentHash::parse)
            .transpose()
            .map_err(|_| BlockError::Hash)?;
        Ok(BlockView::Event(EventView {
            cursor: cursor.ok_or(BlockError::Cursor)?,
            op: text(self.op)
                .filter(|op| !op.is_empty())
                .ok_or(BlockError::Op)?,
            path: text(self.path)
                .filter(|path| path::check(path.as_bytes()).is_ok())
                .ok_or(BlockError::Path)?,
            version: text(self.version)
                .and_then(|text| text.parse().ok())
                .filter(|version| *version >= 1)
                .ok_or(BlockError::Version)?,
            hash,
            agent: text(self.agent),
        }))
    }
}

/// A block that was read, borrowed from its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockView<'a> {
    /// A word about the watch itself.
    Control(ControlView<'a>),
    /// A change in its scope.
    Event(EventView<'a>),
}

/// A [`Control`] that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlView<'a> {
    /// The status; [`Status::Unknown`] for a word outside the list, which ends the watch too.
    pub status: Status,
    /// The position.
    pub cursor: Option<CursorRef<'a>>,
    /// A text for people.
    pub message: Option<&'a str>,
    /// Why something was missed, if the server says so in a word that is known.
    pub reason: Option<GapReason>,
    /// When to come back, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl ControlView<'_> {
    /// A copy that outlives the reader.
    pub fn to_control(&self) -> Control {
        Control {
            status: self.status,
            cursor: self.cursor.map(|cursor| cursor.to_cursor()),
            message: self.message.map(str::to_owned),
            reason: self.reason,
            retry_after_ms: self.retry_after_ms,
        }
    }
}

/// An [`Event`] that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventView<'a> {
    /// Its position.
    pub cursor: CursorRef<'a>,
    /// The word for what happened, which may be one that isn't known.
    pub op: &'a str,
    /// A legal path, in the server's spelling.
    pub path: &'a str,
    /// The version, at least 1.
    pub version: u64,
    /// The hash of the body.
    pub hash: Option<ContentHash>,
    /// Who wrote.
    pub agent: Option<&'a str>,
}

impl EventView<'_> {
    /// A copy that outlives the reader, or `None` if what happened isn't known.
    ///
    /// An unknown event is skipped, but its cursor counts.
    pub fn to_event(&self) -> Option<Event> {
        Some(Event {
            cursor: self.cursor.to_cursor(),
            op: Op::parse(self.op)?,
            path: DocPath::parse(self.path).ok()?,
            version: self.version,
            hash: self.hash,
            agent: self.agent.map(str::to_owned),
        })
    }
}

/// Why bytes are no block. Each means: drop the stream, watch again from the last cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BlockError {
    /// An event without a cursor, or a cursor that is none.
    #[error("a watch block has no legal cursor")]
    Cursor,
    /// What stands between the fences is no flat map.
    #[error("a watch block is no flat map")]
    Grammar,
    /// The hash is none.
    #[error("a watch block has no legal hash")]
    Hash,
    /// The first line is no fence.
    #[error("a watch block does not begin with a fence")]
    NoFence,
    /// An event that doesn't say what happened.
    #[error("a watch block has no op")]
    Op,
    /// An event without a path, or a path that is none.
    #[error("a watch block has no legal path")]
    Path,
    /// More than [`limits::BLOCK_LEN_MAX`] bytes.
    #[error("a watch block is longer than {} bytes", limits::BLOCK_LEN_MAX)]
    TooLong,
    /// An event without a version, or with version 0.
    #[error("a watch block has no legal version")]
    Version,
}
