//! Following changes: a watch that reconnects by itself and says what it missed.
//!
//! **Promise.** After [`Client::watch`] has returned, every change in scope comes out of
//! [`Watch::next`], in order and at least once, or a [`Notice::Gap`] does that names the position
//! to go on from. So open the watch first and read second. [`Watch::cursor`] is the position of the
//! last notice that was *taken*; a program that keeps it and gives it as `since` the next time
//! skips nothing, whatever was still queued when it was killed.
//!
//! **When things go wrong.** A cut, stalled or garbled stream, a lost connection and a server that
//! leaves are reopened from the cursor, with pauses that grow while streams bring nothing; a time
//! that a leaving server names is obeyed. A refusal ends the watch unless it may pass by itself. A
//! server whose cursors go back is not believed: the stream is dropped and opened again.
//!
//! **When the caller is slow.** Notices wait in a queue of [`QUEUE_LEN`]. When it is full the
//! stream is dropped, so the server isn't held up, and opened again from the last queued notice
//! once half of the queue was taken. Nothing is lost as long as the server keeps what lies between;
//! if it doesn't, its `resync` comes out as a gap. Reading on into a larger queue was rejected: it
//! only moves the bound.
//!
//! One task a watch reads the stream. It ends with the [`Watch`]. One more task a pool notices that
//! the machine slept or moved, so that a dead connection is noticed within seconds.

mod state;
mod task;

use std::sync::Arc;

use thiserror::Error;
use tokio::sync::{Notify, mpsc, oneshot};
use wire::{ContentHash, Cursor, DocPath, DocumentScope, Event, GapReason, Op};

use crate::address::ServerAddress;
use crate::client::Client;
use crate::error::Refusal;
use crate::exchange::ExchangeError;
use task::Task;

/// How many notices wait for a slow caller: a quarter of a server's ring, so a stream that was
/// dropped for it resumes even if as much again is written meanwhile.
pub const QUEUE_LEN: usize = 1024;

/// What a watch has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A document changed.
    Change(Change),
    /// Changes were missed. Read again what is held, and go on.
    Gap(Gap),
    /// Nothing happened: everything in scope up to this cursor was told. Comes when a stream is
    /// acknowledged and with each heartbeat.
    Position(Cursor),
}

impl Notice {
    /// The position that this notice takes its reader to.
    pub const fn cursor(&self) -> &Cursor {
        match self {
            Self::Change(change) => &change.cursor,
            Self::Gap(gap) => &gap.cursor,
            Self::Position(cursor) => cursor,
        }
    }
}

/// A committed write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its position.
    pub cursor: Cursor,
    /// What happened.
    pub op: Op,
    /// To which document.
    pub path: DocPath,
    /// The current version after it.
    pub version: u64,
    /// The hash of that version's body; [`Client::fetch_content`] reads it.
    pub hash: Option<ContentHash>,
    /// Who wrote, as the writer said.
    pub agent: Option<String>,
}

impl From<Event> for Change {
    fn from(event: Event) -> Self {
        Self {
            cursor: event.cursor,
            op: event.op,
            path: event.path,
            version: event.version,
            hash: event.hash,
            agent: event.agent,
        }
    }
}

/// A part of the changes that was missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Why, if the server said so in a word that is known.
    pub reason: Option<GapReason>,
    /// The watch goes on with the changes after this position.
    pub cursor: Cursor,
}

/// Why a watch is over. Its last cursor stays good for another.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The server says no.
    #[error("watch refused: {0}")]
    Refused(Refusal),
    /// The server answers each of its own cursors with a resync.
    #[error(
        "{server} lets no cursor resume, not even its own ({} times in a row)",
        state::RESYNCS_MAX
    )]
    Resyncs {
        /// The server.
        server: ServerAddress,
    },
    /// The runtime shuts down.
    #[error("the watch was stopped with its runtime")]
    Stopped,
    /// The server doesn't know the request.
    #[error("{server} has no WATCH; it is older than September 2026 or another program")]
    Unsupported {
        /// The server.
        server: ServerAddress,
    },
    /// Nobody answers, or whoever answers isn't believed.
    #[error("{server} can't be reached: {error}")]
    Unreachable {
        /// The server.
        server: ServerAddress,
        /// How the last try failed.
        error: ExchangeError,
    },
}

/// A running watch. Dropping it ends it.
#[derive(Debug)]
pub struct Watch {
    notices: mpsc::Receiver<Notice>,
    cursor: Cursor,
    /// Filled before the queue closes.
    end: oneshot::Receiver<WatchError>,
    ended: Option<WatchError>,
    wake: Arc<Notify>,
}

impl Client {
    /// Watches one document, or everything below a directory, from `since` on or from this moment.
    ///
    /// Returns when the server has acknowledged the watch: every later change will come. A refusal
    /// of this first request is an error; a cursor that can't be resumed isn't, but comes out as a
    /// [`Notice::Gap`]. Cancelling leaves no watch behind.
    pub async fn watch(
        &self,
        scope: &DocumentScope,
        since: Option<&Cursor>,
    ) -> Result<Watch, WatchError> {
        self.pool().monitor();
        let (queue, notices) = mpsc::channel(QUEUE_LEN);
        let (opened, acknowledged) = oneshot::channel();
        let (ending, mut end) = oneshot::channel();
        let wake = Arc::new(Notify::new());
        let task = Task::new(self.clone(), scope.clone(), since.cloned(), queue, opened);
        tokio::spawn(task.run(Arc::clone(&wake), ending));
        match acknowledged.await {
            Ok(first) => Ok(Watch {
                notices,
                // A gap is only passed by taking its notice.
                cursor: since.cloned().unwrap_or(first),
                end,
                ended: None,
                wake,
            }),
            Err(_) => Err(end.try_recv().unwrap_or(WatchError::Stopped)),
        }
    }
}

impl Watch {
    /// The next notice. After an error the watch is over, and every further call gives the same.
    ///
    /// Cancel safe: a notice is taken when this returns, or not at all.
    pub async fn next(&mut self) -> Result<Notice, WatchError> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        if let Some(notice) = self.notices.recv().await {
            self.cursor = notice.cursor().clone();
            return Ok(notice);
        }
        let error = self.end.try_recv().unwrap_or(WatchError::Stopped);
        self.ended = Some(error.clone());
        Err(error)
    }

    /// The position of the last notice that was taken; before the first, where the watch began.
    pub const fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// How many notices are waiting to be taken.
    pub fn queued(&self) -> usize {
        self.notices.len()
    }

    /// Ends a pause before a reconnection at once, for a program that knows the network is back.
    pub fn reconnect_now(&self) {
        self.wake.notify_one();
    }
}
