//! `tidings archive`: puts a document away, or brings it back.

use clap::Args;
use serde::Serialize;
use wire::DocPath;

use super::connect::Connection;
use super::failure::Failure;
use super::output::Output;
use super::source::parse_path;

/// Arguments of `tidings archive`.
#[derive(Args, Debug)]
pub(crate) struct ArchiveArgs {
    /// The document.
    #[arg(value_parser = parse_path)]
    path: DocPath,
    /// Bring it back.
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Serialize)]
struct Record<'a> {
    name: &'a str,
    version: u64,
    archived: bool,
}

pub(super) async fn run(args: &ArchiveArgs) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let version = if args.undo {
        client.unarchive(&args.path).await
    } else {
        client.archive(&args.path).await
    };
    client.close().await;
    let record = Record {
        name: args.path.as_str(),
        version: version?,
        archived: !args.undo,
    };
    let shown = format!("{}@{}", record.name, record.version);
    Output::new(args.connection.json).line(&record, &[&shown])
}
