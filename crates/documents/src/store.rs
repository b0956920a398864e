//! The file store: its parts and its life.
//!
//! **Promises.** What a write returned is durable, told and readable (P1, P8); what a watcher was
//! told comes in commit order (P6); what it was not told, a gap tells (P3). Reads never wait for
//! the disk work of a write.
//!
//! **When the disk is full or fails**, the write is refused and leaves no trace; the next one may
//! work. A journal whose sync failed takes no more writes until it is opened again, while reads and
//! watches go on. **When it is killed**, the next opening finishes or takes back what was begun.
//!
//! **Who may call it.** Any thread that may block. The bounds are those of a draft, of the ring and
//! of the journal's queue.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use feed::Feed;
use storage::{Disk, Lock, Storage};

use crate::commit::Committer;
use crate::dirs::Dirs;
use crate::index::Index;
use crate::open::{self, Report};
use crate::path_locks::PathLocks;
use crate::temp::Temps;
use crate::{Change, OpenError, checkpoint};

/// The bounds of a store.
#[derive(Clone, Debug)]
pub struct Config {
    /// Changes that a watcher can resume over; a power of two.
    pub ring_len: usize,
    /// Begin a new epoch although nothing looks wrong, after a restore below the file system.
    pub new_epoch: bool,
    /// Changes after which what is known of the tree is noted again, so that the journal can let
    /// go of what is older.
    pub checkpoint_every: u64,
    /// The longest segment of the journal.
    pub segment_bytes_max: u64,
}

impl Config {
    /// Notes 100,000 documents in some tenths of a second, once in so many changes.
    pub const CHECKPOINT_EVERY: u64 = 32_768;
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ring_len: feed::RING_LEN,
            new_epoch: false,
            checkpoint_every: Self::CHECKPOINT_EVERY,
            segment_bytes_max: journal::Config::SEGMENT_BYTES_MAX,
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

/// What the store says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Why writes are refused until a restart, if they are.
    pub poisoned: Option<String>,
    /// Documents, archived ones included.
    pub documents: usize,
}

/// What the store has met since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Answers of VERSIONS that said that the chain is broken.
    pub chains_broken: u64,
    /// Documents, archived ones included.
    pub documents: usize,
    /// Current versions that were found edited by hand.
    pub edits_by_hand: u64,
    /// What the journal has done.
    pub journal: journal::Stats,
}

/// The counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) chains_broken: AtomicU64,
    pub(crate) edits_by_hand: AtomicU64,
}

/// The file store. A cheap handle: clones share it. All methods block on the disk.
///
/// Its methods are of three kinds: reads (`resolve`, `fetch`, `fetch_by_hash`, `list`, `versions`,
/// `lookup`), which never wait for a write; writes (`publish`, `append`, `archive`, `import`),
/// which return when the change is durable and told; and those of its life (`open`, `feed`,
/// `health`, `stats`, `report`, `close`).
#[derive(Clone, Debug)]
pub struct FileStore {
    pub(crate) parts: Arc<Parts>,
}

/// What the handles share.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) index: Arc<RwLock<Index>>,
    pub(crate) feed: Feed<Change>,
    pub(crate) committer: Committer,
    pub(crate) temps: Temps,
    pub(crate) dirs: Dirs,
    pub(crate) locks: PathLocks,
    pub(crate) config: Config,
    pub(crate) report: Report,
    pub(crate) counters: Counters,
    pub(crate) checkpoints: Mutex<checkpoint::Schedule>,
    /// Held by whoever writes a checkpoint.
    pub(crate) checkpoint_writer: Mutex<()>,
    /// Held until the store is closed or dropped.
    pub(crate) lock: Mutex<Option<Box<dyn Lock>>>,
}

impl FileStore {
    /// Opens the data directory `root`, which must exist, and takes its lock.
    pub fn open(
        root: &Path,
        config: Config,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, OpenError> {
        Self::open_in(Arc::new(Disk::open(root)?), config, progress)
    }

    /// Opens the data directory that `storage` holds.
    pub fn open_in(
        storage: Arc<dyn Storage>,
        config: Config,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, OpenError> {
        let parts = open::open(storage, config, progress)?;
        Ok(Self {
            parts: Arc::new(parts),
        })
    }

    /// The changes.
    pub fn feed(&self) -> &Feed<Change> {
        &self.parts.feed
    }

    /// What the store says of itself.
    pub fn health(&self) -> Health {
        Health {
            poisoned: self.parts.committer.refusal(),
            documents: self.parts.index().len(),
        }
    }

    /// What the store has met since it was opened.
    pub fn stats(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            chains_broken: read(&self.parts.counters.chains_broken),
            documents: self.parts.index().len(),
            edits_by_hand: read(&self.parts.counters.edits_by_hand),
            journal: self.parts.committer.journal().stats(),
        }
    }

    /// What opening met.
    pub fn report(&self) -> &Report {
        &self.parts.report
    }

    /// Ends the feed, notes what is known of the tree for the next opening, releases the lock.
    /// Writes that come later are refused.
    pub fn close(&self) -> Result<(), OpenError> {
        self.parts.committer.close();
        self.parts.feed.close();
        let noted = self.parts.write_checkpoint();
        let mut lock = self
            .parts
            .lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *lock = None;
        noted.map_err(OpenError::Storage)
    }
}

impl Parts {
    /// The index, for reading. A writer that panicked can't have left a change half applied that
    /// matters to a reader, so poison is ignored.
    pub(crate) fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index, for what no change tells: versions that retention removed, corrected stamps.
    pub(crate) fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }
}
