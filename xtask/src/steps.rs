//! What the developer commands do, each as a few calls of cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::javascript;

/// Checks format and lints without changing anything.
pub(crate) fn lint() -> anyhow::Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ])
}

/// Runs all tests of the workspace, doc examples included, then those of the clients; with
/// arguments, what cargo makes of them.
pub(crate) fn test(rest: &[String]) -> anyhow::Result<()> {
    let mut arguments = vec!["test", "--workspace"];
    arguments.extend(rest.iter().map(String::as_str));
    cargo(&arguments)?;
    if rest.is_empty() {
        javascript::test()?;
    }
    Ok(())
}

/// Builds server and harness for speed and runs the harness.
pub(crate) fn bench(rest: &[String]) -> anyhow::Result<()> {
    cargo(&[
        "build",
        "--release",
        "--package",
        "tidings-server",
        "--package",
        "tidings-bench",
    ])?;
    let mut arguments = vec!["run", "--release", "--package", "tidings-bench", "--"];
    arguments.extend(rest.iter().map(String::as_str));
    cargo(&arguments)
}

/// Runs the soak for `minutes` and leaves its report in `bench/results/soak.md`.
pub(crate) fn soak(minutes: u64) -> anyhow::Result<()> {
    let report = root().join("bench/results/soak.md");
    let mut command = cargo_command(&["test", "--release", "--package", "tidings-server"]);
    command
        .args(["--test", "silence", "soak", "--", "--nocapture"])
        .env("TIDINGS_SOAK_MINUTES", minutes.to_string())
        .env("TIDINGS_SOAK_REPORT", report);
    run(command)
}

/// Runs every target of `fuzz/` for `seconds`.
pub(crate) fn fuzz(seconds: u64) -> anyhow::Result<()> {
    let limit = format!("-max_total_time={seconds}");
    for target in fuzz_targets()? {
        // Sanitizers need a nightly compiler that a developer may lack; panics show without them.
        cargo(&["fuzz", "run", "--sanitizer", "none", &target, "--", &limit])?;
    }
    Ok(())
}

fn fuzz_targets() -> anyhow::Result<Vec<String>> {
    let directory = root().join("fuzz/fuzz_targets");
    let mut targets = Vec::new();
    for entry in std::fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if let Some(stem) = path
            .file_stem()
            .filter(|_| path.extension().is_some_and(|e| e == "rs"))
        {
            targets.push(stem.to_string_lossy().into_owned());
        }
    }
    targets.sort();
    Ok(targets)
}

/// Runs cargo in the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    run(cargo_command(arguments))
}

fn cargo_command(arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(root());
    command
}

/// Runs `command` and expects that it succeeds.
pub(crate) fn run(mut command: Command) -> anyhow::Result<()> {
    let started = command.status();
    let status = started.with_context(|| format!("{command:?} could not be started"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// The workspace's root directory.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
