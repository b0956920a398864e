//! The disk: room, the right to write, how long a sync takes, who else may write.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Surroundings;
use super::finding::Finding;

const SUBJECT: &str = "disk";

/// A checkpoint of 100,000 documents and some journal segments fit several times.
const FREE_BYTES_LOW: u64 = 1 << 30;
const FREE_BYTES_MIN: u64 = 64 << 20;

/// A document takes a file, a link and perhaps a directory.
const FREE_FILES_MIN: u64 = 1_000;

/// As much as a write's record and a little more.
const PROBE_BYTES: usize = 4 << 10;
const PROBES: usize = 9;

/// A write waits for three syncs and is meant to be told within 100 ms.
const SYNC_SLOW: Duration = Duration::from_millis(30);

const WRITABLE_BY_OTHERS: u32 = 0o022;
const ACCESSIBLE_TO_OTHERS: u32 = 0o077;

pub(super) fn examine(around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    let data = &around.settings.data;
    let private = around.settings.private_dir();
    match room(data) {
        Ok(finding) => found.push(finding),
        Err(error) => {
            let what = format!("{} can't be asked for its room: {error}", data.display());
            found.push(Finding::bad(
                SUBJECT,
                what,
                format!("df '{}'", data.display()),
            ));
        }
    }
    // Where our own files go, and before the first start where they will.
    let place = if private.is_dir() { &private } else { data };
    found.push(syncs(place));
    modes(data, &private, found);
}

fn room(data: &Path) -> io::Result<Finding> {
    let stat = rustix::fs::statvfs(data)?;
    let free = stat.f_bavail * stat.f_frsize;
    let (shown, mib) = (data.display(), free >> 20);
    let what = format!("{mib} MiB are free at {shown}");
    let mend = format!("du -xh '{shown}' | sort -h | tail   # what takes the room");
    // A file system that counts no files says 0 of 0.
    if stat.f_files > 0 && stat.f_favail < FREE_FILES_MIN {
        let what = format!("{} more files fit at {shown}", stat.f_favail);
        return Ok(Finding::bad(SUBJECT, what, format!("df -i '{shown}'")));
    }
    Ok(match free {
        ..FREE_BYTES_MIN => Finding::bad(SUBJECT, what, mend),
        FREE_BYTES_MIN..FREE_BYTES_LOW => Finding::warn(SUBJECT, what, mend),
        _ => Finding::ok(SUBJECT, what),
    })
}

fn syncs(place: &Path) -> Finding {
    let shown = place.display();
    match sync_time(place) {
        Ok(median) => {
            let micros = median.as_micros();
            let what = format!("a sync takes {micros} µs at {shown}");
            if median > SYNC_SLOW {
                let mend = "put serve.data on a disk of its own or a faster one";
                return Finding::warn(SUBJECT, what, mend);
            }
            Finding::ok(SUBJECT, what)
        }
        Err(error) => {
            let what = format!("{shown} can't be written: {error}");
            let mend = format!("chown -R \"$USER\" '{shown}' && chmod u+rwx '{shown}'");
            Finding::bad(SUBJECT, what, mend)
        }
    }
}

/// The median of some syncs to a file without a name: nobody sees it and nothing of it is left.
fn sync_time(place: &Path) -> io::Result<Duration> {
    let mut file = tempfile::tempfile_in(place)?;
    let mut times = [Duration::ZERO; PROBES];
    for time in &mut times {
        file.write_all(&[0; PROBE_BYTES])?;
        let began = Instant::now();
        file.sync_data()?;
        *time = began.elapsed();
    }
    times.sort_unstable();
    Ok(times[PROBES / 2])
}

fn modes(data: &Path, private: &Path, found: &mut Vec<Finding>) {
    let before = found.len();
    let mut expect = |path: &Path, unwanted: u32, mend: &str| {
        let mode = fs::metadata(path).map(|metadata| metadata.permissions().mode());
        if let Ok(mode) = mode.map(|mode| mode & 0o7777)
            && mode & unwanted != 0
        {
            let shown = path.display();
            let what = format!("{shown} has mode {mode:04o}: others can change what it holds");
            let what = match unwanted {
                ACCESSIBLE_TO_OTHERS => format!("{shown} has mode {mode:04o}: others can read it"),
                _ => what,
            };
            let mend = format!("chmod {mend} '{shown}'");
            found.push(Finding::warn(SUBJECT, what, mend));
        }
    };
    expect(data, WRITABLE_BY_OTHERS, "go-w");
    expect(private, WRITABLE_BY_OTHERS, "go-w");
    expect(&private.join("key.pem"), ACCESSIBLE_TO_OTHERS, "600");
    for name in ["cert.pem", "closed.toml", "index", "journal", "lock"] {
        expect(&private.join(name), WRITABLE_BY_OTHERS, "go-w");
    }
    if found.len() == before {
        found.push(Finding::ok(SUBJECT, "nobody else may write there"));
    }
}
