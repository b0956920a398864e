//! What a store is asked for and what it gives back.

use jiff::Timestamp;
use wire::{ContentHash, Cursor, DocPath};

/// What a path means, seen from what is there. It says nothing of rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// `/sha256-<hash>`.
    ContentAddress(ContentHash),
    /// A directory that holds documents at some depth (or the root).
    Directory(DocPath),
    /// A document, archived or not.
    Document(DocPath),
    /// Nothing.
    Nothing(DocPath),
    /// A version of the document at the path. `None` is a number that no version can have. Rights
    /// are those of the document; it need not exist.
    Version(DocPath, Option<u64>),
}

/// What a document is at, without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// The current version.
    pub version: u64,
    /// The hash of its body.
    pub hash: ContentHash,
    /// The document is archived.
    pub archived: bool,
}

/// What of a directory is wanted.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// At most so many entries, 1 to 1000.
    pub page_size: usize,
    /// Only names after this one, in byte order.
    pub after: Option<String>,
    /// Archived documents too.
    pub include_archived: bool,
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListEntry {
    /// The name without a slash.
    pub name: String,
    /// The current version and its content hash; `None` for a directory.
    pub document: Option<(u64, ContentHash)>,
    /// The document is archived.
    pub archived: bool,
}

/// A part of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage {
    /// The entries in byte order of their names.
    pub entries: Vec<ListEntry>,
    /// Nothing follows the last entry.
    pub complete: bool,
}

/// What of a document's history is wanted.
#[derive(Clone, Copy, Debug)]
pub struct VersionsRequest {
    /// At most so many versions.
    pub page_size: usize,
    /// Only versions below this one.
    pub before: Option<u64>,
}

/// A part of a document's history, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionsPage {
    /// The current version.
    pub current: u64,
    /// How many versions there are.
    pub total: u64,
    /// Every version that has a predecessor names that one's hash.
    pub chain_valid: bool,
    /// The document is archived.
    pub archived: bool,
    /// Number, time and content hash of the versions of this page.
    pub versions: Vec<(u64, Timestamp, ContentHash)>,
    /// Nothing follows the last one.
    pub complete: bool,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The document is archived, and was not before.
    Archived,
    /// A version was made.
    Created,
    /// The document is live again.
    Unarchived,
    /// Everything was as asked for already; nothing was written and nothing told.
    Unchanged,
}

/// A write that is done: durable, told, readable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// What became of it.
    pub outcome: Outcome,
    /// The current version.
    pub version: u64,
    /// The modification time of that version's file.
    pub modified: Timestamp,
    /// The hash of that version's body.
    pub hash: ContentHash,
    /// A position at or after the change that told it.
    pub cursor: Cursor,
}
