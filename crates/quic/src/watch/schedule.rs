//! Which watch wants to be looked at next, by time.
//!
//! An alarm that moves back is left where it is: whoever wakes early looks again and sets the true
//! one. So a watch that is written to all the time costs the schedule nothing per block.

use std::collections::BTreeSet;
use std::time::Instant;

use feed::Token;

/// The alarms of one serving task.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    due: BTreeSet<(Instant, Token)>,
}

/// The time under which a watch stands in the schedule.
#[derive(Debug, Default)]
pub(super) struct Alarm(Option<Instant>);

impl Schedule {
    /// The earliest alarm.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes out the next watch that is due at `now`. Its alarm must be set again.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Token> {
        let (at, token) = *self.due.first()?;
        (at <= now).then(|| {
            self.due.pop_first();
            token
        })
    }

    /// Has `token` woken at `at` or earlier.
    pub(super) fn set(&mut self, token: Token, alarm: &mut Alarm, at: Instant) {
        match alarm.0 {
            Some(set) if set <= at => return,
            Some(set) => _ = self.due.remove(&(set, token)),
            None => {}
        }
        self.due.insert((at, token));
        alarm.0 = Some(at);
    }

    /// Forgets the alarm of `token`, which was popped or is gone.
    pub(super) fn clear(&mut self, token: Token, alarm: &mut Alarm) {
        if let Some(set) = alarm.0.take() {
            self.due.remove(&(set, token));
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
        let token = Token(7);
        schedule.set(token, &mut alarm, at(20));
        schedule.set(token, &mut alarm, at(30));
        assert_eq!(schedule.next(), Some(at(20)));
        schedule.set(token, &mut alarm, at(10));
        assert_eq!(schedule.next(), Some(at(10)));
        assert_eq!(schedule.pop(at(9)), None);
        assert_eq!(schedule.pop(at(10)), Some(token));
        schedule.clear(token, &mut alarm);
        schedule.set(token, &mut alarm, at(30));
        assert_eq!(schedule.next(), Some(at(30)));
        schedule.clear(token, &mut alarm);
        assert_eq!(schedule.next(), None);
    }
}
