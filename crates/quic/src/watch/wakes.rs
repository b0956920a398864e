//! Which streams of a connection can be written again, or are no longer wanted.
//!
//! Every watch polls its stream with a waker of its own, so that the one task behind them all
//! looks only at the streams that something happened to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use feed::Token;

/// Collects the wakes of one connection's streams.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Each token at most once, so never longer than there are watches and those just gone.
    ready: Vec<Token>,
    task: Option<Waker>,
}

#[derive(Debug)]
struct StreamWake {
    token: Token,
    queued: AtomicBool,
    wakes: Arc<Wakes>,
}

/// What a watch polls its stream with.
#[derive(Debug)]
pub(super) struct StreamWaker {
    wake: Arc<StreamWake>,
    waker: Waker,
}

impl Wakes {
    /// A waker for the watch `token`.
    pub(super) fn waker(self: &Arc<Self>, token: Token) -> StreamWaker {
        let wake = Arc::new(StreamWake {
            token,
            queued: AtomicBool::new(false),
            wakes: self.clone(),
        });
        StreamWaker {
            waker: Waker::from(wake.clone()),
            wake,
        }
    }

    /// Moves the woken tokens to `into`; ready when there are any.
    pub(super) fn poll_into(&self, into: &mut Vec<Token>, cx: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.queue();
        if !queue.ready.is_empty() {
            into.append(&mut queue.ready);
            return Poll::Ready(());
        }
        if !queue
            .task
            .as_ref()
            .is_some_and(|task| task.will_wake(cx.waker()))
        {
            queue.task = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for StreamWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.queued.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut queue = self.wakes.queue();
        queue.ready.push(self.token);
        let task = queue.task.take();
        drop(queue);
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl StreamWaker {
    /// The context to poll the stream with. Wakes from here on are told again.
    pub(super) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    /// Lets the next wake be told. Called before the stream is polled for what this wake meant.
    pub(super) fn rearm(&self) {
        self.wake.queued.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_is_woken_often_is_named_once_until_it_was_looked_at() {
        let wakes = Arc::new(Wakes::default());
        let stream = wakes.waker(Token(3));
        let mut cx = Context::from_waker(Waker::noop());
        let mut ready = Vec::new();
        assert!(wakes.poll_into(&mut ready, &mut cx).is_pending());
        stream.context().waker().wake_by_ref();
        stream.context().waker().wake_by_ref();
        assert!(wakes.poll_into(&mut ready, &mut cx).is_ready());
        assert_eq!(ready, [Token(3)]);
        stream.rearm();
        stream.context().waker().wake_by_ref();
        assert!(wakes.poll_into(&mut ready, &mut cx).is_ready());
        assert_eq!(ready, [Token(3), Token(3)]);
    }
}
