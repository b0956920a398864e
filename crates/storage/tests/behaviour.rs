//! One suite over the disk, the disk walked name by name, and the crashing fake.
//!
//! A store that is tested on the fake may rely on nothing that a real disk does differently.

#![allow(clippy::unwrap_used)] // A panic is how a test reports, in what tests share too.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;

use storage::{Disk, Kind, LockError, Mode, Refusal, Storage};
use testkit::disk::CrashingDisk;

/// Runs a check on each implementation, each time on an empty root.
fn on_each(check: impl Fn(&dyn Storage)) {
    let dir = tempfile::tempdir().unwrap();
    check(&Disk::open(dir.path()).unwrap());
    let dir = tempfile::tempdir().unwrap();
    check(&Disk::open(dir.path()).unwrap().stepwise());
    check(&CrashingDisk::new());
}

fn put(storage: &dyn Storage, path: &str, bytes: &[u8]) {
    let file = storage.create_new(Path::new(path), Mode::Public).unwrap();
    file.write_at(0, bytes).unwrap();
}

fn content(storage: &dyn Storage, path: &str) -> io::Result<Vec<u8>> {
    storage.open(Path::new(path))?.read_all(1 << 20)
}

fn kinds(storage: &dyn Storage, path: &str) -> BTreeMap<String, Kind> {
    let mut found = BTreeMap::new();
    let mut visit = |entry: storage::Entry| {
        let seen = found.insert(entry.name.into_string().unwrap(), entry.kind);
        assert_eq!(seen, None);
    };
    storage.read_dir(Path::new(path), &mut visit).unwrap();
    found
}

fn kind_of<T: std::fmt::Debug>(result: io::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

fn refusal_of<T: std::fmt::Debug>(result: io::Result<T>) -> Option<Refusal> {
    Refusal::of(&result.unwrap_err())
}

#[test]
fn bytes_are_read_where_they_were_written() {
    on_each(|storage| {
        let file = storage.create_new(Path::new("f"), Mode::Private).unwrap();
        file.write_at(3, b"abc").unwrap();
        file.write_at(0, b"xy").unwrap();
        assert_eq!(content(storage, "f").unwrap(), b"xy\0abc");

        let mut buf = [0; 8];
        assert_eq!(file.read_at(4, &mut buf).unwrap(), 2);
        assert_eq!(file.read_at(6, &mut buf).unwrap(), 0);
        file.set_len(4).unwrap();
        file.set_len(5).unwrap();
        file.sync_data().unwrap();
        file.sync_all().unwrap();
        assert_eq!(content(storage, "f").unwrap(), b"xy\0a\0");

        let again = storage.open_write(Path::new("f")).unwrap();
        again.write_at(0, b"Z").unwrap();
        assert_eq!(file.read_all(5).unwrap(), b"Zy\0a\0");
        assert_eq!(refusal_of(file.read_all(4)), Some(Refusal::TooLong));
    });
}

#[test]
fn a_name_that_is_taken_is_never_made_anew() {
    on_each(|storage| {
        put(storage, "f", b"first");
        storage.create_dir(Path::new("d")).unwrap();
        storage
            .symlink(Path::new("nowhere"), Path::new("l"))
            .unwrap();
        for taken in ["f", "d", "l"] {
            let taken = Path::new(taken);
            let made = storage.create_new(taken, Mode::Public);
            assert_eq!(kind_of(made), ErrorKind::AlreadyExists);
            assert_eq!(kind_of(storage.create_dir(taken)), ErrorKind::AlreadyExists);
            let linked = storage.symlink(Path::new("f"), taken);
            assert_eq!(kind_of(linked), ErrorKind::AlreadyExists);
        }
        assert_eq!(content(storage, "f").unwrap(), b"first");
    });
}

#[test]
fn a_rename_replaces_and_a_new_one_does_not() {
    on_each(|storage| {
        put(storage, "a", b"a");
        put(storage, "b", b"b");
        let (a, b, c) = (Path::new("a"), Path::new("b"), Path::new("c"));
        assert_eq!(kind_of(storage.rename_new(a, b)), ErrorKind::AlreadyExists);
        storage.rename_new(a, c).unwrap();
        assert_eq!(kind_of(storage.stat(a)), ErrorKind::NotFound);
        storage.rename(c, b).unwrap();
        assert_eq!(content(storage, "b").unwrap(), b"a");
        assert_eq!(kind_of(storage.rename(a, b)), ErrorKind::NotFound);
        assert_eq!(kind_of(storage.rename_new(a, c)), ErrorKind::NotFound);

        storage.symlink(Path::new("b"), Path::new("tmp")).unwrap();
        storage.rename(Path::new("tmp"), b).unwrap();
        assert_eq!(storage.read_link(b).unwrap(), Path::new("b"));
    });
}

#[test]
fn directories_move_whole_and_go_only_when_empty() {
    on_each(|storage| {
        storage.create_dir(Path::new("d")).unwrap();
        storage.create_dir(Path::new("d/e")).unwrap();
        put(storage, "d/e/f", b"deep");
        put(storage, "f", b"");
        let d = Path::new("d");
        assert_eq!(kind_of(storage.remove_dir(d)), ErrorKind::DirectoryNotEmpty);
        assert_eq!(kind_of(storage.remove_file(d)), ErrorKind::IsADirectory);
        let f = Path::new("f");
        assert_eq!(kind_of(storage.remove_dir(f)), ErrorKind::NotADirectory);
        assert_eq!(kind_of(storage.rename(f, d)), ErrorKind::IsADirectory);
        assert_eq!(kind_of(storage.rename(d, f)), ErrorKind::NotADirectory);
        let inside = storage.rename(d, Path::new("d/e/d"));
        assert_eq!(kind_of(inside), ErrorKind::InvalidInput);

        storage.rename_new(d, Path::new("g")).unwrap();
        assert_eq!(content(storage, "g/e/f").unwrap(), b"deep");
        storage.sync_dir(Path::new("g/e")).unwrap();
        storage.sync_dir(Path::new("")).unwrap();
        storage.remove_file(Path::new("g/e/f")).unwrap();
        storage.remove_dir(Path::new("g/e")).unwrap();
        storage.remove_dir(Path::new("g")).unwrap();
        assert_eq!(
            kind_of(storage.sync_dir(Path::new("g"))),
            ErrorKind::NotFound
        );
    });
}

#[test]
fn a_listing_names_everything_once_with_its_kind() {
    on_each(|storage| {
        assert_eq!(kinds(storage, ""), BTreeMap::new());
        storage.create_dir(Path::new("d")).unwrap();
        storage.symlink(Path::new("d"), Path::new("l")).unwrap();
        put(storage, "f", b"");
        let expected = [("d", Kind::Dir), ("f", Kind::File), ("l", Kind::Symlink)];
        let expected = expected.map(|(name, kind)| (name.to_owned(), kind));
        assert_eq!(kinds(storage, ""), expected.into());

        let mut none = |_| panic!("a listing that fails visits nothing");
        let listed = storage.read_dir(Path::new("f"), &mut none);
        assert_eq!(kind_of(listed), ErrorKind::NotADirectory);
    });
}

#[test]
fn a_link_is_described_and_never_followed() {
    // D31
    on_each(|storage| {
        storage.create_dir(Path::new("d")).unwrap();
        put(storage, "d/f", b"in");
        storage.symlink(Path::new("d"), Path::new("l")).unwrap();
        storage.symlink(Path::new("d/f"), Path::new("m")).unwrap();

        assert_eq!(storage.stat(Path::new("l")).unwrap().kind, Kind::Symlink);
        assert_eq!(storage.read_link(Path::new("m")).unwrap(), Path::new("d/f"));
        assert_eq!(
            kind_of(storage.read_link(Path::new("d"))),
            ErrorKind::InvalidInput
        );

        let link = Some(Refusal::Link);
        let (l, m, through) = (Path::new("l"), Path::new("m"), Path::new("l/f"));
        assert_eq!(refusal_of(storage.open(m)), link);
        assert_eq!(refusal_of(storage.open_write(m)), link);
        assert_eq!(refusal_of(storage.open(through)), link);
        assert_eq!(refusal_of(storage.stat(through)), link);
        assert_eq!(refusal_of(storage.remove_file(through)), link);
        let made = storage.create_new(Path::new("l/g"), Mode::Public);
        assert_eq!(refusal_of(made), link);
        assert_eq!(refusal_of(storage.create_dir(Path::new("l/g"))), link);
        assert_eq!(refusal_of(storage.rename(m, Path::new("l/m"))), link);
        assert_eq!(refusal_of(storage.sync_dir(l)), link);
        assert_eq!(refusal_of(storage.read_dir(l, &mut |_| {})), link);

        storage.remove_file(l).unwrap();
        assert_eq!(content(storage, "d/f").unwrap(), b"in");
    });
}

#[test]
fn a_path_out_of_the_root_is_refused() {
    on_each(|storage| {
        storage.create_dir(Path::new("d")).unwrap();
        for path in ["/etc", "..", "d/..", "d/../d", "../x"] {
            let path = Path::new(path);
            assert_eq!(refusal_of(storage.open(path)), Some(Refusal::Outside));
            assert_eq!(refusal_of(storage.stat(path)), Some(Refusal::Outside));
            assert_eq!(refusal_of(storage.create_dir(path)), Some(Refusal::Outside));
        }
        let root = Path::new("");
        assert_eq!(storage.stat(root).unwrap().kind, Kind::Dir);
        assert_eq!(refusal_of(storage.remove_dir(root)), Some(Refusal::Outside));
        assert_eq!(refusal_of(storage.open(root)), Some(Refusal::NotRegular));
    });
}

#[test]
fn only_a_regular_file_is_opened() {
    on_each(|storage| {
        storage.create_dir(Path::new("d")).unwrap();
        put(storage, "f", b"");
        let refused = Some(Refusal::NotRegular);
        assert_eq!(refusal_of(storage.open(Path::new("d"))), refused);
        assert_eq!(refusal_of(storage.open_write(Path::new("d"))), refused);
        assert_eq!(kind_of(storage.open(Path::new("no"))), ErrorKind::NotFound);
        assert_eq!(
            kind_of(storage.open(Path::new("no/f"))),
            ErrorKind::NotFound
        );
        let beneath = storage.open(Path::new("f/x"));
        assert_eq!(kind_of(beneath), ErrorKind::NotADirectory);
        let beneath = storage.stat(Path::new("f/x"));
        assert_eq!(kind_of(beneath), ErrorKind::NotADirectory);
    });
}

#[test]
fn a_file_made_again_is_another_file() {
    on_each(|storage| {
        put(storage, "f", b"same");
        let open = storage.open(Path::new("f")).unwrap();
        let first = storage.stat(Path::new("f")).unwrap();
        assert_eq!(first.len, 4);
        assert_eq!(open.stat().unwrap(), first);

        storage.remove_file(Path::new("f")).unwrap();
        put(storage, "f", b"same");
        let second = storage.stat(Path::new("f")).unwrap();
        assert_ne!(second.stamp(), first.stamp());
        // The old file is still there for whoever has it open.
        assert_eq!(open.read_all(4).unwrap(), b"same");
    });
}

#[test]
fn private_files_are_their_owners_alone() {
    on_each(|storage| {
        storage.create_new(Path::new("p"), Mode::Private).unwrap();
        assert_eq!(storage.stat(Path::new("p")).unwrap().mode, 0o600);
    });
}

#[test]
fn a_lock_has_one_holder_who_is_named() {
    // D57
    on_each(|storage| {
        let path = Path::new("lock");
        let held = storage.lock(path).unwrap();
        let refused = storage.lock(path);
        let this = std::process::id();
        assert!(matches!(refused, Err(LockError::Held { pid: Some(pid) }) if pid == this));
        drop(held);
        let again = storage.lock(path).unwrap();
        assert_eq!(
            content(storage, "lock").unwrap(),
            format!("{this}\n").as_bytes()
        );
        drop(again);
        let no_dir = storage.lock(Path::new("no/lock"));
        assert!(matches!(no_dir, Err(LockError::Io(error)) if error.kind() == ErrorKind::NotFound));
    });
}
