//! The way from the root to a name, on which no link is followed.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::meta;
use crate::{Kind, Refusal};

/// The open root and how paths beneath it are resolved.
#[derive(Debug)]
pub(super) struct Walk {
    root: OwnedFd,
    /// Set once the kernel has shown that it can't resolve a whole path at a time.
    stepwise: AtomicBool,
}

impl Walk {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let flags = DIR_FLAGS | OFlags::CLOEXEC;
        Ok(Self {
            root: rustix::fs::openat(CWD, root, flags, Mode::empty())?,
            stepwise: AtomicBool::new(cfg!(not(target_os = "linux"))),
        })
    }

    pub(super) fn go_stepwise(&mut self) {
        *self.stepwise.get_mut() = true;
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// The directory that holds the last name of `path`, and that name.
    pub(super) fn parent<'p>(&self, path: &'p Path) -> io::Result<(OwnedFd, &'p OsStr)> {
        let mut names = path.components();
        let Some(Component::Normal(name)) = names.next_back() else {
            return Err(Refusal::Outside.into());
        };
        let dir = self.open_at(names.as_path(), DIR_FLAGS, 0)?;
        Ok((dir, name))
    }

    /// Opens what `path` names beneath the root.
    pub(super) fn open_at(&self, path: &Path, flags: OFlags, mode: u32) -> io::Result<OwnedFd> {
        let plain = |component| matches!(component, Component::Normal(_));
        if !path.components().all(plain) {
            return Err(Refusal::Outside.into());
        }
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        #[cfg(target_os = "linux")]
        if !self.stepwise.load(Ordering::Relaxed) {
            match self.open_whole(path, flags, mode.into()) {
                Err(Errno::NOSYS) => self.stepwise.store(true, Ordering::Relaxed),
                // A sandbox that forbids the call says this, but so does a file that may not be
                // opened: only a second way of opening can tell.
                Err(Errno::PERM | Errno::AGAIN) => {}
                Err(Errno::LOOP) => return Err(Refusal::Link.into()),
                Err(Errno::XDEV) => return Err(Refusal::Outside.into()),
                Err(Errno::NOTDIR) => return Err(not_a_directory(&self.root, path)),
                other => return Ok(other?),
            }
        }
        self.open_by_steps(path, flags, mode.into())
    }

    #[cfg(target_os = "linux")]
    fn open_whole(&self, path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        use rustix::fs::ResolveFlags;

        /// The kernel asks to try again when a rename runs beside the walk. Under a storm of
        /// renames the other way of walking always comes to an end.
        const TRIES_MAX: u32 = 32;

        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            match rustix::fs::openat2(&self.root, path, flags, mode, resolve) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if tries < TRIES_MAX => tries += 1,
                other => return other,
            }
        }
    }

    fn open_by_steps(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let mut names = path.components();
        let Some(last) = names.next_back() else {
            return open_name(&self.root, OsStr::new("."), flags, mode);
        };
        let mut dir = None;
        for name in names {
            let here = dir.as_ref().unwrap_or(&self.root);
            let step = DIR_FLAGS | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            dir = Some(open_name(here, name.as_os_str(), step, Mode::empty())?);
        }
        let here = dir.as_ref().unwrap_or(&self.root);
        open_name(here, last.as_os_str(), flags, mode)
    }
}

/// How a directory is opened to go on from it; reading it is not needed for that.
#[cfg(target_os = "linux")]
const DIR_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
const DIR_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

fn open_name(dir: &OwnedFd, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    loop {
        match rustix::fs::openat(dir, name, flags, mode) {
            Err(Errno::INTR) => {}
            Err(Errno::LOOP) => return Err(Refusal::Link.into()),
            Err(Errno::NOTDIR) => return Err(not_a_directory(dir, Path::new(name))),
            other => return Ok(other?),
        }
    }
}

/// Says why a name that should be a directory isn't one.
///
/// The kernel has one answer for a file and for a link that was not to be followed. The look is
/// only for the message: the call has failed already. A directory that is found by now was a link
/// a moment ago.
fn not_a_directory(dir: &OwnedFd, path: &Path) -> io::Error {
    let is_link = path.components().count() == 1
        && meta::of_name(dir, path.as_os_str())
            .is_ok_and(|stat| matches!(stat.kind, Kind::Dir | Kind::Symlink));
    if is_link {
        Refusal::Link.into()
    } else {
        Errno::NOTDIR.into()
    }
}
