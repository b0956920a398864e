//! What an opening does once everything was read: mending, paying syncs, taking back.

use std::collections::HashSet;
use std::io;

use journal::Journal;
use storage::{Mode, Storage};
use wire::Seq;

use super::known::Replay;
use super::reconcile::Fix;
use super::{Case, Report};
use crate::OpenError;
use crate::checkpoint::Checkpoint;
use crate::dirs::{DirError, Dirs};
use crate::index::Index;
use crate::landing;
use crate::layout::{self, Place};
use crate::record::Record;
use crate::temp::Temps;

/// What was mended.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub(super) set_aside: Vec<String>,
}

/// Makes one document's files what was decided, and makes that last.
pub(super) fn mend(
    storage: &dyn Storage,
    temps: &Temps,
    case: &Case,
    settled: &mut Settled,
) -> io::Result<()> {
    let (Some(found), false) = (&case.found, case.outcome.fixes.is_empty()) else {
        return Ok(());
    };
    let place = &found.place;
    for fix in &case.outcome.fixes {
        tracing::info!(path = %case.path, ?fix, "mending what was left unfinished");
        match fix {
            Fix::AdoptFlat(number) => {
                landing::adopt_flat(storage, place, *number)?;
                temps
                    .link(&place.link_text(*number))?
                    .replace(&place.link())?;
            }
            Fix::MoveLink(number) => temps
                .link(&place.link_text(*number))?
                .replace(&place.link())?,
            Fix::RemoveLink => storage.remove_file(&place.link())?,
            Fix::RemoveVersion(number) => storage.remove_file(&place.version(*number))?,
            Fix::SetAside(number) => {
                let aside = landing::set_aside(storage, place, *number)?;
                settled.set_aside.push(aside.display().to_string());
            }
            Fix::WriteSidecar(archived) => {
                let text = layout::sidecar_text(*archived);
                let (sidecar, _) = temps.write(text, Mode::Public)?;
                sidecar.replace(&place.sidecar())?;
            }
        }
    }
    storage.sync_dir(&place.versions())?;
    storage.sync_dir(&place.dir)
}

/// Makes durable what a killed process may have left in the system's memory alone: the names of
/// everything that was written after the checkpoint, up to the root.
pub(super) fn pay_syncs(
    storage: &dyn Storage,
    dirs: &Dirs,
    replay: &Replay,
    checkpoint: Option<&Checkpoint>,
    cases: &[Case],
) -> Result<(), OpenError> {
    let Some(checkpoint) = checkpoint else {
        return Ok(());
    };
    let touched = replay.touched(checkpoint);
    let found = cases
        .iter()
        .filter(|case| case.found.is_some() && touched.contains(&case.path));
    for case in found {
        let place = Place::of(&case.path);
        storage.sync_dir(&place.versions())?;
        let paid = dirs.ensure(&place.versions(), &|_| true, &mut Vec::new());
        paid.map_err(|error| match error {
            DirError::Io(error) => OpenError::Storage(error),
            DirError::Taken(dir) => {
                OpenError::Storage(io::Error::other(format!("{} changed", dir.display())))
            }
        })?;
    }
    Ok(())
}

/// Says in the journal that writes did not happen.
pub(super) fn take_back(journal: &Journal, seqs: &HashSet<Seq>) -> Result<(), OpenError> {
    let mut seqs: Vec<Seq> = seqs.iter().copied().collect();
    seqs.sort_unstable();
    for void in seqs {
        tracing::info!(seq = %void, "a write that never landed is taken back");
        let seq = journal.last().next();
        let ticket = journal.append(seq, &Record::Void(void).encode());
        ticket
            .and_then(|ticket| journal.wait(&ticket))
            .map_err(|error| OpenError::Storage(io::Error::other(error)))?;
    }
    Ok(())
}

/// The documents as they are served. Where two claim one place the first by name has it.
pub(super) fn index(cases: Vec<Case>, report: &mut Report) -> Index {
    let mut index = Index::new();
    for case in cases {
        if let Some(document) = case.outcome.document
            && index.insert_document(document).is_err()
        {
            tracing::error!(path = %case.path, "another document or directory has this place");
            report.displaced.push(case.path);
        }
    }
    index
}
