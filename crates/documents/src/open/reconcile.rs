//! One document: what should be there against what is there.
//!
//! The outcome is the document as it is served, what has to be mended on disk, what is taken back,
//! and whether the difference is one that watchers can't be told of change by change. Nothing is
//! mended here, so that an opening which is refused has touched nothing.
//!
//! **What proves a version.** Its file hash is the one that the journal or the checkpoint recorded,
//! or the version after it repeats that hash in its header. A file beyond the current version that
//! nothing proves is set aside: the original writes in place, so it may be half a file (D53).
//!
//! **Which version is current.** The highest that the link leads to, that was committed, or that
//! follows one of these and is proved (D69). A link that leads elsewhere is mended. A link that is
//! gone although the document was told of hides the document.

use std::collections::BTreeMap;
use std::io;

use storage::Storage;
use wire::{ContentHash, DocPath, Seq};

use super::known::{InFlight, Known};
use super::scan::{Found, FoundLink};
use crate::index::{Description, Document, Standing, VersionEntry};
use crate::layout::{self, Place};
use crate::record::WriteKind;
use crate::version_file::{self, Stored};

/// What becomes of a document.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) document: Option<Document>,
    pub(crate) fixes: Vec<Fix>,
    /// Writes whose version never landed.
    pub(crate) taken_back: Vec<Seq>,
    /// What was changed behind the journal's back, in words.
    pub(crate) difference: Option<String>,
}

/// What has to be mended on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fix {
    AdoptFlat(u64),
    MoveLink(u64),
    RemoveLink,
    RemoveVersion(u64),
    SetAside(u64),
    WriteSidecar(bool),
}

/// A version file as it was found.
#[derive(Debug)]
enum Loaded {
    /// Not read: the checkpoint knows this very file.
    Trusted(VersionEntry),
    Whole(Box<Stored>),
    /// It is no version file.
    Broken(VersionEntry),
    /// The disk refuses it.
    Unreadable(VersionEntry),
}

impl Loaded {
    fn entry(&self) -> &VersionEntry {
        match self {
            Self::Whole(stored) => &stored.entry,
            Self::Trusted(entry) | Self::Broken(entry) | Self::Unreadable(entry) => entry,
        }
    }

    fn is_whole(&self) -> bool {
        !matches!(self, Self::Broken(_))
    }

    fn is_unreadable(&self) -> bool {
        matches!(self, Self::Unreadable(_))
    }
}

/// One document's case.
struct Case<'a> {
    storage: &'a dyn Storage,
    path: &'a DocPath,
    found: &'a Found,
    /// `None` where nothing was recorded of it.
    known: Option<&'a Known>,
    /// There are no records at all: the tree is met for the first time, or an epoch is lost.
    is_first: bool,
    loaded: BTreeMap<u64, Loaded>,
    outcome: Outcome,
}

/// Decides over a document that was found.
pub(crate) fn found(
    storage: &dyn Storage,
    path: &DocPath,
    found: &Found,
    known: Option<&Known>,
    is_first: bool,
) -> io::Result<Outcome> {
    let mut case = Case {
        storage,
        path,
        found,
        known,
        is_first,
        loaded: BTreeMap::new(),
        outcome: Outcome::default(),
    };
    case.load()?;
    case.drop_leftovers();
    case.decide()?;
    Ok(case.outcome)
}

/// Decides over a document of which nothing is left on disk.
pub(crate) fn missing(known: &Known) -> Outcome {
    let mut outcome = Outcome::default();
    if known.versions.is_empty() {
        return outcome;
    }
    // Only a first version that never landed leaves nothing.
    let versions: Vec<&InFlight> = versions_in_flight(known).collect();
    if versions.len() == known.versions.len() {
        outcome.taken_back = known.in_flight.iter().map(|write| write.seq).collect();
    } else {
        outcome.difference = Some("was removed".into());
    }
    outcome
}

fn versions_in_flight(known: &Known) -> impl Iterator<Item = &InFlight> {
    known
        .in_flight
        .iter()
        .filter(|write| write.kind.makes_version())
}

impl Case<'_> {
    fn differs(&mut self, what: impl Into<String>) {
        self.outcome.difference.get_or_insert_with(|| what.into());
    }

    fn load(&mut self) -> io::Result<()> {
        for &number in &self.found.versions {
            let loaded = self.load_version(number)?;
            self.loaded.insert(number, loaded);
        }
        Ok(())
    }

    fn load_version(&self, number: u64) -> io::Result<Loaded> {
        let file = self.found.place.version(number);
        let stat = self.storage.stat(&file)?;
        let trusted = self
            .known
            .and_then(|known| known.versions.get(&number)?.entry.as_ref())
            .filter(|entry| entry.stamp == stat.stamp());
        if let Some(entry) = trusted {
            return Ok(Loaded::Trusted(entry.clone()));
        }
        let placeholder = |file_hash| VersionEntry {
            number,
            content_hash: ContentHash::from_bytes([0; 32]),
            file_hash,
            previous_hash: None,
            stamp: stat.stamp(),
            modified: version_file::timestamp(stat.modified),
        };
        Ok(match version_file::read(self.storage, &file, number) {
            Ok(stored) => Loaded::Whole(Box::new(stored)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Loaded::Broken(placeholder(ContentHash::from_bytes([0; 32])))
            }
            Err(error) => {
                tracing::error!(path = %self.path, number, %error, "a version can't be read");
                let recorded = self.known.and_then(|known| known.versions.get(&number));
                Loaded::Unreadable(recorded.map_or_else(
                    || placeholder(ContentHash::from_bytes([0; 32])),
                    |recorded| {
                        let entry = recorded.entry.clone();
                        entry.unwrap_or_else(|| placeholder(recorded.file_hash))
                    },
                ))
            }
        })
    }

    /// Versions that were taken back or that retention was removing are on their way out.
    fn drop_leftovers(&mut self) {
        let Some(known) = self.known else { return };
        let lowest = known.versions.keys().next().copied();
        let is_leftover = |number: u64, loaded: &Loaded| {
            let was_recorded = known.versions.contains_key(&number);
            let is_voided = known.voided.get(&number) == Some(&loaded.entry().file_hash);
            let is_retired = number < known.kept_from && lowest.is_some_and(|low| number < low);
            !was_recorded && (is_voided || is_retired)
        };
        let leftovers: Vec<u64> = self
            .loaded
            .iter()
            .filter(|(number, loaded)| is_leftover(**number, loaded))
            .map(|(number, _)| *number)
            .collect();
        for number in leftovers {
            self.loaded.remove(&number);
            self.outcome.fixes.push(Fix::RemoveVersion(number));
        }
    }

    fn decide(&mut self) -> io::Result<()> {
        self.take_back();
        let Some(current) = self.current() else {
            self.set_aside_beyond(0);
            self.drop_voided_link();
            if self.known.is_some_and(|known| !known.versions.is_empty())
                && self.outcome.taken_back.is_empty()
            {
                self.differs("has no whole version any more");
            }
            return Ok(());
        };
        self.set_aside_beyond(current);
        self.compare_versions(current);
        let standing = self.standing(current)?;
        self.build(current, standing)
    }

    /// The link of a first version that was taken back leads to nothing.
    fn drop_voided_link(&mut self) {
        if let (Some(known), FoundLink::Version(number)) = (self.known, &self.found.link)
            && known.voided.contains_key(number)
        {
            self.outcome.fixes.push(Fix::RemoveLink);
        }
    }

    /// A committed version that isn't there, while the link leads to the one before or to nothing:
    /// a write that failed and could not say so.
    fn take_back(&mut self) {
        let Some(known) = self.known else { return };
        for write in versions_in_flight(known) {
            let is_there = self.proved_by_record(write.version);
            let is_linked = self.found.link == FoundLink::Version(write.version);
            if !is_there && !is_linked {
                self.outcome.taken_back.push(write.seq);
            }
        }
    }

    /// True if the version is there and its bytes are the recorded ones.
    fn proved_by_record(&self, number: u64) -> bool {
        let recorded = self.known.and_then(|known| known.versions.get(&number));
        let loaded = self.loaded.get(&number);
        match (recorded, loaded) {
            (Some(recorded), Some(loaded)) => {
                loaded.is_unreadable() || loaded.entry().file_hash == recorded.file_hash
            }
            (None, _) | (_, None) => false,
        }
    }

    /// True if the version after it repeats its hash.
    fn proved_by_chain(&self, number: u64) -> bool {
        let next = self.loaded.get(&(number + 1));
        let repeated = next.and_then(|next| next.entry().previous_hash);
        repeated.is_some() && repeated == self.loaded.get(&number).map(|it| it.entry().file_hash)
    }

    fn current(&self) -> Option<u64> {
        let whole = |number: &u64| self.loaded.get(number).is_some_and(Loaded::is_whole);
        let linked = match self.found.link {
            FoundLink::Version(number) => Some(number).filter(whole),
            FoundLink::Flat | FoundLink::Missing | FoundLink::Other => None,
        };
        let recorded = self
            .known
            .into_iter()
            .flat_map(|known| known.versions.keys().rev().copied())
            .find(|number| whole(number) && self.proved_by_record(*number));
        let is_loose = linked.is_none() && recorded.is_none();
        let is_dangling = matches!(self.found.link, FoundLink::Version(_));
        if is_loose && (is_dangling || self.is_first) {
            // Nothing says which one: the highest version that looks whole.
            return self
                .loaded
                .keys()
                .rev()
                .copied()
                .find(|number| whole(number) && self.says_its_number(*number));
        }
        let mut current = linked.max(recorded)?;
        while whole(&(current + 1))
            && (self.proved_by_record(current + 1) || self.proved_by_chain(current + 1))
        {
            current += 1;
        }
        Some(current)
    }

    fn says_its_number(&self, number: u64) -> bool {
        match self.loaded.get(&number) {
            Some(Loaded::Whole(stored)) => stored.number == Some(number),
            Some(Loaded::Trusted(_) | Loaded::Unreadable(_)) => true,
            Some(Loaded::Broken(_)) | None => false,
        }
    }

    fn set_aside_beyond(&mut self, current: u64) {
        let beyond = self.loaded.split_off(&(current + 1));
        for (number, _) in beyond {
            self.outcome.fixes.push(Fix::SetAside(number));
        }
    }

    fn compare_versions(&mut self, current: u64) {
        let Some(known) = self.known.filter(|known| !known.versions.is_empty()) else {
            if !self.is_first {
                self.differs("was added");
            }
            return;
        };
        for &number in known.versions.keys() {
            let is_taken_back = versions_in_flight(known).any(|write| {
                write.version == number && self.outcome.taken_back.contains(&write.seq)
            });
            if is_taken_back {
                continue;
            }
            if !self.loaded.contains_key(&number) {
                self.differs(format!("version {number} was removed"));
            } else if !self.proved_by_record(number) {
                self.differs(format!("version {number} was edited"));
            }
        }
        let added = self
            .loaded
            .keys()
            .find(|number| **number <= current && !known.versions.contains_key(number));
        if let Some(number) = added {
            self.differs(format!("version {number} was added"));
        }
    }

    fn standing(&mut self, current: u64) -> io::Result<Standing> {
        let known = self.known;
        let was_told = known.is_some_and(|known| {
            !known.versions.is_empty() && versions_in_flight(known).next().is_none()
        });
        let has_link = matches!(self.found.link, FoundLink::Version(_));
        if known.is_some_and(|known| known.unlinked) && !has_link {
            return Ok(Standing::Unlinked);
        }
        if known.is_some_and(|known| known.unlinked) && has_link {
            self.differs("its link was put back");
        }
        if self.found.link == FoundLink::Flat && self.is_adopting(current) {
            self.outcome.fixes.push(Fix::AdoptFlat(current));
            return self.archived(current);
        }
        if self.is_taken() || !has_link && was_told {
            self.differs("its link was removed");
            return Ok(Standing::Unlinked);
        }
        if self.found.link != FoundLink::Version(current) {
            self.outcome.fixes.push(Fix::MoveLink(current));
        }
        self.archived(current)
    }

    /// True if an import was committed that was to put the link in the flat file's place.
    fn is_adopting(&self, current: u64) -> bool {
        self.known.is_some_and(|known| {
            let mut writes = known.in_flight.iter();
            writes.any(|write| write.kind == WriteKind::Import && write.version == current)
        })
    }

    fn is_taken(&self) -> bool {
        matches!(self.found.link, FoundLink::Flat | FoundLink::Other)
    }

    fn archived(&mut self, current: u64) -> io::Result<Standing> {
        let mut archived = self.archived_on_disk(current)?;
        if let Some(known) = self.known.filter(|known| !known.versions.is_empty())
            && known.archived != archived
        {
            if known.has_in_flight(WriteKind::State) {
                archived = known.archived;
                self.outcome.fixes.push(Fix::WriteSidecar(archived));
            } else {
                self.differs("its archived state was flipped");
            }
        }
        Ok(match archived {
            true => Standing::Archived,
            false => Standing::Live,
        })
    }

    /// The sidecar counts; without one, the flag of the newest version.
    fn archived_on_disk(&self, current: u64) -> io::Result<bool> {
        if self.found.has_sidecar {
            let said = read_sidecar(self.storage, &self.found.place)?;
            if let Some(archived) = said {
                return Ok(archived);
            }
        }
        Ok(match self.loaded.get(&current) {
            Some(Loaded::Whole(stored)) => stored.archived,
            Some(Loaded::Trusted(_)) if self.known.is_some_and(|known| known.archived) => {
                let file = self.found.place.version(current);
                version_file::read(self.storage, &file, current)?.archived
            }
            Some(Loaded::Trusted(_)) => false,
            Some(Loaded::Broken(_) | Loaded::Unreadable(_)) | None => false,
        })
    }

    fn build(&mut self, current: u64, standing: Standing) -> io::Result<()> {
        let description = self.description(current)?;
        let versions: Vec<VersionEntry> = self
            .loaded
            .values()
            .map(|loaded| loaded.entry().clone())
            .collect();
        self.outcome.document = Document::new(self.path.clone(), standing, description, versions);
        Ok(())
    }

    fn description(&self, current: u64) -> io::Result<Description> {
        let remembered = self
            .known
            .and_then(|known| known.description.as_ref())
            .filter(|(number, _)| *number == current);
        match (self.loaded.get(&current), remembered) {
            (Some(Loaded::Trusted(_) | Loaded::Unreadable(_)), Some((_, description))) => {
                Ok(description.clone())
            }
            (Some(Loaded::Whole(stored)), _) => {
                let metadata = stored.metadata.clone();
                Ok(Description::of(self.path, metadata, &stored.body))
            }
            (Some(Loaded::Trusted(_)), None) => {
                let file = self.found.place.version(current);
                let stored = version_file::read(self.storage, &file, current)?;
                Ok(Description::of(self.path, stored.metadata, &stored.body))
            }
            (Some(Loaded::Broken(_) | Loaded::Unreadable(_)) | None, _) => {
                Ok(Description::of(self.path, Default::default(), b""))
            }
        }
    }
}

fn read_sidecar(storage: &dyn Storage, place: &Place) -> io::Result<Option<bool>> {
    /// `false` and a line feed, and room for a stray carriage return.
    const SIDECAR_LEN_MAX: u64 = 16;
    let file = storage.open(&place.sidecar())?;
    Ok(layout::parse_sidecar(&file.read_all(SIDECAR_LEN_MAX)?))
}
