//! Where one serving task learns which of its subscriptions have something to read.
//!
//! A task serves many watches, so that they cost one wake together: a publisher queues each
//! concerned watch once and wakes the task at most once. The queue has room for every watch from
//! the moment it joins, so queueing never allocates. A watch that is dropped while queued is
//! passed over, and swept out when such watches are the greater part of the queue.
//!
//! Wakers run after every lock of the feed was let go: they are foreign code, and there may be
//! tens of thousands. The outlets to wake hang together in a chain through the outlets themselves,
//! because a list would have to grow with the watchers. A waker may call anything of the feed.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::registration::Registration;
use crate::sync::{Mutex, Ordering, lock};

/// Names a subscription within its outlet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// Collects which of one serving task's subscriptions have something to read.
pub struct Outlet {
    ready: Mutex<Ready>,
}

#[derive(Default)]
struct Ready {
    /// Room for every member besides what lies in it; each watch at most once.
    queue: VecDeque<Arc<Registration>>,
    /// Subscriptions that are alive.
    members: usize,
    /// Watches in the queue whose subscription was dropped.
    gone: usize,
    /// The next token; tokens aren't used twice.
    issued: u64,
    /// Set while the task waits, taken when it is woken.
    waker: Option<Waker>,
    /// In a chain of outlets to wake; whoever holds the chain wakes it after this was set.
    chained: bool,
    /// The rest of that chain.
    next: Option<Arc<Outlet>>,
}

impl Outlet {
    /// An outlet without subscriptions.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            ready: Mutex::new(Ready::default()),
        })
    }

    /// The next subscription that has something to read (a change, a gap, the end).
    ///
    /// It is named once; read it until [`Next::Idle`](crate::Next::Idle), after which it is named
    /// again when there is more. One task polls an outlet: only the last waker is kept.
    pub fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Token> {
        let mut ready = lock(&self.ready);
        while let Some(registration) = ready.queue.pop_front() {
            registration.queued.store(false, Ordering::Relaxed);
            if !registration.gone.load(Ordering::Relaxed) {
                return Poll::Ready(registration.token);
            }
            ready.gone -= 1;
        }
        let replaced = match &ready.waker {
            Some(waker) if waker.will_wake(cx.waker()) => None,
            _ => ready.waker.replace(cx.waker().clone()),
        };
        // A waker's drop is foreign code and may come back to this outlet.
        drop(ready);
        drop(replaced);
        Poll::Pending
    }

    /// Takes in one more subscription and makes room to queue it.
    pub(crate) fn join(&self) -> Token {
        let mut ready = lock(&self.ready);
        ready.members += 1;
        let room = ready.members;
        ready.queue.reserve(room);
        let token = Token(ready.issued);
        ready.issued += 1;
        token
    }

    /// Lets go of a subscription, wherever it is.
    pub(crate) fn leave(&self, registration: &Registration) {
        let mut ready = lock(&self.ready);
        ready.members -= 1;
        registration.gone.store(true, Ordering::Relaxed);
        if !registration.queued.load(Ordering::Relaxed) {
            return;
        }
        ready.gone += 1;
        if ready.gone * 2 > ready.queue.len() {
            ready
                .queue
                .retain(|registration| !registration.gone.load(Ordering::Relaxed));
            ready.gone = 0;
        }
    }

    /// Queues `registration` unless it is queued, and adds this outlet to the chain to wake.
    pub(crate) fn queue(self: &Arc<Self>, registration: &Arc<Registration>, wakes: &mut Wakes) {
        let mut ready = lock(&self.ready);
        if registration.queued.swap(true, Ordering::Relaxed) {
            return;
        }
        ready.queue.push_back(registration.clone());
        if ready.waker.is_some() && !ready.chained {
            ready.chained = true;
            ready.next = wakes.first.replace(self.clone());
        }
    }

    /// Leaves the chain: what is queued from here on needs another wake.
    fn unchain(&self) -> (Option<Waker>, Option<Arc<Self>>) {
        let mut ready = lock(&self.ready);
        ready.chained = false;
        (ready.waker.take(), ready.next.take())
    }
}

impl fmt::Debug for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outlet").finish_non_exhaustive()
    }
}

/// The outlets that one operation has to wake; they are woken when this is dropped, which must be
/// after the feed's lock was let go.
#[derive(Default)]
pub(crate) struct Wakes {
    first: Option<Arc<Outlet>>,
}

impl Drop for Wakes {
    fn drop(&mut self) {
        while let Some(outlet) = self.first.take() {
            let (waker, next) = outlet.unchain();
            self.first = next;
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}
