//! All faces of one server: they serve side by side, and leave together.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use anyhow::Context;
use prometheus_client::registry::Registry;
use quic::MarkServer;
use tokio_util::sync::CancellationToken;
use web::{WebServer, WebTokens};

use super::banner::Addresses;
use super::web::WebFaces;
use crate::config::Settings;
use crate::metrics::Sources;

/// What listens.
pub(super) struct Faces {
    mark: MarkServer,
    /// HTTP, unless it is off.
    web: Option<WebFaces>,
}

impl Faces {
    /// Listens wherever the settings say. Blocks on the disk.
    pub(super) fn bind(
        settings: &Settings,
        sources: &Sources,
        web_tokens: Option<WebTokens>,
        registry: &mut Registry,
    ) -> anyhow::Result<Self> {
        let mark = quic::Config {
            addr: settings.mark,
            certificate: sources.certificate.clone(),
            limits: settings.limits.clone(),
            memory: sources.memory.clone(),
        };
        let (store, authority) = (sources.store.clone(), sources.authority.clone());
        let mark = MarkServer::bind(mark, store, authority, registry)
            .with_context(|| format!("listen on {} (UDP)", settings.mark))?;
        let web = settings
            .http
            .map(|addr| WebFaces::bind(addr, settings, sources, web_tokens, registry));
        Ok(Self {
            mark,
            web: web.transpose()?,
        })
    }

    /// Where they listen, and the admin listener beside them.
    pub(super) fn addresses(&self, admin: SocketAddr) -> Addresses {
        Addresses {
            mark: self.mark.local_addr(),
            web: self.web_server().map(|server| server.local_addr()),
            admin,
        }
    }

    /// The listener of the web faces.
    pub(super) fn web_server(&self) -> Option<&Arc<WebServer>> {
        self.web.as_ref().map(WebFaces::server)
    }

    /// Serves until `leave` is cancelled and all have drained. If one ends by itself it returns at
    /// once, with that one's name. Not cancel-safe.
    pub(super) async fn run(&self, leave: CancellationToken) -> &'static str {
        let mark = self.mark.run(leave.clone());
        let web = self.run_web(&leave);
        tokio::pin!(mark, web);
        let (first, rest): (_, Pin<&mut dyn Future<Output = ()>>) = tokio::select! {
            () = &mut mark => ("Mark", web.as_mut()),
            () = &mut web => ("HTTP", mark.as_mut()),
        };
        if leave.is_cancelled() {
            rest.await;
        }
        first
    }

    async fn run_web(&self, leave: &CancellationToken) {
        match &self.web {
            Some(web) => web.run(leave).await,
            None => leave.cancelled().await,
        }
    }
}
