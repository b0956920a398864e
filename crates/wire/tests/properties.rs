//! What is encoded decodes to the same, in pieces of any size.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::{
    Block, BlockReader, BlockView, ContentHash, Control, Cursor, DocPath, Epoch, Event, GapReason,
    ListCursor, Metadata, Op, Request, RequestDecoder, Response, Scope, Seq, Status, Verb,
};

/// Texts that are likely to be mistaken for something else.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,12}",
        "[-?:#|>'\"\\\\ a]{0,8}",
        "[-+0-9._eExob:TZ ]{0,12}",
        "[ \t\r\n\u{85}\u{a0}\u{2028}\u{2029}\u{feff}a😀]{0,8}",
        "(true|No|null|~|\\.inf|2026-01-02|<<|---|\\.\\.\\.)",
    ]
}

/// A value; the original's encoder, and so ours, loses a line break at its beginning.
fn value() -> impl Strategy<Value = String> {
    text().prop_map(|text| text.trim_start_matches('\n').to_owned())
}

fn metadata() -> impl Strategy<Value = Metadata> {
    let key = prop_oneof![text(), "[a-z0-9-]{1,6}", "[a-z0-9-]{126,131}"];
    vec((key, value()), 0..6).prop_map(Metadata::from_iter)
}

fn path() -> impl Strategy<Value = DocPath> {
    vec("[^/\\x00-\\x08\\x0a-\\x1f\\x7f]{1,12}", 0..4).prop_filter_map("`..` is no path", |names| {
        DocPath::parse(&format!("/{}", names.join("/"))).ok()
    })
}

fn cursor() -> impl Strategy<Value = Cursor> {
    let epoch = prop_oneof!["[0-9]{1,12}", "[A-Za-z0-9._-]{1,64}"];
    let seq = prop_oneof![0..60_u64, any::<u64>()];
    (epoch, seq).prop_map(|(epoch, seq)| Cursor::new(Epoch::new(&epoch).unwrap(), Seq::new(seq)))
}

fn hash() -> impl Strategy<Value = ContentHash> {
    any::<[u8; 32]>().prop_map(ContentHash::from_bytes)
}

fn block() -> impl Strategy<Value = Block> {
    let control = (
        prop::sample::select(&Status::ALL[..]),
        option::of(cursor()),
        option::of(text()),
        option::of(prop::sample::select(&GapReason::ALL[..])),
        option::of(any::<u64>()),
    )
        .prop_map(|(status, cursor, message, reason, retry_after_ms)| {
            Block::Control(Control {
                status,
                cursor,
                message,
                reason,
                retry_after_ms,
            })
        });
    let op = prop::sample::select(vec![Op::Append, Op::Archive, Op::Publish]);
    let event = (
        cursor(),
        op,
        path(),
        1..u64::MAX,
        option::of(hash()),
        option::of(text()),
    )
        .prop_map(|(cursor, op, path, version, hash, agent)| {
            Block::Event(Event {
                cursor,
                op,
                path,
                version,
                hash,
                agent,
            })
        });
    prop_oneof![control, event]
}

fn owned(view: BlockView<'_>) -> Block {
    match view {
        BlockView::Control(control) => Block::Control(control.to_control()),
        BlockView::Event(event) => Block::Event(event.to_event().unwrap()),
    }
}

proptest! {
    #[test]
    fn metadata_survives(metadata in metadata()) {
        let mut out = BytesMut::new();
        metadata.encode_into(&mut out);
        prop_assert_eq!(Metadata::decode(&out), Ok(metadata), "{:?}", out);
    }

    #[test]
    fn requests_survive_in_pieces(
        verb in prop::sample::select(&Verb::ALL[..]),
        path in path(),
        metadata in metadata(),
        body in prop_oneof![vec(any::<u8>(), 0..64), Just(b"---\nx: y\n---\n".to_vec())],
        piece_len in 1..40_usize,
    ) {
        let request = Request {
            verb,
            path: path.to_string().into(),
            metadata,
            body: body.into(),
        };
        let bytes = request.encode().unwrap();
        let mut decoder = RequestDecoder::new();
        for piece in bytes.chunks(piece_len) {
            decoder.feed(piece).unwrap();
        }
        prop_assert_eq!(decoder.finish(), Ok(request));
    }

    #[test]
    fn answers_survive(
        status in prop::sample::select(&Status::ALL[..]),
        mut metadata in metadata(),
        body in vec(any::<u8>(), 0..64),
    ) {
        metadata.remove("status");
        let response = Response { status, metadata, body: body.into() };
        prop_assert_eq!(Response::decode(&response.encode()), Ok(response));
    }

    #[test]
    fn blocks_survive_in_pieces(blocks in vec(block(), 0..5), piece_len in 1..200_usize) {
        let mut out = BytesMut::new();
        for block in &blocks {
            block.encode_into(&mut out).unwrap();
        }
        let mut reader = BlockReader::new();
        let mut read = Vec::new();
        for mut piece in out.chunks(piece_len) {
            while let Some(view) = reader.read(&mut piece).unwrap() {
                read.push(owned(view));
            }
        }
        prop_assert!(reader.is_between_blocks());
        prop_assert_eq!(read, blocks);
    }

    #[test]
    fn list_cursors_survive(
        path in path(),
        include_archived: bool,
        after in "[^/]{1,20}",
    ) {
        let cursor = ListCursor { path: path.clone(), include_archived, after };
        let text = cursor.encode();
        prop_assert_eq!(ListCursor::decode_for(&text, &path, include_archived), Ok(cursor));
    }

    #[test]
    fn cursors_survive_in_both_forms(cursor in cursor()) {
        prop_assert_eq!(cursor.to_string().parse(), Ok(cursor.clone()));
        prop_assert_eq!(Cursor::from_event_id(&cursor.event_id()), Ok(cursor));
    }

    #[test]
    fn scopes_survive(path in path(), subtree: bool) {
        let spelled = if subtree { path.with_slash() } else { path.to_string() };
        let scope: Scope = spelled.parse().unwrap();
        prop_assert_eq!(scope.to_string().parse(), Ok(scope));
    }

    #[test]
    fn hashes_survive(hash in hash()) {
        prop_assert_eq!(ContentHash::parse(&hash.to_string()), Ok(hash));
        prop_assert_eq!(ContentHash::parse_hex(&hash.hex()), Ok(hash));
    }

    #[test]
    fn pieces_do_not_change_what_a_request_is(
        bytes in prop_oneof![
            (
                "(FETCH|fetch)? ?/?[a\u{1} ]{0,3}\r?\n?",
                "(---\n)?([ab]: [a'\"]{0,3}\n){0,2}(---\n?)?[x\n-]{0,6}",
            )
                .prop_map(|(line, rest)| [line, rest].concat().into_bytes()),
            vec(any::<u8>(), 0..64),
        ],
        piece_len in 1..8_usize,
    ) {
        let decode = |piece_len| {
            let mut decoder = RequestDecoder::new();
            for piece in bytes.chunks(piece_len) {
                decoder.feed(piece)?;
            }
            decoder.finish()
        };
        prop_assert_eq!(decode(piece_len), decode(bytes.len().max(1)));
    }
}

/// The decoders take shared bytes; nothing is copied for a body.
#[test]
fn a_body_is_not_copied() {
    let bytes = Bytes::from("---\nstatus: ok\n---\nbody");
    let response = Response::decode(&bytes).unwrap();
    let expected = bytes.slice(bytes.len() - "body".len()..);
    assert_eq!(response.body.as_ptr(), expected.as_ptr());
}
