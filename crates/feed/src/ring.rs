//! The slots of the most recent changes.
//!
//! A slot is found by its turn: the count of changes published before it. A turn differs from the
//! sequence number where a source leaves places empty, and it goes on across epochs, so a ring
//! always keeps its full length of changes however sparse the sequence is, and an old turn never
//! names a later change. Indexing by sequence number was rejected for that: one jump of a sparse
//! source would throw away everything that is kept.
//!
//! One writer at a time puts slots, under the feed's lock. Readers take the lock of one slot for
//! as long as it takes to clone a pointer, so they meet the writer only where it overwrites the
//! very slot they read.

use std::sync::{Arc, PoisonError};

use wire::Seq;

use crate::slot::Slot;
use crate::sync::RwLock;

/// How many changes a ring keeps unless told otherwise: enough for a watcher to be away for
/// twenty seconds, a reconnect with its back-off, at two hundred changes a second.
pub const RING_LEN: usize = 4096;

const _: () = assert!(RING_LEN.is_power_of_two());

/// The count of a change since the feed was made; the first has turn 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn(u64);

impl Turn {
    /// Before the first change.
    pub(crate) const ZERO: Self = Self(0);

    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    pub(crate) const fn previous(self) -> Self {
        Self(self.0 - 1)
    }

    /// The first of the `count` turns that end with this one.
    const fn first_of(self, count: u64) -> Self {
        Self(self.0 + 1 - count)
    }
}

type Place<C> = RwLock<Option<Arc<Slot<C>>>>;

pub(crate) struct Ring<C> {
    places: Box<[Place<C>]>,
}

impl<C> Ring<C> {
    pub(crate) fn new(len: usize) -> Self {
        assert!(len.is_power_of_two(), "a ring's length is a power of two");
        Self {
            places: (0..len).map(|_| RwLock::new(None)).collect(),
        }
    }

    /// The slot of `turn`, unless it was overwritten or cleared.
    pub(crate) fn slot(&self, turn: Turn) -> Option<Arc<Slot<C>>> {
        let slot = self.place(turn).read();
        let slot = slot.unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().filter(|slot| slot.turn() == turn).cloned()
    }

    /// Puts `slot` in its place and hands back the one that lay there.
    pub(crate) fn put(&self, slot: Arc<Slot<C>>) -> Option<Arc<Slot<C>>> {
        let mut place = self
            .place(slot.turn())
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        place.replace(slot)
    }

    /// Forgets every slot.
    pub(crate) fn clear(&self) {
        for place in &self.places {
            place.write().unwrap_or_else(PoisonError::into_inner).take();
        }
    }

    /// The first of the `kept` turns up to `newest` whose change lies above `seq`.
    ///
    /// The caller holds the feed's lock, so that these turns stay where they are.
    pub(crate) fn first_above(&self, seq: Seq, newest: Turn, kept: usize) -> Turn {
        let oldest = newest.first_of(kept as u64).0;
        let (mut low, mut high) = (oldest, newest.0 + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            let is_above = self.slot(Turn(middle)).is_none_or(|slot| slot.seq() > seq);
            if is_above {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Turn(low)
    }

    fn place(&self, turn: Turn) -> &Place<C> {
        // The length is a power of two, so the mask keeps the low bits; they fit any usize.
        &self.places[turn.0 as usize & (self.places.len() - 1)]
    }
}
