//! Conditions that a match must fulfil besides its terms.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::query::LookupError;
use crate::index::{Document, Term};

/// Conditions that must all hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    clauses: Vec<Clause>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Clause {
    /// The metadata has exactly this value.
    Equal { key: String, value: String },
    /// The document was modified later than this.
    ModifiedAfter(Timestamp),
    /// The document was modified earlier than this.
    ModifiedBefore(Timestamp),
    /// One of the tags is this one; `None` is the empty text, which no tag is.
    Tag(Option<Term>),
}

impl Filter {
    /// Reads clauses `key=value` that are separated by commas; the empty text has none.
    pub(super) fn parse(text: &str) -> Result<Self, LookupError> {
        let clauses = if text.trim().is_empty() {
            Vec::new()
        } else {
            text.split(',')
                .map(Clause::parse)
                .collect::<Result<_, _>>()?
        };
        Ok(Self { clauses })
    }

    /// True if `document` fulfils every clause.
    pub(super) fn admits(&self, document: &Document) -> bool {
        self.clauses.iter().all(|clause| clause.admits(document))
    }
}

impl Clause {
    fn parse(text: &str) -> Result<Self, LookupError> {
        let malformed = || LookupError::Clause {
            clause: text.trim().to_owned(),
        };
        let (key, value) = text.split_once('=').ok_or_else(malformed)?;
        let (key, value) = (key.trim(), value.trim());
        Ok(match key {
            "" => return Err(malformed()),
            "modified-after" => Self::ModifiedAfter(instant(value)?),
            "modified-before" => Self::ModifiedBefore(instant(value)?),
            "tag" => Self::Tag(Term::new(value)),
            _ => Self::Equal {
                key: key.to_owned(),
                value: value.to_owned(),
            },
        })
    }

    fn admits(&self, document: &Document) -> bool {
        let description = document.description();
        match self {
            Self::Equal { key, value } => description.metadata().get(key) == Some(value),
            Self::ModifiedAfter(instant) => document.current().modified > *instant,
            Self::ModifiedBefore(instant) => document.current().modified < *instant,
            Self::Tag(tag) => tag.as_ref().is_some_and(|tag| description.has_tag(tag)),
        }
    }
}

/// A date, which means its midnight in UTC, or an instant of RFC 3339.
fn instant(text: &str) -> Result<Timestamp, LookupError> {
    // The parser of dates takes what follows a date as well, so instants are tried first.
    let date = || {
        let is_date = text.len() == "2026-01-02".len();
        let date: Date = is_date.then(|| text.parse().ok())??;
        TimeZone::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()
    };
    text.parse()
        .ok()
        .or_else(date)
        .ok_or_else(|| LookupError::Date {
            value: text.to_owned(),
        })
}
