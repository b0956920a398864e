//! One writer at a time for a path, held from the first check to the acknowledgement.
//!
//! A fixed number of locks is shared by all paths. Two paths that share one wait for each other,
//! which costs time and nothing else: no writer ever holds two.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use wire::DocPath;

/// Enough that 100 writers at work meet by chance in one of ten writes.
const LOCKS: usize = 1024;

/// The locks.
#[derive(Debug)]
pub(crate) struct PathLocks {
    locks: Box<[Mutex<()>]>,
    /// Random, so that nobody can choose paths that share a lock.
    hasher: RandomState,
}

impl PathLocks {
    /// All free.
    pub(crate) fn new() -> Self {
        Self {
            locks: (0..LOCKS).map(|_| Mutex::new(())).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Waits until no other writer of `path` is at work. A writer that panicked has put back what
    /// it did on its way out, so its poison is ignored.
    pub(crate) fn lock(&self, path: &DocPath) -> MutexGuard<'_, ()> {
        let hash = self.hasher.hash_one(path) as usize;
        self.locks[hash % LOCKS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
