//! What can go wrong, split by what the caller does about it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;
use wire::Seq;

/// Why a record was not made durable, or an old segment not freed.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The queue holds as much as it may. Waiting for a ticket makes room.
    #[error("journal queue is full at {bytes_max} bytes")]
    Full {
        /// The bound of the queue.
        bytes_max: usize,
    },
    /// The sequence number is not above the last one appended; the owner has a bug.
    #[error("sequence {seq} is not above {last}")]
    OutOfOrder {
        /// The number that was given.
        seq: Seq,
        /// The highest number in the journal or its queue.
        last: Seq,
    },
    /// A sync failed at some time. No write will succeed until the journal is opened again, and
    /// then the disk decides what was written.
    #[error("journal is poisoned by a failed sync")]
    Poisoned {
        /// The error of that sync.
        #[source]
        cause: Arc<io::Error>,
    },
    /// An old segment could not be removed. Nothing is lost, and the next call tries again.
    #[error("old journal segment stays")]
    Retain {
        /// The error of the storage.
        #[source]
        cause: Arc<io::Error>,
    },
    /// The payload is longer than a record may be.
    #[error("record of {len} bytes is longer than {bytes_max}")]
    TooLarge {
        /// The length of the payload.
        len: usize,
        /// The bound of a record.
        bytes_max: usize,
    },
    /// The record could not be written and is not in the journal. Later appends may succeed.
    #[error("journal write failed")]
    Write {
        /// The error of the storage.
        #[source]
        cause: Arc<io::Error>,
    },
}

/// Why a journal could neither be opened nor judged, or could not be made.
#[derive(Debug, Error)]
#[error("journal file {}", path.display())]
pub struct OpenError {
    /// The file or directory that failed.
    pub path: PathBuf,
    /// The error of the storage.
    #[source]
    pub source: io::Error,
}

impl OpenError {
    /// For `map_err`: names the path that failed.
    pub(crate) fn at(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self { path, source }
    }
}
