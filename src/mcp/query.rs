//! Queries and estimates: planned, refused or run, and returned as text.
//!
//! ```text
//! SQL ─read-only─▶ plan as written ─estimate─▶ refused: what it costs, cheaper forms
//!                                      └─────▶ plan of max_rows + 1 rows ─run─▶ text, or refused after what was spent
//! ```
//!
//! The query runs with a row limit, but the estimate is that of the whole query. If the result ends before the limit, all of
//! it is needed; if not, it is refused anyway. With the limit, scans read page by page, so a refusal costs few requests.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use tokio::time::Instant;

use super::McpLimits;
use super::cheaper::{Form, Hints, forms};
use super::cost::Estimate;
use super::text::{Full, SHOWN, TextTable, quoted};
use super::tools::Query;
use crate::client::Warning;
use crate::config::SessionSettings;
use crate::error::{Error, ErrorKind, Phrase, Term, Tool, one_line};
use crate::exec::{Spent, WindowRead, spent, start, statement_kind, windows};
use crate::host::account::Account;
use crate::host::failure::Code;
use crate::host::planner::{Runnable, Statement, runnable};
use crate::host::sessions::Session;
use crate::host::settings::Limits;
use crate::numbers::{counted, grouped};
use crate::profile::{Origin, TableSpec};
use crate::session::PlanningTurn;
use crate::wording::{Mistake, summary, window_note};

/// Rows shown of a result that is refused.
const PREVIEW: usize = 5;
/// Characters of a name that are shown in a suggestion.
const NAME: usize = 60;
/// Characters of an error that are shown.
const LINE: usize = 1_000;
/// Cheaper forms suggested.
const SUGGESTED: usize = 3;

/// Estimates a query. The text is for the caller, also if it is an error.
pub(super) async fn estimate(session: &Session, sql: &str, limits: &Limits) -> Result<String, String> {
    let context = session.for_call(|settings| settings);
    let turn = session.share.planning_of(sql).await;
    let plan = read_only(&turn, &context, sql, limits).await?;
    let Runnable { plan: whole, .. } = planned(&turn, &context, plan.clone(), sql).await?;
    let estimate = Estimate::of(&whole).await.map_err(|error| one_line(&error.to_string()))?;
    let mut text = estimate.told();
    text.push_str(&suggestions(&turn, &context, session, sql, &plan, &estimate, limits).await);
    Ok(text)
}

/// Runs a query. The text is for the caller, also if it is an error.
pub(super) async fn query(
    asked: Query,
    mut account: Account,
    limits: &Limits,
    most: &McpLimits,
) -> Result<String, String> {
    let begun = Instant::now();
    let session = Arc::clone(&account.session);
    let Query { sql, max_requests, max_rows } = asked;
    let digest = session.log_statement(&sql);
    account.end = Some(Code::InvalidArgument);
    let context = session.for_call(|settings| SessionSettings { max_requests, ..settings });
    let turn = session.share.planning_of(&sql).await;
    let plan = read_only(&turn, &context, &sql, limits).await?;
    let Runnable { plan: whole, .. } = planned(&turn, &context, plan.clone(), &sql).await?;
    let estimate = Estimate::of(&whole).await.map_err(|error| one_line(&error.to_string()))?;
    drop(whole);
    account.end = Some(Code::ResourceExhausted);
    if estimate.needed() > max_requests {
        let refusal = estimate.refusal(max_requests);
        let forms = suggestions(&turn, &context, &session, &sql, &plan, &estimate, limits).await;
        return Err(format!("{refusal}{forms}{}", again(&estimate, most)));
    }
    // Until it has ended: a client that leaves.
    account.end = None;
    let limited = match is_small(&plan, max_rows) {
        true => plan.clone(),
        false => {
            let limited = LogicalPlanBuilder::from(plan.clone()).limit(0, Some(max_rows.saturating_add(1)));
            limited.and_then(LogicalPlanBuilder::build).map_err(|error| one_line(&error.to_string()))?
        }
    };
    let Runnable { plan: running, task, query, .. } = planned(&turn, &context, limited, &sql).await?;
    drop(turn);
    if running.schema().fields().is_empty() {
        account.end = Some(Code::InvalidArgument);
        return Err("the query selects no columns".to_owned());
    }
    let span = account.begin(statement_kind(&plan), query.clone(), &digest, &running);
    let mut table = TextTable::new(&running.schema(), most.text_bytes, is_plan(&plan));
    let read = async {
        let mut stream = start(&running, task, Some(&span))?;
        while let Some(batch) = stream.try_next().await? {
            account.add(&batch);
            if let Some(full) = table.add(&batch, max_rows)? {
                return Ok(Some(full));
            }
        }
        Ok(None)
    };
    // No request is sent for rows that are not returned: the stream is dropped here.
    let ended: Result<Option<Full>, DataFusionError> = read.await;
    let (cost, windows) = (spent(&running), windows(&running));
    let warnings = session.warnings(&query);
    match ended {
        Ok(None) => {
            account.end = Some(Code::Ok);
            Ok(result(&table, begun, cost, windows, &warnings))
        }
        Ok(Some(full)) => {
            account.end = Some(Code::ResourceExhausted);
            let turn = session.share.planning(sql.len()).await;
            let forms = suggestions(&turn, &context, &session, &sql, &plan, &estimate, limits).await;
            Err(too_much(full, &table, cost, max_rows, most) + &forms)
        }
        Err(error) => {
            account.end = Some(session.failure(&error).code);
            let mut text = failure(&error, &context, &sql).await;
            if Error::find(&error).is_some_and(|error| error.kind() == ErrorKind::Budget) {
                text = format!("{text}\n\n{}", estimate.table());
                let turn = session.share.planning(sql.len()).await;
                text.push_str(&suggestions(&turn, &context, &session, &sql, &plan, &estimate, limits).await);
            }
            Err(text)
        }
    }
}

/// Plans a statement that changes nothing, without a request.
async fn read_only(
    turn: &PlanningTurn<'_>,
    context: &SessionContext,
    sql: &str,
    limits: &Limits,
) -> Result<LogicalPlan, String> {
    if sql.len() > limits.statement_bytes {
        let (has, most) = (sql.len(), limits.statement_bytes);
        return Err(format!("the statement has {has} bytes; the limit is {most}"));
    }
    let statement = match Statement::of(turn, context, sql).await {
        Ok(statement) => statement,
        Err(error) => return Err(failure(&error, context, sql).await),
    };
    if statement.effect {
        return Err("only queries are supported: SELECT, WITH, VALUES, EXPLAIN, DESCRIBE and SHOW".to_owned());
    }
    if !statement.parameters.fields().is_empty() {
        return Err("parameters are not supported: write the values into the statement".to_owned());
    }
    Ok(statement.plan)
}

async fn planned(
    turn: &PlanningTurn<'_>,
    context: &SessionContext,
    plan: LogicalPlan,
    sql: &str,
) -> Result<Runnable, String> {
    match runnable(turn, context, plan).await {
        Ok(planned) => Ok(planned),
        Err(error) => Err(failure(&error, context, sql).await),
    }
}

/// An error in one line. If its advice changes a setting, the line says that only the operator can.
async fn failure(error: &DataFusionError, context: &SessionContext, sql: &str) -> String {
    let own = Error::find(error);
    let names_setting = own.is_some_and(|own| own.description().has(|term| matches!(term, Term::Setting(_))));
    if let Some(own) = own.filter(|own| own.kind() == ErrorKind::Budget && names_setting) {
        let message = own.description().worded(in_call);
        return format!("{message}; narrow the query by aid or time, use count(*), or raise that limit");
    }
    if own.is_some_and(|own| own.kind() == ErrorKind::Unsupported && own.message().ends_with("read-only")) {
        return own.map(|own| own.message().to_owned()).unwrap_or_default();
    }
    let mistake = Mistake::of(error, sql, context, "list_tables shows the tables").await;
    // An error may quote what a third party wrote.
    let mut line = quoted(&mistake.line, LINE);
    line.push_str(&own.and_then(Error::remedy).map_or_else(String::new, operator));
    match mistake.marked {
        Some([text, mark]) => format!("{line}\n{text}\n{mark}"),
        None => line,
    }
}

/// A term in the words of a call: settings have no prefix, since the limit of requests is an argument.
fn in_call(term: &Term) -> String {
    match term {
        Term::Setting(setting) => setting.name().to_owned(),
        other => other.to_string(),
    }
}

/// The end of a line: a hint if its advice changes a setting, which a call cannot.
fn operator(phrase: &Phrase) -> String {
    match phrase.has(|term| matches!(term, Term::Change(_))) {
        true => format!(" (calls cannot change settings; the operator of this server can, {})", Tool::ServerSettings),
        false => String::new(),
    }
}

/// True if a row limit would change nothing, or would not be accepted.
fn is_small(plan: &LogicalPlan, most: usize) -> bool {
    is_plan(plan) || plan.max_rows().is_some_and(|rows| rows <= most)
}

/// True for EXPLAIN.
fn is_plan(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_))
}

/// Rows, a summary, and what was noted. In pass-through mode the notes are those of the caller's key alone.
fn result(table: &TextTable, begun: Instant, cost: Spent, windows: Vec<WindowRead>, warnings: &[Warning]) -> String {
    let note = window_note(&windows);
    let incomplete = warnings.iter().any(|warning| warning.incomplete);
    let summary = summary(table.rows(), begun.elapsed(), cost, windows, incomplete);
    let mut text = format!("{}\n{summary}\n", table.text());
    if let Some(note) = note {
        text.push_str(&format!("note: {note}\n"));
    }
    if table.cut() > 0 {
        text.push_str(&format!(
            "note: {} cut after {SHOWN} characters; substr(text, {}, {SHOWN}) has the next part\n",
            counted(table.cut() as u64, "value"),
            SHOWN + 1
        ));
    }
    for Warning { incomplete, message, line, .. } in warnings {
        let kind = if *incomplete { "warning: incomplete result" } else { "note" };
        text.push_str(&format!("{kind}: {}{}\n", quoted(message, LINE), operator(line)));
    }
    text
}

/// The refusal of a result that is larger than was asked for.
fn too_much(full: Full, table: &TextTable, cost: Spent, max_rows: usize, most: &McpLimits) -> String {
    let spent = counted(cost.requests, "request");
    let (what, advice) = match full {
        Full::Rows => (
            format!("the result has more than {} (max_rows)", counted(max_rows as u64, "row")),
            format!(
                "Aggregate, add a LIMIT, or call `query` with more max_rows (at most {} here).",
                grouped(most.max_rows as u64)
            ),
        ),
        Full::Length => (
            format!(
                "the result is longer than {} KiB of text after {}",
                most.text_bytes >> 10,
                counted(table.rows() as u64, "row")
            ),
            "Select fewer columns or rows, or parts of long texts: substr(text, 1, 200).".to_owned(),
        ),
    };
    let shown = table.first(PREVIEW);
    format!("Refused after {spent}: {what}. First rows only:\n{shown}\n{advice}\n")
}

/// Advice on the arguments with which the query runs.
fn again(estimate: &Estimate, most: &McpLimits) -> String {
    let (needed, most) = (estimate.needed(), most.max_requests);
    if needed <= most {
        return format!(
            "Or call `query` with max_requests of at least {needed} (at most {most} here). `budget` shows what is left.\n"
        );
    }
    format!("This server allows at most {most} ({}).\n", Tool::CallRequests)
}

/// The cheaper alternatives to a query, each with its requests, or advice on what to change. Sends no request.
async fn suggestions(
    turn: &PlanningTurn<'_>,
    context: &SessionContext,
    session: &Session,
    sql: &str,
    plan: &LogicalPlan,
    estimate: &Estimate,
    limits: &Limits,
) -> String {
    if estimate.needed() == 0 && estimate.is_exact() {
        return String::new();
    }
    let mut found: Vec<(Estimate, Form)> = Vec::new();
    for form in forms(sql, &hints(session, plan, estimate)) {
        let Ok(plan) = read_only(turn, context, &form.sql, limits).await else { continue };
        let Ok(Runnable { plan, .. }) = runnable(turn, context, plan).await else { continue };
        match Estimate::of(&plan).await {
            Ok(cheaper) if cheaper.is_cheaper_than(estimate) => found.push((cheaper, form)),
            _ => {}
        }
    }
    found.sort_by_key(|(estimate, _)| (estimate.needed(), !estimate.is_exact()));
    found.truncate(SUGGESTED);
    if found.is_empty() {
        return "\nTo reduce the cost: narrow published_at, filter by aid (aid = '…'), or use count(*).\n".to_owned();
    }
    let mut text = "\nCheaper queries, with the number of requests of each:\n".to_owned();
    for (estimate, Form { answers, sql }) in found {
        text.push_str(&format!("{} ({answers}): {sql}\n", estimate.number()));
    }
    text
}

/// Collects facts about a statement and its tables.
fn hints(session: &Session, plan: &LogicalPlan, estimate: &Estimate) -> Hints {
    let mut aggregates = false;
    // The closure never fails.
    let _ = plan.apply_with_subqueries(|node| {
        aggregates |= matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) | LogicalPlan::Window(_));
        Ok(TreeNodeRecursion::Continue)
    });
    let Some(connection) = session.connections().first() else { return Hints::default() };
    let profile = connection.profile();
    let spec = profile.tables.all().find(|spec| estimate.tables.first().is_some_and(|table| *table == spec.name));
    let column = |origin| spec.and_then(|spec: &TableSpec| spec.column_from(&origin)).map(str::to_owned);
    let time = spec.and_then(|spec| spec.time.clone());
    // The shortest of at least a day: shorter ones seldom have mentions.
    let day = chrono::TimeDelta::days(1);
    let usual = profile.window.usual().into_iter();
    let usual = usual.filter_map(|words| Some((profile.window.length_of(&words)?, words)));
    let short = usual.filter(|(length, _)| *length >= day).min().map(|(_, words)| words);
    let window = column(Origin::Duration).zip(short).map(|(period, short)| (period, time.unwrap_or_default(), short));
    let listed = connection.known_searches().filter(|_| estimate.lists).unwrap_or_default();
    // One with a name is the one that people follow.
    let one = listed.iter().find(|(_, name)| !name.is_empty()).or(listed.first()).cloned();
    let search = column(Origin::Aid).zip(one).map(|(column, (aid, name))| {
        let name = quoted(if name.is_empty() { &aid } else { &name }, NAME);
        (column, aid, name)
    });
    Hints { aggregates, window, search }
}
