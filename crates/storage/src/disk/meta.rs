//! Descriptions as the kernel gives them.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType};

use crate::{Kind, Stat, UnixNanos};

/// Describes an open file or directory.
pub(super) fn of_fd(fd: impl AsFd) -> io::Result<Stat> {
    #[cfg(target_os = "linux")]
    if let Some(stat) = extended(&fd, OsStr::new(""), AtFlags::EMPTY_PATH)? {
        return Ok(stat);
    }
    Ok(plain(&rustix::fs::fstat(fd)?))
}

/// Describes what bears `name` in `dir`, without following it.
pub(super) fn of_name(dir: impl AsFd, name: &OsStr) -> io::Result<Stat> {
    #[cfg(target_os = "linux")]
    if let Some(stat) = extended(&dir, name, AtFlags::SYMLINK_NOFOLLOW)? {
        return Ok(stat);
    }
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    Ok(plain(&rustix::fs::statat(dir, name, flags)?))
}

pub(super) fn kind(file_type: FileType) -> Kind {
    match file_type {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Dir,
        FileType::Symlink => Kind::Symlink,
        _ => Kind::Other,
    }
}

/// Asks for everything including the time of birth; `None` where the kernel lacks the call.
#[cfg(target_os = "linux")]
fn extended(dir: impl AsFd, name: &OsStr, flags: AtFlags) -> io::Result<Option<Stat>> {
    use rustix::fs::{StatxFlags, StatxTimestamp};

    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = match rustix::fs::statx(dir, name, flags, wanted) {
        Err(rustix::io::Errno::NOSYS) => return Ok(None),
        other => other?,
    };
    let instant = |at: StatxTimestamp| UnixNanos::from_parts(at.tv_sec, at.tv_nsec);
    let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    Ok(Some(Stat {
        kind: kind(FileType::from_raw_mode(u32::from(found.stx_mode))),
        len: found.stx_size,
        modified: instant(found.stx_mtime),
        changed: instant(found.stx_ctime),
        born: has_birth.then(|| instant(found.stx_btime)),
        inode: found.stx_ino,
        mode: u32::from(found.stx_mode) & PERMISSION_BITS,
    }))
}

// The fields differ in width from one system to the next.
#[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
fn plain(found: &rustix::fs::Stat) -> Stat {
    let instant = |secs, nanos| UnixNanos::from_parts(secs, nanos);
    Stat {
        kind: kind(FileType::from_raw_mode(found.st_mode)),
        len: found.st_size as u64,
        modified: instant(found.st_mtime as i64, found.st_mtime_nsec as u32),
        changed: instant(found.st_ctime as i64, found.st_ctime_nsec as u32),
        born: None,
        inode: found.st_ino as u64,
        mode: found.st_mode as u32 & PERMISSION_BITS,
    }
}

/// What `chmod` sets; the rest of the mode is the kind.
const PERMISSION_BITS: u32 = 0o7777;
