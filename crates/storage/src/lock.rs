//! Who may use a directory.

use std::fmt::Debug;
use std::io;

use thiserror::Error;

/// A lock that is held until it is dropped or its process ends.
pub trait Lock: Send + Sync + Debug {}

/// Why a lock was not taken.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LockError {
    /// Somebody else holds it.
    #[error("held by {}", holder(*.pid))]
    Held {
        /// The holder's process id, unless the holder has not written it yet.
        pid: Option<u32>,
    },
    /// The lock file could not be made, opened or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    )
}
