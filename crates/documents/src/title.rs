//! What a document is called: its `title`, else its first heading, else its file name (D41).
//!
//! A body is read for nothing but that heading. Front matter inside a body belongs to the
//! publisher's text: nothing is taken from it, and a comment in it is no heading.

use std::borrow::Cow;

use wire::DocPath;
use wire::limits::PUBLISHER_LEN_MAX;

use crate::PublisherMetadata;

/// The longest title that is kept, in bytes: a heading costs no more memory than a title could.
const TITLE_LEN_MAX: usize = PUBLISHER_LEN_MAX;

/// The deepest indentation of a heading or fence; a line that is indented more is code.
const INDENTATION_MAX: usize = 3;

/// The shortest run of characters that makes a code fence.
const FENCE_LEN_MIN: usize = 3;

/// The title of the document at `path`.
pub(crate) fn title_of(path: &DocPath, metadata: &PublisherMetadata, body: &[u8]) -> String {
    let title = metadata
        .get("title")
        .map(|title| title.trim())
        .filter(|title| !title.is_empty())
        .map(Cow::Borrowed)
        .or_else(|| first_heading(body));
    let title = title.as_deref().unwrap_or_else(|| path.name());
    title[..title.floor_char_boundary(TITLE_LEN_MAX)].to_owned()
}

/// The text of the first `# ` heading outside code fences.
fn first_heading(body: &[u8]) -> Option<Cow<'_, str>> {
    let mut fence: Option<Fence> = None;
    for line in lines(without_front_matter(body)) {
        let Some(text) = unindented(line) else {
            continue;
        };
        if let Some(open) = fence {
            if open.is_closed_by(text) {
                fence = None;
            }
        } else if let Some(open) = Fence::opened_by(text) {
            fence = Some(open);
        } else if let Some(heading) = heading(text) {
            return Some(heading);
        }
    }
    None
}

/// The body after a leading block between `---` lines, with or without a byte order mark.
fn without_front_matter(body: &[u8]) -> &[u8] {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let mut rest = body.split_inclusive(|byte| *byte == b'\n');
    if rest
        .next()
        .is_none_or(|line| line.trim_ascii_end() != b"---")
    {
        return body;
    }
    let mut end = body.len() - rest.clone().map(<[u8]>::len).sum::<usize>();
    for line in rest {
        end += line.len();
        if line.trim_ascii_end() == b"---" {
            return &body[end..];
        }
    }
    body
}

/// The lines of a body, which end with LF, CR LF or a lone CR.
fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split(|byte| matches!(byte, b'\n' | b'\r'))
}

fn unindented(line: &[u8]) -> Option<&[u8]> {
    let indentation = line.iter().take_while(|byte| **byte == b' ').count();
    (indentation <= INDENTATION_MAX).then(|| &line[indentation..])
}

fn heading(line: &[u8]) -> Option<Cow<'_, str>> {
    let text = line.strip_prefix(b"#")?;
    if !matches!(text.first(), Some(b' ' | b'\t')) {
        return None;
    }
    let text = text.trim_ascii();
    let unclosed = text.trim_ascii_end();
    let marks = unclosed
        .iter()
        .rev()
        .take_while(|byte| **byte == b'#')
        .count();
    let before = &unclosed[..unclosed.len() - marks];
    let text = match before.last() {
        None => before,
        Some(b' ' | b'\t') => before.trim_ascii_end(),
        Some(_) => text,
    };
    // More than is kept is cut off first, so that a body without line ends isn't copied.
    let text = &text[..text.len().min(TITLE_LEN_MAX + char::MAX.len_utf8())];
    (!text.is_empty()).then(|| String::from_utf8_lossy(text))
}

/// An open code fence.
#[derive(Clone, Copy)]
struct Fence {
    mark: u8,
    len: usize,
}

impl Fence {
    fn opened_by(line: &[u8]) -> Option<Self> {
        let fence = Self::run_of(line)?;
        let info = &line[fence.len..];
        // An info string with a backtick makes the line inline code.
        (fence.mark == b'~' || !info.contains(&b'`')).then_some(fence)
    }

    fn is_closed_by(self, line: &[u8]) -> bool {
        Self::run_of(line).is_some_and(|end| {
            end.mark == self.mark && end.len >= self.len && line[end.len..].trim_ascii().is_empty()
        })
    }

    fn run_of(line: &[u8]) -> Option<Self> {
        let mark = *line.first().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let len = line.iter().take_while(|byte| **byte == mark).count();
        (len >= FENCE_LEN_MIN).then_some(Self { mark, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(body: &str) -> String {
        let path = DocPath::parse("/notes/tea.md").unwrap();
        title_of(&path, &PublisherMetadata::new(), body.as_bytes())
    }

    #[test]
    fn metadata_beats_the_heading_and_the_heading_beats_the_name() {
        let path = DocPath::parse("/notes/tea.md").unwrap();
        let metadata = PublisherMetadata::from([("title".into(), " Leaves ".into())]);
        assert_eq!(title_of(&path, &metadata, b"# Tea\n"), "Leaves");
        let blank = PublisherMetadata::from([("title".into(), " ".into())]);
        assert_eq!(title_of(&path, &blank, b"# Tea\n"), "Tea");
        assert_eq!(title("no heading"), "tea.md");
        assert_eq!(title(""), "tea.md");
    }

    #[test]
    fn headings_are_found_as_a_reader_sees_them() {
        for (body, expected) in [
            ("# Tea", "Tea"),
            ("intro\r\n# Tea\r\nmore", "Tea"),
            ("intro\r# Tea\rmore", "Tea"),
            ("\u{feff}# Tea", "Tea"),
            ("   # Tea ##  ", "Tea"),
            ("# C#", "C#"),
            ("# C #", "C"),
            ("#\tTea", "Tea"),
            ("    # code\n# Tea", "Tea"),
            ("#tag\n## Second\n# Tea", "Tea"),
            ("# \n# ##\n# Tea", "Tea"),
        ] {
            assert_eq!(title(body), expected, "{body:?}");
        }
    }

    // D41
    #[test]
    fn code_fences_hide_headings() {
        for body in [
            "```sh\n# comment\n```\n# Tea",
            "````\n```\n# comment\n````\n# Tea",
            "~~~ `x`\n# comment\n~~~\n# Tea",
            "```\n# comment\n``` no end\n~~~\n# comment\n```\n# Tea",
            "```inline` code\n# Tea",
        ] {
            assert_eq!(title(body), "Tea", "{body:?}");
        }
        assert_eq!(title("```\n# comment"), "tea.md");
    }

    // D41
    #[test]
    fn front_matter_in_a_body_is_never_read() {
        for body in [
            "---\ntitle: Wrong\n# comment\n---\n# Tea",
            "\u{feff}---\r\ntitle: Wrong\r\n# comment\r\n---\r\n# Tea\r\n",
        ] {
            assert_eq!(title(body), "Tea", "{body:?}");
        }
        assert_eq!(title("---\ntitle: Wrong\n---\ntext"), "tea.md");
        assert_eq!(title("---\n# Tea"), "Tea", "a rule, and nothing closes it");
    }

    #[test]
    fn a_title_is_cut_at_a_character() {
        let long = title(&format!("# {}", "é".repeat(TITLE_LEN_MAX)));
        assert_eq!(long, "é".repeat(TITLE_LEN_MAX / 2));
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_replacements() {
        let path = DocPath::parse("/tea.md").unwrap();
        let title = title_of(&path, &PublisherMetadata::new(), b"# T\xff");
        assert_eq!(title, "T\u{fffd}");
    }
}
