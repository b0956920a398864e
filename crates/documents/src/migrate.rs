//! The older layout, moved to the present one when a tree is opened.
//!
//! For each document all `versions/NAME.vN` are moved to `versions/NAME/vN`, the oldest first, and
//! only then is the link moved. No byte of a version changes, so hashes, etags, chain and archived
//! flag stay what they were. A kill leaves some files moved and the link on its old text; the next
//! opening sees that and goes on (D88).
//!
//! A file is moved by a rename, which file systems that are fit for this do in one step. Copying
//! was rejected: it would give every version another time of modification, which readers are shown.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use storage::{Kind, Storage};

use crate::OpenError;
use crate::layout::{self, LinkTarget, Place};
use crate::open::scan::{Names, unreadable};
use crate::temp::Temps;
use crate::version_file;

/// Converts the documents of `dir`; true if there was anything to convert.
pub(crate) fn convert(
    storage: &dyn Storage,
    temps: &Temps,
    dir: &Path,
    shelf: &Names,
    links: &BTreeMap<String, LinkTarget>,
) -> Result<bool, OpenError> {
    let mut old: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (name, number) in shelf
        .files
        .iter()
        .filter_map(|name| layout::parse_old_version_name(name))
    {
        old.entry(name).or_default().push(number);
    }
    // A link whose files are all moved already still has to be moved itself.
    let old_links = links
        .iter()
        .filter(|(_, target)| matches!(target, LinkTarget::OldVersion(_)))
        .filter(|(name, _)| shelf.dirs.contains(name));
    for (name, _) in old_links {
        old.entry(name).or_default();
    }
    let mut is_any = false;
    for (name, mut numbers) in old {
        let place = Place {
            dir: dir.to_owned(),
            name: name.to_owned(),
        };
        let link = links.get(name).copied();
        numbers.sort_unstable();
        if is_document(storage, &place, link, &numbers) {
            convert_document(storage, temps, &place, link, &numbers)?;
            is_any = true;
        }
    }
    Ok(is_any)
}

/// True if the files are versions of a document and no files that a person named like some: its
/// link says so, or there is none and each file says its own number.
fn is_document(
    storage: &dyn Storage,
    place: &Place,
    link: Option<LinkTarget>,
    numbers: &[u64],
) -> bool {
    let says_its_number = |number: &u64| {
        version_file::read(storage, &place.old_version(*number), *number)
            .is_ok_and(|stored| stored.number == Some(*number))
    };
    match link {
        Some(LinkTarget::OldVersion(_)) => true,
        Some(LinkTarget::Foreign | LinkTarget::Version(_)) => false,
        None => numbers.iter().all(says_its_number),
    }
}

fn convert_document(
    storage: &dyn Storage,
    temps: &Temps,
    place: &Place,
    link: Option<LinkTarget>,
    numbers: &[u64],
) -> Result<(), OpenError> {
    make_versions_dir(storage, place)?;
    for number in numbers {
        move_version(
            storage,
            &place.old_version(*number),
            &place.version(*number),
        )?;
    }
    storage.sync_dir(&place.versions())?;
    storage.sync_dir(&place.shelf())?;
    if let Some(LinkTarget::OldVersion(number)) = link {
        temps
            .link(&place.link_text(number))?
            .replace(&place.link())?;
        storage.sync_dir(&place.dir)?;
    }
    Ok(())
}

/// A power cut may leave a moved file under both names, on a file system that keeps them apart.
fn move_version(storage: &dyn Storage, from: &Path, to: &Path) -> Result<(), OpenError> {
    match storage.rename_new(from, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if version_file::hash(storage, from)? == version_file::hash(storage, to)? {
                return Ok(storage.remove_file(from)?);
            }
            Err(OpenError::Migration {
                path: from.display().to_string(),
                other: to.display().to_string(),
            })
        }
        result => result.map_err(|source| unreadable(from, source)),
    }
}

/// The directory may be there from a conversion that was killed. A document of the older layout
/// that lies in a directory named `versions` may stand in its place, and then neither can give way.
fn make_versions_dir(storage: &dyn Storage, place: &Place) -> Result<(), OpenError> {
    let dir = place.versions();
    match storage.create_dir(&dir) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if storage.stat(&dir)?.kind == Kind::Dir {
                return Ok(());
            }
            Err(OpenError::Migration {
                path: place.link().display().to_string(),
                other: dir.display().to_string(),
            })
        }
        Err(error) => Err(error.into()),
    }
}
