//! Where a journal lies and what bounds it.

use std::path::PathBuf;

use crate::format::BYTES_CEILING;

/// Where a journal lies and what bounds it.
#[derive(Clone, Debug)]
pub struct Config {
    /// The directory of the segments, relative to the root of the storage. It must not be the root
    /// itself, and its parent must exist.
    pub dir: PathBuf,
    /// A batch that would make a segment longer than this begins the next one. Whole segments are
    /// what [`Journal::retain_from`](crate::Journal::retain_from) can free.
    pub segment_bytes_max: u64,
    /// What may be queued and not yet written; more is refused with
    /// [`JournalError::Full`](crate::JournalError::Full).
    pub queue_bytes_max: usize,
    /// The longest payload; a longer one is refused with
    /// [`JournalError::TooLarge`](crate::JournalError::TooLarge).
    pub record_bytes_max: usize,
}

impl Config {
    /// Eight MiB hold some 40,000 changes of documents, ten times the default ring, and are read
    /// in tens of milliseconds at a start.
    pub const SEGMENT_BYTES_MAX: u64 = 8 << 20;
    /// As much as a segment, so that a batch is never the larger of the two.
    pub const QUEUE_BYTES_MAX: usize = 8 << 20;
    /// A change of a document is below 8 KiB: a path, an agent, two hashes. The rest is room.
    pub const RECORD_BYTES_MAX: usize = 1 << 20;

    /// The default bounds for the journal in `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            segment_bytes_max: Self::SEGMENT_BYTES_MAX,
            queue_bytes_max: Self::QUEUE_BYTES_MAX,
            record_bytes_max: Self::RECORD_BYTES_MAX,
        }
    }

    /// The same with both byte bounds no higher than the offsets of the format reach.
    pub(crate) fn clamped(mut self) -> Self {
        self.segment_bytes_max = self.segment_bytes_max.min(BYTES_CEILING as u64);
        self.queue_bytes_max = self.queue_bytes_max.min(BYTES_CEILING);
        self
    }
}
