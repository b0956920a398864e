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
