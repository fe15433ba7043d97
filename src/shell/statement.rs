//! Statements as users type them: which connection they use.

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Statement as Ast, Use};

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
