//! The grammar of Tidings on the wire: cursors, scopes, Mark messages and watch blocks, the sync
//! protocol, server-sent events and WebSocket frames.
//!
//! Everything here is a function from bytes to values and back. There is no I/O, no clock and no
//! runtime; whoever owns a socket feeds bytes in and writes what comes out. Every decoder has a
//! named bound and returns an error of its own family, and none of them panics on any input.
//!
//! ```
//! use wire::{BlockReader, BlockView, Request, RequestDecoder, Verb};
//!
//! // A client asks to watch everything below `/notes/`.
//! let request = Request::new(Verb::Watch, "/notes/").with("since", "7f3a9c21d0be:5");
//! let bytes = request.encode()?;
//!
//! // The server reads it in whatever pieces it comes.
//! let mut decoder = RequestDecoder::new();
//! for piece in bytes.chunks(7) {
//!     decoder.feed(piece)?;
//! }
//! assert_eq!(decoder.finish()?, request);
//!
//! // The client reads what comes back.
//! let mut stream: &[u8] = b"---\ncursor: 7f3a9c21d0be:5\nstatus: ok\n---\n";
//! let mut reader = BlockReader::new();
//! let Some(BlockView::Control(acknowledgement)) = reader.read(&mut stream)? else {
//!     panic!("a watch begins with a control block");
//! };
//! assert_eq!(acknowledgement.cursor.map(|cursor| cursor.seq().get()), Some(5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
mod cursor;
mod hash;
mod list_cursor;
mod metadata;
mod path;
mod record;
mod request;
mod response;
mod scope;
mod status;
mod verb;

pub mod limits;
pub mod sse;
pub mod sync;
pub mod websocket;

pub use block::{
    Block, BlockError, BlockReader, BlockTooLong, BlockView, Control, ControlView, Event,
    EventView, Op,
};
pub use cursor::{Cursor, CursorError, CursorRef, Epoch, GapReason, Seq};
pub use hash::{ContentHash, HashError};
pub use list_cursor::{ListCursor, ListCursorError};
pub use metadata::{Metadata, MetadataError};
pub use path::{DocPath, PathError, Target};
pub use record::{ChangeRecord, NoticeRecord, with_scope};
pub use request::{Malformed, Request, RequestDecoder, RequestError, Unreadable};
pub use response::{Response, ResponseError};
pub use scope::{ChannelScope, DocumentScope, Scope, ScopeError, is_channel_name};
pub use status::Status;
pub use verb::Verb;
