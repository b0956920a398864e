//! Who asks and what they may: capability tokens, JSON web tokens, policies.
//!
//! A capability token is a secret text; the tokens file knows its hash, the patterns of paths it
//! is for, the operations it allows and when it ends. Nothing here keeps or shows a raw token
//! except [`RawToken`], which is made once and printed once.
//!
//! Without tokens nothing can be written. Reading is public until a place is closed by the first
//! token that may read there, and closed places stay closed when that token goes.
//!
//! [`jwt`] checks the tokens of an identity provider and gives [`Claims`], which the expressions of
//! [`policy`] are about.
//!
//! Time is an argument of every decision. The files are read by [`Authority`] and edited by
//! [`Keyring`], both blocking; nothing here spawns, sleeps or logs.

mod authority;
mod caller;
mod claims;
mod closed;
mod file;
mod glob;
mod grants;
mod keyring;
mod pattern;
mod tokens;

pub mod jwt;
pub mod policy;

pub use authority::{Authority, Files, LoadError, POLL_INTERVAL, Reload};
pub use caller::Caller;
pub use claims::Claims;
pub use closed::CLOSED_MAX;
pub use grants::{Allowed, Denied, Grants, Operation, WatchRight};
pub use keyring::{Added, EditError, Keyring, Listed, Listing, NewToken, Place, RawToken, Revoked};
pub use pattern::{Pattern, PatternError};
pub use tokens::{Fault, FileFault, PATTERNS_PER_TOKEN_MAX, TOKENS_MAX};
