//! Measures durable appends: `throughput DIR [SECONDS]`, on the file system that `DIR` is on.
//!
//! Each appender is a thread that appends 256 bytes and waits until they are durable, in a closed
//! loop. The printed times are those of single appends as their callers saw them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use journal::{Config, Journal};
use storage::{Disk, Storage};
use wire::{Epoch, Seq};

const PAYLOAD: [u8; 256] = [7; 256];
const APPENDERS: [usize; 3] = [1, 64, 1000];
/// A waiting appender needs little stack, and there may be a thousand.
const STACK_BYTES: usize = 128 << 10;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args_os().skip(1);
    let root = PathBuf::from(args.next().context("usage: throughput DIR [SECONDS]")?);
    let seconds = args.next().and_then(|text| text.to_str()?.parse().ok());
    let run = Duration::from_secs(seconds.unwrap_or(5));
    let disk: Arc<dyn Storage> = Arc::new(Disk::open(&root)?);
    println!("appenders  appends/s  per sync  p50 ms  p99 ms  max ms");
    for appenders in APPENDERS {
        let config = Config::new("throughput.journal");
        let epoch = Epoch::from_random([0; 6]);
        let journal = Journal::create(Arc::clone(&disk), config, epoch, Seq::new(1))?;
        measure(&journal, appenders, run)?;
    }
    Ok(())
}

fn measure(journal: &Journal, appenders: usize, run: Duration) -> anyhow::Result<()> {
    let next = Mutex::new(Seq::ZERO);
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    let mut times = thread::scope(|scope| -> anyhow::Result<Vec<Duration>> {
        let mut threads = Vec::new();
        for _ in 0..appenders {
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            let appender = || append_until(journal, &next, &stop);
            threads.push(builder.spawn_scoped(scope, appender)?);
        }
        thread::sleep(run);
        stop.store(true, Ordering::Relaxed);
        let mut times = Vec::new();
        for thread in threads {
            let of_thread = thread.join().expect("an appender returns its errors");
            times.extend(of_thread?);
        }
        Ok(times)
    })?;
    let elapsed = begun.elapsed();
    times.sort_unstable();
    let stats = journal.stats();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    println!(
        "{appenders:9}  {:9.0}  {:8.1}  {:6.2}  {:6.2}  {:6.2}",
        stats.records as f64 / elapsed.as_secs_f64(),
        stats.records as f64 / stats.batches as f64,
        at(0.5),
        at(0.99),
        at(1.0),
    );
    Ok(())
}

fn append_until(
    journal: &Journal,
    next: &Mutex<Seq>,
    stop: &AtomicBool,
) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let ticket = {
            let mut next = next.lock().expect("no appender panics");
            let seq = next.next();
            let ticket = journal.append(seq, &PAYLOAD)?;
            *next = seq;
            ticket
        };
        journal.wait(&ticket)?;
        times.push(begun.elapsed());
    }
    Ok(times)
}
