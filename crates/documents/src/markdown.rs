//! Names and texts inside the Markdown that answers are written in, so that none of them can
//! become markup.

/// What gets a backslash in a shown text.
const ESCAPED: &[char] = &['\\', '[', ']', '(', ')', '*', '_', '`', '~', '#', '|'];

/// Appends `text` as it is shown in a heading, a link or a cell: on one line, nothing in it markup.
pub(crate) fn push_text(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '\n' | '\r' => out.push(' '),
            _ => {
                if ESCAPED.contains(&character) {
                    out.push('\\');
                }
                out.push(character);
            }
        }
    }
}

/// Appends `segment` as one segment of a link: percent-encoded by bytes, slashes too.
pub(crate) fn push_segment(out: &mut String, segment: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in segment.bytes() {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

/// The bytes that stand for themselves: the unreserved ones, and those delimiters that mean
/// nothing within a segment.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'_' | b'.' | b'~' | b'$' | b'&' | b'+' | b':' | b'=' | b'@'
        )
}

#[cfg(test)]
pub(crate) mod parse {
    //! The way back, as a client reads a page; for tests.

    /// Splits a line `- [shown](link)rest` into the shown text without escapes, the decoded link
    /// and the rest.
    pub(crate) fn link_line(line: &str) -> (String, String, &str) {
        let mut rest = line.strip_prefix("- [").unwrap().chars();
        let mut shown = String::new();
        loop {
            match rest.next().unwrap() {
                '\\' => shown.push(rest.next().unwrap()),
                ']' => break,
                other => shown.push(other),
            }
        }
        let (link, rest) = rest
            .as_str()
            .strip_prefix('(')
            .unwrap()
            .split_once(')')
            .unwrap();
        (shown, decode(link), rest)
    }

    /// The cells of a table row without escapes.
    pub(crate) fn cells(line: &str) -> Vec<String> {
        let mut cells = vec![String::new()];
        let mut rest = line.strip_prefix('|').unwrap().chars();
        while let Some(character) = rest.next() {
            match character {
                '\\' => cells.last_mut().unwrap().push(rest.next().unwrap()),
                '|' => cells.push(String::new()),
                other => cells.last_mut().unwrap().push(other),
            }
        }
        assert_eq!(cells.pop().as_deref(), Some(""), "{line}");
        cells
            .iter()
            .map(|cell| cell[1..cell.len() - 1].to_owned())
            .collect()
    }

    fn decode(link: &str) -> String {
        let mut bytes = Vec::new();
        let mut rest = link.bytes();
        while let Some(byte) = rest.next() {
            if byte == b'%' {
                let pair = [rest.next().unwrap(), rest.next().unwrap()];
                let hex = std::str::from_utf8(&pair).unwrap();
                bytes.push(u8::from_str_radix(hex, 16).unwrap());
            } else {
                bytes.push(byte);
            }
        }
        String::from_utf8(bytes).unwrap()
    }
}
