//! Who may join a topic or publish to it, and who decides that.

use std::fmt;
use std::sync::Arc;

use auth::Claims;
use auth::policy::Expression;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::topic::Topic;

/// A policy in Rust: may a caller with these claims, given these params?
///
/// It is called on the task that serves the caller and must not block.
pub type Check = dyn Fn(&Claims, &Map<String, Value>) -> Result<bool, Undecided> + Send + Sync;

/// A policy as it is written down.
#[derive(Clone)]
pub enum Rule {
    /// A URL of the back end that decides.
    Ask(String),
    /// A closure that decides.
    Check(Arc<Check>),
    /// An expression over the claims and the params ([`auth::policy`]).
    Expression(String),
}

impl Rule {
    /// The back end at `url` decides.
    pub fn ask(url: &str) -> Self {
        Self::Ask(url.to_owned())
    }

    /// `check` decides.
    pub fn check<C>(check: C) -> Self
    where
        C: Fn(&Claims, &Map<String, Value>) -> Result<bool, Undecided> + Send + Sync + 'static,
    {
        Self::Check(Arc::new(check))
    }
}

impl From<&str> for Rule {
    fn from(text: &str) -> Self {
        Self::Expression(text.to_owned())
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(url) => f.debug_tuple("Ask").field(url).finish(),
            Self::Check(_) => f.write_str("Check"),
            Self::Expression(text) => f.debug_tuple("Expression").field(text).finish(),
        }
    }
}

/// A policy, ready to decide.
#[derive(Clone)]
pub(crate) enum Policy {
    Ask(Arc<str>),
    Check(Arc<Check>),
    Expression(Expression),
}

impl Policy {
    /// Decides, or says whom to ask; `identity` is the version of the claims.
    ///
    /// An expression decides about the anonymous as about everyone. The others are put to a
    /// program that expects somebody, so they hear of the anonymous only where that is declared.
    pub(crate) fn decide(
        &self,
        right: Right,
        topic: &Topic,
        claims: &Claims,
        identity: u64,
    ) -> Decision {
        let is_heard = topic.declaration().admits_anonymous() || !claims.is_anonymous();
        let verdict = match self {
            Self::Expression(expression) => {
                Verdict::of(expression.allows(claims.members(), topic.params()))
            }
            _ if !is_heard => Verdict::Denied,
            Self::Check(check) => {
                check(claims, topic.params()).map_or(Verdict::Undecided, Verdict::of)
            }
            Self::Ask(url) => {
                return Decision::Ask(Question {
                    url: url.clone(),
                    right,
                    topic: topic.clone(),
                    identity,
                });
            }
        };
        Decision::Made(verdict)
    }

    pub(crate) const fn is_asked(&self) -> bool {
        matches!(self, Self::Ask(_))
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ask(_) => "Ask",
            Self::Check(_) => "Check",
            Self::Expression(_) => "Expression",
        })
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Right {
    /// To follow a topic and to read its roster.
    Join,
    /// To publish to a topic from a socket.
    Publish,
}

impl Right {
    /// The word for a back end that is asked.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Publish => "publish",
        }
    }
}

/// What a policy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Allowed,
    /// No.
    Denied,
    /// It could not be said: a back end is down, a closure failed.
    Undecided,
}

impl Verdict {
    const fn of(allows: bool) -> Self {
        if allows { Self::Allowed } else { Self::Denied }
    }
}

/// A policy could not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the policy could not decide")]
pub struct Undecided;

/// A verdict, or where to get one.
#[derive(Clone, Debug)]
pub enum Decision {
    /// A back end is to be asked.
    Ask(Question),
    /// The policy has decided.
    Made(Verdict),
}

/// A question to a back end. The shell adds the caller's credentials, asks within a time limit,
/// and hands the verdict back.
#[derive(Clone, Debug)]
pub struct Question {
    url: Arc<str>,
    right: Right,
    topic: Topic,
    identity: u64,
}

impl Question {
    /// Where to ask.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What is asked for.
    pub const fn right(&self) -> Right {
        self.right
    }

    /// The topic in question.
    pub const fn topic(&self) -> &Topic {
        &self.topic
    }

    /// The version of the claims that it was asked for.
    pub(crate) const fn identity(&self) -> u64 {
        self.identity
    }
}
