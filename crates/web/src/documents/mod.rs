//! Documents over HTTP: read, list, search, publish, append, archive.
//!
//! The order of checks is that of the Mark face: the path in its one canonical spelling, the
//! caller's right, then what is there; so whoever lacks the right learns nothing of it. A write
//! asks for the right again under the store's commit lock.

mod condition;
mod intent;
mod listing;
mod lookup;
mod once;
mod order;
mod read;
mod tags;
mod write;

use documents::ReadError;
use tracing::error;
use wire::{DocPath, PathError, Target, limits};

use crate::call::Call;
use crate::fault::{Code, Fault};
use crate::route::{Content, Parameter, Reply, Route, Shape};

pub(crate) use intent::judge;

use crate::route::BLANK;

/// Where a document's path stands in the table.
const TEMPLATE: &str = "/v1/documents/{path*}";
const PATH: Parameter = Parameter::path(
    "path",
    "The document's path. Slashes in it may be percent-encoded or not. One that ends in a slash \
     is a directory.",
);
const EXPECT: Parameter = Parameter::query(
    "expect",
    Shape::Integer(0, None),
    "Write only if the document is at this version; 0 is none.",
);
const IF_MATCH: Parameter = Parameter::header(
    "If-Match",
    "Write only if the current body has this ETag, which is its content hash in quotes.",
);
const IF_NONE_MATCH: Parameter = Parameter::header(
    "If-None-Match",
    "`*`: write only if there is no document. An ETag: go on only if the current body has another.",
);
const KEY: Parameter = Parameter::header(
    "Idempotency-Key",
    "A text that names this write: within 24 hours a repeat of it is answered with the first \
     answer.",
);
const TAG: Parameter = Parameter::query(
    "tag",
    Shape::List,
    "A tag of the version. Further metadata goes in `Tidings-Meta-KEY` fields, percent-encoded.",
);
const TITLE: Parameter = Parameter::query("title", Shape::Text, "The title of the version.");

const WRITTEN_FIELDS: &[&str] = &["ETag", "Tidings-Version", "Tidings-Cursor"];
const WRITTEN: &[Content] = &[Content::json("Written")];
const CREATED: Reply = Reply {
    status: 201,
    about: "A version was made; it is durable and told.",
    content: WRITTEN,
    headers: WRITTEN_FIELDS,
};
const UNCHANGED: Reply = Reply {
    status: 200,
    about: "Everything is as the request wants it.",
    content: WRITTEN,
    headers: WRITTEN_FIELDS,
};
const WRITE_ERRORS: &[Code] = &[
    Code::Archived,
    Code::BadDocument,
    Code::BadIdempotencyKey,
    Code::Collision,
    Code::ConditionFailed,
    Code::Encoded,
    Code::IdempotencyKeyInProgress,
    Code::IdempotencyKeyReused,
    Code::NoTokens,
    Code::NotFound,
    Code::NotPermitted,
    Code::OutcomeUnknown,
    Code::SlowBody,
    Code::StorageFull,
    Code::TooLarge,
    Code::Unready,
];

pub(crate) const ROUTES: &[Route] = &[
    Route {
        template: TEMPLATE,
        id: "readDocument",
        summary: "Read a document, its history or a directory",
        about: "The body comes as it is stored. A path that ends in a slash lists the directory; \
                `?versions` tells the document's history.",
        parameters: &[
            PATH,
            IF_NONE_MATCH,
            Parameter::query("version", Shape::Integer(1, None), "Read this version."),
            Parameter::query("versions", Shape::Flag, "Tell the history, newest first."),
            Parameter::query(
                "cursor",
                Shape::Text,
                "Go on after the page that gave this.",
            ),
            Parameter::query(
                "page_size",
                Shape::Integer(1, Some(limits::PAGE_ENTRIES_MAX as u64)),
                "At most so many entries.",
            ),
            Parameter::query("archived", Shape::Flag, "List archived documents too."),
        ],
        answers: &[
            Reply {
                status: 200,
                about: "The body, the directory or the history.",
                content: &[Content::text("text/markdown"), Content::json("Reading")],
                headers: &[
                    "ETag",
                    "Tidings-Version",
                    "Tidings-Current-Version",
                    "Tidings-Cursor",
                    "Tidings-Modified",
                ],
            },
            Reply {
                status: 304,
                about: "The copy that If-None-Match names is current.",
                content: &[],
                headers: WRITTEN_FIELDS,
            },
        ],
        errors: &[Code::Archived, Code::NotFound, Code::NotPermitted],
        handler: |call| Box::pin(read::read(call)),
        ..BLANK
    },
    Route {
        method: hyper::Method::PUT,
        template: TEMPLATE,
        id: "publishDocument",
        summary: "Publish a version",
        about: "The body is the whole document, UTF-8 Markdown. When the answer comes, the version \
                is durable and every watcher was told.",
        parameters: &[PATH, EXPECT, IF_MATCH, IF_NONE_MATCH, KEY, TAG, TITLE],
        body: Some(Content::text("text/markdown")),
        answers: &[CREATED, UNCHANGED],
        errors: WRITE_ERRORS,
        handler: |call| Box::pin(write::publish(call)),
        ..BLANK
    },
    Route {
        method: hyper::Method::POST,
        template: TEMPLATE,
        id: "changeDocument",
        summary: "Append to a document, or unarchive it",
        about: "Say either `?append` with a body, or `?unarchive` without one. Without a condition \
                the body is appended to whatever is there.",
        parameters: &[
            PATH,
            Parameter::query("append", Shape::Flag, "Append the body."),
            Parameter::query("unarchive", Shape::Flag, "Make the document live again."),
            EXPECT,
            IF_MATCH,
            IF_NONE_MATCH,
            KEY,
            TAG,
            TITLE,
        ],
        body: Some(Content::text("text/markdown")),
        answers: &[CREATED, UNCHANGED],
        errors: WRITE_ERRORS,
        handler: |call| Box::pin(write::change(call)),
        ..BLANK
    },
    Route {
        method: hyper::Method::DELETE,
        template: TEMPLATE,
        id: "archiveDocument",
        summary: "Archive a document",
        about: "Its versions stay and can be read by number.",
        parameters: &[PATH, EXPECT, IF_MATCH, IF_NONE_MATCH, KEY],
        answers: &[UNCHANGED],
        errors: WRITE_ERRORS,
        handler: |call| Box::pin(write::archive(call)),
        ..BLANK
    },
    Route {
        template: "/v1/lookup",
        id: "lookupDocuments",
        summary: "Search documents by tag and title",
        about: "Terms are literal. What the caller may not read is in no row.",
        parameters: &[
            Parameter::query(
                "q",
                Shape::Text,
                "Terms; `*`, which is usual, is any document.",
            ),
            Parameter::query("tag", Shape::List, "Only documents with this tag."),
            Parameter::query("type", Shape::Text, "Only documents of this type."),
            Parameter::query("in", Shape::Text, "Only below this directory."),
            Parameter::query(
                "limit",
                Shape::Integer(1, Some(limits::LOOKUP_ROWS_MAX as u64)),
                "At most so many rows.",
            ),
        ],
        answers: &[Reply {
            status: 200,
            about: "The matches, best first.",
            content: &[Content::json("Matches")],
            headers: &["Tidings-Cursor"],
        }],
        errors: &[Code::NotFound, Code::NotPermitted],
        handler: |call| Box::pin(lookup::lookup(call)),
        ..BLANK
    },
];

/// The document or directory that the call's path names.
fn target(call: &Call) -> Result<Target, Fault> {
    parse_target(call.param("path"))
}

fn parse_target(text: &str) -> Result<Target, Fault> {
    let target = Target::parse(text.as_bytes()).map_err(|fault| match fault {
        PathError::Parent => Fault::new(Code::NotFound),
        fault => Fault::detailed(Code::BadPath, fault.to_string()),
    })?;
    let is_long = |name: &str| name.len() > limits::NAME_LEN_MAX;
    if target.path.segments().any(is_long) {
        let detail = format!("a name has at most {} bytes", limits::NAME_LEN_MAX);
        return Err(Fault::detailed(Code::BadPath, detail));
    }
    Ok(target)
}

/// The refusal of a read that found nothing to give.
fn unread(path: &DocPath, error: ReadError) -> Fault {
    match error {
        ReadError::Archived(_) => Code::Archived.into(),
        ReadError::NotFound => Code::NotFound.into(),
        error => {
            error!(%path, %error, "read a document");
            Code::Internal.into()
        }
    }
}
