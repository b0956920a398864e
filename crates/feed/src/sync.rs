//! The locks and atomics that the rest of the crate uses.
//!
//! Inside this crate's own unit tests they are shuttle's, so that `interleavings` can try every
//! kind of schedule; everywhere else they are the standard library's.

#[cfg(test)]
pub(crate) use shuttle::sync::{
    Mutex, MutexGuard, RwLock,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use std::sync::PoisonError;
#[cfg(not(test))]
pub(crate) use std::sync::{
    Mutex, MutexGuard, RwLock,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Locks `mutex`. No code of a caller runs while one of our locks is held except a change's name
/// and a waker's clone, and neither leaves our state half changed, so a poisoned lock is sound.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
