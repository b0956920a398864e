//! Whole messages as captured from the Go server, and watch blocks composed from the rules.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use std::fs;
use std::path::PathBuf;

use bytes::{Bytes, BytesMut};
use wire::{
    BlockReader, BlockView, ContentHash, Control, Cursor, DocPath, Event, GapReason, Malformed,
    MetadataError, Op, PathError, Request, RequestDecoder, RequestError, Response, Status, Verb,
};

fn files(dir: &str, extension: &str) -> Vec<(String, Bytes)> {
    let dir: PathBuf = [env!("CARGO_MANIFEST_DIR"), "testdata", dir]
        .iter()
        .collect();
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == extension))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap().into())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn vector(name: &str) -> Bytes {
    let all = files("vectors", "req");
    all.into_iter().find(|(it, _)| it == name).unwrap().1
}

fn block(name: &str) -> Bytes {
    let all = files("blocks", "block");
    all.into_iter().find(|(it, _)| it == name).unwrap().1
}

fn decode(bytes: &[u8]) -> Result<Request, RequestError> {
    let mut decoder = RequestDecoder::new();
    decoder.feed(bytes)?;
    decoder.finish()
}

fn decode_bytewise(bytes: &[u8]) -> Result<Request, RequestError> {
    let mut decoder = RequestDecoder::new();
    for byte in bytes {
        decoder.feed(&[*byte])?;
    }
    decoder.finish()
}

/// The vectors that are refused, and why. The Go server of March answered each of them with
/// `server-error`; all are `bad-request` since September.
fn refusal(name: &str) -> Option<Malformed> {
    Some(match name {
        "124-bad-newline-only" | "125-bad-no-path" => Malformed::NoPath,
        "127-bad-relative-path" | "131-bad-two-spaces" => Malformed::Path(PathError::Relative),
        "128-bad-unknown-verb" | "130-bad-leading-space" => Malformed::Verb,
        "133-bad-control-char" => Malformed::Path(PathError::ControlCharacter),
        "139-odd-line-at-limit" => Malformed::Path(PathError::TooLong),
        "140-bad-unclosed-metadata" | "142-odd-empty-metadata" => Malformed::Unclosed,
        "143-bad-metadata-not-a-map" => Malformed::Metadata(MetadataError::NotAnEntry),
        "145-bad-metadata-duplicate-key" => Malformed::Metadata(MetadataError::DuplicateKey),
        "146-bad-metadata-tab" => Malformed::Metadata(MetadataError::Nested),
        _ => return None,
    })
}

#[test]
fn every_captured_request_decodes_or_is_refused_for_its_reason() {
    for (name, bytes) in files("vectors", "req") {
        let request = decode(&bytes);
        match refusal(&name) {
            Some(cause) => {
                let error = RequestError::Malformed(cause);
                assert_eq!(request, Err(error), "{name}");
                assert_eq!(error.status(), Status::BadRequest, "{name}");
            }
            None => assert!(request.is_ok(), "{name}: {request:?}"),
        }
        assert_eq!(decode_bytewise(&bytes), request, "{name} byte by byte");
    }
}

#[test]
fn every_decoded_request_survives_its_own_encoding() {
    for (name, bytes) in files("vectors", "req") {
        if let Ok(request) = decode(&bytes) {
            assert_eq!(decode(&request.encode().unwrap()), Ok(request), "{name}");
        }
    }
}

#[test]
fn a_publish_is_split_into_its_parts() {
    let request = decode(&vector("004-publish-create")).unwrap();
    assert_eq!(request.verb, Verb::Publish);
    assert_eq!(request.path, "/notes/tea.md");
    assert_eq!(request.metadata.get("expected-version"), Some("0"));
    assert!(request.body.starts_with(b"# Tea\n"));
}

// D40
#[test]
fn unquoted_values_arrive_as_their_characters() {
    let request = decode(&vector("024-publish-unquoted-number-and-bool")).unwrap();
    let values: Vec<_> = request.metadata.iter().collect();
    let expected = [
        ("auth", "editor-token"),
        ("d", "2026-01-02T03:04:05Z"),
        ("f", "1.50"),
        ("n", "7"),
        ("t", "true"),
        ("z", ""),
    ];
    assert_eq!(values, expected);
}

#[test]
fn a_line_may_end_with_cr_lf_or_with_the_stream() {
    let plain = decode(b"FETCH /notes/short.md\n");
    assert_eq!(decode(&vector("136-odd-crlf-line")), plain);
    assert_eq!(decode(&vector("137-odd-no-final-newline")), plain);
}

#[test]
fn watch_requests_carry_their_cursor() {
    let requests = files("blocks", "req");
    let [(_, new), (_, resume)] = &requests[..] else {
        panic!("two requests")
    };
    assert_eq!(decode(new), Ok(Request::new(Verb::Watch, "/notes/")));
    let expected = Request::new(Verb::Watch, "/notes/")
        .with("auth", "reader-token")
        .with("since", "7f3a9c21d0be:5");
    assert_eq!(decode(resume).as_ref(), Ok(&expected));
    assert_eq!(expected.encode().unwrap(), resume);
}

#[test]
fn every_captured_answer_is_encoded_to_the_same_bytes() {
    for (name, bytes) in files("vectors", "res") {
        let response = Response::decode(&bytes).unwrap();
        assert_ne!(response.status, Status::Unknown, "{name}");
        assert_eq!(response.encode(), bytes, "{name}");
    }
}

#[test]
fn refusals_are_written_as_the_original_writes_them() {
    for (name, bytes) in files("vectors", "res") {
        let response = Response::decode(&bytes).unwrap();
        if response.body.starts_with(b"\n# ") && response.metadata.is_empty() {
            let message = response.message().unwrap().to_owned();
            assert_eq!(
                Response::error(response.status, &message),
                response,
                "{name}"
            );
        }
    }
}

fn cursor(text: &str) -> Cursor {
    text.parse().unwrap()
}

fn event(seq: u64, op: Op, version: u64, agent: Option<&str>) -> Event {
    Event {
        cursor: cursor(&format!("7f3a9c21d0be:{seq}")),
        op,
        path: DocPath::parse("/notes/tea.md").unwrap(),
        version,
        hash: Some(
            ContentHash::parse(
                "sha256-ab6d61a8038e3681580a5328f4a680df5cf7926bee956a8719b3519976654c71",
            )
            .unwrap(),
        ),
        agent: agent.map(str::to_owned),
    }
}

#[test]
fn events_are_encoded_to_the_expected_bytes() {
    let mut odd_cursor = event(0, Op::Publish, 3, None);
    odd_cursor.cursor = cursor("123456789012:5");
    let mut odd_path = event(4, Op::Publish, 1, None);
    odd_path.path = DocPath::parse("/a: b #c.md").unwrap();
    let cases = [
        ("event-publish", event(1, Op::Publish, 1, Some("tea-bot"))),
        ("event-append-no-agent", event(2, Op::Append, 2, None)),
        ("event-archive", event(3, Op::Archive, 2, None)),
        ("event-cursor-needs-quotes", odd_cursor),
        ("event-path-needs-quotes", odd_path),
    ];
    for (name, event) in cases {
        let mut out = BytesMut::new();
        event.encode_into(&mut out).unwrap();
        assert_eq!(out, block(name), "{name}");
        let mut reader = BlockReader::new();
        let Ok(Some(BlockView::Event(view))) = reader.read(&mut &out[..]) else {
            panic!("{name} is an event")
        };
        assert_eq!(view.to_event(), Some(event), "{name}");
    }
}

// T31, T35
#[test]
fn control_blocks_are_encoded_to_the_expected_bytes() {
    let at = |seq: u64| cursor(&format!("7f3a9c21d0be:{seq}"));
    let refused = Control {
        cursor: None,
        ..Control::new(Status::RateLimited, at(0))
    };
    let cases = [
        ("ack", Control::new(Status::Ok, at(0))),
        ("heartbeat", Control::new(Status::Ok, at(5))),
        ("closing", Control::new(Status::Closing, at(5))),
        ("not-permitted", Control::new(Status::NotPermitted, at(5))),
        ("unauthorized", Control::new(Status::Unauthorized, at(5))),
        ("resync", Control::new(Status::Resync, at(5))),
        ("rate-limited", refused),
    ];
    for (name, control) in cases {
        let mut out = BytesMut::new();
        control.encode_into(&mut out).unwrap();
        assert_eq!(out, block(name), "{name}");
        let mut reader = BlockReader::new();
        let Ok(Some(BlockView::Control(view))) = reader.read(&mut &out[..]) else {
            panic!("{name} is a control block")
        };
        assert_eq!(view.to_control(), control, "{name}");
    }
}

// T32
#[test]
fn unknown_keys_are_ignored() {
    let bytes = block("event-with-user");
    let mut reader = BlockReader::new();
    let Ok(Some(BlockView::Event(view))) = reader.read(&mut &bytes[..]) else {
        panic!("an event")
    };
    assert_eq!(view.agent, Some("tea-bot"));
    assert_eq!(view.version, 4);
}

// T35
#[test]
fn our_own_keys_come_back() {
    let head = cursor("7f3a9c21d0be:5");
    let controls = [
        Control::resync(GapReason::TooOld, head.clone()),
        Control::closing(head.clone(), 1250),
        Control {
            message: Some("authentication required".to_owned()),
            ..Control::new(Status::Unauthorized, head)
        },
    ];
    for control in controls {
        let mut out = BytesMut::new();
        control.encode_into(&mut out).unwrap();
        let mut reader = BlockReader::new();
        let Ok(Some(BlockView::Control(view))) = reader.read(&mut &out[..]) else {
            panic!("a control block")
        };
        assert_eq!(view.to_control(), control);
    }
}
