//! Publishing, appending and archiving on a real disk.

mod support;

use documents::{Op, Outcome, ReadError, Which, WriteError};
use support::*;

#[test]
fn a_published_document_is_read_listed_and_told() {
    // D9
    let world = World::new();
    let start = head(&world.store);
    let written = publish(&world.store, "/notes/tea.md", "# Tea\n").expect("publishes");
    assert_eq!((written.outcome, written.version), (Outcome::Created, 1));
    assert_eq!(body(&world.store, "/notes/tea.md"), "# Tea\n");
    let changes = told(&world.store, &start).expect("resumes");
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].1.op, Op::Publish);
    assert_eq!(changes[0].1.hash, written.hash);
    let by_hash = world
        .store
        .fetch_by_hash(&written.hash, &|_| true)
        .expect("found");
    assert_eq!(by_hash.path.as_str(), "/notes/tea.md");
    let link = std::fs::read_link(world.at("notes/tea.md")).expect("a link");
    assert_eq!(link.to_str(), Some("versions/tea.md/v1"));
}

#[test]
fn a_document_survives_a_restart_under_the_same_epoch() {
    // D60
    let mut world = World::new();
    let start = head(&world.store);
    publish(&world.store, "/notes/tea.md", "one").expect("publishes");
    append(&world.store, "/notes/tea.md", "two", 1).expect("appends");
    archive(&world.store, "/notes/tea.md").expect("archives");
    world.restart(|_| {});
    assert_eq!(world.store.report().new_epoch, None);
    let changes = told(&world.store, &start).expect("resumes");
    let ops: Vec<Op> = changes.iter().map(|(_, change)| change.op).collect();
    assert_eq!(ops, [Op::Publish, Op::Append, Op::Archive]);
    let refused = fetch(&world.store, "/notes/tea.md");
    assert!(matches!(refused, Err(ReadError::Archived(_))));
    let second = world
        .store
        .fetch(&path("/notes/tea.md"), Which::Version(2))
        .expect("kept");
    assert_eq!(&second.body[..], b"one\ntwo");
    let conflict = append(&world.store, "/notes/tea.md", "x", 1);
    assert!(matches!(
        conflict,
        Err(WriteError::Conflict {
            server: 2,
            yours: 1
        })
    ));
}
