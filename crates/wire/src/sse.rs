//! Server-sent events, as every EventSource reads them.
//!
//! Lines end in LF alone, and a space follows every colon, so that a value which begins with one
//! keeps it. Data is split at CR, LF and CRLF, which a reader joins with LF again. An event always
//! has a `data:` line, since without one neither it nor, to some readers, its id counts. An id is
//! a cursor in its hyphen form, whose characters are safe in a header of another origin.

use std::io::Write as _;
use std::time::Duration;

use crate::cursor::Cursor;

/// Appends an event. `name` is one of ours, so it has no line end in it.
pub fn event(name: &'static str, id: Option<&Cursor>, data: &str, out: &mut Vec<u8>) {
    debug_assert!(!name.contains(['\r', '\n', '\0']), "a name is one line");
    field("event", name, out);
    if let Some(id) = id {
        // The characters of a cursor are those of an id.
        let _ = writeln!(out, "id: {}-{}", id.epoch, id.seq);
    }
    for line in lines(data) {
        field("data", line, out);
    }
    out.push(b'\n');
}

/// Appends the time after which a reader comes back, effective at once.
pub fn retry(after: Duration, out: &mut Vec<u8>) {
    let _ = writeln!(out, "retry: {}", after.as_millis());
}

/// Appends a line that says nothing. Without text it is the shortest sign of life.
pub fn comment(text: &'static str, out: &mut Vec<u8>) {
    field("", text, out);
}

fn field(name: &str, value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.push(b'\n');
}

/// The lines of `text` by the three line ends of the format; at least one.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(['\r', '\n']) else {
            return rest.take();
        };
        let after = &text[end..];
        let len = if after.starts_with("\r\n") { 2 } else { 1 };
        rest = Some(&after[len..]);
        Some(&text[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(id: Option<&str>, data: &str) -> String {
        let mut out = Vec::new();
        let id: Option<Cursor> = id.map(|id| id.parse().unwrap());
        event("publish", id.as_ref(), data, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The data that a reader gets, by the rules of the format.
    fn read(stream: &str) -> Option<String> {
        let data: Vec<&str> = stream
            .split('\n')
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|value| value.strip_prefix(' ').unwrap_or(value))
            .collect();
        (!data.is_empty()).then(|| data.join("\n"))
    }

    // T1
    #[test]
    fn an_id_is_the_hyphen_form_of_a_cursor() {
        let stream = written(Some("a-b:7"), "x");
        assert_eq!(stream, "event: publish\nid: a-b-7\ndata: x\n\n");
    }

    // T3
    #[test]
    fn every_text_comes_back_with_its_line_ends_made_one() {
        for text in [
            "",
            " leading",
            "\u{feff}bom",
            "a\u{2028}b",
            "☕",
            ":x",
            "a\n\nb\n",
        ] {
            assert_eq!(
                read(&written(None, text)).as_deref(),
                Some(text),
                "{text:?}"
            );
        }
        let mixed = written(None, "a\rb\r\nc\nd\r");
        assert!(!mixed.contains('\r'), "{mixed:?}");
        assert_eq!(read(&mixed).as_deref(), Some("a\nb\nc\nd\n"));
    }

    // T3
    #[test]
    fn nothing_at_all_is_still_an_event() {
        assert_eq!(written(None, ""), "event: publish\ndata: \n\n");
    }

    // T68
    #[test]
    fn a_retry_is_digits_and_a_line_end() {
        let mut out = Vec::new();
        retry(Duration::from_millis(2_143), &mut out);
        comment("", &mut out);
        assert_eq!(out, b"retry: 2143\n: \n");
    }
}
