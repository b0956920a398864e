//! Which pages may use the server: CORS, and the wall around a development server.
//!
//! A listed origin is echoed exactly, with credentials; any other gets no CORS fields, so that its
//! page learns nothing (T13). A development server gives every right to whoever reaches it, and a
//! page in a browser on this machine does reach it, so there a request from a page of another
//! origin, or under a name that is not this machine's (a rebound one), is refused before anything
//! else is looked at.

use std::net::IpAddr;

use hyper::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, HOST, HeaderMap, HeaderValue, ORIGIN, VARY,
};
use hyper::http::request::Parts;
use hyper::http::uri::{Authority, Uri};
use thiserror::Error;

use crate::fault::{Code, Fault};

/// What a page may send beyond what every page may.
const ALLOWED_FIELDS: &str = "Authorization, Cache-Control, Content-Type, Idempotency-Key, \
                              If-Match, If-None-Match, Last-Event-ID";
/// Fields of a document's metadata; their names are the publisher's.
const META_PREFIX: &str = "tidings-meta-";
/// What a page may read beyond what every page may.
const EXPOSED_FIELDS: HeaderValue = HeaderValue::from_static(
    "ETag, Idempotency-Replayed, Retry-After, Tidings-Current-Version, Tidings-Cursor, \
     Tidings-Modified, Tidings-Version",
);
/// A day; browsers cut it to their own bound.
const PREFLIGHT_AGE: HeaderValue = HeaderValue::from_static("86400");
/// Fields that a preflight may ask for at once; more is nobody's honest wish.
const ASKED_FIELDS_MAX: usize = 64;

/// The origins of pages that may use the server from elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    /// Pages of any origin may read what needs no credentials.
    any: bool,
    /// Exact origins.
    listed: Vec<String>,
}

/// Why a text is no list of origins.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OriginsError {
    /// `*` beside others: it can't go with credentials, and theirs would be lost in it.
    #[error("`*` stands alone or not at all")]
    AnyBesideOthers,
    /// Not the form in which browsers send an origin.
    #[error("`{0}` is no origin: write scheme://host or scheme://host:port in lower case")]
    Origin(String),
}

impl Origins {
    /// Reads origins such as `https://app.example`, or the one text `*`.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, OriginsError> {
        let listed: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        if listed.iter().any(|text| text == "*") {
            if listed.len() > 1 {
                return Err(OriginsError::AnyBesideOthers);
            }
            return Ok(Self {
                any: true,
                listed: Vec::new(),
            });
        }
        match listed.iter().find(|text| !is_origin(text)) {
            Some(text) => Err(OriginsError::Origin(text.clone())),
            None => Ok(Self { any: false, listed }),
        }
    }

    /// True if `origin` is listed by name.
    pub(crate) fn lists(&self, origin: &str) -> bool {
        self.listed.iter().any(|own| own == origin)
    }

    /// True if no page from elsewhere was ever meant to come.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any && self.listed.is_empty()
    }

    /// The fields that every answer to this request carries.
    pub(crate) fn fields(&self, request: &HeaderMap) -> HeaderMap {
        let mut fields = HeaderMap::new();
        if self.is_empty() {
            return fields;
        }
        if self.any {
            let any = HeaderValue::from_static("*");
            fields.insert(ACCESS_CONTROL_ALLOW_ORIGIN, any);
            fields.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_FIELDS);
            return fields;
        }
        fields.insert(VARY, HeaderValue::from_static("Origin"));
        let origin = request.get(ORIGIN);
        let listed = origin.filter(|it| it.to_str().is_ok_and(|text| self.lists(text)));
        if let Some(origin) = listed {
            let yes = HeaderValue::from_static("true");
            fields.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            fields.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
            fields.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_FIELDS);
        }
        fields
    }

    /// The further fields of the answer to a preflight, if `cors`, the usual ones, let the page in.
    pub(crate) fn preflight(
        &self,
        request: &HeaderMap,
        methods: HeaderValue,
        cors: &HeaderMap,
    ) -> HeaderMap {
        let mut fields = HeaderMap::new();
        if !cors.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
            return fields;
        }
        fields.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        fields.insert(ACCESS_CONTROL_MAX_AGE, PREFLIGHT_AGE);
        let asked = request.get(ACCESS_CONTROL_REQUEST_HEADERS);
        let asked = asked.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let mut allowed = ALLOWED_FIELDS.to_owned();
        for name in asked.split(',').map(str::trim).take(ASKED_FIELDS_MAX) {
            if name.to_ascii_lowercase().starts_with(META_PREFIX) {
                allowed.push_str(", ");
                allowed.push_str(name);
            }
        }
        if let Ok(allowed) = HeaderValue::try_from(allowed) {
            fields.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        }
        fields
    }
}

/// The host that a request names, which HTTP/1.1 must.
pub(crate) fn host(head: &Parts) -> Result<Option<Authority>, Fault> {
    let bad = || Fault::from(Code::BadHost);
    if let Some(authority) = head.uri.authority() {
        return Ok(Some(authority.clone()));
    }
    let mut fields = head.headers.get_all(HOST).iter();
    let Some(field) = fields.next() else {
        return match head.version {
            hyper::Version::HTTP_11 => Err(bad()),
            _ => Ok(None),
        };
    };
    let text = field.to_str().map_err(|_| bad())?;
    match (fields.next(), text.parse()) {
        (None, Ok(authority)) => Ok(Some(authority)),
        _ => Err(bad()),
    }
}

/// Refuses what a development server must not answer.
pub(crate) fn guard_dev(
    host: Option<&Authority>,
    headers: &HeaderMap,
    origins: &Origins,
) -> Result<(), Fault> {
    if host.is_some_and(|host| !is_of_this_machine(host)) {
        return Err(Code::ForeignHost.into());
    }
    if is_foreign(host, headers, origins) {
        return Err(Code::ForeignOrigin.into());
    }
    Ok(())
}

/// True if a page sent the request whose origin is neither listed nor the host it was sent to.
///
/// The scheme is not compared: a proxy in front may have taken TLS away (T16).
pub(crate) fn is_foreign(host: Option<&Authority>, headers: &HeaderMap, origins: &Origins) -> bool {
    let mut fields = headers.get_all(ORIGIN).iter();
    let Some(field) = fields.next() else {
        return false;
    };
    let Ok(origin) = field.to_str() else {
        return true;
    };
    let is_own = || host.is_some_and(|host| is_same(origin, host));
    fields.next().is_some() || !(origins.lists(origin) || is_own())
}

fn is_same(origin: &str, host: &Authority) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else {
        return false;
    };
    let port = match origin.scheme_str() {
        Some("http") => 80,
        Some("https") => 443,
        _ => return false,
    };
    origin.authority().is_some_and(|own| {
        own.host().eq_ignore_ascii_case(host.host())
            && own.port_u16().unwrap_or(port) == host.port_u16().unwrap_or(port)
    })
}

/// True if the name is one of this machine's own.
pub(crate) fn is_of_this_machine(host: &Authority) -> bool {
    let name = host.host();
    let plain = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || plain
            .parse()
            .is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
}

fn is_origin(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else {
        return false;
    };
    let scheme = uri.scheme_str().unwrap_or_default();
    let authority = uri.authority().map_or("", Authority::as_str);
    let rebuilt = format!("{scheme}://{authority}");
    !authority.is_empty()
        && !authority.contains('@')
        && text == rebuilt
        && text == text.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(origin: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, origin.parse().unwrap());
        headers
    }

    fn origins() -> Origins {
        Origins::parse(["https://app.example"]).unwrap()
    }

    #[test]
    fn origins_are_written_as_browsers_send_them() {
        assert!(Origins::parse(["https://app.example", "http://localhost:3000"]).is_ok());
        for text in [
            "https://app.example/",
            "app.example",
            "https://App.example",
            "https://*.example",
            "null",
            "https://user@app.example",
            "",
        ] {
            let refused = Origins::parse([text]);
            let wildcard_host = text.contains('*');
            assert!(refused.is_err() || wildcard_host, "{text}");
        }
        assert_eq!(
            Origins::parse(["*", "https://app.example"]),
            Err(OriginsError::AnyBesideOthers)
        );
    }

    // T13
    #[test]
    fn a_listed_origin_is_echoed_with_credentials_and_no_other() {
        let fields = origins().fields(&headers("https://app.example"));
        assert_eq!(fields[ACCESS_CONTROL_ALLOW_ORIGIN], "https://app.example");
        assert_eq!(fields[ACCESS_CONTROL_ALLOW_CREDENTIALS], "true");
        assert_eq!(fields[VARY], "Origin");
        for other in [
            "https://app.example.evil",
            "https://app.example:444",
            "null",
        ] {
            let fields = origins().fields(&headers(other));
            assert!(!fields.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN), "{other}");
            assert_eq!(fields[VARY], "Origin");
        }
    }

    // T13
    #[test]
    fn any_origin_never_goes_with_credentials() {
        let any = Origins::parse(["*"]).unwrap();
        let fields = any.fields(&headers("https://app.example"));
        assert_eq!(fields[ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        assert!(!fields.contains_key(ACCESS_CONTROL_ALLOW_CREDENTIALS));
    }

    // T14
    #[test]
    fn a_preflight_allows_the_fields_of_a_stream_and_of_metadata() {
        let mut request = headers("https://app.example");
        let asked = "last-event-id, Tidings-Meta-title, x-other";
        request.insert(ACCESS_CONTROL_REQUEST_HEADERS, asked.parse().unwrap());
        let cors = origins().fields(&request);
        let methods = HeaderValue::from_static("GET, HEAD");
        let fields = origins().preflight(&request, methods, &cors);
        let allowed = fields[ACCESS_CONTROL_ALLOW_HEADERS].to_str().unwrap();
        for name in ["Last-Event-ID", "Cache-Control", "Tidings-Meta-title"] {
            assert!(allowed.contains(name), "{allowed}");
        }
        assert!(!allowed.contains("x-other"), "{allowed}");
    }

    #[test]
    fn a_dev_server_answers_to_this_machines_names_and_pages_alone() {
        let none = Origins::default();
        let own = |host: &str| host.parse::<Authority>().unwrap();
        for host in [
            "localhost:8080",
            "127.0.0.1:8080",
            "[::1]:8080",
            "LOCALHOST",
        ] {
            assert!(guard_dev(Some(&own(host)), &HeaderMap::new(), &none).is_ok());
        }
        for host in [
            "evil.example",
            "localhost.evil.example:8080",
            "192.0.2.1",
            "0x7f.1",
        ] {
            let fault = guard_dev(Some(&own(host)), &HeaderMap::new(), &none).unwrap_err();
            assert_eq!(fault.code, Code::ForeignHost, "{host}");
        }
        let here = own("localhost:8080");
        assert!(guard_dev(Some(&here), &headers("http://localhost:8080"), &none).is_ok());
        for origin in [
            "http://localhost:3000",
            "http://127.0.0.1:8080",
            "null",
            "file://",
        ] {
            let fault = guard_dev(Some(&here), &headers(origin), &none).unwrap_err();
            assert_eq!(fault.code, Code::ForeignOrigin, "{origin}");
        }
        assert!(guard_dev(Some(&here), &headers("https://app.example"), &origins()).is_ok());
    }

    // T16
    #[test]
    fn a_page_behind_a_tls_proxy_is_of_the_host_it_was_reached_by() {
        let host: Authority = "app.example".parse().unwrap();
        let none = Origins::default();
        assert!(!is_foreign(
            Some(&host),
            &headers("https://app.example"),
            &none
        ));
        assert!(is_foreign(
            Some(&host),
            &headers("https://other.example"),
            &none
        ));
        assert!(!is_foreign(Some(&host), &HeaderMap::new(), &none));
    }
}
