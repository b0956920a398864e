//! The data of an event: JSON that is checked once and passed on as text.
//!
//! The text is kept as it came, so that large numbers and repeated keys reach the reader
//! unchanged; only the space between its parts is dropped, since a line break would end a line of
//! a stream. What nests deep, has very many values, or can't be read by every JSON reader (numbers
//! beyond a double, halves of surrogate pairs) is refused.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use thiserror::Error;

use crate::limits::{PAYLOAD_DEPTH_MAX, PAYLOAD_LEN_MAX, PAYLOAD_VALUES_MAX};

/// The data of an event: a JSON value on one line. Cloning shares the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(Arc<str>);

impl Payload {
    /// Takes `json` if it is a value within the bounds.
    pub fn parse(json: &[u8]) -> Result<Self, PayloadError> {
        if json.len() > PAYLOAD_LEN_MAX {
            return Err(PayloadError::TooLong);
        }
        let text = std::str::from_utf8(json).map_err(|_| PayloadError::Malformed)?;
        let budget = Budget {
            values: Cell::new(0),
            exceeded: Cell::new(None),
        };
        let mut reader = serde_json::Deserializer::from_str(text);
        let read = Bounded {
            budget: &budget,
            depth: 1,
        }
        .deserialize(&mut reader)
        .and_then(|()| reader.end());
        match (read, budget.exceeded.get()) {
            (Ok(()), _) => Ok(Self(without_space(text).into())),
            (Err(_), Some(bound)) => Err(bound),
            (Err(_), None) => Err(PayloadError::Malformed),
        }
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

/// A valid JSON text without the space between its parts.
fn without_space(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for c in text.chars() {
        match c {
            ' ' | '\t' | '\n' | '\r' if !in_string => continue,
            '"' if !is_escaped => in_string = !in_string,
            _ => {}
        }
        is_escaped = in_string && c == '\\' && !is_escaped;
        kept.push(c);
    }
    kept
}

/// What is left of the bounds, and the first that was passed.
struct Budget {
    values: Cell<usize>,
    exceeded: Cell<Option<PayloadError>>,
}

/// Reads a value and keeps nothing of it but its count.
#[derive(Clone, Copy)]
struct Bounded<'a> {
    budget: &'a Budget,
    depth: usize,
}

impl Bounded<'_> {
    fn exceed<E: serde::de::Error>(&self, bound: PayloadError) -> E {
        self.budget.exceeded.set(Some(bound));
        E::custom(bound)
    }

    /// The reader of what a list or an object holds.
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        let depth = self.depth + 1;
        if depth > PAYLOAD_DEPTH_MAX + 1 {
            return Err(self.exceed(PayloadError::TooDeep));
        }
        Ok(Self { depth, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let values = self.budget.values.get() + 1;
        if values > PAYLOAD_VALUES_MAX {
            return Err(self.exceed(PayloadError::TooManyValues));
        }
        self.budget.values.set(values);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let inner = self.inner()?;
        while list.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let inner = self.inner()?;
        while object.next_key::<Key>()?.is_some() {
            object.next_value_seed(inner)?;
        }
        Ok(())
    }
}

/// A key, read in full so that what is no text is refused.
struct Key;

impl<'de> serde::Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyText)
    }
}

struct KeyText;

impl Visitor<'_> for KeyText {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, _: &str) -> Result<Key, E> {
        Ok(Key)
    }
}

/// Why data is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PayloadError {
    /// It is no JSON value that every reader can read.
    #[error("the data is not JSON")]
    Malformed,
    /// It nests too deep.
    #[error("the data nests deeper than {PAYLOAD_DEPTH_MAX}")]
    TooDeep,
    /// It is too long.
    #[error("the data is longer than {PAYLOAD_LEN_MAX} bytes")]
    TooLong,
    /// It has too many values.
    #[error("the data has more than {PAYLOAD_VALUES_MAX} values")]
    TooManyValues,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Payload, PayloadError> {
        Payload::parse(text.as_bytes())
    }

    // C35
    #[test]
    fn data_is_passed_on_as_it_came_but_for_the_space() {
        for (text, kept) in [
            ("null", "null"),
            (
                " { \"a\" :\r\n[ 1 , \"b  c\\\" d\" ] } ",
                "{\"a\":[1,\"b  c\\\" d\"]}",
            ),
            (
                "{\"__proto__\":{},\"constructor\":1,\"\":2}",
                "{\"__proto__\":{},\"constructor\":1,\"\":2}",
            ),
            ("{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}"),
            (
                "[-0,1e2,123456789012345678901234567890]",
                "[-0,1e2,123456789012345678901234567890]",
            ),
            ("\"\\ud83d\\ude00 \\\\\"", "\"\\ud83d\\ude00 \\\\\""),
        ] {
            assert_eq!(parse(text).unwrap().as_str(), kept);
        }
    }

    // C35
    #[test]
    fn hostile_data_is_refused_by_name() {
        for text in [
            "",
            "{",
            "nul",
            "1 2",
            "[1,]",
            "{\"a\"}",
            "1e400",
            "-1e400",
            "\"\\ud800\"",
            "{\"\\ud800\":1}",
            "\"\n\"",
            "NaN",
            "'a'",
        ] {
            assert_eq!(parse(text), Err(PayloadError::Malformed), "{text:?}");
        }
        assert_eq!(Payload::parse(b"\"\xff\""), Err(PayloadError::Malformed));
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(parse(&nested(PAYLOAD_DEPTH_MAX)).is_ok());
        assert_eq!(
            parse(&nested(PAYLOAD_DEPTH_MAX + 1)),
            Err(PayloadError::TooDeep)
        );
        assert_eq!(parse(&nested(30_000)), Err(PayloadError::TooDeep));
        let list = |len| format!("[{}]", vec!["1"; len].join(","));
        assert!(parse(&list(PAYLOAD_VALUES_MAX - 1)).is_ok());
        assert_eq!(
            parse(&list(PAYLOAD_VALUES_MAX)),
            Err(PayloadError::TooManyValues)
        );
        let long = format!("\"{}\"", "a".repeat(PAYLOAD_LEN_MAX));
        assert_eq!(parse(&long), Err(PayloadError::TooLong));
    }
}
