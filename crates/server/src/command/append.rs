//! `tidings append`: adds to the end of a document.

use clap::Args;
use client::{Draft, Error};
use wire::Status;

use super::connect::Connection;
use super::failure::Failure;
use super::publish;
use super::source::{Description, Source};

/// Arguments of `tidings append`.
#[derive(Args, Debug)]
pub(crate) struct AppendArgs {
    #[command(flatten)]
    source: Source,
    /// The version that must be current. Without this the text is added to whatever is there.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    expect: Option<u64>,
    #[command(flatten)]
    description: Description,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: &AppendArgs) -> Result<(), Failure> {
    let draft = Draft {
        body: args.source.read()?.into(),
        expected: args.expect,
        metadata: args.description.metadata(),
    };
    let client = args.connection.client()?;
    let path = &args.source.path;
    let written = client.append(path, &draft).await;
    client.close().await;
    match written {
        Ok(written) => publish::tell(path, &written, args.connection.json),
        Err(error) => Err(failure(error, path)),
    }
}

fn failure(error: Error, path: &wire::DocPath) -> Failure {
    let is_missing = error.status() == Some(Status::NotFound);
    let failure = Failure::from(error);
    if is_missing {
        failure.fix(format!(
            "write its first version with `tidings publish {path}`"
        ))
    } else {
        failure
    }
}
