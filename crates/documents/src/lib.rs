//! Versioned documents over plain files, with a change for every write.
//!
//! [`FileStore`] keeps a tree of documents in the layout of the Mark specification, an index of
//! it in memory, a journal of what was committed, and a [`feed::Feed`] that tells it. Every method
//! blocks on the disk, so an async caller goes through a thread that may block; none of them is
//! cancelled half-way. Rights are the caller's: it checks before it calls, hands in a closure for
//! what the store has to ask again, and gets nothing it did not ask for.

mod answer;
mod checkpoint;
mod commit;
mod dirs;
mod draft;
mod edit;
mod error;
mod header;
mod import;
mod landing;
mod layout;
mod migrate;
mod open;
mod path_locks;
mod read;
mod record;
mod store;
mod temp;
mod undo;
mod version_file;
mod write;

mod importance;
mod index;
mod inspect;
mod listing;
mod lookup;
mod markdown;
mod title;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use wire::{ContentHash, DocPath};

pub use answer::{
    Current, ListEntry, ListPage, ListRequest, Outcome, Resolved, VersionsPage, VersionsRequest,
    Written,
};
pub use draft::{Draft, DraftError, MetadataError};
pub use error::{OpenError, ReadError, WriteError};
pub use import::{Candidate, Existing, Folder, ImportError, ImportVisit};
pub use inspect::{CheckpointState, Inspection, inspect};
pub use journal::Inspected as JournalState;
pub use listing::{Detail, Listing};
pub use lookup::{Lookup, LookupError, LookupRequest, Match, Matches, Table};
pub use open::{Difference, Report};
pub use store::{Config, FileStore, Health, Progress, Stats};

/// What happened to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A version was made by APPEND.
    Append,
    /// The document was archived.
    Archive,
    /// A version was made by PUBLISH, or the document was unarchived.
    Publish,
}

/// A committed write, as the feed carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What happened.
    pub op: Op,
    /// Which document.
    pub path: DocPath,
    /// Its current version after the write.
    pub version: u64,
    /// The hash of that version's body.
    pub hash: ContentHash,
    /// Who wrote, as the write's metadata said.
    pub agent: Option<Arc<str>>,
}

impl feed::Change for Change {
    fn name(&self) -> &str {
        self.path.as_str()
    }
}

/// Publisher metadata of a version: bare keys (without `meta.`) to values.
pub type PublisherMetadata = BTreeMap<String, String>;

/// A version as it is stored, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionInfo {
    /// Its number, from 1.
    pub version: u64,
    /// The hash of the body.
    pub content_hash: ContentHash,
    /// The hash of the whole stored file, which is the etag.
    pub file_hash: ContentHash,
    /// The modification time of the stored file.
    pub modified: Timestamp,
    /// What the publisher said of it.
    pub metadata: Arc<PublisherMetadata>,
}

/// A version with its body.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Where it was found.
    pub path: DocPath,
    /// The version.
    pub info: VersionInfo,
    /// The document's current version number.
    pub current: u64,
    /// The document is archived.
    pub archived: bool,
    /// The body, byte for byte.
    pub body: Bytes,
}

/// What a read finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The current version.
    Current,
    /// One version by number.
    Version(u64),
}

/// A caller's right to see a path, asked per entry of a listing or a search.
pub type CanRead<'a> = &'a dyn Fn(&DocPath) -> bool;

/// The right to write, asked once more under the commit lock; false refuses the write.
pub type StillAllowed<'a> = &'a dyn Fn() -> bool;
