//! One state of the tokens and the closed places, and the decisions it gives.
//!
//! Reading is public until a place is closed; a place is closed by the first token with `read` on
//! it and stays so when that token goes (D74). Publishing always wants a token. `publish` doesn't
//! imply `read`. Callers ask the current grants for every decision (P10) and hold none back.
//!
//! Paths are those of documents: a face takes `/notes/tea.md/v3` apart before it asks, and looks
//! up the path behind a content hash.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use thiserror::Error;
use wire::{DocPath, DocumentScope};

use crate::caller::{Caller, TokenDigest};
use crate::pattern::Pattern;

/// Paths that anyone may read, whatever is closed: what a client needs before it has a token.
const ALWAYS_READABLE: [&str; 2] = ["/.well-known/agent-manifest.md", "/health"];

/// What a caller may do at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Publish, append, archive.
    Publish,
    /// Fetch, list, versions, lookup, watch.
    Read,
}

impl Operation {
    /// The word of the tokens file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Read => "read",
        }
    }
}

/// Why a caller may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Denied {
    /// The token is good, but not for this.
    #[error("insufficient permissions")]
    NotPermitted,
    /// No tokens file: nothing is writable.
    #[error("publishing requires auth configuration")]
    NoTokens,
    /// No token, an unknown or an expired one.
    #[error("authentication required")]
    Unauthorized,
}

/// One token of the file.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) label: String,
    /// Where it may publish.
    pub(crate) publish: Vec<Pattern>,
    /// Where it may read.
    pub(crate) read: Vec<Pattern>,
    pub(crate) expires: Option<Timestamp>,
    /// Set by the first refusal for age, so that a clock set back revives nothing (D79).
    pub(crate) refused: AtomicBool,
}

impl Token {
    /// True until the instant of expiry, and never again once that was seen to pass.
    fn is_live(&self, now: Timestamp) -> bool {
        let past = self.expires.is_some_and(|expires| now >= expires);
        if past {
            self.refused.store(true, Ordering::Relaxed);
        }
        !past && !self.refused.load(Ordering::Relaxed)
    }
}

/// What a token allows, for whoever holds it to know.
#[derive(Clone, Copy, Debug)]
pub struct Allowed<'a> {
    /// Its name in the tokens file.
    pub label: &'a str,
    /// Where it may read.
    pub read: &'a [Pattern],
    /// Where it may publish.
    pub publish: &'a [Pattern],
    /// From when on it is void.
    pub expires: Option<Timestamp>,
}

/// One state of the tokens file and the closed places.
#[derive(Debug)]
pub struct Grants {
    access: Access,
    closed: Vec<Pattern>,
}

/// Where rights come from.
#[derive(Debug)]
pub(crate) enum Access {
    /// Everyone who can reach the server may do everything.
    Dev,
    /// There is no tokens file: nobody may publish.
    NoTokens,
    /// The tokens of the file by their digest.
    Tokens(HashMap<TokenDigest, Token>),
}

impl Access {
    /// Everything that some token may read.
    pub(crate) fn readable(&self) -> impl Iterator<Item = &Pattern> {
        let tokens = match self {
            Self::Tokens(tokens) => Some(tokens),
            Self::Dev | Self::NoTokens => None,
        };
        tokens
            .into_iter()
            .flat_map(HashMap::values)
            .flat_map(|token| &token.read)
    }
}

impl Grants {
    pub(crate) const fn new(access: Access, closed: Vec<Pattern>) -> Self {
        Self { access, closed }
    }

    pub(crate) const fn access(&self) -> &Access {
        &self.access
    }

    pub(crate) fn closed(&self) -> &[Pattern] {
        &self.closed
    }

    /// Tokens of the file, those that ran out included.
    pub fn token_count(&self) -> usize {
        match &self.access {
            Access::Dev | Access::NoTokens => 0,
            Access::Tokens(tokens) => tokens.len(),
        }
    }

    /// Places that are closed for reading.
    pub const fn closed_count(&self) -> usize {
        self.closed.len()
    }

    /// True if everyone may do everything.
    pub const fn is_dev(&self) -> bool {
        matches!(self.access, Access::Dev)
    }

    /// May `caller` do `operation` at `path`?
    pub fn check(
        &self,
        caller: &Caller,
        operation: Operation,
        path: &DocPath,
        now: Timestamp,
    ) -> Result<(), Denied> {
        match operation {
            _ if self.is_dev() => Ok(()),
            Operation::Publish => self.check_publish(caller, path, now),
            Operation::Read if !self.is_closed(path) => Ok(()),
            Operation::Read => {
                let token = self.live_token(caller, now).ok_or(Denied::Unauthorized)?;
                permit(token.read.iter().any(|own| own.matches_either(path)))
            }
        }
    }

    /// Could `caller` read anything in `scope`? Admission of a watch, and each heartbeat.
    ///
    /// A scope that is closed only piece by piece counts as readable: events are checked one by
    /// one all the same. A watch whose token was known when it was admitted must also end once
    /// [`Self::knows`] says otherwise, or it would go on as the public's without a word;
    /// [`WatchRight`] does both.
    pub fn check_scope(
        &self,
        caller: &Caller,
        scope: &DocumentScope,
        now: Timestamp,
    ) -> Result<(), Denied> {
        if !scope.subtree {
            return self.check(caller, Operation::Read, &scope.path, now);
        }
        let covered = self
            .closed
            .iter()
            .any(|place| place.covers_below(&scope.path));
        if self.is_dev() || !covered {
            return Ok(());
        }
        let token = self.live_token(caller, now).ok_or(Denied::Unauthorized)?;
        permit(token.read.iter().any(|own| own.reaches(scope)))
    }

    /// True if the caller's token is in the file and hasn't run out. The anonymous are not known.
    pub fn knows(&self, caller: &Caller, now: Timestamp) -> bool {
        self.live_token(caller, now).is_some()
    }

    /// The label of the caller's token, for the log; none for unknown and expired ones.
    pub fn label(&self, caller: &Caller, now: Timestamp) -> Option<&str> {
        self.live_token(caller, now)
            .map(|token| token.label.as_str())
    }

    /// What the caller's token allows; none for unknown and expired ones.
    pub fn allowed(&self, caller: &Caller, now: Timestamp) -> Option<Allowed<'_>> {
        self.live_token(caller, now).map(|token| Allowed {
            label: &token.label,
            read: &token.read,
            publish: &token.publish,
            expires: token.expires,
        })
    }

    /// True if reading `path` wants a token.
    pub fn is_closed(&self, path: &DocPath) -> bool {
        !ALWAYS_READABLE.contains(&path.as_str())
            && self.closed.iter().any(|place| place.matches_either(path))
    }

    fn check_publish(&self, caller: &Caller, path: &DocPath, now: Timestamp) -> Result<(), Denied> {
        if matches!(self.access, Access::NoTokens) {
            return Err(Denied::NoTokens);
        }
        let token = self.live_token(caller, now).ok_or(Denied::Unauthorized)?;
        permit(token.publish.iter().any(|own| own.matches_document(path)))
    }

    fn live_token(&self, caller: &Caller, now: Timestamp) -> Option<&Token> {
        let Access::Tokens(tokens) = &self.access else {
            return None;
        };
        let token = tokens.get(caller.digest()?)?;
        token.is_live(now).then_some(token)
    }
}

fn permit(allowed: bool) -> Result<(), Denied> {
    if allowed {
        Ok(())
    } else {
        Err(Denied::NotPermitted)
    }
}

/// The right under which a watch runs: its caller, its scope, and whether a token carried it.
#[derive(Clone, Debug)]
pub struct WatchRight {
    caller: Caller,
    scope: DocumentScope,
    /// The token was good at admission, so the watch must not outlive it.
    by_token: bool,
}

impl WatchRight {
    /// Admits a watch.
    pub fn admit(
        grants: &Grants,
        caller: Caller,
        scope: DocumentScope,
        now: Timestamp,
    ) -> Result<Self, Denied> {
        grants.check_scope(&caller, &scope, now)?;
        let by_token = grants.knows(&caller, now);
        Ok(Self {
            caller,
            scope,
            by_token,
        })
    }

    /// Asks again, at a heartbeat or after a reload: may the watch go on?
    pub fn recheck(&self, grants: &Grants, now: Timestamp) -> Result<(), Denied> {
        if self.by_token && !grants.is_dev() && !grants.knows(&self.caller, now) {
            return Err(Denied::Unauthorized);
        }
        grants.check_scope(&self.caller, &self.scope, now)
    }

    /// May the watch be told of a change at `path`?
    pub fn may_see(&self, grants: &Grants, path: &DocPath, now: Timestamp) -> bool {
        grants
            .check(&self.caller, Operation::Read, path, now)
            .is_ok()
    }

    /// What is watched.
    pub const fn scope(&self) -> &DocumentScope {
        &self.scope
    }
}
