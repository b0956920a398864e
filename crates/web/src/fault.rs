//! What can be wrong with a request: one table of codes, each with its status, cause and remedy.
//!
//! Every face of this crate names a refusal by the same code, and `docs/errors.md` has a row for
//! each. An answer says what is wrong in general (`message`), what to do (`fix`) and, where there
//! is more to say of this request, `detail`. Nothing internal is ever in one.

use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde_json::json;

macro_rules! codes {
    ($($name:ident $text:literal $status:ident $message:literal $fix:literal;)*) => {
        /// A stable name for what is wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Code { $(#[doc = $message] $name,)* }

        impl Code {
            /// Every code in the order of the table.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name in answers and in `docs/errors.md`.
            pub(crate) const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The status that it has over HTTP.
            pub(crate) const fn status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status,)* }
            }

            /// What is wrong.
            pub(crate) const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }

            /// What to do about it.
            pub(crate) const fn fix(self) -> &'static str {
                match self { $(Self::$name => $fix,)* }
            }
        }
    };
}

codes! {
    Archived "archived" CONFLICT
        "the document is archived"
        "unarchive it first with POST ?unarchive, or read a version with ?version=";
    BadBody "bad-body" BAD_REQUEST
        "the body can't be read as what this route takes"
        "see /v1/docs for the body of this route";
    BadDocument "bad-document" UNPROCESSABLE_ENTITY
        "the document breaks the contract of a document"
        "change what the detail names";
    BadFrame "bad-frame" BAD_REQUEST
        "the frame can't be read"
        "send one JSON object of the sync protocol; see docs/protocol/sync.md";
    BadHost "bad-host" BAD_REQUEST
        "the request does not name one host"
        "send one Host field";
    BadIdempotencyKey "bad-idempotency-key" BAD_REQUEST
        "the Idempotency-Key can't be used"
        "send one header of 1 to 255 printable ASCII characters";
    BadParameter "bad-parameter" BAD_REQUEST
        "a parameter can't be used"
        "correct the parameter that the detail names";
    BadPath "bad-path" BAD_REQUEST
        "the path can't be read"
        "percent-encode the path once, as UTF-8";
    BadRequest "bad-request" BAD_REQUEST
        "the request breaks the grammar of HTTP"
        "correct the client, or what changes its requests on the way";
    BadScope "bad-scope" BAD_REQUEST
        "the scope can't be watched"
        "write it as `doc:/notes/` or `channel:room?id=42`";
    Busy "busy" SERVICE_UNAVAILABLE
        "the server works on as much as it may at once"
        "come back after the time in Retry-After";
    Collision "collision" CONFLICT
        "another document or directory is in the way"
        "choose a path that is not above or below a document";
    ConditionFailed "condition-failed" PRECONDITION_FAILED
        "the document is not at the version that the request names"
        "read it again and apply the change to what is there";
    Draining "draining" SERVICE_UNAVAILABLE
        "the server is about to leave"
        "come back after the time in Retry-After";
    Encoded "encoded-body" UNSUPPORTED_MEDIA_TYPE
        "the body is compressed"
        "send the body as it is, without Content-Encoding";
    ForeignHost "foreign-host" MISDIRECTED_REQUEST
        "a development server answers to the names of this machine only"
        "use localhost or 127.0.0.1, or run with tokens instead of --dev";
    ForeignOrigin "foreign-origin" FORBIDDEN
        "a page of another origin may not use this server"
        "add the page's origin to `serve.origins`";
    HeadTooLarge "head-too-large" REQUEST_HEADER_FIELDS_TOO_LARGE
        "the head of the request has too many fields or bytes"
        "send fewer or shorter header fields";
    HelloRequired "hello-required" BAD_REQUEST
        "a socket says hello first"
        "send {\"t\":\"hello\",\"v\":1} before anything else";
    IdempotencyKeyInProgress "idempotency-key-in-progress" CONFLICT
        "the first request with this Idempotency-Key still runs"
        "repeat the request when that one is done";
    IdempotencyKeyReused "idempotency-key-reused" CONFLICT
        "this Idempotency-Key was used with another request"
        "use a fresh key for another request";
    Internal "internal" INTERNAL_SERVER_ERROR
        "the server failed"
        "see the server's log";
    ManyFeeds "many-feeds" BAD_REQUEST
        "the scopes belong to different feeds, and one id can't say where all of them stand"
        "open a stream for each, or use the socket, where each has its own position";
    MethodNotAllowed "method-not-allowed" METHOD_NOT_ALLOWED
        "this route does not take the method"
        "use a method that Allow lists";
    NoTokens "no-tokens" FORBIDDEN
        "nothing can be written, for there are no tokens"
        "make one with `tidings token add`";
    NotFound "not-found" NOT_FOUND
        "there is nothing that may be seen at this path"
        "check the path, and whether the token may read there";
    NotPermitted "not-permitted" FORBIDDEN
        "the token does not allow this"
        "use a token that does; GET /v1/whoami tells what this one allows";
    OutcomeUnknown "outcome-unknown" CONFLICT
        "the server stopped while the first request with this key ran, and can't tell what became \
         of it"
        "look at the document, and use a fresh key if the write is still wanted";
    PolicyUndecided "policy-undecided" SERVICE_UNAVAILABLE
        "the policy of the channel could not decide"
        "try again";
    RateLimited "rate-limited" TOO_MANY_REQUESTS
        "there are too many requests"
        "come back after the time in Retry-After";
    SlowBody "slow-body" REQUEST_TIMEOUT
        "the body did not arrive in time"
        "send it again over a better line";
    StorageFull "storage-full" INSUFFICIENT_STORAGE
        "there is no room to store this"
        "ask the operator for room";
    SubscriptionLimit "subscription-limit" TOO_MANY_REQUESTS
        "there are as many subscriptions as there may be"
        "unsubscribe from what is no longer needed";
    SubscriptionTaken "subscription-taken" CONFLICT
        "a subscription of this scope is being decided"
        "wait for the answer to the first one";
    TooLarge "too-large" PAYLOAD_TOO_LARGE
        "the body is longer than the limit"
        "send less; the detail names the limit";
    Unauthorized "unauthorized" UNAUTHORIZED
        "this needs a token"
        "send Authorization: Bearer with a token that is in force";
    UndeclaredEvent "undeclared-event" BAD_REQUEST
        "the channel has no such event"
        "add the event to the channel's events";
    UnknownFrame "unknown-frame" BAD_REQUEST
        "the kind of the frame is not known"
        "see docs/protocol/sync.md for the kinds";
    UnknownParameter "unknown-parameter" BAD_REQUEST
        "a parameter is not known here"
        "leave it out; /v1/docs lists the parameters of each route";
    UnknownVersion "unknown-version" BAD_REQUEST
        "this version of the sync protocol is not spoken"
        "speak version 1";
    Unready "unready" SERVICE_UNAVAILABLE
        "the server can't write any more until it is restarted"
        "tell the operator";
    UpgradeRequired "upgrade-required" UPGRADE_REQUIRED
        "this path is for WebSocket"
        "open it with a WebSocket client";
    UriTooLong "uri-too-long" URI_TOO_LONG
        "the target of the request is too long"
        "ask for less at once";
}

/// A refusal of one request.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) code: Code,
    /// More of this request, in a form that may be shown to whoever sent it.
    pub(crate) detail: Option<String>,
    /// When to come back.
    pub(crate) retry_after: Option<Duration>,
    /// Header fields of the answer beyond the usual ones, such as `Allow`.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

/// The longest detail. Whatever a client sent may stand in one, so it is cut.
const DETAIL_LEN_MAX: usize = 512;

impl Fault {
    pub(crate) fn new(code: Code) -> Self {
        let bearer = || (WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        let is_unknown = code == Code::Unauthorized;
        Self {
            code,
            detail: None,
            retry_after: None,
            headers: is_unknown.then(bearer).into_iter().collect(),
        }
    }

    pub(crate) fn detailed(code: Code, detail: impl Into<String>) -> Self {
        let mut detail = detail.into();
        detail.truncate(detail.floor_char_boundary(DETAIL_LEN_MAX));
        Self {
            detail: Some(detail),
            ..Self::new(code)
        }
    }

    /// The same with a time to come back. It is rounded up to whole seconds in the header; the
    /// body has the milliseconds.
    pub(crate) fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The body of the answer.
    pub(crate) fn body(&self) -> serde_json::Value {
        let mut error = json!({
            "code": self.code.as_str(),
            "message": self.code.message(),
            "fix": self.code.fix(),
        });
        if let Some(detail) = &self.detail {
            error["detail"] = detail.as_str().into();
        }
        if let Some(after) = self.retry_after {
            error["retry_after_ms"] = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).into();
        }
        json!({ "error": error })
    }

    /// The header fields of the answer, `Retry-After` among them.
    pub(crate) fn fields(&self) -> HeaderMap {
        let mut headers: HeaderMap = self.headers.iter().cloned().collect();
        if let Some(after) = self.retry_after {
            let seconds = after.as_millis().div_ceil(1_000).max(1);
            if let Ok(value) = HeaderValue::try_from(seconds.to_string()) {
                headers.insert(RETRY_AFTER, value);
            }
        }
        headers
    }
}

impl From<Code> for Fault {
    fn from(code: Code) -> Self {
        Self::new(code)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_code_has_its_row_in_the_documents() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
        let documented = fs::read_to_string(path).unwrap();
        for code in Code::ALL {
            let (name, status) = (code.as_str(), code.status().as_u16());
            let (message, fix) = (code.message(), code.fix());
            let row = format!("| `{name}` | {status} | {message} | {fix} |");
            assert!(documented.contains(&row), "docs/errors.md lacks\n{row}");
        }
    }

    // T67
    #[test]
    fn a_detail_is_cut_where_a_character_begins() {
        let fault = Fault::detailed(Code::NotFound, "é".repeat(DETAIL_LEN_MAX));
        let detail = fault.detail.unwrap();
        assert_eq!(detail.len(), DETAIL_LEN_MAX);
    }
}
