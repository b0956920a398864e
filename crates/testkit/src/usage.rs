//! What a process uses, as the kernel counts it.

use std::fs;
use std::io;
use std::time::Duration;

/// The kernel counts CPU time of other processes in ticks of 10 ms on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// What a process used up to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// User and system time of all its threads.
    pub cpu: Duration,
    /// Open descriptors.
    pub descriptors: usize,
    /// Resident memory in bytes.
    pub resident_bytes: u64,
}

impl Usage {
    /// Reads what process `pid` uses.
    pub fn of(pid: u32) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let ticks = cpu_ticks(&stat).ok_or_else(odd)?;
        let kib = status.lines().find_map(resident_kib).ok_or_else(odd)?;
        Ok(Self {
            cpu: TICK * ticks,
            descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
            resident_bytes: kib * 1024,
        })
    }
}

/// User and system time are the 14th and 15th field; the second is a name in parentheses, which may
/// hold spaces itself.
fn cpu_ticks(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

fn resident_kib(line: &str) -> Option<u64> {
    line.strip_prefix("VmRSS:")?
        .trim()
        .strip_suffix(" kB")?
        .parse()
        .ok()
}

fn odd() -> io::Error {
    io::Error::other("the kernel describes a process in an unknown way")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        let usage = Usage::of(std::process::id()).expect("it is described");
        assert!(
            usage.resident_bytes > 100_000 && usage.descriptors >= 3,
            "{usage:?}"
        );
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_is_no_field() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 100 0 0 0 12 30 0 0 20 0 1 0 1 1 1";
        assert_eq!(cpu_ticks(stat), Some(42));
    }
}
