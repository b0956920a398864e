//! The ring of recent changes that every watcher reads at its own pace.
//!
//! The ring is the only queue. A publisher puts a change in a slot, looks up which watches it
//! concerns, notes it with each of them and wakes the tasks that serve them; it never waits for a
//! reader and keeps nothing per reader (P1, P2). A reader that the ring overtook learns it as
//! [`Next::Gap`] and goes on from the head; so do all when a source lost changes or began a new
//! epoch (P3). Every answer carries a position, which also moves past what doesn't concern a watch
//! (P4).
//!
//! Changes are told in the order of their places, each once per subscription. Nothing here is
//! durable: the source publishes what it has made durable and gives the epoch and the head to
//! continue from. Nothing here knows rights: whoever serves a watch checks each change and drops
//! what its reader may not see, and the position moves on all the same.
//!
//! There is no runtime, clock or I/O in here. Publishing may be done from any thread; a
//! [`Subscription`] belongs to the task that polls its [`Outlet`]. A queue per subscriber was
//! rejected: its memory depends on the slowest client, and a publisher would have to choose
//! between waiting for that client and dropping without a word.
//!
//! ```
//! use std::task::{Context, Poll, Waker};
//!
//! use feed::{Change, Feed, Next, Outlet, RING_LEN, Scope};
//! use wire::{Epoch, Seq};
//!
//! #[derive(Debug)]
//! struct Touched(&'static str);
//!
//! impl Change for Touched {
//!     fn name(&self) -> &str {
//!         self.0
//!     }
//! }
//!
//! let feed = Feed::new(Epoch::from_random([7; 6]), Seq::ZERO, RING_LEN);
//! let outlet = Outlet::new();
//! let scope = Scope::Prefix("/notes/".into());
//! let mut notes = feed.subscribe(scope, None, &outlet).expect("a new watch has no cursor");
//!
//! feed.publish(Touched("/notes/tea.md"));
//! feed.publish(Touched("/bills/may.md"));
//!
//! let mut cx = Context::from_waker(Waker::noop());
//! assert_eq!(outlet.poll_ready(&mut cx), Poll::Ready(notes.token()));
//! let Next::Change(slot) = notes.next() else { panic!("a change is due") };
//! assert_eq!(slot.change().name(), "/notes/tea.md");
//! assert!(matches!(notes.next(), Next::Idle));
//! assert_eq!(notes.position().seq, Seq::new(2));
//! ```

mod feed;
mod index;
mod outlet;
mod registration;
mod ring;
mod scope;
mod slot;
mod stats;
mod subscription;
mod sync;

#[cfg(test)]
mod interleavings;

pub use feed::{Feed, Refused, StaleSeq};
pub use outlet::{Outlet, Token};
pub use ring::RING_LEN;
pub use scope::{Change, Scope};
pub use slot::{Encoding, Slot};
pub use stats::Stats;
pub use subscription::{Next, Subscription};
