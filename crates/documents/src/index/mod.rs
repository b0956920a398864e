//! What the store knows of its tree, in memory: the truth for reads while the process runs.
//!
//! **Promises.** A document has at least one version, and the highest is its current one. A name
//! is a directory or a document, never both, and no directory but the root is empty: a document
//! whose files are gone stays as an unlinked one. The hash
//! index holds exactly the versions of the tree (D27). A listing is in byte order of names and is
//! continued after a name, so that a name which is there all the time comes exactly once however
//! the tree changes between two pages (D21).
//!
//! **Cost.** Finding a document costs its depth and a logarithm of each directory's width; a
//! version is added at the cost of the last one however many there are; a page costs the names on
//! it and those passed over because the reader may not see them (D95). Rights are asked by path
//! and can't be summed up beforehand: a directory with nothing readable in it is walked whole.
//!
//! **Leaves to others.** The store reads and writes the disk, decides the order of commits, and
//! holds the lock this sits behind: readers share it, and a change is applied after it is durable.
//! Nothing here touches the disk or the clock, so a kill loses only what opening reads again.
//!
//! One ordered map of whole paths was rejected: its order differs from that of names where a name
//! goes on with a character below the slash, and a directory would have to be skipped over.

mod document;
mod hashes;
mod page;
mod reservation;
mod tally;
mod term;
mod tree;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use wire::{ContentHash, DocPath};

use self::hashes::{HashIndex, Rank};
use self::reservation::Reserved;
use self::tree::{Directory, Found, Walk};
use crate::{CanRead, ListPage, ListRequest};

pub(crate) use self::document::{Description, Document, Standing, VersionEntry};
pub(crate) use self::reservation::{Collision, Reservation};
pub(crate) use self::term::Term;

/// The directory beside a document's link under which its versions lie. A name that no write may
/// use (D35) and that no listing shows.
pub(crate) const VERSIONS: &str = "versions";

/// The tree of documents, the hash index over all their versions, and the writes in flight.
///
/// Its methods are of three kinds: those with `&self` and no effect read; `reserve` claims a path
/// for a write that is about to begin; those with `&mut self` apply what is already durable.
#[derive(Debug, Default)]
pub(crate) struct Index {
    root: Directory,
    hashes: HashIndex,
    reserved: Arc<Reserved>,
    len: usize,
}

impl Index {
    /// An empty tree.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Claims `path` for a write, unless a document or a directory is in the way (D33). Hold the
    /// reservation until the new version is in the index, or the write has failed.
    pub(crate) fn reserve(&self, path: &DocPath) -> Result<Reservation, Collision> {
        self.reserved.reserve(&self.root, path)
    }

    /// Adds a document as it was found on disk; gives it back if a document or a directory is in
    /// the way of it.
    pub(crate) fn insert_document(&mut self, document: Document) -> Result<(), Box<Document>> {
        let document = Box::new(document);
        let path = document.path().clone();
        self.root.insert(document)?;
        self.len += 1;
        if let Found::Document(document) = self.root.find(&path) {
            for version in document.versions() {
                let rank = rank(document, version.number);
                self.hashes
                    .insert(version.content_hash, rank, &path, version.number);
            }
        }
        Ok(())
    }

    /// Applies a write: `entry` becomes the newest version of the document, which is made if it
    /// isn't there, and the document is live. False, with nothing changed, if a document or a
    /// directory is in the way, or the number isn't above those that are there.
    pub(crate) fn insert_version(
        &mut self,
        path: &DocPath,
        entry: VersionEntry,
        description: Description,
    ) -> bool {
        let Some(document) = self.document(path) else {
            let document = Document::new(path.clone(), Standing::Live, description, [entry]);
            return document.is_some_and(|document| self.insert_document(document).is_ok());
        };
        if entry.number <= document.current().number {
            return false;
        }
        self.change(path, |document| {
            document.put(entry);
            document.describe(description);
            document.set_standing(Standing::Live);
        });
        true
    }

    /// Archives, unarchives or hides a document. False if there is none.
    pub(crate) fn set_standing(&mut self, path: &DocPath, standing: Standing) -> bool {
        self.change(path, |document| document.set_standing(standing))
    }

    /// Applies what an edit by hand made of a version that is there: its entry, and for the
    /// current version what it says of itself. False if there is no such version.
    pub(crate) fn replace_version(
        &mut self,
        path: &DocPath,
        entry: VersionEntry,
        description: Option<Description>,
    ) -> bool {
        let Some(document) = self.document(path) else {
            return false;
        };
        let Some(old) = document.version(entry.number).cloned() else {
            return false;
        };
        let (number, hash) = (entry.number, entry.content_hash);
        let rank = rank(document, number);
        let is_current = number == document.current().number;
        self.hashes.remove(old.content_hash, rank, path, number);
        self.hashes.insert(hash, rank, path, number);
        self.root.update(path, |document| {
            document.put(entry);
            if let Some(description) = description.filter(|_| is_current) {
                document.describe(description);
            }
        });
        true
    }

    /// Forgets one version whose file is gone, unless it is the only one: a document is never
    /// forgotten, because its numbers stay used. If it was the current one, the version before
    /// it is current then, and `description` must be that one's. False if nothing was removed.
    pub(crate) fn remove_version(
        &mut self,
        path: &DocPath,
        number: u64,
        description: Option<Description>,
    ) -> bool {
        let mut taken = None;
        self.change(path, |document| {
            taken = document.take(number);
            if let Some(description) = description.filter(|_| taken.is_some()) {
                document.describe(description);
            }
        });
        let Some(version) = taken else {
            return false;
        };
        // Whatever its rank was, `change` left it the place of a former version.
        self.hashes
            .remove(version.content_hash, Rank::Former, path, number);
        true
    }

    /// The document at `path`, whatever its standing.
    pub(crate) fn document(&self, path: &DocPath) -> Option<&Document> {
        match self.root.find(path) {
            Found::Document(document) => Some(document),
            Found::Directory(_) | Found::DocumentAbove(_) | Found::Nothing => None,
        }
    }

    /// True if `path` is the root or holds documents, whatever their standing.
    pub(crate) fn is_directory(&self, path: &DocPath) -> bool {
        matches!(self.root.find(path), Found::Directory(_))
    }

    /// The number of documents, whatever their standing.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Every document, whatever its standing and its name.
    pub(crate) fn documents(&self) -> impl Iterator<Item = &Document> {
        Walk::all(&self.root)
    }

    /// A version whose body has `hash` and that this reader may read: a current one of a live
    /// document if there is any, the smallest path first; else the newest of the others.
    pub(crate) fn find_hash(
        &self,
        hash: ContentHash,
        can_read: CanRead<'_>,
    ) -> Option<(&Document, u64)> {
        self.hashes
            .find(hash)
            .filter_map(|(path, number)| Some((self.document(path)?, number)))
            .find(|(document, _)| {
                document.standing() != Standing::Unlinked && can_read(document.path())
            })
    }

    /// One page of the directory `path`; `None` if it isn't one, or if this reader may read
    /// nothing in it at any depth, so that the name of a closed directory isn't confirmed. The
    /// root is always there.
    pub(crate) fn list(
        &self,
        path: &DocPath,
        request: &ListRequest,
        can_read: CanRead<'_>,
    ) -> Option<ListPage> {
        let directory = self.directory(path)?;
        let page = page::cut(directory, request, can_read);
        let shown = !page.entries.is_empty() || is_known(path, directory, can_read);
        shown.then_some(page)
    }

    /// The live documents below the directory `path` whose names a listing would show; `None`
    /// as for [`list`](Self::list).
    pub(crate) fn listed(
        &self,
        path: &DocPath,
        can_read: CanRead<'_>,
    ) -> Option<impl Iterator<Item = &Document>> {
        let directory = self.directory(path)?;
        is_known(path, directory, can_read)
            .then(|| Walk::listed(directory).filter(|document| document.is_live()))
    }

    fn directory(&self, path: &DocPath) -> Option<&Directory> {
        match self.root.find(path) {
            Found::Directory(directory) => Some(directory),
            Found::Document(_) | Found::DocumentAbove(_) | Found::Nothing => None,
        }
    }

    /// Changes a document and moves its current version's place in the hash index along. Versions
    /// that `change` adds have a place afterwards; one that it takes out keeps the place of a
    /// former version.
    fn change(&mut self, path: &DocPath, change: impl FnOnce(&mut Document)) -> bool {
        let Some(before) = self.document(path) else {
            return false;
        };
        let (current, old_rank) = (before.current(), rank(before, before.current().number));
        let (hash, number) = (current.content_hash, current.number);
        self.hashes.remove(hash, old_rank, path, number);
        self.hashes.insert(hash, Rank::Former, path, number);
        self.root.update(path, change);
        if let Found::Document(after) = self.root.find(path) {
            let (hash, number) = (after.current().content_hash, after.current().number);
            self.hashes.remove(hash, Rank::Former, path, number);
            self.hashes.insert(hash, rank(after, number), path, number);
        }
        true
    }
}

/// Where the version `number` of `document` stands in the hash index.
fn rank(document: &Document, number: u64) -> Rank {
    if document.is_live() && document.current().number == number {
        Rank::Current
    } else {
        Rank::Former
    }
}

/// True if this reader may know that the directory exists.
fn is_known(path: &DocPath, directory: &Directory, can_read: CanRead<'_>) -> bool {
    path.is_root()
        || Walk::all(directory)
            .any(|document| document.standing() != Standing::Unlinked && can_read(document.path()))
}
