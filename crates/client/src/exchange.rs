//! One request on one stream, and what its failure says of the connection under it.
//!
//! A failure is of the connection (the dial, a close, silence, no stream in time) or of the stream
//! (a reset, no answer in time). The first kind makes the pool give the connection up; after the
//! second the next request takes another stream of it. A connection that is found closed is given
//! up whatever the failure looked like, and so is one on which not a packet came, not even an
//! acknowledgement, while an answer was waited for: its peer is gone without a word.
//!
//! Cancelling at any place resets the sending half and stops the receiving one, so that the server
//! never takes a cut request for a whole one.

use std::time::Duration;

use bytes::Bytes;
use quinn::{Connection, ConnectionError, ReadError, ReadToEndError, RecvStream, SendStream};
use quinn::{VarInt, WriteError};
use thiserror::Error;
use tokio::time::{Instant, timeout_at};
use wire::limits::RESPONSE_LEN_MAX;
use wire::{Response, ResponseError};

use crate::dial::DialError;
use crate::pool::{Key, Pool};

/// What a request may take unless the client says otherwise: as long as a server gives it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// The code of every reset and stop: the protocol gives the others no meaning.
const CANCELLED: VarInt = VarInt::from_u32(0);

/// Why an answer isn't used: the server breaks the protocol.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The stream ended without a byte.
    #[error("the answer is empty")]
    Empty,
    /// The answer says a hash that its body doesn't have.
    #[error("the body of the answer does not have the hash that the answer names")]
    Hash,
    /// The answer isn't one.
    #[error("the answer can't be read ({0})")]
    Malformed(#[from] ResponseError),
    /// A key that every such answer carries is missing or isn't legal.
    #[error("the answer's `{0}` is missing or not legal")]
    Key(&'static str),
    /// More bytes than any answer has.
    #[error("the answer is longer than {RESPONSE_LEN_MAX} bytes")]
    TooLong,
}

/// Why a request got no answer.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The answer came and can't be used.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// No connection; nothing was sent.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The connection ended with the request under way.
    #[error("the connection was lost ({0})")]
    Lost(ConnectionError),
    /// The connection gave no stream; nothing was sent.
    #[error("the connection gives no stream")]
    NoStream,
    /// The server broke the stream off.
    #[error("the server broke the request off (code {0})")]
    Reset(u64),
    /// The answer didn't come in time.
    #[error("no answer in time")]
    Timeout,
}

impl ExchangeError {
    /// True if not a byte of the request can have reached the server.
    pub(crate) const fn is_unsent(&self) -> bool {
        matches!(self, Self::Dial(_) | Self::NoStream)
    }

    /// True if the same request may fare better in a moment.
    pub(crate) const fn is_passing(&self) -> bool {
        match self {
            Self::Dial(error) => error.is_passing(),
            Self::Answer(error) => matches!(error, AnswerError::Empty),
            Self::Lost(_) | Self::NoStream | Self::Reset(_) | Self::Timeout => true,
        }
    }

    /// True if the failure is the connection's and not the stream's alone.
    const fn is_of_connection(&self) -> bool {
        matches!(self, Self::Dial(_) | Self::Lost(_) | Self::NoStream)
    }
}

/// Sends `request` and reads its whole answer. The open stream may take `patience`, and as long
/// again the answer. Cancel safe in that nothing is left half sent; the server may have carried the
/// request out all the same.
pub(crate) async fn exchange(
    pool: &Pool,
    key: &Key,
    request: Bytes,
    patience: Duration,
) -> Result<Response, ExchangeError> {
    let opened = open(pool, key, patience).await?;
    let contact = opened.contact.clone();
    let answer = answer(opened, request, patience).await;
    if let Err(error) = &answer {
        contact.give_up_if_broken(pool, key, error).await;
    }
    answer
}

async fn answer(
    opened: Opened,
    request: Bytes,
    patience: Duration,
) -> Result<Response, ExchangeError> {
    let deadline = Instant::now() + patience;
    let whole = async {
        let mut receiving = opened.send(request).await?;
        receiving
            .read_to_end(RESPONSE_LEN_MAX)
            .await
            .map_err(|error| match error {
                ReadToEndError::Read(error) => read_error(error),
                ReadToEndError::TooLong => AnswerError::TooLong.into(),
            })
    };
    let bytes = timeout_at(deadline, whole)
        .await
        .map_err(|_| ExchangeError::Timeout)??;
    if bytes.is_empty() {
        return Err(AnswerError::Empty.into());
    }
    Ok(Response::decode(&bytes.into()).map_err(AnswerError::from)?)
}

/// True if `connection` answers `request` with anything at all. Cancel safe.
pub(crate) async fn probe(connection: &Connection, request: Bytes) -> bool {
    let Ok((sending, receiving)) = connection.open_bi().await else {
        return false;
    };
    let opened = Opened {
        contact: Contact::new(connection.clone()),
        sending: Sending(Some(sending)),
        receiving,
    };
    match opened.send(request).await {
        Ok(mut receiving) => matches!(receiving.read_chunk(1, true).await, Ok(Some(_))),
        Err(_) => false,
    }
}

/// The connection under a request, and how much of its peer was heard before.
#[derive(Clone, Debug)]
pub(crate) struct Contact {
    connection: Connection,
    packets_heard: u64,
}

impl Contact {
    fn new(connection: Connection) -> Self {
        Self {
            packets_heard: connection.stats().udp_rx.datagrams,
            connection,
        }
    }

    /// Gives the connection up if `error` is its own, if it turns out to be closed, or if its peer
    /// is gone: one that lives acknowledges a request even if it never answers.
    pub(crate) async fn give_up_if_broken(&self, pool: &Pool, key: &Key, error: &ExchangeError) {
        let heard = self.connection.stats().udp_rx.datagrams;
        let is_silent = matches!(error, ExchangeError::Timeout) && heard == self.packets_heard;
        if is_silent || error.is_of_connection() || self.connection.close_reason().is_some() {
            pool.evict(key, &self.connection).await;
        }
    }
}

/// Takes a stream of the pool's connection within `patience`. Cancel safe.
pub(crate) async fn open(
    pool: &Pool,
    key: &Key,
    patience: Duration,
) -> Result<Opened, ExchangeError> {
    let deadline = Instant::now() + patience;
    let connection = match timeout_at(deadline, pool.get(key)).await {
        Ok(connection) => connection?,
        Err(_) => return Err(DialError::Timeout.into()),
    };
    match timeout_at(deadline, connection.open_bi()).await {
        Ok(Ok((sending, receiving))) => Ok(Opened {
            contact: Contact::new(connection),
            sending: Sending(Some(sending)),
            receiving,
        }),
        // A connection without a stream to give, dead or clogged, is of no use to the next either.
        Ok(Err(_)) | Err(_) => {
            pool.evict(key, &connection).await;
            Err(ExchangeError::NoStream)
        }
    }
}

/// A stream on which nothing was sent yet.
pub(crate) struct Opened {
    pub(crate) contact: Contact,
    sending: Sending,
    receiving: RecvStream,
}

impl Opened {
    /// Sends the whole request and its end. Cancelling resets the stream.
    pub(crate) async fn send(mut self, request: Bytes) -> Result<RecvStream, ExchangeError> {
        match self.sending.send_all(request).await {
            // The server has read enough to answer.
            Ok(()) | Err(WriteError::Stopped(_)) => Ok(self.receiving),
            Err(WriteError::ConnectionLost(error)) => Err(ExchangeError::Lost(error)),
            Err(WriteError::ClosedStream | WriteError::ZeroRttRejected) => {
                Err(ExchangeError::Reset(0))
            }
        }
    }
}

/// A sending half that is reset unless it was finished: dropping it alone would end it cleanly, and
/// half a request would look like a whole one.
struct Sending(Option<SendStream>);

impl Sending {
    async fn send_all(&mut self, request: Bytes) -> Result<(), WriteError> {
        let Some(stream) = &mut self.0 else {
            return Ok(());
        };
        stream.write_chunk(request).await?;
        // Fails on a stream that was stopped, whose answer is on its way.
        let _ = stream.finish();
        self.0 = None;
        Ok(())
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if let Some(mut stream) = self.0.take() {
            // Fails on a stream that has ended already.
            let _ = stream.reset(CANCELLED);
        }
    }
}

/// What a failed read says of stream and connection.
pub(crate) fn read_error(error: ReadError) -> ExchangeError {
    match error {
        ReadError::Reset(code) => ExchangeError::Reset(code.into_inner()),
        ReadError::ConnectionLost(error) => ExchangeError::Lost(error),
        ReadError::ClosedStream | ReadError::IllegalOrderedRead | ReadError::ZeroRttRejected => {
            ExchangeError::Reset(0)
        }
    }
}
