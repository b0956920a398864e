//! Requests: in one piece and in two they are the same, and what reads is written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{Request, RequestDecoder, RequestError};

fuzz_target!(|input: (&[u8], &[u8])| {
    let whole = [input.0, input.1].concat();
    let request = decode(&[&whole]);
    assert_eq!(decode(&[input.0, input.1]), request);
    let Ok(request) = request else {
        return;
    };
    // A leading line break is lost in a literal block, as the original loses it.
    let survives = |(_, value): (&str, &str)| !value.starts_with('\n');
    if request.metadata.iter().all(survives)
        && let Ok(bytes) = request.encode()
    {
        assert_eq!(decode(&[&bytes]), Ok(request));
    }
});

fn decode(pieces: &[&[u8]]) -> Result<Request, RequestError> {
    let mut decoder = RequestDecoder::new();
    for piece in pieces {
        decoder.feed(piece)?;
    }
    decoder.finish()
}
