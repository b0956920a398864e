//! One request as a handler sees it: routed, decoded, and with its caller known.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use auth::{Denied, Operation};
use gate::Network;
use hyper::body::{Body as _, Incoming};
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Method, Version};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use wire::DocPath;

use crate::face::Face;
use crate::fault::{Code, Fault};
use crate::limits::Limit;
use crate::query::Query;
use crate::stream::Admitted;
use crate::who::Who;

/// How soon a client that met a full server may try again.
pub(crate) const RETRY_SOON: Duration = Duration::from_secs(1);

/// Who is at the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) addr: SocketAddr,
    pub(crate) network: Network,
    /// The connection is a plain socket, so that it can be taken out of HTTP.
    pub(crate) is_plain: bool,
}

/// A request on its way to a handler.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) face: Arc<Face>,
    pub(crate) peer: Peer,
    pub(crate) who: Who,
    /// The place of a stream, on routes that hold one.
    pub(crate) admitted: Option<Admitted>,
    pub(crate) head: Parts,
    pub(crate) body: Incoming,
    pub(crate) query: Query,
    /// What stands at the names of the route's template.
    pub(crate) params: Vec<(&'static str, String)>,
}

impl Call {
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// What stands at `name` in the path; the empty text for a name that the template lacks.
    pub(crate) fn param(&self, name: &str) -> &str {
        let found = self.params.iter().find(|(own, _)| *own == name);
        found.map_or("", |(_, value)| value)
    }

    /// True if the handler may answer [`Hold`](crate::answer::Answer::Hold): the connection is
    /// plain HTTP/1 and nothing of the request is outstanding.
    pub(crate) fn can_be_held(&self) -> bool {
        self.peer.is_plain
            && self.head.version == Version::HTTP_11
            && self.head.method == Method::GET
            && self.body.is_end_stream()
    }

    /// Asks for a right against the grants of this moment.
    pub(crate) fn check(&self, operation: Operation, path: &DocPath) -> Result<(), Fault> {
        let grants = self.face.authority.current();
        grants
            .check(&self.who.caller, operation, path, self.face.now())
            .map_err(denied)
    }

    /// Waits for a turn among the requests that are worked on.
    ///
    /// Cancel-safe.
    pub(crate) async fn turn(&self) -> Result<OwnedSemaphorePermit, Fault> {
        let turn = self.face.requests.clone().acquire_owned();
        match timeout(self.face.limits.request_timeout, turn).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => {
                self.face.metrics.refused(Limit::Requests);
                Err(Fault::new(Code::Busy).retry_after(RETRY_SOON))
            }
        }
    }
}

/// The answer to somebody who lacks the right.
pub(crate) fn denied(denied: Denied) -> Fault {
    match denied {
        Denied::NotPermitted => Code::NotPermitted.into(),
        Denied::NoTokens => Code::NoTokens.into(),
        Denied::Unauthorized => Code::Unauthorized.into(),
    }
}
