//! Searching documents by tag and title.

use auth::Operation;
use documents::{Lookup, LookupRequest, Match, Resolved};
use hyper::Response;
use serde_json::{Value, json};
use wire::{Cursor, DocPath};

use super::listing::at;
use super::read::can_read;
use super::{parse_target, unread};
use crate::answer::{Answer, Body};
use crate::call::Call;
use crate::fault::{Code, Fault};

/// The query that every document matches.
const ANY: &str = "*";

pub(super) async fn lookup(call: Call) -> Result<Answer, Fault> {
    let scope = parse_target(call.query.one("in")?.unwrap_or("/"))?.path;
    let lookup = question(&call)?;
    let turn = call.turn().await?;
    let searching = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let cursor = call.face.store.feed().head();
        search(&call, &scope, &lookup, &cursor)
    });
    let reply = searching.await.map_err(|failure| {
        tracing::error!(%failure, "search documents");
        Fault::new(Code::Internal)
    })??;
    Ok(reply.into())
}

fn question(call: &Call) -> Result<Lookup, Fault> {
    let query = &call.query;
    let mut clauses = Vec::new();
    let kind = query.one("type")?;
    for (key, value) in query
        .all("tag")
        .map(|tag| ("tag", tag))
        .chain(kind.map(|it| ("type", it)))
    {
        if value.contains(',') {
            let detail = format!("`{key}` has a comma, which separates conditions");
            return Err(Fault::detailed(Code::BadParameter, detail));
        }
        clauses.push(format!("{key}={value}"));
    }
    Lookup::parse(LookupRequest {
        query: query.one("q")?.unwrap_or(ANY),
        filter: Some(&clauses.join(",")),
        limit: query.one("limit")?,
        mode: None,
    })
    .map_err(|fault| Fault::detailed(Code::BadParameter, fault.to_string()))
}

fn search(
    call: &Call,
    scope: &DocPath,
    lookup: &Lookup,
    cursor: &Cursor,
) -> Result<Response<Body>, Fault> {
    call.check(Operation::Read, scope)?;
    let store = &call.face.store;
    let Resolved::Directory(scope) = store.resolve(scope) else {
        return Err(Code::NotFound.into());
    };
    let found = store
        .lookup(lookup, &scope, &can_read(call))
        .map_err(|error| unread(&scope, error))?;
    let rows: Vec<Value> = found.rows.iter().map(row).collect();
    let matches = json!({
        "path": scope.with_slash(),
        "matches": rows,
        "cursor": cursor.to_string(),
    });
    Ok(at(cursor, &matches))
}

fn row(row: &Match) -> Value {
    json!({
        "path": row.path.as_str(),
        "title": row.title,
        "tags": row.tags,
        "importance": row.importance,
    })
}
