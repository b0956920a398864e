//! What work costs does not grow with what is there: counted, since time depends on the machine.

mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use documents::{Config, FileStore, ListRequest};
use storage::Storage as _;
use support::disks::CountingDisk;
use support::{append, archive, body, fetch, head, path, publish, told};
use testkit::disk::CrashingDisk;
use wire::{ContentHash, Cursor, Seq};

/// Versions of one document that are there before the first publish.
const VERSIONS: u64 = 50_000;

/// Documents of one directory that are there before the first publish.
const DOCUMENTS: u64 = 10_000;

fn open(disk: &CrashingDisk) -> (CountingDisk, FileStore) {
    disk.advance(Duration::from_secs(1));
    let counting = CountingDisk::new(disk.clone());
    let store = FileStore::open_in(Arc::new(counting.clone()), Config::default(), &mut |_| {});
    (counting, store.expect("opens"))
}

/// A document of `count` versions, as another server left it.
fn plant(disk: &CrashingDisk, name: &str, count: u64) {
    let mut previous: Option<ContentHash> = None;
    for number in 1..=count {
        let mut file = format!("---\nversion: {number}\narchived: false\n");
        if let Some(previous) = previous {
            writeln!(file, "previous-hash: {previous}").expect("a string grows");
        }
        file += "---\ntea";
        previous = Some(ContentHash::of(file.as_bytes()));
        disk.plant(format!("n/versions/{name}/v{number}"), file.as_bytes());
    }
    let text = format!("versions/{name}/v{count}");
    let link = Path::new("n").join(name);
    disk.symlink(Path::new(&text), &link).expect("links");
}

/// What each kind of work asks of the disk, by its name.
fn costs(counting: &CountingDisk, store: &FileStore, at: &str) -> BTreeMap<&'static str, u64> {
    let newest = fetch(store, at).expect("a document").current;
    let one = ListRequest {
        page_size: 10,
        after: None,
        include_archived: true,
    };
    BTreeMap::from([
        ("publish", {
            counting.count(|| drop(publish(store, at, "another").expect("publishes")))
        }),
        ("append", {
            counting.count(|| drop(append(store, at, "more", newest + 1).expect("appends")))
        }),
        ("fetch", counting.count(|| drop(body(store, at)))),
        ("list", {
            let page = |store: &FileStore| store.list(&path("/n"), &one, &|_| true);
            counting.count(|| drop(page(store).expect("a directory")))
        }),
        ("archive", {
            counting.count(|| drop(archive(store, at).expect("archives")))
        }),
        ("new document", {
            counting.count(|| drop(publish(store, &format!("{at}.new.md"), "x").expect("ok")))
        }),
    ])
}

#[test]
fn a_document_of_many_versions_is_written_as_cheaply_as_one_of_few() {
    // D95
    let disk = CrashingDisk::new();
    plant(&disk, "few.md", 3);
    plant(&disk, "many.md", VERSIONS);
    let (counting, store) = open(&disk);
    // The directories are known to last once they were written to.
    publish(&store, "/n/few.md", "warm").expect("publishes");
    publish(&store, "/n/many.md", "warm").expect("publishes");
    let (few, many) = ("/n/few.md", "/n/many.md");
    assert_eq!(
        costs(&counting, &store, many),
        costs(&counting, &store, few)
    );
    assert_eq!(
        fetch(&store, "/n/many.md.new.md").expect("there").current,
        1
    );
}

#[test]
fn a_directory_of_many_documents_is_used_as_cheaply_as_one_of_few() {
    // D95
    let of = |count: u64| {
        let disk = CrashingDisk::new();
        for number in 0..count {
            plant(&disk, &format!("{number}.md"), 1);
        }
        let (counting, store) = open(&disk);
        publish(&store, "/n/0.md", "warm").expect("publishes");
        costs(&counting, &store, "/n/1.md")
    };
    assert_eq!(of(DOCUMENTS), of(10));
}

#[test]
fn finding_where_to_resume_asks_nothing_of_the_disk() {
    // T62
    let disk = CrashingDisk::new();
    let (counting, store) = open(&disk);
    for number in 0..500 {
        publish(&store, &format!("/{}.md", number % 5), &format!("{number}")).expect("ok");
    }
    drop(store);
    drop(counting);
    let (counting, store) = open(&disk);
    let asked = counting.count(|| {
        for seq in (0..=500).step_by(20) {
            let since = Cursor::new(head(&store).epoch, Seq::new(seq));
            let rest = told(&store, &since).expect("resumes");
            assert_eq!(rest.len() as u64, 500 - seq);
        }
        for seq in [501, u64::MAX] {
            let since = Cursor::new(head(&store).epoch, Seq::new(seq));
            told(&store, &since).expect_err("is ahead");
        }
    });
    assert_eq!(asked, 0);
}
