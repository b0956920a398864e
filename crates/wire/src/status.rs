//! The outcome that a response or a control block states.

use std::fmt;

/// The outcome that a response or a control block states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// The document is archived.
    Archived,
    /// The request can't be understood or breaks a rule.
    BadRequest,
    /// The watch ends because the server is leaving.
    Closing,
    /// The expected version isn't the current one.
    Conflict,
    /// A version was written.
    Created,
    /// Nothing readable has this name.
    NotFound,
    /// The client's copy is current.
    NotModified,
    /// The token is good, but not for this.
    NotPermitted,
    /// Done.
    Ok,
    /// Too many requests or watches.
    RateLimited,
    /// The watch missed something and ends; the client rebuilds and continues from the cursor.
    Resync,
    /// The request could not be read, or the server failed.
    ServerError,
    /// A token is needed, or the one that came isn't known any more.
    Unauthorized,
    /// The answer states nothing, or a word outside this list. Only a decoder makes it.
    Unknown,
}

impl Status {
    /// All statuses that have a word, in the order of the words.
    pub const ALL: [Self; 13] = [
        Self::Archived,
        Self::BadRequest,
        Self::Closing,
        Self::Conflict,
        Self::Created,
        Self::NotFound,
        Self::NotModified,
        Self::NotPermitted,
        Self::Ok,
        Self::RateLimited,
        Self::Resync,
        Self::ServerError,
        Self::Unauthorized,
    ];

    /// The word on the wire; empty for [`Status::Unknown`].
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Archived => "archived",
            Self::BadRequest => "bad-request",
            Self::Closing => "closing",
            Self::Conflict => "conflict",
            Self::Created => "created",
            Self::NotFound => "not-found",
            Self::NotModified => "not-modified",
            Self::NotPermitted => "not-permitted",
            Self::Ok => "ok",
            Self::RateLimited => "rate-limited",
            Self::Resync => "resync",
            Self::ServerError => "server-error",
            Self::Unauthorized => "unauthorized",
            Self::Unknown => "",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// The word as a heading: `Not found` for `not-found`.
    pub fn title(self) -> String {
        let mut title = self.as_str().replace('-', " ");
        if let Some(first) = title.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        title
    }

    /// True if a control block with this status is the last one of its watch.
    pub const fn ends_watch(self) -> bool {
        !matches!(self, Self::Ok)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
