//! A directory's entries and a document's history, as JSON.

use auth::Operation;
use documents::{ListRequest, Resolved, VersionsRequest};
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use wire::{Cursor, DocPath, ListCursor, limits};

use super::read::{CURSOR, can_read};
use super::unread;
use crate::answer::{self, Body};
use crate::call::Call;
use crate::fault::{Code, Fault};

/// What is in the directory `path`.
pub(super) fn directory(
    call: &Call,
    path: &DocPath,
    cursor: &Cursor,
) -> Result<Response<Body>, Fault> {
    call.check(Operation::Read, path)?;
    let store = &call.face.store;
    let Resolved::Directory(path) = store.resolve(path) else {
        return Err(Code::NotFound.into());
    };
    let include_archived = call.query.flag("archived")?;
    let after = call
        .query
        .one("cursor")?
        .map(|text| ListCursor::decode_for(text, &path, include_archived))
        .transpose()
        .map_err(|fault| Fault::detailed(Code::BadParameter, fault.to_string()))?
        .map(|cursor| cursor.after);
    let request = ListRequest {
        page_size: page_size(call)?,
        after,
        include_archived,
    };
    let page = store
        .list(&path, &request, &can_read(call))
        .map_err(|error| unread(&path, error))?;
    let entries: Vec<Value> = page.entries.iter().map(entry).collect();
    let last = page.entries.last().filter(|_| !page.complete);
    let next = last.map(|last| {
        let after = last.name.clone();
        let path = path.clone();
        ListCursor {
            path,
            include_archived,
            after,
        }
        .encode()
    });
    let listing = json!({
        "path": path.with_slash(),
        "entries": entries,
        "next": next,
        "cursor": cursor.to_string(),
    });
    Ok(at(cursor, &listing))
}

fn entry(entry: &documents::ListEntry) -> Value {
    match entry.document {
        None => json!({ "name": entry.name, "kind": "directory" }),
        Some((version, hash)) => json!({
            "name": entry.name,
            "kind": "document",
            "version": version,
            "hash": hash.to_string(),
            "archived": entry.archived,
        }),
    }
}

/// The versions of the document at `path`, newest first.
pub(super) fn history(
    call: &Call,
    path: &DocPath,
    cursor: &Cursor,
) -> Result<Response<Body>, Fault> {
    call.check(Operation::Read, path)?;
    let before = call.query.number("cursor", 1..=u64::MAX)?;
    let request = VersionsRequest {
        page_size: page_size(call)?,
        before,
    };
    let page = call
        .face
        .store
        .versions(path, &request)
        .map_err(|error| unread(path, error))?;
    let versions: Vec<Value> = page
        .versions
        .iter()
        .map(|(version, modified, hash)| {
            json!({
                "version": version,
                "modified": modified.to_string(),
                "hash": hash.to_string(),
            })
        })
        .collect();
    let last = page.versions.last().filter(|_| !page.complete);
    let history = json!({
        "path": path.as_str(),
        "current": page.current,
        "total": page.total,
        "chain_valid": page.chain_valid,
        "archived": page.archived,
        "versions": versions,
        "next": last.map(|(version, ..)| version.to_string()),
        "cursor": cursor.to_string(),
    });
    Ok(at(cursor, &history))
}

fn page_size(call: &Call) -> Result<usize, Fault> {
    let most = limits::PAGE_ENTRIES_MAX;
    let asked = call.query.number("page_size", 1..=most as u64)?;
    Ok(asked
        .and_then(|size| usize::try_from(size).ok())
        .unwrap_or(most))
}

/// `value` with the position at which it is true.
pub(super) fn at(cursor: &Cursor, value: &Value) -> Response<Body> {
    let mut reply = answer::json(StatusCode::OK, value);
    if let Ok(cursor) = HeaderValue::try_from(cursor.to_string()) {
        reply.headers_mut().insert(CURSOR, cursor);
    }
    reply
}
