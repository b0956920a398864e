//! Reading: what lies at a path, in a directory, behind a hash, in a history.
//!
//! The index is the truth. A read looks its version up there, opens that version's file and gives
//! body, hashes, number and metadata of this one version, whatever writers do meanwhile (D6). If
//! the file isn't the one that the index knows, somebody edited it by hand, and the read tells it
//! before it answers (D67).

use std::io;
use std::sync::atomic::Ordering;

use wire::{ContentHash, DocPath};

use crate::answer::{Current, ListPage, ListRequest, Resolved, VersionsPage, VersionsRequest};
use crate::index::{Document, Standing, VersionEntry};
use crate::layout::Place;
use crate::lookup::{Lookup, Matches};
use crate::version_file::{self, Stored};
use crate::{CanRead, Fetched, FileStore, ReadError, VersionInfo, Which};

/// How often a read looks again when the file it was sent to is gone, because retention removed
/// it in between. Each time the index is newer.
const ATTEMPTS_MAX: usize = 4;

impl FileStore {
    /// What `path` means, seen from what is there. It says nothing of rights.
    pub fn resolve(&self, path: &DocPath) -> Resolved {
        if let Some(hash) = path.content_address() {
            return Resolved::ContentAddress(hash);
        }
        let index = self.parts.index();
        if index.is_directory(path) {
            return Resolved::Directory(path.clone());
        }
        if index.document(path).is_some_and(is_served) {
            return Resolved::Document(path.clone());
        }
        match path.split_version() {
            Some((base, number)) if !index.is_directory(&base) => Resolved::Version(base, number),
            Some(_) | None => Resolved::Nothing(path.clone()),
        }
    }

    /// Reads a version of the document at `path`.
    pub fn fetch(&self, path: &DocPath, which: Which) -> Result<Fetched, ReadError> {
        for _ in 1..ATTEMPTS_MAX {
            match self.fetch_once(path, which) {
                Err(ReadError::Storage(error)) if error.kind() == io::ErrorKind::NotFound => {}
                result => return result,
            }
        }
        self.fetch_once(path, which)
    }

    /// The current version of the document at `path`, archived or not, without its body.
    pub fn current(&self, path: &DocPath) -> Result<Current, ReadError> {
        let known = {
            let index = self.parts.index();
            served(index.document(path))?.current().clone()
        };
        let file = Place::of(path).version(known.number);
        if self.parts.storage.stat(&file)?.stamp() != known.stamp {
            self.take_edit(path, known.number)?;
        }
        let index = self.parts.index();
        let document = served(index.document(path))?;
        Ok(Current {
            version: document.current().number,
            hash: document.current().content_hash,
            archived: document.is_archived(),
        })
    }

    /// The current version's number as the index has it, without a look at the disk, so that it
    /// may be asked from a [`crate::StillAllowed`].
    pub fn current_number(&self, path: &DocPath) -> Option<u64> {
        let index = self.parts.index();
        let document = index.document(path).filter(|document| is_served(document));
        document.map(|document| document.current().number)
    }

    /// Reads a version with this content hash that the caller may read: the current one of a live
    /// document if there is one, of several the one with the smallest path.
    pub fn fetch_by_hash(
        &self,
        hash: &ContentHash,
        can_read: CanRead<'_>,
    ) -> Result<Fetched, ReadError> {
        for _ in 0..ATTEMPTS_MAX {
            let (path, number) = {
                let index = self.parts.index();
                let (document, number) = index
                    .find_hash(*hash, can_read)
                    .ok_or(ReadError::NotFound)?;
                (document.path().clone(), number)
            };
            match self.fetch(&path, Which::Version(number)) {
                Ok(fetched) if fetched.info.content_hash == *hash => return Ok(fetched),
                // It was removed or edited in between; the index knows by now.
                Ok(_) | Err(ReadError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Err(ReadError::NotFound)
    }

    /// Reads a part of a directory.
    pub fn list(
        &self,
        dir: &DocPath,
        request: &ListRequest,
        can_read: CanRead<'_>,
    ) -> Result<ListPage, ReadError> {
        let page = self.parts.index().list(dir, request, can_read);
        page.ok_or(ReadError::NotFound)
    }

    /// Reads a part of a document's history and checks its whole chain.
    ///
    /// Every version's file is looked at, and read again if it isn't the one that was known.
    pub fn versions(
        &self,
        path: &DocPath,
        request: &VersionsRequest,
    ) -> Result<VersionsPage, ReadError> {
        let is_whole = self.check_versions(path)?;
        let index = self.parts.index();
        let document = served(index.document(path))?;
        let chain_valid = is_whole && document.chain_is_valid();
        if !chain_valid {
            self.parts
                .counters
                .chains_broken
                .fetch_add(1, Ordering::Relaxed);
        }
        let before = request.before.unwrap_or(u64::MAX);
        let mut below = document.versions_below(before);
        let versions = below
            .by_ref()
            .take(request.page_size)
            .map(|version| (version.number, version.modified, version.content_hash))
            .collect();
        Ok(VersionsPage {
            current: document.current().number,
            total: document.versions().len() as u64,
            chain_valid,
            archived: document.is_archived(),
            versions,
            complete: below.next().is_none(),
        })
    }

    /// Searches the live documents below `scope` that the caller may read.
    pub fn lookup(
        &self,
        lookup: &Lookup,
        scope: &DocPath,
        can_read: CanRead<'_>,
    ) -> Result<Matches, ReadError> {
        lookup
            .run(&self.parts.index(), scope, can_read)
            .ok_or(ReadError::NotFound)
    }

    fn fetch_once(&self, path: &DocPath, which: Which) -> Result<Fetched, ReadError> {
        let (known, current, archived) = {
            let index = self.parts.index();
            let document = served(index.document(path))?;
            let known = match which {
                Which::Current if document.is_archived() => {
                    return Err(ReadError::Archived(path.clone()));
                }
                Which::Current => document.current(),
                Which::Version(number) => document.version(number).ok_or(ReadError::NotFound)?,
            };
            let current = document.current().number;
            (known.clone(), current, document.is_archived())
        };
        let stored = self.read_version(path, &known)?;
        Ok(Fetched {
            path: path.clone(),
            info: VersionInfo {
                version: stored.entry.number,
                content_hash: stored.entry.content_hash,
                file_hash: stored.entry.file_hash,
                modified: stored.entry.modified,
                metadata: stored.metadata,
            },
            current,
            archived,
            body: stored.body,
        })
    }

    /// Reads the file of a version that the index knows, and tells an edit by hand.
    pub(crate) fn read_version(
        &self,
        path: &DocPath,
        known: &VersionEntry,
    ) -> Result<Stored, ReadError> {
        let file = Place::of(path).version(known.number);
        let stored = version_file::read(&*self.parts.storage, &file, known.number)?;
        if stored.entry == *known {
            return Ok(stored);
        }
        self.take_edit(path, known.number)
    }

    /// Looks whether each version's file is still the one that the index knows. False if one is
    /// gone and it wasn't retention that removed it.
    fn check_versions(&self, path: &DocPath) -> Result<bool, ReadError> {
        let known: Vec<VersionEntry> = {
            let index = self.parts.index();
            served(index.document(path))?.versions().cloned().collect()
        };
        let place = Place::of(path);
        let mut gone = Vec::new();
        for version in known {
            let looked = match self.parts.storage.stat(&place.version(version.number)) {
                Ok(stat) if stat.stamp() == version.stamp => Ok(()),
                Ok(_) => self.take_edit(path, version.number).map(drop),
                Err(error) => Err(error.into()),
            };
            match looked {
                Ok(()) => {}
                Err(ReadError::Storage(error)) if error.kind() == io::ErrorKind::NotFound => {
                    gone.push(version.number);
                }
                Err(error) => return Err(error),
            }
        }
        if gone.is_empty() {
            return Ok(true);
        }
        // A writer removes files first and then forgets them, so wait until none is at it.
        let _writer = self.parts.locks.lock(path);
        let index = self.parts.index();
        let document = served(index.document(path))?;
        Ok(!gone
            .iter()
            .any(|number| document.version(*number).is_some()))
    }
}

/// True unless the document's link was removed by hand.
fn is_served(document: &Document) -> bool {
    document.standing() != Standing::Unlinked
}

fn served(document: Option<&Document>) -> Result<&Document, ReadError> {
    document
        .filter(|document| is_served(document))
        .ok_or(ReadError::NotFound)
}
