//! The one task that serves all watches of a connection.
//!
//! It sleeps until a change concerns one of them, a stream can be written again, an alarm rings,
//! the grants change or a drain begins, and then looks at the watches named and no others. The
//! order in which it listens is the order of urgency: grants and drain before new watches, alarms
//! before changes, so that under any flood a revoked watch still ends in time.
//!
//! The task ends when the connection is gone. Dropping it resets every stream.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use feed::{Outlet, Refused, Token};
use gate::{Alarm, Phase, Schedule};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tracing::debug;
use wire::Control;

use super::stream::{Moment, Progress, Watch, feed_scope};
use super::wakes::Wakes;
use super::{Opening, block};
use crate::face::{Face, Signal};
use crate::metrics::BlockKind;
use crate::reply::STALLED;

/// Changes named by the outlet that one turn takes on; alarms and signals come in between.
const READY_MAX: usize = 256;

/// The watches of one connection.
pub(crate) struct Serving {
    face: Arc<Face>,
    /// Boxed, so that the map's spare room is small.
    watches: HashMap<Token, Box<Running>>,
    openings: mpsc::Receiver<Box<Opening>>,
    outlet: Arc<Outlet>,
    wakes: Arc<Wakes>,
    signal: watch::Receiver<Signal>,
    /// The signal that the watches were told of.
    seen: Signal,
    schedule: Schedule<Token>,
    /// Rings at the first alarm of the schedule.
    timer: Pin<Box<Sleep>>,
    /// Watches that something happened to; emptied in each turn.
    ready: Vec<Token>,
    /// Watches that gave way with more to write.
    again: VecDeque<Token>,
}

struct Running {
    watch: Watch,
    alarm: Alarm,
    /// It stands in `again`.
    gave_way: bool,
}

impl Serving {
    pub(crate) fn new(face: Arc<Face>, openings: mpsc::Receiver<Box<Opening>>) -> Self {
        let mut signal = face.signal.subscribe();
        let seen = *signal.borrow_and_update();
        Self {
            face,
            watches: HashMap::new(),
            openings,
            outlet: Outlet::new(),
            wakes: Arc::new(Wakes::default()),
            signal,
            seen,
            schedule: Schedule::default(),
            timer: Box::pin(sleep_until(Instant::now())),
            ready: Vec::new(),
            again: VecDeque::new(),
        }
    }

    /// Serves until the connection is gone. Not cancel-safe: dropping it ends the watches.
    pub(crate) async fn run(mut self) {
        loop {
            let is_armed = self.arm();
            tokio::select! {
                biased;
                // The sender lives in the face, which this task holds.
                _ = self.signal.changed() => self.on_signal(),
                opening = self.openings.recv() => match opening {
                    Some(opening) => self.open(*opening),
                    None => break,
                },
                () = self.timer.as_mut(), if is_armed => self.on_alarms(),
                () = wait(&self.outlet, &self.wakes, &mut self.ready) => self.on_ready(),
                () = tokio::task::yield_now(), if !self.again.is_empty() => self.on_again(),
            }
        }
        debug!(
            watches = self.watches.len(),
            "the connection's watches are over"
        );
    }

    /// Sets the timer; false if there is nothing to wait for.
    fn arm(&mut self) -> bool {
        let Some(next) = self.schedule.next().map(Instant::from_std) else {
            return false;
        };
        if self.timer.deadline() != next {
            self.timer.as_mut().reset(next);
        }
        true
    }

    fn open(&mut self, opening: Opening) {
        let scope = feed_scope(opening.right.scope());
        match self
            .face
            .feed
            .subscribe(scope, opening.since.as_ref(), &self.outlet)
        {
            Ok(subscription) => {
                let token = subscription.token();
                debug!(scope = %opening.right.scope(), "a watch begins");
                let waker = self.wakes.waker(token);
                let face = self.face.clone();
                let mut watch = Watch::new(opening, subscription, waker, &moment(&face));
                if let Phase::Closing(window) = self.seen.phase {
                    watch.on_drain(&window, face.ticket());
                }
                let running = Running {
                    watch,
                    alarm: Alarm::default(),
                    gave_way: false,
                };
                self.watches.insert(token, Box::new(running));
                self.step(token, Watch::advance);
            }
            Err(refused) => self.refuse(opening, &refused),
        }
    }

    /// Says in place of the acknowledgement that the cursor can't be resumed from.
    fn refuse(&self, opening: Opening, refused: &Refused) {
        let face = self.face.clone();
        let resync = block::control(&Control::resync(refused.reason, refused.head.clone()));
        face.metrics.told_gap(refused.reason);
        face.metrics.wrote_block(BlockKind::Last, resync.len());
        self.face.pending.spawn(async move {
            let Opening {
                mut reply, seats, ..
            } = opening;
            let telling = async {
                reply.write(&mut [resync]).await?;
                reply.finish();
                let _ = reply.stopped().await;
                Ok::<_, quinn::WriteError>(())
            };
            if timeout(face.limits.write_stall, telling).await.is_err() {
                reply.reset(STALLED);
            }
            drop(seats);
        });
    }

    fn on_signal(&mut self) {
        let signal = *self.signal.borrow_and_update();
        let before = std::mem::replace(&mut self.seen, signal);
        let tokens: Vec<_> = self.watches.keys().copied().collect();
        let grants = self.face.authority.current();
        for token in tokens {
            self.step(token, |watch, moment| {
                if signal.grants != before.grants {
                    watch.on_grants(&grants, moment);
                }
                if let Phase::Closing(window) = signal.phase {
                    watch.on_drain(&window, moment.face.ticket());
                }
                watch.advance(moment)
            });
        }
    }

    fn on_alarms(&mut self) {
        let now = Instant::now().into_std();
        while let Some(token) = self.schedule.pop(now) {
            if let Some(running) = self.watches.get_mut(&token) {
                self.schedule.clear(token, &mut running.alarm);
            }
            self.step(token, Watch::on_alarm);
        }
    }

    fn on_ready(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        for token in ready.drain(..) {
            self.step(token, Watch::advance);
        }
        self.ready = ready;
    }

    fn on_again(&mut self) {
        for _ in 0..self.again.len() {
            let Some(token) = self.again.pop_front() else {
                return;
            };
            if let Some(running) = self.watches.get_mut(&token) {
                running.gave_way = false;
            }
            self.step(token, Watch::advance);
        }
    }

    fn step(&mut self, token: Token, act: impl FnOnce(&mut Watch, &Moment<'_>) -> Progress) {
        // A watch may be named after it is over.
        let Some(running) = self.watches.get_mut(&token) else {
            return;
        };
        match act(&mut running.watch, &moment(&self.face)) {
            Progress::Over => {
                self.schedule.clear(token, &mut running.alarm);
                self.watches.remove(&token);
                return;
            }
            Progress::More if !running.gave_way => {
                running.gave_way = true;
                self.again.push_back(token);
            }
            Progress::Blocked | Progress::Idle | Progress::More => {}
        }
        let at = running.watch.alarm(&self.face);
        self.schedule.set(token, &mut running.alarm, at);
    }
}

fn moment(face: &Face) -> Moment<'_> {
    Moment {
        face,
        now: Instant::now().into_std(),
        time: face.handler.now(),
    }
}

/// Waits until a change concerns a watch or a stream wakes, and names them. Cancel-safe: what was
/// named stays in `ready`.
async fn wait(outlet: &Outlet, wakes: &Wakes, ready: &mut Vec<Token>) {
    std::future::poll_fn(|cx| poll_ready(outlet, wakes, ready, cx)).await;
}

fn poll_ready(
    outlet: &Outlet,
    wakes: &Wakes,
    ready: &mut Vec<Token>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let _ = wakes.poll_into(ready, cx);
    while ready.len() < READY_MAX {
        match outlet.poll_ready(cx) {
            Poll::Ready(token) => ready.push(token),
            Poll::Pending => break,
        }
    }
    if ready.is_empty() {
        Poll::Pending
    } else {
        Poll::Ready(())
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving")
            .field("watches", &self.watches.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // T44: with the boxed wait for the stream's end, the waker and the feed's side of it, which
    // are about 250 bytes more, a further watch stays below 0.6 KiB.
    #[test]
    fn a_running_watch_takes_little_memory() {
        assert!(
            size_of::<Running>() <= 352,
            "{} bytes",
            size_of::<Running>()
        );
    }
}
