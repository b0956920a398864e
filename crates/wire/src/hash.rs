//! The SHA-256 digest that names a content, in its text form `sha256-<64 lower-case hex>`.

use std::fmt;

use sha2::{Digest, Sha256};
use thiserror::Error;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Takes a digest that was computed elsewhere.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest itself.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads `sha256-<64 lower-case hex>`.
    pub fn parse(text: &str) -> Result<Self, HashError> {
        let hex = text.strip_prefix("sha256-").ok_or(HashError)?;
        Self::parse_hex(hex)
    }

    /// Reads 64 lower-case hex digits.
    pub fn parse_hex(hex: &str) -> Result<Self, HashError> {
        let hex: &[u8; 64] = hex.as_bytes().try_into().map_err(|_| HashError)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self(bytes))
    }

    /// The 64 hex digits without the algorithm's name, as an etag is written.
    pub fn hex(&self) -> String {
        self.to_string()["sha256-".len()..].to_owned()
    }
}

fn digit(byte: u8) -> Result<u8, HashError> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(HashError),
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = *b"sha256-0000000000000000000000000000000000000000000000000000000000000000";
        for (pair, byte) in text[7..].chunks_exact_mut(2).zip(&self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not `sha256-` and 64 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a hash is written sha256-<64 lower-case hex digits>")]
pub struct HashError;

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn the_digest_of_nothing_is_the_known_one() {
        let hash = ContentHash::of(b"");
        assert_eq!(hash.hex(), EMPTY);
        assert_eq!(hash.to_string(), format!("sha256-{EMPTY}"));
        assert_eq!(ContentHash::parse_hex(EMPTY), Ok(hash));
    }

    #[test]
    fn only_64_lower_case_hex_digits_behind_the_name_are_a_hash() {
        let texts = [
            EMPTY.to_owned(),
            format!("sha256-{}", EMPTY.to_uppercase()),
            format!("sha256-{}", &EMPTY[1..]),
            format!("sha256-{EMPTY}0"),
            format!("sha256:{EMPTY}"),
            format!("sha256-{}g", &EMPTY[1..]),
            String::new(),
        ];
        for text in texts {
            assert_eq!(ContentHash::parse(&text), Err(HashError), "{text}");
        }
    }
}
