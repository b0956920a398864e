//! Places for things that come and go, by keys that are never used twice.
//!
//! A key of something that is gone finds nothing, although its place was given to another: wakes
//! and alarms come late, and must not reach the next in that place.

use std::ops::{Index, IndexMut};

/// Names a thing in its slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    place: u32,
    /// How often the place was given away before.
    turn: u32,
}

#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    turn: u32,
    held: Option<T>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Takes in what `make` makes of its key.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(Key) -> T) -> Key {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place {
                turn: 0,
                held: None,
            });
            u32::try_from(self.places.len() - 1).expect("there are fewer sockets than 2^32")
        });
        let slot = &mut self.places[place as usize];
        let key = Key {
            place,
            turn: slot.turn,
        };
        slot.held = Some(make(key));
        key
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.places.get_mut(key.place as usize)?;
        if slot.turn != key.turn {
            return None;
        }
        let held = slot.held.take()?;
        slot.turn = slot.turn.wrapping_add(1);
        self.free.push(key.place);
        Some(held)
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let slot = self.places.get(key.place as usize)?;
        slot.held.as_ref().filter(|_| slot.turn == key.turn)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.places.get_mut(key.place as usize)?;
        slot.held.as_mut().filter(|_| slot.turn == key.turn)
    }

    /// The keys of all that are there.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        let occupied = self.places.iter().zip(0_u32..);
        occupied
            .filter(|(slot, _)| slot.held.is_some())
            .map(|(slot, place)| Key {
                place,
                turn: slot.turn,
            })
    }
}

impl<T> Index<Key> for Slab<T> {
    type Output = T;

    fn index(&self, key: Key) -> &T {
        self.get(key).expect("the key of something that is there")
    }
}

impl<T> IndexMut<Key> for Slab<T> {
    fn index_mut(&mut self, key: Key) -> &mut T {
        self.get_mut(key)
            .expect("the key of something that is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_key_finds_nothing_in_a_place_that_was_given_away() {
        let mut slab = Slab::new();
        let first = slab.insert_with(|_| 'a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert_with(|_| 'b');
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab[second], 'b');
        assert_eq!(slab.keys().collect::<Vec<_>>(), [second]);
        assert_eq!(slab.len(), 1);
    }
}
