//! Access to a server: options that `serve` and `mcp` share, merged with the `[serve]` table of the configuration file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use clap::ValueEnum;
use datafusion_saved_search::error::line_of;
use datafusion_saved_search::host::{Auth, Limits, Reload, ServeDocument, TlsSpec, Upstream, Users};
use datafusion_saved_search::simulator::Running;
use datafusion_saved_search::{CATALOG, Clock, Connection, Error, session};
use tokio::task::JoinSet;

use crate::connect::{Connected, Stores, connect_with, key_files, pass_through};
use crate::{Arguments, Exit, in_command};

/// Permission of all users to read a file.
const OTHERS_READ: u32 = 0o004;

/// Time before the end of a certificate from which on it is reported.
const RENEWAL: TimeDelta = TimeDelta::days(14);

/// Authentication, TLS and the address for operators.
#[derive(Debug, clap::Args)]
pub(crate) struct AccessArguments {
    /// Authentication of clients [default: none]
    #[arg(long, value_enum, env = "SAVEDSEARCH_AUTH")]
    auth: Option<AuthMode>,
    /// User file for --auth users
    #[arg(long, value_name = "FILE", env = "SAVEDSEARCH_USERS_FILE")]
    users_file: Option<PathBuf>,
    /// Certificate chain of the server (PEM)
    #[arg(long, value_name = "FILE", env = "SAVEDSEARCH_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// Private key of the server (PEM)
    #[arg(long, value_name = "FILE", env = "SAVEDSEARCH_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Certificate authorities of client certificates (PEM); enables mutual TLS
    #[arg(long, value_name = "FILE", env = "SAVEDSEARCH_CLIENT_CA")]
    client_ca: Option<PathBuf>,
    /// Address of /healthz and /metrics
    #[arg(long, value_name = "ADDRESS", env = "SAVEDSEARCH_OPERATIONS")]
    operations: Option<SocketAddr>,
    /// Memory of all statements, such as 512MiB or 4GiB [default: 2GiB]
    #[arg(long, value_name = "SIZE", env = "SAVEDSEARCH_MEMORY", value_parser = mebibytes)]
    memory: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum AuthMode {
    /// No authentication; loopback addresses only
    None,
    /// Password or token of a user in --users-file
    Users,
    /// Clients send their own API key as password or token
    PassThrough,
}

/// Users of a server, and the service that it serves.
pub(crate) struct Access {
    pub(crate) upstream: Upstream,
    /// Keeps the built-in demo data running.
    pub(crate) demo: Option<Running>,
    pub(crate) auth: Auth,
    pub(crate) tls: Option<TlsSpec>,
    pub(crate) insecure: bool,
    pub(crate) operations: Option<SocketAddr>,
    /// Users file.
    pub(crate) users_file: Option<PathBuf>,
    /// Certificate of the server.
    pub(crate) certificate_file: Option<PathBuf>,
    /// Files with keys and users that were read.
    pub(crate) secret_files: Vec<PathBuf>,
}

impl AccessArguments {
    /// The limits of the configuration file, with those of the command line.
    pub(crate) fn limits(&self, limits: Limits) -> Limits {
        Limits { memory_mib: self.memory.unwrap_or(limits.memory_mib), ..limits }
    }

    /// Connects to the service with some of its stores, and reads users and certificates.
    pub(crate) async fn read(
        &self,
        arguments: &Arguments,
        document: &ServeDocument,
        stores: Stores,
    ) -> Result<Access, Exit> {
        let mode = match (self.auth, &document.auth) {
            (Some(mode), _) => mode,
            (None, Some(name)) => AuthMode::from_str(name, false).map_err(|_| {
                Exit::usage(format!("invalid value `{name}` for serve.auth: expected none, users or pass-through"))
            })?,
            (None, None) => AuthMode::None,
        };
        let mut secret_files = Vec::new();
        let (upstream, demo) = match mode {
            AuthMode::PassThrough => {
                let (keys, demo) = pass_through(arguments).await?;
                (Upstream::PassThrough(keys), demo)
            }
            AuthMode::None | AuthMode::Users => {
                let Connected { connection, others, demo } = connect_with(arguments, stores).await?;
                secret_files.extend(key_files(arguments)?);
                (Upstream::Own { connection, named: others }, demo)
            }
        };
        // --auth on the command line may make the user file of the configuration irrelevant.
        let users_file = self.users_file.as_ref().or(document.users_file.as_ref().filter(|_| mode == AuthMode::Users));
        let auth = match (mode, users_file) {
            (AuthMode::None, None) => Auth::None,
            (AuthMode::PassThrough, None) => Auth::PassThrough,
            (AuthMode::Users, Some(file)) => Auth::Users(Users::read(file)?),
            (AuthMode::Users, None) => return Err(Exit::usage("--auth users requires --users-file")),
            (_, Some(_)) => return Err(Exit::usage("--users-file requires --auth users")),
        };
        let tls = self.tls(document)?;
        let tls_key = self.tls_key.as_ref().or(document.tls_key.as_ref());
        secret_files.extend(users_file.into_iter().chain(tls_key).cloned());
        Ok(Access {
            upstream,
            demo,
            auth,
            tls,
            insecure: arguments.insecure || document.insecure.unwrap_or_default(),
            operations: self.operations.or(document.operations),
            users_file: users_file.cloned(),
            certificate_file: self.tls_cert.as_ref().or(document.tls_cert.as_ref()).cloned(),
            secret_files,
        })
    }

    /// Reads the certificates.
    fn tls(&self, document: &ServeDocument) -> Result<Option<TlsSpec>, Exit> {
        let certificate = self.tls_cert.as_ref().or(document.tls_cert.as_ref());
        let key = self.tls_key.as_ref().or(document.tls_key.as_ref());
        let authorities = self.client_ca.as_ref().or(document.client_ca.as_ref());
        match (certificate, key) {
            (Some(certificate), Some(key)) => certificates(certificate, key, authorities).map(Some),
            (None, None) if authorities.is_none() => Ok(None),
            (None, None) => Err(Exit::usage("--client-ca requires --tls-cert and --tls-key")),
            _ => Err(Exit::usage("--tls-cert and --tls-key require each other")),
        }
    }
}

/// Describes the files that every user of this machine can read.
pub(crate) fn exposed(files: &[PathBuf]) -> Vec<String> {
    let open = |file: &&PathBuf| fs::metadata(file).is_ok_and(|found| found.permissions().mode() & OTHERS_READ != 0);
    let described = |file: &PathBuf| {
        let file = file.display();
        format!("{file}: every user of this machine can read this file; run `chmod o-r {file}`")
    };
    files.iter().filter(open).map(described).collect()
}

/// Logs the files with secrets that every user of this machine can read.
pub(crate) fn warn_of_exposed(files: &[PathBuf]) {
    exposed(files).iter().for_each(|line| tracing::warn!("{line}"));
}

/// Describes a certificate by the time of its end. `Err` if that has passed or is near, or if it has not begun.
pub(crate) fn validity(tls: &TlsSpec, now: DateTime<Utc>) -> Result<String, String> {
    if let Some(begin) = tls.begins().filter(|begin| *begin > now) {
        let day = begin.format("%Y-%m-%d %H:%M UTC");
        return Err(format!("is not valid before {day}; connections fail until then"));
    }
    let Some(end) = tls.expires() else { return Ok("ok".to_owned()) };
    let day = end.format("%Y-%m-%d %H:%M UTC");
    match end - now {
        left if left < TimeDelta::zero() => Err(format!("expired on {day}; connections fail until it is renewed")),
        left if left < RENEWAL => Err(format!("expires on {day}; renew it, then send SIGHUP to reload it")),
        _ => Ok(format!("ok, expires on {day}")),
    }
}

/// Logs a certificate that is not valid, or expires soon.
pub(crate) fn warn_of_expiry(tls: Option<&TlsSpec>) {
    if let Some(Err(reason)) = tls.map(|tls| validity(tls, Clock::system().now())) {
        tracing::warn!("the certificate {reason}");
    }
}

/// Users, keys and certificates of a running server, which it reads and checks again on request.
pub(crate) struct Reloading<'a> {
    pub(crate) server: Reload,
    pub(crate) access: &'a AccessArguments,
    pub(crate) document: &'a ServeDocument,
    pub(crate) secret_files: Vec<PathBuf>,
    pub(crate) services: Vec<Service>,
    /// The last check of the services.
    pub(crate) checks: RefCell<JoinSet<bool>>,
}

impl Reloading<'_> {
    /// Reads all again, and logs whether that succeeded, and what a start would warn of.
    pub(crate) async fn run(&self) {
        warn_of_exposed(&self.secret_files);
        let reloaded = match self.access.tls(self.document) {
            Ok(tls) => {
                warn_of_expiry(tls.as_ref());
                self.server.run(tls.as_ref()).await.map(|()| tls.is_some()).map_err(|error| error.to_string())
            }
            Err(Exit(_, line)) => Err(line.unwrap_or_default()),
        };
        match reloaded {
            Ok(true) => tracing::info!("reloaded users, API keys and certificates"),
            Ok(false) => tracing::info!("reloaded users and API keys; the server has no certificates"),
            Err(reason) => {
                tracing::error!(reason, "reload failed: the server keeps its previous configuration");
                return;
            }
        }
        // One that is cut short says nothing about a service, so it ends before anything else does.
        self.checks.take().shutdown().await;
        drop(self.checks.replace(check_services(&self.services, warn)));
    }

    /// Ends the check that runs.
    pub(crate) async fn end(self) {
        self.checks.into_inner().shutdown().await;
    }
}

/// A service by the name of its catalog.
pub(crate) type Service = (String, Arc<Connection>);

/// The services for which the server itself has a key. The demo data is none of them.
pub(crate) fn services(upstream: &Upstream, demo: Option<&Running>) -> Vec<Service> {
    match (upstream, demo) {
        (Upstream::Own { connection, named }, None) if named.is_empty() => {
            vec![(CATALOG.to_owned(), Arc::clone(connection))]
        }
        (Upstream::Own { named, .. }, None) => named.clone(),
        _ => Vec::new(),
    }
}

/// The folders of the services' stores, each with the reason if nothing can be written to it.
pub(crate) fn stores(upstream: &Upstream) -> Vec<Result<PathBuf, Error>> {
    services(upstream, None).iter().filter_map(|(_, connection)| connection.store_folder()).collect()
}

/// Logs the stores that cannot be written.
pub(crate) fn warn_of_unwritable(upstream: &Upstream) {
    for reason in stores(upstream).into_iter().filter_map(Result::err) {
        tracing::warn!(%reason, "the store cannot be written: queries keep nothing in it");
    }
}

/// Refuses two listeners at the same address. Port 0 is a free one for each.
pub(crate) fn check_distinct(listeners: &[(&str, Option<SocketAddr>)]) -> Result<(), Exit> {
    let mut taken = BTreeMap::new();
    for (name, address) in listeners {
        if let Some(address) = address.filter(|address| address.port() != 0)
            && let Some(other) = taken.insert(address, name)
        {
            return Err(Exit::usage(format!("{other} and {name} cannot both listen on {address}")));
        }
    }
    Ok(())
}

/// Requests the list of each service once, at the same time, and passes its name with the reason of a failure to `told`. Nobody
/// else would notice a wrong key or address before the first query. The tasks return whether the service can be queried.
pub(crate) fn check_services(
    services: &[Service],
    told: impl Fn(&str, Option<&str>) + Clone + Send + Sync + 'static,
) -> JoinSet<bool> {
    let mut checks = JoinSet::new();
    for (name, connection) in services {
        let (name, connection, told) = (name.clone(), Arc::clone(connection), told.clone());
        checks.spawn(async move {
            let listed = list(&connection).await;
            let listed = listed.map_err(|error| connection.client().redact(&line_of(&error).worded(in_command)));
            told(&name, listed.as_ref().err().map(|failed| failed.as_str()));
            listed.is_ok()
        });
    }
    checks
}

/// Logs a service that cannot be queried.
pub(crate) fn warn(name: &str, failure: Option<&str>) {
    if let Some(reason) = failure {
        tracing::warn!(connection = name, reason, "the service cannot be queried");
    }
}

async fn list(connection: &Arc<Connection>) -> datafusion::error::Result<()> {
    let context = session(connection)?;
    {
        let state = context.state_ref();
        let mut state = state.write();
        let options = state.config_mut().options_mut();
        options.set("savedsearch.query_deadline", "20")?;
        options.set("savedsearch.store", "off")?;
    }
    context.sql("SELECT aid FROM saved_searches LIMIT 1").await?.collect().await?;
    Ok(())
}

/// Reads a certificate with its key, and the authorities of the other side.
pub(crate) fn certificates(certificate: &Path, key: &Path, authorities: Option<&PathBuf>) -> Result<TlsSpec, Exit> {
    Ok(TlsSpec::read(certificate, key, authorities.map(PathBuf::as_path))?)
}

/// Reads a size in MiB, GiB or TiB.
pub(crate) fn mebibytes(text: &str) -> Result<usize, String> {
    let size =
        |(unit, of_one): (&str, usize)| text.strip_suffix(unit)?.trim().parse::<usize>().ok()?.checked_mul(of_one);
    let size = [("MiB", 1), ("GiB", 1 << 10), ("TiB", 1 << 20)].into_iter().find_map(size);
    let size = size.filter(|mib| (Limits::LEAST_MEMORY_MIB..=1 << 24).contains(mib));
    size.ok_or_else(|| "expected a size from 64MiB to 16TiB, such as 512MiB or 4GiB".to_owned())
}
