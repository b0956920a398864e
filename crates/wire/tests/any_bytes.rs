//! No decoder panics, whatever it is fed, and what it accepts it can write again.
//!
//! The bytes are words of the grammar and noise in random order, so that inputs get past the
//! first check often enough. The fuzz targets run the same decoders for as long as one likes.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use wire::{
    BlockReader, BlockView, ContentHash, Cursor, DocPath, Epoch, GapReason, ListCursor, Metadata,
    Request, RequestDecoder, Response, Scope, Status, Target, Verb,
};

const WORDS: [&str; 40] = [
    "FETCH",
    "WATCH",
    "PUBLISH",
    " ",
    "/",
    "..",
    "/notes/tea.md",
    "\n",
    "\r\n",
    "---\n",
    "---",
    "status: ok\n",
    "status",
    "cursor: e:1\n",
    "op: publish\n",
    "version: \"1\"\n",
    "path: /a\n",
    "hash: ",
    "sha256-",
    "ab6d61a8038e3681580a5328f4a680df5cf7926bee956a8719b3519976654c71",
    ": ",
    "k",
    "'",
    "\"",
    "\\",
    "\\u20",
    "|",
    "|4-\n",
    "    a\n",
    "- ",
    "? ",
    "#",
    "{",
    "&",
    "~",
    "\u{85}",
    "\u{2028}",
    "😀",
    "e:18446744073709551615",
    "doc:",
];

fn soup() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        4 => prop::sample::select(&WORDS[..]).prop_map(|word| word.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ];
    vec(word, 0..24).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn no_decoder_panics(bytes in soup()) {
        let _ = Target::parse(&bytes);
        let _ = Verb::parse(&bytes);
        let _ = Metadata::decode(&bytes);
        let _ = Response::decode(&Bytes::from(bytes.clone()));
        read_request(&bytes);
        read_blocks(&bytes);
        if let Ok(text) = std::str::from_utf8(&bytes) {
            read_text(text);
        }
    }
}

fn read_request(bytes: &[u8]) {
    let decode = |bytes: &[u8]| -> Option<Request> {
        let mut decoder = RequestDecoder::new();
        decoder.feed(bytes).ok()?;
        decoder.finish().ok()
    };
    let Some(request) = decode(bytes) else {
        return;
    };
    // A value that begins with a line break doesn't survive the original's way of writing.
    if request
        .metadata
        .iter()
        .all(|(_, value)| !value.starts_with('\n'))
    {
        assert_eq!(decode(&request.encode().unwrap()), Some(request));
    }
}

fn read_blocks(bytes: &[u8]) {
    let mut reader = BlockReader::new();
    let mut input = bytes;
    // An error ends a stream, but reading on must not panic either.
    for _ in 0..bytes.len() {
        match reader.read(&mut input) {
            Ok(Some(BlockView::Control(control))) => drop(control.to_control()),
            Ok(Some(BlockView::Event(event))) => drop(event.to_event()),
            Ok(None) | Err(_) => {}
        }
    }
}

fn read_text(text: &str) {
    let _ = text.parse::<Cursor>();
    let _ = text.parse::<Scope>();
    let _ = Cursor::from_event_id(text);
    let _ = ContentHash::parse(text);
    let _ = ContentHash::parse_hex(text);
    let _ = Epoch::new(text);
    let _ = GapReason::parse(text);
    let _ = ListCursor::decode(text);
    let _ = Status::parse(text);
    if let Ok(path) = DocPath::parse(text) {
        assert_eq!(DocPath::parse(path.as_str()), Ok(path.clone()));
        let _ = path.split_version();
        let _ = path.content_address();
        let _ = path.parent();
        let _ = path.child(text);
    }
}
