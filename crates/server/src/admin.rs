//! The admin listener: liveness, readiness and metrics over HTTP on loopback.
//!
//! | path | answers |
//! |---|---|
//! | `/livez` | 200 while the process lives |
//! | `/readyz` | 200 when it serves; 503 while it opens, drains, or lacks a required source |
//! | `/readyz/{source}` | the same for `documents`, `tokens` or `certificate` alone |
//! | `/metrics` | OpenMetrics text |
//!
//! It runs on a thread of its own, so it answers when everything else is busy, and it ends with
//! the process. Details are for those who ask this machine directly: a request that came through
//! a proxy gets the status alone, and a `Host` that isn't this machine's, as of a page that
//! rebinds its name, nothing. Connections are few and short: beyond
//! [`CONNECTIONS_MAX`] they wait to be accepted, and each is closed after [`CONNECTION_AGE_MAX`],
//! so that waiting ends.

mod answer;
mod status;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use answer::Answers;
pub(crate) use status::{Parts, Status};

/// Probes and a few scrapers at once.
const CONNECTIONS_MAX: usize = 64;

/// Longer than a scrape takes, shorter than a probe's patience.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(10);

/// A head is a few hundred bytes on loopback.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// The smallest buffer that hyper takes; heads beyond it are refused.
const HEAD_BYTES_MAX: usize = 8192;

/// After an accept failed for want of descriptors, others need a moment to give some back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Listens on `address` from a thread of its own; returns where.
pub(crate) fn start(
    address: SocketAddr,
    status: Arc<Status>,
    registry: Arc<Mutex<Registry>>,
) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name("admin".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                match TcpListener::from_std(listener) {
                    Ok(listener) => accept(listener, Answers { status, registry }).await,
                    Err(error) => tracing::error!("the admin listener ended: {error}"),
                }
            });
        })?;
    Ok(address)
}

/// The registry. A panic of somebody who held it leaves whole metrics behind.
pub(crate) fn lock(registry: &Mutex<Registry>) -> MutexGuard<'_, Registry> {
    registry.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, answers: Answers) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let answers = Arc::new(answers);
    loop {
        let place = places.clone().acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let answers = answers.clone();
        tokio::spawn(async move {
            let _place = place;
            // Whoever asked may leave or stall; nothing depends on the answer.
            let _ = timeout(CONNECTION_AGE_MAX, converse(stream, &answers)).await;
        });
    }
}

async fn converse(stream: TcpStream, answers: &Answers) -> hyper::Result<()> {
    let service = service_fn(|request| {
        let answer = answers.answer(&request);
        async move { Ok::<_, Infallible>(answer) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await
}
