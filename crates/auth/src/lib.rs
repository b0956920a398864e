//! Capability tokens: who may read and publish what.

use std::sync::Arc;

use jiff::Timestamp;
use wire::{DocPath, DocumentScope};

/// What a caller may do at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Publish, append, archive.
    Publish,
    /// Fetch, list, versions, lookup, watch.
    Read,
}

/// Who asks: the digest of the token they sent, if any. Never holds the raw token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    _digest: Option<[u8; 32]>,
}

impl Caller {
    /// A caller without a token.
    pub fn anonymous() -> Self {
        todo!()
    }
    /// A caller who sent `token`.
    pub fn with_token(_token: &str) -> Self {
        todo!()
    }
}

/// Why a caller may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
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

/// One state of the tokens file and the closed places.
#[derive(Debug)]
pub struct Grants(());

impl Grants {
    /// May `caller` do `operation` at `path`?
    pub fn check(
        &self,
        _caller: &Caller,
        _operation: Operation,
        _path: &DocPath,
        _now: Timestamp,
    ) -> Result<(), Denied> {
        todo!()
    }
    /// Could `caller` read anything in `scope`? (Admission of a watch; heartbeats ask again.)
    pub fn check_scope(
        &self,
        _caller: &Caller,
        _scope: &DocumentScope,
        _now: Timestamp,
    ) -> Result<(), Denied> {
        todo!()
    }
}

/// The grants in force. A cheap handle; a reload swaps what `current` returns.
#[derive(Clone, Debug)]
pub struct Authority(());

impl Authority {
    /// The grants of this moment. Ask again for each decision.
    pub fn current(&self) -> Arc<Grants> {
        todo!()
    }
}
