//! What is made to fail, and the count of what was called.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The error of everything that is called on a disk after its crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the disk has crashed")]
pub struct Crashed;

impl Crashed {
    /// Whether an error says that the disk has crashed.
    pub fn is(error: &io::Error) -> bool {
        error
            .get_ref()
            .is_some_and(<dyn std::error::Error + Send + Sync>::is::<Self>)
    }
}

/// The operations that change or sync anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // They are the methods of `Storage` and `File`.
pub enum Call {
    CreateDir,
    CreateNew,
    Lock,
    RemoveDir,
    RemoveFile,
    Rename,
    RenameNew,
    SetLen,
    Symlink,
    SyncAll,
    SyncData,
    SyncDir,
    WriteAt,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) denied: BTreeSet<PathBuf>,
    log: Vec<(Call, PathBuf)>,
    counts: BTreeMap<Call, u64>,
    crash_at: Option<u64>,
    fail_at: BTreeMap<u64, io::ErrorKind>,
    fail_call_at: BTreeMap<(Call, u64), io::ErrorKind>,
}

impl Faults {
    pub(super) fn crash_after(&mut self, count: u64) {
        self.crash_at = Some(self.operations() + count);
    }

    pub(super) fn forgive(&mut self) {
        self.crash_at = None;
    }

    pub(super) fn fail_after(&mut self, count: u64, kind: io::ErrorKind) {
        self.fail_at.insert(self.operations() + count, kind);
    }

    pub(super) fn fail_call(&mut self, call: Call, count: u64, kind: io::ErrorKind) {
        let at = self.count(call) + count;
        self.fail_call_at.insert((call, at), kind);
    }

    pub(super) fn operations(&self) -> u64 {
        self.log.len() as u64
    }

    pub(super) fn count(&self, call: Call) -> u64 {
        self.counts.get(&call).copied().unwrap_or(0)
    }

    pub(super) fn log(&self) -> Vec<String> {
        let line = |(number, (call, path)): (usize, &(Call, PathBuf))| {
            format!("{number} {call:?} {}", path.display())
        };
        self.log.iter().enumerate().map(line).collect()
    }

    /// Counts an operation and says whether it is to fail.
    pub(super) fn begin(&mut self, call: Call, path: &Path) -> io::Result<()> {
        let number = self.operations();
        let of_call = self.count(call);
        self.check_alive(number)?;
        self.log.push((call, path.to_owned()));
        *self.counts.entry(call).or_default() += 1;
        let kind = self
            .fail_at
            .remove(&number)
            .or_else(|| self.fail_call_at.remove(&(call, of_call)));
        if self.crash_at == Some(number) {
            return Err(io::Error::other(Crashed));
        }
        kind.map_or(Ok(()), |kind| Err(kind.into()))
    }

    /// Says whether a call that only reads is to fail.
    pub(super) fn check_read(&self, path: &Path) -> io::Result<()> {
        self.check_alive(self.operations())?;
        if self.denied.contains(path) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.check_way(path)
    }

    /// Says whether a directory on the way to `path` may not be entered.
    pub(super) fn check_way(&self, path: &Path) -> io::Result<()> {
        let is_denied = path
            .ancestors()
            .skip(1)
            .any(|dir| self.denied.contains(dir));
        if is_denied {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    }

    /// The operation at which the disk crashes is counted, and everything after it fails.
    fn check_alive(&self, number: u64) -> io::Result<()> {
        match self.crash_at {
            Some(at) if number > at => Err(io::Error::other(Crashed)),
            _ => Ok(()),
        }
    }
}
