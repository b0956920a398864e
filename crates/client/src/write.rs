//! Writing documents, and finding out what became of a write whose answer was lost (D2).
//!
//! A write is sent again only when that can't write twice. Where nothing was sent it is sent again
//! at once. Where it may have arrived the client looks first: a write that expected version N
//! landed if version N+1 has its content, and was overtaken if N+1 has another; if there is no N+1
//! yet it is sent again with the same expectation, which lets at most one of the two through. A
//! write without an expectation landed if the current version is the same in content and metadata;
//! if there is no document yet it is sent again as the first version. Everything else is told to
//! the caller as [`Error::UnknownOutcome`], never as a conflict and never as a success.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use wire::{ContentHash, DocPath, Metadata, Request, Response, Status, Verb, limits};

use crate::backoff::{Backoff, Jitter};
use crate::client::{Client, Tries};
use crate::document::{Document, Which};
use crate::error::{Error, Refusal, RequestError};
use crate::exchange::ExchangeError;

/// How often an append without an expectation reads again after it was overtaken. Sixteen writers
/// at once rarely need ten.
const APPEND_TRIES_MAX: u32 = 64;

/// Before an overtaken append reads again; doubled each time up to the longest.
const APPEND_PAUSE: Duration = Duration::from_millis(10);
const APPEND_PAUSE_MAX: Duration = Duration::from_millis(640);

/// How often a write whose answer was lost is looked for, and the first pause after a look that
/// found nobody; doubled each time. Together they outlast a server's restart.
const LOOKS_MAX: u32 = 6;
const LOOK_PAUSE: Duration = Duration::from_millis(200);

/// A version that is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// The document, or what is added to it.
    pub body: Bytes,
    /// The version that must be current; 0 for none at all; absent for whatever is there.
    pub expected: Option<u64>,
    /// What is said of it: `title`, `tags`, `agent` and so on.
    pub metadata: Metadata,
}

/// A write that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The version that holds it.
    pub version: u64,
    /// A version was made; false if the current one said the same already.
    pub created: bool,
}

impl Client {
    /// Writes a version of a document.
    ///
    /// Cancelling leaves open whether it landed. The same is true after [`Error::UnknownOutcome`],
    /// and after no other error.
    pub async fn publish(&self, path: &DocPath, draft: &Draft) -> Result<Written, Error> {
        check_body(&draft.body)?;
        let result = Content::Whole(ContentHash::of(&draft.body));
        self.write(Verb::Publish, path, draft, result).await
    }

    /// Adds to the end of a document, on a line of its own.
    ///
    /// Without an expected version it reads the document, and reads again when another writer was
    /// faster. Cancelling leaves open whether it landed.
    pub async fn append(&self, path: &DocPath, draft: &Draft) -> Result<Written, Error> {
        check_body(&draft.body)?;
        if draft.expected.is_some() {
            return self
                .write(Verb::Append, path, draft, Content::Appended)
                .await;
        }
        let mut pauses = Backoff::new(APPEND_PAUSE, APPEND_PAUSE_MAX, Jitter::from_system());
        let mut tries = 1;
        loop {
            let base = self.read_past_cache(path, Which::Current).await?;
            let version = base.version.ok_or_else(|| directory_refusal(path))?;
            let result = Content::Whole(hash_appended(&base.body, &draft.body));
            let draft = Draft {
                expected: Some(version),
                ..draft.clone()
            };
            match self.write(Verb::Append, path, &draft, result).await {
                Err(Error::Conflict { .. }) if tries < APPEND_TRIES_MAX => {
                    tries += 1;
                    tokio::time::sleep(pauses.pause()).await;
                }
                written => return written,
            }
        }
    }

    /// Takes a document out of listings; its versions stay. Gives its version. May be repeated,
    /// also after it was cancelled.
    pub async fn archive(&self, path: &DocPath) -> Result<u64, Error> {
        self.shelve(self.request(Verb::Archive, path.as_str()), path)
            .await
    }

    /// Brings an archived document back. Gives its version. May be repeated, also after it was
    /// cancelled.
    pub async fn unarchive(&self, path: &DocPath) -> Result<u64, Error> {
        // A PUBLISH without a body is how the protocol says it.
        self.shelve(self.request(Verb::Publish, path.as_str()), path)
            .await
    }

    async fn shelve(&self, request: Request, path: &DocPath) -> Result<u64, Error> {
        let answer = self.ask_for_ok(&request).await;
        self.forget(path);
        self.number(&answer?.metadata, "version")
    }

    async fn write(
        &self,
        verb: Verb,
        path: &DocPath,
        draft: &Draft,
        content: Content,
    ) -> Result<Written, Error> {
        let mut attempt = Attempt {
            client: self,
            verb,
            path,
            draft,
            content,
            expected: draft.expected,
            lost: None,
        };
        let written = attempt.run().await;
        self.forget(path);
        written
    }

    /// Drops what the cache has of a document: it is about to be wrong.
    fn forget(&self, path: &DocPath) {
        if let Some(cache) = self.cache() {
            cache.forget(self, path);
        }
    }

    /// Reads what the server has this moment; a cache adds nothing where a write follows.
    async fn read_past_cache(&self, path: &DocPath, which: Which) -> Result<Document, Error> {
        let conditions = crate::Conditions::default();
        match self.fetch_if(path, which, &conditions).await? {
            crate::Fetched::Document(document) => Ok(document),
            crate::Fetched::NotModified => {
                Err(self.lie(crate::exchange::AnswerError::Key("status")))
            }
        }
    }
}

/// What version N+1 holds if the write landed.
enum Content {
    /// This, known beforehand.
    Whole(ContentHash),
    /// Version N and the draft's body after it; N is read when it is needed.
    Appended,
}

/// One write from the first send to the last look.
struct Attempt<'a> {
    client: &'a Client,
    verb: Verb,
    path: &'a DocPath,
    draft: &'a Draft,
    content: Content,
    /// The caller's expectation, or 0 once a look found no document.
    expected: Option<u64>,
    /// How the answer of an earlier send was lost; that send may have landed.
    lost: Option<ExchangeError>,
}

/// What a look at the server finds.
enum Look {
    Landed(u64),
    NotLanded,
    Overtaken { current: u64 },
    Unclear,
}

impl Attempt<'_> {
    async fn run(&mut self) -> Result<Written, Error> {
        let mut tries = Tries::new();
        loop {
            let request = self.request().encode().map_err(RequestError::from)?;
            let answer = self.client.send(request).await;
            let pause = tries.after(&answer);
            match (answer, pause) {
                (Ok(response), Some(pause)) if response.status == Status::RateLimited => {
                    tokio::time::sleep(pause).await;
                }
                (Ok(response), _) => return self.answered(&response).await,
                (Err(error), Some(pause)) if error.is_unsent() => {
                    tracing::debug!(path = %self.path, %error, "write not sent");
                    tokio::time::sleep(pause).await;
                }
                (Err(error), None) if error.is_unsent() && self.lost.is_none() => {
                    return Err(self.client.failed(error));
                }
                (Err(error), pause) => {
                    let cause = self.lost.get_or_insert(error).clone();
                    match (self.look().await, pause) {
                        (Look::Landed(version), _) => return Ok(created(version)),
                        (Look::Overtaken { current }, _) => return Err(self.overtaken(current)),
                        (Look::NotLanded, Some(pause)) => {
                            self.expected.get_or_insert(0);
                            tokio::time::sleep(pause).await;
                        }
                        (Look::NotLanded, None) | (Look::Unclear, _) => {
                            return Err(self.unknown(cause));
                        }
                    }
                }
            }
        }
    }

    async fn answered(&self, response: &Response) -> Result<Written, Error> {
        match response.status {
            Status::Created | Status::Ok => Ok(Written {
                version: self.client.number(&response.metadata, "version")?,
                created: response.status == Status::Created,
            }),
            // A send whose answer was lost may be the very one that this conflicts with.
            Status::Conflict if self.lost.is_some() => match self.look().await {
                Look::Landed(version) => Ok(created(version)),
                Look::Overtaken { current } => Err(self.overtaken(current)),
                Look::NotLanded => self.conflict(response),
                Look::Unclear => Err(self.unknown_after_all()),
            },
            Status::Conflict => self.conflict(response),
            _ => Err(Refusal::of(response).into()),
        }
    }

    fn conflict(&self, response: &Response) -> Result<Written, Error> {
        let current = self.client.number(&response.metadata, "server-version")?;
        Err(self.overtaken(current))
    }

    /// Only who expected a version can be overtaken; to anyone else the outcome is unknown.
    fn overtaken(&self, current: u64) -> Error {
        match self.draft.expected {
            Some(expected) => Error::Conflict {
                path: self.path.clone(),
                current,
                expected,
            },
            None => self.unknown_after_all(),
        }
    }

    fn unknown_after_all(&self) -> Error {
        self.unknown(self.lost.clone().unwrap_or(ExchangeError::Timeout))
    }

    fn unknown(&self, cause: ExchangeError) -> Error {
        Error::UnknownOutcome {
            path: self.path.clone(),
            cause,
        }
    }

    fn request(&self) -> Request {
        let mut request = self.client.request(self.verb, self.path.as_str());
        for (key, value) in self.draft.metadata.iter() {
            request.metadata.set(key, value);
        }
        if let Some(expected) = self.expected {
            request
                .metadata
                .set("expected-version", expected.to_string());
        }
        request.body = self.draft.body.clone();
        request
    }

    /// Looks, and looks again while nobody answers: what took the answer away may last for seconds.
    async fn look(&self) -> Look {
        let mut pauses = Backoff::new(LOOK_PAUSE, LOOK_PAUSE * 16, Jitter::from_system());
        for _ in 0..LOOKS_MAX {
            let looked = match self.expected {
                Some(expected) => self.look_after(expected).await,
                None => self.look_at_current().await,
            };
            let error = match looked {
                Ok(look) => return look,
                Err(error) => error,
            };
            tracing::debug!(path = %self.path, %error, "no look at a write whose answer was lost");
            if !matches!(error, Error::Unreachable { .. }) || error.is_untrusted() {
                break;
            }
            tokio::time::sleep(pauses.pause()).await;
        }
        Look::Unclear
    }

    /// Looks for the version after the one that was expected.
    async fn look_after(&self, expected: u64) -> Result<Look, Error> {
        let next = Which::Version(expected.saturating_add(1));
        let next = match self.client.read_past_cache(self.path, next).await {
            Ok(next) => next,
            Err(error) if error.status() == Some(Status::NotFound) => {
                return self.look_for_none_after(expected).await;
            }
            Err(error) => return Err(error),
        };
        let mine = match self.content {
            Content::Whole(hash) => hash,
            Content::Appended => {
                let base = Which::Version(expected);
                let base = self.client.read_past_cache(self.path, base).await?;
                hash_appended(&base.body, &self.draft.body)
            }
        };
        let version = expected.saturating_add(1);
        Ok(if next.content_hash == mine {
            Look::Landed(version)
        } else {
            Look::Overtaken {
                current: next.current.unwrap_or(version),
            }
        })
    }

    /// The next version isn't there: not yet, or not any more if versions were removed.
    async fn look_for_none_after(&self, expected: u64) -> Result<Look, Error> {
        let current = self
            .client
            .read_past_cache(self.path, Which::Current)
            .await
            .map(|document| document.version);
        Ok(match current {
            Ok(Some(version)) if version <= expected => Look::NotLanded,
            Ok(_) => Look::Unclear,
            Err(error) => match error.status() {
                // An archived document refuses the write by itself.
                Some(Status::NotFound | Status::Archived) => Look::NotLanded,
                _ => return Err(error),
            },
        })
    }

    async fn look_at_current(&self) -> Result<Look, Error> {
        let current = match self.client.read_past_cache(self.path, Which::Current).await {
            Ok(current) => current,
            // No version at all: versions are never removed to the last.
            Err(error) if error.status() == Some(Status::NotFound) => return Ok(Look::NotLanded),
            Err(error) => return Err(error),
        };
        let Content::Whole(mine) = self.content else {
            return Ok(Look::Unclear);
        };
        let same = current.content_hash == mine && says(&current.metadata, &self.draft.metadata);
        Ok(match current.version {
            Some(version) if same => Look::Landed(version),
            _ => Look::Unclear,
        })
    }
}

const fn created(version: u64) -> Written {
    Written {
        version,
        created: true,
    }
}

/// True if `stored` has all that `written` says; a server takes the blanks out of tags.
fn says(stored: &Metadata, written: &Metadata) -> bool {
    let bare = |text: &str| text.replace(' ', "");
    written
        .iter()
        .filter(|(key, _)| *key != "retention")
        .all(|(key, value)| stored.get(key).map(bare) == Some(bare(value)))
}

/// The hash of `base` with `addition` after it, on a line of its own.
fn hash_appended(base: &[u8], addition: &[u8]) -> ContentHash {
    let mut whole = BytesMut::with_capacity(base.len() + addition.len() + 1);
    whole.extend_from_slice(base);
    if !base.ends_with(b"\n") {
        whole.extend_from_slice(b"\n");
    }
    whole.extend_from_slice(addition);
    ContentHash::of(&whole)
}

fn check_body(body: &[u8]) -> Result<(), RequestError> {
    match body.len() {
        0 => Err(RequestError::EmptyBody),
        len if len > limits::BODY_LEN_MAX => Err(RequestError::BodyTooLong {
            len,
            max: limits::BODY_LEN_MAX,
        }),
        _ => Ok(()),
    }
}

fn directory_refusal(path: &DocPath) -> Refusal {
    Refusal {
        status: Status::BadRequest,
        message: format!("{path} is a directory"),
    }
}
