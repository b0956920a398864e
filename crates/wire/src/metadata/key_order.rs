//! The order in which keys are written: natural, so that `k2` comes before `k10`.

use std::cmp::Ordering;

/// Compares two keys; equal only for equal keys.
///
/// At the first character that differs, two letters compare by code point. Of a letter and
/// another character the other comes first, but the letter does where the keys share a digit just
/// before. Otherwise the digit runs in which the keys differ compare by value, then by length;
/// a character that is no digit counts as a run without value. A prefix comes first.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let shared = a
        .char_indices()
        .zip(b.chars())
        .find_map(|((at, x), y)| (x != y).then_some((at, x, y)));
    let Some((at, x, y)) = shared else {
        return a.len().cmp(&b.len());
    };
    let after_digit = a[..at].ends_with(|c: char| c.is_ascii_digit());
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => x.cmp(&y),
        (true, false) if after_digit => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if after_digit => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => compare_runs(a, b, at).then(x.cmp(&y)),
    }
}

/// Compares the digit runs that contain or touch byte `at`, up to which both keys are the same.
fn compare_runs(a: &str, b: &str, at: usize) -> Ordering {
    let shared_digits = a[..at].bytes().rev().take_while(u8::is_ascii_digit).count();
    let start = at - shared_digits;
    let (a, b) = (digits(&a[start..]), digits(&b[start..]));
    let (a_value, b_value) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    // Without leading zeros the longer number is the greater one, and equally long ones compare
    // as texts; so numbers of any length have an order.
    (a_value.len().cmp(&b_value.len()))
        .then_with(|| a_value.cmp(b_value))
        .then_with(|| a.len().cmp(&b.len()))
}

fn digits(text: &str) -> &str {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted<const N: usize>(mut keys: [&str; N]) -> [&str; N] {
        keys.sort_by(|a, b| compare(a, b));
        keys
    }

    #[test]
    fn numbers_compare_by_value() {
        assert_eq!(
            sorted(["k100", "k10", "k2", "k11", "k101", "k12"]),
            ["k2", "k10", "k11", "k12", "k100", "k101"]
        );
        assert_eq!(sorted(["a2", "a01", "a1"]), ["a1", "a01", "a2"]);
        assert_eq!(
            sorted(["a99999999999999999999", "a100000000000000000000"]),
            ["a99999999999999999999", "a100000000000000000000"]
        );
    }

    #[test]
    fn letters_come_last_but_after_a_digit_first() {
        assert_eq!(sorted(["ab", "a-b"]), ["a-b", "ab"]);
        assert_eq!(sorted(["x1-a", "x1a"]), ["x1a", "x1-a"]);
    }

    /// Sorting must not depend on a comparison that contradicts itself.
    #[test]
    fn the_order_is_total_over_all_short_keys() {
        let mut keys = vec![String::new()];
        for len in 0..3 {
            let longer: Vec<_> = keys
                .iter()
                .filter(|key| key.len() == len)
                .flat_map(|key| ["0", "1", "2", "-", "a", "b"].map(|end| format!("{key}{end}")))
                .collect();
            keys.extend(longer);
        }
        keys.sort_by(|a, b| compare(a, b));
        for (at, key) in keys.iter().enumerate() {
            for (other_at, other) in keys.iter().enumerate() {
                assert_eq!(compare(key, other), at.cmp(&other_at), "{key:?} {other:?}");
            }
        }
    }
}
