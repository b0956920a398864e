//! Writes that are refused, of every kind and in any order, leave nothing behind.

mod support;

use bytes::Bytes;
use documents::{Config, Draft, FileStore, WriteError};
use support::model::{assert_sound, open_disk};
use support::{append, archive, draft, head, path, publish, told};
use testkit::disk::{CrashingDisk, Found};

const REFUSALS: u64 = 1000;

/// Everything but our own files, whose journal may grow by what is taken back.
fn tree(disk: &CrashingDisk) -> Vec<(std::path::PathBuf, Found)> {
    let contents = disk.contents().into_iter();
    contents
        .filter(|(at, _)| !at.starts_with(".tidings"))
        .collect()
}

/// Tries what can't be done; `kind` says which, `number` varies it.
fn refused(store: &FileStore, kind: u64, number: u64) -> Result<(), WriteError> {
    let new = format!("/new/{number}/deep/x.md");
    let publish_with = |at: &str, pairs: &[(&str, &str)]| {
        let draft = Draft::publish(path(at), Bytes::from_static(b"x"), pairs.iter().copied())?;
        store.publish(draft, None, &|| true)
    };
    let result = match kind {
        0 => store.publish(draft("/tea.md", "x", &[]), Some(2 + number), &|| true),
        1 => store.publish(draft(&new, "x", &[]), Some(1 + number), &|| true),
        2 => publish(store, "/old.md", "x"),
        3 => append(store, "/tea.md", "x", 9 + number),
        4 => append(store, &new, "x", 1),
        5 => append(store, "/full.md", "x", 1),
        6 => publish(store, "/tea.md/below.md", "x"),
        7 => publish(store, "/dir.md", "x"),
        8 => publish_with("/versions/x.md", &[]),
        9 => publish_with("/.tidings/x.md", &[]),
        10 => publish_with(&new, &[("Bad key", "x")]),
        11 => publish_with(&new, &[("retention", "0")]),
        12 => publish_with(&new, &[("version", "7")]),
        13 => publish_with("/tea.txt", &[]),
        14 => store.publish(draft(&new, "x", &[]), None, &|| false),
        15 => store.publish(draft("/tea.md", "x", &[]), None, &|| false),
        16 => store.archive(&path("/tea.md"), &|| false),
        17 => archive(store, &new),
        18 => publish(store, &new, ""),
        19 => publish(store, "/flat.md", "x"),
        _ => unreachable!("there are {KINDS} kinds"),
    };
    result.map(drop)
}

const KINDS: u64 = 20;

#[test]
fn a_thousand_refusals_leave_no_file_no_number_and_no_change() {
    // D7
    let disk = CrashingDisk::new();
    disk.plant("flat.md", b"by hand");
    let store = open_disk(&disk, Config::default()).expect("opens");
    publish(&store, "/tea.md", "tea").expect("publishes");
    publish(&store, "/dir.md/x.md", "x").expect("publishes");
    publish(&store, "/full.md", &"a".repeat(1 << 20)).expect("publishes");
    publish(&store, "/old.md", "old").expect("publishes");
    archive(&store, "/old.md").expect("archives");
    let (before, since) = (tree(&disk), head(&store));

    // A step that shares no factor with the number of kinds meets them all, never in a row.
    for number in 0..REFUSALS {
        let kind = number * 7 % KINDS;
        let result = refused(&store, kind, number);
        assert!(result.is_err(), "kind {kind} passed");
    }
    assert!(tree(&disk) == before, "something was left behind");
    assert_eq!(head(&store), since);
    let next = publish(&store, "/tea.md", "tea 2").expect("publishes");
    assert_eq!((next.version, next.cursor.seq), (2, since.seq.next()));
    assert_eq!(told(&store, &since).expect("goes on").len(), 1);
    assert_sound(&store);
}
