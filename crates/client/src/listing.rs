//! Reading what a directory holds, what versions a document has, and what a search finds.
//!
//! The answers are texts for people; what is read here is what `docs/protocol/mark.md` fixes of
//! them. A line that doesn't look like an entry is passed over.

use wire::{ContentHash, DocPath, Metadata, Verb};

use crate::address::decode_link;
use crate::client::Client;
use crate::error::Error;
use crate::exchange::AnswerError;

/// What of a directory is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Go on after the page that ended with this cursor.
    pub cursor: Option<String>,
    /// Entries on a page; the server's own number if absent.
    pub page_size: Option<u32>,
    /// Archived documents as well.
    pub include_archived: bool,
    /// Ask for the version and the hash of each document.
    pub details: bool,
}

/// A page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The entries in byte order of their names.
    pub entries: Vec<Entry>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name, without the slash of a directory.
    pub name: String,
    /// It is a directory.
    pub is_directory: bool,
    /// The current version of a document, if details were asked for and given.
    pub version: Option<u64>,
    /// The hash of its content, likewise.
    pub content_hash: Option<ContentHash>,
    /// The document is archived, likewise.
    pub is_archived: bool,
}

/// The history of a document, newest version first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The current version.
    pub current: u64,
    /// How many versions are kept.
    pub total: u64,
    /// Every version names the one before it.
    pub is_chain_valid: bool,
    /// The versions on this page.
    pub versions: Vec<HistoryEntry>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}

/// A version in a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Its number.
    pub version: u64,
    /// When it was written, RFC 3339.
    pub modified: String,
}

/// What is searched for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookupQuery {
    /// Words of titles and tags; `*` for every document.
    pub text: String,
    /// Conditions that must all hold, as `(key, value)`.
    pub filters: Vec<(String, String)>,
    /// Rows at most; the server's own number if absent.
    pub limit: Option<u32>,
}

/// A document that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Where it is.
    pub path: String,
    /// Its weight from 0 to 1, with two decimals.
    pub importance: String,
    /// Its title.
    pub title: String,
    /// Its tags.
    pub tags: Vec<String>,
}

impl Client {
    /// Reads one page of a directory. Cancel safe.
    pub async fn list(&self, dir: &DocPath, query: &ListQuery) -> Result<Page, Error> {
        let mut request = self.request(Verb::List, &dir.with_slash());
        if let Some(cursor) = &query.cursor {
            request.metadata.set("cursor", cursor);
        }
        if let Some(size) = query.page_size {
            request.metadata.set("page-size", size.to_string());
        }
        if query.include_archived {
            request.metadata.set("include-archived", "true");
        }
        if query.details {
            request.metadata.set("details", "true");
        }
        let response = self.ask_for_ok(&request).await?;
        let entries = String::from_utf8_lossy(&response.body)
            .lines()
            .filter_map(parse_entry)
            .collect();
        let next = self.next_page(&response.metadata, query.cursor.as_deref())?;
        Ok(Page { entries, next })
    }

    /// Reads all pages of a directory. Cancel safe.
    pub async fn list_all(&self, dir: &DocPath, query: &ListQuery) -> Result<Vec<Entry>, Error> {
        let mut query = query.clone();
        let mut entries = Vec::new();
        loop {
            let page = self.list(dir, &query).await?;
            entries.extend(page.entries);
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => return Ok(entries),
            }
        }
    }

    /// Reads the history of a document, all of it or the page after `cursor`. Cancel safe.
    pub async fn versions(&self, path: &DocPath, cursor: Option<&str>) -> Result<History, Error> {
        let mut request = self.request(Verb::Versions, path.as_str());
        if let Some(cursor) = cursor {
            request.metadata.set("cursor", cursor);
        }
        let response = self.ask_for_ok(&request).await?;
        let versions = String::from_utf8_lossy(&response.body)
            .lines()
            .filter_map(parse_version)
            .collect();
        Ok(History {
            current: self.number(&response.metadata, "current")?,
            total: self.number(&response.metadata, "total")?,
            is_chain_valid: response.metadata.get("chain-valid") == Some("true"),
            versions,
            next: self.next_page(&response.metadata, cursor)?,
        })
    }

    /// Searches titles and tags below `scope`. Cancel safe.
    pub async fn lookup(&self, scope: &DocPath, query: &LookupQuery) -> Result<Vec<Match>, Error> {
        let mut request = self.request(Verb::Lookup, &scope.with_slash());
        request.metadata.set("query", &query.text);
        if !query.filters.is_empty() {
            let clauses: Vec<String> = query
                .filters
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            request.metadata.set("filter", clauses.join(","));
        }
        if let Some(limit) = query.limit {
            request.metadata.set("limit", limit.to_string());
        }
        let response = self.ask_for_ok(&request).await?;
        let text = String::from_utf8_lossy(&response.body);
        Ok(text.lines().filter_map(parse_match).collect())
    }

    /// The cursor of the next page. A server that gives back the cursor it was given, or says at
    /// once that there is more and that there isn't, would be asked for ever.
    fn next_page(&self, metadata: &Metadata, given: Option<&str>) -> Result<Option<String>, Error> {
        let next = metadata.get("next-cursor");
        let is_complete = metadata.get("complete") != Some("false");
        if is_complete == next.is_some() || (next.is_some() && next == given) {
            return Err(self.lie(AnswerError::Key("next-cursor")));
        }
        Ok(next.map(str::to_owned))
    }
}

/// Reads `- [shown](link)`, with ` - v3 sha256-… archived` after it where details were asked for.
fn parse_entry(line: &str) -> Option<Entry> {
    let (link, rest) = parse_link(line)?;
    let name = link.strip_suffix('/');
    let mut details = rest.trim_start_matches(" - ").split_whitespace();
    Some(Entry {
        name: decode_link(name.unwrap_or(link))?,
        is_directory: name.is_some(),
        version: details
            .next()
            .and_then(|word| word.strip_prefix('v')?.parse().ok()),
        content_hash: details
            .next()
            .and_then(|word| ContentHash::parse(word).ok()),
        is_archived: details.next() == Some("archived"),
    })
}

/// Reads `- [v3](link) - time`.
fn parse_version(line: &str) -> Option<HistoryEntry> {
    let shown = line.strip_prefix("- [v")?.split_once(']')?.0;
    let (_, rest) = parse_link(line)?;
    Some(HistoryEntry {
        version: shown.parse().ok()?,
        modified: rest.trim_start_matches(" - ").split(' ').next()?.to_owned(),
    })
}

/// The link of a list item and what stands after it. The shown text escapes its brackets, and the
/// link every character that could end it.
fn parse_link(line: &str) -> Option<(&str, &str)> {
    let text = line.strip_prefix("- [")?;
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b']' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })?;
    text[end + 1..].strip_prefix('(')?.split_once(')')
}

/// Reads a row `| path | importance | title | tags |` of a search's table.
fn parse_match(line: &str) -> Option<Match> {
    let cells = parse_cells(line)?;
    let [path, importance, title, tags, ..] = cells.as_slice() else {
        return None;
    };
    if !path.starts_with('/') {
        return None;
    }
    Some(Match {
        path: path.clone(),
        importance: importance.clone(),
        title: title.clone(),
        tags: tags
            .split(',')
            .map(str::trim)
            .filter(|tag| !tag.is_empty())
            .map(str::to_owned)
            .collect(),
    })
}

/// The cells of a table's row, unescaped.
fn parse_cells(line: &str) -> Option<Vec<String>> {
    let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
    let mut cells = vec![String::new()];
    let mut characters = row.chars();
    while let Some(character) = characters.next() {
        let cell = cells.last_mut()?;
        match character {
            '\\' => cell.extend(characters.next()),
            '|' => cells.push(String::new()),
            _ => cell.push(character),
        }
    }
    Some(cells.iter().map(|cell| cell.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, is_directory: bool) -> Entry {
        Entry {
            name: name.to_owned(),
            is_directory,
            version: None,
            content_hash: None,
            is_archived: false,
        }
    }

    // D25
    #[test]
    fn entries_with_every_odd_character_come_back_as_their_names() {
        let line = r"- [a\]\[b\) \`\\.md](a%5D%5Bb%29%20%60%5C.md)";
        assert_eq!(parse_entry(line), Some(entry(r"a][b) `\.md", false)));
        assert_eq!(
            parse_entry("- [notes/](notes/)"),
            Some(entry("notes", true))
        );
        assert_eq!(parse_entry("# Index of /notes/"), None);
        assert_eq!(parse_entry("*...truncated, too many entries*"), None);
    }

    #[test]
    fn an_entry_carries_its_version_and_hash_where_they_were_asked_for() {
        let hash = ContentHash::of(b"tea");
        let line = format!("- [tea.md](tea.md) - v3 {hash}");
        let parsed = parse_entry(&line).unwrap();
        assert_eq!((parsed.version, parsed.content_hash), (Some(3), Some(hash)));
        assert!(!parsed.is_archived);
        assert!(
            parse_entry(&format!("{line} archived"))
                .unwrap()
                .is_archived
        );
    }

    #[test]
    fn a_history_line_is_a_number_and_a_time() {
        let line = "- [v12](%2Fnotes%2Ftea.md/v12) - 2026-11-29T23:24:21Z";
        let parsed = parse_version(line).unwrap();
        assert_eq!(
            (parsed.version, parsed.modified.as_str()),
            (12, "2026-11-29T23:24:21Z")
        );
    }

    #[test]
    fn a_match_is_read_from_its_row() {
        let row = r"| /notes/tea.md | 0.50 | Tea \| hot | leaves, green |";
        let parsed = parse_match(row).unwrap();
        assert_eq!(parsed.title, "Tea | hot");
        assert_eq!(parsed.tags, ["leaves", "green"]);
        assert_eq!(parse_match("| Path | Importance | Title | Tags |"), None);
        assert_eq!(parse_match("|------|------------|-------|------|"), None);
    }
}
