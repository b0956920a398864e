//! What the file system says of a name.

use std::ffi::OsString;

/// An instant as nanoseconds since 1970 in UTC, as far as the file system keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnixNanos(i64);

impl UnixNanos {
    /// Names the instant `nanos` after 1970.
    pub const fn new(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Joins seconds and nanoseconds; saturates beyond the years 1678 to 2262.
    pub const fn from_parts(secs: i64, nanos: u32) -> Self {
        const NANOS_PER_SEC: i64 = 1_000_000_000;
        Self(
            secs.saturating_mul(NANOS_PER_SEC)
                .saturating_add(nanos as i64),
        )
    }

    /// Nanoseconds since 1970.
    pub const fn get(self) -> i64 {
        self.0
    }
}

/// What bears a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A directory.
    Dir,
    /// A regular file.
    File,
    /// A FIFO, a socket or a device.
    Other,
    /// A symbolic link.
    Symlink,
}

/// The description of a file, a directory or a link itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Its length in bytes.
    pub len: u64,
    /// When its bytes last changed; anyone may set it.
    pub modified: UnixNanos,
    /// When its bytes, name or rights last changed; nobody can set it.
    pub changed: UnixNanos,
    /// When it was made, on file systems that keep it. A copy has its own.
    pub born: Option<UnixNanos>,
    /// Its number in the file system. Reused after a removal.
    pub inode: u64,
    /// The permission bits.
    pub mode: u32,
}

impl Stat {
    /// The part that tells whether a file is still the one that was read.
    pub const fn stamp(&self) -> Stamp {
        Stamp {
            len: self.len,
            modified: self.modified,
            inode: self.inode,
            changed: self.changed,
        }
    }
}

/// The identity of one state of one file: equal stamps mean that the bytes did not change.
///
/// The time of change is part of it because an editor may put the time of modification back. Two
/// writes within one tick of the file system's clock can share a stamp if the length is the same;
/// a caller that has to be sure distrusts a stamp as young as a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The length in bytes.
    pub len: u64,
    /// When the bytes last changed.
    pub modified: UnixNanos,
    /// The number of the file.
    pub inode: u64,
    /// When bytes, name or rights last changed.
    pub changed: UnixNanos,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name, which need not be UTF-8.
    pub name: OsString,
    /// What bears it; a link is told as a link.
    pub kind: Kind,
}
