//! `tidings lookup`: searches titles and tags.

use clap::Args;
use client::LookupQuery;
use serde::Serialize;
use wire::DocPath;

use super::connect::Connection;
use super::failure::Failure;
use super::output::Output;
use super::source::parse_path;

/// Arguments of `tidings lookup`.
#[derive(Args, Debug)]
pub(crate) struct LookupArgs {
    /// Words of titles, or whole tags; every document if this is missing.
    #[arg(default_value = "*")]
    text: String,
    /// Only documents with this tag; may be repeated.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only documents of this type.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only documents whose metadata says so; may be repeated.
    #[arg(long = "filter", value_name = "KEY=VALUE", value_parser = parse_filter)]
    filters: Vec<(String, String)>,
    /// Only documents below this directory.
    #[arg(long = "in", value_name = "PREFIX", default_value = "/", value_parser = parse_path)]
    scope: DocPath,
    /// Rows at most.
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Serialize)]
struct Record<'a> {
    name: &'a str,
    importance: &'a str,
    title: &'a str,
    tags: &'a [String],
}

pub(super) async fn run(args: &LookupArgs) -> Result<(), Failure> {
    let tags = args.tags.iter().map(|tag| ("tag".to_owned(), tag.clone()));
    let kind = args
        .kind
        .iter()
        .map(|kind| ("type".to_owned(), kind.clone()));
    let query = LookupQuery {
        text: args.text.clone(),
        filters: tags.chain(kind).chain(args.filters.clone()).collect(),
        limit: args.limit,
    };
    let client = args.connection.client()?;
    let matches = client.lookup(&args.scope, &query).await;
    client.close().await;
    let mut output = Output::new(args.connection.json);
    for found in &matches? {
        let record = Record {
            name: &found.path,
            importance: &found.importance,
            title: &found.title,
            tags: &found.tags,
        };
        let tags = found.tags.join(",");
        output.line(
            &record,
            &[&found.path, &found.importance, &found.title, &tags],
        )?;
    }
    Ok(())
}

fn parse_filter(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("write it as key=value, such as modified-after=2026-11-01")?;
    if value.contains(',') {
        return Err("a comma would begin another filter".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}
