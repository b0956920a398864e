//! Files on their way to their place: written and synced under a name nobody else uses, then moved.
//!
//! The names are random per process and counted within it, so two writers never share one, and a
//! leftover of a kill never blocks the next (D56). A file that is not moved away is removed when
//! its [`Temp`] is dropped; what a kill leaves behind is removed at the next opening.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use storage::{File, Kind, Mode, Storage};

use crate::layout::TEMP_DIR;

/// Makes temporary names.
#[derive(Debug)]
pub(crate) struct Temps {
    storage: Arc<dyn Storage>,
    prefix: String,
    count: AtomicU64,
}

/// A temporary file or link; removed on drop unless it was moved to its place.
#[derive(Debug)]
pub(crate) struct Temp {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    moved: bool,
}

impl Temps {
    /// Removes what an earlier process left and begins a series of names.
    pub(crate) fn new(storage: Arc<dyn Storage>, random: u64) -> io::Result<Self> {
        let dir = Path::new(TEMP_DIR);
        match storage.create_dir(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut left = Vec::new();
        storage.read_dir(dir, &mut |entry| {
            if entry.kind != Kind::Dir {
                left.push(entry.name);
            }
        })?;
        for name in left {
            storage.remove_file(&dir.join(name))?;
        }
        Ok(Self {
            storage,
            prefix: format!("{random:016x}"),
            count: AtomicU64::new(0),
        })
    }

    /// Writes a file and makes its bytes durable. The open file goes along, because its stamp is
    /// final only once it has been moved.
    pub(crate) fn write(&self, bytes: &[u8], mode: Mode) -> io::Result<(Temp, Box<dyn File>)> {
        let path = self.next();
        let file = self.storage.create_new(&path, mode)?;
        let temp = self.own(path);
        file.write_at(0, bytes)?;
        file.sync_data()?;
        Ok((temp, file))
    }

    /// Makes a symbolic link.
    pub(crate) fn link(&self, text: &Path) -> io::Result<Temp> {
        let path = self.next();
        self.storage.symlink(text, &path)?;
        Ok(self.own(path))
    }

    fn own(&self, path: PathBuf) -> Temp {
        Temp {
            storage: Arc::clone(&self.storage),
            path,
            moved: false,
        }
    }

    fn next(&self) -> PathBuf {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        Path::new(TEMP_DIR).join(format!("{}-{count}", self.prefix))
    }
}

impl Temp {
    /// Moves it to `to`, over whatever lies there. On an error it stays temporary.
    pub(crate) fn replace(mut self, to: &Path) -> io::Result<()> {
        self.storage.rename(&self.path, to)?;
        self.moved = true;
        Ok(())
    }

    /// Moves it to `to`, where nothing lies. It can be tried again after an error.
    pub(crate) fn place(&mut self, to: &Path) -> io::Result<()> {
        self.storage.rename_new(&self.path, to)?;
        self.moved = true;
        Ok(())
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.moved {
            // The next opening removes what stays.
            let _ = self.storage.remove_file(&self.path);
        }
    }
}
