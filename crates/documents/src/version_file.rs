//! Version files: how one is put together, and what is read out of one.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use storage::{File, Stat, Storage, UnixNanos};
use wire::{ContentHash, limits};

use crate::PublisherMetadata;
use crate::header::{HEADER_LEN_MAX, Header};
use crate::index::VersionEntry;

/// The longest version file: a whole header before a whole body.
const FILE_LEN_MAX: u64 = (HEADER_LEN_MAX + limits::BODY_LEN_MAX) as u64;

/// A version as its file holds it.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// What the index keeps of it.
    pub(crate) entry: VersionEntry,
    /// The number that the file itself says.
    pub(crate) number: Option<u64>,
    /// The archived flag of the header.
    pub(crate) archived: bool,
    /// What the publisher said of it.
    pub(crate) metadata: Arc<PublisherMetadata>,
    /// The body, byte for byte.
    pub(crate) body: Bytes,
}

/// Reads the file of version `number` and computes its hashes.
///
/// An error of kind `InvalidData` means that the file is no version file.
pub(crate) fn read(storage: &dyn Storage, path: &Path, number: u64) -> io::Result<Stored> {
    let file = storage.open(path)?;
    // The stamp is taken before the bytes: a file that changes meanwhile is noticed by the next
    // reader, because its stamp will differ.
    let stat = file.stat()?;
    let bytes = Bytes::from(file.read_all(FILE_LEN_MAX)?);
    let (header, offset) = Header::decode(&bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let body = bytes.slice(offset..);
    Ok(Stored {
        entry: VersionEntry {
            number,
            content_hash: ContentHash::of(&body),
            file_hash: ContentHash::of(&bytes),
            previous_hash: header.previous_hash,
            stamp: stat.stamp(),
            modified: timestamp(stat.modified),
        },
        number: header.version,
        archived: header.archived,
        metadata: Arc::new(header.metadata),
        body,
    })
}

/// The hash of a whole file, whatever it holds.
pub(crate) fn hash(storage: &dyn Storage, path: &Path) -> io::Result<ContentHash> {
    let bytes = storage.open(path)?.read_all(FILE_LEN_MAX)?;
    Ok(ContentHash::of(&bytes))
}

/// A version that is about to be written.
#[derive(Debug)]
pub(crate) struct Composed {
    /// The whole file.
    pub(crate) bytes: Vec<u8>,
    /// The hash of the body.
    pub(crate) content_hash: ContentHash,
    /// The hash of the whole file.
    pub(crate) file_hash: ContentHash,
    /// The hash of the file of the version before.
    previous_hash: Option<ContentHash>,
    number: u64,
}

impl Composed {
    /// Puts a version file together.
    pub(crate) fn new(
        number: u64,
        previous_hash: Option<ContentHash>,
        metadata: &PublisherMetadata,
        body: &[u8],
    ) -> Self {
        let header = Header {
            version: Some(number),
            archived: false,
            previous_hash,
            metadata: metadata.clone(),
        };
        let mut bytes = header.encode().into_bytes();
        bytes.extend_from_slice(body);
        Self {
            content_hash: ContentHash::of(body),
            file_hash: ContentHash::of(&bytes),
            bytes,
            previous_hash,
            number,
        }
    }

    /// What the index keeps of it, once `file` lies at its place.
    pub(crate) fn entry(&self, file: &dyn File) -> io::Result<VersionEntry> {
        let stat: Stat = file.stat()?;
        Ok(VersionEntry {
            number: self.number,
            content_hash: self.content_hash,
            file_hash: self.file_hash,
            previous_hash: self.previous_hash,
            stamp: stat.stamp(),
            modified: timestamp(stat.modified),
        })
    }
}

/// The instant of the file system as the one that is shown; 1970 for what can't be.
pub(crate) fn timestamp(nanos: UnixNanos) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(nanos.get())).unwrap_or(Timestamp::UNIX_EPOCH)
}
