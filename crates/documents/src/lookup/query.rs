//! What a LOOKUP asks, read out of the request's metadata.

use thiserror::Error;
use wire::limits::{
    LOOKUP_QUERY_CHARS_MIN, LOOKUP_ROWS_DEFAULT, LOOKUP_ROWS_MAX, LOOKUP_TERMS_MAX,
};

use super::filter::Filter;
use crate::index::Term;

/// The query that every document matches.
const ANY: &str = "*";

/// The keys of a LOOKUP as they came.
#[derive(Clone, Copy, Debug, Default)]
pub struct LookupRequest<'a> {
    /// `query`, or the empty text.
    pub query: &'a str,
    /// `filter`.
    pub filter: Option<&'a str>,
    /// `limit`.
    pub limit: Option<&'a str>,
    /// `match`.
    pub mode: Option<&'a str>,
}

/// A legal question.
#[derive(Clone, Debug)]
pub struct Lookup {
    pub(super) query: String,
    pub(super) terms: Terms,
    pub(super) filter: Filter,
    pub(super) limit: usize,
    /// The request had a `match`.
    mode_asked: bool,
}

/// The terms that are looked for.
#[derive(Clone, Debug)]
pub(super) enum Terms {
    /// Every document matches.
    Any,
    /// One of these, all distinct, is enough.
    Some(Vec<Term>),
}

impl Lookup {
    /// Reads a question.
    pub fn parse(request: LookupRequest<'_>) -> Result<Self, LookupError> {
        match request.mode {
            None | Some("catalog" | "body") => {}
            Some(_) => return Err(LookupError::Mode),
        }
        Ok(Self {
            terms: terms(request.query)?,
            filter: Filter::parse(request.filter.unwrap_or_default())?,
            limit: request.limit.map_or(Ok(LOOKUP_ROWS_DEFAULT), limit)?,
            query: request.query.to_owned(),
            mode_asked: request.mode.is_some(),
        })
    }

    /// What the answer says as `match`, if the request had one: bodies aren't searched, so a wish
    /// for them is answered from the catalog too.
    pub fn answered_mode(&self) -> Option<&'static str> {
        self.mode_asked.then_some("catalog")
    }
}

fn terms(query: &str) -> Result<Terms, LookupError> {
    let query = query.trim();
    if query == ANY {
        return Ok(Terms::Any);
    }
    if query.chars().count() < LOOKUP_QUERY_CHARS_MIN {
        return Err(LookupError::Query);
    }
    let mut terms: Vec<_> = query.split_whitespace().filter_map(Term::new).collect();
    terms.sort_unstable();
    terms.dedup();
    if terms.len() > LOOKUP_TERMS_MAX {
        return Err(LookupError::Terms { count: terms.len() });
    }
    Ok(Terms::Some(terms))
}

fn limit(text: &str) -> Result<usize, LookupError> {
    match text.parse() {
        Ok(0) | Err(_) => Err(LookupError::Limit),
        Ok(limit) => Ok(LOOKUP_ROWS_MAX.min(limit)),
    }
}

/// Why a question is refused; all of them are the asker's fault.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LookupError {
    /// A clause of the filter isn't `key=value`.
    #[error("malformed filter clause {clause:?}")]
    Clause {
        /// The clause.
        clause: String,
    },
    /// A `modified-after` or `modified-before` is neither a date nor RFC 3339.
    #[error("invalid date {value:?} in filter")]
    Date {
        /// What was given.
        value: String,
    },
    /// The limit is no positive number.
    #[error("invalid limit")]
    Limit,
    /// `match` is neither of its two words.
    #[error("match must be catalog or body")]
    Mode,
    /// The query is too short or missing.
    #[error("query must be at least {LOOKUP_QUERY_CHARS_MIN} characters")]
    Query,
    /// The query has too many distinct terms.
    #[error("query has too many terms: {count} > {LOOKUP_TERMS_MAX}")]
    Terms {
        /// How many.
        count: usize,
    },
}
