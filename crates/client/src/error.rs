//! What can become of a request besides its success. The variants differ in what the caller does.

use std::fmt;

use thiserror::Error;
use wire::{DocPath, Response, Status};

use crate::address::ServerAddress;
use crate::dial::DialError;
use crate::exchange::{AnswerError, ExchangeError};

/// Why a request has no result.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The server breaks the protocol; asking again won't help.
    #[error("{server} breaks the protocol: {error}")]
    Answer {
        /// The server.
        server: ServerAddress,
        /// What it did.
        error: AnswerError,
    },
    /// The document has another version than the write expected. Nothing was written.
    #[error("{path} is at version {current}, not at {expected}")]
    Conflict {
        /// The document.
        path: DocPath,
        /// Its version on the server; 0 if there is none.
        current: u64,
        /// The version that the write expected.
        expected: u64,
    },
    /// The server says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The request can't be sent, so it wasn't.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The write may have landed or not, and looking afterwards doesn't tell.
    #[error(
        "the answer to the write of {path} was lost ({cause}) and it can't be told whether it \
         landed; look at the document before writing again"
    )]
    UnknownOutcome {
        /// The document.
        path: DocPath,
        /// How the answer was lost.
        cause: ExchangeError,
    },
    /// No answer, after all tries.
    #[error("{server} can't be reached: {error}")]
    Unreachable {
        /// The server.
        server: ServerAddress,
        /// How the last try failed.
        error: ExchangeError,
    },
}

impl Error {
    pub(crate) fn of_exchange(server: &ServerAddress, error: ExchangeError) -> Self {
        let server = server.clone();
        match error {
            ExchangeError::Answer(error) => Self::Answer { server, error },
            error => Self::Unreachable { server, error },
        }
    }

    /// The status of the server's refusal, if that is what this is.
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::Refused(refusal) => Some(refusal.status),
            Self::Conflict { .. } => Some(Status::Conflict),
            _ => None,
        }
    }

    /// True if the server isn't believed, which only a person can change.
    pub const fn is_untrusted(&self) -> bool {
        matches!(
            self,
            Self::Unreachable {
                error: ExchangeError::Dial(DialError::Trust(_)),
                ..
            }
        )
    }
}

/// A server's no, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Refusal {
    /// The kind.
    pub status: Status,
    /// The server's words; empty where it gave none.
    pub message: String,
}

impl Refusal {
    pub(crate) fn of(response: &Response) -> Self {
        Self {
            status: response.status,
            message: response.message().unwrap_or_default().to_owned(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status.as_str(), self.message.as_str()) {
            (status, "") => f.write_str(status),
            (status, message) => write!(f, "{status}: {message}"),
        }
    }
}

/// Why a request isn't sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The body is longer than a document may be.
    #[error("the body is {len} bytes long; a document has at most {max}")]
    BodyTooLong {
        /// Its length.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// The body is empty, which on the wire means something else.
    #[error("an empty body is no document; archive the document instead")]
    EmptyBody,
    /// The path or the metadata is none that a server could read.
    #[error(transparent)]
    Grammar(#[from] wire::RequestError),
}
