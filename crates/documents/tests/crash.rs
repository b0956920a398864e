//! A crash at every operation of every kind of write, and what the next opening makes of it.
//!
//! 1. A script of writes runs once to count the disk's operations.
//! 2. For each of them it runs again on a fresh disk that stops there.
//! 3. Of what is left, a killed process and several power cuts are opened again.
//! 4. What was acknowledged must be there. The write that was cut off must be there whole or not at
//!    all. A watcher that resumes from any cursor it was given must come to know exactly what is
//!    there, under the same epoch. No stray file may be left, and writing must go on.

mod support;

use std::path::Path;

use documents::{Config, FileStore};
use support::model::{Step, View, assert_sound, learn, open_disk, script, view};
use support::{head, told};
use testkit::disk::{CrashingDisk, Survives};
use wire::Cursor;

/// Power cuts with a random part of the unsynced, for each point.
const CUTS: u64 = 6;

/// What is known when the disk stops.
struct Cut {
    /// Cursors that a watcher may hold, each with what it knows there.
    watchers: Vec<(Cursor, View)>,
    /// What was acknowledged.
    acknowledged: View,
    /// The same with the write that was cut off, if it might have landed.
    attempted: Option<View>,
}

fn config() -> Config {
    Config {
        ring_len: 64,
        ..Config::default()
    }
}

/// Runs the script until a step fails.
fn run(store: &FileStore, script: &[Step]) -> Cut {
    let mut now = view(store);
    let mut watchers = vec![(head(store), now.clone())];
    for step in script {
        let mut after = now.clone();
        match step.run(store) {
            Ok(_) => {
                now = view(store);
                watchers.push((head(store), now.clone()));
            }
            Err(_) => {
                foresee(&mut after, step);
                return Cut {
                    watchers,
                    acknowledged: now,
                    attempted: Some(after),
                };
            }
        }
    }
    Cut {
        watchers,
        acknowledged: now,
        attempted: None,
    }
}

/// What the view would be after `step`, but for the hash, which only a run can tell.
fn foresee(view: &mut View, step: &Step) {
    let name = step.path().as_str().to_owned();
    let entry = view.get(&name).copied();
    let mut seen = entry.unwrap_or_else(|| support::model::Seen {
        version: 0,
        hash: wire::ContentHash::of(b""),
        archived: false,
    });
    match step {
        Step::Append(..) | Step::Publish(..) => seen.version += 1,
        Step::Archive(_) => seen.archived = true,
        Step::Unarchive(_) => seen.archived = false,
    }
    view.insert(name, seen);
}

fn same_but_hashes(a: &View, b: &View) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| a.0 == b.0 && a.1.version == b.1.version && a.1.archived == b.1.archived)
}

fn check(image: &CrashingDisk, cut: &Cut, script: &[Step], what: &str) {
    let store = open_disk(image, config()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(store.report().new_epoch, None, "{what}");
    let found = view(&store);
    let is_attempted = cut
        .attempted
        .as_ref()
        .is_some_and(|attempted| same_but_hashes(&found, attempted));
    assert!(
        found == cut.acknowledged || is_attempted,
        "{what}: found {found:#?}\nacknowledged {:#?}",
        cut.acknowledged
    );
    for (cursor, known) in &cut.watchers {
        let mut known = known.clone();
        let changes = told(&store, cursor).unwrap_or_else(|gap| panic!("{what}: {gap}"));
        for (_, change) in &changes {
            learn(&mut known, change);
        }
        assert_eq!(known, found, "{what}: a watcher from {cursor}");
    }
    assert_sound(&store);
    assert_tidy(image, what);
    for step in script
        .iter()
        .filter(|step| matches!(step, Step::Publish(..)))
    {
        let unarchive = Step::Unarchive(match step {
            Step::Publish(at, ..) => at,
            _ => unreachable!("only publishes are left"),
        });
        let _ = unarchive.run(&store);
        step.run(&store)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    assert_sound(&store);
    store.close().expect("closes");
}

/// Nothing lies about but versions, links, sidecars, and what was set aside.
fn assert_tidy(image: &CrashingDisk, what: &str) {
    for at in image.contents().keys() {
        let name = at
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let is_temporary = at.starts_with(".tidings/tmp") && at != Path::new(".tidings/tmp");
        assert!(!is_temporary, "{what}: {}", at.display());
        if at.starts_with(".tidings") {
            continue;
        }
        let is_version = name.starts_with('v') && name[1..].parse::<u64>().is_ok();
        let is_known = ["a", "b", "c", "versions", "archive-state"].contains(&name)
            || name.ends_with(".md")
            || name.contains(".aside")
            || is_version;
        assert!(is_known, "{what}: {}", at.display());
    }
}

fn images(disk: &CrashingDisk) -> impl Iterator<Item = (String, CrashingDisk)> {
    let cuts = Survives::all(CUTS).map(|survives| (format!("{survives:?}"), disk.crash(survives)));
    std::iter::once(("killed".to_owned(), disk.kill())).chain(cuts)
}

#[test]
fn a_crash_at_any_operation_of_a_write_loses_nothing_and_hides_nothing() {
    // D48, D49, D60, D61
    let script = script();
    let disk = CrashingDisk::new();
    let store = open_disk(&disk, config()).expect("opens");
    let before = disk.operations();
    assert!(run(&store, &script).attempted.is_none());
    let total = disk.operations() - before;
    drop(store);

    for at in 0..total {
        let disk = CrashingDisk::new();
        let store = open_disk(&disk, config()).expect("opens");
        disk.crash_after(at);
        let cut = run(&store, &script);
        drop(store);
        for (policy, image) in images(&disk) {
            let last = disk.log().len().saturating_sub(1);
            let what = format!("operation {at} ({:?}), {policy}", disk.log().get(last));
            check(&image, &cut, &script, &what);
        }
    }
}

#[test]
fn a_crash_at_any_operation_of_the_next_opening_changes_nothing_of_that() {
    // D48, D61: an opening that mends can itself be killed.
    let script = script();
    let disk = CrashingDisk::new();
    let store = open_disk(&disk, config()).expect("opens");
    let before = disk.operations();
    run(&store, &script);
    let total = disk.operations() - before;
    drop(store);

    for at in (0..total).step_by(3) {
        let disk = CrashingDisk::new();
        let store = open_disk(&disk, config()).expect("opens");
        disk.crash_after(at);
        let cut = run(&store, &script);
        drop(store);
        for second in 0.. {
            let image = disk.crash(Survives::Part(second));
            image.crash_after(second);
            let is_over = open_disk(&image, config()).is_ok();
            let what = format!("operation {at}, then operation {second} of the opening");
            for (policy, image) in [
                ("killed", image.kill()),
                ("cut", image.crash(Survives::Part(second))),
            ] {
                check(&image, &cut, &script, &format!("{what}, {policy}"));
            }
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn what_an_opening_found_after_a_kill_survives_a_power_cut_that_follows() {
    // D48, D49: the killed process still owed syncs, and watchers were told since.
    let script = script();
    let disk = CrashingDisk::new();
    let store = open_disk(&disk, config()).expect("opens");
    let before = disk.operations();
    run(&store, &script);
    let total = disk.operations() - before;
    drop(store);

    for at in 0..total {
        let disk = CrashingDisk::new();
        let store = open_disk(&disk, config()).expect("opens");
        disk.crash_after(at);
        let mut cut = run(&store, &script);
        drop(store);
        disk.forgive();
        let store = open_disk(&disk, config()).expect("opens");
        let found = view(&store);
        cut.watchers.push((head(&store), found.clone()));
        cut = Cut {
            acknowledged: found,
            attempted: None,
            ..cut
        };
        drop(store);
        for (policy, image) in images(&disk) {
            let what = format!("killed at operation {at}, opened, then {policy}");
            check(&image, &cut, &script, &what);
        }
    }
}
