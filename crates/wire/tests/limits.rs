//! Each bound of the wire passes at its edge and is refused one byte later.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use bytes::{Bytes, BytesMut};
use wire::{
    BlockError, BlockReader, BlockTooLong, ContentHash, Cursor, DocPath, Event, Malformed,
    Metadata, MetadataError, Op, PathError, Request, RequestDecoder, RequestError, Response,
    ResponseError, Status, Unreadable, Verb, limits,
};

fn decode(bytes: &[u8]) -> Result<Request, RequestError> {
    let mut decoder = RequestDecoder::new();
    decoder.feed(bytes)?;
    decoder.finish()
}

fn with_path_len(len: usize) -> Vec<u8> {
    let mut request = b"FETCH /".to_vec();
    request.resize("FETCH ".len() + len, b'a');
    request
}

// D44
#[test]
fn the_longest_path_passes_and_one_byte_more_is_a_bad_request() {
    assert!(decode(&with_path_len(limits::PATH_LEN_MAX)).is_ok());
    let error = decode(&with_path_len(limits::PATH_LEN_MAX + 1)).unwrap_err();
    assert_eq!(error, Malformed::Path(PathError::TooLong).into());
    assert_eq!(error.status(), Status::BadRequest);
    assert!(error.to_string().contains("4087"));
}

// D44
#[test]
fn a_line_past_its_limit_is_unreadable_before_its_end() {
    let mut decoder = RequestDecoder::new();
    let line = with_path_len(limits::LINE_LEN_MAX + 1 - "FETCH ".len());
    decoder.feed(&line[..limits::LINE_LEN_MAX]).unwrap();
    let error = decoder.feed(b"a").unwrap_err();
    assert_eq!(error, Unreadable::LineTooLong.into());
    assert_eq!(error.status(), Status::ServerError);
    // Whatever comes later is dropped and answered the same.
    assert_eq!(decoder.feed(&[b'a'; 100_000]), Err(error));
    assert_eq!(decoder.finish(), Err(error));
}

fn with_metadata_len(len: usize, end: &str) -> Vec<u8> {
    let mut request = b"FETCH /a\n---\nk: ".to_vec();
    let begin = request.len() - "k: ".len();
    request.resize(begin + len, b'v');
    request.extend_from_slice(end.as_bytes());
    request
}

// D44
#[test]
fn the_longest_metadata_passes_and_one_byte_more_is_unreadable() {
    for end in ["\n---\n", "\n---", "\n---\nbody"] {
        let request = with_metadata_len(limits::METADATA_LEN_MAX, end);
        assert!(decode(&request).is_ok(), "{end:?}");
        let request = with_metadata_len(limits::METADATA_LEN_MAX + 1, end);
        let error = decode(&request).unwrap_err();
        assert_eq!(error, Unreadable::MetadataTooLong.into(), "{end:?}");
        assert!(error.to_string().contains("65536"));
    }
}

// D44
#[test]
fn metadata_without_an_end_is_refused_once_it_passes_the_limit() {
    let mut decoder = RequestDecoder::new();
    let request = with_metadata_len(limits::METADATA_LEN_MAX + 5, "");
    assert_eq!(
        decoder.feed(&request),
        Err(Unreadable::MetadataTooLong.into())
    );
}

// D44
#[test]
fn the_longest_body_passes_and_one_byte_more_is_unreadable() {
    let mut request = b"PUBLISH /a.md\n".to_vec();
    request.resize(request.len() + limits::BODY_LEN_MAX, b'b');
    let decoded = decode(&request).unwrap();
    assert_eq!(decoded.body.len(), limits::BODY_LEN_MAX);
    let mut decoder = RequestDecoder::new();
    decoder.feed(&request).unwrap();
    let error = decoder.feed(b"b").unwrap_err();
    assert_eq!(error, Unreadable::BodyTooLong.into());
    assert!(error.to_string().contains("1048576"));
}

// D44
#[test]
fn a_flood_is_refused_without_being_kept() {
    let mut decoder = RequestDecoder::new();
    decoder.feed(b"PUBLISH /a.md\n").unwrap();
    let flood = vec![b'x'; 4 * limits::BODY_LEN_MAX];
    let peak = allocation_counter::measure(|| {
        assert!(decoder.feed(&flood).is_err());
    });
    // Growing copies the old bytes into the new buffer, so three bodies are alive at most.
    assert!(peak.bytes_max <= 3 * (limits::BODY_LEN_MAX as u64 + 1));
}

// D44: a size error comes before an error of the metadata.
#[test]
fn a_body_that_is_too_long_hides_malformed_metadata() {
    let mut request = b"PUBLISH /a.md\n---\n[]\n---\n".to_vec();
    assert_eq!(
        decode(&request),
        Err(Malformed::Metadata(MetadataError::NotAnEntry).into())
    );
    request.resize(request.len() + limits::BODY_LEN_MAX + 1, b'b');
    assert_eq!(decode(&request), Err(Unreadable::BodyTooLong.into()));
}

#[test]
fn a_client_does_not_encode_what_a_server_refuses() {
    let too_long = vec![b'b'; limits::BODY_LEN_MAX + 1];
    let request = Request::new(Verb::Publish, "/a.md").with_body(too_long);
    assert_eq!(request.encode(), Err(Unreadable::BodyTooLong.into()));
    let request = Request::new(Verb::Fetch, "/a\nFETCH /b");
    assert_eq!(
        request.encode(),
        Err(Malformed::Path(PathError::ControlCharacter).into())
    );
    let request = Request::new(Verb::Publish, "/a.md").with("k", "v".repeat(65_534));
    assert_eq!(request.encode(), Err(Unreadable::MetadataTooLong.into()));
}

#[test]
fn an_answer_past_the_client_limit_is_refused() {
    let mut bytes = vec![b'x'; limits::RESPONSE_LEN_MAX];
    assert!(Response::decode(&Bytes::from(bytes.clone())).is_ok());
    bytes.push(b'x');
    assert_eq!(Response::decode(&bytes.into()), Err(ResponseError::TooLong));
}

fn event(path: &str, agent: Option<String>) -> Event {
    Event {
        cursor: Cursor::new(
            "7f3a9c21d0be:1".parse::<Cursor>().unwrap().epoch,
            wire::Seq::new(1),
        ),
        op: Op::Publish,
        path: DocPath::parse(path).unwrap(),
        version: 1,
        hash: Some(ContentHash::of(b"body")),
        agent,
    }
}

// T32
#[test]
fn an_event_that_does_not_fit_loses_its_agent_first() {
    let mut out = BytesMut::from("before");
    let without = event("/a.md", None);
    let with = event("/a.md", Some("a".repeat(limits::BLOCK_LEN_MAX)));
    with.encode_into(&mut out).unwrap();
    let mut expected = BytesMut::from("before");
    without.encode_into(&mut expected).unwrap();
    assert_eq!(out, expected);
}

// T32
#[test]
fn an_event_whose_path_does_not_fit_is_an_error_that_leaves_no_bytes() {
    // Every emoji is four bytes of path and ten of block.
    let path = format!("/{}", "😀".repeat(1000));
    let mut out = BytesMut::from("before");
    assert_eq!(event(&path, None).encode_into(&mut out), Err(BlockTooLong));
    assert_eq!(out, "before");
    assert!(!Event::fits(&DocPath::parse(&path).unwrap()));
}

// T32
#[test]
fn every_path_of_ordinary_characters_fits() {
    let path = format!("/{}", "é".repeat((limits::PATH_LEN_MAX - 1) / 2));
    assert!(Event::fits(&DocPath::parse(&path).unwrap()));
}

// T32
#[test]
fn a_block_may_have_8192_bytes_and_no_more() {
    let block = |len: usize| {
        let frame = "---\nstatus: ok\nx: \n---\n".len();
        let filler = "x".repeat(len - frame);
        format!("---\nstatus: ok\nx: {filler}\n---\n")
    };
    let longest = block(limits::BLOCK_LEN_MAX);
    let read = |text: &str| {
        BlockReader::new()
            .read(&mut text.as_bytes())
            .map(|it| it.is_some())
    };
    assert_eq!(longest.len(), limits::BLOCK_LEN_MAX);
    assert_eq!(read(&longest), Ok(true));
    assert_eq!(
        read(&block(limits::BLOCK_LEN_MAX + 1)),
        Err(BlockError::TooLong)
    );
}

#[test]
fn metadata_is_bounded_by_itself_too() {
    let text = "#".repeat(limits::METADATA_LEN_MAX + 1);
    assert_eq!(
        Metadata::decode(text.as_bytes()),
        Err(MetadataError::TooLong)
    );
}
