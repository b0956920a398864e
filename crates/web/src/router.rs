//! From a request to the handler of its route, and back to an answer.
//!
//! The order of checks: the size of the head, the host and the page it comes from, the route, the
//! method, the parameters, the rate, the caller. Rights are the handler's. So nothing of what is
//! there shows before the path was read in its one spelling, and a preflight needs no token.

use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CONTENT_ENCODING, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};

use crate::answer::{self, Answer, Body};
use crate::call::{Call, Peer, RETRY_SOON};
use crate::face::Face;
use crate::fault::{Code, Fault};
use crate::held::Link;
use crate::limits::Limit;
use crate::origin;
use crate::query::{self, Query};
use crate::route::Route;
use crate::routes;
use crate::stream;
use crate::who::Who;

/// The name under which answers without a route are counted.
const NO_ROUTE: &str = "none";

/// Answers a request. Stays pending for ever if the connection is taken out of HTTP.
pub(crate) async fn serve(
    face: Arc<Face>,
    peer: Peer,
    link: Arc<Link>,
    request: Request<Incoming>,
) -> Response<Body> {
    let mut common = face.origins.fields(request.headers());
    common.insert(answer::NOSNIFF.0, answer::NOSNIFF.1);
    let mut counted = NO_ROUTE;
    let (head, body) = request.into_parts();
    let accept = head.headers.get(ACCEPT).cloned();
    let answered = answer(face.clone(), peer, head, body, &common, &mut counted).await;
    match answered {
        Ok(Answer::Hold(holder)) => {
            face.metrics.answered(counted, StatusCode::OK.as_u16());
            link.ask(holder, common);
            std::future::pending().await
        }
        Ok(Answer::Reply(mut reply)) => {
            add_missing(reply.headers_mut(), common);
            face.metrics.answered(counted, reply.status().as_u16());
            reply
        }
        Err(fault) => {
            let late = stream::late(&face, accept.as_ref(), &fault);
            let mut reply = late.unwrap_or_else(|| answer::refusal(&fault));
            add_missing(reply.headers_mut(), common);
            face.metrics.answered(counted, reply.status().as_u16());
            reply
        }
    }
}

async fn answer(
    face: Arc<Face>,
    peer: Peer,
    head: Parts,
    body: Incoming,
    common: &HeaderMap,
    counted: &mut &'static str,
) -> Result<Answer, Fault> {
    admit(&face, &head)?;
    let path = query::decode(head.uri.path())?;
    let fits: Vec<_> = fits(&path).collect();
    if fits.is_empty() {
        return Err(Code::NotFound.into());
    }
    if head.method == Method::OPTIONS {
        return Ok(options(&face, &fits, &head.headers, common).into());
    }
    let wanted = |route: &Route| {
        route.method == head.method || head.method == Method::HEAD && route.method == Method::GET
    };
    let Some((route, params)) = fits.iter().find(|(route, _)| wanted(route)) else {
        let fault = Fault::new(Code::MethodNotAllowed);
        return Err(fault.header(ALLOW, methods(&fits)));
    };
    *counted = route.id;
    let query = Query::parse(head.uri.query().unwrap_or_default())?;
    if let Some(name) = query.names().find(|name| !route.takes(name)) {
        return Err(Fault::detailed(Code::UnknownParameter, name));
    }
    // Streams have a budget of their own, in which a herd behind one proxy finds room.
    let is_rated = route.admit.is_none();
    if is_rated && !face.take_rate(peer.network, Instant::now()) {
        face.metrics.refused(Limit::Rate);
        return Err(Fault::new(Code::RateLimited).retry_after(RETRY_SOON));
    }
    // Before it is looked at who asks, so that a flood of strangers is cheap (T26).
    let admitted = match route.admit {
        Some(admit) => admit(&face, &head)?,
        None => None,
    };
    let who = caller(&face, route, &head.headers, &query)?;
    let call = Call {
        admitted,
        params: params.clone(),
        face,
        peer,
        who,
        head,
        body,
        query,
    };
    (route.handler)(call).await
}

/// Who calls, by a header or, where a stream can't have one and it is allowed, by the query.
fn caller(face: &Face, route: &Route, headers: &HeaderMap, query: &Query) -> Result<Who, Fault> {
    let in_query = query.one("token")?.filter(|_| route.admit.is_some());
    match in_query {
        Some(_) if !face.streams.query_tokens => Err(Fault::detailed(
            Code::BadParameter,
            "`token` is not taken here; it would stand in logs",
        )),
        Some(token) => Who::identify(face, Some(token)),
        None => Who::of_headers(face, headers),
    }
}

/// What is refused whatever it asks for.
fn admit(face: &Face, head: &Parts) -> Result<(), Fault> {
    if head.headers.len() > face.limits.head_fields {
        face.metrics.refused(Limit::HeadFields);
        return Err(Code::HeadTooLarge.into());
    }
    let host = origin::host(head)?;
    if face.authority.current().is_dev() {
        origin::guard_dev(host.as_ref(), &head.headers, &face.origins)
            .inspect_err(|_| _ = face.metrics.foreign.inc())?;
    }
    let encoding = head.headers.get(CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| encoding != "identity") {
        return Err(Code::Encoded.into());
    }
    Ok(())
}

type Fit = (&'static Route, Vec<(&'static str, String)>);

/// The routes of `path`, whatever their method.
fn fits(path: &str) -> impl Iterator<Item = Fit> {
    routes::all().filter_map(|route| route.fit(path).map(|params| (route, params)))
}

/// The methods that a path takes, as `Allow` lists them.
fn methods(fits: &[Fit]) -> HeaderValue {
    let mut names: Vec<&str> = vec!["OPTIONS"];
    for (route, _) in fits {
        names.push(route.method.as_str());
        if route.method == Method::GET {
            names.push("HEAD");
        }
    }
    names.sort_unstable();
    names.dedup();
    // Names of methods are legal in a header.
    HeaderValue::try_from(names.join(", ")).unwrap_or(HeaderValue::from_static(""))
}

fn options(face: &Face, fits: &[Fit], request: &HeaderMap, common: &HeaderMap) -> Response<Body> {
    let methods = methods(fits);
    let mut headers = face.origins.preflight(request, methods.clone(), common);
    headers.insert(ALLOW, methods);
    answer::bare(StatusCode::NO_CONTENT, headers)
}

/// Adds fields that the answer doesn't have itself.
fn add_missing(headers: &mut HeaderMap, common: HeaderMap) {
    for (name, value) in common {
        if let Some(name) = name {
            headers.entry(name).or_insert(value);
        }
    }
}
