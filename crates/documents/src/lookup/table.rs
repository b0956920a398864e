//! The answer to a LOOKUP as a Markdown table.

use wire::DocPath;
use wire::limits::PAGE_LEN_MAX;

use super::{Lookup, Match, Matches};
use crate::markdown;

const HEADER: &str = "\
    | Path | Importance | Title | Tags |\n\
    |------|------------|-------|------|\n";

/// The body of an answer and the number of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The text; it begins with an empty line and is at most [`PAGE_LEN_MAX`] long.
    pub text: String,
    /// How many rows it has: what the answer's `matches` says.
    pub rows: usize,
}

impl Matches {
    /// Writes the rows as the answer to `lookup` in `scope`; the last ones are left out if the
    /// text would pass its limit.
    pub fn table(&self, lookup: &Lookup, scope: &DocPath) -> Table {
        let mut text = heading(&lookup.query, scope);
        let mut line = String::new();
        let mut rows = 0;
        for row in &self.rows {
            line.clear();
            push_row(&mut line, row);
            if text.len() + line.len() > PAGE_LEN_MAX {
                break;
            }
            text.push_str(&line);
            rows += 1;
        }
        Table { text, rows }
    }
}

fn heading(query: &str, scope: &DocPath) -> String {
    let mut text = String::from("\n# Lookup matches for \"");
    markdown::push_text(&mut text, query);
    text.push_str("\" in ");
    markdown::push_text(&mut text, &scope.with_slash());
    text.push_str("\n\n");
    text.push_str(HEADER);
    text
}

fn push_row(line: &mut String, row: &Match) {
    let tags = row.tags.join(", ");
    for cell in [row.path.as_str(), &row.importance, &row.title, &tags] {
        line.push_str("| ");
        markdown::push_text(line, cell);
        line.push(' ');
    }
    line.push_str("|\n");
}
