//! Paths of documents in their one canonical spelling.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use crate::hash::ContentHash;

/// A canonical absolute path: one leading slash, no empty, `.` or `..` segment, no trailing slash.
///
/// The root is `/`. A path that exists is a legal one, so rights, globs, the journal and every
/// face compare the same bytes (D30). Names are never percent-decoded and never normalised.
/// Cloning shares the text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocPath(Arc<str>);

impl DocPath {
    /// The longest path in bytes, `wire/mark.md` section 2.
    pub const LEN_MAX: usize = 4087;

    /// The root directory.
    pub fn root() -> Self {
        Self("/".into())
    }

    /// Makes `text` canonical. A trailing slash is dropped; use [`Target`] where it matters.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        Target::parse(text.as_bytes()).map(|target| target.path)
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True for `/`.
    pub fn is_root(&self) -> bool {
        &*self.0 == "/"
    }

    /// The names from the root down; empty for the root.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> + Clone {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// The last name, or the empty text for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The directory that holds this path; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        let cut = self.0.rfind('/')?;
        match (self.is_root(), cut) {
            (true, _) => None,
            (false, 0) => Some(Self::root()),
            (false, cut) => Some(Self(self.0[..cut].into())),
        }
    }

    /// The path of `name` in this directory. `name` must be one legal segment.
    pub fn child(&self, name: &str) -> Result<Self, PathError> {
        Self::parse(&format!("{}/{name}", self.0.trim_end_matches('/')))
    }

    /// True if this path lies below `dir` at any depth (not if it is `dir` itself).
    pub fn is_below(&self, dir: &Self) -> bool {
        dir.is_root() && !self.is_root()
            || self
                .0
                .strip_prefix(&*dir.0)
                .is_some_and(|rest| rest.starts_with('/'))
    }

    /// The spelling with a trailing slash, as a listing shows a directory.
    pub fn with_slash(&self) -> String {
        if self.is_root() {
            "/".to_owned()
        } else {
            format!("{}/", self.0)
        }
    }

    /// Splits `/notes/tea.md/v3` into `/notes/tea.md` and 3.
    ///
    /// `None` if the last name isn't `v` and digits. The number is `None` where it is 0 or doesn't
    /// fit 64 bits: such a version exists nowhere.
    pub fn split_version(&self) -> Option<(Self, Option<u64>)> {
        let digits = self.name().strip_prefix('v')?;
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number = digits.parse().ok().filter(|number| *number > 0);
        Some((self.parent()?, number))
    }

    /// The hash that `/sha256-<64 lower-case hex>` names.
    pub fn content_address(&self) -> Option<ContentHash> {
        self.0
            .strip_prefix('/')
            .and_then(|name| ContentHash::parse(name).ok())
    }
}

impl fmt::Display for DocPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DocPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DocPath({})", self.0)
    }
}

/// A path as it was asked for: canonical, and whether the asker wrote a trailing slash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The canonical path.
    pub path: DocPath,
    /// The asker ended it with a slash (always true for the root).
    pub trailing_slash: bool,
}

impl Target {
    /// Reads the bytes of a request's path.
    pub fn parse(raw: &[u8]) -> Result<Self, PathError> {
        check(raw)?;
        let text = std::str::from_utf8(raw).map_err(|_| PathError::NotUtf8)?;
        let mut canonical = String::with_capacity(text.len());
        for name in text
            .split('/')
            .filter(|name| !name.is_empty() && *name != ".")
        {
            canonical.push('/');
            canonical.push_str(name);
        }
        if canonical.is_empty() {
            return Ok(Self {
                path: DocPath::root(),
                trailing_slash: true,
            });
        }
        let trailing_slash = text.ends_with('/') || text.ends_with("/.");
        Ok(Self {
            path: DocPath(canonical.into()),
            trailing_slash,
        })
    }
}

/// Checks everything that makes bytes a path but their encoding.
pub(crate) fn check(raw: &[u8]) -> Result<(), PathError> {
    check_line(raw)?;
    if raw.split(|byte| *byte == b'/').any(|name| name == b"..") {
        return Err(PathError::Parent);
    }
    Ok(())
}

/// Checks what the grammar of a request line says of a path; a `..` segment passes.
pub(crate) fn check_line(raw: &[u8]) -> Result<(), PathError> {
    if raw.len() > DocPath::LEN_MAX {
        return Err(PathError::TooLong);
    }
    if raw.first() != Some(&b'/') {
        return Err(PathError::Relative);
    }
    if raw
        .iter()
        .any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f)
    {
        return Err(PathError::ControlCharacter);
    }
    Ok(())
}

/// Why bytes are no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// A byte below 32 other than tab, or 127.
    #[error("the path has a control character")]
    ControlCharacter,
    /// The path isn't UTF-8: nothing readable has such a name, nothing may be written under it.
    #[error("the path is not UTF-8")]
    NotUtf8,
    /// A `..` segment, which is answered as not found before anything else.
    #[error("the path has a `..` segment")]
    Parent,
    /// The path doesn't begin with a slash.
    #[error("the path must begin with a slash")]
    Relative,
    /// More than [`DocPath::LEN_MAX`] bytes.
    #[error("the path is longer than {} bytes", DocPath::LEN_MAX)]
    TooLong,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> DocPath {
        DocPath::parse(text).unwrap()
    }

    #[test]
    fn every_spelling_of_a_path_is_the_same_path() {
        for text in ["/a/b", "//a//b", "/./a/b/.", "/a/b/", "/a/./b//"] {
            assert_eq!(path(text).as_str(), "/a/b", "{text}");
        }
        for text in ["/", "//", "/.", "/./"] {
            assert!(path(text).is_root(), "{text}");
        }
    }

    #[test]
    fn a_target_remembers_its_trailing_slash() {
        let slash = |text: &str| Target::parse(text.as_bytes()).unwrap().trailing_slash;
        assert!(slash("/"));
        assert!(slash("/a/"));
        assert!(slash("/a/."));
        assert!(!slash("/a"));
    }

    // D32
    #[test]
    fn only_two_dots_alone_go_up() {
        for text in ["/..", "/a/..", "/../a", "/a/../b"] {
            assert_eq!(DocPath::parse(text), Err(PathError::Parent), "{text}");
        }
        for text in ["/..notes/a.md", "/a..b.md", "/...", "/.../a.md"] {
            assert_eq!(path(text).as_str(), text);
        }
    }

    // D32
    #[test]
    fn a_path_is_never_percent_decoded() {
        for text in ["/%2e%2e/x.md", "/a%2Fb.md", "/a%00.md"] {
            assert_eq!(path(text).as_str(), text);
        }
    }

    #[test]
    fn bytes_that_are_no_path_are_refused_for_their_reason() {
        let too_long = format!("/{}", "a".repeat(DocPath::LEN_MAX));
        let cases: [(&[u8], PathError); 7] = [
            (b"", PathError::Relative),
            (b"a", PathError::Relative),
            (b"/a\nb", PathError::ControlCharacter),
            (b"/\0", PathError::ControlCharacter),
            (b"/\x7f", PathError::ControlCharacter),
            (b"/\xff", PathError::NotUtf8),
            (too_long.as_bytes(), PathError::TooLong),
        ];
        for (raw, error) in cases {
            assert_eq!(Target::parse(raw), Err(error), "{raw:?}");
        }
        assert!(DocPath::parse(&too_long[..DocPath::LEN_MAX]).is_ok());
        assert!(DocPath::parse("/a\tb").is_ok());
    }

    // D34
    #[test]
    fn a_version_is_a_number_that_fits() {
        let split = |text: &str| path(text).split_version();
        let doc = path("/doc.md");
        assert_eq!(split("/doc.md/v1"), Some((doc.clone(), Some(1))));
        assert_eq!(split("/doc.md/v01"), Some((doc.clone(), Some(1))));
        assert_eq!(split("/doc.md/v0"), Some((doc.clone(), None)));
        assert_eq!(split("/doc.md/v99999999999999999999"), Some((doc, None)));
        for text in ["/doc.md", "/doc.md/v", "/doc.md/v1a", "/doc.md/V1", "/"] {
            assert_eq!(split(text), None, "{text}");
        }
    }

    #[test]
    fn a_content_address_is_a_hash_at_the_root() {
        let hash = ContentHash::of(b"");
        assert_eq!(path(&format!("/{hash}")).content_address(), Some(hash));
        assert_eq!(path(&format!("/a/{hash}")).content_address(), None);
        let upper = hash.hex().to_uppercase();
        assert_eq!(path(&format!("/sha256-{upper}")).content_address(), None);
    }

    #[test]
    fn a_path_knows_its_place_in_the_tree() {
        let tea = path("/notes/tea.md");
        assert_eq!(tea.name(), "tea.md");
        assert_eq!(tea.parent(), Some(path("/notes")));
        assert_eq!(path("/notes").parent(), Some(DocPath::root()));
        assert_eq!(DocPath::root().parent(), None);
        assert_eq!(path("/notes").child("tea.md"), Ok(tea.clone()));
        assert_eq!(DocPath::root().child("notes"), Ok(path("/notes")));
        assert!(tea.is_below(&path("/notes")) && tea.is_below(&DocPath::root()));
        assert!(!tea.is_below(&tea) && !tea.is_below(&path("/note")));
        assert!(!DocPath::root().is_below(&DocPath::root()));
        assert_eq!(tea.segments().collect::<Vec<_>>(), ["notes", "tea.md"]);
        assert_eq!(path("/notes").with_slash(), "/notes/");
        assert_eq!(DocPath::root().with_slash(), "/");
    }
}
