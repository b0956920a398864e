//! `tidings serve`: opens everything in order, runs until a signal, drains.
//!
//! The admin listener comes first, so that a start that takes long can be watched, and leaves
//! last. The tokens are read before the documents: a fault there should not wait for the scan of
//! a large tree. Nothing is admitted before everything is open.

mod access;
mod banner;
mod drain;
mod faces;
mod issuer;
mod memory;
mod progress;
mod reload;
#[cfg(target_os = "linux")]
mod take_over;
mod web;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Context;
use auth::Authority;
use clap::Args;
use documents::FileStore;
use gate::Memory;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use quic::Certificate;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::admin::{self, Parts, Status};
use crate::config::{ConfigError, FileFlags, Flag, Settings};
use crate::log;
use crate::metrics::Sources;
use access::Access;
use faces::Faces;
use issuer::Issuer;
use progress::Meter;
use reload::Reloaded;

/// Arguments of `tidings serve`. A flag that is given twice counts as it was given last.
#[derive(Args, Debug)]
#[command(args_override_self = true)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    files: FileFlags,
    /// Where the Mark face listens, UDP [default: 127.0.0.1:6309].
    #[arg(long, value_name = "ADDR")]
    mark: Option<String>,
    /// Where HTTP, SSE and WebSocket are served, TCP, or `off` [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
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
    /// Ask the server that has the data directory to leave, and begin where it stopped.
    #[arg(long)]
    take_over: bool,
}

impl ServeArgs {
    fn settings(&self) -> Result<Settings, ConfigError> {
        let flags = [
            Flag::new("--mark", "serve.mark", self.mark.as_deref()),
            Flag::new("--http", "serve.http", self.http.as_deref()),
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
    let mut settings = args.settings()?;
    let access = Access::decide(&settings);
    if matches!(access, Ok(Access::Dev)) {
        settings.relax_for_dev();
    }
    if args.print_config {
        io::stdout().write_all(settings.print().as_bytes())?;
        return Ok(());
    }
    let access = access?;
    if args.check {
        eprintln!("The configuration can be used.");
        return Ok(());
    }
    log::start(&settings.log, settings.log_format)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let result = runtime.block_on(serve(&settings, &access, args.take_over));
    // An opening that a signal interrupted is still reading: it leaves nothing half done.
    runtime.shutdown_background();
    result
}

/// Not cancel-safe: it owns the process and runs to its end.
async fn serve(settings: &Settings, access: &Access, take_over: bool) -> anyhow::Result<()> {
    let signals = drain::Signals::listen().context("take signals")?;
    let hangup = signal(SignalKind::hangup()).context("take signals")?;
    let registry = Arc::new(Mutex::new(Registry::default()));
    let status = Arc::new(Status::default());
    let private = settings.private_dir();
    std::fs::create_dir_all(&private)
        .with_context(|| format!("make the directory {}", private.display()))?;
    if take_over {
        tokio::select! {
            free = make_free(settings) => free?,
            () = signals.leave() => return Ok(()),
        }
    }
    let admin = match admin::start(settings.admin, status.clone(), registry.clone()) {
        Ok(address) => address,
        Err(error) => return Err(refuse(error, settings, &status).await),
    };
    let authority = open_authority(access)?;
    let certificate = open_certificate(settings)?;
    let issuer = Issuer::open(&settings.jwt)?;
    let began = Instant::now();
    let store = tokio::select! {
        store = open_store(settings, &status) => store?,
        () = signals.leave() => return Ok(()),
    };
    let sources = Sources {
        authority: authority.clone(),
        certificate: certificate.clone(),
        channels: web::hub(settings)?,
        memory: Memory::new(memory::budget_bytes(settings.memory_bytes)),
        opening: began.elapsed(),
        store: store.clone(),
    };
    let (authority_reloads, certificate_reloads) = sources.register(&mut admin::lock(&registry));
    let web_tokens = issuer.as_ref().map(|issuer| issuer.tokens.clone());
    let faces = Faces::bind(settings, &sources, web_tokens, &mut admin::lock(&registry))?;
    status.serve(Parts {
        store: store.clone(),
        authority: authority.clone(),
        memory: sources.memory.clone(),
        documents_required: settings.documents_required,
        web: faces.web_server().cloned(),
    });
    banner::warn(&authority);
    banner::print(settings, access, faces.addresses(admin));
    let reloaded = Reloaded {
        authority,
        authority_reloads,
        certificate,
        certificate_reloads,
        status: status.clone(),
    };
    let mut beside = JoinSet::new();
    beside.spawn(reload::run(reloaded, hangup));
    beside.spawn(memory::sample(sources.memory));
    if let Some(issuer) = issuer {
        beside.spawn(issuer.follow(status.clone()));
    }
    drain::serve_until(&signals, faces, store, &status).await
}

#[cfg(target_os = "linux")]
async fn make_free(settings: &Settings) -> anyhow::Result<()> {
    Ok(take_over::take_over(settings).await?)
}

#[cfg(not(target_os = "linux"))]
async fn make_free(_settings: &Settings) -> anyhow::Result<()> {
    anyhow::bail!("--take-over needs Linux; stop the server in place by SIGTERM instead")
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
