//! The grammar of Tidings on the wire: cursors, scopes, Mark messages and watch blocks.
//!
//! Everything here is a function from bytes to values and back. There is no I/O, no clock and no
//! runtime; whoever owns a socket feeds bytes in and writes what comes out. Every decoder has a
//! named bound and returns an error of its own family, and none of them panics on any input.

mod block;
mod cursor;
mod hash;
mod list_cursor;
mod metadata;
mod path;
mod request;
mod response;
mod scope;
mod status;
mod verb;

pub mod limits;

pub use block::{
    Block, BlockError, BlockReader, BlockTooLong, BlockView, Control, ControlView, Event,
    EventView, Op,
};
pub use cursor::{Cursor, CursorError, CursorRef, Epoch, GapReason, Seq};
pub use hash::{ContentHash, HashError};
pub use list_cursor::{ListCursor, ListCursorError};
pub use metadata::{Metadata, MetadataError};
pub use path::{DocPath, PathError, Target};
pub use request::{Malformed, Request, RequestDecoder, RequestError, Unreadable};
pub use response::{Response, ResponseError};
pub use scope::{DocumentScope, Scope, ScopeError};
pub use status::Status;
pub use verb::Verb;
