//! What a handler gives back: a reply, or the wish to hold the stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Frame, SizeHint};
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::fault::Fault;
use crate::held::Holder;

/// The body of a reply: whole, or a stream that is written as it comes.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What becomes of a request.
pub(crate) enum Answer {
    /// The connection is taken out of HTTP, see [`crate::held`]. Only for calls that say
    /// [`can_be_held`](crate::call::Call::can_be_held).
    Hold(Holder),
    /// An answer in the usual way.
    Reply(Response<Body>),
}

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Nothing of ours may be kept without asking again, and nothing on the way may change it: a
/// rewritten body would no longer be what its ETag names.
pub(crate) const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache, no-transform");

/// Every answer of ours has it: a body must not be taken for something else than it says.
pub(crate) const NOSNIFF: (HeaderName, HeaderValue) =
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));

/// A body that is there already.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// No body.
pub(crate) fn nothing() -> Body {
    Empty::new().boxed_unsync()
}

/// An answer with `value` as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    // Our own values have no keys but texts, so it can't fail.
    let text = serde_json::to_vec(value).unwrap_or_default();
    typed(status, JSON, text)
}

/// An answer with a body of the type `kind`.
pub(crate) fn typed(
    status: StatusCode,
    kind: HeaderValue,
    bytes: impl Into<Bytes>,
) -> Response<Body> {
    let mut reply = Response::new(whole(bytes));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, REVALIDATE);
    reply
}

/// An answer with a page of ours: its own styles and scripts, and nothing from elsewhere.
pub(crate) fn page(html: Bytes) -> Response<Body> {
    const POLICY: HeaderValue = HeaderValue::from_static(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
    let mut reply = typed(StatusCode::OK, HTML, html);
    reply.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY);
    reply
}

/// An answer of a head alone.
pub(crate) fn bare(status: StatusCode, headers: HeaderMap) -> Response<Body> {
    let mut reply = Response::new(nothing());
    *reply.status_mut() = status;
    *reply.headers_mut() = headers;
    reply
}

/// The answer that tells `fault`.
pub(crate) fn refusal(fault: &Fault) -> Response<Body> {
    let mut reply = json(fault.code.status(), &fault.body());
    reply.headers_mut().extend(fault.fields());
    let no_store = HeaderValue::from_static("no-store");
    reply.headers_mut().insert(CACHE_CONTROL, no_store);
    reply
}

impl From<Response<Body>> for Answer {
    fn from(reply: Response<Body>) -> Self {
        Self::Reply(reply)
    }
}

impl From<Fault> for Answer {
    fn from(fault: Fault) -> Self {
        Self::Reply(refusal(&fault))
    }
}

/// A body of pieces that somebody sends. It ends when the sender is dropped.
pub(crate) fn arriving(pieces: mpsc::Receiver<Bytes>) -> Body {
    Arriving(pieces).boxed_unsync()
}

struct Arriving(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Arriving {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(cx);
        piece.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A body together with something that is dropped with it.
pub(crate) fn keeping(body: Body, kept: impl Send + Unpin + 'static) -> Body {
    Keeping { body, _kept: kept }.boxed_unsync()
}

struct Keeping<T> {
    body: Body,
    _kept: T,
}

impl<T: Unpin> hyper::body::Body for Keeping<T> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
