//! `tidings serve`: opens everything in order, runs until a signal, drains.
//!
//! The admin listener comes first, so that a start that takes long can be watched, and leaves
//! last. The tokens are read before the documents: a fault there should not wait for the scan of
//! a large tree. Nothing is admitted before everything is open.

mod access;
mod banner;
mod drain;
mod progress;
mod reload;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Context;
use auth::Authority;
use clap::Args;
use documents::FileStore;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use quic::{Certificate, MarkServer};
use tokio::signal::unix::{SignalKind, signal};

use crate::admin::{self, Status};
use crate::config::{ConfigError, FileFlags, Flag, Settings};
use crate::log;
use access::Access;
use progress::Meter;

/// Arguments of `tidings serve`.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    files: FileFlags,
    /// Where the Mark face listens, UDP [default: 127.0.0.1:6309].
    #[arg(long, value_name = "ADDR")]
    mark: Option<String>,
    /// Where health and metrics answer, TCP, loopback only [default: 127.0.0.1:9309].
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
    /// Everyone on this machine may do everything [default without configuration and tokens].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    dev: Option<String>,
    /// What is logged, such as `info` or `warn,quic=debug` [default: info].
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    /// How log lines are written: text or json [default: text].
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Print the configuration in force and end.
    #[arg(long)]
    print_config: bool,
    /// Check the configuration and end, without listening.
    #[arg(long)]
    check: bool,
}

impl ServeArgs {
    fn settings(&self) -> Result<Settings, ConfigError> {
        let flags = [
            Flag::new("--mark", "serve.mark", self.mark.as_deref()),
            Flag::new("--admin", "serve.admin", self.admin.as_deref()),
            Flag::new("--dev", "serve.dev", self.dev.as_deref()),
            Flag::new("--log", "serve.log", self.log.as_deref()),
            Flag::new(
                "--log-format",
                "serve.log_format",
                self.log_format.as_deref(),
            ),
        ];
        Settings::load(&self.files, &flags, std::env::vars_os())
    }
}

/// Runs the server until it is told to leave.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let settings = args.settings()?;
    if args.print_config {
        io::stdout().write_all(settings.print().as_bytes())?;
        return Ok(());
    }
    let access = Access::decide(&settings)?;
    if args.check {
        eprintln!("The configuration can be used.");
        return Ok(());
    }
    log::start(&settings.log, settings.log_format)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let result = runtime.block_on(serve(&settings, &access));
    // An opening that a signal interrupted is still reading: it leaves nothing half done.
    runtime.shutdown_background();
    result
}

/// Not cancel-safe: it owns the process and runs to its end.
async fn serve(settings: &Settings, access: &Access) -> anyhow::Result<()> {
    let signals = drain::Signals::listen().context("take signals")?;
    let hangup = signal(SignalKind::hangup()).context("take signals")?;
    let registry = Arc::new(Mutex::new(Registry::default()));
    let status = Arc::new(Status::default());
    let private = settings.private_dir();
    std::fs::create_dir_all(&private)
        .with_context(|| format!("make the directory {}", private.display()))?;
    let admin = match admin::start(settings.admin, status.clone(), registry.clone()) {
        Ok(address) => address,
        Err(error) => return Err(refuse(error, settings, &status).await),
    };
    let authority = open_authority(access)?;
    let certificate = open_certificate(settings)?;
    let store = tokio::select! {
        store = open_store(settings, &status) => store?,
        () = signals.leave() => return Ok(()),
    };
    let memory = gate::Memory::default();
    let mark = quic::Config {
        addr: settings.mark,
        certificate: certificate.clone(),
        limits: settings.limits.clone(),
        memory: memory.clone(),
    };
    let server = MarkServer::bind(
        mark,
        store.clone(),
        authority.clone(),
        &mut admin::lock(&registry),
    )
    .with_context(|| format!("listen on {} (UDP)", settings.mark))?;
    status.serve(store.clone(), authority.clone());
    banner::warn(&authority);
    banner::print(settings, access, server.local_addr(), admin);
    let reloads = tokio::spawn(reload::run(authority, certificate, status.clone(), hangup));
    let result = drain::serve_until(&signals, server, store, &status).await;
    reloads.abort();
    result
}

/// The better of two reasons why the admin listener can't have its address: most likely a server
/// runs on the same directory, and its process says more than a port.
async fn refuse(error: io::Error, settings: &Settings, status: &Arc<Status>) -> anyhow::Error {
    let listening = format!("listen on {} (TCP, admin)", settings.admin);
    match open_store(settings, status).await {
        Ok(_) => anyhow::Error::new(error).context(listening),
        Err(in_use) => in_use,
    }
}

fn open_authority(access: &Access) -> anyhow::Result<Authority> {
    match access {
        Access::Dev => Ok(Authority::dev()),
        Access::Tokens(files) => Ok(Authority::open(files.clone())?),
    }
}

fn open_certificate(settings: &Settings) -> anyhow::Result<Certificate> {
    if let (Some(chain), Some(key)) = (&settings.certificate, &settings.certificate_key) {
        return Ok(Certificate::load(chain, key)?);
    }
    let private = settings.private_dir();
    let (chain, key) = (private.join("cert.pem"), private.join("key.pem"));
    Ok(Certificate::load_or_create(&chain, &key, Timestamp::now())?)
}

/// Opens the documents beside the runtime. Cancelling it leaves the opening running.
async fn open_store(settings: &Settings, status: &Arc<Status>) -> anyhow::Result<FileStore> {
    let (root, status) = (settings.data.clone(), status.clone());
    let config = documents::Config {
        ring_len: settings.ring_len,
        ..documents::Config::default()
    };
    let opening = tokio::task::spawn_blocking(move || {
        let mut meter = Meter::new(Instant::now());
        FileStore::open(&root, config, &mut |progress| {
            status.opening(progress);
            meter.update(progress, Instant::now());
        })
    });
    opening
        .await
        .context("open the documents")?
        .with_context(|| format!("open {}", settings.data.display()))
}
