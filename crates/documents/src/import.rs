//! Hand-written files becoming documents: from a folder elsewhere, or in place.
//!
//! Each file is judged by itself; one that is refused is named with its reason and the others go
//! on. A file whose text is the document's already makes no version, so a second run changes
//! nothing and a run that was cut goes on where it was (D92). A document with other content is
//! refused unless overwriting was asked for.
//!
//! In place, a flat file in the tree becomes version 1 of the document that its name promises. Its
//! bytes are on disk at every moment: the version is durable before the file is moved to a hidden
//! name beside it, only then does the link take its name, and the moved file goes only once it was
//! seen to hold what the version holds (D87). If somebody went on writing to it, it stays.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use storage::{Kind, Refusal, Storage};
use thiserror::Error;
use wire::limits::BODY_LEN_MAX;
use wire::{ContentHash, DocPath};

use crate::answer::{Outcome, Written};
use crate::draft::{Draft, DraftError};
use crate::layout::{self, OWN_DIR, VERSIONS_DIR};
use crate::{FileStore, Progress, WriteError};

/// Directories of other programs in which no document is ever meant.
const FOREIGN_DIRS: [&str; 5] = [".git", ".hg", ".svn", ".stfolder", OWN_DIR];

/// What becomes of documents that are there with other content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// They stay, and the file is refused.
    Keep,
    /// They get a further version.
    Overwrite,
}

/// Why a file was not imported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Somebody wrote to the file while it was imported. The document has what was read; what the
    /// file holds by now lies at the hidden name.
    #[error("was written to meanwhile; what it holds by now is kept at {}", .0.display())]
    Changed(PathBuf),
    /// There is a document with other content.
    #[error("a document with other content is there; ask for overwriting to replace it")]
    Differs,
    /// It breaks the contract of a document.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// It has no content, and an empty body can't be published.
    #[error("the file is empty")]
    Empty,
    /// The directory belongs to another program, or holds versions.
    #[error("the directory is not one of documents")]
    ForeignDir,
    /// It is a symbolic link, which is never followed.
    #[error("symbolic links are not followed")]
    Link,
    /// Its name, or that of a directory above it, can't be part of a path.
    #[error("the name can't be the path of a document")]
    Name,
    /// It is no regular file.
    #[error("not a regular file")]
    NotRegular,
    /// It can't be read.
    #[error("can't be read: {0}")]
    Read(io::Error),
    /// The store refused it.
    #[error(transparent)]
    Write(WriteError),
}

/// A file of a folder, on its way to be a document.
#[derive(Debug)]
pub struct Candidate {
    /// Where it lies in the folder.
    pub file: PathBuf,
    /// Where it goes, unless that is refused already.
    pub path: Result<DocPath, ImportError>,
}

/// The files of a folder in the order of their names, and what is refused at sight.
#[derive(Debug)]
pub struct Folder<'a> {
    storage: &'a dyn Storage,
    /// What is to be tried.
    pub candidates: Vec<Candidate>,
}

impl<'a> Folder<'a> {
    /// Lists everything below `dir`, which becomes `prefix`.
    pub fn read(storage: &'a dyn Storage, dir: &Path, prefix: &DocPath) -> io::Result<Self> {
        let mut folder = Self {
            storage,
            candidates: Vec::new(),
        };
        folder.walk(dir, Path::new(""), prefix)?;
        folder.candidates.sort_by(|a, b| a.file.cmp(&b.file));
        Ok(folder)
    }

    /// Reads a file as the body of a document. It is bounded, follows no link, blocks on nothing.
    pub fn body(&self, file: &Path) -> Result<Bytes, ImportError> {
        let opened = self.storage.open(file).map_err(ImportError::Read)?;
        match opened.read_all(BODY_LEN_MAX as u64) {
            Ok(bytes) if bytes.is_empty() => Err(ImportError::Empty),
            Ok(bytes) => Ok(bytes.into()),
            Err(error) if Refusal::of(&error) == Some(Refusal::TooLong) => {
                Err(DraftError::TooLarge.into())
            }
            Err(error) => Err(ImportError::Read(error)),
        }
    }

    fn walk(&mut self, dir: &Path, relative: &Path, prefix: &DocPath) -> io::Result<()> {
        let mut entries = Vec::new();
        self.storage
            .read_dir(&dir.join(relative), &mut |entry| entries.push(entry))?;
        for entry in entries {
            let relative = relative.join(&entry.name);
            let name = entry.name.to_str().unwrap_or_default();
            let refusal = match entry.kind {
                Kind::Dir if FOREIGN_DIRS.contains(&name) || name == VERSIONS_DIR => {
                    ImportError::ForeignDir
                }
                Kind::Dir => {
                    self.walk(dir, &relative, prefix)?;
                    continue;
                }
                Kind::Symlink => ImportError::Link,
                Kind::Other => ImportError::NotRegular,
                Kind::File => {
                    let path = target(prefix, &relative);
                    self.push(dir, &relative, path);
                    continue;
                }
            };
            self.push(dir, &relative, Err(refusal));
        }
        Ok(())
    }

    fn push(&mut self, dir: &Path, relative: &Path, path: Result<DocPath, ImportError>) {
        let file = dir.join(relative);
        self.candidates.push(Candidate { file, path });
    }
}

fn target(prefix: &DocPath, relative: &Path) -> Result<DocPath, ImportError> {
    let relative = layout::path_of(relative).ok_or(ImportError::Name)?;
    let text = format!("{}{relative}", prefix.as_str().trim_end_matches('/'));
    DocPath::parse(&text).map_err(|_| ImportError::Name)
}

/// What an import tells of each file as it is done with it.
pub type ImportVisit<'a> = &'a mut dyn FnMut(&Path, Result<Written, ImportError>, Progress);

impl FileStore {
    /// Publishes the files of `source`, a folder elsewhere, below `prefix`.
    pub fn import(
        &self,
        source: &dyn Storage,
        prefix: &DocPath,
        existing: Existing,
        visit: ImportVisit<'_>,
    ) -> io::Result<()> {
        let folder = Folder::read(source, Path::new(""), prefix)?;
        each(folder, visit, |folder, file, path| {
            let body = folder.body(file)?;
            self.import_one(path, body, existing)
        });
        Ok(())
    }

    /// Makes documents of the flat files that lie below `dir` in the tree itself.
    pub fn import_in_place(&self, dir: &DocPath, visit: ImportVisit<'_>) -> io::Result<()> {
        let storage = &*self.parts.storage;
        let mut folder = Folder::read(storage, &layout::dir_of(dir), dir)?;
        // The links and directories of the documents that are there are no news.
        folder.candidates.retain(|candidate| {
            !matches!(
                candidate.path,
                Err(ImportError::Link | ImportError::ForeignDir)
            )
        });
        each(folder, visit, |folder, file, path| {
            let body = folder.body(file)?;
            let draft = Draft::publish(path, body, [])?;
            let (written, kept) = self.adopt(draft).map_err(ImportError::Write)?;
            match kept {
                Some(kept) => Err(ImportError::Changed(kept)),
                None => Ok(written),
            }
        });
        Ok(())
    }

    fn import_one(
        &self,
        path: DocPath,
        body: Bytes,
        existing: Existing,
    ) -> Result<Written, ImportError> {
        let hash = ContentHash::of(&body);
        let draft = Draft::publish(path, body, [])?;
        let known = {
            let index = self.parts.index();
            let document = index.document(&draft.path);
            document
                .filter(|document| document.is_live())
                .map(|document| document.current().clone())
        };
        let expected = match known {
            Some(current) if current.content_hash == hash => {
                return Ok(Written {
                    outcome: Outcome::Unchanged,
                    version: current.number,
                    modified: current.modified,
                    hash,
                    cursor: self.parts.feed.head(),
                });
            }
            Some(current) if existing == Existing::Overwrite => current.number,
            Some(_) => return Err(ImportError::Differs),
            None => 0,
        };
        self.publish(draft, Some(expected), &|| true)
            .map_err(|error| match error {
                WriteError::Conflict { .. } => ImportError::Differs,
                other => ImportError::Write(other),
            })
    }
}

fn each(
    mut folder: Folder<'_>,
    visit: ImportVisit<'_>,
    import: impl Fn(&Folder<'_>, &Path, DocPath) -> Result<Written, ImportError>,
) {
    let candidates = std::mem::take(&mut folder.candidates);
    let total = candidates.len();
    for (place, candidate) in candidates.into_iter().enumerate() {
        let Candidate { file, path } = candidate;
        let result = path.and_then(|path| import(&folder, &file, path));
        let done = place + 1;
        visit(&file, result, Progress { done, total });
    }
}
