//! The scope of a declared channel: its name and its params, in one canonical spelling.
//!
//! `channel:room?id=42`: params are sorted by name and values percent-encoded, so that two who
//! mean the same channel write the same text, and `a`, `b-c` never reads as `a-b`, `c`. Whether
//! such a channel is declared, and what its params may be, is for others to say.

use std::fmt::{self, Write};
use std::str::FromStr;

use super::ScopeError;
use crate::limits::{CHANNEL_NAME_LEN_MAX, CHANNEL_PARAMS_MAX, CHANNEL_VALUE_LEN_MAX};

/// A channel by its name and its params.
///
/// Two scopes are equal if they name the same channel, in whatever order their params came.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChannelScope {
    name: String,
    /// Sorted by name, each name once.
    params: Vec<(String, String)>,
}

impl ChannelScope {
    /// The channel `name` with `params` in any order.
    ///
    /// Names are 1 to 64 characters of `[A-Za-z0-9_-]`, values at most 128 bytes of text, and
    /// there are at most 16 params, none twice. Everything else is one and the same error, so
    /// that nobody learns from it what is declared.
    pub fn new<'a>(
        name: &str,
        params: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ScopeError> {
        let mut sorted = Vec::new();
        for (param, value) in params {
            let is_fit = is_channel_name(param) && value.len() <= CHANNEL_VALUE_LEN_MAX;
            if !is_fit || sorted.len() == CHANNEL_PARAMS_MAX {
                return Err(ScopeError::Channel);
            }
            sorted.push((param.to_owned(), value.to_owned()));
        }
        sorted.sort();
        let is_repeated = sorted.windows(2).any(|pair| pair[0].0 == pair[1].0);
        if is_repeated || !is_channel_name(name) {
            return Err(ScopeError::Channel);
        }
        Ok(Self {
            name: name.to_owned(),
            params: sorted,
        })
    }

    /// The name of the channel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of the param `name`.
    pub fn param(&self, name: &str) -> Option<&str> {
        let at = self
            .params
            .binary_search_by(|(own, _)| own.as_str().cmp(name));
        at.ok().map(|at| self.params[at].1.as_str())
    }

    /// The params, sorted by name.
    pub fn params(&self) -> impl Iterator<Item = (&str, &str)> {
        self.params
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// True for what may name a channel or a param.
pub fn is_channel_name(text: &str) -> bool {
    (1..=CHANNEL_NAME_LEN_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

impl fmt::Display for ChannelScope {
    /// The text after `channel:`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, (name, value)) in self.params.iter().enumerate() {
            let mark = if index == 0 { '?' } else { '&' };
            write!(f, "{mark}{name}=")?;
            encode(value, f)?;
        }
        Ok(())
    }
}

impl FromStr for ChannelScope {
    type Err = ScopeError;

    /// Reads the text after `channel:`.
    fn from_str(text: &str) -> Result<Self, ScopeError> {
        let (name, query) = text.split_once('?').unwrap_or((text, ""));
        let mut params = Vec::new();
        for pair in query.split('&').filter(|_| !query.is_empty()) {
            let (param, value) = pair.split_once('=').ok_or(ScopeError::Channel)?;
            if params.len() == CHANNEL_PARAMS_MAX {
                return Err(ScopeError::Channel);
            }
            params.push((param, decode(value).ok_or(ScopeError::Channel)?));
        }
        Self::new(name, params.iter().map(|(name, value)| (*name, &**value)))
    }
}

/// Writes `value` with everything but the unreserved characters of a URL percent-encoded.
fn encode(value: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            f.write_char(byte.into())?;
        } else {
            write!(f, "%{byte:02X}")?;
        }
    }
    Ok(())
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

fn hex(digit: u8) -> Option<u8> {
    // A hex digit is below 16, so it fits.
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Result<ChannelScope, ScopeError> {
        text.parse()
    }

    // C63
    #[test]
    fn params_in_another_order_name_the_same_channel() {
        let sorted = scope("room?a=1&b=2").unwrap();
        assert_eq!(scope("room?b=2&a=1").unwrap(), sorted);
        assert_eq!(scope("room?b=2&a=1").unwrap().to_string(), "room?a=1&b=2");
        assert_eq!(
            ChannelScope::new("room", [("b", "2"), ("a", "1")]),
            Ok(sorted)
        );
        assert_eq!(scope("room?").unwrap(), scope("room").unwrap());
    }

    // C63
    #[test]
    fn neighbouring_values_never_run_together() {
        assert_ne!(scope("r?x=a&y=b-c"), scope("r?x=a-b&y=c"));
        let hidden = ChannelScope::new("r", [("x", "a&y=b")]).unwrap();
        assert_eq!(hidden.to_string(), "r?x=a%26y%3Db");
        assert_ne!(scope("r?x=a&y=b").unwrap(), hidden);
    }

    #[test]
    fn every_text_reads_back_from_its_canonical_spelling() {
        for value in ["", "42", "a b", "é/%?#", "a+b", "\r\n\0"] {
            let own = ChannelScope::new("room", [("id", value)]).unwrap();
            assert_eq!(scope(&own.to_string()).unwrap(), own);
            assert_eq!(own.param("id"), Some(value));
        }
        assert_eq!(scope("r?x=%e9").unwrap_err(), ScopeError::Channel);
        assert_eq!(scope("r?x=%C3%a9").unwrap().param("x"), Some("é"));
    }

    // C18
    #[test]
    fn everything_that_is_no_channel_is_one_and_the_same_error() {
        let many: Vec<String> = (0..=CHANNEL_PARAMS_MAX)
            .map(|n| format!("p{n}=1"))
            .collect();
        let cases = [
            "".to_owned(),
            "ro om".to_owned(),
            "room?id".to_owned(),
            "room?=1".to_owned(),
            "room?id=%4".to_owned(),
            "room?id=%zz".to_owned(),
            "room?id=%+1".to_owned(),
            "room?id=%ff".to_owned(),
            "room?a=1&a=1".to_owned(),
            "room?a=1&&b=2".to_owned(),
            format!("room?id={}", "1".repeat(CHANNEL_VALUE_LEN_MAX + 1)),
            format!("room?{}", many.join("&")),
            "r".repeat(CHANNEL_NAME_LEN_MAX + 1),
        ];
        for text in cases {
            assert_eq!(scope(&text), Err(ScopeError::Channel), "{text:?}");
        }
        assert!(scope(&format!("room?{}", many[1..].join("&"))).is_ok());
    }
}
