//! Hand-written files becoming documents.

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use documents::{Config, Existing, FileStore, ImportError, Outcome, ReadError, WriteError};
use storage::Disk;
use support::model::{assert_sound, open_disk, view};
use support::*;
use testkit::disk::{CrashingDisk, Found, Survives};
use wire::DocPath;

/// Imports a folder and tells of each file what became of it.
fn import(store: &FileStore, folder: &Path, existing: Existing) -> Vec<(String, String)> {
    let source = Disk::open(folder).expect("a folder");
    let mut results = Vec::new();
    store
        .import(
            &source,
            &path("/wiki"),
            existing,
            &mut |file, result, progress| {
                assert!(progress.done <= progress.total);
                let result = match result {
                    Ok(written) => format!("{:?} {}", written.outcome, written.version),
                    Err(error) => error.to_string(),
                };
                results.push((file.display().to_string(), result));
            },
        )
        .expect("a folder that can be read");
    results
}

fn real_wiki() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |at: &str, bytes: &[u8]| {
        let file = folder.path().join(at);
        fs::create_dir_all(file.parent().expect("a parent")).expect("makes");
        fs::write(file, bytes).expect("writes");
    };
    put("home.md", b"# Home\r\n\r\nLines of the other kind.\r\n");
    put("bom.md", b"\xEF\xBB\xBF---\ntitle: mine\n---\ntext");
    put("latin.md", b"caf\xE9");
    put("empty.md", b"");
    put("large.md", &vec![b'a'; 2 << 20]);
    put("Case.md", b"upper");
    put("case.md", b"lower");
    put("deep/er/page.md", b"deep");
    put("picture.png", b"\x89PNG");
    put(".git/config", b"[core]");
    put("versions/x.md", b"not ours");
    symlink("/etc/passwd", folder.path().join("leak.md")).expect("links");
    folder
}

#[test]
fn each_file_of_a_folder_lands_or_is_refused_with_its_reason() {
    // D92, D41, D43
    let world = World::new();
    let folder = real_wiki();
    let results = import(&world.store, folder.path(), Existing::Keep);
    let expected = [
        (".git", "the directory is not one of documents"),
        ("Case.md", "Created 1"),
        ("bom.md", "Created 1"),
        ("case.md", "Created 1"),
        ("deep/er/page.md", "Created 1"),
        ("empty.md", "the file is empty"),
        ("home.md", "Created 1"),
        ("large.md", "document body exceeds 1048576 bytes"),
        ("latin.md", "document body must be valid UTF-8 text"),
        ("leak.md", "symbolic links are not followed"),
        ("picture.png", "publish path must end in .md"),
        ("versions", "the directory is not one of documents"),
    ]
    .map(|(file, result)| (file.to_owned(), result.to_owned()));
    assert_eq!(results, expected);
    assert_eq!(
        body(&world.store, "/wiki/home.md"),
        "# Home\r\n\r\nLines of the other kind.\r\n"
    );
    assert_eq!(
        body(&world.store, "/wiki/bom.md"),
        "\u{FEFF}---\ntitle: mine\n---\ntext"
    );
}

#[test]
fn a_second_import_changes_nothing_and_overwrites_only_when_asked() {
    // D92
    let world = World::new();
    let folder = real_wiki();
    import(&world.store, folder.path(), Existing::Keep);
    let before = head(&world.store);
    let again = import(&world.store, folder.path(), Existing::Keep);
    assert!(
        again
            .iter()
            .all(|(_, result)| !result.starts_with("Created"))
    );
    assert_eq!(told(&world.store, &before).expect("goes on"), []);

    fs::write(folder.path().join("home.md"), "# Another home").expect("writes");
    let kept = import(&world.store, folder.path(), Existing::Keep);
    let refused = kept
        .iter()
        .find(|(file, _)| file == "home.md")
        .expect("told");
    assert!(refused.1.contains("other content"));
    import(&world.store, folder.path(), Existing::Overwrite);
    assert_eq!(body(&world.store, "/wiki/home.md"), "# Another home");
    assert_eq!(told(&world.store, &before).expect("goes on").len(), 1);
}

#[test]
fn a_flat_file_is_no_document_and_is_never_overwritten() {
    // D87
    let world = World::with(|root| {
        fs::create_dir(root.join("notes")).expect("makes");
        fs::write(root.join("notes/tea.md"), "by hand").expect("writes");
    });
    assert!(matches!(
        fetch(&world.store, "/notes/tea.md"),
        Err(ReadError::NotFound)
    ));
    assert!(view(&world.store).is_empty());
    let refused = publish(&world.store, "/notes/tea.md", "over it").expect_err("refused");
    assert!(matches!(refused, WriteError::FlatFile { .. }));
    assert!(refused.to_string().contains("tidings import"));
    assert_eq!(
        fs::read_to_string(world.at("notes/tea.md")).expect("there"),
        "by hand"
    );

    let mut results = Vec::new();
    world
        .store
        .import_in_place(&DocPath::root(), &mut |_, result, _| results.push(result))
        .expect("imports");
    let [Ok(written)] = &results[..] else {
        panic!("{results:?}");
    };
    assert_eq!((written.outcome, written.version), (Outcome::Created, 1));
    assert_eq!(body(&world.store, "/notes/tea.md"), "by hand");
    let link = fs::read_link(world.at("notes/tea.md")).expect("a link");
    assert_eq!(link, Path::new("versions/tea.md/v1"));
    let hidden = fs::read_dir(world.at("notes/versions/tea.md"))
        .expect("a directory")
        .count();
    assert_eq!(hidden, 1, "the copy is gone");
    assert_eq!(
        publish(&world.store, "/notes/tea.md", "and on")
            .expect("ok")
            .version,
        2
    );
}

#[test]
fn an_import_in_place_can_be_killed_anywhere_and_the_bytes_are_there() {
    // D87, D48
    let plant = || {
        let disk = CrashingDisk::new();
        disk.plant("notes/tea.md", b"by hand");
        disk
    };
    let disk = plant();
    let store = open_disk(&disk, Config::default()).expect("opens");
    let start = disk.operations();
    store
        .import_in_place(&DocPath::root(), &mut |_, _, _| {})
        .expect("imports");
    let total = disk.operations() - start;
    for at in 0..total {
        let disk = plant();
        let store = open_disk(&disk, Config::default()).expect("opens");
        let before = head(&store);
        disk.crash_after(at);
        let _ = store.import_in_place(&DocPath::root(), &mut |_, _, _| {});
        drop(store);
        let cuts = Survives::all(6).map(|survives| disk.crash(survives));
        for image in cuts.chain([disk.kill()]) {
            assert!(has_bytes(&image), "operation {at}");
            let store = open_disk(&image, Config::default()).expect("opens");
            assert_eq!(store.report().new_epoch, None, "operation {at}");
            let is_document = fetch(&store, "/notes/tea.md").is_ok();
            let changes = told(&store, &before).expect("goes on");
            assert_eq!(changes.len(), usize::from(is_document), "operation {at}");
            if !is_document {
                let mut results = Vec::new();
                store
                    .import_in_place(&DocPath::root(), &mut |_, result, _| results.push(result))
                    .expect("imports");
                assert!(
                    matches!(results[..], [Ok(_)]),
                    "operation {at}: {results:?}"
                );
            }
            assert_eq!(body(&store, "/notes/tea.md"), "by hand");
            assert_sound(&store);
        }
    }
}

/// True if some file of the tree ends in what the person wrote.
fn has_bytes(disk: &CrashingDisk) -> bool {
    disk.contents()
        .values()
        .any(|found| matches!(found, Found::File(bytes) if bytes.ends_with(b"by hand")))
}

#[test]
fn a_document_whose_link_an_editor_replaced_by_a_file_goes_on_by_import() {
    // D65, D69, D87
    let mut world = World::new();
    publish(&world.store, "/tea.md", "one").expect("publishes");
    world.restart(|root| {
        fs::remove_file(root.join("tea.md")).expect("removes");
        fs::write(root.join("tea.md"), "two, saved by an editor").expect("writes");
    });
    assert!(world.store.report().new_epoch.is_some());
    let refused = publish(&world.store, "/tea.md", "three").expect_err("refused");
    assert!(matches!(refused, WriteError::FlatFile { .. }));
    let mut results = Vec::new();
    world
        .store
        .import_in_place(&DocPath::root(), &mut |_, result, _| results.push(result))
        .expect("imports");
    assert!(
        matches!(&results[..], [Ok(written)] if written.version == 2),
        "{results:?}"
    );
    assert_eq!(body(&world.store, "/tea.md"), "two, saved by an editor");
}

#[test]
fn refusals_of_an_import_in_place_leave_the_file_alone() {
    // D92
    let world = World::with(|root| {
        fs::write(root.join("latin.md"), b"caf\xE9").expect("writes");
        fs::write(root.join("notes.txt"), "text").expect("writes");
    });
    let before = tree(world.root());
    let mut results = Vec::new();
    world
        .store
        .import_in_place(&DocPath::root(), &mut |_, result, _| results.push(result))
        .expect("imports");
    assert!(
        results
            .iter()
            .all(|result| matches!(result, Err(ImportError::Draft(_))))
    );
    assert_eq!(tree(world.root()), before);
}
