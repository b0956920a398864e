//! What we refuse although the system would do it.

use std::io;

use thiserror::Error;

/// A refusal of ours, carried inside an [`io::Error`] of kind `InvalidInput`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The path leads through a symbolic link, or opening would follow one.
    #[error("a symbolic link is in the way")]
    Link,
    /// What bears the name is a directory, a FIFO, a socket or a device.
    #[error("not a regular file")]
    NotRegular,
    /// The path is absolute, holds `..`, or left the root while it was walked.
    #[error("path leads out of the root")]
    Outside,
    /// The file holds more than the caller is ready to read.
    #[error("file is longer than its limit")]
    TooLong,
}

impl Refusal {
    /// The refusal inside an error, if it is one of ours.
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        Self::new(io::ErrorKind::InvalidInput, refusal)
    }
}
