//! Tells records, a torn tail and damage apart in the bytes of one segment.
//!
//! A batch is written only after the batch before it was synced, and each record says where its
//! batch began. So a record whose batch began *after* a bad spot proves that the bad spot was once
//! whole on disk and was damaged later. A record of the same batch proves nothing: a power cut may
//! keep the later blocks of an unsynced write and lose the earlier ones.
//!
//! What can't be told apart is a last batch that was acknowledged and then damaged from one that
//! was never synced. It is taken for torn. The owner's checkpoint, which names the sequence number
//! it reaches, narrows that down.

use wire::Seq;

use crate::format::{HEADER_LEN, RECORD_HEADER_LEN, RecordHeader};
use crate::open::Record;

/// What the records of a segment came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scan {
    /// The end of the last whole record.
    pub(crate) end: u64,
    /// The last whole record, or what was given as last before it.
    pub(crate) last: Seq,
    /// Where the batch of the last whole record begins, or `end` if there is no record.
    pub(crate) last_batch: u64,
    pub(crate) tail: Tail,
}

/// What lies behind the last whole record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Bytes that were once whole, or records out of order.
    Damaged,
    /// Nothing.
    None,
    /// Bytes that nothing proves to have ever been whole.
    Torn,
}

/// Visits the whole records of a segment; `last` is the record before the segment.
pub(crate) fn scan(
    segment: &[u8],
    salt: u32,
    mut last: Seq,
    visit: &mut dyn FnMut(Record<'_>),
) -> Scan {
    let mut at = HEADER_LEN.min(segment.len());
    let mut last_batch = at as u64;
    let mut ordered = true;
    while let Some((record, header)) = record_at(segment, at, salt) {
        if record.seq <= last || header.batch_start > at as u64 {
            ordered = false;
            break;
        }
        last = record.seq;
        last_batch = header.batch_start;
        visit(record);
        at += RECORD_HEADER_LEN + header.payload_len;
    }
    let tail = if at == segment.len() {
        Tail::None
    } else if ordered && !later_batch_follows(segment, at, salt) {
        Tail::Torn
    } else {
        Tail::Damaged
    };
    Scan {
        end: at as u64,
        last,
        last_batch,
        tail,
    }
}

fn record_at(segment: &[u8], at: usize, salt: u32) -> Option<(Record<'_>, RecordHeader)> {
    let bytes = &segment[at..];
    let header = RecordHeader::decode(bytes, salt)?;
    let payload = header.payload(bytes)?;
    let record = Record {
        seq: header.seq,
        payload,
    };
    Some((record, header))
}

/// Whether any record behind the bad spot belongs to a batch that began behind it.
fn later_batch_follows(segment: &[u8], bad: usize, salt: u32) -> bool {
    let bad_at = bad as u64;
    (bad + 1..segment.len()).any(|at| {
        RecordHeader::decode(&segment[at..], salt)
            .is_some_and(|header| header.batch_start > bad_at && header.batch_start <= at as u64)
    })
}
