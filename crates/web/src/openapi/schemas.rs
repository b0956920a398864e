//! The shapes of what goes over the API, by name.

use serde_json::{Value, json};

/// Every schema that a route may name.
pub(super) fn all() -> Value {
    json!({
        "Anything": {},
        "Cursor": {
            "type": "string",
            "description": "A position in a feed, `EPOCH:SEQ`. A watch that begins there is told \
                            everything that came after.",
        },
        "Change": change(),
        "Error": error(),
        "Event": event(),
        "Hash": { "type": "string", "pattern": "^sha256-[0-9a-f]{64}$" },
        "History": history(),
        "Listing": listing(),
        "Matches": matches(),
        "Published": object(&[], &json!({ "cursor": reference("Cursor") })),
        "Reading": { "anyOf": [
            { "$ref": "#/components/schemas/Listing" },
            { "$ref": "#/components/schemas/History" },
        ] },
        "Roster": roster(),
        "WhoAmI": who_am_i(),
        "Written": written(),
    })
}

fn object(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

fn version() -> Value {
    json!({ "type": "integer", "minimum": 1 })
}

fn change() -> Value {
    object(
        &["cursor", "scope", "op", "name", "version"],
        &json!({
            "cursor": reference("Cursor"),
            "scope": { "type": "string" },
            "op": { "enum": ["append", "archive", "publish"] },
            "name": { "type": "string" },
            "version": version(),
            "hash": reference("Hash"),
            "agent": { "type": "string" },
            "at": time(),
            "data": {},
        }),
    )
}

fn error() -> Value {
    let inner = object(
        &["code", "message", "fix"],
        &json!({
            "code": { "type": "string", "description": "Stable; docs/errors.md lists them all." },
            "message": { "type": "string" },
            "fix": { "type": "string" },
            "detail": { "type": "string" },
            "retry_after_ms": { "type": "integer", "minimum": 0 },
        }),
    );
    object(&["error"], &json!({ "error": inner }))
}

fn event() -> Value {
    object(
        &["event"],
        &json!({
            "event": { "type": "string", "description": "One that the channel declares." },
            "data": { "description": "Any JSON of at most 64 KiB." },
        }),
    )
}

fn history() -> Value {
    let version_of = object(
        &["version", "modified", "hash"],
        &json!({ "version": version(), "modified": time(), "hash": reference("Hash") }),
    );
    object(
        &[
            "path",
            "current",
            "total",
            "chain_valid",
            "archived",
            "versions",
            "cursor",
        ],
        &json!({
            "path": { "type": "string" },
            "current": version(),
            "total": version(),
            "chain_valid": { "type": "boolean" },
            "archived": { "type": "boolean" },
            "versions": { "type": "array", "items": version_of },
            "next": { "type": ["string", "null"] },
            "cursor": reference("Cursor"),
        }),
    )
}

fn listing() -> Value {
    let entry = object(
        &["name", "kind"],
        &json!({
            "name": { "type": "string" },
            "kind": { "enum": ["directory", "document"] },
            "version": version(),
            "hash": reference("Hash"),
            "archived": { "type": "boolean" },
        }),
    );
    object(
        &["path", "entries", "cursor"],
        &json!({
            "path": { "type": "string" },
            "entries": { "type": "array", "items": entry },
            "next": {
                "type": ["string", "null"],
                "description": "`cursor` of the next page.",
            },
            "cursor": reference("Cursor"),
        }),
    )
}

fn matches() -> Value {
    let row = object(
        &["path", "title", "tags", "importance"],
        &json!({
            "path": { "type": "string" },
            "title": { "type": "string" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "importance": { "type": "string" },
        }),
    );
    object(
        &["path", "matches", "cursor"],
        &json!({
            "path": { "type": "string" },
            "matches": { "type": "array", "items": row },
            "cursor": reference("Cursor"),
        }),
    )
}

fn roster() -> Value {
    let member = object(
        &["id", "at"],
        &json!({
            "id": { "type": "string", "description": "One socket." },
            "actor": { "type": "string", "description": "The same for all sockets of a person." },
            "meta": {},
            "at": { "type": "integer", "minimum": 0 },
        }),
    );
    object(
        &["members", "total"],
        &json!({
            "kind": { "const": "sync" },
            "members": { "type": "array", "items": member },
            "total": { "type": "integer", "minimum": 0 },
            "scope": { "type": "string" },
        }),
    )
}

fn who_am_i() -> Value {
    let patterns = json!({ "type": "array", "items": { "type": "string" } });
    object(
        &["anonymous", "dev"],
        &json!({
            "anonymous": { "type": "boolean" },
            "dev": { "type": "boolean", "description": "Everyone may do everything." },
            "label": { "type": ["string", "null"] },
            "claims": { "type": "object" },
            "expires": { "type": ["string", "null"], "format": "date-time" },
            "read": patterns,
            "publish": patterns,
        }),
    )
}

fn written() -> Value {
    object(
        &["path", "outcome", "version", "hash", "modified", "cursor"],
        &json!({
            "path": { "type": "string" },
            "outcome": { "enum": ["archived", "created", "unarchived", "unchanged"] },
            "version": version(),
            "hash": reference("Hash"),
            "modified": time(),
            "cursor": reference("Cursor"),
        }),
    )
}
