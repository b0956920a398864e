//! What a client may send.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::limits::{SYNC_ID_LEN_MAX, SYNC_TOKEN_LEN_MAX, SYNC_WORD_LEN_MAX};

use super::{VERSION, shape};

/// A frame of a client, read but not judged: whether a scope can be watched is the server's to say.
#[derive(Clone, Debug)]
pub enum ClientFrame<'a> {
    /// A sign of life.
    Beat,
    /// The first frame.
    Hello {
        /// The build of the application, if it says.
        build: Option<Cow<'a, str>>,
        /// The token, if it didn't come with the handshake.
        token: Option<Cow<'a, str>>,
    },
    /// Something only a server says; it is passed over.
    Ignored,
    /// An event for a channel.
    Publish {
        /// Joins the answer to this.
        id: Cow<'a, str>,
        /// The channel in the text of its scope, without `channel:`.
        channel: Cow<'a, str>,
        /// The event's name.
        event: Cow<'a, str>,
        /// Its data, as it was written.
        data: Option<&'a RawValue>,
    },
    /// Begins a subscription.
    Subscribe {
        /// Joins the answer to this.
        id: Cow<'a, str>,
        /// What is watched.
        scope: Cow<'a, str>,
        /// From where.
        since: Option<Cow<'a, str>>,
        /// The least time between two frames; what comes meanwhile is merged.
        min_gap_ms: Option<u64>,
    },
    /// A fresh token.
    Token {
        /// The token.
        token: Cow<'a, str>,
    },
    /// Ends a subscription.
    Unsubscribe {
        /// Joins the answer to this.
        id: Cow<'a, str>,
        /// What is no longer watched.
        scope: Cow<'a, str>,
    },
}

/// Why a frame is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Not a JSON object, or a member has another type than it must, or stands there twice.
    #[error("the frame is not a JSON object of the sync protocol")]
    Malformed,
    /// A member that this kind must have is absent.
    #[error("the frame lacks `{0}`")]
    Missing(&'static str),
    /// Nested too deep.
    #[error("the frame is nested too deep")]
    TooDeep,
    /// A text is longer than it may be.
    #[error("`{0}` is too long")]
    TooLong(&'static str),
    /// Too many values.
    #[error("the frame has too many values")]
    TooManyValues,
    /// A kind that nobody knows.
    #[error("the kind of the frame is not known")]
    UnknownKind,
    /// A version that is not spoken.
    #[error("only version 1 of the sync protocol is spoken here")]
    Version,
}

/// Every member of every kind: one pass over the text, whatever the order.
#[derive(Debug, Deserialize)]
struct Members<'a> {
    #[serde(borrow)]
    t: Cow<'a, str>,
    v: Option<u64>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    scope: Option<Cow<'a, str>>,
    #[serde(borrow)]
    since: Option<Cow<'a, str>>,
    min_gap_ms: Option<u64>,
    #[serde(borrow)]
    channel: Option<Cow<'a, str>>,
    #[serde(borrow)]
    event: Option<Cow<'a, str>>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    token: Option<Cow<'a, str>>,
    #[serde(borrow)]
    build: Option<Cow<'a, str>>,
}

impl<'a> ClientFrame<'a> {
    /// Reads the text of a message. With the error comes the frame's id, if that much could be
    /// read, so that the answer can name it.
    pub fn parse(text: &'a str) -> Result<Self, (FrameError, Option<String>)> {
        shape::check(text).map_err(|error| (error, None))?;
        let members: Members<'a> =
            serde_json::from_str(text).map_err(|_| (FrameError::Malformed, None))?;
        let id = members
            .id
            .as_deref()
            .filter(|id| id.len() <= SYNC_ID_LEN_MAX);
        let id = id.map(str::to_owned);
        members.into_frame().map_err(|error| (error, id))
    }
}

impl<'a> Members<'a> {
    fn into_frame(self) -> Result<ClientFrame<'a>, FrameError> {
        self.check_lengths()?;
        let id = self.id.ok_or(FrameError::Missing("id"));
        let scope = self.scope.ok_or(FrameError::Missing("scope"));
        Ok(match &*self.t {
            "beat" => ClientFrame::Beat,
            "hello" if self.v.is_some_and(|version| version != VERSION) => {
                return Err(FrameError::Version);
            }
            "hello" => ClientFrame::Hello {
                build: self.build,
                token: self.token,
            },
            "publish" => ClientFrame::Publish {
                id: id?,
                channel: self.channel.ok_or(FrameError::Missing("channel"))?,
                event: self.event.ok_or(FrameError::Missing("event"))?,
                data: self.data,
            },
            "subscribe" => ClientFrame::Subscribe {
                id: id?,
                scope: scope?,
                since: self.since,
                min_gap_ms: self.min_gap_ms,
            },
            "token" => ClientFrame::Token {
                token: self.token.ok_or(FrameError::Missing("token"))?,
            },
            "unsubscribe" => ClientFrame::Unsubscribe {
                id: id?,
                scope: scope?,
            },
            "ack" | "changes" | "error" | "events" | "gap" | "patch" | "presence" | "reconnect"
            | "records" | "snapshot" | "update-available" => ClientFrame::Ignored,
            _ => return Err(FrameError::UnknownKind),
        })
    }

    fn check_lengths(&self) -> Result<(), FrameError> {
        let bounded = [
            ("id", &self.id, SYNC_ID_LEN_MAX),
            ("scope", &self.scope, SYNC_WORD_LEN_MAX),
            ("since", &self.since, SYNC_WORD_LEN_MAX),
            ("channel", &self.channel, SYNC_WORD_LEN_MAX),
            ("event", &self.event, SYNC_WORD_LEN_MAX),
            ("token", &self.token, SYNC_TOKEN_LEN_MAX),
            ("build", &self.build, SYNC_WORD_LEN_MAX),
        ];
        let is_over = |value: &Option<Cow<'_, str>>, max| {
            value.as_ref().is_some_and(|value| value.len() > max)
        };
        match bounded
            .into_iter()
            .find(|(_, value, max)| is_over(value, *max))
        {
            Some((name, ..)) => Err(FrameError::TooLong(name)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> FrameError {
        ClientFrame::parse(text).unwrap_err().0
    }

    // C34
    #[test]
    fn unknown_members_and_the_order_say_nothing() {
        let text = r#"{"x":{"y":[1]},"scope":"doc:\u002fnotes/","id":"1","t":"subscribe"}"#;
        let Ok(ClientFrame::Subscribe {
            id,
            scope,
            since,
            min_gap_ms,
        }) = ClientFrame::parse(text)
        else {
            panic!("a subscribe");
        };
        assert_eq!((&*id, &*scope), ("1", "doc:/notes/"));
        assert_eq!((since, min_gap_ms), (None, None));
    }

    // C34
    #[test]
    fn kinds_of_the_server_are_passed_over_and_unknown_ones_named() {
        let ignored = ClientFrame::parse(r#"{"t":"presence","members":[]}"#);
        assert!(matches!(ignored, Ok(ClientFrame::Ignored)));
        let (error, id) = ClientFrame::parse(r#"{"t":"dance","id":"7"}"#).unwrap_err();
        assert_eq!((error, id.as_deref()), (FrameError::UnknownKind, Some("7")));
    }

    // C34, C35
    #[test]
    fn what_is_no_frame_is_refused_by_name() {
        let cases = [
            (r#"{"t":"hello","v":2}"#, FrameError::Version),
            (r#"{"t":"hello","v":1.5}"#, FrameError::Malformed),
            (
                r#"{"t":"subscribe","id":"1"}"#,
                FrameError::Missing("scope"),
            ),
            (
                r#"{"t":"subscribe","scope":"/"}"#,
                FrameError::Missing("id"),
            ),
            (
                r#"{"t":"subscribe","id":1,"scope":"/"}"#,
                FrameError::Malformed,
            ),
            (
                r#"{"t":"subscribe","id":"1","scope":"/","min_gap_ms":-1}"#,
                FrameError::Malformed,
            ),
            (
                r#"{"t":"subscribe","id":"1","scope":"/","min_gap_ms":NaN}"#,
                FrameError::Malformed,
            ),
            (r#"{"t":"beat","t":"beat"}"#, FrameError::Malformed),
            (r#"{"t":"beat","id":"\ud800"}"#, FrameError::Malformed),
            (r#"{"t":"beat"} x"#, FrameError::Malformed),
            (r#"["t","beat"]"#, FrameError::Malformed),
            ("", FrameError::Malformed),
        ];
        for (text, expected) in cases {
            assert_eq!(error(text), expected, "{text}");
        }
        let long = format!(
            r#"{{"t":"beat","id":"{}"}}"#,
            "x".repeat(SYNC_ID_LEN_MAX + 1)
        );
        assert_eq!(error(&long), FrameError::TooLong("id"));
    }

    // C35
    #[test]
    fn hostile_data_stays_the_text_it_is() {
        let data = r#"{"__proto__":1,"constructor":{"a":1,"a":2},"n":-0,"m":1e400,"s":"\ud800"}"#;
        let text =
            format!(r#"{{"t":"publish","id":"1","channel":"room","event":"e","data":{data}}}"#);
        let Ok(ClientFrame::Publish {
            data: Some(kept), ..
        }) = ClientFrame::parse(&text)
        else {
            panic!("a publish");
        };
        assert_eq!(kept.get(), data);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,200}") {
            let _ = ClientFrame::parse(&text);
        }

        #[test]
        fn nothing_like_json_makes_it_panic(text in "[\\[\\]{}\",:\\\\ut0-9e.-]{0,200}") {
            let _ = ClientFrame::parse(&text);
        }
    }
}
