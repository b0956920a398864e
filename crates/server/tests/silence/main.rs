//! The silence checker over the built server, the file store and the Mark face.
//!
//! Writers and watchers run against a real process over real QUIC while it is killed, drained, cut
//! off and robbed of its tokens. At the end every acknowledged write must have reached every
//! watcher in scope, or lie behind a gap that the watcher was told (P3, P5, P6, P10, P13).

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

mod faults;
mod soak;
mod world;
