//! Answers: what reads is written and read again.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use wire::{Response, Status};

fuzz_target!(|bytes: &[u8]| {
    let Ok(response) = Response::decode(&Bytes::copy_from_slice(bytes)) else {
        return;
    };
    let _ = response.message();
    // A leading line break is lost in a literal block, as the original loses it.
    let survives = |(_, value): (&str, &str)| !value.starts_with('\n');
    if response.status != Status::Unknown && response.metadata.iter().all(survives) {
        assert_eq!(Response::decode(&response.encode()), Ok(response));
    }
});
