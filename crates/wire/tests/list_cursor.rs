//! The LIST cursor and its refusals.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use wire::{DocPath, ListCursor, ListCursorError, limits};

const DERIVED: &str = "AQAABi9ub3Rlc2NvZmZlZS5tZA";

fn notes() -> DocPath {
    DocPath::parse("/notes").unwrap()
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[test]
fn the_example_of_the_september_rules_reads_and_writes() {
    let cursor = ListCursor {
        path: notes(),
        include_archived: false,
        after: "coffee.md".to_owned(),
    };
    assert_eq!(ListCursor::decode(DERIVED), Ok(cursor.clone()));
    assert_eq!(cursor.encode(), DERIVED);
}

// D22
#[test]
fn a_cursor_of_another_request_is_refused() {
    let other = DocPath::parse("/other").unwrap();
    let mismatch = Err(ListCursorError::Mismatch);
    assert_eq!(ListCursor::decode_for(DERIVED, &other, false), mismatch);
    assert_eq!(ListCursor::decode_for(DERIVED, &notes(), true), mismatch);
    assert!(ListCursor::decode_for(DERIVED, &notes(), false).is_ok());
}

// D22
#[test]
fn a_cursor_that_was_cut_or_altered_is_refused() {
    let texts = [
        String::new(),
        DERIVED[..4].to_owned(),
        DERIVED[..8].to_owned(),
        format!("{DERIVED}="),
        format!("{DERIVED} "),
        DERIVED.replace('Q', "+"),
        encode(b"\x01\x02\x00\x06/notescoffee.md"),
        encode(b"\x01\x00\xff\xff/notescoffee.md"),
        encode(b"\x01\x00\x00\x06/notes"),
        encode(b"\x01\x00\x00\x07/notes/coffee.md"),
        encode(b"\x01\x00\x00\x06/notesa/b"),
        encode(b"\x01\x00\x00\x06/not\xffscoffee.md"),
    ];
    for text in texts {
        let decoded = ListCursor::decode(&text);
        assert_eq!(decoded, Err(ListCursorError::Invalid), "{text:?}");
    }
}

// D22
#[test]
fn a_cursor_of_another_version_or_past_the_limit_is_refused() {
    let unsupported = encode(b"\x02\x00\x00\x06/notescoffee.md");
    assert_eq!(
        ListCursor::decode(&unsupported),
        Err(ListCursorError::Unsupported)
    );
    let too_long = "A".repeat(limits::LIST_CURSOR_LEN_MAX + 1);
    assert_eq!(ListCursor::decode(&too_long), Err(ListCursorError::TooLong));
}

#[test]
fn the_longest_path_and_name_fit_the_limit() {
    let cursor = ListCursor {
        path: DocPath::parse(&format!("/{}", "a".repeat(limits::PATH_LEN_MAX - 1))).unwrap(),
        include_archived: true,
        after: "n".repeat(limits::NAME_LEN_MAX),
    };
    assert!(cursor.encode().len() <= limits::LIST_CURSOR_LEN_MAX);
    assert_eq!(ListCursor::decode(&cursor.encode()), Ok(cursor));
}
