//! Requests: one line, perhaps metadata, and a body up to the stream's end.
//!
//! [`RequestDecoder`] takes the bytes as they come and fails as soon as the line is malformed or
//! a limit is passed; it never holds more than the limits allow. What can be judged only with
//! the whole request, such as the metadata, is judged at the stream's end, so a size error comes
//! before any other error of the payload.

mod decoder;

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

pub use decoder::RequestDecoder;

use crate::limits;
use crate::metadata::{Metadata, MetadataError};
use crate::path::{self, PathError};
use crate::response::Response;
use crate::status::Status;
use crate::verb::Verb;

const FENCE: &[u8] = b"---\n";

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub verb: Verb,
    /// With which path, as the client spelled it; `Target::parse` makes it canonical.
    pub path: Bytes,
    /// Control keys, and for writes what the publisher says of the document.
    pub metadata: Metadata,
    /// The bytes after the metadata.
    pub body: Bytes,
}

impl Request {
    /// A request without metadata and body.
    pub fn new(verb: Verb, path: impl Into<Bytes>) -> Self {
        Self {
            verb,
            path: path.into(),
            metadata: Metadata::new(),
            body: Bytes::new(),
        }
    }

    /// The same request with one more entry of metadata.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.metadata.set(key, value);
        self
    }

    /// The same request with this body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// The bytes on the wire, or the error that a server would find in them.
    pub fn encode(&self) -> Result<Bytes, RequestError> {
        path::check_line(&self.path).map_err(Malformed::from)?;
        let verb = self.verb.as_str();
        if verb.len() + 1 + self.path.len() > limits::LINE_LEN_MAX {
            return Err(Unreadable::LineTooLong.into());
        }
        if self.body.len() > limits::BODY_LEN_MAX {
            return Err(Unreadable::BodyTooLong.into());
        }
        let mut out = BytesMut::with_capacity(limits::LINE_LEN_MAX + self.body.len());
        out.put_slice(verb.as_bytes());
        out.put_u8(b' ');
        out.put_slice(&self.path);
        out.put_u8(b'\n');
        self.encode_metadata_into(&mut out)?;
        out.put_slice(&self.body);
        Ok(out.freeze())
    }

    fn encode_metadata_into(&self, out: &mut BytesMut) -> Result<(), RequestError> {
        if !self.metadata.is_empty() {
            out.put_slice(FENCE);
            let begin = out.len();
            self.metadata.encode_into(out);
            // The last LF belongs to the closing fence.
            if out.len() - begin - 1 > limits::METADATA_LEN_MAX {
                return Err(Unreadable::MetadataTooLong.into());
            }
            out.put_slice(FENCE);
        } else if self.body.starts_with(FENCE) {
            // Without an empty block the body's own fence would open the metadata.
            out.put_slice(b"---\n\n---\n");
        }
        Ok(())
    }
}

/// Why bytes are no request. The two families are answered with different statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The request was read and breaks the grammar.
    #[error("bad request: {0}")]
    Malformed(#[from] Malformed),
    /// The request was not read to its end.
    #[error("could not read request: {0}")]
    Unreadable(#[from] Unreadable),
}

impl RequestError {
    /// The status of the answer.
    pub const fn status(self) -> Status {
        match self {
            Self::Malformed(_) => Status::BadRequest,
            Self::Unreadable(_) => Status::ServerError,
        }
    }

    /// The answer, which names the cause.
    pub fn response(self) -> Response {
        Response::error(self.status(), &self.to_string())
    }
}

/// A request that breaks the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// What stands between the fences is no flat map.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The line has no space, so no path.
    #[error("the line has no path")]
    NoPath,
    /// The path is empty, relative, too long or has a control character.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The metadata has no closing fence.
    #[error("metadata has no closing fence")]
    Unclosed,
    /// The first word is no verb.
    #[error("unknown verb")]
    Verb,
}

/// A request that was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// The body passes [`limits::BODY_LEN_MAX`].
    #[error("the body is longer than {} bytes", limits::BODY_LEN_MAX)]
    BodyTooLong,
    /// Nothing came before the stream's end.
    #[error("it is empty")]
    Empty,
    /// The stream was reset, or the request's time ran out, before its end. Only the owner of
    /// the stream makes this one.
    #[error("it was not complete in time")]
    Incomplete,
    /// The line passes [`limits::LINE_LEN_MAX`].
    #[error("the line is longer than {} bytes", limits::LINE_LEN_MAX)]
    LineTooLong,
    /// The metadata passes [`limits::METADATA_LEN_MAX`].
    #[error("metadata is longer than {} bytes", limits::METADATA_LEN_MAX)]
    MetadataTooLong,
}
