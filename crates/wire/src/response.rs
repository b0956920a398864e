//! Answers: a status, metadata and a body.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

use crate::limits;
use crate::metadata::{Metadata, MetadataError};
use crate::status::Status;

/// The metadata key of the status.
const STATUS: &str = "status";

/// The metadata key in which a refusal repeats its text for clients that don't read bodies.
const MESSAGE: &str = "message";

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The outcome.
    pub status: Status,
    /// What the answer says beside the outcome; a `status` key in here is not sent unless
    /// `status` is [`Status::Unknown`].
    pub metadata: Metadata,
    /// The bytes after the closing fence.
    pub body: Bytes,
}

impl Response {
    /// An answer that is its status alone.
    pub const fn new(status: Status) -> Self {
        Self {
            status,
            metadata: Metadata::new(),
            body: Bytes::new(),
        }
    }

    /// A refusal: the status, and a page that names it and says `message`.
    pub fn error(status: Status, message: &str) -> Self {
        let body = format!("\n# {}\n\n{message}\n", status.title());
        Self {
            body: body.into(),
            ..Self::new(status)
        }
    }

    /// The same answer with one more entry of metadata.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.metadata.set(key, value);
        self
    }

    /// The same answer with this body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// What a refusal says: its `message` key, else the text under the heading of its body.
    pub fn message(&self) -> Option<&str> {
        if let Some(message) = self.metadata.get(MESSAGE) {
            return Some(message);
        }
        let body = std::str::from_utf8(&self.body).ok()?;
        let (heading, text) = body.trim_start().split_once("\n\n")?;
        heading
            .starts_with("# ")
            .then(|| text.trim_end())
            .filter(|text| !text.is_empty())
    }

    /// The bytes on the wire.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.head_len_guess() + self.body.len());
        self.encode_head_into(&mut out);
        out.put_slice(&self.body);
        out.freeze()
    }

    /// Appends everything but the body, for callers that send a shared body by itself.
    pub fn encode_head_into(&self, out: &mut BytesMut) {
        if self.status == Status::Unknown && self.metadata.is_empty() {
            return;
        }
        out.put_slice(b"---\n");
        if self.status == Status::Unknown {
            self.metadata.encode_into(out);
        } else {
            let mut metadata = self.metadata.clone();
            metadata.set(STATUS, self.status.as_str());
            metadata.encode_into(out);
        }
        out.put_slice(b"---\n");
    }

    fn head_len_guess(&self) -> usize {
        // Quotes and escapes rarely add more than this to a line, fences and status included.
        const ENTRY_EXTRA: usize = 8;
        const FRAME: usize = 32;
        self.metadata
            .iter()
            .map(|(key, value)| key.len() + value.len() + ENTRY_EXTRA)
            .sum::<usize>()
            + FRAME
    }

    /// Reads a whole answer. Keys may come in any order.
    ///
    /// Bytes that don't begin with a fence are a body with [`Status::Unknown`]; so is a status
    /// outside the list, which then stays in the metadata.
    pub fn decode(bytes: &Bytes) -> Result<Self, ResponseError> {
        if bytes.len() > limits::RESPONSE_LEN_MAX {
            return Err(ResponseError::TooLong);
        }
        if !bytes.starts_with(b"---\n") {
            return Ok(Self::new(Status::Unknown).with_body(bytes.clone()));
        }
        let (metadata, body) = split_front_matter(bytes).ok_or(ResponseError::Unclosed)?;
        let mut metadata = Metadata::decode(metadata)?;
        let status = metadata.get(STATUS).and_then(Status::parse);
        if status.is_some() {
            metadata.remove(STATUS);
        }
        Ok(Self {
            status: status.unwrap_or(Status::Unknown),
            metadata,
            body,
        })
    }
}

/// Splits behind an opening fence at the closing one, which may end the stream.
fn split_front_matter(bytes: &Bytes) -> Option<(&[u8], Bytes)> {
    const OPENING_LEN: usize = "---\n".len();
    let rest = &bytes[OPENING_LEN..];
    if rest.starts_with(b"---\n") {
        return Some((&[], bytes.slice(OPENING_LEN * 2..)));
    }
    let closing = b"\n---\n";
    if let Some(at) = rest
        .windows(closing.len())
        .position(|window| window == closing)
    {
        let body = bytes.slice(OPENING_LEN + at + closing.len()..);
        return Some((&rest[..=at], body));
    }
    let metadata = rest.strip_suffix(b"---")?;
    metadata.ends_with(b"\n").then(|| (metadata, Bytes::new()))
}

/// Why bytes are no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResponseError {
    /// What stands between the fences is no metadata.
    #[error("the answer's metadata can't be read: {0}")]
    Metadata(#[from] MetadataError),
    /// More than [`limits::RESPONSE_LEN_MAX`] bytes.
    #[error("the answer is longer than {} bytes", limits::RESPONSE_LEN_MAX)]
    TooLong,
    /// The metadata has no closing fence: the answer was cut.
    #[error("the answer's metadata has no end")]
    Unclosed,
}
