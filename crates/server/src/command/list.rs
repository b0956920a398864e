//! `tidings list`: prints the names in a directory.

use clap::Args;
use client::{Entry, ListQuery};
use serde::Serialize;
use wire::DocPath;

use super::connect::Connection;
use super::failure::Failure;
use super::output::Output;
use super::source::parse_path;

/// Arguments of `tidings list`.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// The directory.
    #[arg(value_name = "PREFIX", default_value = "/", value_parser = parse_path)]
    dir: DocPath,
    /// Archived documents as well.
    #[arg(long)]
    archived: bool,
    /// Version and content hash of each document behind its name.
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Serialize)]
struct Record<'a> {
    name: &'a str,
    directory: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    archived: bool,
}

pub(super) async fn run(args: &ListArgs) -> Result<(), Failure> {
    let query = ListQuery {
        include_archived: args.archived,
        details: args.long || args.connection.json,
        ..ListQuery::default()
    };
    let client = args.connection.client()?;
    let entries = client.list_all(&args.dir, &query).await;
    client.close().await;
    let mut output = Output::new(args.connection.json);
    for entry in &entries? {
        print(&mut output, entry, args.long)?;
    }
    Ok(())
}

fn print(output: &mut Output, entry: &Entry, long: bool) -> Result<(), Failure> {
    let record = Record {
        name: &entry.name,
        directory: entry.is_directory,
        version: entry.version,
        hash: entry.content_hash.map(|hash| hash.to_string()),
        archived: entry.is_archived,
    };
    let slash = if entry.is_directory { "/" } else { "" };
    let name = format!("{}{slash}", entry.name);
    if !long {
        return output.line(&record, &[&name]);
    }
    let version = entry.version.map(|version| version.to_string());
    let archived = if entry.is_archived { "archived" } else { "" };
    output.line(
        &record,
        &[
            &name,
            version.as_deref().unwrap_or_default(),
            record.hash.as_deref().unwrap_or_default(),
            archived,
        ],
    )
}
