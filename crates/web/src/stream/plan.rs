//! What a stream asks for, decided before anything is held for it.

use auth::WatchRight;
use channels::{Reservation, Reserved, Verdict};
use hyper::header::HeaderName;
use std::sync::Arc;
use std::time::Duration;
use wire::{Cursor, DocumentScope, Scope};

use super::reader::SCOPES_MAX;
use super::voice::{Scopes, Voice};
use crate::call::{self, Call};
use crate::fanout::Manner;
use crate::fault::{Code, Fault};

/// The names under which a position comes in a query: those of clients that can't set a header.
const SINCE: [&str; 4] = ["since", "last_event_id", "lastEventId", "lastEventID"];

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// A stream that may be had.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) manner: Manner,
    pub(crate) source: Source,
    pub(crate) since: Since,
}

/// What is followed.
#[derive(Debug)]
pub(crate) enum Source {
    /// A topic of a channel.
    Channel(Box<Joining>),
    /// Documents, by their scopes in order.
    Documents(Vec<WatchRight>),
}

/// A seat that was granted and not yet taken.
#[derive(Debug)]
pub(crate) struct Joining {
    pub(crate) socket: channels::Socket,
    pub(crate) reservation: Reservation,
    pub(crate) verdict: Verdict,
}

/// Where a watch begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// After this.
    After(Cursor),
    /// Now.
    Head,
    /// Something was sent that is no position: the watch begins now, with a gap.
    Malformed,
}

impl Since {
    /// Reads either spelling of a position.
    pub(crate) fn parse(text: &str) -> Self {
        let cursor = text.parse().or_else(|_| Cursor::from_event_id(text));
        cursor.map_or(Self::Malformed, Self::After)
    }
}

/// Decides what `call` may follow.
pub(super) async fn make(call: &Call, voice: Voice) -> Result<Plan, Fault> {
    let scopes = scopes(call)?;
    let since = since(call)?;
    let min_gap = call.query.number("min_gap_ms", 0..=u64::MAX)?.unwrap_or(0);
    let manner = |scopes: Scopes| Manner {
        voice,
        scopes,
        caller: call.who.caller.clone(),
        min_gap: Duration::from_millis(min_gap).min(call.face.limits.streams.min_gap_max),
    };
    if let [Scope::Channel(scope)] = &scopes[..] {
        let joining = join(call, scope).await?;
        let text = Arc::from(joining.reservation.topic().as_str());
        return Ok(Plan {
            manner: Manner {
                caller: auth::Caller::anonymous(),
                min_gap: Duration::ZERO,
                ..manner(Arc::from([text]))
            },
            source: Source::Channel(Box::new(joining)),
            since,
        });
    }
    let mut rights = Vec::new();
    let mut texts: Vec<Arc<str>> = Vec::new();
    for scope in scopes {
        let Scope::Document(scope) = scope else {
            return Err(Fault::detailed(
                Code::ManyFeeds,
                "a channel has positions of its own: give it a stream of its own",
            ));
        };
        let text = Arc::from(Scope::Document(scope.clone()).to_string());
        if !texts.contains(&text) {
            texts.push(text);
            rights.push(right(call, scope)?);
        }
    }
    Ok(Plan {
        manner: manner(texts.into()),
        source: Source::Documents(rights),
        since,
    })
}

fn scopes(call: &Call) -> Result<Vec<Scope>, Fault> {
    let bad = |detail: String| Fault::detailed(Code::BadParameter, detail);
    let texts: Vec<&str> = call.query.all("scope").collect();
    if texts.is_empty() {
        return Err(bad("`scope` is missing".to_owned()));
    }
    if texts.len() > SCOPES_MAX {
        return Err(bad(format!(
            "one stream follows at most {SCOPES_MAX} scopes"
        )));
    }
    let read = |text: &&str| {
        text.parse()
            .map_err(|error| bad(format!("`{text}`: {error}")))
    };
    texts.iter().map(read).collect()
}

/// The header goes before the query: a browser sends it with what the URL said at first.
fn since(call: &Call) -> Result<Since, Fault> {
    if let Some(id) = call.headers().get(LAST_EVENT_ID)
        && !id.is_empty()
    {
        return Ok(id.to_str().map_or(Since::Malformed, Since::parse));
    }
    for name in SINCE {
        if let Some(text) = call.query.one(name)?.filter(|text| !text.is_empty()) {
            return Ok(Since::parse(text));
        }
    }
    Ok(Since::Head)
}

fn right(call: &Call, scope: DocumentScope) -> Result<WatchRight, Fault> {
    let grants = call.face.authority.current();
    WatchRight::admit(&grants, call.who.caller.clone(), scope, call.face.now())
        .map_err(call::denied)
}

async fn join(call: &Call, scope: &wire::ChannelScope) -> Result<Joining, Fault> {
    let face = &call.face;
    let hub = face.streams.channels.as_ref().ok_or(Code::NotPermitted)?;
    let who = &call.who;
    let session = face.streams.session();
    let socket = hub.open(&session, who.claims.clone());
    let reserved = socket.reserve(scope, face.streams.now()).map_err(refused)?;
    let Reserved::New(reservation) = reserved else {
        return Err(Code::Internal.into());
    };
    let verdict = match reservation.decide() {
        channels::Decision::Made(verdict) => verdict,
        channels::Decision::Ask(question) => face.streams.asker.ask(&question, who).await,
    };
    hub.permit(verdict).map_err(refused)?;
    Ok(Joining {
        socket,
        reservation,
        verdict,
    })
}

/// A refusal of the channels as a fault.
pub(crate) fn refused(refusal: channels::Refusal) -> Fault {
    use channels::Refusal;
    match refusal {
        Refusal::NotPermitted => Code::NotPermitted.into(),
        Refusal::Leaving => Code::Draining.into(),
        Refusal::Dropped | Refusal::Taken => Code::SubscriptionTaken.into(),
        Refusal::NodeTopics | Refusal::SocketTopics => Code::SubscriptionLimit.into(),
        Refusal::Undecided => Fault::new(Code::PolicyUndecided).retry_after(call::RETRY_SOON),
        Refusal::UndeclaredEvent => Code::UndeclaredEvent.into(),
    }
}
