//! `GET /v1/socket`: the sync protocol over a WebSocket (`docs/protocol/sync.md`).
//!
//! The page's origin is checked first, then a budget is taken, and only then is it looked at who
//! asks (T16, T26). After the handshake the socket belongs to a worker of the
//! [fan-out](crate::fanout), which reads its frames ([`serving`]) and tells it what it follows.
//! What the client sends is read only while what we said was taken, so nobody can have words pile
//! up; its frames have a budget of their own, and its subscriptions a cap that is taken before a
//! policy is heard.

mod publishing;
mod saying;
mod seats;
mod serving;
mod session;
mod subscribing;

use hyper::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tracing::debug;
use wire::websocket;

use crate::answer::{self, Answer};
use crate::call::Call;
use crate::face::Face;
use crate::fanout::{Arrival, Fanout, Io, Then, Ties};
use crate::fault::{Code, Fault};
use crate::held::Held;
use crate::origin;
use crate::route::{BLANK, Parameter, Reply, Route, Shape};
use crate::stream::{self, Admitted};

pub(crate) use seats::Answered;
pub(crate) use session::Session;

/// The one version of the protocol below; its number in the standard.
const VERSION: HeaderValue = HeaderValue::from_static("13");

pub(crate) const ROUTES: &[Route] = &[Route {
    template: "/v1/socket",
    id: "socket",
    summary: "The sync protocol over a WebSocket",
    about: "Many watches on one connection, and events of channels both ways.",
    parameters: &[
        Parameter::query(
            "build",
            Shape::Text,
            "The build of the application that connects.",
        ),
        Parameter::query(
            "token",
            Shape::Text,
            "A token, where the server is set to take it here.",
        ),
    ],
    answers: &[Reply {
        status: 101,
        about: "The protocol is switched to WebSocket.",
        content: &[],
        headers: &[],
    }],
    errors: &[Code::ForeignOrigin, Code::UpgradeRequired],
    admit: Some(admit),
    handler: |call| Box::pin(async move { open(call) }),
    ..BLANK
}];

/// Whether a socket may be opened from here at all, and a place for it.
fn admit(face: &Face, head: &Parts) -> Result<Option<Admitted>, Fault> {
    let host = origin::host(head)?;
    if origin::is_foreign(host.as_ref(), &head.headers, &face.origins) {
        face.metrics.foreign.inc();
        return Err(Code::ForeignOrigin.into());
    }
    stream::admit(face).map(Some)
}

fn open(mut call: Call) -> Result<Answer, Fault> {
    let accept = accept(&call)?;
    let mut headers = HeaderMap::new();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    let admitted = call.admitted.take().ok_or(Code::Internal)?;
    let build = call.query.one("build")?.map(str::to_owned);
    let session = Box::new(Session::new(&call.face, call.who.clone(), build));
    let face = call.face.clone();
    let token = face.held.token();
    if call.can_be_held() {
        return Ok(Answer::Hold(Box::new(move |held: Held| {
            headers.extend(held.headers);
            let mut head =
                format!("{:?} 101 Switching Protocols\r\n", Version::HTTP_11).into_bytes();
            stream::write_fields(&headers, &mut head);
            head.extend_from_slice(b"\r\n");
            let arrival = Arrival {
                io: Io::plain(held.io),
                read: held.read_buf,
                head,
                then: Then::Socket(session),
                ties: Ties::new(held.place, held.seat, token, admitted),
            };
            Fanout::hand_over(&face, arrival);
        })));
    }
    let upgrade = call.head.extensions.remove::<OnUpgrade>();
    let upgrade = upgrade.ok_or_else(upgrade_required)?;
    call.face.connections.spawn(async move {
        match upgrade.await {
            Ok(upgraded) => {
                let arrival = Arrival {
                    io: Io::Upgraded(Box::new(TokioIo::new(upgraded))),
                    read: bytes::Bytes::new(),
                    head: Vec::new(),
                    then: Then::Socket(session),
                    ties: Ties::upgraded(token, admitted),
                };
                Fanout::hand_over(&face, arrival);
            }
            Err(error) => debug!(%error, "an upgrade failed"),
        }
    });
    Ok(answer::bare(StatusCode::SWITCHING_PROTOCOLS, headers).into())
}

/// The answer to the client's key, if the request is a handshake.
fn accept(call: &Call) -> Result<HeaderValue, Fault> {
    let headers = call.headers();
    let has = |name: HeaderName, word: &str| {
        let fields = headers
            .get_all(name)
            .iter()
            .filter_map(|field| field.to_str().ok());
        fields
            .flat_map(|field| field.split(','))
            .any(|it| it.trim().eq_ignore_ascii_case(word))
    };
    let is_handshake = call.head.method == Method::GET
        && call.head.version == Version::HTTP_11
        && has(CONNECTION, "upgrade")
        && has(UPGRADE, "websocket")
        && headers.get(SEC_WEBSOCKET_VERSION) == Some(&VERSION);
    if !is_handshake {
        return Err(upgrade_required());
    }
    let key = headers
        .get(SEC_WEBSOCKET_KEY)
        .and_then(|key| key.to_str().ok());
    let accept = key.and_then(websocket::accept_key);
    accept
        .and_then(|accept| HeaderValue::try_from(accept).ok())
        .ok_or_else(|| Fault::detailed(Code::BadRequest, "Sec-WebSocket-Key is no key"))
}

fn upgrade_required() -> Fault {
    Fault::new(Code::UpgradeRequired)
        .header(UPGRADE, HeaderValue::from_static("websocket"))
        .header(SEC_WEBSOCKET_VERSION, VERSION)
}
