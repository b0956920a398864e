//! The silence checker over a killed file store: for every point of every write, watchers that
//! resume after the restart are told of everything that was acknowledged (P3).

mod support;

use documents::{Config, FileStore, Op, Outcome};
use feed::{Next, Outlet, Scope};
use support::model::{Step, open_disk, script};
use testkit::disk::{CrashingDisk, Survives};
use testkit::silence::{Checker, Fact, Watcher};
use wire::Cursor;

fn word(op: Op) -> &'static str {
    match op {
        Op::Append => "append",
        Op::Archive => "archive",
        Op::Publish => "publish",
    }
}

/// A watcher that reads a feed whenever the test says so.
struct Reader {
    told: Watcher,
    scope: Scope,
    position: Option<Cursor>,
}

impl Reader {
    fn new(checker: &Checker, prefix: &'static str) -> Self {
        Self {
            told: checker.watcher(prefix, move |name| name.starts_with(prefix)),
            scope: Scope::Prefix(prefix.into()),
            position: None,
        }
    }

    /// Subscribes from where it was and reads all there is.
    fn read(&mut self, store: &FileStore) {
        let outlet = Outlet::new();
        let feed = store.feed();
        let since = self.position.clone();
        let watch = feed.subscribe(self.scope.clone(), since.as_ref(), &outlet);
        let mut watch = match watch {
            Ok(watch) => {
                self.told
                    .acknowledged(since.unwrap_or_else(|| watch.position()));
                watch
            }
            Err(refused) => {
                self.told.gap(refused.head.clone(), refused.reason);
                self.position = Some(refused.head);
                return;
            }
        };
        loop {
            match watch.next() {
                Next::Change(slot) => {
                    let change = slot.change();
                    let fact = Fact::new(change.path.as_str(), change.version, word(change.op));
                    self.told.change(slot.cursor(), fact);
                }
                Next::Gap { reason, head } => self.told.gap(head, reason),
                Next::Closed | Next::Idle => break,
            }
        }
        self.told.position(watch.position());
        self.position = Some(watch.position());
    }
}

fn expected_op(step: &Step) -> &'static str {
    match step {
        Step::Append(..) => "append",
        Step::Archive(_) => "archive",
        Step::Publish(..) | Step::Unarchive(_) => "publish",
    }
}

fn run(checker: &Checker, store: &FileStore, readers: &mut [Reader]) {
    for (place, step) in script().iter().enumerate() {
        let begun = checker.begin(step.path().as_str());
        match step.run(store) {
            Ok(written) if written.outcome == Outcome::Unchanged => begun.refused(),
            Ok(written) => begun.acknowledged(written.version, expected_op(step)),
            Err(_) => {
                begun.unknown();
                return;
            }
        }
        // One reader keeps up, the others read now and then or only at the end.
        for (lag, reader) in readers.iter_mut().enumerate() {
            if lag == 0 || lag == 1 && place % 3 == 0 {
                reader.read(store);
            }
        }
    }
}

#[test]
fn nobody_misses_a_change_without_being_told_wherever_the_store_is_killed() {
    // P3, D48, D60, D61
    let disk = CrashingDisk::new();
    let store = open_disk(&disk, Config::default()).expect("opens");
    let start = disk.operations();
    for step in script() {
        step.run(&store).expect("works");
    }
    let total = disk.operations() - start;
    for at in 0..total {
        let policies = [Survives::Nothing, Survives::Everything, Survives::Part(at)];
        for policy in policies {
            let checker = Checker::new();
            let mut readers = ["/", "/a/", "/a/b/"].map(|scope| Reader::new(&checker, scope));
            let disk = CrashingDisk::new();
            let store = open_disk(&disk, Config::default()).expect("opens");
            for reader in &mut readers {
                reader.read(&store);
            }
            disk.crash_after(at);
            run(&checker, &store, &mut readers);
            drop(store);
            let store = open_disk(&disk.crash(policy), Config::default()).expect("opens");
            run(&checker, &store, &mut []);
            for reader in &mut readers {
                reader.read(&store);
            }
            match checker.verify() {
                Ok(report) => assert!(report.commits > 0),
                Err(broken) => panic!("operation {at}, {policy:?}: {broken}"),
            }
        }
    }
}
