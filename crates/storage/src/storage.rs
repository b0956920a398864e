//! The operations on names beneath the root.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Entry, File, Lock, LockError, Stat};

/// The permissions of a file that is made; the process's umask may take more away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Readable by its owner alone: `0600`.
    Private,
    /// Readable by everyone, written by its owner: `0644`.
    Public,
}

impl Mode {
    /// The permission bits.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Private => 0o600,
            Self::Public => 0o644,
        }
    }
}

/// A tree of files beneath one root.
///
/// A path is relative to the root and made of plain names; the empty path is the root itself. A
/// path that is absolute or holds `..` is refused as [`Refusal::Outside`](crate::Refusal), and one
/// that leads through a symbolic link as [`Refusal::Link`](crate::Refusal). The last name of a path
/// is never followed either: operations on names act on the link, and opening one is refused.
///
/// What a method did is visible to every reader at once and survives the death of the process. It
/// survives a power cut only after a sync: the bytes of a file after [`File::sync_data`], its name
/// (and a rename, a link, a removal, a new directory) after [`Storage::sync_dir`] on the directory
/// that holds the name. A failed sync must not be repeated in the hope of success: the system may
/// have dropped the bytes it could not write.
///
/// Methods block and may be called from any thread. Errors are the system's own, so callers tell
/// `NotFound`, `AlreadyExists`, `PermissionDenied` and `StorageFull` by their kind, and what we
/// refuse ourselves by [`Refusal::of`](crate::Refusal::of).
pub trait Storage: Send + Sync + Debug {
    /// Opens an existing regular file for reading. Never blocks on a FIFO or a device.
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// Makes a file for reading and writing; `AlreadyExists` if the name is taken by anything.
    fn create_new(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn File>>;

    /// Opens an existing regular file for reading and writing.
    fn open_write(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// Makes one directory with mode `0755`; its parent must exist.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Moves a name, in one step and over whatever file had the name `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Moves a name, in one step; `AlreadyExists` if `to` is taken by anything.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes a symbolic link that holds `target` as it is given.
    fn symlink(&self, target: &Path, link: &Path) -> io::Result<()>;

    /// What a symbolic link holds; `InvalidInput` if the name is something else.
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;

    /// Removes the name of anything but a directory.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Describes what bears the name, which may be a link.
    fn stat(&self, path: &Path) -> io::Result<Stat>;

    /// Hands every name in a directory to `visit`, in no order, without `.` and `..`.
    ///
    /// Names that come and go meanwhile may be seen or not; the others are seen exactly once.
    fn read_dir(&self, path: &Path, visit: &mut dyn FnMut(Entry)) -> io::Result<()>;

    /// Takes the lock that `path` stands for, without waiting, and writes this process's id there.
    ///
    /// The file is made if it is missing and stays when the lock is dropped. Whoever dies loses the
    /// lock. The lock excludes other holders in the same process too.
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, LockError>;
}
