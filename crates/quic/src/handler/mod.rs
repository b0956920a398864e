//! The Mark verbs over the file store: a request in, an answer out.
//!
//! No sockets, no tasks: everything here blocks on the disk and is called from a thread that may.
//! The order of checks is the wire's: the path in its one canonical spelling, what the path is
//! reserved for, the caller's right, then the content. So no spelling of a path reads more than
//! another, and whoever lacks the right learns nothing of what is there. A write asks for the
//! right again under the store's commit lock.
//!
//! Answers are those of the September generation, byte for byte; the golden test names where they
//! differ from the older one.

mod condition;
mod fetch;
mod listing;
mod lookup;
mod versions;
mod write;

use std::fmt;

use auth::{Authority, Caller, Denied, Operation};
use documents::{FileStore, ReadError};
use jiff::Timestamp;
use tracing::{debug, error};
use wire::{DocPath, Metadata, PathError, Request, Response, Status, Target, Verb, limits};

/// What serves the verbs. A cheap handle: clones share the store and the grants.
#[derive(Clone, Debug)]
pub(crate) struct Handler {
    store: FileStore,
    authority: Authority,
    clock: fn() -> Timestamp,
}

/// Who asks for what, with the path in its canonical spelling.
#[derive(Debug)]
struct Ask {
    caller: Caller,
    path: DocPath,
    /// The path as it was asked for, for the answer's text.
    spelled: String,
    request: Request,
}

/// A read or a write that is refused; the answer says why.
type Answer = Result<Response, Response>;

impl Handler {
    /// `clock` tells the time for expiries; a write asks it again at its commit.
    pub(crate) fn new(store: FileStore, authority: Authority, clock: fn() -> Timestamp) -> Self {
        Self {
            store,
            authority,
            clock,
        }
    }

    /// Answers every verb but WATCH. Blocks on the disk; a write that began is never left half
    /// done.
    pub(crate) fn answer(&self, request: Request) -> Response {
        self.try_answer(request).unwrap_or_else(|refusal| refusal)
    }

    /// The time by the clock that expiries go by.
    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    fn try_answer(&self, request: Request) -> Answer {
        let verb = request.verb;
        let target = target(&request)?;
        if target
            .path
            .segments()
            .any(|name| name.len() > limits::NAME_LEN_MAX)
        {
            return Err(internal_error());
        }
        let mut ask = Ask {
            caller: caller(&request.metadata),
            path: target.path,
            spelled: printable(&request.path),
            request,
        };
        if verb.is_write() && ask.path.content_address().is_some() {
            return Err(reserved_hash());
        }
        match verb {
            Verb::Append => self.append(&mut ask),
            Verb::Archive => self.archive(&ask),
            Verb::Fetch => self.fetch(&ask),
            Verb::List => self.list(&ask),
            Verb::Lookup => self.lookup(&ask),
            Verb::Publish => self.publish(&mut ask),
            Verb::Versions => self.versions(&ask),
            Verb::Watch => Err(bad_request("bad request")),
        }
    }

    fn may_read(&self, ask: &Ask, path: &DocPath) -> Result<(), Response> {
        self.check(ask, Operation::Read, path).map_err(denied)
    }

    fn can_read(&self, ask: &Ask) -> impl Fn(&DocPath) -> bool {
        let (grants, now) = (self.authority.current(), self.now());
        let caller = ask.caller.clone();
        move |path| grants.check(&caller, Operation::Read, path, now).is_ok()
    }

    fn check(&self, ask: &Ask, operation: Operation, path: &DocPath) -> Result<(), Denied> {
        self.authority
            .current()
            .check(&ask.caller, operation, path, self.now())
    }
}

/// Who sent `metadata`.
pub(crate) fn caller(metadata: &Metadata) -> Caller {
    metadata
        .get("auth")
        .map_or_else(Caller::anonymous, Caller::with_token)
}

/// The canonical path of a request, or the answer to one that has none.
pub(crate) fn target(request: &Request) -> Result<Target, Response> {
    Target::parse(&request.path).map_err(|fault| match fault {
        PathError::Parent => not_found(&printable(&request.path)),
        PathError::NotUtf8 if !request.verb.is_write() => not_found(&printable(&request.path)),
        PathError::NotUtf8 => bad_request("the path must be valid UTF-8 text"),
        _ => bad_request("bad request"),
    })
}

/// The answer to somebody who lacks the right.
pub(crate) fn denied(denied: Denied) -> Response {
    match denied {
        Denied::NotPermitted => Response::error(Status::NotPermitted, "insufficient permissions"),
        Denied::NoTokens => Response::error(
            Status::NotPermitted,
            "publishing requires auth configuration",
        ),
        Denied::Unauthorized => Response::error(Status::Unauthorized, "authentication required"),
    }
}

/// The answer to a write or a watch of a content address.
pub(crate) fn reserved_hash() -> Response {
    bad_request("paths matching /sha256-<hash> are reserved")
}

pub(crate) fn bad_request(message: &str) -> Response {
    Response::error(Status::BadRequest, message)
}

fn not_found(spelled: &str) -> Response {
    Response::error(Status::NotFound, &format!("{spelled} not found"))
}

/// The answer that hides a fault of ours; whoever makes it has logged it.
pub(crate) fn internal_error() -> Response {
    Response::error(Status::ServerError, "internal error")
}

/// The answer to a read that found nothing to give.
fn unread(ask: &Ask, fault: ReadError) -> Response {
    match fault {
        ReadError::Archived(_) => {
            Response::error(Status::Archived, &format!("{} is archived", ask.spelled))
        }
        ReadError::NotFound => not_found(&ask.spelled),
        fault => {
            error!(path = %ask.path, %fault, "read a document");
            internal_error()
        }
    }
}

/// A path as it may stand in text: what is no UTF-8 is escaped.
fn printable(path: &[u8]) -> String {
    use fmt::Write;
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        text.push_str(chunk.valid());
        // Writing to a string can't fail.
        let _ = write!(text, "{}", chunk.invalid().escape_ascii());
    }
    text
}

/// An answer without an error's text.
fn response(status: Status, metadata: Metadata, body: impl Into<bytes::Bytes>) -> Response {
    debug!(%status, "answered");
    Response {
        status,
        metadata,
        body: body.into(),
    }
}
