//! A text that stands in no output: not in logs, not in errors, not in `--print-config`.

use std::fmt;

pub(super) use auth::jwt::SECRET_LEN_MIN;

/// A secret of the settings.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    /// Takes `text`, if it is long enough not to be guessed.
    pub(super) fn new(text: &str) -> Option<Self> {
        (text.len() >= SECRET_LEN_MIN).then(|| Self(text.to_owned()))
    }

    /// The secret itself.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
