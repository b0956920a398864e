//! Channels over HTTP: publishing an event, and reading who is there.
//!
//! Who publishes by the channel's policy is heard as on a socket. The application itself needs no
//! policy: it shows a capability token that may publish everything, or asks a development server.
//! What is not declared and what is denied are one refusal (C19). An event is published once per
//! request that reaches us; whoever repeats one whose answer was lost may publish it twice.

use auth::Pattern;
use channels::limits::PAYLOAD_LEN_MAX;
use channels::{Decision, Hub, Payload, PayloadError, Right};
use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use wire::{ChannelScope, DocPath, with_scope};

use crate::answer::{self, Answer, JSON};
use crate::call::Call;
use crate::fault::{Code, Fault};
use crate::route::{BLANK, Content, Parameter, Reply, Route};
use crate::stream::{refused, roster_object};
use crate::upload;

/// The largest data, and the names around it.
const BODY_LEN_MAX: usize = PAYLOAD_LEN_MAX + 1_024;

const NAME: Parameter = Parameter::path("name", "The channel.");

const ABOUT: &str = "The params of the channel stand in the query.";

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::POST,
        template: "/v1/channels/{name}",
        id: "publishEvent",
        summary: "Publish an event on a channel",
        about: ABOUT,
        parameters: &[NAME],
        open_query: true,
        body: Some(Content::json("Event")),
        answers: &[Reply {
            status: 200,
            about: "It was published; with its position, if the channel keeps a history.",
            content: &[Content::json("Published")],
            headers: &[],
        }],
        errors: &[
            Code::BadBody,
            Code::NotPermitted,
            Code::PolicyUndecided,
            Code::TooLarge,
            Code::UndeclaredEvent,
        ],
        handler: |call| Box::pin(publish(call)),
        ..BLANK
    },
    Route {
        template: "/v1/channels/{name}/presence",
        id: "readRoster",
        summary: "Who follows a channel",
        about: ABOUT,
        parameters: &[NAME],
        open_query: true,
        answers: &[Reply {
            status: 200,
            about: "At most 256 members, and how many there are in all.",
            content: &[Content::json("Roster")],
            headers: &[],
        }],
        errors: &[Code::NotFound, Code::NotPermitted, Code::PolicyUndecided],
        handler: |call| Box::pin(roster(call)),
        ..BLANK
    },
];

/// What is published.
#[derive(Debug, Deserialize)]
struct Order {
    event: String,
    /// Any JSON; what is left out is `null`.
    data: Option<Box<RawValue>>,
}

async fn publish(mut call: Call) -> Result<Answer, Fault> {
    let (hub, scope) = place(&call)?;
    may(&call, &hub, Right::Publish, &scope).await?;
    let upload = upload::receive(&mut call, BODY_LEN_MAX).await?;
    let order: Order = serde_json::from_slice(&upload.bytes)
        .map_err(|error| Fault::detailed(Code::BadBody, error.to_string()))?;
    let data = order.data.as_deref().map_or("null", RawValue::get);
    let data = Payload::parse(data.as_bytes()).map_err(unfit)?;
    let now = call.face.streams.now();
    let published = hub
        .publish(&scope, &order.event, data, now)
        .map_err(refused)?;
    let cursor = published.cursor.map(|cursor| cursor.to_string().into());
    let answer: Map<String, Value> = cursor
        .map(|cursor| ("cursor".to_owned(), cursor))
        .into_iter()
        .collect();
    Ok(answer::json(StatusCode::OK, &answer).into())
}

async fn roster(call: Call) -> Result<Answer, Fault> {
    let (hub, scope) = place(&call)?;
    may(&call, &hub, Right::Join, &scope).await?;
    let topic = hub.topic(&scope).map_err(refused)?;
    if !topic.declaration().has_presence() {
        let detail = "members of this channel are not told of each other";
        return Err(Fault::detailed(Code::NotFound, detail));
    }
    let Some(roster) = hub.roster(&topic) else {
        let nobody = json!({ "kind": "sync", "members": [], "total": 0, "scope": topic.as_str() });
        return Ok(answer::json(StatusCode::OK, &nobody).into());
    };
    let mut body = Vec::new();
    with_scope(&roster_object(&roster), topic.as_str(), &mut body);
    Ok(answer::typed(StatusCode::OK, JSON, body).into())
}

/// The channel that a request names, declared or not.
fn place(call: &Call) -> Result<(Hub, ChannelScope), Fault> {
    let hub = call.face.streams.channels.clone();
    let scope = ChannelScope::new(call.param("name"), call.query.pairs());
    hub.zip(scope.ok()).ok_or_else(|| Code::NotPermitted.into())
}

/// Asks for a right; for publishing, whether it is the application itself that asks.
async fn may(call: &Call, hub: &Hub, right: Right, scope: &ChannelScope) -> Result<(), Fault> {
    let decision = hub
        .decide(right, scope, &call.who.claims)
        .map_err(refused)?;
    if is_application(call) {
        return Ok(());
    }
    let verdict = match decision {
        Decision::Made(verdict) => verdict,
        Decision::Ask(question) => call.face.streams.asker.ask(&question, &call.who).await,
    };
    hub.permit(verdict).map_err(refused)
}

/// True for whoever may publish everything.
fn is_application(call: &Call) -> bool {
    let grants = call.face.authority.current();
    let allowed = grants.allowed(&call.who.caller, call.face.now());
    let covers_all = |pattern: &Pattern| pattern.covers_below(&DocPath::root());
    grants.is_dev() || allowed.is_some_and(|allowed| allowed.publish.iter().any(covers_all))
}

fn unfit(error: PayloadError) -> Fault {
    let code = match error {
        PayloadError::TooLong => Code::TooLarge,
        _ => Code::BadBody,
    };
    Fault::detailed(code, error.to_string())
}
