//! The LIST cursor: what reads is written as the same text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::ListCursor;

fuzz_target!(|text: &str| {
    if let Ok(cursor) = ListCursor::decode(text) {
        assert_eq!(cursor.encode(), text);
    }
});
