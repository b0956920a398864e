//! Whether the process has room for more clients.
//!
//! Somebody samples the resident memory and hands it in; the faces ask [`Memory::is_over`] before
//! they take what costs memory for long: a connection, a watch, a large upload. What runs already
//! is never touched, because ending it would cost a burst of reconnects just when there is no room
//! for one. Above the budget the answer is no until a sixteenth of it is free again, so that
//! the answer does not flap with every client that leaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The part of the budget that has to be free again, as one in so many.
const FREE_AGAIN: u64 = 16;

/// The budget and what was sampled last. A cheap handle: clones share it.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// 0 is no budget.
    budget: u64,
    resident: AtomicU64,
    over: AtomicBool,
}

/// What a sample led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// There is room again.
    Below,
    /// As before.
    None,
    /// There is no room from here on.
    Over,
}

impl Memory {
    /// A budget in bytes; 0 limits nothing.
    pub fn new(budget_bytes: u64) -> Self {
        Self(Arc::new(State {
            budget: budget_bytes,
            ..State::default()
        }))
    }

    /// Takes what the process holds at this moment.
    pub fn sample(&self, resident_bytes: u64) -> Crossing {
        let State {
            budget,
            resident,
            over,
        } = &*self.0;
        resident.store(resident_bytes, Ordering::Relaxed);
        if *budget == 0 {
            return Crossing::None;
        }
        let was = over.load(Ordering::Relaxed);
        let limit = if was {
            budget - budget / FREE_AGAIN
        } else {
            *budget
        };
        let is = resident_bytes > limit;
        over.store(is, Ordering::Relaxed);
        match (was, is) {
            (false, true) => Crossing::Over,
            (true, false) => Crossing::Below,
            _ => Crossing::None,
        }
    }

    /// True while nothing new that costs memory should be taken.
    pub fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Relaxed)
    }

    /// The budget in bytes; 0 is none.
    pub fn budget_bytes(&self) -> u64 {
        self.0.budget
    }

    /// What was sampled last.
    pub fn resident_bytes(&self) -> u64 {
        self.0.resident.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_the_budget_there_is_no_room_until_a_part_of_it_is_free_again() {
        let memory = Memory::new(1_600);
        assert_eq!(memory.sample(1_600), Crossing::None);
        assert!(!memory.is_over());
        assert_eq!(memory.sample(1_601), Crossing::Over);
        assert!(memory.is_over());
        assert_eq!(memory.sample(1_501), Crossing::None);
        assert!(memory.is_over(), "not enough is free yet");
        assert_eq!(memory.sample(1_500), Crossing::Below);
        assert!(!memory.is_over());
    }

    #[test]
    fn a_budget_of_zero_limits_nothing() {
        let memory = Memory::new(0);
        assert_eq!(memory.sample(u64::MAX), Crossing::None);
        assert!(!memory.is_over());
        assert_eq!(memory.resident_bytes(), u64::MAX);
    }
}
