//! How a drain spreads itself: each watch is told to leave at its own moment, and when to return.
//!
//! Pure arithmetic over the number of watches. The moments are those of a golden-ratio sequence:
//! any run of tickets is spread evenly over the window, whoever draws them and in which order, so
//! nobody has to be counted or sorted. Random moments were rejected: they clump.

use std::time::{Duration, Instant};

/// Where the server is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Everything is served.
    Serving,
    /// No new watch; those that run are told `closing` within the window.
    Closing(Window),
    /// Nothing new at all; what is under way is finished.
    Stopping,
}

/// The times over which the watches of a drain leave and come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    began: Instant,
    leaving: Duration,
    returning: Duration,
}

/// What the original's clients wait before they come back; a restart takes about as long.
const RETURN_AFTER: Duration = Duration::from_millis(500);

/// Nobody is kept away longer than this, however many there are.
const RETURNING_MAX: Duration = Duration::from_secs(60);

/// 2^64 divided by the golden ratio: multiples of it, modulo 2^64, lie evenly at every length.
const GOLDEN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Window {
    /// A window for `watches`, which grows by `step` with each and leaves within `leaving_max`.
    pub fn new(began: Instant, watches: usize, step: Duration, leaving_max: Duration) -> Self {
        let grown = step.saturating_mul(u32::try_from(watches).unwrap_or(u32::MAX));
        Self {
            began,
            leaving: grown.min(leaving_max),
            returning: grown.min(RETURNING_MAX),
        }
    }

    /// When the watch that drew `ticket` is told to leave.
    pub fn leaves_at(&self, ticket: u64) -> Instant {
        self.began + self.leaving.mul_f64(place(ticket))
    }

    /// How long that watch is asked to stay away.
    pub fn returns_after(&self, ticket: u64) -> Duration {
        // Those who leave late come back late: the two spreads add up instead of mixing.
        RETURN_AFTER + self.returning.mul_f64(place(ticket))
    }

    /// When the last watch was told.
    pub fn ends_at(&self) -> Instant {
        self.began + self.leaving
    }
}

/// The part of `over` that falls to `ticket`: any run of tickets is spread evenly over the whole.
pub fn spread(ticket: u64, over: Duration) -> Duration {
    over.mul_f64(place(ticket))
}

/// The place of `ticket` in a window of length 1.
fn place(ticket: u64) -> f64 {
    const FRACTION_BITS: u32 = 53;
    let high_bits = ticket.wrapping_mul(GOLDEN_STEP) >> (u64::BITS - FRACTION_BITS);
    high_bits as f64 / (1u64 << FRACTION_BITS) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(watches: usize) -> Window {
        let step = Duration::from_millis(1);
        Window::new(Instant::now(), watches, step, Duration::from_secs(10))
    }

    #[test]
    fn the_window_grows_with_the_watches_up_to_its_bound() {
        let length = |watches| {
            let window = window(watches);
            window.ends_at() - window.began
        };
        assert_eq!(length(0), Duration::ZERO);
        assert_eq!(length(100), Duration::from_millis(100));
        assert_eq!(length(100_000), Duration::from_secs(10));
    }

    // T19
    #[test]
    fn any_run_of_tickets_is_spread_over_the_whole_window() {
        let window = window(1_000);
        for first in [0, 17, 123_456] {
            let mut per_tenth = [0; 10];
            for ticket in first..first + 1_000 {
                let after = window.leaves_at(ticket) - window.began;
                per_tenth[after.as_millis() as usize / 100] += 1;
            }
            assert!(
                per_tenth.iter().all(|count| (90..=110).contains(count)),
                "{per_tenth:?}"
            );
        }
    }

    // T19
    #[test]
    fn returns_are_spread_beyond_the_window_of_leaving() {
        let window = window(30_000);
        let returns: Vec<_> = (0..30_000)
            .map(|ticket| window.returns_after(ticket))
            .collect();
        assert!(*returns.iter().min().unwrap() >= RETURN_AFTER);
        assert!(*returns.iter().max().unwrap() > Duration::from_secs(30));
    }
}
