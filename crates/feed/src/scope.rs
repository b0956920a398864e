//! What a feed carries and which part of it a subscription is told of.

use std::fmt;
use std::sync::Arc;

/// What a feed carries.
pub trait Change: fmt::Debug + Send + Sync + 'static {
    /// The name that scopes are matched against: segments joined by `/`, such as `/notes/tea.md`.
    ///
    /// It is asked for under the feed's lock, so it is a field and not a computation, and the same
    /// text every time.
    fn name(&self) -> &str;
}

/// Which changes a subscription is told of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The changes with exactly this name.
    Exact(Arc<str>),
    /// The changes whose name begins with this text, which ends in `/`.
    Prefix(Arc<str>),
}

impl Scope {
    /// True if a change of this name is in the scope.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => name == &**exact,
            Self::Prefix(prefix) => name.starts_with(&**prefix),
        }
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Exact(text) | Self::Prefix(text) => text,
        }
    }

    pub(crate) const fn is_prefix(&self) -> bool {
        matches!(self, Self::Prefix(_))
    }
}
