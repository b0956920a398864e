//! Random writes, restarts and kills against a naive model.
//!
//! The model is a map from paths to lists of versions. After each step the store must show the
//! same documents, and at the end an opening that knows nothing but the files must show the same
//! as the store that has been running (D27).

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use documents::{
    Config, Draft, FileStore, Lookup, LookupRequest, Outcome, ReadError, Which, WriteError,
};
use proptest::prelude::*;
use storage::Storage;
use support::model::{View, assert_sound, learn, open_disk, view};
use support::{head, path, told};
use testkit::disk::CrashingDisk;
use wire::DocPath;

const PATHS: [&str; 5] = ["/a.md", "/b.md", "/d/a.md", "/d/e/a.md", "/d/.hidden.md"];

#[derive(Clone, Debug)]
enum Action {
    Append(usize, u8),
    Archive(usize),
    Kill,
    Publish(usize, u8, Option<u64>, Option<u64>),
    Restart,
    Unarchive(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let place = 0..PATHS.len();
    prop_oneof![
        4 => (place.clone(), 0..4_u8, prop::option::of(0..4_u64), prop::option::of(1..4_u64))
            .prop_map(|(at, text, expected, keep)| Action::Publish(at, text, expected, keep)),
        2 => (place.clone(), 0..4_u8).prop_map(|(at, text)| Action::Append(at, text)),
        1 => place.clone().prop_map(Action::Archive),
        1 => place.prop_map(Action::Unarchive),
        1 => Just(Action::Restart),
        1 => Just(Action::Kill),
    ]
}

/// A document as the model has it: bodies by number, and the current number.
#[derive(Clone, Debug, Default)]
struct Model {
    versions: BTreeMap<u64, String>,
    archived: bool,
}

impl Model {
    fn current(&self) -> u64 {
        self.versions.keys().next_back().copied().unwrap_or(0)
    }

    fn add(&mut self, body: String, keep: Option<u64>) {
        let number = self.current() + 1;
        self.versions.insert(number, body);
        if let Some(keep) = keep {
            self.versions = self.versions.split_off(&(number + 1).saturating_sub(keep));
        }
    }
}

struct Bench {
    disk: CrashingDisk,
    store: FileStore,
    model: BTreeMap<&'static str, Model>,
}

impl Bench {
    fn new() -> Self {
        let disk = CrashingDisk::new();
        let store = open_disk(&disk, Config::default()).expect("opens");
        let model = BTreeMap::new();
        Self { disk, store, model }
    }

    fn step(&mut self, action: &Action) {
        match *action {
            Action::Publish(at, text, expected, keep) => self.publish(at, text, expected, keep),
            Action::Append(at, text) => self.append(at, text),
            Action::Archive(at) => self.archive(at),
            Action::Unarchive(at) => self.unarchive(at),
            Action::Restart => {
                self.store.close().expect("closes");
                self.reopen();
            }
            Action::Kill => {
                self.disk = self.disk.kill();
                self.reopen();
            }
        }
    }

    fn reopen(&mut self) {
        self.disk = self.disk.kill();
        self.store = open_disk(&self.disk, Config::default()).expect("opens");
        assert_eq!(self.store.report().new_epoch, None);
    }

    fn publish(&mut self, at: usize, text: u8, expected: Option<u64>, keep: Option<u64>) {
        let body = format!("# Text {text}\n");
        let retention = keep.map(|keep| keep.to_string());
        let metadata = retention.as_deref().map(|keep| ("retention", keep));
        let draft = Draft::publish(path(PATHS[at]), body.clone().into(), metadata);
        let result = self
            .store
            .publish(draft.expect("a draft"), expected, &|| true);
        let model = self.model.entry(PATHS[at]).or_default();
        let current = model.current();
        if expected.is_some_and(|expected| expected != current) {
            assert!(
                matches!(result, Err(WriteError::Conflict { server, .. }) if server == current)
            );
        } else if model.archived {
            assert!(matches!(result, Err(WriteError::Archived)));
        } else if model.versions.get(&current) == Some(&body) {
            assert_eq!(result.expect("unchanged").outcome, Outcome::Unchanged);
        } else {
            model.add(body, keep);
            assert_eq!(result.expect("created").version, model.current());
        }
    }

    fn append(&mut self, at: usize, text: u8) {
        let model = self.model.entry(PATHS[at]).or_default();
        let body = format!("More {text}");
        let draft = Draft::append(path(PATHS[at]), body.clone().into(), []).expect("a draft");
        let result = self.store.append(draft, model.current(), &|| true);
        match model.versions.get(&model.current()) {
            None => assert!(matches!(result, Err(WriteError::NotFound))),
            Some(_) if model.archived => assert!(matches!(result, Err(WriteError::Archived))),
            Some(base) => {
                let feed = if base.ends_with('\n') { "" } else { "\n" };
                let joined = format!("{base}{feed}{body}");
                model.add(joined, None);
                assert_eq!(result.expect("created").version, model.current());
            }
        }
    }

    fn archive(&mut self, at: usize) {
        let model = self.model.entry(PATHS[at]).or_default();
        let result = self.store.archive(&path(PATHS[at]), &|| true);
        if model.versions.is_empty() {
            assert!(matches!(result, Err(WriteError::NotFound)));
        } else {
            let changed = result.expect("archives").outcome == Outcome::Archived;
            assert_eq!(changed, !model.archived);
            model.archived = true;
        }
    }

    fn unarchive(&mut self, at: usize) {
        let model = self.model.entry(PATHS[at]).or_default();
        let draft = Draft::publish(path(PATHS[at]), Bytes::new(), []).expect("a draft");
        let result = self.store.publish(draft, None, &|| true);
        if model.versions.is_empty() {
            assert!(matches!(result, Err(WriteError::NotFound)));
        } else {
            let changed = result.expect("unarchives").outcome == Outcome::Unarchived;
            assert_eq!(changed, model.archived);
            model.archived = false;
        }
    }

    fn compare(&self) {
        for (at, model) in &self.model {
            let current = self.store.fetch(&path(at), Which::Current);
            match model.versions.get(&model.current()) {
                None => assert!(matches!(current, Err(ReadError::NotFound))),
                Some(_) if model.archived => {
                    assert!(matches!(current, Err(ReadError::Archived(_))));
                }
                Some(body) => assert_eq!(current.expect("live").body, body.as_bytes()),
            }
            for number in 1..=model.current() {
                let version = self.store.fetch(&path(at), Which::Version(number));
                match model.versions.get(&number) {
                    None => assert!(matches!(version, Err(ReadError::NotFound))),
                    Some(body) => assert_eq!(version.expect("kept").body, body.as_bytes()),
                }
            }
        }
    }
}

/// Everything that LOOKUP finds.
fn found(store: &FileStore) -> Vec<documents::Match> {
    let request = LookupRequest {
        query: "*",
        filter: None,
        limit: Some("1000"),
        mode: None,
    };
    let lookup = Lookup::parse(request).expect("a query");
    let matches = store.lookup(&lookup, &DocPath::root(), &|_| true);
    matches.expect("the root").rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn the_store_shows_what_the_model_shows(
        actions in prop::collection::vec(action(), 1..40),
    ) {
        let mut bench = Bench::new();
        let start = head(&bench.store);
        for action in &actions {
            bench.step(action);
            bench.compare();
        }
        assert_sound(&bench.store);

        // D60: a watcher that was away all the time knows the same after catching up.
        let mut known = View::new();
        for (_, change) in told(&bench.store, &start).expect("goes on") {
            learn(&mut known, &change);
        }
        known.retain(|name, _| !name.contains("/."));
        prop_assert_eq!(&known, &view(&bench.store));

        // D27: a scan of the files alone finds the same.
        let scanned = bench.disk.kill();
        scanned.remove_file(Path::new(".tidings/index")).expect("removes");
        let fresh = open_disk(&scanned, Config::default()).expect("opens");
        prop_assert_eq!(view(&fresh), view(&bench.store));
        prop_assert_eq!(found(&fresh), found(&bench.store));
    }
}
