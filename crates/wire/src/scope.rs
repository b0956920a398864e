//! What a watch asks for, in the one text form that every face, the command line and the
//! configuration share (`docs/architecture.md`, scopes).

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::path::{DocPath, PathError, Target};

mod channel;

pub use channel::{ChannelScope, is_channel_name};

/// What a watch asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// Documents: one, or everything under a prefix.
    Document(DocumentScope),
    /// A declared channel.
    Channel(ChannelScope),
}

/// One document, or all documents below a directory at any depth.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentScope {
    /// The document or the directory.
    pub path: DocPath,
    /// Everything below `path` instead of `path` itself.
    pub subtree: bool,
}

impl DocumentScope {
    /// True if a change of the document at `path` belongs to this scope.
    pub fn contains(&self, path: &DocPath) -> bool {
        if self.subtree {
            path.is_below(&self.path)
        } else {
            *path == self.path
        }
    }
}

impl From<Target> for DocumentScope {
    fn from(target: Target) -> Self {
        Self {
            path: target.path,
            subtree: target.trailing_slash,
        }
    }
}

impl fmt::Display for DocumentScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.subtree {
            f.write_str(&self.path.with_slash())
        } else {
            self.path.fmt(f)
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document(scope) => write!(f, "doc:{scope}"),
            Self::Channel(scope) => write!(f, "channel:{scope}"),
        }
    }
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        let path = if text.starts_with('/') {
            text
        } else {
            let (kind, rest) = text.split_once(':').ok_or(ScopeError::Kind)?;
            match kind {
                "doc" if rest.starts_with("//") => return Err(ScopeError::World),
                "doc" => rest,
                "channel" => return rest.parse().map(Self::Channel),
                "events" | "query" | "hold" => return Err(ScopeError::Unserved),
                _ => return Err(ScopeError::Kind),
            }
        };
        Ok(Self::Document(Target::parse(path.as_bytes())?.into()))
    }
}

/// Why a text is no scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// What follows `channel:` names no channel: its name, its params or their number is bad.
    #[error("a channel is written channel:name?param=value")]
    Channel,
    /// The text is neither a path nor begins with a known kind.
    #[error("a scope is a path such as /notes/ or begins with `doc:` or `channel:`")]
    Kind,
    /// The path of a `doc:` scope is no path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The kind is known, but nothing here serves it.
    #[error("this version serves documents and channels alone")]
    Unserved,
    /// A world is named where there is only one.
    #[error("this server has one world; write doc:/path")]
    World,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Scope {
        text.parse().unwrap()
    }

    #[test]
    fn a_bare_path_and_a_doc_scope_are_the_same() {
        for path in ["/", "/notes/", "/notes/tea.md"] {
            assert_eq!(scope(path), scope(&format!("doc:{path}")));
            assert_eq!(scope(path).to_string(), format!("doc:{path}"));
        }
        assert_eq!(scope("//notes/./tea.md"), scope("/notes/tea.md"));
    }

    #[test]
    fn a_trailing_slash_asks_for_everything_below() {
        let contains = |text: &str, path: &str| {
            let Scope::Document(scope) = scope(text) else {
                panic!("{text} names documents");
            };
            scope.contains(&DocPath::parse(path).unwrap())
        };
        assert!(contains("/notes/", "/notes/a/b.md"));
        assert!(!contains("/notes/", "/notes"));
        assert!(!contains("/notes", "/notes/a.md"));
        assert!(contains("/notes", "/notes"));
        assert!(contains("/", "/a.md"));
        assert!(!contains("/notes/", "/notes2/a.md"));
    }

    #[test]
    fn a_channel_is_told_by_its_canonical_text() {
        let text = "channel:room?id=42&team=a%20b";
        assert_eq!(scope("channel:room?team=a b&id=42").to_string(), text);
        assert_eq!(scope(text).to_string(), text);
    }

    #[test]
    fn other_texts_are_refused_for_their_reason() {
        let cases = [
            ("", ScopeError::Kind),
            ("notes", ScopeError::Kind),
            ("mail:/notes", ScopeError::Kind),
            ("doc:", ScopeError::Path(PathError::Relative)),
            ("doc:notes", ScopeError::Path(PathError::Relative)),
            ("doc:/a/../b", ScopeError::Path(PathError::Parent)),
            ("doc://world/notes", ScopeError::World),
            ("events:orders", ScopeError::Unserved),
            ("query:open", ScopeError::Unserved),
            ("channel:", ScopeError::Channel),
            ("hold:x", ScopeError::Unserved),
        ];
        for (text, error) in cases {
            assert_eq!(text.parse::<Scope>(), Err(error), "{text:?}");
        }
    }
}
