//! What every face needs at its door, whatever it speaks.
//!
//! [`Admission`] decides who gets in, [`Buckets`] how often somebody may ask, both by [`Network`];
//! [`Memory`] says whether there is room for more; a [`Certificate`] is what they are shown; a
//! [`Window`] spreads the goodbyes of a drain, and a [`Schedule`] says what is due. Nothing here
//! owns a socket, spawns or sleeps: faces pass in the time and do what they are told.

mod admission;
mod certificate;
mod drain;
mod memory;
mod network;
mod rate;
mod schedule;

pub use admission::{Admission, Bounds, Over, Seat, Verdict};
pub use certificate::{Certificate, CertificateError};
pub use drain::{Phase, Window, spread};
pub use memory::{Crossing, Memory};
pub use network::Network;
pub use rate::{Bucket, Buckets, Rate};
pub use schedule::{Alarm, Schedule};
