//! PUBLISH, APPEND and ARCHIVE.

use std::io;

use auth::{Denied, Operation};
use documents::{Draft, DraftError, Outcome, WriteError, Written};
use tracing::{debug, error, warn};
use wire::{Metadata, Response, Status};

use super::fetch::time;
use super::{Answer, Ask, Handler, bad_request, denied, internal_error, not_found, response};

/// Keys that steer a request and aren't stored.
const CONTROL_KEYS: [&str; 4] = [
    "auth",
    "expected-version",
    "if-modified-since",
    "if-none-match",
];

/// How a conflict's text tells an appender to go on: it may have succeeded and lost the answer.
const APPEND_ADVICE: &str =
    "Fetch the latest version and verify whether your append was applied before retrying.";
const PUBLISH_ADVICE: &str = "Please fetch the latest version and reapply your edits.";

impl Handler {
    pub(super) fn publish(&self, ask: &mut Ask) -> Answer {
        self.may_write(ask, "publishing")?;
        let body = std::mem::take(&mut ask.request.body);
        let is_empty = body.is_empty();
        let draft = Draft::publish(
            ask.path.clone(),
            body,
            publisher_keys(&ask.request.metadata),
        )
        .map_err(|fault| refused_draft(&fault))?;
        let expected = match ask.request.metadata.get("expected-version") {
            // An empty body says nothing of a version: it unarchives whatever is there.
            Some(text) if !is_empty => Some(
                text.parse()
                    .map_err(|_| bad_request("invalid expected-version"))?,
            ),
            _ => None,
        };
        let written = self
            .store
            .publish(draft, expected, &|| self.still_may_write(ask))
            .map_err(|fault| self.unwritten(ask, fault, PUBLISH_ADVICE))?;
        if is_empty {
            let mut metadata = Metadata::new();
            metadata.set("version", written.version.to_string());
            return Ok(response(Status::Ok, metadata, ""));
        }
        Ok(version_written(&written))
    }

    pub(super) fn append(&self, ask: &mut Ask) -> Answer {
        self.may_write(ask, "appending")?;
        let body = std::mem::take(&mut ask.request.body);
        let draft = Draft::append(
            ask.path.clone(),
            body,
            publisher_keys(&ask.request.metadata),
        )
        .map_err(|fault| refused_draft(&fault))?;
        let expected = match ask.request.metadata.get("expected-version") {
            None => return Err(bad_request("APPEND requires expected-version metadata")),
            Some(text) => text
                .parse()
                .ok()
                .filter(|expected| *expected >= 1)
                .ok_or_else(|| bad_request("invalid expected-version for APPEND (must be >= 1)"))?,
        };
        let written = self
            .store
            .append(draft, expected, &|| self.still_may_write(ask))
            .map_err(|fault| self.unwritten(ask, fault, APPEND_ADVICE))?;
        Ok(version_written(&written))
    }

    pub(super) fn archive(&self, ask: &Ask) -> Answer {
        self.may_write(ask, "archiving")?;
        let written = self
            .store
            .archive(&ask.path, &|| self.still_may_write(ask))
            .map_err(|fault| self.unwritten(ask, fault, PUBLISH_ADVICE))?;
        let mut metadata = Metadata::new();
        metadata
            .set("archived", "true")
            .set("version", written.version.to_string());
        Ok(response(Status::Ok, metadata, ""))
    }

    fn may_write(&self, ask: &Ask, doing: &str) -> Result<(), Response> {
        self.check(ask, Operation::Publish, &ask.path)
            .map_err(|cause| match cause {
                Denied::NoTokens => {
                    let message = format!("{doing} requires auth configuration");
                    Response::error(Status::NotPermitted, &message)
                }
                cause => denied(cause),
            })
    }

    /// Asked under the commit lock: a right that went away while the body arrived writes nothing.
    fn still_may_write(&self, ask: &Ask) -> bool {
        self.check(ask, Operation::Publish, &ask.path).is_ok()
    }

    fn unwritten(&self, ask: &Ask, fault: WriteError, advice: &str) -> Response {
        match fault {
            WriteError::Archived => {
                Response::error(Status::Archived, "document is archived; unarchive first")
            }
            WriteError::Collision { .. } | WriteError::FlatFile { .. } => {
                bad_request(&fault.to_string())
            }
            WriteError::Conflict { server, yours } => conflict(server, yours, advice),
            WriteError::Draft(fault) => refused_draft(&fault),
            WriteError::NotFound => not_found(&ask.spelled),
            WriteError::NotPermitted => match self.check(ask, Operation::Publish, &ask.path) {
                Err(cause) => denied(cause),
                // The right is back already; the write was refused all the same.
                Ok(()) => denied(Denied::NotPermitted),
            },
            WriteError::TooLarge { .. } => {
                Response::error(Status::ServerError, "content exceeds size limit")
            }
            fault => {
                log_storage(ask, &fault);
                unstored(&fault)
            }
        }
    }
}

/// The answer to a write that the disk failed: what a writer may do about it, and nothing of how
/// the disk is made (D50, D51).
fn unstored(fault: &WriteError) -> Response {
    let message = match fault {
        WriteError::Poisoned(_) => "writes are refused until a restart",
        WriteError::Storage(cause) if is_full(cause) => "the storage is full",
        WriteError::Storage(_) => "the storage failed",
        _ => return internal_error(),
    };
    Response::error(Status::ServerError, message)
}

fn is_full(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

fn log_storage(ask: &Ask, fault: &WriteError) {
    match fault {
        // Whoever poisoned the journal has logged it.
        WriteError::Poisoned(_) => {
            debug!(path = %ask.path, "refused a write: the journal takes no more");
        }
        WriteError::Storage(cause) if is_full(cause) => {
            warn!(path = %ask.path, %fault, "write a document");
        }
        fault => error!(path = %ask.path, %fault, "write a document"),
    }
}

fn refused_draft(fault: &DraftError) -> Response {
    match fault {
        DraftError::EmptyAppend => Response::error(Status::ServerError, "append requires a body"),
        fault => bad_request(&fault.to_string()),
    }
}

fn publisher_keys(metadata: &Metadata) -> impl Iterator<Item = (&str, &str)> {
    metadata
        .iter()
        .filter(|(key, _)| !CONTROL_KEYS.contains(key))
}

fn version_written(written: &Written) -> Response {
    let status = match written.outcome {
        Outcome::Created => Status::Created,
        Outcome::Archived | Outcome::Unarchived | Outcome::Unchanged => Status::Ok,
    };
    let mut metadata = Metadata::new();
    metadata
        .set("modified", time(written.modified))
        .set("version", written.version.to_string());
    response(status, metadata, "")
}

fn conflict(server: u64, yours: u64, advice: &str) -> Response {
    let mut metadata = Metadata::new();
    metadata
        .set("server-version", server.to_string())
        .set("your-version", yours.to_string());
    let text = if yours == 0 {
        format!(
            "# Version Conflict\n\n\
             A document already exists at this path (version {server}).\n\n\
             Fetch the current version and publish with the correct expected-version to update \
             it.\n"
        )
    } else {
        format!(
            "# Version Conflict\n\n\
             The document has been modified since you last fetched it.\n\n\
             Your version: {yours}\nServer version: {server}\n\n{advice}\n"
        )
    };
    response(Status::Conflict, metadata, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(fault: &WriteError) -> String {
        let answer = unstored(fault);
        assert_eq!(answer.status, Status::ServerError);
        answer.message().expect("an error has a message").to_owned()
    }

    // D50, D51
    #[test]
    fn a_write_that_the_disk_failed_is_told_so() {
        let of_kind = |kind: io::ErrorKind| said(&WriteError::Storage(kind.into()));
        assert_eq!(of_kind(io::ErrorKind::StorageFull), "the storage is full");
        assert_eq!(of_kind(io::ErrorKind::QuotaExceeded), "the storage is full");
        assert_eq!(of_kind(io::ErrorKind::Other), "the storage failed");
        let poisoned = WriteError::Poisoned("sync: gone".to_owned());
        assert_eq!(said(&poisoned), "writes are refused until a restart");
    }
}
