//! The commands about profiles: found out, shown, checked, described.

use std::path::Path;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::error::Result as DataFusionResult;
use datafusion::prelude::SessionContext;
use datafusion_saved_search::client::parse_base_url;
use datafusion_saved_search::config::Environment;
use datafusion_saved_search::error::describe;
use datafusion_saved_search::probe;
use datafusion_saved_search::{Connection, Profile, session};

use crate::connect::{Target, target};
use crate::help::print;
use crate::{Arguments, Exit, FAILED, ProbeArguments, ProfileCommand};

/// `savedsearch probe`.
pub(crate) async fn probe(
    arguments: &Arguments,
    ProbeArguments { output, max_calls }: &ProbeArguments,
) -> Result<(), Exit> {
    let Target { base_url, key, service, demo: _demo, .. } = target(arguments).await?;
    let probed = probe::probe(service, parse_base_url(&base_url)?, key, *max_calls).await?;
    eprint!("{probed}");
    match output {
        Some(path) => {
            let written = std::fs::write(path, &probed.document);
            written.map_err(|error| Exit::usage(format!("cannot write {}: {error}", path.display())))?;
            eprintln!(
                "\nThe profile is in {}: read it, correct what you know better, and name it with --profile.",
                path.display()
            );
        }
        None => print(probed.document.as_bytes())?,
    }
    Ok(())
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
    let Target { base_url, key, service, clock, demo: _demo } = target(arguments).await?;
    let connection = Connection::builder(base_url, key).profile(profile).service(service).clock(clock).build()?;
    let context = session(&connection).map_err(|error| Exit::usage(describe(&error)))?;
    let mut failed = 0;
    let of = "(SELECT min(aid) FROM saved_searches WHERE kind <> 'recent')";
    for (what, sql) in [
        ("the list", "SELECT aid, kind FROM saved_searches".to_owned()),
        ("an overview", format!("SELECT * FROM overview WHERE aid = {of}")),
        ("a mention", format!("SELECT * FROM mentions WHERE aid = {of} LIMIT 1")),
    ] {
        let rows = match context.sql(&sql).await {
            Ok(frame) => frame.collect().await,
            Err(error) => Err(error),
        };
        match rows {
            Ok(batches) => {
                let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
                say(format!("{what}: well read, {rows} rows"))?;
            }
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

/// The number that a query gives.
async fn number(context: &SessionContext, sql: &str) -> DataFusionResult<i64> {
    let batches = context.sql(sql).await?.collect().await?;
    let first = batches.iter().find(|batch| batch.num_rows() > 0);
    Ok(first.map_or(0, |batch| batch.column(0).as_primitive::<Int64Type>().value(0)))
}
