//! The listener of the page, alone or beside a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use tokio_util::task::AbortOnDropHandle;

use super::access::Access;
use super::dashboards::Folder;
use super::routes::Page;
use crate::config::SessionSettings;
use crate::error::{Error, ErrorKind, Result};
use crate::flight::FlightServer;
use crate::host::auth::Auth;
use crate::host::http::{Bound, HttpServer, sweeping};
use crate::host::reload::Reload;
use crate::host::sessions::Upstream;
use crate::host::settings::Limits;
use crate::host::state::{Host, HostSpec, check_exposure};
use crate::serving::{TlsSpec, operate};

/// Configuration of the page.
#[derive(Debug)]
pub struct PageSpec {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Server certificate; `None` disables TLS.
    pub tls: Option<TlsSpec>,
    /// Set to allow credentials in clear text on a non-loopback address.
    pub insecure: bool,
    /// Folder of dashboards.
    pub dashboards: Option<PathBuf>,
}

impl PageSpec {
    /// Checks that the page would not expose anything, and the dashboards.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] with the option to use, or the file and line that is wrong.
    pub fn check(&self, auth: &Auth) -> Result<()> {
        check_exposure(self.listen, auth, self.tls.is_some(), self.insecure)?;
        Folder::new(self.dashboards.clone()).check()
    }
}

/// Configuration of a [`UiServer`] of its own.
#[derive(Debug)]
pub struct UiSpec {
    /// The page.
    pub page: PageSpec,
    /// Authentication mode.
    pub auth: Auth,
    /// Address of `/healthz` and `/metrics`; `None` disables them.
    pub operations: Option<SocketAddr>,
    /// Resource limits.
    pub limits: Limits,
    /// Settings of queries, unless the page sets others for one.
    pub settings: SessionSettings,
    /// Connections behind the tables.
    pub upstream: Upstream,
}

/// A running server of the page. [`UiServer::shut_down`] stops it gracefully; dropping it stops it at once.
#[derive(Debug)]
pub struct UiServer {
    url: String,
    operations: Option<SocketAddr>,
    host: Arc<Host>,
    server: HttpServer,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

impl UiServer {
    /// Starts a server without requests to the service.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an unusable address, an invalid certificate or dashboard, or an invalid combination of settings.
    pub async fn start(spec: UiSpec) -> Result<Self> {
        let UiSpec { page, auth, operations, limits, settings, upstream } = spec;
        page.check(&auth)?;
        let host = Arc::new(Host::start(HostSpec {
            auth,
            upstream,
            settings,
            limits,
            #[cfg(feature = "distributed")]
            workers: None,
        })?);
        let mut server = Self::over(page, Arc::clone(&host)).await?;
        if let Some(asked) = operations {
            let started = operate(asked, Arc::clone(&host)).await;
            let bad = |error| Error::new(ErrorKind::Config, format!("cannot listen on {asked}: {error}"));
            let (address, task) = started.map_err(bad)?;
            server.operations = Some(address);
            server._tasks.push(task);
        }
        server._tasks.push(sweeping(&host));
        Ok(server)
    }

    /// Starts to serve the page beside a server, with its users, sessions, budgets and limits. Shut it down before that server.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub async fn beside(page: PageSpec, server: &FlightServer) -> Result<Self> {
        let host = Arc::clone(server.host());
        page.check(host.sessions.auth())?;
        Self::over(page, host).await
    }

    async fn over(page: PageSpec, host: Arc<Host>) -> Result<Self> {
        let PageSpec { listen, tls, dashboards, .. } = page;
        let bound = Bound::new(listen, tls.as_ref(), Arc::clone(&host)).await?;
        let access = Access::new(Arc::clone(&host), bound.address(), tls.is_some());
        let url = access.url(bound.address());
        let page = Page::new(Arc::clone(&host), access, Folder::new(dashboards));
        let server = bound.serve(Arc::new(move |request, caller| page.clone().answer(request, caller).boxed()));
        Ok(Self { url, operations: None, host, server, _tasks: Vec::new() })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the URL of the page. Without users it contains the token, without which nothing is answered.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address of `/healthz` and `/metrics`.
    pub fn operations(&self) -> Option<SocketAddr> {
        self.operations
    }

    /// Waits until the server has to be restarted, although it still answers: so many threads do not respond that no more are
    /// started. Returns the reason.
    pub async fn worn_out(&self) -> Error {
        self.host.worn_out().await
    }

    /// Handle that reads users, API keys and certificates again, without closing the server.
    pub fn reload(&self) -> Reload {
        self.server.reload()
    }

    /// Shuts down: stops accepting connections and lets running queries finish for up to [`Limits::drain_seconds`].
    pub async fn shut_down(self) {
        self.server.shut_down().await;
    }
}
