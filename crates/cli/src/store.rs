//! `savedsearch sync` and `savedsearch store`: fill a store, inspect it and maintain it.

mod alarms;
mod hand_over;
mod webhook;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::{NaiveDate, TimeDelta};
use clap::Subcommand;
use datafusion_saved_search::connections::{parse_days, parse_size};
use datafusion_saved_search::shell::Progress;
use datafusion_saved_search::{
    Connection, Erase, Erased, Error, ErrorKind, Export, Indexed, SyncOptions, SyncStep, Synced, has_store, sync,
    verify_counts,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tracing::Level;

use self::alarms::Alarms;
use self::hand_over::{HandOver, Handed};
use self::webhook::Sending;
use crate::connect::{Connected, SyncSettings, connect, sync_settings};
use crate::stderr::tell;
use crate::{Arguments, Exit, FAILED, SIGNALLED, in_command};

/// Days that are read if no first day is given.
const USUAL: i64 = 30;

/// Fill the store with mentions, and verify stored days
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Reads the days missing from the store, one month of each saved search at a time. Then one request
for each saved search compares the counts of all other days. Days with another count are read again.
Each step is stored when it is complete. If you stop the command, the next run continues there.

--on-new hands each mention that is new in the store to a command, and --webhook sends it to a URL,
at least once. If that fails, or this program is stopped, the next run hands the same mentions over
again. In the first run, these are all that are read.

Watch rules of the connection, such as when = \"count > 3 * weekday_mean\", are evaluated at the end.
A rule hands an alert to its command or webhook once for each day of a saved search.

Exit status: 0 the store is up to date, 1 the service, the command or the webhook failed, 2 wrong
command line, 4 --max-requests was reached, 128 + n ended by signal n (130: Ctrl-C).

Examples:
  savedsearch --store mentions sync --since 2026-01-01
  savedsearch --store mentions sync --since 90d
  savedsearch --store mentions sync --aid 183772 --aid 184889 --max-requests 200
  savedsearch --store mentions sync --watch 15m
  savedsearch --store mentions sync --watch 10m --on-new 'jq -r .title >> new.txt'
  savedsearch --store mentions sync --watch 10m --webhook https://hooks.example.com/mentions
  savedsearch --store mentions sync --retain 400d
  savedsearch --store mentions sync --since 400d --quota 20GB"
)]
pub(crate) struct SyncArguments {
    /// Saved search; may be repeated [default: those that a query without an aid reads]
    #[arg(long, value_name = "AID", value_parser = saved_search)]
    aid: Vec<String>,
    /// First day to store (UTC), as a date or an age, such as 7d [default: 30d]
    #[arg(long, value_name = "DATE", value_parser = first_day)]
    since: Option<FirstDay>,
    /// Synchronize repeatedly, with this pause in between, such as 30s, 15m or 1h
    #[arg(long, value_name = "EVERY", value_parser = every)]
    watch: Option<Duration>,
    /// Run COMMAND (by sh -c) after a synchronization, with new mentions on stdin, as NDJSON
    #[arg(long, value_name = "COMMAND", value_parser = shell_command)]
    on_new: Option<String>,
    /// Send new mentions to URL after a synchronization, by POST, as NDJSON; http beyond this machine needs --insecure
    #[arg(long, value_name = "URL", value_parser = webhook_url, conflicts_with = "on_new")]
    #[arg(env = "SAVEDSEARCH_WEBHOOK", hide_env_values = true)]
    webhook: Option<WebhookUrl>,
    /// Afterwards, remove days older than an age, such as 400d [default: `retain` of the connection]
    #[arg(long, value_name = "AGE", value_parser = age_in_days)]
    retain: Option<u32>,
    /// Afterwards, remove the oldest days of a store above a size, such as 20GB [default: `quota` of the connection]
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "oldest_first")]
    quota: Option<u64>,
    /// Read all days again, including those that the store has
    #[arg(long)]
    rescan: bool,
    /// Keep mentions that the service has deleted, in system.deleted_mentions
    #[arg(long)]
    keep_deleted: bool,
    /// Read the earliest days first, instead of the latest
    #[arg(long)]
    oldest_first: bool,
    /// Maximum number of requests; with --watch, of each synchronization
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_requests: Option<u64>,
}

/// Inspect and maintain the store
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  savedsearch --store mentions store status
  savedsearch --store mentions store forget --older-than 400d")]
pub(crate) enum StoreCommand {
    /// Print what is stored
    Status,
    /// Compare the catalog with the files; exit status 1 if they do not agree
    Verify {
        /// Also compare the daily counts with the service, with one request for each saved search
        #[arg(long)]
        service: bool,
    },
    /// Merge small files into larger ones, across saved searches and months, and remove files that are no longer used
    Compact,
    /// Index the words of mentions, so that match(text, …) reads less
    #[command(
        after_help = "Writes an index beside each file of mentions that has none, or whose index is damaged or old.
From then on, sync and compact index the files that they write. An index is removed with its file.
Queries return the same rows with and without an index.

Examples:
  savedsearch --store mentions store index
  savedsearch --store mentions store index --column title --column text --column snippet
  savedsearch --store mentions store index --off"
    )]
    Index {
        /// Column of texts; may be repeated [default: those named before, or else title and text]
        #[arg(long, value_name = "COLUMN", value_parser = column)]
        column: Vec<String>,
        /// Remove the indexes, and keep none
        #[arg(long, conflicts_with = "column")]
        off: bool,
    },
    /// Write stored mentions to Parquet files, for programs that do not read the catalog
    #[command(
        after_help = "Writes each stored mention once, in the order of saved search and time, in the columns of the
profile. FOLDER appears when it is complete. Days that were read with conditions are not exported,
and neither are deleted mentions that were kept. No request is sent.

Examples:
  savedsearch --store mentions store export exported
  savedsearch --store mentions store export --aid 183772 --since 2026-01-01 \\
      --before 2026-04-01 quarter"
    )]
    Export {
        /// Folder to create
        folder: PathBuf,
        /// Format of the files: parquet
        #[arg(long, value_name = "FORMAT", value_parser = export_format, default_value = "parquet")]
        format: ExportFormat,
        /// Saved search; may be repeated [default: all]
        #[arg(long, value_name = "AID", value_parser = saved_search)]
        aid: Vec<String>,
        /// First day (UTC) [default: the first one that is stored]
        #[arg(long, value_name = "DATE")]
        since: Option<NaiveDate>,
        /// Day after the last one (UTC) [default: the one after the last one that is stored]
        #[arg(long, value_name = "DATE")]
        before: Option<NaiveDate>,
    },
    /// Keep earlier versions of mentions for an age, so that mentions_as_of(…) reads them
    #[command(group = clap::ArgGroup::new("age").required(true))]
    #[command(
        after_help = "Files that are replaced from now on stay for the age, and need its space. Without this, they
stay for an hour. forget removes all versions.

Examples:
  savedsearch --store mentions store versions --keep 30d
  savedsearch --store mentions store versions --off"
    )]
    Versions {
        /// Age in days, such as 30d
        #[arg(long, value_name = "AGE", value_parser = age_in_days, group = "age")]
        keep: Option<u32>,
        /// Keep them for an hour
        #[arg(long, group = "age")]
        off: bool,
    },
    /// Erase mentions, so that nothing of them is left in the folder
    #[command(group = clap::ArgGroup::new("what").required(true))]
    #[command(
        after_help = "Removes mentions from files, earlier versions of files, kept deleted mentions and stored responses,
and prints what was removed. Mentions that the service still has are stored again when their day
is read.
Stop other processes that use the store first. Their queries may fail, and they may keep the
journal of the catalog.

Examples:
  savedsearch --store mentions store forget --older-than 400d
  savedsearch --store mentions store forget --author 8251"
    )]
    Forget {
        /// Days older than an age, such as 400d
        #[arg(long, value_name = "AGE", value_parser = age_in_days, group = "what")]
        older_than: Option<u32>,
        /// Days before a date (UTC)
        #[arg(long, value_name = "DATE", group = "what")]
        before: Option<NaiveDate>,
        /// Mentions of an author, by id, handle or name
        #[arg(long, value_name = "AUTHOR", group = "what")]
        author: Option<String>,
        /// The mention with this id
        #[arg(long, value_name = "ID", group = "what")]
        id: Option<String>,
        /// Saved search [default: all]
        #[arg(long, value_name = "AID", value_parser = saved_search)]
        aid: Option<String>,
    },
}

/// End of the line after a second signal, before the days of the step in progress were stored.
const NOT_AWAITED: &str = "the complete days of the step in progress were not waited for";

/// Exit status of a synchronization that has used up its requests.
const UNFINISHED: u8 = 4;

pub(crate) async fn run_sync(arguments: &Arguments, options: &SyncArguments) -> Result<(), Exit> {
    let Connected { connection, demo: _demo, .. } = connect(arguments).await?;
    let steps = AtomicUsize::new(0);
    let stopped = |kind, kept| stopped(kind, kept, steps.load(Ordering::Relaxed));
    let mut signals = Signals::listen()?;
    let configured = sync_settings(arguments)?;
    let settings = SyncSettings {
        retain: options.retain.or(configured.retain),
        quota: options.quota.or(configured.quota),
        ..configured
    };
    let alarms = Alarms::begin(&connection, &settings.watch, arguments.insecure).await?;
    let receiver = match (&options.on_new, &options.webhook) {
        (Some(command), _) => Some(Receiver::Command(HandOver::begin(&connection, command, &options.aid)?)),
        (None, Some(url)) => {
            Some(Receiver::Webhook(Sending::begin(&connection, &url.0, arguments.insecure, &options.aid)?))
        }
        (None, None) => None,
    };
    let mut first = true;
    loop {
        // A round that hands mentions over prints one line.
        let quiet = arguments.quiet || (receiver.is_some() && !first);
        first = false;
        let synced = tokio::select! {
            synced = once(&connection, quiet, options, &settings, &steps) => synced?,
            kind = signals.next() => {
                // What was read completely is stored. A second signal ends the wait.
                let kept = tokio::select! {
                    kept = connection.settle_store() => kept,
                    _ = signals.next() => vec![NOT_AWAITED.to_owned()],
                };
                return Err(stopped(kind, Some(kept)));
            }
        };
        let handed = match &receiver {
            None => Handed::default(),
            Some(receiver) => tokio::select! {
                handed = receiver.run() => handed?,
                kind = signals.next() => return Err(receiver.stopped(kind)),
            },
        };
        if !arguments.quiet {
            let removed = match synced.removed.days {
                0 => String::new(),
                _ => format!(" · removed because of their age: {}", synced.removed.mentions + synced.removed.deleted),
            };
            eprintln!("{synced}{removed}{}{handed}", of_quota(&synced));
        }
        print_notes(&synced);
        let undelivered = tokio::select! {
            undelivered = alarms.run(arguments.quiet) => undelivered?,
            kind = signals.next() => return Err(alarms.stopped(kind)),
        };
        match (options.watch, undelivered) {
            (None, Some(failure)) => return Err(Exit(FAILED, Some(handed.failure.unwrap_or(failure)))),
            (Some(_), Some(failure)) => tell(Level::WARN, "warning: ", &failure),
            (_, None) => {}
        }
        match (options.watch, handed.failure) {
            (None, Some(failure)) => return Err(Exit(FAILED, Some(failure))),
            (Some(_), Some(failure)) if arguments.quiet => tell(Level::WARN, "warning: ", &failure),
            _ => {}
        }
        let Some(every) = options.watch else {
            let unfinished = "--max-requests was reached; complete days are stored; run the command again to continue";
            return if synced.left == 0 { Ok(()) } else { Err(Exit(UNFINISHED, Some(unfinished.to_owned()))) };
        };
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            kind = signals.next() => return Err(stopped(kind, None)),
        }
    }
}

/// Prints what a synchronization could not do after all was stored.
fn print_notes(synced: &Synced) {
    let unmerged = ("files are not merged", &synced.unmerged);
    let unremoved = ("files that are no longer used stay", &synced.unremoved);
    for (note, reason) in [unmerged, unremoved, ("words are not indexed", &synced.unindexed)] {
        if let Some(reason) = reason {
            eprintln!("note: {note}: {}", reason.worded(in_command));
        }
    }
}

/// Exit of a synchronization that a signal has stopped after this many steps. `kept`: what is stored of the step in progress;
/// `None` if there was none.
fn stopped(kind: SignalKind, kept: Option<Vec<String>>, steps: usize) -> Exit {
    let status = u8::try_from(SIGNALLED + kind.as_raw_value()).unwrap_or(FAILED);
    let reading = kept.is_some();
    let kept = kept.unwrap_or_default().join("; ");
    let line = match (steps, reading) {
        (_, false) => "stopped; everything that was read is stored".to_owned(),
        (0, true) if kept.is_empty() => "stopped; no step was complete, so nothing was stored".to_owned(),
        (0, true) => format!("stopped; no step was complete; {kept}"),
        (1, true) if kept.is_empty() => "stopped; 1 step was stored, the step in progress was not".to_owned(),
        (1, true) => format!("stopped; 1 step was stored; {kept}"),
        (steps, true) if kept.is_empty() => format!("stopped; {steps} steps were stored, the step in progress was not"),
        (steps, true) => format!("stopped; {steps} steps were stored; {kept}"),
    };
    Exit(status, Some(line))
}

/// End of the line about a synchronization: what its quota has removed, and leaves out.
fn of_quota(synced: &Synced) -> String {
    let removed = match synced.over_quota.days {
        0 => String::new(),
        _ => format!(" · removed because of the quota: {}", synced.over_quota.mentions + synced.over_quota.deleted),
    };
    match synced.kept_from {
        Some(first) => format!("{removed} · first day within the quota: {first}"),
        None => removed,
    }
}

/// Receiver of new mentions.
enum Receiver {
    Command(HandOver),
    Webhook(Sending),
}

impl Receiver {
    /// Hands new mentions over, if there are any.
    async fn run(&self) -> Result<Handed, Exit> {
        match self {
            Self::Command(command) => command.run().await,
            Self::Webhook(webhook) => webhook.run().await,
        }
    }

    /// Ends it, because this process received a signal.
    fn stopped(&self, kind: SignalKind) -> Exit {
        let line = match self {
            Self::Command(command) => {
                command.stop();
                "stopped; the next run hands these mentions to the command again"
            }
            Self::Webhook(_) => "stopped; the next run sends the mentions that were not accepted yet",
        };
        Exit(u8::try_from(SIGNALLED + kind.as_raw_value()).unwrap_or(FAILED), Some(line.to_owned()))
    }
}

/// Signals that stop a synchronization.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Exit> {
        let listen =
            |kind| signal(kind).map_err(|error| Exit(FAILED, Some(format!("cannot wait for signals: {error}"))));
        let [interrupt, terminate] = [listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?];
        Ok(Self { interrupt, terminate, hang_up: listen(SignalKind::hangup())? })
    }

    /// Waits for the next signal.
    async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hang_up.recv() => SignalKind::hangup(),
        }
    }
}

async fn once(
    connection: &Arc<Connection>,
    quiet: bool,
    options: &SyncArguments,
    settings: &SyncSettings,
    steps: &AtomicUsize,
) -> Result<Synced, Exit> {
    let ago = |days: i64| (connection.now() - TimeDelta::days(days)).date_naive();
    let since = match options.since {
        Some(FirstDay::Date(date)) => date,
        Some(FirstDay::DaysAgo(days)) => ago(i64::from(days)),
        None => ago(USUAL),
    };
    let mut wanted = SyncOptions::since(since);
    wanted.aids.clone_from(&options.aid);
    wanted.rescan = options.rescan;
    wanted.keep_deleted = options.keep_deleted;
    wanted.oldest_first = options.oldest_first;
    wanted.max_requests = options.max_requests;
    wanted.retain = settings.retain;
    wanted.quota = settings.quota;
    let mut progress = Progress::of_queries(vec![Arc::clone(connection)], quiet);
    let mut done = 0;
    let report = |step: &SyncStep| {
        steps.fetch_add(1, Ordering::Relaxed);
        done += 1;
        progress.steps(done, step.left as u64);
        if !quiet {
            progress.line(step);
        }
        if step.left == 0 {
            let begun = Instant::now();
            progress = Progress::of(quiet, move || format!("merging small files · {} s", begun.elapsed().as_secs()));
        }
    };
    // An aid may contain a comma.
    let several = options.aid.iter().find(|aid| aid.contains(','));
    sync(connection, &wanted, report).await.map_err(|error| match several {
        Some(several) if error.kind() == ErrorKind::NotFound => {
            let each: Vec<String> = several.split(',').map(|aid| format!("--aid {}", aid.trim())).collect();
            error.advice(format!("repeat --aid for each saved search: {}", each.join(" "))).into()
        }
        _ => error.into(),
    })
}

pub(crate) async fn run(arguments: &Arguments, command: &StoreCommand) -> Result<(), Exit> {
    // Connecting would create one.
    if let Some((location, catalog)) = crate::connect::store_of(arguments)?
        && !has_store(&location, catalog.as_ref())?
    {
        return Err(Exit::usage(format!("{location}: no store in this folder; fill one with `savedsearch sync`")));
    }
    let Connected { connection, demo: _demo, .. } = connect(arguments).await?;
    match command {
        StoreCommand::Status => {
            connection.holdings()?;
            let sql = "SELECT * FROM system.store ORDER BY aid, filters";
            return crate::print_table(connection, sql).await;
        }
        StoreCommand::Verify { service } => return verify(connection, arguments.quiet, *service).await,
        StoreCommand::Compact => {
            let compacted = in_time(arguments.quiet, "merging files", move || connection.compact_store()).await?;
            eprintln!(
                "merged files: {} into {} ({:.1} MB) · deleted files: {}",
                compacted.merged,
                compacted.written,
                compacted.bytes as f64 / 1e6,
                compacted.removed
            );
        }
        StoreCommand::Index { column, off } => {
            let (columns, off) = (column.clone(), *off);
            let index = move || if off { connection.remove_indexes() } else { connection.index_store(&columns) };
            let Indexed { files, bytes, removed, .. } = in_time(arguments.quiet, "indexing words", index).await?;
            match off {
                true => eprintln!("removed indexes: {removed}"),
                false => eprintln!("indexed files: {files} ({:.1} MB)", bytes as f64 / 1e6),
            }
        }
        StoreCommand::Export { folder, format: ExportFormat::Parquet, aid, since, before } => {
            let mut what = Export::default();
            what.aids.clone_from(aid);
            (what.since, what.before) = (*since, *before);
            let target = folder.clone();
            let export = move || connection.export_store(&what, &target);
            let exported = in_time(arguments.quiet, "exporting mentions", export).await?;
            eprintln!(
                "exported mentions: {} · days of saved searches: {} · files: {} ({:.1} MB)",
                exported.mentions,
                exported.days,
                exported.files,
                exported.bytes as f64 / 1e6
            );
            if exported.conditional > 0 {
                eprintln!("not exported: {} days that were read with conditions", exported.conditional);
            }
        }
        StoreCommand::Versions { keep, off } => {
            let days = keep.filter(|_| !off).unwrap_or_default();
            blocking(move || connection.keep_versions(days)).await?;
            match days {
                0 => eprintln!("replaced files stay for an hour"),
                days => eprintln!("replaced files stay for {days} d"),
            }
        }
        StoreCommand::Forget { older_than, before, author, id, aid } => {
            let what = match (before, older_than, author, id) {
                (Some(date), ..) => Erase::Before(*date),
                (_, Some(age), ..) => Erase::Before((connection.now() - TimeDelta::days(i64::from(*age))).date_naive()),
                (_, _, Some(author), _) => Erase::Author(author.clone()),
                (_, _, _, Some(id)) => Erase::Id(id.clone()),
                (None, None, None, None) => {
                    return Err(Exit::usage(
                        "specify what to erase: --older-than, --before, --author or --id".to_owned(),
                    ));
                }
            };
            return erase(connection, arguments.quiet, what, aid.clone()).await;
        }
    }
    Ok(())
}

/// Erases mentions of a saved search, or of all, and tells how many there were.
async fn erase(connection: Arc<Connection>, quiet: bool, what: Erase, aid: Option<String>) -> Result<(), Exit> {
    let erase = move || connection.erase_stored(aid.as_deref(), &what);
    let Erased { mentions, deleted, days, rewritten, removed, .. } = in_time(quiet, "erasing mentions", erase).await?;
    eprintln!(
        "erased mentions: {mentions} · erased from system.deleted_mentions: {deleted} · changed days: {days} · rewritten files: \
         {rewritten} · removed files: {removed}"
    );
    Ok(())
}

/// Compares the catalog with the files, and the daily counts with the service if that is wanted.
async fn verify(connection: Arc<Connection>, quiet: bool, service: bool) -> Result<(), Exit> {
    let store = Arc::clone(&connection);
    let problems = in_time(quiet, "reading the files", move || store.verify_store()).await?;
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    let differing = if service {
        let _progress = Progress::of_queries(vec![Arc::clone(&connection)], quiet);
        verify_counts(&connection).await?
    } else {
        Vec::new()
    };
    differing.iter().for_each(|differing| eprintln!("{differing}"));
    let line = match (problems.len(), differing.len()) {
        (0, 0) => {
            eprintln!("no problems");
            return Ok(());
        }
        (0, differing) => format!("stored days that differ from the service: {differing}; `sync` reads them again"),
        (problems, _) => format!("problems: {problems}"),
    };
    Err(Exit(FAILED, Some(line)))
}

/// Does work on the files of a store, and shows its name and how long it takes.
async fn in_time<T: Send + 'static>(
    quiet: bool,
    name: &'static str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Exit> {
    let begun = Instant::now();
    let _progress = Progress::of(quiet, move || format!("{name} · {} s", begun.elapsed().as_secs()));
    blocking(work).await
}

/// Runs work that waits for files or processes on a thread for such work.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Exit> {
    match spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(Exit(FAILED, Some(format!("internal error: {error}")))),
    }
}

fn saved_search(text: &str) -> Result<String, String> {
    not_blank(text, "expected a saved search, such as 183772")
}

fn column(text: &str) -> Result<String, String> {
    not_blank(text, "expected a column of texts, such as text")
}

fn shell_command(text: &str) -> Result<String, String> {
    not_blank(text, "expected a command, such as 'jq -r .title >> new.txt'")
}

/// URL of a webhook, which may contain a secret.
#[derive(Clone)]
struct WebhookUrl(String);

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookUrl(…)")
    }
}

fn webhook_url(text: &str) -> Result<WebhookUrl, String> {
    not_blank(text, "expected a URL, such as https://hooks.example.com/mentions").map(WebhookUrl)
}

fn not_blank(text: &str, expected: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err(expected.to_owned()) } else { Ok(text.to_owned()) }
}

fn every(text: &str) -> Result<Duration, String> {
    let expected = "expected a number with a unit: 30s, 15m or 1h";
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or(expected)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return Err(expected.to_owned()),
    };
    let number: u32 = number.parse().map_err(|_| expected)?;
    if number == 0 {
        return Err(expected.to_owned());
    }
    Ok(Duration::from_secs(u64::from(number) * seconds))
}

/// Format of exported files.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ExportFormat {
    Parquet,
}

fn export_format(text: &str) -> Result<ExportFormat, String> {
    match text {
        "parquet" => Ok(ExportFormat::Parquet),
        "iceberg" | "delta" => Err("only parquet is supported; DuckDB and Spark write such tables from it".to_owned()),
        _ => Err("expected parquet".to_owned()),
    }
}

/// The first day to store.
#[derive(Debug, Clone, Copy)]
enum FirstDay {
    Date(NaiveDate),
    DaysAgo(u32),
}

fn first_day(text: &str) -> Result<FirstDay, String> {
    /// A century.
    const LONGEST: u32 = 36_525;
    let days = parse_days(text).filter(|days| *days <= LONGEST).map(FirstDay::DaysAgo);
    let date = || text.parse().map(FirstDay::Date).ok();
    days.or_else(date).ok_or_else(|| "expected a date, such as 2026-01-01, or a number of days, such as 30d".to_owned())
}

fn age_in_days(text: &str) -> Result<u32, String> {
    parse_days(text).ok_or_else(|| "expected a number of days, such as 400d".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| "expected a size, such as 500MB or 20GB".to_owned())
}

#[cfg(test)]
mod tests {
    use datafusion_saved_search::error::{Phrase, Setting};

    use super::*;

    #[test]
    fn commands_give_no_advice_about_sessions() {
        let advised = |advice: Phrase| Error::new(ErrorKind::Store, "cannot write a: no").advice(advice);
        let less = Phrase::from("free space") + Setting::Store.to("read").after(", or ");
        for setting in Setting::ALL {
            let error = advised(setting.to("x").then(" helps").into());
            assert_eq!(Exit::from(error).1.as_deref(), Some("cannot write a: no"));
        }
        assert_eq!(Exit::from(advised(less)).1.as_deref(), Some("cannot write a: no; free space"));
        let plain = "a; b, or SET savedsearch.c; d";
        assert_eq!(Exit::from(Error::new(ErrorKind::Query, plain)).1.as_deref(), Some(plain));
    }
}
