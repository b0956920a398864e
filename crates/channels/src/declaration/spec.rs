//! A declaration as the configuration has it: the table `[channels.NAME]`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Builder, Declaration, DeclarationError};
use crate::policy::Rule;

/// The table `[channels.NAME]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The kind of each param: `int` or `string`.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// Who may join.
    pub policy: Option<RuleSpec>,
    /// Who may publish from a socket; absent, nobody.
    pub publish: Option<RuleSpec>,
    /// The events that may be published.
    #[serde(default)]
    pub events: Vec<String>,
    /// How many events are kept; absent, none.
    pub history: Option<i64>,
    /// Members are told of each other.
    #[serde(default)]
    pub presence: bool,
    /// A back end is asked about the anonymous too.
    #[serde(default)]
    pub anonymous: bool,
    /// Where a client reads the state after a gap.
    pub catch_up: Option<String>,
}

/// A policy in the configuration: an expression, or `{ ask = "http://…" }`.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "a policy is an expression in quotes or { ask = \"http://…\" }"
)]
pub enum RuleSpec {
    /// An expression.
    Expression(String),
    /// A question to a back end.
    Ask(AskSpec),
}

/// The table of a policy that asks a back end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskSpec {
    /// Where to ask.
    pub ask: String,
}

impl From<RuleSpec> for Rule {
    fn from(spec: RuleSpec) -> Self {
        match spec {
            RuleSpec::Expression(text) => Self::Expression(text),
            RuleSpec::Ask(AskSpec { ask }) => Self::Ask(ask),
        }
    }
}

impl Spec {
    /// The channel `name` as declared here.
    pub fn declare(self, name: &str) -> Result<Declaration, DeclarationError> {
        let events = self.events.iter().map(String::as_str);
        let mut builder = Builder::new(name).events(events);
        for (param, kind) in &self.params {
            builder = builder.param(param, kind);
        }
        if let Some(policy) = self.policy {
            builder = builder.policy(policy);
        }
        if let Some(publish) = self.publish {
            builder = builder.publish(publish);
        }
        if let Some(history) = self.history {
            builder = builder.history(history);
        }
        if self.presence {
            builder = builder.presence();
        }
        if self.anonymous {
            builder = builder.anonymous();
        }
        if let Some(place) = &self.catch_up {
            builder = builder.catch_up(place);
        }
        builder.build()
    }
}
