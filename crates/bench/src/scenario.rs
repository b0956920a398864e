//! What is measured: each function starts a fresh server, loads it, and returns its figures.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use quinn::Connection;
use tempfile::TempDir;
use testkit::process::ServerProcess;
use tokio::task::JoinSet;

use crate::floor;
use crate::load::{self, Dialer, Swarm};
use crate::report::{Figure, Section};
use crate::spread::Spread;

/// The watches of one connection in every fan-out, as the design's aims are stated.
const WATCHES_A_CONNECTION: usize = 100;
/// What an event block, its frame and packet take on the wire, rounded up.
const BLOCK_ON_WIRE_BYTES: usize = 240;
const PACKET_BYTES: usize = 1452;
const MICROS: f64 = 1e6;
const MILLIS: f64 = 1e3;

/// A fan-out: how many watchers, how many events after one that warms up, and how far apart. The
/// paces leave both cores some idle time, so that latencies don't add up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FanOut {
    watchers: usize,
    events: usize,
    pace: Duration,
}

impl FanOut {
    const THOUSAND: Self = Self {
        watchers: 1_000,
        events: 500,
        pace: Duration::from_millis(20),
    };
    const TEN_THOUSAND: Self = Self {
        watchers: 10_000,
        events: 40,
        pace: Duration::from_millis(250),
    };
    const HUNDRED_THOUSAND: Self = Self {
        watchers: 100_000,
        events: 10,
        pace: Duration::from_millis(2_500),
    };
}

/// How much of each scenario to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) fan_outs: &'static [FanOut],
    /// Connections of the memory scenario.
    pub(crate) idle_connections: usize,
    /// Writes of each latency scenario.
    pub(crate) writes: usize,
}

impl Extent {
    pub(crate) const WHOLE: Self = Self {
        fan_outs: &[
            FanOut::THOUSAND,
            FanOut::TEN_THOUSAND,
            FanOut::HUNDRED_THOUSAND,
        ],
        idle_connections: 2_000,
        writes: 500,
    };
    pub(crate) const QUICK: Self = Self {
        fan_outs: &[FanOut::THOUSAND],
        idle_connections: 100,
        writes: 50,
    };
}

/// A server process with its data in a temporary directory.
struct Bench {
    server: ServerProcess,
    dialer: Dialer,
    data: TempDir,
}

impl Bench {
    fn start(binary: &Path) -> anyhow::Result<Self> {
        let data = TempDir::new()?;
        let binary = binary.to_str().context("the binary's path is UTF-8")?;
        // The limits of a node that a few machines load on purpose.
        let server = ServerProcess::start(
            binary,
            &data.path().join("world"),
            &["--dev", "--config", &limits(data.path())?],
        );
        let dialer = Dialer::new(server.mark(), &data.path().join("world"))?;
        Ok(Self {
            server,
            dialer,
            data,
        })
    }
}

fn limits(directory: &Path) -> anyhow::Result<String> {
    let path = directory.join("tidings.toml");
    std::fs::write(
        &path,
        "[limits]\nwatches = 200000\nconnections_per_address = 20000\n\
         rate_per_second = 0\naccepts_per_second = 0\n",
    )?;
    Ok(path.to_str().context("the path is UTF-8")?.to_owned())
}

/// One writer and one watcher, writes spaced by a clock and not by their answers.
pub(crate) async fn latency(binary: &Path, extent: Extent) -> anyhow::Result<Section> {
    const PACE: Duration = Duration::from_millis(20);
    let bench = Bench::start(binary)?;
    let sync = floor::sync(bench.data.path())?;
    let publish = floor::publish(bench.data.path(), PACE)?;
    let mut swarm = Swarm::open(bench.dialer.dial_many(1).await?, 1, "/").await?;
    let writer = bench.dialer.dial().await?;
    let answers = write_at(&writer, extent.writes, PACE).await?;
    swarm.wait_for(extent.writes as u64).await?;
    let ages = swarm.take_ages();
    Ok(Section {
        title: "A write to its one watcher, synced",
        file: "latency",
        figures: vec![
            millis("write to watcher p50", ages.p50())
                .floor_of(publish.p50())
                .aim(2.0),
            millis("write to watcher p99", ages.p99())
                .floor_of(publish.p99())
                .aim(100.0),
            millis("write answered p50", answers.p50()).floor_of(publish.p50()),
            millis("write answered p99", answers.p99()).floor_of(publish.p99()),
            millis("one fdatasync p50", sync.p50()),
            millis("one fdatasync p99", sync.p99()),
        ],
    })
}

/// One event to many watches of one prefix.
pub(crate) async fn fan_out(
    binary: &Path,
    extent: Extent,
    progress: &dyn Fn(&str),
) -> anyhow::Result<Section> {
    let (block_send, packet_send) = floor::udp_send()?;
    let mut figures = vec![
        Figure::new(
            "bare UDP send, 200 B",
            "µs",
            block_send.as_secs_f64() * MICROS,
        ),
        Figure::new(
            "bare UDP send, full packet",
            "µs",
            packet_send.as_secs_f64() * MICROS,
        ),
    ];
    for fan_out in extent.fan_outs {
        progress(&format!("{} watchers", fan_out.watchers));
        figures.extend(fan_out_to(binary, *fan_out, block_send).await?);
    }
    Ok(Section {
        title: "One event to many watchers",
        file: "fan-out",
        figures,
    })
}

async fn fan_out_to(
    binary: &Path,
    fan_out: FanOut,
    block_send: Duration,
) -> anyhow::Result<Vec<Figure>> {
    let FanOut {
        watchers,
        events,
        pace,
    } = fan_out;
    let connections = watchers.div_ceil(WATCHES_A_CONNECTION);
    let packets = (WATCHES_A_CONNECTION * BLOCK_ON_WIRE_BYTES).div_ceil(PACKET_BYTES);
    let floor = floor::fan_out(connections, packets, events, pace)?;
    let bench = Bench::start(binary)?;
    let opened = bench.dialer.dial_many(connections).await?;
    let mut swarm = Swarm::open(opened, WATCHES_A_CONNECTION, "/").await?;
    let writer = bench.dialer.dial().await?;
    load::publish(&writer, "/warm-up.md", Bytes::from_static(b"once")).await?;
    swarm.wait_for(watchers as u64).await?;
    swarm.take_ages();
    let before = bench.server.usage();
    for number in 0..events {
        let begun = Instant::now();
        let body = Bytes::from(format!("event {number}"));
        load::publish(&writer, "/event.md", body).await?;
        swarm.wait_for((watchers * (number + 2)) as u64).await?;
        tokio::time::sleep(pace.saturating_sub(begun.elapsed())).await;
    }
    let cpu = bench.server.usage().cpu - before.cpu;
    let ages = swarm.take_ages();
    let micros = cpu.as_secs_f64() * MICROS / (watchers * events) as f64;
    let aim = if watchers > 10_000 { 500.0 } else { 100.0 };
    Ok(vec![
        millis(format!("1 to {watchers} p50"), ages.p50()).floor_of(floor.p50()),
        millis(format!("1 to {watchers} p99"), ages.p99())
            .floor_of(floor.p99())
            .aim(aim),
        Figure::new(
            format!("1 to {watchers} server CPU a delivery"),
            "µs",
            micros,
        )
        .floor(block_send.as_secs_f64() * MICROS)
        .aim(3.0),
    ])
}

/// Resident memory of connections and watches that do nothing.
pub(crate) async fn memory(binary: &Path, extent: Extent) -> anyhow::Result<Section> {
    let bench = Bench::start(binary)?;
    let before = bench.server.usage().resident_bytes;
    let connections = bench.dialer.dial_many(extent.idle_connections).await?;
    let connected = bench.server.usage().resident_bytes;
    let sparse = Swarm::open(connections.clone(), 1, "/a/").await?;
    let first = bench.server.usage().resident_bytes;
    let full = Swarm::open(connections, WATCHES_A_CONNECTION - 1, "/b/").await?;
    let watched = bench.server.usage().resident_bytes;
    let count = extent.idle_connections as f64;
    let kib = |bytes: u64, things: f64| bytes as f64 / 1024.0 / things;
    let further = count * (WATCHES_A_CONNECTION - 1) as f64;
    drop((sparse, full));
    Ok(Section {
        title: "Resident memory",
        file: "memory",
        figures: vec![
            Figure::new(
                "an idle connection",
                "KiB",
                kib(connected.saturating_sub(before), count),
            )
            .aim(40.0),
            Figure::new(
                "its first watch",
                "KiB",
                kib(first.saturating_sub(connected), count),
            ),
            Figure::new(
                "a further watch, stream included",
                "KiB",
                kib(watched.saturating_sub(first), further),
            ),
        ],
    })
}

/// Write latency with every reader reading, and with one in ten suspended.
pub(crate) async fn suspended(binary: &Path, extent: Extent) -> anyhow::Result<Section> {
    const READERS: usize = 20;
    const PACE: Duration = Duration::from_millis(10);
    let mut figures: Vec<Figure> = Vec::new();
    for stalled in [0, READERS / 10] {
        let bench = Bench::start(binary)?;
        let reading = bench.dialer.dial_many(READERS - stalled).await?;
        let _swarm = Swarm::open(reading, 10, "/").await?;
        let suspended = bench.dialer.dial_many(stalled).await?;
        let mut streams = Vec::new();
        for connection in &suspended {
            streams.extend(load::open_unread(connection, 10, "/").await?);
        }
        let writer = bench.dialer.dial().await?;
        let answers = write_at(&writer, extent.writes, PACE).await?;
        let name = format!("write p99, {stalled} of {READERS} readers suspended");
        let mut figure = millis(name, answers.p99());
        if let Some(unhindered) = figures.first() {
            // Within ten percent of the run in which everybody reads.
            figure = figure.floor(unhindered.value).aim(unhindered.value * 1.1);
        }
        figures.push(figure);
    }
    Ok(Section {
        title: "Writers beside suspended readers",
        file: "suspended",
        figures,
    })
}

/// As many synced publishes as writers side by side get through.
pub(crate) async fn throughput(binary: &Path, extent: Extent) -> anyhow::Result<Section> {
    let mut figures = Vec::new();
    for writers in [1, 32] {
        let bench = Bench::start(binary)?;
        let publish = floor::publish(bench.data.path(), Duration::ZERO)?;
        let connections = bench.dialer.dial_many(writers).await?;
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for (index, connection) in connections.into_iter().enumerate() {
            tasks.spawn(write_in_turn(connection, index, extent.writes));
        }
        while let Some(written) = tasks.join_next().await {
            written??;
        }
        let rate = (writers * extent.writes) as f64 / begun.elapsed().as_secs_f64();
        figures.push(
            Figure::new(
                format!("publishes a second, {writers} writers"),
                "1/s",
                rate,
            )
            .floor(1.0 / publish.p50().as_secs_f64())
            .larger_is_better(),
        );
    }
    Ok(Section {
        title: "Synced publishes",
        file: "throughput",
        figures,
    })
}

async fn write_in_turn(connection: Connection, writer: usize, writes: usize) -> anyhow::Result<()> {
    for number in 0..writes {
        let body = Bytes::from(format!("{writer} writes {number}"));
        load::publish(&connection, &format!("/writer-{writer}.md"), body).await?;
    }
    Ok(())
}

/// Publishes `count` times on the beat of `pace`, however long an answer takes; ages of the answers
/// count from the beat, so a stall shows in every write that it delays.
async fn write_at(writer: &Connection, count: usize, pace: Duration) -> anyhow::Result<Spread> {
    let ages = Arc::new(std::sync::Mutex::new(Spread::new()));
    let mut writes: JoinSet<anyhow::Result<()>> = JoinSet::new();
    let mut beat = tokio::time::interval(pace);
    for number in 0..count {
        beat.tick().await;
        let (writer, ages) = (writer.clone(), Arc::clone(&ages));
        writes.spawn(async move {
            let begun = Instant::now();
            let path = format!("/latency/{}.md", number % 10);
            load::publish(&writer, &path, Bytes::from(format!("write {number}"))).await?;
            ages.lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .record(begun.elapsed());
            Ok(())
        });
    }
    while let Some(written) = writes.join_next().await {
        written??;
    }
    let ages = ages
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(ages.clone())
}

fn millis(name: impl Into<String>, value: Duration) -> Figure {
    Figure::new(name, "ms", value.as_secs_f64() * MILLIS)
}

impl Figure {
    /// A floor in milliseconds.
    fn floor_of(self, floor: Duration) -> Self {
        self.floor(floor.as_secs_f64() * MILLIS)
    }
}
