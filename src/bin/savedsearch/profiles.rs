//! The commands about profiles: found out, shown, checked, described.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::error::Result as DataFusionResult;
use datafusion::prelude::SessionContext;
use datafusion_saved_search::client::{Direct, HttpFailure, HttpRequest, HttpResponse, HttpService, parse_base_url};
use datafusion_saved_search::config::Environment;
use datafusion_saved_search::error::{describe, one_line};
use datafusion_saved_search::probe::{self, Probed};
use datafusion_saved_search::{Connection, ErrorKind, Profile, session};

use crate::connect::{Target, target};
use crate::help::print;
use crate::{Arguments, Exit, FAILED, HOLES, ProbeArguments, ProfileCommand};

/// `savedsearch probe`.
pub(crate) async fn probe(
    arguments: &Arguments,
    ProbeArguments { output, force, resume, max_calls }: &ProbeArguments,
) -> Result<(), Exit> {
    // Before calls are spent on what cannot be kept.
    if let Some(path) = output.as_ref().filter(|path| path.exists() && !force && resume.as_ref() != Some(path)) {
        let what = format!("{} exists: name another file, or overwrite it with --force", path.display());
        return Err(Exit::usage(what));
    }
    let known = match resume {
        Some(path) => {
            let text = std::fs::read_to_string(path);
            Some(text.map_err(|error| Exit::usage(format!("cannot read {}: {error}", path.display())))?)
        }
        None => None,
    };
    let Target { base_url, key, service, exchanges, clock, demo: _demo } = target(arguments).await?;
    let (at, asked) = (parse_base_url(&base_url)?, exchanges.over(Arc::new(Direct::new(Arc::clone(&service)))));
    let probed = match &known {
        Some(document) => probe::resume(asked, at, key.clone(), *max_calls, document).await?,
        None => probe::probe(asked, at, key.clone(), *max_calls).await?,
    };
    eprint!("{probed}");
    let left = max_calls.saturating_sub(probed.calls.len() as u64);
    let profile = Profile::parse(&probed.document, "the probed profile")?;
    let connection = Connection::builder(base_url, key).profile(profile).exchanges(exchanges).clock(clock);
    let connection = connection.service(Arc::new(Few { service, left: AtomicU64::new(left) })).build()?;
    let trials = tried(&connection, &probed, left).await?;
    let failed = trials.iter().filter(|(_, result)| result.is_err()).count();
    eprintln!("\nTried with the calls that were left:");
    if trials.is_empty() {
        eprintln!("  nothing, since none was left: `savedsearch profile check` does");
    }
    let mut document = probed.document.clone();
    for (what, result) in &trials {
        let (how, text) = match result {
            Ok(text) => ("seen", text),
            Err(text) => ("could not tell", text),
        };
        eprintln!("  {what:<16} {text}");
        document.push_str(&format!("\n# tried, {what}: {how}: {}", one_line(text)));
    }
    if !trials.is_empty() {
        document.push('\n');
    }
    match output {
        Some(path) => {
            let written = std::fs::write(path, &document);
            written.map_err(|error| Exit::usage(format!("cannot write {}: {error}", path.display())))?;
            eprintln!(
                "\nThe profile is in {}: read it, correct what you know better, and name it with --profile.",
                path.display()
            );
        }
        None => print(document.as_bytes())?,
    }
    match (probed.holes.as_slice(), failed) {
        ([], 0) => Ok(()),
        ([], _) => Err(Exit(HOLES, Some("the service does not answer as the profile says: see what was tried".into()))),
        (holes, _) => {
            let what = format!(
                "the profile has holes: set [{}] by your manual, mark them evidence = \"documented\", and go on with --resume",
                holes.join("], [")
            );
            Err(Exit(HOLES, Some(what)))
        }
    }
}

/// A service that is asked a few times more at most.
#[derive(Debug)]
struct Few {
    service: Arc<dyn HttpService>,
    left: AtomicU64,
}

#[async_trait]
impl HttpService for Few {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
        let spend = |left: u64| left.checked_sub(1);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend) {
            Ok(_) => self.service.call(request).await,
            Err(_) => {
                let message = "no call is left".to_owned();
                Err(HttpFailure { kind: ErrorKind::Budget, message, temporary: false })
            }
        }
    }
}

/// Asks for a mention and an overview with a probed profile, as far as calls are left: what came, or what went wrong.
async fn tried(
    connection: &Arc<Connection>,
    probed: &Probed,
    left: u64,
) -> Result<Vec<(&'static str, Result<String, String>)>, Exit> {
    let context = session(connection).map_err(|error| Exit::usage(describe(&error)))?;
    let aid = probed.aid.as_deref().unwrap_or_default().replace('\'', "''");
    let mut trials = Vec::new();
    let questions = [("a mention", "mentions"), ("an overview", "overview")].into_iter();
    for (what, table) in questions.take(usize::try_from(left).unwrap_or(usize::MAX)) {
        let sql = format!("SELECT * FROM {table} WHERE aid = '{aid}' LIMIT 1");
        trials.push((
            what,
            match rows_of(&context, &sql).await {
                // A quiet period is no contradiction.
                Ok(0) => Ok("none in the period that is read by default".to_owned()),
                Ok(_) => Ok("came, and was read".to_owned()),
                Err(error) => Err(connection.client().redact(&describe(&error))),
            },
        ));
    }
    Ok(trials)
}

/// `savedsearch profile …`.
pub(crate) async fn run(arguments: &Arguments, command: &ProfileCommand) -> Result<(), Exit> {
    match command {
        ProfileCommand::Show { name } => show(arguments, name.as_deref()),
        ProfileCommand::Check { file } => check(arguments, file).await,
        ProfileCommand::Schema => print(format!("{}\n", Profile::schema()).as_bytes()),
    }
}

fn show(arguments: &Arguments, name: Option<&str>) -> Result<(), Exit> {
    let named = arguments.profile.clone().or(Environment::read()?.profile).filter(|_| name.is_none());
    let name = name.map(str::to_owned).or_else(|| named.as_ref().and_then(|name| name.to_str()).map(str::to_owned));
    let name = name.unwrap_or_else(|| "v4".to_owned());
    if let Some(path) = named.filter(|path| path.exists()) {
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|error| Exit::usage(format!("cannot read {}: {error}", path.display())))?;
        return print(text.as_bytes());
    }
    let names: Vec<&str> = Profile::builtins().collect();
    let text = Profile::builtin_document(&name)
        .ok_or_else(|| Exit::usage(format!("there is no built-in profile `{name}`; there are {}", names.join(", "))))?;
    print(text.as_bytes())
}

/// Checks a profile by itself, and where there is a service, by a list, an overview and a mention of it, and by a number that
/// the overview tells and reading gives.
async fn check(arguments: &Arguments, file: &Path) -> Result<(), Exit> {
    let profile = Profile::read(file)?;
    let columns = profile.tables.mentions.columns.len();
    say(format!("{}: a profile `{}` with {columns} columns of mentions", file.display(), profile.name))?;
    let assumed = profile.dimensions().iter().filter(|(.., evidence)| evidence.as_deref() == Some("assumed"));
    let assumed: std::collections::BTreeSet<&str> =
        assumed.map(|(name, ..)| name.rsplit_once('.').map_or(name.as_str(), |(section, _)| section)).collect();
    if !assumed.is_empty() {
        say(format!("assumed, and to be checked: {}", assumed.into_iter().collect::<Vec<_>>().join(", ")))?;
    }
    if arguments.base_url.is_none() && arguments.replay.is_none() && Environment::read()?.base_url.is_none() {
        say("no service was asked: name one with --base-url".to_owned())?;
        return Ok(());
    }
    let Target { base_url, key, service, exchanges, clock, demo: _demo } = target(arguments).await?;
    let connection = Connection::builder(base_url, key)
        .profile(profile)
        .service(service)
        .exchanges(exchanges)
        .clock(clock)
        .build()?;
    let context = session(&connection).map_err(|error| Exit::usage(describe(&error)))?;
    let mut failed = 0;
    let of = "(SELECT min(aid) FROM saved_searches WHERE kind <> 'recent')";
    for (what, sql) in [
        ("the list", "SELECT aid, kind FROM saved_searches".to_owned()),
        ("an overview", format!("SELECT * FROM overview WHERE aid = {of}")),
        ("a mention", format!("SELECT * FROM mentions WHERE aid = {of} LIMIT 1")),
    ] {
        match rows_of(&context, &sql).await {
            Ok(rows) => say(format!("{what}: well read, {rows} rows"))?,
            Err(error) => {
                failed += 1;
                say(format!("{what}: {}", connection.client().redact(&describe(&error))))?;
            }
        }
    }
    // The same number in two ways.
    let count = format!("SELECT count(*) FROM mentions WHERE aid = {of} AND published_at >= now() - INTERVAL '2 days'");
    let told = number(&context, &count).await;
    let read = match context.sql("SET savedsearch.count_from_overview = 'never'").await {
        Ok(_) => number(&context, &count).await,
        Err(error) => Err(error),
    };
    match (told, read) {
        (Ok(told), Ok(read)) if told == read => say(format!("counts: {read} mentions in two days, told and read"))?,
        (Ok(told), Ok(read)) => {
            failed += 1;
            say(format!(
                "counts: {told} mentions in two days are told, and {read} come: check [counts], [total] and [window]"
            ))?;
        }
        (Err(error), _) | (_, Err(error)) => {
            failed += 1;
            say(format!("counts: {}", connection.client().redact(&describe(&error))))?;
        }
    }
    if failed > 0 { Err(Exit(FAILED, Some(format!("the service contradicts {}", file.display())))) } else { Ok(()) }
}

/// Writes a finding.
fn say(line: String) -> Result<(), Exit> {
    print(format!("{line}\n").as_bytes())
}

/// The number of rows that a query gives.
async fn rows_of(context: &SessionContext, sql: &str) -> DataFusionResult<usize> {
    let batches = context.sql(sql).await?.collect().await?;
    Ok(batches.iter().map(RecordBatch::num_rows).sum())
}

/// The number that a query gives.
async fn number(context: &SessionContext, sql: &str) -> DataFusionResult<i64> {
    let batches = context.sql(sql).await?.collect().await?;
    let first = batches.iter().find(|batch| batch.num_rows() > 0);
    Ok(first.map_or(0, |batch| batch.column(0).as_primitive::<Int64Type>().value(0)))
}
