//! The blocks that a watch writes.

use bytes::{Bytes, BytesMut};
use documents::Change;
use wire::{Control, Cursor, Event, Op};

/// A change as a block, or no bytes at all for one that doesn't fit: it is told as a gap.
pub(super) fn event(cursor: &Cursor, change: &Change) -> Bytes {
    let event = Event {
        cursor: cursor.clone(),
        op: match change.op {
            documents::Op::Append => Op::Append,
            documents::Op::Archive => Op::Archive,
            documents::Op::Publish => Op::Publish,
        },
        path: change.path.clone(),
        version: change.version,
        hash: Some(change.hash),
        agent: change.agent.as_deref().map(str::to_owned),
    };
    let mut block = BytesMut::new();
    match event.encode_into(&mut block) {
        Ok(()) => block.freeze(),
        Err(_) => Bytes::new(),
    }
}

/// A word about the watch itself.
pub(super) fn control(control: &Control) -> Bytes {
    let mut block = BytesMut::new();
    control
        .encode_into(&mut block)
        .expect("a status, a cursor and a number are far below the limit of a block");
    block.freeze()
}
