//! `tidings doctor`: what is wrong around a server, and the command that mends it.
//!
//! It reads and changes nothing, so it can be run beside a server as well as before a start. Each
//! module looks at one thing and gives findings; none stops the others. What takes effect only
//! with `--new-epoch` is the one exception: that opens the data directory as a server does, and is
//! refused while one has it.

mod certificate;
mod clock;
mod disk;
mod finding;
mod journal;
mod names;
mod ports;
mod socket_table;
mod tokens;
mod tree;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;

use crate::config::{FileFlags, Settings};
use crate::holder::Holder;
use crate::outcome;
use finding::{Finding, Level};

/// Arguments of `tidings doctor`.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    files: FileFlags,
    /// Begin a new epoch: every watcher is told to rebuild. Needed after a file system was rolled
    /// back below the server.
    #[arg(long)]
    new_epoch: bool,
    /// One JSON object instead of lines.
    #[arg(long)]
    json: bool,
}

/// What every look is about.
struct Surroundings<'a> {
    settings: &'a Settings,
    now: Timestamp,
    /// The process that has the data directory in use.
    holder: Option<u32>,
}

/// Runs the command: exit code 0 if nothing is bad, 1 otherwise.
pub(crate) fn run(args: &DoctorArgs) -> ExitCode {
    match examine(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => outcome::exit_code(Err(error)),
    }
}

/// Says what was found; true if nothing of it is bad.
fn examine(args: &DoctorArgs) -> anyhow::Result<bool> {
    let settings = Settings::of_files(&args.files)?;
    if args.new_epoch {
        return begin_epoch(&settings).map(|()| true);
    }
    let findings = findings(&settings);
    let text = match args.json {
        true => finding::as_json(&findings),
        false => finding::as_lines(&findings),
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(findings.iter().all(|finding| finding.level != Level::Bad))
}

fn findings(settings: &Settings) -> Vec<Finding> {
    let mut found = Vec::new();
    let holder = holder(settings, &mut found);
    let around = Surroundings {
        settings,
        now: Timestamp::now(),
        holder,
    };
    certificate::examine(&around, &mut found);
    ports::examine(&around, &mut found);
    tokens::examine(&around, &mut found);
    if settings.data.is_dir() {
        disk::examine(&around, &mut found);
        tree::examine(&around, &mut found);
        journal::examine(&around, &mut found);
    }
    clock::examine(&around, &mut found);
    found
}

fn holder(settings: &Settings, found: &mut Vec<Finding>) -> Option<u32> {
    const SUBJECT: &str = "directory";

    let data = settings.data.display();
    if !settings.data.is_dir() {
        let what = format!("there is no data directory {data}");
        let mend = format!("tidings serve --data '{data}'   # makes it");
        found.push(Finding::bad(SUBJECT, what, mend));
        return None;
    }
    match Holder::of(&settings.private_dir().join("lock")) {
        Ok(Holder::Nobody) => {
            found.push(Finding::ok(SUBJECT, format!("{data} is not in use")));
            None
        }
        Ok(Holder::Process(pid)) => {
            let what = format!("{data} is in use by process {pid}");
            found.push(Finding::ok(SUBJECT, what));
            Some(pid)
        }
        Ok(Holder::Unnamed) => {
            let what = format!("{data} is in use by a process that has not said which");
            let mend = "tidings doctor   # again, in a moment";
            found.push(Finding::warn(SUBJECT, what, mend));
            None
        }
        Err(error) => {
            let what = format!("the lock of {data} can't be read: {error}");
            let mend = format!("chown -R \"$USER\" '{data}'");
            found.push(Finding::bad(SUBJECT, what, mend));
            None
        }
    }
}

/// Opens the data directory as a server does, begins an epoch and says so.
fn begin_epoch(settings: &Settings) -> anyhow::Result<()> {
    let data = settings.data.display();
    anyhow::ensure!(settings.data.is_dir(), "there is no data directory {data}");
    let config = documents::Config {
        ring_len: settings.ring_len,
        new_epoch: true,
        ..documents::Config::default()
    };
    let store = documents::FileStore::open(&settings.data, config, &mut |_| {})?;
    let documents = store.health().documents;
    let head = store.feed().head();
    store.close()?;
    eprintln!("{data} holds {documents} documents; the next change follows {head}.");
    eprintln!("The epoch is new: watchers that come back are told to rebuild.");
    Ok(())
}
