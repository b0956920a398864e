//! How a journal is read again.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use storage::Storage;
use thiserror::Error;
use wire::{Epoch, Seq};

use crate::format::{BYTES_CEILING, HEADER_LEN, Header, HeaderError, Identity};
use crate::scan::{self, Scan, Tail};
use crate::segment::{self, Segment};
use crate::{Config, Journal, OpenError};

/// One record, as it is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number.
    pub seq: Seq,
    /// Its bytes, as they were appended.
    pub payload: &'a [u8],
}

/// What opening came to.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One is made at a start and taken apart at once.
pub enum Opened {
    /// There is no journal, or one that a crash kept from ever being used.
    Absent,
    /// The journal goes on in its epoch.
    Ready {
        /// The journal, at its end.
        journal: Journal,
        /// What was cut off its end, if anything.
        repaired: Option<TornTail>,
    },
    /// The journal can't go on. The owner drops what it was shown and begins another epoch with
    /// [`Journal::create`], which sets these segments aside.
    Unusable {
        /// Why.
        reason: Unusable,
    },
}

/// The end of a write that a crash cut short; it is gone from the file when this is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The last record that is kept.
    pub last: Seq,
    /// How many bytes were cut off.
    pub bytes: u64,
}

/// Why a journal can't go on. The name of the segment is without its directory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unusable {
    /// Bytes that were once whole are not any more.
    #[error("segment {segment} is damaged at byte {offset}")]
    Damaged {
        /// The segment's name.
        segment: String,
        /// Where the damage begins.
        offset: u64,
    },
    /// The segment was written by a version that knows another format.
    #[error("segment {segment} has the unknown format {format}")]
    Format {
        /// The segment's name.
        segment: String,
        /// The number of the format.
        format: u32,
    },
    /// The segment is a copy: it is not the file that its header was written to.
    #[error("segment {segment} was copied from another place")]
    Identity {
        /// The segment's name.
        segment: String,
    },
    /// The segment does not follow the one before it: another epoch, or records between are gone.
    #[error("segment {segment} does not follow the one before it")]
    Sequence {
        /// The segment's name.
        segment: String,
    },
}

/// Where reading has come to.
struct Replay {
    epoch: Epoch,
    last: Seq,
}

/// Why reading stopped early.
enum Stop {
    Failed(OpenError),
    Unusable(Unusable),
}

impl From<OpenError> for Stop {
    fn from(error: OpenError) -> Self {
        Self::Failed(error)
    }
}

/// Reads every segment, oldest first, and repairs the end of the last.
pub(crate) fn open(
    storage: Arc<dyn Storage>,
    config: Config,
    visit: &mut dyn FnMut(Record<'_>),
) -> Result<Opened, OpenError> {
    let dir = &config.dir;
    let (names, unborn) = segments(&*storage, dir)?;
    for name in unborn {
        let path = dir.join(name);
        segment::remove_if_there(&*storage, &path).map_err(OpenError::at(&path))?;
    }
    let Some((&newest, older)) = names.split_last() else {
        return Ok(Opened::Absent);
    };
    let durable = replay(&*storage, dir, older, newest, visit).and_then(|(read, _)| {
        let (segment, repaired) = make_durable(&*storage, dir, &read)?;
        Ok((read.position(), segment, repaired))
    });
    match durable {
        Ok((at, segment, repaired)) => {
            let journal = Journal::start(storage, config, at.epoch, at.last, segment, &names);
            Ok(Opened::Ready { journal, repaired })
        }
        Err(Stop::Unusable(reason)) => Ok(Opened::Unusable { reason }),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// What a journal on disk comes to, without a change to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspected {
    /// There is no journal.
    Absent,
    /// It can go on in its epoch.
    Sound {
        /// The epoch of all records.
        epoch: Epoch,
        /// No record below this is there any more.
        oldest: Seq,
        /// The last whole record.
        last: Seq,
        /// All segments together, in bytes.
        bytes: u64,
        /// Bytes at the end that the next opening cuts off. While the journal is in use they are
        /// a batch that is being written.
        torn_bytes: u64,
    },
    /// The next opening begins another epoch.
    Unusable(Unusable),
}

/// Looks at the journal in `dir` and leaves it as it is. It may be in use meanwhile; then a
/// segment that was freed under the look is an error of the kind `NotFound`.
pub fn inspect(storage: &dyn Storage, dir: &Path) -> Result<Inspected, OpenError> {
    let (names, _) = segments(storage, dir)?;
    let Some((&newest, older)) = names.split_last() else {
        return Ok(Inspected::Absent);
    };
    match replay(storage, dir, older, newest, &mut |_| {}) {
        Ok((read, older_bytes)) => Ok(Inspected::Sound {
            epoch: read.header.epoch,
            oldest: names[0],
            last: read.scan.last,
            bytes: older_bytes + read.len,
            torn_bytes: read.len - read.scan.end,
        }),
        Err(Stop::Unusable(reason)) => Ok(Inspected::Unusable(reason)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// The first sequence numbers of all segments in order, and the names of segments that never came
/// to be. Other names are not ours. Without a directory there are none.
fn segments(storage: &dyn Storage, dir: &Path) -> Result<(Vec<Seq>, Vec<OsString>), OpenError> {
    let mut found = Vec::new();
    let mut unborn = Vec::new();
    let listed = storage.read_dir(dir, &mut |entry| {
        if let Some(first_seq) = segment::first_seq(&entry.name) {
            found.push(first_seq);
        } else if segment::is_unborn(&entry.name) && entry.kind == storage::Kind::File {
            unborn.push(entry.name);
        }
    });
    match listed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => other.map_err(OpenError::at(dir))?,
    }
    found.sort_unstable();
    Ok((found, unborn))
}

/// Reads all segments; returns the newest, and the bytes of the older ones.
fn replay(
    storage: &dyn Storage,
    dir: &Path,
    older: &[Seq],
    newest: Seq,
    visit: &mut dyn FnMut(Record<'_>),
) -> Result<(Read, u64), Stop> {
    let mut at = None;
    let mut older_bytes = 0;
    for &first_seq in older {
        let read = read(storage, dir, first_seq, at.as_ref(), visit)?;
        if read.scan.tail != Tail::None {
            return Err(damaged(first_seq, read.scan.end));
        }
        older_bytes += read.len;
        at = Some(read.position());
    }
    let read = read(storage, dir, newest, at.as_ref(), visit)?;
    if read.scan.tail == Tail::Damaged {
        return Err(damaged(newest, read.scan.end));
    }
    Ok((read, older_bytes))
}

/// One segment whose header holds.
struct Read {
    header: Header,
    len: u64,
    scan: Scan,
    /// The bytes of the batch that the last whole record belongs to.
    last_batch: Vec<u8>,
}

impl Read {
    fn position(&self) -> Replay {
        Replay {
            epoch: self.header.epoch.clone(),
            last: self.scan.last,
        }
    }
}

fn read(
    storage: &dyn Storage,
    dir: &Path,
    first_seq: Seq,
    before: Option<&Replay>,
    visit: &mut dyn FnMut(Record<'_>),
) -> Result<Read, Stop> {
    let path = segment::path(dir, first_seq);
    let (bytes, identity) = load(storage, &path).map_err(OpenError::at(&path))?;
    let header = Header::decode(&bytes).map_err(|error| match error {
        HeaderError::Damaged => damaged(first_seq, 0),
        HeaderError::Format(format) => Stop::Unusable(Unusable::Format {
            segment: name(first_seq),
            format,
        }),
    })?;
    if header.identity != identity {
        return Err(Stop::Unusable(Unusable::Identity {
            segment: name(first_seq),
        }));
    }
    let follows = before.is_none_or(|before| {
        header.epoch == before.epoch && header.first_seq == before.last.next()
    });
    if !follows || header.first_seq != first_seq {
        return Err(Stop::Unusable(Unusable::Sequence {
            segment: name(first_seq),
        }));
    }
    let last = Seq::new(first_seq.get().saturating_sub(1));
    let scan = scan::scan(&bytes, header.salt(), last, visit);
    Ok(Read {
        header,
        len: bytes.len() as u64,
        scan,
        last_batch: bytes[scan.last_batch as usize..scan.end as usize].to_vec(),
    })
}

fn load(storage: &dyn Storage, path: &Path) -> io::Result<(Vec<u8>, Identity)> {
    const FILE_BYTES_MAX: u64 = (BYTES_CEILING + HEADER_LEN) as u64;

    let file = storage.open(path)?;
    let identity = Identity::of(&file.stat()?);
    Ok((file.read_all(FILE_BYTES_MAX)?, identity))
}

/// Opens the last segment for writing and makes all that was replayed durable.
///
/// A torn tail is cut off before anything is appended: the remains of an old batch behind a new one
/// would look like damage. The last batch is written once more, with the same bytes: what was read
/// may come from memory after a kill, or after a sync that failed and made the system forget that
/// the bytes are not on the disk, and only bytes written again are sure to be synced.
fn make_durable(
    storage: &dyn Storage,
    dir: &Path,
    read: &Read,
) -> Result<(Segment, Option<TornTail>), OpenError> {
    let path = segment::path(dir, read.header.first_seq);
    let Scan { end, last, .. } = read.scan;
    let repaired = (read.scan.tail == Tail::Torn).then(|| TornTail {
        last,
        bytes: read.len - end,
    });
    let write = || {
        let file = storage.open_write(&path)?;
        if repaired.is_some() {
            file.set_len(end)?;
        }
        file.write_at(read.scan.last_batch, &read.last_batch)?;
        file.sync_all()?;
        storage.sync_dir(dir)?;
        Ok(file)
    };
    let segment = Segment {
        file: write().map_err(OpenError::at(&path))?,
        salt: read.header.salt(),
        len: end,
    };
    Ok((segment, repaired))
}

fn damaged(first_seq: Seq, offset: u64) -> Stop {
    Stop::Unusable(Unusable::Damaged {
        segment: name(first_seq),
        offset,
    })
}

fn name(first_seq: Seq) -> String {
    segment::path(Path::new(""), first_seq)
        .display()
        .to_string()
}
