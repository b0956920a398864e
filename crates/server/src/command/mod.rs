//! The client commands: what a terminal says to a server.

use std::process::ExitCode;

use clap::Subcommand;

/// A command that speaks to a server.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {}

/// Runs the command and says how it ended.
pub(crate) fn run(command: ClientCommand) -> ExitCode {
    match command {}
}
