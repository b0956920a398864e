//! The latency and load harness, run as `cargo xtask bench`.
//!
//! It starts the built server on loopback, loads it from this process, and writes a table, its
//! figures as JSON lines, and charts. Floors are measured in the same run, since a figure without
//! the machine's own limit says nothing on another machine. A run is bounded in count and time.

mod floor;
mod load;
mod plot;
mod report;
mod scenario;
mod spread;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::ensure;
use clap::Parser;

use crate::scenario::Extent;

/// Measures the built server beside the machine's floors.
#[derive(Debug, Parser)]
struct Arguments {
    /// The server to measure.
    #[arg(long, default_value = "target/release/tidings")]
    binary: PathBuf,
    /// Where table and charts go.
    #[arg(long, default_value = "bench/results")]
    out: PathBuf,
    /// A short run that shows that the harness works; its figures mean little.
    #[arg(long)]
    quick: bool,
    /// Run these parts alone: latency, fan-out, memory, suspended, throughput.
    parts: Vec<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    ensure!(
        arguments.binary.exists(),
        "{} is not built",
        arguments.binary.display()
    );
    let extent = if arguments.quick {
        Extent::QUICK
    } else {
        Extent::WHOLE
    };
    let begun = Instant::now();
    let progress = |text: &str| eprintln!("[{:>4} s] {text}", begun.elapsed().as_secs());
    let mut sections = Vec::new();
    for part in ["latency", "fan-out", "memory", "suspended", "throughput"] {
        if !arguments.parts.is_empty() && !arguments.parts.iter().any(|wanted| wanted == part) {
            continue;
        }
        progress(part);
        let binary = &arguments.binary;
        sections.push(match part {
            "latency" => scenario::latency(binary, extent).await?,
            "fan-out" => scenario::fan_out(binary, extent, &progress).await?,
            "memory" => scenario::memory(binary, extent).await?,
            "suspended" => scenario::suspended(binary, extent).await?,
            _ => scenario::throughput(binary, extent).await?,
        });
    }
    report::write(&arguments.out, &intro(extent), &sections)?;
    progress(&format!(
        "done, see {}",
        arguments.out.join("results.md").display()
    ));
    Ok(())
}

fn intro(extent: Extent) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kind = if extent.writes == Extent::WHOLE.writes {
        "whole"
    } else {
        "quick"
    };
    format!(
        "A {kind} run of `cargo xtask bench` on {cores} cores, shared by server and load client. \
         The floor of a figure is what the machine does by itself in the same run: the synced \
         file operations of a publish, bare UDP sends. An aim that the floor rules out counts as \
         reached at 1.3 × the floor."
    )
}
