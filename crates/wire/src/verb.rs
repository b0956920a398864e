//! What a request asks for.

use std::fmt;

/// The first word of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Adds to the end of a document.
    Append,
    /// Takes a document out of listings without removing its versions.
    Archive,
    /// Reads a document, a version, a content by its hash, or a directory.
    Fetch,
    /// Reads the names in a directory, by pages.
    List,
    /// Searches titles and tags below a directory.
    Lookup,
    /// Writes a version.
    Publish,
    /// Reads the history of a document.
    Versions,
    /// Follows the changes of a document or of everything below a directory.
    Watch,
}

impl Verb {
    /// All verbs, in the order of their words.
    pub const ALL: [Self; 8] = [
        Self::Append,
        Self::Archive,
        Self::Fetch,
        Self::List,
        Self::Lookup,
        Self::Publish,
        Self::Versions,
        Self::Watch,
    ];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Append => "APPEND",
            Self::Archive => "ARCHIVE",
            Self::Fetch => "FETCH",
            Self::List => "LIST",
            Self::Lookup => "LOOKUP",
            Self::Publish => "PUBLISH",
            Self::Versions => "VERSIONS",
            Self::Watch => "WATCH",
        }
    }

    /// Reads the word; case matters.
    pub fn parse(word: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|verb| verb.as_str().as_bytes() == word)
    }

    /// True if the verb may change a document.
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Append | Self::Archive | Self::Publish)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
