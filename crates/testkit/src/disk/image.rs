//! What a crash leaves of a tree.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;

use super::node::{Body, Change, Dir, File, Node, Write, overwrite};
use super::tree::{ROOT, Tree};

/// What a power cut leaves of that which was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Survives {
    /// All of it; the disk was just quick enough.
    Everything,
    /// Nothing.
    Nothing,
    /// Any part of it, chosen by the seed: sectors of a write, its length without its bytes, names
    /// of a directory, halves of a rename.
    Part(u64),
}

impl Survives {
    /// Both extremes and `count` seeds, for tests that try every policy.
    pub fn all(count: u64) -> impl Iterator<Item = Self> {
        [Self::Nothing, Self::Everything]
            .into_iter()
            .chain((0..count).map(Self::Part))
    }
}

/// The unit in which a disk writes; a write that is cut keeps or loses whole ones.
const SECTOR: usize = 512;

impl Tree {
    pub(super) fn killed(&self) -> Self {
        self.rebuild(|file| file.live.clone(), |dir| dir.live.clone())
    }

    pub(super) fn crashed(&self, survives: Survives) -> Self {
        match survives {
            Survives::Everything => self.rebuild(
                |file| {
                    let mut content = file.durable.clone();
                    file.unsure().for_each(|write| write.apply(&mut content));
                    content
                },
                |dir| dir.live.clone(),
            ),
            Survives::Nothing => {
                self.rebuild(|file| file.durable.clone(), |dir| dir.durable.clone())
            }
            Survives::Part(seed) => {
                let mut bytes = Dice(seed);
                let mut names = Names::new(seed);
                self.rebuild(
                    |file| part_of_file(file, &mut bytes),
                    |dir| names.part_of_dir(dir),
                )
            }
        }
    }

    /// The tree that the chosen bytes and names make, all of it durable.
    fn rebuild(
        &self,
        mut content_of: impl FnMut(&File) -> Vec<u8>,
        mut names_of: impl FnMut(&Dir) -> BTreeMap<OsString, u64>,
    ) -> Self {
        let mut image = self.without_nodes();
        let mut open = vec![ROOT];
        while let Some(inode) = open.pop() {
            if let Some(seen) = image.nodes.get_mut(&inode) {
                seen.names += 1;
                continue;
            }
            let node = &self.nodes[&inode];
            let body = match &node.body {
                Body::Dir(dir) => {
                    let names = names_of(dir);
                    open.extend(names.values());
                    Body::Dir(Dir {
                        live: names.clone(),
                        durable: names,
                        pending: Vec::new(),
                    })
                }
                Body::File(file) => Body::File(File::durable(content_of(file))),
                other => other.clone(),
            };
            let names = 1;
            let node = Node {
                body,
                names,
                ..*node
            };
            image.nodes.insert(inode, node);
        }
        image
    }
}

fn part_of_file(file: &File, dice: &mut Dice) -> Vec<u8> {
    let mut content = file.durable.clone();
    for write in file.unsure() {
        match write {
            Write::Bytes { offset, bytes } => part_of_write(&mut content, *offset, bytes, dice),
            Write::Len(len) if dice.flip() => content.resize(*len, 0),
            Write::Len(_) => {}
        }
    }
    content
}

fn part_of_write(content: &mut Vec<u8>, offset: usize, bytes: &[u8], dice: &mut Dice) {
    let end = offset + bytes.len();
    match dice.below(5) {
        0 => {}
        1 => overwrite(content, offset, bytes),
        2 => overwrite(content, offset, &bytes[..dice.below(bytes.len() + 1)]),
        3 => content.resize(content.len().max(end), 0),
        _ => {
            let mut at = offset;
            while at < end {
                let next = (at / SECTOR + 1) * SECTOR;
                let next = next.min(end);
                if dice.flip() {
                    overwrite(content, at, &bytes[at - offset..next - offset]);
                }
                at = next;
            }
        }
    }
}

/// Which changes of names survive; the halves of a rename lie in directories that are visited at
/// different times.
struct Names {
    dice: Dice,
    renames: HashMap<u64, Fate>,
}

#[derive(Clone, Copy)]
enum Fate {
    Apart,
    Lost,
    Kept,
}

impl Names {
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice(!seed),
            renames: HashMap::new(),
        }
    }

    fn part_of_dir(&mut self, dir: &Dir) -> BTreeMap<OsString, u64> {
        let mut names = dir.durable.clone();
        for change in &dir.pending {
            if self.survives(change) {
                change.apply(&mut names);
            }
        }
        names
    }

    fn survives(&mut self, change: &Change) -> bool {
        let Some(rename) = change.rename else {
            return self.dice.flip();
        };
        let dice = &mut self.dice;
        let fate = *self.renames.entry(rename.id).or_insert_with(|| {
            match (dice.flip(), rename.of_dir, dice.flip()) {
                (true, false, _) => Fate::Apart,
                (_, _, true) => Fate::Kept,
                (_, _, false) => Fate::Lost,
            }
        });
        match fate {
            Fate::Apart => dice.flip(),
            Fate::Kept => true,
            Fate::Lost => false,
        }
    }
}

/// A small generator of chance; equal seeds throw equal numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn flip(&mut self) -> bool {
        self.next() & 1 == 1
    }
}
