//! How far the opening of the documents has come, for the terminal and for readiness.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use documents::Progress;

/// A line that changes more often can't be read; and the first one this late spares short starts.
const INTERVAL: Duration = Duration::from_millis(500);

/// Shows progress on stderr, at most twice a second.
pub(super) struct Meter {
    shown: Instant,
    /// A terminal's line is written over; elsewhere each is a line of its own.
    terminal: bool,
    dirty: bool,
}

impl Meter {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            shown: now,
            terminal: io::stderr().is_terminal(),
            dirty: false,
        }
    }

    /// Takes what is known at `now`.
    pub(super) fn update(&mut self, progress: Progress, now: Instant) {
        if now.duration_since(self.shown) < INTERVAL {
            return;
        }
        self.shown = now;
        self.dirty = true;
        let Progress { done, total } = progress;
        let end = if self.terminal { "\r" } else { "\n" };
        // A closed terminal is no reason to stop opening.
        let _ = write!(io::stderr(), "Opening documents: {done} of {total}{end}");
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.terminal && self.dirty {
            let _ = writeln!(io::stderr());
        }
    }
}
