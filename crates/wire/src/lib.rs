//! The grammar of Tidings on the wire: cursors, scopes, Mark messages and watch blocks.
//!
//! Everything here is a function from bytes to values and back. There is no I/O, no clock and no
//! runtime; whoever owns a socket feeds bytes in and writes what comes out. Every decoder has a
//! named bound and returns an error of its own family, and none of them panics on any input.

mod cursor;
mod hash;
mod path;
mod scope;

pub use cursor::{Cursor, CursorError, Epoch, GapReason, Seq};
pub use hash::{ContentHash, HashError};
pub use path::{DocPath, PathError, Target};
pub use scope::{DocumentScope, Scope, ScopeError};
