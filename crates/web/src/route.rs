//! One row of the table of routes: what it takes, what it answers and who answers.
//!
//! The same row dispatches a request and describes it in the OpenAPI document, so the two can't
//! disagree: a parameter that isn't in the row is refused.

use std::fmt;
use std::pin::Pin;

use hyper::Method;
use hyper::http::request::Parts;

use crate::answer::Answer;
use crate::call::Call;
use crate::face::Face;
use crate::fault::{Code, Fault};
use crate::stream::Admitted;

/// What a handler gives back in time.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Answer, Fault>> + Send>>;

/// Whether a stream may begin at all, and its place.
pub(crate) type Admit = fn(&Face, &Parts) -> Result<Option<Admitted>, Fault>;

/// A row of the table.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// Segments, of which `{name}` is any one and `{name*}`, at the end, any rest.
    pub(crate) template: &'static str,
    /// The operation's name, also in metrics.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    /// More, in CommonMark.
    pub(crate) about: &'static str,
    pub(crate) parameters: &'static [Parameter],
    /// Takes query parameters beyond those of the row.
    pub(crate) open_query: bool,
    pub(crate) body: Option<Content>,
    pub(crate) answers: &'static [Reply],
    /// Refusals beyond those that every route has.
    pub(crate) errors: &'static [Code],
    /// Asked before it is looked at who calls; for routes that hold a stream.
    pub(crate) admit: Option<Admit>,
    pub(crate) handler: fn(Call) -> Answering,
}

/// A parameter of a route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Header,
    Path,
    Query,
}

impl Place {
    /// The word of OpenAPI.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Path => "path",
            Self::Query => "query",
        }
    }
}

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Flag,
    /// An integer from, and to if there is an end.
    Integer(u64, Option<u64>),
    /// Texts, by repetition of the parameter.
    List,
    Text,
}

/// The body of a request or of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    /// The media type.
    pub(crate) kind: &'static str,
    /// The name of a schema in the document, or nothing for text.
    pub(crate) schema: Option<&'static str>,
}

/// An answer that is no refusal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) about: &'static str,
    pub(crate) content: &'static [Content],
    pub(crate) headers: &'static [&'static str],
}

impl Parameter {
    /// A query parameter that may be left out.
    pub(crate) const fn query(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self {
            name,
            place: Place::Query,
            shape,
            required: false,
            about,
        }
    }

    /// A header field that may be left out.
    pub(crate) const fn header(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            place: Place::Header,
            shape: Shape::Text,
            required: false,
            about,
        }
    }

    /// A name of the template.
    pub(crate) const fn path(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            place: Place::Path,
            shape: Shape::Text,
            required: true,
            about,
        }
    }

    /// The same, and it must be there.
    pub(crate) const fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

impl Content {
    /// JSON of a named schema.
    pub(crate) const fn json(schema: &'static str) -> Self {
        Self {
            kind: "application/json",
            schema: Some(schema),
        }
    }

    /// Text of a media type.
    pub(crate) const fn text(kind: &'static str) -> Self {
        Self { kind, schema: None }
    }
}

/// A row's usual values, for the rest of a struct.
pub(crate) const BLANK: Route = Route {
    method: Method::GET,
    template: "",
    id: "",
    summary: "",
    about: "",
    parameters: &[],
    open_query: false,
    body: None,
    answers: &[],
    errors: &[],
    admit: None,
    handler: |_| Box::pin(async { Err(Code::NotFound.into()) }),
};

impl Route {
    /// What stands at the template's names if `path` fits it. Empty segments count for nothing
    /// before the rest, whose slashes are kept.
    pub(crate) fn fit(&self, path: &str) -> Option<Vec<(&'static str, String)>> {
        let mut params = Vec::new();
        let mut rest = path;
        for part in self.template.split('/').filter(|part| !part.is_empty()) {
            rest = rest.trim_start_matches('/');
            if let Some(name) = part.strip_prefix('{').and_then(|it| it.strip_suffix("*}")) {
                params.push((name, format!("/{rest}")));
                return Some(params);
            }
            let (segment, after) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if let Some(name) = part.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
                if segment.is_empty() {
                    return None;
                }
                params.push((name, segment.to_owned()));
            } else if segment != part {
                return None;
            }
            rest = after;
        }
        rest.trim_start_matches('/').is_empty().then_some(params)
    }

    /// True if a query may have `name`.
    pub(crate) fn takes(&self, name: &str) -> bool {
        let own = |it: &&Parameter| it.place == Place::Query && it.name == name;
        self.open_query || self.parameters.iter().any(|it| own(&it))
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(template: &'static str, path: &str) -> Option<Vec<String>> {
        let route = Route { template, ..BLANK };
        let params = route.fit(path)?;
        Some(params.into_iter().map(|(_, value)| value).collect())
    }

    // T65
    #[test]
    fn slashes_that_say_nothing_change_no_route() {
        for path in ["/v1/watch", "/v1/watch/", "//v1//watch"] {
            assert_eq!(fit("/v1/watch", path), Some(vec![]), "{path}");
        }
        for path in ["/v1", "/v1/watch/x", "/v1/watches", "/", "/V1/watch"] {
            assert_eq!(fit("/v1/watch", path), None, "{path}");
        }
    }

    #[test]
    fn a_rest_keeps_its_slashes() {
        let rest = |path| fit("/v1/documents/{path*}", path).map(|mut it| it.remove(0));
        assert_eq!(rest("/v1/documents/notes/"), Some("/notes/".into()));
        assert_eq!(rest("/v1/documents/a.md"), Some("/a.md".into()));
        assert_eq!(rest("/v1/documents"), Some("/".into()));
        assert_eq!(rest("/v1/documents/"), Some("/".into()));
    }

    #[test]
    fn a_name_is_one_segment() {
        let template = "/v1/channels/{name}/presence";
        assert_eq!(
            fit(template, "/v1/channels/room/presence"),
            Some(vec!["room".into()])
        );
        assert_eq!(fit(template, "/v1/channels//presence"), None);
        assert_eq!(fit(template, "/v1/channels/a/b/presence"), None);
    }
}
