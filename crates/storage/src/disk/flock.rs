//! A lock that the kernel gives back when its holder dies.
//!
//! The lock is on the open file, so two holders in one process exclude each other as well. The
//! file stays when the lock is dropped: removing it would let a third process lock a new file of
//! that name while a second one waits on the old.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process;

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use super::meta;
use super::walk::Walk;
use crate::{Kind, Lock, LockError, Mode, Refusal};

#[derive(Debug)]
struct Flock {
    /// Open for as long as the lock is held.
    _file: fs::File,
}

impl Lock for Flock {}

pub(super) fn take(walk: &Walk, path: &Path) -> Result<Box<dyn Lock>, LockError> {
    loop {
        let file = open(walk, path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::INTR) => continue,
            Err(Errno::WOULDBLOCK) => return Err(LockError::Held { pid: pid_in(&file) }),
            Err(error) => return Err(io::Error::from(error).into()),
        }
        if !still_named(walk, path, &file)? {
            continue;
        }
        file.set_len(0)?;
        file.write_all_at(format!("{}\n", process::id()).as_bytes(), 0)?;
        return Ok(Box::new(Flock { _file: file }));
    }
}

fn open(walk: &Walk, path: &Path) -> io::Result<fs::File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = fs::File::from(walk.open_at(path, flags, Mode::Private.bits())?);
    match meta::of_fd(&file)?.kind {
        Kind::File => Ok(file),
        _ => Err(Refusal::NotRegular.into()),
    }
}

/// Whether the locked file still bears the name; somebody may have removed it before we locked it.
fn still_named(walk: &Walk, path: &Path, file: &fs::File) -> io::Result<bool> {
    let (dir, name) = walk.parent(path)?;
    match meta::of_name(&dir, name) {
        Ok(named) => Ok(named.inode == meta::of_fd(file)?.inode),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn pid_in(file: &fs::File) -> Option<u32> {
    /// More than the longest process id and its line end.
    const TEXT_LEN_MAX: usize = 16;

    let mut text = [0; TEXT_LEN_MAX];
    let len = file.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..len]).ok()?.trim().parse().ok()
}
