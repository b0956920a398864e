//! The text of a directory's page, for LIST and for FETCH of a directory.
//!
//! A client gets the names back from it exactly, whatever characters they have (D25). The text is
//! at most [`PAGE_LEN_MAX`] long: entries that don't fit are left to the next page, and every page
//! has at least one entry if there is one.

use std::fmt::Write as _;

use wire::limits::PAGE_LEN_MAX;
use wire::{ContentHash, DocPath};

use crate::markdown;
use crate::{ListEntry, ListPage};

/// What ends a page that isn't the last.
const TRUNCATED: &str = "\n*...truncated, too many entries*\n";

/// How much a page says of each document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Its name alone, as every client knows it.
    #[default]
    Names,
    /// After the link also ` - v3 sha256-…`, and ` archived` if it is. One page then says which
    /// documents a client has to read again after a resync.
    Versions,
}

/// A page of a directory as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The body of the answer; it begins with an empty line.
    pub text: String,
    /// How many entries the text has.
    pub entries: usize,
    /// The name after which the next page begins; `None` on the last page.
    pub next: Option<String>,
}

impl Listing {
    /// Writes `page` of the directory `path`.
    pub fn new(path: &DocPath, page: &ListPage, detail: Detail) -> Self {
        let mut text = heading(path);
        let mut line = String::new();
        let mut entries = 0;
        for entry in &page.entries {
            line.clear();
            push_entry(&mut line, entry, detail);
            if text.len() + line.len() + TRUNCATED.len() > PAGE_LEN_MAX {
                break;
            }
            text.push_str(&line);
            entries += 1;
        }
        let last = page.entries[..entries].last();
        let next = last
            .filter(|_| !page.complete || entries < page.entries.len())
            .map(|entry| entry.name.clone());
        if next.is_some() {
            text.push_str(TRUNCATED);
        }
        Self {
            text,
            entries,
            next,
        }
    }

    /// True if nothing comes after this page.
    pub fn is_complete(&self) -> bool {
        self.next.is_none()
    }

    /// The hash of the text: content hash and etag of a directory that is fetched.
    pub fn content_hash(&self) -> ContentHash {
        ContentHash::of(self.text.as_bytes())
    }
}

fn heading(path: &DocPath) -> String {
    let mut text = String::from("\n# Index of ");
    markdown::push_text(&mut text, &path.with_slash());
    text.push_str("\n\n");
    text
}

fn push_entry(line: &mut String, entry: &ListEntry, detail: Detail) {
    let slash = if entry.document.is_none() { "/" } else { "" };
    line.push_str("- [");
    markdown::push_text(line, &entry.name);
    line.push_str(slash);
    line.push_str("](");
    markdown::push_segment(line, &entry.name);
    line.push_str(slash);
    line.push(')');
    if let (Detail::Versions, Some((version, hash))) = (detail, entry.document) {
        let mark = if entry.archived { " archived" } else { "" };
        write!(line, " - v{version} {hash}{mark}").expect("a string takes any text");
    }
    line.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markdown::parse::link_line;

    fn document(name: &str) -> ListEntry {
        ListEntry {
            name: name.into(),
            document: Some((3, ContentHash::of(name.as_bytes()))),
            archived: false,
        }
    }

    fn directory(name: &str) -> ListEntry {
        ListEntry {
            name: name.into(),
            document: None,
            archived: false,
        }
    }

    fn page(entries: Vec<ListEntry>, complete: bool) -> ListPage {
        ListPage { entries, complete }
    }

    fn listing(path: &str, page: &ListPage, detail: Detail) -> Listing {
        Listing::new(&DocPath::parse(path).unwrap(), page, detail)
    }

    /// The names of a text, each from its shown form and its link, which must agree.
    fn names(text: &str) -> Vec<String> {
        text.lines()
            .filter(|line| line.starts_with("- "))
            .map(|line| {
                let (shown, link, _) = link_line(line);
                assert_eq!(shown, link);
                shown
            })
            .collect()
    }

    #[test]
    fn a_page_reads_as_the_original_writes_it() {
        let entries = vec![
            document("coffee.md"),
            document("short.md"),
            document("tea.md"),
        ];
        let whole = listing("/notes/", &page(entries, true), Detail::Names);
        assert_eq!(whole.text, include_str!("../testdata/list.body"));
        assert_eq!((whole.entries, whole.next), (3, None));

        let entries = vec![
            directory("notes"),
            document("odd.md"),
            document("odd2.md"),
            document("odd3.md"),
            document("typed.md"),
        ];
        let root = listing("/", &page(entries, true), Detail::Names);
        assert_eq!(root.text, include_str!("../testdata/list-root.body"));

        let empty = listing("/", &page(vec![], true), Detail::Names);
        assert_eq!(
            empty.text,
            include_str!("../testdata/fetch-root-empty-world.body")
        );
        assert!(empty.is_complete());
    }

    #[test]
    fn a_page_that_is_not_the_last_says_so() {
        let first = listing(
            "/notes",
            &page(vec![document("coffee.md")], false),
            Detail::Names,
        );
        assert_eq!(
            first.text,
            "\n# Index of /notes/\n\n- [coffee.md](coffee.md)\n\n*...truncated, too many entries*\n"
        );
        assert_eq!(
            (first.entries, first.next.as_deref()),
            (1, Some("coffee.md"))
        );
    }

    #[test]
    fn details_follow_the_link() {
        let mut entries = vec![directory("more"), document("tea.md")];
        entries.push(ListEntry {
            name: "x y.md".into(),
            document: Some((1, ContentHash::of(b"x"))),
            archived: true,
        });
        let text = listing("/", &page(entries, true), Detail::Versions).text;
        let lines: Vec<_> = text.lines().skip(3).collect();
        assert_eq!(lines[0], "- [more/](more/)");
        assert_eq!(
            lines[1],
            format!("- [tea.md](tea.md) - v3 {}", ContentHash::of(b"tea.md"))
        );
        assert_eq!(
            lines[2],
            format!(
                "- [x y.md](x%20y.md) - v1 {} archived",
                ContentHash::of(b"x")
            )
        );
    }

    // D25
    #[test]
    fn odd_names_parse_back_to_themselves() {
        let odd = [
            "a[b](c).md",
            "*_*#|\\`~.md",
            "two words.md",
            "50%.md",
            "%2F.md",
            "tea☕.md",
            "😀.md",
            "a\tb.md",
            "-.md",
            "]( .md",
            "a&b=c+d,e;f?.md",
            "\u{200f}.md",
            "x\\",
        ];
        let entries = odd.iter().map(|name| document(name)).collect();
        let listing = listing("/odd", &page(entries, true), Detail::Versions);
        assert_eq!(names(&listing.text), odd);
    }

    // D25
    #[test]
    fn a_page_of_the_longest_names_stays_below_its_limit_and_goes_forward() {
        let long: Vec<_> = (0..1000)
            .map(|number| format!("{number:04}{}", "[é".repeat(82)))
            .map(|name| document(&name))
            .collect();
        let mut rest = &long[..];
        let mut pages = 0;
        while !rest.is_empty() {
            let listing = listing("/", &page(rest.to_vec(), true), Detail::Versions);
            assert!(listing.text.len() <= PAGE_LEN_MAX);
            assert!(listing.entries > 0);
            assert_eq!(listing.is_complete(), listing.entries == rest.len());
            assert_eq!(names(&listing.text).len(), listing.entries);
            rest = &rest[listing.entries..];
            pages += 1;
        }
        assert!(pages < 3, "{pages} pages");
    }

    #[test]
    fn the_hash_is_that_of_the_text() {
        let listing = listing("/", &page(vec![], true), Detail::Names);
        assert_eq!(
            listing.content_hash(),
            ContentHash::of(b"\n# Index of /\n\n")
        );
    }
}
