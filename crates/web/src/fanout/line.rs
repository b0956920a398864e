//! One held socket: what it has yet to take, and when it must be looked at.
//!
//! A frame is written whole or the socket ends: what the kernel did not take of one is kept and
//! goes first (T20). Beside it only short words wait, within a bound; changes stay in their ring.
//! So a socket that is not read costs one frame, which it shares with all who are told the same.

use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use gate::Seat;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::io::Io;
use super::slab::Key;
use super::wakes::SocketWaker;
use crate::connection::Place;
use crate::socket::Session;
use crate::stream::{Admitted, Voice};
use gate::Alarm;

/// How long a socket may take to answer our end with its own.
const LINGER: Duration = Duration::from_secs(2);

/// Bytes that a stream's client may send for nothing before it is taken for broken.
const WASTE_MAX: usize = 64 << 10;

/// What a held socket occupies for as long as it lives.
#[derive(Debug)]
pub(crate) struct Ties {
    _place: Option<Place>,
    _seat: Option<Seat>,
    /// Counts it among what a drain waits for.
    _held: TaskTrackerToken,
    /// Its place among the streams.
    _admitted: Admitted,
}

impl Ties {
    /// Those of a socket that was taken out of HTTP.
    pub(crate) fn new(
        place: Place,
        seat: Seat,
        held: TaskTrackerToken,
        admitted: Admitted,
    ) -> Self {
        Self {
            _place: Some(place),
            _seat: Some(seat),
            ..Self::upgraded(held, admitted)
        }
    }

    /// Those of a socket whose connection is still HTTP's to account for.
    pub(crate) fn upgraded(held: TaskTrackerToken, mut admitted: Admitted) -> Self {
        admitted.begin();
        Self {
            _place: None,
            _seat: None,
            _held: held,
            _admitted: admitted,
        }
    }
}

/// What becomes of bytes that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The kernel has them, or will before anything else.
    Taken,
    /// Nothing was taken: what was sent before is still on its way.
    Blocked,
    /// The socket is gone.
    Gone,
}

/// Why a line is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It was told to come back later, or that its time was over.
    Closed,
    /// The client left.
    Left,
    /// The client did not read, or more waited for it than may.
    Stalled,
}

/// A held socket.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) io: Io,
    pub(crate) waker: SocketWaker,
    pub(crate) voice: Voice,
    /// Its watches.
    pub(crate) watches: Vec<Key>,
    /// How many of them go their own way for now.
    pub(crate) alone: usize,
    /// The state of the sync protocol, on a WebSocket.
    pub(crate) session: Option<Box<Session>>,
    /// The seats of a stream that follows a channel.
    pub(crate) seats: Option<Box<channels::Socket>>,
    /// The rest of what is being written.
    pending: Bytes,
    /// Words that follow it.
    outbox: Vec<u8>,
    /// Since when the kernel takes nothing.
    blocked: Option<Instant>,
    /// It ends when everything is written.
    is_ending: bool,
    /// Everything is written and the end was said; the client's is waited for until then.
    lingers: Option<Instant>,
    /// When it ends anyway.
    pub(crate) dies: Instant,
    /// When a drain ends it, and how long its client should stay away.
    pub(crate) leaving: Option<(Instant, Duration)>,
    wasted: usize,
    pub(crate) gave_way: bool,
    pub(crate) alarm: Alarm,
    _ties: Ties,
}

impl Line {
    pub(crate) fn new(io: Io, waker: SocketWaker, voice: Voice, dies: Instant, ties: Ties) -> Self {
        Self {
            io,
            waker,
            voice,
            watches: Vec::new(),
            alone: 0,
            session: None,
            seats: None,
            pending: Bytes::new(),
            outbox: Vec::new(),
            blocked: None,
            is_ending: false,
            lingers: None,
            dies,
            leaving: None,
            wasted: 0,
            gave_way: false,
            alarm: Alarm::default(),
            _ties: ties,
        }
    }

    /// True if a frame that is sent now would wait.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.blocked.is_some() || self.is_ending
    }

    /// True if nothing more is told on it.
    pub(crate) const fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Whose seats its channels have.
    pub(crate) fn channels(&self) -> Option<&channels::Socket> {
        match &self.session {
            Some(session) => session.channels(),
            None => self.seats.as_deref(),
        }
    }

    /// Sends a frame that others are sent as well. It is not copied.
    pub(crate) fn send(&mut self, frame: &Bytes, now: Instant) -> Sent {
        if !self.outbox.is_empty() && self.flush(now) == Sent::Gone {
            return Sent::Gone;
        }
        if self.is_blocked() {
            return Sent::Blocked;
        }
        match self.io.poll_write(&mut self.waker.context(), frame) {
            Poll::Ready(Ok(0) | Err(_)) => return Sent::Gone,
            Poll::Ready(Ok(len)) if len == frame.len() => return self.flush_io(now),
            Poll::Ready(Ok(len)) => self.pending = frame.slice(len..),
            Poll::Pending => self.pending = frame.clone(),
        }
        self.blocked = Some(now);
        // The rest is tried at once: only so is it certain that a wake comes.
        match self.flush(now) {
            Sent::Gone => Sent::Gone,
            _ => Sent::Taken,
        }
    }

    /// Says something to this socket alone, after what is under way. False if it would be more
    /// than may wait.
    pub(crate) fn say(&mut self, words: &[u8], bytes_max: usize) -> bool {
        if self.outbox.len() + words.len() > bytes_max && !self.outbox.is_empty() {
            return false;
        }
        self.outbox.extend_from_slice(words);
        true
    }

    /// Ends the line when everything is written.
    pub(crate) fn end(&mut self) {
        self.is_ending = true;
    }

    /// Writes what waits.
    pub(crate) fn flush(&mut self, now: Instant) -> Sent {
        loop {
            if self.pending.is_empty() {
                if self.outbox.is_empty() {
                    self.blocked = None;
                    return self.flush_io(now);
                }
                self.pending = std::mem::take(&mut self.outbox).into();
            }
            match self.io.poll_write(&mut self.waker.context(), &self.pending) {
                Poll::Ready(Ok(0) | Err(_)) => return Sent::Gone,
                Poll::Ready(Ok(len)) => {
                    self.pending.advance(len);
                    self.blocked = Some(now);
                    if self.pending.is_empty() {
                        // Lets go of what it shared.
                        self.pending = Bytes::new();
                    }
                }
                Poll::Pending => {
                    self.blocked.get_or_insert(now);
                    return Sent::Blocked;
                }
            }
        }
    }

    /// Lets what was written out of the buffers of TLS.
    fn flush_io(&mut self, now: Instant) -> Sent {
        match self.io.poll_flush(&mut self.waker.context()) {
            Poll::Ready(Ok(())) => Sent::Taken,
            Poll::Ready(Err(_)) => Sent::Gone,
            Poll::Pending => {
                self.blocked.get_or_insert(now);
                Sent::Taken
            }
        }
    }

    /// Says the end once everything is written, and waits for the client's.
    pub(crate) fn shut(&mut self, now: Instant) {
        if self.lingers.is_none() {
            self.io.shut(&mut self.waker.context());
            self.lingers = Some(now + LINGER);
        }
    }

    /// Reads what a client sends that has nothing to say.
    pub(crate) fn waste(&mut self, scratch: &mut [u8]) -> Result<(), End> {
        loop {
            match self.io.poll_read(&mut self.waker.context(), scratch) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok([]) | Err(_)) if self.is_ending => return Err(End::Closed),
                Poll::Ready(Ok([]) | Err(_)) => return Err(End::Left),
                Poll::Ready(Ok(bytes)) => self.wasted += bytes.len(),
            }
            if self.wasted > WASTE_MAX {
                return Err(End::Left);
            }
        }
    }

    /// The line is given up at `now`, if its time is over.
    pub(crate) fn overdue(&self, now: Instant, stall: Duration) -> Option<End> {
        match (self.lingers, self.blocked) {
            (Some(until), _) if until <= now => Some(End::Closed),
            (None, Some(since)) if since + stall <= now => Some(End::Stalled),
            _ => None,
        }
    }

    /// When it must be looked at although nothing happened to it.
    pub(crate) fn alarm_at(&self, stall: Duration) -> Instant {
        if let Some(lingers) = self.lingers {
            return lingers;
        }
        let stalled = self.blocked.map(|since| since + stall);
        if let (true, Some(stalled)) = (self.is_ending, stalled) {
            return stalled;
        }
        let mut at = self.dies;
        let leaving = self.leaving.map(|(at, _)| at);
        let session = self.session.as_ref().map(|session| session.alarm_at());
        for other in [stalled, leaving, session].into_iter().flatten() {
            at = at.min(other);
        }
        at
    }
}
