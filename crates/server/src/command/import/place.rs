//! One file of an import on its way to the server.

use std::time::Duration;

use client::{Client, Draft, Entry, Error, Refusal, Which};
use wire::{ContentHash, Metadata, Status, limits};

use super::Item;
use crate::command::failure::Failure;
use crate::command::source;

/// Between two tries of a file that the server took for one too many. The client has waited
/// for seconds by then.
const RATE_PAUSE: Duration = Duration::from_secs(1);

/// After so many tries an import gives up: the server isn't busy with it, but with others.
const RATE_TRIES_MAX: u32 = 60;

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Created,
    Refused(String),
    Unchanged,
    Updated,
}

/// Publishes one file, given what the server has in its place. An error ends the import; what
/// concerns this file alone is an outcome.
pub(super) async fn place(
    client: &Client,
    item: &Item,
    known: Option<&Entry>,
    update: bool,
) -> Result<Outcome, Failure> {
    let body = match source::read_file(&item.file) {
        Ok(body) => body,
        Err(error) => return Ok(Outcome::Refused(error.to_string())),
    };
    if let Some(reason) = no_document(&body) {
        return Ok(Outcome::Refused(reason));
    }
    let hash = ContentHash::of(&body);
    let mut draft = Draft {
        body: body.into(),
        expected: Some(0),
        metadata: Metadata::new(),
    };
    match known {
        Some(known) if known.is_archived => return Ok(Outcome::Refused(archived(item))),
        Some(known) if known.content_hash == Some(hash) => return Ok(Outcome::Unchanged),
        // A conflict for certain; what is there decides.
        Some(known) if !known.is_directory => {
            return over_existing(client, item, draft, hash, update).await;
        }
        _ => {}
    }
    match publish(client, item, &draft).await {
        Ok(true) => Ok(Outcome::Created),
        Ok(false) => Ok(Outcome::Unchanged),
        // Somebody else was faster, or the server doesn't list what it has.
        Err(Error::Conflict { .. }) => {
            draft.expected = None;
            over_existing(client, item, draft, hash, update).await
        }
        Err(error) => refused(item, error),
    }
}

async fn over_existing(
    client: &Client,
    item: &Item,
    mut draft: Draft,
    hash: ContentHash,
    update: bool,
) -> Result<Outcome, Failure> {
    let existing = match client.fetch(&item.path, Which::Current).await {
        Ok(existing) => existing,
        Err(error) => return refused(item, error),
    };
    if existing.content_hash == hash {
        return Ok(Outcome::Unchanged);
    }
    if !update {
        let version = existing.version.unwrap_or_default();
        return Ok(Outcome::Refused(format!(
            "there is a document with other content (version {version}); \
             --update publishes over it"
        )));
    }
    draft.expected = existing.version;
    // What was said of the document is kept: a file has nothing to say.
    draft.metadata = existing.metadata;
    match publish(client, item, &draft).await {
        Ok(_) => Ok(Outcome::Updated),
        Err(error) => refused(item, error),
    }
}

/// Publishes, and waits while the server has too much to do. True if a version was made.
async fn publish(client: &Client, item: &Item, draft: &Draft) -> Result<bool, Error> {
    let mut tries = 1;
    loop {
        match client.publish(&item.path, draft).await {
            Err(error) if error.status() == Some(Status::RateLimited) && tries < RATE_TRIES_MAX => {
                tries += 1;
                tokio::time::sleep(RATE_PAUSE).await;
            }
            written => return written.map(|written| written.created),
        }
    }
}

/// Sorts a refusal of this file from an error that every file would meet.
fn refused(item: &Item, error: Error) -> Result<Outcome, Failure> {
    match error {
        Error::Refused(Refusal {
            status: Status::Archived,
            ..
        }) => Ok(Outcome::Refused(archived(item))),
        Error::Refused(ref refusal)
            if !matches!(refusal.status, Status::Unauthorized | Status::RateLimited) =>
        {
            Ok(Outcome::Refused(refusal.to_string()))
        }
        Error::Conflict { .. } | Error::Request(_) | Error::UnknownOutcome { .. } => {
            Ok(Outcome::Refused(error.to_string()))
        }
        error => Err(error.into()),
    }
}

fn archived(item: &Item) -> String {
    let path = &item.path;
    format!("the document is archived; bring it back with `tidings archive --undo {path}`")
}

/// Why a text is no document, told before it is sent.
fn no_document(body: &[u8]) -> Option<String> {
    if body.is_empty() {
        return Some("the file is empty, and a document is not".to_owned());
    }
    if body.len() > limits::BODY_LEN_MAX {
        let max = limits::BODY_LEN_MAX;
        return Some(format!("the file is longer than {max} bytes"));
    }
    std::str::from_utf8(body)
        .is_err()
        .then(|| "the file is not UTF-8 text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_document_is_named_before_it_is_sent() {
        assert_eq!(no_document("\u{feff}a\r\n".as_bytes()), None);
        assert!(no_document(b"").unwrap().contains("empty"));
        assert!(no_document(b"caf\xe9").unwrap().contains("UTF-8"));
        let long = vec![b'x'; limits::BODY_LEN_MAX + 1];
        assert!(no_document(&long).unwrap().contains("1048576"));
    }
}
