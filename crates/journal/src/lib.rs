//! An append-only record log with group commit.
//!
//! A journal is a directory of segments, each a header and records. A record is an opaque payload
//! under a sequence number of its owner's; the numbers rise strictly and may skip. The bytes are
//! drawn in `docs/formats.md`.
//!
//! # What it promises
//! - *Durability.* [`Journal::wait`] returns `Ok` only after the record was synced. Whatever was
//!   acknowledged is replayed by every later [`Journal::open`], in order, with nothing between that
//!   was never appended. What was not acknowledged may be replayed or not, as one unbroken run
//!   after the acknowledged records.
//! - *Order.* When a ticket is durable, each earlier ticket is durable too or was reported as
//!   failed.
//! - *Group commit.* All who wait at one time share one write and one sync. There is no thread:
//!   the first who waits leads and commits for all that is queued, the others sleep until it is
//!   done. A thread of its own would cost two more wake-ups for a lone writer.
//! - *Honest failure.* A failed sync poisons the journal for ever: the system may have dropped the
//!   bytes, so a repeat that succeeds proves nothing. A failed write is cut back and reported, and
//!   the journal works again as soon as the disk does.
//!
//! # What happens when it is full, slow or killed
//! The queue is bounded in bytes and refuses what does not fit ([`JournalError::Full`]); a slow
//! disk makes the waiting callers wait and the batches larger. A kill or a power cut leaves a torn
//! tail at most, which the next open cuts off. Damage anywhere else, and a journal that is not in
//! the files it was written to, is told as [`Opened::Unusable`], and the owner begins another epoch
//! with [`Journal::create`].
//!
//! # Who may call it
//! One owner per directory; the owner holds the lock that says so. Every method blocks on the disk
//! except [`Journal::append`], which only copies, so that it can be called under the lock that
//! orders the commits.

mod commit;
mod config;
mod create;
mod error;
mod format;
mod journal;
mod open;
mod scan;
mod segment;

pub use commit::Ticket;
pub use config::Config;
pub use error::{JournalError, OpenError};
pub use journal::{Journal, Stats};
pub use open::{Inspected, Opened, Record, TornTail, Unusable, inspect};
