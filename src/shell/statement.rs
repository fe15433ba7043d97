//! Statements as users type them: if they write data, and which list they show.

use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Statement as Ast, Use};

use crate::catalog::SCHEMA;
use crate::session::{is_plain, parse_statements, syntax};
use crate::table::{is_read_only, read_only};

/// Refuses a statement that would change a table of the service, before anything else about it is checked.
pub(super) async fn refuse_changes(statement: &Statement, context: &SessionContext) -> Result<(), DataFusionError> {
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
    let Some(target) = target else { return Ok(()) };
    match context.table_provider(target.as_str()).await {
        Ok(table) if is_read_only(&table) => Err(read_only(&target).into()),
        _ => Ok(()),
    }
}

/// Returns the name in a statement `USE name`.
pub(super) fn used(statement: &Statement) -> Option<String> {
    let Statement::Statement(statement) = statement else { return None };
    match statement.as_ref() {
        Ast::Use(Use::Object(name) | Use::Catalog(name) | Use::Schema(name) | Use::Database(name)) => {
            Some(name.to_string().replace('"', ""))
        }
        _ => None,
    }
}

/// Replaces SHOW TABLES, which the engine answers in no order, by a query with the tables of the connection first.
pub(super) fn with_order(statement: Statement, connection: &str) -> Result<Statement, DataFusionError> {
    let is_plain = matches!(&statement, Statement::Statement(inner) if matches!(
        inner.as_ref(),
        Ast::ShowTables { terse: false, history: false, extended: false, full: false, external: false, show_options }
            if is_plain(show_options)
    ));
    if !is_plain {
        return Ok(statement);
    }
    let connection = connection.replace('\'', "''");
    let query = format!(
        "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables \
         ORDER BY table_schema = 'information_schema', table_catalog <> '{connection}', table_catalog, \
         table_schema <> '{SCHEMA}', table_schema, table_name"
    );
    Ok(parse_statements(&query)?.pop_front().unwrap_or(statement))
}
