//! How a command of the server's side ends: its exit code, and what is said on stderr.

use std::io;
use std::process::ExitCode;

use crate::config::ConfigError;

/// The command line or the configuration can't be used.
const BAD_USAGE: u8 = 2;

/// Says what went wrong and gives the exit code. A reader of stdout that left is no failure.
pub(crate) fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    if is_broken_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    eprintln!("tidings: {error:#}");
    if error.is::<ConfigError>() {
        ExitCode::from(BAD_USAGE)
    } else {
        ExitCode::FAILURE
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}
