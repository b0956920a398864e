//! Writing: what a publish, an append and an archive mean, given what is there.
//!
//! Each holds its path's lock from the first look to the answer, so the check and the write are one
//! step (D1). The checks have the wire's order: conflict, archived, unchanged.

use std::io;
use std::path::PathBuf;

use bytes::{Bytes, BytesMut};
use storage::Mode;
use wire::{DocPath, Seq, limits};

use crate::answer::{Outcome, Written};
use crate::commit::Effect;
use crate::draft::{self, Draft};
use crate::index::{Description, Standing, VersionEntry};
use crate::landing::{Landed, Landing};
use crate::layout::{self, Place};
use crate::record::{WriteKind, WriteRecord};
use crate::store::Parts;
use crate::undo::Undo;
use crate::{Change, FileStore, Op, ReadError, StillAllowed, WriteError};

/// A document as a writer finds it.
#[derive(Clone, Debug)]
struct Before {
    current: VersionEntry,
    standing: Standing,
    description: Description,
}

impl Before {
    fn is_archived(&self) -> bool {
        self.standing == Standing::Archived
    }
}

impl FileStore {
    /// Writes a version, or unarchives if the draft's body is empty.
    ///
    /// `expected` is the version the writer knows: 0 for none, `None` for whatever is there.
    pub fn publish(
        &self,
        mut draft: Draft,
        expected: Option<u64>,
        still_allowed: StillAllowed<'_>,
    ) -> Result<Written, WriteError> {
        let _writer = self.parts.locks.lock(&draft.path);
        let before = self.before(&draft.path)?;
        if let Some(expected) = expected {
            check_expected(before.as_ref(), expected)?;
        }
        if draft.body.is_empty() {
            let before = before.filter(is_document).ok_or(WriteError::NotFound)?;
            return self.unarchive(&draft.path, &before, still_allowed);
        }
        if before.as_ref().is_some_and(Before::is_archived) {
            return Err(WriteError::Archived);
        }
        draft.add_default_type();
        if let Some(before) = before.as_ref().filter(|before| is_same(before, &draft)) {
            return Ok(self.unchanged(before));
        }
        self.land(Op::Publish, &draft, before, still_allowed)
    }

    /// Makes the next version of a document out of the flat file that bears its name. The draft's
    /// body is what the file was seen to hold; where it lies is told if it holds something else by
    /// now.
    pub(crate) fn adopt(&self, mut draft: Draft) -> Result<(Written, Option<PathBuf>), WriteError> {
        let _writer = self.parts.locks.lock(&draft.path);
        let before = self.before(&draft.path)?;
        check_expected(before.as_ref(), 0)?;
        draft.add_default_type();
        let mut landing = landing(Op::Publish, &draft, before);
        landing.adopts_flat = true;
        let landed = self.parts.land(&landing, &|| true)?;
        Ok((created(&landed), landed.kept))
    }

    /// Writes a version that is version `expected` and the draft's body.
    pub fn append(
        &self,
        mut draft: Draft,
        expected: u64,
        still_allowed: StillAllowed<'_>,
    ) -> Result<Written, WriteError> {
        let _writer = self.parts.locks.lock(&draft.path);
        let before = self.before(&draft.path)?.filter(is_document);
        let before = before.ok_or(WriteError::NotFound)?;
        check_expected(Some(&before), expected)?;
        if before.is_archived() {
            return Err(WriteError::Archived);
        }
        let base = self.take_edit_locked(&draft.path, before.current.number);
        let base = base.map_err(read_failed)?;
        draft.body = joined(&base.body, &draft.body)?;
        for (key, value) in base.metadata.iter() {
            let entry = draft.metadata.entry(key.clone());
            entry.or_insert_with(|| value.clone());
        }
        draft.add_default_type();
        draft::check_metadata_size(&draft.metadata).map_err(draft::DraftError::from)?;
        let before = Before {
            current: base.entry,
            ..before
        };
        self.land(Op::Append, &draft, Some(before), still_allowed)
    }

    /// Archives the document at `path`.
    pub fn archive(
        &self,
        path: &DocPath,
        still_allowed: StillAllowed<'_>,
    ) -> Result<Written, WriteError> {
        let _writer = self.parts.locks.lock(path);
        let before = self.before(path)?.filter(is_document);
        let before = before.ok_or(WriteError::NotFound)?;
        if before.is_archived() {
            return Ok(self.unchanged(&before));
        }
        self.set_archived(path, &before, true, still_allowed)
    }

    fn unarchive(
        &self,
        path: &DocPath,
        before: &Before,
        still_allowed: StillAllowed<'_>,
    ) -> Result<Written, WriteError> {
        if before.is_archived() {
            self.set_archived(path, before, false, still_allowed)
        } else {
            Ok(self.unchanged(before))
        }
    }

    fn land(
        &self,
        op: Op,
        draft: &Draft,
        before: Option<Before>,
        still_allowed: StillAllowed<'_>,
    ) -> Result<Written, WriteError> {
        let landing = landing(op, draft, before);
        let landed = self.parts.land(&landing, still_allowed)?;
        Ok(created(&landed))
    }

    fn set_archived(
        &self,
        path: &DocPath,
        before: &Before,
        archived: bool,
        still_allowed: StillAllowed<'_>,
    ) -> Result<Written, WriteError> {
        let parts = &*self.parts;
        let place = Place::of(path);
        let mut undo = Undo::new(parts);
        let text = layout::sidecar_text(archived);
        let (sidecar, _) = parts.temps.write(text, Mode::Public)?;
        let record = state_record(path, before, archived);
        let committed = parts.committer.begin(record, still_allowed)?;
        undo.wrote_sidecar(&place, parts.sidecar(&place, !archived)?);
        sidecar.replace(&place.sidecar())?;
        parts.storage.sync_dir(&place.versions())?;
        let (standing, outcome) = match archived {
            true => (Standing::Archived, Outcome::Archived),
            false => (Standing::Live, Outcome::Unarchived),
        };
        let cursor = committed.tell(Effect::Standing(standing))?;
        undo.keep();
        parts.checkpoint_if_due();
        Ok(Written {
            outcome,
            version: before.current.number,
            modified: before.current.modified,
            hash: before.current.content_hash,
            cursor,
        })
    }

    fn unchanged(&self, before: &Before) -> Written {
        Written {
            outcome: Outcome::Unchanged,
            version: before.current.number,
            modified: before.current.modified,
            hash: before.current.content_hash,
            cursor: self.parts.feed.head(),
        }
    }

    /// What is there. An edit by hand that shows in the current version's stamp is told first, so
    /// that what follows is chained to the bytes that are there.
    fn before(&self, path: &DocPath) -> Result<Option<Before>, WriteError> {
        let Some(before) = self.known(path) else {
            return Ok(None);
        };
        let file = Place::of(path).version(before.current.number);
        if self.parts.storage.stat(&file)?.stamp() == before.current.stamp {
            return Ok(Some(before));
        }
        let taken = self.take_edit_locked(path, before.current.number);
        taken.map_err(read_failed)?;
        Ok(self.known(path))
    }

    fn known(&self, path: &DocPath) -> Option<Before> {
        let index = self.parts.index();
        index.document(path).map(|document| Before {
            current: document.current().clone(),
            standing: document.standing(),
            description: document.description().clone(),
        })
    }
}

impl Parts {
    /// What the sidecar says, if there is one; it agrees with the document's state, `archived`.
    fn sidecar(&self, place: &Place, archived: bool) -> io::Result<Option<bool>> {
        match self.storage.stat(&place.sidecar()) {
            Ok(_) => Ok(Some(archived)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the sidecar and makes it durable.
    pub(crate) fn write_sidecar(&self, place: &Place, archived: bool) -> io::Result<()> {
        let text = layout::sidecar_text(archived);
        let (sidecar, _) = self.temps.write(text, Mode::Public)?;
        sidecar.replace(&place.sidecar())?;
        self.storage.sync_dir(&place.versions())
    }
}

fn landing<'a>(op: Op, draft: &'a Draft, before: Option<Before>) -> Landing<'a> {
    Landing {
        op,
        path: &draft.path,
        body: &draft.body,
        metadata: &draft.metadata,
        retention: draft.retention,
        adopts_flat: false,
        before: before.map(|before| (before.current, before.standing)),
    }
}

fn created(landed: &Landed) -> Written {
    Written {
        outcome: Outcome::Created,
        version: landed.entry.number,
        modified: landed.entry.modified,
        hash: landed.entry.content_hash,
        cursor: landed.cursor.clone(),
    }
}

fn state_record(path: &DocPath, before: &Before, archived: bool) -> WriteRecord {
    WriteRecord {
        change: Change {
            op: if archived { Op::Archive } else { Op::Publish },
            path: path.clone(),
            version: before.current.number,
            hash: before.current.content_hash,
            agent: None,
        },
        file_hash: before.current.file_hash,
        archived,
        kind: WriteKind::State,
        kept_from: 0,
        told: Seq::ZERO,
    }
}

/// A document whose link was removed by hand isn't there for a writer, but its numbers are used.
fn is_document(before: &Before) -> bool {
    before.standing != Standing::Unlinked
}

fn check_expected(before: Option<&Before>, yours: u64) -> Result<(), WriteError> {
    let server = before
        .filter(|before| is_document(before))
        .map_or(0, |before| before.current.number);
    if server == yours {
        Ok(())
    } else {
        Err(WriteError::Conflict { server, yours })
    }
}

/// True if a publish would make a version that says nothing the current one doesn't say.
fn is_same(before: &Before, draft: &Draft) -> bool {
    is_document(before)
        && before.current.content_hash == wire::ContentHash::of(&draft.body)
        && draft.says_the_same_as(before.description.metadata())
}

/// The base, a line feed if it doesn't end in one, and what is appended (D15).
fn joined(base: &[u8], addition: &[u8]) -> Result<Bytes, WriteError> {
    let feed: &[u8] = if base.ends_with(b"\n") { b"" } else { b"\n" };
    let len = base.len() + feed.len() + addition.len();
    if len > limits::BODY_LEN_MAX {
        return Err(WriteError::TooLarge {
            limit: limits::BODY_LEN_MAX,
        });
    }
    let mut body = BytesMut::with_capacity(len);
    for part in [base, feed, addition] {
        body.extend_from_slice(part);
    }
    Ok(body.freeze())
}

fn read_failed(error: ReadError) -> WriteError {
    match error {
        ReadError::Storage(error) => error.into(),
        ReadError::Archived(_) | ReadError::NotFound => WriteError::NotFound,
    }
}
