//! How far an import has come, on a terminal.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// Between two redrawings: a person reads no faster.
const REDRAW_PAUSE: Duration = Duration::from_millis(100);

/// One line on stderr that counts. Nothing is shown where stderr isn't a terminal.
pub(super) struct Meter {
    done: usize,
    total: usize,
    is_shown: bool,
    /// When the line was drawn last; `None` while none stands there.
    drawn: Option<Instant>,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self {
            done: 0,
            total: 0,
            is_shown: io::stderr().is_terminal(),
            drawn: None,
        }
    }

    /// Says how many there are in all.
    pub(super) const fn expect(&mut self, total: usize) {
        self.total = total;
    }

    /// Counts one more.
    pub(super) fn advance(&mut self) {
        self.done += 1;
        let is_due = self
            .drawn
            .is_none_or(|drawn| drawn.elapsed() >= REDRAW_PAUSE);
        if self.is_shown && is_due {
            eprint!("\r{} of {} files", self.done, self.total);
            self.drawn = Some(Instant::now());
        }
    }

    /// Makes place for another line.
    pub(super) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
