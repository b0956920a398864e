//! Which sockets of a worker something happened to.
//!
//! Every socket is polled with a waker of its own, so that the one task behind thousands looks
//! only at those that can be read or written again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::slab::Key;

/// Collects the wakes of a worker's sockets.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Each socket at most once, so never longer than there are sockets and those just gone.
    ready: Vec<Key>,
    task: Option<Waker>,
}

#[derive(Debug)]
struct SocketWake {
    key: Key,
    is_queued: AtomicBool,
    wakes: Arc<Wakes>,
}

/// What a socket is polled with.
#[derive(Debug)]
pub(crate) struct SocketWaker {
    wake: Arc<SocketWake>,
    waker: Waker,
}

impl Wakes {
    /// A waker for the socket `key`.
    pub(crate) fn waker(self: &Arc<Self>, key: Key) -> SocketWaker {
        let wake = Arc::new(SocketWake {
            key,
            is_queued: AtomicBool::new(false),
            wakes: self.clone(),
        });
        SocketWaker {
            waker: Waker::from(wake.clone()),
            wake,
        }
    }

    /// Moves the woken sockets to `into`; ready when there are any.
    pub(crate) fn poll_into(&self, into: &mut Vec<Key>, cx: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.queue();
        if !queue.ready.is_empty() {
            into.append(&mut queue.ready);
            return Poll::Ready(());
        }
        match &mut queue.task {
            Some(task) => task.clone_from(cx.waker()),
            task => *task = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for SocketWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_queued.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut queue = self.wakes.queue();
        queue.ready.push(self.key);
        let task = queue.task.take();
        drop(queue);
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl SocketWaker {
    /// The context to poll the socket with. Wakes from here on are told again.
    pub(crate) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    /// Lets the next wake be told. Called before the socket is polled for what this wake meant.
    pub(crate) fn rearm(&self) {
        self.wake.is_queued.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::super::slab::Slab;
    use super::*;

    #[test]
    fn a_socket_that_is_woken_often_is_named_once_until_it_was_looked_at() {
        let wakes = Arc::new(Wakes::default());
        let key = Slab::new().insert_with(|_| ());
        let socket = wakes.waker(key);
        let mut cx = Context::from_waker(Waker::noop());
        let mut ready = Vec::new();
        assert!(wakes.poll_into(&mut ready, &mut cx).is_pending());
        socket.context().waker().wake_by_ref();
        socket.context().waker().wake_by_ref();
        assert!(wakes.poll_into(&mut ready, &mut cx).is_ready());
        assert_eq!(ready, [key]);
        socket.rearm();
        socket.context().waker().wake_by_ref();
        assert!(wakes.poll_into(&mut ready, &mut cx).is_ready());
        assert_eq!(ready, [key, key]);
    }
}
