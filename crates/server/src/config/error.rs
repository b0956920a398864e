//! What can be wrong with the settings, and the fix. A text leaves its cause to the error's source,
//! which whoever prints it appends.

use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use super::key::Key;
use super::keys;
use super::nearest::nearest;

/// Why the settings can't be used.
#[derive(Debug, Error)]
pub(crate) enum ConfigError {
    /// The admin listener tells too much to be reached from elsewhere.
    #[error("serve.admin must be a loopback address, not {0}; put a proxy in front to expose it")]
    AdminExposed(SocketAddr),
    /// A channel is written as none can be.
    #[error("[channels.{name}]: {message}")]
    Channel { name: String, message: String },
    /// A variable of a channel that nobody declared.
    #[error("{name} is for no channel that the file declares; it declares: {declared}")]
    ChannelVariable { name: String, declared: String },
    /// A channel that can't be served as it is declared.
    #[error("[channels]")]
    Declaration(#[from] channels::DeclarationError),
    /// One of certificate and key.
    #[error("serve.certificate and serve.certificate_key go together; set both or neither")]
    HalfCertificate,
    /// Limits that can't work, alone or together.
    #[error("[limits]")]
    Limits(#[from] quic::LimitsError),
    /// Claims are expected of tokens that nobody can sign.
    #[error(
        "auth.audience and auth.issuer are of use only with auth.jwt_secret, auth.jwt_public_key \
         or auth.jwks"
    )]
    NoKeys,
    /// Origins that no browser sends.
    #[error("serve.origins")]
    Origins(#[from] web::OriginsError),
    /// A value outside its range or of the wrong kind.
    #[error("{place}: {key} must be {wanted}, not {found}")]
    Range {
        place: String,
        key: String,
        wanted: String,
        found: String,
    },
    /// The file can't be read.
    #[error("{}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The file isn't TOML.
    #[error("{place}, line {line}: {message}")]
    Syntax {
        place: String,
        line: usize,
        message: String,
    },
    /// Nobody knows the key.
    #[error("{place}: unknown key {key}; the nearest known one is {nearest}")]
    Unknown {
        place: String,
        key: String,
        nearest: String,
    },
    /// Nobody knows the section.
    #[error("{place}: unknown section [{section}]; the nearest known one is [{nearest}]")]
    UnknownSection {
        place: String,
        section: String,
        nearest: String,
    },
    /// Limits of the web faces that can't work, alone or together.
    #[error("[limits.web]")]
    WebLimits(#[from] web::LimitsError),
    /// Nobody knows the variable.
    #[error("unknown variable {name}; the nearest known one is {nearest}")]
    UnknownVariable { name: String, nearest: String },
}

impl ConfigError {
    pub(super) fn syntax(place: &str, text: &str, error: &toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let newlines = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n');
        Self::Syntax {
            place: place.to_owned(),
            line: newlines.count() + 1,
            // The message alone: the full text of the error quotes the line and what is in it.
            message: error.message().replace('\n', ", "),
        }
    }

    pub(super) fn unknown(place: &str, key: &str) -> Self {
        Self::Unknown {
            place: place.to_owned(),
            key: key.to_owned(),
            nearest: nearest(key, keys::all().map(Key::full_name)),
        }
    }

    pub(super) fn unknown_section(place: &str, section: &str) -> Self {
        Self::UnknownSection {
            place: place.to_owned(),
            section: section.to_owned(),
            nearest: nearest(section, keys::all().map(|key| key.section.to_owned())),
        }
    }

    pub(super) fn unknown_variable(name: &str) -> Self {
        Self::UnknownVariable {
            name: name.to_owned(),
            nearest: nearest(name, keys::all().map(Key::variable)),
        }
    }
}
