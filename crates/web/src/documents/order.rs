//! A write as it is carried out on a thread that may block.

use std::cell::Cell;

use auth::{Authority, Caller, Operation};
use bytes::Bytes;
use documents::{Draft, DraftError, FileStore, Outcome, WriteError, Written};
use jiff::Timestamp;
use serde_json::json;
use tracing::{debug, error, warn};
use wire::{ContentHash, DocPath};

use super::condition::{Conditions, at_version};
use super::intent::Intent;
use super::read::{CURSOR, VERSION};
use crate::call::{self, RETRY_SOON};
use crate::face::Face;
use crate::fault::{Code, Fault};
use crate::idempotency::{Digest, Kept};

/// How often an append without a condition meets another write before it gives up.
const APPEND_ATTEMPTS_MAX: usize = 32;

/// What is to be done to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Append,
    Archive,
    Publish,
    Unarchive,
}

impl Verb {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Archive => "archive",
            Self::Publish => "publish",
            Self::Unarchive => "unarchive",
        }
    }
}

/// A write, and who wants it.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) verb: Verb,
    pub(super) path: DocPath,
    pub(super) body: Bytes,
    pub(super) metadata: Vec<(String, String)>,
    pub(super) conditions: Conditions,
    pub(super) caller: Caller,
}

/// Where a write goes, and the rights it needs.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) store: FileStore,
    pub(super) authority: Authority,
    pub(super) clock: fn() -> Timestamp,
}

impl World {
    /// The world that a face serves.
    pub(super) fn of(face: &Face) -> Self {
        Self {
            store: face.store.clone(),
            authority: face.authority.clone(),
            clock: Timestamp::now,
        }
    }
}

impl Order {
    /// Does it. Blocks on the disk; what began is never left half done.
    pub(super) fn run(&self, world: &World) -> Result<Written, Fault> {
        let may = || {
            let grants = world.authority.current();
            grants.check(
                &self.caller,
                Operation::Publish,
                &self.path,
                (world.clock)(),
            )
        };
        may().map_err(call::denied)?;
        let written = match self.verb {
            Verb::Append => self.append(world, &|| may().is_ok()),
            Verb::Archive => self.archive(world, &|| may().is_ok()),
            Verb::Publish | Verb::Unarchive => self.publish(world, &|| may().is_ok()),
        };
        written.map_err(|failure| match failure {
            // It may be back already; the write was refused all the same.
            Failure::Store(WriteError::NotPermitted) => may()
                .err()
                .map_or_else(|| Code::NotPermitted.into(), call::denied),
            Failure::Store(failure) => self.unwritten(failure),
            Failure::Fault(fault) => fault,
        })
    }

    /// What has to be noted to judge the write if the process dies under it.
    pub(super) fn intent(&self, world: &World) -> Intent {
        let addition = matches!(self.verb, Verb::Append | Verb::Publish);
        Intent {
            verb: self.verb.as_str().to_owned(),
            path: self.path.as_str().to_owned(),
            before: world.store.current_number(&self.path).unwrap_or(0),
            hash: addition.then(|| ContentHash::of(&self.body).to_string()),
        }
    }

    /// A digest of everything that makes this write what it is.
    pub(super) fn digest(&self) -> Digest {
        let conditions = format!("{:?}", self.conditions);
        let mut text = Vec::new();
        let mut add = |part: &[u8]| {
            text.extend_from_slice(&(part.len() as u64).to_le_bytes());
            text.extend_from_slice(part);
        };
        add(self.verb.as_str().as_bytes());
        add(self.path.as_str().as_bytes());
        add(conditions.as_bytes());
        for (key, value) in &self.metadata {
            add(key.as_bytes());
            add(value.as_bytes());
        }
        add(ContentHash::of(&self.body).as_bytes());
        Digest::of(&text)
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.metadata
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    fn publish(&self, world: &World, may: documents::StillAllowed<'_>) -> Result<Written, Failure> {
        let draft = Draft::publish(self.path.clone(), self.body.clone(), self.pairs())
            .map_err(WriteError::from)?;
        let expected = self.conditions.version(&world.store, &self.path)?;
        Ok(world.store.publish(draft, expected, may)?)
    }

    /// Without a condition it goes behind whatever is there, so it tries again where another write
    /// came between.
    fn append(&self, world: &World, may: documents::StillAllowed<'_>) -> Result<Written, Failure> {
        let draft = Draft::append(self.path.clone(), self.body.clone(), self.pairs())
            .map_err(WriteError::from)?;
        let asked = self.conditions.version(&world.store, &self.path)?;
        for _ in 0..APPEND_ATTEMPTS_MAX {
            let current = || world.store.current_number(&self.path);
            let expected = asked.or_else(current).ok_or(WriteError::NotFound)?;
            match world.store.append(draft.clone(), expected, may) {
                Err(WriteError::Conflict { .. }) if asked.is_none() => {}
                other => return Ok(other?),
            }
        }
        Err(Failure::Fault(
            Fault::new(Code::Busy).retry_after(RETRY_SOON),
        ))
    }

    /// The store archives whatever version is there, so the condition is asked once more where no
    /// other write can come between: under the commit lock.
    fn archive(&self, world: &World, may: documents::StillAllowed<'_>) -> Result<Written, Failure> {
        let expected = self.conditions.version(&world.store, &self.path)?;
        let found = Cell::new(expected);
        let may = || {
            if expected.is_some() {
                found.set(world.store.current_number(&self.path));
            }
            found.get() == expected && may()
        };
        if expected.is_some_and(|expected| world.store.current_number(&self.path) != Some(expected))
        {
            let current = world.store.current_number(&self.path).unwrap_or(0);
            return Err(Failure::Fault(at_version(current)));
        }
        let written = world.store.archive(&self.path, &may);
        if found.get() != expected {
            return Err(Failure::Fault(at_version(found.get().unwrap_or(0))));
        }
        Ok(written?)
    }

    fn unwritten(&self, failure: WriteError) -> Fault {
        let detail = failure.to_string();
        match failure {
            WriteError::Archived => Code::Archived.into(),
            WriteError::Closed => Fault::new(Code::Draining).retry_after(RETRY_SOON),
            WriteError::Collision { .. } | WriteError::FlatFile { .. } => {
                Fault::detailed(Code::Collision, detail)
            }
            WriteError::Conflict { server, .. } => at_version(server),
            WriteError::Draft(DraftError::TooLarge) | WriteError::TooLarge { .. } => {
                Fault::detailed(Code::TooLarge, detail)
            }
            WriteError::Draft(_) => Fault::detailed(Code::BadDocument, detail),
            WriteError::NotFound => Code::NotFound.into(),
            WriteError::NotPermitted => Code::NotPermitted.into(),
            WriteError::Poisoned(_) => {
                // Whoever poisoned the journal has logged it.
                debug!(path = %self.path, "refused a write: the journal takes no more");
                Code::Unready.into()
            }
            WriteError::Storage(cause) if cause.kind() == std::io::ErrorKind::StorageFull => {
                warn!(path = %self.path, %cause, "write a document");
                Code::StorageFull.into()
            }
            failure => {
                error!(path = %self.path, %failure, "write a document");
                Code::Internal.into()
            }
        }
    }
}

/// Why a write was not done.
enum Failure {
    Fault(Fault),
    Store(WriteError),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::Store(error)
    }
}

/// The answer to a write that was done.
pub(super) fn written(path: &DocPath, written: &Written) -> Kept {
    let (status, outcome) = match written.outcome {
        Outcome::Archived => (200, "archived"),
        Outcome::Created => (201, "created"),
        Outcome::Unarchived => (200, "unarchived"),
        Outcome::Unchanged => (200, "unchanged"),
    };
    let (hash, cursor) = (written.hash.to_string(), written.cursor.to_string());
    let body = json!({
        "path": path.as_str(),
        "outcome": outcome,
        "version": written.version,
        "hash": hash,
        "modified": written.modified.to_string(),
        "cursor": cursor,
    });
    Kept {
        status,
        fields: vec![
            ("etag".to_owned(), format!("\"{hash}\"")),
            (VERSION.as_str().to_owned(), written.version.to_string()),
            (CURSOR.as_str().to_owned(), cursor),
        ],
        body: body.to_string(),
    }
}

/// The answer to a write that was refused, if it is worth keeping: what may be otherwise when the
/// client comes back is not.
pub(super) fn refused(fault: &Fault) -> Option<Kept> {
    let status = fault.code.status();
    let passing = status.is_server_error()
        || matches!(
            fault.code,
            Code::NotPermitted | Code::NoTokens | Code::Unauthorized
        );
    (!passing).then(|| Kept {
        status: status.as_u16(),
        fields: Vec::new(),
        body: fault.body().to_string(),
    })
}
