//! Command `mcp`: the tables as tools of an agent, over stdin and stdout or over HTTP.

use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use clap::parser::ValueSource;
use datafusion_saved_search::Connection;
use datafusion_saved_search::client::parse_base_url;
use datafusion_saved_search::host::HostSpec;
use datafusion_saved_search::mcp::{McpLimits, McpSpec, ProfileTools, StdioSpec, serve_http, serve_stdio};
use datafusion_saved_search::simulator::Running;
use tracing::Level;

use crate::access::{
    Access, AccessArguments, Reloading, check_distinct, check_services, services, warn, warn_of_expiry,
    warn_of_exposed, warn_of_unwritable,
};
use crate::connect::{Connected, Stores, Target, connect, serve_document, target};
use crate::serve::{LogArguments, log, settings};
use crate::stderr::tell;
use crate::telemetry::Telemetry;
use crate::{Arguments, Ending, Exit, memory};

/// Serve the tables to agents over the Model Context Protocol (MCP)
#[derive(Debug, clap::Args)]
#[command(after_help = "Without --listen, the client starts this program and speaks to it over stdin and stdout:
  {\"mcpServers\": {\"savedsearch\": {\"command\": \"savedsearch\", \"args\": [\"mcp\"]}}}
With --listen, users, TLS and limits are also read from the [serve] table of the configuration
file.

Examples:
  savedsearch mcp
  savedsearch --base-url https://api.example.com/v4 mcp --max-requests 50
  savedsearch mcp --listen 127.0.0.1:8090
  savedsearch --base-url https://api.example.com/v4 mcp --listen 0.0.0.0:8090 \\
      --auth users --users-file users.toml --tls-cert server.pem --tls-key server.key")]
pub(crate) struct McpArguments {
    /// Serve HTTP on this address, at /mcp; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Upper limit for the max_requests of a call
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    max_requests: u64,
    /// Upper limit for the max_rows of a call
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_rows: u32,
    /// Offer tools that examine the service and write its profile into this folder; not with --listen. All their calls
    /// together send at most --max-requests requests
    #[arg(long, value_name = "DIR", conflicts_with = "listen")]
    profiles: Option<PathBuf>,
    #[command(flatten)]
    access: AccessArguments,
    /// Setting of each query, such as freshness=15m; may be repeated [default of query_deadline: 60]
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    log: LogArguments,
}

/// Time limit of a query, in seconds, because clients give up a call after about a minute.
const DEADLINE: &str = "query_deadline=60";
/// Log filter for the protocol's implementation, which otherwise logs requests with their statements.
const QUIET: &str = "rmcp=warn";

/// Runs the server until its client disconnects, or a signal shuts it down.
pub(crate) async fn run(arguments: &Arguments, mcp: &McpArguments, matches: &ArgMatches) -> Result<(), Exit> {
    let given = |name| matches.subcommand_matches("mcp").and_then(|matches| matches.value_source(name));
    let asked = ["auth", "users_file", "tls_cert", "tls_key", "client_ca", "operations"];
    let asked = asked.into_iter().find(|name| given(name) == Some(ValueSource::CommandLine));
    if let (None, Some(option)) = (mcp.listen, asked) {
        let option = option.replace('_', "-");
        return Err(Exit::usage(format!(
            "--{option} requires --listen: over stdin and stdout, only the process that starts this program is served"
        )));
    }
    mcp.log.begin();
    // Over stdio the log is mixed with that of the client.
    let level = if mcp.listen.is_none() && given("filter") == Some(ValueSource::DefaultValue) {
        "warn"
    } else {
        mcp.log.filter()
    };
    let telemetry = Telemetry::start(Some(log(&mcp.log, &format!("{QUIET},{level}"))?))?;
    let served = Box::pin(serve(arguments, mcp)).await;
    telemetry.end().await;
    served
}

/// The tools for profiles, and the simulator behind them if they use demo data.
async fn profile_tools(
    arguments: &Arguments,
    folder: &Path,
    max_requests: u64,
) -> Result<(ProfileTools, Option<Running>), Exit> {
    if arguments.record.is_some() || arguments.replay.is_some() {
        return Err(Exit::usage("--profiles cannot be combined with --record or --replay"));
    }
    if !folder.is_dir() {
        return Err(Exit::usage(format!("--profiles {}: no such folder", folder.display())));
    }
    let Target { base_url, key, service, clock, demo, exchanges: _ } = target(arguments).await?;
    let at = parse_base_url(&base_url)?;
    let connect = {
        let key = key.clone();
        move |profile, service| {
            let builder = Connection::builder(base_url.clone(), key.clone()).profile(profile);
            builder.service(service).clock(clock.clone()).build()
        }
    };
    Ok((ProfileTools::new(folder.to_owned(), at, key, service, max_requests, connect), demo))
}

async fn serve(arguments: &Arguments, mcp: &McpArguments) -> Result<(), Exit> {
    memory::count();
    let document = serve_document(arguments)?;
    let deadline = [DEADLINE.to_owned()];
    let given: Vec<String> = match document.settings.keys().any(|key| key.ends_with("query_deadline")) {
        true => mcp.set.clone(),
        false => deadline.iter().chain(&mcp.set).cloned().collect(),
    };
    let settings = settings(&document.settings, &given)?;
    let of_server = mcp.access.limits(document.limits.clone());
    let limits = McpLimits {
        max_requests: mcp.max_requests,
        max_rows: mcp.max_rows.try_into().unwrap_or(usize::MAX),
        ..McpLimits::default()
    };
    // Before the line that announces the server.
    let mut ending = if mcp.listen.is_some() { Ending::of_server()? } else { Ending::listen()? };
    let Some(listen) = mcp.listen else {
        let Connected { connection, others, demo: _demo } = connect(arguments).await?;
        if io::stdin().is_terminal() && !arguments.quiet {
            let line = "waiting for a client on stdin; `savedsearch mcp --help` shows how to configure one";
            tell(Level::INFO, "note: ", line);
        }
        let upstream = datafusion_saved_search::host::Upstream::Own { connection, named: others };
        let profiles = match &mcp.profiles {
            Some(folder) => Some(profile_tools(arguments, folder, mcp.max_requests).await?),
            None => None,
        };
        let (profiles, _second) = profiles.unzip();
        let spec = StdioSpec { upstream, settings, limits: of_server, mcp: limits, profiles };
        return Ok(Box::pin(serve_stdio(spec, ending.wait())).await?);
    };
    let access = mcp.access.read(arguments, &document, Stores::All).await?;
    warn_of_exposed(&access.secret_files);
    warn_of_expiry(access.tls.as_ref());
    warn_of_unwritable(&access.upstream);
    let Access { upstream, demo, auth, tls, insecure, operations, secret_files, .. } = access;
    check_distinct(&[("--listen", Some(listen)), ("--operations", operations)])?;
    let services = services(&upstream, demo.as_ref());
    let checks = RefCell::new(check_services(&services, warn));
    let host = HostSpec { operations, limits: of_server, settings, ..HostSpec::new(auth, upstream) };
    let server = serve_http(McpSpec { listen, tls, insecure, mcp: limits, host }).await?;
    let reloading =
        Reloading { server: server.reload(), access: &mcp.access, document: &document, secret_files, services, checks };
    ending.of_only_front(server, reloading).await
}
