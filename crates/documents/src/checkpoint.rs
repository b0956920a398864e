//! What is known of the tree, noted on disk: so that an opening need not read what didn't change.
//!
//! ```text
//! offset  bytes  field (little-endian)
//! 0       8      magic "TIDEINDX"
//! 8       4      format, 1
//! 12      1+n    epoch: length, text
//! …       8      seq: every change up to here is in it, none after
//! …       8      number of documents, then for each:
//!                  2+n    path
//!                  1      standing: 0 live, 1 archived, 2 unlinked
//!                  2+n    title
//!                  2      number of metadata entries, each 2+n key, 2+n value
//!                  4      number of versions, ascending, each
//!                    8      number
//!                    32     content hash
//!                    32     file hash
//!                    1      has a previous hash: 0 or 1
//!                    32     previous hash (zeros if it has none)
//!                    32     stamp: length, modified, inode, changed
//! end-4   4      CRC-32C of all before it
//! ```
//!
//! It is written beside its place and moved there, so it is whole or absent. It is an
//! accelerator and a witness, never the truth: one that can't be read, or that belongs to another
//! epoch, is as good as none, and then a new epoch begins.

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use storage::{Mode, Stamp, Storage, UnixNanos};
use wire::{ContentHash, DocPath, Epoch, Seq};

use crate::index::{Description, Document, Index, Standing, VersionEntry};
use crate::layout::{CHECKPOINT, OWN_DIR};
use crate::store::{Config, Parts};
use crate::{PublisherMetadata, version_file};

const MAGIC: &[u8; 8] = b"TIDEINDX";
const FORMAT: u32 = 1;
const CHECKSUM_LEN: usize = 4;
/// The coarsest clock of a file system's times: one hundredth of a second, doubled for safety.
const TICK_NANOS: i64 = 20_000_000;
/// The stamp of no file: none has the number 0.
const NO_STAMP: Stamp = Stamp {
    len: 0,
    modified: UnixNanos::new(0),
    inode: 0,
    changed: UnixNanos::new(0),
};
/// Some ten million documents; a file that is longer isn't ours.
const FILE_LEN_MAX: u64 = 4 << 30;

/// A checkpoint that was read.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    /// The epoch it belongs to.
    pub(crate) epoch: Epoch,
    /// Every change up to here is in it.
    pub(crate) seq: Seq,
    /// The documents.
    pub(crate) documents: Vec<Document>,
}

/// When the next checkpoint is due.
#[derive(Debug)]
pub(crate) struct Schedule {
    every: u64,
    last: Seq,
}

impl Schedule {
    /// Counts from `last`.
    pub(crate) fn new(config: &Config, last: Seq) -> Self {
        Self {
            every: config.checkpoint_every.max(1),
            last,
        }
    }

    fn is_due(&self, told: Seq) -> bool {
        told.get().saturating_sub(self.last.get()) >= self.every
    }
}

impl Parts {
    /// Writes a checkpoint if enough was told since the last one. A failure costs the journal some
    /// space and the next opening some time, so it is logged and tried again later.
    pub(crate) fn checkpoint_if_due(&self) {
        let told = self.committer.told();
        {
            // Whoever holds it writes one.
            let Ok(mut schedule) = self.checkpoints.try_lock() else {
                return;
            };
            if !schedule.is_due(told) {
                return;
            }
            schedule.last = told;
        }
        if let Err(error) = self.write_checkpoint() {
            tracing::warn!(%error, "the checkpoint was not written");
        }
    }

    /// The instant, by the file system's own clock, before which a stamp can be trusted.
    fn settled_before(&self) -> io::Result<UnixNanos> {
        let (_temp, file) = self.temps.write(b"", Mode::Private)?;
        Ok(UnixNanos::new(file.stat()?.changed.get() - TICK_NANOS))
    }

    /// Writes a checkpoint and lets the journal go of what neither it nor the ring needs.
    pub(crate) fn write_checkpoint(&self) -> io::Result<()> {
        let _one = self
            .checkpoint_writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let epoch = self.committer.journal().epoch();
        let settled = self.settled_before()?;
        let (seq, bytes) = self
            .committer
            .at_rest(|seq, index| (seq, encode(epoch, seq, index, settled)));
        let (temp, _) = self.temps.write(&bytes, Mode::Private)?;
        temp.replace(Path::new(CHECKPOINT))?;
        self.storage.sync_dir(Path::new(OWN_DIR))?;
        let ring = self.config.ring_len as u64;
        let needed = Seq::new((seq.get() + 1).saturating_sub(ring));
        if let Err(error) = self.committer.journal().retain_from(needed) {
            tracing::warn!(%error, "the journal keeps more than it needs");
        }
        Ok(())
    }
}

/// Reads the checkpoint; `None` if there is none that can be read.
pub(crate) fn read(storage: &dyn Storage) -> io::Result<Option<Checkpoint>> {
    let file = match storage.open(Path::new(CHECKPOINT)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let bytes = file.read_all(FILE_LEN_MAX)?;
    let checkpoint = decode(&bytes);
    if checkpoint.is_none() {
        tracing::warn!("the checkpoint is damaged and not used");
    }
    Ok(checkpoint)
}

/// Stamps from `settled` on are left out: a file that changes again within the same tick of the
/// clock would bear the same stamp, so such files are read anew by the next opening.
fn encode(epoch: &Epoch, seq: Seq, index: &Index, settled: UnixNanos) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.0.extend_from_slice(MAGIC);
    out.u32(FORMAT);
    out.0.push(epoch.as_str().len() as u8);
    out.0.extend_from_slice(epoch.as_str().as_bytes());
    out.u64(seq.get());
    out.u64(index.len() as u64);
    for document in index.documents() {
        out.document(document, settled);
    }
    let checksum = crc32c::crc32c(&out.0);
    out.u32(checksum);
    out.0
}

fn decode(bytes: &[u8]) -> Option<Checkpoint> {
    let (body, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_LEN)?)?;
    if crc32c::crc32c(body) != u32::from_le_bytes(checksum.try_into().ok()?) {
        return None;
    }
    let mut input = Reader(body);
    if input.take(MAGIC.len())? != MAGIC || input.u32()? != FORMAT {
        return None;
    }
    let epoch_len = usize::from(input.u8()?);
    let epoch = Epoch::new(std::str::from_utf8(input.take(epoch_len)?).ok()?).ok()?;
    let seq = Seq::new(input.u64()?);
    let count = input.u64()?;
    let mut documents = Vec::new();
    for _ in 0..count {
        documents.push(input.document()?);
    }
    Some(Checkpoint {
        epoch,
        seq,
        documents,
    })
}

struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Paths, titles and publisher metadata are all bounded far below 64 KiB.
    fn text(&mut self, text: &str) {
        let len = u16::try_from(text.len()).expect("texts in the index are short");
        self.0.extend_from_slice(&len.to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn document(&mut self, document: &Document, settled: UnixNanos) {
        self.text(document.path().as_str());
        self.0.push(match document.standing() {
            Standing::Live => 0,
            Standing::Archived => 1,
            Standing::Unlinked => 2,
        });
        let description = document.description();
        self.text(description.title());
        let metadata = description.metadata();
        self.0
            .extend_from_slice(&(metadata.len() as u16).to_le_bytes());
        for (key, value) in metadata.iter() {
            self.text(key);
            self.text(value);
        }
        self.u32(document.versions().len() as u32);
        for version in document.versions() {
            self.version(version, settled);
        }
    }

    fn version(&mut self, version: &VersionEntry, settled: UnixNanos) {
        self.u64(version.number);
        self.0.extend_from_slice(version.content_hash.as_bytes());
        self.0.extend_from_slice(version.file_hash.as_bytes());
        self.0.push(u8::from(version.previous_hash.is_some()));
        let none = ContentHash::from_bytes([0; 32]);
        self.0
            .extend_from_slice(version.previous_hash.unwrap_or(none).as_bytes());
        let stamp = match version.stamp.changed < settled {
            true => version.stamp,
            false => NO_STAMP,
        };
        self.u64(stamp.len);
        self.i64(stamp.modified.get());
        self.u64(stamp.inode);
        self.i64(stamp.changed.get());
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const LEN: usize>(&mut self) -> Option<[u8; LEN]> {
        self.take(LEN)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn nanos(&mut self) -> Option<UnixNanos> {
        self.array().map(i64::from_le_bytes).map(UnixNanos::new)
    }

    fn hash(&mut self) -> Option<ContentHash> {
        self.array().map(ContentHash::from_bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        let len = usize::from(self.u16()?);
        std::str::from_utf8(self.take(len)?).ok()
    }

    fn document(&mut self) -> Option<Document> {
        let path = DocPath::parse(self.text()?).ok()?;
        let standing = match self.u8()? {
            0 => Standing::Live,
            1 => Standing::Archived,
            2 => Standing::Unlinked,
            _ => return None,
        };
        let title = self.text()?;
        let mut metadata = PublisherMetadata::new();
        for _ in 0..self.u16()? {
            metadata.insert(self.text()?.to_owned(), self.text()?.to_owned());
        }
        let description = Description::with_title(Arc::new(metadata), title);
        let mut versions = Vec::new();
        for _ in 0..self.u32()? {
            versions.push(self.version()?);
        }
        Document::new(path, standing, description, versions)
    }

    fn version(&mut self) -> Option<VersionEntry> {
        let number = self.u64()?;
        let content_hash = self.hash()?;
        let file_hash = self.hash()?;
        let has_previous = self.u8()? == 1;
        let previous_hash = Some(self.hash()?).filter(|_| has_previous);
        let stamp = Stamp {
            len: self.u64()?,
            modified: self.nanos()?,
            inode: self.u64()?,
            changed: self.nanos()?,
        };
        Some(VersionEntry {
            number,
            content_hash,
            file_hash,
            previous_hash,
            stamp,
            modified: version_file::timestamp(stamp.modified),
        })
    }
}
