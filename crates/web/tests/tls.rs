//! The same over TLS: both protocols, a bad handshake, a new certificate.

#![allow(
    clippy::unwrap_used,
    reason = "a panic of a helper is the failure report"
)]

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
