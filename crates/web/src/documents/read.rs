//! Reading a document, one of its versions, or a content by its hash.

use auth::{Caller, Operation};
use documents::{Fetched, ReadError, Resolved, Which};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use wire::{ContentHash, Cursor, DocPath};

use super::condition::copy_is_current;
use super::{listing, tags, target, unread};
use crate::answer::{self, Answer, Body, REVALIDATE};
use crate::call::{Call, RETRY_SOON, denied};
use crate::fault::{Code, Fault};
use crate::limits::Limit;

pub(crate) const VERSION: HeaderName = HeaderName::from_static("tidings-version");
pub(crate) const CURSOR: HeaderName = HeaderName::from_static("tidings-cursor");
const ARCHIVED: HeaderName = HeaderName::from_static("tidings-archived");
const CURRENT_VERSION: HeaderName = HeaderName::from_static("tidings-current-version");
const MODIFIED: HeaderName = HeaderName::from_static("tidings-modified");
const MARKDOWN: HeaderValue = HeaderValue::from_static("text/markdown; charset=utf-8");

/// What a read is of.
enum Wish {
    Directory,
    Document(Which),
    History,
}

pub(super) async fn read(call: Call) -> Result<Answer, Fault> {
    let target = target(&call)?;
    let wish = wish(&call, target.trailing_slash)?;
    let turn = call.turn().await?;
    let face = call.face.clone();
    let reading = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        // A change after this position is told to whoever watches from it, so no write between the
        // read and the watch is missed (P7).
        let cursor = call.face.store.feed().head();
        match wish {
            Wish::Directory => listing::directory(&call, &target.path, &cursor),
            Wish::Document(which) => document(&call, &target.path, which, &cursor),
            Wish::History => listing::history(&call, &target.path, &cursor),
        }
    });
    let reply = reading.await.map_err(|failure| {
        tracing::error!(%failure, "read a document");
        Fault::new(Code::Internal)
    })??;
    Ok(with_room(&face, reply).await?.into())
}

fn wish(call: &Call, trailing_slash: bool) -> Result<Wish, Fault> {
    let query = &call.query;
    let version = query.number("version", 1..=u64::MAX)?;
    let history = query.flag("versions")?;
    let is_page = trailing_slash || history;
    let page_only = ["cursor", "page_size"];
    if let Some(name) = page_only
        .iter()
        .find(|name| !is_page && query.names().any(|it| it == **name))
    {
        let detail = format!("`{name}` is for a directory or ?versions");
        return Err(Fault::detailed(Code::BadParameter, detail));
    }
    match (version, history, trailing_slash) {
        (None, true, false) => Ok(Wish::History),
        (None, false, true) => Ok(Wish::Directory),
        (Some(version), false, false) => Ok(Wish::Document(Which::Version(version))),
        (None, false, false) => Ok(Wish::Document(Which::Current)),
        _ => Err(Fault::detailed(
            Code::BadParameter,
            "a directory, `version` and `versions` exclude each other",
        )),
    }
}

fn document(
    call: &Call,
    path: &DocPath,
    which: Which,
    cursor: &Cursor,
) -> Result<Response<Body>, Fault> {
    let store = &call.face.store;
    let fetched = match (store.resolve(path), which) {
        (Resolved::ContentAddress(hash), Which::Current) => content(call, &hash)?,
        (Resolved::Document(path), which) => {
            call.check(Operation::Read, &path)?;
            store
                .fetch(&path, which)
                .map_err(|error| unread(&path, error))?
        }
        (Resolved::Version(path, Some(number)), Which::Current) => {
            call.check(Operation::Read, &path)?;
            let which = Which::Version(number);
            store
                .fetch(&path, which)
                .map_err(|error| unread(&path, error))?
        }
        _ => {
            call.check(Operation::Read, path)?;
            return Err(Code::NotFound.into());
        }
    };
    let headers = fields(&fetched, cursor);
    if copy_is_current(call.headers(), &fetched.info.content_hash) {
        return Ok(answer::bare(StatusCode::NOT_MODIFIED, headers));
    }
    let mut reply = Response::new(answer::whole(fetched.body));
    *reply.headers_mut() = headers;
    reply.headers_mut().insert(CONTENT_TYPE, MARKDOWN);
    Ok(reply)
}

/// A content that the caller may not read is answered like one that nobody has (D80).
fn content(call: &Call, hash: &ContentHash) -> Result<Fetched, Fault> {
    let can_read = can_read(call);
    match call.face.store.fetch_by_hash(hash, &can_read) {
        Err(ReadError::NotFound | ReadError::Archived(_)) => Err(Code::NotFound.into()),
        other => other.map_err(|error| unread(&DocPath::root(), error)),
    }
}

/// The right to see a path, by the grants of this moment.
pub(super) fn can_read(call: &Call) -> impl Fn(&DocPath) -> bool + use<> {
    let (grants, now) = (call.face.authority.current(), call.face.now());
    let caller: Caller = call.who.caller.clone();
    move |path| {
        grants
            .check(&caller, Operation::Read, path, now)
            .map_err(denied)
            .is_ok()
    }
}

fn fields(fetched: &Fetched, cursor: &Cursor) -> HeaderMap {
    let info = &fetched.info;
    let mut headers = HeaderMap::new();
    let texts = [
        (ETAG, format!("\"{}\"", info.content_hash)),
        (VERSION, info.version.to_string()),
        (CURRENT_VERSION, fetched.current.to_string()),
        (CURSOR, cursor.to_string()),
        (MODIFIED, info.modified.to_string()),
        (ARCHIVED, fetched.archived.to_string()),
    ];
    for (name, text) in texts {
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.insert(name, value);
        }
    }
    headers.insert(CACHE_CONTROL, REVALIDATE);
    tags::add(&mut headers, &info.metadata);
    headers
}

/// Waits for room among the answers that are being sent; the room is given back with the body.
async fn with_room(
    face: &crate::face::Face,
    reply: Response<Body>,
) -> Result<Response<Body>, Fault> {
    use hyper::body::Body as _;
    let len = reply.body().size_hint().lower();
    let bytes = u32::try_from(len).unwrap_or(u32::MAX);
    let room = face.answers.clone().acquire_many_owned(bytes);
    match timeout(face.limits.request_timeout, room).await {
        Ok(Ok(room)) => Ok(reply.map(|body| guarded(body, room))),
        _ => {
            face.metrics.refused(Limit::AnswerBytes);
            Err(Fault::new(Code::Busy).retry_after(RETRY_SOON))
        }
    }
}

fn guarded(body: Body, room: OwnedSemaphorePermit) -> Body {
    answer::keeping(body, room)
}
