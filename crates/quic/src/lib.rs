//! The Mark face: documents and their watches over QUIC.
//!
//! [`MarkServer`] binds a UDP socket and serves the verbs of the Mark protocol over a
//! [`documents::FileStore`], under the rights of an [`auth::Authority`]. From the outside in:
//! `endpoint` makes the socket, the gate decides who gets a connection, `connection` accepts
//! its streams, `request` reads and answers one, `handler` is the verbs, and `watch` is the one
//! verb that stays. [`Limits`] names every bound.

mod connection;
mod endpoint;
mod face;
mod handler;
mod limits;
mod metrics;
mod reply;
mod request;
mod server;
mod share;
mod watch;

pub use endpoint::{ALPN, EndpointError};
pub use gate::{Certificate, CertificateError};
pub use limits::{Limits, LimitsError};
pub use server::{BindError, Config, MarkServer};
