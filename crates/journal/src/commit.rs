//! What is queued, and how a batch of it is written.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, OnceLock};

use storage::Storage;
use wire::{Epoch, Seq};

use crate::JournalError;
use crate::format::{self, HEADER_LEN, RECORD_HEADER_LEN};
use crate::segment::{self, Segment};

/// The claim to one record that was appended; [`Journal::wait`](crate::Journal::wait) redeems it.
///
/// Dropping it is fine: the record is written with the next batch that somebody waits for.
#[derive(Clone, Debug)]
pub struct Ticket {
    pub(crate) batch: Arc<Batch>,
}

/// What becomes of all records that are written together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Set once, before `done` is notified.
    pub(crate) outcome: OnceLock<Result<(), JournalError>>,
    /// Where those who wait for this batch sleep; a batch of its own, so that the end of one does
    /// not wake those of the next.
    pub(crate) done: Condvar,
}

/// The records that no leader has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// The records, but for what [`format::seal`] adds.
    pub(crate) bytes: Vec<u8>,
    /// The buffer of the batch before, empty, kept for its room.
    pub(crate) spare: Vec<u8>,
    pub(crate) records: u64,
    /// The highest number that is queued or in the journal.
    pub(crate) newest: Seq,
    /// The highest number that is durable.
    pub(crate) durable: Seq,
    pub(crate) batch: Arc<Batch>,
    /// Whether somebody is writing a batch.
    pub(crate) led: bool,
}

impl Queue {
    /// Queues a record whose payload has the given checksum.
    pub(crate) fn push(&mut self, seq: Seq, payload: &[u8], checksum: u32) -> Ticket {
        format::push_record(&mut self.bytes, seq, payload, checksum);
        self.records += 1;
        self.newest = seq;
        Ticket {
            batch: Arc::clone(&self.batch),
        }
    }

    /// The bytes that a payload takes in the queue.
    pub(crate) fn room_for(payload: &[u8]) -> usize {
        RECORD_HEADER_LEN + payload.len()
    }

    /// Takes all that is queued and begins the next batch.
    pub(crate) fn take(&mut self) -> Taken {
        let spare = std::mem::take(&mut self.spare);
        Taken {
            bytes: std::mem::replace(&mut self.bytes, spare),
            records: std::mem::take(&mut self.records),
            last: self.newest,
            batch: std::mem::take(&mut self.batch),
        }
    }
}

/// A batch on its way to the disk.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: u64,
    pub(crate) last: Seq,
    pub(crate) batch: Arc<Batch>,
}

/// The end of the journal on disk; only the leader touches it.
#[derive(Debug)]
pub(crate) struct Writer {
    segment: Segment,
    /// The last record that is durable.
    last: Seq,
    /// Set while bytes of a failed write may lie behind the end.
    tail_dirty: bool,
    /// Set while a new segment was begun and not finished. The old one is not written to any more:
    /// the new one may turn up after a crash, and says that it follows what was there before.
    roll_owed: bool,
}

/// Why a batch was not written, and what that means for the batches after it.
#[derive(Debug)]
pub(crate) enum WriteFailure {
    /// Nothing of the batch counts; the next one may succeed.
    Refused(io::Error),
    /// The journal can't know what is on disk.
    Unsynced(io::Error),
}

/// The place and bounds of the segments.
pub(crate) struct Place<'a> {
    pub(crate) storage: &'a dyn Storage,
    pub(crate) dir: &'a Path,
    pub(crate) epoch: &'a Epoch,
    pub(crate) segment_bytes_max: u64,
}

impl Writer {
    pub(crate) fn new(segment: Segment, last: Seq) -> Self {
        Self {
            segment,
            last,
            tail_dirty: false,
            roll_owed: false,
        }
    }

    /// Writes and syncs a batch; returns where a new segment begins if one was begun for it.
    pub(crate) fn write(
        &mut self,
        place: &Place<'_>,
        bytes: &mut [u8],
        last: Seq,
    ) -> Result<Option<Seq>, WriteFailure> {
        let begun = self
            .make_room(place, bytes.len() as u64)
            .map_err(WriteFailure::Refused)?;
        let Segment { file, salt, len } = &mut self.segment;
        format::seal(bytes, *len, *salt);
        if let Err(error) = file.write_at(*len, bytes) {
            self.tail_dirty = file.set_len(*len).is_err();
            return Err(WriteFailure::Refused(error));
        }
        file.sync_data().map_err(WriteFailure::Unsynced)?;
        *len += bytes.len() as u64;
        self.last = last;
        Ok(begun)
    }

    fn make_room(&mut self, place: &Place<'_>, wanted: u64) -> io::Result<Option<Seq>> {
        let Segment { file, len, .. } = &self.segment;
        if self.tail_dirty {
            file.set_len(*len)?;
            self.tail_dirty = false;
        }
        let is_empty = *len == HEADER_LEN as u64;
        let is_full = !is_empty && *len + wanted > place.segment_bytes_max;
        if !is_full && !self.roll_owed {
            return Ok(None);
        }
        let first_seq = self.last.next();
        self.roll_owed = true;
        self.segment = segment::create(place.storage, place.dir, place.epoch, first_seq)?;
        self.roll_owed = false;
        Ok(Some(first_seq))
    }
}
