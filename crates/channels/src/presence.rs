//! Who is present in one topic, and what of it has been announced.
//!
//! Members come and go at once in `current`; what others are told is `announced`, which follows in
//! steps. A step compares the two for the members that were touched, so that a member who dropped
//! and came back between two steps is no news, and a storm is a few deltas. Newcomers are given
//! the announced roster: with the deltas after it they arrive at the same members and the same
//! total as everybody else (C42, C47, C49).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use wire::Seq;

use crate::limits::{ANNOUNCE_INTERVAL, DELTA_MEMBERS_MAX, ROSTER_MAX};
use crate::member::{Delta, Member, Movement, Roster};
use crate::payload::Payload;

type Id = Arc<str>;

#[derive(Default)]
pub(crate) struct Presence {
    current: HashMap<Id, Arc<Member>>,
    announced: HashMap<Id, (Place, Arc<Member>)>,
    /// The announced members, those who are here for longest first.
    by_place: BTreeMap<Place, Arc<Member>>,
    /// Members that may differ between `current` and `announced`.
    touched: BTreeSet<Id>,
    places: u64,
    announced_at: Option<Duration>,
    /// The last delta that was announced.
    as_of: Seq,
    /// The announced roster, while nothing changes.
    roster: Option<Arc<Roster>>,
}

/// The order in which members were announced.
type Place = u64;

impl Presence {
    /// `member` came, or is here already and may be somebody else from here on.
    pub(crate) fn enter(&mut self, member: Member) {
        self.touched.insert(member.id.clone());
        match self.current.get_mut(&member.id) {
            Some(own) if own.actor == member.actor => {}
            Some(own) => {
                let own = Arc::make_mut(own);
                own.at_ms = own.next_at_ms(member.at_ms);
                own.actor = member.actor;
            }
            None => {
                self.current.insert(member.id.clone(), Arc::new(member));
            }
        }
    }

    /// The member `id` went.
    pub(crate) fn leave(&mut self, id: &Id) {
        if self.current.remove(id).is_some() {
            self.touched.insert(id.clone());
        }
    }

    /// The member `id` says `meta` about itself; false if it said something later already.
    pub(crate) fn update(&mut self, id: &Id, meta: Payload, stamp: u64, at_ms: u64) -> bool {
        match self.current.get_mut(id) {
            Some(member) if member.stamp < stamp => {
                let member = Arc::make_mut(member);
                member.meta = Some(meta);
                member.stamp = stamp;
                member.at_ms = member.next_at_ms(at_ms);
                self.touched.insert(id.clone());
                true
            }
            _ => false,
        }
    }

    /// True if there may be news.
    pub(crate) fn has_news(&self) -> bool {
        !self.touched.is_empty()
    }

    /// True if the last announcement is long enough ago for another.
    pub(crate) fn may_announce(&self, elapsed: Duration) -> bool {
        let next = self.announced_at.map(|at| at + ANNOUNCE_INTERVAL);
        next.is_none_or(|next| elapsed >= next)
    }

    /// Announces the news: each delta is given to `publish`, which says where it was published.
    pub(crate) fn announce(&mut self, elapsed: Duration, mut publish: impl FnMut(Delta) -> Seq) {
        let mut news = [Vec::new(), Vec::new(), Vec::new()];
        for id in std::mem::take(&mut self.touched) {
            if let Some((movement, member)) = self.settle(&id) {
                // Those who come are told of first, so that whoever changed sockets never seems
                // to be away (C46).
                let order = match movement {
                    Movement::Join => 0,
                    Movement::Update => 1,
                    Movement::Leave => 2,
                };
                news[order].push(member);
            }
        }
        let movements = [Movement::Join, Movement::Update, Movement::Leave];
        for (movement, members) in movements.into_iter().zip(news) {
            for members in members.chunks(DELTA_MEMBERS_MAX) {
                self.as_of = publish(Delta {
                    movement,
                    members: members.to_vec(),
                });
                self.announced_at = Some(elapsed);
                self.roster = None;
            }
        }
    }

    /// Makes the announced member `id` what the current one is; says how it moved, if it did.
    fn settle(&mut self, id: &Id) -> Option<(Movement, Arc<Member>)> {
        match (self.current.get(id), self.announced.get_mut(id)) {
            (Some(current), Some((place, announced))) => {
                if current == announced {
                    return None;
                }
                *announced = current.clone();
                self.by_place.insert(*place, current.clone());
                Some((Movement::Update, current.clone()))
            }
            (Some(current), None) => {
                self.places += 1;
                self.by_place.insert(self.places, current.clone());
                self.announced
                    .insert(id.clone(), (self.places, current.clone()));
                Some((Movement::Join, current.clone()))
            }
            (None, Some((place, _))) => {
                self.by_place.remove(place);
                self.announced
                    .remove(id)
                    .map(|(_, member)| (Movement::Leave, member))
            }
            (None, None) => None,
        }
    }

    /// The announced members.
    pub(crate) fn roster(&mut self) -> Arc<Roster> {
        let members = || self.by_place.values().take(ROSTER_MAX).cloned().collect();
        let (total, as_of) = (self.announced.len(), self.as_of);
        self.roster
            .get_or_insert_with(|| Arc::new(Roster::new(members(), total, as_of)))
            .clone()
    }
}

#[cfg(test)]
mod tests;
