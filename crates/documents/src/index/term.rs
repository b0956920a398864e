//! A term that is looked for, and a quick proof that a text can't contain it.

/// The pairs of neighbouring bytes in a text, each as one bit of 128.
///
/// A text can only contain a term if it has all the term's pairs. A title has some forty of them,
/// so nine of ten terms are ruled out without reading the title, which is what keeps a query of
/// many terms over a hundred thousand documents short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pairs(u128);

impl Pairs {
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let pairs = bytes.iter().zip(bytes.iter().skip(1));
        Self(pairs.fold(0, |bits, (first, second)| bits | 1 << bit(*first, *second)))
    }

    fn contains(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }
}

/// Spreads pairs over 128 bits; odd factors keep neighbouring letters apart.
fn bit(first: u8, second: u8) -> u32 {
    u32::from(first.wrapping_mul(59) ^ second.wrapping_mul(167)) % u128::BITS
}

/// A term in lower case, not empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Term {
    text: Box<str>,
    pairs: Pairs,
}

impl Term {
    /// Takes `text`, whatever its case; `None` if it is empty.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let text = text.to_lowercase();
        (!text.is_empty()).then(|| Self {
            pairs: Pairs::of(&text),
            text: text.into(),
        })
    }

    /// The term in lower case.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// False if no text with these `pairs` contains the term.
    pub(super) fn may_be_in(&self, pairs: Pairs) -> bool {
        pairs.contains(self.pairs)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_word_that_a_text_contains_is_never_ruled_out(
            before in "\\PC{0,20}",
            term in "\\PC{1,8}",
            after in "\\PC{0,20}",
        ) {
            let text = format!("{before}{term}{after}").to_lowercase();
            if let Some(term) = Term::new(&term)
                && text.contains(term.as_str())
            {
                prop_assert!(term.may_be_in(Pairs::of(&text)));
            }
        }
    }
}
