//! The journal on a disk that crashes.

#![allow(clippy::unwrap_used)] // A panic is how a test reports, in what tests share too.

mod commit;
mod crash;
mod replay;
mod support;
