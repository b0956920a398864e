//! One connection: TLS if there is any, HTTP/1 or HTTP/2, and the hand-over of held sockets.
//!
//! On a plain connection the first bytes tell the two versions apart, on TLS the protocol that was
//! negotiated. Each step has a deadline: the handshake, the first bytes, every head; a client that
//! reads nothing ends by the stall limit of [`Pipe`]. A drain tells HTTP/2 to go away and ends
//! HTTP/1 after the answer under way.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use gate::Seat;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use crate::answer::Body;
use crate::call::Peer;
use crate::face::Face;
use crate::held::{Held, Link};
use crate::limits::Limit;
use crate::pipe::{Ahead, Pipe};
use crate::router;

/// A connection's place among those that may be open.
pub(crate) type Place = OwnedSemaphorePermit;

/// The protocol of HTTP/2 in a TLS handshake.
const ALPN_H2: &[u8] = b"h2";

/// HTTP/2 windows: one request's body flows at this much per round trip, and all bodies of one
/// connection together take four times it.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 256 << 10;
/// What one HTTP/2 stream may have waiting to be sent.
const STREAM_SEND_BYTES: usize = 64 << 10;

/// A connection that got in.
pub(crate) struct Client {
    pub(crate) face: Arc<Face>,
    pub(crate) peer: Peer,
    pub(crate) place: Place,
    pub(crate) seat: Seat,
}

/// Serves a plain connection to its end, or until its socket is handed over.
pub(crate) async fn serve_plain(mut stream: TcpStream, client: Client) {
    let face = client.face.clone();
    let reading = timeout(face.limits.head_timeout, read_ahead(&mut stream));
    let ahead = tokio::select! {
        read = reading => read,
        () = face.stopping.cancelled() => return,
    };
    let Ok(Ok(ahead)) = ahead else {
        return;
    };
    let link = Arc::new(Link::default());
    let pipe = Pipe::new(stream, ahead, link.clone(), face.limits.write_stall);
    if ahead.is_preface() {
        serve_h2(pipe, client, link).await;
    } else {
        serve_h1_plain(pipe, client, link).await;
    }
}

/// Shakes hands and serves the connection to its end.
pub(crate) async fn serve_tls(stream: TcpStream, mut client: Client, acceptor: TlsAcceptor) {
    let face = client.face.clone();
    let shaken = timeout(face.limits.handshake_timeout, acceptor.accept(stream)).await;
    let stream = match shaken {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            face.metrics.handshakes_failed.inc();
            return debug!(peer = %client.peer.addr, %error, "a handshake failed");
        }
        Err(_) => {
            face.metrics.handshakes_failed.inc();
            return face.metrics.refused(Limit::HandshakeTimeout);
        }
    };
    client.seat.established();
    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(ALPN_H2);
    let link = Arc::new(Link::default());
    let pipe = Pipe::new(
        stream,
        Ahead::default(),
        link.clone(),
        face.limits.write_stall,
    );
    if is_h2 {
        serve_h2(pipe, client, link).await;
    } else {
        serve_h1_tls(pipe, client, link).await;
    }
}

/// Reads until it is clear which version the client speaks.
async fn read_ahead(stream: &mut TcpStream) -> io::Result<Ahead> {
    let mut ahead = Ahead::default();
    while !ahead.is_decided() {
        match stream.read(ahead.room()).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            len => ahead.add(len),
        }
    }
    Ok(ahead)
}

fn http1(face: &Face) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(face.limits.head_timeout)
        .max_buf_size(face.limits.head_bytes)
        .max_headers(face.limits.head_fields);
    builder
}

/// An answer in time.
type Serving = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// What answers the requests of one connection.
fn service(
    client: &Client,
    link: &Arc<Link>,
) -> impl Fn(Request<Incoming>) -> Serving + Clone + use<> {
    let (face, peer, link) = (client.face.clone(), client.peer, link.clone());
    move |request| {
        let serving = router::serve(face.clone(), peer, link.clone(), request);
        Box::pin(async move { Ok(serving.await) })
    }
}

async fn serve_h1_plain(pipe: Pipe<TcpStream>, client: Client, link: Arc<Link>) {
    let face = client.face.clone();
    let service = service_fn(service(&client, &link));
    let mut connection = http1(&face).serve_connection(TokioIo::new(pipe), service);
    let mut stopping = pin!(face.stopping.cancelled());
    let mut is_told = false;
    let ended = std::future::poll_fn(|cx| {
        if !is_told && stopping.as_mut().poll(cx).is_ready() {
            is_told = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        poll_h1(&mut connection, &link, cx)
    })
    .await;
    match ended {
        Ended::Over(result) => tell_end(&face, &client.peer, result),
        Ended::Taken(holder, headers) => {
            let parts = connection.into_parts();
            holder(Held {
                io: parts.io.into_inner().into_inner(),
                read_buf: parts.read_buf,
                headers,
                place: client.place,
                seat: client.seat,
            });
        }
    }
}

/// How serving a plain HTTP/1 connection ended.
enum Ended {
    Over(hyper::Result<()>),
    Taken(crate::held::Holder, hyper::HeaderMap),
}

/// Drives the connection until it is over or a request on it asks for the socket.
///
/// The wish is looked for after the connection was driven: by then it has offered the kernel
/// everything that it had to write, and [`Link`] knows whether all was taken.
fn poll_h1<C>(connection: &mut C, link: &Link, cx: &mut Context<'_>) -> Poll<Ended>
where
    C: Future<Output = hyper::Result<()>> + Unpin,
{
    if let Poll::Ready(result) = Pin::new(connection).poll(cx) {
        return Poll::Ready(Ended::Over(result));
    }
    match link.granted() {
        Some((holder, headers)) => Poll::Ready(Ended::Taken(holder, headers)),
        None => Poll::Pending,
    }
}

async fn serve_h1_tls<T>(pipe: Pipe<T>, client: Client, link: Arc<Link>)
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let face = client.face.clone();
    let service = service_fn(service(&client, &link));
    let connection = http1(&face)
        .serve_connection(TokioIo::new(pipe), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = face.stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    tell_end(&face, &client.peer, result);
}

async fn serve_h2<T>(pipe: Pipe<T>, client: Client, link: Arc<Link>)
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    TokioIo<Pipe<T>>: Read + Write,
{
    let face = client.face.clone();
    let service = service_fn(service(&client, &link));
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(face.limits.streams_per_connection)
        .max_header_list_size(u32::try_from(face.limits.head_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(STREAM_SEND_BYTES)
        .keep_alive_interval(face.limits.head_timeout)
        .keep_alive_timeout(face.limits.head_timeout);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(pipe), service));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = face.stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    tell_end(&face, &client.peer, result);
}

/// A client that leaves or that sends what is no request is no fault of ours.
fn tell_end(face: &Face, peer: &Peer, result: hyper::Result<()>) {
    let Err(error) = result else {
        return;
    };
    if error.is_parse() {
        face.metrics.malformed.inc();
    }
    debug!(peer = %peer.addr, %error, "the connection is over");
}
