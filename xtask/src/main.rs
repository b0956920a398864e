//! Developer commands, run as `cargo xtask NAME`.

mod javascript;
mod steps;

use clap::{Parser, Subcommand};

/// Developer commands of Tidings.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure the built server beside the machine's floors; ends within ten minutes.
    Bench {
        /// Passed on to the harness, such as `--quick` or the name of a part.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Format and lint checks, as CI runs them.
    Lint,
    /// All tests. Installs and starts what they need.
    Test {
        /// Passed on to `cargo test`, such as a test's name.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Run every fuzz target for a while. Needs cargo-fuzz and a nightly toolchain.
    Fuzz {
        /// Seconds for each target.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Write and watch under one fault after another: nothing may be lost, nothing may grow.
    Soak {
        /// How long.
        #[arg(long, default_value_t = 60)]
        minutes: u64,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Bench { rest } => steps::bench(&rest),
        Command::Lint => steps::lint(),
        Command::Test { rest } => steps::test(&rest),
        Command::Fuzz { seconds } => steps::fuzz(seconds),
        Command::Soak { minutes } => steps::soak(minutes),
    }
}
