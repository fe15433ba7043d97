//! Nodes of syntax trees that rewrites create and inspect.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    GroupByExpr, Ident, ObjectName, Query, Select, SelectFlavor, SelectItem, SetExpr, TableAlias, TableFactor,
    TableWithJoins,
};

/// Name of an identifier, as the engine reads it: in lower case unless it is quoted.
pub(crate) fn normalized(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_ascii_lowercase(),
    }
}

/// True for the name of a column, with or without its relation.
pub(crate) fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// The expression of a result; `None` for `*`.
pub(super) fn result_of(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// Identifier that is exactly this name.
pub(super) fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// The members of a row such as `(a, b)` or `ROW(a, b)`.
pub(crate) fn members(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Tuple(members) => Some(members.clone()),
        Expr::Nested(inner) => members(inner),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            let FunctionArguments::List(list) = &function.args else { return None };
            let each = list.args.iter().map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            });
            each.collect()
        }
        _ => None,
    }
}

/// `name` as an item of FROM.
pub(crate) fn table_of(name: ObjectName, alias: Option<TableAlias>) -> TableFactor {
    TableFactor::Table {
        name,
        alias,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

/// `SELECT items FROM from`.
pub(crate) fn query_of(items: Vec<SelectItem>, from: Vec<TableWithJoins>) -> Box<Query> {
    Box::new(Query {
        with: None,
        body: Box::new(SetExpr::Select(Box::new(select_of(items, from)))),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    })
}

/// As [`query_of`], for the body of a query.
pub(super) fn select_of(items: Vec<SelectItem>, from: Vec<TableWithJoins>) -> Select {
    Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: items,
        exclude: None,
        into: None,
        from,
        lateral_views: Vec::new(),
        prewhere: None,
        selection: None,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    }
}

/// `CASE WHEN condition THEN result … ELSE otherwise END`, of pairs of a condition and its result.
pub(crate) fn case_of(pairs: Vec<(Expr, Expr)>, otherwise: Option<Expr>) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: pairs.into_iter().map(|(condition, result)| CaseWhen { condition, result }).collect(),
        else_result: otherwise.map(Box::new),
    }
}

/// An operation in parentheses.
pub(crate) fn pair(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }))
}

/// Joins conditions into a tree of little depth.
pub(crate) fn joined(mut conditions: Vec<Expr>, op: &BinaryOperator) -> Option<Expr> {
    if conditions.len() <= 1 {
        return conditions.pop();
    }
    let rest = conditions.split_off(conditions.len() / 2);
    let (left, right) = (joined(conditions, op)?, joined(rest, op)?);
    Some(pair(left, op.clone(), right))
}

/// Call of a function.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
