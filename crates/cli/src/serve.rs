//! Command `serve`: merges options, environment variables and the configuration file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use console::Term;
use datafusion::common::config::ExtensionOptions;
use datafusion_saved_search::config::SessionSettings;
use datafusion_saved_search::distributed::{Workers, WorkersSpec};
use datafusion_saved_search::error::{Error, describe};
use datafusion_saved_search::flight::{FlightServer, ServerSpec};
use datafusion_saved_search::host::{
    Auth, Host, HostSpec, HttpServer, Reload, ServeDocument, TlsSpec, Upstream, cannot_listen, hash_password,
};
use datafusion_saved_search::postgres::{self, PostgresServer, PostgresSpec, scram_verifier};
use datafusion_saved_search::shell::Progress;
use datafusion_saved_search::simulator::Running;
use datafusion_saved_search::ui::{PageSpec, serve_beside};
use datafusion_saved_search::{Clock, check_missing_store};
use tokio::time::Instant;
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::access::{
    Access, AccessArguments, Reloading, certificates, check_distinct, check_services, exposed, services, stores,
    validity, warn, warn_of_expiry, warn_of_exposed, warn_of_unwritable,
};
use crate::connect::{Stores, missing_stores, serve_document};
use crate::help::print;
use crate::stderr::{tell, write_json};
use crate::telemetry::{Receiver, Telemetry};
use crate::{Arguments, Ending, Exit, FAILED, key_and_value, memory};

/// Serve the tables to BI tools and drivers over Arrow Flight SQL, and to clients of PostgreSQL
#[derive(Debug, clap::Args)]
#[command(after_help = "The [serve] table of the configuration file sets limits, and defaults of these options.

Examples:
  savedsearch serve
  savedsearch serve --postgres-listen 127.0.0.1:5432 --ui 127.0.0.1:8484
  savedsearch serve --no-flight --postgres-listen 127.0.0.1:5432
  savedsearch serve --operations 127.0.0.1:9090 --log-format json
  savedsearch serve --check
  savedsearch serve --hash-password < password.txt
  savedsearch --base-url https://api.example.com/v4 serve --listen 0.0.0.0:50051 \\
      --auth users --users-file users.toml --tls-cert server.pem --tls-key server.key
  savedsearch --base-url https://api.example.com/v4 serve --auth pass-through")]
pub(crate) struct ServeArguments {
    /// Address to listen on; port 0 picks a free one [default: 127.0.0.1:50051]
    #[arg(long, value_name = "ADDRESS", env = "SAVEDSEARCH_LISTEN")]
    listen: Option<SocketAddr>,
    /// Address to listen on for PostgreSQL clients, such as 127.0.0.1:5432 [default: none]
    #[arg(long, value_name = "ADDRESS", env = "SAVEDSEARCH_POSTGRES_LISTEN")]
    postgres_listen: Option<SocketAddr>,
    /// Serve clients of PostgreSQL and browsers only: do not listen for Flight SQL
    #[arg(long, env = "SAVEDSEARCH_NO_FLIGHT")]
    no_flight: bool,
    /// Address to listen on for browsers, such as 127.0.0.1:8484 [default: none]
    #[arg(long, value_name = "ADDRESS", env = "SAVEDSEARCH_UI")]
    ui: Option<SocketAddr>,
    /// Folder of dashboards for --ui
    #[arg(long, value_name = "DIR", env = "SAVEDSEARCH_DASHBOARDS")]
    dashboards: Option<PathBuf>,
    #[command(flatten)]
    access: AccessArguments,
    /// Worker for queries over the store, such as https://worker1:50061; may be repeated. A host name with several addresses
    /// stands for a worker at each address
    #[arg(long = "worker", value_name = "URL", env = "SAVEDSEARCH_WORKERS", value_delimiter = ',')]
    workers: Vec<String>,
    /// Certificate of the server for workers (PEM)
    #[arg(long, value_name = "FILE", env = "SAVEDSEARCH_WORKER_CERT")]
    worker_cert: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", env = "SAVEDSEARCH_WORKER_KEY")]
    worker_key: Option<PathBuf>,
    /// Certificate authorities of the workers (PEM)
    #[arg(long, value_name = "FILE", env = "SAVEDSEARCH_WORKER_CA")]
    worker_ca: Option<PathBuf>,
    /// Bytes of the store that a partition reads; a query that reads no more than the server's own partitions can runs on the server
    /// alone [default: 16777216]
    #[arg(long, value_name = "BYTES", env = "SAVEDSEARCH_WORKER_PARTITION_BYTES")]
    worker_partition_bytes: Option<usize>,
    /// Initial setting of sessions, such as freshness=15m; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    log: LogArguments,
    /// Check all that a start needs: users, certificates, settings, addresses, workers' URLs and keys; then exit. Each key costs
    /// one request. A running server is not disturbed
    #[arg(long, conflicts_with_all = ["hash_password", "scram_verifier"])]
    check: bool,
    /// Ask for a password, or read it from stdin, and print the line of the user file with its hash
    #[arg(long)]
    hash_password: bool,
    /// Ask for a password, or read it from stdin, and print the line of the user file for PostgreSQL clients
    #[arg(long, conflicts_with = "hash_password")]
    scram_verifier: bool,
}

/// The log of a server.
#[derive(Debug, clap::Args)]
pub(crate) struct LogArguments {
    /// Format of the log on stderr
    #[arg(long, value_enum, env = "SAVEDSEARCH_LOG_FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// Log level (error, warn, info, debug) of the program, or a filter such as info,h2=debug
    #[arg(long = "log", value_name = "FILTER", env = "SAVEDSEARCH_LOG", default_value = "info")]
    filter: String,
}

impl LogArguments {
    /// The filter of the log.
    pub(crate) fn filter(&self) -> &str {
        &self.filter
    }

    /// Gives all lines on stderr the format of the log.
    pub(crate) fn begin(&self) {
        if self.log_format == LogFormat::Json {
            write_json();
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum LogFormat {
    /// Human-readable
    Text,
    /// One JSON object per line
    Json,
}

/// Runs the server until a signal shuts it down.
pub(crate) async fn run(arguments: &Arguments, serve: &ServeArguments) -> Result<(), Exit> {
    if serve.hash_password || serve.scram_verifier {
        return print_hash(serve.scram_verifier);
    }
    memory::count();
    if serve.check {
        let document = serve_document(arguments)?;
        return Box::pin(check(arguments, serve, &document)).await;
    }
    serve.log.begin();
    let document = serve_document(arguments)?;
    let telemetry = Telemetry::start(Some(log(&serve.log, serve.log.filter())?))?;
    let served = Box::pin(listen(arguments, serve, &document)).await;
    telemetry.end().await;
    served
}

async fn listen(arguments: &Arguments, serve: &ServeArguments, document: &ServeDocument) -> Result<(), Exit> {
    let prepared = Box::pin(prepare(arguments, serve, document)).await?;
    warn_of_exposed(&prepared.secret_files);
    prepared.certificates.iter().for_each(|(_, tls)| warn_of_expiry(Some(tls)));
    warn_of_unwritable(&prepared.specs.spec.host.upstream);
    let Prepared { specs, workers, secret_files, .. } = prepared;
    let Specs { mut spec, flight, postgres, page, demo } = specs;
    // Before the line that announces the server.
    let mut ending = Ending::of_server()?;
    if let Some(workers) = workers {
        spec.host.workers = Some(Workers::start(workers).await?);
    }
    let used = spec.host.workers.clone();
    let services = services(&spec.host.upstream, demo.as_ref());
    let checks = RefCell::new(check_services(&services, warn));
    let (mut first, postgres) = match postgres {
        Some(postgres) if !flight => (First::Postgres(Box::new(postgres::serve(postgres, spec.host).await?)), None),
        postgres => {
            let server = FlightServer::start(spec).await?;
            let postgres = match postgres {
                Some(spec) => Some(PostgresServer::start(spec, server.host()).await?),
                None => None,
            };
            (First::Flight(Box::new(server)), postgres)
        }
    };
    let page = match page {
        Some(page) => Some(serve_beside(page, first.host()).await?),
        None => None,
    };
    if let Some(postgres) = first.postgres().or(postgres.as_ref()) {
        tell(Level::INFO, "", &format!("Postgres on {}", postgres.address()));
    }
    if let Some(page) = &page {
        tell(Level::INFO, "", &format!("page on {}", page.url()));
    }
    let (address, operations) = first.addresses();
    let host = Arc::clone(first.host());
    let worn_out = host.worn_out();
    let beside = postgres.as_ref().map(PostgresServer::reload).into_iter().chain(page.as_ref().map(HttpServer::reload));
    let files = beside.fold(first.reload(), Reload::and);
    let reloading = Reloading { server: files, access: &serve.access, document, secret_files, services, checks };
    let reload = async || {
        if let Some(workers) = &used {
            renew(workers, serve, document);
        }
        reloading.run().await;
    };
    let reason = ending.end_or_failure(address, operations, first.failed(), worn_out, reload).await?;
    reloading.end().await;
    let shut_down = async {
        // All at once: each waits for its own connections.
        let postgres = async {
            if let Some(postgres) = postgres {
                postgres.shut_down().await;
            }
        };
        let page = async {
            if let Some(page) = page {
                page.shut_down().await;
            }
        };
        let beside = async {
            tokio::join!(postgres, page);
        };
        Box::pin(first.shut_down_with(beside)).await
    };
    Box::pin(ending.drained(reason, shut_down, || host.cancel_queries())).await
}

/// The front that has the host of all others, and whose address is announced.
enum First {
    Flight(Box<FlightServer>),
    Postgres(Box<PostgresServer>),
}

impl First {
    fn host(&self) -> &Arc<Host> {
        match self {
            Self::Flight(server) => server.host(),
            Self::Postgres(server) => server.host(),
        }
    }

    fn postgres(&self) -> Option<&PostgresServer> {
        match self {
            Self::Flight(_) => None,
            Self::Postgres(server) => Some(server.as_ref()),
        }
    }

    /// The address for clients, and that for operators.
    fn addresses(&self) -> (SocketAddr, Option<SocketAddr>) {
        match self {
            Self::Flight(server) => (server.address(), server.operations()),
            Self::Postgres(server) => (server.address(), server.operations()),
        }
    }

    fn reload(&self) -> Reload {
        match self {
            Self::Flight(server) => server.reload(),
            Self::Postgres(server) => server.reload(),
        }
    }

    /// Waits for a failure of the listener. That of PostgreSQL has none: it waits until connections can be accepted again.
    async fn failed(&mut self) -> Error {
        match self {
            Self::Flight(server) => server.failed().await,
            Self::Postgres(_) => std::future::pending().await,
        }
    }

    async fn shut_down_with(self, others: impl Future<Output = ()> + Send) -> Result<(), Error> {
        match self {
            Self::Flight(server) => server.shut_down_with(others).await,
            Self::Postgres(server) => {
                server.shut_down_with(others).await;
                Ok(())
            }
        }
    }
}

/// Specifications of the servers, and what keeps the demo data running.
struct Specs {
    spec: ServerSpec,
    /// False if Flight SQL is not served.
    flight: bool,
    postgres: Option<PostgresSpec>,
    page: Option<PageSpec>,
    demo: Option<Running>,
}

impl Specs {
    /// The addresses to listen on, each with the name of its protocol.
    fn listeners(&self) -> [(&'static str, Option<SocketAddr>); 4] {
        let Self { spec, flight, postgres, page, .. } = self;
        [
            ("Flight SQL", flight.then_some(spec.listen)),
            ("PostgreSQL", postgres.as_ref().map(|postgres| postgres.listen)),
            ("page", page.as_ref().map(|page| page.listen)),
            ("health and metrics", spec.host.operations),
        ]
    }

    /// Checks all that can be checked without opening anything.
    fn check(&self) -> Result<(), Exit> {
        let Self { spec, postgres, page, .. } = self;
        check_distinct(&self.listeners())?;
        spec.check()?;
        if let Some(postgres) = postgres {
            postgres.check(&spec.host.auth)?;
        }
        if let Some(page) = page {
            page.check(&spec.host.auth)?;
        }
        Ok(())
    }
}

/// All that a server starts with, read and checked.
struct Prepared {
    specs: Specs,
    workers: Option<WorkersSpec>,
    users_file: Option<PathBuf>,
    /// Files with keys and users.
    secret_files: Vec<PathBuf>,
    /// Certificates of the server by their files: for clients, and for workers.
    certificates: Vec<(PathBuf, TlsSpec)>,
}

/// Reads and checks all that a server starts with, up to binding its addresses.
async fn prepare(arguments: &Arguments, serve: &ServeArguments, document: &ServeDocument) -> Result<Prepared, Exit> {
    let stores = if serve.check { Stores::Existing } else { Stores::All };
    let access = serve.access.read(arguments, document, stores).await?;
    let workers = workers(arguments, serve, document)?;
    let of_workers = workers.as_ref().and_then(|workers| workers.tls.clone());
    let certificates = [
        (access.certificate_file.clone(), access.tls.clone()),
        (worker_certificate_file(serve, document).cloned(), of_workers),
    ];
    let certificates = certificates.into_iter().filter_map(|(file, tls)| file.zip(tls)).collect();
    let (users_file, secret_files) = (access.users_file.clone(), secret_files(&access, serve, document));
    let specs = specs(access, serve, document)?;
    specs.check()?;
    Ok(Prepared { specs, workers, users_file, secret_files, certificates })
}

/// Specifications of the servers, by the options, the file, and what was read for them.
fn specs(access: Access, serve: &ServeArguments, document: &ServeDocument) -> Result<Specs, Exit> {
    let Access { upstream, demo, auth, tls, insecure, operations, .. } = access;
    let postgres = serve.postgres_listen.or(document.postgres_listen);
    let postgres = postgres.map(|listen| PostgresSpec { listen, tls: tls.clone(), insecure });
    let page = serve.ui.or(document.ui);
    let dashboards = serve.dashboards.as_ref().or(document.dashboards.as_ref()).cloned();
    if page.is_none() && serve.dashboards.is_some() {
        return Err(Exit::usage("--dashboards requires --ui"));
    }
    let page = page.map(|listen| PageSpec { listen, tls: tls.clone(), insecure, dashboards });
    let flight = !serve.no_flight && document.flight.unwrap_or(true);
    let off = if serve.no_flight { "--no-flight" } else { "`flight = false` of [serve]" };
    let listen = match &postgres {
        _ if flight => serve.listen.or(document.listen).unwrap_or(SocketAddr::from(([127, 0, 0, 1], 50_051))),
        _ if serve.listen.is_some() => {
            return Err(Exit::usage(format!("--listen is the address of Flight SQL; omit {off}")));
        }
        // The command line may overrule the file.
        _ if document.listen.is_some() && !serve.no_flight => {
            return Err(Exit::usage(format!("`listen` of [serve] is the address of Flight SQL; omit it, or {off}")));
        }
        Some(postgres) => postgres.listen,
        None => return Err(Exit::usage(format!("{off} requires --postgres-listen"))),
    };
    let host = HostSpec {
        operations,
        limits: serve.access.limits(document.limits.clone()),
        settings: settings(&document.settings, &serve.set)?,
        ..HostSpec::new(auth, upstream)
    };
    let spec = ServerSpec { listen, tls, insecure, host };
    Ok(Specs { spec, flight, postgres, page, demo })
}

/// Checks what a server would start with. Workers are not contacted.
async fn check(arguments: &Arguments, serve: &ServeArguments, document: &ServeDocument) -> Result<(), Exit> {
    filter_of(serve.log.filter())?;
    let Prepared { specs, users_file, secret_files, certificates, .. } =
        Box::pin(prepare(arguments, serve, document)).await?;
    for line in exposed(&secret_files) {
        eprintln!("warning: {line}");
    }
    let host = &specs.spec.host;
    if let (Auth::Users(users), Some(file)) = (&host.auth, users_file) {
        let (number, plural) = (users.len(), if users.len() == 1 { "" } else { "s" });
        eprintln!("{}: {number} user{plural}", file.display());
    }
    for (file, tls) in certificates {
        match validity(&tls, Clock::system().now()) {
            Ok(valid) => eprintln!("{}: {valid}", file.display()),
            Err(reason) => eprintln!("warning: {}: the certificate {reason}", file.display()),
        }
    }
    check_stores(arguments, &host.upstream)?;
    try_addresses(&specs.listeners())?;
    if matches!(host.upstream, Upstream::PassThrough(_)) {
        eprintln!("services: not checked; clients send their own keys");
    }
    if specs.demo.is_some() {
        eprintln!("service: built-in demo data");
    }
    let begun = Instant::now();
    let progress =
        Progress::of(arguments.quiet, move || format!("checking services · {} s", begun.elapsed().as_secs()));
    let progress = Arc::new(progress);
    let told = move |name: &str, failure: Option<&str>| match failure {
        None => progress.line(format_args!("service {name}: ok")),
        Some(reason) => progress.line(format_args!("service {name}: {reason}")),
    };
    let checks = check_services(&services(&host.upstream, specs.demo.as_ref()), told);
    match checks.join_all().await.into_iter().all(|works| works) {
        true => {
            eprintln!("configuration: ok");
            Ok(())
        }
        false => Err(Exit(FAILED, Some("a service cannot be queried; check its address, key and profile".to_owned()))),
    }
}

/// Names the stores, and checks that a missing one could be created. A check that creates it, as another user than the server, would
/// leave a folder that the server cannot write.
fn check_stores(arguments: &Arguments, upstream: &Upstream) -> Result<(), Exit> {
    // The keys of clients have no stores.
    if matches!(upstream, Upstream::PassThrough(_)) {
        return Ok(());
    }
    for store in stores(upstream) {
        match store {
            Ok(folder) => eprintln!("store {}: ok", folder.display()),
            Err(reason) => eprintln!("warning: nothing can be stored: {reason}"),
        }
    }
    for location in missing_stores(arguments)? {
        match check_missing_store(&location)? {
            None => eprintln!("store {location}: missing; the server creates it when it starts"),
            Some(full) => eprintln!("warning: nothing can be stored: {full}"),
        }
    }
    Ok(())
}

/// The files with secrets that the server reads.
fn secret_files(access: &Access, serve: &ServeArguments, document: &ServeDocument) -> Vec<PathBuf> {
    let worker_key = serve.worker_key.as_ref().or(document.worker_key.as_ref());
    access.secret_files.iter().chain(worker_key).cloned().collect()
}

/// The URLs of the workers, of the command line or of the file.
fn worker_urls<'s>(serve: &'s ServeArguments, document: &'s ServeDocument) -> &'s [String] {
    if serve.workers.is_empty() { &document.workers } else { &serve.workers }
}

/// Certificate of the server for its workers.
fn worker_certificate_file<'s>(serve: &'s ServeArguments, document: &'s ServeDocument) -> Option<&'s PathBuf> {
    serve.worker_cert.as_ref().or(document.worker_cert.as_ref())
}

/// Reads the certificates of the server for its workers.
fn worker_tls(serve: &ServeArguments, document: &ServeDocument) -> Result<Option<TlsSpec>, Exit> {
    let certificate = worker_certificate_file(serve, document);
    let key = serve.worker_key.as_ref().or(document.worker_key.as_ref());
    let authorities = serve.worker_ca.as_ref().or(document.worker_ca.as_ref());
    match (certificate, key, authorities) {
        (None, None, None) => Ok(None),
        _ if worker_urls(serve, document).is_empty() => {
            Err(Exit::usage("--worker-cert, --worker-key and --worker-ca require --worker"))
        }
        (Some(certificate), Some(key), Some(_)) => certificates(certificate, key, authorities).map(Some),
        _ => Err(Exit::usage("--worker-cert, --worker-key and --worker-ca require each other")),
    }
}

/// Reads the certificates for the workers again, and logs if that failed.
fn renew(workers: &Workers, serve: &ServeArguments, document: &ServeDocument) {
    let renewed = worker_tls(serve, document).and_then(|tls| match tls {
        Some(tls) => {
            warn_of_expiry(Some(&tls));
            workers.renew_certificates(tls).map_err(Exit::from)
        }
        None => Ok(()),
    });
    if let Err(Exit(_, reason)) = renewed {
        let reason = reason.unwrap_or_default();
        tracing::error!(reason, "reload failed: the server keeps its certificates for workers");
    }
}

/// The workers of the command line, or of the file, checked.
fn workers(
    arguments: &Arguments,
    serve: &ServeArguments,
    document: &ServeDocument,
) -> Result<Option<WorkersSpec>, Exit> {
    let (urls, tls) = (worker_urls(serve, document), worker_tls(serve, document)?);
    if urls.is_empty() {
        return Ok(None);
    }
    let spec = WorkersSpec {
        urls: urls.to_vec(),
        tls,
        insecure: arguments.insecure || document.insecure.unwrap_or_default(),
        partition_bytes: serve
            .worker_partition_bytes
            .or(document.worker_partition_bytes)
            .unwrap_or(WorkersSpec::PARTITION_BYTES),
    };
    spec.check()?;
    Ok(Some(spec))
}

/// Names the addresses, after binding each of them for a moment. One in use is only a warning: it may be that of the server that is
/// to be restarted.
fn try_addresses(listeners: &[(&str, Option<SocketAddr>)]) -> Result<(), Exit> {
    let mut held: Vec<TcpListener> = Vec::new();
    for (name, address) in listeners {
        let Some(address) = address else { continue };
        // The same port of another listener of this server, such as that of all addresses.
        let is_own = || held.iter().any(|own| own.local_addr().is_ok_and(|own| own.port() == address.port()));
        match TcpListener::bind(address) {
            Ok(listener) => {
                eprintln!("{name}: {address}");
                held.push(listener);
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && !is_own() => {
                eprintln!(
                    "warning: {name}: {address} is in use; end the program that listens there before the server starts"
                );
            }
            Err(error) => return Err(cannot_listen(*address, &error).into()),
        }
    }
    Ok(())
}

/// The settings of new sessions: those of the file, then those of the command line.
pub(crate) fn settings(file: &BTreeMap<String, String>, given: &[String]) -> Result<SessionSettings, Exit> {
    let mut settings = SessionSettings::default();
    let file = file.iter().map(|(key, value)| Ok((key.clone(), value.as_str())));
    for setting in file.chain(given.iter().map(|setting| key_and_value(setting))) {
        let (key, value) = setting?;
        let key = key.strip_prefix("savedsearch.").unwrap_or(&key);
        let set = SessionSettings::check_for_server(key, value).and_then(|()| settings.set(key, value));
        set.map_err(|error| Exit::usage(describe(&error)))?;
    }
    Ok(settings)
}

/// Prefixes of the log targets of the program.
const OWN: [&str; 2] = ["datafusion_saved_search", "savedsearch"];
/// Libraries whose lines a filter may ask for.
const LIBRARIES: [&str; 8] = ["h2", "hyper", "hyper_util", "object_store", "opentelemetry", "rmcp", "tonic", "tower"];

/// Reads the filter of the log. A level without a target that shows more than `info` is that of the program alone.
fn filter_of(text: &str) -> Result<EnvFilter, Exit> {
    let wrong = |what: String| Exit::usage(format!("--log {text}: {what}"));
    let (mut levels, mut targets) = (Vec::new(), Vec::new());
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let (target, level) = word.split_once('=').map_or((None, word), |(target, level)| (Some(target), level));
        let level = Some(level).filter(|level| !level.is_empty()).and_then(|level| level.parse::<LevelFilter>().ok());
        let level = level.ok_or_else(|| {
            wrong(format!(
                "unknown level in `{word}`; expected off, error, warn, info, debug or trace, or TARGET=LEVEL"
            ))
        })?;
        match target {
            None if level > LevelFilter::INFO => {
                levels.push(LevelFilter::INFO.to_string());
                levels.extend(OWN.map(|target| format!("{target}={level}")));
            }
            None => levels.push(word.to_owned()),
            Some(target) => {
                let root = target.split("::").next().unwrap_or_default();
                if !OWN.iter().chain(&LIBRARIES).any(|known| *known == root) {
                    let known = OWN.iter().chain(&LIBRARIES).copied().collect::<Vec<_>>().join(", ");
                    return Err(wrong(format!("unknown target `{target}`; available: {known}")));
                }
                targets.push(word.to_owned());
            }
        }
    }
    // Of two words for the same target, the last one counts.
    levels.append(&mut targets);
    EnvFilter::try_new(levels.join(",")).map_err(|error| wrong(error.to_string()))
}

/// Lines on stderr. Spans add nothing to them: a line names its query itself.
pub(crate) fn log(arguments: &LogArguments, filter: &str) -> Result<Receiver, Exit> {
    let filter = filter_of(filter)?;
    // The other filter decides the level. Without a hint here, its own would be lost.
    let events = filter_fn(|metadata| metadata.is_event()).with_max_level_hint(LevelFilter::TRACE);
    let filter = tracing_subscriber::filter::FilterExt::<Registry>::and(filter, events);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    Ok(match arguments.log_format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).with_filter(filter).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
    })
}

fn print_hash(scram: bool) -> Result<(), Exit> {
    let password = password()?;
    let line = match scram {
        true => format!("scram_sha_256 = \"{}\"\n", scram_verifier(&password)),
        false => format!("password_hash = \"{}\"\n", hash_password(&password)?),
    };
    print(line.as_bytes())
}

/// Asks for a password twice without showing it, or reads it from stdin if that is not a terminal.
fn password() -> Result<String, Exit> {
    let failed = |error: io::Error| Exit::usage(format!("cannot read the password: {error}"));
    if !io::stdin().is_terminal() {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(failed)?;
        return match line.trim_end_matches(['\r', '\n']) {
            "" => Err(Exit::usage("no password on stdin")),
            password => Ok(password.to_owned()),
        };
    }
    let terminal = Term::stderr();
    let ask = |what: &str| {
        eprint!("{what}: ");
        terminal.read_secure_line().map_err(failed)
    };
    let (first, again) = (ask("Password")?, ask("Password again")?);
    match (first.is_empty(), first == again) {
        (true, _) => Err(Exit::usage("the password is empty")),
        (false, false) => Err(Exit::usage("the two passwords differ")),
        (false, true) => Ok(first),
    }
}
