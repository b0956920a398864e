//! An import of files that lie by hand in the data directory of a server.
//!
//! Such files are no documents, and the server refuses to write over them. They become documents
//! where they are, so the store is opened here, which the server's lock allows only while it is
//! stopped.

use std::path::{Path, PathBuf};

use documents::{FileStore, OpenError};
use wire::{DocPath, Target};

use super::Tally;
use super::place::Outcome;
use crate::command::failure::Failure;

/// What marks the root of a data directory: the server's own files lie in it.
const OWN_DIR: &str = ".tidings";

/// A folder in a data directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    root: PathBuf,
    dir: DocPath,
}

impl Place {
    /// Finds the data directory that `dir` is or lies in, if there is one.
    pub(super) fn of(dir: &Path) -> Result<Option<Self>, Failure> {
        let dir = dir.canonicalize()?;
        let Some(root) = dir.ancestors().find(|above| above.join(OWN_DIR).is_dir()) else {
            return Ok(None);
        };
        let below = dir.strip_prefix(root).unwrap_or_else(|_| Path::new(""));
        let spelled = Path::new("/").join(below);
        let target = Target::parse(spelled.as_os_str().as_encoded_bytes())
            .map_err(|error| Failure::usage(format!("{}: {error}", dir.display())))?;
        Ok(Some(Self {
            root: root.to_owned(),
            dir: target.path,
        }))
    }

    /// Makes documents of the files.
    pub(super) fn import(&self, tally: &mut Tally) -> Result<(), Failure> {
        let config = documents::Config::default();
        let store = FileStore::open(&self.root, config, &mut |_| {}).map_err(unopened)?;
        let mut told = Ok(());
        let imported = store.import_in_place(&self.dir, &mut |file, result, progress| {
            let outcome = match result {
                Ok(written) if written.outcome == documents::Outcome::Unchanged => {
                    Outcome::Unchanged
                }
                Ok(_) => Outcome::Created,
                Err(error) => Outcome::Refused(error.to_string()),
            };
            tally.expect(progress.total);
            let counted = tally.count(&file.to_string_lossy(), &outcome);
            if told.is_ok() {
                told = counted;
            }
        });
        store.close().map_err(unopened)?;
        imported?;
        told
    }
}

fn unopened(error: OpenError) -> Failure {
    let is_in_use = matches!(error, OpenError::InUse { .. });
    let failure = Failure::no(error);
    if is_in_use {
        failure.fix("files in a server's own tree are imported while it is stopped")
    } else {
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_a_data_directory_is_found_with_its_path() {
        let root = tempfile::tempdir().unwrap();
        let notes = root.path().join("notes");
        std::fs::create_dir(&notes).unwrap();
        assert_eq!(Place::of(&notes).unwrap(), None);
        std::fs::create_dir(root.path().join(OWN_DIR)).unwrap();
        let place = Place::of(&notes).unwrap().unwrap();
        assert_eq!(place.dir.as_str(), "/notes");
        assert!(Place::of(root.path()).unwrap().unwrap().dir.is_root());
    }
}
