//! SHOW TABLES, DATABASES, CATALOGS and SCHEMAS as queries of the information schema. The engine has SHOW TABLES alone, without
//! an order and without filters.
//!
//! | statement | rows |
//! | --- | --- |
//! | `SHOW TABLES` | all tables, those of the current catalog and schema first |
//! | `SHOW TABLES FROM v4`, `IN savedsearch.v4` | those of a schema, or of a catalog |
//! | `SHOW SCHEMAS FROM savedsearch` | the schemas of a catalog |
//! | `… LIKE 'm%'`, `… ILIKE 'm%'`, `… WHERE condition` | those whose name matches, or which meet the condition |
//!
//! Other options, such as `FULL` and `LIMIT`, stay, and are refused by the engine.

use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, ObjectName, SetExpr, ShowStatementFilter as Filter, ShowStatementFilterPosition as Position,
    ShowStatementIn, ShowStatementInParentType as Parent, ShowStatementOptions, Statement as Ast,
};

use crate::error::{Error, ErrorKind};
use crate::session::nodes::normalized;
use crate::session::parse::{literal, parse_statements};

const INFORMATION_SCHEMA: &str = "information_schema";

/// A kind of objects that a statement lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    Tables,
    Databases,
    Schemas,
}

/// Returns the query for a statement that lists tables, catalogs or schemas; other statements as they are.
///
/// # Errors
/// [`ErrorKind::Query`] for a schema or catalog that does not exist.
pub(in crate::session) fn listings(state: &SessionState, statement: Statement) -> Result<Statement> {
    let Statement::Statement(inner) = &statement else { return Ok(statement) };
    let (listing, options) = match inner.as_ref() {
        Ast::ShowTables {
            terse: false,
            history: false,
            extended: false,
            full: false,
            external: false,
            show_options,
        } if state.config_options().catalog.information_schema => (Listing::Tables, show_options),
        Ast::ShowDatabases { terse: false, history: false, show_options }
        | Ast::ShowCatalogs { terse: false, history: false, show_options } => (Listing::Databases, show_options),
        Ast::ShowSchemas { terse: false, history: false, show_options } => (Listing::Schemas, show_options),
        _ => return Ok(statement),
    };
    let Some(Conditions { written, given }) = conditions(state, listing, options)? else { return Ok(statement) };
    let filter = if written.is_empty() { String::new() } else { format!(" WHERE {}", written.join(" AND ")) };
    let query = match listing {
        Listing::Tables => {
            let current = &state.config_options().catalog;
            let (catalog, schema) = (literal(&current.default_catalog), literal(&current.default_schema));
            format!(
                "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables{filter} \
                 ORDER BY table_schema = '{INFORMATION_SCHEMA}', table_catalog <> {catalog}, table_catalog, \
                 table_schema <> {schema}, table_schema, table_name"
            )
        }
        Listing::Databases => format!(
            "SELECT database_name FROM (SELECT DISTINCT catalog_name AS database_name FROM information_schema.schemata) \
             AS listed{filter} ORDER BY 1"
        ),
        Listing::Schemas => format!(
            "SELECT database_name, schema_name FROM (SELECT catalog_name AS database_name, schema_name \
             FROM information_schema.schemata) AS listed{filter} ORDER BY 1, 2"
        ),
    };
    let query = parse_statements(&query)?.pop_front();
    Ok(query.map_or(statement, |query| filtered(query, given)))
}

/// A query with a further condition. It stays a tree: printed and parsed again, a text with a backslash before a quote would be
/// another one.
fn filtered(mut query: Statement, condition: Option<Expr>) -> Statement {
    if let Some(condition) = condition
        && let Statement::Statement(inner) = &mut query
        && let Ast::Query(inner) = inner.as_mut()
        && let SetExpr::Select(select) = inner.body.as_mut()
    {
        let condition = Expr::Nested(Box::new(condition));
        select.selection = Some(match select.selection.take() {
            Some(own) => Expr::BinaryOp { left: Box::new(own), op: BinaryOperator::And, right: Box::new(condition) },
            None => condition,
        });
    }
    query
}

/// Conditions of a listing, all of which apply.
#[derive(Debug, Default)]
struct Conditions {
    /// Those that the options mean, in SQL.
    written: Vec<String>,
    /// That of WHERE.
    given: Option<Expr>,
}

/// The conditions that options mean; `None` for options that are not supported.
fn conditions(state: &SessionState, listing: Listing, options: &ShowStatementOptions) -> Result<Option<Conditions>> {
    let ShowStatementOptions { show_in, starts_with: None, limit: None, limit_from: None, filter_position } = options
    else {
        return Ok(None);
    };
    let mut conditions = Conditions::default();
    match show_in {
        None => {}
        Some(ShowStatementIn {
            parent_type: None | Some(Parent::Database | Parent::Schema),
            parent_name: Some(name),
            ..
        }) if listing != Listing::Databases => conditions.written.push(within(state, listing, name)?),
        Some(_) => return Ok(None),
    }
    let name = match listing {
        Listing::Tables => "table_name",
        Listing::Databases => "database_name",
        Listing::Schemas => "schema_name",
    };
    match filter_position {
        None => {}
        Some(Position::Infix(filter) | Position::Suffix(filter)) => match filter {
            Filter::Like(pattern) => conditions.written.push(format!("{name} LIKE {}", literal(pattern))),
            Filter::ILike(pattern) => conditions.written.push(format!("{name} ILIKE {}", literal(pattern))),
            Filter::Where(condition) => conditions.given = Some(condition.clone()),
            Filter::NoKeyword(_) => return Ok(None),
        },
    }
    Ok(Some(conditions))
}

/// The condition for the objects in a schema or catalog.
fn within(state: &SessionState, listing: Listing, name: &ObjectName) -> Result<String> {
    let catalogs = state.catalog_list().catalog_names();
    let has_schema = |catalog: &str, schema: &str| {
        let schemas = state.catalog_list().catalog(catalog).map(|catalog| catalog.schema_names()).unwrap_or_default();
        schema == INFORMATION_SCHEMA || schemas.iter().any(|known| known == schema)
    };
    let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident()).map(normalized).collect();
    match (listing, parts.as_slice()) {
        (Listing::Schemas, [catalog]) if catalogs.contains(catalog) => {
            Ok(format!("database_name = {}", literal(catalog)))
        }
        (Listing::Tables, [schema]) if catalogs.iter().any(|catalog| has_schema(catalog, schema)) => {
            Ok(format!("table_schema = {}", literal(schema)))
        }
        (Listing::Tables, [catalog]) if catalogs.contains(catalog) => {
            Ok(format!("table_catalog = {}", literal(catalog)))
        }
        (Listing::Tables, [catalog, schema]) if catalogs.contains(catalog) && has_schema(catalog, schema) => {
            Ok(format!("table_catalog = {} AND table_schema = {}", literal(catalog), literal(schema)))
        }
        _ => {
            let (what, advice) = match listing {
                Listing::Schemas => ("database", "SHOW DATABASES lists the databases"),
                _ => ("schema", "SHOW SCHEMAS lists the schemas"),
            };
            Err(Error::new(ErrorKind::Query, format!("unknown {what} `{name}`")).advice(advice).into())
        }
    }
}
