//! What lies in the tree: every name that could belong to a document, read without opening files.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use storage::{Kind, Storage};

use crate::OpenError;
use crate::layout::{self, LinkTarget, OWN_DIR, Place, VERSIONS_DIR};
use crate::migrate;
use crate::temp::Temps;

/// What was found of a document: a link, versions, or both.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) place: Place,
    pub(crate) link: FoundLink,
    /// The numbers of its version files.
    pub(crate) versions: Vec<u64>,
    /// It has a sidecar.
    pub(crate) has_sidecar: bool,
}

/// What bears the document's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FoundLink {
    /// A file that is no link.
    Flat,
    /// Nothing.
    Missing,
    /// A foreign link, a directory or something stranger.
    Other,
    /// A link to one of its versions, which need not exist.
    Version(u64),
}

/// Walks the tree and hands every document to `visit`. Trees of the older layout are converted on
/// the way, so what is handed over is always in the present one.
pub(crate) fn scan(
    storage: &dyn Storage,
    temps: &Temps,
    visit: &mut dyn FnMut(Found),
) -> Result<(), OpenError> {
    let mut left = vec![PathBuf::new()];
    while let Some(dir) = left.pop() {
        let names = read_names(storage, &dir)?;
        let is_shelf = dir.ends_with(VERSIONS_DIR);
        let is_own = |name: &str| dir.as_os_str().is_empty() && name == OWN_DIR;
        // What lies in a directory of versions is walked by whoever reads the versions.
        let walked = |name: &&String| !is_own(name) && (!is_shelf || *name == VERSIONS_DIR);
        left.extend(names.dirs.iter().filter(walked).map(|name| dir.join(name)));
        left.extend(names.unspeakable_dirs.iter().map(|name| dir.join(name)));
        scan_documents(storage, temps, &dir, &names, &mut left, visit)?;
    }
    Ok(())
}

/// The names of one directory that matter.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) dirs: Vec<String>,
    pub(crate) files: Vec<String>,
    pub(crate) links: Vec<String>,
    /// Directories whose names aren't UTF-8: nothing in them can be a document, but one that
    /// can't be read must be noticed all the same.
    unspeakable_dirs: Vec<OsString>,
}

/// Reads a directory; one that can't be read refuses the start (D54).
pub(crate) fn read_names(storage: &dyn Storage, dir: &Path) -> Result<Names, OpenError> {
    let mut names = Names::default();
    let visited = storage.read_dir(
        dir,
        &mut |entry| match (entry.name.into_string(), entry.kind) {
            (Ok(name), Kind::Dir) => names.dirs.push(name),
            (Ok(name), Kind::File) => names.files.push(name),
            (Ok(name), Kind::Symlink) => names.links.push(name),
            (Err(name), Kind::Dir) => names.unspeakable_dirs.push(name),
            (Ok(_), Kind::Other) | (Err(_), Kind::File | Kind::Symlink | Kind::Other) => {}
        },
    );
    visited.map_err(|source| unreadable(dir, source))?;
    Ok(names)
}

pub(crate) fn unreadable(path: &Path, source: io::Error) -> OpenError {
    let path = match path.as_os_str().is_empty() {
        true => "the data directory".to_owned(),
        false => path.display().to_string(),
    };
    OpenError::Unreadable { path, source }
}

fn scan_documents(
    storage: &dyn Storage,
    temps: &Temps,
    dir: &Path,
    names: &Names,
    left: &mut Vec<PathBuf>,
    visit: &mut dyn FnMut(Found),
) -> Result<(), OpenError> {
    if !names.dirs.iter().any(|name| name == VERSIONS_DIR) {
        return Ok(());
    }
    let mut shelf = read_names(storage, &dir.join(VERSIONS_DIR))?;
    let mut links = read_links(storage, dir, &names.links)?;
    if migrate::convert(storage, temps, dir, &shelf, &links)? {
        shelf = read_names(storage, &dir.join(VERSIONS_DIR))?;
        links = read_links(storage, dir, &names.links)?;
    }
    let files: HashSet<&String> = names.files.iter().collect();
    let dirs: HashSet<&String> = names.dirs.iter().collect();
    for name in shelf.dirs {
        let place = Place {
            dir: dir.to_owned(),
            name,
        };
        let link = match links.remove(&place.name) {
            Some(LinkTarget::Version(number)) => FoundLink::Version(number),
            Some(LinkTarget::OldVersion(_) | LinkTarget::Foreign) => FoundLink::Other,
            None if files.contains(&place.name) => FoundLink::Flat,
            None if dirs.contains(&place.name) => FoundLink::Other,
            None => FoundLink::Missing,
        };
        let files = read_names(storage, &place.versions())?;
        if !files.dirs.is_empty() || !files.links.is_empty() {
            left.push(place.versions());
        }
        if let Some(found) = found(place, link, &files) {
            visit(found);
        }
    }
    Ok(())
}

/// Where each link of a directory leads.
fn read_links(
    storage: &dyn Storage,
    dir: &Path,
    names: &[String],
) -> Result<BTreeMap<String, LinkTarget>, OpenError> {
    let mut links = BTreeMap::new();
    for name in names {
        let place = Place {
            dir: dir.to_owned(),
            name: name.clone(),
        };
        let text = storage.read_link(&place.link());
        let text = text.map_err(|source| unreadable(&place.link(), source))?;
        links.insert(place.name.clone(), place.parse_link(&text));
    }
    Ok(links)
}

/// What the names in a directory of versions come to; `None` if there is no version, as a killed
/// first publish leaves it.
fn found(place: Place, link: FoundLink, names: &Names) -> Option<Found> {
    let versions: Vec<u64> = names
        .files
        .iter()
        .filter_map(|name| layout::parse_version_name(name))
        .collect();
    (!versions.is_empty()).then(|| Found {
        place,
        link,
        versions,
        has_sidecar: names.files.iter().any(|name| layout::is_sidecar(name)),
    })
}
