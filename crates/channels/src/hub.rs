//! The channels of one node.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use auth::Claims;
use feed::{Feed, Outlet};
use wire::{ChannelScope, Cursor, Epoch};

use crate::counters::{Counters, Stats};
use crate::declaration::Declarations;
use crate::event::{Content, Event, Message};
use crate::limits::Limits;
use crate::member::{Delta, Roster};
use crate::moment::Now;
use crate::payload::Payload;
use crate::policy::{Decision, Right, Verdict};
use crate::refusal::Refusal;
use crate::rooms::Rooms;
use crate::socket::Socket;
use crate::timeline::Timeline;
use crate::topic::Topic;
use crate::watch::Watch;

/// The channels of one node. A cheap handle: clones share it.
///
/// Publishing: [`publish`](Self::publish), after [`decide`](Self::decide) for whoever is not
/// trusted. Following: [`open`](Self::open) a [`Socket`] per connection. Whoever runs the hub calls
/// [`sweep`](Self::sweep) all the time, and to stop [`drain`](Self::drain),
/// [`announce_leaves`](Self::announce_leaves) until nobody is left, and [`close`](Self::close).
#[derive(Clone)]
pub struct Hub {
    shared: Arc<Shared>,
}

struct Shared {
    declarations: Declarations,
    limits: Limits,
    timeline: Timeline,
    rooms: Mutex<Rooms>,
    counters: Counters,
    is_draining: AtomicBool,
    sockets: AtomicU64,
}

/// What was published.
#[derive(Clone, Debug)]
pub struct Published {
    /// Where.
    pub topic: Topic,
    /// Its position, if the channel keeps a history to resume from.
    pub cursor: Option<Cursor>,
}

impl Hub {
    /// A hub without sockets. Its histories begin empty, so `epoch` has to be a new one.
    ///
    /// # Panics
    ///
    /// If the length of the ring is no power of two.
    pub fn new(declarations: Declarations, epoch: Epoch, limits: Limits) -> Self {
        Self {
            shared: Arc::new(Shared {
                timeline: Timeline::new(epoch, &limits),
                rooms: Mutex::new(Rooms::new(limits.topics)),
                declarations,
                limits,
                counters: Counters::default(),
                is_draining: AtomicBool::new(false),
                sockets: AtomicU64::new(0),
            }),
        }
    }

    /// A connection. `session` names it to other members and must not come twice.
    pub fn open(&self, session: &str, claims: impl Into<Arc<Claims>>) -> Socket {
        let key = self.shared.sockets.fetch_add(1, Ordering::Relaxed);
        Socket::new(self.clone(), key, session.into(), claims.into())
    }

    /// May a caller with `claims` do this with the topic that `scope` names, right now?
    ///
    /// For callers without a seat: those who publish, and those who read a roster by HTTP. A
    /// question that is answered with anything but a yes is a [`Refusal`] as well; see
    /// [`permit`](Self::permit).
    pub fn decide(
        &self,
        right: Right,
        scope: &ChannelScope,
        claims: &Claims,
    ) -> Result<Decision, Refusal> {
        let topic = self.topic(scope)?;
        let declaration = topic.declaration();
        let policy = match right {
            Right::Join => Some(declaration.join_policy()),
            Right::Publish => declaration.publish_policy(),
        };
        let made = |verdict| Ok(Decision::Made(verdict));
        policy.map_or_else(
            || made(Verdict::Denied),
            |policy| Ok(policy.decide(right, &topic, claims, 0)),
        )
    }

    /// Turns a verdict into a refusal unless it is a yes, and counts it.
    pub fn permit(&self, verdict: Verdict) -> Result<(), Refusal> {
        match verdict {
            Verdict::Allowed => Ok(()),
            Verdict::Denied => {
                self.counters().denied.add(1);
                Err(Refusal::NotPermitted)
            }
            Verdict::Undecided => {
                self.counters().undecided.add(1);
                Err(Refusal::Undecided)
            }
        }
    }

    /// Publishes an event. Rights are the caller's to check: the application itself has them all.
    pub fn publish(
        &self,
        scope: &ChannelScope,
        event: &str,
        data: Payload,
        now: Now,
    ) -> Result<Published, Refusal> {
        let topic = self.topic(scope)?;
        let Some(name) = topic.declaration().event(event).cloned() else {
            self.counters().refused_events.add(1);
            return Err(Refusal::UndeclaredEvent);
        };
        let message = Message {
            name,
            data,
            at_ms: now.unix_ms,
        };
        let (cursor, evicted) = self.timeline().publish(&topic, Content::Message(message));
        self.counters().published.add(1);
        self.counters().history_evicted.add(evicted);
        let keeps = topic.declaration().history().is_some();
        Ok(Published {
            topic,
            cursor: keeps.then_some(cursor),
        })
    }

    /// The members of `topic` as last announced; nothing if nobody follows it or members are not
    /// told of each other.
    pub fn roster(&self, topic: &Topic) -> Option<Arc<Roster>> {
        if topic.declaration().has_presence() {
            self.rooms().roster(topic)
        } else {
            None
        }
    }

    /// The topic that `scope` names, if it is declared so.
    pub fn topic(&self, scope: &ChannelScope) -> Result<Topic, Refusal> {
        let declaration = self.shared.declarations.get(scope.name());
        let topic = declaration.and_then(|declaration| Topic::of(declaration, scope));
        topic.ok_or_else(|| {
            self.counters().undeclared.add(1);
            Refusal::NotPermitted
        })
    }

    /// Ends the leases that ran out and announces who came and went. To be called every
    /// [`SWEEP_INTERVAL`](crate::limits::SWEEP_INTERVAL).
    pub fn sweep(&self, now: Now) {
        let mut rooms = self.rooms();
        let expired = rooms.expire(now.elapsed, false, usize::MAX);
        self.counters().leases_expired.add(expired as u64);
        for topic in rooms.with_news() {
            self.announce(&mut rooms, &topic, now);
        }
        rooms.shrink();
    }

    /// Takes no more seats from here on.
    pub fn drain(&self) {
        self.shared.is_draining.store(true, Ordering::Release);
    }

    /// Has at most `max` sockets leave wherever they are present, and announces what it may; to
    /// be called while draining with the time of each call until it gives 0, so that everybody
    /// has heard of every leave. Gives how many sockets and announcements are left.
    pub fn announce_leaves(&self, max: usize, now: Now) -> usize {
        let mut rooms = self.rooms();
        rooms.expire(now.elapsed, true, max);
        for topic in rooms.with_news() {
            self.announce(&mut rooms, &topic, now);
        }
        rooms.present() + rooms.with_news().len()
    }

    /// Ends every watch once it has read what is there.
    pub fn close(&self) {
        self.drain();
        self.timeline().feed().close();
    }

    /// A watch of `topic` without a seat, from after `from`: for whoever fans it out to many
    /// seats. It checks no right and never ends by itself.
    pub fn follow(&self, topic: &Topic, from: &Cursor, outlet: &Arc<Outlet>) -> Watch {
        Watch::resume(self, topic, Arc::default(), from, outlet)
    }

    /// The position of the newest change of any topic.
    pub fn head(&self) -> Cursor {
        self.feed().head()
    }

    /// The feed that all topics share; the changes of a topic have its canonical text for a name.
    /// What its ring lost is mended by [`Watch`] alone.
    pub fn feed(&self) -> &Feed<Event> {
        self.timeline().feed()
    }

    /// The channels.
    pub fn declarations(&self) -> &Declarations {
        &self.shared.declarations
    }

    /// What the hub has done so far, and what it holds.
    pub fn stats(&self) -> Stats {
        let rooms = self.rooms();
        let (topics, present) = (rooms.topics(), rooms.present());
        drop(rooms);
        Stats {
            topics,
            present,
            history_bytes: self.timeline().history_bytes(),
            ..self.counters().stats()
        }
    }

    /// Announces the news of `topic`, if it is time.
    pub(crate) fn announce(&self, rooms: &mut Rooms, topic: &Topic, now: Now) {
        rooms.announce(topic, now.elapsed, |delta: Delta| {
            self.counters().deltas.add(1);
            let (cursor, _) = self.timeline().publish(topic, Content::Presence(delta));
            cursor.seq
        });
    }

    pub(crate) fn rooms(&self) -> MutexGuard<'_, Rooms> {
        // No code of a caller runs under this lock but wakers, after the rooms were changed.
        self.shared
            .rooms
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn timeline(&self) -> &Timeline {
        &self.shared.timeline
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.shared.is_draining.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("feed", self.feed())
            .finish_non_exhaustive()
    }
}
