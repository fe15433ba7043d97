//! Clauses of other dialects that the parser reads and the engine ignores, or refuses without naming them. They are refused by
//! name.
//!
//! The structures are taken apart by all of their fields, so that a clause which a later parser adds does not compile before it is
//! decided here.

use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, NamedWindowExpr, Query,
    Select, SelectItem, TableFactor, WildcardAdditionalOptions, WindowType,
};

/// A clause that would be ignored or refused without its name, and what to write instead.
pub(in crate::session) type Ignored = (&'static str, &'static str);

const LEAVE_OUT: &str = "leave it out";

/// The first clause of a query that would be ignored.
pub(in crate::session) fn of_query(query: &Query) -> Option<Ignored> {
    let Query {
        with: _,
        body: _,
        order_by: _,
        limit_clause: _,
        fetch: _,
        // Nothing writes to the tables.
        locks: _,
        for_clause,
        settings,
        format_clause,
        pipe_operators: _,
    } = query;
    let settings = settings.as_ref().map(|_| ("SETTINGS is not supported", "use SET before the query"));
    let output = (for_clause.is_some() || format_clause.is_some())
        .then_some(("FOR XML, FOR JSON and FORMAT are not supported", "choose the format in the client"));
    settings.or(output)
}

/// The first clause of a SELECT that would be ignored.
pub(in crate::session) fn of_select(select: &Select) -> Option<Ignored> {
    let Select {
        select_token: _,
        optimizer_hints: _,
        distinct: _,
        select_modifiers,
        // The engine refuses it, as it does LATERAL VIEW, INTO, CLUSTER BY, DISTRIBUTE BY and SORT BY.
        top: _,
        top_before_distinct: _,
        projection,
        exclude: _,
        into: _,
        from: _,
        lateral_views: _,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by: _,
        distribute_by: _,
        sort_by: _,
        having: _,
        named_window,
        qualify: _,
        window_before_qualify: _,
        value_table_mode,
        flavor: _,
    } = select;
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = group_by;
    let wildcards = projection.iter().filter_map(|item| match item {
        SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => Some(options),
        _ => None,
    });
    let named =
        |name: &NamedWindowExpr| matches!(name, NamedWindowExpr::WindowSpec(spec) if spec.window_name.is_some());
    let ignored = [
        (select_modifiers.is_some(), ("modifiers after SELECT are not supported", LEAVE_OUT)),
        (prewhere.is_some(), ("PREWHERE is not supported", "use WHERE")),
        (!connect_by.is_empty(), ("CONNECT BY is not supported", "use WITH RECURSIVE")),
        (
            !modifiers.is_empty(),
            ("WITH ROLLUP, CUBE or TOTALS is not supported", "use GROUP BY ROLLUP (…) or CUBE (…)"),
        ),
        (value_table_mode.is_some(), ("SELECT AS STRUCT and AS VALUE are not supported", "select the columns")),
        (named_window.iter().any(|window| named(&window.1)), NAMED_WINDOW),
    ];
    let of_wildcard = wildcards.into_iter().find_map(of_wildcard);
    ignored.into_iter().find_map(|(found, ignored)| found.then_some(ignored)).or(of_wildcard)
}

const NAMED_WINDOW: Ignored = (
    "a window that is based on another one is not supported",
    "write its PARTITION BY and ORDER BY into each OVER (…), or name the whole window",
);

fn of_wildcard(options: &WildcardAdditionalOptions) -> Option<Ignored> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude: _,
        opt_except: _,
        opt_replace: _,
        opt_rename: _,
        opt_alias,
    } = options;
    let ignored = opt_ilike.is_some() || opt_alias.is_some();
    ignored.then_some(("* with ILIKE or an alias is not supported", "name the columns"))
}

/// The same for an item of FROM.
pub(in crate::session) fn of_table(factor: &TableFactor) -> Option<Ignored> {
    let sampled = matches!(factor, TableFactor::Derived { sample: Some(_), .. });
    sampled.then_some(("TABLESAMPLE of a subquery is not supported", "use WHERE random() < 0.1"))
}

/// The same for an expression.
pub(in crate::session) fn of_expr(expr: &Expr) -> Option<Ignored> {
    match expr {
        Expr::Cast { format: Some(_), .. } => {
            Some(("CAST with FORMAT is not supported", "use to_char or to_timestamp"))
        }
        Expr::Convert { .. } => Some(("CONVERT is not supported", "write cast(x AS varchar)")),
        Expr::Collate { .. } => Some(("COLLATE is not supported", "write lower(x) to ignore the case")),
        Expr::MatchAgainst { .. } => Some(("MATCH … AGAINST is not supported", "write x ILIKE '%word%'")),
        Expr::Function(function) => {
            if matches!(&function.over, Some(WindowType::WindowSpec(spec)) if spec.window_name.is_some()) {
                return Some(NAMED_WINDOW);
            }
            let FunctionArguments::List(list) = &function.args else { return None };
            let all = |argument: &FunctionArg| {
                matches!(
                    argument,
                    FunctionArg::Unnamed(FunctionArgExpr::Wildcard | FunctionArgExpr::QualifiedWildcard(_))
                )
            };
            let distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
            (distinct && list.args.iter().any(all)).then_some((
                "DISTINCT * in an aggregate is not supported",
                "count the rows of a subquery with DISTINCT",
            ))
        }
        _ => None,
    }
}
