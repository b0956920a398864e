//! Writing data to stdout: lines for people and scripts, or JSON objects.

use std::fmt::Write as _;
use std::io::{self, StdoutLock, Write};

use serde::Serialize;

use super::failure::Failure;

/// What a command prints.
pub(crate) struct Output {
    stdout: StdoutLock<'static>,
    json: bool,
}

impl Output {
    /// Prints JSON if `json`, else text.
    pub(crate) fn new(json: bool) -> Self {
        Self {
            stdout: io::stdout().lock(),
            json,
        }
    }

    /// Prints `record` as an object, or `fields` separated by tabs, and flushes the line.
    pub(crate) fn line(&mut self, record: &impl Serialize, fields: &[&str]) -> Result<(), Failure> {
        let mut line = if self.json {
            serde_json::to_string(record)?
        } else {
            let shown: Vec<String> = fields.iter().map(|field| printable(field)).collect();
            shown.join("\t")
        };
        line.push('\n');
        self.stdout.write_all(line.as_bytes())?;
        Ok(self.stdout.flush()?)
    }

    /// Prints bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stdout.write_all(bytes)?;
        Ok(self.stdout.flush()?)
    }

    /// True if objects are printed.
    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }
}

/// The text with its control characters escaped, so that a name can neither look like two fields
/// nor speak to the terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            write!(shown, "{}", character.escape_default()).expect("a string takes any text");
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(printable("a\tb\u{1b}[2Jc é"), "a\\tb\\u{1b}[2Jc é");
    }
}
