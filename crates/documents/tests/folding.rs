//! A file system that takes several spellings of a name for one.

mod support;

use std::sync::Arc;

use documents::{Config, FileStore, ReadError, WriteError};
use support::disks::FoldingDisk;
use support::model::{assert_sound, view};
use support::{append, body, fetch, publish};
use testkit::disk::CrashingDisk;

fn open(disk: &FoldingDisk) -> FileStore {
    disk.disk.advance(std::time::Duration::from_secs(1));
    FileStore::open_in(Arc::new(disk.clone()), Config::default(), &mut |_| {}).expect("opens")
}

fn collides(result: Result<documents::Written, WriteError>, with: &str) {
    match result {
        Err(WriteError::Collision { path }) => assert_eq!(path.as_str(), with),
        other => panic!("{with}: {other:?}"),
    }
}

/// Publishes `first`, then asserts that every other spelling is refused and changes nothing.
fn assert_first_keeps(fold: fn(&str) -> String, first: &str, others: &[&str]) {
    let disk = FoldingDisk {
        disk: CrashingDisk::new(),
        fold,
    };
    let mut store = open(&disk);
    publish(&store, first, "one").expect("publishes");
    publish(&store, first, "two").expect("publishes");
    for restarted in [false, true] {
        let before = view(&store);
        for other in others {
            let refused = publish(&store, other, "another");
            assert!(
                matches!(refused, Err(WriteError::Collision { .. })),
                "{other}: {refused:?}"
            );
            let missing = append(&store, other, "another", 2);
            assert!(matches!(missing, Err(WriteError::NotFound)), "{other}");
            let read = fetch(&store, other);
            assert!(matches!(read, Err(ReadError::NotFound)), "{other}");
        }
        assert_eq!(view(&store), before);
        assert_eq!(body(&store, first), "two");
        assert_sound(&store);
        if !restarted {
            store.close().expect("closes");
            drop(store);
            store = open(&disk);
            assert_eq!(store.report().new_epoch, None);
        }
    }
    publish(&store, first, "three").expect("goes on");
}

#[test]
fn where_case_does_not_count_the_first_name_keeps_its_document() {
    // D38
    let fold = |name: &str| name.to_lowercase();
    assert_first_keeps(fold, "/README.md", &["/readme.md", "/Readme.md"]);
    assert_first_keeps(fold, "/Notes/tea.md", &["/notes/tea.md", "/Notes/TEA.md"]);
}

#[test]
fn where_two_forms_of_a_letter_are_one_the_first_name_keeps_its_document() {
    // D37, D38
    let fold = |name: &str| name.replace("e\u{301}", "\u{e9}");
    let (composed, decomposed) = ("/caf\u{e9}/tea.md", "/cafe\u{301}/tea.md");
    assert_first_keeps(fold, composed, &[decomposed]);
    assert_first_keeps(fold, decomposed, &[composed]);
}

#[test]
fn a_directory_in_another_spelling_is_named_as_what_is_in_the_way() {
    // D38
    let disk = FoldingDisk {
        disk: CrashingDisk::new(),
        fold: |name| name.to_lowercase(),
    };
    let store = open(&disk);
    publish(&store, "/Notes/tea.md", "tea").expect("publishes");
    collides(publish(&store, "/notes/coffee.md", "x"), "/notes");
    collides(publish(&store, "/Notes/Tea.md", "x"), "/Notes/tea.md");
    publish(&store, "/Notes/coffee.md", "coffee").expect("publishes");
}
