//! Paths that writes in flight are about to make documents of.
//!
//! Two writes that would put a document below a document, or over a directory, must not both
//! pass the check and meet on disk (D33). A write therefore reserves its path before it makes
//! directories; the check counts reservations as if they were documents. A reservation ends
//! when it is dropped, so no way out of a write can leave one behind.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;
use wire::DocPath;

use super::VERSIONS;
use super::tree::{Directory, Found};

/// Why no document can be written at a path. Nothing was changed on disk.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Collision {
    /// A document lies where a directory would have to be.
    #[error("path collision: {document} is a document")]
    BelowDocument {
        /// The document in the way.
        document: DocPath,
    },
    /// Documents lie, or are being written, below the path.
    #[error("path collision: {directory}/ is a directory")]
    OverDirectory {
        /// The directory in the way, which is the path itself.
        directory: DocPath,
    },
    /// The path is the root.
    #[error("path collision: / is a directory")]
    Root,
    /// A segment has the name under which stored versions lie (D35).
    #[error("path collision: {directory}/ holds the versions of documents")]
    Versions {
        /// The path up to that segment.
        directory: DocPath,
    },
}

impl Collision {
    /// What is in the way.
    pub(crate) fn path(&self) -> DocPath {
        match self {
            Self::BelowDocument { document } => document.clone(),
            Self::OverDirectory { directory } | Self::Versions { directory } => directory.clone(),
            Self::Root => DocPath::root(),
        }
    }
}

/// The right to make a document at a path. Several of one path may exist.
#[derive(Debug)]
pub(crate) struct Reservation {
    path: DocPath,
    reserved: Arc<Reserved>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut paths = self.reserved.paths();
        if let Some(count) = paths.get_mut(&self.path) {
            *count -= 1;
            if *count == 0 {
                paths.remove(&self.path);
            }
        }
    }
}

/// The reserved paths, each with the number of its reservations.
#[derive(Debug, Default)]
pub(super) struct Reserved(Mutex<BTreeMap<DocPath, usize>>);

impl Reserved {
    /// Checks `path` against `tree` and the other reservations, and reserves it.
    pub(super) fn reserve(
        self: &Arc<Self>,
        tree: &Directory,
        path: &DocPath,
    ) -> Result<Reservation, Collision> {
        if path.is_root() {
            return Err(Collision::Root);
        }
        check_names(path)?;
        check_tree(tree, path)?;
        let mut paths = self.paths();
        check_reserved(&paths, path)?;
        *paths.entry(path.clone()).or_default() += 1;
        Ok(Reservation {
            path: path.clone(),
            reserved: Arc::clone(self),
        })
    }

    /// A panic in another thread can't leave the map half changed, so poison is ignored.
    fn paths(&self) -> MutexGuard<'_, BTreeMap<DocPath, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_names(path: &DocPath) -> Result<(), Collision> {
    let mut above = Some(path.clone());
    while let Some(directory) = above {
        if directory.name() == VERSIONS {
            return Err(Collision::Versions { directory });
        }
        above = directory.parent();
    }
    Ok(())
}

fn check_tree(tree: &Directory, path: &DocPath) -> Result<(), Collision> {
    match tree.find(path) {
        Found::Document(_) | Found::Nothing => Ok(()),
        Found::DocumentAbove(document) => Err(Collision::BelowDocument {
            document: document.path().clone(),
        }),
        Found::Directory(_) => Err(Collision::OverDirectory {
            directory: path.clone(),
        }),
    }
}

fn check_reserved(paths: &BTreeMap<DocPath, usize>, path: &DocPath) -> Result<(), Collision> {
    let mut above = path.parent();
    while let Some(document) = above {
        if paths.contains_key(&document) {
            return Err(Collision::BelowDocument { document });
        }
        above = document.parent();
    }
    let below = paths
        .range::<DocPath, _>((Bound::Excluded(path), Bound::Unbounded))
        .map(|(other, _)| other)
        .take_while(|other| other.as_str().starts_with(path.as_str()))
        .any(|other| other.is_below(path));
    if below {
        return Err(Collision::OverDirectory {
            directory: path.clone(),
        });
    }
    Ok(())
}
