//! Finds the watches that a change concerns without touching the others.
//!
//! One table holds a bucket of watches per scope, exact names and prefixes alike. A name is hashed
//! once from left to right; the hash so far at each `/` is that of a prefix and the hash at the
//! end that of the exact name, so a look-up costs the length of the name whatever is watched. A
//! trie was rejected: a node per segment makes a chain of thousands out of one hostile path, and
//! its tear-down recurses.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::scope::Scope;
use crate::sync::Ordering;
use crate::watch::Watch;

#[derive(Default)]
pub(crate) struct Index {
    /// Keyed at random: names come from outside and must not be able to collide on purpose.
    hashing: RandomState,
    buckets: HashTable<Bucket>,
    watches: usize,
}

/// The watches of one scope; never empty. Each knows its place in here.
struct Bucket {
    scope: Scope,
    watches: Vec<Arc<Watch>>,
}

impl Bucket {
    fn is_of(&self, is_prefix: bool, text: &str) -> bool {
        self.scope.is_prefix() == is_prefix && self.scope.text() == text
    }
}

impl Index {
    pub(crate) const fn len(&self) -> usize {
        self.watches
    }

    /// The scope, with the text of an equal one that is watched, so that they share it.
    pub(crate) fn shared_scope(&self, scope: Scope) -> Scope {
        let hash = hash_of(&self.hashing, scope.text());
        self.bucket(hash, scope.is_prefix(), scope.text())
            .map_or(scope, |bucket| bucket.scope.clone())
    }

    pub(crate) fn insert(&mut self, watch: Arc<Watch>) {
        let hashing = &self.hashing;
        let scope = &watch.scope;
        let entry = self.buckets.entry(
            hash_of(hashing, scope.text()),
            |bucket| bucket.scope == *scope,
            |bucket| hash_of(hashing, bucket.scope.text()),
        );
        let mut bucket = entry.or_insert_with(|| Bucket {
            scope: scope.clone(),
            watches: Vec::with_capacity(1),
        });
        let watches = &mut bucket.get_mut().watches;
        watch.place.store(watches.len(), Ordering::Relaxed);
        watches.push(watch);
        self.watches += 1;
    }

    pub(crate) fn remove(&mut self, watch: &Watch) {
        let hashing = &self.hashing;
        let entry = self.buckets.entry(
            hash_of(hashing, watch.scope.text()),
            |bucket| bucket.scope == watch.scope,
            |bucket| hash_of(hashing, bucket.scope.text()),
        );
        let Entry::Occupied(mut bucket) = entry else {
            return;
        };
        let watches = &mut bucket.get_mut().watches;
        let place = watch.place.load(Ordering::Relaxed);
        watches.swap_remove(place);
        if let Some(moved) = watches.get(place) {
            moved.place.store(place, Ordering::Relaxed);
        }
        if watches.is_empty() {
            bucket.remove();
        }
        self.watches -= 1;
    }

    /// Calls `visit` with each watch whose scope contains `name`.
    pub(crate) fn visit_concerned(&self, name: &str, mut visit: impl FnMut(&Arc<Watch>)) {
        if self.buckets.is_empty() {
            return;
        }
        let exact = hash_prefixes(&self.hashing, name, |hash, prefix| {
            if let Some(bucket) = self.bucket(hash, true, prefix) {
                bucket.watches.iter().for_each(&mut visit);
            }
        });
        if let Some(bucket) = self.bucket(exact, false, name) {
            bucket.watches.iter().for_each(&mut visit);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Watch>> {
        self.buckets.iter().flat_map(|bucket| &bucket.watches)
    }

    fn bucket(&self, hash: u64, is_prefix: bool, text: &str) -> Option<&Bucket> {
        self.buckets
            .find(hash, |bucket| bucket.is_of(is_prefix, text))
    }
}

/// Calls `visit` with the hash of each prefix of `text` that ends in `/`; gives that of `text`.
fn hash_prefixes(hashing: &RandomState, text: &str, mut visit: impl FnMut(u64, &str)) -> u64 {
    let mut hasher = hashing.build_hasher();
    let mut hashed = 0;
    for (slash, _) in text.match_indices('/') {
        let end = slash + 1;
        hasher.write(&text.as_bytes()[hashed..end]);
        hashed = end;
        visit(hasher.finish(), &text[..end]);
    }
    hasher.write(&text.as_bytes()[hashed..]);
    hasher.finish()
}

/// The hash of the whole of `text`, taken in the same pieces as its prefixes: a hasher may tell
/// one write from two.
fn hash_of(hashing: &RandomState, text: &str) -> u64 {
    hash_prefixes(hashing, text, |_, _| ())
}
