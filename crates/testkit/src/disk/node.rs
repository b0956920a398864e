//! What bears an inode number, in its live and its durable state.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use storage::{Kind, Stat, UnixNanos};

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) body: Body,
    pub(super) mode: u32,
    pub(super) born: UnixNanos,
    pub(super) modified: UnixNanos,
    pub(super) changed: UnixNanos,
    /// How many names lead here, as a running program sees it.
    pub(super) names: u32,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    Dir(Dir),
    File(File),
    Other,
    Symlink(PathBuf),
}

impl Node {
    pub(super) fn stat(&self, inode: u64) -> Stat {
        let (kind, len) = match &self.body {
            Body::Dir(_) => (Kind::Dir, 0),
            Body::File(file) => (Kind::File, file.live.len() as u64),
            Body::Other => (Kind::Other, 0),
            Body::Symlink(target) => (Kind::Symlink, target.as_os_str().len() as u64),
        };
        Stat {
            kind,
            len,
            modified: self.modified,
            changed: self.changed,
            born: Some(self.born),
            inode,
            mode: self.mode,
        }
    }
}

/// A file: `live` is `durable` with every write since the last sync applied.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub(super) live: Vec<u8>,
    pub(super) durable: Vec<u8>,
    /// Written and not synced yet.
    pub(super) pending: Vec<Write>,
    /// Written before a sync that failed: may be on the disk or not, and no later sync tells.
    pub(super) doomed: Vec<Write>,
}

#[derive(Clone, Debug)]
pub(super) enum Write {
    Bytes { offset: usize, bytes: Vec<u8> },
    Len(usize),
}

impl Write {
    pub(super) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Bytes { offset, bytes } => overwrite(content, *offset, bytes),
            Self::Len(len) => content.resize(*len, 0),
        }
    }
}

/// Writes bytes at an offset; what lies between the old end and the offset becomes zeros.
pub(super) fn overwrite(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

impl File {
    pub(super) fn durable(content: Vec<u8>) -> Self {
        Self {
            live: content.clone(),
            durable: content,
            ..Self::default()
        }
    }

    pub(super) fn write(&mut self, write: Write) {
        write.apply(&mut self.live);
        self.pending.push(write);
    }

    pub(super) fn synced(&mut self) {
        for write in self.pending.drain(..) {
            write.apply(&mut self.durable);
        }
        self.doomed.clear();
    }

    pub(super) fn sync_failed(&mut self) {
        self.doomed.append(&mut self.pending);
    }

    /// Every write that may or may not be on the disk, in order.
    pub(super) fn unsure(&self) -> impl Iterator<Item = &Write> {
        self.doomed.iter().chain(&self.pending)
    }
}

/// A directory: `live` is `durable` with every change since the last sync applied.
#[derive(Clone, Debug, Default)]
pub(super) struct Dir {
    pub(super) live: BTreeMap<OsString, u64>,
    pub(super) durable: BTreeMap<OsString, u64>,
    pub(super) pending: Vec<Change>,
}

/// One change of a directory's names.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) name: OsString,
    /// What the name leads to; nothing if it was removed.
    pub(super) inode: Option<u64>,
    /// What both halves of one rename share.
    pub(super) rename: Option<Rename>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rename {
    pub(super) id: u64,
    /// A directory has one name at any time, whatever is lost.
    pub(super) of_dir: bool,
}

impl Change {
    pub(super) fn apply(&self, names: &mut BTreeMap<OsString, u64>) {
        match self.inode {
            Some(inode) => names.insert(self.name.clone(), inode),
            None => names.remove(&self.name),
        };
    }
}

impl Dir {
    pub(super) fn set(&mut self, name: &OsStr, inode: Option<u64>, rename: Option<Rename>) {
        let change = Change {
            name: name.to_owned(),
            inode,
            rename,
        };
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    pub(super) fn synced(&mut self) {
        self.pending.clear();
        self.durable.clone_from(&self.live);
    }
}
