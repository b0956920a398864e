//! The web faces: the HTTP API, SSE, NDJSON and WebSocket on one TCP listener.
//!
//! [`WebServer`] binds a socket and serves HTTP/1 and HTTP/2 over a [`documents::FileStore`],
//! under the rights of an [`auth::Authority`]. From the outside in: `server` accepts and leaves,
//! `connection` speaks HTTP, `origin` refuses foreign pages, `router` finds the route in the one
//! table of `routes`, and its handler answers. A stream that is held is taken out of HTTP
//! altogether (`held`), since then its only cost is its socket. [`Limits`] names every bound.

mod answer;
mod ask;
mod call;
mod channel;
mod connection;
mod documents;
mod face;
mod fanout;
mod fault;
mod grammar;
mod held;
mod idempotency;
mod limits;
mod metrics;
mod openapi;
mod origin;
mod pipe;
mod query;
mod route;
mod router;
mod routes;
mod server;
mod socket;
mod status;
mod stream;
mod upload;
mod who;
mod whoami;

pub use idempotency::KeysError;
pub use limits::{Limits, LimitsError};
pub use origin::{Origins, OriginsError};
pub use server::{BindError, Config, WebServer};
pub use stream::{StreamConfig, StreamLimits};
pub use who::WebTokens;
