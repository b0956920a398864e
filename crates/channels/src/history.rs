//! The last events of each topic, kept beyond the ring that all topics share.
//!
//! A topic has a floor: everything of it above the floor is kept, something at or below it is
//! gone. So whether a cursor can be resumed from is one comparison, and what follows it is whole.
//! Topics of which nothing is kept share one floor, that of the last one that was forgotten: it
//! may tell a gap where nothing was missed, and never the reverse.
//!
//! Memory is bounded three ways: events of a topic, topics, and bytes of all together. What is
//! over goes from the topic whose oldest event is the oldest of all.

use std::collections::{BTreeMap, HashMap, VecDeque};

use wire::Seq;

use crate::event::{Content, Event};
use crate::topic::Topic;

/// Bytes of an event besides its data: its positions, pointers and counts.
const EVENT_OVERHEAD: usize = 256;

/// How often the data of an event may lie in memory: as itself and in the frames of two faces.
const EVENT_COPIES: usize = 3;

pub(crate) struct History {
    topics: HashMap<Topic, Kept>,
    /// The topics by their oldest event.
    oldest: BTreeMap<Seq, Topic>,
    bytes: usize,
    /// The floor of the topics of which nothing is kept.
    forgotten: Seq,
    topics_max: usize,
    bytes_max: usize,
}

/// The events of one topic, of which there is at least one.
struct Kept {
    events: VecDeque<Event>,
    floor: Seq,
}

impl History {
    pub(crate) fn new(topics_max: usize, bytes_max: usize) -> Self {
        Self {
            topics: HashMap::new(),
            oldest: BTreeMap::new(),
            bytes: 0,
            forgotten: Seq::ZERO,
            topics_max,
            bytes_max,
        }
    }

    /// Keeps `event`, and at most `limit` of its topic. Gives how many were forgotten for want of
    /// room, not counting those over the limit.
    pub(crate) fn keep(&mut self, event: Event, limit: usize) -> u64 {
        let topic = event.topic().clone();
        self.bytes += size(&event);
        let kept = self.topics.entry(topic.clone()).or_insert_with(|| Kept {
            events: VecDeque::new(),
            floor: self.forgotten,
        });
        if kept.events.is_empty() {
            self.oldest.insert(event.cursor().seq, topic.clone());
        }
        kept.events.push_back(event);
        if kept.events.len() > limit {
            self.drop_oldest(&topic);
        }
        let mut forgotten = 0;
        while self.bytes > self.bytes_max || self.topics.len() > self.topics_max {
            let Some(topic) = self.oldest.values().next().cloned() else {
                break;
            };
            self.drop_oldest(&topic);
            forgotten += 1;
        }
        forgotten
    }

    /// The events of `topic` after `since` up to `upto`, or nothing if some of them are gone.
    pub(crate) fn between(&self, topic: &Topic, since: Seq, upto: Seq) -> Option<VecDeque<Event>> {
        let Some(kept) = self.topics.get(topic) else {
            return (since >= self.forgotten).then(VecDeque::new);
        };
        if since < kept.floor {
            return None;
        }
        let first = kept
            .events
            .partition_point(|event| event.cursor().seq <= since);
        let in_time = |event: &&Event| event.cursor().seq <= upto;
        let events = kept.events.range(first..).take_while(in_time);
        Some(events.cloned().collect())
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn drop_oldest(&mut self, topic: &Topic) {
        let Some(kept) = self.topics.get_mut(topic) else {
            return;
        };
        let Some(event) = kept.events.pop_front() else {
            return;
        };
        self.bytes -= size(&event);
        self.oldest.remove(&event.cursor().seq);
        kept.floor = event.cursor().seq;
        match kept.events.front() {
            Some(next) => {
                self.oldest.insert(next.cursor().seq, topic.clone());
            }
            None => {
                self.forgotten = self.forgotten.max(kept.floor);
                self.topics.remove(topic);
            }
        }
    }
}

fn size(event: &Event) -> usize {
    let data = match event.content() {
        Content::Message(message) => message.data.as_str().len(),
        // Comings and goings are not kept.
        Content::Presence(_) => 0,
    };
    EVENT_OVERHEAD + EVENT_COPIES * data
}
