//! Changes on their way to watchers that are told the same.
//!
//! What is due at once is collected and told at once: one write for many changes. A watch that
//! asked for it has changes of one thing merged here, which keeps their order by position.

use std::collections::HashMap;

use bytes::Bytes;
use documents::{Change, Op};
use wire::{Cursor, DocPath, Seq};

/// Changes that are told at once. With its bytes it bounds what a slow socket holds.
const ITEMS_MAX: usize = 256;

/// Bytes of the objects that are told at once; the last may go over it.
const BYTES_MAX: usize = 64 << 10;

/// What a batch holds one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A change of a document; its op.
    Change(&'static str),
    /// An event of a channel.
    Event,
    /// A change of a roster, or the whole.
    Presence,
}

/// One thing to tell.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    /// Its position.
    pub(crate) cursor: Cursor,
    /// Its object, without the scope. Empty if a later item took its place.
    pub(crate) json: Bytes,
    /// Which of the watch's scopes it answers.
    pub(crate) scope: usize,
}

/// What is told at once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    items: Vec<Item>,
    bytes: usize,
    first: Seq,
    last: Seq,
    /// The newest item of each document that may be merged into; only while merging.
    newest: HashMap<DocPath, usize>,
}

impl Batch {
    /// True if nothing is to be told.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// True if it should be told before more is added.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= ITEMS_MAX || self.bytes >= BYTES_MAX
    }

    /// Things to tell, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| !item.json.is_empty())
    }

    /// The first place that is told.
    pub(crate) const fn first(&self) -> Seq {
        self.first
    }

    /// The last place that is told.
    pub(crate) const fn last(&self) -> Seq {
        self.last
    }

    /// The position of the last thing.
    pub(crate) fn cursor(&self) -> Option<&Cursor> {
        self.items.last().map(|item| &item.cursor)
    }

    /// Empties it; the room is kept.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.newest.clear();
        self.bytes = 0;
    }

    pub(crate) fn push(&mut self, item: Item) {
        if self.items.is_empty() {
            self.first = item.cursor.seq;
        }
        self.last = item.cursor.seq;
        self.bytes += item.json.len();
        self.items.push(item);
    }

    /// Adds a change and takes out the one before it of the same document, unless that created or
    /// one of the two archives it.
    pub(crate) fn merge(&mut self, item: Item, change: &Change) {
        let place = self.items.len();
        let before = match is_mergeable(change) {
            true => self.newest.insert(change.path.clone(), place),
            false => {
                self.newest.remove(&change.path);
                None
            }
        };
        self.push(item);
        if let Some(before) = before {
            let json = std::mem::take(&mut self.items[before].json);
            self.bytes -= json.len();
        }
    }
}

fn is_mergeable(change: &Change) -> bool {
    change.op != Op::Archive && change.version > 1
}

#[cfg(test)]
mod tests {
    use wire::{ContentHash, Epoch};

    use super::*;

    fn change(op: Op, path: &str, version: u64) -> Change {
        Change {
            op,
            path: wire::Target::parse(path.as_bytes()).unwrap().path,
            version,
            hash: ContentHash::of(b""),
            agent: None,
        }
    }

    fn told(changes: &[Change]) -> Vec<u64> {
        let mut batch = Batch::default();
        let epoch = Epoch::from_random([1; 6]);
        for (seq, change) in (1..).zip(changes) {
            let item = Item {
                kind: Kind::Change("publish"),
                cursor: Cursor::new(epoch.clone(), Seq::new(seq)),
                json: Bytes::from_static(b"{}"),
                scope: 0,
            };
            batch.merge(item, change);
        }
        batch.iter().map(|item| item.cursor.seq.get()).collect()
    }

    // C64
    #[test]
    fn the_latest_of_each_document_is_told_in_ascending_order() {
        let told = told(&[
            change(Op::Publish, "/a", 2),
            change(Op::Publish, "/b", 2),
            change(Op::Append, "/a", 3),
            change(Op::Publish, "/a", 4),
        ]);
        assert_eq!(told, [2, 4]);
    }

    // C64
    #[test]
    fn nothing_is_merged_across_a_create_or_an_archive() {
        let told = told(&[
            change(Op::Publish, "/a", 1),
            change(Op::Publish, "/a", 2),
            change(Op::Publish, "/a", 3),
            change(Op::Archive, "/a", 3),
            change(Op::Publish, "/a", 3),
        ]);
        assert_eq!(told, [1, 3, 4, 5]);
    }
}
