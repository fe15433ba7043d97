//! Statements of the page: planned, estimated without a request, and run.
//!
//! Rows are lines of JSON, an array each; lines with an object say the rest:
//!
//! ```text
//! {"query":"q7","columns":[{"name":"source","type":"text"},…]}     first
//! ["forum",12]
//! {"progress":{"requests":2,"rows":200,"wait_ms":0,"waits_ms":0}}  now and then
//! {"end":{"rows":450,"summary":"450 rows · …","result":"5f…"}}     last: all rows were sent
//! {"error":{"message":"…"}}                                        last: they were not
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Int64Type, Schema, SchemaRef, UInt64Type};
use arrow::error::ArrowError;
use arrow::json::StructMode;
use arrow::json::writer::{LineDelimited, WriterBuilder};
use async_stream::stream;
use axum::body::Bytes;
use datafusion::common::config::ExtensionOptions;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use futures::{Stream, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::results::{Keeping, Period, Results};
use crate::config::SessionSettings;
use crate::error::{Error, ErrorKind, Setting, Term};
use crate::exec::{ExpectedRequests, Spent, Unsized, aside, plan_cost};
use crate::host::failure::{Code, Failure, Place};
use crate::host::planner::{Statement, check_setting, parse, runnable};
use crate::host::running::{Pending, Reading};
use crate::host::sessions::Session;
use crate::host::state::Host;
use crate::host::type_compat::bytes_of;
use crate::memory;
use crate::session::{Headers, PlanningTurn, bytes_of_plan, bytes_of_tokens, follow_time_zone, type_name, with_schema};
use crate::shell::{Expanded, NotExpanded, Variables, covered, in_zone, zoned};
use crate::wording::{estimate, period_in_words, schema, summary};

/// Maximum rows of a part of the response. The text of a part is made without a pause.
const PART: usize = 1_000;
/// Time after which the page is told what was requested meanwhile.
const TOLD: Duration = Duration::from_millis(250);
/// Integers beyond this are not exact in JavaScript; they are sent as text.
const EXACT: u64 = 1 << 53;

/// Advice for statements that change something.
const QUERIES: &str = "only queries run here: SELECT, WITH, VALUES, EXPLAIN, DESCRIBE and SHOW";

/// A statement with what it depends on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    sql: String,
    /// Values of `:name`, `:'name'` and `:"name"`.
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// Settings for this statement, by name without the prefix `savedsearch.`.
    #[serde(default)]
    settings: BTreeMap<String, String>,
}

/// A statement that was planned.
struct PlannedStatement {
    context: SessionContext,
    statement: Statement,
    headers: Headers,
    typed: TypedText,
}

/// The text of a statement, as it was typed and with its parameters replaced.
struct TypedText {
    sql: String,
    expanded: Expanded,
}

impl TypedText {
    /// A failure of planning with its place in the typed text instead of the expanded one. If it has no place, the place is that of
    /// a name or value that its message quotes, if the text has it once.
    fn placed(&self, turn: &PlanningTurn<'_>, failure: Failure) -> Failure {
        let Self { sql, expanded } = self;
        let wrong = matches!(failure.code, Code::InvalidArgument | Code::Unimplemented | Code::FailedPrecondition);
        let quoted = || place_of_quoted(turn, &failure.message(), &expanded.text).filter(|_| wrong);
        let place = failure.place.or_else(quoted);
        Failure { place: place.map(|place| Place::after(sql, expanded.typed(sql, place.before))), ..failure }
    }
}

/// Cost of a statement.
#[derive(Debug, Serialize)]
pub(super) struct Costs {
    /// The number of requests in words, such as `at least 13, likely about 40`.
    requests: String,
    at_least: u64,
    exact: bool,
    /// The number that is probable, if it is known.
    likely: Option<u64>,
    /// Requests that tell how many mentions the statement reads, if that is not known; otherwise 0.
    unknown: u64,
    /// Requests left in the user's own budget. A query that needs more is refused before its first request.
    allowance: Option<i64>,
    /// Each scan: its table, request and cost.
    scans: Vec<Value>,
    /// The limit of which least is left.
    left: Option<Value>,
}

/// Plans a statement that changes nothing, without a request.
async fn read(host: &Host, session: &Session, question: Question) -> Result<PlannedStatement, Failure> {
    let Question { sql, variables, settings } = question;
    let wrong = |message: String| Failure::new(Code::InvalidArgument, message);
    host.allow_length(&sql)?;
    let mut own = SessionSettings::of(session.context.state().config_options());
    for (name, value) in &settings {
        let allowed = check_setting(&format!("savedsearch.{name}"), value).and_then(|()| own.set(name, value));
        allowed.map_err(|error| Failure { code: Code::InvalidArgument, ..session.failure(&error) })?;
    }
    let zoned = settings.contains_key("timezone");
    let context = session.for_call(|_| own);
    if zoned {
        follow_time_zone(&context).await.map_err(|error| session.failure(&error))?;
    }
    let mut known = Variables::default();
    variables.iter().try_for_each(|(name, value)| known.set(name, value)).map_err(wrong)?;
    let expanded = known.expanded(&sql, host.limits.statement_bytes).map_err(|reason| match reason {
        NotExpanded::Unset { name, before } => {
            let place = Some(Place::after(&sql, before));
            Failure { place, ..wrong(format!("parameter `{name}` is not set")) }
        }
        NotExpanded::TooLong(most) => wrong(format!("query too long with its parameters: the limit is {most} bytes")),
    })?;
    let typed = TypedText { sql, expanded };
    let text = typed.expanded.text.as_str();
    host.allow_length(text)?;
    let digest = session.log_statement(text);
    // A mistake is placed within the turn: the text is taken apart again.
    let turn = session.share.planning_of(text).await;
    let planned = async {
        let parsed = parse(&turn, text, GenericDialect {})?;
        let headers = Headers::of(&parsed);
        Ok::<_, DataFusionError>((Statement::of_parsed(&turn, &context, parsed, &[], Ok).await?, headers))
    };
    let (statement, headers) = match planned.await {
        Ok((statement, headers)) => (Statement { digest, ..statement }, headers),
        Err(error) => {
            let failure = session.failure(&error).in_text(&error, text, &context).await;
            return Err(typed.placed(&turn, failure));
        }
    };
    drop(turn);
    if statement.effect {
        return Err(wrong(QUERIES.to_owned()));
    }
    if !statement.parameters.fields().is_empty() {
        return Err(wrong("write parameters as :name, or :'name' for a text".to_owned()));
    }
    Ok(PlannedStatement { context, statement, headers, typed })
}

/// Estimates a statement. Sends no request.
///
/// # Errors
/// Errors of planning.
pub(super) async fn costs(host: &Host, session: &Session, question: Question) -> Result<Costs, Failure> {
    let (_, plan) = planned(host, session, question).await?;
    costs_of(session, &plan).await
}

/// Checks that a statement can be planned. Sends no request.
///
/// # Errors
/// One line with the place of the mistake, as far as it is known.
pub(super) async fn check(host: &Arc<Host>, session: &Arc<Session>, sql: &str) -> Result<(), String> {
    let (own, of) = (Arc::clone(host), Arc::clone(session));
    let question = Question { sql: sql.to_owned(), variables: BTreeMap::new(), settings: BTreeMap::new() };
    let work = async move { costs(&own, &of, question).await.map(drop) };
    let told = |failure: Failure| match failure.place {
        Some(Place { line, column, .. }) => format!("line {line}, column {column}: {}", failure.worded(in_page)),
        None => failure.worded(in_page),
    };
    host.away(session, work).await.map_err(told)
}

/// Requests the numbers of mentions that the estimate of a statement lacks, and estimates it again.
///
/// # Errors
/// Errors of planning, and of the requests.
pub(super) async fn costs_by_size(host: &Host, session: &Session, question: Question) -> Result<Costs, Failure> {
    let (context, plan) = planned(host, session, question).await?;
    let counted = Box::pin(Unsized::never_known(&plan).count(context.task_ctx())).await;
    counted.map_err(|error| session.failure(&error))?;
    costs_of(session, &plan).await
}

/// The plan of a statement, and the context in which it runs.
async fn planned(
    host: &Host,
    session: &Session,
    question: Question,
) -> Result<(SessionContext, Arc<dyn ExecutionPlan>), Failure> {
    let PlannedStatement { context, statement, typed, .. } = read(host, session, question).await?;
    let turn = session.share.planning(bytes_of_plan(&statement.plan)).await;
    let planned = runnable(&turn, &context, statement.plan).await;
    let runnable = planned.map_err(|error| typed.placed(&turn, session.failure(&error)))?;
    drop(turn);
    Ok((context, runnable.plan))
}

async fn costs_of(session: &Session, plan: &Arc<dyn ExecutionPlan>) -> Result<Costs, Failure> {
    let failed = |error: DataFusionError| session.failure(&error);
    let asked = |plan: &Arc<dyn ExecutionPlan>| {
        let sizes = Unsized::never_known(plan);
        let unknown = if sizes.lists.is_empty() { sizes.requests() } else { 0 };
        (plan_cost(plan), unknown, estimate(plan))
    };
    let (cost, unknown, scans) = aside(plan, asked).await.map_err(|error| failed(error.into()))?;
    let expected @ ExpectedRequests { at_least, exact, likely, .. } = cost.expected();
    // A number of mentions that needs no more than the least is known as well.
    let least = match cost.scans.as_slice() {
        [scan] if !exact => scan.likely.filter(|likely| *likely == at_least),
        _ => None,
    };
    let requests = least.map_or_else(|| expected.to_string(), |least| format!("about {least}"));
    let unknown = if exact { 0 } else { unknown };
    let mut scans = objects(&scans.map_err(failed)?)?;
    // The last row is the total.
    scans.pop();
    let budget = budget(session).await?;
    let remaining = |row: &Value| row["remaining"].as_i64();
    let allowance = budget.iter().filter(|row| row["source"] == "caller").filter_map(remaining).min();
    let left = budget.into_iter().filter(|row| remaining(row).is_some()).min_by_key(remaining);
    Ok(Costs { requests, at_least, exact, likely: likely.or(least), unknown, allowance, scans, left })
}

/// Limits of the key and of the user. Sends no request.
///
/// # Errors
/// Errors of the engine.
pub(super) async fn budget(session: &Session) -> Result<Vec<Value>, Failure> {
    let failed = |error| session.failure(&error);
    let rows = session.context.sql("SELECT * FROM system.budget").await.map_err(failed)?;
    let batches = rows.collect().await.map_err(failed)?;
    batches.iter().map(objects).collect::<Result<Vec<_>, _>>().map(|rows| rows.concat())
}

/// The aid of a saved search that is known without a request, for the examples: the first one of the last list, if possible with
/// a name, or else the one of which a store has most mentions.
///
/// # Errors
/// Errors of the engine.
pub(super) async fn known_search(session: &Session) -> Result<Option<String>, Failure> {
    let failed = |error| session.failure(&error);
    let listed = session.connections().first().and_then(|connection| connection.known_searches()).unwrap_or_default();
    if let Some((aid, _)) = listed.iter().find(|(_, name)| !name.is_empty()).or(listed.first()) {
        return Ok(Some(aid.clone()));
    }
    if session.context.table_provider("system.store").await.is_err() {
        return Ok(None);
    }
    let sql = "SELECT aid FROM system.store GROUP BY aid ORDER BY sum(mentions) DESC, aid LIMIT 1";
    let batches = session.context.sql(sql).await.map_err(failed)?.collect().await.map_err(failed)?;
    let rows = batches.iter().map(objects).collect::<Result<Vec<_>, _>>()?.concat();
    Ok(rows.first().and_then(|row| row["aid"].as_str()).map(str::to_owned))
}

/// The tables, each with its columns and what can be sent. Sends no request.
///
/// # Errors
/// Errors of the engine.
pub(super) async fn tables(session: &Session) -> Result<Vec<Value>, Failure> {
    let failed = |error| session.failure(&error);
    let all = objects(&schema::all(&session.context).await.map_err(failed)?)?;
    let mut found = Vec::new();
    for table in all {
        let name = table["table"].as_str().unwrap_or_default().to_owned();
        let provider = session.context.table_provider(name.as_str()).await.map_err(failed)?;
        let (columns, _) = schema::one(&provider).map_err(failed)?;
        found.push(json!({ "name": name, "about": table, "columns": objects(&columns)? }));
    }
    Ok(found)
}

/// Plans a statement to be run. Returns it with its headers and the zone of its times.
async fn pending(
    host: Arc<Host>,
    session: Arc<Session>,
    question: Question,
) -> Result<(Arc<Pending>, Headers, String), Failure> {
    let PlannedStatement { context, statement, headers, typed } = read(&host, &session, question).await?;
    let zone = SessionSettings::zone(context.state().config_options());
    match Pending::plan_in(context, &host, &session, &statement, vec![Vec::new()]).await {
        Ok(pending) => Ok((Arc::new(pending), headers, zone)),
        Err(failure) => {
            let turn = session.share.planning(typed.expanded.text.len()).await;
            Err(typed.placed(&turn, failure))
        }
    }
}

/// Runs a statement. The response is described in the module's documentation; dropping it ends the query.
///
/// # Errors
/// Errors of planning; RESOURCE_EXHAUSTED if too many queries are running, or memory is short.
pub(super) async fn run(
    host: Arc<Host>,
    session: Arc<Session>,
    results: Arc<Results>,
    question: Question,
) -> Result<impl Stream<Item = Bytes> + Send + 'static, Failure> {
    let begun = Instant::now();
    let planned = pending(Arc::clone(&host), Arc::clone(&session), question);
    let (pending, headers, zone) = host.away(&session, planned).await?;
    if pending.schema.fields().is_empty() {
        return Err(Failure::new(Code::InvalidArgument, "the query selects no columns"));
    }
    let query = pending.query().unwrap_or_default();
    let schema = headers.apply(Arc::clone(&pending.schema));
    let keeping = Arc::new(Mutex::new(Some(Keeping::new(&schema))));
    let encode = in_lines(Arc::clone(&schema), zone.clone(), Arc::clone(&keeping));
    let Reading { batches: mut parts, memory } =
        Arc::clone(&pending).run_encoded(Arc::clone(&session), &host, PART, encode)?;
    Ok(stream! {
        yield line(&json!({ "query": query, "columns": columns(&in_zone(&schema, shown_in(&zone))) }));
        let (mut rows, mut told, mut since) = (0, pending.spent(), begun);
        let failure = loop {
            let next = timeout(TOLD, parts.next()).await;
            let spent = pending.spent();
            // Nothing else changes while the service's limit keeps requests waiting.
            let waiting = || session.connections().iter().map(|connection| connection.client().throttled_for()).max();
            if since.elapsed() >= TOLD
                && let waits = waiting().unwrap_or_default()
                && (spent != told || waits > TOLD)
            {
                (told, since) = (spent, Instant::now());
                yield progress(spent, rows, waits);
            }
            match next {
                // Pages are awaited.
                Err(_) => {}
                Ok(None) => break None,
                Ok(Some(Err(failure))) => break Some(failure),
                Ok(Some(Ok((lines, count)))) => {
                    rows += count;
                    // The transport frees them.
                    memory.hand_over(lines.capacity());
                    if !lines.is_empty() {
                        yield Bytes::from(lines);
                    }
                }
            }
        };
        if let Some(failure) = failure {
            let mut told = told_of(&failure);
            told["error"]["requests"] = pending.spent().requests.into();
            yield line(&told);
            return;
        }
        let keeping = keeping.lock().unwrap_or_else(PoisonError::into_inner).take();
        let read = Read { query, rows, begun, keeping };
        yield last_line(read, &pending, &session, &results, zone);
    })
}

/// Zone in which times are shown, as the shell shows them: that of the query.
fn shown_in(zone: &str) -> Option<&str> {
    Some(zone).filter(|zone| !zone.is_empty())
}

/// Encodes rows as lines, and keeps them. Returns the lines and the number of rows.
fn in_lines(
    schema: SchemaRef,
    zone: String,
    keeping: Arc<Mutex<Option<Keeping>>>,
) -> impl FnMut(RecordBatch) -> Result<(Vec<u8>, usize), Failure> + Send + 'static {
    move |rows| {
        let rows = with_schema(rows, &schema).map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        if let Some(keeping) = keeping.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            keeping.add(&rows);
        }
        Ok((counted_lines(&rows, shown_in(&zone))?, rows.num_rows()))
    }
}

/// A query that has ended, with its result.
struct Read {
    query: String,
    rows: usize,
    begun: Instant,
    /// `None` only if the query has failed.
    keeping: Option<Keeping>,
}

/// The line after all rows.
fn last_line(read: Read, pending: &Pending, session: &Session, results: &Results, zone: String) -> Bytes {
    let Read { query, rows, begun, keeping } = read;
    let (spent, windows, warnings) = (pending.spent(), pending.windows(), session.warnings(&query));
    let incomplete = warnings.iter().any(|warning| warning.incomplete);
    let default = windows.iter().find(|window| window.default).map(|window| period_in_words(&window.words));
    // The zone of this query alone: the session keeps its own.
    let connection = session.connections().first();
    let covered = connection.zip(pending.logical()).and_then(|(to, plan)| covered(to, plan, &windows, &zone));
    let none = || "the result was not kept".to_owned();
    let add = |keeping| results.add(&session.principal.name, keeping, Period { covered, zone });
    let kept = keeping.ok_or_else(none).and_then(add);
    let mut notes: Vec<String> = warnings.iter().map(|warning| warning.line.worded(in_page)).collect();
    notes.extend(kept.as_ref().err().map(|why| format!("no charts or downloads: {why}")));
    line(&json!({ "end": {
        "rows": rows,
        "requests": spent.requests,
        "summary": summary(rows, begun.elapsed(), spent, windows, incomplete),
        "incomplete": incomplete || spent.incomplete > 0,
        "default_window": default,
        "notes": notes,
        "result": kept.ok(),
    } }))
}

/// A line about what was requested so far. `waits`: time for which the service's limit will keep requests waiting.
fn progress(spent: Spent, rows: usize, waits: Duration) -> Bytes {
    let progress = json!({
        "requests": spent.requests,
        "rows": rows,
        "wait_ms": spent.wait_ms,
        "waits_ms": u64::try_from(waits.as_millis()).unwrap_or(u64::MAX),
    });
    line(&json!({ "progress": progress }))
}

/// Place of the first name or value that a message has in backticks and a text has exactly once.
fn place_of_quoted(_turn: &PlanningTurn<'_>, message: &str, text: &str) -> Option<Place> {
    let _room = memory::room(bytes_of_tokens(text)).ok()?;
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().ok()?;
    let quoted = message.split('`').skip(1).step_by(2).map(|quoted| quoted.rsplit('.').next().unwrap_or(quoted));
    let start = quoted.filter(|quoted| !quoted.is_empty()).find_map(|quoted| {
        let mut same = tokens.iter().filter(|token| match &token.token {
            Token::Word(word) => word.value.eq_ignore_ascii_case(quoted),
            Token::SingleQuotedString(value) => value == quoted,
            _ => false,
        });
        let first = same.next().map(|token| token.span.start);
        first.filter(|_| same.next().is_none())
    })?;
    Place::of(text, (usize::try_from(start.line).ok()?, usize::try_from(start.column).ok()?))
}

/// A failure as the page reads it.
pub(super) fn told_of(failure: &Failure) -> Value {
    let Failure { code, place, .. } = failure;
    let place = place.map(|place| json!({ "line": place.line, "column": place.column, "before": place.before }));
    json!({ "error": { "code": code.name(), "message": failure.worded(in_page), "place": place } })
}

/// A term in the words of the page. Some settings are fields of the page; the operator of the program sets the others.
fn in_page(term: &Term) -> String {
    match term {
        Term::Setting(Setting::MaxRequests) => "“At most”".to_owned(),
        Term::Setting(Setting::Timezone) => "“Zone”".to_owned(),
        Term::Change(change) => {
            let value = change.value.as_deref();
            change.worded(&match change.setting {
                Setting::MaxRequests => format!("“At most {} requests”", value.unwrap_or("…")),
                Setting::Timezone => "“Zone”".to_owned(),
                other => format!("the option --set {}={} of the program", other.name(), value.unwrap_or("…")),
            })
        }
        Term::Statements => QUERIES.to_owned(),
        Term::Setting(_)
        | Term::BaseUrl
        | Term::KeyFile
        | Term::Insecure
        | Term::MemoryLimit
        | Term::Option(_)
        | Term::AsQuery
        | Term::Tool(_) => term.to_string(),
    }
}

fn line(value: &Value) -> Bytes {
    Bytes::from(format!("{value}\n"))
}

/// Names and types of the columns, and the alignment that a type has.
fn columns(schema: &SchemaRef) -> Vec<Value> {
    let column = |field: &Arc<Field>| {
        let kind = field.data_type();
        let class = match kind {
            _ if kind.is_numeric() => "number",
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => "time",
            DataType::Boolean => "boolean",
            _ if kind.is_nested() => "nested",
            _ => "text",
        };
        json!({ "name": field.name(), "type": type_name(kind), "class": class })
    };
    schema.fields().iter().map(column).collect()
}

/// Rows as lines of JSON, with instants in a zone. The text of a long value counts before it is made.
///
/// # Errors
/// Those of [`memory::room`].
fn counted_lines(batch: &RecordBatch, zone: Option<&str>) -> Result<Vec<u8>, Failure> {
    // The text grows in memory that doubles.
    let _room = memory::room(bytes_of(batch).saturating_mul(2)).map_err(Failure::own)?;
    let lines = zoned(batch, zone).map_err(ArrowError::from).and_then(|batch| lines(&batch));
    // All types can be written.
    lines.map_err(|error| Failure::new(Code::Internal, error.to_string()))
}

/// Rows as lines of JSON, an array each.
fn lines(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    arrays(&exact(batch)?)
}

fn arrays(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let builder = WriterBuilder::new().with_explicit_nulls(true).with_struct_mode(StructMode::ListOnly);
    let mut writer = builder.build::<_, LineDelimited>(Vec::new());
    writer.write(batch)?;
    writer.finish()?;
    Ok(writer.into_inner())
}

/// The batch with numbers that JSON or JavaScript cannot represent as text; a list or struct with one is JSON in a text.
fn exact(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let inexact: Vec<bool> = batch.columns().iter().map(is_inexact).collect();
    if !inexact.contains(&true) {
        return Ok(batch.clone());
    }
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for ((field, column), inexact) in batch.schema().fields().iter().zip(batch.columns()).zip(inexact) {
        let column = match inexact {
            false => Arc::clone(column),
            true if column.data_type().is_nested() => in_json(field, column)?,
            true => cast(column, &DataType::Utf8)?,
        };
        fields.push(Field::new(field.name(), column.data_type().clone(), true));
        columns.push(column);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// True if a value, also one within others, is no exact number in JavaScript.
fn is_inexact(column: &ArrayRef) -> bool {
    match column.data_type() {
        DataType::Int64 => {
            column.as_primitive::<Int64Type>().iter().flatten().any(|value| value.unsigned_abs() > EXACT)
        }
        DataType::UInt64 => column.as_primitive::<UInt64Type>().iter().flatten().any(|value| value > EXACT),
        DataType::Float32 => column.as_primitive::<Float32Type>().iter().flatten().any(|value| !value.is_finite()),
        DataType::Float64 => column.as_primitive::<Float64Type>().iter().flatten().any(|value| !value.is_finite()),
        DataType::Decimal128(..) | DataType::Decimal256(..) => true,
        DataType::List(_) => is_inexact(column.as_list::<i32>().values()),
        DataType::LargeList(_) => is_inexact(column.as_list::<i64>().values()),
        DataType::FixedSizeList(..) => is_inexact(column.as_fixed_size_list().values()),
        DataType::Struct(_) => column.as_struct().columns().iter().any(is_inexact),
        DataType::Map(..) => column.as_map().entries().columns().iter().any(is_inexact),
        _ => false,
    }
}

/// The values of a column as JSON.
fn in_json(field: &Arc<Field>, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let schema = Schema::new(vec![Arc::clone(field)]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::clone(column)])?;
    let text = String::from_utf8(arrays(&batch)?).map_err(|error| ArrowError::JsonError(error.to_string()))?;
    // Each line is an array with the value.
    let values = text.lines().enumerate().map(|(row, line)| column.is_valid(row).then(|| &line[1..line.len() - 1]));
    Ok(Arc::new(values.collect::<StringArray>()))
}

/// Rows as objects.
fn objects(batch: &RecordBatch) -> Result<Vec<Value>, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::own(Error::new(ErrorKind::Output, error.to_string()));
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
    writer.write(batch).map_err(|error| failed(&error))?;
    writer.finish().map_err(|error| failed(&error))?;
    let text = writer.into_inner();
    let rows = serde_json::Deserializer::from_slice(&text).into_iter::<Value>();
    rows.collect::<Result<_, _>>().map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int64Array, ListArray};

    use super::*;
    use crate::error::Phrase;
    use crate::memory::tests::counted;
    use crate::memory::{StatementMemory, within};

    #[test]
    fn advice_has_the_words_of_the_page() {
        let zone = Phrase::from("invalid value `x` for ") + Setting::Timezone;
        for (phrase, expected) in [
            (Phrase::from("no SET savedsearch.setting"), "no SET savedsearch.setting"),
            (zone + "; expected an IANA name", "invalid value `x` for “Zone”; expected an IANA name"),
            (Phrase::from("needs 9, but ") + Setting::MaxRequests + " allows 2", "needs 9, but “At most” allows 2"),
            (Phrase::from("within ") + Setting::QueryDeadline, "within savedsearch.query_deadline"),
            (
                Phrase::from("add a LIMIT") + Setting::MaxRequests.to("40").after(", or raise the limit: "),
                "add a LIMIT, or raise the limit: “At most 40 requests”",
            ),
            (Phrase::from("check timezone") + Setting::Timezone.any().after(" and "), "check timezone and “Zone”"),
            (
                Setting::LossyText.to("on").after("use ").then(" to replace and count invalid characters").into(),
                "use the option --set lossy_text=on of the program to replace and count invalid characters",
            ),
            (
                Setting::Store.to("off").then(" bypasses the store").into(),
                "the option --set store=off of the program bypasses the store",
            ),
            (
                Phrase::from("INSERT is not supported: read-only; ") + Term::Statements,
                "INSERT is not supported: read-only; only queries run here: SELECT, WITH, VALUES, EXPLAIN, DESCRIBE and SHOW",
            ),
        ] {
            assert_eq!(phrase.worded(in_page), expected);
        }
        for setting in Setting::ALL {
            let advice = Phrase::from(setting.to("x")).worded(in_page);
            assert!(!advice.contains("SET ") && !advice.contains("savedsearch."), "{advice}");
        }
    }

    #[tokio::test]
    async fn the_text_of_rows_counts_for_their_statement() {
        counted();
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 20)]));
        let batch = RecordBatch::try_from_iter([("t", texts)]).expect("a batch");
        let memory = Arc::new(StatementMemory::default());
        within(&memory, async { counted_lines(&batch, None) }).await.expect("lines");
        memory.end();
        let refused = within(&memory, async { counted_lines(&batch, None) }).await.expect_err("it was ended");
        assert_eq!(refused.code, Code::ResourceExhausted);
    }

    #[test]
    fn names_and_values_that_a_message_quotes_have_a_place() {
        let text = "SELECT m.aid\nFROM mentions m WHERE duration = '30x' AND aid = '30'";
        for (message, expected) in [
            ("period `30x` is too long", Some((2, 34))),
            ("table `savedsearch.Mentions` is read-only", Some((2, 6))),
            ("column `aid` is ambiguous", None),
            ("`other` and `30`", Some((2, 50))),
            ("nothing `` is `quoted", None),
            ("nothing", None),
        ] {
            let place =
                place_of_quoted(&PlanningTurn::unbounded(), message, text).map(|place| (place.line, place.column));
            assert_eq!(place, expected, "{message}");
        }
    }

    #[test]
    fn values_that_json_cannot_represent_are_text() {
        let lists = vec![Some(vec![Some((1 << 53) + 1), None]), None];
        let columns: [(&str, ArrayRef); 2] = [
            ("l", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists))),
            ("f", Arc::new(Float64Array::from(vec![f64::NAN, f64::NEG_INFINITY]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let text = String::from_utf8(lines(&batch).expect("lines")).expect("UTF-8");
        assert_eq!(text, "[\"[9007199254740993,null]\",\"NaN\"]\n[null,\"-inf\"]\n");
    }

    #[test]
    fn rows_are_arrays_and_large_numbers_are_exact() {
        let columns: [(&str, ArrayRef); 3] = [
            ("a", Arc::new(Int64Array::from(vec![Some(1), None]))),
            ("a", Arc::new(Int64Array::from(vec![(1 << 53) + 1, -5]))),
            ("t", Arc::new(StringArray::from(vec!["</script>\n\u{2028}", "שלום"]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let text = String::from_utf8(lines(&batch).expect("lines")).expect("UTF-8");
        let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let expected = [json!([1, "9007199254740993", "</script>\n\u{2028}"]), json!([null, "-5", "שלום"])];
        assert_eq!(rows, expected);
    }
}
