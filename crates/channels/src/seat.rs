//! What a socket and its watch of one topic share: whether the watch may tell anything.

use std::sync::atomic::{AtomicBool, Ordering};

/// A taken seat.
///
/// The socket changes it, the watch reads it before everything that it tells.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    has_ended: AtomicBool,
    is_suspended: AtomicBool,
    /// There was a suspension whose gap was not told. It may have been lifted already.
    owes_gap: AtomicBool,
}

impl Seat {
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// False if it was suspended already.
    pub(crate) fn suspend(&self) -> bool {
        let is_new = !self.is_suspended.swap(true, Ordering::AcqRel);
        self.owes_gap.store(true, Ordering::Release);
        is_new
    }

    /// False if it was not suspended.
    pub(crate) fn resume(&self) -> bool {
        self.is_suspended.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.is_suspended.load(Ordering::Acquire)
    }

    /// True once after each suspension.
    pub(crate) fn take_gap(&self) -> bool {
        self.owes_gap.swap(false, Ordering::AcqRel)
    }
}

/// What a later verdict did to a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The seat is gone; its subscriber is told why.
    Ended,
    /// Nothing changed.
    Kept,
    /// The seat delivers again; its watch tells one gap first.
    Resumed,
    /// The seat or the caller is no longer the one that was asked about.
    Stale,
    /// The seat is kept and delivers nothing until a check passes.
    Suspended,
}
