//! The task that reads a watch's stream: it does what [`State`] says, with a socket and a clock.

use std::sync::Arc;

use bytes::Bytes;
use quinn::RecvStream;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout_at};
use wire::{BlockError, BlockReader, BlockView, Cursor, DocumentScope, Status, Verb};

use super::state::{End, Failure, State, Step, Verdict};
use super::{Notice, QUEUE_LEN, WatchError};
use crate::backoff::Jitter;
use crate::client::Client;
use crate::dial::DialError;
use crate::exchange::{Contact, ExchangeError, open, read_error};

/// What a server that doesn't know the verb says, beside the status.
const UNKNOWN_VERB: &str = "bad request";

pub(super) struct Task {
    client: Client,
    scope: DocumentScope,
    state: State,
    queue: mpsc::Sender<Notice>,
    /// Told of the first position; dropped untold if there never is one.
    opened: Option<oneshot::Sender<Cursor>>,
    /// How the last stream failed, for the caller of a watch that never began.
    failure: ExchangeError,
}

/// A stream that is being read.
struct Stream {
    contact: Contact,
    receiving: RecvStream,
    blocks: BlockReader,
    /// Bytes that arrived and weren't read.
    rest: Bytes,
}

/// What came off the stream.
enum Read {
    /// A block, and what the state made of it.
    Block(Result<Option<Notice>, Verdict>),
    /// The stream ended cleanly.
    End,
    /// Bytes that are no block.
    Bad(BlockError),
}

impl Task {
    pub(super) fn new(
        client: Client,
        scope: DocumentScope,
        since: Option<Cursor>,
        queue: mpsc::Sender<Notice>,
        opened: oneshot::Sender<Cursor>,
    ) -> Self {
        Self {
            state: State::new(scope.clone(), since, Jitter::from_system(), Instant::now()),
            client,
            scope,
            queue,
            opened: Some(opened),
            failure: ExchangeError::Timeout,
        }
    }

    /// Runs until the watch is over or nobody takes its notices any more.
    pub(super) async fn run(mut self, wake: Arc<Notify>, ending: oneshot::Sender<WatchError>) {
        let queue = self.queue.clone();
        let end = tokio::select! {
            // The caller dropped the watch: the stream is dropped with the future beside this.
            () = queue.closed() => return,
            end = self.follow(&wake) => end,
        };
        // The caller may be gone, which is as good.
        let _ = ending.send(self.error(end));
    }

    async fn follow(&mut self, wake: &Notify) -> End {
        let mut stream = None;
        loop {
            let now = Instant::now();
            let step = self.state.step(now);
            if !matches!(step, Step::Read(_)) {
                stream = None;
            }
            let done = match (step, &mut stream) {
                (Step::Wait(until), _) => {
                    tokio::select! {
                        () = sleep_until(until) => {}
                        () = wake.notified() => self.state.handle_wake(Instant::now()),
                    }
                    Ok(())
                }
                (Step::Open(since), stream) => self.open(since, stream).await,
                (Step::Read(until), Some(stream)) => self.read(stream, until).await,
                (Step::Read(_), None) => self.state.handle_failure(Failure::Cut, now),
            };
            match done {
                Ok(()) => {}
                Err(Verdict::Over(end)) => return end,
                Err(Verdict::Failed(failure)) => {
                    if let Err(Verdict::Over(end)) = self.fail(failure) {
                        return end;
                    }
                }
            }
        }
    }

    async fn open(
        &mut self,
        since: Option<Cursor>,
        stream: &mut Option<Stream>,
    ) -> Result<(), Verdict> {
        let mut request = self.client.request(Verb::Watch, &self.scope.to_string());
        if let Some(since) = since {
            request.metadata.set("since", since.to_string());
        }
        let Ok(request) = request.encode() else {
            // A scope is a legal path and a cursor is short; only a token can be too long.
            return Err(Verdict::Over(End::Unreachable));
        };
        match self.subscribe(request).await {
            Ok(opened) => {
                *stream = Some(opened);
                self.state.handle_open(Instant::now());
                Ok(())
            }
            Err(error) => self.exchange_failed(error),
        }
    }

    async fn subscribe(&self, request: Bytes) -> Result<Stream, ExchangeError> {
        let opened = open(
            self.client.pool(),
            self.client.key(),
            self.client.patience(),
        )
        .await?;
        let contact = opened.contact.clone();
        match opened.send(request).await {
            Ok(receiving) => Ok(Stream {
                contact,
                receiving,
                blocks: BlockReader::new(),
                rest: Bytes::new(),
            }),
            Err(error) => {
                self.give_up_if_broken(&contact, &error).await;
                Err(error)
            }
        }
    }

    /// Reads one block and hands on what it says.
    async fn read(&mut self, stream: &mut Stream, until: Instant) -> Result<(), Verdict> {
        let read = match timeout_at(until, next_block(stream, &mut self.state)).await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => {
                self.give_up_if_broken(&stream.contact, &error).await;
                return self.exchange_failed(error);
            }
            Err(_) => {
                self.give_up_if_broken(&stream.contact, &ExchangeError::Timeout)
                    .await;
                return self.exchange_failed(ExchangeError::Timeout);
            }
        };
        match read {
            Read::Block(Ok(Some(notice))) => {
                self.hand_on(notice, stream).await;
                Ok(())
            }
            Read::Block(Ok(None)) => Ok(()),
            Read::Block(Err(verdict)) => Err(verdict),
            Read::End => self.exchange_failed(ExchangeError::Reset(0)),
            Read::Bad(error) => {
                tracing::warn!(server = %self.client.server(), %error, "bad block on a watch");
                Err(Verdict::Failed(Failure::BadBlock))
            }
        }
    }

    /// Queues a notice. A full queue costs the stream, not the notice.
    async fn hand_on(&mut self, notice: Notice, stream: &mut Stream) {
        if let Some(opened) = self.opened.take() {
            // A caller that cancelled has closed the queue as well.
            let _ = opened.send(notice.cursor().clone());
        }
        let notice = match self.queue.try_send(notice) {
            Ok(()) => return,
            // Says nothing that the queued notices and the next position don't.
            Err(mpsc::error::TrySendError::Full(Notice::Position(_))) => return,
            Err(mpsc::error::TrySendError::Full(notice)) => notice,
            Err(mpsc::error::TrySendError::Closed(_)) => return,
        };
        tracing::debug!(server = %self.client.server(), "watch behind, stream dropped");
        // Fails on a stream that has ended already.
        let _ = stream.receiving.stop(quinn::VarInt::from_u32(0));
        if let Ok(mut places) = self.queue.reserve_many(QUEUE_LEN / 2).await
            && let Some(place) = places.next()
        {
            place.send(notice);
        }
        self.state.handle_dropped(Instant::now());
    }

    fn exchange_failed(&mut self, error: ExchangeError) -> Result<(), Verdict> {
        tracing::debug!(server = %self.client.server(), %error, "watch interrupted");
        // A server that isn't believed stays so until a person decides.
        let is_final = matches!(error, ExchangeError::Dial(DialError::Trust(_)));
        let failure = match error {
            ExchangeError::Dial(_) | ExchangeError::NoStream => Failure::Unopened,
            ExchangeError::Lost(_) => Failure::Lost,
            _ => Failure::Cut,
        };
        let is_passing = error.is_passing();
        self.failure = error;
        if is_final || (self.opened.is_some() && !is_passing) {
            return Err(Verdict::Over(End::Unreachable));
        }
        self.fail(failure)
    }

    fn fail(&mut self, failure: Failure) -> Result<(), Verdict> {
        self.state.handle_failure(failure, Instant::now())
    }

    async fn give_up_if_broken(&self, contact: &Contact, error: &ExchangeError) {
        contact
            .give_up_if_broken(self.client.pool(), self.client.key(), error)
            .await;
    }

    fn error(&self, end: End) -> WatchError {
        let server = self.client.server().clone();
        match end {
            End::Resyncs => WatchError::Resyncs { server },
            End::Unreachable => WatchError::Unreachable {
                server,
                error: self.failure.clone(),
            },
            End::Refused(refusal)
                if matches!(refusal.status, Status::BadRequest | Status::ServerError)
                    && matches!(refusal.message.as_str(), "" | UNKNOWN_VERB) =>
            {
                WatchError::Unsupported { server }
            }
            End::Refused(refusal) => WatchError::Refused(refusal),
        }
    }
}

/// Reads up to the end of one block and hands it to the state. Not cancel safe as to the bytes, so
/// a stream whose read was cancelled is read no more.
async fn next_block(stream: &mut Stream, state: &mut State) -> Result<Read, ExchangeError> {
    loop {
        let mut input = &stream.rest[..];
        let before = input.len();
        let block = stream.blocks.read(&mut input);
        let taken = before - input.len();
        let read = match block {
            Ok(Some(BlockView::Control(control))) => {
                let control = control.to_control();
                Some(Read::Block(state.handle_control(control, Instant::now())))
            }
            Ok(Some(BlockView::Event(event))) => {
                let now = Instant::now();
                let notice = match event.to_event() {
                    Some(event) => state.handle_event(event, now),
                    None => state.handle_unknown(&event.cursor.to_cursor(), now),
                };
                Some(Read::Block(notice.map(Some).map_err(Verdict::Failed)))
            }
            Ok(None) => None,
            Err(error) => Some(Read::Bad(error)),
        };
        let _ = stream.rest.split_to(taken);
        if let Some(read) = read {
            return Ok(read);
        }
        // What a block may have at most; more only waits in the connection's window.
        match stream
            .receiving
            .read_chunk(wire::limits::BLOCK_LEN_MAX, true)
            .await
        {
            Ok(Some(chunk)) => stream.rest = chunk.bytes,
            Ok(None) => return Ok(Read::End),
            Err(error) => return Err(read_error(error)),
        }
    }
}
