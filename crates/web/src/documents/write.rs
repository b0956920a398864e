//! Publishing, appending, archiving: from the request to the answer.
//!
//! The right is asked before the body is read, so that nobody without it makes the server read a
//! megabyte. A write that has begun runs to its end even if the client is gone.

use auth::Operation;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use tracing::{error, warn};
use wire::DocPath;
use wire::limits::BODY_LEN_MAX;

use super::condition::Conditions;
use super::once::{self, Answered, Failed};
use super::order::{self, Order, Verb, World};
use super::{tags, target};
use crate::answer::{self, Answer, Body, JSON};
use crate::call::{Call, RETRY_SOON};
use crate::face::Face;
use crate::fault::{Code, Fault};
use crate::idempotency::{Digest, Kept, KeyError};
use crate::limits::Limit;
use crate::upload::{self, Upload};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The longest key.
const KEY_LEN_MAX: usize = 255;

pub(super) async fn publish(mut call: Call) -> Result<Answer, Fault> {
    let metadata = tags::read(&call)?;
    let path = document_path(&call)?;
    call.check(Operation::Publish, &path)?;
    let upload = upload::receive(&mut call, BODY_LEN_MAX).await?;
    if upload.bytes.is_empty() {
        let detail = "a document has a body; POST ?unarchive makes an archived one live again";
        return Err(Fault::detailed(Code::BadDocument, detail));
    }
    run(call, Verb::Publish, path, upload, metadata).await
}

pub(super) async fn change(mut call: Call) -> Result<Answer, Fault> {
    let verb = match (call.query.flag("append")?, call.query.flag("unarchive")?) {
        (true, false) => Verb::Append,
        (false, true) => Verb::Unarchive,
        _ => {
            let detail = "say either `append` or `unarchive`";
            return Err(Fault::detailed(Code::BadParameter, detail));
        }
    };
    let metadata = tags::read(&call)?;
    let path = document_path(&call)?;
    call.check(Operation::Publish, &path)?;
    let len_max = match verb {
        Verb::Append => BODY_LEN_MAX,
        _ => 0,
    };
    let upload = upload::receive(&mut call, len_max).await?;
    run(call, verb, path, upload, metadata).await
}

pub(super) async fn archive(mut call: Call) -> Result<Answer, Fault> {
    let path = document_path(&call)?;
    call.check(Operation::Publish, &path)?;
    let upload = upload::receive(&mut call, 0).await?;
    run(call, Verb::Archive, path, upload, Vec::new()).await
}

/// The document that is meant; a slash at its end makes it a directory, which nobody writes.
fn document_path(call: &Call) -> Result<DocPath, Fault> {
    let target = target(call)?;
    if target.trailing_slash {
        let detail = "a path that ends in a slash is a directory";
        return Err(Fault::detailed(Code::BadDocument, detail));
    }
    Ok(target.path)
}

async fn run(
    call: Call,
    verb: Verb,
    path: DocPath,
    upload: Upload,
    metadata: Vec<(String, String)>,
) -> Result<Answer, Fault> {
    let expect = call.query.number("expect", 0..=u64::MAX)?;
    let order = Order {
        verb,
        path,
        body: upload.bytes,
        metadata,
        conditions: Conditions::read(call.headers(), expect),
        caller: call.who.caller.clone(),
    };
    let key = key(&call)?;
    let turn = call.turn().await?;
    let face = call.face.clone();
    let place = upload.place;
    let world = World::of(&face);
    let keys = face.keys.clone();
    let writing = tokio::task::spawn_blocking(move || {
        let _held = (turn, place);
        match key {
            Some(key) => once::run(&keys, key, &order, &world),
            None => order
                .run(&world)
                .map_err(Failed::Write)
                .map(|written| Answered {
                    kept: order::written(&order.path, &written),
                    replayed: false,
                }),
        }
    });
    let done = writing.await.map_err(|failure| {
        error!(%failure, "write a document");
        Fault::new(Code::Internal)
    })?;
    let Answered { kept, replayed } = done.map_err(|failed| match failed {
        Failed::Key(error) => refused(&face, &error),
        Failed::Write(fault) => fault,
    })?;
    if replayed {
        face.metrics.replayed.inc();
    }
    Ok(reply(&kept, replayed).into())
}

fn refused(face: &Face, error: &KeyError) -> Fault {
    match error {
        KeyError::Full => {
            face.metrics.refused(Limit::IdempotencyKeys);
            Fault::detailed(Code::Busy, error.to_string()).retry_after(RETRY_SOON)
        }
        KeyError::InProgress => Fault::new(Code::IdempotencyKeyInProgress).retry_after(RETRY_SOON),
        KeyError::Journal(cause) => {
            warn!(%cause, "note an idempotency key");
            Code::Unready.into()
        }
        KeyError::Reused => Code::IdempotencyKeyReused.into(),
        KeyError::Unknown => Code::OutcomeUnknown.into(),
    }
}

/// The digest of the key that was sent, if one was. Keys of one caller say nothing to another.
fn key(call: &Call) -> Result<Option<Digest>, Fault> {
    let mut fields = call.headers().get_all(KEY).iter();
    let Some(field) = fields.next() else {
        return Ok(None);
    };
    let text = field.to_str().ok().filter(|text| {
        (1..=KEY_LEN_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    });
    let (Some(text), None) = (text, fields.next()) else {
        return Err(Code::BadIdempotencyKey.into());
    };
    let grants = call.face.authority.current();
    // A renewed web token is the same caller.
    let owner = match (
        grants.label(&call.who.caller, call.face.now()),
        call.who.claims.subject(),
    ) {
        (Some(label), _) => format!("token {label}"),
        (None, Some(subject)) => format!("subject {subject}"),
        (None, None) => String::new(),
    };
    Ok(Some(once::key_digest(&owner, text)))
}

fn reply(kept: &Kept, replayed: bool) -> Response<Body> {
    let status = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
    let mut reply = answer::typed(status, JSON, Bytes::from(kept.body.clone()));
    let headers: &mut HeaderMap = reply.headers_mut();
    for (name, value) in &kept.fields {
        let field = (HeaderName::try_from(name), HeaderValue::try_from(value));
        if let (Ok(name), Ok(value)) = field {
            headers.insert(name, value);
        }
    }
    if replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    headers.insert(CONTENT_TYPE, JSON);
    reply
}
