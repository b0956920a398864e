//! The clock: tokens run out and certificates begin by it.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use jiff::{SignedDuration, Timestamp};

use super::Surroundings;
use super::finding::Finding;

const SUBJECT: &str = "clock";

/// No machine that runs this has an earlier date.
const EARLIEST: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// A file system's clock may run ahead by a tick, another machine's by some seconds.
const AHEAD_MAX: SignedDuration = SignedDuration::from_mins(2);

const MEND: &str = "timedatectl set-ntp true";

pub(super) fn examine(around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    let now = around.now;
    let newest = newest(&around.settings.private_dir());
    found.push(judge(now, newest));
}

fn judge(now: Timestamp, newest: Option<Timestamp>) -> Finding {
    if now < EARLIEST {
        let what =
            format!("it says {now}: tokens don't run out and certificates are not valid yet");
        return Finding::bad(SUBJECT, what, MEND);
    }
    match newest {
        Some(written) if written.duration_since(now) > AHEAD_MAX => {
            let what = format!("it says {now}, and files of the server were written at {written}");
            Finding::warn(SUBJECT, what, MEND)
        }
        _ => Finding::ok(SUBJECT, format!("it says {now}")),
    }
}

/// When the newest of the server's own files was written.
fn newest(private: &Path) -> Option<Timestamp> {
    let dirs = [private.to_owned(), private.join("journal")];
    let entries = dirs.iter().filter_map(|dir| fs::read_dir(dir).ok());
    let written =
        |entry: fs::DirEntry| -> Option<SystemTime> { entry.metadata().ok()?.modified().ok() };
    let newest = entries.flatten().flatten().filter_map(written).max()?;
    Timestamp::try_from(newest).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    #[test]
    fn a_clock_behind_the_files_or_before_its_time_is_told() {
        let now = EARLIEST + SignedDuration::from_hours(24);
        let level = |now, newest| judge(now, newest).level;
        assert_eq!(level(now, None), Level::Ok);
        assert_eq!(level(now, Some(now)), Level::Ok);
        let ahead = now + AHEAD_MAX + SignedDuration::from_secs(1);
        assert_eq!(level(now, Some(ahead)), Level::Warn);
        assert_eq!(level(Timestamp::UNIX_EPOCH, None), Level::Bad);
    }
}
