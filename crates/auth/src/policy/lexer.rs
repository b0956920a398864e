//! Takes an expression apart into words, texts, numbers and marks.

use serde_json::Number;

use super::{ExpressionError, ExpressionFault};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A name or a keyword.
    Word(&'a str),
    Text(String),
    Number(Number),
    /// `==`, `<`, `(` and their like.
    Mark(&'static str),
    End,
}

/// The longer marks stand before those that begin them.
const MARKS: [&str; 11] = ["==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", "."];

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token with its place.
    pub(super) fn next(&mut self) -> Result<(usize, Token<'a>), ExpressionError> {
        let rest = self.rest().trim_start();
        self.at = self.text.len() - rest.len();
        let at = self.at;
        let Some(first) = rest.chars().next() else {
            return Ok((at, Token::End));
        };
        let token = match first {
            '"' | '\'' => self.text_in(first)?,
            '-' | '0'..='9' => self.number()?,
            'a'..='z' | 'A'..='Z' | '_' => {
                Token::Word(self.take_while(|c| c.is_ascii_alphanumeric() || c == '_'))
            }
            _ => self.mark()?,
        };
        Ok((at, token))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    fn mark(&mut self) -> Result<Token<'a>, ExpressionError> {
        let rest = self.rest();
        let mark = MARKS.into_iter().find(|mark| rest.starts_with(mark));
        let mark = mark.ok_or_else(|| self.fault(ExpressionFault::Character))?;
        self.at += mark.len();
        Ok(Token::Mark(mark))
    }

    fn number(&mut self) -> Result<Token<'a>, ExpressionError> {
        let start = self.at;
        let text = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'));
        let number = serde_json::from_str(text);
        number
            .map(Token::Number)
            .map_err(|_| ExpressionError::new(start, ExpressionFault::Number))
    }

    /// A text between two `quote`s, with a backslash before a quote or a backslash.
    fn text_in(&mut self, quote: char) -> Result<Token<'a>, ExpressionError> {
        let mut text = String::new();
        let mut chars = self.rest().chars();
        // The opening quote.
        chars.next();
        loop {
            match chars.next() {
                Some(c) if c == quote => break,
                Some('\\') => match chars.next() {
                    Some(c @ ('\\' | '"' | '\'')) => text.push(c),
                    _ => return Err(self.fault(ExpressionFault::Text)),
                },
                Some(c) => text.push(c),
                None => return Err(self.fault(ExpressionFault::Text)),
            }
        }
        self.at = self.text.len() - chars.as_str().len();
        Ok(Token::Text(text))
    }

    const fn fault(&self, fault: ExpressionFault) -> ExpressionError {
        ExpressionError::new(self.at, fault)
    }
}
