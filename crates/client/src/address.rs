//! Where a server is: `mark://host[:port]/path`, read once into values that are legal.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use wire::{PathError, Target};

/// The port of the Mark protocol when a URL names none.
pub const DEFAULT_PORT: u16 = 6309;

/// A host and a port. Two addresses are equal if they lead to the same server by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerAddress {
    /// Lower case; an IPv6 address stands without its brackets.
    host: String,
    port: u16,
}

impl ServerAddress {
    /// Joins a host name or address and a port. Names are compared in lower case.
    pub fn new(host: &str, port: u16) -> Self {
        Self {
            host: host.to_ascii_lowercase(),
            port,
        }
    }

    /// The host, an IPv6 address without brackets. This is what the certificate must name.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A `mark://` URL: a server and, where one is written, a path on it.
///
/// The path is percent-decoded exactly once; query and fragment are dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkUrl {
    /// The server.
    pub server: ServerAddress,
    /// The path; the root where the URL has none.
    pub path: Target,
}

impl FromStr for MarkUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        if !scheme.eq_ignore_ascii_case("mark") {
            return Err(UrlError::Scheme);
        }
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        Ok(Self {
            server: parse_authority(authority)?,
            path: Target::parse(&percent_decoded(path)?)?,
        })
    }
}

fn parse_authority(authority: &str) -> Result<ServerAddress, UrlError> {
    if authority.contains('@') {
        return Err(UrlError::UserInformation);
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(bracketed) => {
            let (host, rest) = bracketed.split_once(']').ok_or(UrlError::Host)?;
            host.parse::<std::net::Ipv6Addr>()
                .map_err(|_| UrlError::Host)?;
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err(UrlError::Host),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    if host.is_empty() || !host.bytes().all(legal) {
        return Err(UrlError::Host);
    }
    let port = match port {
        Some(digits) => digits
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or(UrlError::Port)?,
        None => DEFAULT_PORT,
    };
    Ok(ServerAddress::new(host, port))
}

fn percent_decoded(path: &str) -> Result<Vec<u8>, UrlError> {
    let mut bytes = path.bytes();
    let mut decoded = Vec::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digits = (bytes.next(), bytes.next());
        let (Some(high), Some(low)) = digits else {
            return Err(UrlError::Escape);
        };
        let value = |digit: u8| char::from(digit).to_digit(16).ok_or(UrlError::Escape);
        // Two hex digits make at most 255.
        decoded.push((value(high)? * 16 + value(low)?) as u8);
    }
    Ok(decoded)
}

/// Percent-decodes a link of a listing; `None` if it isn't one that a server writes.
pub(crate) fn decode_link(link: &str) -> Option<String> {
    String::from_utf8(percent_decoded(link).ok()?).ok()
}

/// Why a text is no `mark://` URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlError {
    /// A `%` without two hex digits after it.
    #[error("a % in the URL must be followed by two hex digits")]
    Escape,
    /// No host, or one with characters that no host has.
    #[error("the URL has no legal host; write mark://host[:port]/path")]
    Host,
    /// The path is none.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The port is no number from 1 to 65535.
    #[error("the port must be a number from 1 to 65535")]
    Port,
    /// Another scheme than `mark`.
    #[error("the URL must begin with mark://")]
    Scheme,
    /// A user or password before the host.
    #[error("a mark:// URL has no user part; give the token with --token or TIDINGS_TOKEN")]
    UserInformation,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Result<(String, String), UrlError> {
        let url: MarkUrl = text.parse()?;
        Ok((url.server.to_string(), url.path.path.to_string()))
    }

    fn is(server: &str, path: &str) -> Result<(String, String), UrlError> {
        Ok((server.to_owned(), path.to_owned()))
    }

    #[test]
    fn a_url_names_a_server_and_a_path() {
        assert_eq!(url("mark://LocalHost"), is("localhost:6309", "/"));
        assert_eq!(url("mark://h:7/a/b.md?x#y"), is("h:7", "/a/b.md"));
        assert_eq!(url("mark://[::1]/a"), is("[::1]:6309", "/a"));
        assert_eq!(url("mark://[::1]:9/"), is("[::1]:9", "/"));
    }

    // D32
    #[test]
    fn a_path_is_percent_decoded_exactly_once() {
        assert_eq!(
            url("mark://h/two%20words.md"),
            is("h:6309", "/two words.md")
        );
        assert_eq!(url("mark://h/%252e.md"), is("h:6309", "/%2e.md"));
        assert_eq!(url("mark://h/%2"), Err(UrlError::Escape));
        assert_eq!(url("mark://h/%zz"), Err(UrlError::Escape));
    }

    #[test]
    fn what_is_no_mark_url_is_refused_with_its_reason() {
        assert_eq!(url("http://h/"), Err(UrlError::Scheme));
        assert_eq!(url("h:6309"), Err(UrlError::Scheme));
        assert_eq!(url("mark:///a"), Err(UrlError::Host));
        assert_eq!(url("mark://[::1"), Err(UrlError::Host));
        assert_eq!(url("mark://[x]/"), Err(UrlError::Host));
        assert_eq!(url("mark://h:0/"), Err(UrlError::Port));
        assert_eq!(url("mark://h:99999/"), Err(UrlError::Port));
        assert_eq!(url("mark://me@h/"), Err(UrlError::UserInformation));
    }
}
