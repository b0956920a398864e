//! Publisher metadata in header fields: `Tidings-Meta-KEY`, percent-encoded where it must be.

use documents::PublisherMetadata;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::call::Call;
use crate::fault::{Code, Fault};
use crate::query;

/// What begins the name of a field.
const PREFIX: &str = "tidings-meta-";

/// What is encoded in a value: what a header can't carry or trims, and the sign of the encoding.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// Adds the metadata of a version.
pub(super) fn add(headers: &mut HeaderMap, metadata: &PublisherMetadata) {
    for (key, value) in metadata {
        let name = HeaderName::try_from(format!("{PREFIX}{key}"));
        let value = HeaderValue::try_from(utf8_percent_encode(value, ENCODED).to_string());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.insert(name, value);
        }
    }
}

/// The metadata that a write carries: its fields, `?title=` and every `?tag=`.
pub(super) fn read(call: &Call) -> Result<Vec<(String, String)>, Fault> {
    let bad = |detail: String| Fault::detailed(Code::BadDocument, detail);
    let mut pairs = Vec::new();
    for (name, value) in call.headers() {
        let Some(key) = name.as_str().strip_prefix(PREFIX) else {
            continue;
        };
        let value = value
            .to_str()
            .ok()
            .and_then(|text| query::decode(text).ok());
        let value = value.ok_or_else(|| bad(format!("{name} is not percent-encoded UTF-8")))?;
        pairs.push((key.to_owned(), value));
    }
    let tags: Vec<&str> = call.query.all("tag").collect();
    if let Some(tag) = tags.iter().find(|tag| tag.contains(',')) {
        return Err(bad(format!(
            "the tag {tag:?} has a comma, which separates tags"
        )));
    }
    if !tags.is_empty() {
        pairs.push(("tags".to_owned(), tags.join(",")));
    }
    if let Some(title) = call.query.one("title")? {
        pairs.push(("title".to_owned(), title.to_owned()));
    }
    pairs.sort_unstable();
    match pairs.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(bad(format!("`{}` stands there more than once", pair[0].0))),
        None => Ok(pairs),
    }
}
