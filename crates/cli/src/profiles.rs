//! Commands on profiles: `probe`, and `profile show`, `check` and `schema`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result as DataFusionResult;
use datafusion::prelude::SessionContext;
use datafusion_saved_search::client::{
    Direct, HttpFailure, HttpRequest, HttpResponse, HttpService, LimitedService, parse_base_url,
};
use datafusion_saved_search::config::Environment;
use datafusion_saved_search::error::{describe, line_of, one_line};
use datafusion_saved_search::probe::{self, Facts, Probed, Recording};
use datafusion_saved_search::shell::Progress;
use datafusion_saved_search::{Connection, Error, Profile, Secret, profile_check, session};

use crate::connect::{Target, target, target_or};
use crate::help::print;
use crate::{Arguments, Exit, FAILED, INCOMPLETE, ProbeArguments, ProfileCommand, USAGE, in_command};

/// `savedsearch probe`.
pub(crate) async fn probe(
    arguments: &Arguments,
    ProbeArguments { output, force, resume, example, openapi, fact, from_recording, max_calls }: &ProbeArguments,
) -> Result<(), Exit> {
    // Before requests are spent on a profile that cannot be saved.
    if let Some(path) = output.as_ref().filter(|path| path.exists() && !force && resume.as_ref() != Some(path)) {
        let what = format!("{} exists; choose another file, or overwrite it with --force", path.display());
        return Err(Exit::usage(what));
    }
    if let Some(folder) = output.as_ref().and_then(|path| path.parent()).filter(|folder| !folder.as_os_str().is_empty())
        && !folder.is_dir()
    {
        return Err(Exit::usage(format!("cannot write to {}: no such folder", folder.display())));
    }
    let known = match resume {
        Some(path) => {
            let text = std::fs::read_to_string(path);
            Some(text.map_err(|error| Exit::usage(format!("cannot read {}: {error}", path.display())))?)
        }
        None => None,
    };
    let (facts, other_key) = facts(arguments, example, openapi.as_deref(), fact)?;
    let (probed, trials) = match from_recording {
        Some(folder) => {
            let probed = probe::infer(Recording::read(folder)?, known.as_deref(), facts)?;
            eprint!("{probed}");
            (probed, Vec::new())
        }
        None => ask(arguments, *max_calls, known.as_deref(), facts, other_key).await?,
    };
    let failed = trials.iter().filter(|(_, result)| result.is_err()).count();
    if from_recording.is_none() {
        eprintln!("\nTest queries with the remaining requests:");
        if trials.is_empty() {
            let why = if probed.aid.is_none() { "no search was answered" } else { "no requests left" };
            eprintln!("  skipped, {why}; run `savedsearch profile check`");
        }
    }
    let mut document = probed.document.clone();
    for (what, result) in &trials {
        let (how, text) = match result {
            Ok(text) => ("observed", text),
            Err(text) => ("failed", text),
        };
        eprintln!("  {what:<16} {text}");
        document.push_str(&format!("\n# test query, {what}: {how}: {}", one_line(text)));
    }
    if !trials.is_empty() {
        document.push('\n');
    }
    match output {
        Some(path) => {
            let written = std::fs::write(path, &document);
            if let Err(error) = written {
                // The requests are spent: what they found must not be lost.
                print(document.as_bytes())?;
                return Err(Exit::usage(format!("cannot write {}: {error}; the profile is on stdout", path.display())));
            }
            eprintln!(
                "\nWrote the profile to {}. Review it, correct any mistakes, and use it with --profile.",
                path.display()
            );
        }
        None => print(document.as_bytes())?,
    }
    match (probed.holes.as_slice(), failed) {
        ([], 0) => Ok(()),
        ([], _) => Err(Exit(
            INCOMPLETE,
            Some("the service does not behave as the profile declares; see the test queries".into()),
        )),
        (holes, _) => {
            let what = format!(
                "incomplete profile: fill in [{}] from the service's documentation, mark them evidence = \"documented\", and continue with --resume",
                holes.join("], [")
            );
            Err(Exit(INCOMPLETE, Some(what)))
        }
    }
}

/// A test query with its outcome: a finding or an error.
type Trial = (&'static str, Result<String, String>);

/// Probes the service that arguments and environment name, prints the report, and tries the profile with the requests that are
/// left.
async fn ask(
    arguments: &Arguments,
    max_calls: u64,
    known: Option<&str>,
    facts: Facts,
    key: Option<Secret>,
) -> Result<(Probed, Vec<Trial>), Exit> {
    let at = facts.base_url().map(str::to_owned);
    let Target { base_url, key, service, exchanges, clock, demo: _demo } = target_or(arguments, at, key).await?;
    let sent = Arc::new(AtomicU64::new(0));
    let service: Arc<dyn HttpService> = Arc::new(Counted { service, sent: Arc::clone(&sent) });
    let progress = Progress::of(arguments.quiet, {
        let sent = Arc::clone(&sent);
        move || format!("probing: {} of at most {max_calls} requests", sent.load(Ordering::Relaxed))
    });
    let (at, asked) = (parse_base_url(&base_url)?, exchanges.over(Arc::new(Direct::new(Arc::clone(&service)))));
    let probed = probe::probe_knowing(asked, at, key.clone(), max_calls, known, facts).await?;
    drop(progress);
    eprint!("{probed}");
    let left = max_calls.saturating_sub(probed.calls.len() as u64);
    let trials = match Profile::parse(&probed.document, "the probed profile") {
        // Without a saved search, every query would be refused.
        Ok(_) if probed.aid.is_none() => Vec::new(),
        Ok(profile) => {
            let connection = Connection::builder(base_url, key).profile(profile).exchanges(exchanges).clock(clock);
            let connection =
                connection.service(Arc::new(LimitedService::new(service, left, "no requests left"))).build()?;
            let _progress = Progress::of(arguments.quiet, || "test queries".to_owned());
            tried(&connection, &probed, left).await?
        }
        // The document is written all the same: everything that was found is in it.
        Err(error) => vec![("profile", Err(error.to_string()))],
    };
    Ok((probed, trials))
}

/// Facts about a service from the options, and the key of an example if it has one of its own.
fn facts(
    arguments: &Arguments,
    examples: &[String],
    openapi: Option<&Path>,
    texts: &[String],
) -> Result<(Facts, Option<Secret>), Exit> {
    let key = match &arguments.api_key_file {
        Some(path) => Some(Secret::read(path)?),
        None => Environment::read()?.api_key,
    };
    let (mut facts, mut other) = (Facts::default(), None);
    for example in examples {
        let text = match example.as_str() {
            "-" => std::io::read_to_string(std::io::stdin()),
            path if Path::new(path).is_file() => std::fs::read_to_string(path),
            text => Ok(text.to_owned()),
        };
        let text = text.map_err(|error| Exit::usage(format!("cannot read the example: {error}")))?;
        other = facts.example(&text, key.as_ref())?.or(other);
    }
    if let Some(path) = openapi {
        let text = std::fs::read_to_string(path);
        facts.openapi(&text.map_err(|error| Exit::usage(format!("cannot read {}: {error}", path.display())))?)?;
    }
    for text in texts {
        facts.fact(text)?;
    }
    Ok((facts, other))
}

/// A service whose requests are counted, for the progress.
#[derive(Debug)]
struct Counted {
    service: Arc<dyn HttpService>,
    sent: Arc<AtomicU64>,
}

#[async_trait]
impl HttpService for Counted {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.service.call(request).await
    }
}

/// Queries a mention and an overview with a probed profile, as far as requests are left. Returns a finding or an error for
/// each.
async fn tried(connection: &Arc<Connection>, probed: &Probed, left: u64) -> Result<Vec<Trial>, Exit> {
    let context = session(connection).map_err(|error| Exit::usage(describe(&error)))?;
    let aid = probed.aid.as_deref().unwrap_or_default().replace('\'', "''");
    let mut trials = Vec::new();
    let questions = [("mentions", "mentions"), ("overview", "overview")].into_iter();
    for (what, table) in questions.take(usize::try_from(left).unwrap_or(usize::MAX)) {
        let sql = format!("SELECT * FROM {table} WHERE aid = '{aid}' LIMIT 1");
        trials.push((
            what,
            match rows_of(&context, &sql).await {
                // A quiet period does not contradict the profile.
                Ok(0) => Ok("ok, no rows in the default window".to_owned()),
                Ok(_) => Ok("ok".to_owned()),
                Err(error) => Err(connection.client().redact(&line_of(&error).worded(in_command)).into()),
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
        .ok_or_else(|| Exit::usage(format!("unknown built-in profile `{name}`; available: {}", names.join(", "))))?;
    print(text.as_bytes())
}

/// Checks a profile by itself, and against a service if one is given: the list, an overview, a mention, and a count that
/// must agree between the overview and the mentions read.
async fn check(arguments: &Arguments, file: &Path) -> Result<(), Exit> {
    let profile = Profile::named(Path::new(""), file)?;
    let columns = profile.tables.mentions.columns.len();
    say(format!("{}: valid profile `{}`, {columns} columns of mentions", file.display(), profile.name))?;
    let assumed = profile.dimensions().iter().filter(|(.., evidence)| evidence.as_deref() == Some("assumed"));
    let assumed: std::collections::BTreeSet<&str> =
        assumed.map(|(name, ..)| name.rsplit_once('.').map_or(name.as_str(), |(section, _)| section)).collect();
    if !assumed.is_empty() {
        say(format!("assumed, not verified: {}", assumed.into_iter().collect::<Vec<_>>().join(", ")))?;
    }
    // Not by the default configuration file: a check of a file must not spend requests unasked.
    let named = arguments.base_url.is_some() || arguments.config.is_some() || arguments.connection.is_some();
    if !named && arguments.replay.is_none() && Environment::read()?.base_url.is_none() {
        say("not checked against a service: use --base-url or --connection".to_owned())?;
        return Ok(());
    }
    let Target { base_url, key, service, exchanges, clock, demo: _demo } = target(arguments).await?;
    let connection = Connection::builder(base_url, key)
        .profile(profile)
        .service(service)
        .exchanges(exchanges)
        .clock(clock)
        .build()?;
    let mut failed = 0;
    let mut printed = Ok(());
    let progress = Progress::of_queries(vec![Arc::clone(&connection)], arguments.quiet);
    let compared = profile_check::compare(&connection, |what, result| {
        let (Ok(text) | Err(text)) = &result;
        failed += u64::from(result.is_err());
        let line = format!("{what}: {}{text}", if result.is_ok() { "ok, " } else { "" });
        printed = std::mem::replace(&mut printed, Ok(())).and_then(|()| progress.above(|| say(line)));
    });
    let compared = compared.await;
    drop(progress);
    compared.map_err(|error| {
        let status = if Error::find(&error).is_some() { FAILED } else { USAGE };
        Exit(status, Some(connection.client().redact(&line_of(&error).worded(in_command)).into()))
    })?;
    printed?;
    if failed > 0 { Err(Exit(FAILED, Some(format!("the service does not match {}", file.display())))) } else { Ok(()) }
}

/// Prints a finding.
fn say(line: String) -> Result<(), Exit> {
    print(format!("{line}\n").as_bytes())
}

/// Number of rows of a query.
async fn rows_of(context: &SessionContext, sql: &str) -> DataFusionResult<usize> {
    let batches = context.sql(sql).await?.collect().await?;
    Ok(batches.iter().map(RecordBatch::num_rows).sum())
}
