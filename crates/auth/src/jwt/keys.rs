//! The keys that may sign tokens, each with the one algorithm that it is for.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;
use thiserror::Error;

/// Keys of one source: an issuer has a few and keeps the last for a while. A token without a key
/// id is tried against each.
pub const KEYS_MAX: usize = 32;

/// Bytes of a shared secret at least: as many as the hash gives (RFC 7518, 3.2).
pub const SECRET_LEN_MIN: usize = 32;

/// Bytes of the uncompressed point of a P-256 key; that of P-384 is longer.
const P256_POINT_LEN: usize = 65;

/// Bytes of an Ed25519 key.
const ED25519_KEY_LEN: usize = 32;

#[derive(Debug)]
pub(super) struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    decoding: DecodingKey,
}

impl Key {
    fn new(
        id: Option<String>,
        algorithm: Algorithm,
        decoding: DecodingKey,
    ) -> Result<Self, KeyError> {
        let bytes = decoding
            .try_get_as_bytes()
            .map_err(|_| KeyError::Unreadable)?;
        let fits = match algorithm {
            Algorithm::ES256 => bytes.len() == P256_POINT_LEN,
            Algorithm::EdDSA => bytes.len() == ED25519_KEY_LEN,
            _ if bytes.len() < SECRET_LEN_MIN => return Err(KeyError::ShortSecret),
            _ => true,
        };
        if !fits {
            return Err(KeyError::Unreadable);
        }
        Ok(Self {
            id,
            algorithm,
            decoding,
        })
    }

    /// A key of a JWKS document; nothing if it is for something else.
    fn from_jwk(jwk: &Jwk) -> Option<Self> {
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                Algorithm::ES256
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                Algorithm::EdDSA
            }
            AlgorithmParameters::OctetKey(_) => Algorithm::HS256,
            _ => return None,
        };
        let own = match algorithm {
            Algorithm::ES256 => KeyAlgorithm::ES256,
            Algorithm::EdDSA => KeyAlgorithm::EdDSA,
            _ => KeyAlgorithm::HS256,
        };
        let is_ours = jwk.common.key_algorithm.is_none_or(|named| named == own);
        let signs = matches!(
            jwk.common.public_key_use,
            None | Some(PublicKeyUse::Signature)
        );
        if !is_ours || !signs {
            return None;
        }
        let decoding = DecodingKey::from_jwk(jwk).ok()?;
        Self::new(jwk.common.key_id.clone(), algorithm, decoding).ok()
    }

    /// May a token whose header names `id` be signed by this key? A key of the configuration has
    /// no id, and a token need not name one.
    pub(super) fn may_be(&self, id: Option<&str>) -> bool {
        match (&self.id, id) {
            (Some(own), Some(id)) => own == id,
            _ => true,
        }
    }

    pub(super) const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(super) const fn decoding(&self) -> &DecodingKey {
        &self.decoding
    }
}

/// The keys of one source or several.
#[derive(Debug, Default)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// The secret that is shared with the issuer, for HS256.
    pub fn from_secret(secret: &[u8]) -> Result<Self, KeyError> {
        let decoding = DecodingKey::from_secret(secret).map_err(|_| KeyError::ShortSecret)?;
        Ok(Self(vec![Key::new(None, Algorithm::HS256, decoding)?]))
    }

    /// The public key of the issuer in PEM: P-256 for ES256 or Ed25519 for EdDSA.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let (algorithm, decoding) = match DecodingKey::from_ec_pem(pem) {
            Ok(key) => (Algorithm::ES256, key),
            Err(_) => {
                let key = DecodingKey::from_ed_pem(pem).map_err(|_| KeyError::Unreadable)?;
                (Algorithm::EdDSA, key)
            }
        };
        Ok(Self(vec![Key::new(None, algorithm, decoding)?]))
    }

    /// A JWKS document. Keys for other uses and algorithms are passed over: an issuer may have
    /// them for others; one that we could use has to be among them.
    pub fn from_jwks(document: &[u8]) -> Result<Self, KeyError> {
        let document: Value = serde_json::from_slice(document).map_err(|_| KeyError::Unreadable)?;
        let entries = document.get("keys").and_then(Value::as_array);
        let entries = entries.ok_or(KeyError::Unreadable)?;
        if entries.len() > KEYS_MAX {
            return Err(KeyError::TooMany);
        }
        let jwks = entries
            .iter()
            .filter_map(|entry| serde_json::from_value::<Jwk>(entry.clone()).ok());
        let keys: Vec<Key> = jwks.filter_map(|jwk| Key::from_jwk(&jwk)).collect();
        if keys.is_empty() {
            return Err(KeyError::NoneUsable);
        }
        Ok(Self(keys))
    }

    /// These keys and those of another source.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// How many keys there are.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// True if nobody can sign.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Key> {
        self.0.iter()
    }
}

/// Why keys can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// A document without a key for ES256, EdDSA or HS256 signatures.
    #[error("no key is for ES256, EdDSA or HS256 signatures")]
    NoneUsable,
    /// A secret that can be guessed.
    #[error("a secret has at least {SECRET_LEN_MIN} bytes")]
    ShortSecret,
    /// A document with more keys than an issuer needs.
    #[error("more than {KEYS_MAX} keys")]
    TooMany,
    /// Neither a public P-256 or Ed25519 key in PEM nor a JWKS document.
    #[error("not a public key for ES256 or EdDSA in PEM, and no JWKS document")]
    Unreadable,
}
