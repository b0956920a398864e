//! A disk that fails once, or is full: the write is refused, nothing else changes, and the next
//! one works.

mod support;

use std::io::ErrorKind;

use documents::{Config, FileStore, WriteError};
use support::model::{Step, View, assert_sound, open_disk, script, view};
use support::{head, told};
use testkit::disk::{Call, CrashingDisk, Found};

/// All names but our own, with what they hold.
fn names(disk: &CrashingDisk) -> Vec<String> {
    disk.contents()
        .into_iter()
        .filter(|(at, _)| !at.starts_with(".tidings"))
        .map(|(at, found)| match found {
            Found::File(bytes) => format!("{} {}", at.display(), String::from_utf8_lossy(&bytes)),
            other => format!("{} {other:?}", at.display()),
        })
        .collect()
}

/// Runs the script with a fault in one step and returns what that step met.
struct Faulty {
    disk: CrashingDisk,
    store: FileStore,
}

impl Faulty {
    fn new() -> Self {
        let disk = CrashingDisk::new();
        let store = open_disk(&disk, Config::default()).expect("opens");
        Self { disk, store }
    }

    /// Asserts that a refused step left everything as it was, then that it works.
    fn assert_refused_and_works(&self, step: &Step, before: &View, tree: &[String], what: &str) {
        assert_eq!(view(&self.store), *before, "{what}");
        assert_eq!(names(&self.disk), tree, "{what}");
        let since = head(&self.store);
        step.run(&self.store)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(
            told(&self.store, &since).expect("resumes").len(),
            1,
            "{what}"
        );
        assert_sound(&self.store);
    }

    fn operations(&self, step: &Step) -> u64 {
        let before = self.disk.operations();
        step.run(&self.store).expect("works");
        self.disk.operations() - before
    }
}

/// Runs every step of the script once with each of its operations failing.
fn fail_everywhere(kind: ErrorKind, check: impl Fn(&Faulty, &Step, &str)) {
    let script = script();
    for (place, step) in script.iter().enumerate() {
        let counted = Faulty::new();
        for earlier in &script[..place] {
            earlier.run(&counted.store).expect("works");
        }
        let total = counted.operations(step);
        for at in 0..total {
            let faulty = Faulty::new();
            for earlier in &script[..place] {
                earlier.run(&faulty.store).expect("works");
            }
            faulty.disk.fail_after(at, kind);
            check(&faulty, step, &format!("{step:?}, operation {at}"));
        }
    }
}

#[test]
fn a_write_that_meets_a_fault_leaves_no_trace_and_the_next_works() {
    // D7, D50, D51
    fail_everywhere(ErrorKind::StorageFull, |faulty, step, what| {
        let (before, tree) = (view(&faulty.store), names(&faulty.disk));
        let since = head(&faulty.store);
        let Err(error) = step.run(&faulty.store) else {
            // What is removed by retention is removed after the write is told.
            assert_eq!(told(&faulty.store, &since).expect("resumes").len(), 1);
            return;
        };
        assert_eq!(told(&faulty.store, &since).expect("resumes"), [], "{what}");
        match error {
            WriteError::Storage(_) => {
                faulty.assert_refused_and_works(step, &before, &tree, what);
            }
            WriteError::Poisoned(_) => {
                // A journal that failed to sync takes nothing until the disk is read again.
                assert_eq!(view(&faulty.store), before, "{what}");
                assert!(faulty.store.health().poisoned.is_some(), "{what}");
                let again = step.run(&faulty.store);
                assert!(matches!(again, Err(WriteError::Poisoned(_))), "{what}");
                let image = faulty.disk.kill();
                let reopened = open_disk(&image, Config::default()).expect("opens");
                assert_eq!(reopened.report().new_epoch, None, "{what}");
                let changes = told(&reopened, &since).expect("resumes");
                let is_there = view(&reopened) != before;
                assert_eq!(changes.len(), usize::from(is_there), "{what}");
            }
            other => panic!("{what}: {other}"),
        }
    });
}

#[test]
fn a_full_disk_refuses_writes_and_serves_reads_until_there_is_room() {
    // D51
    let faulty = Faulty::new();
    let step = Step::Publish("/a/tea.md", "# Tea\n", 0);
    step.run(&faulty.store).expect("works");
    let (before, tree) = (view(&faulty.store), names(&faulty.disk));
    let again = Step::Append("/a/tea.md", "and more");
    let mut room = 0;
    loop {
        faulty.disk.set_capacity(Some(faulty.disk.used() + room));
        match again.run(&faulty.store) {
            Ok(_) => break,
            Err(WriteError::Storage(error)) => {
                assert_eq!(error.kind(), ErrorKind::StorageFull);
                assert_eq!(view(&faulty.store), before);
                assert_eq!(names(&faulty.disk), tree);
                assert!(faulty.store.health().poisoned.is_none());
            }
            Err(other) => panic!("{other}"),
        }
        room += 16;
    }
    assert_eq!(view(&faulty.store)["/a/tea.md"].version, 2);
}

#[test]
fn a_version_file_whose_sync_failed_is_written_anew() {
    // D50: repeating the sync on the same file would prove nothing.
    let faulty = Faulty::new();
    faulty.disk.fail_call(Call::SyncData, 0, ErrorKind::Other);
    let step = Step::Publish("/tea.md", "# Tea\n", 0);
    assert!(matches!(
        step.run(&faulty.store),
        Err(WriteError::Storage(_))
    ));
    let made = faulty.disk.count(Call::CreateNew);
    step.run(&faulty.store).expect("works");
    assert!(faulty.disk.count(Call::CreateNew) > made);
}
