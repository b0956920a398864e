//! A place in the feed of the channels: events and the comings and goings of one topic.

use bytes::Bytes;
use channels::{Content, Event, Movement, Next, Roster, Topic, Watch};
use feed::{Encoding, Token};
use wire::sync::{self, Member, PresenceKind};

use super::batch::{Batch, Item, Kind};
use super::reader::Left;

/// A place in the feed of the channels.
#[derive(Debug)]
pub(crate) struct Channel {
    watch: Watch,
}

impl Channel {
    pub(crate) const fn new(watch: Watch) -> Self {
        Self { watch }
    }

    pub(crate) const fn topic(&self) -> &Topic {
        self.watch.topic()
    }

    pub(super) fn token(&self) -> Token {
        self.watch.token()
    }

    pub(super) fn position(&self) -> wire::Cursor {
        self.watch.position()
    }

    /// Adds to `batch` what is due, until it is full or nothing is.
    pub(super) fn read(&mut self, batch: &mut Batch) -> Left {
        while !batch.is_full() {
            let item = match self.watch.next() {
                Next::Closed => return Left::Closed,
                Next::Ended => return Left::Ended,
                Next::Event(event) => told(&event),
                Next::Gap { reason, cursor } => return Left::Gap(reason, cursor),
                Next::Idle => return Left::Idle,
                Next::Roster(roster) => Item {
                    kind: Kind::Presence,
                    cursor: self.watch.position(),
                    json: roster_object(&roster),
                    scope: 0,
                },
            };
            batch.push(item);
        }
        Left::More
    }
}

fn told(event: &Event) -> Item {
    let kind = match event.content() {
        Content::Message(_) => Kind::Event,
        Content::Presence(_) => Kind::Presence,
    };
    Item {
        kind,
        cursor: event.cursor().clone(),
        json: event.encoded(Encoding::Json, object),
        scope: 0,
    }
}

/// What happened as an object, the same for everyone.
fn object(event: &Event) -> Bytes {
    let mut json = Vec::new();
    match event.content() {
        Content::Message(message) => {
            let keeps = event.topic().declaration().history().is_some();
            let cursor = keeps.then(|| event.cursor());
            let data = message.data.as_str();
            sync::event(&message.name, data, cursor, Some(message.at_ms), &mut json);
        }
        Content::Presence(delta) => {
            let kind = match delta.movement {
                Movement::Join => PresenceKind::Join,
                Movement::Leave => PresenceKind::Leave,
                Movement::Update => PresenceKind::Update,
            };
            let members = delta.members.iter();
            let members: Vec<_> = members.map(|member| shown(member)).collect();
            sync::presence(kind, &members, None, &mut json);
        }
    }
    json.into()
}

/// A roster as an object without its scope.
pub(crate) fn roster_object(roster: &Roster) -> Bytes {
    roster.encoded(|roster| {
        let members: Vec<_> = roster.members.iter().map(|member| shown(member)).collect();
        let mut json = Vec::new();
        sync::presence(PresenceKind::Sync, &members, Some(roster.total), &mut json);
        json.into()
    })
}

fn shown(member: &channels::Member) -> Member<'_> {
    Member {
        id: &member.id,
        actor: member.actor.as_deref(),
        // It was JSON when it was taken, so it is shown.
        meta: member
            .meta
            .as_ref()
            .and_then(|meta| serde_json::from_str(meta.as_str()).ok()),
        at: member.at_ms,
    }
}
