//! What the developer commands do, each as a few calls of cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

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

/// Runs all tests of the workspace, doc examples included.
pub(crate) fn test(rest: &[String]) -> anyhow::Result<()> {
    let mut arguments = vec!["test", "--workspace"];
    arguments.extend(rest.iter().map(String::as_str));
    cargo(&arguments)
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

fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(arguments)
        .current_dir(root())
        .status()
        .context("cargo could not be started")?;
    if !status.success() {
        bail!("`cargo {}` ended with {status}", arguments.join(" "));
    }
    Ok(())
}

/// The workspace's root directory.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
