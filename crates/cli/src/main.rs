//! Command line of `savedsearch`: arguments and wiring.
#![expect(clippy::print_stderr, reason = "notes and errors go to stderr")]

mod access;
mod connect;
mod help;
mod mcp;
mod memory;
mod profiles;
mod serve;
mod stderr;
mod store;
mod telemetry;
mod ui;
mod worker;

use std::ffi::OsString;
use std::future::pending;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use chrono::{DateTime, Datelike, Utc};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell as CommandShell;
use datafusion_saved_search::config::{is_blank, variable};
use datafusion_saved_search::error::{Term, describe, one_line, use_words_of_program};
use datafusion_saved_search::host::{HttpServer, cannot_listen};
use datafusion_saved_search::memory::STACK;
use datafusion_saved_search::shell::{
    ChartForm, ChartOptions, CsvDialect, CsvOptions, Failure, Format, Mistake, Output, OutputOptions, Script, Shell,
    interact, run_scripts,
};
use datafusion_saved_search::simulator::{
    self, Corpus, CorpusSpec, DEMO_MENTIONS, DEMO_SEARCHES, DEMO_SEED, Fault, Preset, RateLimit, Settings,
};
use datafusion_saved_search::{Clock, Connection, Error, ErrorKind, session, session_of};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;
use tracing::Level;

use self::access::{Reloading, mebibytes};
use self::connect::{Connected, connect};
use self::mcp::McpArguments;
use self::serve::ServeArguments;
use self::stderr::{tell, write_json};
use self::store::{StoreCommand, SyncArguments};
use self::telemetry::Telemetry;
use self::ui::UiArguments;
use self::worker::WorkerArguments;

/// SQL over a saved-search analytics service (V4)
///
/// Without a base URL or a configuration file, every command uses built-in demo data.
#[derive(Debug, Parser)]
#[command(name = "savedsearch", version, after_help = help::EXAMPLES, next_help_heading = "Global options")]
struct Arguments {
    /// Base URL of the service, ending in /v4 [env: SAVEDSEARCH_BASE_URL]
    #[arg(long, value_name = "URL", global = true)]
    base_url: Option<String>,
    /// File that contains the API key; otherwise the environment variable SAVEDSEARCH_API_KEY is used
    #[arg(long, value_name = "FILE", global = true)]
    api_key_file: Option<PathBuf>,
    /// Profile file, or the name of a built-in profile: v4, flags, pages or names [env: SAVEDSEARCH_PROFILE]
    #[arg(long, value_name = "FILE", global = true)]
    profile: Option<PathBuf>,
    /// Configuration file with named connections, each a catalog, or with [serve] alone [env: SAVEDSEARCH_CONFIG]
    /// [default: savedsearch/savedsearch.toml in the user's configuration folder, if it exists]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Connection that unqualified table names belong to
    #[arg(long, value_name = "NAME", global = true)]
    connection: Option<String>,
    /// Folder of the store, which keeps the mentions that queries read, or an address: s3://BUCKET/PREFIX, gs:// or az://
    /// [env: SAVEDSEARCH_STORE]
    #[arg(long, value_name = "DIR", global = true)]
    store: Option<PathBuf>,
    /// Catalog of the store in PostgreSQL, for stores of several machines [env: SAVEDSEARCH_CATALOG] [password: PGPASSWORD]
    #[arg(long, value_name = "URL", global = true)]
    catalog: Option<String>,
    /// Allow sending keys and passwords in clear text over the network: http URLs, and servers without TLS
    #[arg(long, global = true, env = "SAVEDSEARCH_INSECURE")]
    insecure: bool,
    /// Record requests and responses in this new folder, without the key
    #[arg(long, value_name = "DIR", global = true)]
    record: Option<PathBuf>,
    /// Answer from the recording in this folder, without a network
    #[arg(long, value_name = "DIR", global = true, conflicts_with_all = ["base_url", "config", "record"])]
    replay: Option<PathBuf>,
    /// Stop the clock of the demo data and of `simulate` at this instant (RFC 3339), for reproducible results
    #[arg(long, value_name = "INSTANT", global = true, value_parser = instant)]
    now: Option<DateTime<Utc>>,
    /// Print results, warnings and errors only
    #[arg(short = 'q', long, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Sql(SqlArguments),
    Ui(Box<UiArguments>),
    Serve(Box<ServeArguments>),
    Mcp(Box<McpArguments>),
    Worker(Box<WorkerArguments>),
    Sync(SyncArguments),
    #[command(subcommand)]
    Store(StoreCommand),
    Probe(ProbeArguments),
    #[command(subcommand)]
    Profile(ProfileCommand),
    Simulate(SimulateArguments),
    /// Print a completion script for a shell
    #[command(after_help = "Examples:
  savedsearch completions bash > ~/.local/share/bash-completion/completions/savedsearch
  savedsearch completions zsh > \"${fpath[1]}/_savedsearch\"
  savedsearch completions fish > ~/.config/fish/completions/savedsearch.fish")]
    Completions {
        /// Shell
        shell: CommandShell,
    },
    /// Print the manual page of the program or of a command
    #[command(after_help = "Examples:
  savedsearch man | man -l -
  savedsearch man sql > savedsearch-sql.1")]
    Man {
        /// Command
        command: Option<String>,
    },
}

/// Examine a service and write its profile
#[derive(Debug, clap::Args)]
#[command(after_help = "Sends read-only requests, at most --max-calls. The report on stderr lists what could not be
determined.

Exit status: 0 the profile is usable, 1 the service failed, 2 wrong command line,
3 required entries are missing.

Examples:
  SAVEDSEARCH_API_KEY=… savedsearch --base-url https://api.example.com/v4 probe -o mine.toml
  savedsearch probe -o mine.toml \\
    --example 'curl -H \"X-Auth: $SAVEDSEARCH_API_KEY\" https://api.example.com/v4/search?aid=7'
  savedsearch --base-url https://api.example.com/v4 probe --resume mine.toml -o better.toml
  savedsearch --base-url https://api.example.com/v4 profile check mine.toml
  savedsearch --base-url https://api.example.com/v4 --profile mine.toml sql")]
struct ProbeArguments {
    /// Write the profile to this file instead of stdout
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "output")]
    force: bool,
    /// Start from this profile: entries with `evidence = "documented"` are kept and tried first
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// A request that works: a `curl` command, a URL, a file with one of the two, or a HAR file; `-` is stdin. The probe tries
    /// its header, parameters and values first. Its key is never printed or written
    #[arg(long, value_name = "REQUEST")]
    example: Vec<String>,
    /// An OpenAPI document of the service, in JSON or YAML. The probe tries its parameters, values and limits, and its header of
    /// the key first
    #[arg(long, value_name = "FILE")]
    openapi: Option<PathBuf>,
    /// Something that you know: `dataSize one of 10,25,50`, `dataSize at most 50`, `withData=true`, or an entry of the
    /// profile in TOML such as `page.max = 50`
    #[arg(long, value_name = "FACT")]
    fact: Vec<String>,
    /// Infer the profile from the requests that `probe --record DIR` recorded, without sending any
    #[arg(long, value_name = "DIR", conflicts_with_all = ["base_url", "config", "connection", "record", "replay", "max_calls"])]
    from_recording: Option<PathBuf>,
    /// Maximum number of requests
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..))]
    max_calls: u64,
}

/// Show and check profiles
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  savedsearch profile show v4 > mine.toml
  savedsearch profile check mine.toml
  savedsearch --base-url https://api.example.com/v4 profile check mine.toml
  savedsearch profile schema > profile.schema.json")]
enum ProfileCommand {
    /// Print a built-in profile, or that of --profile
    Show {
        /// v4, flags, pages or names
        name: Option<String>,
    },
    /// Check a profile. With a base URL, also compare it with the service, which reads the mentions of two days
    Check {
        /// Profile file, or the name of a built-in profile
        file: PathBuf,
    },
    /// Print the JSON Schema of profiles, for editors
    Schema,
}

/// Run SQL statements, or start an interactive shell (without statements)
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  savedsearch sql \"SELECT published_at, title FROM mentions ORDER BY published_at DESC LIMIT 10\"
  savedsearch sql --estimate=ask -c \"SELECT id FROM mentions WHERE duration = '30d'\"
  savedsearch sql -c \"EXPLAIN SELECT count(*) FROM mentions WHERE language = 'de'\"
  savedsearch sql -o week.parquet -c \"SELECT * FROM mentions WHERE aid = '183772'\"
  savedsearch sql --format chart -c \"SELECT source, count(*) FROM mentions GROUP BY source\"
  savedsearch sql --set max_requests=20 --format markdown -f report.sql

Statements, -c and -f run in the order given. A result goes to stdout, or to one file with -o.

Exit status: 0 success, 1 a query or the service failed, 2 wrong command line,
128 + n ended by signal n (130: Ctrl-C).")]
struct SqlArguments {
    /// Statements to run, as with -c
    #[arg(value_name = "SQL")]
    statement: Option<String>,
    /// Statements and backslash commands to run; may be repeated
    #[arg(short = 'c', long = "command", value_name = "SQL", allow_hyphen_values = true)]
    command: Vec<String>,
    /// File with statements and backslash commands, - for stdin; may be repeated
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Format of results: table, csv, tsv, json, ndjson, markdown, arrow, parquet, xlsx; or chart, svg, png for a time or
    /// category column and numbers [default: from the extension of -o, else table]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, ignore_case = true, value_parser = formats())]
    format: Option<Format>,
    /// Write results to this file instead of stdout; the file appears once they are complete
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Size of svg and png charts in pixels [default: 800 wide, png twice that; the height of bars grows with their number]
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = chart_size)]
    chart_size: Option<(u32, u32)>,
    /// Title of charts, empty for none [default: from the names of the columns]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    chart_title: Option<String>,
    /// Form of charts
    #[arg(long, value_name = "FORM", default_value = "auto", hide_default_value = true, value_parser = forms())]
    chart_form: ChartForm,
    /// Stack the series of svg and png charts on each other: bars of categories, and areas over time. As --chart-form stacked
    #[arg(long, conflicts_with = "chart_form")]
    chart_stacked: bool,
    /// Dialect of csv files: standard, or excel for spreadsheets (a byte order mark, local times, long numbers as text). With
    /// --csv-separator ; excel writes a decimal comma
    #[arg(
        long,
        value_name = "DIALECT",
        default_value = "standard",
        hide_default_value = true,
        hide_possible_values = true,
        value_parser = dialects()
    )]
    csv_dialect: CsvDialect,
    /// Character between the values of csv files, such as ; or tab [default: a comma]
    #[arg(long, value_name = "CHARACTER", value_parser = CsvOptions::separator_of)]
    csv_separator: Option<u8>,
    /// Print the estimated requests of the statements instead of running them. For a better estimate, --estimate=ask may
    /// request the list, and an overview for each saved search
    #[arg(long, value_name = "BY", num_args = 0..=1, require_equals = true, default_missing_value = "known")]
    estimate: Option<String>,
    /// Variable that statements use as :name, :'name' (a string) or :"name" (a name); may be repeated
    #[arg(short = 'v', long = "variable", value_name = "NAME=VALUE")]
    variable: Vec<String>,
    /// Session setting, such as max_requests=50 (short for savedsearch.max_requests); may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Memory of statements, such as 512MiB or 4GiB. A statement that needs more ends with an error, and functions have
    /// the limits that `serve` sets [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = mebibytes)]
    memory: Option<usize>,
}

/// Serve the V4 API from simulated data, for trials and tests
#[derive(Debug, clap::Args)]
#[command(after_help = simulate_help(""), after_long_help = simulate_help(&fault_help()))]
struct SimulateArguments {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Seed of the data; equal seeds give equal data for an equal --now
    #[arg(long, value_name = "N", default_value_t = DEMO_SEED)]
    seed: u64,
    /// Number of saved searches of the first team
    #[arg(long, value_name = "N", default_value_t = DEMO_SEARCHES, value_parser = at_least_one)]
    searches: usize,
    /// Total number of mentions of the first team
    #[arg(long, value_name = "N", default_value_t = DEMO_MENTIONS)]
    mentions: usize,
    /// Serve the records of this file instead: one JSON object per line, each with an aid; may be gzipped
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "searches", "mentions"])]
    data: Option<PathBuf>,
    /// Rate limit per key
    #[arg(long, value_name = "REQUESTS/SECONDS", value_parser = rate_limit)]
    rate_limit: Option<RateLimit>,
    /// Delay before each response, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    delay_ms: u64,
    /// Maximum number of mentions per page
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    largest_page: Option<u64>,
    /// Dialect: v4, flags, pages or names; each has a built-in profile of the same name
    #[arg(long, value_name = "NAME", default_value_t)]
    preset: Preset,
    /// Order of mentions with equal sort keys
    #[arg(long, value_enum, default_value_t = TieOrder::Stable)]
    ties: TieOrder,
    /// Fault to inject, KIND[:NAME=VALUE,…][@WHEN], such as truncated@3 or 429:retry-after=2@5-8; may be repeated; --help
    /// lists the kinds
    #[arg(long = "fault", value_name = "FAULT")]
    faults: Vec<Fault>,
}

/// Help of `simulate` below its options, with `faults` between the keys and the examples.
fn simulate_help(faults: &str) -> String {
    format!(
        "Keys: demo-key-comms reads the saved searches of the first team, demo-key-research those of the
second.

{faults}Examples:
  savedsearch simulate --listen 127.0.0.1:8080 --mentions 100000
  SAVEDSEARCH_API_KEY=demo-key-comms savedsearch --base-url http://127.0.0.1:8080/v4 sql
  savedsearch simulate --fault 429:retry-after=2@3-5 --fault truncated@10%"
    )
}

/// All kinds of faults, a line each.
fn fault_help() -> String {
    let mut help = String::from(
        "Faults: KIND[:NAME=VALUE,…][@WHEN]. WHEN is a request number from 1 (3), a range (5-8, 5-) or a
share (10%). Without WHEN, the fault always occurs. aid=… restricts a fault to one saved search.\n",
    );
    for (name, takes, what) in simulator::KINDS {
        let takes = if takes.is_empty() { String::new() } else { format!("  [{takes}]") };
        help.push_str(&format!("  {name:<16} {what}{takes}\n"));
    }
    help.push('\n');
    help
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum TieOrder {
    /// Equal in all responses
    Stable,
    /// Different in each response
    Unstable,
}

/// Exit status of a failed query or service.
const FAILED: u8 = 1;
/// Exit status of a wrong command line.
const USAGE: u8 = 2;
/// Exit status of a probe that left required entries of the profile open.
const INCOMPLETE: u8 = 3;
/// Time that cancelled queries have to answer their clients after a second signal.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Added to the number of a signal for the exit status, as shells do.
const SIGNALLED: i32 = 128;

/// Exit status, and the line that explains it.
struct Exit(u8, Option<String>);

impl Exit {
    fn usage(line: impl ToString) -> Self {
        Self(USAGE, Some(line.to_string()))
    }
}

impl From<Error> for Exit {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::Config | ErrorKind::Profile | ErrorKind::Unsupported => USAGE,
            _ => FAILED,
        };
        Self(status, Some(error.line().worded(in_command)))
    }
}

/// A term in the words of a command. It has no session, so advice to change a setting is left out.
fn in_command(term: &Term) -> String {
    match term {
        Term::Change(_) => String::new(),
        other => other.to_string(),
    }
}

impl From<Failure> for Exit {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Query(Mistake { line, .. }) => Self(FAILED, Some(line)),
            Failure::Cancelled { signal, requests } => {
                let status = u8::try_from(SIGNALLED + signal).unwrap_or(FAILED);
                Self(status, Some(datafusion_saved_search::shell::cancelled(requests)))
            }
            Failure::ReaderGone => Self(0, None),
        }
    }
}

fn main() -> ExitCode {
    use_words_of_program();
    // Statements are planned recursively, which the first thread has too small a stack for.
    match std::thread::Builder::new().name("main".to_owned()).stack_size(STACK).spawn(run).map(JoinHandle::join) {
        Ok(Ok(status)) => status,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(error) => cannot_start(&error),
    }
}

fn cannot_start(error: &io::Error) -> ExitCode {
    eprintln!("error: cannot start: {error}");
    ExitCode::from(FAILED)
}

/// Adds a tip to the error for a statement without quotes, of whose words each is an argument, and for the port of a server.
fn with_tip(mut error: clap::Error) -> clap::Error {
    let is_word = matches!(
        error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(word)) if !word.starts_with('-')
    );
    let is_port = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if word == "--port");
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let is_of = |command: &str| usage.contains(&format!(" {command} "));
    let tip = if is_word && is_of("sql") {
        "put the statement in quotes: savedsearch sql \"SELECT … FROM …\""
    } else if is_port && ["ui", "serve", "mcp", "worker", "simulate"].into_iter().any(is_of) {
        "--listen takes an address with its port, such as --listen 127.0.0.1:8080"
    } else {
        return error;
    };
    if error.kind() == clap::error::ErrorKind::UnknownArgument {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Ends the program with a help text, or with an error of the command line, which is an object beside a log of JSON objects.
fn end_with(error: &clap::Error) -> ! {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let option = arguments.windows(2).any(|pair| pair[0] == "--log-format" && pair[1] == "json");
    let is_json = option
        || arguments.iter().any(|argument| argument == "--log-format=json")
        || variable("SAVEDSEARCH_LOG_FORMAT").is_some_and(|format| format == "json");
    if !is_json || !error.use_stderr() {
        error.exit();
    }
    write_json();
    let text = error.to_string();
    let line = text.split("\n\nUsage:").next().unwrap_or_default().trim_start_matches("error: ");
    tell(Level::ERROR, "", &one_line(&line.replace("\n\n  tip:", "; tip:")));
    exit(error.exit_code())
}

fn run() -> ExitCode {
    let command = without_excluded_variables(without_blank_variables(Arguments::command()));
    let matches = command.try_get_matches().unwrap_or_else(|error| end_with(&with_tip(error)));
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| end_with(&error));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return cannot_start(&error),
    };
    let result = runtime.block_on(async {
        match arguments.command {
            None => help::greet(),
            Some(Command::Sql(ref sql)) => Box::pin(run_traced_sql(&arguments, sql, &matches)).await,
            Some(Command::Ui(ref ui)) => Box::pin(ui::run(&arguments, ui, &matches)).await,
            Some(Command::Worker(ref worker)) => Box::pin(worker::run(&arguments, worker)).await,
            Some(Command::Mcp(ref mcp)) => Box::pin(mcp::run(&arguments, mcp, &matches)).await,
            Some(Command::Serve(ref serve)) => Box::pin(serve::run(&arguments, serve)).await,
            Some(Command::Sync(ref options)) => Box::pin(store::run_sync(&arguments, options)).await,
            Some(Command::Store(ref command)) => Box::pin(store::run(&arguments, command)).await,
            Some(Command::Probe(ref probe)) => Box::pin(profiles::probe(&arguments, probe)).await,
            Some(Command::Profile(ref command)) => Box::pin(profiles::run(&arguments, command)).await,
            Some(Command::Simulate(simulate)) => Box::pin(run_simulate(simulate, arguments.now)).await,
            Some(Command::Completions { shell }) => help::completions(shell),
            Some(Command::Man { command }) => help::manual(command.as_deref()),
        }
    });
    // A cancelled query may still be computing; it is not awaited.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Exit(status, line)) => {
            if let Some(line) = line {
                tell(Level::ERROR, "error: ", &one_line(&line));
            }
            ExitCode::from(status)
        }
    }
}

/// The command line, for which an empty variable counts as unset.
fn without_blank_variables(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| {
        let variable = argument.get_env().and_then(|name| name.to_str());
        match variable.is_some_and(is_blank) {
            true => argument.env(None::<&'static str>),
            false => argument,
        }
    });
    command.mut_subcommands(without_blank_variables)
}

/// The command line, for which an option that is given wins over the variable of an option that it excludes. Otherwise, the two would
/// be an error, as if both options were given.
fn without_excluded_variables(command: clap::Command) -> clap::Command {
    let is_on_new = |argument: OsString| {
        argument.to_str().is_some_and(|argument| argument == "--on-new" || argument.starts_with("--on-new="))
    };
    match std::env::args_os().any(is_on_new) {
        true => {
            command.mut_subcommand("sync", |sync| sync.mut_arg("webhook", |webhook| webhook.env(None::<&'static str>)))
        }
        false => command,
    }
}

async fn run_traced_sql(arguments: &Arguments, sql: &SqlArguments, matches: &ArgMatches) -> Result<(), Exit> {
    let telemetry = Telemetry::start(None)?;
    let result = Box::pin(run_sql(arguments, sql, matches)).await;
    telemetry.end().await;
    result
}

async fn run_sql(arguments: &Arguments, sql: &SqlArguments, matches: &ArgMatches) -> Result<(), Exit> {
    // Before anything is connected: a typing mistake in a file name must not wait for a service.
    let mut scripts = scripts(sql, matches).map_err(Exit::usage)?;
    let interactive = scripts.is_empty() && io::stdin().is_terminal();
    // `-` is stdout, as in other programs.
    let file = sql.output.as_ref().filter(|path| path.as_os_str() != "-");
    if interactive && file.is_some() {
        return Err(Exit::usage("-o requires a statement"));
    }
    let named = match (file, sql.format) {
        (Some(path), None) => Format::of_file(path).map_err(Exit::usage)?,
        _ => None,
    };
    let form = if sql.chart_stacked { ChartForm::Stacked } else { sql.chart_form };
    if let Some(format) = sql.format {
        form.check(format).map_err(Exit::usage)?;
    }
    let Connected { connection, others, demo: _demo } = connect(arguments).await?;
    let context = session_of(&connection, &others).map_err(|error| Exit::usage(describe(&error)))?;
    let estimate = sql.estimate.iter().map(|by| format!("estimate={by}"));
    for setting in estimate.chain(sql.set.iter().cloned()) {
        let (key, value) = key_and_value(&setting)?;
        let state = context.state_ref();
        let set = state.write().config_mut().options_mut().set(&key, value);
        set.map_err(|error| Exit::usage(describe(&error)))?;
    }
    let shell = match sql.memory {
        Some(mib) => {
            memory::count();
            Shell::with_memory(&context, connection, mib).map_err(|error| Exit::usage(describe(&error)))?
        }
        None => Shell::new(context, connection),
    };
    let mut shell = shell.knowing(others).estimating(sql.estimate.is_some()).quiet(arguments.quiet);
    for variable in &sql.variable {
        let (name, value) = variable
            .split_once('=')
            .ok_or_else(|| Exit::usage(format!("--variable expects NAME=VALUE, found `{variable}`")))?;
        shell.set_variable(name, value).map_err(Exit::usage)?;
    }
    let title = sql.chart_title.clone();
    let charts = ChartOptions { size: sql.chart_size, title, form, ..ChartOptions::default() };
    let csv = CsvOptions { dialect: sql.csv_dialect, separator: sql.csv_separator };
    let options = OutputOptions { charts, csv };
    if interactive {
        return Ok(interact(shell, sql.format, options).await?);
    }
    if scripts.is_empty() {
        scripts.push(Script::stdin().map_err(Exit::usage)?);
    }
    let format = sql.format.or(named).unwrap_or(Format::Table);
    if !scripts.iter().any(Script::chooses_formats) {
        options.check(format).map_err(Exit::usage)?;
    }
    let output = match file {
        Some(path) => {
            Output::file(format, path).map_err(|error| Exit::usage(format!("cannot write {}: {error}", path.display())))
        }
        None => Output::stdout(format).map_err(Exit::usage),
    };
    run_scripts(shell, &scripts, sql.format, output?.with(options)).await.inspect_err(show_place)?;
    Ok(())
}

/// Prints the result of a query as a table on stdout.
async fn print_table(connection: Arc<Connection>, sql: &str) -> Result<(), Exit> {
    let context = session(&connection).map_err(|error| Exit::usage(describe(&error)))?;
    let shell = Shell::new(context, connection).quiet(true);
    let output = Output::stdout(Format::Table).map_err(Exit::usage)?;
    Ok(run_scripts(shell, &[Script::from(sql.to_owned())], None, output).await?)
}

/// The scripts of -c and -f, in the order given.
fn scripts(sql: &SqlArguments, matches: &ArgMatches) -> Result<Vec<Script>, String> {
    let matches = matches.subcommand_matches("sql");
    let places = |name: &str| matches.and_then(|matches| matches.indices_of(name)).into_iter().flatten();
    let is_named = |text: &String| {
        let extension = Path::new(text).extension();
        extension.is_some_and(|extension| extension.eq_ignore_ascii_case("sql")) && !text.contains(char::is_whitespace)
    };
    let files = sql.statement.iter().filter(|text| is_named(text) || Path::new(text).is_file());
    if let Some(file) = files.chain(sql.command.iter().filter(|text| is_named(text))).next() {
        return Err(match Path::new(file).is_file() {
            true => format!("{file} is a file; run it with -f {file}"),
            false => format!("{file}: no such file; -f runs a file of statements"),
        });
    }
    let alone = places("statement").zip(sql.statement.iter().map(|text| Ok(Script::from(text.clone()))));
    let commands = places("command").zip(sql.command.iter().map(|text| Ok(Script::from(text.clone()))));
    let files = places("file").zip(sql.file.iter().map(|path| Script::read(path)));
    let mut scripts: Vec<_> = alone.chain(commands).chain(files).collect();
    scripts.sort_by_key(|(place, _)| *place);
    scripts.into_iter().map(|(_, script)| script).collect()
}

/// Prints the marked line of the statement for a person at the terminal; the message follows.
fn show_place(failure: &Failure) {
    if let Failure::Query(Mistake { marked: Some(lines), .. }) = failure
        && io::stderr().is_terminal()
    {
        lines.iter().for_each(|line| eprintln!("{line}"));
    }
}

async fn run_simulate(arguments: SimulateArguments, now: Option<DateTime<Utc>>) -> Result<(), Exit> {
    let SimulateArguments {
        listen,
        seed,
        searches,
        mentions,
        data,
        rate_limit,
        delay_ms,
        largest_page,
        preset,
        ties,
        mut faults,
    } = arguments;
    let clock = now.map_or_else(Clock::system, Clock::fixed);
    let corpus = match data {
        Some(path) => Corpus::load(&path).map_err(Exit::usage)?,
        None => Corpus::generate(CorpusSpec { seed, searches, mentions, now: clock.now() }),
    };
    if ties == TieOrder::Unstable {
        faults.push("ties".parse().map_err(Exit::usage)?);
    }
    let delay = Duration::from_millis(delay_ms);
    let settings = Settings { clock, delay, rate_limit, faults, seed, largest_page, preset };
    let running =
        simulator::start(listen, corpus.into(), settings).await.map_err(|error| cannot_listen(listen, &error))?;
    // Before the line that announces the server.
    let mut ending = Ending::listen()?;
    eprintln!("listening on {}", running.address());
    ending.wait().await;
    running.shut_down().await.map_err(|error| Exit(FAILED, Some(error.to_string())))
}

/// Signals that shut a server down.
struct Ending {
    terminate: Signal,
    interrupt: Signal,
    /// The terminal was closed, or an operator asks a server to reload.
    hang_up: Signal,
    /// Set if a hang-up asks a server to reload.
    reloads: bool,
    /// Set if the process began at a terminal.
    at_terminal: bool,
}

/// Signal to a server, by what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerSignal {
    End,
    Reload,
}

impl Ending {
    fn listen() -> Result<Self, Exit> {
        let failed = |error: io::Error| Exit(FAILED, Some(format!("cannot wait for signals: {error}")));
        let terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let (hang_up, at_terminal) = (signal(SignalKind::hangup()).map_err(failed)?, io::stderr().is_terminal());
        Ok(Self { terminate, interrupt, hang_up, reloads: false, at_terminal })
    }

    /// As [`listen`](Self::listen), for a server. A hang-up asks it to reload, unless its terminal was closed.
    fn of_server() -> Result<Self, Exit> {
        Ok(Self { reloads: true, ..Self::listen()? })
    }

    async fn next(&mut self) -> ServerSignal {
        tokio::select! {
            _ = self.interrupt.recv() => return ServerSignal::End,
            _ = self.terminate.recv() => return ServerSignal::End,
            _ = self.hang_up.recv() => {}
        }
        let gone = self.at_terminal && !io::stderr().is_terminal();
        if self.reloads && !gone { ServerSignal::Reload } else { ServerSignal::End }
    }

    /// Waits for a signal that ends the process.
    async fn wait(&mut self) {
        while self.next().await == ServerSignal::Reload {}
    }

    /// Announces a server, and waits for a signal, or for the failure of the server. Returns the reason for which a server that
    /// still answers has to end.
    async fn end_or_failure(
        &mut self,
        address: SocketAddr,
        operations: Option<SocketAddr>,
        failed: impl Future<Output = Error>,
        worn_out: impl Future<Output = Error>,
        reload: impl AsyncFn(),
    ) -> Result<Option<Error>, Exit> {
        if let Some(operations) = operations {
            tell(Level::INFO, "", &format!("health and metrics on {operations}"));
        }
        tell(Level::INFO, "", &format!("listening on {address}"));
        let (mut failed, mut worn_out) = (pin!(failed), pin!(worn_out));
        loop {
            tokio::select! {
                asked = self.next() => match asked {
                    ServerSignal::End => return Ok(None),
                    ServerSignal::Reload => reload().await,
                },
                error = &mut worn_out => {
                    tracing::error!(reason = %error, "the server has to be restarted");
                    return Ok(Some(error));
                }
                error = &mut failed => return Err(error.into()),
            }
        }
    }

    /// Waits until a server has shut down, and fails with the reason if there is one. After a second signal, `cancel` ends its
    /// queries, and their clients are told; a third one ends it at once.
    async fn drained(
        &mut self,
        reason: Option<Error>,
        shut_down: impl Future<Output = Result<(), Error>>,
        cancel: impl FnOnce(),
    ) -> Result<(), Exit> {
        tracing::info!("shutting down: draining queries");
        let mut shut_down = pin!(shut_down);
        let cut = tokio::select! {
            ended = &mut shut_down => {
                ended?;
                false
            }
            () = self.wait() => true,
        };
        if cut {
            tracing::warn!("second signal: ending without waiting for queries");
            cancel();
            tokio::select! {
                ended = &mut shut_down => ended?,
                () = sleep(LAST_WORDS) => {}
                () = self.wait() => {}
            }
        }
        reason.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Announces a server that is the only front of its host, and waits for its end.
    async fn of_only_front(mut self, server: HttpServer, reloading: Reloading<'_>) -> Result<(), Exit> {
        let reload = async || reloading.run().await;
        let (address, operations, worn_out) = (server.address(), server.operations(), server.worn_out());
        let reason = self.end_or_failure(address, operations, pending(), worn_out, reload).await?;
        reloading.end().await;
        let host = Arc::clone(server.host());
        let shut_down = async {
            server.shut_down().await;
            Ok(())
        };
        self.drained(reason, shut_down, || host.cancel_queries()).await
    }
}

fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::NAMES).try_map(|name| name.parse::<Format>())
}

fn forms() -> impl TypedValueParser<Value = ChartForm> {
    let form = |(_, name, what): (ChartForm, &'static str, &'static str)| PossibleValue::new(name).help(what);
    PossibleValuesParser::new(ChartForm::ALL.map(form)).try_map(|name| name.parse::<ChartForm>())
}

fn dialects() -> impl TypedValueParser<Value = CsvDialect> {
    PossibleValuesParser::new(CsvDialect::ALL.map(|(_, name)| name)).try_map(|name| name.parse::<CsvDialect>())
}

fn chart_size(text: &str) -> Result<(u32, u32), String> {
    let side = |text: &str| text.parse::<u32>().ok().filter(|pixels| (200..=4000).contains(pixels));
    let size = text.split_once('x').and_then(|(width, height)| Some((side(width)?, side(height)?)));
    size.ok_or_else(|| "expected WIDTHxHEIGHT in pixels from 200 to 4000, such as 1200x600".to_owned())
}

fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    let at: Option<DateTime<Utc>> = text.parse().ok();
    // Dates of HTTP have four digits.
    at.filter(|at| (1971..=9999).contains(&at.year()))
        .ok_or_else(|| "expected an instant from 1971 to 9999, such as 2026-07-01T12:00:00Z".to_owned())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "expected an integer of at least 1".to_owned())
}

fn rate_limit(text: &str) -> Result<RateLimit, String> {
    let parsed = text.split_once('/').and_then(|(requests, seconds)| {
        let (requests, seconds): (u32, u64) = (requests.parse().ok()?, seconds.parse().ok()?);
        let window = Duration::from_secs(seconds);
        (requests > 0 && seconds > 0).then_some(RateLimit { requests, window })
    });
    parsed.ok_or_else(|| "expected REQUESTS/SECONDS, such as 30/600".to_owned())
}

/// Splits a setting. A key without a dot is one of `savedsearch.`.
fn key_and_value(setting: &str) -> Result<(String, &str), Exit> {
    let (key, value) =
        setting.split_once('=').ok_or_else(|| Exit::usage(format!("--set expects KEY=VALUE, found `{setting}`")))?;
    let key = if key.contains('.') { key.to_owned() } else { format!("savedsearch.{key}") };
    Ok((key, value))
}
