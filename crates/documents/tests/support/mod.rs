//! A store on a real disk, and short ways to write and read.
#![allow(dead_code, unreachable_pub)] // Each test file uses its own part.

pub mod disks;
pub mod model;

use std::path::{Path, PathBuf};

use bytes::Bytes;
use documents::{
    Change, Config, Draft, Fetched, FileStore, OpenError, ReadError, Which, WriteError, Written,
};
use feed::{Next, Outlet};
use tempfile::TempDir;
use testkit::process::wait_for;
use wire::{Cursor, DocPath};

/// A data directory and the store that has it open.
pub struct World {
    pub dir: TempDir,
    pub store: FileStore,
}

impl World {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// Opens a tree that `plant` has put files into.
    pub fn with(plant: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        plant(dir.path());
        let store = open(dir.path());
        Self { dir, store }
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn at(&self, relative: &str) -> PathBuf {
        self.root().join(relative)
    }

    /// Closes the store, lets `meddle` at the tree, and opens it again.
    pub fn restart(&mut self, meddle: impl FnOnce(&Path)) {
        self.store.close().expect("closes");
        meddle(self.dir.path());
        self.store = open(self.dir.path());
    }
}

/// Opens the store. A neighbouring test that starts a program holds this process's locks for the
/// moment between its fork and its exec, so a lock of our own is waited for.
pub fn open(root: &Path) -> FileStore {
    let own = std::process::id().to_string();
    let mut opened = None;
    wait_for("a forked neighbour to let go of the lock", || {
        opened = Some(FileStore::open(root, Config::default(), &mut |_| {}));
        !matches!(&opened, Some(Err(OpenError::InUse { process })) if *process == own)
    });
    opened.expect("it was tried").expect("opens")
}

pub fn path(text: &str) -> DocPath {
    DocPath::parse(text).expect("a path")
}

pub fn draft(at: &str, body: &str, metadata: &[(&str, &str)]) -> Draft {
    let metadata = metadata.iter().copied();
    Draft::publish(path(at), Bytes::copy_from_slice(body.as_bytes()), metadata).expect("a draft")
}

pub fn publish(store: &FileStore, at: &str, body: &str) -> Result<Written, WriteError> {
    store.publish(draft(at, body, &[]), None, &|| true)
}

pub fn append(
    store: &FileStore,
    at: &str,
    body: &str,
    expected: u64,
) -> Result<Written, WriteError> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let draft = Draft::append(path(at), body, []).expect("a draft");
    store.append(draft, expected, &|| true)
}

pub fn archive(store: &FileStore, at: &str) -> Result<Written, WriteError> {
    store.archive(&path(at), &|| true)
}

pub fn fetch(store: &FileStore, at: &str) -> Result<Fetched, ReadError> {
    store.fetch(&path(at), Which::Current)
}

pub fn body(store: &FileStore, at: &str) -> String {
    let fetched = fetch(store, at).expect("a document");
    String::from_utf8(fetched.body.to_vec()).expect("text")
}

/// What a watcher of everything is told after `since`: the changes, or the gap.
pub fn told(store: &FileStore, since: &Cursor) -> Result<Vec<(u64, Change)>, feed::Refused> {
    let scope = feed::Scope::Prefix("/".into());
    let outlet = Outlet::new();
    let mut watch = store.feed().subscribe(scope, Some(since), &outlet)?;
    let mut changes = Vec::new();
    loop {
        match watch.next() {
            Next::Change(slot) => changes.push((slot.seq().get(), slot.change().clone())),
            Next::Gap { reason, head } => return Err(feed::Refused { reason, head }),
            Next::Closed | Next::Idle => return Ok(changes),
        }
    }
}

pub fn head(store: &FileStore) -> Cursor {
    store.feed().head()
}

/// Every name below `root` but our own, with what it holds, in order.
pub fn tree(root: &Path) -> Vec<(String, String)> {
    let mut names = Vec::new();
    walk(root, Path::new(""), &mut names);
    names.sort();
    names
}

fn walk(root: &Path, dir: &Path, names: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(root.join(dir)).expect("a directory") {
        let relative = dir.join(entry.expect("an entry").file_name());
        if relative == Path::new(".tidings") {
            continue;
        }
        let at = root.join(&relative);
        let kind = at.symlink_metadata().expect("there").file_type();
        let name = relative.display().to_string();
        if kind.is_symlink() {
            let text = std::fs::read_link(&at).expect("a link");
            names.push((name, format!("-> {}", text.display())));
        } else if kind.is_dir() {
            names.push((name, "dir".to_owned()));
            walk(root, &relative, names);
        } else {
            let bytes = std::fs::read(&at).expect("a file");
            names.push((name, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
}
