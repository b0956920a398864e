//! FETCH: a document, one of its versions, a content by its hash, or a directory.

use documents::{Fetched, ReadError, Resolved, Which};
use wire::{ContentHash, DocPath, Metadata, Response, Status};

use super::condition::copy_is_current;
use super::{Answer, Ask, Handler, internal_error, not_found, response, unread};

/// Says that the server is there; it shadows a document of that name.
const HEALTH_PATH: &str = "/health";
const HEALTH_BODY: &str = "# Health Check\n\nServer is healthy.\n";

/// The document that stands for its directory.
const INDEX_NAME: &str = "index.md";

impl Handler {
    pub(super) fn fetch(&self, ask: &Ask) -> Answer {
        if ask.path.as_str() == HEALTH_PATH {
            return Ok(self.health());
        }
        match self.store.resolve(&ask.path) {
            Resolved::ContentAddress(hash) => self.fetch_content(ask, &hash),
            Resolved::Directory(dir) => self.fetch_directory(ask, &dir),
            Resolved::Document(path) => self.fetch_version(ask, &path, Which::Current),
            Resolved::Nothing(path) => {
                self.may_read(ask, &path)?;
                Err(not_found(&ask.spelled))
            }
            Resolved::Version(path, Some(number)) => {
                self.fetch_version(ask, &path, Which::Version(number))
            }
            Resolved::Version(path, None) => {
                self.may_read(ask, &path)?;
                Err(not_found(&ask.spelled))
            }
        }
    }

    fn health(&self) -> Response {
        match self.store.health().poisoned {
            None => response(Status::Ok, Metadata::new(), HEALTH_BODY),
            Some(_) => Response::error(Status::ServerError, "writes are refused until a restart"),
        }
    }

    fn fetch_version(&self, ask: &Ask, path: &DocPath, which: Which) -> Answer {
        self.may_read(ask, path)?;
        let fetched = self
            .store
            .fetch(path, which)
            .map_err(|fault| unread(ask, fault))?;
        Ok(document(ask, fetched, which))
    }

    /// A content that the caller may not read is answered like one that nobody has (D80).
    fn fetch_content(&self, ask: &Ask, hash: &ContentHash) -> Answer {
        let can_read = self.can_read(ask);
        match self.store.fetch_by_hash(hash, &can_read) {
            Ok(fetched) => Ok(document(ask, fetched, Which::Current)),
            Err(ReadError::NotFound | ReadError::Archived(_)) => {
                let message = format!("content not found for hash {hash}");
                Err(Response::error(Status::NotFound, &message))
            }
            Err(fault) => Err(unread(ask, fault)),
        }
    }

    /// The directory's `index.md` if there is one that may be seen, else its listing.
    fn fetch_directory(&self, ask: &Ask, dir: &DocPath) -> Answer {
        self.may_read(ask, dir)?;
        let index = dir.child(INDEX_NAME).map_err(|_| internal_error())?;
        if self.may_read(ask, &index).is_ok() {
            match self.store.fetch(&index, Which::Current) {
                Ok(fetched) => return Ok(document(ask, fetched, Which::Current)),
                Err(ReadError::NotFound | ReadError::Archived(_)) => {}
                Err(fault) => return Err(unread(ask, fault)),
            }
        }
        self.directory_text(ask, dir)
    }
}

fn document(ask: &Ask, fetched: Fetched, which: Which) -> Response {
    let info = &fetched.info;
    let etag = info.file_hash.hex();
    if copy_is_current(&ask.request.metadata, &etag, Some(info.modified)) {
        return response(Status::NotModified, Metadata::new(), "");
    }
    let publisher = info.metadata.iter();
    let mut metadata: Metadata = publisher.map(|(key, value)| (&**key, &**value)).collect();
    metadata
        .set("content-hash", info.content_hash.to_string())
        .set("etag", etag)
        .set("modified", time(info.modified))
        .set("version", info.version.to_string());
    if matches!(which, Which::Version(_)) {
        metadata.set("current-version", fetched.current.to_string());
    }
    response(Status::Ok, metadata, fetched.body)
}

/// A time as the wire writes it: UTC, whole seconds.
pub(super) fn time(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
