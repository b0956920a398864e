//! Directories that exist for good: made where they are missing, and synced up to the root.
//!
//! A directory found on disk may owe its existence to a write that was killed before it synced, so
//! only what this process has synced counts as durable. The price is one sync a level and directory
//! in the life of a process (D49).

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use storage::{Kind, Storage};

/// The directories that are known to last.
#[derive(Debug)]
pub(crate) struct Dirs {
    storage: Arc<dyn Storage>,
    durable: Mutex<HashSet<PathBuf>>,
}

/// Why a directory can't be had.
#[derive(Debug)]
pub(crate) enum DirError {
    /// The file system takes the name for that of another entry, or something else bears it.
    Taken(PathBuf),
    /// The disk failed.
    Io(io::Error),
}

impl From<io::Error> for DirError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Dirs {
    /// Knows of nothing but the root.
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Self {
        Self {
            storage,
            durable: Mutex::new(HashSet::from([PathBuf::new()])),
        }
    }

    /// Makes `dir` and what is above it, where missing, and makes them durable. What was made is
    /// added to `made`, outermost first.
    ///
    /// `is_known` tells of directories whose exact name was seen on disk. Where one exists that
    /// isn't known, its name is looked up in its parent: a file system that ignores case would
    /// otherwise lend us another directory (D38).
    pub(crate) fn ensure(
        &self,
        dir: &Path,
        is_known: &dyn Fn(&Path) -> bool,
        made: &mut Vec<PathBuf>,
    ) -> Result<(), DirError> {
        if self.durable().contains(dir) {
            return Ok(());
        }
        let parent = dir.parent().unwrap_or_else(|| Path::new(""));
        self.ensure(parent, is_known, made)?;
        match self.storage.create_dir(dir) {
            Ok(()) => made.push(dir.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !is_known(dir) {
                    self.check_name(dir, parent)?;
                }
            }
            Err(error) => return Err(error.into()),
        }
        self.storage.sync_dir(parent)?;
        self.durable().insert(dir.to_owned());
        Ok(())
    }

    /// Removes directories that a write made in vain, innermost first. One that is in use by now
    /// stays.
    pub(crate) fn remove(&self, made: &[PathBuf]) {
        for dir in made.iter().rev() {
            self.durable().remove(dir);
            if self.storage.remove_dir(dir).is_err() {
                break;
            }
        }
    }

    fn check_name(&self, dir: &Path, parent: &Path) -> Result<(), DirError> {
        let is_dir = self.storage.stat(dir)?.kind == Kind::Dir;
        let mut is_there = false;
        self.storage.read_dir(parent, &mut |entry| {
            is_there |= dir.file_name() == Some(&entry.name);
        })?;
        if is_dir && is_there {
            Ok(())
        } else {
            Err(DirError::Taken(dir.to_owned()))
        }
    }

    /// A panic can't leave the set half changed, so poison is ignored.
    fn durable(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
