//! What wants to be looked at next, by time.
//!
//! An alarm that moves back is left where it is: whoever wakes early looks again and sets the true
//! one. So a cohort that is written to all the time costs the schedule nothing per frame.

use std::collections::BTreeSet;
use std::time::Instant;

use super::slab::Key;

/// Whose alarm it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Whose {
    Cohort(Key),
    Line(Key),
}

/// The alarms of one worker.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    due: BTreeSet<(Instant, Whose)>,
}

/// The time under which something stands in the schedule.
#[derive(Debug, Default)]
pub(crate) struct Alarm(Option<Instant>);

impl Schedule {
    /// The earliest alarm.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes out the next alarm that is due at `now`. Its owner must set it again.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Whose> {
        let (at, whose) = *self.due.first()?;
        (at <= now).then(|| {
            self.due.pop_first();
            whose
        })
    }

    /// Has `whose` looked at at `at` or earlier.
    pub(crate) fn set(&mut self, whose: Whose, alarm: &mut Alarm, at: Instant) {
        match alarm.0 {
            Some(set) if set <= at => return,
            Some(set) => _ = self.due.remove(&(set, whose)),
            None => {}
        }
        self.due.insert((at, whose));
        alarm.0 = Some(at);
    }

    /// Forgets the alarm of `whose`, which was popped or is gone.
    pub(crate) fn clear(&mut self, whose: Whose, alarm: &mut Alarm) {
        if let Some(set) = alarm.0.take() {
            self.due.remove(&(set, whose));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::slab::Slab;
    use super::*;

    #[test]
    fn an_alarm_moves_forward_at_once_and_back_only_when_it_rang() {
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        let (mut schedule, mut alarm) = (Schedule::default(), Alarm::default());
        let whose = Whose::Line(Slab::new().insert_with(|_| ()));
        schedule.set(whose, &mut alarm, at(20));
        schedule.set(whose, &mut alarm, at(30));
        assert_eq!(schedule.next(), Some(at(20)));
        schedule.set(whose, &mut alarm, at(10));
        assert_eq!(schedule.pop(at(9)), None);
        assert_eq!(schedule.pop(at(10)), Some(whose));
        schedule.clear(whose, &mut alarm);
        schedule.set(whose, &mut alarm, at(30));
        assert_eq!(schedule.next(), Some(at(30)));
        schedule.clear(whose, &mut alarm);
        assert_eq!(schedule.next(), None);
    }
}
