//! `array(SELECT x … ORDER BY y LIMIT 3)` as `array_agg` in a subquery, or an empty array.

use datafusion::sql::sqlparser::ast::{
    Array, Expr as SqlExpr, Function, FunctionArgumentClause, FunctionArguments, GroupByExpr, Ident, OrderByExpr,
    OrderByKind, Query, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins,
};

use super::expressions::digits_of;
use super::unsupported;
use crate::postgres::report::Report;
use crate::session::{call, query_of};

/// The column of a derived table with the items, or the first characters of its columns.
const COLUMN: &str = "__item";

/// The rows of a subquery as an array.
pub(super) fn array_of_rows(query: &Query) -> Result<SqlExpr, Report> {
    let refused =
        || unsupported("array(SELECT …) of this form is not supported; use (SELECT array_agg(x ORDER BY y) FROM …)");
    let sorts = match query.order_by.as_ref().map(|order| &order.kind) {
        Some(OrderByKind::Expressions(sorts)) => sorts.clone(),
        Some(OrderByKind::All(_)) => return Err(refused()),
        None => Vec::new(),
    };
    let mut rows = query.clone();
    rows.order_by = None;
    let plain = matches!(query.body.as_ref(), SetExpr::Select(select)
        if select.distinct.is_none()
            && select.having.is_none()
            && matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty()));
    let value;
    let mut outer = if query.limit_clause.is_none() && query.fetch.is_none() && plain {
        // In the query itself, where the keys are known.
        let SetExpr::Select(select) = rows.body.as_mut() else { return Err(refused()) };
        let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] =
            select.projection.as_slice()
        else {
            return Err(refused());
        };
        value = item.clone();
        Box::new(rows)
    } else if sorts.is_empty() {
        value = SqlExpr::Identifier(Ident::with_quote('"', COLUMN));
        let column = TableAliasColumnDef { name: Ident::with_quote('"', COLUMN), data_type: None };
        query_of(Vec::new(), vec![derived(Box::new(rows), vec![column])])
    } else {
        return array_in_order(query, &sorts).ok_or_else(refused);
    };
    let keys: Vec<OrderByExpr> = sorts
        .into_iter()
        .map(|sort| match digits_of(&sort.expr).as_deref() {
            Some("1") => OrderByExpr { expr: value.clone(), ..sort },
            _ => sort,
        })
        .collect();
    let SetExpr::Select(select) = outer.body.as_mut() else { return Err(refused()) };
    select.projection = vec![SelectItem::UnnamedExpr(sorted_items(value, keys))];
    Ok(empty_without_rows(outer))
}

/// The rows of a subquery of which an order decides, such as `(SELECT x … ORDER BY y LIMIT 3)`. The keys are columns of a derived table.
/// `None` for DISTINCT, whose rows have no other keys than the item.
fn array_in_order(query: &Query, sorts: &[OrderByExpr]) -> Option<SqlExpr> {
    let mut rows = query.clone();
    let SetExpr::Select(select) = rows.body.as_mut() else { return None };
    let (value, alias) = match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(value)] => (value.clone(), None),
        [SelectItem::ExprWithAlias { expr, alias }] => (expr.clone(), Some(alias.clone())),
        _ => return None,
    };
    if select.distinct.is_some() {
        return None;
    }
    let is_value = |key: &SqlExpr| {
        digits_of(key).as_deref() == Some("1")
            || matches!((key, &alias), (SqlExpr::Identifier(key), Some(alias)) if same(key, alias))
    };
    let keys: Vec<OrderByExpr> = sorts
        .iter()
        .map(|sort| match is_value(&sort.expr) {
            true => OrderByExpr { expr: value.clone(), ..sort.clone() },
            false => sort.clone(),
        })
        .collect();
    // Other clauses, such as GROUP BY, may name the item.
    let column = |at: usize| match &alias {
        Some(alias) if at == 0 => alias.clone(),
        _ => Ident::with_quote('"', format!("{COLUMN}{at}")),
    };
    let columns = std::iter::once(&value).chain(keys.iter().map(|key| &key.expr)).enumerate();
    select.projection =
        columns.map(|(at, expr)| SelectItem::ExprWithAlias { expr: expr.clone(), alias: column(at) }).collect();
    let of_column = |at: usize| SqlExpr::Identifier(column(at));
    let keys: Vec<OrderByExpr> =
        keys.into_iter().zip(1..).map(|(key, at)| OrderByExpr { expr: of_column(at), ..key }).collect();
    if let Some(order) = &mut rows.order_by {
        order.kind = OrderByKind::Expressions(keys.clone());
    }
    let items = vec![SelectItem::UnnamedExpr(sorted_items(of_column(0), keys))];
    Some(empty_without_rows(query_of(items, vec![derived(Box::new(rows), Vec::new())])))
}

/// True for the same name. One without quotes is in lower case.
fn same(one: &Ident, other: &Ident) -> bool {
    let folded = |name: &Ident| match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_ascii_lowercase(),
    };
    folded(one) == folded(other)
}

/// A subquery as an item of FROM.
fn derived(subquery: Box<Query>, columns: Vec<TableAliasColumnDef>) -> TableWithJoins {
    let alias = TableAlias { explicit: true, name: Ident::with_quote('"', "__array"), columns, at: None };
    let relation = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
    TableWithJoins { relation, joins: Vec::new() }
}

/// `array_agg(value ORDER BY keys)`.
fn sorted_items(value: SqlExpr, keys: Vec<OrderByExpr>) -> SqlExpr {
    let mut group = call("array_agg", vec![value]);
    if let SqlExpr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut group
        && !keys.is_empty()
    {
        list.clauses = vec![FunctionArgumentClause::OrderBy(keys)];
    }
    group
}

/// The array of a subquery, or an empty one instead of NULL.
fn empty_without_rows(subquery: Box<Query>) -> SqlExpr {
    let empty = SqlExpr::Array(Array { elem: Vec::new(), named: true });
    call("coalesce", vec![SqlExpr::Subquery(subquery), empty])
}
