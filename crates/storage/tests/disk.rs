//! What only a real file system can show: links swapped under way, FIFOs, other processes.

#![allow(clippy::unwrap_used)] // A panic is how a test reports, in what tests share too.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags};
use storage::{Disk, Kind, LockError, Refusal, Storage};
use tempfile::TempDir;

/// How often a link is swapped in; each round takes some tens of microseconds.
const ROUNDS: u32 = 10_000;

fn both_walks(dir: &TempDir, check: impl Fn(&Disk)) {
    check(&Disk::open(dir.path()).unwrap());
    check(&Disk::open(dir.path()).unwrap().stepwise());
}

/// Sets its flag when it goes, also when an assertion fails, so that the other thread ends.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Swaps two names until `stop` is set.
fn swap(one: &Path, two: &Path, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        rustix::fs::renameat_with(CWD, one, CWD, two, RenameFlags::EXCHANGE).unwrap();
    }
}

#[test]
fn a_link_swapped_in_under_way_never_leads_outside() {
    // D31
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("f"), "outside").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("d"), dir.path().join("swap"));
    fs::create_dir(&real).unwrap();
    fs::write(real.join("f"), "inside").unwrap();
    symlink(outside.path(), &link).unwrap();

    both_walks(&dir, |disk| {
        let stop = AtomicBool::new(false);
        let (mut read, mut refused) = (0, 0);
        thread::scope(|scope| {
            scope.spawn(|| swap(&real, &link, &stop));
            let _stop = StopOnDrop(&stop);
            for round in 0..ROUNDS {
                match disk
                    .open(Path::new("d/f"))
                    .and_then(|file| file.read_all(64))
                {
                    Ok(bytes) => {
                        assert_eq!(bytes, b"inside", "round {round}");
                        read += 1;
                    }
                    Err(error) => {
                        assert_eq!(Refusal::of(&error), Some(Refusal::Link), "{error}");
                        refused += 1;
                    }
                }
                let made = disk.create_dir(Path::new("d/made"));
                if made.is_ok() {
                    // The name may lead anywhere by now, so the removal may be refused.
                    let _ = disk.remove_dir(Path::new("d/made"));
                }
            }
        });
        assert_eq!(read + refused, ROUNDS);
        assert!(!outside.path().join("made").exists());
    });
}

#[test]
fn links_to_files_and_chains_of_links_are_refused() {
    // D31
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "outside").unwrap();
    let dir = tempfile::tempdir().unwrap();
    symlink(outside.path().join("secret"), dir.path().join("one")).unwrap();
    symlink("one", dir.path().join("two")).unwrap();
    symlink("three", dir.path().join("three")).unwrap();
    symlink("/proc/self/root", dir.path().join("magic")).unwrap();
    both_walks(&dir, |disk| {
        for path in ["one", "two", "three", "magic/etc/passwd", "magic"] {
            let refused = disk.open(Path::new(path)).unwrap_err();
            assert_eq!(Refusal::of(&refused), Some(Refusal::Link), "{path}");
        }
    });
}

#[test]
fn nothing_hangs_on_what_is_not_a_file() {
    // D91
    let dir = tempfile::tempdir().unwrap();
    let fifo = std::process::Command::new("mkfifo")
        .arg(dir.path().join("x.md"))
        .status();
    assert!(fifo.unwrap().success());
    let _socket = UnixListener::bind(dir.path().join("socket")).unwrap();
    both_walks(&dir, |disk| {
        for name in ["x.md", "socket"] {
            let path = Path::new(name);
            assert_eq!(disk.stat(path).unwrap().kind, Kind::Other);
            for opened in [disk.open(path), disk.open_write(path)] {
                let refused = opened.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::InvalidInput);
                assert_eq!(Refusal::of(&refused), Some(Refusal::NotRegular));
            }
        }
    });
}

#[test]
fn the_root_stays_the_same_when_its_path_leads_elsewhere() {
    let parent = tempfile::tempdir().unwrap();
    let (first, moved) = (parent.path().join("a"), parent.path().join("b"));
    fs::create_dir(&first).unwrap();
    fs::write(first.join("f"), "first").unwrap();
    let disk = Disk::open(&first).unwrap();
    fs::rename(&first, &moved).unwrap();
    fs::create_dir(&first).unwrap();
    fs::write(first.join("f"), "second").unwrap();
    let bytes = disk.open(Path::new("f")).unwrap().read_all(64).unwrap();
    assert_eq!(bytes, b"first");
}

#[test]
fn a_lock_is_kept_from_other_handles_on_the_directory() {
    // D57
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (
        Disk::open(dir.path()).unwrap(),
        Disk::open(dir.path()).unwrap(),
    );
    let path = Path::new("lock");
    let held = one.lock(path).unwrap();
    let message = two.lock(path).unwrap_err().to_string();
    assert_eq!(message, format!("held by process {}", std::process::id()));

    // A holder's process id that a longer one was written over leaves nothing behind.
    drop(held);
    fs::write(dir.path().join("lock"), "4294967295\n").unwrap();
    drop(two.lock(path).unwrap());
    let text = fs::read_to_string(dir.path().join("lock")).unwrap();
    assert_eq!(text, format!("{}\n", std::process::id()));
}

#[test]
fn a_lock_file_removed_under_its_holder_does_not_lock_the_next_one_out() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::open(dir.path()).unwrap();
    let _orphan = disk.lock(Path::new("lock")).unwrap();
    fs::remove_file(dir.path().join("lock")).unwrap();
    let held = disk.lock(Path::new("lock"));
    assert!(held.is_ok());
    let next = disk.lock(Path::new("lock"));
    assert!(matches!(next, Err(LockError::Held { .. })));
}

#[test]
fn a_copy_of_a_file_has_another_identity() {
    // D62
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("f"), "same").unwrap();
    fs::copy(dir.path().join("f"), dir.path().join("g")).unwrap();
    let disk = Disk::open(dir.path()).unwrap();
    let (f, g) = (
        disk.stat(Path::new("f")).unwrap(),
        disk.stat(Path::new("g")).unwrap(),
    );
    assert_ne!(f.inode, g.inode);
    assert_ne!(f.stamp(), g.stamp());

    fs::rename(dir.path().join("f"), dir.path().join("h")).unwrap();
    let h = disk.stat(Path::new("h")).unwrap();
    assert_eq!((h.inode, h.born), (f.inode, f.born));
}
