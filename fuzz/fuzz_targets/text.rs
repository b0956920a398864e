//! The short texts: cursors, hashes, paths, scopes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{ContentHash, Cursor, DocPath, Scope, Target};

fuzz_target!(|bytes: &[u8]| {
    let _ = Target::parse(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(cursor) = text.parse::<Cursor>() {
        assert_eq!(cursor.to_string(), text);
    }
    if let Ok(cursor) = Cursor::from_event_id(text) {
        assert_eq!(cursor.event_id(), text);
    }
    if let Ok(hash) = ContentHash::parse(text) {
        assert_eq!(hash.to_string(), text);
    }
    if let Ok(scope) = text.parse::<Scope>() {
        assert_eq!(scope.to_string().parse(), Ok(scope));
    }
    if let Ok(path) = DocPath::parse(text) {
        assert_eq!(DocPath::parse(path.as_str()), Ok(path.clone()));
        let _ = (path.split_version(), path.content_address(), path.parent());
        let _ = path.child(text);
    }
});
