//! What is noted of a write before it begins, and what it proves after the process died.
//!
//! A published body is known by its hash, so a version after the one that was there, with that
//! hash, is the write (or another that did the same). An append is a version that is its
//! predecessor, a line feed where that lacked one, and bytes with the noted hash. Versions that
//! retention took away prove nothing, and neither does a document that could have been archived
//! and unarchived again.

use bytes::Bytes;
use documents::{FileStore, Outcome, ReadError, VersionInfo, Which, Written};
use serde::{Deserialize, Serialize};
use wire::{ContentHash, DocPath};

use super::order::written;
use crate::idempotency::Verdict;

/// Versions that are looked through: a write that died was among the last.
const LOOKED_THROUGH_MAX: u64 = 1_000;

/// What a write was meant to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Intent {
    pub(super) verb: String,
    pub(super) path: String,
    /// The version that was current when the key was taken; 0 for none.
    pub(super) before: u64,
    /// The hash of the body that was sent.
    pub(super) hash: Option<String>,
}

/// Judges a write whose process died under it. Blocks on the disk.
pub(crate) fn judge(store: &FileStore, intent: &serde_json::Value) -> Verdict {
    let Ok(intent) = serde_json::from_value::<Intent>(intent.clone()) else {
        return Verdict::Unknown;
    };
    let Ok(path) = DocPath::parse(&intent.path) else {
        return Verdict::Unknown;
    };
    let current = match store.current(&path) {
        Ok(current) => current,
        Err(ReadError::NotFound) if intent.before == 0 => return Verdict::NotDone,
        Err(_) => return Verdict::Unknown,
    };
    let hash = intent
        .hash
        .as_deref()
        .and_then(|it| ContentHash::parse(it).ok());
    let judge = Judge { store, path: &path };
    match (intent.verb.as_str(), hash) {
        ("publish", Some(hash)) => judge.versions(&intent, current.version, |version, _| {
            version.content_hash == hash
        }),
        ("append", Some(hash)) => judge.versions(&intent, current.version, |version, body| {
            judge.is_append(version.version, body, &hash)
        }),
        // An archive that is in force was done, or need not be done again.
        ("archive", _) if current.archived => judge.standing(Outcome::Archived, current.version),
        ("unarchive", _) if !current.archived => {
            judge.standing(Outcome::Unarchived, current.version)
        }
        _ => Verdict::Unknown,
    }
}

struct Judge<'a> {
    store: &'a FileStore,
    path: &'a DocPath,
}

impl Judge<'_> {
    /// Looks for the write among the versions that came since.
    fn versions(
        &self,
        intent: &Intent,
        current: u64,
        is_it: impl Fn(&VersionInfo, &Bytes) -> bool,
    ) -> Verdict {
        if current.saturating_sub(intent.before) > LOOKED_THROUGH_MAX {
            return Verdict::Unknown;
        }
        for number in intent.before + 1..=current {
            let Ok(fetched) = self.store.fetch(self.path, Which::Version(number)) else {
                return Verdict::Unknown;
            };
            if is_it(&fetched.info, &fetched.body) {
                return self.done(Outcome::Created, &fetched.info);
            }
        }
        Verdict::NotDone
    }

    fn is_append(&self, number: u64, body: &[u8], addition: &ContentHash) -> bool {
        let Some(before) = number.checked_sub(1) else {
            return false;
        };
        let Ok(base) = self.store.fetch(self.path, Which::Version(before)) else {
            return false;
        };
        let Some(rest) = body.strip_prefix(&*base.body) else {
            return false;
        };
        let rest = match base.body.ends_with(b"\n") {
            true => rest,
            false => rest.strip_prefix(b"\n").unwrap_or(rest),
        };
        ContentHash::of(rest) == *addition
    }

    fn standing(&self, outcome: Outcome, version: u64) -> Verdict {
        match self.store.fetch(self.path, Which::Version(version)) {
            Ok(fetched) => self.done(outcome, &fetched.info),
            Err(_) => Verdict::Unknown,
        }
    }

    fn done(&self, outcome: Outcome, info: &VersionInfo) -> Verdict {
        Verdict::Done(written(
            self.path,
            &Written {
                outcome,
                version: info.version,
                modified: info.modified,
                hash: info.content_hash,
                cursor: self.store.feed().head(),
            },
        ))
    }
}
