//! The listener of the page, alone or beside a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;

use super::access::Access;
use super::dashboards::Folder;
use super::query::check;
use super::routes::Page;
use crate::error::{Result, one_line};
use crate::host::auth::{Auth, Credentials};
use crate::host::failure::Failure;
use crate::host::http::{Bound, HttpServer};
use crate::host::spec::{HostSpec, check_exposure};
use crate::host::state::Host;
use crate::serving::TlsSpec;

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
    /// A page without TLS and dashboards, which may listen on a loopback address only.
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen, tls: None, insecure: false, dashboards: None }
    }

    /// Checks that the page would not expose anything, and the dashboards.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the option to use, or the file and line that is wrong.
    pub fn check(&self, auth: &Auth) -> Result<()> {
        check_exposure(self.listen, auth, self.tls.is_some(), self.insecure)?;
        Folder::new(self.dashboards.clone()).check()
    }
}

/// Serves the page alone, without requests to the service.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) for an invalid certificate, dashboard or combination of settings, and
/// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) for an address in use.
pub async fn serve(page: PageSpec, host: HostSpec) -> Result<HttpServer> {
    page.check(&host.auth)?;
    let operations = host.operations;
    let host = Arc::new(Host::start(host)?);
    over(page, host).await?.alone(operations).await
}

/// Serves the page beside another front, with its users, sessions, budgets and limits. Shut it down before that front.
///
/// # Errors
/// Those of [`serve`].
pub async fn serve_beside(page: PageSpec, host: &Arc<Host>) -> Result<HttpServer> {
    page.check(host.sessions.auth())?;
    over(page, Arc::clone(host)).await
}

async fn over(page: PageSpec, host: Arc<Host>) -> Result<HttpServer> {
    let PageSpec { listen, tls, dashboards, .. } = page;
    let bound = Bound::new(listen, tls.as_ref(), Arc::clone(&host)).await?;
    let access = Access::new(Arc::clone(&host), bound.address(), tls.is_some());
    let url = access.url(bound.address());
    let folder = Folder::new(dashboards);
    warn_of_mistakes(&folder, &host).await;
    let page = Page::new(host, access, folder);
    Ok(bound.serve(url, Arc::new(move |request, caller| page.clone().answer(request, caller).boxed())))
}

/// Logs each file that is no dashboard, each query that cannot be planned, and the reason if queries cannot be checked. With users,
/// whose tables may differ, the page shows such queries when they are opened.
async fn warn_of_mistakes(folder: &Folder, host: &Arc<Host>) {
    let all: Vec<_> = folder.all().collect();
    let session = match host.sessions.auth() {
        _ if all.is_empty() => return,
        Auth::None => {
            let found = host.sessions.find_shared(Credentials::None, None).await;
            let told =
                |failure: &Failure| tracing::warn!("queries of dashboards are not checked: {}", failure.message());
            found.inspect_err(told).ok()
        }
        Auth::Users(_) | Auth::PassThrough => None,
    };
    for (path, read) in all {
        let dashboard = match read {
            Ok(dashboard) => dashboard,
            Err(error) => {
                tracing::warn!("{error}");
                continue;
            }
        };
        let Some(session) = &session else { continue };
        for (title, sql) in dashboard.queries() {
            if let Err(mistake) = check(host, session, sql).await {
                tracing::warn!("{}", one_line(&format!("{}: {title}: {mistake}", path.display())));
            }
        }
    }
}
