//! The memory budget: what the process may hold, and the sampling that keeps to it.
//!
//! Unset, the budget is three quarters of what the machine has, or of the control group's limit
//! where that is lower: above it the kernel is near to ending the process, and refusing newcomers
//! costs less than losing everyone. What allocators keep counts as held, because the kernel counts
//! it too.

use std::fs;
use std::path::Path;
use std::time::Duration;

use gate::{Crossing, Memory};
use tokio::time::{MissedTickBehavior, interval};

/// A flood fills some tens of MiB a second; a look costs a read of one small file.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);

/// Of what the machine has, three in four parts.
const SHARE: (u64, u64) = (3, 4);

/// The budget that was set, or the share of what this machine has; 0 where nobody says.
pub(super) fn budget_bytes(configured: Option<u64>) -> u64 {
    let share = |total: u64| total / SHARE.1 * SHARE.0;
    configured.unwrap_or_else(|| available_bytes(Path::new("/")).map_or(0, share))
}

/// Samples for ever. Cancel-safe.
pub(super) async fn sample(memory: Memory) {
    let mut ticks = interval(SAMPLE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(resident) = resident_bytes() else {
            return;
        };
        let budget = memory.budget_bytes();
        match memory.sample(resident) {
            Crossing::Below => tracing::info!(resident, budget, "there is memory again"),
            Crossing::None => {}
            Crossing::Over => tracing::warn!(
                resident,
                budget,
                "over the memory budget: new connections, watches and large uploads are refused"
            ),
        }
    }
}

/// What the process holds; `None` where the system doesn't tell.
fn resident_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// The memory of the machine or of the narrowest control group around the process.
fn available_bytes(root: &Path) -> Option<u64> {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok();
    let machine = machine.as_deref().and_then(parse_total);
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().flat_map(|line| group_limits(root, line));
    limits.chain(machine).min()
}

fn parse_total(meminfo: &str) -> Option<u64> {
    const KIB: u64 = 1024;

    let rest = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let number: u64 = rest.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(number * KIB)
}

/// The limits of one line of the process's control groups: of the group and all around it. Within
/// a container the group's own directory isn't there, and the root's files are the container's.
fn group_limits(root: &Path, line: &str) -> Vec<u64> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, group) = (parts.next(), parts.next(), parts.next());
    let (mount, file) = match controllers {
        Some("") => ("sys/fs/cgroup", "memory.max"),
        Some("memory") => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return Vec::new(),
    };
    let mount = root.join(mount);
    let group = Path::new(group.unwrap_or_default().trim_start_matches('/'));
    let read = |dir: &Path| fs::read_to_string(mount.join(dir).join(file)).ok();
    // An unlimited group says `max`, or a number above any machine's memory.
    let limit = |dir: &Path| read(dir)?.trim().parse().ok();
    group.ancestors().filter_map(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:       4096 kB\nMemFree: 1 kB\n");

    #[test]
    fn without_a_control_group_the_machine_counts() {
        let root = machine(&[MEMINFO]);
        assert_eq!(available_bytes(root.path()), Some(4 << 20));
        assert_eq!(available_bytes(machine(&[]).path()), None);
    }

    #[test]
    fn the_narrowest_control_group_counts() {
        let root = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/memory.max", "1048576\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
        ]);
        assert_eq!(available_bytes(root.path()), Some(1 << 20));
        let old = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "5:cpu:/x\n4:memory:/pod\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n"),
        ]);
        assert_eq!(available_bytes(old.path()), Some(2 << 20));
    }

    #[test]
    fn a_budget_that_was_set_is_taken_as_it_is() {
        assert_eq!(budget_bytes(Some(0)), 0);
        assert_eq!(budget_bytes(Some(7)), 7);
    }

    #[test]
    fn this_process_holds_something() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
