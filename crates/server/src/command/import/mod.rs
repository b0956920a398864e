//! `tidings import`: publishes the files of a folder as first versions (D92).
//!
//! A folder is read here and published over the wire, a few files at once. What the server has
//! already with the same content is left alone, so a run that was cut goes on where it was and a
//! second run makes nothing. What it has with other content is refused unless `--update` is given.
//! Each file that is refused is named with its reason on stderr, the rest lands, and the exit code
//! is 1.
//!
//! A folder that lies in the data directory of a server is imported where it is: see [`in_place`].

mod in_place;
mod place;
mod progress;
mod walk;

use std::collections::BTreeMap;
use std::path::PathBuf;
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
use in_place::Place;
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
    /// The directory on the server that its files go to [default: /]. Files in the server's own
    /// tree stay where they are.
    #[arg(value_parser = parse_path)]
    prefix: Option<DocPath>,
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
    if !args.dir.is_dir() {
        return Err(Failure::usage(format!(
            "{} is no folder",
            args.dir.display()
        )));
    }
    let mut tally = Tally::new(args.connection.json);
    let ended = match Place::of(&args.dir)? {
        Some(_) if args.prefix.is_some() => {
            return Err(Failure::usage(
                "files in a server's own tree stay where they are; leave the prefix out",
            ));
        }
        Some(place) => place.import(&mut tally),
        None => import_over_the_wire(args, &mut tally).await,
    };
    tally.end();
    ended?;
    match tally.refused {
        0 => Ok(()),
        refused => Err(Failure::no(format!("{refused} files were not imported"))),
    }
}

async fn import_over_the_wire(args: &ImportArgs, tally: &mut Tally) -> Result<(), Failure> {
    let prefix = args.prefix.clone().unwrap_or_else(DocPath::root);
    let found = walk(&args.dir, &prefix);
    tally.hidden = found.hidden;
    tally.expect(found.items.len() + found.refused.len());
    for (file, reason) in found.refused {
        tally.count(&file.to_string_lossy(), &Outcome::Refused(reason))?;
    }
    let client = Arc::new(args.connection.client()?);
    let ended = import(found.items, args.update, &client, tally).await;
    client.close().await;
    ended
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
            tally.count_placed(flat(placed)?)?;
        }
        let known = directory.entry(client, &item.path).await?;
        let client = Arc::clone(client);
        under_way.spawn(async move {
            let outcome = place(&client, &item, known.as_ref(), update).await?;
            Ok((item.path, outcome))
        });
    }
    while let Some(placed) = under_way.join_next().await {
        tally.count_placed(flat(placed)?)?;
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
    hidden: usize,
    refused: usize,
    unchanged: usize,
    output: Output,
    meter: Meter,
}

impl Tally {
    fn new(json: bool) -> Self {
        Self {
            created: 0,
            hidden: 0,
            refused: 0,
            unchanged: 0,
            output: Output::new(json),
            meter: Meter::new(),
        }
    }

    /// Says how many files there are.
    const fn expect(&mut self, total: usize) {
        self.meter.expect(total);
    }

    fn count_placed(&mut self, (path, outcome): Placed) -> Result<(), Failure> {
        self.count(path.as_str(), &outcome)
    }

    fn count(&mut self, name: &str, outcome: &Outcome) -> Result<(), Failure> {
        self.meter.advance();
        let (word, reason) = match outcome {
            Outcome::Created => ("created", None),
            Outcome::Unchanged => ("unchanged", None),
            Outcome::Updated => ("updated", None),
            Outcome::Refused(reason) => ("refused", Some(reason.as_str())),
        };
        match outcome {
            Outcome::Created | Outcome::Updated => self.created += 1,
            Outcome::Unchanged => self.unchanged += 1,
            Outcome::Refused(reason) => {
                self.refused += 1;
                self.meter.clear();
                eprintln!("tidings: {}: {}", printable(name), printable(reason));
            }
        }
        // Only scripts are told of each file; a person sees the count and what went wrong.
        if !self.output.is_json() {
            return Ok(());
        }
        let record = Record {
            name,
            outcome: word,
            reason,
        };
        self.output.line(&record, &[])
    }

    fn end(&mut self) {
        self.meter.clear();
        let (created, unchanged, refused) = (self.created, self.unchanged, self.refused);
        eprintln!("tidings: {created} imported, {unchanged} unchanged, {refused} refused");
        if self.hidden > 0 {
            let hidden = self.hidden;
            eprintln!("tidings: {hidden} hidden files and folders were passed over");
        }
    }
}
