//! Which process has a data directory in use.
//!
//! The lock file holds the process id of whoever took the lock last, so the lock itself is asked
//! too: it is tried for sharing and given back at once, which changes nothing on disk. A server
//! that starts in the same instant would find the directory in use and say so; a look at the
//! kernel's table of locks would avoid that and doesn't see beyond a container.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::Path;

/// Who has a data directory in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// Nobody.
    Nobody,
    /// This process.
    Process(u32),
    /// A process that has not written its id yet.
    Unnamed,
}

/// A process id and its line end are shorter.
const TEXT_LEN_MAX: u64 = 16;

impl Holder {
    /// Who holds the file `lock`; nobody does if there is none.
    pub(crate) fn of(lock: &Path) -> io::Result<Self> {
        let file = match File::open(lock) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nobody),
            file => file?,
        };
        match file.try_lock_shared() {
            Ok(()) => return Ok(Self::Nobody),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut text = String::new();
        file.take(TEXT_LEN_MAX).read_to_string(&mut text)?;
        Ok(text.trim().parse().map_or(Self::Unnamed, Self::Process))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_who_holds_the_lock_and_not_who_is_written_there() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("lock");
        assert_eq!(Holder::of(&lock).unwrap(), Holder::Nobody);
        std::fs::write(&lock, "4711\n").unwrap();
        assert_eq!(Holder::of(&lock).unwrap(), Holder::Nobody);
        let held = File::open(&lock).unwrap();
        held.lock().unwrap();
        assert_eq!(Holder::of(&lock).unwrap(), Holder::Process(4711));
        std::fs::write(&lock, "").unwrap();
        assert_eq!(Holder::of(&lock).unwrap(), Holder::Unnamed);
        drop(held);
        assert_eq!(Holder::of(&lock).unwrap(), Holder::Nobody);
    }
}
