//! Names in one directory: those that are one elsewhere, and those that don't travel.
//!
//! Documents are told apart byte by byte. A file system that ignores case or composition shows two
//! of ours as one, and others can't hold some names at all; a tree with such names can't be
//! brought there and back.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;

/// Names that mean a device on Windows, whatever their ending.
const DEVICES: [&str; 4] = ["AUX", "CON", "NUL", "PRN"];
/// The same, followed by one digit from 1.
const NUMBERED_DEVICES: [&str; 2] = ["COM", "LPT"];

/// Characters that Windows keeps for itself.
const RESERVED: [char; 8] = ['<', '>', ':', '"', '\\', '|', '?', '*'];

/// Pairs of names that are one on a file system that ignores case or composition.
pub(super) fn twins<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, &'a str)> {
    let mut met: HashMap<String, &str> = HashMap::new();
    let mut twins = Vec::new();
    for name in names {
        let folded = name.nfc().flat_map(char::to_lowercase).nfc().collect();
        match met.get(&folded) {
            Some(first) => twins.push((*first, name)),
            None => _ = met.insert(folded, name),
        }
    }
    twins
}

/// Why `name` can't be taken everywhere, if so.
pub(super) fn obstacle(name: &str) -> Option<&'static str> {
    let stem = name.split('.').next().unwrap_or_default().to_uppercase();
    let numbered = |device: &&str| {
        let digit = stem.strip_prefix(*device).unwrap_or_default();
        matches!(digit.as_bytes(), [b'1'..=b'9'])
    };
    if DEVICES.contains(&stem.as_str()) || NUMBERED_DEVICES.iter().any(numbered) {
        Some("is a device on Windows")
    } else if name.ends_with(['.', ' ']) {
        Some("ends in a dot or a space, which Windows drops")
    } else if name.contains(RESERVED) {
        Some("has a character that Windows refuses")
    } else if !unicode_normalization::is_nfc(name) {
        Some("is not composed (NFC), and macOS may spell it another way")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_or_composition_are_twins() {
        let names = ["Tea.md", "tea.md", "cafe\u{301}.md", "caf\u{e9}.md", "x"];
        let expected = [("Tea.md", "tea.md"), ("cafe\u{301}.md", "caf\u{e9}.md")];
        assert_eq!(twins(names), expected);
        assert!(twins(["a", "b"]).is_empty());
    }

    #[test]
    fn names_that_do_not_travel_are_told_with_the_reason() {
        for name in [
            "con", "Nul.md", "com1.txt", "LPT9", "a.", "a ", "a:b", "a?b", "e\u{301}",
        ] {
            assert!(obstacle(name).is_some(), "{name}");
        }
        for name in [
            "console.md",
            "com.md",
            "com0",
            "com10",
            "tea.md",
            "\u{e9}",
            "a b",
        ] {
            assert_eq!(obstacle(name), None, "{name}");
        }
    }
}
