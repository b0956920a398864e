//! Policies: expressions over a caller's claims and the params of what they ask for.
//!
//! `claims.rooms contains params.id and not claims.banned` is parsed once, when the server starts,
//! and evaluated as often as somebody asks. Evaluation is total: it never fails, allocates nothing
//! and takes time in proportion to the expression and the claims that it names.
//!
//! | form | is |
//! |---|---|
//! | `null` `true` `false` `7` `-1.5` `"text"` `'text'` | a literal |
//! | `claims.team.id` `claims["https://a/b"]` `params.id` | a member, or null where there is none |
//! | `a == b` `a != b` | equality of JSON values; numbers by value, never across types |
//! | `a < b` `a <= b` `a > b` `a >= b` | order of two numbers or two texts |
//! | `a contains b` | a list has the element `b`, an object the member `b`, a text the word `b` |
//! | `not a` `a and b` `a or b` `( … )` | in this order of strength |
//!
//! Only what is certainly true allows. A question that makes no sense (is a list below 7? is the
//! text `yes` true?) is neither true nor false, and its negation neither, so that a claim of an
//! unforeseen shape opens nothing. Null counts as false and contains nothing, since a claim that
//! is absent is the usual way to say no.
//!
//! A general scripting language was rejected: it has to be bounded at run time, and its programs
//! can't be read at a glance in a configuration.

mod lexer;
mod parser;
mod value;

use serde_json::{Map, Value};
use thiserror::Error;

use parser::Node;

/// Bytes of an expression: several screens of conditions, more than anybody can review.
pub const EXPRESSION_LEN_MAX: usize = 4096;

/// How deep an expression may nest; evaluation recurses as deep.
pub const EXPRESSION_DEPTH_MAX: usize = 32;

/// A parsed policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(Node);

impl Expression {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > EXPRESSION_LEN_MAX {
            return Err(ExpressionError::new(0, ExpressionFault::TooLong));
        }
        parser::parse(text).map(Self)
    }

    /// True if the expression certainly holds.
    pub fn allows(&self, claims: &Map<String, Value>, params: &Map<String, Value>) -> bool {
        self.0.truth(claims, params) == Some(true)
    }

    /// The params that the expression reads.
    pub fn params(&self) -> impl Iterator<Item = &str> {
        self.0.params().into_iter()
    }
}

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("at byte {at}: {fault}")]
pub struct ExpressionError {
    /// Where, in bytes from the beginning.
    pub at: usize,
    /// What is wrong.
    pub fault: ExpressionFault,
}

impl ExpressionError {
    const fn new(at: usize, fault: ExpressionFault) -> Self {
        Self { at, fault }
    }
}

/// What is wrong with an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExpressionFault {
    /// A value was expected: a literal, `claims.…`, `params.…` or a parenthesis.
    #[error("expected a value such as claims.sub, params.id, null or \"text\"")]
    Value,
    /// A member was expected after a dot or in brackets.
    #[error("expected the name of a member")]
    Member,
    /// A parenthesis is not closed.
    #[error("expected a closing parenthesis")]
    Parenthesis,
    /// A text or an escape in it is not closed or not known.
    #[error("a text is not closed or has an unknown escape")]
    Text,
    /// A number can't be read.
    #[error("the number can't be read")]
    Number,
    /// A character that belongs to nothing.
    #[error("unexpected character")]
    Character,
    /// Something follows the end of the expression.
    #[error("expected and, or, a comparison or the end")]
    Trailing,
    /// The expression nests too deep.
    #[error("nested deeper than {EXPRESSION_DEPTH_MAX}")]
    TooDeep,
    /// The expression is too long.
    #[error("longer than {EXPRESSION_LEN_MAX} bytes")]
    TooLong,
    /// A name other than `claims` and `params` begins a value.
    #[error("a value begins with claims or params")]
    Root,
}

#[cfg(test)]
mod tests;
