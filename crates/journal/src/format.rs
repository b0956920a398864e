//! The bytes of a segment: one header, then records. Drawn in `docs/formats.md`; little-endian.

use storage::{Stat, UnixNanos};
use wire::{Epoch, Seq};

/// Neither a segment nor a batch may be longer, so that an offset always fits in 32 bits.
pub(crate) const BYTES_CEILING: usize = 1 << 30;
const _: () = assert!(BYTES_CEILING + BYTES_CEILING + HEADER_LEN <= u32::MAX as usize);

pub(crate) const HEADER_LEN: usize = 128;
pub(crate) const RECORD_HEADER_LEN: usize = 24;

/// The one format there is.
pub(crate) const FORMAT: u32 = 1;
const MAGIC: [u8; 8] = *b"TDGSJRNL";

mod header_at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const FORMAT: usize = 8;
    pub(super) const EPOCH_LEN: usize = 12;
    pub(super) const FIRST_SEQ: usize = 16;
    pub(super) const INODE: usize = 24;
    pub(super) const BORN: usize = 32;
    pub(super) const EPOCH: usize = 40;
    pub(super) const RESERVED: usize = 104;
    pub(super) const CHECKSUM: usize = 124;
}
const _: () = assert!(header_at::EPOCH + Epoch::LEN_MAX == header_at::RESERVED);
const _: () = assert!(header_at::CHECKSUM + 4 == HEADER_LEN);

mod record_at {
    pub(super) const PAYLOAD_LEN: usize = 0;
    pub(super) const BATCH_START: usize = 4;
    pub(super) const SEQ: usize = 8;
    pub(super) const PAYLOAD_CHECKSUM: usize = 16;
    pub(super) const HEADER_CHECKSUM: usize = 20;
}
const _: () = assert!(record_at::HEADER_CHECKSUM + 4 == RECORD_HEADER_LEN);

/// Which file a segment was written to. A copy has another one, even under the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    inode: u64,
    /// 0 where the file system keeps no time of birth; the inode then stands alone.
    born: i64,
}

impl Identity {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            inode: stat.inode,
            born: stat.born.map_or(0, UnixNanos::get),
        }
    }
}

/// The first bytes of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) epoch: Epoch,
    /// One above the last record before this segment, so that a segment missing in the middle
    /// shows although the numbers of records may skip.
    pub(crate) first_seq: Seq,
    pub(crate) identity: Identity,
}

/// Why bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    Damaged,
    Format(u32),
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        let epoch = self.epoch.as_str().as_bytes();
        put(&mut bytes, header_at::MAGIC, &MAGIC);
        put(&mut bytes, header_at::FORMAT, &FORMAT.to_le_bytes());
        bytes[header_at::EPOCH_LEN] = epoch.len() as u8;
        let first_seq = self.first_seq.get().to_le_bytes();
        put(&mut bytes, header_at::FIRST_SEQ, &first_seq);
        let inode = self.identity.inode.to_le_bytes();
        put(&mut bytes, header_at::INODE, &inode);
        put(
            &mut bytes,
            header_at::BORN,
            &self.identity.born.to_le_bytes(),
        );
        put(&mut bytes, header_at::EPOCH, epoch);
        let checksum = crc32c::crc32c(&bytes[..header_at::CHECKSUM]);
        put(&mut bytes, header_at::CHECKSUM, &checksum.to_le_bytes());
        bytes
    }

    /// Reads the header at the start of a segment.
    pub(crate) fn decode(segment: &[u8]) -> Result<Self, HeaderError> {
        let bytes: &[u8; HEADER_LEN] = segment.first_chunk().ok_or(HeaderError::Damaged)?;
        if bytes[..MAGIC.len()] != MAGIC {
            return Err(HeaderError::Damaged);
        }
        // Asked before the checksum, whose place another format may have moved.
        match u32_at(bytes, header_at::FORMAT) {
            FORMAT => {}
            other => return Err(HeaderError::Format(other)),
        }
        let checksum = crc32c::crc32c(&bytes[..header_at::CHECKSUM]);
        if checksum != u32_at(bytes, header_at::CHECKSUM) {
            return Err(HeaderError::Damaged);
        }
        let epoch_end = header_at::EPOCH + usize::from(bytes[header_at::EPOCH_LEN]);
        let epoch = bytes
            .get(header_at::EPOCH..epoch_end)
            .and_then(|text| std::str::from_utf8(text).ok())
            .and_then(|text| Epoch::new(text).ok())
            .ok_or(HeaderError::Damaged)?;
        Ok(Self {
            epoch,
            first_seq: Seq::new(u64_at(bytes, header_at::FIRST_SEQ)),
            identity: Identity {
                inode: u64_at(bytes, header_at::INODE),
                born: u64_at(bytes, header_at::BORN).cast_signed(),
            },
        })
    }

    /// What the checksums of this segment's record headers start from: the header's checksum.
    ///
    /// It differs from segment to segment, so neither a block left over from another file nor a
    /// payload that looks like a record is ever taken for a record of this one. (The checksum over
    /// the whole header, its own checksum included, would be the same for all.)
    pub(crate) fn salt(&self) -> u32 {
        u32_at(&self.encode(), header_at::CHECKSUM)
    }
}

/// Appends a record to a batch. [`seal`] fills in what is known only when the batch is written.
pub(crate) fn push_record(batch: &mut Vec<u8>, seq: Seq, payload: &[u8], payload_checksum: u32) {
    let mut header = [0; RECORD_HEADER_LEN];
    let len = (payload.len() as u32).to_le_bytes();
    put(&mut header, record_at::PAYLOAD_LEN, &len);
    put(&mut header, record_at::SEQ, &seq.get().to_le_bytes());
    let checksum = payload_checksum.to_le_bytes();
    put(&mut header, record_at::PAYLOAD_CHECKSUM, &checksum);
    batch.extend_from_slice(&header);
    batch.extend_from_slice(payload);
}

/// Binds each record of a batch to the segment and the offset at which the batch is written.
pub(crate) fn seal(batch: &mut [u8], batch_start: u64, salt: u32) {
    let batch_start = (batch_start as u32).to_le_bytes();
    let mut rest = batch;
    while let Some((header, tail)) = rest.split_at_mut_checked(RECORD_HEADER_LEN) {
        put(header, record_at::BATCH_START, &batch_start);
        let checksum = crc32c::crc32c_append(salt, &header[..record_at::HEADER_CHECKSUM]);
        put(header, record_at::HEADER_CHECKSUM, &checksum.to_le_bytes());
        let payload_len = u32_at(header, record_at::PAYLOAD_LEN) as usize;
        rest = &mut tail[payload_len..];
    }
}

/// The header of a record whose own checksum holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordHeader {
    pub(crate) seq: Seq,
    pub(crate) batch_start: u64,
    pub(crate) payload_len: usize,
    payload_checksum: u32,
}

impl RecordHeader {
    /// Reads the header at the start of `bytes`, or nothing if that is not one of this segment.
    pub(crate) fn decode(bytes: &[u8], salt: u32) -> Option<Self> {
        let bytes: &[u8; RECORD_HEADER_LEN] = bytes.first_chunk()?;
        let checksum = crc32c::crc32c_append(salt, &bytes[..record_at::HEADER_CHECKSUM]);
        (checksum == u32_at(bytes, record_at::HEADER_CHECKSUM)).then(|| Self {
            seq: Seq::new(u64_at(bytes, record_at::SEQ)),
            batch_start: u64::from(u32_at(bytes, record_at::BATCH_START)),
            payload_len: u32_at(bytes, record_at::PAYLOAD_LEN) as usize,
            payload_checksum: u32_at(bytes, record_at::PAYLOAD_CHECKSUM),
        })
    }

    /// The payload behind the header at the start of `bytes`, if it is whole.
    pub(crate) fn payload<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let payload = bytes.get(RECORD_HEADER_LEN..)?.get(..self.payload_len)?;
        (crc32c::crc32c(payload) == self.payload_checksum).then_some(payload)
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}
