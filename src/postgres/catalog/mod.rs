//! PostgreSQL's system catalogs over the tables of a session, for clients that look for tables before they query them.
//!
//! ```text
//! statement ─meant?─▶ rewrite ─▶ SQL that the engine plans ─▶ a context with the catalogs alone ─▶ rows
//!                                                               tables: what exists; functions: what clients call
//! ```
//!
//! The context has none of the service's tables, so a statement about catalogs cannot send a request. It is made for each
//! statement, from the tables that the session has at that time. The names of PostgreSQL's tables and columns are data:
//! `columns.txt` and `types.txt`. If something does not exist here (triggers, policies, …), its table is empty. A query that
//! joins an empty table has no rows, so its expressions need not be supported (`rewrite`).

mod functions;
mod meant;
mod rewrite;
mod tables;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Expr, SelectItem, SetExpr, Statement};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;

pub(super) use self::meant::{Meant, meant};
pub(super) use self::rewrite::{known_operator, rewritten, strip};
use self::tables::World;
pub(super) use self::tables::function_name;
use super::dialect::Names;
use crate::host::sessions::Session;
use crate::session::{PlanningTurn, parse_trees};

/// Schemas of the catalogs.
const PG_CATALOG: &str = "pg_catalog";
const INFORMATION_SCHEMA: &str = "information_schema";

/// Creates the context that a statement about catalogs runs in, with the tables that it names. `settings` are those of the
/// connection. No request is sent.
///
/// # Errors
/// Errors of looking up the session's tables.
pub(super) async fn context(
    session: &Session,
    names: &Names,
    settings: &[(String, String)],
    statement: &Parsed,
) -> Result<SessionContext> {
    let database = &names.database;
    let wanted = meant::relations(statement);
    let world = Arc::new(World::of(&session.context, names, settings).await?);
    let catalog = MemoryCatalogProvider::new();
    for schema in [PG_CATALOG, INFORMATION_SCHEMA] {
        let tables = MemorySchemaProvider::new();
        for (name, table) in world.tables_of(schema, &wanted)? {
            tables.register_table(name, table)?;
        }
        catalog.register_schema(schema, Arc::new(tables))?;
    }
    let config = SessionConfig::new()
        .with_default_catalog_and_schema(database, PG_CATALOG)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(false)
        .with_target_partitions(1);
    let state = SessionStateBuilder::new_with_default_features()
        .with_config(config)
        .with_runtime_env(session.context.runtime_env())
        .build();
    let context = SessionContext::new_with_state(state);
    context.register_catalog(database, Arc::new(catalog));
    let context = crate::session::bounded_session(&context)?;
    functions::register(&context, &world);
    super::dialect::register(&context);
    Ok(context)
}

/// Evaluates calls of functions of catalogs, whose arguments are constants. Returns literals by the text of the calls. No request
/// is sent.
///
/// # Errors
/// Errors of looking up the session's tables; functions that do not exist.
pub(super) async fn constants(
    _turn: &PlanningTurn<'_>,
    session: &Session,
    names: &Names,
    settings: &[(String, String)],
    calls: Vec<Expr>,
) -> Result<HashMap<String, Expr>> {
    let texts: Vec<String> = calls.iter().map(ToString::to_string).collect();
    let mut statements = parse_trees("SELECT 1", PostgreSqlDialect {})?;
    for statement in &mut statements {
        if let Statement::Query(query) = statement
            && let SetExpr::Select(select) = query.body.as_mut()
        {
            select.projection = calls.iter().cloned().map(SelectItem::UnnamedExpr).collect();
        }
    }
    let mut literals = HashMap::new();
    for statement in statements {
        let parsed = rewritten(Parsed::Statement(Box::new(statement)), names, &[])?;
        let context = context(session, names, settings, &parsed).await?;
        let plan = context.state().statement_to_plan(parsed).await?;
        for row in context.execute_logical_plan(plan).await?.collect().await?.iter().map(RecordBatch::columns) {
            for (text, column) in texts.iter().zip(row) {
                literals.insert(text.clone(), rewrite::literal_of(&ScalarValue::try_from_array(column, 0)?));
            }
        }
    }
    Ok(literals)
}
