//! Configuration that the fronts of a server share, and its checks.

use std::net::SocketAddr;
#[cfg(feature = "distributed")]
use std::sync::Arc;

use datafusion::prelude::SessionContext;

use super::auth::Auth;
use super::own_tables::OwnTables;
use super::sessions::Upstream;
use super::settings::Limits;
use crate::config::SessionSettings;
#[cfg(feature = "distributed")]
use crate::distributed::Workers;
use crate::error::{Error, ErrorKind, Phrase, Result, Tool};

/// Configuration that the fronts of a server share.
#[derive(Debug)]
pub struct HostSpec {
    /// Authentication mode.
    pub auth: Auth,
    /// Address of `/healthz` and `/metrics`; `None` disables them.
    pub operations: Option<SocketAddr>,
    /// Resource limits.
    pub limits: Limits,
    /// Initial settings of sessions. Clients may change them.
    pub settings: SessionSettings,
    /// Connections behind the tables.
    pub upstream: Upstream,
    /// Tables and functions beside those of the connections; by default none.
    pub tables: OwnTables,
    /// Workers that queries of stores are spread over; `None`: the server runs all queries itself.
    #[cfg(feature = "distributed")]
    pub workers: Option<Arc<Workers>>,
}

impl HostSpec {
    /// The default limits and settings, without workers, `/healthz` and `/metrics`.
    pub fn new(auth: Auth, upstream: Upstream) -> Self {
        Self {
            auth,
            operations: None,
            limits: Limits::default(),
            settings: SessionSettings::default(),
            upstream,
            tables: OwnTables::default(),
            #[cfg(feature = "distributed")]
            workers: None,
        }
    }

    /// Adds tables, views and functions of your own to each session, with the calls of the engine: `register_table`,
    /// `register_catalog`, `register_udf`. `register` takes the session and the name of its user, `anonymous` without authentication,
    /// and a name derived from the key with [`Auth::PassThrough`]. It runs before each new session, so it has to return soon: build
    /// providers once, and register clones of their `Arc`.
    ///
    /// All servers list the tables, and clients only read them: a statement that would change, replace or drop one is refused.
    /// Their operators reserve memory in the share of the user ([`Limits::memory_mib`]); what a provider allocates by itself is not
    /// limited. Scalar functions are called with few rows at a time. Aggregate and window functions are refused in statements,
    /// because their memory is not known.
    ///
    /// If `register` fails, or registers a catalog with the name of a connection or the tables of one, no session is opened, and the
    /// client gets the error.
    #[must_use]
    pub fn with_tables(
        self,
        register: impl Fn(&SessionContext, &str) -> datafusion::error::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self { tables: OwnTables::new(register), ..self }
    }

    /// Checks the limits, and that the upstream fits the authentication.
    pub(crate) fn check(&self) -> Result<()> {
        self.limits.check()?;
        let refuse = |what: &str, advice: Phrase| Err(Error::new(ErrorKind::Config, what).advice(advice));
        match (&self.auth, &self.upstream) {
            (Auth::PassThrough, Upstream::Own { .. }) => {
                refuse("pass-through authentication needs Upstream::PassThrough", "use PassThrough::new".into())
            }
            (Auth::None | Auth::Users(_), Upstream::PassThrough(_)) => {
                let advice = Phrase::from("configure one, or use ") + Tool::AuthPassThrough;
                refuse("the server has no API key", advice)
            }
            _ => Ok(()),
        }
    }
}

/// Rejects a listener that is open to the network, or would expose credentials.
///
/// # Errors
/// [`ErrorKind::Config`] with the option to use.
pub(crate) fn check_exposure(listen: SocketAddr, auth: &Auth, tls: bool, insecure: bool) -> Result<()> {
    let refuse = |what: &str, advice: Phrase| Err(Error::new(ErrorKind::Config, what).advice(advice));
    match auth {
        _ if listen.ip().is_loopback() => Ok(()),
        Auth::None => refuse(
            "without authentication the server may only listen on a loopback address",
            Phrase::from("use ") + Tool::AuthUsers + " or " + Tool::AuthPassThrough,
        ),
        _ if !tls && !insecure => refuse(
            "credentials would be sent over the network in clear text",
            Phrase::from("set ")
                + Tool::ServerTls
                + ", or "
                + Tool::ServerInsecure
                + " behind a proxy that terminates TLS",
        ),
        _ => Ok(()),
    }
}
