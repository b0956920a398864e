//! What a process used, as the kernel counts it: CPU time and resident memory.

use std::fs;
use std::time::Duration;

use anyhow::Context;

/// The kernel counts CPU time of other processes in ticks of 10 ms on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// What a process used up to now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// User and system time of all its threads.
    pub(crate) cpu: Duration,
    /// Resident memory in bytes.
    pub(crate) resident_bytes: u64,
}

impl Usage {
    /// Reads what process `pid` used.
    pub(crate) fn of(pid: u32) -> anyhow::Result<Self> {
        let path = format!("/proc/{pid}/stat");
        let stat = fs::read_to_string(&path).with_context(|| path.clone())?;
        // The second field is the name in parentheses, which may hold spaces itself.
        let (_, fields) = stat
            .rsplit_once(") ")
            .with_context(|| format!("{path} is odd"))?;
        let field = |index: usize| -> anyhow::Result<u64> {
            let word = fields
                .split(' ')
                .nth(index)
                .with_context(|| format!("{path} is short"))?;
            word.parse()
                .with_context(|| format!("{path}, field {index}"))
        };
        let ticks = u32::try_from(field(11)? + field(12)?).context("years of CPU time")?;
        let page_bytes = rustix::param::page_size() as u64;
        Ok(Self {
            cpu: TICK * ticks,
            resident_bytes: field(21)? * page_bytes,
        })
    }
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let nanos = u32::try_from(now.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(now.tv_sec).unwrap_or_default(), nanos)
}
