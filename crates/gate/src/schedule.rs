//! What wants to be looked at next, by time.
//!
//! An alarm that moves back is left where it is: whoever wakes early looks again and sets the true
//! one. So what is written to all the time costs the schedule nothing per write.

use std::collections::BTreeSet;
use std::time::Instant;

/// The alarms of one serving task, each by the key of its owner.
#[derive(Debug)]
pub struct Schedule<K> {
    due: BTreeSet<(Instant, K)>,
}

impl<K> Default for Schedule<K> {
    fn default() -> Self {
        Self {
            due: BTreeSet::new(),
        }
    }
}

/// The time under which something stands in the schedule.
#[derive(Debug, Default)]
pub struct Alarm(Option<Instant>);

impl<K: Copy + Ord> Schedule<K> {
    /// The earliest alarm.
    pub fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes out the next alarm that is due at `now`. Its owner must set it again.
    pub fn pop(&mut self, now: Instant) -> Option<K> {
        let (at, whose) = *self.due.first()?;
        (at <= now).then(|| {
            self.due.pop_first();
            whose
        })
    }

    /// Has `whose` looked at at `at` or earlier.
    pub fn set(&mut self, whose: K, alarm: &mut Alarm, at: Instant) {
        match alarm.0 {
            Some(set) if set <= at => return,
            Some(set) => _ = self.due.remove(&(set, whose)),
            None => {}
        }
        self.due.insert((at, whose));
        alarm.0 = Some(at);
    }

    /// Forgets the alarm of `whose`, which was popped or is gone.
    pub fn clear(&mut self, whose: K, alarm: &mut Alarm) {
        if let Some(set) = alarm.0.take() {
            self.due.remove(&(set, whose));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_alarm_moves_forward_at_once_and_back_only_when_it_rang() {
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        let (mut schedule, mut alarm) = (Schedule::default(), Alarm::default());
        let whose = 7;
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
