//! The description of the API, made from the table of routes, and a page to read it.
//!
//! What is served can't differ from what is described: both come from the same rows. The page is
//! plain HTML without a script, so that it reads anywhere and needs nothing from elsewhere.

mod page;
mod schemas;

use std::sync::OnceLock;

use bytes::Bytes;
use hyper::StatusCode;
use serde_json::{Map, Value, json};

use crate::answer::{self, Answer, JSON};
use crate::fault::Code;
use crate::route::{BLANK, Content, Parameter, Place, Reply, Route, Shape};
use crate::routes;

pub(crate) const ROUTES: &[Route] = &[
    Route {
        template: "/v1/openapi.json",
        id: "describe",
        summary: "This description",
        about: "OpenAPI 3.1, made from the table that serves.",
        answers: &[Reply {
            status: 200,
            about: "The description.",
            content: &[Content::json("Anything")],
            headers: &[],
        }],
        handler: |_| Box::pin(async { Ok(described()) }),
        ..BLANK
    },
    Route {
        template: "/v1/docs",
        id: "readDescription",
        summary: "This description as a page",
        about: "",
        answers: &[Reply {
            status: 200,
            about: "The page.",
            content: &[Content::text("text/html")],
            headers: &[],
        }],
        handler: |_| Box::pin(async { Ok(page()) }),
        ..BLANK
    },
];

/// Refusals that any request may get.
pub(crate) const COMMON_ERRORS: &[Code] = &[
    Code::BadHost,
    Code::BadParameter,
    Code::BadPath,
    Code::BadRequest,
    Code::Busy,
    Code::Draining,
    Code::Encoded,
    Code::ForeignHost,
    Code::ForeignOrigin,
    Code::HeadTooLarge,
    Code::Internal,
    Code::RateLimited,
    Code::Unauthorized,
    Code::UnknownParameter,
    Code::UriTooLong,
];

fn described() -> Answer {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let text = TEXT.get_or_init(|| document().to_string().into());
    answer::typed(StatusCode::OK, JSON, text.clone()).into()
}

fn page() -> Answer {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let text = TEXT.get_or_init(|| page::render().into());
    answer::page(text.clone()).into()
}

/// The whole description.
fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes::all() {
        let path = paths
            .entry(described_path(route.template))
            .or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tidings",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Changes of documents and channels, in order and resumable.",
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
        },
        "servers": [{ "url": "/" }],
        "security": [{}, { "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

/// A template as OpenAPI writes it: it has no sign for a rest.
pub(super) fn described_path(template: &str) -> String {
    template.replace("*}", "}")
}

fn operation(route: &Route) -> Value {
    let parameters: Vec<Value> = route.parameters.iter().map(parameter).collect();
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "description": route.about,
        "parameters": parameters,
        "responses": responses(route),
    });
    if route.open_query {
        operation["x-open-query"] = true.into();
    }
    if let Some(body) = &route.body {
        operation["requestBody"] = json!({ "content": content(std::slice::from_ref(body)) });
    }
    operation
}

fn parameter(parameter: &Parameter) -> Value {
    let schema = match parameter.shape {
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Integer(least, None) => json!({ "type": "integer", "minimum": least }),
        Shape::Integer(least, Some(most)) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Shape::List => json!({ "type": "array", "items": { "type": "string" } }),
        Shape::Text => json!({ "type": "string" }),
    };
    let mut described = json!({
        "name": parameter.name,
        "in": parameter.place.as_str(),
        "description": parameter.about,
        "required": parameter.required,
        "schema": schema,
    });
    if parameter.place == Place::Query && parameter.shape == Shape::Flag {
        described["allowEmptyValue"] = true.into();
    }
    described
}

fn responses(route: &Route) -> Value {
    let mut responses = Map::new();
    for reply in route.answers {
        let described = responses
            .entry(reply.status.to_string())
            .or_insert_with(|| json!({ "description": reply.about }));
        if !reply.content.is_empty() {
            described["content"] = content(reply.content);
        }
        for name in reply.headers {
            described["headers"][name] = json!({ "schema": { "type": "string" } });
        }
    }
    for (status, codes) in errors(route) {
        let names: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
        responses.entry(status.to_string()).or_insert_with(|| {
            json!({
                "description": names.join(", "),
                "content": content(&[Content::json("Error")]),
            })
        });
    }
    Value::Object(responses)
}

/// The refusals of a route by their status.
pub(super) fn errors(route: &Route) -> std::collections::BTreeMap<u16, Vec<Code>> {
    let mut errors = std::collections::BTreeMap::<u16, Vec<Code>>::new();
    for code in COMMON_ERRORS.iter().chain(route.errors) {
        let codes = errors.entry(code.status().as_u16()).or_default();
        if !codes.contains(code) {
            codes.push(*code);
        }
    }
    errors
}

fn content(contents: &[Content]) -> Value {
    let mut described = Map::new();
    for content in contents {
        let schema = match content.schema {
            Some(name) => json!({ "$ref": format!("#/components/schemas/{name}") }),
            None => json!({ "type": "string" }),
        };
        described.insert(content.kind.to_owned(), json!({ "schema": schema }));
    }
    Value::Object(described)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every `$ref` below `value`.
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(name)) = fields.get("$ref") {
                    found.insert(name.clone());
                }
                fields.values().for_each(|it| references(it, found));
            }
            Value::Array(items) => items.iter().for_each(|it| references(it, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let document = document();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for reference in found {
            let pointer = reference.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_and_names_its_path_parameters() {
        let mut names = BTreeSet::new();
        for route in routes::all() {
            assert!(names.insert(route.id), "{} stands there twice", route.id);
            assert!(!route.summary.is_empty(), "{}", route.id);
            assert!(!route.answers.is_empty(), "{}", route.id);
            let named = route.template.split('/').filter_map(|part| {
                let part = part.strip_prefix('{')?.strip_suffix('}')?;
                Some(part.trim_end_matches('*'))
            });
            let own = route.parameters.iter().filter(|it| it.place == Place::Path);
            let own: BTreeSet<_> = own.map(|it| it.name).collect();
            assert_eq!(named.collect::<BTreeSet<_>>(), own, "{}", route.id);
        }
    }

    #[test]
    fn the_page_tells_every_route_and_escapes_what_it_quotes() {
        let page = page::render();
        for route in routes::all() {
            assert!(page.contains(route.summary), "{}", route.id);
        }
        assert!(!page.contains("<script"), "the page needs no script");
        assert!(!page.contains("http://") && !page.contains("https://"));
    }
}
