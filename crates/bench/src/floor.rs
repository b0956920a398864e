//! What the machine itself can do, measured in the same run: the disk's sync and the bare UDP send.
//!
//! No server can be faster than its floor, so a figure is read as a ratio to it.

use std::fs::{self, File};
use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use crate::spread::Spread;

/// The size of a watch block with a short path, and so of what one delivery must carry.
const BLOCK_BYTES: usize = 200;
/// The largest payload of a QUIC packet on loopback as both ends settle on it.
const PACKET_BYTES: usize = 1452;
const SYNCS: usize = 400;
const SENDS: usize = 200_000;

/// Appends of 200 bytes, each with its `fdatasync`.
pub(crate) fn sync(directory: &Path) -> anyhow::Result<Spread> {
    let mut file = File::create(directory.join("floor-sync"))?;
    let mut spread = Spread::new();
    for _ in 0..SYNCS {
        let begun = Instant::now();
        file.write_all(&[b'.'; BLOCK_BYTES])?;
        file.sync_data()?;
        spread.record(begun.elapsed());
    }
    Ok(spread)
}

/// The file operations that a durable publish can't do without: the version file and its name,
/// the journal's record, the link; each synced. One on each beat of `pace`, as the writer that is
/// compared with it, since a machine that was idle in between is slower.
pub(crate) fn publish(directory: &Path, pace: Duration) -> anyhow::Result<Spread> {
    let root = directory.join("floor-publish");
    fs::create_dir(&root)?;
    let handle = File::open(&root)?;
    let mut journal = File::create(root.join("journal"))?;
    let mut spread = Spread::new();
    for number in 0..SYNCS {
        let begun = Instant::now();
        let version = root.join(format!("v{number}"));
        let mut file = File::create(&version)?;
        file.write_all(&[b'.'; 1024])?;
        file.sync_data()?;
        handle.sync_all()?;
        journal.write_all(&[b'.'; BLOCK_BYTES])?;
        journal.sync_data()?;
        symlink(&version, root.join("link.tmp"))?;
        fs::rename(root.join("link.tmp"), root.join("link"))?;
        handle.sync_all()?;
        spread.record(begun.elapsed());
        std::thread::sleep(pace.saturating_sub(begun.elapsed()));
    }
    Ok(spread)
}

/// CPU time of one bare UDP send on loopback, for a small block and for a full packet.
pub(crate) fn udp_send() -> anyhow::Result<(Duration, Duration)> {
    Ok((cpu_per_send(BLOCK_BYTES)?, cpu_per_send(PACKET_BYTES)?))
}

fn cpu_per_send(bytes: usize) -> anyhow::Result<Duration> {
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    sender.connect(receiver.local_addr()?)?;
    let payload = vec![b'.'; bytes];
    let begun = thread_cpu();
    for _ in 0..SENDS {
        // A full buffer drops the packet, which costs the sender the same.
        sender
            .send(&payload)
            .context("loopback takes every packet")?;
    }
    Ok((thread_cpu() - begun) / u32::try_from(SENDS)?)
}

/// How long one thread needs to hand `packets` full packets to each of `sockets` loopback sockets,
/// as another thread that reads them sees it, once in each `pace`: the fan-out of a server without
/// any work of its own to a client without any.
pub(crate) fn fan_out(
    sockets: usize,
    packets: usize,
    rounds: usize,
    pace: Duration,
) -> anyhow::Result<Spread> {
    let receivers = (0..sockets)
        .map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<Vec<_>, _>>()?;
    let addresses = receivers
        .iter()
        .map(UdpSocket::local_addr)
        .collect::<Result<Vec<_>, _>>()?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let payload = vec![b'.'; PACKET_BYTES];
    let mut spread = Spread::new();
    for _ in 0..rounds {
        std::thread::sleep(pace);
        let begun = Instant::now();
        std::thread::scope(|scope| -> anyhow::Result<()> {
            let reading = scope.spawn(|| receive(&receivers, packets, begun));
            for address in &addresses {
                for _ in 0..packets {
                    sender.send_to(&payload, address)?;
                }
            }
            let read = reading
                .join()
                .map_err(|_| anyhow!("the reading thread panicked"))?;
            spread.merge(&read?);
            Ok(())
        })?;
    }
    Ok(spread)
}

fn receive(sockets: &[UdpSocket], packets: usize, begun: Instant) -> anyhow::Result<Spread> {
    let mut buf = vec![0; PACKET_BYTES];
    let mut spread = Spread::new();
    for socket in sockets {
        for _ in 0..packets {
            socket.recv(&mut buf)?;
            spread.record(begun.elapsed());
        }
    }
    Ok(spread)
}

/// What the calling thread used up to now.
fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let nanos = u32::try_from(now.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(now.tv_sec).unwrap_or_default(), nanos)
}
