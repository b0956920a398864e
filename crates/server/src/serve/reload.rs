//! Taking new tokens and certificates while the server runs.
//!
//! Tokens are looked at every [`auth::POLL_INTERVAL`] and on SIGHUP, the certificate on SIGHUP.
//! Neither touches an open connection, except that the watches whose rights ended do end. What
//! can't be taken leaves in force what was, is logged once and shows in readiness (D75).

use std::sync::Arc;

use auth::{Authority, Reload};
use quic::Certificate;
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use crate::admin::Status;

/// Reloads for ever. Cancel-safe between two reloads.
pub(super) async fn run(
    authority: Authority,
    certificate: Certificate,
    status: Arc<Status>,
    mut hangup: Signal,
) {
    let mut ticks = interval(auth::POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let asked = tokio::select! {
            _ = ticks.tick() => false,
            _ = hangup.recv() => true,
        };
        let (authority, certificate) = (authority.clone(), certificate.clone());
        let status = status.clone();
        let looked = spawn_blocking(move || {
            let tokens = if asked {
                authority.reload()
            } else {
                authority.poll()
            };
            tell(tokens, &authority);
            if asked {
                status.certificate(reload_certificate(&certificate));
            }
        });
        if looked.await.is_err() {
            tracing::error!("a reload ended early; what was in force stays");
        }
    }
}

fn tell(tokens: Reload, authority: &Authority) {
    match tokens {
        Reload::Kept(problem) => {
            tracing::error!("the tokens in force stay as they were: {problem}");
        }
        Reload::Taken => {
            tracing::info!(revision = authority.revision(), "took the tokens file");
            super::banner::warn(authority);
        }
        Reload::Unchanged => {}
    }
}

/// The problem that keeps the new certificate from being used, if there is one.
fn reload_certificate(certificate: &Certificate) -> Option<String> {
    match certificate.reload() {
        Ok(()) => {
            tracing::info!("took the certificate");
            None
        }
        Err(error) => {
            tracing::error!("the certificate in force stays as it was: {error}");
            Some(error.to_string())
        }
    }
}
