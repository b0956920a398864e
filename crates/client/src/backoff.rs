//! Growing pauses with jitter. The randomness is a seed, so that a test can repeat a run.

use std::time::Duration;

/// A source of jitter: a 64-bit xorshift, which is spread enough to part a herd of clients.
#[derive(Clone, Debug)]
pub(crate) struct Jitter(u64);

impl Jitter {
    /// Starts from `seed`; any value will do.
    pub(crate) const fn from_seed(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// Starts from the system's randomness. Without any the pauses still grow, but in step.
    pub(crate) fn from_system() -> Self {
        Self::from_seed(getrandom::u64().unwrap_or(0x9e37_79b9_7f4a_7c15))
    }

    /// A pause of `middle`, half of it more or less.
    pub(crate) fn around(&mut self, middle: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let share = (self.0 >> 32) as u32;
        middle / 2 + middle.mul_f64(f64::from(share) / f64::from(u32::MAX))
    }
}

/// Pauses that double from a first one up to a cap, each jittered.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    next: Duration,
    max: Duration,
    jitter: Jitter,
}

impl Backoff {
    pub(crate) const fn new(first: Duration, max: Duration, jitter: Jitter) -> Self {
        Self {
            first,
            next: first,
            max,
            jitter,
        }
    }

    /// The pause before the next try.
    pub(crate) fn pause(&mut self) -> Duration {
        let middle = self.next;
        self.next = (middle * 2).min(self.max);
        self.jitter.around(middle)
    }

    /// A pause outside the series, jittered alike.
    pub(crate) fn pause_around(&mut self, middle: Duration) -> Duration {
        self.jitter.around(middle)
    }

    /// Begins again with the first pause: something worked.
    pub(crate) const fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // L68
    #[test]
    fn pauses_grow_to_the_cap_with_jitter_and_begin_again_after_success() {
        let (first, max) = (Duration::from_millis(100), Duration::from_secs(5));
        let mut backoff = Backoff::new(first, max, Jitter::from_seed(7));
        let mut middle = first;
        for _ in 0..100 {
            let pause = backoff.pause();
            assert!(pause >= middle / 2 && pause <= middle * 3 / 2, "{pause:?}");
            middle = (middle * 2).min(max);
        }
        backoff.reset();
        assert!(backoff.pause() <= first * 3 / 2);
    }

    #[test]
    fn two_seeds_part_ways() {
        let pause = |seed| Jitter::from_seed(seed).around(Duration::from_secs(1));
        assert_ne!(pause(1 << 40), pause(1 << 41));
    }
}
