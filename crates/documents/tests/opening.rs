//! What an opening makes of a tree that was changed while nobody served it.

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use documents::{Config, FileStore, OpenError, ReadError, VersionsRequest, Which, WriteError};
use support::*;
use wire::GapReason;

const ALL: VersionsRequest = VersionsRequest {
    page_size: 1000,
    before: None,
};

/// Five versions of one document and one of another, which is archived.
fn furnished() -> World {
    let world = World::new();
    for number in 1..=5 {
        publish(&world.store, "/notes/tea.md", &format!("tea {number}\n")).expect("publishes");
    }
    publish(&world.store, "/notes/coffee.md", "coffee\n").expect("publishes");
    archive(&world.store, "/notes/coffee.md").expect("archives");
    world
}

/// Meddles with the tree and asserts that a watcher is told by a resync.
fn assert_new_epoch(meddle: impl FnOnce(&Path), what: &str) -> World {
    let mut world = furnished();
    let before = head(&world.store);
    world.restart(meddle);
    let gap = told(&world.store, &before).expect_err(what);
    assert_eq!(gap.reason, GapReason::Epoch, "{what}");
    let differences = &world.store.report().differences;
    assert_eq!(differences.len(), 1, "{what}: {differences:?}");
    let next = head(&world.store);
    world.restart(|_| {});
    assert_eq!(told(&world.store, &next).expect("goes on"), [], "{what}");
    world
}

fn edit(root: &Path, at: &str, from: &str, to: &str) {
    let text = fs::read_to_string(root.join(at)).expect("a file");
    fs::write(root.join(at), text.replace(from, to)).expect("writes");
}

#[test]
fn an_edit_by_hand_while_stopped_begins_a_new_epoch() {
    // D65
    let world = assert_new_epoch(
        |root| edit(root, "notes/tea.md", "tea 5", "mud 5"),
        "the newest version, through the link",
    );
    assert_eq!(body(&world.store, "/notes/tea.md"), "mud 5\n");
    let world = assert_new_epoch(
        |root| edit(root, "notes/versions/tea.md/v2", "tea 2", "mud 2"),
        "an older version",
    );
    // D68
    let page = world
        .store
        .versions(&path("/notes/tea.md"), &ALL)
        .expect("a document");
    assert!(!page.chain_valid);
    let second = world
        .store
        .fetch(&path("/notes/tea.md"), Which::Version(2))
        .expect("there");
    assert_eq!(&second.body[..], b"mud 2\n");
    publish(&world.store, "/notes/tea.md", "tea 6\n").expect("goes on");
    assert_new_epoch(
        |root| fs::remove_file(root.join("notes/versions/tea.md/v3")).expect("removes"),
        "a version was removed",
    );
    assert_new_epoch(
        |root| fs::write(root.join("notes/versions/tea.md/archive-state"), "true\n").expect("ok"),
        "the sidecar was flipped",
    );
    assert_new_epoch(
        |root| fs::remove_file(root.join("notes/versions/coffee.md/archive-state")).expect("ok"),
        "the sidecar was removed",
    );
    assert_new_epoch(
        |root| {
            fs::remove_file(root.join("notes/tea.md")).expect("removes");
            fs::remove_dir_all(root.join("notes/versions/tea.md")).expect("removes");
        },
        "the whole document was removed",
    );
}

#[test]
fn a_document_copied_in_by_hand_is_served_in_a_new_epoch() {
    // D65, D70: also what the original does while it serves the directory.
    let world = assert_new_epoch(
        |root| {
            fs::create_dir(root.join("notes/versions/mate.md")).expect("makes");
            let file = "---\nversion: 1\narchived: false\ntype: Document\n---\nmate\n";
            fs::write(root.join("notes/versions/mate.md/v1"), file).expect("writes");
            symlink("versions/mate.md/v1", root.join("notes/mate.md")).expect("links");
            fs::write(root.join(".changes"), "---\nstatus: ok\n---\n").expect("writes");
        },
        "a document was copied in",
    );
    assert_eq!(body(&world.store, "/notes/mate.md"), "mate\n");
    let world = assert_new_epoch(
        |root| {
            let file = "---\nversion: 6\narchived: false\n---\ntea 6, by the original\n";
            fs::write(root.join("notes/versions/tea.md/v6"), file).expect("writes");
            fs::remove_file(root.join("notes/tea.md")).expect("removes");
            symlink("versions/tea.md/v6", root.join("notes/tea.md")).expect("links");
        },
        "the original published",
    );
    assert_eq!(
        body(&world.store, "/notes/tea.md"),
        "tea 6, by the original\n"
    );
}

#[test]
fn a_document_renamed_by_hand_is_named_at_both_places() {
    // D65
    let mut world = furnished();
    let before = head(&world.store);
    world.restart(|root| {
        let versions = root.join("notes/versions");
        fs::remove_file(root.join("notes/tea.md")).expect("removes");
        fs::rename(versions.join("tea.md"), versions.join("mate.md")).expect("moves");
        symlink("versions/mate.md/v5", root.join("notes/mate.md")).expect("links");
    });
    let gap = told(&world.store, &before).expect_err("resyncs");
    assert_eq!(gap.reason, GapReason::Epoch);
    let named = format!("{:?}", world.store.report().differences);
    for at in ["/notes/tea.md", "/notes/mate.md"] {
        assert!(named.contains(at), "{named}");
    }
    assert_eq!(body(&world.store, "/notes/mate.md"), "tea 5\n");
    let gone = fetch(&world.store, "/notes/tea.md");
    assert!(matches!(gone, Err(ReadError::NotFound)));
}

#[test]
fn a_link_removed_by_hand_hides_the_document_and_its_numbers_stay_used() {
    // D69
    let world = assert_new_epoch(
        |root| fs::remove_file(root.join("notes/tea.md")).expect("removes"),
        "the link was removed",
    );
    assert!(matches!(
        fetch(&world.store, "/notes/tea.md"),
        Err(ReadError::NotFound)
    ));
    let written = publish(&world.store, "/notes/tea.md", "again\n").expect("publishes");
    assert_eq!(written.version, 6);
    assert_eq!(body(&world.store, "/notes/tea.md"), "again\n");
}

#[test]
fn a_link_that_leads_to_an_older_version_or_to_nothing_is_made_anew() {
    // D69: what is served doesn't change, so the epoch doesn't either.
    for target in ["versions/tea.md/v2", "versions/tea.md/v9"] {
        let mut world = furnished();
        let before = head(&world.store);
        world.restart(|root| {
            fs::remove_file(root.join("notes/tea.md")).expect("removes");
            symlink(target, root.join("notes/tea.md")).expect("links");
        });
        assert_eq!(told(&world.store, &before).expect("goes on"), []);
        assert_eq!(body(&world.store, "/notes/tea.md"), "tea 5\n");
        let link = fs::read_link(world.at("notes/tea.md")).expect("a link");
        assert_eq!(link, Path::new("versions/tea.md/v5"));
    }
}

#[test]
fn a_version_that_nothing_proves_is_set_aside_and_its_number_is_free() {
    // D53
    let mut world = furnished();
    let before = head(&world.store);
    world.restart(|root| {
        let half = "---\nversion: 6\narchived: false\n---\nhalf a docu";
        fs::write(root.join("notes/versions/tea.md/v6"), half).expect("writes");
    });
    assert_eq!(told(&world.store, &before).expect("goes on"), []);
    let aside = &world.store.report().set_aside;
    assert_eq!(aside[..], ["notes/versions/tea.md/.v6.aside"]);
    assert!(world.at(&aside[0]).exists());
    assert_eq!(
        publish(&world.store, "/notes/tea.md", "tea 6\n")
            .expect("ok")
            .version,
        6
    );
}

#[test]
fn the_newest_version_full_of_nul_gives_way_to_the_one_before() {
    // D53
    for ruin in ["", "---\nversion: 5\narch", "\0\0\0\0\0\0\0\0"] {
        let world = assert_new_epoch(
            |root| fs::write(root.join("notes/versions/tea.md/v5"), ruin).expect("writes"),
            "the newest version is no version file",
        );
        assert_eq!(body(&world.store, "/notes/tea.md"), "tea 4\n");
        assert_eq!(
            publish(&world.store, "/notes/tea.md", "tea 5\n")
                .expect("ok")
                .version,
            5
        );
    }
}

#[test]
fn touched_files_are_no_edit() {
    // D13
    let mut world = furnished();
    let before = head(&world.store);
    world.restart(|root| {
        for number in 1..=5 {
            let file = root.join(format!("notes/versions/tea.md/v{number}"));
            let text = fs::read(&file).expect("reads");
            fs::remove_file(&file).expect("removes");
            fs::write(&file, text).expect("writes");
        }
    });
    assert_eq!(told(&world.store, &before).expect("goes on"), []);
}

#[test]
fn an_edit_by_hand_while_running_is_told_by_the_first_read_that_meets_it() {
    // D67
    let world = furnished();
    let before = head(&world.store);
    edit(
        world.root(),
        "notes/versions/tea.md/v5",
        "tea 5",
        "mud five",
    );
    let fetched = fetch(&world.store, "/notes/tea.md").expect("reads");
    assert_eq!(&fetched.body[..], b"mud five\n");
    assert_eq!(
        fetched.info.content_hash,
        wire::ContentHash::of(b"mud five\n")
    );
    let changes = told(&world.store, &before).expect("told");
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].1.version, 5);
    assert_eq!(changes[0].1.hash, fetched.info.content_hash);
    // A publish chains to the bytes that are there.
    publish(&world.store, "/notes/tea.md", "tea 6\n").expect("publishes");
    let page = world
        .store
        .versions(&path("/notes/tea.md"), &ALL)
        .expect("a document");
    assert!(page.chain_valid);
}

#[test]
fn a_version_removed_by_hand_while_running_is_an_error_for_it_and_breaks_the_chain() {
    // D54, D68: never "not found" while we still promise it.
    let world = furnished();
    fs::remove_file(world.at("notes/versions/tea.md/v3")).expect("removes");
    let third = world.store.fetch(&path("/notes/tea.md"), Which::Version(3));
    assert!(matches!(third, Err(ReadError::Storage(_))));
    let page = world
        .store
        .versions(&path("/notes/tea.md"), &ALL)
        .expect("a document");
    assert!(!page.chain_valid);
    assert_eq!(body(&world.store, "/notes/tea.md"), "tea 5\n");
}

#[test]
fn an_edit_met_while_running_is_still_known_after_a_kill() {
    // D67
    let world = furnished();
    let before = head(&world.store);
    edit(world.root(), "notes/versions/tea.md/v5", "tea 5", "mud 5");
    fetch(&world.store, "/notes/tea.md").expect("reads");
    let World { dir, store } = world;
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.report().new_epoch, None);
    assert_eq!(told(&store, &before).expect("goes on").len(), 1);
}

#[test]
fn a_missing_version_in_the_middle_breaks_the_chain_and_a_missing_beginning_does_not() {
    // D68
    let mut world = furnished();
    world.restart(|root| {
        fs::remove_file(root.join("notes/versions/tea.md/v1")).expect("removes");
        fs::remove_file(root.join("notes/versions/tea.md/v2")).expect("removes");
    });
    let page = world
        .store
        .versions(&path("/notes/tea.md"), &ALL)
        .expect("a document");
    assert_eq!((page.total, page.current, page.chain_valid), (3, 5, true));
    world.restart(|root| {
        fs::remove_file(root.join("notes/versions/tea.md/v4")).expect("removes");
    });
    let page = world
        .store
        .versions(&path("/notes/tea.md"), &ALL)
        .expect("a document");
    assert_eq!((page.total, page.current, page.chain_valid), (2, 5, false));
    assert_eq!(
        publish(&world.store, "/notes/tea.md", "tea 6\n")
            .expect("ok")
            .version,
        6
    );
}

#[test]
fn a_second_process_is_refused_by_name() {
    // D57
    let world = World::new();
    let second = FileStore::open(world.root(), Config::default(), &mut |_| {});
    let process = std::process::id().to_string();
    assert!(matches!(second, Err(OpenError::InUse { process: held }) if held == process));
    publish(&world.store, "/tea.md", "tea").expect("the first notices nothing");
}

#[test]
fn a_new_epoch_can_be_asked_for() {
    // D62: a snapshot put back below the file system can't be seen.
    let World { dir, store } = furnished();
    let before = head(&store);
    store.close().expect("closes");
    let config = Config {
        new_epoch: true,
        ..Config::default()
    };
    let store = FileStore::open(dir.path(), config, &mut |_| {}).expect("opens");
    assert_eq!(
        told(&store, &before).expect_err("resyncs").reason,
        GapReason::Epoch
    );
}

#[test]
fn things_that_are_not_ours_are_left_alone() {
    // D26, D31, D91
    let plant = |root: &Path| {
        for dir in [".git/objects", "notes/versions/tea.md", "shelf"] {
            fs::create_dir_all(root.join(dir)).expect("makes");
        }
        let outside = root.parent().expect("a parent").join("outside-secret");
        fs::write(&outside, "secret").expect("writes");
        symlink(&outside, root.join("leak.md")).expect("links");
        symlink(&outside, root.join("notes/versions/tea.md/v1")).expect("links");
        symlink("versions/tea.md/v1", root.join("notes/tea.md")).expect("links");
        symlink("/etc", root.join("etc")).expect("links");
        fs::write(root.join(".DS_Store"), [0; 64]).expect("writes");
        fs::write(root.join("shelf/flat.md"), "by hand").expect("writes");
        fs::write(root.join("shelf/tea.md~"), "by hand").expect("writes");
        let fifo = std::process::Command::new("mkfifo")
            .arg(root.join("x.md"))
            .status();
        assert!(fifo.expect("runs").success());
    };
    let mut world = World::with(plant);
    let before = tree_without_fifo(world.root());
    for at in [
        "/leak.md",
        "/notes/tea.md",
        "/etc/passwd",
        "/shelf/flat.md",
        "/x.md",
    ] {
        assert!(
            matches!(fetch(&world.store, at), Err(ReadError::NotFound)),
            "{at}"
        );
    }
    for at in ["/x.md", "/shelf/flat.md"] {
        publish(&world.store, at, "over it").expect_err(at);
    }
    for at in ["/leak.md", "/etc/x.md"] {
        let refused = publish(&world.store, at, "over it");
        assert!(
            matches!(refused, Err(WriteError::NotFound)),
            "{at}: {refused:?}"
        );
    }
    world.restart(|_| {});
    assert_eq!(tree_without_fifo(world.root()), before);
    fs::remove_file(
        world
            .root()
            .parent()
            .expect("a parent")
            .join("outside-secret"),
    )
    .expect("ok");
}

fn tree_without_fifo(root: &Path) -> Vec<(String, String)> {
    fs::rename(root.join("x.md"), root.join("../x-fifo")).expect("moves");
    let names = tree(root);
    fs::rename(root.join("../x-fifo"), root.join("x.md")).expect("moves back");
    names
}
