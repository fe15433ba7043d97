//! Command `serve`: merges options, environment variables and the configuration file.

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use console::Term;
use datafusion::common::config::ExtensionOptions;
use datafusion_saved_search::config::{Environment, SessionSettings};
use datafusion_saved_search::distributed::{Workers, WorkersSpec};
use datafusion_saved_search::error::describe;
use datafusion_saved_search::flight::{
    Auth, FlightServer, HttpServer, Reload, ServeDocument, ServerSpec, Upstream, hash_password,
};
use datafusion_saved_search::postgres::{PostgresServer, PostgresSpec, scram_verifier};
use datafusion_saved_search::simulator::Running;
use datafusion_saved_search::ui::{PageSpec, serve_beside};
use tokio::task::JoinSet;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::access::{Access, AccessArguments, certificates, check_services, reload, warn};
use crate::connect::config_file;
use crate::help::print;
use crate::telemetry::{Receiver, Telemetry};
use crate::{Arguments, Ending, Exit, FAILED, key_and_value, memory};

/// Serve the tables to BI tools and drivers over Arrow Flight SQL, and to clients of PostgreSQL
#[derive(Debug, clap::Args)]
#[command(after_help = "Defaults of these options, and limits, are read from the [serve] table of the configuration
file.

Examples:
  savedsearch serve
  savedsearch serve --postgres-listen 127.0.0.1:5432 --ui 127.0.0.1:8484
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
    /// Address to listen on for browsers, such as 127.0.0.1:8484 [default: none]
    #[arg(long, value_name = "ADDRESS", env = "SAVEDSEARCH_UI")]
    ui: Option<SocketAddr>,
    /// Folder of dashboards for --ui
    #[arg(long, value_name = "DIR", env = "SAVEDSEARCH_DASHBOARDS")]
    dashboards: Option<PathBuf>,
    #[command(flatten)]
    access: AccessArguments,
    /// Worker for queries over the store, such as https://worker1:50061; may be repeated. If a host name has several
    /// addresses, there is a worker at each of them
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
    /// Initial setting of sessions, such as freshness=15m; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    log: LogArguments,
    /// Check users, certificates and settings, and each key with one request, instead of serving; does not disturb a running
    /// server
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
    /// Log level (error, warn, info, debug), or a filter such as datafusion_saved_search=debug
    #[arg(long = "log", value_name = "FILTER", env = "SAVEDSEARCH_LOG", default_value = "info")]
    filter: String,
}

impl LogArguments {
    /// The filter of the log.
    pub(crate) fn filter(&self) -> &str {
        &self.filter
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
    let environment = Environment::read()?;
    let document = match config_file(arguments, &environment) {
        Some(path) => ServeDocument::read(&path)?,
        None => ServeDocument::default(),
    };
    if serve.check {
        return Box::pin(check(arguments, serve, document)).await;
    }
    let telemetry = Telemetry::start(Some(log(&serve.log, serve.log.filter())?))?;
    let served = Box::pin(listen(arguments, serve, document)).await;
    telemetry.end().await;
    served
}

async fn listen(arguments: &Arguments, serve: &ServeArguments, document: ServeDocument) -> Result<(), Exit> {
    let access = serve.access.read(arguments, &document).await?;
    let workers = workers(arguments, serve, &document).await?;
    let Specs { spec, postgres, page, demo } = specs(access, workers, serve, &document)?;
    // Before the line that announces the server.
    let mut ending = Ending::of_server()?;
    let mut checks = if demo.is_none() { check_services(&spec.upstream, warn) } else { JoinSet::new() };
    let mut server = FlightServer::start(spec).await?;
    let postgres = match postgres {
        Some(spec) => Some(PostgresServer::start(spec, &server).await?),
        None => None,
    };
    let page = match page {
        Some(page) => Some(serve_beside(page, &server).await?),
        None => None,
    };
    if let Some(postgres) = &postgres {
        eprintln!("Postgres on {}", postgres.address());
    }
    if let Some(page) = &page {
        eprintln!("page on {}", page.url());
    }
    let (address, operations) = (server.address(), server.operations());
    let worn_out = server.worn_out();
    let beside = postgres.as_ref().map(PostgresServer::reload).into_iter().chain(page.as_ref().map(HttpServer::reload));
    let files = beside.fold(server.reload(), Reload::and);
    let reload = async || reload(&files, &serve.access, &document).await;
    let reason = ending.end_or_failure(address, operations, server.failed(), worn_out, reload).await?;
    // A check that is cut short says nothing about a service.
    checks.shutdown().await;
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
        tokio::join!(postgres, page, server.shut_down()).2
    };
    ending.drained(reason, shut_down).await
}

/// Specifications of the servers, and what keeps the demo data running.
struct Specs {
    spec: ServerSpec,
    postgres: Option<PostgresSpec>,
    page: Option<PageSpec>,
    demo: Option<Running>,
}

/// Specifications of the servers, by the options, the file, and what was read for them.
fn specs(
    access: Access,
    workers: Option<Arc<Workers>>,
    serve: &ServeArguments,
    document: &ServeDocument,
) -> Result<Specs, Exit> {
    let Access { upstream, demo, auth, tls, insecure, operations } = access;
    let postgres = serve.postgres_listen.or(document.postgres_listen);
    let postgres = postgres.map(|listen| PostgresSpec { listen, tls: tls.clone(), insecure });
    let page = serve.ui.or(document.ui);
    let dashboards = serve.dashboards.as_ref().or(document.dashboards.as_ref()).cloned();
    if page.is_none() && serve.dashboards.is_some() {
        return Err(Exit::usage("--dashboards requires --ui"));
    }
    let page = page.map(|listen| PageSpec { listen, tls: tls.clone(), insecure, dashboards });
    let spec = ServerSpec {
        listen: serve.listen.or(document.listen).unwrap_or(SocketAddr::from(([127, 0, 0, 1], 50_051))),
        auth,
        tls,
        insecure,
        operations,
        limits: serve.access.limits(document.limits.clone()),
        settings: settings(&document.settings, &serve.set)?,
        upstream,
        workers,
    };
    Ok(Specs { spec, postgres, page, demo })
}

/// Checks what a server would start with. Workers are not contacted.
async fn check(arguments: &Arguments, serve: &ServeArguments, document: ServeDocument) -> Result<(), Exit> {
    let access = serve.access.read(arguments, &document).await?;
    let Specs { spec, postgres, page, demo } = specs(access, None, serve, &document)?;
    spec.check()?;
    if let Some(postgres) = &postgres {
        postgres.check(&spec.auth)?;
    }
    if let Some(page) = &page {
        page.check(&spec.auth)?;
    }
    if let Auth::Users(users) = &spec.auth {
        eprintln!("users: {}", users.len());
    }
    if matches!(spec.upstream, Upstream::PassThrough(_)) {
        eprintln!("services: not checked; clients send their own keys");
    }
    if demo.is_some() {
        eprintln!("service: built-in demo data");
    }
    let told = |name: &str, failure: Option<&str>| match failure {
        None => eprintln!("service {name}: ok"),
        Some(reason) => eprintln!("service {name}: {reason}"),
    };
    let checks = if demo.is_none() { check_services(&spec.upstream, told) } else { JoinSet::new() };
    match checks.join_all().await.into_iter().all(|works| works) {
        true => Ok(()),
        false => Err(Exit(FAILED, Some("a service cannot be queried; check its address, key and profile".to_owned()))),
    }
}

/// Starts to use the workers of the command line, or of the file.
async fn workers(
    arguments: &Arguments,
    serve: &ServeArguments,
    document: &ServeDocument,
) -> Result<Option<Arc<Workers>>, Exit> {
    let urls = if serve.workers.is_empty() { &document.workers } else { &serve.workers };
    let certificate = serve.worker_cert.as_ref().or(document.worker_cert.as_ref());
    let key = serve.worker_key.as_ref().or(document.worker_key.as_ref());
    let authorities = serve.worker_ca.as_ref().or(document.worker_ca.as_ref());
    let tls = match (certificate, key, authorities) {
        (None, None, None) => None,
        _ if urls.is_empty() => {
            return Err(Exit::usage("--worker-cert, --worker-key and --worker-ca require --worker"));
        }
        (Some(certificate), Some(key), Some(_)) => Some(certificates(certificate, key, authorities)?),
        _ => return Err(Exit::usage("--worker-cert, --worker-key and --worker-ca require each other")),
    };
    if urls.is_empty() {
        return Ok(None);
    }
    let spec = WorkersSpec {
        urls: urls.clone(),
        tls,
        insecure: arguments.insecure || document.insecure.unwrap_or_default(),
        partition_bytes: document.worker_partition_bytes.unwrap_or(WorkersSpec::PARTITION_BYTES),
    };
    Ok(Some(Workers::start(spec).await?))
}

/// The settings of new sessions: those of the file, then those of the command line.
pub(crate) fn settings(file: &BTreeMap<String, String>, given: &[String]) -> Result<SessionSettings, Exit> {
    let mut settings = SessionSettings::default();
    let file = file.iter().map(|(key, value)| Ok((key.clone(), value.as_str())));
    for setting in file.chain(given.iter().map(|setting| key_and_value(setting))) {
        let (key, value) = setting?;
        let key = key.strip_prefix("savedsearch.").unwrap_or(&key);
        settings.set(key, value).map_err(|error| Exit::usage(describe(&error)))?;
    }
    Ok(settings)
}

/// Lines on stderr. Spans add nothing to them: a line names its query itself.
pub(crate) fn log(arguments: &LogArguments, filter: &str) -> Result<Receiver, Exit> {
    let filter = EnvFilter::try_new(filter).map_err(|error| Exit::usage(format!("--log: {error}")))?;
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
