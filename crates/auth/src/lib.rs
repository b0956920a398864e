//! Capability tokens: who may read and publish what.
//!
//! A token is a secret text; the tokens file knows its hash, the patterns of paths it is for, the
//! operations it allows and when it ends. Nothing here keeps or shows a raw token except
//! [`RawToken`], which is made once and printed once.
//!
//! Without tokens nothing can be written. Reading is public until a place is closed by the first
//! token that may read there, and closed places stay closed when that token goes.
//!
//! Time is an argument of every decision. The files are read by [`Authority`] and edited by
//! [`Keyring`], both blocking; nothing here spawns, sleeps or logs.

mod authority;
mod caller;
mod closed;
mod file;
mod glob;
mod grants;
mod keyring;
mod pattern;
mod tokens;

pub use authority::{Authority, Files, LoadError, POLL_INTERVAL, Reload};
pub use caller::Caller;
pub use closed::CLOSED_MAX;
pub use grants::{Denied, Grants, Operation, WatchRight};
pub use keyring::{Added, EditError, Keyring, Listed, Listing, NewToken, Place, RawToken, Revoked};
pub use pattern::{Pattern, PatternError};
pub use tokens::{Fault, FileFault, PATTERNS_PER_TOKEN_MAX, TOKENS_MAX};
