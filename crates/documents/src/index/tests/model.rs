//! The index against a naive model.
//!
//! The model is a map from whole paths to standings and bodies. Every answer it gives is computed
//! by looking at all of it. After each random operation both must agree on every directory, every
//! hash and every refusal (D27). A second property pages through a directory while it changes and
//! asks that what stays comes exactly once (D21).

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use wire::{ContentHash, DocPath};

use crate::index::fixture::{description, path, version};
use crate::index::{Index, Standing};
use crate::{ListEntry, ListPage, ListRequest};

const PATHS: &[&str] = &[
    "/a.md",
    "/a.md/b.md",
    "/d/a.md",
    "/d/b.md",
    "/d/e/a.md",
    "/d/.h.md",
    "/d/.h/a.md",
    "/d/versions/a.md",
    "/d-e.md",
    "/d",
    "/z/y/x.md",
    "/z/y.md",
];

const DIRECTORIES: &[&str] = &[
    "/",
    "/a.md",
    "/d",
    "/d/e",
    "/d/.h",
    "/d/versions",
    "/z",
    "/z/y",
];

const BODIES: &[&str] = &["one", "two", "three"];

#[derive(Clone, Debug)]
enum Operation {
    Edit {
        path: usize,
        number: u64,
        body: usize,
    },
    RemoveVersion {
        path: usize,
        number: u64,
    },
    Stand {
        path: usize,
        standing: Standing,
    },
    Write {
        path: usize,
        body: usize,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    let standings = prop_oneof![
        Just(Standing::Archived),
        Just(Standing::Live),
        Just(Standing::Unlinked)
    ];
    let paths = 0..PATHS.len();
    let bodies = 0..BODIES.len();
    prop_oneof![
        8 => (paths.clone(), bodies.clone())
            .prop_map(|(path, body)| Operation::Write { path, body }),
        4 => (paths.clone(), standings)
            .prop_map(|(path, standing)| Operation::Stand { path, standing }),
        2 => (paths.clone(), 1..6_u64)
            .prop_map(|(path, number)| Operation::RemoveVersion { path, number }),
        2 => (paths, 1..6_u64, bodies)
            .prop_map(|(path, number, body)| Operation::Edit { path, number, body }),
    ]
}

#[derive(Clone, Debug)]
struct Stored {
    standing: Standing,
    bodies: BTreeMap<u64, &'static str>,
}

impl Stored {
    fn current(&self) -> (u64, &'static str) {
        let (number, body) = self.bodies.last_key_value().unwrap();
        (*number, body)
    }
}

#[derive(Debug, Default)]
struct Model(BTreeMap<DocPath, Stored>);

impl Model {
    fn is_free(&self, at: &DocPath) -> bool {
        !self
            .0
            .keys()
            .any(|other| other.is_below(at) || at.is_below(other))
    }

    fn entries(&self, dir: &DocPath, archived: bool, right: Right) -> Vec<ListEntry> {
        let mut entries = BTreeMap::new();
        for (at, stored) in &self.0 {
            let listed = stored.standing == Standing::Live
                || archived && stored.standing == Standing::Archived;
            if !at.is_below(dir) || !listed || !right.allows(at) {
                continue;
            }
            let rest: Vec<_> = at.segments().skip(dir.segments().count()).collect();
            if rest
                .iter()
                .any(|name| name.starts_with('.') || *name == "versions")
            {
                continue;
            }
            let (number, body) = stored.current();
            let is_document = rest.len() == 1;
            entries.insert(
                rest[0].to_owned(),
                ListEntry {
                    name: rest[0].to_owned(),
                    document: is_document.then(|| (number, hash(body))),
                    archived: is_document && stored.standing == Standing::Archived,
                },
            );
        }
        entries.into_values().collect()
    }

    fn knows(&self, dir: &DocPath, right: Right) -> bool {
        dir.is_root()
            || self.0.iter().any(|(at, stored)| {
                at.is_below(dir) && stored.standing != Standing::Unlinked && right.allows(at)
            })
    }

    fn find(&self, body: &str, right: Right) -> Option<(DocPath, u64)> {
        let mut holders = Vec::new();
        for (at, stored) in &self.0 {
            if stored.standing == Standing::Unlinked || !right.allows(at) {
                continue;
            }
            for (number, other) in &stored.bodies {
                let is_current = stored.standing == Standing::Live && stored.current().0 == *number;
                if *other == body {
                    holders.push((!is_current, at.clone(), u64::MAX - number));
                }
            }
        }
        let (_, at, number) = holders.into_iter().min()?;
        Some((at, u64::MAX - number))
    }
}

/// Two readers: one may see everything, one only half of it.
#[derive(Clone, Copy, Debug)]
enum Right {
    All,
    Half,
}

impl Right {
    fn allows(self, at: &DocPath) -> bool {
        match self {
            Self::All => true,
            Self::Half => at.as_str().len().is_multiple_of(2),
        }
    }
}

fn hash(body: &str) -> ContentHash {
    ContentHash::of(body.as_bytes())
}

fn apply(index: &mut Index, model: &mut Model, operation: &Operation) {
    match operation {
        Operation::Write { path: at, body } => write(index, model, PATHS[*at], BODIES[*body]),
        Operation::Stand { path: at, standing } => {
            let at = path(PATHS[*at]);
            let stored = model.0.get_mut(&at);
            assert_eq!(index.set_standing(&at, *standing), stored.is_some());
            if let Some(stored) = stored {
                stored.standing = *standing;
            }
        }
        Operation::RemoveVersion { path: at, number } => {
            let said = description(PATHS[*at], "");
            let removed = index.remove_version(&path(PATHS[*at]), *number, Some(said));
            let stored = model.0.get_mut(&path(PATHS[*at]));
            let expected = stored
                .filter(|stored| stored.bodies.len() > 1)
                .and_then(|stored| stored.bodies.remove(number));
            assert_eq!(removed, expected.is_some());
        }
        Operation::Edit {
            path: at,
            number,
            body,
        } => {
            let edited = version(*number, BODIES[*body]);
            let done = index.replace_version(&path(PATHS[*at]), edited, None);
            let stored = model.0.get_mut(&path(PATHS[*at]));
            let old = stored.and_then(|stored| stored.bodies.get_mut(number));
            assert_eq!(done, old.is_some());
            if let Some(old) = old {
                *old = BODIES[*body];
            }
        }
    }
}

fn write(index: &mut Index, model: &mut Model, at: &str, body: &'static str) {
    let known = model
        .0
        .get(&path(at))
        .map_or(0, |stored| stored.current().0);
    let written = index.insert_version(&path(at), version(known + 1, body), description(at, body));
    assert_eq!(written, model.is_free(&path(at)));
    if written {
        let stored = model.0.entry(path(at)).or_insert(Stored {
            standing: Standing::Live,
            bodies: BTreeMap::new(),
        });
        stored.standing = Standing::Live;
        stored.bodies.insert(known + 1, body);
    }
}

/// The whole of a directory, cut into pages of `size`.
fn pages(index: &Index, dir: &DocPath, size: usize, archived: bool, right: Right) -> ListPage {
    let mut all = ListPage {
        entries: Vec::new(),
        complete: false,
    };
    while !all.complete {
        let request = ListRequest {
            page_size: size,
            after: all.entries.last().map(|entry| entry.name.clone()),
            include_archived: archived,
        };
        let page = index.list(dir, &request, &|at| right.allows(at)).unwrap();
        assert!(page.complete || page.entries.len() == size);
        all.entries.extend(page.entries);
        all.complete = page.complete;
    }
    all
}

fn compare(index: &Index, model: &Model) {
    assert_eq!(index.len(), model.0.len());
    let paths: BTreeSet<_> = index.documents().map(|document| document.path()).collect();
    assert!(paths.into_iter().eq(model.0.keys()));
    for at in PATHS {
        let free = model.is_free(&path(at)) && !at.contains("/versions");
        assert_eq!(index.reserve(&path(at)).is_ok(), free, "{at}");
    }
    for right in [Right::All, Right::Half] {
        for dir in DIRECTORIES.iter().map(|dir| path(dir)) {
            let first = ListRequest {
                page_size: 1,
                after: None,
                include_archived: false,
            };
            let known = index.list(&dir, &first, &|at| right.allows(at)).is_some();
            assert_eq!(known, model.knows(&dir, right), "{dir} {right:?}");
            for archived in [false, true] {
                let shown = known.then(|| pages(index, &dir, 2, archived, right).entries);
                let expected = known.then(|| model.entries(&dir, archived, right));
                assert_eq!(shown, expected, "{dir} {right:?}");
            }
        }
        for body in BODIES {
            let found = index.find_hash(hash(body), &|at| right.allows(at));
            let found = found.map(|(document, number)| (document.path().clone(), number));
            assert_eq!(found, model.find(body, right), "{body} {right:?}");
        }
    }
}

proptest! {
    // D27
    #[test]
    fn the_index_equals_a_naive_model(
        operations in prop::collection::vec(operation(), 1..60),
    ) {
        let (mut index, mut model) = (Index::new(), Model::default());
        for operation in &operations {
            apply(&mut index, &mut model, operation);
            compare(&index, &model);
        }
    }

    // D21
    #[test]
    fn a_name_that_is_there_all_the_time_comes_exactly_once(
        page_size in 1..40_usize,
        rounds in prop::collection::vec(prop::collection::vec((0..300_usize, 0..4_u8), 0..60), 60),
    ) {
        let mut tree = Paged::new();
        let mut rounds = rounds.into_iter();
        loop {
            let complete = tree.read(page_size);
            if complete {
                break;
            }
            for (name, change) in rounds.next().unwrap_or_default() {
                tree.change(name, change);
            }
        }
        tree.check();
    }
}

/// A directory that is read page by page while others change it. Every third name is left alone.
struct Paged {
    index: Index,
    seen: Vec<String>,
}

impl Paged {
    const NAMES: usize = 300;

    fn new() -> Self {
        let mut paged = Self {
            index: Index::new(),
            seen: Vec::new(),
        };
        for number in
            (0..Self::NAMES).filter(|number| number.is_multiple_of(2) || Self::stays(*number))
        {
            paged.add(number);
        }
        paged
    }

    fn stays(number: usize) -> bool {
        number.is_multiple_of(3)
    }

    fn path(number: usize) -> String {
        format!("/wide/{number:03}.md")
    }

    fn add(&mut self, number: usize) {
        let at = Self::path(number);
        let next = self
            .index
            .document(&path(&at))
            .map_or(1, |old| old.current().number + 1);
        assert!(
            self.index
                .insert_version(&path(&at), version(next, "x"), description(&at, "x"))
        );
    }

    fn change(&mut self, number: usize, change: u8) {
        let at = path(&Self::path(number));
        match change {
            _ if Self::stays(number) => {}
            0 => self.add(number),
            1 => drop(self.index.set_standing(&at, Standing::Archived)),
            2 => drop(self.index.set_standing(&at, Standing::Live)),
            _ => drop(self.index.set_standing(&at, Standing::Unlinked)),
        }
    }

    fn read(&mut self, page_size: usize) -> bool {
        let request = ListRequest {
            page_size,
            after: self.seen.last().cloned(),
            include_archived: false,
        };
        let page = self
            .index
            .list(&path("/wide"), &request, &|_| true)
            .unwrap();
        self.seen
            .extend(page.entries.into_iter().map(|entry| entry.name));
        page.complete
    }

    fn check(&self) {
        assert!(
            self.seen.is_sorted_by(|first, second| first < second),
            "{:?}",
            self.seen
        );
        for number in (0..Self::NAMES).filter(|number| Self::stays(*number)) {
            let name = format!("{number:03}.md");
            assert!(self.seen.contains(&name), "{name}");
        }
    }
}
