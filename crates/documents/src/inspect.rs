//! A look at a data directory from the outside, as `tidings doctor` takes it.
//!
//! Nothing is changed and no lock is taken, so a server may use the directory meanwhile; what is
//! seen then is one moment or another of each file.

use std::io;
use std::path::Path;

use journal::Inspected;
use storage::{Disk, Storage};
use wire::{Epoch, Seq};

use crate::OpenError;
use crate::checkpoint;
use crate::layout::{CHECKPOINT, JOURNAL_DIR};

/// What the server's own files in a data directory come to.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The journal.
    pub journal: Inspected,
    /// What was noted of the tree.
    pub checkpoint: CheckpointState,
}

/// What was noted of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointState {
    /// Nothing.
    Absent,
    /// A file that can't be read.
    Damaged,
    /// The tree after one change.
    Sound {
        /// The epoch it belongs to.
        epoch: Epoch,
        /// Every change up to here is in it.
        seq: Seq,
        /// How many documents there were.
        documents: usize,
    },
}

/// Looks at the data directory `root`, which must exist. Blocks on the disk.
pub fn inspect(root: &Path) -> Result<Inspection, OpenError> {
    let disk = Disk::open(root)?;
    Ok(Inspection {
        journal: journal::inspect(&disk, Path::new(JOURNAL_DIR))?,
        checkpoint: checkpoint_state(&disk)?,
    })
}

fn checkpoint_state(disk: &Disk) -> io::Result<CheckpointState> {
    if let Err(error) = disk.stat(Path::new(CHECKPOINT)) {
        return match error.kind() {
            io::ErrorKind::NotFound => Ok(CheckpointState::Absent),
            _ => Err(error),
        };
    }
    let read = checkpoint::read(disk)?;
    Ok(read.map_or(CheckpointState::Damaged, |checkpoint| {
        CheckpointState::Sound {
            epoch: checkpoint.epoch,
            seq: checkpoint.seq,
            documents: checkpoint.documents.len(),
        }
    }))
}
