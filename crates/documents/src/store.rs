//! The file store: what it is opened with, and what it gives back.

use std::path::Path;

use feed::Feed;
use jiff::Timestamp;
use wire::{ContentHash, Cursor, DocPath};

use crate::{
    CanRead, Change, Draft, Fetched, OpenError, ReadError, StillAllowed, Which, WriteError,
};

/// The bounds of a store.
#[derive(Clone, Debug)]
pub struct Config {
    /// Changes that a watcher can resume over; a power of two.
    pub ring_len: usize,
    /// Begin a new epoch although nothing looks wrong, after a restore below the file system.
    pub new_epoch: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ring_len: 4096,
            new_epoch: false,
        }
    }
}

/// How far an opening or an import has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Documents that are done.
    pub done: usize,
    /// Documents that are known of so far.
    pub total: usize,
}

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

/// What the store says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Why writes are refused until a restart, if they are.
    pub poisoned: Option<String>,
    /// Documents, archived ones included.
    pub documents: usize,
}

/// The file store. A cheap handle: clones share it. All methods block on the disk.
#[derive(Clone, Debug)]
pub struct FileStore(());

#[allow(unused_variables, clippy::missing_errors_doc)] // Bodies follow.
impl FileStore {
    /// Opens the data directory `root`, which must exist, and takes its lock.
    pub fn open(
        root: &Path,
        config: Config,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, OpenError> {
        todo!()
    }

    /// The changes.
    pub fn feed(&self) -> &Feed<Change> {
        todo!()
    }

    /// What `path` means.
    pub fn resolve(&self, path: &DocPath) -> Resolved {
        todo!()
    }

    /// Reads a version of the document at `path`.
    pub fn fetch(&self, path: &DocPath, which: Which) -> Result<Fetched, ReadError> {
        todo!()
    }

    /// Reads a version with this content hash that the caller may read: the current one of a live
    /// document if there is one, of several the one with the smallest path.
    pub fn fetch_by_hash(
        &self,
        hash: &ContentHash,
        can_read: CanRead<'_>,
    ) -> Result<Fetched, ReadError> {
        todo!()
    }

    /// Reads a part of a directory.
    pub fn list(
        &self,
        dir: &DocPath,
        request: &ListRequest,
        can_read: CanRead<'_>,
    ) -> Result<ListPage, ReadError> {
        todo!()
    }

    /// Reads a part of a document's history and checks its whole chain.
    pub fn versions(
        &self,
        path: &DocPath,
        request: &VersionsRequest,
    ) -> Result<VersionsPage, ReadError> {
        todo!()
    }

    /// Writes a version, or unarchives if the draft's body is empty.
    ///
    /// `expected` is the version the writer knows: 0 for none, `None` for whatever is there.
    pub fn publish(
        &self,
        draft: Draft,
        expected: Option<u64>,
        still_allowed: StillAllowed<'_>,
    ) -> Result<Written, WriteError> {
        todo!()
    }

    /// Writes a version that is version `expected` and the draft's body.
    pub fn append(
        &self,
        draft: Draft,
        expected: u64,
        still_allowed: StillAllowed<'_>,
    ) -> Result<Written, WriteError> {
        todo!()
    }

    /// Archives the document at `path`.
    pub fn archive(
        &self,
        path: &DocPath,
        still_allowed: StillAllowed<'_>,
    ) -> Result<Written, WriteError> {
        todo!()
    }

    /// What the store says of itself.
    pub fn health(&self) -> Health {
        todo!()
    }

    /// Ends the feed, notes what is known of the tree for the next opening, releases the lock.
    /// Writes that come later are refused.
    pub fn close(&self) -> Result<(), OpenError> {
        todo!()
    }
}
