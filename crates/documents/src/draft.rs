//! A write before it meets the store: the document contract, checked in one fixed order.
//!
//! A [`Draft`] that exists keeps the contract, so the store checks only what depends on what is
//! there. The order of the checks is the wire's: path, body, empty body, metadata; of several
//! faults in the metadata the first in key order is named.

use bytes::Bytes;
use thiserror::Error;
use wire::DocPath;
use wire::limits::{BODY_LEN_MAX, PUBLISHER_KEYS_MAX, PUBLISHER_LEN_MAX};

use crate::PublisherMetadata;

/// The key that asks for the removal of old versions; it is obeyed and not stored.
const RETENTION: &str = "retention";
const TYPE: &str = "type";
const DEFAULT_TYPE: &str = "Document";
/// Names of documents that get no type of their own.
const UNTYPED: [&str; 2] = ["index.md", "log.md"];
/// The keys that only the server may say.
const RESERVED: [&str; 17] = [
    "archived",
    "chain-error",
    "chain-valid",
    "content-hash",
    "current",
    "current-version",
    "entries",
    "etag",
    "match",
    "matches",
    "modified",
    "previous-hash",
    "server-version",
    "status",
    "total",
    "version",
    "your-version",
];

/// A document as somebody wants it to be written.
#[derive(Clone, Debug)]
pub struct Draft {
    pub(crate) path: DocPath,
    pub(crate) body: Bytes,
    pub(crate) metadata: PublisherMetadata,
    pub(crate) retention: Option<u64>,
}

impl Draft {
    /// A whole document for [`crate::FileStore::publish`]. An empty body asks for unarchiving, and
    /// its metadata is not looked at.
    ///
    /// `metadata` is what the request carries without its control keys.
    pub fn publish<'a>(
        path: DocPath,
        body: Bytes,
        metadata: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, DraftError> {
        check_path(&path)?;
        check_body(&body)?;
        if body.is_empty() {
            return Ok(Self::bare(path, body));
        }
        Self::with_metadata(path, body, metadata)
    }

    /// What [`crate::FileStore::append`] is to add to the end of a document.
    pub fn append<'a>(
        path: DocPath,
        body: Bytes,
        metadata: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, DraftError> {
        check_path(&path)?;
        check_body(&body)?;
        if body.is_empty() {
            return Err(DraftError::EmptyAppend);
        }
        Self::with_metadata(path, body, metadata)
    }

    /// The document that is meant.
    pub fn path(&self) -> &DocPath {
        &self.path
    }

    /// Says of a document without a type that it is one; indexes and logs speak for themselves.
    pub(crate) fn add_default_type(&mut self) {
        if !UNTYPED.contains(&self.path.name()) {
            let entry = self.metadata.entry(TYPE.to_owned());
            entry.or_insert_with(|| DEFAULT_TYPE.to_owned());
        }
    }

    /// True if `metadata` says what this draft says, however its tags are spaced (D5).
    pub(crate) fn says_the_same_as(&self, metadata: &PublisherMetadata) -> bool {
        self.metadata.len() == metadata.len()
            && self.metadata.iter().zip(metadata).all(|(ours, theirs)| {
                ours.0 == theirs.0 && *ours.1 == stored_value(theirs.0, theirs.1)
            })
    }

    fn bare(path: DocPath, body: Bytes) -> Self {
        Self {
            path,
            body,
            metadata: PublisherMetadata::new(),
            retention: None,
        }
    }

    fn with_metadata<'a>(
        path: DocPath,
        body: Bytes,
        metadata: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, DraftError> {
        let mut metadata: PublisherMetadata = metadata
            .into_iter()
            .map(|(key, value)| (key.to_owned(), stored_value(key, value)))
            .collect();
        check_metadata(&metadata)?;
        let retention = metadata
            .remove(RETENTION)
            .map(|value| parse_retention(&value))
            .transpose()?;
        Ok(Self {
            path,
            body,
            metadata,
            retention,
        })
    }
}

/// Why a document breaks the contract.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DraftError {
    /// The body of an append is empty.
    #[error("append requires a body")]
    EmptyAppend,
    /// A fault in the metadata.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The name doesn't end in `.md`.
    #[error("publish path must end in .md")]
    NotMarkdown,
    /// The body isn't UTF-8.
    #[error("document body must be valid UTF-8 text")]
    NotUtf8,
    /// A segment is named `versions` or lies in the server's own directory, or the path is a
    /// content address or a version of a document.
    #[error("the path is reserved: {0}")]
    ReservedPath(&'static str),
    /// `retention` is no positive integer.
    #[error("retention must be a positive integer")]
    Retention,
    /// The body is over the limit.
    #[error("document body exceeds {BODY_LEN_MAX} bytes")]
    TooLarge,
}

/// Why publisher metadata is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// A key has a character outside `[a-z0-9-]`, or none at all.
    #[error("metadata key {0:?} contains invalid characters")]
    Key(String),
    /// A value has a line break.
    #[error("metadata value for key {0:?} contains newlines")]
    Newline(String),
    /// Only the server may say this key.
    #[error("metadata key {0:?} is reserved")]
    Reserved(String),
    /// Keys and values are too long together.
    #[error("metadata too large (max {PUBLISHER_LEN_MAX} bytes)")]
    TooLarge,
    /// There are too many keys.
    #[error("too many metadata keys (max {PUBLISHER_KEYS_MAX})")]
    TooMany,
}

fn check_path(path: &DocPath) -> Result<(), DraftError> {
    if path.segments().next() == Some(crate::layout::OWN_DIR) {
        return Err(DraftError::ReservedPath("it is the server's own"));
    }
    if path
        .segments()
        .any(|name| name == crate::layout::VERSIONS_DIR)
    {
        return Err(DraftError::ReservedPath(
            "a segment named `versions` holds versions",
        ));
    }
    if !path.name().ends_with(".md") {
        return Err(DraftError::NotMarkdown);
    }
    Ok(())
}

fn check_body(body: &[u8]) -> Result<(), DraftError> {
    if body.len() > BODY_LEN_MAX {
        return Err(DraftError::TooLarge);
    }
    match std::str::from_utf8(body) {
        Ok(_) => Ok(()),
        Err(_) => Err(DraftError::NotUtf8),
    }
}

fn check_metadata(metadata: &PublisherMetadata) -> Result<(), MetadataError> {
    for (key, value) in metadata {
        let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if key.is_empty() || !key.bytes().all(legal) {
            return Err(MetadataError::Key(key.clone()));
        }
        if RESERVED.contains(&key.as_str()) {
            return Err(MetadataError::Reserved(key.clone()));
        }
        if value.contains(['\n', '\r']) {
            return Err(MetadataError::Newline(key.clone()));
        }
    }
    check_metadata_size(metadata)
}

/// Checks the bounds alone: laying one set of metadata over another can pass them.
pub(crate) fn check_metadata_size(metadata: &PublisherMetadata) -> Result<(), MetadataError> {
    if metadata.len() > PUBLISHER_KEYS_MAX {
        return Err(MetadataError::TooMany);
    }
    let len: usize = metadata
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if len > PUBLISHER_LEN_MAX {
        return Err(MetadataError::TooLarge);
    }
    Ok(())
}

/// A value as it is stored: tags are kept without the spaces around their commas.
fn stored_value(key: &str, value: &str) -> String {
    if key != "tags" {
        return value.to_owned();
    }
    let tags: Vec<&str> = value
        .split(',')
        .map(str::trim)
        .filter(|tag| !tag.is_empty())
        .collect();
    tags.join(",")
}

fn parse_retention(value: &str) -> Result<u64, DraftError> {
    match value.parse() {
        Ok(0) | Err(_) => Err(DraftError::Retention),
        Ok(keep) => Ok(keep),
    }
}
