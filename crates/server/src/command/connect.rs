//! Which server a command speaks to, as whom, and how it is believed.

use std::fmt::Display;
use std::path::PathBuf;

use clap::Args;
use client::{Client, KnownServers, MarkUrl, Pool, Trust};

use super::failure::Failure;
use super::web::WebServer;

/// Where a server listens unless it is told otherwise.
const MARK_URL: &str = "mark://127.0.0.1:6309";
const HTTP_URL: &str = "http://127.0.0.1:8080";

/// The flags of every client command.
#[derive(Args, Debug)]
pub(crate) struct Connection {
    /// The server [default: mark://127.0.0.1:6309, for channels http://127.0.0.1:8080].
    #[arg(long, env = "TIDINGS_URL", value_name = "URL")]
    url: Option<String>,
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
        let text = self.url.as_deref().unwrap_or(MARK_URL);
        if is_web(text) {
            let told = format!("--url {text}: this command speaks Mark and not HTTP");
            return Err(Failure::usage(told).fix(format!("give a URL such as {MARK_URL}")));
        }
        let url: MarkUrl = text
            .parse()
            .map_err(|error| Failure::usage(format!("--url {text}: {error}")))?;
        let pool = Pool::telling(|server, shown| {
            eprintln!("tidings: {server} is not known yet; its certificate {shown} is trusted now");
        });
        let builder = Client::builder(url.server).trust(self.trust()).pool(&pool);
        Ok(match self.token.as_deref() {
            Some(token) if !token.is_empty() => builder.token(token).build(),
            _ => builder.build(),
        })
    }

    /// True if HTTP is meant: by the URL, or, where none is given, by what is asked for.
    pub(super) fn is_web(&self, by_default: bool) -> bool {
        self.url.as_deref().map_or(by_default, is_web)
    }

    /// The HTTP API that the flags describe, for `command`, which speaks nothing else.
    pub(super) fn web(&self, command: &str) -> Result<WebServer, Failure> {
        let text = self.url.as_deref().unwrap_or(HTTP_URL);
        let refused = |why: &dyn Display| {
            let told = format!("--url {text}: {command} speaks HTTP: {why}");
            Failure::usage(told).fix(format!("give a URL such as {HTTP_URL}"))
        };
        Ok(WebServer {
            url: text.parse().map_err(|error| refused(&error))?,
            token: self.token.clone().filter(|token| !token.is_empty()),
            trust: self.trust(),
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

fn is_web(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}
