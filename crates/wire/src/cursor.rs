//! Positions: an epoch, a sequence number in it, and the two together as a cursor.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

/// The identity of one sequence; it changes only when a sequence truly restarts (P5).
///
/// One to 64 characters of `[A-Za-z0-9._-]`. Cloning shares the text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(Arc<str>);

impl Epoch {
    /// The longest epoch in bytes.
    pub const LEN_MAX: usize = 64;

    /// Takes `text` as an epoch if it is a legal one.
    pub fn new(text: &str) -> Result<Self, CursorError> {
        if is_epoch(text) {
            Ok(Self(text.into()))
        } else {
            Err(CursorError::Epoch)
        }
    }

    /// Makes an epoch of 12 hex digits from six random bytes.
    pub fn from_random(bytes: [u8; 6]) -> Self {
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(text.into())
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_epoch(text: &str) -> bool {
    (1..=Epoch::LEN_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epoch({})", self.0)
    }
}

/// A place in one epoch's sequence. The first change of an epoch has sequence 1; 0 is before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seq(u64);

impl Seq {
    /// The place before the first change.
    pub const ZERO: Self = Self(0);

    /// Names the place `value`.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The place after this one. Saturates: a sequence of 2^64 changes never happens.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A position that outlives processes: everything up to and including `seq` of `epoch`.
///
/// The text form is `<epoch>:<seq>`, the sequence in decimal without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The sequence that is meant.
    pub epoch: Epoch,
    /// The last place that counts as seen.
    pub seq: Seq,
}

impl Cursor {
    /// Joins an epoch and a place.
    pub const fn new(epoch: Epoch, seq: Seq) -> Self {
        Self { epoch, seq }
    }

    /// Reads the SSE form `<epoch>-<seq>`, split at the last hyphen.
    pub fn from_event_id(text: &str) -> Result<Self, CursorError> {
        let (epoch, seq) = text.rsplit_once('-').ok_or(CursorError::Separator)?;
        Ok(Self {
            epoch: Epoch::new(epoch)?,
            seq: parse_seq(seq)?,
        })
    }

    /// The SSE form `<epoch>-<seq>`.
    pub fn event_id(&self) -> String {
        format!("{}-{}", self.epoch, self.seq)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.seq)
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        CursorRef::parse(text).map(|cursor| cursor.to_cursor())
    }
}

/// A [`Cursor`] that borrows its epoch, for reading without allocating.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CursorRef<'a> {
    /// A legal epoch.
    epoch: &'a str,
    seq: Seq,
}

impl<'a> CursorRef<'a> {
    /// Reads `<epoch>:<seq>`.
    pub fn parse(text: &'a str) -> Result<Self, CursorError> {
        let (epoch, seq) = text.rsplit_once(':').ok_or(CursorError::Separator)?;
        if !is_epoch(epoch) {
            return Err(CursorError::Epoch);
        }
        Ok(Self {
            epoch,
            seq: parse_seq(seq)?,
        })
    }

    /// The sequence that is meant.
    pub const fn epoch(&self) -> &'a str {
        self.epoch
    }

    /// The last place that counts as seen.
    pub const fn seq(&self) -> Seq {
        self.seq
    }

    /// A copy that owns its epoch.
    pub fn to_cursor(&self) -> Cursor {
        Cursor::new(Epoch(self.epoch.into()), self.seq)
    }
}

impl fmt::Display for CursorRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.seq)
    }
}

fn parse_seq(text: &str) -> Result<Seq, CursorError> {
    let canonical = text == "0" || (!text.starts_with('0') && !text.is_empty());
    if !canonical || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(CursorError::Seq);
    }
    text.parse().map(Seq).map_err(|_| CursorError::Seq)
}

/// Why a text is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CursorError {
    /// The epoch is empty, longer than 64 bytes, or has a character outside `[A-Za-z0-9._-]`.
    #[error("the epoch must be 1 to 64 characters of A-Z a-z 0-9 . _ -")]
    Epoch,
    /// Nothing separates epoch and sequence.
    #[error("a cursor is written <epoch>:<seq>")]
    Separator,
    /// The sequence is no canonical decimal number below 2^64.
    #[error("the sequence must be a decimal number without sign or leading zeros")]
    Seq,
}

/// Why a watcher is told that it missed something. A closed list (`docs/errors.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GapReason {
    /// The cursor lies above the head of its own epoch.
    Ahead,
    /// A message between nodes was lost.
    Bus,
    /// The cursor belongs to another epoch.
    Epoch,
    /// The source lost part of its history.
    Hole,
    /// The watcher fell more than a ring behind.
    Lapped,
    /// The cursor could not be read.
    Malformed,
    /// More was pending for this watcher than its bound allows.
    Overflow,
    /// The source or a worker restarted without its history.
    Restart,
    /// The right to a part of the scope was taken away.
    Revoked,
    /// The shape of the data changed.
    Schema,
    /// The changes after the cursor are no longer kept.
    TooOld,
}

impl GapReason {
    /// All reasons, in the order of their words.
    pub const ALL: [Self; 11] = [
        Self::Ahead,
        Self::Bus,
        Self::Epoch,
        Self::Hole,
        Self::Lapped,
        Self::Malformed,
        Self::Overflow,
        Self::Restart,
        Self::Revoked,
        Self::Schema,
        Self::TooOld,
    ];

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ahead => "ahead",
            Self::Bus => "bus",
            Self::Epoch => "epoch",
            Self::Hole => "hole",
            Self::Lapped => "lapped",
            Self::Malformed => "malformed",
            Self::Overflow => "overflow",
            Self::Restart => "restart",
            Self::Revoked => "revoked",
            Self::Schema => "schema",
            Self::TooOld => "too-old",
        }
    }
}

impl fmt::Display for GapReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // T33
    #[test]
    fn only_the_canonical_spelling_is_a_cursor() {
        let cases = [
            ("e:007", CursorError::Seq),
            ("e:+7", CursorError::Seq),
            ("e:-1", CursorError::Seq),
            ("e: 7", CursorError::Seq),
            ("e:", CursorError::Seq),
            ("e:18446744073709551616", CursorError::Seq),
            ("e:٧", CursorError::Seq),
            (":7", CursorError::Epoch),
            ("e/f:7", CursorError::Epoch),
            ("e:f:7", CursorError::Epoch),
            ("é:7", CursorError::Epoch),
            ("", CursorError::Separator),
            ("e7", CursorError::Separator),
        ];
        for (text, error) in cases {
            assert_eq!(text.parse::<Cursor>(), Err(error), "{text:?}");
        }
        let long = format!("{}:1", "e".repeat(Epoch::LEN_MAX + 1));
        assert_eq!(long.parse::<Cursor>(), Err(CursorError::Epoch));
    }

    // T33
    #[test]
    fn the_edges_are_cursors() {
        let longest = format!("{}:{}", "Z".repeat(Epoch::LEN_MAX), u64::MAX);
        for text in ["e:0", "A-z0.9_:1", &longest] {
            let cursor: Cursor = text.parse().unwrap();
            assert_eq!(cursor.to_string(), text);
        }
    }

    #[test]
    fn an_event_id_is_split_at_its_last_hyphen() {
        let cursor = Cursor::from_event_id("a-b-7").unwrap();
        assert_eq!(cursor.to_string(), "a-b:7");
        assert_eq!(Cursor::from_event_id("a:7"), Err(CursorError::Separator));
    }

    #[test]
    fn an_epoch_of_random_bytes_is_twelve_hex_digits() {
        let epoch = Epoch::from_random([0x7f, 0x3a, 0x9c, 0x21, 0xd0, 0xbe]);
        assert_eq!(epoch.as_str(), "7f3a9c21d0be");
    }

    #[test]
    fn every_reason_reads_back() {
        for reason in GapReason::ALL {
            assert_eq!(GapReason::parse(reason.as_str()), Some(reason));
        }
        assert_eq!(GapReason::parse("mice"), None);
    }

    #[test]
    fn a_sequence_saturates() {
        assert_eq!(Seq::ZERO.next(), Seq::new(1));
        assert_eq!(Seq::new(u64::MAX).next(), Seq::new(u64::MAX));
    }
}
