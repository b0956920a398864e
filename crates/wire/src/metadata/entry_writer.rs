//! Writes one entry of metadata, choosing between plain, quoted and literal text.

use bytes::{BufMut, BytesMut};

use super::character::{is_line_break, is_printable};
use super::foreign;

/// Longer keys are written as `? key` and `: value` on lines of their own.
const SIMPLE_KEY_LEN_MAX: usize = 128;

/// Spaces before each line of a literal block.
const INDENT: &str = "    ";

/// What becomes of a value with line breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineBreaks {
    /// They are written as escapes, so that the entry stays on one line.
    Escape,
    /// The value is written as a literal block where YAML allows one.
    Literal,
}

/// Appends the line (or lines) of one entry.
pub(crate) fn write_entry(out: &mut BytesMut, key: &str, value: &str, breaks: LineBreaks) {
    if key.len() > SIMPLE_KEY_LEN_MAX {
        out.put_slice(b"? ");
        write_key(out, key);
        out.put_slice(b"\n: ");
    } else {
        write_key(out, key);
        out.put_slice(b": ");
    }
    write_value(out, value, breaks);
    out.put_u8(b'\n');
}

fn write_key(out: &mut BytesMut, key: &str) {
    // `<<` as a plain key would merge another map into this one.
    if key == "<<" || key.contains(is_line_break) {
        write_double_quoted(out, key);
    } else {
        write_value(out, key, LineBreaks::Escape);
    }
}

fn write_value(out: &mut BytesMut, value: &str, breaks: LineBreaks) {
    match style(value, breaks) {
        Style::Plain => out.put_slice(value.as_bytes()),
        Style::Single => write_single_quoted(out, value),
        Style::Double => write_double_quoted(out, value),
        Style::Literal => write_literal(out, value),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

fn style(value: &str, breaks: LineBreaks) -> Style {
    let beside_break = has_space_beside_break(value);
    if value.contains('\n') {
        let literal = breaks == LineBreaks::Literal
            && !value.ends_with(' ')
            && !beside_break.before
            && value
                .chars()
                .all(|c| matches!(c, '\n' | '\t') || is_printable(c) && !is_line_break(c));
        return if literal {
            Style::Literal
        } else {
            Style::Double
        };
    }
    if foreign::reads_as_other_kind(value)
        || !value.chars().all(is_printable)
        || beside_break.before
        || beside_break.after
    {
        return Style::Double;
    }
    if starts_or_ends_blank(value) || is_mistaken_for_syntax(value) || value.contains(is_line_break)
    {
        return Style::Single;
    }
    Style::Plain
}

struct SpaceBesideBreak {
    /// A space stands in front of a line break.
    before: bool,
    /// A space follows a line break.
    after: bool,
}

fn has_space_beside_break(value: &str) -> SpaceBesideBreak {
    let mut found = SpaceBesideBreak {
        before: false,
        after: false,
    };
    for (first, second) in value.chars().zip(value.chars().skip(1)) {
        found.before |= first == ' ' && is_line_break(second);
        found.after |= is_line_break(first) && second == ' ';
    }
    found
}

fn starts_or_ends_blank(value: &str) -> bool {
    value.starts_with(' ') || value.ends_with(' ')
}

/// True if plain `value` would begin another kind of node, a comment or a map.
fn is_mistaken_for_syntax(value: &str) -> bool {
    const INDICATORS: [char; 16] = [
        '#', ',', '[', ']', '{', '}', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`',
    ];
    value.starts_with(INDICATORS)
        || value.starts_with("---")
        || value.starts_with("...")
        || ["-", "?"].contains(&value)
        || value.starts_with("- ")
        || value.starts_with("? ")
        || value.contains(": ")
        || value.contains(" #")
        || value.ends_with(':')
}

fn write_single_quoted(out: &mut BytesMut, value: &str) {
    out.put_u8(b'\'');
    let mut after_break = false;
    for c in value.chars() {
        if after_break && !is_line_break(c) {
            out.put_slice(INDENT.as_bytes());
        }
        if c == '\'' {
            out.put_u8(b'\'');
        }
        put_char(out, c);
        after_break = is_line_break(c);
    }
    out.put_u8(b'\'');
}

fn write_double_quoted(out: &mut BytesMut, value: &str) {
    // The original escapes every character of a value that begins with a byte order mark.
    let escape_all = value.starts_with('\u{feff}');
    out.put_u8(b'"');
    for c in value.chars() {
        if escape_all || matches!(c, '"' | '\\') || is_line_break(c) || !is_printable(c) {
            write_escape(out, c);
        } else {
            put_char(out, c);
        }
    }
    out.put_u8(b'"');
}

fn write_escape(out: &mut BytesMut, c: char) {
    let short = match c {
        '\0' => b'0',
        '\u{7}' => b'a',
        '\u{8}' => b'b',
        '\t' => b't',
        '\n' => b'n',
        '\u{b}' => b'v',
        '\u{c}' => b'f',
        '\r' => b'r',
        '\u{1b}' => b'e',
        '"' => b'"',
        '\\' => b'\\',
        '\u{85}' => b'N',
        '\u{a0}' => b'_',
        '\u{2028}' => b'L',
        '\u{2029}' => b'P',
        _ => return write_numeric_escape(out, c),
    };
    out.put_slice(&[b'\\', short]);
}

fn write_numeric_escape(out: &mut BytesMut, c: char) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let code = u32::from(c);
    let (letter, digits) = match code {
        0..=0xff => (b'x', 2),
        0x100..=0xffff => (b'u', 4),
        _ => (b'U', 8),
    };
    out.put_slice(&[b'\\', letter]);
    for digit in (0..digits).rev() {
        out.put_u8(HEX[(code >> (4 * digit) & 0xf) as usize]);
    }
}

/// Writes a literal block without its last line break, which the entry's end gives.
fn write_literal(out: &mut BytesMut, value: &str) {
    out.put_u8(b'|');
    if value.starts_with([' ', '\n']) {
        out.put_u8(b'4');
    }
    if !value.ends_with('\n') {
        out.put_u8(b'-');
    } else if value == "\n" || value.ends_with("\n\n") {
        out.put_u8(b'+');
    }
    // The original lets a leading line break fall together with the one after the header.
    let text = value.strip_prefix('\n').unwrap_or(value);
    let text = text.strip_suffix('\n').unwrap_or(text);
    if value == "\n" {
        return;
    }
    for line in text.split('\n') {
        out.put_u8(b'\n');
        if !line.is_empty() {
            out.put_slice(INDENT.as_bytes());
            out.put_slice(line.as_bytes());
        }
    }
}

fn put_char(out: &mut BytesMut, c: char) {
    out.put_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}
