//! Who asks, known by the digest of the token they sent.

use std::fmt;

use sha2::{Digest, Sha256};

/// Who asks: the digest of the token they sent, if any. Never holds the raw token.
///
/// Faces make one from the `auth` key of a request and drop the raw text at once, so that nothing
/// that is logged or kept can show it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Caller {
    digest: Option<TokenDigest>,
}

impl Caller {
    /// A caller without a token.
    pub const fn anonymous() -> Self {
        Self { digest: None }
    }

    /// A caller who sent `token`. The empty text counts as no token.
    pub fn with_token(token: &str) -> Self {
        let digest = (!token.is_empty()).then(|| TokenDigest::of(token));
        Self { digest }
    }

    /// True if no token was sent.
    pub const fn is_anonymous(&self) -> bool {
        self.digest.is_none()
    }

    pub(crate) const fn digest(&self) -> Option<&TokenDigest> {
        self.digest.as_ref()
    }
}

impl fmt::Debug for Caller {
    /// Says only whether there was a token: the digest of a guessable token gives it away.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_anonymous() {
            "Caller(anonymous)"
        } else {
            "Caller(token)"
        })
    }
}

/// The SHA-256 digest of a raw token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub(crate) fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    pub(crate) const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The text form of the tokens file, `sha256-<hex>`.
    pub(crate) fn to_text(self) -> String {
        wire::ContentHash::from_bytes(self.0).to_string()
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // D78
    #[test]
    fn debug_output_tells_nothing_of_the_token() {
        let caller = Caller::with_token("secret");
        assert_eq!(format!("{caller:?}"), "Caller(token)");
        assert_eq!(format!("{:?}", Caller::anonymous()), "Caller(anonymous)");
    }

    #[test]
    fn an_empty_token_is_no_token() {
        assert_eq!(Caller::with_token(""), Caller::anonymous());
    }
}
