//! The tidings binary: configuration, wiring, drain and commands.

mod admin;
mod cli;
mod command;
mod config;
mod doctor;
mod holder;
mod http;
mod log;
mod metrics;
mod outcome;
mod serve;
mod token;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    // First of all: whatever makes a connection asks for the provider of the process.
    let installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
    debug_assert!(installed.is_ok(), "nothing else installs a provider");
    match Cli::parse().command {
        Command::Serve(args) => outcome::exit_code(serve::run(&args)),
        Command::Token(command) => outcome::exit_code(token::run(&command)),
        Command::Doctor(args) => doctor::run(&args),
        Command::Client(command) => command::run(command),
    }
}
