//! The tests of the TypeScript client: against fakes, the built server, and a real browser.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::steps::{cargo, root, run};

/// Where Debian's package puts the browser.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Builds the server and runs everything in `clients/js` with it. Without npm it says so and does
/// nothing: whoever works on the server alone need not have it.
pub(crate) fn test() -> anyhow::Result<()> {
    if !is_there("npm")? {
        eprintln!("npm is missing: the tests of clients/js are skipped");
        return Ok(());
    }
    install_chromium()?;
    cargo(&["build", "--package", "tidings-server"])?;
    run(npm("ci"))?;
    let mut tests = npm("test");
    tests.env("TIDINGS_BIN", root().join("target/debug/tidings"));
    run(tests)
}

/// Installs the browser where that can be done without asking; elsewhere its tests say that it is
/// missing.
fn install_chromium() -> anyhow::Result<()> {
    if Path::new(CHROMIUM).exists() || !is_root()? || !is_there("apt-get")? {
        return Ok(());
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .args(["-qq", "-o", "DPkg::Lock::Timeout=300"])
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        run(command)
    };
    apt(&["update"])?;
    apt(&["install", "--yes", "--no-install-recommends", "chromium"])
}

fn npm(step: &str) -> Command {
    let mut command = Command::new("npm");
    command
        .args([step, "--no-audit", "--no-fund"])
        .current_dir(root().join("clients/js"));
    command
}

/// True if `program` can be started.
fn is_there(program: &str) -> anyhow::Result<bool> {
    match Command::new(program).arg("--version").output() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("start {program}")),
    }
}

fn is_root() -> anyhow::Result<bool> {
    let id = Command::new("id").arg("-u").output().context("start id")?;
    Ok(id.stdout.trim_ascii() == b"0")
}
