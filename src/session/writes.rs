//! Refusal of statements that write: the service has no calls that do, and a session has only its own tables, views and settings.
//!
//! ```text
//! syntax tree ─▶ refuse_changes (shell), refuse_statement (servers)    before anything else about it is checked
//! plan        ─▶ refuse_writes (shell, driver), refuse_inner (servers), refuse_drop (all) before it runs
//! ```
//!
//! A shell may write into tables of its own; a server refuses such statements whatever their table. The tables themselves refuse
//! what comes past these checks (`table/read_only`).

use datafusion::common::TableReference;
#[cfg(feature = "host")]
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{DdlStatement, DropTable, DropView, LogicalPlan};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Statement as Ast;

#[cfg(feature = "shell")]
use super::syntax;
#[cfg(feature = "host")]
use crate::error::{Error, ErrorKind, Term};
use crate::table::{is_read_only, read_only};

/// Reason why a server refuses to write.
#[cfg(feature = "host")]
pub(crate) const READ_ONLY: &str = "the service is read-only";

/// Refusal of something that writes, such as `COPY is`.
#[cfg(feature = "host")]
pub(crate) fn not_supported(what_is: &str) -> String {
    format!("{what_is} not supported: {READ_ONLY}")
}

/// Error for a statement that would change more than the session.
#[cfg(feature = "host")]
pub(crate) fn refused(what: &str) -> DataFusionError {
    let error = Error::new(ErrorKind::Unsupported, not_supported(&format!("{what} is")));
    error.advice(Term::Statements).into()
}

/// Refuses a statement of a server's client that writes, before the engine looks for files, or that belongs to a transaction.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for such a statement.
#[cfg(feature = "host")]
pub(crate) fn refuse_statement(statement: &Statement) -> Result<(), DataFusionError> {
    match statement {
        Statement::CopyTo(_) => Err(refused("COPY")),
        Statement::CreateExternalTable(_) => Err(refused("CREATE EXTERNAL TABLE")),
        Statement::Statement(statement) => match statement.as_ref() {
            Ast::Insert(_) => Err(refused("INSERT")),
            Ast::Update(_) => Err(refused("UPDATE")),
            Ast::Delete(_) => Err(refused("DELETE")),
            Ast::StartTransaction { .. }
            | Ast::Commit { .. }
            | Ast::Rollback { .. }
            | Ast::Savepoint { .. }
            | Ast::ReleaseSavepoint { .. } => {
                let error = Error::new(ErrorKind::Unsupported, format!("there are no transactions: {READ_ONLY}"));
                Err(error.advice("leave out BEGIN, COMMIT and ROLLBACK").into())
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Refuses what writes inside a query: EXPLAIN ANALYZE runs the statement that it explains.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for such a query.
#[cfg(feature = "host")]
pub(crate) fn refuse_inner(query: &LogicalPlan) -> Result<(), DataFusionError> {
    let mut writes = None;
    query.apply_with_subqueries(|node| {
        writes = match node {
            LogicalPlan::Ddl(ddl) => Some(ddl.name().to_owned()),
            LogicalPlan::Dml(dml) => Some(dml.op.name().to_owned()),
            LogicalPlan::Copy(_) => Some("COPY".to_owned()),
            LogicalPlan::Statement(statement) => Some(statement.name().to_owned()),
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Ok(TreeNodeRecursion::Stop)
    })?;
    writes.map_or(Ok(()), |what| Err(refused(&what)))
}

/// Refuses a statement that would change a table of the service, before anything else about it is checked.
///
/// # Errors
/// [`ErrorKind::Query`](crate::ErrorKind::Query) for such a statement.
#[cfg(feature = "shell")]
pub(crate) async fn refuse_changes(statement: &Statement, context: &SessionContext) -> Result<(), DataFusionError> {
    let Statement::Statement(statement) = statement else { return Ok(()) };
    let changes = matches!(
        statement.as_ref(),
        Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) | Ast::Truncate(_) | Ast::Merge(_) | Ast::AlterTable(_)
    );
    if !changes {
        return Ok(());
    }
    // The table to change is the first that the statement names.
    let mut target = None;
    syntax::relations(statement, &mut |name| {
        target.get_or_insert_with(|| name.to_string());
    });
    match target {
        Some(target) => refuse_table(context, TableReference::from(target.as_str()), &target).await,
        None => Ok(()),
    }
}

/// Refuses a plan that would change the tables of the service.
///
/// # Errors
/// [`ErrorKind::Query`](crate::ErrorKind::Query) for such a plan.
#[cfg(feature = "shell")]
pub(crate) async fn refuse_writes(plan: &LogicalPlan, context: &SessionContext) -> Result<(), DataFusionError> {
    refuse_drop(plan, context).await?;
    let table = match plan {
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) => &table.name,
        LogicalPlan::Ddl(DdlStatement::CreateView(view)) => &view.name,
        _ => return Ok(()),
    };
    refuse_table(context, table.clone(), table.table()).await
}

/// Refuses to drop a table of the service. The engine would say that there is no such table: it drops tables of the session only.
///
/// # Errors
/// [`ErrorKind::Query`](crate::ErrorKind::Query) for a table of the service.
pub(crate) async fn refuse_drop(plan: &LogicalPlan, context: &SessionContext) -> Result<(), DataFusionError> {
    match plan {
        LogicalPlan::Ddl(
            DdlStatement::DropTable(DropTable { name, .. }) | DdlStatement::DropView(DropView { name, .. }),
        ) => refuse_table(context, name.clone(), name.table()).await,
        _ => Ok(()),
    }
}

/// Refuses to change a table of the service, which the error calls `shown`. Tables of the session and unknown names pass.
///
/// # Errors
/// [`ErrorKind::Query`](crate::ErrorKind::Query) for a table of the service.
pub(crate) async fn refuse_table(
    context: &SessionContext,
    table: TableReference,
    shown: &str,
) -> Result<(), DataFusionError> {
    match context.table_provider(table).await {
        Ok(found) if is_read_only(&found) => Err(read_only(shown).into()),
        _ => Ok(()),
    }
}
