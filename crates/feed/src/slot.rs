//! A change in its place, with the bytes that every face sends of it.

use std::sync::OnceLock;

use bytes::Bytes;
use wire::{Cursor, Seq};

use crate::ring::Turn;

/// How a change is written for a face; each slot keeps one encoding per value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// A watch block of the Mark protocol.
    Block,
    /// A JSON object.
    Json,
    /// A server-sent event.
    Sse,
}

impl Encoding {
    /// How many encodings there are.
    const COUNT: usize = 3;

    const fn index(self) -> usize {
        match self {
            Self::Block => 0,
            Self::Json => 1,
            Self::Sse => 2,
        }
    }
}

/// A change in its place, with its encodings.
#[derive(Debug)]
pub struct Slot<C> {
    turn: Turn,
    cursor: Cursor,
    change: C,
    encodings: [OnceLock<Bytes>; Encoding::COUNT],
}

impl<C> Slot<C> {
    pub(crate) const fn new(turn: Turn, cursor: Cursor, change: C) -> Self {
        Self {
            turn,
            cursor,
            change,
            encodings: [const { OnceLock::new() }; Encoding::COUNT],
        }
    }

    /// The change.
    pub const fn change(&self) -> &C {
        &self.change
    }

    /// Its position.
    pub fn cursor(&self) -> Cursor {
        self.cursor.clone()
    }

    /// Its place in the sequence.
    pub const fn seq(&self) -> Seq {
        self.cursor.seq
    }

    /// The bytes for one face, made on first use and shared by all watchers.
    ///
    /// `encode` runs once per slot and encoding; those who ask meanwhile wait for its result. It
    /// must give the same bytes for every watcher, so nothing of a watcher's rights may enter.
    pub fn encoded(&self, encoding: Encoding, encode: impl FnOnce(&Cursor, &C) -> Bytes) -> Bytes {
        self.encodings[encoding.index()]
            .get_or_init(|| encode(&self.cursor, &self.change))
            .clone()
    }

    pub(crate) const fn turn(&self) -> Turn {
        self.turn
    }
}
