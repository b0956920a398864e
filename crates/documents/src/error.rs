//! Why a read, a write or an opening was refused: an enum each, a variant per thing to do about it.

use std::io;

use storage::Refusal;
use thiserror::Error;
use wire::DocPath;

use crate::draft::DraftError;

/// Why a read found nothing to give.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The document is archived; its versions can still be read by number.
    #[error("{0} is archived")]
    Archived(DocPath),
    /// Nothing that may be seen is there.
    #[error("not found")]
    NotFound,
    /// The disk failed, or the stored bytes are no version file: this document's trouble alone.
    #[error("storage: {0}")]
    Storage(#[source] io::Error),
}

/// A link in the way leads nowhere that may be seen; everything else is the disk's trouble.
impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match Refusal::of(&error) {
            Some(Refusal::Link | Refusal::Outside) => Self::NotFound,
            _ => Self::Storage(error),
        }
    }
}

/// Why a write was refused. Nothing was stored and nothing told, whichever it is.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The document is archived and the write has a body.
    #[error("document is archived; unarchive first")]
    Archived,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Another document or directory is in the way: below a document, over a directory, the root,
    /// or a name that this file system takes for the same.
    #[error("path collision: {path} is in the way")]
    Collision {
        /// What is in the way.
        path: DocPath,
    },
    /// The document is at another version than the writer expected.
    #[error("version conflict: the server has {server}, the writer expected {yours}")]
    Conflict {
        /// The current version; 0 if there is no such document.
        server: u64,
        /// The version that was expected.
        yours: u64,
    },
    /// The document breaks the contract of a draft.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// A hand-written file lies at the path; `tidings import` makes it a document.
    #[error("a file put there by hand lies at {path}; run `tidings import` to make it a document")]
    FlatFile {
        /// The file's path.
        path: DocPath,
    },
    /// There is no such document (or a link at its path leads somewhere else).
    #[error("not found")]
    NotFound,
    /// The right to write went away while the write was under way.
    #[error("the right to write was taken away")]
    NotPermitted,
    /// The journal is poisoned by a failed sync: every write is refused until a restart.
    #[error("the change journal failed and takes no more writes until a restart: {0}")]
    Poisoned(String),
    /// The disk failed or is full. The document is as it was.
    #[error("storage: {0}")]
    Storage(#[source] io::Error),
    /// The body would pass the limit of 1,048,576 bytes.
    #[error("content exceeds size limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// A link in the way leads nowhere that may be written; everything else is the disk's trouble.
impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        match Refusal::of(&error) {
            Some(Refusal::Link | Refusal::Outside) => Self::NotFound,
            _ => Self::Storage(error),
        }
    }
}

/// Why a data directory was not opened. Nothing of it was changed for the worse.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process serves the directory.
    #[error("the data directory is in use by process {process}")]
    InUse {
        /// The other process, or `unknown`.
        process: String,
    },
    /// Two documents of the older layout claim one place in the present one.
    #[error("{path} can't be moved to the present layout: its versions would lie over {other}")]
    Migration {
        /// The document that can't be moved.
        path: String,
        /// What lies there.
        other: String,
    },
    /// A file or directory can't be read: a world that silently shrank must not be told as truth.
    #[error("can't read {path}: {source}")]
    Unreadable {
        /// What can't be read.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The disk failed.
    #[error("storage: {0}")]
    Storage(#[from] io::Error),
}
