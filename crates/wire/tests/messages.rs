//! The grammar of requests and answers beyond the captured vectors.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use bytes::Bytes;
use wire::{
    Malformed, Metadata, MetadataError, PathError, Request, RequestDecoder, RequestError, Response,
    ResponseError, Status, Unreadable, Verb,
};

fn decode(bytes: &[u8]) -> Result<Request, RequestError> {
    let mut decoder = RequestDecoder::new();
    decoder.feed(bytes)?;
    decoder.finish()
}

#[test]
fn nothing_is_unreadable() {
    assert_eq!(decode(b""), Err(Unreadable::Empty.into()));
    assert_eq!(
        RequestError::from(Unreadable::Empty).status(),
        Status::ServerError
    );
}

#[test]
fn malformed_lines_are_bad_requests() {
    let cases: [(&[u8], Malformed); 8] = [
        (b"FETCH", Malformed::NoPath),
        (b"fetch /a", Malformed::Verb),
        (b" FETCH /a", Malformed::Verb),
        (b"FETCH\t/a", Malformed::NoPath),
        (b"FETCH ", Malformed::Path(PathError::Relative)),
        (b"FETCH \r\n", Malformed::Path(PathError::Relative)),
        (
            b"FETCH /a\x7f",
            Malformed::Path(PathError::ControlCharacter),
        ),
        (
            b"FETCH /a\r\r\n",
            Malformed::Path(PathError::ControlCharacter),
        ),
    ];
    for (bytes, cause) in cases {
        assert_eq!(decode(bytes), Err(cause.into()), "{bytes:?}");
        assert_eq!(RequestError::from(cause).status(), Status::BadRequest);
    }
}

#[test]
fn the_rest_of_the_line_is_the_path() {
    let request = decode(b"FETCH /two words.md  \n").unwrap();
    assert_eq!(request.path, "/two words.md  ");
    // D32: a `..` segment is no matter of the grammar, and bytes outside UTF-8 pass it.
    assert!(decode(b"FETCH /../a").is_ok());
    assert!(decode(b"FETCH /\xff\xfe").is_ok());
}

#[test]
fn fences_with_cr_are_body() {
    let request = decode(b"PUBLISH /a.md\n---\r\nauth: x\r\n---\r\n").unwrap();
    assert!(request.metadata.is_empty());
    assert_eq!(request.body, "---\r\nauth: x\r\n---\r\n");
}

#[test]
fn an_empty_block_needs_a_blank_line() {
    let request = decode(b"PUBLISH /a.md\n---\n\n---\n---\nbody").unwrap();
    assert!(request.metadata.is_empty());
    assert_eq!(request.body, "---\nbody");
    assert_eq!(
        decode(b"PUBLISH /a.md\n---\n---\n"),
        Err(Malformed::Unclosed.into())
    );
}

#[test]
fn a_closing_fence_may_end_the_stream() {
    let request = decode(b"FETCH /a\n---\nauth: x\n---").unwrap();
    assert_eq!(request.metadata.get("auth"), Some("x"));
    assert_eq!(
        decode(b"FETCH /a\n---\nauth: x\n--"),
        Err(Malformed::Unclosed.into())
    );
}

#[test]
fn a_body_that_begins_with_a_fence_gets_an_empty_block_in_front() {
    let request = Request::new(Verb::Publish, "/a.md").with_body("---\ntitle: x\n---\n");
    let bytes = request.encode().unwrap();
    assert!(bytes.starts_with(b"PUBLISH /a.md\n---\n\n---\n---\ntitle"));
    assert_eq!(decode(&bytes), Ok(request));
}

#[test]
fn metadata_outside_the_subset_is_refused() {
    let cases: [(&str, MetadataError); 18] = [
        ("a:\n  b: c", MetadataError::Nested),
        ("a:\n\tb", MetadataError::Nested),
        (" a: b", MetadataError::Nested),
        ("a: b: c", MetadataError::Nested),
        ("a:\n- b", MetadataError::NotAnEntry),
        ("a: [b]", MetadataError::Unsupported),
        ("a: {b: c}", MetadataError::Nested),
        ("a: {}", MetadataError::Unsupported),
        ("a: &x b", MetadataError::Unsupported),
        ("a: *x", MetadataError::Unsupported),
        ("a: !!str b", MetadataError::Unsupported),
        ("a: >\n  b", MetadataError::Unsupported),
        ("a: 'b", MetadataError::Unsupported),
        ("<<: b", MetadataError::NotAnEntry),
        ("a: \"\\q\"", MetadataError::Escape),
        ("a: \"\\uD800\"", MetadataError::Escape),
        ("a: b\0", MetadataError::ControlCharacter),
        ("--- a: b", MetadataError::Unsupported),
    ];
    for (text, error) in cases {
        assert_eq!(Metadata::decode(text.as_bytes()), Err(error), "{text:?}");
    }
    assert_eq!(Metadata::decode(b"a: \xff"), Err(MetadataError::NotUtf8));
}

#[test]
fn comments_blank_lines_and_loose_spacing_are_read() {
    let text =
        "# first\n\na:   b   # why\n'c' :  \"d\" # e\n  # indented\ne:\nf: null\ng: ~ # none\n";
    let metadata = Metadata::decode(text.as_bytes()).unwrap();
    let expected = [("a", "b"), ("c", "d"), ("e", ""), ("f", ""), ("g", "")];
    assert_eq!(metadata, expected.into_iter().collect());
}

#[test]
fn literal_blocks_keep_what_their_header_says() {
    let text =
        "a: |\n  one\n   two\n\nb: |-\n  one\n\nc: |+\n  one\n\nd: |4-\n     one\ne: |\nf: g\n";
    let metadata = Metadata::decode(text.as_bytes()).unwrap();
    let expected = [
        ("a", "one\n two\n"),
        ("b", "one"),
        ("c", "one\n\n"),
        ("d", " one"),
        ("e", ""),
        ("f", "g"),
    ];
    assert_eq!(metadata, expected.into_iter().collect());
}

#[test]
fn metadata_is_a_map() {
    let mut metadata = Metadata::new();
    metadata.set("k10", "a").set("k2", "b").set("k10", "c");
    let entries: Vec<_> = metadata.iter().collect();
    assert_eq!(entries, [("k2", "b"), ("k10", "c")]);
    assert_eq!(metadata.remove("k2").as_deref(), Some("b"));
    assert_eq!(metadata.remove("k2"), None);
    assert_eq!(metadata.len(), 1);
    assert_eq!(metadata.get("k10"), Some("c"));
}

#[test]
fn an_answer_may_state_its_keys_in_any_order() {
    let bytes = Bytes::from("---\nversion: \"1\"\nstatus: ok\nmodified: \"x\"\n---\nbody");
    let response = Response::decode(&bytes).unwrap();
    assert_eq!(response.status, Status::Ok);
    assert_eq!(response.metadata.get("version"), Some("1"));
    assert_eq!(response.metadata.get("status"), None);
    assert_eq!(response.body, "body");
}

#[test]
fn an_answer_without_front_matter_is_a_body_without_status() {
    for text in ["", "hello", "---", "--- \nstatus: ok\n---\n"] {
        let bytes = Bytes::from(text);
        let response = Response::decode(&bytes).unwrap();
        assert_eq!(response.status, Status::Unknown, "{text:?}");
        assert_eq!(response.body, bytes);
        assert_eq!(response.encode(), bytes);
    }
}

#[test]
fn an_unknown_status_stays_readable() {
    let bytes = Bytes::from("---\nstatus: teapot\n---\nbody");
    let response = Response::decode(&bytes).unwrap();
    assert_eq!(response.status, Status::Unknown);
    assert_eq!(response.metadata.get("status"), Some("teapot"));
    assert_eq!(response.encode(), bytes);
}

#[test]
fn an_answer_that_was_cut_is_an_error() {
    let bytes = Bytes::from("---\nstatus: ok\nvers");
    assert_eq!(Response::decode(&bytes), Err(ResponseError::Unclosed));
}

#[test]
fn refusals_name_their_cause() {
    let response = RequestError::from(Malformed::Verb).response();
    assert_eq!(
        response.encode(),
        "---\nstatus: bad-request\n---\n\n# Bad request\n\nbad request: unknown verb\n"
    );
    assert_eq!(response.message(), Some("bad request: unknown verb"));
    let with_key = response.with("message", "shorter");
    assert_eq!(with_key.message(), Some("shorter"));
}

#[test]
fn every_word_reads_back() {
    for verb in Verb::ALL {
        assert_eq!(Verb::parse(verb.as_str().as_bytes()), Some(verb));
    }
    for status in Status::ALL {
        assert_eq!(Status::parse(status.as_str()), Some(status));
    }
    assert_eq!(Status::parse(""), None);
    assert_eq!(Status::NotModified.title(), "Not modified");
}
