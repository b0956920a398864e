//! The client commands: what a terminal says to a server.
//!
//! Data goes to stdout, everything else to stderr. A reader that closes the pipe ends a command
//! quietly and with success. How a command ends is its exit code: see [`failure::Failure`].

mod append;
mod archive;
mod connect;
mod edit;
mod emit;
mod failure;
mod fetch;
mod import;
mod lines;
mod list;
mod lookup;
mod output;
mod publish;
mod source;
mod versions;
mod watch;
mod web;

use std::process::ExitCode;

use clap::Subcommand;

use failure::Failure;

/// A command that speaks to a server.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Add to the end of a document.
    Append(append::AppendArgs),
    /// Put a document away, or bring it back.
    Archive(archive::ArchiveArgs),
    /// Change a document with an editor.
    Edit(edit::EditArgs),
    /// Publish an event on a channel.
    Emit(emit::EmitArgs),
    /// Print a document.
    Fetch(fetch::FetchArgs),
    /// Publish the files of a folder.
    Import(import::ImportArgs),
    /// Print what a directory holds.
    List(list::ListArgs),
    /// Search titles and tags.
    Lookup(lookup::LookupArgs),
    /// Write a version of a document.
    Publish(publish::PublishArgs),
    /// Print the history of a document.
    Versions(versions::VersionsArgs),
    /// Print each change as it happens.
    Watch(watch::WatchArgs),
}

/// Runs the command and says how it ended.
pub(crate) fn run(command: ClientCommand) -> ExitCode {
    // What the client says on its own; the sockets below it only say what it says again.
    let log = std::env::var("TIDINGS_LOG").unwrap_or_else(|_| "off,client=warn".to_owned());
    if let Err(error) = crate::log::start(&log, crate::config::LogFormat::Text) {
        return Failure::usage(error).tell();
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(dispatch(command)),
        Err(error) => Err(error.into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

async fn dispatch(command: ClientCommand) -> Result<(), Failure> {
    match command {
        ClientCommand::Append(args) => append::run(&args).await,
        ClientCommand::Archive(args) => archive::run(&args).await,
        ClientCommand::Edit(args) => edit::run(&args).await,
        ClientCommand::Emit(args) => emit::run(&args).await,
        ClientCommand::Fetch(args) => fetch::run(&args).await,
        ClientCommand::Import(args) => import::run(&args).await,
        ClientCommand::List(args) => list::run(&args).await,
        ClientCommand::Lookup(args) => lookup::run(&args).await,
        ClientCommand::Publish(args) => publish::run(&args).await,
        ClientCommand::Versions(args) => versions::run(&args).await,
        ClientCommand::Watch(args) => watch::run(&args).await,
    }
}
