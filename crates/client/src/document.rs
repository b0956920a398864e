//! Reading documents: the current version, one by number, or any content by its hash.

use bytes::Bytes;
use wire::{ContentHash, DocPath, Metadata, Response, Status, Verb};

use crate::client::{Client, version_path};
use crate::error::{Error, Refusal};
use crate::exchange::AnswerError;

/// What the server says of a version beside its publisher's metadata.
const SERVER_KEYS: [&str; 8] = [
    "archived",
    "content-hash",
    "current-version",
    "entries",
    "etag",
    "modified",
    "status",
    "version",
];

/// Which version is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    /// The current one.
    Current,
    /// The one with this number.
    Version(u64),
}

/// Read only what isn't known yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The etag of the copy at hand.
    pub if_none_match: Option<String>,
    /// The time of the copy at hand, RFC 3339. A server goes by the etag if there is one.
    pub if_modified_since: Option<String>,
}

/// What a conditional read gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// A document (or the listing of a directory that has no index).
    Document(Document),
    /// The copy at hand is good.
    NotModified,
}

/// A document as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The body, byte for byte.
    pub body: Bytes,
    /// The version that was read; `None` for the listing of a directory.
    pub version: Option<u64>,
    /// The current version, where another was asked for.
    pub current: Option<u64>,
    /// The digest of the body, checked against it.
    pub content_hash: ContentHash,
    /// The validator for [`Conditions::if_none_match`].
    pub etag: Option<String>,
    /// When it was written, RFC 3339.
    pub modified: Option<String>,
    /// What its publisher said of it.
    pub metadata: Metadata,
}

impl Client {
    /// Reads a document. A directory gives its `index.md` or else a listing. Cancel safe.
    pub async fn fetch(&self, path: &DocPath, which: Which) -> Result<Document, Error> {
        let path = spelled(path, which);
        let request = self.request(Verb::Fetch, &path);
        let response = match self.cache() {
            Some(cache) => cache.ask(self, request).await?,
            None => self.ask(&request).await?,
        };
        match self.fetched(response)? {
            Fetched::Document(document) => Ok(document),
            // Nothing was asked on a condition, so there is no copy that this could mean.
            Fetched::NotModified => Err(self.lie(AnswerError::Key("status"))),
        }
    }

    /// Reads a document unless the copy at hand is good. Goes past the cache. Cancel safe.
    pub async fn fetch_if(
        &self,
        path: &DocPath,
        which: Which,
        conditions: &Conditions,
    ) -> Result<Fetched, Error> {
        let mut request = self.request(Verb::Fetch, &spelled(path, which));
        if let Some(etag) = &conditions.if_none_match {
            request.metadata.set("if-none-match", etag);
        }
        if let Some(time) = &conditions.if_modified_since {
            request.metadata.set("if-modified-since", time);
        }
        let response = self.ask(&request).await?;
        self.fetched(response)
    }

    /// Reads the content that has `hash`, from any document that the token may read. Cancel safe.
    pub async fn fetch_content(&self, hash: ContentHash) -> Result<Document, Error> {
        let request = self.request(Verb::Fetch, &format!("/{hash}"));
        let response = self.ask_for_ok(&request).await?;
        let document = self.document(response)?;
        if document.content_hash == hash {
            Ok(document)
        } else {
            Err(self.lie(AnswerError::Hash))
        }
    }

    fn fetched(&self, response: Response) -> Result<Fetched, Error> {
        match response.status {
            Status::Ok => self.document(response).map(Fetched::Document),
            Status::NotModified => Ok(Fetched::NotModified),
            _ => Err(Refusal::of(&response).into()),
        }
    }

    fn document(&self, response: Response) -> Result<Document, Error> {
        let Response {
            mut metadata, body, ..
        } = response;
        let content_hash = ContentHash::of(&body);
        if let Some(claimed) = metadata.get("content-hash")
            && ContentHash::parse(claimed) != Ok(content_hash)
        {
            return Err(self.lie(AnswerError::Hash));
        }
        let version = self.optional_number(&metadata, "version")?;
        let current = self.optional_number(&metadata, "current-version")?;
        let etag = metadata.remove("etag");
        let modified = metadata.remove("modified");
        for key in SERVER_KEYS {
            metadata.remove(key);
        }
        Ok(Document {
            body,
            version,
            current,
            content_hash,
            etag,
            modified,
            metadata,
        })
    }

    pub(crate) fn lie(&self, error: AnswerError) -> Error {
        Error::Answer {
            server: self.server().clone(),
            error,
        }
    }

    /// The number under `key`, which every such answer has.
    pub(crate) fn number(&self, metadata: &Metadata, key: &'static str) -> Result<u64, Error> {
        self.optional_number(metadata, key)?
            .ok_or_else(|| self.lie(AnswerError::Key(key)))
    }

    pub(crate) fn optional_number(
        &self,
        metadata: &Metadata,
        key: &'static str,
    ) -> Result<Option<u64>, Error> {
        metadata
            .get(key)
            .map(|text| text.parse().map_err(|_| self.lie(AnswerError::Key(key))))
            .transpose()
    }
}

fn spelled(path: &DocPath, which: Which) -> String {
    match which {
        Which::Current => path.to_string(),
        Which::Version(version) => version_path(path, version),
    }
}
