//! A channel with values for its params.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::{Map, Value};
use wire::{ChannelScope, Scope};

use crate::declaration::{Declaration, ParamKind};

/// A channel with values for its params: what sockets follow and events are published to.
///
/// Cloning shares it. Two are equal if their canonical texts are.
#[derive(Clone)]
pub struct Topic(Arc<Inner>);

struct Inner {
    /// The canonical scope, such as `channel:room?id=42`.
    text: Arc<str>,
    declaration: Arc<Declaration>,
    params: Map<String, Value>,
}

impl Topic {
    /// The topic of `declaration` that `scope` names: params that are not declared are passed
    /// over, each declared one must be there and fit its kind.
    pub(crate) fn of(declaration: &Arc<Declaration>, scope: &ChannelScope) -> Option<Self> {
        let mut params = Map::new();
        let mut texts = Vec::new();
        for (name, kind) in declaration.params() {
            let text = scope.param(name)?;
            params.insert(name.to_owned(), value(kind, text)?);
            texts.push((name, text));
        }
        let canonical = ChannelScope::new(declaration.name(), texts).ok()?;
        Some(Self(Arc::new(Inner {
            text: Scope::Channel(canonical).to_string().into(),
            declaration: declaration.clone(),
            params,
        })))
    }

    /// The canonical scope, such as `channel:room?id=42`.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The channel.
    pub fn declaration(&self) -> &Declaration {
        &self.0.declaration
    }

    /// The params, numbers as numbers.
    pub fn params(&self) -> &Map<String, Value> {
        &self.0.params
    }

    /// Where a client reads the state after a gap, if the channel has such a place.
    pub fn catch_up(&self) -> Option<String> {
        let template = self.declaration().catch_up()?;
        let mut filled = template.to_owned();
        for (name, value) in self.params() {
            // A value is letters, digits, `_` and `-`, so it needs no encoding and holds no brace.
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            filled = filled.replace(&format!("{{{name}}}"), &text);
        }
        Some(filled)
    }

    pub(crate) fn feed_scope(&self) -> feed::Scope {
        feed::Scope::Exact(self.0.text.clone())
    }
}

/// The value of a param, if `text` is one: what a row's column may hold as well.
fn value(kind: ParamKind, text: &str) -> Option<Value> {
    match kind {
        ParamKind::Int => {
            let number: i64 = text.parse().ok()?;
            // One spelling a number, or one topic would have several.
            (number.to_string() == text).then(|| number.into())
        }
        ParamKind::Text => {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            (!text.is_empty() && text.bytes().all(fits)).then(|| text.into())
        }
    }
}

impl PartialEq for Topic {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Topic {}

impl Hash for Topic {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Topic({self})")
    }
}
