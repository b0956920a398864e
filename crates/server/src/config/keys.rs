//! The table of every key that the documentation lists.
//!
//! Channels are declared by the application, so their keys are those of each `[channels.NAME]` and
//! stand in no table here.

mod channels;
mod limits;
mod web;

use super::LOG_VARIABLE;
use super::key::{Key, Kind, key};

/// Every key, by section. The order is that of `docs/configuration.md`.
pub(super) fn all() -> impl Iterator<Item = &'static Key> {
    [SERVER, limits::KEYS, web::KEYS, channels::KEYS]
        .into_iter()
        .flatten()
}

/// What the server is and does.
const SERVER: &[Key] = &[
    key(
        "serve",
        "data",
        Kind::Path(|s| &mut s.data),
        "The data directory: a tree of documents.",
    ),
    key(
        "serve",
        "mark",
        Kind::Address(|s| &mut s.mark),
        "Where the Mark face listens (UDP).",
    ),
    key(
        "serve",
        "http",
        Kind::Listener(|s| &mut s.http),
        "Where the HTTP API, SSE and WebSocket are served (TCP).",
    ),
    key(
        "serve",
        "tls",
        Kind::Flag(|s| &mut s.tls),
        "HTTP is served over TLS, with the certificate of the Mark face.",
    ),
    key(
        "serve",
        "origins",
        Kind::List(|s| &mut s.origins),
        "Origins of pages that may use the server from elsewhere, such as \
         `https://app.example`; `*` alone lets any page read what needs no credentials.",
    ),
    key(
        "serve",
        "build",
        Kind::OptionalText(|s| &mut s.build),
        "The build of the application that is current: pages of another build are told that \
         there is an update. A running server takes another by `PUT /build/BUILD` on the admin \
         listener.",
    ),
    key(
        "serve",
        "query_tokens",
        Kind::Flag(|s| &mut s.query_tokens),
        "Streams and sockets take a token from `?token=` too. It may then stand in the logs of \
         proxies.",
    ),
    key(
        "serve",
        "admin",
        Kind::Address(|s| &mut s.admin),
        "Where `/livez`, `/readyz` and `/metrics` answer (TCP); loopback only.",
    ),
    key(
        "serve",
        "dev",
        Kind::Switch(|s| &mut s.dev),
        "Everyone on this machine may do everything; loopback only. Unset, it is on when there is \
         neither a configuration nor a tokens file.",
    ),
    key(
        "serve",
        "certificate",
        Kind::OptionalPath(|s| &mut s.certificate),
        "The certificate chain in PEM form. Unset, one for `localhost` is made and kept in the \
         data directory.",
    ),
    key(
        "serve",
        "certificate_key",
        Kind::OptionalPath(|s| &mut s.certificate_key),
        "The certificate's key in PEM form.",
    ),
    key(
        "serve",
        "log",
        Kind::Text(|s| &mut s.log),
        "What is logged, such as `info` or `warn,quic=debug`. `TIDINGS_LOG` sets it for every \
         command.",
    ),
    key(
        "serve",
        "log_format",
        Kind::Format(|s| &mut s.log_format),
        "How log lines are written.",
    ),
    key(
        "documents",
        "ring_len",
        Kind::PowerOfTwo(16, 1 << 20, |s| &mut s.ring_len),
        "Changes that a watch can resume over.",
    ),
    key(
        "documents",
        "required",
        Kind::Flag(|s| &mut s.documents_required),
        "The server is ready only while documents can be written. Turned off, a store that takes \
         no more writes shows in readiness and doesn't count.",
    ),
    key(
        "auth",
        "tokens",
        Kind::OptionalPath(|s| &mut s.tokens),
        "The tokens file; it must be there. Unset, it is `.tidings/tokens.toml` in the data \
         directory, and may be missing.",
    ),
    key(
        "auth",
        "jwt_secret",
        Kind::Secret(|s| &mut s.jwt.secret),
        "The secret that the issuer of JSON web tokens signs with (HS256).",
    ),
    key(
        "auth",
        "jwt_public_key",
        Kind::OptionalPath(|s| &mut s.jwt.public_key),
        "The public key of the issuer in PEM form, for ES256 or EdDSA.",
    ),
    key(
        "auth",
        "jwks",
        Kind::OptionalText(|s| &mut s.jwt.jwks),
        "Where the keys of the issuer are: the path or the `http://` or `https://` URL of a \
         JWKS document. It is read again every five minutes, and soon after a token names a key \
         that is not known.",
    ),
    key(
        "auth",
        "audience",
        Kind::OptionalText(|s| &mut s.jwt.audience),
        "What the `aud` claim of a JSON web token must be or have.",
    ),
    key(
        "auth",
        "issuer",
        Kind::OptionalText(|s| &mut s.jwt.issuer),
        "What the `iss` claim of a JSON web token must be.",
    ),
];

/// The key `SECTION.NAME`.
pub(super) fn find(full_name: &str) -> Option<&'static Key> {
    all().find(|key| key.full_name() == full_name)
}

/// The key that the environment variable sets.
pub(super) fn find_variable(name: &str) -> Option<&'static Key> {
    if name == LOG_VARIABLE {
        return find("serve.log");
    }
    all().find(|key| key.variable() == name)
}

/// True if keys stand in the section.
pub(super) fn is_section(name: &str) -> bool {
    all().any(|key| key.section == name)
}

/// True if the variable's name begins with a section's.
pub(super) fn is_in_a_section(name: &str) -> bool {
    all().any(|key| {
        let section = key.section.replace('.', "_").to_uppercase();
        name.starts_with(&format!("TIDINGS_{section}_"))
    })
}
