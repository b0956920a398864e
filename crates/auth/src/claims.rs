//! What is known of a caller: the claims that policies read.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// What is known of a caller: an object whose members policies read as `claims.NAME`.
///
/// Those of an anonymous caller are empty, so that `claims.sub != null` tells the two apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    members: Map<String, Value>,
    expires: Option<Timestamp>,
}

impl Claims {
    /// The claims of somebody who showed nothing.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// Claims that end at `expires`, if they do.
    pub const fn new(members: Map<String, Value>, expires: Option<Timestamp>) -> Self {
        Self { members, expires }
    }

    /// The claims of whoever showed a capability token with this label: `claims.token`.
    ///
    /// It is no `sub`: a label says which token it was, not who the caller is.
    pub fn of_token(label: &str) -> Self {
        let mut members = Map::new();
        members.insert("token".to_owned(), label.into());
        Self::new(members, None)
    }

    /// True if nothing is known.
    pub fn is_anonymous(&self) -> bool {
        self.members.is_empty()
    }

    /// The members.
    pub const fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// Who the caller is, if the claims say so: `sub`.
    pub fn subject(&self) -> Option<&str> {
        self.members.get("sub").and_then(Value::as_str)
    }

    /// From when on the claims are void.
    pub const fn expires(&self) -> Option<Timestamp> {
        self.expires
    }

    /// True from the instant at which the claims are void.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }
}
