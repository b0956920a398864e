//! One HTTP/1 request to a server elsewhere, on a connection of its own.
//!
//! It is for those who ask seldom: a command, and the server when it reads the keys of an issuer.
//! So nothing is kept or tried again, and what takes long is the caller's to bound, except for the
//! dial. Certificates are judged as the Mark client judges them.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::{ServerAddress, Trust};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::{Scheme, Uri};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use wire::ContentHash;

/// A server that is there answers a dial within round trips.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// An `http://` or `https://` URL of a server, or of something on it.
#[derive(Clone, Debug)]
pub(crate) struct HttpUrl {
    server: ServerAddress,
    is_tls: bool,
    /// The path and the query; without a slash at its end, so that a path can be added.
    target: String,
}

/// Why a request has no answer.
#[derive(Debug, Error)]
pub(crate) enum HttpError {
    /// The host can't be reached.
    #[error("connect to {server}: {cause}")]
    Connect {
        server: ServerAddress,
        cause: io::Error,
    },
    /// The dial took too long.
    #[error("connect to {0}: no answer in time")]
    DialTimeout(ServerAddress),
    /// The conversation broke.
    #[error("talk to {server}: {cause}")]
    Exchange {
        server: ServerAddress,
        cause: hyper::Error,
    },
    /// The body is longer than the caller takes, or broke.
    #[error("read the answer of {server}: {reason}")]
    Body {
        server: ServerAddress,
        reason: String,
    },
    /// TLS can't be set up.
    #[error("set up TLS: {cause}")]
    Tls { cause: rustls::Error },
}

/// Why a text is no URL that can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it must be an http:// or https:// URL with a host, and without a user")]
pub(crate) struct HttpUrlError;

impl FromStr for HttpUrl {
    type Err = HttpUrlError;

    fn from_str(text: &str) -> Result<Self, HttpUrlError> {
        let uri: Uri = text.parse().map_err(|_| HttpUrlError)?;
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err(HttpUrlError),
        };
        let authority = uri.authority().ok_or(HttpUrlError)?;
        let host = authority.host();
        if host.is_empty() || authority.as_str().contains('@') {
            return Err(HttpUrlError);
        }
        let port = authority
            .port_u16()
            .unwrap_or(if is_tls { 443 } else { 80 });
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let target = uri.path_and_query().map_or("", |it| it.as_str());
        Ok(Self {
            server: ServerAddress::new(bare, port),
            is_tls,
            target: target.trim_end_matches('/').to_owned(),
        })
    }
}

impl HttpUrl {
    /// The same server and what lies at `path` below this.
    pub(crate) fn join(&self, path: &str) -> Self {
        Self {
            target: format!("{}{path}", self.target),
            ..self.clone()
        }
    }

    /// Sends `request`, of which only the target is missing, and gives the head of the answer.
    ///
    /// Cancel-safe: the connection ends with the answer's body, or when this is dropped.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        trust: Trust,
        on_first_use: fn(&ServerAddress, ContentHash),
    ) -> Result<Response<Incoming>, HttpError> {
        let target = if self.target.is_empty() {
            "/"
        } else {
            &self.target
        };
        // The target was part of a URL that could be read; what was added is of our own making.
        *request.uri_mut() = target.parse().unwrap_or_default();
        if let Ok(host) = HeaderValue::try_from(self.server.to_string()) {
            request.headers_mut().insert(HOST, host);
        }
        let dialled = timeout(DIAL_TIMEOUT, self.dial()).await;
        let stream = dialled.map_err(|_| HttpError::DialTimeout(self.server.clone()))??;
        if self.is_tls {
            let secured = timeout(DIAL_TIMEOUT, self.secure(stream, trust, on_first_use)).await;
            let stream = secured.map_err(|_| HttpError::DialTimeout(self.server.clone()))??;
            self.exchange(stream, request).await
        } else {
            self.exchange(stream, request).await
        }
    }

    /// The whole body of `answer`, if it has at most `most` bytes. Cancel-safe.
    pub(crate) async fn body(
        &self,
        answer: Response<Incoming>,
        most: usize,
    ) -> Result<Bytes, HttpError> {
        let body = Limited::new(answer.into_body(), most).collect().await;
        let body = body.map_err(|error| HttpError::Body {
            server: self.server.clone(),
            reason: error.to_string(),
        })?;
        Ok(body.to_bytes())
    }

    async fn dial(&self) -> Result<TcpStream, HttpError> {
        let address = (self.server.host(), self.server.port());
        TcpStream::connect(address)
            .await
            .map_err(|cause| self.unconnected(cause))
    }

    async fn secure(
        &self,
        stream: TcpStream,
        trust: Trust,
        on_first_use: fn(&ServerAddress, ContentHash),
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + 'static, HttpError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|cause| HttpError::Tls { cause })?
            .dangerous()
            .with_custom_certificate_verifier(trust.verifier(self.server.clone(), on_first_use))
            .with_no_client_auth();
        let name = ServerName::try_from(self.server.host().to_owned())
            .map_err(|error| self.unconnected(io::Error::other(error)))?;
        let connector = TlsConnector::from(Arc::new(config));
        let connected = connector.connect(name, stream).await;
        connected.map_err(|cause| self.unconnected(cause))
    }

    async fn exchange<S>(
        &self,
        stream: S,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, HttpError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let broken = |cause| HttpError::Exchange {
            server: self.server.clone(),
            cause,
        };
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        // It ends with the body, or with its reader; what broke shows in what is read.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(broken)
    }

    fn unconnected(&self, cause: io::Error) -> HttpError {
        HttpError::Connect {
            server: self.server.clone(),
            cause,
        }
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.server, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_server_and_maybe_a_path() {
        for (text, shown) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://Example.com/", "http://example.com:80"),
            ("https://[::1]/base/", "https://[::1]:443/base"),
            ("https://a.b/keys?x=1", "https://a.b:443/keys?x=1"),
        ] {
            let url: HttpUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), shown);
        }
        let url: HttpUrl = "http://h/base/".parse().unwrap();
        assert_eq!(url.join("/v1/watch").target, "/base/v1/watch");
    }

    #[test]
    fn what_can_not_be_asked_is_no_url() {
        for text in ["mark://h", "h:80", "/path", "", "http://", "http://u:p@h/"] {
            assert_eq!(text.parse::<HttpUrl>().unwrap_err(), HttpUrlError, "{text}");
        }
    }
}
