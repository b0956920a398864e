//! Files beneath one root directory, behind a trait that a crashing fake implements too.
//!
//! [`Storage`] names what a store of ours needs from a file system and nothing more: every path is
//! relative to the root, no symbolic link is ever followed, and only regular files are opened.
//! [`Disk`] does it with the operating system's calls; the fake that loses what was not synced
//! lives with the tests, and one behaviour suite runs over both.
//!
//! Nothing here decides what has to be synced and when: a method does one thing, and the caller
//! owes the syncs that make it last. All methods block.

mod disk;
mod file;
mod lock;
mod refusal;
mod stat;
mod storage;

pub use disk::Disk;
pub use file::File;
pub use lock::{Lock, LockError};
pub use refusal::Refusal;
pub use stat::{Entry, Kind, Stamp, Stat, UnixNanos};
pub use storage::{Mode, Storage};
