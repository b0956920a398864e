//! Disks that say what was asked of them, or that take several names for one.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use storage::{Entry, File, Lock, LockError, Mode, Stat, Storage};
use testkit::disk::CrashingDisk;

/// Hands every call on to a disk in memory: names go through `name`, what a directory shows is
/// shown to `see` too.
macro_rules! hand_on {
    ($disk:ty) => {
        impl Storage for $disk {
            fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
                self.disk.open(&self.name(path))
            }
            fn create_new(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn File>> {
                self.disk.create_new(&self.name(path), mode)
            }
            fn open_write(&self, path: &Path) -> io::Result<Box<dyn File>> {
                self.disk.open_write(&self.name(path))
            }
            fn create_dir(&self, path: &Path) -> io::Result<()> {
                self.disk.create_dir(&self.name(path))
            }
            fn sync_dir(&self, path: &Path) -> io::Result<()> {
                self.disk.sync_dir(&self.name(path))
            }
            fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
                self.disk.rename(&self.name(from), &self.name(to))
            }
            fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
                self.disk.rename_new(&self.name(from), &self.name(to))
            }
            fn symlink(&self, target: &Path, link: &Path) -> io::Result<()> {
                self.disk.symlink(target, &self.name(link))
            }
            fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
                self.disk.read_link(&self.name(path))
            }
            fn remove_file(&self, path: &Path) -> io::Result<()> {
                self.disk.remove_file(&self.name(path))
            }
            fn remove_dir(&self, path: &Path) -> io::Result<()> {
                self.disk.remove_dir(&self.name(path))
            }
            fn stat(&self, path: &Path) -> io::Result<Stat> {
                self.disk.stat(&self.name(path))
            }
            fn read_dir(&self, path: &Path, visit: &mut dyn FnMut(Entry)) -> io::Result<()> {
                self.disk.read_dir(&self.name(path), &mut |entry| {
                    self.see(&entry);
                    visit(entry);
                })
            }
            fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, LockError> {
                self.disk.lock(&self.name(path))
            }
        }
    };
}

/// Counts every name that it is asked about and every one that it shows.
#[derive(Clone, Debug)]
pub struct CountingDisk {
    pub disk: CrashingDisk,
    asked: Arc<AtomicU64>,
}

impl CountingDisk {
    pub fn new(disk: CrashingDisk) -> Self {
        let asked = Arc::default();
        Self { disk, asked }
    }

    /// How many names `work` asks about, and how many entries of directories it is shown.
    pub fn count(&self, work: impl FnOnce()) -> u64 {
        let before = self.asked.load(Ordering::Relaxed);
        work();
        self.asked.load(Ordering::Relaxed) - before
    }

    fn name(&self, path: &Path) -> PathBuf {
        self.asked.fetch_add(1, Ordering::Relaxed);
        path.to_owned()
    }

    fn see(&self, _: &Entry) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }
}

hand_on!(CountingDisk);

/// Finds a name under every spelling that `fold` makes equal to it, as some file systems do, and
/// keeps the spelling that it was made with.
#[derive(Clone)]
pub struct FoldingDisk {
    pub disk: CrashingDisk,
    pub fold: fn(&str) -> String,
}

impl fmt::Debug for FoldingDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FoldingDisk")
    }
}

impl FoldingDisk {
    /// The path in the spelling of what is there, as far as anything is.
    fn name(&self, path: &Path) -> PathBuf {
        let mut found = PathBuf::new();
        for part in path {
            let wanted = (self.fold)(&part.to_string_lossy());
            let mut spelling = part.to_owned();
            // What can't be read has no names, and the call itself says so.
            let _ = self.disk.read_dir(&found, &mut |entry| {
                if (self.fold)(&entry.name.to_string_lossy()) == wanted {
                    spelling.clone_from(&entry.name);
                }
            });
            found.push(spelling);
        }
        found
    }

    fn see(&self, _: &Entry) {}
}

hand_on!(FoldingDisk);
