//! One connection: its caller, and its seats.
//!
//! A seat is taken in three steps. [`Socket::reserve`] answers at once and counts the seat against
//! every cap before anything is awaited (C25). [`Reservation::decide`] runs the policy, or says
//! whom to ask. [`Reservation::join`] takes the verdict and begins the watch. A reservation that is
//! dropped, or whose subscriber left meanwhile, gives everything back (C27).
//!
//! A denial is remembered for as long as the caller stays the same, so that asking again costs a
//! look (C23). When the caller changes, every seat is decided anew: a denied one ends, one that
//! can't be decided is suspended until it can (C21, C22).
//!
//! The socket and its seats end when it is dropped. What others see of that is announced by the
//! next sweep.

mod reservation;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use auth::Claims;
use feed::Outlet;
use wire::{ChannelScope, Cursor};

use crate::hub::Hub;
use crate::limits::META_LEN_MAX;
use crate::member::Member;
use crate::moment::Now;
use crate::payload::Payload;
use crate::policy::{Decision, Question, Right, Verdict};
use crate::refusal::Refusal;
use crate::rooms::SocketKey;
use crate::seat::{Seat, Settled};
use crate::topic::Topic;
use crate::watch::Watch;

pub use reservation::{Joined, Reservation, Start};

/// One connection. It ends its seats when dropped.
pub struct Socket {
    shared: Arc<Shared>,
}

struct Shared {
    hub: Hub,
    key: SocketKey,
    session: Arc<str>,
    own: Mutex<Own>,
}

struct Own {
    claims: Arc<Claims>,
    /// The version of the claims.
    identity: u64,
    places: HashMap<Topic, Place>,
    /// Topics that the policy denied this caller.
    denied: HashSet<Topic>,
    /// Tickets are not used twice.
    tickets: u64,
    is_closed: bool,
}

/// How far a subscription is.
enum Place {
    Reserved { ticket: u64 },
    Taken(Arc<Seat>),
}

/// What a reservation finds.
#[derive(Debug)]
pub enum Reserved {
    /// A place was reserved; the policy is to be heard.
    New(Reservation),
    /// The seat is taken already: the subscribe was a beat.
    Seated(Topic),
}

/// What a check of all seats found.
#[derive(Debug, Default)]
pub struct Recheck {
    /// Seats that changed, and how.
    pub settled: Vec<(Topic, Settled)>,
    /// What is to be asked; each answer goes to [`Socket::settle`].
    pub questions: Vec<Question>,
}

impl Socket {
    pub(crate) fn new(hub: Hub, key: SocketKey, session: Arc<str>, claims: Arc<Claims>) -> Self {
        let own = Own {
            claims,
            identity: 0,
            places: HashMap::new(),
            denied: HashSet::new(),
            tickets: 0,
            is_closed: false,
        };
        Self {
            shared: Arc::new(Shared {
                hub,
                key,
                session,
                own: Mutex::new(own),
            }),
        }
    }

    /// The caller's claims.
    pub fn claims(&self) -> Arc<Claims> {
        self.shared.own().claims.clone()
    }

    /// How many topics it follows or awaits.
    pub fn topics(&self) -> usize {
        self.shared.own().places.len()
    }

    /// Reserves a place in the topic that `scope` names. Renews the lease: a repeated subscribe is
    /// a beat.
    pub fn reserve(&self, scope: &ChannelScope, now: Now) -> Result<Reserved, Refusal> {
        let hub = &self.shared.hub;
        let topic = hub.topic(scope)?;
        self.beat(now);
        let mut own = self.shared.own();
        match own.places.get(&topic) {
            Some(Place::Taken(_)) => return Ok(Reserved::Seated(topic)),
            Some(Place::Reserved { .. }) => {
                hub.counters().refused_taken.add(1);
                return Err(Refusal::Taken);
            }
            None => {}
        }
        own.admit(hub, &topic)?;
        own.tickets += 1;
        let ticket = own.tickets;
        own.places.insert(topic.clone(), Place::Reserved { ticket });
        let reservation = Reservation::new(self.shared.clone(), topic, ticket, &own);
        Ok(Reserved::New(reservation))
    }

    /// A watch of `topic` for its seat, if it has one, from after a position that was told live:
    /// for a socket that leaves a shared fan-out and goes on by itself, because it is slow or its
    /// seat was suspended.
    pub fn resume(&self, topic: &Topic, from: &Cursor, outlet: &Arc<Outlet>) -> Option<Watch> {
        let seat = match self.shared.own().places.get(topic)? {
            Place::Reserved { .. } => return None,
            Place::Taken(seat) => seat.clone(),
        };
        Some(Watch::resume(&self.shared.hub, topic, seat, from, outlet))
    }

    /// Leaves the topic that `scope` names, decided or not. False if it wasn't followed.
    pub fn unsubscribe(&self, scope: &ChannelScope) -> bool {
        let topic = self.shared.hub.topic(scope);
        topic.is_ok_and(|topic| self.shared.vacate(&topic, &mut self.shared.own()))
    }

    /// The socket is alive: its members stay present, and come back if their lease had run out.
    pub fn beat(&self, now: Now) {
        let hub = &self.shared.hub;
        if hub.rooms().renew(self.shared.key, now.elapsed) || hub.is_draining() {
            return;
        }
        self.enter_all(now);
    }

    /// The socket says `meta` about itself in a topic where it is present. `stamp` is the time or
    /// count of its own reckoning: what is older than the last, or as old, is dropped (C45).
    /// False if it was dropped, is too long, or the socket is not present there.
    pub fn describe(&self, topic: &Topic, meta: Payload, stamp: u64, now: Now) -> bool {
        let hub = &self.shared.hub;
        if meta.as_str().len() > META_LEN_MAX {
            return false;
        }
        let mut rooms = hub.rooms();
        let is_news = rooms.update(self.shared.key, topic, meta, stamp, now.unix_ms);
        if is_news {
            hub.announce(&mut rooms, topic, now);
        } else {
            hub.counters().updates_stale.add(1);
        }
        is_news
    }

    /// The caller is somebody else, has newer claims, or has signed out: forgets the denials and
    /// decides every seat anew. Where a back end is to be asked about somebody else, the seat is
    /// suspended until the answer.
    pub fn identify(&self, claims: impl Into<Arc<Claims>>, now: Now) -> Recheck {
        let claims = claims.into();
        let mut own = self.shared.own();
        let is_other = own.claims.subject() != claims.subject();
        own.claims = claims;
        own.identity += 1;
        own.denied.clear();
        let mut suspended = Vec::new();
        for (topic, seat) in own.seats().filter(|_| is_other) {
            if topic.declaration().join_policy().is_asked() && seat.suspend() {
                self.shared.hub.counters().seats_suspended.add(1);
                suspended.push((topic.clone(), Settled::Suspended));
            }
        }
        drop(own);
        let mut recheck = self.recheck();
        // A seat that was suspended and then denied has just ended.
        suspended.retain(|(topic, _)| recheck.settled.iter().all(|(other, _)| other != topic));
        recheck.settled.extend(suspended);
        if is_other {
            self.enter_all(now);
        }
        recheck
    }

    /// Decides every seat anew, at a heartbeat or after the policies' world has changed.
    pub fn recheck(&self) -> Recheck {
        let own = self.shared.own();
        let (claims, identity) = (own.claims.clone(), own.identity);
        let topics: Vec<Topic> = own.seats().map(|(topic, _)| topic.clone()).collect();
        drop(own);
        let mut recheck = Recheck::default();
        for topic in topics {
            let policy = topic.declaration().join_policy();
            match policy.decide(Right::Join, &topic, &claims, identity) {
                Decision::Ask(question) => recheck.questions.push(question),
                Decision::Made(verdict) => match self.shared.settle(&topic, identity, verdict) {
                    Settled::Kept | Settled::Stale => {}
                    settled => recheck.settled.push((topic, settled)),
                },
            }
        }
        recheck
    }

    /// Takes the answer to a question of a recheck.
    pub fn settle(&self, question: &Question, verdict: Verdict) -> Settled {
        self.shared
            .settle(question.topic(), question.identity(), verdict)
    }

    /// Makes the socket present wherever it has a seat.
    fn enter_all(&self, now: Now) {
        let own = self.shared.own();
        let mut rooms = self.shared.hub.rooms();
        for (topic, _) in own.seats() {
            if topic.declaration().has_presence() {
                let member = self.shared.member(&own.claims, now);
                rooms.enter(self.shared.key, topic, member, now.elapsed);
                self.shared.hub.announce(&mut rooms, topic, now);
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut own = self.shared.own();
        own.is_closed = true;
        let topics: Vec<Topic> = own.places.keys().cloned().collect();
        for topic in topics {
            self.shared.vacate(&topic, &mut own);
        }
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("session", &self.shared.session)
            .finish_non_exhaustive()
    }
}

impl Own {
    /// Counts a place in `topic` against every cap, or says which one is reached.
    fn admit(&self, hub: &Hub, topic: &Topic) -> Result<(), Refusal> {
        let counters = hub.counters();
        let limit = hub.limits().topics_per_socket;
        let (counter, refusal) = if self.is_closed || hub.is_draining() {
            (&counters.refused_leaving, Refusal::Leaving)
        } else if self.denied.contains(topic) {
            (&counters.denied_again, Refusal::NotPermitted)
        } else if self.places.len() >= limit || self.denied.len() >= limit {
            (&counters.refused_socket_topics, Refusal::SocketTopics)
        } else if hub.rooms().hold(topic).is_err() {
            (&counters.refused_node_topics, Refusal::NodeTopics)
        } else {
            return Ok(());
        };
        counter.add(1);
        Err(refusal)
    }

    fn seats(&self) -> impl Iterator<Item = (&Topic, &Arc<Seat>)> {
        self.places.iter().filter_map(|(topic, place)| match place {
            Place::Reserved { .. } => None,
            Place::Taken(seat) => Some((topic, seat)),
        })
    }

    fn holds(&self, topic: &Topic, own: u64) -> bool {
        matches!(self.places.get(topic), Some(Place::Reserved { ticket }) if *ticket == own)
    }
}

impl Shared {
    fn own(&self) -> MutexGuard<'_, Own> {
        // No code of a caller runs under this lock.
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back the place in `topic`, reserved or taken. False if there is none.
    fn vacate(&self, topic: &Topic, own: &mut Own) -> bool {
        let Some(place) = own.places.remove(topic) else {
            return false;
        };
        let mut rooms = self.hub.rooms();
        if let Place::Taken(seat) = place {
            seat.end();
            if topic.declaration().has_presence() {
                rooms.exit(self.key, topic);
            }
        }
        rooms.release(topic);
        true
    }

    fn settle(&self, topic: &Topic, identity: u64, verdict: Verdict) -> Settled {
        let mut own = self.own();
        let seat = match own.places.get(topic) {
            Some(Place::Taken(seat)) if own.identity == identity => seat.clone(),
            _ => return Settled::Stale,
        };
        let counters = self.hub.counters();
        match verdict {
            Verdict::Allowed if seat.resume() => Settled::Resumed,
            Verdict::Allowed => Settled::Kept,
            Verdict::Denied => {
                counters.denied.add(1);
                counters.seats_ended.add(1);
                self.vacate(topic, &mut own);
                own.denied.insert(topic.clone());
                Settled::Ended
            }
            Verdict::Undecided => {
                counters.undecided.add(1);
                if !seat.suspend() {
                    return Settled::Kept;
                }
                counters.seats_suspended.add(1);
                Settled::Suspended
            }
        }
    }

    fn member(&self, claims: &Claims, now: Now) -> Member {
        Member {
            id: self.session.clone(),
            actor: claims.subject().map(Arc::from),
            meta: None,
            at_ms: now.unix_ms,
            stamp: 0,
        }
    }
}
