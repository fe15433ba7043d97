//! Detection of statements about system catalogs, by what they read.
//!
//! A statement is about system catalogs if it reads one of their tables, or if it reads no table and has only calls of functions
//! that PostgreSQL alone has. In other statements, these calls are constants: the rest has the meaning that it has everywhere.
//! Words in strings, names and aliases have no effect.

use std::collections::HashSet;

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Query, SelectItem, SetExpr,
    Statement, TableFactor, Value,
};

use super::super::report::Report;
use super::tables::is_table;
use super::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::session::syntax::{self, Reader};

/// Words that are replaced by a value of the session.
const WORDS: [&str; 6] = ["current_catalog", "current_role", "current_schema", "current_user", "session_user", "user"];
/// Functions of PostgreSQL, besides those whose names begin with `pg_`, `to_reg` or `has_`.
const FUNCTIONS: [&str; 11] = [
    "col_description",
    "current_database",
    "current_schemas",
    "current_setting",
    "format_type",
    "inet_server_addr",
    "obj_description",
    "quote_ident",
    "set_config",
    "shobj_description",
    "version",
];
/// Functions that the engine has as well.
const OF_BOTH: [&str; 2] = ["generate_series", "unnest"];

/// Subject of a statement.
#[derive(Debug, PartialEq)]
pub(in crate::postgres) enum Meant {
    /// System catalogs.
    Catalogs,
    /// Anything else, with calls of functions of catalogs whose arguments are constants.
    Service { calls: Vec<Expr> },
}

/// Returns what a statement is about.
///
/// # Errors
/// 0A000 for a statement that reads both catalogs and tables of the service.
pub(in crate::postgres) fn meant(parsed: &Parsed) -> Result<Meant, Report> {
    let query = match parsed {
        Parsed::Explain(explain) => return meant(&explain.statement),
        Parsed::Statement(statement) => match statement.as_ref() {
            Statement::Query(query) => query,
            _ => return Ok(Meant::Service { calls: Vec::new() }),
        },
        _ => return Ok(Meant::Service { calls: Vec::new() }),
    };
    let mut read = Read::default();
    syntax::read(query, &mut read);
    let Read { with, relations, functions, calls, open } = read;
    let (mut of_catalogs, mut of_service, mut function) = (None, None, false);
    for relation in relations {
        match kind(&relation, &with) {
            Kind::Catalog => of_catalogs = Some(relation),
            // The catalogs have the functions of the engine.
            Kind::Service if functions.contains(&relation) => function = true,
            Kind::Service => of_service = Some(relation),
            Kind::Neither => {}
        }
    }
    match (of_catalogs, of_service) {
        (Some(catalog), Some(service)) => {
            let [catalog, service] = [catalog, service].map(|name| name.join("."));
            let line = format!(
                "a statement can read either the system catalogs ({catalog}) or tables of the service ({service})"
            );
            Err(Report::error("0A000", line))
        }
        (Some(_), None) => Ok(Meant::Catalogs),
        (None, None) if !function && (open || has_only_calls(query)) => Ok(Meant::Catalogs),
        (None, _) => Ok(Meant::Service { calls }),
    }
}

/// True for a SELECT of calls and literals alone, at least one of them a call.
fn has_only_calls(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let items = select.projection.iter().map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    let items: Option<Vec<&Expr>> = items.collect();
    let alone = select.from.is_empty() && select.selection.is_none() && query.with.is_none();
    alone
        && items.is_some_and(|items| {
            items.iter().any(|item| is_call(item) || is_word(item))
                && items.iter().all(|item| is_call(item) || is_word(item) || is_plain(item))
        })
}

/// Names of the tables that a statement reads, without their schemas.
pub(super) fn relations(parsed: &Parsed) -> HashSet<String> {
    match parsed {
        Parsed::Explain(explain) => relations(&explain.statement),
        Parsed::Statement(statement) => {
            let mut names = HashSet::new();
            syntax::relations(statement.as_ref(), &mut |name| names.extend(parts(name).pop()));
            names
        }
        _ => HashSet::new(),
    }
}

#[derive(Default)]
struct Read {
    /// Names of WITH queries.
    with: HashSet<String>,
    /// Names of tables and of functions in FROM, in lower case.
    relations: Vec<Vec<String>>,
    /// Those of functions.
    functions: HashSet<Vec<String>>,
    /// Calls of functions and casts to types that only catalogs have, of constants.
    calls: Vec<Expr>,
    /// Set if there are others of them, or words for values of the session.
    open: bool,
}

enum Kind {
    Catalog,
    Service,
    Neither,
}

fn kind(relation: &[String], with: &HashSet<String>) -> Kind {
    match relation {
        [.., name] if OF_BOTH.contains(&name.as_str()) => Kind::Neither,
        [name] if with.contains(name) => Kind::Neither,
        [name] if is_table(PG_CATALOG, name) || is_function(name) => Kind::Catalog,
        [.., schema, _] if [PG_CATALOG, INFORMATION_SCHEMA].contains(&schema.as_str()) => Kind::Catalog,
        _ => Kind::Service,
    }
}

fn is_function(name: &str) -> bool {
    let begins = ["pg_", "to_reg", "has_"].iter().any(|start| name.starts_with(start));
    begins || FUNCTIONS.contains(&name) || WORDS.contains(&name)
}

/// The parts of a name, those without quotes in lower case.
fn parts(name: &ObjectName) -> Vec<String> {
    let parts = name.0.iter().filter_map(|part| part.as_ident()).map(|part| match part.quote_style {
        Some(_) => part.value.clone(),
        None => part.value.to_lowercase(),
    });
    parts.collect()
}

impl Reader for Read {
    fn pre_visit_query(&mut self, query: &Query) {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.with.extend(with.map(|table| parts(&ObjectName::from(vec![table.alias.name.clone()])).concat()));
        let SetExpr::Select(select) = query.body.as_ref() else { return };
        let joins = select.from.iter().flat_map(|from| from.joins.iter().map(|join| &join.relation));
        for factor in select.from.iter().map(|from| &from.relation).chain(joins) {
            if let TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } = factor {
                self.functions.insert(parts(name));
            }
        }
    }

    fn visit_relation(&mut self, name: &ObjectName) {
        self.relations.push(parts(name));
    }

    fn pre_visit_expr(&mut self, expr: &Expr) {
        if is_call(expr) {
            self.calls.push(expr.clone());
        } else {
            // The parts of a call are constants.
            self.open |= is_of_catalogs(expr);
        }
    }
}

/// True for a call of a function that only catalogs have, and for a cast to a type of names of their objects.
fn is_of_catalogs(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => {
            let name = parts(&function.name).pop();
            !is_word(expr) && name.is_some_and(|name| is_function(&name) && !OF_BOTH.contains(&name.as_str()))
        }
        Expr::Cast { data_type, .. } => is_registered(data_type),
        _ => false,
    }
}

/// True for one of them whose arguments are constants, and for a cast of it to a plain type.
fn is_call(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) if is_of_catalogs(expr) => match &function.args {
            FunctionArguments::None => true,
            FunctionArguments::Subquery(_) => false,
            FunctionArguments::List(list) => list.args.iter().all(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => is_constant(argument),
                _ => false,
            }),
        },
        Expr::Cast { expr: inner, .. } if is_of_catalogs(expr) => is_constant(inner),
        Expr::Cast { expr: inner, data_type, .. } => is_call(inner) && is_plain_type(data_type),
        Expr::Nested(inner) => is_call(inner),
        _ => false,
    }
}

fn is_constant(expr: &Expr) -> bool {
    is_plain(expr) || is_word(expr) || is_call(expr)
}

/// True for a literal that has the same meaning everywhere.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(_) | Value::Boolean(_) | Value::Null => true,
            Value::Number(digits, _) => digits.bytes().all(|byte| byte.is_ascii_digit()),
            _ => false,
        },
        Expr::Cast { expr, data_type, .. } => is_plain(expr) && is_plain_type(data_type) && !is_number(expr),
        Expr::Nested(inner) => is_plain(inner),
        _ => false,
    }
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::Number(..)))
}

/// True for text, whole numbers, and the names and numbers of objects.
fn is_plain_type(data_type: &SqlType) -> bool {
    match data_type {
        SqlType::Text | SqlType::BigInt(_) | SqlType::Int(_) | SqlType::Integer(_) => true,
        SqlType::Custom(name, _) => {
            parts(name).last().is_some_and(|name| ["int4", "int8", "name", "oid", "text"].contains(&name.as_str()))
        }
        _ => is_registered(data_type),
    }
}

/// True for a word or a function that stands for a name of the session, such as `current_user`.
fn is_word(expr: &Expr) -> bool {
    match expr {
        Expr::Identifier(word) => word.quote_style.is_none() && WORDS.contains(&word.value.to_lowercase().as_str()),
        Expr::Function(function) => {
            let none = match &function.args {
                FunctionArguments::None => true,
                FunctionArguments::List(list) => list.args.is_empty(),
                FunctionArguments::Subquery(_) => false,
            };
            let name = parts(&function.name).pop();
            none && name.is_some_and(|name| name == "current_database" || WORDS.contains(&name.as_str()))
        }
        _ => false,
    }
}

/// True for a type of names of objects, such as `regclass`.
fn is_registered(data_type: &SqlType) -> bool {
    match data_type {
        SqlType::Regclass => true,
        SqlType::Custom(name, _) => parts(name).last().is_some_and(|name| name.starts_with("reg")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::dialect::parsed;
    use super::*;
    use crate::cases::each;
    use crate::session::PlanningTurn;

    #[test]
    fn relations_decide_and_words_do_not() {
        let meant = |sql| meant(&parsed(&PlanningTurn::unbounded(), sql).expect(sql));
        let cases = [
            "SELECT * FROM pg_catalog.pg_class",
            "SELECT relname FROM pg_class c JOIN pg_namespace n ON true",
            "EXPLAIN SELECT 1 FROM information_schema.tables",
            "WITH t AS (SELECT * FROM pg_class) SELECT * FROM t",
            "SELECT version()",
            "SELECT 'x'::regclass",
            "SELECT current_schema",
            "SELECT * FROM current_schema()",
            "SELECT 1 FROM information_schema.tables, string_to_array('a', ',') s",
            "SELECT pg_catalog.pg_postmaster_start_time()",
            "SELECT pg_get_userbyid(n) FROM (VALUES (1)) t (n)",
        ];
        each(cases, |sql| {
            assert_eq!(meant(sql), Ok(Meant::Catalogs), "{sql}");
        });
        let cases = [
            "SELECT current_user, count(*) FROM saved_searches",
            "SELECT count(*) AS pg_count FROM mentions",
            "SELECT pg_count FROM (SELECT 1 AS pg_count) t",
            "SELECT id AS \"a\"\"b\" FROM mentions",
            "SELECT version FROM t",
            "SELECT 'pg_class' FROM mentions",
            "WITH pg_t AS (SELECT 1) SELECT * FROM pg_t",
            "SELECT * FROM generate_series(1, 3)",
            "SELECT current_user, id FROM mentions(aid => '1')",
            "SELECT current_user, 2.6::int",
            "SELECT 1",
            "CREATE VIEW v AS SELECT 1",
        ];
        each(cases, |sql| {
            assert_eq!(meant(sql), Ok(Meant::Service { calls: Vec::new() }), "{sql}");
        });
        assert!(meant("SELECT 1 FROM pg_class, mentions").is_err());
        for (sql, expected) in [
            ("SELECT version(), 2.6::int", vec!["version()"]),
            ("SELECT upper(current_setting('timezone')) FROM mentions", vec!["current_setting('timezone')"]),
            (
                "SELECT 1 FROM mentions WHERE 'mentions'::regclass::oid > 0",
                vec!["'mentions'::REGCLASS::oid", "'mentions'::REGCLASS"],
            ),
        ] {
            let Ok(Meant::Service { calls }) = meant(sql) else { panic!("{sql}") };
            assert_eq!(calls.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{sql}");
        }
    }
}
