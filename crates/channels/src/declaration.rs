//! What an application declares of a channel; checked as a whole before anything is served.
//!
//! A declaration that exists is sound: its names are legal, its policies parse and read only params
//! that it has. What is wrong is told with the channel and the fault when the server starts, never
//! to a caller (C17).

mod build;
mod spec;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use auth::policy::ExpressionError;
use thiserror::Error;

use crate::limits::{EVENTS_MAX, HISTORY_MAX, PARAMS_MAX};
use crate::policy::Policy;

pub use build::Builder;
pub use spec::{AskSpec, RuleSpec, Spec};

/// A declared channel.
#[derive(Debug)]
pub struct Declaration {
    name: String,
    /// Sorted by name.
    params: Vec<(String, ParamKind)>,
    join: Policy,
    /// Who may publish from a socket; without one, nobody.
    publish: Option<Policy>,
    events: BTreeSet<Arc<str>>,
    /// How many events each topic keeps; without it, they are at most once.
    history: Option<usize>,
    has_presence: bool,
    admits_anonymous: bool,
    catch_up: Option<String>,
}

impl Declaration {
    /// Begins the declaration of a channel.
    pub fn named(name: &str) -> Builder {
        Builder::new(name)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its params, sorted by name.
    pub fn params(&self) -> impl Iterator<Item = (&str, ParamKind)> {
        self.params
            .iter()
            .map(|(name, kind)| (name.as_str(), *kind))
    }

    /// The events that may be published to it.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        self.events.iter().map(|event| &**event)
    }

    /// How many events each topic keeps, if any.
    pub const fn history(&self) -> Option<usize> {
        self.history
    }

    /// True if members are told of each other.
    pub const fn has_presence(&self) -> bool {
        self.has_presence
    }

    /// True if a back end or a closure is asked about the anonymous too.
    pub const fn admits_anonymous(&self) -> bool {
        self.admits_anonymous
    }

    /// True if somebody may publish from a socket.
    pub const fn is_open_to_sockets(&self) -> bool {
        self.publish.is_some()
    }

    pub(crate) const fn join_policy(&self) -> &Policy {
        &self.join
    }

    pub(crate) const fn publish_policy(&self) -> Option<&Policy> {
        self.publish.as_ref()
    }

    pub(crate) fn catch_up(&self) -> Option<&str> {
        self.catch_up.as_deref()
    }

    /// The event's name, shared.
    pub(crate) fn event(&self, name: &str) -> Option<&Arc<str>> {
        self.events.get(name)
    }
}

/// What a param may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A whole number of 64 bits, as a policy's number.
    Int,
    /// Letters, digits, `_` and `-`.
    Text,
}

impl ParamKind {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "int" => Some(Self::Int),
            "string" => Some(Self::Text),
            _ => None,
        }
    }
}

/// All channels of a server, by name.
#[derive(Debug, Default)]
pub struct Declarations(HashMap<String, Arc<Declaration>>);

impl Declarations {
    /// Takes in `declarations`, of which no two have one name.
    pub fn new(
        declarations: impl IntoIterator<Item = Declaration>,
    ) -> Result<Self, DeclarationError> {
        let mut all = HashMap::new();
        for declaration in declarations {
            let name = declaration.name.clone();
            if all.insert(name.clone(), Arc::new(declaration)).is_some() {
                return Err(DeclarationError::new(&name, Fault::Repeated));
            }
        }
        Ok(Self(all))
    }

    /// The channels, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Declaration> {
        self.0.values().map(|declaration| &**declaration)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Declaration>> {
        self.0.get(name)
    }
}

/// Why a declaration is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("channel `{channel}`: {fault}")]
pub struct DeclarationError {
    /// The channel.
    pub channel: String,
    /// What is wrong with it.
    pub fault: Fault,
}

impl DeclarationError {
    fn new(channel: &str, fault: Fault) -> Self {
        Self {
            channel: channel.to_owned(),
            fault,
        }
    }
}

/// What is wrong with a declaration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The URL of a back end is none.
    #[error("`{0}` is no http:// or https:// URL to ask")]
    AskUrl(String),
    /// The place to catch up at is none, or names a param that is not declared.
    #[error("catch_up `{0}` is no path or URL, or names a param that is not declared")]
    CatchUp(String),
    /// An event has a bad name.
    #[error("event `{0}` is not 1 to 64 characters of A-Z a-z 0-9 . _ -")]
    EventName(String),
    /// The history is not a number of events that can be kept.
    #[error("history {0} is not between 1 and {HISTORY_MAX}; leave it out to keep nothing")]
    History(i64),
    /// The channel has a bad name.
    #[error("the name is not 1 to 64 characters of A-Z a-z 0-9 _ -")]
    Name,
    /// The channel has no policy.
    #[error("it has no policy; a channel that is open to all says policy = \"true\"")]
    NoPolicy,
    /// A param has an unknown kind.
    #[error("param `{param}` is neither \"int\" nor \"string\" but \"{kind}\"")]
    ParamKind {
        /// The param.
        param: String,
        /// What it is said to be.
        kind: String,
    },
    /// A param has a bad name.
    #[error("param `{0}` is not 1 to 64 characters of A-Z a-z 0-9 _ -")]
    ParamName(String),
    /// A param is declared twice.
    #[error("param `{0}` is declared twice")]
    ParamRepeated(String),
    /// The policy is no expression.
    #[error("policy: {0}")]
    Policy(ExpressionError),
    /// A policy reads a param that is not declared.
    #[error("a policy reads params.{0}, which is not declared")]
    PolicyParam(String),
    /// The policy for publishing is no expression.
    #[error("publish: {0}")]
    Publish(ExpressionError),
    /// Another channel has the same name.
    #[error("it is declared twice")]
    Repeated,
    /// There are too many events.
    #[error("it has more than {EVENTS_MAX} events")]
    TooManyEvents,
    /// There are too many params.
    #[error("it has more than {PARAMS_MAX} params")]
    TooManyParams,
}

#[cfg(test)]
mod tests;
