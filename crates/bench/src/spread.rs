//! A distribution of durations.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Resolution of a recorded value: three significant digits.
const DIGITS: u8 = 3;

/// Durations, kept as counts.
#[derive(Clone, Debug)]
pub(crate) struct Spread(Histogram<u64>);

impl Spread {
    pub(crate) fn new() -> Self {
        Self(Histogram::new(DIGITS).expect("three digits are within what the library takes"))
    }

    pub(crate) fn record(&mut self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        // The histogram grows with its values, up to centuries.
        let _infallible = self.0.record(nanos);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        // Both are auto-resizing and of the same resolution, so addition can't fail.
        let _infallible = self.0.add(&other.0);
    }

    pub(crate) fn p50(&self) -> Duration {
        self.quantile(0.5)
    }

    pub(crate) fn p99(&self) -> Duration {
        self.quantile(0.99)
    }

    fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.0.value_at_quantile(quantile))
    }
}
