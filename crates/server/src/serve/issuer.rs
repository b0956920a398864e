//! The issuer of JSON web tokens: its keys, read at the start and again while the server runs.
//!
//! Keys of the configuration and a JWKS file must be readable at the start. A JWKS document at a
//! URL is fetched beside it: a server must not depend on another one to start, and until then
//! tokens of unknown keys are refused. The document is read again every [`RENEWAL`], and when a
//! token was signed with an unknown key, but not sooner than [`PAUSE`] after the last time. One
//! that can't be taken leaves in force what was, is logged once, shows in readiness and is tried
//! again after [`RETRY`].

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use auth::jwt::{Expected, Keys, Verifier};
use bytes::Bytes;
use client::Trust;
use http_body_util::Full;
use hyper::{Request, StatusCode};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use web::WebTokens;

use crate::admin::Status;
use crate::config::Jwt;
use crate::http::HttpUrl;

/// Issuers announce a key some minutes before they sign with it.
const RENEWAL: Duration = Duration::from_secs(5 * 60);

/// Whoever sends tokens of unknown keys must not have us flood the issuer.
const PAUSE: Duration = Duration::from_secs(30);

/// After a failure: an issuer that starts together with us is there soon.
const RETRY: Duration = Duration::from_secs(5);

/// An issuer that is slower than this is asked again later.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// A document of the most keys that are taken has some tens of KiB.
const DOCUMENT_LEN_MAX: usize = 1 << 20;

/// Who issues tokens.
pub(super) struct Issuer {
    pub(super) tokens: WebTokens,
    source: Option<Source>,
}

/// Where keys that may change come from.
#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Url(HttpUrl),
}

impl Issuer {
    /// Reads what must be there at the start; `None` if no key is configured. Blocks on the disk.
    pub(super) fn open(jwt: &Jwt) -> anyhow::Result<Option<Self>> {
        let mut own = Keys::default();
        if let Some(secret) = &jwt.secret {
            own = own.and(Keys::from_secret(secret.as_bytes()).context("auth.jwt_secret")?);
        }
        if let Some(path) = &jwt.public_key {
            let place = || format!("auth.jwt_public_key {}", path.display());
            let pem = fs::read(path).with_context(place)?;
            own = own.and(Keys::from_pem(&pem).with_context(place)?);
        }
        let source = jwt.jwks.as_deref().map(Source::parse);
        if own.is_empty() && source.is_none() {
            return Ok(None);
        }
        let expected = Expected {
            audience: jwt.audience.clone(),
            issuer: jwt.issuer.clone(),
        };
        let verifier = Verifier::new(own, expected);
        if let Some(Source::File(path)) = &source {
            let keys = read(path).with_context(|| format!("auth.jwks {}", path.display()))?;
            verifier.rotate(keys);
        }
        let tokens = WebTokens {
            verifier: Arc::new(verifier),
            unknown_key: Arc::new(Notify::new()),
        };
        Ok(Some(Self { tokens, source }))
    }

    /// Takes the keys anew for as long as the server runs. Cancel-safe.
    pub(super) async fn follow(self, status: Arc<Status>) {
        let Some(source) = self.source else {
            return;
        };
        let mut is_due = matches!(source, Source::Url(_));
        let mut last: Option<String> = None;
        loop {
            if is_due {
                let problem = match source.keys().await {
                    Ok(keys) => {
                        tracing::debug!(keys = keys.len(), "took the keys of the issuer");
                        self.tokens.verifier.rotate(keys);
                        None
                    }
                    Err(error) => Some(format!("{error:#}")),
                };
                if problem != last {
                    match &problem {
                        None => tracing::info!("the keys of the issuer can be read again"),
                        Some(problem) => tracing::warn!("the keys of the issuer stay: {problem}"),
                    }
                }
                status.issuer(problem.clone());
                last = problem;
            }
            is_due = true;
            if last.is_some() {
                sleep(RETRY).await;
                continue;
            }
            sleep(PAUSE).await;
            let rest = RENEWAL.saturating_sub(PAUSE);
            // Either is a reason to look.
            let _ = timeout(rest, self.tokens.unknown_key.notified()).await;
        }
    }
}

impl Source {
    fn parse(text: &str) -> Self {
        text.parse()
            .map_or_else(|_| Self::File(text.into()), Self::Url)
    }

    async fn keys(&self) -> anyhow::Result<Keys> {
        match self {
            Self::File(path) => {
                let place = path.clone();
                let read = tokio::task::spawn_blocking(move || read(&place)).await?;
                read.with_context(|| path.display().to_string())
            }
            Self::Url(url) => timeout(FETCH_TIMEOUT, fetch(url))
                .await
                .with_context(|| format!("{url}: no answer in time"))?
                .with_context(|| url.to_string()),
        }
    }
}

fn read(path: &PathBuf) -> anyhow::Result<Keys> {
    Ok(Keys::from_jwks(&fs::read(path)?)?)
}

async fn fetch(url: &HttpUrl) -> anyhow::Result<Keys> {
    let request = Request::new(Full::<Bytes>::default());
    let answer = url.send(request, Trust::Roots, |_, _| {}).await?;
    let status = answer.status();
    anyhow::ensure!(status == StatusCode::OK, "answered {status}");
    let document = url.body(answer, DOCUMENT_LEN_MAX).await?;
    Ok(Keys::from_jwks(&document)?)
}

#[cfg(test)]
mod tests {
    use auth::jwt::TokenError;
    use jiff::Timestamp;
    use jsonwebtoken::{EncodingKey, Header, jwk::Jwk};

    use super::*;

    const FIRST: &[u8] = b"the first secret of this issuer.";
    const SECOND: &[u8] = b"the second secret of this issuer";

    /// A JWKS document with the key that goes with `secret`, and a token that it signed.
    fn issued(secret: &[u8]) -> (String, String) {
        auth::jwt::install_crypto();
        let id = String::from_utf8_lossy(secret).into_owned();
        let key = EncodingKey::from_secret(secret).unwrap();
        let mut jwk = Jwk::from_encoding_key(&key, jsonwebtoken::Algorithm::HS256).unwrap();
        jwk.common.key_id = Some(id.clone());
        let header = Header {
            kid: Some(id),
            ..Header::default()
        };
        let claims = serde_json::json!({ "exp": 9_999_999_999_u64 });
        let token = jsonwebtoken::encode(&header, &claims, &key).unwrap();
        (serde_json::json!({ "keys": [jwk] }).to_string(), token)
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_of_an_unknown_key_has_the_keys_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.json");
        let ((old_keys, old), (new_keys, new)) = (issued(FIRST), issued(SECOND));
        fs::write(&path, old_keys).unwrap();
        let jwt = Jwt {
            jwks: Some(path.display().to_string()),
            ..Jwt::default()
        };
        let issuer = Issuer::open(&jwt).unwrap().unwrap();
        let WebTokens {
            verifier,
            unknown_key,
        } = issuer.tokens.clone();
        let following = tokio::spawn(issuer.follow(Arc::default()));
        let judge = |token| verifier.verify(token, Timestamp::now()).map(drop);
        assert_eq!(judge(&old), Ok(()));
        assert_eq!(judge(&new), Err(TokenError::UnknownKey));
        fs::write(&path, new_keys).unwrap();
        unknown_key.notify_one();
        sleep(PAUSE * 2).await;
        assert_eq!(judge(&new), Ok(()));
        assert_eq!(judge(&old), Err(TokenError::UnknownKey));
        fs::write(&path, "[]").unwrap();
        sleep(RENEWAL * 2).await;
        assert_eq!(judge(&new), Ok(()), "what was in force stays");
        following.abort();
    }

    #[test]
    fn without_a_key_there_is_no_issuer_and_a_bad_one_is_named() {
        assert!(Issuer::open(&Jwt::default()).unwrap().is_none());
        let missing = Jwt {
            public_key: Some("nowhere.pem".into()),
            ..Jwt::default()
        };
        let error = Issuer::open(&missing).err().unwrap();
        assert!(
            format!("{error:#}").contains("auth.jwt_public_key nowhere.pem"),
            "{error:#}"
        );
    }
}
