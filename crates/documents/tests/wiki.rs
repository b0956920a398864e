//! The import of a large folder in which a good part can't be imported.

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use documents::{Config, Existing, FileStore, Outcome};
use storage::Disk;
use support::model::{assert_sound, open_disk, view};
use support::{head, path, told};
use testkit::disk::CrashingDisk;

const FILES: usize = 2000;

/// Files of every kind by turns; how many of them are no documents.
fn fill(folder: &Path) -> usize {
    let mut refused = 0;
    for number in 0..FILES {
        let dir = folder.join(format!("d{}/\u{e9}", number % 40));
        fs::create_dir_all(&dir).expect("makes");
        let name = format!("{number} [x](y) #.md");
        let long = format!("{number}-{}.md", "n".repeat(240));
        let (name, bytes): (String, Vec<u8>) = match number % 12 {
            0 => (name, format!("\u{feff}# {number}\r\n").into()),
            1 => (name, format!("---\ntitle: {number}\n---\ntext").into()),
            2 => (name, b"caf\xe9".to_vec()),
            3 => (name, Vec::new()),
            4 => (format!("{number}.png"), b"\x89PNG".to_vec()),
            5 => (long, b"long".to_vec()),
            6 => (format!("Case-{number}.md"), b"upper".to_vec()),
            7 => (format!("case-{}.md", number - 1), b"lower".to_vec()),
            8 => (name, b"lines\r\nof the\rother kind".to_vec()),
            9 if number % 120 == 9 => (name, vec![b'a'; 2 << 20]),
            10 => {
                symlink("/etc/hostname", dir.join(&name)).expect("links");
                refused += 1;
                continue;
            }
            _ => (name, format!("page {number}").into()),
        };
        fs::write(dir.join(name), &bytes).expect("writes");
        refused += usize::from(matches!(number % 12, 2..=4) || bytes.len() > 1 << 20);
    }
    fs::create_dir_all(folder.join(".git/objects")).expect("makes");
    fs::write(folder.join(".git/objects/x.md"), "not ours").expect("writes");
    refused + 1
}

/// Created, unchanged and refused files of one run.
fn import(store: &FileStore, folder: &Path) -> (usize, usize, usize) {
    let source = Disk::open(folder).expect("a folder");
    let mut counts = (0, 0, 0);
    let mut last = 0;
    let read = store.import(
        &source,
        &path("/wiki"),
        Existing::Keep,
        &mut |_, result, progress| {
            assert_eq!(progress.done, last + 1);
            last = progress.done;
            match result.map(|written| (written.outcome, written.version)) {
                Ok((Outcome::Created, 1)) => counts.0 += 1,
                Ok((Outcome::Unchanged, 1)) => counts.1 += 1,
                Ok(other) => panic!("{other:?}"),
                Err(_) => counts.2 += 1,
            }
        },
    );
    read.expect("a folder that can be read");
    counts
}

#[test]
fn a_large_folder_lands_once_however_often_its_import_is_cut() {
    // D92
    let folder = tempfile::tempdir().expect("a folder");
    let refused = fill(folder.path());
    // The foreign directory is refused as one.
    let landing = FILES + 1 - refused;
    let mut disk = CrashingDisk::new();
    let mut store = open_disk(&disk, Config::default()).expect("opens");
    let start = head(&store);
    for cut in [1_000, 3_001, 5_002] {
        disk.crash_after(cut);
        let (created, ..) = import(&store, folder.path());
        assert!(created > 0 && created < landing, "{created} of {landing}");
        drop(store);
        disk = disk.kill();
        store = open_disk(&disk, Config::default()).expect("opens");
        assert_eq!(store.report().new_epoch, None);
    }
    let (created, unchanged, named) = import(&store, folder.path());
    assert_eq!((created + unchanged, named), (landing, refused));
    assert_eq!(view(&store).len(), landing);
    assert_eq!(told(&store, &start).expect("goes on").len(), landing);
    let since = head(&store);
    assert_eq!(import(&store, folder.path()), (0, landing, refused));
    assert_eq!(head(&store), since);
    assert_sound(&store);
}
