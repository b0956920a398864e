//! The same over TLS: both protocols, a bad handshake, a new certificate.

#![allow(
    clippy::unwrap_used,
    reason = "a panic of a helper is the failure report"
)]

mod listener;
mod world;

use std::sync::Arc;

use auth::Authority;
use gate::Certificate;
use jiff::Timestamp;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use web::Origins;
use world::{World, limits, within};

async fn open() -> (World, Certificate) {
    let dir = tempfile::tempdir().unwrap();
    let (chain, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    let certificate = Certificate::load_or_create(&chain, &key, Timestamp::now()).unwrap();
    let shown = Some(certificate.clone());
    let world = World::start(dir, Authority::dev(), limits(), Origins::default(), shown).await;
    (world, certificate)
}

async fn connect(world: &World, certificate: &Certificate, alpn: &[u8]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.leaf()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    let stream = within(TcpStream::connect(world.addr)).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    within(connector.connect(name, stream)).await.unwrap()
}

#[tokio::test]
async fn http1_over_tls_serves() {
    let (world, certificate) = open().await;
    let mut stream = connect(&world, &certificate, b"http/1.1").await;
    let request = b"GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut said = String::new();
    within(stream.read_to_string(&mut said)).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 200 OK"), "{said}");
    world.stop().await;
}

#[tokio::test]
async fn http2_over_tls_serves() {
    use http_body_util::Empty;
    use hyper_util::rt::{TokioExecutor, TokioIo};

    let (world, certificate) = open().await;
    let stream = TokioIo::new(connect(&world, &certificate, b"h2").await);
    let shaken = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream);
    let (mut sender, connection) = within(shaken).await.unwrap();
    let driving = tokio::spawn(connection);
    let request = hyper::Request::get("https://localhost/v1/whoami");
    let request = request.body(Empty::<bytes::Bytes>::new()).unwrap();
    let answer = within(sender.send_request(request)).await.unwrap();
    assert_eq!(answer.status(), 200);
    world.stop().await;
    let _ = within(driving).await.unwrap();
}

// T47
#[tokio::test]
async fn what_is_no_handshake_is_counted_and_closed() {
    let (world, _) = open().await;
    let said = world
        .raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    assert!(!said.starts_with("HTTP"), "{said}");
    assert!(
        world
            .metrics()
            .contains("tidings_web_handshakes_failed_total 1")
    );
    world.stop().await;
}

/// Reads until `what` was said.
async fn read_until(stream: &mut TlsStream<TcpStream>, said: &mut String, what: &str) {
    while !said.contains(what) {
        let mut bytes = [0; 4_096];
        let len = within(stream.read(&mut bytes)).await.unwrap();
        assert!(len > 0, "it ended after {said}");
        said.push_str(&String::from_utf8_lossy(&bytes[..len]));
    }
}

#[tokio::test]
async fn a_stream_and_a_socket_over_tls_are_told_changes_and_goodbye() {
    let (world, certificate) = open().await;
    let mut stream = connect(&world, &certificate, b"http/1.1").await;
    let request = b"GET /v1/watch?scope=/ HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut said = String::new();
    read_until(&mut stream, &mut said, "event: beat").await;
    let mut socket = connect(&world, &certificate, b"http/1.1").await;
    let handshake = b"GET /v1/socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
        Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.write_all(handshake).await.unwrap();
    let mut heard = String::new();
    read_until(&mut socket, &mut heard, "\r\n\r\n").await;
    assert!(heard.starts_with("HTTP/1.1 101 "), "{heard}");
    for frame in [
        r#"{"t":"hello","v":1}"#,
        r#"{"t":"subscribe","id":"1","scope":"/"}"#,
    ] {
        socket
            .write_all(&listener::masked(0x81, frame.as_bytes()))
            .await
            .unwrap();
    }
    read_until(&mut socket, &mut heard, r#""t":"ack""#).await;
    listener::tell(&world.store, "/a", 7);
    read_until(&mut stream, &mut said, r#""version":7"#).await;
    read_until(&mut socket, &mut heard, r#""version":7"#).await;
    world.leave();
    read_until(&mut stream, &mut said, "event: closing").await;
    read_until(&mut socket, &mut heard, r#""t":"reconnect""#).await;
    drop((stream, socket));
    world.stop().await;
}

// T52
#[tokio::test]
async fn many_streams_share_one_http2_connection() {
    let world = World::open().await;
    let socket = TcpStream::connect(world.addr).await.unwrap();
    let executor = hyper_util::rt::TokioExecutor::new();
    let io = hyper_util::rt::TokioIo::new(socket);
    let shaken = hyper::client::conn::http2::handshake(executor, io).await;
    let (sender, connection) = shaken.unwrap();
    let driving = tokio::spawn(connection);
    let mut bodies = Vec::new();
    for _ in 0..50 {
        let request = hyper::Request::get(format!("http://{}/v1/watch?scope=/", world.addr))
            .body(http_body_util::Empty::<bytes::Bytes>::new())
            .unwrap();
        let reply = within(sender.clone().send_request(request)).await.unwrap();
        assert_eq!(reply.status(), 200);
        bodies.push(reply.into_body());
    }
    // Nobody reads the first; one is given up.
    let unread = bodies.remove(0);
    bodies.pop();
    for version in 1..=200 {
        listener::tell(&world.store, "/a", version);
        tokio::task::yield_now().await;
    }
    for body in &mut bodies {
        let mut said = String::new();
        while !said.contains(r#""version":200"#) {
            let frame = within(http_body_util::BodyExt::frame(body))
                .await
                .unwrap()
                .unwrap();
            said.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap()));
        }
    }
    world.leave();
    for body in &mut bodies {
        let mut said = String::new();
        while let Some(Ok(frame)) = within(http_body_util::BodyExt::frame(body)).await {
            said.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap()));
        }
        assert!(said.contains("event: closing"), "{said}");
    }
    drop((bodies, unread, sender));
    driving.abort();
    world.stop().await;
}
