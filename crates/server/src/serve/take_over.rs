//! `--take-over`: asks the server that has the data directory to leave, and waits until it is gone.
//!
//! It is asked as a person would ask it, by SIGTERM, so it drains: each watcher is told when to
//! come back and finds this process then. Nothing is handed from one process to the other; what
//! was acknowledged is on the disk, and the epoch and the last changes come from there. A handover
//! of the open socket was rejected: the connections' state can't follow it, so clients would have
//! to connect anew all the same.
//!
//! Only a process that has the lock file open, runs as the same user and bears our name is asked.
//! It is named by a descriptor from the check on, so that its number can't come to mean another.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};
use thiserror::Error;
use tokio::task::spawn_blocking;

use crate::config::Settings;
use crate::holder::Holder;

/// What the process is called in the kernel's tables, whatever comes behind it.
const NAME: &str = "tidings";

/// Beyond the bounds of a drain: the store notes what it knows of the tree, the process ends.
const CLOSING_TIME: Duration = Duration::from_secs(60);

/// Why the directory can't be taken over.
#[derive(Debug, Error)]
pub(super) enum TakeOverError {
    /// The holder didn't leave.
    #[error(
        "process {pid} was asked to leave and is still there after {seconds} s; `kill -9 {pid}` \
         ends it, and what it acknowledged is safe"
    )]
    Stays { pid: u32, seconds: u64 },
    /// The holder isn't what may be asked.
    #[error("process {pid} has the data directory and is not asked to leave: {why}")]
    Stranger { pid: u32, why: &'static str },
    /// The holder hasn't said who it is.
    #[error("another process has the data directory and has not said which; try again")]
    Unnamed,
    /// The system doesn't tell.
    #[error("look at the process that has the data directory")]
    Io(#[from] io::Error),
}

/// Makes the data directory free. Cancel-safe: whoever was asked to leave leaves all the same.
pub(super) async fn take_over(settings: &Settings) -> Result<(), TakeOverError> {
    let lock = settings.private_dir().join("lock");
    let pid = match Holder::of(&lock)? {
        Holder::Nobody => return Ok(()),
        Holder::Unnamed => return Err(TakeOverError::Unnamed),
        Holder::Process(pid) => pid,
    };
    let Some(process) = open(pid)? else {
        return Ok(());
    };
    if let Some(why) = strangeness(pid, &lock)? {
        return Err(TakeOverError::Stranger { pid, why });
    }
    tracing::info!(pid, "asking the server in place to leave");
    pidfd_send_signal(&process, Signal::TERM).map_err(io::Error::from)?;
    let patience = patience(settings);
    let waiting = spawn_blocking(move || is_over_within(&process, patience));
    if !waiting.await.map_err(io::Error::other)?? {
        let seconds = patience.as_secs();
        return Err(TakeOverError::Stays { pid, seconds });
    }
    tracing::info!(pid, "the server in place has left");
    Ok(())
}

/// The process; `None` if it is gone.
fn open(pid: u32) -> io::Result<Option<OwnedFd>> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let opened = number.ok_or(Errno::SRCH);
    match opened.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK)) {
        Ok(process) => Ok(Some(process)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Waits until the process is over; false if it still runs after `patience`.
fn is_over_within(process: &OwnedFd, patience: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        // The descriptor of a process is readable once the process is over.
        match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

/// Why the process isn't the server that holds `lock`, if so.
fn strangeness(pid: u32, lock: &Path) -> io::Result<Option<&'static str>> {
    let described = Path::new("/proc").join(pid.to_string());
    let Ok(metadata) = fs::metadata(&described) else {
        return Ok(Some("it can't be seen from here"));
    };
    if metadata.uid() != geteuid().as_raw() {
        return Ok(Some("it runs as another user"));
    }
    let name = fs::read_to_string(described.join("comm"))?;
    if !name.starts_with(NAME) {
        return Ok(Some("it is no tidings"));
    }
    let lock = fs::metadata(lock)?;
    let is_lock = |entry: io::Result<fs::DirEntry>| {
        // A descriptor may be closed under the look.
        let open = entry.and_then(|entry| fs::metadata(entry.path()));
        open.is_ok_and(|open| (open.dev(), open.ino()) == (lock.dev(), lock.ino()))
    };
    let holds = fs::read_dir(described.join("fd"))?.any(is_lock);
    Ok((!holds).then_some("it does not have the lock file open"))
}

/// How long a drain may take with these limits, which are most likely the holder's too.
fn patience(settings: &Settings) -> Duration {
    let (mark, web) = (&settings.limits, &settings.web_limits);
    let mark = mark.closing_window_max + mark.write_stall + mark.drain_timeout;
    let web = web.closing_window_max + web.write_stall + web.drain_timeout;
    mark.max(web) + CLOSING_TIME
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_no_server_on_the_directory_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("lock");
        fs::write(&lock, "").unwrap();
        let own = std::process::id();
        let why = strangeness(own, &lock).unwrap();
        assert_eq!(why, Some("it does not have the lock file open"));
        let _open = fs::File::open(&lock).unwrap();
        assert_eq!(strangeness(own, &lock).unwrap(), None);
        let mut other = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let why = strangeness(other.id(), &lock).unwrap();
        assert_eq!(why, Some("it is no tidings"));
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(open(other.id()).unwrap().is_none());
    }
}
