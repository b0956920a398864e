//! LOOKUP: which documents have these terms as a tag or in their title.
//!
//! Rights come first: what a reader may not read is in no row and no count, and changes no
//! other row's place (D29). Terms are literal. The order is total, so the same question on the
//! same tree has the same answer (D28): terms matched, importance, modification (newer first),
//! path.
//!
//! Every document below the scope is looked at; nothing but tags and titles is searched, so a
//! hundred thousand take milliseconds. An index of terms was rejected: a term may lie anywhere
//! within a title, so it would not spare the walk.

mod filter;
mod query;
mod table;

#[cfg(test)]
mod tests;

use std::cmp::{Ordering, Reverse};

use jiff::Timestamp;
use wire::DocPath;

use self::query::Terms;
use crate::CanRead;
use crate::importance::Importance;
use crate::index::{Document, Index};

pub use self::query::{Lookup, LookupError, LookupRequest};
pub use self::table::Table;

/// The documents that match, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matches {
    /// As many as the limit allows.
    pub rows: Vec<Match>,
}

/// One document that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Where it lies.
    pub path: DocPath,
    /// The importance with two decimals.
    pub importance: String,
    /// What it is called.
    pub title: String,
    /// Its tags, as the publisher wrote them.
    pub tags: Vec<String>,
}

/// A document that matches, before the limit.
struct Candidate<'a> {
    /// Terms matched, importance, modification. Copied, so that sorting stays in one place in
    /// memory until two are equal.
    rank: (Reverse<usize>, Reverse<Importance>, Reverse<Timestamp>),
    document: &'a Document,
}

impl Lookup {
    /// Answers from `index` what this reader may see below `scope`; `None` if `scope` isn't a
    /// directory that this reader may know of.
    pub(crate) fn run(
        &self,
        index: &Index,
        scope: &DocPath,
        can_read: CanRead<'_>,
    ) -> Option<Matches> {
        let mut candidates: Vec<_> = index
            .listed(scope, can_read)?
            .filter_map(|document| self.candidate(document))
            .filter(|candidate| can_read(candidate.document.path()))
            .collect();
        if candidates.len() > self.limit {
            candidates.select_nth_unstable_by(self.limit, Candidate::order);
            candidates.truncate(self.limit);
        }
        candidates.sort_unstable_by(Candidate::order);
        Some(Matches {
            rows: candidates.iter().map(Candidate::row).collect(),
        })
    }

    fn candidate<'a>(&self, document: &'a Document) -> Option<Candidate<'a>> {
        let terms_matched = match &self.terms {
            Terms::Any => 0,
            Terms::Some(terms) => {
                let description = document.description();
                let matched = terms
                    .iter()
                    .filter(|term| description.answers(term))
                    .count();
                (matched > 0).then_some(matched)?
            }
        };
        self.filter.admits(document).then(|| Candidate {
            rank: (
                Reverse(terms_matched),
                Reverse(document.description().importance()),
                Reverse(document.current().modified),
            ),
            document,
        })
    }
}

impl Candidate<'_> {
    fn order(&self, other: &Self) -> Ordering {
        self.rank
            .cmp(&other.rank)
            .then_with(|| self.document.path().cmp(other.document.path()))
    }

    fn row(&self) -> Match {
        let description = self.document.description();
        Match {
            path: self.document.path().clone(),
            importance: description.importance().to_string(),
            title: description.title().to_owned(),
            tags: description.tags().map(str::to_owned).collect(),
        }
    }
}
