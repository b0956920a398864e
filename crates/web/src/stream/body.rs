//! A stream as the body of an answer: over TLS and on HTTP/2, where the socket is not ours alone.
//!
//! A task per stream reads the feed and hands one frame at a time to the connection; what the
//! client does not take stays in the ring. It ends like every stream: by its goodbye, its right, a
//! client that left, or one that takes nothing for too long.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use feed::Outlet;
use gate::{Phase, spread};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use wire::{Cursor, GapReason};

use super::admission::Admitted;
use super::batch::Batch;
use super::channel::{Channel, roster_object};
use super::plan::{Plan, Since, Source};
use super::reader::{Left, Mode, Reader, Rights};
use super::refusal::retry;
use super::voice::{Farewell, Miss, Scopes, Voice, with_kind};
use crate::answer::Answer;
use crate::face::Face;
use crate::fanout::End;
use crate::fault::Fault;

/// The least part of a time that a jittered one has.
const JITTER_FLOOR: f64 = 0.8;

/// A stream that a task writes.
struct Stream {
    face: Arc<Face>,
    voice: Voice,
    scopes: Scopes,
    min_gap: Duration,
    reader: Reader,
    outlet: Arc<Outlet>,
    /// Holds the seat of a channel.
    _socket: Option<channels::Socket>,
    out: mpsc::Sender<Bytes>,
    _admitted: Admitted,
}

/// What a stream says first.
struct Beginning {
    missed: Option<GapReason>,
    position: Cursor,
    roster: Option<Bytes>,
}

/// Answers with a stream that a task of its own writes.
pub(super) fn answer(
    face: &Arc<Face>,
    plan: Plan,
    headers: HeaderMap,
    mut admitted: Admitted,
) -> Result<Answer, Fault> {
    admitted.begin();
    let (out, frames) = mpsc::channel(1);
    let (stream, beginning) = open(face, plan, out, admitted)?;
    face.held.spawn(stream.run(beginning));
    let mut reply = Response::new(Frames(frames).boxed_unsync());
    *reply.status_mut() = StatusCode::OK;
    *reply.headers_mut() = headers;
    Ok(reply.into())
}

fn open(
    face: &Arc<Face>,
    plan: Plan,
    out: mpsc::Sender<Bytes>,
    admitted: Admitted,
) -> Result<(Stream, Beginning), Fault> {
    let outlet = Outlet::new();
    let Plan {
        manner,
        source,
        since,
    } = plan;
    let (reader, socket, beginning) = match source {
        Source::Channel(joining) => {
            let since = match &since {
                Since::After(cursor) => Some(cursor),
                Since::Head | Since::Malformed => None,
            };
            let now = face.streams.now();
            let joined = joining
                .reservation
                .join(joining.verdict, since, &outlet, now);
            let joined = joined.map_err(super::plan::refused)?;
            let beginning = Beginning {
                missed: match joined.start {
                    channels::Start::Gap(reason) => Some(reason),
                    channels::Start::Fresh | channels::Start::Resumed => None,
                },
                position: joined.cursor,
                roster: joined.roster.map(|roster| roster_object(&roster)),
            };
            let reader = Reader::Channel(Channel::new(joined.watch));
            (reader, Some(joining.socket), beginning)
        }
        Source::Documents(rights) => {
            let (reader, position, missed) =
                super::documents::begin(face.store.feed(), &rights, &since, &outlet);
            let beginning = Beginning {
                missed,
                position,
                roster: None,
            };
            (Reader::Documents(reader), None, beginning)
        }
    };
    face.metrics.streams.opened(manner.voice);
    let stream = Stream {
        face: face.clone(),
        voice: manner.voice,
        scopes: manner.scopes,
        min_gap: manner.min_gap,
        reader,
        outlet,
        _socket: socket,
        out,
        _admitted: admitted,
    };
    Ok((stream, beginning))
}

/// What a stream of `voice` says first: where it begins, and what was missed.
pub(crate) fn beginning(
    face: &Face,
    voice: Voice,
    scopes: &Scopes,
    position: &Cursor,
    missed: Option<GapReason>,
) -> Vec<u8> {
    let mut out = Vec::new();
    if voice == Voice::Sse {
        wire::sse::retry(retry(face), &mut out);
        wire::sse::comment("", &mut out);
    }
    match missed {
        Some(reason) => {
            face.metrics.streams.told_gap(reason);
            let miss = Miss {
                reason,
                cursor: Some(position),
                delay: Duration::ZERO,
                catch_up: None,
            };
            voice.gap(scopes, &miss, &mut out);
        }
        None => voice.beat(scopes, position, &mut out),
    }
    out
}

/// Appends a roster to what a stream says first.
pub(crate) fn tell_roster(voice: Voice, scopes: &Scopes, roster: &Bytes, out: &mut Vec<u8>) {
    let mut json = Vec::new();
    match voice {
        Voice::Socket => {
            with_kind("presence", &scopes[0], roster, &mut json);
            wire::websocket::text(&json, out);
        }
        Voice::Sse => {
            wire::with_scope(roster, &scopes[0], &mut json);
            let text = str::from_utf8(&json).expect("JSON is made of texts");
            wire::sse::event("presence", None, text, out);
        }
        Voice::Lines => {
            wire::with_scope(roster, &scopes[0], out);
            out.push(b'\n');
        }
    }
}

/// What a stream does by the clock.
struct Times {
    /// When it ends anyway.
    dies: Instant,
    /// When a drain ends it, and how long its client should stay away.
    leaves: Option<(Instant, Duration)>,
    /// When something was told last.
    told: Instant,
    /// When the position is told if nothing is before.
    beats: Instant,
}

impl Stream {
    /// Writes until the stream is over.
    async fn run(mut self, begun: Beginning) {
        let end = self.write(begun).await;
        self.face.metrics.streams.closed(self.voice, end);
    }

    async fn write(&mut self, begun: Beginning) -> End {
        let mut first = beginning(
            &self.face,
            self.voice,
            &self.scopes,
            &begun.position,
            begun.missed,
        );
        if let Some(roster) = begun.roster {
            tell_roster(self.voice, &self.scopes, &roster, &mut first);
        }
        if let Some(end) = self.send(first).await {
            return end;
        }
        let mut signal = self.face.signal.subscribe();
        let now = Instant::now();
        let mut times = Times {
            dies: now + self.jittered(self.face.limits.streams.lifetime),
            leaves: None,
            told: now,
            beats: now + self.jittered(self.face.limits.streams.heartbeat),
        };
        loop {
            if let Phase::Closing(window) = signal.borrow_and_update().phase {
                let ticket = self.face.ticket();
                times.leaves.get_or_insert_with(|| {
                    let at = Instant::from_std(window.leaves_at(ticket));
                    (at, window.returns_after(ticket))
                });
            }
            if let Some(end) = self.look(&mut times).await {
                return end;
            }
            let holds_back = self.holds_back(&times);
            let mut at = times.beats.min(times.dies);
            if let Some((leaves, _)) = times.leaves {
                at = at.min(leaves);
            }
            if holds_back {
                at = at.min(times.told + self.min_gap);
            }
            tokio::select! {
                biased;
                _ = signal.changed() => {}
                () = self.out.closed() => return End::Left,
                () = sleep_until(at) => {}
                () = due(&self.outlet), if !holds_back => {}
            }
        }
    }

    /// True while the least time between two frames has not passed.
    fn holds_back(&self, times: &Times) -> bool {
        !self.min_gap.is_zero() && Instant::now() < times.told + self.min_gap
    }

    /// Ends if it is time, else tells what is due, or the position.
    async fn look(&mut self, times: &mut Times) -> Option<End> {
        let now = Instant::now();
        if self.is_revoked() {
            return Some(self.part("revoked", None).await);
        }
        if let Some((_, stay_away)) = times.leaves.filter(|(at, _)| *at <= now) {
            return Some(self.part("draining", Some(stay_away)).await);
        }
        if times.dies <= now {
            let come_back = retry(&self.face);
            return Some(self.part("lifetime", Some(come_back)).await);
        }
        let heartbeat = self.jittered(self.face.limits.streams.heartbeat);
        if !self.holds_back(times) {
            match self.tell().await {
                Ok(true) => {
                    times.told = Instant::now();
                    times.beats = times.told + heartbeat;
                }
                Ok(false) => {}
                Err(end) => return Some(end),
            }
        }
        if times.beats <= Instant::now() {
            let mut beat = Vec::new();
            let position = self.reader.position();
            self.voice.beat(&self.scopes, &position, &mut beat);
            times.beats = Instant::now() + heartbeat;
            return self.send(beat).await;
        }
        None
    }

    /// Writes all that is due. True if there was something.
    async fn tell(&mut self) -> Result<bool, End> {
        let mut batch = Batch::default();
        let mut had_some = false;
        loop {
            batch.clear();
            let grants = self.face.authority.current();
            let rights = Rights {
                grants: &grants,
                time: self.face.now(),
            };
            let mode = match self.min_gap {
                Duration::ZERO => Mode::Every,
                _ => Mode::Latest,
            };
            let left = self.reader.read(mode, rights, &mut batch);
            drop(grants);
            self.face
                .metrics
                .streams
                .withheld
                .inc_by(self.reader.take_withheld());
            let mut out = Vec::new();
            if let Some(last) = batch.cursor() {
                self.voice.batch(&self.scopes, &batch, last, &mut out);
                had_some = true;
            }
            if let Left::Gap(reason, cursor) = &left {
                self.face.metrics.streams.told_gap(*reason);
                let miss = Miss {
                    reason: *reason,
                    cursor: Some(cursor),
                    delay: Duration::ZERO,
                    catch_up: None,
                };
                self.voice.gap(&self.scopes, &miss, &mut out);
            }
            if !out.is_empty()
                && let Some(end) = self.send(out).await
            {
                return Err(end);
            }
            match left {
                Left::Closed => {
                    return Err(self.part("draining", Some(retry(&self.face))).await);
                }
                Left::Ended => return Err(self.part("revoked", None).await),
                Left::Idle => return Ok(had_some),
                Left::Gap(..) | Left::More => {}
            }
        }
    }

    fn is_revoked(&self) -> bool {
        let grants = self.face.authority.current();
        let rights = Rights {
            grants: &grants,
            time: self.face.now(),
        };
        self.reader.recheck(rights).is_err()
    }

    /// Says goodbye.
    async fn part(&mut self, reason: &'static str, come_back: Option<Duration>) -> End {
        let farewell = Farewell { reason, come_back };
        let mut out = Vec::new();
        self.voice
            .closing(&self.reader.position(), farewell, &mut out);
        self.send(out).await.unwrap_or(End::Closed)
    }

    /// Hands on a frame. Gives the end if the client is gone or takes nothing.
    async fn send(&self, frame: Vec<u8>) -> Option<End> {
        let sending = self.out.send(frame.into());
        match timeout(self.face.limits.write_stall, sending).await {
            Ok(Ok(())) => None,
            Ok(Err(_)) => Some(End::Left),
            Err(_) => Some(End::Stalled),
        }
    }

    fn jittered(&self, time: Duration) -> Duration {
        let sure = time.mul_f64(JITTER_FLOOR);
        sure + spread(self.face.ticket(), time - sure)
    }
}

/// Waits until the outlet names something. Cancel-safe: what it named is read in any case.
async fn due(outlet: &Outlet) {
    poll_fn(|cx| outlet.poll_ready(cx)).await;
}

/// The frames of a stream as a body.
struct Frames(mpsc::Receiver<Bytes>);

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = std::task::ready!(pin!(&mut self.0).poll_recv(cx));
        Poll::Ready(frame.map(|frame| Ok(Frame::data(frame))))
    }
}
