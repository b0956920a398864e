//! The patterns of the tokens file: globs over whole path segments.
//!
//! | in a pattern | matches |
//! |---|---|
//! | `*` `?` `[a-z]` `[^a-z]` | any text, one character, one of a set; never a `/` |
//! | `\` and a character | that character |
//! | `**`, alone between slashes, once | any number of segments, at the end at least one |
//! | a trailing `/` | the directory in both its spellings |
//!
//! Paths are canonical and carry no trailing slash, so a path may be a document or a directory.
//! [`Pattern::matches_document`] takes it as written; [`Pattern::matches_either`] also as the
//! directory `PATH/`, which is how reading is granted and closed: a bare directory is what its
//! trailing slash is. Matching allocates nothing.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use wire::{DocPath, DocumentScope};

use crate::glob::Segment;

/// One pattern over paths.
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    /// The segments before `**`, or all of them.
    head: Vec<Segment>,
    /// The segments after `**`; `None` without one.
    tail: Option<Vec<Segment>>,
    /// The pattern ended in a slash: it names the directory itself.
    directory: bool,
}

impl Pattern {
    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if `path`, taken as the name of a document, is meant.
    pub fn matches_document(&self, path: &DocPath) -> bool {
        self.matches_names(path.segments(), path.is_root())
    }

    /// True if `path` or `PATH/` is meant.
    pub fn matches_either(&self, path: &DocPath) -> bool {
        self.matches_document(path) || self.matches_names(path.segments(), true)
    }

    /// True if some path below `dir` could match.
    pub fn reaches_below(&self, dir: &DocPath) -> bool {
        let agrees = self
            .head
            .iter()
            .zip(dir.segments())
            .all(|(segment, name)| segment.matches(name));
        agrees && (self.tail.is_some() || self.head.len() > dir.segments().count())
    }

    /// True if every path below `dir` matches.
    pub fn covers_below(&self, dir: &DocPath) -> bool {
        let open_ended = self.tail.as_ref().is_some_and(Vec::is_empty);
        let mut names = dir.segments();
        open_ended
            && self
                .head
                .iter()
                .all(|segment| names.next().is_some_and(|name| segment.matches(name)))
    }

    /// True if anything that `scope` names could match.
    pub fn reaches(&self, scope: &DocumentScope) -> bool {
        if scope.subtree {
            self.reaches_below(&scope.path)
        } else {
            self.matches_either(&scope.path)
        }
    }

    fn matches_names<'a>(
        &self,
        names: impl DoubleEndedIterator<Item = &'a str>,
        slash: bool,
    ) -> bool {
        let last = (slash && !self.directory).then_some("");
        let mut names = names.chain(last);
        let begins = self
            .head
            .iter()
            .all(|segment| names.next().is_some_and(|name| segment.matches(name)));
        let Some(tail) = &self.tail else {
            return begins && names.next().is_none();
        };
        let ends = |names: &mut dyn DoubleEndedIterator<Item = &'a str>| {
            tail.iter()
                .rev()
                .all(|segment| names.next_back().is_some_and(|name| segment.matches(name)))
        };
        begins && ends(&mut names) && (!tail.is_empty() || names.next().is_some())
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.len() > DocPath::LEN_MAX {
            return Err(PatternError::TooLong);
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(PatternError::Relative(text.to_owned()));
        };
        let mut pattern = Self {
            text: text.to_owned(),
            head: Vec::new(),
            tail: None,
            directory: rest.is_empty() || rest.ends_with('/'),
        };
        let names = rest.strip_suffix('/').unwrap_or(rest);
        if names.is_empty() && rest.is_empty() {
            return Ok(pattern);
        }
        for name in names.split('/') {
            pattern.push(name)?;
        }
        if pattern.directory && pattern.tail.as_ref().is_some_and(Vec::is_empty) {
            return Err(PatternError::SlashAfterStars(
                text.trim_end_matches('/').to_owned(),
            ));
        }
        Ok(pattern)
    }
}

impl Pattern {
    fn push(&mut self, name: &str) -> Result<(), PatternError> {
        match name {
            "" => return Err(PatternError::EmptySegment),
            "." | ".." => return Err(PatternError::Dots),
            "**" if self.tail.is_some() => return Err(PatternError::TwoStars),
            "**" => {
                self.tail = Some(Vec::new());
                return Ok(());
            }
            _ if name.contains("**") => return Err(PatternError::StarsInSegment),
            _ => {}
        }
        if name
            .chars()
            .any(|c| (c < ' ' && c != '\t') || c == '\u{7f}')
        {
            return Err(PatternError::ControlCharacter);
        }
        let segment = Segment::parse(name).ok_or_else(|| PatternError::Segment(name.to_owned()))?;
        self.tail.as_mut().unwrap_or(&mut self.head).push(segment);
        Ok(())
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({})", self.text)
    }
}

/// Why a text is no pattern: it could never match, or means something else than it seems to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatternError {
    /// A character that no path has.
    #[error("the pattern has a control character, which no path has")]
    ControlCharacter,
    /// A `.` or `..` segment, which no canonical path has.
    #[error("the pattern has a `.` or `..` segment, which no path has; leave it out")]
    Dots,
    /// Two slashes in a row.
    #[error("the pattern has two slashes in a row, which no path has; write one")]
    EmptySegment,
    /// The pattern doesn't begin with a slash.
    #[error("the pattern `{0}` never matches: paths begin with a slash; write `/{0}`")]
    Relative(String),
    /// An unclosed or empty set, or a `\` with nothing behind it.
    #[error("the segment `{0}` is malformed; a set is written [a-z], a plain bracket \\[")]
    Segment(String),
    /// `**` and then a slash at the end, which would name directories alone.
    #[error("the slash after `**` names directories alone; write `{0}`")]
    SlashAfterStars(String),
    /// `**` beside other characters.
    #[error("`**` stands alone between slashes, as in /notes/**/tea.md; write `*` here")]
    StarsInSegment,
    /// More bytes than a path may have.
    #[error(
        "the pattern is longer than {} bytes, which no path is",
        DocPath::LEN_MAX
    )]
    TooLong,
    /// A second `**`.
    #[error("a pattern has one `**` at most; use two patterns")]
    TwoStars,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> DocPath {
        text.parse_path()
    }

    trait ParsePath {
        fn parse_path(&self) -> DocPath;
    }

    impl ParsePath for str {
        fn parse_path(&self) -> DocPath {
            DocPath::parse(self).unwrap()
        }
    }

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    /// Matches the spelling as the Mark specification does: the trailing slash counts.
    fn spelled(glob: &str, text: &str) -> bool {
        pattern(glob).matches_names(path(text).segments(), text.ends_with('/'))
    }

    // D76
    #[test]
    fn globs_match_as_the_table_says() {
        let paths = ["/notes", "/notes/", "/notes/tea.md", "/notes/a/x.md"];
        for (glob, expected) in [
            ("/notes/*", [false, true, true, false]),
            ("/notes/**", [false, true, true, true]),
            ("/notes/", [true, true, false, false]),
            ("/*", [true, false, false, false]),
            ("/**/tea.md", [false, false, true, false]),
            ("/**", [true, true, true, true]),
            ("/notes/t?a.md", [false, false, true, false]),
            ("/notes/[s-u]ea.md", [false, false, true, false]),
            ("/notes/[^s-u]ea.md", [false, false, false, false]),
            ("/notes/**/x.md", [false, false, false, true]),
        ] {
            let found = paths.map(|path| spelled(glob, path));
            assert_eq!(found, expected, "{glob}");
        }
    }

    // D76
    #[test]
    fn stars_take_whole_segments() {
        let glob = pattern("/a/**/b.md");
        assert!(glob.matches_document(&path("/a/b.md")));
        assert!(glob.matches_document(&path("/a/x/y/b.md")));
        assert!(!glob.matches_document(&path("/a/xb.md")));
        assert!(!glob.matches_document(&path("/a/b.md/c")));
        assert!(!glob.matches_document(&path("/b.md")));
    }

    // D76
    #[test]
    fn a_bare_directory_is_what_its_trailing_slash_is() {
        for glob in ["/notes/", "/notes/*", "/notes/**"] {
            assert!(pattern(glob).matches_either(&path("/notes")), "{glob}");
        }
        assert!(!pattern("/notes/**").matches_document(&path("/notes")));
        assert!(!pattern("/notes/**").matches_either(&path("/notesmore")));
    }

    #[test]
    fn case_counts_and_leading_dots_are_not_special() {
        assert!(!pattern("/Notes/*").matches_document(&path("/notes/a")));
        assert!(pattern("/notes/*").matches_document(&path("/notes/.hidden")));
    }

    #[test]
    fn the_root_matches_in_its_only_spelling() {
        for glob in ["/", "/*", "/**"] {
            assert!(pattern(glob).matches_document(&DocPath::root()), "{glob}");
        }
        assert!(!pattern("/").matches_either(&path("/a")));
    }

    // D76
    #[test]
    fn patterns_that_never_match_are_refused_with_the_fix() {
        for (text, fix) in [
            ("notes/**", "write `/notes/**`"),
            ("", "write `/`"),
            ("/a//b", "write one"),
            ("/a/../b", "leave it out"),
            ("/a/**/b/**", "two patterns"),
            ("/a**", "write `*`"),
            ("/a/**/", "write `/a/**`"),
            ("/[a", "[a-z]"),
            ("/[]", "[a-z]"),
            ("/[z-a]", "[a-z]"),
            ("/a\\", "[a-z]"),
            ("/a\u{7}", "control"),
        ] {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains(fix), "{text}: {error}");
        }
    }

    #[test]
    fn reach_and_cover_compare_whole_subtrees() {
        for (glob, dir, reaches, covers) in [
            ("/**", "/", true, true),
            ("/a/**", "/", true, false),
            ("/a/**", "/a", true, true),
            ("/a/**", "/a/b", true, true),
            ("/a/**", "/b", false, false),
            ("/a/*", "/a", true, false),
            ("/a/*", "/a/b", false, false),
            ("/a/", "/a", false, false),
            ("/*/**", "/", true, false),
            ("/*/**", "/a", true, true),
            ("/a/**/x.md", "/a/b", true, false),
            ("/a/x.md", "/", true, false),
            ("/a/x.md", "/a/x.md", false, false),
        ] {
            let glob = pattern(glob);
            assert_eq!(
                glob.reaches_below(&path(dir)),
                reaches,
                "{glob} reaches {dir}"
            );
            assert_eq!(glob.covers_below(&path(dir)), covers, "{glob} covers {dir}");
        }
    }
}
