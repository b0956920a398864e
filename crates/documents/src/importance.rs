//! How much a publisher says that a document matters, from 0 to 1.

use std::cmp::Ordering;
use std::fmt;

use crate::PublisherMetadata;

/// A number from 0 to 1; shown with two decimals, ordered by its full value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Importance(f64);

impl Importance {
    /// What a document has whose publisher said nothing, or nothing that is a number from 0
    /// to 1 (D28).
    const UNSAID: Self = Self(0.5);

    /// Reads the key `importance`.
    pub(crate) fn of(metadata: &PublisherMetadata) -> Self {
        metadata
            .get("importance")
            .and_then(|text| text.trim().parse().ok())
            .filter(|value| (0.0..=1.0).contains(value))
            // Adding zero turns -0 into 0, which would be shown and ordered as less.
            .map_or(Self::UNSAID, |value: f64| Self(value + 0.0))
    }
}

impl fmt::Display for Importance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}", self.0)
    }
}

impl Ord for Importance {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Importance {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Importance {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Importance {}

#[cfg(test)]
mod tests {
    use super::*;

    fn importance(text: &str) -> Importance {
        Importance::of(&PublisherMetadata::from([(
            "importance".into(),
            text.into(),
        )]))
    }

    // D28
    #[test]
    fn numbers_from_0_to_1_count_and_all_else_is_a_half() {
        for (text, shown) in [
            ("0.70", "0.70"),
            ("1e-1", "0.10"),
            (" 1 ", "1.00"),
            ("0", "0.00"),
            ("-0", "0.00"),
            ("NaN", "0.50"),
            ("nan", "0.50"),
            ("inf", "0.50"),
            ("-inf", "0.50"),
            ("infinity", "0.50"),
            ("-1", "0.50"),
            ("1.0000001", "0.50"),
            ("high", "0.50"),
            ("", "0.50"),
        ] {
            assert_eq!(importance(text).to_string(), shown, "{text:?}");
        }
        assert_eq!(
            Importance::of(&PublisherMetadata::new()).to_string(),
            "0.50"
        );
    }

    #[test]
    fn zero_and_minus_zero_are_equal() {
        assert_eq!(importance("0"), importance("-0"));
        assert!(importance("0.701") > importance("0.70"));
    }
}
