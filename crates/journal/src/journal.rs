//! The journal as its owner holds it.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use storage::Storage;
use wire::{Epoch, Seq};

use crate::commit::{Batch, Place, Queue, Taken, Ticket, WriteFailure, Writer};
use crate::open::{self, Opened, Record};
use crate::segment::{self, Segment};
use crate::{Config, JournalError, OpenError, create};

/// An open journal; see the crate for what it promises.
///
/// Its methods come in three families. `append` queues and never blocks on the disk. `wait` and
/// `retain_from` do the disk's work on the caller's thread. The rest tell where the journal is.
///
/// No lock is held while another is taken, but for `retention`, which is taken first.
#[derive(Debug)]
pub struct Journal {
    storage: Arc<dyn Storage>,
    config: Config,
    epoch: Epoch,
    queue: Mutex<Queue>,
    /// Held by the leader while it writes; nobody else contends for it.
    writer: Mutex<Writer>,
    /// The first failed sync.
    poison: OnceLock<Arc<io::Error>>,
    /// Where each segment begins, oldest first; never empty.
    segments: Mutex<VecDeque<Seq>>,
    /// Serialises the removal of old segments. Holds whether a removal is not synced yet.
    retention: Mutex<bool>,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    batches: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
    records: AtomicU64,
    refusals: AtomicU64,
}

/// What the journal has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Batches made durable; each cost one write and one sync.
    pub batches: u64,
    /// Bytes made durable, those of the records' headers included.
    pub bytes: u64,
    /// Batches that could not be made durable.
    pub failures: u64,
    /// Records made durable.
    pub records: u64,
    /// Records refused because the queue was full.
    pub refusals: u64,
}

impl Journal {
    /// Begins an epoch whose records start at `first_seq`. A journal that lies there is set aside.
    ///
    /// When this returns, the beginning of the epoch is durable. If it fails or is killed, there is
    /// either the journal of before or none.
    pub fn create(
        storage: Arc<dyn Storage>,
        config: Config,
        epoch: Epoch,
        first_seq: Seq,
    ) -> Result<Self, OpenError> {
        let segment = create::create(&*storage, &config.dir, &epoch, first_seq)?;
        let last = Seq::new(first_seq.get().saturating_sub(1));
        Ok(Self::start(
            storage,
            config,
            epoch,
            last,
            segment,
            &[first_seq],
        ))
    }

    /// Reads the journal, handing each record to `visit` in order, and repairs its end.
    ///
    /// When this returns [`Opened::Ready`], all that was visited is durable. An error means that
    /// the journal could not be judged, and leaves it as it was.
    pub fn open(
        storage: Arc<dyn Storage>,
        config: Config,
        visit: &mut dyn FnMut(Record<'_>),
    ) -> Result<Opened, OpenError> {
        open::open(storage, config, visit)
    }

    pub(crate) fn start(
        storage: Arc<dyn Storage>,
        config: Config,
        epoch: Epoch,
        last: Seq,
        segment: Segment,
        segments: &[Seq],
    ) -> Self {
        Self {
            storage,
            config: config.clamped(),
            epoch,
            queue: Mutex::new(Queue {
                newest: last,
                durable: last,
                ..Queue::default()
            }),
            writer: Mutex::new(Writer::new(segment, last)),
            poison: OnceLock::new(),
            segments: Mutex::new(segments.iter().copied().collect()),
            retention: Mutex::new(false),
            counters: Counters::default(),
        }
    }

    /// Queues a record. It is durable once [`Journal::wait`] has said so for the ticket.
    ///
    /// `seq` must be above every number queued or written; after a failed write the numbers of the
    /// failed records may be used again. Nothing is written before somebody waits.
    pub fn append(&self, seq: Seq, payload: &[u8]) -> Result<Ticket, JournalError> {
        if payload.len() > self.config.record_bytes_max {
            return Err(JournalError::TooLarge {
                len: payload.len(),
                bytes_max: self.config.record_bytes_max,
            });
        }
        let checksum = crc32c::crc32c(payload);
        let mut queue = lock(&self.queue);
        self.check_poison()?;
        if seq <= queue.newest {
            return Err(JournalError::OutOfOrder {
                seq,
                last: queue.newest,
            });
        }
        let bytes_max = self.config.queue_bytes_max;
        if queue.bytes.len() + Queue::room_for(payload) > bytes_max {
            self.counters.refusals.fetch_add(1, Ordering::Relaxed);
            return Err(JournalError::Full { bytes_max });
        }
        Ok(queue.push(seq, payload, checksum))
    }

    /// Blocks until the ticket's record is durable or has failed.
    ///
    /// One of those who wait at a time leads: it writes and syncs all that is queued, for everyone.
    /// A failed write fails all that is queued at that moment, so that no record is ever durable
    /// while one that was queued before it is not.
    pub fn wait(&self, ticket: &Ticket) -> Result<(), JournalError> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(outcome) = ticket.batch.outcome.get() {
                return outcome.clone();
            }
            queue = if queue.led {
                let woken = ticket.batch.done.wait(queue);
                woken.unwrap_or_else(PoisonError::into_inner)
            } else {
                // Nobody has taken the ticket's batch, so it is the one in the queue.
                self.lead(queue)
            };
        }
    }

    /// Frees every segment that holds only records below `seq`; returns how many went.
    ///
    /// The oldest goes first, and its removal is durable before the next one's begins, so that a
    /// crash at any moment leaves a journal without a hole.
    pub fn retain_from(&self, seq: Seq) -> Result<usize, JournalError> {
        let mut unsynced = lock(&self.retention);
        let retain = |cause: io::Error| JournalError::Retain {
            cause: Arc::new(cause),
        };
        let mut freed = 0;
        loop {
            if *unsynced {
                self.storage.sync_dir(&self.config.dir).map_err(retain)?;
                *unsynced = false;
            }
            let Some(oldest) = self.freeable(seq) else {
                return Ok(freed);
            };
            let path = segment::path(&self.config.dir, oldest);
            segment::remove_if_there(&*self.storage, &path).map_err(retain)?;
            lock(&self.segments).pop_front();
            *unsynced = true;
            freed += 1;
        }
    }

    /// The epoch of all records.
    pub fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// The last record that is durable; the one before the first possible if there is none.
    pub fn last(&self) -> Seq {
        lock(&self.queue).durable
    }

    /// No record below this is in the journal any more.
    pub fn oldest(&self) -> Seq {
        let segments = lock(&self.segments);
        *segments
            .front()
            .expect("the segment that is written to is always listed")
    }

    /// The failed sync that poisoned the journal, if one did.
    pub fn poison(&self) -> Option<Arc<io::Error>> {
        self.poison.get().cloned()
    }

    /// Whether a failed sync has poisoned the journal.
    pub fn is_poisoned(&self) -> bool {
        self.poison.get().is_some()
    }

    /// The bytes that are queued and that no leader has taken yet.
    pub fn queued_bytes(&self) -> usize {
        lock(&self.queue).bytes.len()
    }

    /// What the journal has done since it was opened.
    pub fn stats(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            batches: read(&self.counters.batches),
            bytes: read(&self.counters.bytes),
            failures: read(&self.counters.failures),
            records: read(&self.counters.records),
            refusals: read(&self.counters.refusals),
        }
    }

    /// The oldest segment if all its records are below `seq` and it is not the last.
    fn freeable(&self, seq: Seq) -> Option<Seq> {
        let segments = lock(&self.segments);
        let next = segments.get(1)?;
        (*next <= seq).then(|| segments[0])
    }

    /// Writes all that is queued, with the queue unlocked meanwhile.
    fn lead<'j>(&'j self, mut queue: MutexGuard<'j, Queue>) -> MutexGuard<'j, Queue> {
        queue.led = true;
        let mut taken = queue.take();
        drop(queue);

        let mut lead = Lead {
            journal: self,
            batch: &Arc::clone(&taken.batch),
            is_settled: false,
        };
        let written = self.write(&mut taken);
        let mut queue = lock(&self.queue);
        self.settle(&mut queue, taken, written);
        lead.is_settled = true;
        queue
    }

    fn write(&self, taken: &mut Taken) -> Result<(), WriteFailure> {
        let place = Place {
            storage: &*self.storage,
            dir: &self.config.dir,
            epoch: &self.epoch,
            segment_bytes_max: self.config.segment_bytes_max,
        };
        let begun = lock(&self.writer).write(&place, &mut taken.bytes, taken.last)?;
        if let Some(first_seq) = begun {
            lock(&self.segments).push_back(first_seq);
        }
        Ok(())
    }

    /// Tells everyone whom the end of a batch concerns, and hands the lead on.
    fn settle(&self, queue: &mut Queue, mut taken: Taken, written: Result<(), WriteFailure>) {
        match written {
            Ok(()) => {
                self.counters.batches.fetch_add(1, Ordering::Relaxed);
                let bytes = taken.bytes.len() as u64;
                self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
                let records = taken.records;
                self.counters.records.fetch_add(records, Ordering::Relaxed);
                queue.durable = taken.last;
                finish(&taken.batch, Ok(()));
            }
            Err(WriteFailure::Refused(cause)) => {
                let cause = Arc::new(cause);
                self.fail(queue, &taken.batch, &JournalError::Write { cause });
            }
            Err(WriteFailure::Unsynced(cause)) => {
                let cause = Arc::clone(self.poison.get_or_init(|| Arc::new(cause)));
                self.fail(queue, &taken.batch, &JournalError::Poisoned { cause });
            }
        }
        taken.bytes.clear();
        queue.spare = taken.bytes;
        queue.led = false;
        queue.batch.done.notify_one();
    }

    /// Fails a batch and all that is queued behind it.
    fn fail(&self, queue: &mut Queue, batch: &Batch, error: &JournalError) {
        self.counters.failures.fetch_add(1, Ordering::Relaxed);
        let mut behind = queue.take();
        behind.bytes.clear();
        queue.spare = behind.bytes;
        queue.newest = queue.durable;
        finish(batch, Err(error.clone()));
        finish(&behind.batch, Err(error.clone()));
    }

    fn check_poison(&self) -> Result<(), JournalError> {
        self.poison.get().map_or(Ok(()), |cause| {
            Err(JournalError::Poisoned {
                cause: Arc::clone(cause),
            })
        })
    }
}

/// Sets the outcome of a batch and wakes all who wait for it.
fn finish(batch: &Batch, outcome: Result<(), JournalError>) {
    let is_first = batch.outcome.set(outcome).is_ok();
    assert!(is_first, "a batch is taken, and so settled, once");
    batch.done.notify_all();
}

/// The lead while it is held. A leader that panics in the storage poisons the journal, for nobody
/// knows what it wrote, and lets those who wait go.
struct Lead<'a> {
    journal: &'a Journal,
    batch: &'a Batch,
    is_settled: bool,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let cause = io::Error::other("a writer panicked");
        let cause = Arc::clone(self.journal.poison.get_or_init(|| Arc::new(cause)));
        let mut queue = lock(&self.journal.queue);
        let error = JournalError::Poisoned { cause };
        self.journal.fail(&mut queue, self.batch, &error);
        queue.led = false;
    }
}

/// Locks, and goes on with what a panicking thread left: [`Lead`] has made that safe.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
