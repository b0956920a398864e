//! The storage of the operating system.
//!
//! Every call starts at the descriptor of the root, which is opened once, so the root may be moved
//! or hidden under a mount meanwhile. Where the kernel can resolve a whole path beneath a directory
//! without following links it does so in one step; elsewhere each name is opened relative to the
//! directory before it. Either way there is no moment at which a name is checked first and used
//! second, so a link that is swapped in while a call runs is refused and never followed.
//!
//! Opening never waits: a FIFO or a device that bears the name of a file is opened without blocking
//! and then refused. Checking the kind first would leave a gap in which the name can change.

mod flock;
mod handle;
mod meta;
mod walk;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, OFlags};
use rustix::io::Errno;

use crate::{Entry, File, Kind, Lock, LockError, Mode, Refusal, Stat, Storage};
use handle::Handle;
use walk::Walk;

/// A directory of the file system and everything beneath it.
#[derive(Debug)]
pub struct Disk {
    walk: Walk,
}

impl Disk {
    /// Opens `root`, an existing directory; links in the path to it are followed.
    pub fn open(root: &Path) -> io::Result<Self> {
        Walk::open(root).map(|walk| Self { walk })
    }

    /// Opens each path name by name, as is done where the kernel can't resolve one beneath a
    /// directory by itself. There is no reason to ask for it but to test it.
    #[must_use]
    pub fn stepwise(mut self) -> Self {
        self.walk.go_stepwise();
        self
    }

    fn open_file(&self, path: &Path, access: OFlags) -> io::Result<Box<dyn File>> {
        let fd = self
            .walk
            .open_at(path, access | OFlags::NONBLOCK | OFlags::NOCTTY, 0)
            .map_err(|error| match Errno::from_io_error(&error) {
                // A socket, or a FIFO without a reader; a directory opened for writing.
                Some(Errno::NXIO | Errno::ISDIR) => Refusal::NotRegular.into(),
                _ => error,
            })?;
        let handle = Handle::new(fd);
        match handle.stat()?.kind {
            Kind::File => Ok(Box::new(handle)),
            _ => Err(Refusal::NotRegular.into()),
        }
    }

    fn open_dir(&self, path: &Path) -> io::Result<OwnedFd> {
        self.walk
            .open_at(path, OFlags::RDONLY | OFlags::DIRECTORY, 0)
    }
}

impl Storage for Disk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.open_file(path, OFlags::RDONLY)
    }

    fn create_new(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn File>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let fd = self.walk.open_at(path, flags, mode.bits())?;
        Ok(Box::new(Handle::new(fd)))
    }

    fn open_write(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.open_file(path, OFlags::RDWR)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.walk.parent(path)?;
        Ok(rustix::fs::mkdirat(dir, name, DIR_MODE.into())?)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::File::from(self.open_dir(path)?).sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_dir, from_name) = self.walk.parent(from)?;
        let (to_dir, to_name) = self.walk.parent(to)?;
        Ok(rustix::fs::renameat(from_dir, from_name, to_dir, to_name)?)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_dir, from_name) = self.walk.parent(from)?;
        let (to_dir, to_name) = self.walk.parent(to)?;
        rename_noreplace(&from_dir, from_name, &to_dir, to_name)
    }

    fn symlink(&self, target: &Path, link: &Path) -> io::Result<()> {
        let (dir, name) = self.walk.parent(link)?;
        Ok(rustix::fs::symlinkat(target, dir, name)?)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let (dir, name) = self.walk.parent(path)?;
        let target = rustix::fs::readlinkat(dir, name, Vec::new())?;
        Ok(PathBuf::from(std::ffi::OsString::from_vec(
            target.into_bytes(),
        )))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.walk.parent(path)?;
        Ok(rustix::fs::unlinkat(dir, name, AtFlags::empty())?)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.walk.parent(path)?;
        Ok(rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        if path.as_os_str().is_empty() {
            return meta::of_fd(self.walk.root());
        }
        let (dir, name) = self.walk.parent(path)?;
        meta::of_name(&dir, name)
    }

    fn read_dir(&self, path: &Path, visit: &mut dyn FnMut(Entry)) -> io::Result<()> {
        let mut dir = Dir::new(self.open_dir(path)?)?;
        while let Some(entry) = dir.read() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems leave the kind out of the directory.
                FileType::Unknown => match meta::of_name(dir.fd()?, name) {
                    Ok(stat) => stat.kind,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(error),
                },
                known => meta::kind(known),
            };
            visit(Entry {
                name: name.to_owned(),
                kind,
            });
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, LockError> {
        flock::take(&self.walk, path)
    }
}

/// Readable and searchable by everyone, written by its owner.
const DIR_MODE: u32 = 0o755;

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_noreplace(
    from_dir: &OwnedFd,
    from: &OsStr,
    to_dir: &OwnedFd,
    to: &OsStr,
) -> io::Result<()> {
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    match rustix::fs::renameat_with(from_dir, from, to_dir, to, flags) {
        // The file system, or the kernel, doesn't know the flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            link_then_unlink(from_dir, from, to_dir, to)
        }
        other => Ok(other?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
use link_then_unlink as rename_noreplace;

/// Gives a file its new name only if that is free, then takes the old one away.
///
/// A crash in between leaves both names on one file, so callers use it for temporary names, which
/// are swept at the next start.
fn link_then_unlink(
    from_dir: &OwnedFd,
    from: &OsStr,
    to_dir: &OwnedFd,
    to: &OsStr,
) -> io::Result<()> {
    rustix::fs::linkat(from_dir, from, to_dir, to, AtFlags::empty())?;
    Ok(rustix::fs::unlinkat(from_dir, from, AtFlags::empty())?)
}
