//! Refusals that an EventSource survives, and the times after which clients come back.

use std::time::Duration;

use gate::spread;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use wire::sse;

use crate::answer::{self, Body};
use crate::face::Face;
use crate::fault::Fault;

/// A client that was turned away by a full server comes back after this, and up to four times it:
/// others were turned away in the same moment.
pub(super) const COME_BACK: Duration = Duration::from_secs(1);
pub(super) const COME_BACK_SPREAD: Duration = Duration::from_secs(4);

/// A client whose connection was cut comes back after this, spread over as much again.
const RETRY: Duration = Duration::from_secs(1);

/// When a client whose stream ends for no reason of its own should come back.
pub(crate) fn retry(face: &Face) -> Duration {
    RETRY + spread(face.ticket(), RETRY)
}

/// `fault` as a stream that ends, if it will be over in a while and a stream was asked for: a 429
/// or a 503 would make a reconnecting EventSource give up for ever (T10).
pub(crate) fn late(
    face: &Face,
    accept: Option<&HeaderValue>,
    fault: &Fault,
) -> Option<Response<Body>> {
    let status = fault.code.status();
    let is_temporary = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let wants_stream = accept.is_some_and(|accept| {
        accept
            .to_str()
            .is_ok_and(|accept| accept.contains("text/event-stream"))
    });
    if !is_temporary || !wants_stream {
        return None;
    }
    let after = fault.retry_after.unwrap_or(COME_BACK);
    let after = after + spread(face.ticket(), COME_BACK_SPREAD);
    let mut out = Vec::new();
    sse::retry(after, &mut out);
    sse::event("error", None, &fault.body().to_string(), &mut out);
    let mut reply = Response::new(answer::whole(out));
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Some(reply)
}
