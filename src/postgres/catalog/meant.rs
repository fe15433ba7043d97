//! Detection of statements about system catalogs, by what they read.
//!
//! A statement is about system catalogs if it reads one of their tables, or if it reads no table and calls a function that
//! only PostgreSQL has. Words in strings, names and aliases have no effect.

use std::collections::HashSet;

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{DataType as SqlType, Expr, ObjectName, Query, SetExpr, Statement, TableFactor};

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

/// Returns true if a statement is about catalogs.
///
/// # Errors
/// 0A000 for a statement that reads tables of the service as well.
pub(in crate::postgres) fn is_meant(parsed: &Parsed) -> Result<bool, Report> {
    let statement = match parsed {
        Parsed::Explain(explain) => return is_meant(&explain.statement),
        Parsed::Statement(statement) if matches!(statement.as_ref(), Statement::Query(_)) => statement,
        _ => return Ok(false),
    };
    let mut read = Read::default();
    syntax::read(statement.as_ref(), &mut read);
    let Read { with, relations, functions, calls } = read;
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
        (None, None) if function => Ok(false),
        (Some(catalog), Some(service)) => {
            let [catalog, service] = [catalog, service].map(|name| name.join("."));
            let line = format!(
                "a statement can read either the system catalogs ({catalog}) or tables of the service ({service})"
            );
            Err(Report::error("0A000", line))
        }
        (Some(_), None) => Ok(true),
        (None, Some(_)) => Ok(false),
        (None, None) => Ok(calls),
    }
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
    /// Set if a function or type of PostgreSQL is used.
    calls: bool,
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
        self.calls |= match expr {
            Expr::Function(function) => {
                let name = parts(&function.name);
                name.last().is_some_and(|name| is_function(name) && !OF_BOTH.contains(&name.as_str()))
            }
            Expr::Identifier(word) => word.quote_style.is_none() && WORDS.contains(&word.value.to_lowercase().as_str()),
            Expr::Cast { data_type, .. } => is_registered(data_type),
            _ => false,
        };
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

    #[test]
    fn relations_decide_and_words_do_not() {
        let meant = |sql| is_meant(&parsed(sql).expect(sql));
        for sql in [
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
        ] {
            assert_eq!(meant(sql), Ok(true), "{sql}");
        }
        for sql in [
            "SELECT current_user, count(*) FROM saved_searches",
            "SELECT count(*) AS pg_count FROM mentions",
            "SELECT pg_count FROM (SELECT 1 AS pg_count) t",
            "SELECT id AS \"a\"\"b\" FROM mentions",
            "SELECT version FROM t",
            "SELECT 'pg_class' FROM mentions",
            "WITH pg_t AS (SELECT 1) SELECT * FROM pg_t",
            "SELECT * FROM generate_series(1, 3)",
            "SELECT current_user, id FROM mentions(aid => '1')",
            "SELECT 1",
            "CREATE VIEW v AS SELECT 1",
        ] {
            assert_eq!(meant(sql), Ok(false), "{sql}");
        }
        assert!(meant("SELECT 1 FROM pg_class, mentions").is_err());
    }
}
