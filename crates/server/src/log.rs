//! Where log lines go: stderr, for people or as JSON.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::config::LogFormat;

/// Starts logging what `filter` selects. Lines that nobody can read any more are dropped.
pub(crate) fn start(filter: &str, format: LogFormat) -> anyhow::Result<()> {
    let filter: EnvFilter = filter
        .parse()
        .map_err(|error| anyhow::anyhow!("the log filter `{filter}` can't be used: {error}"))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::NONE)
        .with_writer(io::stderr);
    let started = match format {
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
        LogFormat::Text => lines.with_ansi(colours_are_wanted()).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging: {error}"))
}

fn colours_are_wanted() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}
