//! The topics that are followed on this node: how many seats each has, and who is present.
//!
//! A topic is here from the first reservation to the last seat. Reservations count like seats, so
//! that no speed of a policy lets more topics in than there is room for (C25). Members are present
//! by a lease of their socket, one for all its topics: a beat costs one renewal, and the sweep
//! touches only what has run out or has news.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use wire::Seq;

use crate::limits::{LEASE, RENEWAL_INTERVAL};
use crate::member::{Delta, Member, Roster};
use crate::payload::Payload;
use crate::presence::Presence;
use crate::topic::Topic;

/// Names a socket on this node.
pub(crate) type SocketKey = u64;

pub(crate) struct Rooms {
    topics: HashMap<Topic, Room>,
    topics_max: usize,
    leases: HashMap<SocketKey, Lease>,
    /// The leases by the time at which they run out.
    deadlines: BTreeSet<(Duration, SocketKey)>,
    /// Topics whose rosters have news.
    news: HashSet<Topic>,
}

#[derive(Default)]
struct Room {
    /// Seats and reservations; never none.
    holders: usize,
    presence: Presence,
}

struct Lease {
    id: Arc<str>,
    renewed: Duration,
    topics: HashSet<Topic>,
}

/// There is no room for another topic.
pub(crate) struct Full;

impl Rooms {
    pub(crate) fn new(topics_max: usize) -> Self {
        Self {
            topics: HashMap::new(),
            topics_max,
            leases: HashMap::new(),
            deadlines: BTreeSet::new(),
            news: HashSet::new(),
        }
    }

    /// Counts one more holder of `topic`.
    pub(crate) fn hold(&mut self, topic: &Topic) -> Result<(), Full> {
        if let Some(room) = self.topics.get_mut(topic) {
            room.holders += 1;
            return Ok(());
        }
        if self.topics.len() >= self.topics_max {
            return Err(Full);
        }
        let room = Room {
            holders: 1,
            ..Room::default()
        };
        self.topics.insert(topic.clone(), room);
        Ok(())
    }

    /// Counts one holder less; the last one takes the topic along.
    pub(crate) fn release(&mut self, topic: &Topic) {
        let Some(room) = self.topics.get_mut(topic) else {
            return;
        };
        room.holders -= 1;
        if room.holders == 0 {
            self.topics.remove(topic);
            self.news.remove(topic);
        }
    }

    /// `member`, which is the socket `key`, is present in `topic`.
    pub(crate) fn enter(&mut self, key: SocketKey, topic: &Topic, member: Member, now: Duration) {
        let lease = self.leases.entry(key).or_insert_with(|| {
            self.deadlines.insert((now + LEASE, key));
            Lease {
                id: member.id.clone(),
                renewed: now,
                topics: HashSet::new(),
            }
        });
        lease.topics.insert(topic.clone());
        self.change(topic, |presence| presence.enter(member));
    }

    /// The socket `key` is no longer present in `topic`.
    pub(crate) fn exit(&mut self, key: SocketKey, topic: &Topic) {
        let Some(lease) = self.leases.get_mut(&key) else {
            return;
        };
        lease.topics.remove(topic);
        let (id, renewed, is_last) = (lease.id.clone(), lease.renewed, lease.topics.is_empty());
        if is_last {
            self.leases.remove(&key);
            self.deadlines.remove(&(renewed + LEASE, key));
        }
        self.change(topic, |presence| presence.leave(&id));
    }

    /// The socket `key` is alive. False if it is present nowhere, or its lease ran out.
    pub(crate) fn renew(&mut self, key: SocketKey, now: Duration) -> bool {
        let Some(lease) = self.leases.get_mut(&key) else {
            return false;
        };
        if now >= lease.renewed + RENEWAL_INTERVAL {
            self.deadlines.remove(&(lease.renewed + LEASE, key));
            lease.renewed = now;
            self.deadlines.insert((now + LEASE, key));
        }
        true
    }

    /// The socket `key` says `meta` about itself in `topic`; false if that came too late.
    pub(crate) fn update(
        &mut self,
        key: SocketKey,
        topic: &Topic,
        meta: Payload,
        stamp: u64,
        at_ms: u64,
    ) -> bool {
        let id = self.leases.get(&key).map(|lease| lease.id.clone());
        let room = self.topics.get_mut(topic);
        let (Some(id), Some(room)) = (id, room) else {
            return false;
        };
        let is_news = room.presence.update(&id, meta, stamp, at_ms);
        if is_news {
            self.news.insert(topic.clone());
        }
        is_news
    }

    /// Takes the sockets whose leases ran out, or with `all` any, at most `max`; says how many.
    pub(crate) fn expire(&mut self, now: Duration, all: bool, max: usize) -> usize {
        let mut expired = 0;
        while expired < max {
            let Some((deadline, key)) = self.deadlines.first().copied() else {
                break;
            };
            if deadline > now && !all {
                break;
            }
            self.deadlines.remove(&(deadline, key));
            if let Some(lease) = self.leases.remove(&key) {
                for topic in &lease.topics {
                    self.change(topic, |presence| presence.leave(&lease.id));
                }
            }
            expired += 1;
        }
        expired
    }

    /// Announces the news of `topic`, if it is time.
    pub(crate) fn announce(
        &mut self,
        topic: &Topic,
        now: Duration,
        publish: impl FnMut(Delta) -> Seq,
    ) {
        let presence = self.topics.get_mut(topic).map(|room| &mut room.presence);
        match presence.filter(|presence| presence.has_news()) {
            Some(presence) if !presence.may_announce(now) => return,
            Some(presence) => presence.announce(now, publish),
            None => {}
        }
        self.news.remove(topic);
    }

    /// The topics with news.
    pub(crate) fn with_news(&self) -> Vec<Topic> {
        self.news.iter().cloned().collect()
    }

    /// The announced roster of `topic`, if anybody follows it.
    pub(crate) fn roster(&mut self, topic: &Topic) -> Option<Arc<Roster>> {
        Some(self.topics.get_mut(topic)?.presence.roster())
    }

    /// Gives back memory after a storm.
    pub(crate) fn shrink(&mut self) {
        if self.topics.capacity() > SPARE_FACTOR * self.topics.len() + SPARE_MIN {
            self.topics.shrink_to(2 * self.topics.len());
        }
        if self.leases.capacity() > SPARE_FACTOR * self.leases.len() + SPARE_MIN {
            self.leases.shrink_to(2 * self.leases.len());
        }
    }

    pub(crate) fn topics(&self) -> usize {
        self.topics.len()
    }

    pub(crate) fn present(&self) -> usize {
        self.leases.len()
    }

    fn change(&mut self, topic: &Topic, change: impl FnOnce(&mut Presence)) {
        if let Some(room) = self.topics.get_mut(topic) {
            change(&mut room.presence);
            self.news.insert(topic.clone());
        }
    }
}

/// A map is shrunk when it has this many times the room that it needs.
const SPARE_FACTOR: usize = 8;

/// Room that a map may keep whatever it needs.
const SPARE_MIN: usize = 64;
