//! WATCH: a stream on which a client is told of changes until one side ends it.
//!
//! [`open`] decides who may watch; a [`Serving`] task per connection does the telling. A watch is
//! admitted if its token, or the public, could read anything in its scope. From then on it holds a
//! place among the world's and the connection's watches and no request slot.
//!
//! What a watcher may rely on: the acknowledgement comes first and every later change in scope
//! follows it in order, each checked against the grants of its moment (P7, P10); what is missed is
//! told by a last `resync` block with the reason and the position to go on from (P3); 20 s after
//! the last block comes one with the position, so silence means that nothing happened. Changes
//! that may not be read are left out without a trace, and the position moves past them.
//!
//! A client that doesn't read costs its place and nothing else: its watch keeps a position in the
//! ring, its neighbours on the connection go on, and it ends when a block isn't taken in time. A
//! task per watch was rejected: a hundred wakes per change and connection instead of one.

mod block;
mod serving;
mod stream;
mod wakes;

use std::sync::Arc;

use auth::WatchRight;
use gate::Phase;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wire::{Cursor, DocumentScope, Request, Response, Verb};

use crate::connection::{Client, OpenStream};
use crate::face::Face;
use crate::handler::{self, bad_request, denied, reserved_hash};
use crate::limits::Limit;
use crate::reply::Reply;
use crate::request::{rate_limited, send};

pub(crate) use serving::Serving;

/// An admitted watch on its way to the task that serves it.
#[derive(Debug)]
pub(crate) struct Opening {
    reply: Reply,
    right: WatchRight,
    since: Option<Cursor>,
    seats: Seats,
}

/// What a watch occupies for as long as it runs.
#[derive(Debug)]
struct Seats {
    _of_connection: OwnedSemaphorePermit,
    _of_world: OwnedSemaphorePermit,
    _stream: OpenStream,
}

/// Admits the watch that `request` asks for, or answers with the refusal.
pub(crate) async fn open(
    request: Request,
    mut reply: Reply,
    stream: OpenStream,
    client: &Arc<Client>,
) {
    let face = &client.face;
    let admitted = admit(&request, face).and_then(|(right, since)| {
        let seats = seats(client, stream)?;
        Ok((right, since, seats))
    });
    let verb = Verb::Watch.as_str();
    match admitted {
        Ok((right, since, seats)) => {
            face.metrics.answered(verb, "ok");
            client.grow();
            client
                .open_watch(Opening {
                    reply,
                    right,
                    since,
                    seats,
                })
                .await;
        }
        Err(refusal) => {
            face.metrics.answered(verb, refusal.status.as_str());
            send(client, &mut reply, &with_message(refusal)).await;
        }
    }
}

/// Who may watch what, from where. Rights come before the cursor, so that a refusal says nothing
/// of positions.
fn admit(request: &Request, face: &Face) -> Result<(WatchRight, Option<Cursor>), Response> {
    let target = handler::target(request)?;
    if target.path.content_address().is_some() {
        return Err(reserved_hash());
    }
    let caller = handler::caller(&request.metadata);
    let scope = DocumentScope::from(target);
    let now = face.handler.now();
    let right = WatchRight::admit(&face.authority.current(), caller, scope, now).map_err(denied)?;
    let since = request.metadata.get("since").map(str::parse).transpose();
    let since = since.map_err(|_| bad_request("invalid since cursor"))?;
    if let Phase::Closing(window) = face.phase() {
        let after = window.returns_after(face.ticket()).as_millis();
        let refusal = rate_limited(face, Limit::Draining, "the server is leaving");
        return Err(refusal.with("retry-after", after.to_string()));
    }
    Ok((right, since))
}

fn seats(client: &Client, stream: OpenStream) -> Result<Seats, Response> {
    let face = &client.face;
    if face.memory.is_over() {
        return Err(rate_limited(face, Limit::Memory, "over the limit memory"));
    }
    let take = |places: &Arc<Semaphore>, limit: Limit| {
        places
            .clone()
            .try_acquire_owned()
            .map_err(|_| rate_limited(face, limit, &format!("over the limit {}", limit.as_str())))
    };
    Ok(Seats {
        _of_connection: take(&client.watches, Limit::WatchesPerConnection)?,
        _of_world: take(&face.watches, Limit::Watches)?,
        _stream: stream,
    })
}

/// The original's watch client shows the key `message` and reads no body.
fn with_message(refusal: Response) -> Response {
    match refusal.message().map(str::to_owned) {
        Some(message) => refusal.with("message", message),
        None => refusal,
    }
}
