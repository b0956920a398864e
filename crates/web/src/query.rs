//! The text of a request's target: its path and its query, percent-decoded once.
//!
//! Routing, rights and the store see the same decoded text, so no spelling reads more than
//! another and `%2F` is a slash to all of them (T65).

use percent_encoding::percent_decode_str;

use crate::fault::{Code, Fault};

/// More parameters than any route has, scopes of a watch included.
const PARAMETERS_MAX: usize = 256;

/// Decodes a path or a part of one.
pub(crate) fn decode(raw: &str) -> Result<String, Fault> {
    check_escapes(raw).ok_or_else(|| {
        Fault::detailed(
            Code::BadPath,
            "a % is not followed by two hexadecimal digits",
        )
    })?;
    let decoded = percent_decode_str(raw).decode_utf8();
    let text = decoded.map_err(|_| Fault::detailed(Code::BadPath, "it is not UTF-8"))?;
    Ok(text.into_owned())
}

fn check_escapes(raw: &str) -> Option<()> {
    let mut rest = raw.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        let digits = rest.get(at + 1..at + 3)?;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
        rest = &rest[at + 3..];
    }
    Some(())
}

/// The parameters of a query in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the text behind the `?`.
    pub(crate) fn parse(raw: &str) -> Result<Self, Fault> {
        let bad = |detail: &str| Fault::detailed(Code::BadParameter, detail);
        let pieces = raw.split('&').filter(|piece| !piece.is_empty());
        let mut pairs = Vec::new();
        for piece in pieces {
            if pairs.len() == PARAMETERS_MAX {
                return Err(bad("there are too many parameters"));
            }
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            let read = |text: &str| {
                decode(&text.replace('+', " "))
                    .map_err(|_| bad("the query is not percent-encoded UTF-8"))
            };
            pairs.push((read(name)?, read(value)?));
        }
        Ok(Self(pairs))
    }

    /// The names in their order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// All parameters in their order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Every value of `name`.
    pub(crate) fn all<'a, 'n>(
        &'a self,
        name: &'n str,
    ) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.pairs()
            .filter(move |(own, _)| *own == name)
            .map(|(_, value)| value)
    }

    /// The value of `name`; that it stands there twice is a fault, since one would be ignored.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, Fault> {
        let mut values = self.all(name);
        let first = values.next();
        match values.next() {
            None => Ok(first),
            Some(_) => Err(Fault::detailed(
                Code::BadParameter,
                format!("`{name}` stands there more than once"),
            )),
        }
    }

    /// True if `name` stands there without a value, as `true` or as `1`.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Fault> {
        match self.one(name)? {
            None | Some("false" | "0") => Ok(false),
            Some("" | "true" | "1") => Ok(true),
            Some(_) => Err(Fault::detailed(
                Code::BadParameter,
                format!("`{name}` must be true or false"),
            )),
        }
    }

    /// The number that `name` has, within `range`.
    pub(crate) fn number(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, Fault> {
        let Some(text) = self.one(name)? else {
            return Ok(None);
        };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text
            .parse()
            .ok()
            .filter(|number| digits && range.contains(number));
        number.map(Some).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            let wanted = match most {
                &u64::MAX => format!("`{name}` must be an integer from {least}"),
                most => format!("`{name}` must be an integer from {least} to {most}"),
            };
            Fault::detailed(Code::BadParameter, wanted)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_decoded_once() {
        assert_eq!(decode("/a%2Fb%20c").unwrap(), "/a/b c");
        assert_eq!(decode("/a%252Fb").unwrap(), "/a%2Fb");
        assert_eq!(decode("/caf%C3%A9").unwrap(), "/café");
    }

    #[test]
    fn a_path_that_is_not_encoded_utf8_is_a_fault() {
        for raw in ["/%", "/%2", "/%zz", "/%ff", "/a%", "/%+1"] {
            assert_eq!(decode(raw).unwrap_err().code, Code::BadPath, "{raw}");
        }
    }

    #[test]
    fn a_query_is_read_in_its_order() {
        let query = Query::parse("scope=/a&scope=/b+c&append&x=%26").unwrap();
        assert_eq!(query.all("scope").collect::<Vec<_>>(), ["/a", "/b c"]);
        assert!(query.flag("append").unwrap());
        assert!(!query.flag("unarchive").unwrap());
        assert_eq!(query.one("x").unwrap(), Some("&"));
        assert!(query.one("scope").is_err());
    }

    // T56
    #[test]
    fn numbers_are_digits_within_their_range() {
        for text in [
            "-1",
            "+1",
            "",
            "NaN",
            "1e3",
            "0",
            "101",
            "18446744073709551616",
            " 1",
        ] {
            let query = Query::parse(&format!("n={}", text.replace('+', "%2B"))).unwrap();
            let fault = query.number("n", 1..=100).unwrap_err();
            assert_eq!(fault.code, Code::BadParameter, "{text}");
        }
        let query = Query::parse("n=100").unwrap();
        assert_eq!(query.number("n", 1..=100).unwrap(), Some(100));
        assert_eq!(query.number("m", 1..=100).unwrap(), None);
    }

    #[test]
    fn a_query_of_too_many_parameters_is_a_fault() {
        let raw = "a=1&".repeat(PARAMETERS_MAX + 1);
        assert!(Query::parse(&raw).is_err());
    }
}
