//! Asks an application's back end who may join a channel or publish to it.
//!
//! The question is a POST with the caller's token, the right, the channel and its params. An
//! answer of 2xx is a yes, 401, 403 and 404 are a no, and everything else says that it could not
//! be decided: another status, no connection, no answer in time, or too many questions at once.
//!
//! An answer is remembered for a moment, so that a herd of the same asks once; what is remembered
//! is forgotten whenever the grants change. One that could not be decided isn't remembered.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use channels::{Question, Right, Verdict};
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::warn;

use crate::who::Who;

/// A back end that is slower than this leaves its clients waiting for no reason.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Questions under way: what a small back end answers at once.
const QUESTIONS_MAX: usize = 64;

/// How long an answer is remembered.
const MEMORY: Duration = Duration::from_secs(5);

/// Answers that are remembered; beyond it all are forgotten.
const ANSWERS_MAX: usize = 10_000;

/// Asks back ends.
pub(crate) struct Asker {
    /// Made when it is first needed: the roots of the system are read for it.
    client: OnceLock<Client<HttpsConnector<HttpConnector>, Full<Bytes>>>,
    turns: Semaphore,
    answers: Mutex<HashMap<Asked, (Verdict, Instant)>>,
}

/// What an answer is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Asked {
    topic: String,
    right: Right,
    /// Whose question it was, by the token.
    token: Option<Arc<str>>,
}

impl Default for Asker {
    fn default() -> Self {
        Self {
            client: OnceLock::new(),
            turns: Semaphore::new(QUESTIONS_MAX),
            answers: Mutex::default(),
        }
    }
}

impl Asker {
    /// Asks, or remembers. Cancel-safe.
    pub(crate) async fn ask(&self, question: &Question, who: &Who) -> Verdict {
        let asked = Asked {
            topic: question.topic().as_str().to_owned(),
            right: question.right(),
            token: who.token.clone(),
        };
        if let Some(verdict) = self.remembered(&asked) {
            return verdict;
        }
        let answer = timeout(ANSWER_TIMEOUT, self.send(question, who)).await;
        let Ok(Some(verdict)) = answer else {
            warn!(url = question.url(), "a policy could not be asked");
            return Verdict::Undecided;
        };
        let mut answers = self.answers();
        if answers.len() >= ANSWERS_MAX {
            answers.clear();
        }
        answers.insert(asked, (verdict, Instant::now()));
        verdict
    }

    /// Forgets every answer: the rights of somebody changed.
    pub(crate) fn forget(&self) {
        self.answers().clear();
    }

    fn remembered(&self, asked: &Asked) -> Option<Verdict> {
        let answers = self.answers();
        let (verdict, at) = answers.get(asked)?;
        (at.elapsed() < MEMORY).then_some(*verdict)
    }

    async fn send(&self, question: &Question, who: &Who) -> Option<Verdict> {
        let _turn = self.turns.acquire().await.ok()?;
        let topic = question.topic();
        let body = json!({
            "right": question.right().as_str(),
            "channel": topic.declaration().name(),
            "params": topic.params(),
            "scope": topic.as_str(),
        });
        let mut request = Request::post(question.url())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(body.to_string()))
            .ok()?;
        if let Some(token) = &who.token {
            let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let status = self.client().request(request).await.ok()?.status();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
                Some(Verdict::Denied)
            }
            status if status.is_success() => Some(Verdict::Allowed),
            _ => None,
        }
    }

    fn client(&self) -> &Client<HttpsConnector<HttpConnector>, Full<Bytes>> {
        self.client.get_or_init(|| {
            let connector = HttpsConnectorBuilder::new()
                .with_tls_config(tls_config())
                .https_or_http()
                .enable_http1()
                .build();
            Client::builder(TokioExecutor::new()).build(connector)
        })
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<Asked, (Verdict, Instant)>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Believes whom the system's roots vouch for. Where there are none, nobody's certificate is good,
/// and plain questions go on.
fn tls_config() -> ClientConfig {
    let start = || {
        let provider = Arc::new(aws_lc_rs::default_provider());
        ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has the ciphers of the default versions")
    };
    match start().try_with_platform_verifier() {
        Ok(config) => config.with_no_client_auth(),
        Err(error) => {
            warn!(%error, "no roots of the system: back ends over https can't be asked");
            start()
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth()
        }
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker").finish_non_exhaustive()
    }
}
