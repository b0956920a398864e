//! One document as the index knows it: its versions, its standing, and what LOOKUP asks of it.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use storage::Stamp;
use wire::{ContentHash, DocPath};

use super::tally::Tally;
use super::term::{Pairs, Term};
use super::tree::is_hidden;
use crate::PublisherMetadata;
use crate::importance::Importance;
use crate::title;

/// One stored version, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionEntry {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// The hash of the body.
    pub(crate) content_hash: ContentHash,
    /// The hash of the whole file: the etag, and what the next version's header repeats.
    pub(crate) file_hash: ContentHash,
    /// What the header says of the file before it; the first version says nothing.
    pub(crate) previous_hash: Option<ContentHash>,
    /// The file as it was when its hashes were computed, so that an edit by hand is noticed.
    pub(crate) stamp: Stamp,
    /// The modification time that is shown.
    pub(crate) modified: Timestamp,
}

/// What a reader may meet at a document's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Answered as archived; its versions stay readable.
    Archived,
    /// Read, listed and found.
    Live,
    /// Its link was removed by hand: nothing is served at its path, but its numbers stay used
    /// (D69).
    Unlinked,
}

/// What the current version says of itself: the metadata, and the parts that LOOKUP searches.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Description {
    metadata: Arc<PublisherMetadata>,
    title: Box<str>,
    /// The tags, each between two line feeds, then the title; all in lower case. One text, so
    /// that a search through all documents touches one place in memory for each.
    folded: Box<str>,
    /// Where the title begins in `folded`.
    title_start: usize,
    /// The pairs of `folded`.
    pairs: Pairs,
    importance: Importance,
}

impl Description {
    /// Reads what LOOKUP needs out of a version's metadata and body.
    pub(crate) fn of(path: &DocPath, metadata: Arc<PublisherMetadata>, body: &[u8]) -> Self {
        let title = title::title_of(path, &metadata, body);
        Self::with_title(metadata, &title)
    }

    /// Takes a title that was read before, as a checkpoint keeps it.
    pub(crate) fn with_title(metadata: Arc<PublisherMetadata>, title: &str) -> Self {
        let mut folded = String::from("\n");
        for tag in tags(&metadata) {
            folded.push_str(&tag.to_lowercase());
            folded.push('\n');
        }
        let title_start = folded.len();
        folded.push_str(&title.to_lowercase());
        Self {
            title: title.into(),
            pairs: Pairs::of(&folded),
            folded: folded.into(),
            title_start,
            importance: Importance::of(&metadata),
            metadata,
        }
    }

    /// The publisher's keys and values.
    pub(crate) fn metadata(&self) -> &Arc<PublisherMetadata> {
        &self.metadata
    }

    /// The title as it is shown.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// The tags as they are shown.
    pub(crate) fn tags(&self) -> impl Iterator<Item = &str> {
        tags(&self.metadata)
    }

    /// True if `term` is one of the tags or part of the title.
    pub(crate) fn answers(&self, term: &Term) -> bool {
        term.may_be_in(self.pairs)
            && (self.folded[self.title_start..].contains(term.as_str()) || self.has_tag(term))
    }

    /// True if `term` is one of the tags.
    pub(crate) fn has_tag(&self, term: &Term) -> bool {
        term.may_be_in(self.pairs)
            && self.folded[..self.title_start]
                .split('\n')
                .any(|tag| tag == term.as_str())
    }

    /// How much the publisher said that it matters.
    pub(crate) fn importance(&self) -> Importance {
        self.importance
    }
}

/// The tags that metadata names, without blanks around them and without empty ones.
fn tags(metadata: &PublisherMetadata) -> impl Iterator<Item = &str> {
    metadata
        .get("tags")
        .into_iter()
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .filter(|tag| !tag.is_empty())
}

/// A document with all its versions. There is always at least one; the highest is the current.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    path: DocPath,
    standing: Standing,
    description: Description,
    /// The last name of `path` is one that isn't listed. Kept here because a walk through all
    /// documents has this at hand, and the name only behind one more pointer.
    is_hidden: bool,
    /// In ascending order of number and never empty. A deque, because retention removes at the
    /// front for every version that is added at the back.
    versions: VecDeque<VersionEntry>,
}

impl Document {
    /// Joins what was found of a document; `None` if there is no version.
    pub(crate) fn new(
        path: DocPath,
        standing: Standing,
        description: Description,
        versions: impl Into<VecDeque<VersionEntry>>,
    ) -> Option<Self> {
        let mut versions: VecDeque<_> = versions.into();
        versions
            .make_contiguous()
            .sort_unstable_by_key(|version| version.number);
        (!versions.is_empty()).then_some(Self {
            is_hidden: is_hidden(path.name()),
            path,
            standing,
            description,
            versions,
        })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &DocPath {
        &self.path
    }

    /// What a reader may meet at its path.
    pub(crate) fn standing(&self) -> Standing {
        self.standing
    }

    /// True if it is read, listed and found.
    pub(crate) fn is_live(&self) -> bool {
        self.standing == Standing::Live
    }

    /// True if its path is answered as archived.
    pub(crate) fn is_archived(&self) -> bool {
        self.standing == Standing::Archived
    }

    /// What the current version says of itself.
    pub(crate) fn description(&self) -> &Description {
        &self.description
    }

    /// The current version.
    pub(crate) fn current(&self) -> &VersionEntry {
        self.versions.back().expect("a document has a version")
    }

    /// The version `number`, if it is still there.
    pub(crate) fn version(&self, number: u64) -> Option<&VersionEntry> {
        self.place(number).ok().map(|place| &self.versions[place])
    }

    /// The versions that are there, oldest first.
    pub(crate) fn versions(
        &self,
    ) -> impl DoubleEndedIterator<Item = &VersionEntry> + ExactSizeIterator + Clone {
        self.versions.iter()
    }

    /// The versions below `number`, newest first: what a page of VERSIONS goes on with.
    pub(crate) fn versions_below(&self, number: u64) -> impl Iterator<Item = &VersionEntry> {
        let end = self.place(number).unwrap_or_else(|place| place);
        self.versions.range(..end).rev()
    }

    /// True if every version follows the one before it: no number is missing in between, and its
    /// header names the bytes that its predecessor has. The oldest isn't checked (D68).
    pub(crate) fn chain_is_valid(&self) -> bool {
        self.versions
            .iter()
            .zip(self.versions.iter().skip(1))
            .all(|(older, newer)| {
                newer.number == older.number + 1 && newer.previous_hash == Some(older.file_hash)
            })
    }

    pub(super) fn set_standing(&mut self, standing: Standing) {
        self.standing = standing;
    }

    pub(super) fn describe(&mut self, description: Description) {
        self.description = description;
    }

    /// Puts `entry` in its place and returns the entry of the same number that it replaces.
    pub(super) fn put(&mut self, entry: VersionEntry) -> Option<VersionEntry> {
        match self.place(entry.number) {
            Ok(place) => Some(std::mem::replace(&mut self.versions[place], entry)),
            Err(place) => {
                self.versions.insert(place, entry);
                None
            }
        }
    }

    /// Takes out `number` unless it is the only version.
    pub(super) fn take(&mut self, number: u64) -> Option<VersionEntry> {
        let place = self
            .place(number)
            .ok()
            .filter(|_| self.versions.len() > 1)?;
        self.versions.remove(place)
    }

    /// True if its own name keeps it from being listed.
    pub(super) fn is_hidden(&self) -> bool {
        self.is_hidden
    }

    /// What this document adds to the directories above it.
    pub(super) fn tally(&self) -> Tally {
        Tally::of(self.standing)
    }

    fn place(&self, number: u64) -> Result<usize, usize> {
        self.versions
            .binary_search_by_key(&number, |version| version.number)
    }
}
