//! Idempotency keys: a repeated write answers what the first one did.
//!
//! A key is reserved durably before its write begins, and what became of the write is noted
//! durably before it is answered. So a repeat within [`KEPT_FOR`] gets the first answer, also
//! after a restart; one with another input, and one while the first still runs, is refused. If the
//! process dies between the two notes, the next start looks at what the write was meant to change
//! ([`Verdict`]): it was done and its answer is made up for, or it was not and the key is free, or
//! nobody can tell, and repeats are told so. Nothing is ever done twice on a guess.
//!
//! The notes are records of a [`Journal`] of their own. Losing it (a torn disk, a copied tree)
//! forgets keys and loses no write. When the journal can't be written, requests with a key are
//! refused and others go on. The number of keys is bounded; over it a fresh key is refused, since
//! forgetting an old one could do a write twice.
//!
//! Methods block on the disk and are called from threads that may. Keeping the note in the
//! document's own record was rejected: a refused write has no record, and its repeat must be
//! refused alike.

mod record;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::collections::hash_map::{Entry as Place, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use journal::{Journal, JournalError, Opened};
use storage::Storage;
use thiserror::Error;
use tracing::{error, warn};
use wire::{ContentHash, Epoch, Seq};

use record::Record;

pub(crate) use record::Kept;

/// How long a key is remembered: as long as a client may sensibly go on repeating.
pub(crate) const KEPT_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Where the journal lies beneath the data directory.
const DIR: &str = ".tidings/idempotency";

/// The digest by which a key, or an input, is known. Neither is kept itself.
pub(crate) type Digest = ContentHash;

/// What became of a write whose process died under it.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// It was done, and this is its answer.
    Done(Kept),
    /// It was not done.
    NotDone,
    /// What is there fits both.
    Unknown,
}

/// The keys. A cheap handle: clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Keys(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    journal: Journal,
    keys_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Digest, Entry>,
    /// Every reservation that the journal holds, oldest first. It may be of a key that was freed.
    reserved: VecDeque<(Timestamp, Seq, Digest)>,
    last: Seq,
}

#[derive(Debug)]
struct Entry {
    input: Digest,
    /// Which reservation made it.
    seq: Seq,
    outcome: Outcome,
}

#[derive(Clone, Debug)]
enum Outcome {
    Kept(Arc<Kept>),
    Running,
    Unknown,
}

/// What a key means for a request.
#[derive(Debug)]
pub(crate) enum Begun {
    /// The write is to be done, and its outcome noted.
    Fresh(Reservation),
    /// The write was done; this was the answer.
    Repeat(Arc<Kept>),
}

/// Why a request with a key is refused.
#[derive(Debug, Error)]
pub(crate) enum KeyError {
    /// There are as many keys as may be.
    #[error("there are as many idempotency keys as may be")]
    Full,
    /// The first request still runs.
    #[error("the first request with the key still runs")]
    InProgress,
    /// The note can't be made durable.
    #[error("the key can't be noted: {0}")]
    Journal(#[from] JournalError),
    /// The key was used with another input.
    #[error("the key was used with another request")]
    Reused,
    /// The process died under the first request, and nobody can tell what became of it.
    #[error("the outcome of the first request is unknown")]
    Unknown,
}

/// Why the keys can't be opened.
#[derive(Debug, Error)]
#[error("open the idempotency keys")]
pub struct KeysError(#[from] journal::OpenError);

impl Keys {
    /// Reads the keys beneath the data directory and settles those whose process died. `judge` is
    /// given the intent of each.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        keys_max: usize,
        epoch: Epoch,
        now: Timestamp,
        judge: &mut dyn FnMut(&serde_json::Value) -> Verdict,
    ) -> Result<Self, KeysError> {
        let config = journal::Config::new(DIR);
        let mut replay = Replay::default();
        let opened = Journal::open(storage.clone(), config.clone(), &mut |record| {
            replay.take(record.seq, record.payload);
        })?;
        let journal = match opened {
            Opened::Ready { journal, .. } => journal,
            other => {
                if let Opened::Unusable { reason } = other {
                    warn!(%reason, "idempotency keys are forgotten");
                }
                replay = Replay::default();
                Journal::create(storage, config, epoch, Seq::ZERO.next())?
            }
        };
        replay.state.last = journal.last();
        let intents = std::mem::take(&mut replay.intents);
        let keys = Self(Arc::new(Inner {
            journal,
            keys_max,
            state: Mutex::new(replay.state),
        }));
        keys.forget(now);
        keys.settle(intents, judge);
        Ok(keys)
    }

    /// Begins a request with the key `id`. When this gives a reservation, it is durable.
    pub(crate) fn begin(
        &self,
        id: Digest,
        input: Digest,
        intent: serde_json::Value,
        now: Timestamp,
    ) -> Result<Begun, KeyError> {
        self.forget(now);
        let (seq, ticket) = {
            let mut state = self.state();
            if let Some(entry) = state.entries.get(&id) {
                return entry.answer(input);
            }
            if state.reserved.len() >= self.0.keys_max {
                return Err(KeyError::Full);
            }
            let seq = state.last.next();
            let record = Record::Reserve {
                id,
                input,
                at: now.as_millisecond(),
                intent,
            };
            let ticket = self.0.journal.append(seq, &record.encode())?;
            state.last = seq;
            state.reserved.push_back((now, seq, id));
            let outcome = Outcome::Running;
            state.entries.insert(
                id,
                Entry {
                    input,
                    seq,
                    outcome,
                },
            );
            (seq, ticket)
        };
        let reservation = Reservation {
            keys: self.clone(),
            id,
            seq,
            is_settled: false,
        };
        match self.0.journal.wait(&ticket) {
            Ok(()) => Ok(Begun::Fresh(reservation)),
            Err(failure) => {
                reservation.free();
                Err(failure.into())
            }
        }
    }

    /// Forgets what is older than [`KEPT_FOR`].
    fn forget(&self, now: Timestamp) {
        let oldest = {
            let mut state = self.state();
            let mut forgot = false;
            while let Some((at, seq, id)) = state.reserved.front().copied() {
                if now.duration_since(at) < KEPT_FOR {
                    break;
                }
                state.reserved.pop_front();
                state.remove(id, seq);
                forgot = true;
            }
            let oldest = state.reserved.front().map(|(_, seq, _)| *seq);
            forgot.then(|| oldest.unwrap_or(state.last))
        };
        if let Some(oldest) = oldest
            && let Err(error) = self.0.journal.retain_from(oldest)
        {
            warn!(%error, "old idempotency keys stay on disk");
        }
    }

    /// Settles the keys that were running when the process died.
    fn settle(
        &self,
        intents: HashMap<Digest, serde_json::Value>,
        judge: &mut dyn FnMut(&serde_json::Value) -> Verdict,
    ) {
        for (id, intent) in intents {
            let running = self.state().entries.get(&id).map(|entry| entry.seq);
            let Some(seq) = running else { continue };
            let reservation = Reservation {
                keys: self.clone(),
                id,
                seq,
                is_settled: false,
            };
            match judge(&intent) {
                Verdict::Done(kept) => reservation.keep(kept),
                Verdict::NotDone => reservation.free(),
                Verdict::Unknown => reservation.lose(),
            }
        }
    }

    /// Makes a record durable under the next number.
    fn note(&self, record: &Record) -> Result<(), JournalError> {
        let ticket = {
            let mut state = self.state();
            let seq = state.last.next();
            let ticket = self.0.journal.append(seq, &record.encode())?;
            state.last = seq;
            ticket
        };
        self.0.journal.wait(&ticket)
    }

    /// Every change of the state is whole between two statements, so poison is ignored.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remove(&mut self, id: Digest, seq: Seq) {
        if let Place::Occupied(place) = self.entries.entry(id)
            && place.get().seq == seq
        {
            place.remove();
        }
    }

    fn set(&mut self, id: Digest, seq: Seq, outcome: Outcome) {
        if let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.seq == seq) {
            entry.outcome = outcome;
        }
    }
}

impl Entry {
    fn answer(&self, input: Digest) -> Result<Begun, KeyError> {
        if self.input != input {
            return Err(KeyError::Reused);
        }
        match &self.outcome {
            Outcome::Kept(kept) => Ok(Begun::Repeat(kept.clone())),
            Outcome::Running => Err(KeyError::InProgress),
            Outcome::Unknown => Err(KeyError::Unknown),
        }
    }
}

/// A key whose write is under way. Dropped without a word, as by a panic, it stays taken and its
/// outcome is unknown until the next start judges it.
#[derive(Debug)]
pub(crate) struct Reservation {
    keys: Keys,
    id: Digest,
    seq: Seq,
    is_settled: bool,
}

impl Reservation {
    /// Notes the answer durably. Repeats get it from here on, also if the note fails: then the
    /// next start judges again.
    pub(crate) fn keep(mut self, kept: Kept) {
        self.is_settled = true;
        let record = Record::Keep {
            id: self.id,
            kept: kept.clone(),
        };
        if let Err(error) = self.keys.note(&record) {
            error!(%error, "note the outcome of an idempotency key");
        }
        let outcome = Outcome::Kept(Arc::new(kept));
        self.keys.state().set(self.id, self.seq, outcome);
    }

    /// Frees the key: nothing was done. It is noted durably, or a later start could take the write
    /// of somebody else for this one.
    pub(crate) fn free(mut self) {
        self.is_settled = true;
        if let Err(error) = self.keys.note(&Record::Free { id: self.id }) {
            warn!(%error, "note that an idempotency key is free");
        }
        self.keys.state().remove(self.id, self.seq);
    }

    /// Notes that nobody can tell what became of the write.
    pub(crate) fn lose(mut self) {
        self.is_settled = true;
        if let Err(error) = self.keys.note(&Record::Lose { id: self.id }) {
            error!(%error, "note that the outcome of an idempotency key is unknown");
        }
        self.keys.state().set(self.id, self.seq, Outcome::Unknown);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_settled {
            self.keys.state().set(self.id, self.seq, Outcome::Unknown);
        }
    }
}

/// The state as the records make it.
#[derive(Default)]
struct Replay {
    state: State,
    /// What those that still run were meant to do.
    intents: HashMap<Digest, serde_json::Value>,
}

impl Replay {
    fn take(&mut self, seq: Seq, payload: &[u8]) {
        let Some(record) = Record::decode(payload) else {
            return warn!(%seq, "an idempotency record is of an unknown form");
        };
        let id = record.id();
        let known = self.state.entries.get(&id).map(|entry| entry.seq);
        match record {
            Record::Reserve {
                input, at, intent, ..
            } => {
                let outcome = Outcome::Running;
                let entry = Entry {
                    input,
                    seq,
                    outcome,
                };
                self.state.entries.insert(id, entry);
                let at = Timestamp::from_millisecond(at).unwrap_or(Timestamp::MIN);
                self.state.reserved.push_back((at, seq, id));
                self.intents.insert(id, intent);
                return;
            }
            Record::Keep { kept, .. } => {
                if let Some(seq) = known {
                    self.state.set(id, seq, Outcome::Kept(Arc::new(kept)));
                }
            }
            Record::Lose { .. } => {
                if let Some(seq) = known {
                    self.state.set(id, seq, Outcome::Unknown);
                }
            }
            Record::Free { .. } => _ = self.state.entries.remove(&id),
        }
        self.intents.remove(&id);
    }
}
