//! One watch: what it still has to write, and when it wants to be looked at.
//!
//! The methods come in three families. `advance` writes whatever can be written now; the `on_*`
//! methods react to the clock, to other grants and to a drain, and are followed by `advance`;
//! `alarm` says when the watch must be looked at although nothing happened. None of them waits.
//!
//! One block at a time is handed to the transport, and the next is taken from the ring only when
//! the transport took all of it: a client that doesn't read leaves the rest in the ring.

use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use auth::{Denied, Grants, WatchRight};
use bytes::Bytes;
use documents::Change;
use feed::{Encoding, Next, Slot, Subscription};
use gate::Window;
use jiff::Timestamp;
use quinn::{StoppedError, VarInt};
use tracing::debug;
use wire::{Control, GapReason, Status};

use super::wakes::StreamWaker;
use super::{Opening, Seats, block};
use crate::face::Face;
use crate::limits::Limit;
use crate::metrics::{BlockKind, WatchEnd};
use crate::reply::{NO_FAULT, Reply, STALLED};

/// A watch gives way to its neighbours after this many blocks, though there may be more: a ring
/// of backlog is caught up in turns.
const BLOCKS_PER_TURN: usize = 32;

/// A watch gives way after looking at this many changes that it may not be told of.
const WITHHELD_PER_TURN: usize = 256;

/// What every step needs to know of its moment.
pub(super) struct Moment<'a> {
    pub(super) face: &'a Face,
    pub(super) now: Instant,
    /// The same moment on the calendar, for expiries.
    pub(super) time: Timestamp,
}

/// Where a step left the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The client has to take something first; its stream wakes the watch.
    Blocked,
    /// Nothing more to write; the feed's outlet wakes the watch.
    Idle,
    /// There is more; the watch wants another turn.
    More,
    /// The watch is over.
    Over,
}

/// What a watch did since it was woken.
#[derive(Default)]
struct Turn {
    blocks: usize,
    withheld: usize,
}

impl Turn {
    /// True when it is the neighbours' turn.
    fn is_spent(&self) -> bool {
        self.blocks >= BLOCKS_PER_TURN || self.withheld >= WITHHELD_PER_TURN
    }
}

type Stopped = Pin<Box<dyn Future<Output = Result<Option<VarInt>, StoppedError>> + Send>>;

/// How a drain ends a watch.
struct Leaving {
    /// When its client is told.
    at: Instant,
    /// How long it is asked to stay away.
    stay_away: Duration,
}

/// A running watch.
pub(super) struct Watch {
    reply: Reply,
    /// Completes when the client wants no more, has everything, or is gone.
    stopped: Stopped,
    pub(super) waker: StreamWaker,
    /// `None` once the last block was chosen.
    subscription: Option<Subscription<Change>>,
    right: WatchRight,
    /// What the transport hasn't taken of the block under way.
    pending: Bytes,
    /// Since when the block under way, or the last acknowledgement, is waited for.
    waiting: Option<Instant>,
    /// When the last block was written.
    written: Instant,
    /// The last block, after the one under way.
    last: Option<Bytes>,
    end: Option<WatchEnd>,
    /// What a drain has in store for it.
    leaving: Option<Box<Leaving>>,
    _seats: Seats,
}

impl Watch {
    /// Begins with the acknowledgement of `opening`.
    pub(super) fn new(
        opening: Opening,
        subscription: Subscription<Change>,
        waker: StreamWaker,
        moment: &Moment<'_>,
    ) -> Self {
        let Opening {
            reply,
            right,
            since,
            seats,
        } = opening;
        let from = since.unwrap_or_else(|| subscription.position());
        let stopped = Box::pin(reply.stopped());
        moment.face.metrics.watches.inc();
        let mut watch = Self {
            reply,
            stopped,
            waker,
            subscription: Some(subscription),
            right,
            pending: Bytes::new(),
            waiting: None,
            written: moment.now,
            last: None,
            end: None,
            leaving: None,
            _seats: seats,
        };
        let acknowledgement = block::control(&Control::new(Status::Ok, from));
        watch.begin(acknowledgement, BlockKind::Acknowledgement, moment);
        watch
    }

    /// Writes what can be written now.
    pub(super) fn advance(&mut self, moment: &Moment<'_>) -> Progress {
        self.waker.rearm();
        if self
            .stopped
            .as_mut()
            .poll(&mut self.waker.context())
            .is_ready()
        {
            return self.over(WatchEnd::Left, moment);
        }
        let mut turn = Turn::default();
        loop {
            match self.flush(moment) {
                Poll::Pending => return Progress::Blocked,
                Poll::Ready(Err(_)) => return self.over(WatchEnd::Left, moment),
                Poll::Ready(Ok(())) => {}
            }
            if let Some(last) = self.last.take() {
                self.begin(last, BlockKind::Last, moment);
                continue;
            }
            let Some(subscription) = &mut self.subscription else {
                return self.finish(moment);
            };
            if turn.is_spent() {
                return Progress::More;
            }
            match subscription.next() {
                Next::Change(slot) => self.tell(&slot, &mut turn, moment),
                Next::Gap { reason, head } => self.resync(reason, head, moment),
                Next::Closed => self.close(moment),
                Next::Idle => return Progress::Idle,
            }
        }
    }

    /// The clock reached [`Self::alarm`], or may have.
    pub(super) fn on_alarm(&mut self, moment: &Moment<'_>) -> Progress {
        let limits = &moment.face.limits;
        if let Some(since) = self.waiting {
            if moment.now < since + limits.write_stall {
                return Progress::Blocked;
            }
            moment.face.metrics.refused(Limit::WriteStall);
            self.reply.reset(STALLED);
            return self.over(WatchEnd::Stalled, moment);
        }
        if self
            .leaving
            .as_ref()
            .is_some_and(|leaving| leaving.at <= moment.now)
        {
            self.close(moment);
        } else if moment.now >= self.written + limits.heartbeat {
            self.on_grants(&moment.face.authority.current(), moment);
            if let Some(subscription) = &self.subscription {
                let position = Control::new(Status::Ok, subscription.position());
                self.begin(block::control(&position), BlockKind::Heartbeat, moment);
            }
        }
        self.advance(moment)
    }

    /// Other grants are in force: ends the watch if its right is gone.
    pub(super) fn on_grants(&mut self, grants: &Grants, moment: &Moment<'_>) {
        let Err(denied) = self.right.recheck(grants, moment.time) else {
            return;
        };
        let status = match denied {
            Denied::Unauthorized => Status::Unauthorized,
            Denied::NoTokens | Denied::NotPermitted => Status::NotPermitted,
        };
        if let Some(subscription) = &self.subscription {
            let position = subscription.position();
            self.end(&Control::new(status, position), WatchEnd::Revoked);
        }
    }

    /// A drain began: the watch leaves at its own moment.
    pub(super) fn on_drain(&mut self, window: &Window, ticket: u64) {
        if self.leaving.is_none() {
            self.leaving = Some(Box::new(Leaving {
                at: window.leaves_at(ticket),
                stay_away: window.returns_after(ticket),
            }));
        }
    }

    /// When the watch must be looked at although nothing happened to it.
    pub(super) fn alarm(&self, face: &Face) -> Instant {
        if let Some(since) = self.waiting {
            return since + face.limits.write_stall;
        }
        let heartbeat = self.written + face.limits.heartbeat;
        let leaving = self.leaving.as_ref();
        leaving.map_or(heartbeat, |leaving| heartbeat.min(leaving.at))
    }

    /// Has a change written, unless it may not be seen at this moment.
    fn tell(&mut self, slot: &Slot<Change>, turn: &mut Turn, moment: &Moment<'_>) {
        let face = moment.face;
        let path = &slot.change().path;
        if !self
            .right
            .may_see(&face.authority.current(), path, moment.time)
        {
            face.metrics.withheld.inc();
            turn.withheld += 1;
            return;
        }
        turn.blocks += 1;
        let event = slot.encoded(Encoding::Block, block::event);
        if event.is_empty() {
            self.resync(GapReason::Overflow, slot.cursor(), moment);
        } else {
            self.begin(event, BlockKind::Event, moment);
        }
    }

    /// Ends the watch with a `resync` block: the client missed something.
    fn resync(&mut self, reason: GapReason, head: wire::Cursor, moment: &Moment<'_>) {
        moment.face.metrics.told_gap(reason);
        self.end(&Control::resync(reason, head), WatchEnd::Resync);
    }

    /// Ends the watch with a `closing` block: the server is leaving.
    fn close(&mut self, moment: &Moment<'_>) {
        let Some(subscription) = &self.subscription else {
            return;
        };
        let stay_away = match &self.leaving {
            Some(leaving) => leaving.stay_away,
            // The feed was closed under a watch that no drain had spoken to.
            None => {
                let face = moment.face;
                face.window(moment.now).returns_after(face.ticket())
            }
        };
        let millis = u64::try_from(stay_away.as_millis()).unwrap_or(u64::MAX);
        self.end(
            &Control::closing(subscription.position(), millis),
            WatchEnd::Closing,
        );
    }

    /// Chooses the last block. The one under way is written first: its place is behind us.
    fn end(&mut self, last: &Control, end: WatchEnd) {
        self.subscription = None;
        self.last = Some(block::control(last));
        self.end = Some(end);
    }

    fn begin(&mut self, block: Bytes, kind: BlockKind, moment: &Moment<'_>) {
        debug_assert!(self.pending.is_empty(), "one block at a time");
        moment.face.metrics.wrote_block(kind, block.len());
        self.pending = block;
    }

    fn flush(&mut self, moment: &Moment<'_>) -> Poll<Result<(), quinn::WriteError>> {
        if self.pending.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let written = self
            .reply
            .poll_write(&mut self.pending, &mut self.waker.context());
        if written.is_pending() {
            self.waiting.get_or_insert(moment.now);
        } else {
            self.waiting = None;
            self.written = moment.now;
        }
        written
    }

    /// Ends the stream after its last block; the watch is over when the client has it.
    fn finish(&mut self, moment: &Moment<'_>) -> Progress {
        if self.waiting.is_none() {
            self.reply.finish();
            self.waiting = Some(moment.now);
        }
        if self
            .stopped
            .as_mut()
            .poll(&mut self.waker.context())
            .is_ready()
        {
            return self.over(WatchEnd::Left, moment);
        }
        Progress::Blocked
    }

    fn over(&mut self, end: WatchEnd, moment: &Moment<'_>) -> Progress {
        let end = self.end.take().unwrap_or(end);
        debug!(scope = %self.right.scope(), cause = end.as_str(), "a watch is over");
        moment.face.metrics.watch_ended(end);
        moment.face.metrics.watches.dec();
        if self.waiting.is_none() || !self.pending.is_empty() {
            self.reply.reset(NO_FAULT);
        }
        Progress::Over
    }
}

/// The feed's name for what `scope` means.
pub(super) fn feed_scope(scope: &wire::DocumentScope) -> feed::Scope {
    if scope.subtree {
        feed::Scope::Prefix(scope.path.with_slash().into())
    } else {
        feed::Scope::Exact(scope.path.as_str().into())
    }
}
