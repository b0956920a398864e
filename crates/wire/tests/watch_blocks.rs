//! What a client accepts and refuses in the stream of a watch.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use wire::{BlockError, BlockReader, BlockView, GapReason, Status};

const HASH: &str = "sha256-ab6d61a8038e3681580a5328f4a680df5cf7926bee956a8719b3519976654c71";

/// The lines of a legal event, with the line of one key replaced or left out.
fn event_with(key: &str, value: Option<&str>) -> String {
    let lines = [
        ("cursor", "7f3a9c21d0be:1"),
        ("hash", HASH),
        ("op", "publish"),
        ("path", "/notes/tea.md"),
        ("version", "\"1\""),
    ];
    let mut block = String::from("---\n");
    for (name, legal) in lines {
        let value = if name == key { value } else { Some(legal) };
        if let Some(value) = value {
            block += &format!("{name}: {value}\n");
        }
    }
    block + "---\n"
}

fn error_of(block: &str) -> Option<BlockError> {
    BlockReader::new().read(&mut block.as_bytes()).err()
}

#[test]
fn an_event_that_breaks_a_rule_is_an_error() {
    let cases = [
        ("cursor", None, BlockError::Cursor),
        ("cursor", Some("7f3a9c21d0be"), BlockError::Cursor),
        ("hash", Some("sha256-AB"), BlockError::Hash),
        ("op", None, BlockError::Op),
        ("op", Some("\"\""), BlockError::Op),
        ("path", None, BlockError::Path),
        ("path", Some("notes/tea.md"), BlockError::Path),
        ("path", Some("/notes/../tea.md"), BlockError::Path),
        ("version", None, BlockError::Version),
        ("version", Some("\"0\""), BlockError::Version),
        ("version", Some("\"-1\""), BlockError::Version),
        ("version", Some("99999999999999999999"), BlockError::Version),
        ("op", Some("[publish]"), BlockError::Grammar),
    ];
    for (key, value, error) in cases {
        let block = event_with(key, value);
        assert_eq!(error_of(&block), Some(error), "{key}: {value:?}");
    }
}

// T33
#[test]
fn a_cursor_that_is_none_is_an_error_in_every_spelling() {
    let long_epoch = format!("{}:1", "e".repeat(65));
    let cursors = [
        "e:007",
        "e:+7",
        "e:-1",
        "'e: 7'",
        "e:18446744073709551616",
        &long_epoch,
        "e7",
        "\"\"",
        ":7",
        "'e:'",
    ];
    for cursor in cursors {
        let block = event_with("cursor", Some(cursor));
        assert_eq!(error_of(&block), Some(BlockError::Cursor), "{cursor}");
    }
}

#[test]
fn an_event_may_lack_its_hash() {
    assert_eq!(error_of(&event_with("hash", None)), None);
}

// T32
#[test]
fn an_unknown_op_is_surfaced_so_that_it_can_be_skipped() {
    let block = event_with("op", Some("rename"));
    let mut reader = BlockReader::new();
    let Ok(Some(BlockView::Event(event))) = reader.read(&mut block.as_bytes()) else {
        panic!("an event")
    };
    assert_eq!(event.op, "rename");
    assert_eq!(event.to_event(), None);
    assert_eq!(event.cursor.to_cursor().to_string(), "7f3a9c21d0be:1");
}

#[test]
fn unknown_words_in_a_control_block_do_not_hide_its_position() {
    let text = "---\ncursor: e:5\nreason: mice\nretry-after: soon\nstatus: moved\nx: y\n---\n";
    let mut reader = BlockReader::new();
    let Ok(Some(BlockView::Control(control))) = reader.read(&mut text.as_bytes()) else {
        panic!("a control block")
    };
    assert_eq!(control.status, Status::Unknown);
    assert!(control.status.ends_watch());
    assert_eq!(control.cursor.map(|it| it.seq().get()), Some(5));
    assert_eq!(control.reason, None);
    assert_eq!(control.retry_after_ms, None);
}

// T35
#[test]
fn a_resync_tells_reason_and_position() {
    let text = "---\ncursor: e:5\nreason: too-old\nstatus: resync\n---\n";
    let mut reader = BlockReader::new();
    let Ok(Some(BlockView::Control(control))) = reader.read(&mut text.as_bytes()) else {
        panic!("a control block")
    };
    assert_eq!(control.reason, Some(GapReason::TooOld));
    assert_eq!(control.status, Status::Resync);
}

#[test]
fn a_refusal_is_read_as_a_control_block_before_its_page() {
    let text = "---\nstatus: unauthorized\n---\n\n# Unauthorized\n\nauthentication required\n";
    let mut reader = BlockReader::new();
    let mut input = text.as_bytes();
    let Ok(Some(BlockView::Control(control))) = reader.read(&mut input) else {
        panic!("a control block")
    };
    assert_eq!(control.status, Status::Unauthorized);
    assert!(reader.is_between_blocks());
    assert_eq!(reader.read(&mut input).err(), Some(BlockError::NoFence));
}

#[test]
fn a_reader_knows_whether_a_stream_ended_inside_a_block() {
    let block = event_with("", None);
    let mut reader = BlockReader::new();
    assert!(reader.is_between_blocks());
    let (first, second) = block.split_at(30);
    assert_eq!(reader.read(&mut first.as_bytes()), Ok(None));
    assert!(!reader.is_between_blocks());
    assert!(matches!(reader.read(&mut second.as_bytes()), Ok(Some(_))));
    assert!(reader.is_between_blocks());
}

#[test]
fn a_reader_that_lost_the_framing_stays_lost() {
    let mut reader = BlockReader::new();
    let mut input: &[u8] = b"no fence\n---\nstatus: ok\n---\n";
    for _ in 0..5 {
        assert_eq!(reader.read(&mut input).err(), Some(BlockError::NoFence));
    }
    assert!(!reader.is_between_blocks());
}

#[test]
fn many_blocks_in_one_piece_are_given_one_by_one() {
    let stream = event_with("", None).repeat(3);
    let mut input = stream.as_bytes();
    let mut reader = BlockReader::new();
    let mut blocks = 0;
    while let Some(block) = reader.read(&mut input).unwrap() {
        assert!(matches!(block, BlockView::Event(_)));
        blocks += 1;
    }
    assert_eq!(blocks, 3);
}

#[test]
fn a_key_that_stands_twice_is_an_error() {
    let block = event_with("op", Some("publish\nop: append"));
    assert_eq!(error_of(&block), Some(BlockError::Grammar));
}
