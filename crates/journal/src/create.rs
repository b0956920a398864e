//! How an epoch begins.
//!
//! What lies in the journal's directory is set aside as a whole, by one rename, before anything is
//! made: a crash in between leaves no journal, so the owner begins an epoch again. Moving or
//! removing segments one by one could leave a shorter journal of the old epoch that looks whole,
//! and numbers would be given out twice. One generation is kept for whoever wants to look into it;
//! it is removed when the next one is set aside, so that the space is bounded.

use std::io;
use std::path::{Path, PathBuf};

use storage::{Kind, Storage};
use wire::{Epoch, Seq};

use crate::OpenError;
use crate::segment::{self, Segment};

/// Begins an epoch whose first record may have `first_seq`.
pub(crate) fn create(
    storage: &dyn Storage,
    dir: &Path,
    epoch: &Epoch,
    first_seq: Seq,
) -> Result<Segment, OpenError> {
    let parent = dir.parent().unwrap_or_else(|| Path::new(""));
    set_aside(storage, dir, parent)?;
    storage.create_dir(dir).map_err(OpenError::at(dir))?;
    storage.sync_dir(parent).map_err(OpenError::at(parent))?;
    segment::create(storage, dir, epoch, first_seq).map_err(OpenError::at(dir))
}

/// Where the journal that an epoch replaced is kept.
fn aside_path(dir: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(dir.file_name().unwrap_or_default());
    name.push(".aside");
    dir.with_file_name(name)
}

fn set_aside(storage: &dyn Storage, dir: &Path, parent: &Path) -> Result<(), OpenError> {
    match storage.stat(dir) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(OpenError::at(dir)(error)),
    }
    let aside = aside_path(dir);
    remove_tree(storage, &aside).map_err(OpenError::at(&aside))?;
    storage
        .rename_new(dir, &aside)
        .map_err(OpenError::at(&aside))?;
    storage.sync_dir(parent).map_err(OpenError::at(parent))
}

/// Removes a directory of files. Directories in it are not ours and make it stay.
fn remove_tree(storage: &dyn Storage, dir: &Path) -> io::Result<()> {
    let mut names = Vec::new();
    let listed = storage.read_dir(dir, &mut |entry| {
        if entry.kind != Kind::Dir {
            names.push(entry.name);
        }
    });
    match listed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    }
    for name in names {
        storage.remove_file(&dir.join(name))?;
    }
    storage.remove_dir(dir)
}
