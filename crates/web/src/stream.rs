//! `GET /v1/watch`: changes as server-sent events, or as lines of JSON.
//!
//! One stream follows one or several scopes of one feed; its ids are positions that say where all
//! of them stand, so that a client that comes back with the last one misses nothing and is told
//! what it did (P3, P5). The first event says where the stream begins, at once; then comes every
//! change, a gap where something was missed, and a beat when nothing happens.
//!
//! A reconnecting EventSource gives up for ever when it is answered with an error, so whatever may
//! be over in a while is told it inside of a stream that ends, with the time to come back (T10).
//!
//! On plain HTTP/1 the stream is handed to the [fan-out](crate::fanout) with its socket; over TLS
//! and on HTTP/2 it is a body ([`body`]) that a task of its own writes.

mod admission;
mod batch;
mod body;
mod channel;
mod documents;
mod limits;
mod metrics;
mod plan;
mod reader;
mod refusal;
mod streams;
mod voice;

use hyper::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode, Version};

use crate::answer::{self, Answer};
use crate::call::Call;
use crate::fanout::{Arrival, Fanout, Io, Then, Ties};
use crate::fault::{Code, Fault};
use crate::held::Held;
use crate::route::{BLANK, Content, Parameter, Reply, Route, Shape};

pub use limits::StreamLimits;
pub use streams::StreamConfig;

pub(crate) use admission::{Admitted, admit};
pub(crate) use batch::Batch;
pub(crate) use body::{beginning, tell_roster};
pub(crate) use channel::{Channel, roster_object};
pub(crate) use documents::Documents;
pub(crate) use metrics::{FrameKind, StreamMetrics};
pub(crate) use plan::{Plan, Since, Source, refused};
pub(crate) use reader::{Feeds, Left, Mode, Reader, Rights};
pub(crate) use refusal::{late, retry};
pub(crate) use streams::Streams;
pub(crate) use voice::{Farewell, Miss, Scopes, Voice, millis};

pub(crate) const ROUTES: &[Route] = &[Route {
    template: "/v1/watch",
    id: "watch",
    summary: "Changes as they happen",
    about: "Follows scopes of one feed and tells every change as a server-sent event, or as a line \
            of JSON if `Accept` says `application/x-ndjson`. The id of an event is the position to \
            come back with.",
    parameters: &[
        Parameter::query(
            "scope",
            Shape::List,
            "What to follow: `doc:/notes/`, `channel:room?id=1`.",
        )
        .required(),
        Parameter::query(
            "since",
            Shape::Text,
            "The position to go on from, in either spelling.",
        ),
        Parameter::query("last_event_id", Shape::Text, "Another name of `since`."),
        Parameter::query("lastEventId", Shape::Text, "Another name of `since`."),
        Parameter::query("lastEventID", Shape::Text, "Another name of `since`."),
        Parameter::query(
            "token",
            Shape::Text,
            "A token, where the server is set to take it here.",
        ),
        Parameter::query(
            "min_gap_ms",
            Shape::Integer(0, Some(60_000)),
            "The least time between two events; changes of one document are merged meanwhile.",
        ),
        Parameter::header(
            "Last-Event-ID",
            "The position to go on from; it goes before `since`.",
        ),
    ],
    answers: &[Reply {
        status: 200,
        about: "The stream.",
        content: &[
            Content::text("text/event-stream"),
            Content::text("application/x-ndjson"),
        ],
        headers: &["Tidings-Cursor"],
    }],
    errors: &[Code::BadParameter, Code::ManyFeeds],
    admit: Some(|face, _| admit(face).map(Some)),
    handler: |call| Box::pin(watch(call)),
    ..BLANK
}];

/// How a proxy on the way is told to pass on what comes at once.
const UNBUFFERED: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-accel-buffering"),
    HeaderValue::from_static("no"),
);

async fn watch(mut call: Call) -> Result<Answer, Fault> {
    let voice = voice(call.headers());
    let plan = plan::make(&call, voice).await?;
    let mut headers = HeaderMap::new();
    headers.insert(hyper::header::CONTENT_TYPE, content_type(voice));
    headers.insert(hyper::header::CACHE_CONTROL, answer::REVALIDATE);
    headers.insert(UNBUFFERED.0, UNBUFFERED.1);
    if call.head.method == Method::HEAD {
        return Ok(answer::bare(StatusCode::OK, headers).into());
    }
    let admitted = call.admitted.take().ok_or(Code::Internal)?;
    if !call.can_be_held() {
        return body::answer(&call.face, plan, headers, admitted);
    }
    let face = call.face.clone();
    let held_token = face.held.token();
    Ok(Answer::Hold(Box::new(move |held: Held| {
        headers.extend(held.headers);
        let arrival = Arrival {
            io: Io::plain(held.io),
            read: held.read_buf,
            head: head(&face, &headers),
            then: Then::Watch(Box::new(plan)),
            ties: Ties::new(held.place, held.seat, held_token, admitted),
        };
        Fanout::hand_over(&face, arrival);
    })))
}

/// The kind of stream that is asked for.
fn voice(headers: &HeaderMap) -> Voice {
    let accepts = |kind: &str| {
        let fields = headers.get_all(ACCEPT).iter();
        let mut kinds = fields
            .filter_map(|field| field.to_str().ok())
            .flat_map(|it| it.split(','));
        kinds.any(|it| {
            it.split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .eq_ignore_ascii_case(kind)
        })
    };
    if accepts("application/x-ndjson") && !accepts("text/event-stream") {
        Voice::Lines
    } else {
        Voice::Sse
    }
}

fn content_type(voice: Voice) -> HeaderValue {
    HeaderValue::from_static(match voice {
        Voice::Lines => "application/x-ndjson",
        Voice::Socket | Voice::Sse => "text/event-stream",
    })
}

/// The head of an answer that ends with its connection.
fn head(face: &crate::face::Face, headers: &HeaderMap) -> Vec<u8> {
    let date = face.now().strftime("%a, %d %b %Y %H:%M:%S GMT");
    let mut head = format!("{:?} 200 OK\r\ndate: {date}\r\n", Version::HTTP_11).into_bytes();
    write_fields(headers, &mut head);
    head.extend_from_slice(b"connection: close\r\n\r\n");
    head
}

/// Appends the fields of a head.
pub(crate) fn write_fields(headers: &HeaderMap, head: &mut Vec<u8>) {
    for (name, value) in headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
}
