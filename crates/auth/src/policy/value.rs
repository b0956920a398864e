//! The values that an expression compares.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// A value, borrowed from the expression, the claims or the params.
#[derive(Clone, Copy)]
pub(super) enum Term<'a> {
    Of(&'a Value),
    /// The outcome of a question that makes no sense; every further question makes none either.
    Senseless,
}

static FALSE: Value = Value::Bool(false);
static NULL: Value = Value::Null;
static TRUE: Value = Value::Bool(true);

impl Term<'_> {
    pub(super) const NULL: Self = Self::Of(&NULL);

    pub(super) const fn from_truth(truth: Option<bool>) -> Self {
        match truth {
            Some(true) => Self::Of(&TRUE),
            Some(false) => Self::Of(&FALSE),
            None => Self::Senseless,
        }
    }

    pub(super) const fn truth(self) -> Option<bool> {
        match self {
            Self::Of(Value::Bool(truth)) => Some(*truth),
            Self::Of(Value::Null) => Some(false),
            _ => None,
        }
    }

    pub(super) fn equals(self, other: Self) -> Option<bool> {
        match (self, other) {
            (Self::Of(left), Self::Of(right)) => Some(is_equal(left, right)),
            _ => None,
        }
    }

    pub(super) fn order(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Of(Value::Number(left)), Self::Of(Value::Number(right))) => {
                order_of_numbers(left, right)
            }
            (Self::Of(Value::String(left)), Self::Of(Value::String(right))) => {
                Some(left.cmp(right))
            }
            _ => None,
        }
    }

    pub(super) fn contains(self, other: Self) -> Option<bool> {
        match (self, other) {
            (Self::Of(Value::Null), Self::Of(_)) => Some(false),
            (Self::Of(Value::Array(list)), Self::Of(element)) => {
                Some(list.iter().any(|own| is_equal(own, element)))
            }
            (Self::Of(Value::Object(members)), Self::Of(Value::String(name))) => {
                Some(members.contains_key(name))
            }
            // The `scope` of OAuth is a text of words; a part of a word must not count.
            (Self::Of(Value::String(text)), Self::Of(Value::String(word))) => {
                Some(text.split_whitespace().any(|own| own == word))
            }
            _ => None,
        }
    }
}

fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            order_of_numbers(left, right) == Some(Ordering::Equal)
        }
        _ => left == right,
    }
}

fn order_of_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}
