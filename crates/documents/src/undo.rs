//! What a write did to the tree, so that a write that fails leaves no trace (D7, D51).
//!
//! Steps are noted as they are done and put back in the reverse order on drop, unless the write
//! was kept. Putting back is the best that can be tried on a disk that may have just failed; what
//! it can't do, the next opening does, because no record says that the write happened.

use std::io;
use std::path::{Path, PathBuf};

use crate::layout::Place;
use crate::store::Parts;

/// The steps of one write.
#[derive(Debug)]
pub(crate) struct Undo<'a> {
    parts: &'a Parts,
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Dirs(Vec<PathBuf>),
    Flat { place: Place, from: PathBuf },
    Link { place: Place, back_to: Option<u64> },
    Sidecar { place: Place, back_to: Option<bool> },
    Version { place: Place, number: u64 },
}

impl<'a> Undo<'a> {
    /// Nothing was done yet.
    pub(crate) fn new(parts: &'a Parts) -> Self {
        Self {
            parts,
            steps: Vec::new(),
        }
    }

    /// Directories were made.
    pub(crate) fn made_dirs(&mut self, made: Vec<PathBuf>) {
        self.steps.push(Step::Dirs(made));
    }

    /// A version file was put in its place.
    pub(crate) fn placed_version(&mut self, place: &Place, number: u64) {
        let place = place.clone();
        self.steps.push(Step::Version { place, number });
    }

    /// The flat file that bore the document's name was moved.
    pub(crate) fn moved_flat(&mut self, place: &Place, to: &Path) {
        let (place, from) = (place.clone(), to.to_owned());
        self.steps.push(Step::Flat { place, from });
    }

    /// The link was moved; before, it led to `back_to`, or there was none.
    pub(crate) fn moved_link(&mut self, place: &Place, back_to: Option<u64>) {
        let place = place.clone();
        self.steps.push(Step::Link { place, back_to });
    }

    /// The sidecar was written over what said `back_to`, or where there was none.
    pub(crate) fn wrote_sidecar(&mut self, place: &Place, back_to: Option<bool>) {
        let place = place.clone();
        self.steps.push(Step::Sidecar { place, back_to });
    }

    /// The write stands.
    pub(crate) fn keep(mut self) {
        self.steps.clear();
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        while let Some(step) = self.steps.pop() {
            if let Err(error) = self.parts.put_back(step) {
                tracing::warn!(%error, "a failed write left a trace for the next opening");
            }
        }
    }
}

impl Parts {
    /// A step is noted before it is tried, so it may not have been done.
    fn remove_if_there(&self, path: &Path) -> io::Result<()> {
        match self.storage.remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn put_back(&self, step: Step) -> io::Result<()> {
        match step {
            Step::Dirs(made) => {
                self.dirs.remove(&made);
                Ok(())
            }
            Step::Flat { place, from } => {
                self.storage.rename_new(&from, &place.link())?;
                self.storage.sync_dir(&place.dir)
            }
            Step::Link { place, back_to } => {
                match back_to {
                    Some(number) => {
                        let temp = self.temps.link(&place.link_text(number))?;
                        temp.replace(&place.link())?;
                    }
                    None => self.remove_if_there(&place.link())?,
                }
                self.storage.sync_dir(&place.dir)
            }
            Step::Sidecar { place, back_to } => match back_to {
                Some(archived) => self.write_sidecar(&place, archived),
                None => {
                    self.remove_if_there(&place.sidecar())?;
                    self.storage.sync_dir(&place.versions())
                }
            },
            Step::Version { place, number } => {
                self.remove_if_there(&place.version(number))?;
                self.storage.sync_dir(&place.versions())
            }
        }
    }
}
