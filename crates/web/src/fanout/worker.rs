//! One task and all that it serves: its sockets, their watches, the cohorts.
//!
//! It sleeps until a change concerns one of its cohorts, a socket can be read or written, an alarm
//! rings, somebody arrives, the grants change or a drain begins, and then looks at what was named
//! and at nothing else. The order in which it listens is the order of urgency: grants and drain
//! first, then alarms, so that under any flood a right that was taken away still ends in time.
//!
//! The methods are spread by what they are about: arrivals and ends here, cohorts in `telling`,
//! watches that go their own way in `alone`, the sync protocol in `socket::serving`.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use feed::{Outlet, Token};
use gate::{Phase, spread};
use tokio::sync::{mpsc, watch};
use tokio::time::{Sleep, sleep_until};
use tracing::debug;

use super::alone::CaughtUp;
use super::cohort::{Cohort, Manner, Watch};
use super::line::{End, Line, Sent};
use super::slab::{Key, Slab};
use super::telling::Aside;
use super::wakes::Wakes;
use super::whose::Whose;
use super::{Arrival, Then};
use crate::face::{Face, Signal};
use crate::socket::Answered;
use crate::stream::{Batch, Farewell, Reader};

/// Things named at once that one turn takes on; alarms and signals come in between.
const READY_MAX: usize = 256;

/// Bytes that are read from a socket at once, whichever it is.
const SCRATCH_BYTES: usize = 16 << 10;

/// The least part of a time that a jittered one has.
const JITTER_FLOOR: f64 = 0.8;

/// Whose a token of the outlet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Cohort(Key),
    Watch(Key),
}

/// An answer that was waited for elsewhere, for the socket that asked.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) line: Key,
    pub(crate) answered: Answered,
}

/// A fan-out task.
pub(crate) struct Worker {
    pub(crate) face: Arc<Face>,
    pub(crate) outlet: Arc<Outlet>,
    wakes: Arc<Wakes>,
    pub(crate) lines: Slab<Line>,
    pub(crate) watches: Slab<Watch>,
    pub(crate) cohorts: Slab<Cohort>,
    pub(super) manners: HashMap<Arc<Manner>, Key>,
    pub(crate) owners: HashMap<Token, Owner>,
    pub(super) schedule: gate::Schedule<Whose>,
    /// Rings at the first alarm of the schedule.
    timer: Pin<Box<Sleep>>,
    builds: watch::Receiver<Option<Arc<str>>>,
    signal: watch::Receiver<Signal>,
    /// The signal that the lines were told of.
    seen: Signal,
    arrivals: mpsc::Receiver<Arrival>,
    words: mpsc::Receiver<Word>,
    /// For whoever works on an answer.
    speaking: mpsc::Sender<Word>,
    named: Vec<Token>,
    woken: Vec<Key>,
    again_lines: VecDeque<Key>,
    pub(crate) again_cohorts: VecDeque<Key>,
    /// Room that is used again: what is due, what was read, who was passed over.
    pub(crate) batch: Batch,
    scratch: Box<[u8]>,
    pub(crate) aside: Aside,
    pub(crate) blocked: Vec<Key>,
}

/// What a turn begins with.
enum Turn {
    Again,
    Alarm,
    Arrival(Option<Arrival>),
    Build,
    Ready,
    Signal,
    Stop,
    Word(Option<Word>),
}

impl Worker {
    pub(crate) fn new(
        face: Arc<Face>,
        arrivals: mpsc::Receiver<Arrival>,
        (speaking, words): (mpsc::Sender<Word>, mpsc::Receiver<Word>),
    ) -> Self {
        let mut signal = face.signal.subscribe();
        let seen = *signal.borrow_and_update();
        let builds = face.streams.build.subscribe();
        Self {
            face,
            outlet: Outlet::new(),
            wakes: Arc::new(Wakes::default()),
            lines: Slab::new(),
            watches: Slab::new(),
            cohorts: Slab::new(),
            manners: HashMap::new(),
            owners: HashMap::new(),
            schedule: gate::Schedule::default(),
            timer: Box::pin(sleep_until(tokio::time::Instant::now())),
            builds,
            signal,
            seen,
            arrivals,
            words,
            speaking,
            named: Vec::new(),
            woken: Vec::new(),
            again_lines: VecDeque::new(),
            again_cohorts: VecDeque::new(),
            batch: Batch::default(),
            scratch: vec![0; SCRATCH_BYTES].into(),
            aside: Aside::default(),
            blocked: Vec::new(),
        }
    }

    /// Serves until the face stops. Not cancel-safe: dropping it cuts its sockets.
    pub(crate) async fn run(mut self) {
        loop {
            let is_armed = self.arm();
            let has_more = !self.again_lines.is_empty() || !self.again_cohorts.is_empty();
            let face = self.face.clone();
            let turn = tokio::select! {
                biased;
                () = face.stopping.cancelled() => Turn::Stop,
                _ = self.signal.changed() => Turn::Signal,
                // The sender lives in the face, which this task holds.
                _ = self.builds.changed() => Turn::Build,
                () = self.timer.as_mut(), if is_armed => Turn::Alarm,
                () = named(&self.outlet, &self.wakes, &mut self.named, &mut self.woken) => {
                    Turn::Ready
                }
                word = self.words.recv() => Turn::Word(word),
                arrival = self.arrivals.recv() => Turn::Arrival(arrival),
                () = tokio::task::yield_now(), if has_more => Turn::Again,
            };
            match turn {
                Turn::Again => self.on_again().await,
                Turn::Alarm => self.on_alarms().await,
                Turn::Arrival(Some(arrival)) => self.on_arrivals(arrival),
                Turn::Build => self.on_build(),
                Turn::Ready => self.on_ready().await,
                Turn::Signal => self.on_signal(),
                Turn::Word(Some(word)) => self.on_word(word),
                Turn::Stop | Turn::Arrival(None) | Turn::Word(None) => break,
            }
        }
        debug!(lines = self.lines.len(), "a fan-out is over");
    }

    /// Sets the timer; false if there is nothing to wait for.
    fn arm(&mut self) -> bool {
        let Some(next) = self.schedule.next().map(tokio::time::Instant::from_std) else {
            return false;
        };
        if self.timer.deadline() != next {
            self.timer.as_mut().reset(next);
        }
        true
    }

    async fn on_ready(&mut self) {
        let mut named = std::mem::take(&mut self.named);
        for token in named.drain(..) {
            match self.owners.get(&token) {
                Some(Owner::Cohort(cohort)) => self.tell(*cohort).await,
                Some(Owner::Watch(watch)) => {
                    let line = self.watches[*watch].line;
                    self.step(line);
                }
                None => {}
            }
        }
        self.named = named;
        let mut woken = std::mem::take(&mut self.woken);
        for line in woken.drain(..) {
            self.step(line);
        }
        self.woken = woken;
    }

    async fn on_again(&mut self) {
        for _ in 0..self.again_cohorts.len() {
            if let Some(key) = self.again_cohorts.pop_front()
                && let Some(cohort) = self.cohorts.get_mut(key)
            {
                cohort.gave_way = false;
                self.tell(key).await;
            }
        }
        for _ in 0..self.again_lines.len() {
            if let Some(key) = self.again_lines.pop_front()
                && let Some(line) = self.lines.get_mut(key)
            {
                line.gave_way = false;
                self.step(key);
            }
        }
    }

    async fn on_alarms(&mut self) {
        let now = Instant::now();
        while let Some(whose) = self.schedule.pop(now) {
            match whose {
                Whose::Cohort(key) => {
                    if let Some(cohort) = self.cohorts.get_mut(key) {
                        self.schedule.clear(whose, &mut cohort.alarm);
                        self.beat(key).await;
                    }
                }
                Whose::Line(key) => {
                    if let Some(line) = self.lines.get_mut(key) {
                        self.schedule.clear(whose, &mut line.alarm);
                        self.on_line_alarm(key, now);
                    }
                }
            }
        }
    }

    fn on_line_alarm(&mut self, key: Key, now: Instant) {
        let line = &mut self.lines[key];
        if let Some(end) = line.overdue(now, self.face.limits.write_stall) {
            return self.remove_line(key, end);
        }
        if let Some((at, stay_away)) = line.leaving
            && at <= now
        {
            let farewell = Farewell {
                reason: "draining",
                come_back: Some(stay_away),
            };
            self.leave(key, farewell);
        } else if line.dies <= now {
            let farewell = Farewell {
                reason: "lifetime",
                come_back: Some(self.come_back()),
            };
            self.leave(key, farewell);
        } else if line.session.is_some() {
            self.on_session_alarm(key, now);
        }
        self.step(key);
    }

    fn on_signal(&mut self) {
        let signal = *self.signal.borrow_and_update();
        let before = std::mem::replace(&mut self.seen, signal);
        if signal.grants != before.grants {
            for key in self.cohorts.keys().collect::<Vec<_>>() {
                self.recheck(key);
            }
            for key in self.lines.keys().collect::<Vec<_>>() {
                self.recheck_session(key);
            }
        }
        if let Phase::Closing(window) = signal.phase {
            for key in self.lines.keys().collect::<Vec<_>>() {
                let ticket = self.face.ticket();
                let line = &mut self.lines[key];
                line.leaving.get_or_insert_with(|| {
                    (window.leaves_at(ticket), window.returns_after(ticket))
                });
                self.set_line_alarm(key);
            }
        }
    }

    /// The application has another build: those who run another are told.
    fn on_build(&mut self) {
        self.builds.mark_unchanged();
        for key in self.lines.keys().collect::<Vec<_>>() {
            self.tell_build(key);
        }
    }

    /// Takes in everybody who waits, up to a turn's worth.
    fn on_arrivals(&mut self, first: Arrival) {
        self.on_arrival(first);
        for _ in 1..READY_MAX {
            let Ok(arrival) = self.arrivals.try_recv() else {
                return;
            };
            self.on_arrival(arrival);
        }
    }

    fn on_arrival(&mut self, arrival: Arrival) {
        let Arrival {
            io,
            read,
            head,
            then,
            ties,
        } = arrival;
        let voice = match &then {
            Then::Socket(_) => crate::stream::Voice::Socket,
            Then::Watch(plan) => plan.manner.voice,
        };
        let lifetime = self.jittered(self.face.limits.streams.lifetime);
        let dies = Instant::now() + lifetime;
        let wakes = &self.wakes;
        let key = self
            .lines
            .insert_with(|key| Line::new(io, wakes.waker(key), voice, dies, ties));
        if let Phase::Closing(window) = self.seen.phase {
            let ticket = self.face.ticket();
            self.lines[key].leaving =
                Some((window.leaves_at(ticket), window.returns_after(ticket)));
        }
        self.face.metrics.streams.opened(voice);
        self.lines[key].say(&head, usize::MAX);
        match then {
            Then::Socket(session) => self.begin_session(key, session, &read),
            Then::Watch(plan) => self.begin_stream(key, *plan),
        }
        self.step(key);
    }

    /// Looks at a line: writes what waits, catches up, reads.
    pub(crate) fn step(&mut self, key: Key) {
        let now = Instant::now();
        let Some(line) = self.lines.get_mut(key) else {
            return;
        };
        line.waker.rearm();
        match line.flush(now) {
            Sent::Gone => return self.remove_line(key, End::Left),
            Sent::Blocked => {}
            Sent::Taken if line.is_ending() => line.shut(now),
            Sent::Taken => match self.catch_up(key) {
                CaughtUp::Done => {}
                CaughtUp::Gone => return self.remove_line(key, End::Left),
                CaughtUp::More => self.look_again(key),
            },
        }
        self.read(key);
        self.set_line_alarm(key);
    }

    /// Reads what a client sent.
    fn read(&mut self, key: Key) {
        let mut scratch = std::mem::take(&mut self.scratch);
        if let Some(line) = self.lines.get_mut(key) {
            let is_session = line.session.is_some() && !line.is_ending();
            let read = match is_session {
                true => self.read_session(key, &mut scratch),
                false => line.waste(&mut scratch),
            };
            if let Err(end) = read {
                self.remove_line(key, end);
            }
        }
        self.scratch = scratch;
    }

    /// Looks at a line again after the others.
    pub(crate) fn look_again(&mut self, key: Key) {
        if let Some(line) = self.lines.get_mut(key)
            && !line.gave_way
        {
            line.gave_way = true;
            self.again_lines.push_back(key);
        }
    }

    /// The cohort of `manner`, with a place that `open` makes if there is none.
    pub(crate) fn cohort_of(
        &mut self,
        manner: Manner,
        open: impl FnOnce(&Arc<Outlet>) -> Reader,
    ) -> Key {
        if let Some(key) = self.manners.get(&manner) {
            return *key;
        }
        let manner = Arc::new(manner);
        let reader = open(&self.outlet);
        let heartbeat = self.jittered(self.face.limits.streams.heartbeat);
        let now = Instant::now();
        let cohort = Cohort::new(manner.clone(), reader, now, heartbeat);
        let key = self.cohorts.insert_with(|_| cohort);
        self.manners.insert(manner, key);
        self.own_tokens(key);
        self.set_cohort_alarm(key);
        key
    }

    /// Notes whose the names of a cohort are.
    pub(crate) fn own_tokens(&mut self, key: Key) {
        let cohort = &self.cohorts[key];
        if cohort.manner.scopes.len() > 1 {
            self.owners.retain(|_, owner| *owner != Owner::Cohort(key));
        }
        let owners = &mut self.owners;
        cohort
            .reader
            .visit_tokens(|token| _ = owners.insert(token, Owner::Cohort(key)));
    }

    /// Forgets the names of `reader`.
    pub(crate) fn disown(&mut self, reader: &Reader) {
        reader.visit_tokens(|token| _ = self.owners.remove(&token));
    }

    /// A part of `time` that differs from one call to the next.
    pub(crate) fn jittered(&self, time: Duration) -> Duration {
        let sure = time.mul_f64(JITTER_FLOOR);
        sure + spread(self.face.ticket(), time - sure)
    }

    /// What the watches of this worker are named by.
    pub(crate) fn outlet(&self) -> &Arc<Outlet> {
        &self.outlet
    }

    /// What a watch has in common with the others of its cohort.
    pub(crate) fn manner_of(&self, watch: Key) -> Arc<Manner> {
        self.cohorts[self.watches[watch].cohort].manner.clone()
    }

    /// Whose watch it is, and what it follows, if it is there.
    pub(crate) fn line_of(&self, watch: Key) -> Option<(Key, Arc<str>)> {
        let line = self.watches.get(watch)?.line;
        Some((line, self.manner_of(watch).scopes[0].clone()))
    }

    /// Where a watch can read what it missed.
    pub(crate) fn catch_up_of(&self, watch: Key) -> Option<String> {
        self.cohorts[self.watches[watch].cohort].reader.catch_up()
    }

    /// For whoever works on an answer.
    pub(crate) fn speaking(&self) -> mpsc::Sender<Word> {
        self.speaking.clone()
    }

    pub(crate) fn set_cohort_alarm(&mut self, key: Key) {
        if let Some(cohort) = self.cohorts.get_mut(key) {
            let at = cohort.alarm_at();
            self.schedule.set(Whose::Cohort(key), &mut cohort.alarm, at);
        }
    }

    pub(crate) fn set_line_alarm(&mut self, key: Key) {
        if let Some(line) = self.lines.get_mut(key) {
            let at = line.alarm_at(self.face.limits.write_stall);
            self.schedule.set(Whose::Line(key), &mut line.alarm, at);
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("lines", &self.lines.len())
            .finish_non_exhaustive()
    }
}

/// Waits until a change concerns somebody or a socket wakes, and names them. Cancel-safe: what was
/// named stays where it was put.
async fn named(outlet: &Outlet, wakes: &Wakes, named: &mut Vec<Token>, woken: &mut Vec<Key>) {
    std::future::poll_fn(|cx| poll_named(outlet, wakes, named, woken, cx)).await;
}

fn poll_named(
    outlet: &Outlet,
    wakes: &Wakes,
    named: &mut Vec<Token>,
    woken: &mut Vec<Key>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let _ = wakes.poll_into(woken, cx);
    while named.len() < READY_MAX {
        match outlet.poll_ready(cx) {
            Poll::Ready(token) => named.push(token),
            Poll::Pending => break,
        }
    }
    if named.is_empty() && woken.is_empty() {
        Poll::Pending
    } else {
        Poll::Ready(())
    }
}
