//! Taking a plain HTTP/1 socket out of HTTP for a stream that is held.
//!
//! A handler that answers [`Answer::Hold`](crate::answer::Answer::Hold) is given the socket, and
//! from there on it alone writes, the head of the answer first, and reads. That is possible on
//! plain HTTP/1 for a request without a body; elsewhere (TLS, HTTP/2) the handler streams a body.
//! Nothing of an earlier answer on the same connection is lost: the socket changes hands only when
//! the kernel has taken all of it.
//!
//! Whoever holds the socket owns the connection's seat: dropping [`Held`] closes and frees it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use gate::Seat;
use hyper::header::HeaderMap;
use tokio::net::TcpStream;

use crate::connection::Place;

/// What takes the socket. It must not block; it hands the socket to whoever serves it.
pub(crate) type Holder = Box<dyn FnOnce(Held) + Send>;

/// A socket on which a request was read and nothing answered yet.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) io: TcpStream,
    /// What the client sent after the request.
    pub(crate) read_buf: Bytes,
    /// Fields that the head of the answer must carry, CORS among them.
    pub(crate) headers: HeaderMap,
    /// The connection's place; it is free again when this is dropped.
    pub(crate) place: Place,
    pub(crate) seat: Seat,
}

/// What a connection's task and the requests on it share.
#[derive(Default)]
pub(crate) struct Link {
    wish: Mutex<Option<(Holder, HeaderMap)>>,
    /// The kernel did not take the last bytes that were written.
    blocked: AtomicBool,
}

impl Link {
    /// Asks for the socket. The request's future must stay pending from here on.
    pub(crate) fn ask(&self, holder: Holder, headers: HeaderMap) {
        let mut wish = self.wish.lock().unwrap_or_else(PoisonError::into_inner);
        *wish = Some((holder, headers));
    }

    /// The wish, if there is one that can be granted now.
    pub(crate) fn granted(&self) -> Option<(Holder, HeaderMap)> {
        if self.blocked.load(Ordering::Relaxed) {
            return None;
        }
        let mut wish = self.wish.lock().unwrap_or_else(PoisonError::into_inner);
        wish.take()
    }

    /// Notes whether the kernel took what was written.
    pub(crate) fn set_blocked(&self, blocked: bool) {
        self.blocked.store(blocked, Ordering::Relaxed);
    }
}
