//! What a watcher knows of a world, and writes that a test can foresee.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use documents::{
    Change, Config, Draft, FileStore, ListRequest, Op, OpenError, VersionsRequest, Which,
    WriteError, Written,
};
use testkit::disk::CrashingDisk;
use wire::{ContentHash, DocPath};

use super::path;

/// A document as a watcher knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub version: u64,
    pub hash: ContentHash,
    pub archived: bool,
}

/// All documents by path.
pub type View = BTreeMap<String, Seen>;

/// Lays a change over what was known.
pub fn learn(view: &mut View, change: &Change) {
    let seen = Seen {
        version: change.version,
        hash: change.hash,
        archived: change.op == Op::Archive,
    };
    view.insert(change.path.as_str().to_owned(), seen);
}

/// What LIST shows of everything.
pub fn view(store: &FileStore) -> View {
    let mut view = View::new();
    let mut left = vec![DocPath::root()];
    while let Some(dir) = left.pop() {
        let request = ListRequest {
            page_size: 1000,
            after: None,
            include_archived: true,
        };
        let page = store.list(&dir, &request, &|_| true).expect("a directory");
        for entry in page.entries {
            let child = dir.child(&entry.name).expect("a name");
            match entry.document {
                None => left.push(child),
                Some((version, hash)) => {
                    let archived = entry.archived;
                    let seen = Seen {
                        version,
                        hash,
                        archived,
                    };
                    view.insert(child.as_str().to_owned(), seen);
                }
            }
        }
    }
    view
}

/// A write.
#[derive(Clone, Debug)]
pub enum Step {
    Append(&'static str, &'static str),
    Archive(&'static str),
    /// With how many versions to keep, 0 for all.
    Publish(&'static str, &'static str, u64),
    Unarchive(&'static str),
}

impl Step {
    pub fn path(&self) -> DocPath {
        match self {
            Self::Append(at, _) | Self::Archive(at) | Self::Publish(at, _, _) => path(at),
            Self::Unarchive(at) => path(at),
        }
    }

    pub fn run(&self, store: &FileStore) -> Result<Written, WriteError> {
        let path = self.path();
        match self {
            Self::Append(_, body) => {
                let expected = store
                    .fetch(&path, Which::Current)
                    .map_or(0, |fetched| fetched.current);
                let draft = Draft::append(path, Bytes::from_static(body.as_bytes()), [])?;
                store.append(draft, expected, &|| true)
            }
            Self::Archive(_) => store.archive(&path, &|| true),
            Self::Publish(_, body, keep) => {
                let keep = keep.to_string();
                let metadata = Some(("retention", keep.as_str())).filter(|_| keep != "0");
                let body = Bytes::from_static(body.as_bytes());
                store.publish(Draft::publish(path, body, metadata)?, None, &|| true)
            }
            Self::Unarchive(_) => {
                let draft = Draft::publish(path, Bytes::new(), [])?;
                store.publish(draft, None, &|| true)
            }
        }
    }
}

/// A script that meets every kind of write, on shared and on new directories.
pub fn script() -> Vec<Step> {
    vec![
        Step::Publish("/a/b/c/tea.md", "# Tea\n", 0),
        Step::Publish("/a/b/c/tea.md", "# Green tea\n", 0),
        Step::Append("/a/b/c/tea.md", "Steep two minutes."),
        Step::Publish("/a/coffee.md", "# Coffee\n", 0),
        Step::Archive("/a/b/c/tea.md"),
        Step::Unarchive("/a/b/c/tea.md"),
        Step::Publish("/a/b/c/tea.md", "# Tea\n", 2),
        Step::Archive("/a/coffee.md"),
        Step::Append("/a/b/c/tea.md", "Enjoy."),
    ]
}

/// Opens a disk whose files are older than a tick of its clock, so that their stamps count.
pub fn open_disk(disk: &CrashingDisk, config: Config) -> Result<FileStore, OpenError> {
    disk.advance(Duration::from_secs(1));
    FileStore::open_in(Arc::new(disk.clone()), config, &mut |_| {})
}

/// Reads every version of every document and asserts that each chain holds.
pub fn assert_sound(store: &FileStore) {
    for name in view(store).keys() {
        let at = path(name);
        let request = VersionsRequest {
            page_size: 1000,
            before: None,
        };
        let page = store.versions(&at, &request).expect("a document");
        assert!(page.chain_valid, "the chain of {name}");
        for (number, _, hash) in &page.versions {
            let fetched = store
                .fetch(&at, Which::Version(*number))
                .expect("a version");
            assert_eq!(fetched.info.content_hash, *hash);
            let by_hash = store.fetch_by_hash(hash, &|_| true).expect("by hash");
            assert_eq!(by_hash.info.content_hash, *hash);
        }
    }
}
