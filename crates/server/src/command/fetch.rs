//! `tidings fetch`: prints a document, byte for byte.

use std::collections::BTreeMap;

use clap::Args;
use client::{Document, Which};
use serde::Serialize;
use wire::DocPath;

use super::connect::Connection;
use super::failure::Failure;
use super::output::Output;
use super::source::parse_path;

/// Arguments of `tidings fetch`.
#[derive(Args, Debug)]
pub(crate) struct FetchArgs {
    /// The document and, if not the current one, its version: /notes/tea.md@3. A content is named
    /// by its hash: /sha256-….
    #[arg(value_name = "PATH[@VERSION]", value_parser = parse_versioned)]
    what: (DocPath, Which),
    #[command(flatten)]
    connection: Connection,
}

/// A document as an object. The body is left out if it is no UTF-8.
#[derive(Serialize)]
struct Record<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<&'a str>,
    metadata: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
}

pub(super) async fn run(args: &FetchArgs) -> Result<(), Failure> {
    let (path, which) = &args.what;
    let client = args.connection.client()?;
    let document = client.fetch(path, *which).await;
    client.close().await;
    let document = document?;
    let mut output = Output::new(args.connection.json);
    if output.is_json() {
        output.line(&record(path, &document), &[])
    } else {
        output.bytes(&document.body)
    }
}

fn record<'a>(path: &'a DocPath, document: &'a Document) -> Record<'a> {
    Record {
        name: path.as_str(),
        version: document.version,
        hash: document.content_hash.to_string(),
        modified: document.modified.as_deref(),
        metadata: document.metadata.iter().collect(),
        body: std::str::from_utf8(&document.body).ok(),
    }
}

/// Reads `PATH` or `PATH@VERSION`. An `@` before anything but digits belongs to the name.
fn parse_versioned(text: &str) -> Result<(DocPath, Which), String> {
    let is_number =
        |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match text.rsplit_once('@') {
        Some((path, digits)) if is_number(digits) => {
            let version = digits
                .parse()
                .map_err(|_| "no document has that many versions")?;
            Ok((parse_path(path)?, Which::Version(version)))
        }
        _ => Ok((parse_path(text)?, Which::Current)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_digits_behind_the_last_at_sign() {
        let read = |text| parse_versioned(text).map(|(path, which)| (path.to_string(), which));
        let is = |path: &str, which| Ok((path.to_owned(), which));
        assert_eq!(read("/a.md"), is("/a.md", Which::Current));
        assert_eq!(read("/a.md@3"), is("/a.md", Which::Version(3)));
        assert_eq!(read("/me@home.md"), is("/me@home.md", Which::Current));
        assert_eq!(read("/a@1.md@2"), is("/a@1.md", Which::Version(2)));
        assert!(read("/a.md@99999999999999999999").is_err());
        assert!(read("a.md").is_err());
    }
}
