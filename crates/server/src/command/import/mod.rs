//! `tidings import`: publishes the files of a folder as first versions (D92).
//!
//! A folder is read here and published over the wire, a few files at once. What the server has already
//! with the same content is left alone, so a run that was cut goes on where it was and a second run
//! makes nothing. What it has with other content is refused unless `--update` is given. Each file that
//! is refused is named with its reason on stderr, the rest lands, and the exit code is 1.

mod place;
mod progress;
mod walk;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use client::{Client, Entry, ListQuery};
use serde::Serialize;
use tokio::task::JoinSet;
use wire::{DocPath, Status};

use super::connect::Connection;
use super::failure::Failure;
use super::output::{Output, printable};
use super::source::parse_path;
use place::{Outcome, place};
use progress::Meter;
use walk::walk;

/// Files that are under way at once: enough for the server to sync them together, and fewer than
/// the streams that any server gives a connection.
const UNDER_WAY_MAX: usize = 8;

/// Arguments of `tidings import`.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// The folder.
    dir: PathBuf,
    /// The directory on the server that its files go to.
    #[arg(default_value = "/", value_parser = parse_path)]
    prefix: DocPath,
    /// Publish over documents that have other content.
    #[arg(long)]
    update: bool,
    #[command(flatten)]
    connection: Connection,
}

/// A file and where it goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    path: DocPath,
    file: PathBuf,
}

/// A file that is done, as it is printed.
#[derive(Serialize)]
struct Record<'a> {
    name: &'a str,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

pub(super) async fn run(args: &ImportArgs) -> Result<(), Failure> {
    let found = walk(&args.dir, &args.prefix)?;
    let client = Arc::new(args.connection.client()?);
    let mut tally = Tally::new(found.items.len(), args.connection.json);
    for (file, reason) in &found.refused {
        tally.refuse_file(file, reason)?;
    }
    let ended = import(found.items, args.update, &client, &mut tally).await;
    client.close().await;
    tally.end(found.hidden);
    ended?;
    match tally.refused {
        0 => Ok(()),
        refused => Err(Failure::no(format!("{refused} files were not imported"))),
    }
}

async fn import(
    items: Vec<Item>,
    update: bool,
    client: &Arc<Client>,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let mut under_way = JoinSet::new();
    let mut directory = Directory::default();
    for item in items {
        if under_way.len() == UNDER_WAY_MAX
            && let Some(placed) = under_way.join_next().await
        {
            tally.count(flat(placed)?)?;
        }
        let known = directory.entry(client, &item.path).await?;
        let client = Arc::clone(client);
        under_way.spawn(async move {
            let outcome = place(&client, &item, known.as_ref(), update).await?;
            Ok((item.path, outcome))
        });
    }
    while let Some(placed) = under_way.join_next().await {
        tally.count(flat(placed)?)?;
    }
    Ok(())
}

type Placed = (DocPath, Outcome);

fn flat(
    joined: Result<Result<Placed, Failure>, tokio::task::JoinError>,
) -> Result<Placed, Failure> {
    joined.map_err(|error| Failure::no(format!("a task of the import failed: {error}")))?
}

/// What the server has in the directory that the files go to at the moment. Files come directory
/// by directory, so each is listed once.
#[derive(Default)]
struct Directory {
    path: Option<DocPath>,
    entries: BTreeMap<String, Entry>,
}

impl Directory {
    async fn entry(&mut self, client: &Client, path: &DocPath) -> Result<Option<Entry>, Failure> {
        let parent = path.parent();
        if self.path != parent
            && let Some(dir) = &parent
        {
            self.entries = list(client, dir).await?;
            self.path = parent;
        }
        Ok(self.entries.get(path.name()).cloned())
    }
}

async fn list(client: &Client, dir: &DocPath) -> Result<BTreeMap<String, Entry>, Failure> {
    let query = ListQuery {
        include_archived: true,
        details: true,
        ..ListQuery::default()
    };
    match client.list_all(dir, &query).await {
        Ok(entries) => Ok(entries
            .into_iter()
            .map(|entry| (entry.name.clone(), entry))
            .collect()),
        // Nothing there, or something else: the server will say so of each file.
        Err(error) if matches!(error.status(), Some(Status::NotFound | Status::BadRequest)) => {
            Ok(BTreeMap::new())
        }
        Err(error) => Err(error.into()),
    }
}

/// What became of the files.
struct Tally {
    created: usize,
    unchanged: usize,
    refused: usize,
    output: Output,
    meter: Meter,
}

impl Tally {
    fn new(total: usize, json: bool) -> Self {
        Self {
            created: 0,
            unchanged: 0,
            refused: 0,
            output: Output::new(json),
            meter: Meter::new(total),
        }
    }

    fn count(&mut self, (path, outcome): Placed) -> Result<(), Failure> {
        self.meter.advance();
        let (word, reason) = match &outcome {
            Outcome::Created => ("created", None),
            Outcome::Unchanged => ("unchanged", None),
            Outcome::Updated => ("updated", None),
            Outcome::Refused(reason) => ("refused", Some(reason.as_str())),
        };
        match outcome {
            Outcome::Created | Outcome::Updated => self.created += 1,
            Outcome::Unchanged => self.unchanged += 1,
            Outcome::Refused(ref reason) => self.say_refused(path.as_str(), reason),
        }
        self.print(path.as_str(), word, reason)
    }

    fn refuse_file(&mut self, file: &Path, reason: &str) -> Result<(), Failure> {
        let name = file.to_string_lossy();
        self.say_refused(&name, reason);
        self.print(&name, "refused", Some(reason))
    }

    fn say_refused(&mut self, name: &str, reason: &str) {
        self.refused += 1;
        self.meter.clear();
        eprintln!("tidings: {}: {}", printable(name), printable(reason));
    }

    /// Only scripts are told of each file; a person sees the count and what went wrong.
    fn print(&mut self, name: &str, outcome: &str, reason: Option<&str>) -> Result<(), Failure> {
        if !self.output.is_json() {
            return Ok(());
        }
        let record = Record {
            name,
            outcome,
            reason,
        };
        self.output.line(&record, &[])
    }

    fn end(&mut self, hidden: usize) {
        self.meter.clear();
        let (created, unchanged, refused) = (self.created, self.unchanged, self.refused);
        eprintln!("tidings: {created} imported, {unchanged} unchanged, {refused} refused");
        if hidden > 0 {
            eprintln!("tidings: {hidden} hidden files and folders were passed over");
        }
    }
}
