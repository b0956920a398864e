//! Reads entries of metadata one by one without copying them.
//!
//! [`EntryReader`] finds the key and the value of each entry and borrows them as they stand;
//! [`Scalar::decode_into`] takes quotes, escapes and indentation away. A caller that brings its
//! own buffer reads without allocating.

use std::str::Chars;

use super::MetadataError;
use super::character::{is_allowed, is_line_break};
use super::foreign;

/// One entry as it stands in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) key: Scalar<'a>,
    pub(crate) value: Scalar<'a>,
}

/// A key or a value as it stands in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scalar<'a> {
    /// Characters that stand for themselves.
    Plain(&'a str),
    /// What stands between single quotes.
    Single(&'a str),
    /// What stands between double quotes.
    Double(&'a str),
    /// The lines of a literal block.
    Literal(Literal<'a>),
}

/// The lines of a literal block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Literal<'a> {
    /// Whole lines, each with its LF but perhaps the last.
    lines: &'a str,
    /// Spaces that belong to the block and not to its text.
    indent: usize,
    end: LiteralEnd,
}

/// What a literal block keeps of its line breaks at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LiteralEnd {
    /// One (`|`).
    Clip,
    /// All (`|+`).
    Keep,
    /// None (`|-`).
    Strip,
}

/// Walks over the entries of a flat map.
#[derive(Debug)]
pub(crate) struct EntryReader<'a> {
    rest: &'a str,
}

impl<'a> EntryReader<'a> {
    /// Begins at the start of `text`, which must not have its fences.
    pub(crate) fn new(text: &'a str) -> Result<Self, MetadataError> {
        if text.chars().all(is_allowed) {
            Ok(Self { rest: text })
        } else {
            Err(MetadataError::ControlCharacter)
        }
    }

    /// The next entry, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'a>>, MetadataError> {
        while !self.rest.is_empty() {
            let line = self.take_line();
            let text = line.trim_start_matches(' ');
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            if text.len() < line.len() || line.starts_with('\t') {
                return Err(MetadataError::Nested);
            }
            return self.entry(line).map(Some);
        }
        Ok(None)
    }

    fn entry(&mut self, line: &'a str) -> Result<Entry<'a>, MetadataError> {
        let (key, value) = match line.strip_prefix("? ") {
            Some(key) => {
                let value = self.take_line().strip_prefix(':');
                (
                    scalar_on_line(key)?,
                    value.ok_or(MetadataError::NotAnEntry)?,
                )
            }
            None => split_key(line)?,
        };
        if !(value.is_empty() || value.starts_with([' ', '\t'])) {
            return Err(MetadataError::NotAnEntry);
        }
        let value = value.trim_start_matches([' ', '\t']);
        let value = match value.strip_prefix('|') {
            Some(header) => Scalar::Literal(self.literal(header)?),
            None => scalar_on_line(value)?,
        };
        Ok(Entry { key, value })
    }

    /// Takes the lines of a literal block whose header, without the bar, is `header`.
    fn literal(&mut self, header: &str) -> Result<Literal<'a>, MetadataError> {
        let (mut indent, end) = literal_header(header)?;
        let text = self.rest;
        let mut len = 0;
        for line in text.split_inclusive('\n') {
            let content = line.trim_end_matches(['\r', '\n']);
            let spaces = content.len() - content.trim_start_matches(' ').len();
            if spaces < content.len() {
                let indent = *indent.get_or_insert_with(|| spaces.max(1));
                if spaces < indent {
                    break;
                }
            }
            len += line.len();
        }
        self.rest = &text[len..];
        let lines = &text[..len];
        if lines.contains(|c| is_line_break(c) && c != '\n') {
            return Err(MetadataError::ControlCharacter);
        }
        Ok(Literal {
            lines,
            // Without a line of text there is nothing but blank lines.
            indent: indent.unwrap_or(usize::MAX),
            end,
        })
    }

    /// Takes one line without its LF or CR LF.
    fn take_line(&mut self) -> &'a str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        line.strip_suffix('\r').unwrap_or(line)
    }
}

/// Reads what follows the bar of a literal block: its indentation if stated, and its end.
fn literal_header(header: &str) -> Result<(Option<usize>, LiteralEnd), MetadataError> {
    let (mut indent, mut end) = (None, None);
    let mut rest = header;
    while let Some(flag @ ('+' | '-' | '1'..='9')) = rest.chars().next() {
        let twice = match flag {
            '+' => end.replace(LiteralEnd::Keep).is_some(),
            '-' => end.replace(LiteralEnd::Strip).is_some(),
            digit => indent
                .replace((u32::from(digit) - u32::from('0')) as usize)
                .is_some(),
        };
        if twice {
            return Err(MetadataError::Unsupported);
        }
        rest = &rest[1..];
    }
    require_end(rest)?;
    Ok((indent, end.unwrap_or(LiteralEnd::Clip)))
}

/// Splits a line into its key and what follows the colon.
fn split_key(line: &str) -> Result<(Scalar<'_>, &str), MetadataError> {
    if line.starts_with(['"', '\'']) {
        let (key, after) = quoted(line)?;
        let after = after.trim_start_matches([' ', '\t']);
        let value = after.strip_prefix(':').ok_or(MetadataError::NotAnEntry)?;
        return Ok((key, value));
    }
    let (key, value) = line
        .match_indices(':')
        .map(|(at, _)| line.split_at(at))
        .find(|(_, value)| value.len() == 1 || value[1..].starts_with([' ', '\t']))
        .ok_or(MetadataError::NotAnEntry)?;
    let key = key.trim_end_matches([' ', '\t']);
    let has_comment = key.contains(" #") || key.contains("\t#");
    // A null as a key has no meaning, and `<<` would merge another map into this one.
    if has_comment || key == "<<" || foreign::is_null(key) {
        return Err(MetadataError::NotAnEntry);
    }
    Ok((plain(key)?, &value[1..]))
}

/// Reads a plain or quoted scalar and the comment that may follow it.
fn scalar_on_line(text: &str) -> Result<Scalar<'_>, MetadataError> {
    if text.starts_with(['"', '\'']) {
        let (scalar, after) = quoted(text)?;
        require_end(after)?;
        return Ok(scalar);
    }
    let end = text
        .match_indices('#')
        .map(|(at, _)| at)
        .find(|at| *at == 0 || text[..*at].ends_with([' ', '\t']))
        .unwrap_or(text.len());
    let value = text[..end].trim_end_matches([' ', '\t']);
    if value.is_empty() {
        return Ok(Scalar::Plain(value));
    }
    if value.ends_with(':') || value.contains(": ") || value.contains(":\t") {
        return Err(MetadataError::Nested);
    }
    plain(value)
}

fn plain(text: &str) -> Result<Scalar<'_>, MetadataError> {
    let mut chars = text.chars();
    let (first, second) = (chars.next(), chars.next());
    let begins_node = match first {
        None => return Err(MetadataError::NotAnEntry),
        Some('-' | '?' | ':') => second.is_none_or(|c| matches!(c, ' ' | '\t')),
        Some(c) => ",[]{}#&*!|>'\"%@`".contains(c),
    };
    let marker = ["---", "..."].into_iter().any(|marker| {
        text.strip_prefix(marker)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
    });
    if begins_node || marker {
        return Err(MetadataError::Unsupported);
    }
    if text.contains(is_line_break) {
        return Err(MetadataError::ControlCharacter);
    }
    Ok(Scalar::Plain(text))
}

/// Reads a scalar that begins with a quote; gives what follows the closing one.
fn quoted(text: &str) -> Result<(Scalar<'_>, &str), MetadataError> {
    let (quote, inner) = text.split_at(1);
    let bytes = inner.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match (quote, bytes[at]) {
            ("\"", b'"') => return Ok((Scalar::Double(&inner[..at]), &inner[at + 1..])),
            ("'", b'\'') if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            ("'", b'\'') => return Ok((Scalar::Single(&inner[..at]), &inner[at + 1..])),
            ("\"", b'\\') => at += 2,
            _ => at += 1,
        }
    }
    // A quoted text that goes on after the line's end is legal YAML, but no client sends it.
    Err(MetadataError::Unsupported)
}

/// Accepts blanks and a comment, and nothing else.
fn require_end(text: &str) -> Result<(), MetadataError> {
    let rest = text.trim_start_matches([' ', '\t']);
    let is_comment = rest.starts_with('#') && rest.len() < text.len();
    if rest.is_empty() || is_comment {
        Ok(())
    } else {
        Err(MetadataError::NotAnEntry)
    }
}

impl Scalar<'_> {
    /// Appends the text that is meant.
    pub(crate) fn decode_into(&self, out: &mut String) -> Result<(), MetadataError> {
        match self {
            Self::Plain(text) if foreign::is_null(text) => Ok(()),
            Self::Plain(text) => {
                out.push_str(text);
                Ok(())
            }
            Self::Single(text) => decode_single(text, out),
            Self::Double(text) => decode_double(text, out),
            Self::Literal(literal) => {
                literal.decode_into(out);
                Ok(())
            }
        }
    }
}

fn decode_single(text: &str, out: &mut String) -> Result<(), MetadataError> {
    let mut folded = Folded::new(out);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        folded.push(c)?;
        if c == '\'' {
            // Single quotes come in pairs here; the reader saw to that.
            chars.next();
        }
    }
    Ok(())
}

fn decode_double(text: &str, out: &mut String) -> Result<(), MetadataError> {
    let mut folded = Folded::new(out);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            folded.push_escaped(decode_escape(&mut chars)?);
        } else {
            folded.push(c)?;
        }
    }
    Ok(())
}

fn decode_escape(chars: &mut Chars<'_>) -> Result<char, MetadataError> {
    Ok(match chars.next().ok_or(MetadataError::Escape)? {
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        't' | '\t' => '\t',
        'n' => '\n',
        'v' => '\u{b}',
        'f' => '\u{c}',
        'r' => '\r',
        'e' => '\u{1b}',
        c @ (' ' | '"' | '\'' | '/' | '\\') => c,
        'N' => '\u{85}',
        '_' => '\u{a0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        'x' => decode_code_point(chars, 2)?,
        'u' => decode_code_point(chars, 4)?,
        'U' => decode_code_point(chars, 8)?,
        _ => return Err(MetadataError::Escape),
    })
}

fn decode_code_point(chars: &mut Chars<'_>, digits: usize) -> Result<char, MetadataError> {
    let mut code = 0;
    for _ in 0..digits {
        let digit = chars.next().and_then(|c| c.to_digit(16));
        code = code << 4 | digit.ok_or(MetadataError::Escape)?;
    }
    char::from_u32(code).ok_or(MetadataError::Escape)
}

/// Takes the characters of a quoted text, and the blanks around a line separator away.
struct Folded<'a> {
    out: &'a mut String,
    /// Blanks before this place were escaped and stay.
    kept: usize,
    after_break: bool,
}

impl<'a> Folded<'a> {
    const fn new(out: &'a mut String) -> Self {
        Self {
            kept: out.len(),
            out,
            after_break: false,
        }
    }

    fn push(&mut self, c: char) -> Result<(), MetadataError> {
        match c {
            ' ' | '\t' if self.after_break => return Ok(()),
            '\u{2028}' | '\u{2029}' => {
                let blank_free = self.out.trim_end_matches([' ', '\t']).len();
                self.out.truncate(blank_free.max(self.kept));
            }
            // The other line breaks become spaces or fall away; no client writes them.
            _ if is_line_break(c) => return Err(MetadataError::ControlCharacter),
            _ => {}
        }
        self.after_break = is_line_break(c);
        self.out.push(c);
        Ok(())
    }

    fn push_escaped(&mut self, c: char) {
        self.out.push(c);
        self.kept = self.out.len();
        self.after_break = false;
    }
}

impl Literal<'_> {
    fn decode_into(&self, out: &mut String) {
        let begin = out.len();
        for line in self.lines.split_inclusive('\n') {
            let line = line.strip_suffix('\n').unwrap_or(line);
            let spaces = line.len() - line.trim_start_matches(' ').len();
            out.push_str(&line[spaces.min(self.indent)..]);
            out.push('\n');
        }
        let text_len = out.trim_end_matches('\n').len().max(begin);
        match self.end {
            LiteralEnd::Clip if text_len > begin => out.truncate(text_len + 1),
            LiteralEnd::Clip | LiteralEnd::Strip => out.truncate(text_len),
            LiteralEnd::Keep => {}
        }
    }
}
