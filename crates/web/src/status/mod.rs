//! The page that shows live what the server does, and the stream behind it.
//!
//! The page is one file of ours with nothing from elsewhere. What it shows comes from
//! `/v1/status/stream`, server-sent events with one sample a second while somebody looks; a sample
//! reads counters and costs nothing otherwise. The page itself says nothing of the server, so
//! anyone may have it. The stream is for whoever asks from this very machine, or shows a token that
//! may read everything.

mod sample;

use std::sync::Arc;
use std::time::Duration;

use auth::Operation;
use bytes::Bytes;
use gate::Phase;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use wire::{DocPath, DocumentScope};

use crate::answer::{self, Answer, REVALIDATE};
use crate::call::{Call, RETRY_SOON};
use crate::face::Face;
use crate::fault::{Code, Fault};
use crate::origin;
use crate::route::{BLANK, Content, Reply, Route};
use sample::Sample;

pub(crate) use sample::Began;

const PAGE: &str = include_str!("page.html");

/// How often a sample is told.
const INTERVAL: Duration = Duration::from_secs(1);

/// Looks at once: some people and their tabs.
pub(crate) const VIEWERS_MAX: usize = 32;

/// Samples that wait for their reader; whoever takes none for so long sees the next ones late.
const WAITING_MAX: usize = 2;

/// Fields that a proxy adds: who asks then is not on this machine.
const FORWARDING: [HeaderName; 4] = [
    HeaderName::from_static("forwarded"),
    HeaderName::from_static("via"),
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-real-ip"),
];

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

pub(crate) const ROUTES: &[Route] = &[
    Route {
        template: "/",
        id: "root",
        summary: "Leads to the status page",
        answers: &[Reply {
            status: 307,
            about: "Where to look.",
            content: &[],
            headers: &["Location"],
        }],
        handler: |_| Box::pin(async { Ok(to_page()) }),
        ..BLANK
    },
    Route {
        template: "/status",
        id: "statusPage",
        summary: "A page that shows what the server does",
        answers: &[Reply {
            status: 200,
            about: "The page.",
            content: &[Content::text("text/html")],
            headers: &[],
        }],
        handler: |_| Box::pin(async { Ok(page()) }),
        ..BLANK
    },
    Route {
        template: "/v1/status/stream",
        id: "watchStatus",
        summary: "What the server does, once a second",
        about: "Server-sent events of the kind `sample`. For whoever asks from this machine \
                itself, or with a token that may read everything.",
        answers: &[Reply {
            status: 200,
            about: "The stream.",
            content: &[Content::text("text/event-stream")],
            headers: &[],
        }],
        errors: &[Code::NotPermitted],
        handler: |call| Box::pin(async move { watch(&call) }),
        ..BLANK
    },
];

fn to_page() -> Answer {
    let mut headers = HeaderMap::new();
    headers.insert(LOCATION, HeaderValue::from_static("/status"));
    answer::bare(StatusCode::TEMPORARY_REDIRECT, headers).into()
}

fn page() -> Answer {
    answer::page(Bytes::from_static(PAGE.as_bytes())).into()
}

fn watch(call: &Call) -> Result<Answer, Fault> {
    may_look(call)?;
    if call.face.phase() != Phase::Serving {
        return Err(Fault::new(Code::Draining).retry_after(RETRY_SOON));
    }
    let viewers = call.face.viewers.clone();
    let seat = viewers
        .try_acquire_owned()
        .map_err(|_| Fault::new(Code::Busy).retry_after(RETRY_SOON))?;
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let face = call.face.clone();
    call.face.held.spawn(async move {
        tell(&face, &sender).await;
        drop(seat);
    });
    let mut reply = Response::new(answer::arriving(receiver));
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, REVALIDATE);
    Ok(reply.into())
}

/// True for whoever sits at this machine: neither through a proxy nor under another name.
fn is_here(call: &Call) -> bool {
    let headers = call.headers();
    let host = origin::host(&call.head).ok().flatten();
    call.peer.addr.ip().to_canonical().is_loopback()
        && host.as_ref().is_none_or(origin::is_of_this_machine)
        && !origin::is_foreign(host.as_ref(), headers, &call.face.origins)
        && !FORWARDING.iter().any(|name| headers.contains_key(name))
}

fn may_look(call: &Call) -> Result<(), Fault> {
    if is_here(call) {
        return Ok(());
    }
    let grants = call.face.authority.current();
    if !grants.knows(&call.who.caller, call.face.now()) {
        return Err(Code::Unauthorized.into());
    }
    let everything = DocumentScope {
        path: DocPath::root(),
        subtree: true,
    };
    grants
        .check_scope(&call.who.caller, &everything, call.face.now())
        .map_err(crate::call::denied)?;
    call.check(Operation::Read, &everything.path)
}

/// Sends samples until the viewer or the server leaves.
async fn tell(face: &Arc<Face>, sender: &mpsc::Sender<Bytes>) {
    let mut signal = face.signal.subscribe();
    let leaving = async {
        let seen = signal
            .wait_for(|signal| signal.phase != Phase::Serving)
            .await;
        drop(seen);
    };
    let telling = async {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let event = format!("event: sample\ndata: {}\n\n", Sample::of(face).to_json());
            if sender.send(event.into()).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = telling => {}
        () = sender.closed() => {}
        () = leaving => {
            let goodbye = Bytes::from_static(b"event: closing\ndata: {}\n\n");
            // A viewer that takes nothing finds the end of the stream all the same.
            let _ = sender.try_send(goodbye);
        }
    }
}
