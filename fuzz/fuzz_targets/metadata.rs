//! Metadata: what reads is written and read again.

#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use wire::{Metadata, limits};

fuzz_target!(|bytes: &[u8]| {
    let Ok(metadata) = Metadata::decode(bytes) else {
        return;
    };
    let mut out = BytesMut::new();
    metadata.encode_into(&mut out);
    // A leading line break is lost in a literal block, as the original loses it.
    let survives = metadata.iter().all(|(_, value)| !value.starts_with('\n'));
    if survives && out.len() <= limits::METADATA_LEN_MAX {
        assert_eq!(Metadata::decode(&out), Ok(metadata));
    }
});
