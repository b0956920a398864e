//! A journal on the crashing disk, and what it replays.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journal::{Config, Journal, JournalError, Opened, TornTail, Unusable};
use storage::Storage;
use testkit::disk::{CrashingDisk, Found};
use wire::{Epoch, Seq};

/// A record as tests compare it.
pub(crate) type Pair = (u64, Vec<u8>);

pub(crate) fn epoch(text: &str) -> Epoch {
    Epoch::new(text).unwrap()
}

pub(crate) fn shared(disk: &CrashingDisk) -> Arc<dyn Storage> {
    Arc::new(disk.clone())
}

/// Segments so small that a few records fill one.
pub(crate) fn config() -> Config {
    Config {
        segment_bytes_max: 400,
        ..Config::new("journal")
    }
}

pub(crate) fn create(disk: &CrashingDisk) -> Journal {
    Journal::create(shared(disk), config(), epoch("e1"), Seq::new(1)).unwrap()
}

pub(crate) fn payload(seq: u64) -> Vec<u8> {
    format!("record {seq} ").repeat(1 + seq as usize % 5).into()
}

/// Appends one record and waits for it.
pub(crate) fn commit(journal: &Journal, seq: u64) -> Result<(), JournalError> {
    let ticket = journal.append(Seq::new(seq), &payload(seq))?;
    journal.wait(&ticket)
}

/// What opening gives, with the records it visited.
pub(crate) struct Reopened {
    pub(crate) opened: Opened,
    pub(crate) records: Vec<Pair>,
}

pub(crate) fn open(disk: &CrashingDisk) -> Reopened {
    let mut records = Vec::new();
    let opened = Journal::open(shared(disk), config(), &mut |record| {
        records.push((record.seq.get(), record.payload.to_vec()));
    });
    Reopened {
        opened: opened.unwrap(),
        records,
    }
}

impl Reopened {
    #[track_caller]
    pub(crate) fn ready(self) -> (Journal, Option<TornTail>, Vec<Pair>) {
        match self.opened {
            Opened::Ready { journal, repaired } => (journal, repaired, self.records),
            other => panic!("expected a journal, got {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn unusable(self) -> Unusable {
        match self.opened {
            Opened::Unusable { reason } => reason,
            other => panic!("expected no usable journal, got {other:?}"),
        }
    }
}

/// The records `1..=last` as [`commit`] writes them.
pub(crate) fn first(last: u64) -> Vec<Pair> {
    (1..=last).map(|seq| (seq, payload(seq))).collect()
}

/// The files of the journal, oldest first.
pub(crate) fn segments(disk: &CrashingDisk) -> Vec<(PathBuf, Vec<u8>)> {
    let in_journal = |(path, found): (PathBuf, Found)| match found {
        Found::File(bytes) if path.parent() == Some(Path::new("journal")) => Some((path, bytes)),
        _ => None,
    };
    disk.contents().into_iter().filter_map(in_journal).collect()
}
