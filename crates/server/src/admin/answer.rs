//! Which answer a request to the admin listener gets.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use prometheus_client::registry::Registry;

use super::status::{Report, Status};

/// Headers that a proxy adds: who asks then is not on this machine.
const FORWARDING: [&str; 4] = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];

/// A build is a version, a date or a hash.
const BUILD_LEN_MAX: usize = 255;

const JSON: &str = "application/json";
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

type Answer = Response<Full<Bytes>>;

/// Everything that can be asked.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) status: Arc<Status>,
    pub(super) registry: Arc<Mutex<Registry>>,
}

impl Answers {
    pub(super) fn answer<B>(&self, request: &Request<B>) -> Answer {
        if !is_of_this_machine(request.headers()) {
            return answer(StatusCode::MISDIRECTED_REQUEST, TEXT, "not this host\n");
        }
        let direct = !FORWARDING
            .iter()
            .any(|name| request.headers().contains_key(*name));
        let path = request.uri().path();
        if let Some(build) = path.strip_prefix("/build/").filter(|_| direct) {
            return self.build(request.method(), build);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n");
        }
        match path {
            "/livez" => answer(StatusCode::OK, TEXT, "alive\n"),
            "/readyz" => readiness(&self.status.server(), direct),
            "/metrics" if direct => self.metrics(),
            path => path
                .strip_prefix("/readyz/")
                .and_then(|source| self.status.source(source))
                .map_or_else(not_found, |report| readiness(&report, direct)),
        }
    }

    /// Takes the build of the application that is current. A page in a browser can't have this
    /// done: PUT from elsewhere is asked for first, and that is refused.
    fn build(&self, method: &Method, build: &str) -> Answer {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
        let is_build = (1..=BUILD_LEN_MAX).contains(&build.len()) && build.bytes().all(is_plain);
        if *method != Method::PUT {
            return answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only PUT\n");
        }
        if !is_build {
            let rule = "a build is 1 to 255 characters of A-Z a-z 0-9 . _ + -\n";
            return answer(StatusCode::BAD_REQUEST, TEXT, rule);
        }
        match self.status.set_build(Some(build)) {
            true => answer(StatusCode::OK, TEXT, "sockets of another build are told\n"),
            false => answer(
                StatusCode::SERVICE_UNAVAILABLE,
                TEXT,
                "HTTP is not served\n",
            ),
        }
    }

    fn metrics(&self) -> Answer {
        let mut text = String::new();
        match prometheus_client::encoding::text::encode(&mut text, &super::lock(&self.registry)) {
            Ok(()) => answer(StatusCode::OK, METRICS, text),
            Err(error) => {
                tracing::error!("metrics: {error}");
                answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, "internal error\n")
            }
        }
    }
}

fn readiness(report: &Report, direct: bool) -> Answer {
    let status = if report.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    match direct {
        true => answer(status, JSON, format!("{}\n", report.details)),
        false if report.ready => answer(status, TEXT, "ready\n"),
        false => answer(status, TEXT, "not ready\n"),
    }
}

fn not_found() -> Answer {
    answer(
        StatusCode::NOT_FOUND,
        TEXT,
        "there are /livez, /readyz, /readyz/{source}, /metrics\n",
    )
}

fn answer(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// True if the request names this machine, or no machine as HTTP/1.0 may.
fn is_of_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else {
        return true;
    };
    let Some(authority) = host.to_str().ok().and_then(|text| text.parse().ok()) else {
        return false;
    };
    let authority: hyper::http::uri::Authority = authority;
    let name = authority.host();
    let plain = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || plain
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let answers = Answers {
            status: Arc::new(Status::default()),
            registry: Arc::default(),
        };
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = answers.answer(&request.body(()).unwrap());
        let status = answer.status().as_u16();
        (status, format!("{:?}", answer.into_body()))
    }

    // T57
    #[test]
    fn a_server_that_starts_is_alive_and_not_ready() {
        assert_eq!(ask("/livez", &[]).0, 200);
        let (status, body) = ask("/readyz", &[]);
        assert_eq!(status, 503);
        assert!(body.contains("starting"), "{body}");
        assert_eq!(ask("/readyz/documents", &[]).0, 503);
        assert_eq!(ask("/readyz/nothing", &[]).0, 404);
    }

    // T57
    #[test]
    fn details_are_not_for_those_behind_a_proxy() {
        for header in FORWARDING {
            let (status, body) = ask("/readyz", &[(header, "192.0.2.1")]);
            assert_eq!(status, 503);
            assert!(!body.contains("starting"), "{body}");
            assert_eq!(ask("/metrics", &[(header, "192.0.2.1")]).0, 404);
        }
    }

    #[test]
    fn a_foreign_host_is_told_nothing() {
        for host in ["localhost", "127.0.0.1:9309", "[::1]:9309", "LOCALHOST:1"] {
            assert_eq!(ask("/livez", &[("host", host)]).0, 200, "{host}");
        }
        for host in ["example.com", "127.0.0.1.example.com", "192.0.2.1", "a b"] {
            assert_eq!(ask("/livez", &[("host", host)]).0, 421, "{host}");
        }
    }

    #[test]
    fn metrics_are_open_metrics_text() {
        let (status, body) = ask("/metrics", &[]);
        assert_eq!(status, 200);
        assert!(body.contains("# EOF"), "{body}");
    }
}
