//! Statements that change a session: settings, views and temporary tables.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{CreateMemoryTable, DdlStatement, LogicalPlan};
use futures::TryStreamExt;
use tokio::time::{Instant, timeout_at};

use super::failure::Failure;
use super::metrics::Metrics;
use super::planner::{Runnable, Statement, may_set, runnable};
use super::sessions::Session;
use super::state::{Host, timed_out};
use super::temporary::Making;
use crate::catalog::refuse_served;
use crate::client::QuerySpan;
use crate::error::{Error, ErrorKind};
use crate::exec::{spent, start};
use crate::session::{bytes_of_plan, defaults, follow_time_zone, refuse_drop, refuse_table};

/// Runs a statement that changes the session, with its set of parameters if it takes any.
///
/// # Errors
/// Errors of the statement, and several sets; RESOURCE_EXHAUSTED if too many queries are running, DEADLINE_EXCEEDED after the statement's
/// time limit.
pub(crate) async fn run(
    host: &Host,
    session: &Arc<Session>,
    statement: &Statement,
    bound: Option<Vec<Vec<ScalarValue>>>,
) -> Result<(), Failure> {
    let _busy = session.busy();
    let _places = host.places(session)?;
    let seconds = host.limits.statement_seconds;
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let applied = async {
        let turn = session.share.planning(bytes_of_plan(&statement.plan)).await;
        let plans = statement.bind_all(&turn, bound.unwrap_or_else(|| vec![Vec::new()]))?;
        drop(turn);
        for plan in plans {
            Box::pin(apply(session, plan, &host.metrics, host.limits.temporary_bytes)).await?;
        }
        Ok(())
    };
    tokio::select! {
        applied = timeout_at(deadline, applied) => match applied {
            Ok(applied) => applied.map_err(|error: DataFusionError| session.failure(&error)),
            Err(_) => Err(timed_out(seconds)),
        },
        () = host.cancelled.cancelled() => Err(Failure::shutdown()),
    }
}

/// Drops what statements have added to a session: temporary tables and views.
///
/// # Errors
/// Errors of looking up a table.
pub(crate) async fn discard(session: &Arc<Session>) -> Result<(), Failure> {
    let _busy = session.busy();
    let _making = session.making.lock().await;
    let dropped = super::temporary::drop_all(&session.context).await;
    dropped.map_err(|error| session.failure(&error))?;
    session.views.lock().unwrap_or_else(PoisonError::into_inner).clear();
    Ok(())
}

/// Restores the settings that a session began with.
///
/// # Errors
/// Errors of settings that depend on each other.
pub(crate) fn reset_settings(session: &Session) -> Result<(), Failure> {
    let state = session.context.state_ref();
    let mut state = state.write();
    let begun = defaults(state.config());
    let options = state.config_mut().options_mut();
    for entry in begun {
        if let Some(value) = entry.value.filter(|_| may_set(&entry.key)) {
            options.set(&entry.key, &value).map_err(|error| session.failure(&error))?;
        }
    }
    Ok(())
}

async fn apply(session: &Session, plan: LogicalPlan, metrics: &Metrics, most: u64) -> Result<()> {
    if let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) = plan {
        return create(session, table, metrics, most).await;
    }
    refuse_drop(&plan, &session.context).await?;
    let held = match &plan {
        // The plan and the text of a view are kept as long as the session.
        LogicalPlan::Ddl(DdlStatement::CreateView(view)) => {
            let text = view.definition.as_ref().map_or(0, String::len);
            Some((view.name.to_string(), session.share.keep("view", bytes_of_plan(&view.input) + text)?))
        }
        _ => None,
    };
    let dropped = match &plan {
        LogicalPlan::Ddl(DdlStatement::DropView(view)) => Some(view.name.to_string()),
        _ => None,
    };
    let sets = matches!(plan, LogicalPlan::Statement(_));
    session.context.execute_logical_plan(plan).await?.collect().await?;
    if sets {
        follow_time_zone(&session.context).await?;
    }
    let mut views = session.views.lock().unwrap_or_else(PoisonError::into_inner);
    views.extend(held);
    dropped.map(|name| views.remove(&name));
    Ok(())
}

/// Creates a table from the rows of a query.
async fn create(session: &Session, table: CreateMemoryTable, metrics: &Metrics, most: u64) -> Result<()> {
    let CreateMemoryTable { name, input, if_not_exists, or_replace, .. } = table;
    let _making = session.making.lock().await;
    // Checked before any request is spent.
    refuse_served(&session.context, &name)?;
    match (session.context.table_exist(name.clone())?, if_not_exists, or_replace) {
        (true, true, false) => return Ok(()),
        (true, false, false) => {
            return Err(Error::new(ErrorKind::Query, format!("table `{name}` already exists"))
                .advice("use CREATE OR REPLACE TABLE, or IF NOT EXISTS")
                .into());
        }
        (_, true, true) => {
            return Err(Error::new(ErrorKind::Query, "OR REPLACE and IF NOT EXISTS cannot be combined").into());
        }
        (true, false, true) => refuse_table(&session.context, name.clone(), name.table()).await?,
        _ => {}
    }
    let mut making = Making::begin(session, Arc::clone(input.schema().inner()), most).await?;
    let turn = session.share.planning(bytes_of_plan(&input)).await;
    let Runnable { plan, task, .. } = runnable(&turn, &session.context, Arc::unwrap_or_clone(input)).await?;
    drop(turn);
    let span = QuerySpan::start(Some("create_table"));
    let mut stream = start(&plan, task, Some(&span))?;
    let mut rows = 0;
    let read = async {
        while let Some(batch) = stream.try_next().await? {
            rows += batch.num_rows() as u64;
            making.take(&batch)?;
        }
        Ok(())
    };
    let read: Result<()> = read.await;
    span.ended_with(&read, rows);
    let cost = spent(&plan);
    metrics.spent(cost);
    read?;
    if cost.requests > 0 {
        session.prove();
    }
    making.register(session, name).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each_async;

    #[tokio::test]
    async fn what_has_no_rows_counts_as_well() {
        let (host, session) = Host::of_tests().await;
        let columns = (0..1_000).map(|column| format!("1 AS column_{column}")).collect::<Vec<_>>().join(", ");
        let unused = format!("WITH unused AS (SELECT '{}' AS a)", "x".repeat(200_000));
        let cases = [
            ("CREATE TABLE narrow AS SELECT 1 AS a WHERE false".to_owned(), 1_000),
            (format!("CREATE TABLE wide AS SELECT {columns} WHERE false"), 60_000),
            (format!("CREATE VIEW short AS {unused} SELECT 1 AS a"), 200_000),
        ];
        each_async(cases, async |(sql, least)| {
            let before = session.share.pool().reserved();
            let statement = host.statement(&session, &sql).await.expect("a plan");
            run(&host, &session, &statement, None).await.expect("done");
            assert!(session.share.pool().reserved() >= before + least, "{}", &sql[..20]);
        })
        .await;
    }
}
