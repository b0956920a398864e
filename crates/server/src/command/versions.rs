//! `tidings versions`: prints the history of a document, newest version first.

use clap::Args;
use serde::Serialize;
use wire::DocPath;

use super::connect::Connection;
use super::failure::Failure;
use super::output::Output;
use super::source::parse_path;

/// Arguments of `tidings versions`.
#[derive(Args, Debug)]
pub(crate) struct VersionsArgs {
    /// The document.
    #[arg(value_parser = parse_path)]
    path: DocPath,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Serialize)]
struct Record<'a> {
    version: u64,
    modified: &'a str,
}

pub(super) async fn run(args: &VersionsArgs) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let printed = print_all(args, &client).await;
    client.close().await;
    if printed? {
        Ok(())
    } else {
        Err(Failure::no(format!(
            "the chain of {} is broken: a version does not name the one before it",
            args.path
        )))
    }
}

/// Prints all pages; false if a page says that the chain is broken.
async fn print_all(args: &VersionsArgs, client: &client::Client) -> Result<bool, Failure> {
    let mut output = Output::new(args.connection.json);
    let mut is_chain_valid = true;
    let mut cursor: Option<String> = None;
    loop {
        let page = client.versions(&args.path, cursor.as_deref()).await?;
        is_chain_valid &= page.is_chain_valid;
        for entry in &page.versions {
            let record = Record {
                version: entry.version,
                modified: &entry.modified,
            };
            output.line(&record, &[&entry.version.to_string(), &entry.modified])?;
        }
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(is_chain_valid),
        }
    }
}
