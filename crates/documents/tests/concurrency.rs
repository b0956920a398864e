//! Many writers and readers at once, on a real disk.

mod support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use documents::{FileStore, ListRequest, Op, ReadError, VersionsRequest, Which, WriteError};
use support::model::{Seen, View, learn, view};
use support::*;
use wire::{ContentHash, Cursor, Seq};

const ALL: VersionsRequest = VersionsRequest {
    page_size: 1000,
    before: None,
};

#[test]
fn of_many_writers_with_one_expected_version_exactly_one_wins() {
    // D1
    const WRITERS: usize = 64;
    const ROUNDS: u64 = 12;
    let world = World::new();
    for round in 0..ROUNDS {
        // Every third round creates a document in three directories that don't exist yet.
        let (at, expected) = match round % 3 {
            0 => (format!("/r{round}/a/b/new.md"), 0),
            _ => {
                let at = format!("/r{round}.md");
                (
                    at.clone(),
                    publish(&world.store, &at, "base")
                        .expect("publishes")
                        .version,
                )
            }
        };
        let before = head(&world.store);
        let barrier = Barrier::new(WRITERS);
        let results: Vec<_> = thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (at, barrier, store) = (&at, &barrier, &world.store);
                    scope.spawn(move || {
                        let draft = draft(at, &format!("writer {writer}"), &[]);
                        barrier.wait();
                        store.publish(draft, Some(expected), &|| true)
                    })
                })
                .collect();
            writers
                .into_iter()
                .map(|writer| writer.join().expect("runs"))
                .collect()
        });
        let created = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(created, 1);
        for result in &results {
            match result {
                Ok(written) => assert_eq!(written.version, expected + 1),
                Err(WriteError::Conflict { server, .. }) => assert_eq!(*server, expected + 1),
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(told(&world.store, &before).expect("goes on").len(), 1);
    }
}

#[test]
fn writers_without_an_expected_version_make_numbers_without_a_hole() {
    // D3
    const WRITERS: u64 = 32;
    let world = World::new();
    let before = head(&world.store);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = &world.store;
            scope.spawn(move || {
                publish(store, "/shared/dir/one.md", &format!("by {writer}")).expect("publishes");
                publish(store, &format!("/new/dir/{writer}.md"), "own").expect("publishes");
            });
        }
    });
    let page = world
        .store
        .versions(&path("/shared/dir/one.md"), &ALL)
        .expect("a document");
    assert_eq!(
        (page.total, page.current, page.chain_valid),
        (WRITERS, WRITERS, true)
    );
    let changes = told(&world.store, &before).expect("goes on");
    let numbers: Vec<u64> = changes
        .iter()
        .filter(|(_, change)| change.path.as_str() == "/shared/dir/one.md")
        .map(|(_, change)| change.version)
        .collect();
    assert_eq!(numbers, (1..=WRITERS).collect::<Vec<_>>());
    let seqs: Vec<u64> = changes.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(seqs, (1..=2 * WRITERS).collect::<Vec<_>>());
    let last = fetch(&world.store, "/shared/dir/one.md").expect("a document");
    assert_eq!(last.info.version, WRITERS);
}

#[test]
fn readers_never_see_two_versions_mixed_nor_nothing() {
    // D6
    const PUBLISHES: usize = 120;
    let world = World::new();
    let text = |number: usize| format!("{number}\n").repeat(20_000);
    let first = draft("/big.md", &text(0), &[("number", "0")]);
    world
        .store
        .publish(first, None, &|| true)
        .expect("publishes");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = 0;
                while !is_over.load(Ordering::Acquire) {
                    let fetched = fetch(&world.store, "/big.md").expect("always there");
                    assert_eq!(fetched.info.content_hash, ContentHash::of(&fetched.body));
                    let number: u64 = fetched.info.metadata["number"].parse().expect("ours");
                    assert_eq!(fetched.info.version, number + 1);
                    assert!(fetched.info.version >= last);
                    last = fetched.info.version;
                    let page = world.store.versions(&path("/big.md"), &ALL).expect("there");
                    assert!(page.chain_valid);
                    let request = ListRequest {
                        page_size: 10,
                        after: None,
                        include_archived: false,
                    };
                    let list = world
                        .store
                        .list(&path("/"), &request, &|_| true)
                        .expect("there");
                    assert_eq!(list.entries.len(), 1);
                }
            });
        }
        for number in 1..=PUBLISHES {
            let number_text = number.to_string();
            let mut pairs = vec![("number", number_text.as_str())];
            if number % 5 == 0 {
                pairs.push(("retention", "2"));
            }
            let draft = draft("/big.md", &text(number), &pairs);
            world
                .store
                .publish(draft, None, &|| true)
                .expect("publishes");
        }
        is_over.store(true, Ordering::Release);
    });
}

#[test]
fn archiving_against_writing_has_two_outcomes_and_the_last_told_is_true() {
    // D19
    let world = World::new();
    for round in 0..60 {
        let at = format!("/r{round}.md");
        publish(&world.store, &at, "base").expect("publishes");
        let before = head(&world.store);
        let barrier = Barrier::new(3);
        thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                archive(&world.store, &at).expect("archives");
            });
            scope.spawn(|| {
                barrier.wait();
                let written = publish(&world.store, &at, "new");
                assert!(matches!(written, Ok(_) | Err(WriteError::Archived)));
            });
            scope.spawn(|| {
                barrier.wait();
                match append(&world.store, &at, "more", 1) {
                    Ok(_) | Err(WriteError::Archived | WriteError::Conflict { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            });
        });
        let changes = told(&world.store, &before).expect("goes on");
        let last = &changes.last().expect("something happened").1;
        assert_eq!(last.op, Op::Archive);
        assert!(matches!(
            fetch(&world.store, &at),
            Err(ReadError::Archived(_))
        ));
        let page = world.store.versions(&path(&at), &ALL).expect("a document");
        assert_eq!(page.current, last.version);
    }
}

#[test]
fn what_was_told_is_read_at_once_by_path_version_and_hash() {
    // D9
    let world = World::new();
    let is_over = AtomicBool::new(false);
    let start = head(&world.store);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut since = start.clone();
            let mut count = 0;
            loop {
                let was_over = is_over.load(Ordering::Acquire);
                let changes = told(&world.store, &since).expect("goes on");
                for (seq, change) in &changes {
                    let which = Which::Version(change.version);
                    let by_number = world.store.fetch(&change.path, which).expect("there");
                    assert_eq!(by_number.info.content_hash, change.hash);
                    assert!(by_number.current >= change.version);
                    let by_hash = world.store.fetch_by_hash(&change.hash, &|_| true);
                    assert_eq!(by_hash.expect("there").body, by_number.body);
                    since = Cursor::new(since.epoch.clone(), Seq::new(*seq));
                    count += 1;
                }
                if was_over && changes.is_empty() {
                    return count;
                }
            }
        });
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let store = &world.store;
                scope.spawn(move || {
                    for number in 0..60 {
                        let at = format!("/w/{}.md", (writer + number) % 5);
                        publish(store, &at, &format!("{writer} {number}")).expect("publishes");
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().expect("runs");
        }
        is_over.store(true, Ordering::Release);
        assert_eq!(reader.join().expect("runs"), 240);
    });
}

/// Reads a directory page by page, as a client does that has nothing yet.
fn listed(store: &FileStore) -> View {
    let mut known = View::new();
    let mut request = ListRequest {
        page_size: 3,
        after: None,
        include_archived: true,
    };
    loop {
        let Ok(page) = store.list(&path("/w"), &request, &|_| true) else {
            return known; // Nothing is there yet.
        };
        request.after = page.entries.last().map(|entry| entry.name.clone());
        for entry in page.entries {
            let (version, hash) = entry.document.expect("no directories");
            let archived = entry.archived;
            let seen = Seen {
                version,
                hash,
                archived,
            };
            known.insert(format!("/w/{}", entry.name), seen);
        }
        if page.complete {
            return known;
        }
    }
}

#[test]
fn who_watches_then_lists_then_applies_what_was_told_knows_the_tree() {
    // D23
    let world = World::new();
    let is_over = AtomicBool::new(false);
    let rebuild = || {
        let mut rebuilt = Vec::new();
        while !is_over.load(Ordering::Acquire) || rebuilt.is_empty() {
            let since = head(&world.store);
            rebuilt.push((since, listed(&world.store)));
            thread::yield_now();
        }
        rebuilt
    };
    let rebuilt: Vec<(Cursor, View)> = thread::scope(|scope| {
        let rebuilders = [scope.spawn(rebuild), scope.spawn(rebuild)];
        let writers = [0, 1, 2, 3].map(|writer| {
            let store = &world.store;
            scope.spawn(move || {
                for number in 0..40 {
                    let at = format!("/w/{}.md", (writer * 5 + number) % 13);
                    // Archived by another writer meanwhile, or not there yet: both are fine.
                    let _ = publish(store, &at, &format!("{writer} {number}"));
                    if number % 3 == 0 {
                        let _ = archive(store, &at);
                        let _ = publish(store, &at, "");
                    }
                }
            })
        });
        for writer in writers {
            writer.join().expect("runs");
        }
        is_over.store(true, Ordering::Release);
        let rebuilt = rebuilders.map(|rebuilder| rebuilder.join().expect("runs"));
        rebuilt.into_iter().flatten().collect()
    });
    let (end, tree) = (head(&world.store), view(&world.store));
    assert!(rebuilt.iter().any(|(since, _)| *since != end));
    for (since, mut known) in rebuilt {
        for (_, change) in told(&world.store, &since).expect("resumes") {
            learn(&mut known, &change);
        }
        assert_eq!(known, tree, "from {since}");
    }
}
