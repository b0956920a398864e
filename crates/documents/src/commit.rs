//! The order of commits: one sequence, one journal, one feed, one index.
//!
//! A write that has its bytes in place calls [`Committer::begin`], which asks for the right once
//! more, gives it the next seq and makes its record durable: that is the commit. It then finishes
//! its work on disk and calls [`Committed::tell`]. Changes become readable and are told strictly in
//! the order of their seqs, each only when all before it are told or taken back (P1, P6, P8), and
//! `tell` returns when this one is.
//!
//! **Promises.** Whatever was told has a durable record and is in the index. A seq whose write
//! failed after the commit is taken back by a durable `void` record before anything later is
//! told; if that record can't be made durable, nothing later is told at all and writes are refused
//! until a restart, because the next opening would tell the change after later ones.
//!
//! **When it is slow.** The writer whose disk work takes longest delays the telling of those behind
//! it, not their disk work. Readers and watchers are never waited for (P2).
//!
//! **Who may call it.** Writers that hold their path's lock. A [`Committed`] that is dropped, also
//! by a panic, is taken back.
//!
//! Telling in the order of completion with gaps closed later was rejected: a cursor could then
//! stand above a change that is yet to come.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use feed::Feed;
use journal::{Journal, JournalError};
use wire::{Cursor, DocPath, Seq};

use crate::index::{Description, Index, Standing, VersionEntry};
use crate::record::{Record, WriteRecord};
use crate::{Change, StillAllowed, WriteError};

/// The order of commits.
#[derive(Debug)]
pub(crate) struct Committer {
    journal: Journal,
    order: Mutex<Order>,
    tail: Mutex<Tail>,
    /// Notified whenever `tail` moves or breaks.
    moved: Condvar,
    index: Arc<RwLock<Index>>,
    feed: Feed<Change>,
}

/// Where the sequence stands. Its lock is the commit lock.
#[derive(Debug)]
struct Order {
    /// The last seq that was given out.
    last: Seq,
    /// The store was closed: nothing is committed any more.
    is_closed: bool,
}

/// Where the telling stands.
#[derive(Debug)]
struct Tail {
    /// Everything up to here was told or taken back.
    told: Seq,
    /// What is finished and waits for those before it; `None` for what is taken back.
    done: BTreeMap<Seq, Option<Told>>,
    /// The first seq that can't be taken back, and why: nothing from there on is ever told.
    broken: Option<(Seq, Arc<str>)>,
}

/// A change and what it does to the index.
#[derive(Debug)]
struct Told {
    change: Change,
    effect: Effect,
}

/// What a change does to the index.
#[derive(Debug)]
pub(crate) enum Effect {
    /// The current version was edited by hand.
    Edit(VersionEntry, Description),
    /// The document was archived or unarchived.
    Standing(Standing),
    /// There is a further version.
    Version(VersionEntry, Description),
}

impl Effect {
    fn apply(self, path: &DocPath, index: &mut Index) {
        // Writers hold a reservation and their path's lock, so nothing can be in the way.
        let applied = match self {
            Self::Edit(entry, description) => index.replace_version(path, entry, Some(description)),
            Self::Standing(standing) => index.set_standing(path, standing),
            Self::Version(entry, description) => index.insert_version(path, entry, description),
        };
        debug_assert!(applied, "the index takes what is committed");
    }
}

impl Committer {
    /// Continues after `last` in the journal's epoch.
    pub(crate) fn new(
        journal: Journal,
        last: Seq,
        index: Arc<RwLock<Index>>,
        feed: Feed<Change>,
    ) -> Self {
        Self {
            journal,
            order: Mutex::new(Order {
                last,
                is_closed: false,
            }),
            tail: Mutex::new(Tail {
                told: last,
                done: BTreeMap::new(),
                broken: None,
            }),
            moved: Condvar::new(),
            index,
            feed,
        }
    }

    /// Commits a write: when this returns, its record is durable.
    pub(crate) fn begin(
        &self,
        mut write: WriteRecord,
        still_allowed: StillAllowed<'_>,
    ) -> Result<Committed<'_>, WriteError> {
        let change = write.change.clone();
        let seq = self.append(
            |told| {
                write.told = told;
                Record::Write(write)
            },
            Some(still_allowed),
        )?;
        Ok(Committed {
            committer: self,
            seq,
            change: Some(change),
        })
    }

    /// Refuses writes from here on and returns when all that are committed are told.
    pub(crate) fn close(&self) {
        let last = {
            let mut order = self.order();
            order.is_closed = true;
            order.last
        };
        let _ = self.wait_told(last);
    }

    /// Why writes are refused until a restart, if they are.
    pub(crate) fn refusal(&self) -> Option<String> {
        if let Some((_, reason)) = &self.tail().broken {
            return Some(reason.to_string());
        }
        self.journal.poison().map(|cause| cause.to_string())
    }

    /// Everything up to here was told or taken back.
    pub(crate) fn told(&self) -> Seq {
        self.tail().told
    }

    /// A consistent look at the index: `look` sees exactly the changes up to the seq it is given.
    pub(crate) fn at_rest<T>(&self, look: impl FnOnce(Seq, &Index) -> T) -> T {
        let tail = self.tail();
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        look(tail.told, &index)
    }

    /// The journal, for its retention.
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Gives a record the next seq, under the commit lock, and makes it durable. A record without
    /// a gate takes a write back, which no loss of rights and no closing may prevent.
    fn append(
        &self,
        record: impl FnOnce(Seq) -> Record,
        gate: Option<StillAllowed<'_>>,
    ) -> Result<Seq, WriteError> {
        let (seq, ticket) = {
            let mut order = self.order();
            if order.is_closed && gate.is_some() {
                return Err(WriteError::Closed);
            }
            let (told, broken) = {
                let tail = self.tail();
                (tail.told, tail.broken.clone())
            };
            if let Some((_, reason)) = broken {
                return Err(WriteError::Poisoned(reason.to_string()));
            }
            if gate.is_some_and(|still_allowed| !still_allowed()) {
                return Err(WriteError::NotPermitted);
            }
            let seq = order.last.next();
            let ticket = self.journal.append(seq, &record(told).encode())?;
            order.last = seq;
            (seq, ticket)
        };
        match self.journal.wait(&ticket) {
            Ok(()) => Ok(seq),
            Err(error) => {
                // It is not in the journal, so its seq is passed over.
                self.finish(seq, None);
                Err(error.into())
            }
        }
    }

    /// Makes sure that a committed write counts as never made.
    fn take_back(&self, seq: Seq) {
        match self.append(|_| Record::Void(seq), None) {
            Ok(void) => {
                self.finish(seq, None);
                self.finish(void, None);
            }
            Err(error) => self.break_at(seq, &error),
        }
    }

    fn break_at(&self, seq: Seq, error: &WriteError) {
        tracing::error!(%seq, %error, "a failed write can't be taken back; writes stop");
        let reason = format!("the write {seq} failed and could not be taken back: {error}");
        let mut tail = self.tail();
        if tail.broken.as_ref().is_none_or(|(first, _)| seq < *first) {
            tail.broken = Some((seq, reason.into()));
        }
        drop(tail);
        self.moved.notify_all();
    }

    /// Notes that `seq` is done with and tells whatever is next in turn.
    fn finish(&self, seq: Seq, told: Option<Told>) {
        let mut tail = self.tail();
        tail.done.insert(seq, told);
        loop {
            let next = tail.told.next();
            let Some(told) = tail.done.remove(&next) else {
                break;
            };
            if let Some(Told { change, effect }) = told {
                let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
                effect.apply(&change.path, &mut index);
                drop(index);
                let fits = self.feed.publish_at(next, change);
                debug_assert!(fits.is_ok(), "the feed is behind the tail");
            }
            tail.told = next;
        }
        drop(tail);
        self.moved.notify_all();
    }

    fn wait_told(&self, seq: Seq) -> Result<(), WriteError> {
        let mut tail = self.tail();
        while tail.told < seq {
            if let Some((first, reason)) = &tail.broken
                && *first <= seq
            {
                return Err(WriteError::Poisoned(reason.to_string()));
            }
            tail = self
                .moved
                .wait(tail)
                .unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write whose record is durable. Dropping it takes the write back.
#[derive(Debug)]
pub(crate) struct Committed<'a> {
    committer: &'a Committer,
    seq: Seq,
    /// `None` once it is told.
    change: Option<Change>,
}

impl Committed<'_> {
    /// Puts the change into the index and tells it, in its turn; returns when that is done.
    pub(crate) fn tell(mut self, effect: Effect) -> Result<Cursor, WriteError> {
        if let Some(change) = self.change.take() {
            self.committer
                .finish(self.seq, Some(Told { change, effect }));
        }
        self.committer.wait_told(self.seq)?;
        Ok(Cursor::new(
            self.committer.journal.epoch().clone(),
            self.seq,
        ))
    }
}

impl Drop for Committed<'_> {
    fn drop(&mut self) {
        if self.change.is_some() {
            self.committer.take_back(self.seq);
        }
    }
}

impl From<JournalError> for WriteError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Poisoned { cause } => Self::Poisoned(cause.to_string()),
            JournalError::Write { cause } => {
                Self::Storage(std::io::Error::new(cause.kind(), cause.to_string()))
            }
            other => Self::Storage(std::io::Error::other(other.to_string())),
        }
    }
}
