//! The journal and the checkpoint: whether the sequence goes on at the next start.

use documents::{CheckpointState, Inspection, JournalState, OpenError};
use wire::{Epoch, Seq};

use super::Surroundings;
use super::finding::Finding;

const SUBJECT: &str = "journal";

/// A server frees segments while they are looked at; it takes a checkpoint to do so again.
const TRIES: usize = 3;

pub(super) fn examine(around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    let root = &around.settings.data;
    let look = |_| documents::inspect(root);
    let mut looks = (0..TRIES).map(look);
    let looked = looks
        .find(Result::is_ok)
        .unwrap_or_else(|| documents::inspect(root));
    match looked {
        Ok(inspection) => judge(&inspection, around, found),
        Err(error) => found.push(unreadable(&error, around)),
    }
}

fn unreadable(error: &OpenError, around: &Surroundings<'_>) -> Finding {
    let private = around.settings.private_dir();
    let mend = format!("chown -R \"$USER\" '{}'", private.display());
    Finding::bad(SUBJECT, format!("can't be read: {error}"), mend)
}

fn judge(inspection: &Inspection, around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    let restart = "tidings serve   # begins a new epoch, and watchers are told to rebuild";
    match &inspection.journal {
        JournalState::Absent if inspection.checkpoint == CheckpointState::Absent => {
            found.push(Finding::ok(SUBJECT, "none yet; the first start makes one"));
        }
        JournalState::Absent => {
            found.push(Finding::bad(
                SUBJECT,
                "it is gone, and the checkpoint is there",
                restart,
            ));
        }
        JournalState::Unusable(reason) => {
            found.push(Finding::bad(
                SUBJECT,
                format!("it can't go on: {reason}"),
                restart,
            ));
        }
        JournalState::Sound {
            epoch,
            oldest,
            last,
            bytes,
            torn_bytes,
        } => {
            let changes = match oldest > last {
                true => "no change yet".to_owned(),
                false => format!("changes {oldest} to {last}"),
            };
            let what = format!("epoch {epoch}, {changes}, {bytes} bytes");
            found.push(Finding::ok(SUBJECT, what));
            if *torn_bytes > 0 && around.holder.is_none() {
                let what = format!(
                    "a write was cut short: the next start drops {torn_bytes} bytes that nobody \
                     was told of"
                );
                found.push(Finding::warn(SUBJECT, what, "tidings serve"));
            }
            found.push(checkpoint(&inspection.checkpoint, epoch, *last, restart));
        }
    }
}

/// Beside a server the checkpoint may be newer than the journal that was read before it.
fn checkpoint(state: &CheckpointState, current: &Epoch, last: Seq, restart: &str) -> Finding {
    match state {
        CheckpointState::Absent => {
            Finding::bad(SUBJECT, "there is no checkpoint of the tree", restart)
        }
        CheckpointState::Damaged => {
            Finding::bad(SUBJECT, "the checkpoint of the tree is damaged", restart)
        }
        CheckpointState::Sound { epoch, .. } if epoch != current => {
            let what = format!("the checkpoint belongs to another epoch, {epoch}");
            Finding::bad(SUBJECT, what, restart)
        }
        CheckpointState::Sound { seq, documents, .. } => {
            let behind = last.get().saturating_sub(seq.get());
            let what = format!("the checkpoint has {documents} documents, {behind} changes behind");
            Finding::ok(SUBJECT, what)
        }
    }
}
