//! What a command asks of a server's HTTP API, and what a refusal there means to a terminal.

use bytes::Bytes;
use client::{ServerAddress, Trust};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::http::request::Builder;
use hyper::{Request, Response, StatusCode};
use serde::Deserialize;
use wire::ContentHash;

use super::failure::Failure;
use crate::http::{HttpError, HttpUrl};

/// A refusal is a few texts.
const REFUSAL_LEN_MAX: usize = 64 << 10;

/// A server's HTTP API, and as whom it is asked.
#[derive(Debug)]
pub(super) struct WebServer {
    pub(super) url: HttpUrl,
    pub(super) token: Option<String>,
    pub(super) trust: Trust,
}

/// The body of a refusal.
#[derive(Debug, Deserialize)]
struct Refused {
    error: Reason,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reason {
    message: String,
    fix: String,
    detail: Option<String>,
}

impl WebServer {
    /// Sends `request` to `path`, and gives an answer of success. Cancel-safe.
    pub(super) async fn ask(
        &self,
        path: &str,
        request: Builder,
        body: impl Into<Bytes>,
    ) -> Result<Response<Incoming>, Failure> {
        let answer = self.send(path, request, body).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        Err(self.refusal(answer).await)
    }

    /// The same, whatever the answer is. Cancel-safe.
    pub(super) async fn send(
        &self,
        path: &str,
        request: Builder,
        body: impl Into<Bytes>,
    ) -> Result<Response<Incoming>, Failure> {
        let mut request: Request<Full<Bytes>> = request
            .body(Full::new(body.into()))
            .map_err(Failure::usage)?;
        if let Some(token) = &self.token {
            let field = HeaderValue::try_from(format!("Bearer {token}"));
            let mut field = field.map_err(|_| Failure::usage("the token is no token"))?;
            field.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, field);
        }
        let url = self.url.join(path);
        let answer = url.send(request, self.trust.clone(), told_first_use).await;
        Ok(answer?)
    }

    /// What `answer`, which is no success, says.
    pub(super) async fn refusal(&self, answer: Response<Incoming>) -> Failure {
        let status = answer.status();
        let body = self.url.body(answer, REFUSAL_LEN_MAX).await;
        let said = body
            .ok()
            .and_then(|body| serde_json::from_slice(&body).ok());
        let Some(Refused { error: reason }) = said else {
            let text = format!("{} answered {status}, and not as Tidings does", self.url);
            return Failure::no(text);
        };
        let text = match &reason.detail {
            Some(detail) => format!("{}: {detail}", reason.message),
            None => reason.message,
        };
        let failure = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Failure::unauthorised(text),
            _ => Failure::no(text),
        };
        failure.fix(reason.fix)
    }
}

fn told_first_use(server: &ServerAddress, shown: ContentHash) {
    eprintln!("tidings: {server} is not known yet; its certificate {shown} is trusted now");
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        Self::unreachable(error)
    }
}
