//! Command `ui`: the page, alone.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ArgMatches;
use clap::parser::ValueSource;
use datafusion_saved_search::ErrorKind;
use datafusion_saved_search::host::{HostSpec, ServeDocument};
use datafusion_saved_search::ui::{PageSpec, serve};
use tracing::Level;

use crate::access::{
    Access, AccessArguments, Reloading, check_distinct, check_services, services, warn, warn_of_expiry,
    warn_of_exposed, warn_of_unwritable,
};
use crate::connect::{Stores, serve_document};
use crate::serve::{LogArguments, log, settings};
use crate::stderr::tell;
use crate::telemetry::Telemetry;
use crate::{Arguments, Ending, Exit, memory};

/// Serve a web page for queries, charts and dashboards
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Open the URL that is printed. Without --auth, it contains a secret token; with --auth users, people
log in. DIR holds dashboards: files *.toml with a title, queries and their charts.
Users, TLS and limits are also read from the [serve] table of the configuration file.

Examples:
  savedsearch ui
  savedsearch ui dashboards
  savedsearch --base-url https://api.example.com/v4 ui --set max_requests=100
  savedsearch --base-url https://api.example.com/v4 ui --listen 0.0.0.0:8484 \\
      --auth users --users-file users.toml --tls-cert server.pem --tls-key server.key"
)]
pub(crate) struct UiArguments {
    /// Folder of dashboards
    #[arg(value_name = "DIR")]
    dashboards: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8484")]
    listen: SocketAddr,
    #[command(flatten)]
    access: AccessArguments,
    /// Setting of queries, such as freshness=15m; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    log: LogArguments,
}

/// Serves the page until a signal shuts it down.
pub(crate) async fn run(arguments: &Arguments, ui: &UiArguments, matches: &ArgMatches) -> Result<(), Exit> {
    memory::count();
    ui.log.begin();
    let document = serve_document(arguments)?;
    // A line for each query would hide the URL from the person at the terminal.
    let given = matches.subcommand_matches("ui").and_then(|matches| matches.value_source("filter"));
    let filter = if given == Some(ValueSource::DefaultValue) { "warn" } else { ui.log.filter() };
    let telemetry = Telemetry::start(Some(log(&ui.log, filter)?))?;
    let served = Box::pin(listen(arguments, ui, document)).await;
    telemetry.end().await;
    served
}

async fn listen(arguments: &Arguments, ui: &UiArguments, document: ServeDocument) -> Result<(), Exit> {
    let limits = ui.access.limits(document.limits.clone());
    let settings = settings(&document.settings, &ui.set)?;
    // Before the line that announces the server.
    let ending = Ending::of_server()?;
    let access = ui.access.read(arguments, &document, Stores::All).await?;
    warn_of_exposed(&access.secret_files);
    warn_of_expiry(access.tls.as_ref());
    warn_of_unwritable(&access.upstream);
    let Access { upstream, demo, auth, tls, insecure, operations, secret_files, .. } = access;
    check_distinct(&[("--listen", Some(ui.listen)), ("--operations", operations)])?;
    let mut checks = check_services(&services(&upstream, None), warn);
    if demo.is_some() {
        // The list of the demo data takes no time, and names the saved search of the page's first query.
        checks.join_next().await;
    }
    let (services, checks) = (services(&upstream, demo.as_ref()), RefCell::new(checks));
    let page = PageSpec { listen: ui.listen, tls, insecure, dashboards: ui.dashboards.clone() };
    let alone = operations.is_none();
    let host = HostSpec { operations, limits, settings, ..HostSpec::new(auth, upstream) };
    let server = serve(page, host).await.map_err(|error| match error.kind() {
        ErrorKind::Unavailable if alone => error.advice("choose another address with --listen"),
        _ => error,
    })?;
    tell(Level::INFO, "", &format!("page on {}", server.url()));
    let reloading =
        Reloading { server: server.reload(), access: &ui.access, document: &document, secret_files, services, checks };
    ending.of_only_front(server, reloading).await
}
