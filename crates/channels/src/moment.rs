//! The time, as the caller's clocks tell it.

use std::time::Duration;

/// The time at a call.
///
/// Leases and intervals go by the monotonic part alone, so that a step of the wall clock makes
/// nobody leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// The time since some instant before the hub was made; it never goes back.
    pub elapsed: Duration,
    /// Milliseconds since 1970 by the wall clock, to be shown.
    pub unix_ms: u64,
}
