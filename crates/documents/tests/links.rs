//! Links that lead out of the tree, put in the place of a directory while the store runs.

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use documents::{ListRequest, VersionsRequest, Which};
use support::*;

const ROUNDS: u32 = 400;

/// Puts the link in the place of the directory and takes it away again, until `is_over`.
fn swap(root: &Path, is_over: &AtomicBool) {
    let (place, aside, link) = (root.join("notes"), root.join(".aside"), root.join(".link"));
    while !is_over.load(Ordering::Acquire) {
        fs::rename(&place, &aside).expect("moves");
        fs::rename(&link, &place).expect("moves");
        fs::rename(&place, &link).expect("moves");
        fs::rename(&aside, &place).expect("moves");
    }
}

#[test]
fn a_directory_swapped_for_a_link_under_requests_shows_and_takes_nothing_outside() {
    // D31
    let outside = tempfile::tempdir().expect("a directory");
    let versions = outside.path().join("versions/tea.md");
    fs::create_dir_all(&versions).expect("makes");
    let planted = "---\nversion: 1\narchived: false\n---\noutside";
    for number in 1..=3 {
        fs::write(versions.join(format!("v{number}")), planted).expect("writes");
    }
    symlink("versions/tea.md/v3", outside.path().join("tea.md")).expect("links");
    let before = tree(outside.path());

    let mut world = World::new();
    publish(&world.store, "/notes/tea.md", "inside 1").expect("publishes");
    symlink(outside.path(), world.at(".link")).expect("links");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| swap(world.root(), &is_over));
        let at = path("/notes/tea.md");
        for round in 0..ROUNDS {
            for which in [Which::Current, Which::Version(1)] {
                if let Ok(fetched) = world.store.fetch(&at, which) {
                    assert!(fetched.body.starts_with(b"inside"), "round {round}");
                }
            }
            // Each may fail while the link is there; what it may not do is to follow it.
            let _ = publish(&world.store, "/notes/tea.md", &format!("inside {round}"));
            let _ = publish(&world.store, &format!("/notes/{round}.md"), "inside");
            let _ = archive(&world.store, &format!("/notes/{round}.md"));
            let (page_size, before) = (10, None);
            let request = VersionsRequest { page_size, before };
            let _ = world.store.versions(&at, &request);
            let request = ListRequest {
                page_size,
                after: None,
                include_archived: true,
            };
            let _ = world.store.list(&path("/notes"), &request, &|_| true);
        }
        is_over.store(true, Ordering::Release);
    });
    assert_eq!(tree(outside.path()), before);
    publish(&world.store, "/notes/tea.md", "inside at last").expect("works again");
    assert_eq!(body(&world.store, "/notes/tea.md"), "inside at last");
    world.restart(|_| {});
    assert_eq!(body(&world.store, "/notes/tea.md"), "inside at last");
}
