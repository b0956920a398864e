//! Leaving: on the first SIGTERM or SIGINT step by step, on the second at once.
//!
//! Readiness says no before anything else changes, so that nobody new is sent here. Then each face
//! tells its watches to leave, each at its own moment, and finishes what is under way, both within
//! the bounds of `[limits]`; then the store is closed, which ends the feed and notes what is known
//! of the tree. The second signal gives all that up and keeps what was acknowledged: that is
//! durable already, and the next opening compares journal and tree.

use std::io;

use anyhow::Context;
use documents::FileStore;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::faces::Faces;
use crate::admin::Status;

/// The exit code of a server that was told twice: it did not drain.
const LEFT_AT_ONCE: i32 = 1;

/// Whether somebody wants the process to leave.
pub(super) struct Signals {
    leave: CancellationToken,
}

impl Signals {
    /// Takes SIGTERM and SIGINT from now on.
    pub(super) fn listen() -> io::Result<Self> {
        let leave = CancellationToken::new();
        let mut term = signal(SignalKind::terminate())?;
        let mut int = signal(SignalKind::interrupt())?;
        let told = leave.clone();
        tokio::spawn(async move {
            either(&mut term, &mut int).await;
            tracing::info!("leaving; a second signal leaves at once");
            told.cancel();
            either(&mut term, &mut int).await;
            tracing::warn!("leaving at once");
            std::process::exit(LEFT_AT_ONCE);
        });
        Ok(Self { leave })
    }

    /// Waits for the first signal. Cancel-safe.
    pub(super) async fn leave(&self) {
        self.leave.cancelled().await;
    }
}

async fn either(term: &mut Signal, int: &mut Signal) {
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}

/// Serves until the first signal, then ends everything step by step. Not cancel-safe.
pub(super) async fn serve_until(
    signals: &Signals,
    faces: Faces,
    store: FileStore,
    status: &Status,
) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let serving = faces.run(stop.clone());
    tokio::pin!(serving);
    tokio::select! {
        () = signals.leave() => {}
        face = &mut serving => anyhow::bail!("the {face} face ended by itself"),
    }
    status.drain();
    stop.cancel();
    serving.await;
    tokio::task::spawn_blocking(move || store.close())
        .await
        .context("close the documents")?
        .context("close the documents")?;
    tracing::info!("left");
    Ok(())
}
