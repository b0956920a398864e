//! Who may begin a stream: a budget per second, and places.
//!
//! Both are taken before it is looked at who asks, so that a flood of strangers is cheap, and both
//! are given back by whatever ends without a stream (T26).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use gate::{Bucket, Phase, Rate, spread};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::limits::StreamLimits;
use super::refusal::{COME_BACK, COME_BACK_SPREAD};
use crate::face::Face;
use crate::fault::{Code, Fault};
use crate::limits::Limit;

/// The budget and the places of streams.
#[derive(Debug)]
pub(crate) struct Admission {
    bucket: Arc<Mutex<Bucket>>,
    rate: Rate,
    places: Arc<Semaphore>,
}

/// The place of a stream. Dropped before the stream began, it gives its part of the budget back.
#[derive(Debug)]
pub(crate) struct Admitted {
    _place: OwnedSemaphorePermit,
    budget: Option<(Arc<Mutex<Bucket>>, Rate)>,
}

impl Admission {
    pub(super) fn new(limits: &StreamLimits, now: Instant) -> Self {
        let rate = Rate {
            per_second: limits.accepts_per_second,
            burst: limits.accepts_burst,
        };
        Self {
            bucket: Arc::new(Mutex::new(Bucket::new(rate, now))),
            rate,
            places: Arc::new(Semaphore::new(limits.streams)),
        }
    }

    fn admit(&self, now: Instant) -> Result<Admitted, Limit> {
        let place = self.places.clone().try_acquire_owned();
        let place = place.map_err(|_| Limit::Streams)?;
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        if !bucket.take(self.rate, now) {
            return Err(Limit::StreamAccepts);
        }
        Ok(Admitted {
            _place: place,
            budget: Some((self.bucket.clone(), self.rate)),
        })
    }
}

impl Admitted {
    /// The stream began: its part of the budget is used.
    pub(crate) fn begin(&mut self) {
        self.budget = None;
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some((bucket, rate)) = self.budget.take() {
            let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
            bucket.give_back(rate);
        }
    }
}

/// Takes a place and a part of the budget for a stream.
pub(crate) fn admit(face: &Face) -> Result<Admitted, Fault> {
    if let Phase::Closing(window) = face.phase() {
        face.metrics.refused(Limit::Draining);
        let after = window.returns_after(face.ticket());
        return Err(Fault::new(Code::Draining).retry_after(after));
    }
    let admitted = match face.memory.is_over() {
        true => Err(Limit::Memory),
        false => face.streams.admission.admit(Instant::now()),
    };
    admitted.map_err(|limit| {
        face.metrics.refused(limit);
        let after = COME_BACK + spread(face.ticket(), COME_BACK_SPREAD);
        Fault::new(Code::Busy).retry_after(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // T26
    #[test]
    fn what_ends_without_a_stream_gives_its_budget_back() {
        let now = Instant::now();
        let limits = StreamLimits {
            accepts_per_second: 1,
            accepts_burst: 1,
            streams: 2,
            ..StreamLimits::default()
        };
        let admission = Admission::new(&limits, now);
        for _ in 0..5 {
            drop(admission.admit(now).unwrap());
        }
        let mut first = admission.admit(now).unwrap();
        first.begin();
        assert_eq!(admission.admit(now).unwrap_err(), Limit::StreamAccepts);
        drop(first);
        assert_eq!(admission.admit(now).unwrap_err(), Limit::StreamAccepts);
    }
}
