//! The description as a page to read.

use std::fmt::Write;

use super::{described_path, errors};
use crate::fault::Code;
use crate::route::{Parameter, Route, Shape};
use crate::routes;

const HEAD: &str = include_str!("page.html");

/// The page.
pub(super) fn render() -> String {
    let mut page = HEAD.to_owned();
    for route in routes::all() {
        push_route(&mut page, route);
    }
    page.push_str("<h2 id=\"errors\">Errors</h2>\n<dl class=\"errors\">\n");
    for code in Code::ALL {
        let (name, status) = (code.as_str(), code.status().as_u16());
        push(
            &mut page,
            format_args!("<dt><code>{name}</code> {status}</dt>"),
        );
        let (message, fix) = (escape(code.message()), escape(code.fix()));
        push(
            &mut page,
            format_args!("<dd>{message}. <em>{fix}.</em></dd>\n"),
        );
    }
    page.push_str("</dl>\n</main>\n</html>\n");
    page
}

fn push_route(page: &mut String, route: &Route) {
    let (id, method) = (route.id, route.method.as_str());
    let path = escape(&described_path(route.template));
    let summary = escape(route.summary);
    push(
        page,
        format_args!(
            "<section id=\"{id}\">\n<h2>{summary}</h2>\n\
             <p class=\"call\"><b>{method}</b> <code>{path}</code></p>\n"
        ),
    );
    if !route.about.is_empty() {
        push(page, format_args!("<p>{}</p>\n", prose(route.about)));
    }
    if !route.parameters.is_empty() {
        page.push_str("<dl>\n");
        for parameter in route.parameters {
            push_parameter(page, parameter);
        }
        page.push_str("</dl>\n");
    }
    page.push_str("<p class=\"answers\">");
    for reply in route.answers {
        push(
            page,
            format_args!("<b>{}</b> {} ", reply.status, prose(reply.about)),
        );
    }
    page.push_str("</p>\n<p class=\"refusals\">");
    for code in errors(route).into_values().flatten() {
        if route.errors.contains(&code) {
            push(page, format_args!("<code>{}</code> ", code.as_str()));
        }
    }
    page.push_str("</p>\n</section>\n");
}

fn push_parameter(page: &mut String, parameter: &Parameter) {
    let kind = match parameter.shape {
        Shape::Flag => "flag",
        Shape::Integer(..) => "integer",
        Shape::List => "text, may be repeated",
        Shape::Text => "text",
    };
    let (name, place) = (escape(parameter.name), parameter.place.as_str());
    let about = prose(parameter.about);
    push(
        page,
        format_args!("<dt><code>{name}</code> <i>{place}, {kind}</i></dt><dd>{about}</dd>\n"),
    );
}

/// Prose in which backticks mark code.
fn prose(text: &str) -> String {
    let mut html = String::new();
    for (number, part) in text.split('`').enumerate() {
        let part = escape(part);
        match number % 2 {
            0 => html.push_str(&part),
            _ => push(&mut html, format_args!("<code>{part}</code>")),
        }
    }
    html
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn push(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = page.write_fmt(text);
}
