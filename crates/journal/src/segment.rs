//! The files of a journal: their names, and how one comes to be.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use storage::{File, Mode, Storage};
use wire::{Epoch, Seq};

use crate::format::{HEADER_LEN, Header, Identity};

const SUFFIX: &str = ".seg";
/// What a segment is called until its header is durable.
const UNBORN_SUFFIX: &str = ".seg.new";
/// Enough for every sequence number, so that names sort as numbers do.
const DIGITS: usize = 20;

/// The name of the segment that begins at `first_seq`.
pub(crate) fn path(dir: &Path, first_seq: Seq) -> PathBuf {
    dir.join(format!("{:0DIGITS$}{SUFFIX}", first_seq.get()))
}

fn unborn_path(dir: &Path, first_seq: Seq) -> PathBuf {
    dir.join(format!("{:0DIGITS$}{UNBORN_SUFFIX}", first_seq.get()))
}

/// The first sequence number in the name of a segment.
pub(crate) fn first_seq(name: &OsStr) -> Option<Seq> {
    seq_before(name, SUFFIX)
}

/// Whether a name is that of a segment which never came to be.
pub(crate) fn is_unborn(name: &OsStr) -> bool {
    seq_before(name, UNBORN_SUFFIX).is_some()
}

fn seq_before(name: &OsStr, suffix: &str) -> Option<Seq> {
    let digits = name.to_str()?.strip_suffix(suffix)?;
    let is_ours = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_ours {
        digits.parse().ok().map(Seq::new)
    } else {
        None
    }
}

/// A segment that is open for writing.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) file: Box<dyn File>,
    pub(crate) salt: u32,
    /// Where the next batch goes.
    pub(crate) len: u64,
}

/// Makes a segment that is durable, name and header, before anything is written to it.
///
/// It gets its name only when its header is durable: under its name, a header that does not hold
/// is damage and never the trace of a crash. An empty segment of that name, which an earlier try
/// left, is replaced.
pub(crate) fn create(
    storage: &dyn Storage,
    dir: &Path,
    epoch: &Epoch,
    first_seq: Seq,
) -> io::Result<Segment> {
    let unborn = unborn_path(dir, first_seq);
    let named = path(dir, first_seq);
    remove_if_there(storage, &unborn)?;
    remove_if_there(storage, &named)?;

    let file = storage.create_new(&unborn, Mode::Private)?;
    let header = Header {
        epoch: epoch.clone(),
        first_seq,
        identity: Identity::of(&file.stat()?),
    };
    file.write_at(0, &header.encode())?;
    file.sync_all()?;
    storage.rename_new(&unborn, &named)?;
    storage.sync_dir(dir)?;
    Ok(Segment {
        file,
        salt: header.salt(),
        len: HEADER_LEN as u64,
    })
}

pub(crate) fn remove_if_there(storage: &dyn Storage, path: &Path) -> io::Result<()> {
    match storage.remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
