//! The sending half of a stream, which is reset unless it was finished.
//!
//! The library's stream finishes itself when it is dropped, so an early return would look like a
//! clean end to the client. Here the default is the honest one: whoever gives up, by an error, a
//! panic or a dropped task, resets.

use std::pin::pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use quinn::{SendStream, StoppedError, VarInt, WriteError};

/// The code of a stream that the server gives up.
pub(crate) const ABANDONED: VarInt = VarInt::from_u32(1);
/// The code of a watch whose client takes nothing.
pub(crate) const STALLED: VarInt = VarInt::from_u32(2);
/// The code of an end without a fault: a client is asked to send no more because its answer is on
/// the way, or a stream is dropped that its client stopped.
pub(crate) const NO_FAULT: VarInt = VarInt::from_u32(0);

/// A stream to answer on.
#[derive(Debug)]
pub(crate) struct Reply {
    send: SendStream,
    over: bool,
}

impl Reply {
    pub(crate) fn new(send: SendStream) -> Self {
        Self { send, over: false }
    }

    /// Writes `chunks` one after the other. Not cancel-safe: a part may have been written.
    pub(crate) async fn write(&mut self, chunks: &mut [Bytes]) -> Result<(), WriteError> {
        self.send.write_all_chunks(chunks).await
    }

    /// Writes what fits of `block` and leaves the rest in it. Ready when nothing is left; pending
    /// means that `cx` is woken when there is room.
    pub(crate) fn poll_write(
        &mut self,
        block: &mut Bytes,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), WriteError>> {
        while block.has_remaining() {
            let mut chunks = [std::mem::take(block)];
            let written = pin!(self.send.write_chunks(&mut chunks)).poll(cx);
            let [rest] = chunks;
            *block = rest;
            match written {
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the stream cleanly.
    pub(crate) fn finish(&mut self) {
        self.over = true;
        // It fails where the client has stopped the stream already, and then nobody listens.
        let _ = self.send.finish();
    }

    /// Gives the stream up.
    pub(crate) fn reset(&mut self, code: VarInt) {
        self.over = true;
        let _ = self.send.reset(code);
    }

    /// Completes when the client wants no more, or has everything. Cancel-safe.
    pub(crate) fn stopped(
        &self,
    ) -> impl Future<Output = Result<Option<VarInt>, StoppedError>> + Send + 'static {
        self.send.stopped()
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.over {
            self.reset(ABANDONED);
        }
    }
}
