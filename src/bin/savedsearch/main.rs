//! The command line of `savedsearch`: arguments and wiring.
#![expect(clippy::print_stderr, reason = "notes and errors go to stderr")]

mod connect;
mod help;
mod profiles;
mod serve;

use std::io::{self, IsTerminal, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell as CommandShell;
use datafusion_saved_search::CATALOG;
use datafusion_saved_search::error::{describe, one_line};
use datafusion_saved_search::shell::{Display, Failure, Format, Mistake, Output, Shell, interact};
use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, Fault, Preset, RateLimit, Settings};
use datafusion_saved_search::{Clock, ErrorKind, catalog, session};
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::connect::{Connected, connect};
use self::serve::ServeArguments;

/// SQL over a saved-search analytics service (V4)
///
/// Without a base URL every command runs on demo data, served by a simulator inside the process.
#[derive(Debug, Parser)]
#[command(name = "savedsearch", version, after_help = help::EXAMPLES)]
struct Arguments {
    /// Address of the service, ending with v4 [env: SAVEDSEARCH_BASE_URL]
    #[arg(long, value_name = "URL", global = true)]
    base_url: Option<String>,
    /// File with the API key; otherwise it is read from the variable SAVEDSEARCH_API_KEY
    #[arg(long, value_name = "FILE", global = true)]
    api_key_file: Option<PathBuf>,
    /// Profile of the service, or the name of a built-in one: v4, flags, pages or names [env: SAVEDSEARCH_PROFILE]
    #[arg(long, value_name = "FILE", global = true)]
    profile: Option<PathBuf>,
    /// File that names connections, each of which becomes a catalog [env: SAVEDSEARCH_CONFIG]
    #[arg(long, value_name = "FILE", global = true, conflicts_with_all = ["base_url", "api_key_file", "profile"])]
    config: Option<PathBuf>,
    /// Connection of the file that queries are about where they name none
    #[arg(long, value_name = "NAME", global = true)]
    connection: Option<String>,
    /// Lets keys and passwords travel in clear text beyond this machine: to an http address, and to `serve` without TLS
    #[arg(long, global = true, env = "SAVEDSEARCH_INSECURE")]
    insecure: bool,
    /// Writes what is asked and answered into this new folder, without the key
    #[arg(long, value_name = "DIR", global = true)]
    record: Option<PathBuf>,
    /// Answers from what was recorded into this folder, without a network
    #[arg(long, value_name = "DIR", global = true, conflicts_with_all = ["base_url", "config", "record"])]
    replay: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Sql(SqlArguments),
    Serve(Box<ServeArguments>),
    Probe(ProbeArguments),
    #[command(subcommand)]
    Profile(ProfileCommand),
    Simulate(SimulateArguments),
    /// Prints a script that completes commands and options in a shell
    #[command(after_help = "Examples:
  savedsearch completions bash > ~/.local/share/bash-completion/completions/savedsearch
  savedsearch completions zsh > \"${fpath[1]}/_savedsearch\"
  savedsearch completions fish > ~/.config/fish/completions/savedsearch.fish")]
    Completions {
        /// The shell
        shell: CommandShell,
    },
    /// Prints the manual page of the program, or of a command
    #[command(after_help = "Examples:
  savedsearch man | man -l -
  savedsearch man sql > savedsearch-sql.1")]
    Man {
        /// The command
        command: Option<String>,
    },
}

/// Finds out how a service speaks, and writes a profile of it
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It only reads, and asks --max-calls times at most. The report, with what could not be told, goes to stderr.
It exits with 0 where the profile can be used, and with 3 where something that it needs could not be told.

Examples:
  SAVEDSEARCH_API_KEY=… savedsearch --base-url https://api.example.com/v4 probe -o mine.toml
  savedsearch --base-url https://api.example.com/v4 probe --resume mine.toml -o better.toml
  savedsearch --base-url https://api.example.com/v4 profile check mine.toml
  savedsearch --base-url https://api.example.com/v4 --profile mine.toml sql"
)]
struct ProbeArguments {
    /// File for the profile, instead of stdout
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file
    #[arg(long, requires = "output")]
    force: bool,
    /// Profile to go on from: what rests on a manual there (`evidence = "documented"`) is kept and tried first
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Calls that may be made
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..))]
    max_calls: u64,
}

/// Shows and checks profiles
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  savedsearch profile show v4 > mine.toml
  savedsearch profile check mine.toml
  savedsearch --base-url https://api.example.com/v4 profile check mine.toml
  savedsearch profile schema > profile.schema.json")]
enum ProfileCommand {
    /// Prints a built-in profile, or the one that --profile names
    Show {
        /// v4, flags, pages or names
        name: Option<String>,
    },
    /// Checks a profile: by itself, and with a base URL by some calls to the service, the mentions of two days among them
    Check {
        /// The profile
        file: PathBuf,
    },
    /// Prints the JSON Schema of profiles, for editors
    Schema,
}

/// Runs SQL and prints the results; without -c or -f a shell, in which \? lists what can be typed
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  savedsearch sql -c \"SELECT published_at, source, title FROM mentions ORDER BY published_at DESC LIMIT 10\"
  savedsearch sql --estimate -c \"SELECT id FROM mentions WHERE language = 'de' AND duration = '30d'\"
  savedsearch sql -c \"EXPLAIN SELECT count(*) FROM mentions WHERE language = 'de'\"
  savedsearch sql --format parquet -o week.parquet -c \"SELECT * FROM mentions WHERE aid = '183772'\"
  savedsearch sql --format chart -c \"SELECT source, count(*) AS n FROM mentions WHERE aid = '183772' GROUP BY source ORDER BY n DESC\"
  savedsearch sql --set max_requests=20 --format markdown -f report.sql

Exit status: 0 all went well, 1 a query or the service failed, 2 the command line was wrong.")]
struct SqlArguments {
    /// Statements to run; may be given several times
    #[arg(short = 'c', long = "command", value_name = "SQL", allow_hyphen_values = true)]
    command: Vec<String>,
    /// File with statements to run, after those of -c
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Format of the results: table, csv, tsv, json, ndjson, markdown, arrow or parquet; and of a time or a category with
    /// numbers: chart, svg or png
    #[arg(long, value_name = "FORMAT", default_value = "table", hide_possible_values = true, value_parser = formats())]
    format: Format,
    /// File for the results, instead of stdout; it appears only when they are whole
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Prints what the statements would cost, without a request, instead of running them
    #[arg(long)]
    estimate: bool,
    /// Setting of the session: max_requests=50 for savedsearch.max_requests, datafusion.execution.target_partitions=1
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Serves the V4 API from a simulated corpus, for trying things out and for tests
#[derive(Debug, clap::Args)]
#[command(after_help = "Keys: demo-key-comms reads the first team's saved searches, demo-key-research the other's.

Examples:
  savedsearch simulate --listen 127.0.0.1:8080 --mentions 100000
  SAVEDSEARCH_API_KEY=demo-key-comms savedsearch --base-url http://127.0.0.1:8080/v4 sql
  savedsearch simulate --fault 429:retry-after=2@3-5 --fault truncated@10% --fault delete:at=start@2-", after_long_help = fault_help())]
struct SimulateArguments {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Equal seeds give equal corpora, as of an equal --now
    #[arg(long, value_name = "N", default_value_t = DEMO_SEED)]
    seed: u64,
    /// Saved searches of the first team
    #[arg(long, value_name = "N", default_value_t = DEMO_SEARCHES, value_parser = at_least_one)]
    searches: usize,
    /// Mentions of the first team's saved searches together
    #[arg(long, value_name = "N", default_value_t = DEMO_MENTIONS)]
    mentions: usize,
    /// The instant at which the service's clock stands still (RFC 3339); otherwise it runs
    #[arg(long, value_name = "INSTANT")]
    now: Option<DateTime<Utc>>,
    /// Serves this corpus instead: newline-delimited records with their aid, gzipped or not
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "searches", "mentions"])]
    data: Option<PathBuf>,
    /// Requests allowed to each key in a span of seconds
    #[arg(long, value_name = "REQUESTS/SECONDS", value_parser = rate_limit)]
    rate_limit: Option<RateLimit>,
    /// Milliseconds before every answer
    #[arg(long, value_name = "MS", default_value_t = 0)]
    delay_ms: u64,
    /// Mentions in a page at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    largest_page: Option<u64>,
    /// Dialect to speak: v4, flags, pages or names; each has a profile of that name
    #[arg(long, value_name = "NAME", default_value_t)]
    preset: Preset,
    /// Order of mentions with equal keys
    #[arg(long, value_enum, default_value_t = TieOrder::Stable)]
    ties: TieOrder,
    /// Something that goes wrong, KIND[:NAME=VALUE,…][@WHEN], such as truncated@3 or 429:retry-after=2@5-8; may be given
    /// several times. --help lists the kinds
    #[arg(long = "fault", value_name = "FAULT")]
    faults: Vec<Fault>,
}

/// The kinds of faults, for the long help.
fn fault_help() -> String {
    let mut help = String::from(
        "Keys: demo-key-comms reads the first team's saved searches, demo-key-research the other's.\n\n\
         Faults, KIND[:NAME=VALUE,…][@WHEN]. WHEN is a request, counted from 1 (3), some of them (5-8, 5-), or a share of \
         them (10%);\nwithout it the fault always happens. aid=… restricts any of them to a saved search.\n",
    );
    for (name, takes, what) in simulator::KINDS {
        let takes = if takes.is_empty() { String::new() } else { format!("  [{takes}]") };
        help.push_str(&format!("  {name:<16} {what}{takes}\n"));
    }
    help.push_str(
        "\nExamples:\n  savedsearch simulate --listen 127.0.0.1:8080 --mentions 100000\n  \
         savedsearch simulate --fault 429:retry-after=2@3-5 --fault truncated@10% --fault delete:at=start@2-",
    );
    help
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum TieOrder {
    /// The same in every answer
    Stable,
    /// Another in every answer
    Unstable,
}

const DEMO_SEED: u64 = 1;
const DEMO_SEARCHES: usize = 12;
const DEMO_MENTIONS: usize = 20_000;

/// Bytes of a thread's stack, which are taken as they are used.
const STACK: usize = 64 << 20;
/// Exit status for a failed query or service.
const FAILED: u8 = 1;
/// Exit status for a wrong command line.
const USAGE: u8 = 2;
/// Exit status of a profile that was written with holes.
const HOLES: u8 = 3;

/// An exit status and the line that explains it.
struct Exit(u8, Option<String>);

impl Exit {
    fn usage(line: impl ToString) -> Self {
        Self(USAGE, Some(line.to_string()))
    }
}

impl From<datafusion_saved_search::Error> for Exit {
    fn from(error: datafusion_saved_search::Error) -> Self {
        let status = match error.kind() {
            ErrorKind::Config | ErrorKind::Profile | ErrorKind::Unsupported => USAGE,
            _ => FAILED,
        };
        Self(status, Some(error.to_string()))
    }
}

impl From<Failure> for Exit {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Query(Mistake { line, .. }) => Self(FAILED, Some(line)),
            Failure::Cancelled => Self(FAILED, Some("cancelled".into())),
            Failure::ReaderGone => Self(0, None),
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Expressions are walked by recursion, and what a server is asked may be nested deeply.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start: {error}");
            return ExitCode::from(FAILED);
        }
    };
    let result = runtime.block_on(async {
        match arguments.command {
            None => help::greet(),
            Some(Command::Sql(ref sql)) => Box::pin(run_sql(&arguments, sql)).await,
            Some(Command::Serve(ref serve)) => Box::pin(serve::run(&arguments, serve)).await,
            Some(Command::Probe(ref probe)) => Box::pin(profiles::probe(&arguments, probe)).await,
            Some(Command::Profile(ref command)) => Box::pin(profiles::run(&arguments, command)).await,
            Some(Command::Simulate(simulate)) => Box::pin(run_simulate(simulate)).await,
            Some(Command::Completions { shell }) => help::completions(shell),
            Some(Command::Man { command }) => help::manual(command.as_deref()),
        }
    });
    // A cancelled query may be deep in a computation; nobody waits for it.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Exit(status, line)) => {
            if let Some(line) = line {
                eprintln!("error: {}", one_line(&line));
            }
            ExitCode::from(status)
        }
    }
}

async fn run_sql(arguments: &Arguments, sql: &SqlArguments) -> Result<(), Exit> {
    let Connected { connection, others, demo: _demo } = connect(arguments).await?;
    let context = session(&connection).map_err(|error| Exit::usage(describe(&error)))?;
    for (name, other) in &others {
        // The default one has its catalog already, and views are the same under both names.
        let own = context.catalog(CATALOG).filter(|_| Arc::ptr_eq(other, &connection));
        let catalog = own.map_or_else(|| catalog(other), Ok).map_err(|error| Exit::usage(describe(&error)))?;
        context.register_catalog(name, catalog);
    }
    for setting in &sql.set {
        let (key, value) =
            setting.split_once('=').ok_or_else(|| Exit::usage(format!("--set takes KEY=VALUE, found `{setting}`")))?;
        let key = if key.contains('.') { key.to_owned() } else { format!("savedsearch.{key}") };
        let state = context.state_ref();
        let set = state.write().config_mut().options_mut().set(&key, value);
        set.map_err(|error| Exit::usage(describe(&error)))?;
    }
    let mut shell = Shell::new(context, connection).knowing(others).estimating(sql.estimate);
    let mut texts = sql.command.clone();
    if let Some(file) = &sql.file {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Exit::usage(format!("cannot read {}: {error}", file.display())))?;
        texts.push(text);
    }
    if texts.is_empty() && io::stdin().is_terminal() {
        if sql.output.is_some() {
            return Err(Exit::usage("-o goes with -c or -f"));
        }
        return Ok(interact(shell, sql.format).await?);
    }
    if texts.is_empty() {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(|error| Exit::usage(format!("cannot read stdin: {error}")))?;
        texts.push(text);
    }
    let output = match &sql.output {
        Some(path) => Output::file(sql.format, path)
            .map_err(|error| Exit::usage(format!("cannot write {}: {error}", path.display()))),
        // On a terminal tables fit it, and all rows are shown.
        None => Output::stdout(sql.format)
            .map(|output| {
                output.displaying(Display { rows: 0, pager: false, wraps: sql.estimate, ..Display::default() })
            })
            .map_err(Exit::usage),
    };
    let mut output = output?;
    for text in &texts {
        shell.run(text, &mut output).await.inspect_err(show_place)?;
    }
    output.close().map_err(Failure::from)?;
    Ok(())
}

/// Where in the statement it is, for somebody who sits before it; the line itself comes last.
fn show_place(failure: &Failure) {
    if let Failure::Query(Mistake { marked: Some(lines), .. }) = failure
        && io::stderr().is_terminal()
    {
        lines.iter().for_each(|line| eprintln!("{line}"));
    }
}

async fn run_simulate(arguments: SimulateArguments) -> Result<(), Exit> {
    let SimulateArguments {
        listen,
        seed,
        searches,
        mentions,
        now,
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
    let running = simulator::start(listen, corpus.into(), settings)
        .await
        .map_err(|error| Exit::usage(format!("cannot listen on {listen}: {error}")))?;
    // Before the line that invites them.
    let mut ending = Ending::listen()?;
    eprintln!("listening on {}", running.address());
    ending.wait().await;
    running.shut_down().await.map_err(|error| Exit(FAILED, Some(error.to_string())))
}

/// The signals that end a server.
struct Ending {
    terminate: Signal,
    interrupt: Signal,
    /// The terminal has gone, or an operator asks for an end: there is nothing that could be read anew.
    hang_up: Signal,
}

impl Ending {
    fn listen() -> Result<Self, Exit> {
        let failed = |error: io::Error| Exit(FAILED, Some(format!("cannot wait for signals: {error}")));
        let terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        Ok(Self { terminate, interrupt, hang_up: signal(SignalKind::hangup()).map_err(failed)? })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}

fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::NAMES).try_map(|name| name.parse::<Format>())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "expected a whole number from 1".to_owned())
}

fn rate_limit(text: &str) -> Result<RateLimit, String> {
    let parsed = text.split_once('/').and_then(|(requests, seconds)| {
        let (requests, seconds): (u32, u64) = (requests.parse().ok()?, seconds.parse().ok()?);
        let window = Duration::from_secs(seconds);
        (requests > 0 && seconds > 0).then_some(RateLimit { requests, window })
    });
    parsed.ok_or_else(|| "expected REQUESTS/SECONDS, such as 30/600".to_owned())
}
