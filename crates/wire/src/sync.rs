//! The sync protocol, version 1: JSON texts over a WebSocket (`docs/protocol/sync.md`).
//!
//! A subscription is known by its canonical scope, so that what is sent of it is the same for
//! every socket that follows the scope with the same rights and is encoded once. An `id` only
//! joins an answer to its request.
//!
//! [`ClientFrame::parse`] takes whatever a client sends: its shape is bounded before it is parsed,
//! members that are not known are passed over, and `data` is kept as it was written.

mod client;
mod server;
mod shape;

pub use client::{ClientFrame, FrameError};
pub use server::{Ack, ErrorFrame, Gap, Hello, Member, PresenceKind, Reconnect};
pub use server::{beat, changes, event, events, presence, update_available};

/// The version that is spoken.
pub const VERSION: u64 = 1;
