//! SHOW DATABASES, CATALOGS and SCHEMAS as queries of the information schema. The engine has SHOW TABLES and SHOW COLUMNS only.

use datafusion::error::Result;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{ShowStatementOptions, Statement as Ast};

use super::parse::parse_statements;

/// Returns the query for a statement that lists catalogs or schemas; other statements as they are. Those with options, such as
/// `SHOW SCHEMAS LIKE 'v%'`, stay, and are refused by the engine.
pub(super) fn listings(statement: Statement) -> Result<Statement> {
    let Statement::Statement(inner) = &statement else { return Ok(statement) };
    let query = match inner.as_ref() {
        Ast::ShowDatabases { terse: false, history: false, show_options }
        | Ast::ShowCatalogs { terse: false, history: false, show_options }
            if is_plain(show_options) =>
        {
            "SELECT DISTINCT catalog_name AS database_name FROM information_schema.schemata ORDER BY 1"
        }
        Ast::ShowSchemas { terse: false, history: false, show_options } if is_plain(show_options) => {
            "SELECT catalog_name AS database_name, schema_name FROM information_schema.schemata ORDER BY 1, 2"
        }
        _ => return Ok(statement),
    };
    Ok(parse_statements(query)?.pop_front().unwrap_or(statement))
}

/// True without further clauses.
pub(crate) fn is_plain(options: &ShowStatementOptions) -> bool {
    matches!(
        options,
        ShowStatementOptions { show_in: None, starts_with: None, limit: None, limit_from: None, filter_position: None }
    )
}
