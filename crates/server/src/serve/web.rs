//! The web faces within the server: what they draw on, what runs beside them, how they leave.
//!
//! The channels live as long as their listener: they are swept while it serves, and while it
//! drains their members leave in batches, so that whoever is still here hears of each (C53).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use channels::limits::SWEEP_INTERVAL;
use channels::{Hub, Now};
use prometheus_client::registry::Registry;
use storage::Disk;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use web::{Config, StreamConfig, WebServer, WebTokens};
use wire::Epoch;

use crate::config::Settings;
use crate::metrics::Sources;

/// Members that leave at once in a drain: at four batches a second a large site has left within
/// the window of its goodbyes, and no announcement holds up the events.
const LEAVES_MAX: usize = 4_096;

/// A listener and its channels.
pub(super) struct WebFaces {
    server: Arc<WebServer>,
    hub: Hub,
    /// What the channels count their time from.
    began: Instant,
}

/// The channels that are declared, without a past: nothing of them is kept over a restart.
pub(super) fn hub(settings: &Settings) -> anyhow::Result<Hub> {
    let mut random = [0; 6];
    getrandom::fill(&mut random).context("take random bytes")?;
    let epoch = Epoch::from_random(random);
    let declarations = settings.channels.declarations()?;
    Ok(Hub::new(declarations, epoch, settings.channel_limits))
}

impl WebFaces {
    /// Listens on `addr`. Blocks on the disk.
    pub(super) fn bind(
        addr: SocketAddr,
        settings: &Settings,
        sources: &Sources,
        web_tokens: Option<WebTokens>,
        registry: &mut Registry,
    ) -> anyhow::Result<Self> {
        let storage = Disk::open(&settings.data)
            .with_context(|| format!("open {}", settings.data.display()))?;
        let config = Config {
            addr,
            certificate: settings.tls.then(|| sources.certificate.clone()),
            limits: settings.web_limits.clone(),
            memory: sources.memory.clone(),
            origins: settings.origins()?,
            storage: Arc::new(storage),
            web_tokens,
            streams: StreamConfig {
                build: settings.build.clone(),
                channels: Some(sources.channels.clone()),
                query_tokens: settings.query_tokens,
            },
        };
        let (store, authority) = (sources.store.clone(), sources.authority.clone());
        let server = WebServer::bind(config, store, authority, registry)
            .with_context(|| format!("serve HTTP on {addr} (`--http` names another, or `off`)"))?;
        Ok(Self {
            server: Arc::new(server),
            hub: sources.channels.clone(),
            began: Instant::now(),
        })
    }

    /// The listener.
    pub(super) const fn server(&self) -> &Arc<WebServer> {
        &self.server
    }

    /// Serves until `leave` is cancelled, then drains and returns. Not cancel-safe.
    pub(super) async fn run(&self, leave: &CancellationToken) {
        let serving = self.server.run(leave.clone());
        tokio::select! {
            () = serving => {}
            () = self.look_after_channels(leave) => {}
        }
        self.hub.close();
    }

    /// Keeps leases and announcements going for ever.
    async fn look_after_channels(&self, leave: &CancellationToken) {
        if self.hub.declarations().iter().next().is_none() {
            return std::future::pending().await;
        }
        let mut ticks = interval(SWEEP_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if leave.is_cancelled() {
                self.hub.drain();
                self.hub.announce_leaves(LEAVES_MAX, self.now());
            } else {
                self.hub.sweep(self.now());
            }
        }
    }

    fn now(&self) -> Now {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix_ms = unix.map_or(0, |since: Duration| since.as_millis());
        Now {
            elapsed: self.began.elapsed(),
            unix_ms: u64::try_from(unix_ms).unwrap_or(u64::MAX),
        }
    }
}
