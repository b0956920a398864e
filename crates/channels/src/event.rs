//! What the hub's feed carries: a published event, or a change of a roster.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use feed::{Change, Encoding};
use wire::Cursor;

use crate::member::Delta;
use crate::payload::Payload;
use crate::topic::Topic;

/// A change of a topic, with its position and its encodings. Cloning shares it.
///
/// It keeps its encodings itself, besides its slot in the feed: a history replays it long after
/// the ring has moved on, to many who return at once, and the bytes are the same.
#[derive(Clone)]
pub struct Event(Arc<Inner>);

/// One for each kind of face.
const ENCODINGS: usize = 3;

struct Inner {
    topic: Topic,
    cursor: Cursor,
    content: Content,
    encodings: [OnceLock<Bytes>; ENCODINGS],
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Content {
    /// Somebody published.
    Message(Message),
    /// Members came, went or changed.
    Presence(Delta),
}

/// A published event.
#[derive(Clone, Debug)]
pub struct Message {
    /// One of the names that the channel declares.
    pub name: Arc<str>,
    /// Its data.
    pub data: Payload,
    /// When it was published, in milliseconds since 1970.
    pub at_ms: u64,
}

impl Event {
    pub(crate) fn new(topic: Topic, cursor: Cursor, content: Content) -> Self {
        Self(Arc::new(Inner {
            topic,
            cursor,
            content,
            encodings: [const { OnceLock::new() }; ENCODINGS],
        }))
    }

    /// Where it happened.
    pub fn topic(&self) -> &Topic {
        &self.0.topic
    }

    /// Its position. It resumes only on a channel with history.
    pub fn cursor(&self) -> &Cursor {
        &self.0.cursor
    }

    /// What happened.
    pub fn content(&self) -> &Content {
        &self.0.content
    }

    /// The message, if it is one.
    pub fn message(&self) -> Option<&Message> {
        match self.content() {
            Content::Message(message) => Some(message),
            Content::Presence(_) => None,
        }
    }

    /// The bytes for one kind of face, made on first use and shared by all watchers, live or
    /// replayed. Nothing of a watcher's rights may enter them.
    pub fn encoded(&self, encoding: Encoding, encode: impl FnOnce(&Self) -> Bytes) -> Bytes {
        let place = match encoding {
            Encoding::Block => 0,
            Encoding::Json => 1,
            Encoding::Sse => 2,
        };
        self.0.encodings[place].get_or_init(|| encode(self)).clone()
    }
}

impl Change for Event {
    fn name(&self) -> &str {
        self.0.topic.as_str()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("topic", self.topic())
            .field("cursor", self.cursor())
            .field("content", self.content())
            .finish_non_exhaustive()
    }
}
