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

    /// Its position, if the channel keeps a history to resume from.
    pub fn resumable(&self) -> Option<&Cursor> {
        let keeps = self.topic().declaration().history().is_some();
        keeps.then(|| self.cursor())
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

impl Message {
    /// Appends the event as JSON: `{"event":…,"data":…,"cursor":…,"at":…}` on one line, with a
    /// cursor if one is given.
    pub fn write_json(&self, cursor: Option<&Cursor>, json: &mut Vec<u8>) {
        // The name and the cursor consist of characters that stand in JSON as they are.
        json.extend_from_slice(b"{\"event\":\"");
        json.extend_from_slice(self.name.as_bytes());
        json.extend_from_slice(b"\",\"data\":");
        json.extend_from_slice(self.data.as_str().as_bytes());
        if let Some(cursor) = cursor {
            json.extend_from_slice(format!(",\"cursor\":\"{cursor}\"").as_bytes());
        }
        json.extend_from_slice(format!(",\"at\":{}}}", self.at_ms).as_bytes());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_of_json() {
        let message = Message {
            name: "message".into(),
            data: Payload::parse(b"{ \"text\":\n\"\\u2028\" }").unwrap(),
            at_ms: 7,
        };
        let mut json = Vec::new();
        message.write_json(Some(&"e:9".parse().unwrap()), &mut json);
        let expected = r#"{"event":"message","data":{"text":"\u2028"},"cursor":"e:9","at":7}"#;
        assert_eq!(String::from_utf8(json).unwrap(), expected);
        let mut json = Vec::new();
        message.write_json(None, &mut json);
        let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(value["at"], 7);
        assert!(value.get("cursor").is_none());
    }
}
