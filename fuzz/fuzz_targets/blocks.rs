//! The stream of a watch, in two pieces: what reads as a block is written and read again.

#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use wire::{Block, BlockReader, BlockView};

fuzz_target!(|input: (&[u8], &[u8])| {
    let mut reader = BlockReader::new();
    for mut piece in [input.0, input.1] {
        while let Ok(Some(view)) = reader.read(&mut piece) {
            if let Some(block) = owned(view) {
                check(&block);
            }
        }
    }
});

fn owned(view: BlockView<'_>) -> Option<Block> {
    match view {
        BlockView::Control(control) => Some(control.to_control().into()),
        BlockView::Event(event) => event.to_event().map(Block::from),
    }
}

fn check(block: &Block) {
    let mut out = BytesMut::new();
    // Another spelling of the same block may be longer than the one that was read.
    if block.encode_into(&mut out).is_err() {
        return;
    }
    let mut reader = BlockReader::new();
    let again = reader.read(&mut &out[..]).expect("what was written reads");
    let again = owned(again.expect("it is whole")).expect("its op is known");
    if let (Block::Event(read), Block::Event(written)) = (&again, block)
        && read.agent.is_none()
    {
        // An agent is dropped where the block would not fit with it.
        assert_eq!(read.cursor, written.cursor);
        return;
    }
    // A status without a word is written as an empty one.
    assert_eq!(&again, block);
}
