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
use crate::metrics::{Outcome, Reloads};

/// What is taken anew, and who hears of it.
#[derive(Clone)]
pub(super) struct Reloaded {
    pub(super) authority: Authority,
    pub(super) authority_reloads: Reloads,
    pub(super) certificate: Certificate,
    pub(super) certificate_reloads: Reloads,
    pub(super) status: Arc<Status>,
}

/// Reloads for ever. Cancel-safe between two reloads.
pub(super) async fn run(reloaded: Reloaded, mut hangup: Signal) {
    let mut ticks = interval(auth::POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let asked = tokio::select! {
            _ = ticks.tick() => false,
            _ = hangup.recv() => true,
        };
        let reloaded = reloaded.clone();
        let looked = spawn_blocking(move || {
            reloaded.look_at_tokens(asked);
            if asked {
                reloaded.take_certificate();
            }
        });
        if looked.await.is_err() {
            tracing::error!("a reload ended early; what was in force stays");
        }
    }
}

impl Reloaded {
    /// Looks at the tokens; somebody who `asked` is told of a problem again.
    fn look_at_tokens(&self, asked: bool) {
        let Self {
            authority,
            authority_reloads,
            ..
        } = self;
        let looked = match asked {
            true => authority.reload(),
            false => authority.poll(),
        };
        match looked {
            Reload::Kept(problem) => {
                authority_reloads.count(Outcome::Kept);
                tracing::error!("the tokens in force stay as they were: {problem}");
            }
            Reload::Taken => {
                authority_reloads.count(Outcome::Taken);
                tracing::info!(revision = authority.revision(), "took the tokens file");
                super::banner::warn(authority);
            }
            Reload::Unchanged => {}
        }
    }

    fn take_certificate(&self) {
        let problem = self.certificate.reload().err();
        let outcome = match &problem {
            None => {
                tracing::info!("took the certificate");
                Outcome::Taken
            }
            Some(error) => {
                tracing::error!("the certificate in force stays as it was: {error}");
                Outcome::Kept
            }
        };
        self.certificate_reloads.count(outcome);
        self.status
            .certificate(problem.map(|error| error.to_string()));
    }
}
