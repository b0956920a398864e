//! The journal against the tree: copies, damage, limits of the ring, unreadable places.

mod support;

use std::path::Path;

use documents::{Config, OpenError, ReadError};
use support::model::{Step, assert_sound, open_disk, view};
use support::{fetch, head, publish, told};
use testkit::disk::{CrashingDisk, Found};
use wire::{Cursor, GapReason};

fn config(ring_len: usize) -> Config {
    Config {
        ring_len,
        ..Config::default()
    }
}

fn publish_many(store: &documents::FileStore, range: std::ops::Range<usize>) {
    for number in range {
        publish(
            store,
            &format!("/n/{}.md", number % 7),
            &format!("text {number}"),
        )
        .expect("publishes");
    }
}

fn at(store: &documents::FileStore, seq: u64) -> Cursor {
    Cursor::new(head(store).epoch, wire::Seq::new(seq))
}

#[test]
fn a_copy_that_was_put_back_begins_a_new_epoch() {
    // D62
    let disk = CrashingDisk::new();
    let store = open_disk(&disk, config(4096)).expect("opens");
    publish_many(&store, 0..80);
    let copy = disk.copy_tree();
    publish_many(&store, 80..100);
    let old: Vec<Cursor> = [90, 100, 105].map(|seq| at(&store, seq)).to_vec();
    drop(store);
    let store = open_disk(&copy, config(4096)).expect("opens");
    publish_many(&store, 200..230);
    for cursor in &old {
        assert_eq!(
            told(&store, cursor).expect_err("resyncs").reason,
            GapReason::Epoch
        );
    }
    assert_sound(&store);
}

#[test]
fn a_cursor_above_the_head_is_told_at_once() {
    // D64
    let disk = CrashingDisk::new();
    let store = open_disk(&disk, config(4096)).expect("opens");
    publish_many(&store, 0..3);
    let gap = told(&store, &at(&store, 9)).expect_err("resyncs");
    assert_eq!(gap.reason, GapReason::Ahead);
}

#[test]
fn damage_inside_the_journal_begins_a_new_epoch_and_a_cut_end_does_not() {
    // D63
    let disk = CrashingDisk::new();
    let store = open_disk(&disk, config(4096)).expect("opens");
    publish_many(&store, 0..20);
    let before = head(&store);
    drop(store);
    let (segment, bytes) = disk
        .contents()
        .into_iter()
        .find_map(|(at, found)| match found {
            Found::File(bytes) if at.starts_with(".tidings/journal") => Some((at, bytes)),
            _ => None,
        })
        .expect("a segment");

    let flipped = disk.kill();
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    flipped.plant(&segment, &damaged);
    let store = open_disk(&flipped, config(4096)).expect("opens");
    assert_eq!(
        told(&store, &before).expect_err("resyncs").reason,
        GapReason::Epoch
    );
    assert_sound(&store);
    drop(store);

    // What was told lies before the cut or is proved by nothing: never a delta over a hole.
    for cut in [1, 7, 100, 400] {
        let torn = disk.kill();
        torn.plant(&segment, &bytes[..bytes.len() - cut]);
        let store = open_disk(&torn, config(4096)).expect("opens");
        let gap = told(&store, &before).expect_err("resyncs");
        assert!(matches!(gap.reason, GapReason::Epoch | GapReason::Ahead));
        assert_sound(&store);
    }
}

#[test]
fn after_more_changes_than_the_ring_exactly_its_tail_resumes() {
    // D71
    let disk = CrashingDisk::new();
    let small = Config {
        checkpoint_every: 50,
        segment_bytes_max: 4096,
        ..config(64)
    };
    let store = open_disk(&disk, small.clone()).expect("opens");
    publish_many(&store, 0..640);
    drop(store);
    let store = open_disk(&disk.kill(), small).expect("opens");
    assert_eq!(store.report().new_epoch, None);
    let head = head(&store).seq.get();
    assert_eq!(head, 640);
    let tail = told(&store, &at(&store, head - 64)).expect("resumes");
    assert_eq!(tail.len(), 64);
    let gap = told(&store, &at(&store, head - 65)).expect_err("resyncs");
    assert_eq!(gap.reason, GapReason::TooOld);
    let segments = disk
        .contents()
        .keys()
        .filter(|at| at.starts_with(".tidings/journal"))
        .count();
    assert!(segments < 20, "{segments} segments");
}

#[test]
fn a_kill_at_any_point_of_compaction_keeps_the_epoch_and_the_tail() {
    // D71
    let small = Config {
        checkpoint_every: 8,
        segment_bytes_max: 2048,
        ..config(16)
    };
    let disk = CrashingDisk::new();
    let store = open_disk(&disk, small.clone()).expect("opens");
    publish_many(&store, 0..30);
    let start = disk.operations();
    publish_many(&store, 30..60);
    let total = disk.operations() - start;
    drop(store);
    for cut in (0..total).step_by(5) {
        let disk = CrashingDisk::new();
        let store = open_disk(&disk, small.clone()).expect("opens");
        publish_many(&store, 0..30);
        disk.crash_after(cut);
        let mut known = (head(&store), view(&store));
        for number in 30..60 {
            let name = format!("/n/{}.md", number % 7);
            if publish(&store, &name, &format!("text {number}")).is_err() {
                break;
            }
            known = (head(&store), view(&store));
        }
        drop(store);
        for image in [disk.kill(), disk.crash(testkit::disk::Survives::Part(cut))] {
            let store = open_disk(&image, small.clone()).expect("opens");
            assert_eq!(store.report().new_epoch, None, "operation {cut}");
            let changes = told(&store, &known.0).expect("resumes");
            let mut view_then = known.1.clone();
            for (_, change) in &changes {
                support::model::learn(&mut view_then, change);
            }
            assert_eq!(view_then, view(&store), "operation {cut}");
        }
    }
}

#[test]
fn a_directory_that_cannot_be_read_refuses_the_start_by_name() {
    // D54
    let disk = CrashingDisk::new();
    let store = open_disk(&disk, config(64)).expect("opens");
    Step::Publish("/a/b/tea.md", "tea", 0)
        .run(&store)
        .expect("works");
    store.close().expect("closes");
    drop(store);
    for dir in ["a", "a/b", "a/b/versions", "a/b/versions/tea.md"] {
        disk.deny(dir);
        let refused = open_disk(&disk, config(64)).expect_err("refused");
        assert!(matches!(&refused, OpenError::Unreadable { path, .. } if path.starts_with(dir)));
        disk.allow(dir);
    }
    let store = open_disk(&disk, config(64)).expect("opens");
    assert_eq!(store.report().new_epoch, None);
}

#[test]
fn what_did_not_change_since_a_clean_close_is_not_read_again() {
    // D94
    let disk = CrashingDisk::new();
    let store = open_disk(&disk, config(64)).expect("opens");
    publish_many(&store, 0..21);
    disk.advance(std::time::Duration::from_secs(1));
    store.close().expect("closes");
    let before = view(&store);
    drop(store);
    for number in 0..7 {
        disk.deny(format!("n/versions/{number}.md/v3"));
    }
    let mut told = Vec::new();
    let opened =
        documents::FileStore::open_in(std::sync::Arc::new(disk), config(64), &mut |progress| {
            told.push((progress.done, progress.total))
        });
    let store = opened.expect("opens without reading a version");
    assert_eq!(store.report().new_epoch, None);
    assert_eq!(view(&store), before);
    assert_eq!(told.last(), Some(&(7, 7)));
}

#[test]
fn an_edit_within_a_tick_of_the_clock_is_noticed_all_the_same() {
    // D65
    let disk = CrashingDisk::new();
    let store = open_disk(&disk, config(64)).expect("opens");
    publish(&store, "/tea.md", "tea").expect("publishes");
    store.close().expect("closes");
    drop(store);
    let file = Path::new("versions/tea.md/v1");
    let Some(Found::File(bytes)) = disk.contents().remove(file) else {
        panic!("no file");
    };
    let text = String::from_utf8_lossy(&bytes).replace("tea", "mud");
    disk.plant(file, text.as_bytes());
    let store = open_disk(&disk, config(64)).expect("opens");
    assert!(store.report().new_epoch.is_some());
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_for_it_alone() {
    // D54
    let disk = CrashingDisk::new();
    let store = open_disk(&disk, config(64)).expect("opens");
    publish(&store, "/tea.md", "tea").expect("publishes");
    publish(&store, "/coffee.md", "coffee").expect("publishes");
    let before = head(&store);
    disk.deny("versions/tea.md/v1");
    assert!(matches!(
        fetch(&store, "/tea.md"),
        Err(ReadError::Storage(_))
    ));
    fetch(&store, "/coffee.md").expect("its neighbour is fine");
    drop(store);
    let store = open_disk(&disk, config(64)).expect("opens");
    assert!(matches!(
        fetch(&store, "/tea.md"),
        Err(ReadError::Storage(_))
    ));
    assert_eq!(told(&store, &before).expect("goes on"), []);
    disk.allow("versions/tea.md/v1");
    fetch(&store, "/tea.md").expect("readable again");
    assert_eq!(view(&store).len(), 2);
}

#[test]
fn what_a_kill_leaves_in_our_own_directory_is_removed_and_a_persons_file_is_not() {
    // D56
    let disk = CrashingDisk::new();
    drop(open_disk(&disk, config(64)).expect("opens"));
    disk.plant(".tidings/tmp/0123456789abcdef-0", b"half");
    disk.plant("tea.md.tmp", b"a person's");
    let store = open_disk(&disk, config(64)).expect("opens");
    publish(&store, "/tea.md", "tea").expect("publishes");
    let contents = disk.contents();
    assert!(!contents.contains_key(Path::new(".tidings/tmp/0123456789abcdef-0")));
    assert!(contents.contains_key(Path::new("tea.md.tmp")));
}
