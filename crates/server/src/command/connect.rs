//! Which server a command speaks to, as whom, and how it is believed.

use std::path::PathBuf;

use clap::Args;
use client::{Client, KnownServers, MarkUrl, Pool, Trust};

use super::failure::Failure;

/// The flags of every client command.
#[derive(Args, Debug)]
pub(crate) struct Connection {
    /// The server.
    #[arg(
        long,
        env = "TIDINGS_URL",
        value_name = "URL",
        default_value = "mark://127.0.0.1:6309"
    )]
    url: String,
    /// The token that says what may be done.
    #[arg(
        long,
        env = "TIDINGS_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    token: Option<String>,
    /// Print JSON, one object a line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Accept any certificate. Without this an unknown one is pinned at first use.
    #[arg(long)]
    insecure: bool,
}

impl Connection {
    /// The client that the flags describe. Nothing is dialled yet.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let url: MarkUrl = self
            .url
            .parse()
            .map_err(|error| Failure::usage(format!("--url {}: {error}", self.url)))?;
        let pool = Pool::telling(|server, shown| {
            eprintln!("tidings: {server} is not known yet; its certificate {shown} is trusted now");
        });
        let builder = Client::builder(url.server).trust(self.trust()).pool(&pool);
        Ok(match self.token.as_deref() {
            Some(token) if !token.is_empty() => builder.token(token).build(),
            _ => builder.build(),
        })
    }

    /// Without a place to keep pins in only the system's roots are left.
    fn trust(&self) -> Trust {
        match home() {
            _ if self.insecure => Trust::Anyone,
            Some(home) => Trust::FirstUse(KnownServers::new(home.join("known_servers"))),
            None => Trust::Roots,
        }
    }
}

/// Where the client keeps what it learns: `TIDINGS_HOME`, or `tidings` among the configurations.
fn home() -> Option<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    variable("TIDINGS_HOME")
        .or_else(|| Some(variable("XDG_CONFIG_HOME")?.join("tidings")))
        .or_else(|| Some(variable("HOME")?.join(".config/tidings")))
}
