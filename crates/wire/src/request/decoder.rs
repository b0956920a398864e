//! Reads one request from pieces of any size within the limits.

use bytes::{Bytes, BytesMut};

use super::{FENCE, Malformed, Request, RequestError, Unreadable};
use crate::limits;
use crate::metadata::Metadata;
use crate::path;
use crate::verb::Verb;

/// The closing fence with the LF that ends the line before it.
const CLOSING: &[u8] = b"\n---\n";

/// Reads one request from pieces of any size.
///
/// Call [`RequestDecoder::feed`] with the bytes as they come, then [`RequestDecoder::finish`] at
/// the stream's end. After an error the rest of the stream need not be read: more input is
/// dropped and the same error comes back.
#[derive(Debug)]
pub struct RequestDecoder {
    /// What was fed and belongs to the part that `stage` names.
    buf: BytesMut,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Line,
    /// The line is read; the next bytes tell whether metadata follows.
    Fence(Line),
    /// Behind the opening fence. No closing fence begins before byte `scanned` of the buffer.
    Metadata {
        line: Line,
        scanned: usize,
    },
    /// Behind the metadata, whose bytes are `metadata`.
    Body {
        line: Line,
        metadata: Bytes,
    },
    Failed(RequestError),
}

#[derive(Clone, Debug)]
struct Line {
    verb: Verb,
    path: Bytes,
}

impl Default for RequestDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestDecoder {
    /// A decoder at the start of a stream.
    pub fn new() -> Self {
        Self {
            buf: BytesMut::new(),
            stage: Stage::Line,
        }
    }

    /// Takes the next bytes. Fails as soon as no further input can make a request of them.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), RequestError> {
        if let Stage::Failed(error) = self.stage {
            return Err(error);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            // A piece past every limit is taken in steps, so that little of it is copied.
            let (step, later) = rest.split_at(rest.len().min(self.room()));
            self.buf.extend_from_slice(step);
            rest = later;
            if let Err(error) = self.advance() {
                self.buf = BytesMut::new();
                self.stage = Stage::Failed(error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Ends the stream and gives the request.
    pub fn finish(mut self) -> Result<Request, RequestError> {
        let (line, metadata, body) = match self.stage {
            Stage::Line if self.buf.is_empty() => return Err(Unreadable::Empty.into()),
            Stage::Line => (parse_line(&self.buf.freeze())?, Bytes::new(), Bytes::new()),
            Stage::Failed(error) => return Err(error),
            Stage::Fence(line) => (line, Bytes::new(), self.buf.freeze()),
            Stage::Metadata { line, .. } => {
                if !self.buf.ends_with(b"\n---") {
                    return Err(Malformed::Unclosed.into());
                }
                let len = self.buf.len() - "---".len();
                (line, self.buf.split_to(len).freeze(), Bytes::new())
            }
            Stage::Body { line, metadata } => (line, metadata, self.buf.freeze()),
        };
        Ok(Request {
            verb: line.verb,
            path: line.path,
            metadata: Metadata::decode(&metadata).map_err(Malformed::from)?,
            body,
        })
    }

    /// How many bytes the buffer may take before the stage must look at them.
    fn room(&self) -> usize {
        let bound = match self.stage {
            // The longest line with its LF, or one byte past the longest line.
            Stage::Line => limits::LINE_LEN_MAX + 1,
            Stage::Fence(_) => FENCE.len(),
            Stage::Metadata { .. } => limits::METADATA_LEN_MAX + CLOSING.len(),
            Stage::Body { .. } => limits::BODY_LEN_MAX + 1,
            Stage::Failed(_) => 0,
        };
        bound.saturating_sub(self.buf.len()).max(1)
    }

    /// Moves from stage to stage as far as the buffer allows.
    fn advance(&mut self) -> Result<(), RequestError> {
        loop {
            let stage = std::mem::replace(&mut self.stage, Stage::Line);
            let (stage, moved) = self.step(stage)?;
            self.stage = stage;
            if !moved {
                return Ok(());
            }
        }
    }

    /// Does the work of one stage; tells whether it ended.
    fn step(&mut self, stage: Stage) -> Result<(Stage, bool), RequestError> {
        match stage {
            Stage::Line => self.step_line(),
            Stage::Fence(line) => Ok(self.step_fence(line)),
            Stage::Metadata { line, scanned } => self.step_metadata(line, scanned),
            Stage::Body { .. } if self.buf.len() > limits::BODY_LEN_MAX => {
                Err(Unreadable::BodyTooLong.into())
            }
            stage @ Stage::Body { .. } => Ok((stage, false)),
            Stage::Failed(error) => Err(error),
        }
    }

    fn step_line(&mut self) -> Result<(Stage, bool), RequestError> {
        match self.buf.iter().position(|byte| *byte == b'\n') {
            Some(len) => {
                let line = self.buf.split_to(len + 1).freeze().slice(..len);
                Ok((Stage::Fence(parse_line(&line)?), true))
            }
            None if self.buf.len() > limits::LINE_LEN_MAX => Err(Unreadable::LineTooLong.into()),
            None => Ok((Stage::Line, false)),
        }
    }

    fn step_fence(&mut self, line: Line) -> (Stage, bool) {
        if self.buf.starts_with(FENCE) {
            let _fence = self.buf.split_to(FENCE.len());
            (Stage::Metadata { line, scanned: 0 }, true)
        } else if FENCE.starts_with(&self.buf) {
            (Stage::Fence(line), false)
        } else {
            let metadata = Bytes::new();
            (Stage::Body { line, metadata }, true)
        }
    }

    fn step_metadata(&mut self, line: Line, scanned: usize) -> Result<(Stage, bool), RequestError> {
        let found = self.buf[scanned..]
            .windows(CLOSING.len())
            .position(|window| window == CLOSING);
        let len = match found {
            Some(at) => scanned + at,
            None => {
                // What may still be the beginning of a closing fence is looked at again.
                let scanned = (self.buf.len() + 1).saturating_sub(CLOSING.len());
                if scanned > limits::METADATA_LEN_MAX {
                    return Err(Unreadable::MetadataTooLong.into());
                }
                return Ok((Stage::Metadata { line, scanned }, false));
            }
        };
        if len > limits::METADATA_LEN_MAX {
            return Err(Unreadable::MetadataTooLong.into());
        }
        // The metadata keeps the LF of its last line.
        let metadata = self
            .buf
            .split_to(len + CLOSING.len())
            .freeze()
            .slice(..=len);
        Ok((Stage::Body { line, metadata }, true))
    }
}

/// Reads a line without its LF.
fn parse_line(line: &Bytes) -> Result<Line, RequestError> {
    let len = line.strip_suffix(b"\r").unwrap_or(line).len();
    let line = line.slice(..len);
    let space = line
        .iter()
        .position(|byte| *byte == b' ')
        .ok_or(Malformed::NoPath)?;
    let verb = Verb::parse(&line[..space]).ok_or(Malformed::Verb)?;
    let path = line.slice(space + 1..);
    path::check_line(&path).map_err(Malformed::from)?;
    Ok(Line { verb, path })
}
