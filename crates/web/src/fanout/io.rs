//! The socket under a line: plain TCP, or what is left of TLS after an upgrade.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A peer whose packets vanish is given up after what was sent stays unacknowledged for so long.
/// With a heartbeat of 15 s that is within a minute (T23).
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(40);

/// Bytes that the kernel may hold and not yet have sent. Beyond it nothing more is taken, so what
/// is urgent waits behind no more than this (T24), and a client that isn't read costs no megabytes
/// of the kernel's.
const UNSENT_MAX: u32 = 64 << 10;

/// A socket that is polled and never waited for.
#[derive(Debug)]
pub(crate) enum Io {
    Plain(TcpStream),
    Upgraded(Box<TokioIo<Upgraded>>),
}

impl Io {
    pub(crate) fn plain(stream: TcpStream) -> Self {
        let socket = SockRef::from(&stream);
        let _ = socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX));
        let _ = socket.set_tcp_notsent_lowat(UNSENT_MAX);
        Self::Plain(stream)
    }

    /// Writes what the kernel takes now. Pending means nothing, and a wake when it takes more.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => {
                // Straight to the kernel: the runtime's own note of what is ready lies elsewhere in
                // memory, and looking there costs a twentieth of a copy.
                match SockRef::from(&*stream).send(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        Pin::new(stream).poll_write(cx, bytes)
                    }
                    written => Poll::Ready(written),
                }
            }
            Self::Upgraded(stream) => Pin::new(&mut **stream).poll_write(cx, bytes),
        }
    }

    /// Has everything that was written go out.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(_) => Poll::Ready(Ok(())),
            Self::Upgraded(stream) => Pin::new(&mut **stream).poll_flush(cx),
        }
    }

    /// Reads what is there. Nothing read means the end.
    pub(crate) fn poll_read<'b>(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &'b mut [u8],
    ) -> Poll<io::Result<&'b [u8]>> {
        let mut buf = ReadBuf::new(scratch);
        let read = match self {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, &mut buf),
            Self::Upgraded(stream) => Pin::new(&mut **stream).poll_read(cx, &mut buf),
        };
        std::task::ready!(read)?;
        let len = buf.filled().len();
        Poll::Ready(Ok(&scratch[..len]))
    }

    /// Says that nothing more comes. The peer's end is read afterwards.
    pub(crate) fn shut(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Plain(stream) => _ = SockRef::from(&*stream).shutdown(std::net::Shutdown::Write),
            Self::Upgraded(stream) => _ = Pin::new(&mut **stream).poll_shutdown(cx),
        }
    }
}
