//! Reading watch blocks allocates nothing.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use bytes::BytesMut;
use wire::{BlockReader, BlockView, ContentHash, Control, Cursor, DocPath, Event, Op, Status};

/// Blocks that need every way of decoding: plain, single and double quotes, control and event.
fn stream() -> BytesMut {
    let mut out = BytesMut::new();
    let plain: Cursor = "7f3a9c21d0be:1".parse().unwrap();
    let quoted: Cursor = "123456789012:2".parse().unwrap();
    Control::new(Status::Ok, plain.clone())
        .encode_into(&mut out)
        .unwrap();
    for (cursor, path, agent) in [
        (plain, "/notes/tea.md", "tea-bot"),
        (quoted, "/a: b #c.md", "tea 😀 \"bot\""),
    ] {
        let event = Event {
            cursor,
            op: Op::Publish,
            path: DocPath::parse(path).unwrap(),
            version: 1,
            hash: Some(ContentHash::of(b"body")),
            agent: Some(agent.to_owned()),
        };
        event.encode_into(&mut out).unwrap();
    }
    out
}

#[test]
fn blocks_are_read_without_allocating() {
    let stream = stream();
    let mut reader = BlockReader::new();
    let mut blocks = 0;
    let mut paths_len = 0;
    let counted = allocation_counter::measure(|| {
        for _ in 0..100 {
            for mut piece in stream.chunks(7) {
                while let Ok(Some(block)) = reader.read(&mut piece) {
                    blocks += 1;
                    if let BlockView::Event(event) = block {
                        paths_len += event.path.len();
                    }
                }
            }
        }
    });
    assert_eq!(blocks, 300);
    assert_eq!(
        paths_len,
        100 * ("/notes/tea.md".len() + "/a: b #c.md".len())
    );
    assert_eq!(counted.count_total, 0);
}
