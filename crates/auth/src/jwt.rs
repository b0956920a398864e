//! Callers who show a JSON web token: its signature and its claims, checked.
//!
//! A token is taken if a known key signed it with that key's own algorithm, it has not run out, it
//! is valid already, and its audience and issuer are those that are expected. The algorithm comes
//! from the key and never from the token, so that neither `none` nor a public key used as a secret
//! passes. Only HS256, ES256 and EdDSA exist here.
//!
//! Keys come from the configuration and, renewed while the server runs, from a JWKS document that
//! the shell fetches; [`TokenError::UnknownKey`] tells it that fetching again may help. Time is an
//! argument. Nothing here keeps a token.

mod keys;

use arc_swap::ArcSwap;
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Header, Validation, crypto};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::Claims;

use keys::Key;
pub use keys::{KEYS_MAX, KeyError, Keys, SECRET_LEN_MIN};

/// Bytes of a token: what fits in a header of the usual 8 KiB.
pub const TOKEN_LEN_MAX: usize = 8192;

/// How far the clock of an issuer may be from ours: NTP keeps them within a second, hosts whose
/// NTP is off drift by some seconds a week.
pub const LEEWAY: SignedDuration = SignedDuration::from_secs(30);

/// Makes the one cryptography that was compiled in the default of this process.
///
/// To be called when the server starts. A later call does nothing, and so does every other user of
/// the library who came first, since there is only one to choose.
pub fn install_crypto() {
    // The error is the provider that was installed before, which can only be the same one.
    let _ = crypto::aws_lc::DEFAULT_PROVIDER.install_default();
}

/// True if `text` has the shape of a JSON web token; capability tokens have no dots.
pub fn is_token_shaped(text: &str) -> bool {
    let is_url_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    text.split('.').count() == 3 && text.chars().all(|c| c == '.' || is_url_safe(c))
}

/// What the claims of every token must say.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// One of the token's `aud`, if given.
    pub audience: Option<String>,
    /// The token's `iss`, if given.
    pub issuer: Option<String>,
}

/// Checks tokens. Shared by all faces; checking takes no lock.
#[derive(Debug)]
pub struct Verifier {
    /// The keys of the configuration.
    own: Keys,
    /// The keys of the JWKS document that was fetched last.
    fetched: ArcSwap<Keys>,
    expected: Expected,
}

impl Verifier {
    /// A verifier with the keys of the configuration.
    pub fn new(own: Keys, expected: Expected) -> Self {
        install_crypto();
        Self {
            own,
            fetched: ArcSwap::default(),
            expected,
        }
    }

    /// Takes the keys of a document that was fetched, in place of those of the last one.
    pub fn rotate(&self, keys: Keys) {
        self.fetched.store(keys.into());
    }

    /// The claims of `token`, if it is good at `now`.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, TokenError> {
        if token.len() > TOKEN_LEN_MAX {
            return Err(TokenError::TooLong);
        }
        let header = jsonwebtoken::decode_header(token).map_err(|error| refusal(error.kind()))?;
        let fetched = self.fetched.load();
        let keys = self.own.iter().chain(fetched.iter());
        let members = check_signature(token, &header, keys)?;
        self.check_claims(members, now)
    }

    fn check_claims(
        &self,
        members: Map<String, Value>,
        now: Timestamp,
    ) -> Result<Claims, TokenError> {
        let expires = date(&members, "exp")?.ok_or(TokenError::NoExpiry)?;
        let expires = later(expires);
        if now >= expires {
            return Err(TokenError::Expired);
        }
        if date(&members, "nbf")?.is_some_and(|begins| later(now) < begins) {
            return Err(TokenError::NotYetValid);
        }
        let names = |claim: &str, expected: &Option<String>| {
            let name = expected.as_deref();
            name.is_none_or(|name| is_or_has(members.get(claim), name))
        };
        if !names("aud", &self.expected.audience) {
            return Err(TokenError::Audience);
        }
        if !names("iss", &self.expected.issuer) {
            return Err(TokenError::Issuer);
        }
        Ok(Claims::new(members, Some(expires)))
    }
}

/// The claims, if one of the keys that the header may mean has signed the token.
fn check_signature<'a>(
    token: &str,
    header: &Header,
    keys: impl Iterator<Item = &'a Key>,
) -> Result<Map<String, Value>, TokenError> {
    let mut refused = TokenError::UnknownKey;
    for key in keys.filter(|key| key.may_be(header.kid.as_deref())) {
        if key.algorithm() != header.alg {
            refused = TokenError::Algorithm;
            continue;
        }
        match jsonwebtoken::decode(token, key.decoding(), &signature_alone(key)) {
            Ok(token) => return Ok(token.claims),
            Err(error) => refused = refusal(error.kind()),
        }
    }
    Err(refused)
}

/// The library checks the signature; the claims are checked against our own clock.
fn signature_alone(key: &Key) -> Validation {
    let mut validation = Validation::new(key.algorithm());
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation
}

const fn refusal(kind: &ErrorKind) -> TokenError {
    match kind {
        ErrorKind::InvalidSignature => TokenError::Signature,
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName => TokenError::Algorithm,
        _ => TokenError::Malformed,
    }
}

/// The time that a claim names, in whole seconds; a claim that is no time refuses the token.
fn date(members: &Map<String, Value>, claim: &str) -> Result<Option<Timestamp>, TokenError> {
    let Some(value) = members.get(claim) else {
        return Ok(None);
    };
    // The cast of a fraction drops it, and saturates for what no calendar reaches.
    let seconds = value
        .as_i64()
        .or_else(|| value.as_f64().map(|seconds| seconds as i64));
    let seconds = seconds.ok_or(TokenError::Malformed)?;
    let nearest = seconds.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    Timestamp::from_second(nearest)
        .map(Some)
        .map_err(|_| TokenError::Malformed)
}

/// `time` and the leeway, or the end of the calendar.
fn later(time: Timestamp) -> Timestamp {
    time.checked_add(LEEWAY).unwrap_or(Timestamp::MAX)
}

fn is_or_has(claim: Option<&Value>, name: &str) -> bool {
    match claim {
        Some(Value::String(own)) => own == name,
        Some(Value::Array(list)) => list.iter().any(|own| own.as_str() == Some(name)),
        _ => false,
    }
}

/// Why a token is not taken. Its sender hears only that it is not; the rest is for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// The token names another algorithm than the key's own.
    #[error("the algorithm is not that of the key")]
    Algorithm,
    /// The token is for somebody else.
    #[error("the audience is not ours")]
    Audience,
    /// The token ran out.
    #[error("expired")]
    Expired,
    /// The token is from somebody else.
    #[error("the issuer is not ours")]
    Issuer,
    /// The text is no token, names an algorithm that nobody here knows such as `none`, or has a
    /// date that is none.
    #[error("not a JSON web token that can be read")]
    Malformed,
    /// The token would be good for ever.
    #[error("it has no exp claim")]
    NoExpiry,
    /// The token is for later.
    #[error("not yet valid")]
    NotYetValid,
    /// The signature is not that of the key.
    #[error("the signature is wrong")]
    Signature,
    /// The token is longer than any that is needed.
    #[error("longer than {TOKEN_LEN_MAX} bytes")]
    TooLong,
    /// No key of this id is known: the issuer may have a new one.
    #[error("no known key has signed it")]
    UnknownKey,
}

#[cfg(test)]
mod tests;
