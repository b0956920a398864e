//! What the checkpoint and the journal say that the tree should hold.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use wire::{ContentHash, DocPath, Seq};

use crate::Change;
use crate::checkpoint::Checkpoint;
use crate::index::{Description, Document, Standing, VersionEntry};
use crate::record::{Record, RecordError, WriteKind, WriteRecord};

/// A document as it was last committed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) archived: bool,
    /// Its link had been removed by hand.
    pub(crate) unlinked: bool,
    /// The versions that should be there.
    pub(crate) versions: BTreeMap<u64, KnownVersion>,
    /// The current version's, if the checkpoint has that version.
    pub(crate) description: Option<(u64, Description)>,
    /// Versions below this one were to be removed; finding one is no surprise.
    pub(crate) kept_from: u64,
    /// Versions that were taken back, with the hash of the file that may still be there.
    pub(crate) voided: HashMap<u64, ContentHash>,
    /// The writes that may not have been finished.
    pub(crate) in_flight: Vec<InFlight>,
}

/// A version that should be there.
#[derive(Clone, Debug)]
pub(crate) struct KnownVersion {
    /// The hash of its whole file: what proves it.
    pub(crate) file_hash: ContentHash,
    /// What the checkpoint says of its file; valid while the stamp is the same.
    pub(crate) entry: Option<VersionEntry>,
}

/// A committed write of which nobody may have been told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) seq: Seq,
    pub(crate) kind: WriteKind,
    pub(crate) version: u64,
}

impl Known {
    /// True if a write of this kind may not have been finished.
    pub(crate) fn has_in_flight(&self, kind: WriteKind) -> bool {
        self.in_flight.iter().any(|write| write.kind == kind)
    }

    fn from_checkpoint(document: &Document) -> Self {
        let versions = document.versions().map(|entry| {
            let version = KnownVersion {
                file_hash: entry.file_hash,
                entry: Some(entry.clone()),
            };
            (entry.number, version)
        });
        let current = document.current().number;
        Self {
            archived: document.is_archived(),
            unlinked: document.standing() == Standing::Unlinked,
            versions: versions.collect(),
            description: Some((current, document.description().clone())),
            ..Self::default()
        }
    }

    fn apply(&mut self, write: &WriteRecord, seq: Seq, is_told: bool) {
        let number = write.change.version;
        self.archived = write.archived;
        if write.kind != WriteKind::State {
            self.unlinked = false;
            let version = KnownVersion {
                file_hash: write.file_hash,
                entry: None,
            };
            self.versions.insert(number, version);
        }
        if !is_told {
            self.in_flight.push(InFlight {
                seq,
                kind: write.kind,
                version: number,
            });
        }
    }
}

/// The records of a journal, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    records: VecDeque<(Seq, WriteRecord)>,
    voided: HashSet<Seq>,
    /// Everything up to here was told or taken back.
    told: Seq,
    fault: Option<(Seq, RecordError)>,
}

impl Replay {
    /// Takes the next record.
    pub(crate) fn take(&mut self, seq: Seq, payload: &[u8]) {
        match Record::decode(payload) {
            Ok(Record::Void(void)) => {
                self.voided.insert(void);
            }
            Ok(Record::Write(write)) => {
                self.told = self.told.max(write.told);
                self.records.push_back((seq, write));
            }
            Err(error) => {
                self.fault.get_or_insert((seq, error));
            }
        }
    }

    /// The first record that has no meaning.
    pub(crate) fn fault(&self) -> Option<(Seq, RecordError)> {
        self.fault
    }

    /// What the tree should hold: the checkpoint, and the records after it.
    pub(crate) fn known(&self, checkpoint: &Checkpoint) -> HashMap<DocPath, Known> {
        let told = self.told.max(checkpoint.seq);
        let mut known: HashMap<DocPath, Known> = checkpoint
            .documents
            .iter()
            .map(|document| (document.path().clone(), Known::from_checkpoint(document)))
            .collect();
        for (seq, write) in &self.records {
            let change = &write.change;
            if self.voided.contains(seq) {
                if write.kind.makes_version() {
                    let entry = known.entry(change.path.clone()).or_default();
                    entry.voided.insert(change.version, write.file_hash);
                }
                continue;
            }
            if *seq > checkpoint.seq {
                let entry = known.entry(change.path.clone()).or_default();
                entry.apply(write, *seq, *seq <= told);
            }
            if let Some(known) = known.get_mut(&change.path) {
                known.kept_from = known.kept_from.max(write.kept_from);
            }
        }
        for known in known.values_mut() {
            known.versions = known.versions.split_off(&known.kept_from);
        }
        known
    }

    /// The documents that were written after the checkpoint; their directories may owe a sync.
    pub(crate) fn touched(&self, checkpoint: &Checkpoint) -> HashSet<DocPath> {
        self.records
            .iter()
            .filter(|(seq, _)| *seq > checkpoint.seq)
            .map(|(_, write)| write.change.path.clone())
            .collect()
    }

    /// The changes that happened, oldest first, without those in `taken_back`.
    pub(crate) fn changes(
        self,
        taken_back: &HashSet<Seq>,
    ) -> impl DoubleEndedIterator<Item = (Seq, Change)> {
        let voided = self.voided;
        self.records
            .into_iter()
            .filter(move |(seq, _)| !voided.contains(seq) && !taken_back.contains(seq))
            .map(|(seq, write)| (seq, write.change))
    }
}
