//! The two small files of this crate on disk: bounded reads, and replacement as a whole.
//!
//! A file is replaced by a temporary one beside it that was synced and renamed, then its directory
//! is synced: a reader sees the old text or the new one, also after a crash. A link is followed
//! first, so that the file behind a mounted secret is replaced and not the link.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The largest file that is read: [`crate::TOKENS_MAX`] tokens of a few patterns each fit well.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Owner alone: the file tells who may do what, and hashes of tokens that may be guessable.
const MODE: u32 = 0o600;

/// Reads a regular file of bounded size; `None` if there is nothing.
pub(crate) fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.is_file() => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        Ok(_) => {}
    }
    let mut text = String::new();
    let mut limited = File::open(path)?.take(FILE_BYTES_MAX + 1);
    limited.read_to_string(&mut text)?;
    if limited.limit() == 0 {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "larger than 8 MiB",
        ));
    }
    Ok(Some(text))
}

/// Replaces the text of `path`, or makes it with mode 0600.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dir = directory_of(&path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = dir.join(format!(".{name}.{}", std::process::id()));
    let written = write_new(&temporary, &path, text).and_then(|()| fs::rename(&temporary, &path));
    if written.is_err() {
        // What is left is of no use; the error that is returned says what went wrong.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    File::open(dir)?.sync_all()
}

fn write_new(temporary: &Path, old: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(temporary)?;
    if let Ok(metadata) = fs::metadata(old) {
        file.set_permissions(metadata.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Holds the directory of `path` against other commands that edit files in it.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dir = File::open(directory_of(&path))?;
    dir.lock()?;
    Ok(dir)
}

/// True if others than the owner may read or write `path`.
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(dir) if dir != Path::new("") => dir.to_owned(),
        _ => PathBuf::from("."),
    }
}
