//! Where things lie in a data directory, as pure functions on names.
//!
//! ```text
//! notes/tea.md -> versions/tea.md/v3       the link: the document's name
//! notes/versions/tea.md/v1 v2 v3           the versions, never changed once they are linked
//! notes/versions/tea.md/archive-state      "true\n" or "false\n", may be missing
//! notes/versions/tea.md/.v4.aside          set aside: proved by nothing, kept for a person
//! .tidings/                                ours: lock, journal, checkpoint, temporary files
//! ```
//!
//! The older layout has no directory per document: its versions are `notes/versions/tea.md.v3`
//! and the link leads there. `docs/formats.md` draws both.
//!
//! Temporary files lie in `.tidings/tmp/` and not beside what they become, so that everything in
//! there is ours and can be removed at the next start, and a person's file can't bear the name of
//! one (D56). They are moved to their place by a rename within the file system.

use std::path::{Path, PathBuf};

use wire::DocPath;

/// The directory beside the documents of a directory that holds their versions.
pub(crate) const VERSIONS_DIR: &str = "versions";
/// The server's own directory at the root.
pub(crate) const OWN_DIR: &str = ".tidings";
/// The lock of the data directory; it holds the process id.
pub(crate) const LOCK: &str = ".tidings/lock";
/// The directory of the journal's segments.
pub(crate) const JOURNAL_DIR: &str = ".tidings/journal";
/// The checkpoint of what is known of the tree.
pub(crate) const CHECKPOINT: &str = ".tidings/index";
/// The directory of temporary files.
pub(crate) const TEMP_DIR: &str = ".tidings/tmp";
/// The sidecar in a document's directory of versions.
const SIDECAR: &str = "archive-state";

/// The places of one document on disk, relative to the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The directory that holds the link; empty for the root.
    pub(crate) dir: PathBuf,
    /// The document's name.
    pub(crate) name: String,
}

impl Place {
    /// The places of the document at `path`, which isn't the root.
    pub(crate) fn of(path: &DocPath) -> Self {
        Self {
            dir: dir_of(&path.parent().unwrap_or_else(DocPath::root)),
            name: path.name().to_owned(),
        }
    }

    /// The link.
    pub(crate) fn link(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    /// The directory `versions` that this document shares with its neighbours.
    pub(crate) fn shelf(&self) -> PathBuf {
        self.dir.join(VERSIONS_DIR)
    }

    /// The directory of this document's versions.
    pub(crate) fn versions(&self) -> PathBuf {
        self.shelf().join(&self.name)
    }

    /// The file of a version.
    pub(crate) fn version(&self, number: u64) -> PathBuf {
        self.versions().join(version_name(number))
    }

    /// The file of a version in the older layout.
    pub(crate) fn old_version(&self, number: u64) -> PathBuf {
        self.shelf().join(format!("{}.v{number}", self.name))
    }

    /// The sidecar.
    pub(crate) fn sidecar(&self) -> PathBuf {
        self.versions().join(SIDECAR)
    }

    /// A hidden name for what is set aside, or for a flat file that was imported as a version;
    /// `attempt` counts from 0 while names are taken.
    pub(crate) fn hidden(&self, number: u64, why: Hidden, attempt: u32) -> PathBuf {
        let why = match why {
            Hidden::Aside => "aside",
            Hidden::Flat => "flat",
        };
        self.versions().join(match attempt {
            0 => format!(".v{number}.{why}"),
            _ => format!(".v{number}.{why}-{attempt}"),
        })
    }

    /// What the link holds when it leads to a version.
    pub(crate) fn link_text(&self, number: u64) -> PathBuf {
        Path::new(VERSIONS_DIR)
            .join(&self.name)
            .join(version_name(number))
    }

    /// Which version a link of this document leads to.
    pub(crate) fn parse_link(&self, text: &Path) -> LinkTarget {
        let Some(rest) = text
            .to_str()
            .and_then(|text| text.strip_prefix("versions/"))
        else {
            return LinkTarget::Foreign;
        };
        let Some(rest) = rest.strip_prefix(self.name.as_str()) else {
            return LinkTarget::Foreign;
        };
        if let Some(number) = rest.strip_prefix('/').and_then(parse_version_name) {
            LinkTarget::Version(number)
        } else if let Some(number) = rest.strip_prefix('.').and_then(parse_version_name) {
            LinkTarget::OldVersion(number)
        } else {
            LinkTarget::Foreign
        }
    }
}

/// Why a file has a hidden name beside the versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// Nothing proves it.
    Aside,
    /// It bore the document's name before the document was made of it.
    Flat,
}

/// Where a link leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkTarget {
    /// To something that isn't a version of the document: out of the root, to a neighbour.
    Foreign,
    /// To a version in the older layout.
    OldVersion(u64),
    /// To a version.
    Version(u64),
}

/// The directory at `path`, relative to the root.
pub(crate) fn dir_of(path: &DocPath) -> PathBuf {
    PathBuf::from(path.as_str().trim_start_matches('/'))
}

/// The path of what lies at `relative`, unless its names can't be those of a document.
pub(crate) fn path_of(relative: &Path) -> Option<DocPath> {
    let path = DocPath::parse(&format!("/{}", relative.to_str()?)).ok()?;
    (dir_of(&path) == relative).then_some(path)
}

/// The name of a version's file.
pub(crate) fn version_name(number: u64) -> String {
    format!("v{number}")
}

/// The number of a version's file: `v` and a number from 1 in its one spelling.
pub(crate) fn parse_version_name(name: &str) -> Option<u64> {
    let number = name.strip_prefix('v')?.parse().ok()?;
    (number > 0 && version_name(number) == name).then_some(number)
}

/// Splits the name of a version in the older layout, `tea.md.v3`, into `tea.md` and 3.
pub(crate) fn parse_old_version_name(name: &str) -> Option<(&str, u64)> {
    let (document, version) = name.rsplit_once('.')?;
    let number = parse_version_name(version)?;
    (!document.is_empty()).then_some((document, number))
}

/// What the sidecar says.
pub(crate) fn parse_sidecar(bytes: &[u8]) -> Option<bool> {
    match bytes.trim_ascii() {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

/// The sidecar's bytes.
pub(crate) fn sidecar_text(archived: bool) -> &'static [u8] {
    if archived { b"true\n" } else { b"false\n" }
}

/// True for the sidecar's name.
pub(crate) fn is_sidecar(name: &str) -> bool {
    name == SIDECAR
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> Place {
        Place::of(&DocPath::parse(path).expect("a legal path"))
    }

    #[test]
    fn a_document_has_the_places_of_the_specification() {
        let tea = place("/notes/tea.md");
        assert_eq!(tea.link(), Path::new("notes/tea.md"));
        assert_eq!(tea.version(3), Path::new("notes/versions/tea.md/v3"));
        assert_eq!(tea.old_version(3), Path::new("notes/versions/tea.md.v3"));
        assert_eq!(tea.link_text(3), Path::new("versions/tea.md/v3"));
        assert_eq!(
            tea.sidecar(),
            Path::new("notes/versions/tea.md/archive-state")
        );
        let top = place("/tea.md");
        assert_eq!(top.link(), Path::new("tea.md"));
        assert_eq!(top.version(1), Path::new("versions/tea.md/v1"));
    }

    #[test]
    fn a_link_says_which_version_and_which_layout_it_means() {
        let tea = place("/notes/tea.md");
        let parse = |text: &str| tea.parse_link(Path::new(text));
        assert_eq!(parse("versions/tea.md/v3"), LinkTarget::Version(3));
        assert_eq!(parse("versions/tea.md.v3"), LinkTarget::OldVersion(3));
        for foreign in [
            "../secret",
            "/etc/passwd",
            "versions/coffee.md/v1",
            "versions/tea.md/v0",
            "versions/tea.md/v01",
            "versions/tea.md/../x",
            "versions/tea.md/v99999999999999999999",
        ] {
            assert_eq!(parse(foreign), LinkTarget::Foreign, "{foreign}");
        }
    }

    #[test]
    fn names_of_versions_have_one_spelling() {
        assert_eq!(parse_version_name("v7"), Some(7));
        for name in ["v0", "v07", "v", "7", "v+7", "V7"] {
            assert_eq!(parse_version_name(name), None, "{name}");
        }
        assert_eq!(parse_old_version_name("tea.md.v12"), Some(("tea.md", 12)));
        assert_eq!(parse_old_version_name(".v1"), None);
        assert_eq!(parse_old_version_name("tea.md"), None);
    }

    #[test]
    fn paths_on_disk_and_paths_of_documents_are_the_same_names() {
        let path = path_of(Path::new("notes/tea.md")).expect("a document's path");
        assert_eq!(path.as_str(), "/notes/tea.md");
        assert_eq!(dir_of(&path), Path::new("notes/tea.md"));
        assert_eq!(path_of(Path::new("a\nb.md")), None);
    }
}
