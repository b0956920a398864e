//! The command line: every command of `tidings`.
//!
//! Data goes to stdout, everything else to stderr. A flag beats its environment variable, which
//! beats the configuration file, which beats the default.

use clap::{Parser, Subcommand};

use crate::command::ClientCommand;
use crate::doctor::DoctorArgs;
use crate::serve::ServeArgs;
use crate::token::TokenCommand;

/// Versioned documents that can be published and watched.
#[derive(Debug, Parser)]
#[command(name = "tidings", version)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server.
    Serve(Box<ServeArgs>),
    /// Make, list and revoke tokens, and open closed places.
    Token(TokenCommand),
    /// Say what is wrong around a server, and the command that mends it.
    Doctor(DoctorArgs),
    /// What speaks to a server.
    #[command(flatten)]
    Client(ClientCommand),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_commands_in_the_files_for_deployment_are_commands() {
        let deploy = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
        for (file, marker) in [
            ("tidings.service", "=/usr/local/bin/tidings "),
            ("Containerfile", " CONTAINER tidings "),
        ] {
            let text = std::fs::read_to_string(deploy.join(file)).unwrap();
            let commands = text.lines().filter_map(|line| line.split_once(marker));
            let mut count = 0;
            for (_, arguments) in commands {
                let words = arguments
                    .split_whitespace()
                    .map(|word| word.replace('\'', ""));
                let line = std::iter::once("tidings".to_owned()).chain(words);
                Cli::try_parse_from(line).unwrap_or_else(|error| panic!("{file}: {error}"));
                count += 1;
            }
            assert_eq!(count, 2, "{file}");
        }
    }
}
