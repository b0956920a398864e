//! Token buckets, one per network and a shared one for the overflow.
//!
//! A bucket that has filled up again says nothing that a fresh one wouldn't, so it is forgotten
//! when room is needed. When every bucket is in use, the networks that find no room share one:
//! a flood from many addresses then slows its own kind and costs no more memory.

use std::collections::HashMap;
use std::time::Instant;

use crate::network::Network;

/// A bucket of `burst` tokens that gains `per_second`.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Tokens gained per second; 0 is no limit.
    pub per_second: u32,
    /// Tokens that fit.
    pub burst: u32,
}

/// One bucket; its rate is its owner's, so that a bucket is two words.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    /// A full bucket.
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self {
            tokens: f64::from(rate.burst),
            filled: now,
        }
    }

    /// Takes one token if there is one.
    pub fn take(&mut self, rate: Rate, now: Instant) -> bool {
        if rate.per_second == 0 {
            return true;
        }
        self.fill(rate, now);
        let taken = self.tokens >= 1.0;
        if taken {
            self.tokens -= 1.0;
        }
        taken
    }

    /// Puts back a token that was taken and not used.
    pub fn give_back(&mut self, rate: Rate) {
        self.tokens = (self.tokens + 1.0).min(f64::from(rate.burst));
    }

    fn fill(&mut self, rate: Rate, now: Instant) {
        let gained = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = gained
            .mul_add(f64::from(rate.per_second), self.tokens)
            .min(f64::from(rate.burst));
        self.filled = self.filled.max(now);
    }

    fn is_full(&mut self, rate: Rate, now: Instant) -> bool {
        self.fill(rate, now);
        self.tokens >= f64::from(rate.burst)
    }
}

/// The buckets of all networks.
#[derive(Debug)]
pub struct Buckets {
    rate: Rate,
    networks_max: usize,
    networks: HashMap<Network, Bucket>,
    overflow: Bucket,
    /// When the map was last searched for full buckets: a search per request would be a bill that
    /// the flood sends us.
    swept: Instant,
}

/// A bucket of the default rate is full again after two seconds; sweeping more often finds little.
const SWEEP_INTERVAL_SECS: f64 = 1.0;

impl Buckets {
    /// No bucket yet.
    pub fn new(rate: Rate, networks_max: usize, now: Instant) -> Self {
        Self {
            rate,
            networks_max,
            networks: HashMap::new(),
            overflow: Bucket::new(rate, now),
            swept: now,
        }
    }

    /// Takes one of `network`'s tokens if there is one.
    pub fn take(&mut self, network: Network, now: Instant) -> bool {
        if self.rate.per_second == 0 {
            return true;
        }
        if let Some(bucket) = self.networks.get_mut(&network) {
            return bucket.take(self.rate, now);
        }
        if self.networks.len() >= self.networks_max {
            self.sweep(now);
        }
        if self.networks.len() >= self.networks_max {
            return self.overflow.take(self.rate, now);
        }
        let bucket = self
            .networks
            .entry(network)
            .or_insert_with(|| Bucket::new(self.rate, now));
        bucket.take(self.rate, now)
    }

    fn sweep(&mut self, now: Instant) {
        if now.saturating_duration_since(self.swept).as_secs_f64() < SWEEP_INTERVAL_SECS {
            return;
        }
        self.swept = now;
        let rate = self.rate;
        self.networks.retain(|_, bucket| !bucket.is_full(rate, now));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const RATE: Rate = Rate {
        per_second: 10,
        burst: 3,
    };

    fn network(last: u8) -> Network {
        Network::of([192, 0, 2, last].into())
    }

    #[test]
    fn a_burst_passes_and_the_rest_waits_for_the_refill() {
        let start = Instant::now();
        let mut buckets = Buckets::new(RATE, 8, start);
        let passed = (0..5).filter(|_| buckets.take(network(1), start)).count();
        assert_eq!(passed, 3);
        assert!(buckets.take(network(1), start + Duration::from_millis(100)));
        assert!(!buckets.take(network(1), start + Duration::from_millis(100)));
    }

    #[test]
    fn one_network_does_not_use_up_anothers_tokens() {
        let start = Instant::now();
        let mut buckets = Buckets::new(RATE, 8, start);
        while buckets.take(network(1), start) {}
        assert!(buckets.take(network(2), start));
    }

    #[test]
    fn a_rate_of_zero_limits_nothing() {
        let start = Instant::now();
        let mut buckets = Buckets::new(
            Rate {
                per_second: 0,
                burst: 1,
            },
            1,
            start,
        );
        assert!((0..1_000).all(|_| buckets.take(network(1), start)));
    }

    #[test]
    fn more_networks_than_fit_share_one_bucket_until_others_are_full_again() {
        let start = Instant::now();
        let mut buckets = Buckets::new(RATE, 2, start);
        assert!(buckets.take(network(1), start));
        assert!(buckets.take(network(2), start));
        let passed = (3..10)
            .filter(|last| buckets.take(network(*last), start))
            .count();
        assert_eq!(passed, 3);
        assert_eq!(buckets.networks.len(), 2);
        let later = start + Duration::from_secs(2);
        assert!(buckets.take(network(10), later));
        assert_eq!(buckets.networks.len(), 1);
    }
}
