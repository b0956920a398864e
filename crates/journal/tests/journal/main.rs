//! The journal on a disk that crashes.

mod commit;
mod crash;
mod replay;
mod support;
