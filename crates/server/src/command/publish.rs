//! `tidings publish`: writes a version of a document.

use clap::Args;
use client::{Draft, Written};
use serde::Serialize;
use wire::DocPath;

use super::connect::Connection;
use super::failure::Failure;
use super::output::Output;
use super::source::{Description, Source};

/// Arguments of `tidings publish`.
#[derive(Args, Debug)]
pub(crate) struct PublishArgs {
    #[command(flatten)]
    source: Source,
    /// The version that must be current; 0 for a document that must not exist yet.
    #[arg(long, value_name = "N")]
    expect: Option<u64>,
    /// Remove versions more than this many back, once the new one is safe.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    retention: Option<u64>,
    #[command(flatten)]
    description: Description,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: &PublishArgs) -> Result<(), Failure> {
    let mut metadata = args.description.metadata();
    if let Some(retention) = args.retention {
        metadata.set("retention", retention.to_string());
    }
    let draft = Draft {
        body: args.source.read()?.into(),
        expected: args.expect,
        metadata,
    };
    let client = args.connection.client()?;
    let written = client.publish(&args.source.path, &draft).await;
    client.close().await;
    tell(&args.source.path, &written?, args.connection.json)
}

/// A write that is done, as it is printed.
#[derive(Serialize)]
struct Record<'a> {
    name: &'a str,
    version: u64,
    created: bool,
}

/// Prints where a write landed, as `PATH@VERSION`, which `tidings fetch` takes.
pub(super) fn tell(path: &DocPath, written: &Written, json: bool) -> Result<(), Failure> {
    let record = Record {
        name: path.as_str(),
        version: written.version,
        created: written.created,
    };
    if !written.created {
        eprintln!("tidings: unchanged, the current version says the same");
    }
    Output::new(json).line(&record, &[&format!("{path}@{}", written.version)])
}
