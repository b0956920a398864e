//! One client's connection: accepts its streams and lets it have more while it uses them.
//!
//! A connection starts with few streams, because the transport makes state for each one allowed,
//! used or not. The number doubles up to the limit when half of it is open and a request on the
//! connection was answered with more than a refusal, so that whoever may do nothing here never
//! costs more than a beginner.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use gate::{Network, Phase, Seat};
use quinn::{ConnectionError, VarInt};
use tokio::sync::{Semaphore, mpsc};
use tracing::{Instrument, debug, debug_span};

use crate::face::Face;
use crate::request;
use crate::watch::{Opening, Serving};

/// Watches that may wait for their serving task to take them in. It takes them at once; the rest
/// of a burst waits on its streams.
const OPENINGS_MAX: usize = 16;

/// What the streams of one connection share.
#[derive(Debug)]
pub(crate) struct Client {
    /// Its network's share of the bytes of answers.
    pub(crate) answers: Arc<Semaphore>,
    pub(crate) face: Arc<Face>,
    pub(crate) network: Network,
    /// Its network's share of the requests.
    pub(crate) network_requests: Arc<Semaphore>,
    /// Places for requests that are worked on or answered.
    pub(crate) requests: Semaphore,
    /// Its network's share of the uploads.
    pub(crate) uploads: Arc<Semaphore>,
    /// Places for running watches.
    pub(crate) watches: Arc<Semaphore>,
    connection: quinn::Connection,
    /// Streams that are open now.
    open: AtomicU32,
    /// Streams that the client may have open.
    allowed: AtomicU32,
    /// The way to the task that serves the watches; there is none before the first watch. The
    /// channel makes room for 32 at once, so what goes through is small.
    serving: OnceLock<mpsc::Sender<Box<Opening>>>,
}

/// Counts a stream as open until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream(Arc<Client>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves `connection` until it is closed, by whichever side.
pub(crate) async fn serve(connection: quinn::Connection, seat: Seat, face: Arc<Face>) {
    face.metrics.connections.inc();
    let client = Client::new(connection.clone(), seat.network(), face.clone());
    let reason = client.accept_streams().await;
    debug!(%reason, remote = %connection.remote_address(), "the connection is over");
    drop(client);
    drop(seat);
    face.metrics.connections.dec();
}

impl Client {
    fn new(connection: quinn::Connection, network: Network, face: Arc<Face>) -> Arc<Self> {
        Arc::new(Self {
            answers: face.answer_shares.of(network),
            network_requests: face.request_shares.of(network),
            uploads: face.upload_shares.of(network),
            network,
            requests: Semaphore::new(face.limits.requests_per_connection),
            watches: Arc::new(Semaphore::new(face.limits.watches_per_connection())),
            connection,
            open: AtomicU32::new(0),
            allowed: AtomicU32::new(face.limits.streams_initial),
            serving: OnceLock::new(),
            face,
        })
    }

    async fn accept_streams(self: &Arc<Self>) -> ConnectionError {
        let mut signal = self.face.signal.subscribe();
        let span = debug_span!(
            "connection",
            id = self.connection.stable_id(),
            remote = %self.connection.remote_address(),
        );
        let accepting = async {
            loop {
                match self.connection.accept_bi().await {
                    Ok((send, recv)) => {
                        let stream = self.count_stream();
                        let serving = request::serve(send, recv, stream, self.clone());
                        self.face.pending.spawn(serving.instrument(span.clone()));
                    }
                    Err(reason) => return reason,
                }
            }
        };
        let stopping = async {
            let seen = signal
                .wait_for(|signal| signal.phase == Phase::Stopping)
                .await;
            drop(seen);
        };
        tokio::select! {
            reason = accepting => reason,
            // Streams opened from here on stay unanswered until the connection is closed.
            () = stopping => self.connection.closed().await,
        }
    }

    fn count_stream(self: &Arc<Self>) -> OpenStream {
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenStream(self.clone())
    }

    /// Lets the client have more streams if it uses those it has. Called after a request that was
    /// authorised.
    pub(crate) fn grow(&self) {
        let max = self.face.limits.streams_max;
        let open = self.open.load(Ordering::Relaxed);
        let grown = self
            .allowed
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |allowed| {
                let is_busy = open.saturating_mul(2) >= allowed;
                (is_busy && allowed < max).then(|| allowed.saturating_mul(2).min(max))
            });
        if grown.is_ok() {
            let allowed = self.allowed.load(Ordering::Relaxed);
            self.connection
                .set_max_concurrent_bi_streams(VarInt::from_u32(allowed));
        }
    }

    /// Hands a watch to the connection's serving task, which is started for the first one.
    pub(crate) async fn open_watch(&self, opening: Opening) {
        let serving = self.serving.get_or_init(|| {
            let (sender, openings) = mpsc::channel(OPENINGS_MAX);
            let span = debug_span!("watches", connection = self.connection.stable_id());
            let serving = Serving::new(self.face.clone(), openings).run();
            tokio::spawn(serving.instrument(span));
            sender
        });
        // The task ends only with the connection, and then nobody waits for this watch.
        let _ = serving.send(Box::new(opening)).await;
    }
}
