//! Functions in FROM: the names of their columns, and forms that the engine does not support.
//!
//! | item | translation |
//! | --- | --- |
//! | `unnest(a) u`, `generate_series(1, 3) g` | `AS u(u)`, `AS g(g)`: the alias is the name of the column |
//! | `unnest(a) WITH ORDINALITY` | `unnest(a, generate_series(1, cardinality(a)))` |
//! | `generate_series(1, t.n)` | `unnest(generate_series(1, t.n))`, which may look at other items |
//! | `generate_series(date '2026-01-01', …)` | a series of instants (`times`) |
//! | `generate_series(…) WITH ORDINALITY` | a subquery with row numbers |
//! | `string_to_table(…)` | `unnest(string_to_array(…))` |
//! | `EXISTS (SELECT … FROM unnest(a) u WHERE …)` | `array_any_match(a, u -> …)` |

use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr as SqlExpr, FunctionArg, FunctionArgExpr, GroupByExpr, Ident, LambdaFunction,
    LambdaFunctionParameter, LambdaSyntax, ObjectName, OneOrManyWithParens, Query, Select, SelectItem, SetExpr,
    TableAlias, TableAliasColumnDef, TableFactor, TableFunctionArgs, TableWithJoins, Value, WildcardAdditionalOptions,
};

use super::expressions::{cast_to, number};
use super::spans;
use super::times::series_without_dates;
use crate::session::{call, query_of, syntax, table_of};

/// Translates an item of FROM.
pub(super) fn translated(factor: &mut TableFactor) {
    let (name, arguments, ordinality, alias) = match factor {
        TableFactor::UNNEST { array_exprs, with_ordinality, alias, with_offset: false, .. } => {
            ("unnest", array_exprs.clone(), *with_ordinality, alias.take())
        }
        TableFactor::Table { name, args: Some(TableFunctionArgs { args, .. }), with_ordinality, alias, .. }
        | TableFactor::Function { name, args, with_ordinality, alias, .. } => {
            let Some(name) = known(name) else { return };
            let Some(arguments) = expressions(args) else { return };
            (name, arguments, *with_ordinality, alias.take())
        }
        _ => return,
    };
    let lists = match name {
        "unnest" => arguments,
        "string_to_table" => vec![call("string_to_array", arguments)],
        "json_object_keys" => vec![call("json_object_keys", arguments)],
        _ => {
            let arguments = of_times(arguments);
            match series_without_dates(arguments.clone()).filter(|known| known.iter().all(is_constant)) {
                Some(known) => {
                    *factor = series(known, ordinality, alias);
                    return;
                }
                None => vec![call("generate_series", arguments)],
            }
        }
    };
    let columns = lists.len();
    let mut array_exprs = lists;
    if ordinality {
        let lengths: Vec<SqlExpr> = array_exprs.iter().map(|list| call("cardinality", vec![list.clone()])).collect();
        let longest = if columns == 1 { lengths } else { vec![call("greatest", lengths)] };
        let last = longest.into_iter().next().unwrap_or_else(|| number("0"));
        array_exprs.push(call("generate_series", vec![number("1"), cast_to(last, SqlType::BigInt(None))]));
    }
    *factor = TableFactor::UNNEST {
        alias: Some(aliased(alias, name, columns, ordinality)),
        array_exprs,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: false,
    };
}

/// The condition that an item of an array exists, from the query of EXISTS; `None` for another query.
pub(super) fn any_item(query: &Query) -> Option<SqlExpr> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if query.with.is_some() || query.limit_clause.is_some() || query.fetch.is_some() || grouped {
        return None;
    }
    let ([TableWithJoins { relation, joins }], None) = (select.from.as_slice(), &select.having) else { return None };
    let (array, alias) = match relation {
        TableFactor::UNNEST { array_exprs, with_ordinality: false, with_offset: false, alias, .. } => {
            (array_exprs.clone(), alias)
        }
        TableFactor::Table {
            name, args: Some(TableFunctionArgs { args, .. }), with_ordinality: false, alias, ..
        }
        | TableFactor::Function { name, args, with_ordinality: false, alias, .. } => {
            known(name).filter(|name| *name == "unnest")?;
            (expressions(args)?, alias)
        }
        _ => return None,
    };
    let ([array], true) = (array.as_slice(), joins.is_empty()) else { return None };
    // An aggregate has a row in any case.
    let mut plain = true;
    for item in &select.projection {
        syntax::expressions(item, &mut |expr| plain &= !matches!(expr, SqlExpr::Function(_)));
    }
    if is_constant(array) || !plain {
        return None;
    }
    let table = alias.as_ref().map_or_else(|| Ident::new("unnest"), |alias| alias.name.clone());
    let column = match alias.as_ref().map(|alias| alias.columns.as_slice()) {
        None | Some([]) => table.clone(),
        Some([column]) => column.name.clone(),
        Some(_) => return None,
    };
    let mut condition = select.selection.clone().unwrap_or_else(|| SqlExpr::value(Value::Boolean(true)));
    let same = |one: &Ident, other: &Ident| one.value.eq_ignore_ascii_case(&other.value);
    syntax::edit_expressions(&mut condition, &mut |expr| {
        if let SqlExpr::CompoundIdentifier(path) = expr
            && let [of, name] = path.as_slice()
            && same(of, &table)
            && same(name, &column)
        {
            *expr = SqlExpr::Identifier(column.clone());
        }
    });
    let lambda = SqlExpr::Lambda(LambdaFunction {
        params: OneOrManyWithParens::One(LambdaFunctionParameter { name: column.clone(), data_type: None }),
        body: Box::new(condition),
        syntax: LambdaSyntax::Arrow,
    });
    let any = call("array_any_match", vec![array.clone(), lambda]);
    Some(call("coalesce", vec![any, SqlExpr::value(Value::Boolean(false))]))
}

/// Names the column of a series `value`, as the engine does, if the statement uses that name.
pub(super) fn keep_value(select: &mut Select) {
    let is_value = |ident: &Ident| ident.value.eq_ignore_ascii_case("value");
    let mut uses = false;
    syntax::expressions(select, &mut |expr| {
        uses |= match expr {
            SqlExpr::Identifier(name) => is_value(name),
            SqlExpr::CompoundIdentifier(names) => names.last().is_some_and(is_value),
            _ => false,
        };
    });
    if !uses {
        return;
    }
    let tables = select.from.iter_mut().flat_map(|item| {
        std::iter::once(&mut item.relation).chain(item.joins.iter_mut().map(|join| &mut join.relation))
    });
    for table in tables {
        if let TableFactor::Table { name, args: Some(_), alias, with_ordinality: false, .. } = table
            && known(name) == Some("generate_series")
        {
            let alias = alias.get_or_insert_with(|| alias_of("generate_series"));
            if alias.columns.is_empty() {
                alias.columns.push(TableAliasColumnDef { name: Ident::new("value"), data_type: None });
            }
        }
    }
}

/// Functions that are translated.
fn known(name: &ObjectName) -> Option<&'static str> {
    let name = name.to_string().to_lowercase();
    let name = name.trim_start_matches("pg_catalog.");
    ["unnest", "generate_series", "json_object_keys", "string_to_table"].into_iter().find(|known| *known == name)
}

fn expressions(arguments: &[FunctionArg]) -> Option<Vec<SqlExpr>> {
    let each = arguments.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    each.collect()
}

/// The arguments of a series of times: the step may be written as a text.
fn of_times(mut arguments: Vec<SqlExpr>) -> Vec<SqlExpr> {
    if let Some(step) = arguments.get_mut(2)
        && let Some(interval) = spans::of_step(step)
    {
        *step = interval;
    }
    arguments
}

/// True for an expression that looks at no column.
fn is_constant(expr: &SqlExpr) -> bool {
    let mut constant = true;
    syntax::expressions(expr, &mut |part| {
        constant &= !matches!(part, SqlExpr::Identifier(_) | SqlExpr::CompoundIdentifier(_) | SqlExpr::Subquery(_));
    });
    constant
}

/// The engine's table function.
fn series(arguments: Vec<SqlExpr>, ordinality: bool, alias: Option<TableAlias>) -> TableFactor {
    let args = arguments.into_iter().map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))).collect();
    let function = |alias| {
        let mut table = table_of(ObjectName::from(vec![Ident::new("generate_series")]), alias);
        if let TableFactor::Table { args: of_table, .. } = &mut table {
            *of_table = Some(TableFunctionArgs { args, settings: None });
        }
        table
    };
    let whole = aliased(alias, "generate_series", 1, ordinality);
    if !ordinality {
        return function(Some(whole));
    }
    let mut numbers = call("row_number", Vec::new());
    if let SqlExpr::Function(function) = &mut numbers {
        function.over = Some(datafusion::sql::sqlparser::ast::WindowType::WindowSpec(
            datafusion::sql::sqlparser::ast::WindowSpec {
                window_name: None,
                partition_by: Vec::new(),
                order_by: Vec::new(),
                window_frame: None,
            },
        ));
    }
    let items = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default()), SelectItem::UnnamedExpr(numbers)];
    let from = vec![TableWithJoins { relation: function(None), joins: Vec::new() }];
    TableFactor::Derived { lateral: false, subquery: query_of(items, from), alias: Some(whole), sample: None }
}

fn alias_of(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::new(name), columns: Vec::new(), at: None }
}

/// The alias of a function with names for all its columns.
fn aliased(alias: Option<TableAlias>, function: &str, columns: usize, ordinality: bool) -> TableAlias {
    let mut alias = alias.unwrap_or_else(|| alias_of(function));
    let named = |name: Ident| TableAliasColumnDef { name, data_type: None };
    // Of several columns, only those that the statement names have one.
    if columns == 1 && alias.columns.is_empty() {
        alias.columns.push(named(alias.name.clone()));
    }
    while !alias.columns.is_empty() && alias.columns.len() < columns {
        alias.columns.push(named(Ident::with_quote('"', format!("{function}_{}", alias.columns.len() + 1))));
    }
    if ordinality && alias.columns.len() == columns {
        alias.columns.push(named(Ident::new("ordinality")));
    }
    alias
}
