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

use crate::registration::Registration;
use crate::scope::Scope;
use crate::sync::Ordering;

#[derive(Default)]
pub(crate) struct Index {
    /// Keyed at random: names come from outside and must not be able to collide on purpose.
    hashing: RandomState,
    buckets: HashTable<Bucket>,
    registrations: usize,
}

/// The watches of one scope; never empty. Each knows its place in here.
struct Bucket {
    scope: Scope,
    registrations: Vec<Arc<Registration>>,
}

impl Bucket {
    fn is_of(&self, is_prefix: bool, text: &str) -> bool {
        self.scope.is_prefix() == is_prefix && self.scope.text() == text
    }
}

impl Index {
    pub(crate) const fn len(&self) -> usize {
        self.registrations
    }

    /// The scope, with the text of an equal one that is watched, so that they share it.
    pub(crate) fn shared_scope(&self, scope: Scope) -> Scope {
        let hash = hash_of(&self.hashing, scope.text());
        self.bucket(hash, scope.is_prefix(), scope.text())
            .map_or(scope, |bucket| bucket.scope.clone())
    }

    pub(crate) fn insert(&mut self, registration: Arc<Registration>) {
        let hashing = &self.hashing;
        let scope = &registration.scope;
        let entry = self.buckets.entry(
            hash_of(hashing, scope.text()),
            |bucket| bucket.scope == *scope,
            |bucket| hash_of(hashing, bucket.scope.text()),
        );
        let mut bucket = entry.or_insert_with(|| Bucket {
            scope: scope.clone(),
            registrations: Vec::with_capacity(1),
        });
        let registrations = &mut bucket.get_mut().registrations;
        registration
            .place
            .store(registrations.len(), Ordering::Relaxed);
        registrations.push(registration);
        self.registrations += 1;
    }

    pub(crate) fn remove(&mut self, registration: &Registration) {
        let hashing = &self.hashing;
        let entry = self.buckets.entry(
            hash_of(hashing, registration.scope.text()),
            |bucket| bucket.scope == registration.scope,
            |bucket| hash_of(hashing, bucket.scope.text()),
        );
        let Entry::Occupied(mut bucket) = entry else {
            return;
        };
        let registrations = &mut bucket.get_mut().registrations;
        let place = registration.place.load(Ordering::Relaxed);
        registrations.swap_remove(place);
        if let Some(moved) = registrations.get(place) {
            moved.place.store(place, Ordering::Relaxed);
        }
        if registrations.is_empty() {
            bucket.remove();
        }
        self.registrations -= 1;
    }

    /// Calls `visit` with each watch whose scope contains `name`.
    pub(crate) fn visit_concerned(&self, name: &str, mut visit: impl FnMut(&Arc<Registration>)) {
        if self.buckets.is_empty() {
            return;
        }
        let exact = hash_prefixes(&self.hashing, name, |hash, prefix| {
            if let Some(bucket) = self.bucket(hash, true, prefix) {
                bucket.registrations.iter().for_each(&mut visit);
            }
        });
        if let Some(bucket) = self.bucket(exact, false, name) {
            bucket.registrations.iter().for_each(&mut visit);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Registration>> {
        self.buckets.iter().flat_map(|bucket| &bucket.registrations)
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
