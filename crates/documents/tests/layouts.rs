//! Trees of both generations: the older one is converted, the present one opened as it is, and
//! what is written here has the form of the specification.

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use documents::{Config, FileStore, OpenError, ReadError, VersionsRequest, Which};
use storage::Storage;
use support::model::{assert_sound, open_disk, view};
use support::*;
use testkit::disk::{CrashingDisk, Survives};
use wire::ContentHash;

const ALL: VersionsRequest = VersionsRequest {
    page_size: 1000,
    before: None,
};

/// The files of a document in the older layout: metadata behind `meta.`, a chain, the flag inside.
fn march_files(bodies: &[&[u8]], archived: bool) -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> = Vec::new();
    for (place, body) in bodies.iter().enumerate() {
        let is_last = place + 1 == bodies.len();
        let mut file = format!(
            "---\nversion: {}\narchived: {}\n",
            place + 1,
            archived && is_last
        );
        if let Some(previous) = files.last() {
            file += &format!("previous-hash: {}\n", ContentHash::of(previous));
        }
        file += "meta.tags: hot, drinks\nmeta.title: Tea\n---\n";
        files.push([file.as_bytes(), body].concat());
    }
    files
}

fn plant_march(disk: &CrashingDisk) -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let documents = vec![
        (
            "notes/tea.md",
            march_files(&[b"one", b"two", b"three"], false),
        ),
        ("notes/old.md", march_files(&[b"gone"], true)),
        (
            "plain",
            march_files(&[b"\xE9t\xE9", b"Latin-1 \xFF"], false),
        ),
    ];
    for (at, files) in &documents {
        let (dir, name) = at.rsplit_once('/').unwrap_or(("", at));
        let shelf = Path::new(dir).join("versions");
        for (place, file) in files.iter().enumerate() {
            disk.plant(shelf.join(format!("{name}.v{}", place + 1)), file);
        }
        let text = format!("versions/{name}.v{}", files.len());
        disk.symlink(Path::new(&text), Path::new(at))
            .expect("links");
        disk.sync_dir(Path::new(dir)).expect("syncs");
    }
    documents
}

fn assert_as_the_older_server_gave(store: &FileStore, documents: &[(&str, Vec<Vec<u8>>)]) {
    for (at, files) in documents {
        let at = path(&format!("/{at}"));
        for (place, file) in files.iter().enumerate() {
            let number = place as u64 + 1;
            let fetched = store.fetch(&at, Which::Version(number)).expect("a version");
            assert_eq!(fetched.info.file_hash, ContentHash::of(file));
            assert!(file.ends_with(&fetched.body));
            assert_eq!(fetched.info.metadata["title"], "Tea");
        }
        let page = store.versions(&at, &ALL).expect("a document");
        assert_eq!((page.total, page.chain_valid), (files.len() as u64, true));
    }
    assert!(matches!(
        fetch(store, "/notes/old.md"),
        Err(ReadError::Archived(_))
    ));
}

#[test]
fn a_tree_of_the_older_layout_opens_with_all_it_had() {
    // D88, D16, D43
    let disk = CrashingDisk::new();
    let documents = plant_march(&disk);
    let store = open_disk(&disk, Config::default()).expect("opens");
    assert_as_the_older_server_gave(&store, &documents);
    let link = disk.read_link(Path::new("notes/tea.md")).expect("a link");
    assert_eq!(link, Path::new("versions/tea.md/v3"));
    assert_eq!(
        publish(&store, "/notes/tea.md", "four")
            .expect("ok")
            .version,
        4
    );
    assert_sound(&store);
}

#[test]
fn a_conversion_can_be_killed_anywhere_and_goes_on() {
    // D88, D48
    let disk = CrashingDisk::new();
    plant_march(&disk);
    let start = disk.operations();
    open_disk(&disk, Config::default()).expect("opens");
    let total = disk.operations() - start;
    for at in 0..total {
        let disk = CrashingDisk::new();
        let documents = plant_march(&disk);
        disk.crash_after(at);
        let _ = open_disk(&disk, Config::default());
        // No seeds: they tear a rename in two, and moving a file rests on its being one step.
        let cuts = Survives::all(0).map(|survives| disk.crash(survives));
        for image in cuts.chain([disk.kill()]) {
            let store = open_disk(&image, Config::default()).expect("opens");
            assert_as_the_older_server_gave(&store, &documents);
            assert_eq!(view(&store).len(), 3, "operation {at}");
        }
    }
}

#[test]
fn a_document_in_a_directory_named_versions_stays_readable() {
    // D35
    let disk = CrashingDisk::new();
    let files = march_files(&[b"hidden away"], false);
    disk.plant("notes/versions/versions/odd.md.v1", &files[0]);
    let text = Path::new("versions/odd.md.v1");
    disk.symlink(text, Path::new("notes/versions/odd.md"))
        .expect("links");
    let store = open_disk(&disk, Config::default()).expect("opens");
    assert_eq!(body(&store, "/notes/versions/odd.md"), "hidden away");
    drop(store);

    // Where its name is where another document's versions would have to lie, neither can give way.
    let disk = CrashingDisk::new();
    disk.plant("notes/versions/versions/tea.md.v1", &files[0]);
    disk.symlink(
        Path::new("versions/tea.md.v1"),
        Path::new("notes/versions/tea.md"),
    )
    .expect("links");
    disk.plant("notes/versions/tea.md.v1", &files[0]);
    disk.symlink(Path::new("versions/tea.md.v1"), Path::new("notes/tea.md"))
        .expect("links");
    let refused = open_disk(&disk, Config::default());
    assert!(matches!(refused, Err(OpenError::Migration { .. })));
}

#[test]
fn a_tree_of_the_present_layout_opens_and_its_broken_off_write_is_judged() {
    // D90, D53, D69
    let world = World::with(|root| {
        let versions = root.join("notes/versions/tea.md");
        fs::create_dir_all(&versions).expect("makes");
        let mut previous = None;
        for number in 1..=3 {
            let mut file = format!("---\nversion: {number}\narchived: false\n");
            if let Some(previous) = previous {
                file += &format!("previous-hash: {previous}\n");
            }
            file += &format!("meta.importance: 0.7\ntags: [drinks, hot]\n---\ntea {number}");
            previous = Some(ContentHash::of(file.as_bytes()));
            fs::write(versions.join(format!("v{number}")), file).expect("writes");
        }
        symlink("versions/tea.md/v1", root.join("notes/tea.md")).expect("links");
    });
    // Version 2 is proved by version 3, which nothing proves.
    assert_eq!(body(&world.store, "/notes/tea.md"), "tea 2");
    let fetched = fetch(&world.store, "/notes/tea.md").expect("a document");
    assert_eq!(fetched.info.metadata["tags"], "drinks,hot");
    assert_eq!(fetched.info.metadata["importance"], "0.7");
    assert_eq!(
        world.store.report().set_aside,
        ["notes/versions/tea.md/.v3.aside"]
    );
}

#[test]
fn what_is_written_has_the_form_of_the_specification() {
    // D90
    let world = World::new();
    let pairs = [
        ("tags", "drinks, hot"),
        ("importance", "0.7"),
        ("title", "Tea: green"),
    ];
    let allowed = &|| true;
    world
        .store
        .publish(draft("/notes/tea.md", "one", &pairs), None, allowed)
        .expect("publishes");
    publish(&world.store, "/notes/tea.md", "two").expect("publishes");
    archive(&world.store, "/notes/tea.md").expect("archives");
    let first = "---\nversion: 1\narchived: false\nmeta.importance: 0.7\ntags: [drinks, hot]\n\
                 title: Tea: green\ntype: Document\n---\none";
    let second = format!(
        "---\nversion: 2\narchived: false\nprevious-hash: {}\ntype: Document\n---\ntwo",
        ContentHash::of(first.as_bytes())
    );
    let expected = [
        ("notes", "dir"),
        ("notes/tea.md", "-> versions/tea.md/v2"),
        ("notes/versions", "dir"),
        ("notes/versions/tea.md", "dir"),
        ("notes/versions/tea.md/archive-state", "true\n"),
        ("notes/versions/tea.md/v1", first),
        ("notes/versions/tea.md/v2", &second),
    ]
    .map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(tree(world.root()), expected);
    let mode = |at: &str| {
        fs::metadata(world.at(at))
            .expect("there")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode("notes/versions/tea.md/v1"), 0o644);
    assert_eq!(mode("notes/versions/tea.md"), 0o755);
}

#[test]
fn a_sidecar_overrides_the_flag_of_the_newest_version() {
    // D88, D90
    let world = World::with(|root| {
        for (name, sidecar) in [
            ("a.md", Some("false\n")),
            ("b.md", None),
            ("c.md", Some("true\n")),
        ] {
            let versions = root.join("versions").join(name);
            fs::create_dir_all(&versions).expect("makes");
            let flag = name != "c.md";
            let file = format!("---\nversion: 1\narchived: {flag}\n---\ntext");
            fs::write(versions.join("v1"), file).expect("writes");
            if let Some(sidecar) = sidecar {
                fs::write(versions.join("archive-state"), sidecar).expect("writes");
            }
            symlink(format!("versions/{name}/v1"), root.join(name)).expect("links");
        }
    });
    fetch(&world.store, "/a.md").expect("live");
    assert!(matches!(
        fetch(&world.store, "/b.md"),
        Err(ReadError::Archived(_))
    ));
    assert!(matches!(
        fetch(&world.store, "/c.md"),
        Err(ReadError::Archived(_))
    ));
}

/// The store never needs more of a storage than the trait.
#[test]
fn a_store_opens_on_any_storage() {
    let disk: Arc<dyn Storage> = Arc::new(CrashingDisk::new());
    FileStore::open_in(disk, Config::default(), &mut |_| {}).expect("opens");
}
