//! Documents for tests, out of a few words.

use std::sync::Arc;

use jiff::Timestamp;
use storage::{Stamp, UnixNanos};
use wire::{ContentHash, DocPath};

use super::{Description, Document, Index, Standing, VersionEntry};
use crate::PublisherMetadata;

/// The canonical path `text`.
pub(crate) fn path(text: &str) -> DocPath {
    DocPath::parse(text).unwrap()
}

/// Everybody's right.
pub(crate) fn anyone(_: &DocPath) -> bool {
    true
}

/// Version `number` with `body`, modified `number` seconds after 1970, in an unbroken chain.
pub(crate) fn version(number: u64, body: &str) -> VersionEntry {
    VersionEntry {
        number,
        content_hash: ContentHash::of(body.as_bytes()),
        file_hash: file_hash(number),
        previous_hash: (number > 1).then(|| file_hash(number - 1)),
        stamp: Stamp {
            len: body.len() as u64,
            modified: UnixNanos::new(number as i64),
            inode: number,
            changed: UnixNanos::new(number as i64),
        },
        modified: Timestamp::new(number as i64, 0).unwrap(),
    }
}

fn file_hash(number: u64) -> ContentHash {
    ContentHash::of(&number.to_le_bytes())
}

/// Metadata out of pairs.
pub(crate) fn metadata(pairs: &[(&str, &str)]) -> Arc<PublisherMetadata> {
    let pairs = pairs
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()));
    Arc::new(pairs.collect())
}

/// What a version without metadata says of itself.
pub(crate) fn description(at: &str, body: &str) -> Description {
    Description::of(&path(at), metadata(&[]), body.as_bytes())
}

/// A document whose versions 1, 2, … have these bodies.
pub(crate) fn document(at: &str, standing: Standing, bodies: &[&str]) -> Document {
    let versions: Vec<_> = (1..)
        .zip(bodies)
        .map(|(number, body)| version(number, body))
        .collect();
    Document::new(path(at), standing, description(at, bodies[0]), versions).unwrap()
}

/// An index with live documents at these paths, each with one version whose body is its path.
pub(crate) fn index(paths: &[&str]) -> Index {
    let mut index = Index::new();
    for at in paths {
        index
            .insert_document(document(at, Standing::Live, &[at]))
            .unwrap();
    }
    index
}
