//! The Rust client of Tidings: documents over the Mark protocol, and watches that reconnect.
//!
//! A [`Client`] is a handle on one server; it dials when it is first used and shares its connection
//! with its clones. Reads are tried again by themselves; a write whose answer was lost is looked
//! for, and comes back as done, as a conflict, or as [`Error::UnknownOutcome`], never as the wrong
//! one of the three. [`Client::watch`] follows changes through cuts and restarts.
//!
//! ```no_run
//! # async fn follow() -> Result<(), Box<dyn std::error::Error>> {
//! use client::{Client, MarkUrl, Notice, Which};
//!
//! let url: MarkUrl = "mark://127.0.0.1:6309/notes/".parse()?;
//! let client = Client::builder(url.server).build();
//! let mut watch = client.watch(&url.path.into(), None).await?;
//! loop {
//!     match watch.next().await? {
//!         Notice::Change(change) => {
//!             let document = client.fetch(&change.path, Which::Current).await?;
//!             println!("{} has {} bytes", change.path, document.body.len());
//!         }
//!         Notice::Gap(_) => println!("read everything again"),
//!         Notice::Position(_) => {}
//!     }
//! }
//! # }
//! ```

mod address;
mod backoff;
mod cache;
mod client;
mod dial;
mod document;
mod error;
mod exchange;
mod known;
mod listing;
mod network;
mod pool;
mod trust;
mod watch;
mod write;

pub use address::{DEFAULT_PORT, MarkUrl, ServerAddress, UrlError};
pub use cache::Cache;
pub use client::{Builder, Client};
pub use dial::DialError;
pub use document::{Conditions, Document, Fetched, Which};
pub use error::{Error, Refusal, RequestError};
pub use exchange::{AnswerError, ExchangeError};
pub use known::{KnownServers, Proof};
pub use listing::{Entry, History, HistoryEntry, ListQuery, LookupQuery, Match, Page};
pub use pool::Pool;
pub use trust::{Trust, TrustError};
pub use watch::{Change, Gap, Notice, QUEUE_LEN, Watch, WatchError};
pub use write::{Draft, Written};
