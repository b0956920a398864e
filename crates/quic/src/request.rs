//! One stream: reads the request within its deadline, has it answered, writes the answer.
//!
//! The answer waits for the end of the request, except where the request is over its bounds or
//! its time: then it goes out early, and the client is asked to send no more, so that the stream's
//! place comes back. Every other way out resets the stream. A request that has reached the store
//! runs to its end even if the client is gone.
//!
//! What a client makes the server hold is bounded at each step: a few KiB of a request before it
//! counts as an upload, a number of uploads, of requests per connection and together, and the
//! bytes of answers that nobody reads. Of what all clients draw from, one network has a share.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use quinn::{ReadError, RecvStream, SendStream};
use tokio::sync::{OwnedSemaphorePermit, SemaphorePermit};
use tokio::time::{Instant, timeout_at};
use tracing::{Instrument, Span, debug, debug_span, error};
use wire::{Request, RequestDecoder, RequestError, Response, Status, Unreadable, Verb};

use crate::connection::{Client, OpenStream};
use crate::handler::internal_error;
use crate::limits::Limit;
use crate::reply::{ABANDONED, NO_FAULT, Reply};
use crate::watch;

/// A request that needs more than this counts as an upload: a line, a token and some conditions
/// fit many times.
const SMALL_REQUEST_BYTES: usize = 8 << 10;

/// How much is taken from the transport at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Why there is no request to answer.
enum Fault {
    /// The connection is gone.
    Lost,
    /// Over a bound that has an answer without a body.
    Over(Limit),
    /// The request breaks the grammar or its bounds.
    Refused(RequestError),
}

/// A request, and the place of a large one until it is answered.
struct Received {
    request: Request,
    _upload: Option<UploadPlace>,
}

struct UploadPlace {
    _of_network: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

/// Serves the stream to its end. Never panics on what a client sends.
pub(crate) async fn serve(
    send: SendStream,
    mut recv: RecvStream,
    stream: OpenStream,
    client: Arc<Client>,
) {
    let face = &client.face;
    let accepted = Instant::now();
    let mut reply = Reply::new(send);
    if !face.take_rate(client.network, accepted.into_std()) {
        let answer = rate_limited(face, Limit::Rate, "too many requests");
        answer_early(&client, &mut reply, &mut recv, &answer).await;
        return;
    }
    let deadline = accepted + face.limits.request_timeout;
    let received = match receive(&mut recv, deadline, &client).await {
        Ok(received) => received,
        Err(fault) => {
            if let Some(answer) = refusal(&client, &fault) {
                answer_early(&client, &mut reply, &mut recv, &answer).await;
            }
            return;
        }
    };
    let span = span_of(&received.request);
    if received.request.verb == Verb::Watch {
        let opening = watch::open(received.request, reply, stream, &client);
        opening.instrument(span).await;
    } else {
        answer(received, reply, deadline, &client)
            .instrument(span)
            .await;
    }
}

/// What every line about the request carries. Metadata and body stay out of it: the one has the
/// token, the other is nobody's business.
fn span_of(request: &Request) -> Span {
    let path = &request.path;
    debug_span!("request", verb = %request.verb, path = %path.escape_ascii())
}

async fn receive(
    recv: &mut RecvStream,
    deadline: Instant,
    client: &Client,
) -> Result<Received, Fault> {
    let face = &client.face;
    let mut decoder = RequestDecoder::new();
    let mut upload = None;
    let mut len = 0;
    loop {
        if upload.is_none() && len >= SMALL_REQUEST_BYTES {
            upload = Some(upload_place(client, deadline).await?);
        }
        let want = if upload.is_some() {
            CHUNK_BYTES
        } else {
            SMALL_REQUEST_BYTES - len
        };
        match timeout_at(deadline, recv.read_chunk(want, true)).await {
            Err(_) | Ok(Err(ReadError::Reset(_))) => {
                return Err(Fault::Refused(Unreadable::Incomplete.into()));
            }
            Ok(Err(_)) => return Err(Fault::Lost),
            Ok(Ok(Some(chunk))) => {
                len += chunk.bytes.len();
                face.metrics.request_bytes.inc_by(chunk.bytes.len() as u64);
                decoder.feed(&chunk.bytes).map_err(Fault::Refused)?;
            }
            Ok(Ok(None)) => {
                let request = decoder.finish().map_err(Fault::Refused)?;
                return Ok(Received {
                    request,
                    _upload: upload,
                });
            }
        }
    }
}

/// Waits for a place among the uploads: first of the network's share, so that whoever waits for a
/// share holds no place that others could have.
async fn upload_place(client: &Client, deadline: Instant) -> Result<UploadPlace, Fault> {
    if client.face.memory.is_over() {
        return Err(Fault::Over(Limit::Memory));
    }
    let over = Fault::Over(Limit::Uploads);
    let places = async {
        Some(UploadPlace {
            _of_network: client.uploads.clone().acquire_owned().await.ok()?,
            _of_all: client.face.uploads.clone().acquire_owned().await.ok()?,
        })
    };
    timeout_at(deadline, places)
        .await
        .ok()
        .flatten()
        .ok_or(over)
}

/// The answer to what is no request; `None` if there is nobody to answer.
fn refusal(client: &Client, fault: &Fault) -> Option<Response> {
    let face = &client.face;
    match fault {
        Fault::Lost => None,
        Fault::Over(limit) => Some(rate_limited(face, *limit, "too many requests at once")),
        Fault::Refused(error) => {
            debug!(%error, "refused a request");
            match error {
                RequestError::Unreadable(Unreadable::Incomplete) => {
                    face.metrics.refused(Limit::RequestTimeout);
                }
                RequestError::Unreadable(_) => face.metrics.refused(Limit::RequestSize),
                RequestError::Malformed(_) => _ = face.metrics.malformed.inc(),
            }
            Some(error.response())
        }
    }
}

/// Counts a refusal and makes its answer, which has no body. The original's watch client reads
/// the reason from `message`.
pub(crate) fn rate_limited(face: &crate::face::Face, limit: Limit, message: &str) -> Response {
    face.metrics.refused(limit);
    Response::new(Status::RateLimited).with("message", message)
}

/// Has the request answered by a thread that may block, then sends the answer.
async fn answer(received: Received, mut reply: Reply, deadline: Instant, client: &Client) {
    let face = &client.face;
    let Ok(Ok(_turn)) = timeout_at(deadline, client.requests.acquire()).await else {
        let refused = rate_limited(
            face,
            Limit::RequestsPerConnection,
            "too many requests at once",
        );
        send(client, &mut reply, &refused).await;
        return;
    };
    let Some(slot) = request_slot(client, deadline).await else {
        let refused = rate_limited(face, Limit::Requests, "too many requests at once");
        send(client, &mut reply, &refused).await;
        return;
    };
    let verb = received.request.verb;
    let handler = face.handler.clone();
    let span = Span::current();
    let answering = tokio::task::spawn_blocking(move || {
        let Received { request, _upload } = received;
        span.in_scope(|| handler.answer(request))
    });
    let response = answering.await.unwrap_or_else(|failure| {
        error!(%failure, %verb, "answer a request");
        internal_error()
    });
    face.metrics
        .answered(verb.as_str(), response.status.as_str());
    if is_authorised(response.status) {
        client.grow();
    }
    let room = answer_room(client, &response).await;
    drop(slot);
    match room {
        Some(_room) => send(client, &mut reply, &response).await,
        None => reply.reset(ABANDONED),
    }
}

/// Permits of a network's share of a bound, and of the bound itself.
struct Held<'a> {
    _of_network: SemaphorePermit<'a>,
    _of_all: SemaphorePermit<'a>,
}

/// Waits for a slot: first of the network's share. A request keeps its slot while its answer waits
/// for room, so that a network that reads nothing would otherwise end up with every slot.
async fn request_slot(client: &Client, deadline: Instant) -> Option<Held<'_>> {
    let slot = async {
        Some(Held {
            _of_network: client.network_requests.acquire().await.ok()?,
            _of_all: client.face.requests.acquire().await.ok()?,
        })
    };
    timeout_at(deadline, slot).await.ok().flatten()
}

fn is_authorised(status: Status) -> bool {
    !matches!(
        status,
        Status::BadRequest
            | Status::NotPermitted
            | Status::RateLimited
            | Status::ServerError
            | Status::Unauthorized
    )
}

/// Waits for room among the answers that are being sent, first in the network's share.
async fn answer_room<'a>(client: &'a Client, response: &Response) -> Option<Held<'a>> {
    let face = &client.face;
    let len = response.body.len();
    // An answer longer than the share goes alone.
    let len = len.min(face.limits.answer_bytes_per_address());
    let bytes = u32::try_from(len).unwrap_or(u32::MAX);
    let room = async {
        Some(Held {
            _of_network: client.answers.acquire_many(bytes).await.ok()?,
            _of_all: face.answers.acquire_many(bytes).await.ok()?,
        })
    };
    let room = tokio::time::timeout(face.limits.request_timeout, room).await;
    let room = room.ok().flatten();
    if room.is_none() {
        face.metrics.refused(Limit::AnswerBytes);
    }
    room
}

async fn answer_early(
    client: &Client,
    reply: &mut Reply,
    recv: &mut RecvStream,
    response: &Response,
) {
    // The client may wait for its request to be taken before it reads; whoever sends no more
    // gives the place of the stream back. It fails where everything has arrived already.
    let _ = recv.stop(NO_FAULT);
    send(client, reply, response).await;
}

/// Writes the answer and waits until the client has it, so that a drain doesn't close the
/// connection under it.
pub(crate) async fn send(client: &Client, reply: &mut Reply, response: &Response) {
    let face = &client.face;
    let timeout: Duration = face.limits.request_timeout;
    let mut head = BytesMut::new();
    response.encode_head_into(&mut head);
    let len = head.len() + response.body.len();
    let mut chunks = [head.freeze(), response.body.clone()];
    let mut stopped = std::pin::pin!(reply.stopped());
    let writing = async {
        tokio::select! {
            written = reply.write(&mut chunks) => written?,
            // A write that the connection's window blocks doesn't notice this by itself.
            _ = &mut stopped => {
                reply.reset(NO_FAULT);
                return Ok(());
            }
        }
        reply.finish();
        face.metrics.answer_bytes.inc_by(len as u64);
        let _ = stopped.await;
        Ok::<_, quinn::WriteError>(())
    };
    match tokio::time::timeout(timeout, writing).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "the client left before its answer"),
        Err(_) => {
            face.metrics.refused(Limit::RequestTimeout);
            reply.reset(ABANDONED);
        }
    }
}
