//! Edits by hand that are met while running: a version file that isn't the one we wrote.
//!
//! The disk is the truth, so the edit is taken over: the current version's is committed and told
//! as a change with the same number and the hash of the bytes that are there; an older version's
//! only corrects the index, since no change names it. A file that was merely touched changes
//! nothing but the time that is shown (D13, D67, D68).

use std::io;
use std::sync::atomic::Ordering;

use wire::{DocPath, Seq};

use crate::commit::Effect;
use crate::index::{Description, Document};
use crate::layout::Place;
use crate::record::{WriteKind, WriteRecord};
use crate::version_file::{self, Stored};
use crate::{Change, FileStore, Op, ReadError, WriteError};

impl FileStore {
    /// Takes over what the file of version `number` holds by now, and gives it.
    pub(crate) fn take_edit(&self, path: &DocPath, number: u64) -> Result<Stored, ReadError> {
        let _writer = self.parts.locks.lock(path);
        self.take_edit_locked(path, number)
    }

    /// The same for a writer that holds the path's lock.
    pub(crate) fn take_edit_locked(
        &self,
        path: &DocPath,
        number: u64,
    ) -> Result<Stored, ReadError> {
        let (known, is_current, archived) = {
            let index = self.parts.index();
            let document = index.document(path).ok_or_else(gone)?;
            let known = document.version(number).ok_or_else(gone)?.clone();
            let is_current = document.current().number == number;
            (known, is_current, Document::is_archived(document))
        };
        let file = Place::of(path).version(number);
        let stored = version_file::read(&*self.parts.storage, &file, number)?;
        let is_edited = stored.entry.file_hash != known.file_hash;
        if is_edited && is_current {
            tracing::warn!(%path, number, "the current version was edited by hand");
            self.parts
                .counters
                .edits_by_hand
                .fetch_add(1, Ordering::Relaxed);
            self.commit_edit(path, &stored, archived)
                .map_err(io::Error::other)?;
        } else if stored.entry != known {
            let mut index = self.parts.index_mut();
            index.replace_version(path, stored.entry.clone(), None);
        }
        Ok(stored)
    }

    fn commit_edit(
        &self,
        path: &DocPath,
        stored: &Stored,
        archived: bool,
    ) -> Result<(), WriteError> {
        let entry = stored.entry.clone();
        let record = WriteRecord {
            change: Change {
                op: if archived { Op::Archive } else { Op::Publish },
                path: path.clone(),
                version: entry.number,
                hash: entry.content_hash,
                agent: None,
            },
            file_hash: entry.file_hash,
            archived,
            kind: WriteKind::Edit,
            kept_from: 0,
            told: Seq::ZERO,
        };
        let description = Description::of(path, stored.metadata.clone(), &stored.body);
        let committed = self.parts.committer.begin(record, &|| true)?;
        committed.tell(Effect::Edit(entry, description))?;
        Ok(())
    }
}

/// Retention removed the version since the caller looked: its file is gone, or was seen with the
/// time of change that its removal gave it.
fn gone() -> ReadError {
    ReadError::Storage(io::ErrorKind::NotFound.into())
}
