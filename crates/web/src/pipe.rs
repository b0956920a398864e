//! A stream with bytes that were read ahead of it, and with an end for readers that stall.
//!
//! The first bytes of a plain connection tell HTTP/1 from HTTP/2 and are given back here. A write
//! that the kernel does not take arms a clock; if nothing moves until it rings, the write fails,
//! so that a client that reads nothing holds its answer for a bounded time (T22). When the server
//! ends the connection, what the client still sends is read for a moment and thrown away: closing
//! over unread bytes would make the kernel take back the answer that says why.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::grammar;
use crate::held::Link;

/// What an HTTP/2 client with prior knowledge begins with.
pub(crate) const PREFACE: &[u8; PREFACE_LEN] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(crate) const PREFACE_LEN: usize = 24;

/// How long a closing connection may still send, and how much of it is read.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 4 << 20;

/// Bytes that were read before the rest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ahead {
    bytes: [u8; PREFACE_LEN],
    begin: usize,
    end: usize,
}

impl Ahead {
    /// True once the bytes can't become an HTTP/2 preface, or are one.
    pub(crate) fn is_decided(&self) -> bool {
        self.end == PREFACE_LEN || !PREFACE.starts_with(&self.bytes[..self.end])
    }

    /// True if the bytes are an HTTP/2 preface.
    pub(crate) fn is_preface(&self) -> bool {
        self.bytes[..self.end] == *PREFACE
    }

    /// Where the next bytes go.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.end..]
    }

    /// Notes `len` more bytes.
    pub(crate) fn add(&mut self, len: usize) {
        self.end += len;
    }

    fn take(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let len = (self.end - self.begin).min(buf.remaining());
        buf.put_slice(&self.bytes[self.begin..self.begin + len]);
        self.begin += len;
        len > 0
    }
}

pub(crate) struct Pipe<T> {
    ahead: Ahead,
    io: T,
    link: Arc<Link>,
    stall: Duration,
    /// Set while the kernel takes nothing.
    clock: Option<Pin<Box<Sleep>>>,
    /// Set once the last byte went out, for as long as the client may still send.
    linger: Option<Pin<Box<Sleep>>>,
    /// What is written in place of an answer of the library's own.
    retold: Option<Bytes>,
    /// Bytes that were thrown away at the end.
    lingered: usize,
}

impl<T> Pipe<T> {
    pub(crate) fn new(io: T, ahead: Ahead, link: Arc<Link>, stall: Duration) -> Self {
        Self {
            ahead,
            io,
            link,
            stall,
            clock: None,
            linger: None,
            retold: None,
            lingered: 0,
        }
    }

    pub(crate) fn into_inner(self) -> T {
        self.io
    }

    /// Arms or disarms the clock by what became of a write.
    fn judge<R>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        self.link.set_blocked(written.is_pending());
        if written.is_ready() {
            self.clock = None;
            return written;
        }
        let stall = self.stall;
        let clock = self
            .clock
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + stall)));
        ready!(clock.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncWrite + Unpin> Pipe<T> {
    /// Writes what stands in place of `bytes`, if something does. Done means that all of `bytes`
    /// counts as written.
    fn retell(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Option<Poll<io::Result<usize>>> {
        if self.retold.is_none() {
            self.retold = grammar::retold(bytes);
        }
        while let Some(rest) = self.retold.as_mut().filter(|rest| !rest.is_empty()) {
            let written = Pin::new(&mut self.io).poll_write(cx, rest);
            match written {
                Poll::Ready(Ok(0)) => {
                    return Some(Poll::Ready(Err(io::ErrorKind::WriteZero.into())));
                }
                Poll::Ready(Ok(len)) => rest.advance(len),
                Poll::Ready(Err(_)) | Poll::Pending => return Some(self.judge(cx, written)),
            }
        }
        self.retold.take().map(|_| Poll::Ready(Ok(bytes.len())))
    }
}

impl<T: AsyncRead + Unpin> Pipe<T> {
    /// Throws away what the client sends until it ends, or time or patience do.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let linger = self
            .linger
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        if linger.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut waste = [0; 4 << 10];
        while self.lingered < LINGER_BYTES_MAX {
            let mut buf = ReadBuf::new(&mut waste);
            match ready!(Pin::new(&mut self.io).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => self.lingered += buf.filled().len(),
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Pipe<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.take(buf) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Pipe<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(written) = self.retell(cx, bytes) {
            return written;
        }
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [bytes] = parts
            && let Some(written) = self.retell(cx, bytes)
        {
            return written;
        }
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, parts);
        self.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.judge(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
        }
        self.poll_linger(cx)
    }
}
