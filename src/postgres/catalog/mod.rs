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

use std::sync::Arc;

use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as Parsed;

pub(super) use self::meant::is_meant;
pub(super) use self::rewrite::{known_operator, rewritten, strip};
use self::tables::World;
pub(super) use self::tables::function_name;
use super::dialect::Names;
use crate::host::sessions::Session;

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
