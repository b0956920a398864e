//! Which versions have which body.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound;

use wire::{ContentHash, DocPath};

/// How well a version answers for its hash; the better ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The current version of a live document.
    Current,
    /// An older version, or any version of a document that isn't live.
    Former,
}

/// One version under its hash. The order of the fields is the order of the answers: current
/// ones first, then by path, then the newest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Holder {
    hash: ContentHash,
    rank: Rank,
    path: DocPath,
    number: Reverse<u64>,
}

/// All versions ordered by content hash.
///
/// One ordered set instead of a map to sets: most hashes have a single holder, and the path is
/// shared with the document.
#[derive(Debug, Default)]
pub(super) struct HashIndex {
    holders: BTreeSet<Holder>,
}

impl HashIndex {
    pub(super) fn insert(&mut self, hash: ContentHash, rank: Rank, path: &DocPath, number: u64) {
        self.holders.insert(Holder::new(hash, rank, path, number));
    }

    pub(super) fn remove(&mut self, hash: ContentHash, rank: Rank, path: &DocPath, number: u64) {
        self.holders.remove(&Holder::new(hash, rank, path, number));
    }

    /// The versions whose body has `hash`, the best answer first.
    pub(super) fn find(&self, hash: ContentHash) -> impl Iterator<Item = (&DocPath, u64)> {
        let first = Holder::new(hash, Rank::Current, &DocPath::root(), u64::MAX);
        self.holders
            .range((Bound::Included(first), Bound::Unbounded))
            .take_while(move |holder| holder.hash == hash)
            .map(|holder| (&holder.path, holder.number.0))
    }
}

impl Holder {
    fn new(hash: ContentHash, rank: Rank, path: &DocPath, number: u64) -> Self {
        Self {
            hash,
            rank,
            path: path.clone(),
            number: Reverse(number),
        }
    }
}
