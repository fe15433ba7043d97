//! Syntax that the parser or the engine reads differently from the SQL standard, or does not know.
//!
//! | statement | in the engine | here |
//! | --- | --- | --- |
//! | `a IS DISTINCT FROM b AND c` | `a IS DISTINCT FROM (b AND c)` | refused |
//! | `EXCEPT ALL`, `INTERSECT ALL` | the number of equal rows is ignored | refused |
//! | `a = ANY (SELECT …)`, `a <> ALL (SELECT …)` | columns of the subquery may be taken for those of the query | as `IN`, `NOT IN` |
//! | other comparisons with `ANY` and `ALL` of a subquery, `(a, b) IN (SELECT …)` | wrong in the same way, or refused | as EXISTS (`quantified`) |
//! | `VALUES ((SELECT …))` | fails when it is run | as SELECT and UNION ALL |
//! | `GROUPING SETS (ROLLUP (a), CUBE (b))` | ROLLUP is taken for a function | as the sets that they stand for |
//! | DISTINCT ON with the keys of ORDER BY in another order | refused | in its order (`distinct_keys`) |
//! | `lag(x, 1, y)`, `ROWS 1 + 1 PRECEDING` | refused | in another form (`window_constants`) |
//! | `a = ANY (b)` of an array with NULL | false | NULL (`quantified`) |
//! | `(a, b) = (SELECT …)` | refused | refused |
//! | `HAVING true` without aggregates | refused | as WHERE of a query without FROM |
//! | positions in ROLLUP, CUBE, GROUPING SETS and DISTINCT ON | constants | the results at these positions |
//! | `GROUP BY (a, b)`, `GROUP BY ()` | a struct; refused | both keys; one group |
//! | `LATERAL unnest(t.list)` | refused | as `unnest(t.list)`, which may refer to the items before it |
//! | times without seconds in arguments of a table function | refused | with their seconds |
//! | `WITH ORDINALITY` of a table function | ignored | refused |
//! | `NOT EXISTS (…) IS NULL`, `NOT EXISTS (…) = c` | `(NOT EXISTS (…)) IS NULL` | `NOT (EXISTS (…) IS NULL)` |
//! | clauses of other dialects, such as PREWHERE and `OVER (w ORDER BY a)` | ignored | refused (`ignored_clauses`) |
//! | `a JOIN b` without a condition | a cross join | refused |
//! | `y` in WHERE beside `a.y` and `b.y` | the first relation's | refused as ambiguous (`ambiguous_names`) |
//! | `ORDER BY (1)`, `ORDER BY (x)`, `GROUP BY (1)` | constants, and columns rather than results | as without parentheses |
//! | `FETCH FIRST n ROWS ONLY` | refused | as `LIMIT n` |
//! | `LIMIT (SELECT n)` | refused | as `LIMIT n` |
//! | `a RLIKE b`, `a REGEXP b` | refused | refused, with the operator to use |
//! | `CREATE INDEX` | nothing happens | refused |
//! | `TABLE t`, `FROM t` | refused, or with the clauses after it ignored | as `SELECT * FROM t` (`table_queries`) |
//! | `LOCALTIMESTAMP`, `LOCALTIME` | refused | as casts of `now()` |
//! | `a ~ '.*'` of NULL | false | NULL |
//! | `to_char(t, 'YYYY-MM')`, `to_char(t, 'YYYY' || '-MM')` | the template | PostgreSQL's `to_char` |
//! | `date_format(t, '%M %i')` of MySQL, `date_format(t, 'yyyy-MM')` of Spark | `to_char`, with other patterns | refused; `'%Y-%m-%d'` means the same |
//! | `to_date(text, 'DD/MM/YYYY')`, `to_timestamp` | an error in the first row | refused, with a pattern of the engine |
//! | `coalesce(published_at, '2026-01-01')` | refused | CASE, in which the literal is a time |
//! | `-INTERVAL '1 day 2 hours'` | `-1 day 2 hours` | the sign applies to all of it |
//! | `nth_value(x, -1)` | counted from the end | refused |
//! | `LIKE ANY (ARRAY[…])`, `LIKE ALL (ARRAY[…])` | refused | a comparison with each item |
//! | `LIKE … ESCAPE ''`, `SIMILAR TO … ESCAPE ''` | refused | the pattern with its backslashes doubled |

use datafusion::error::Result;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Distinct, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    GroupByExpr, Ident, JoinConstraint, JoinOperator, LimitClause, ObjectName, OrderByKind, Query, Select,
    SelectFlavor, SelectItem, SetExpr, SetOperator, SetQuantifier, Statement as Ast, TableFactor, TableWithJoins,
    TimezoneInfo, UnaryOperator, Value, ValueWithSpan, Values, WildcardAdditionalOptions,
};

use super::ambiguous_names::ambiguous_name;
use super::distinct_keys;
use super::ignored_clauses::{self, Ignored};
use super::quantified::{
    Elsewhere, any_as_all, is_row, is_row_with_subquery, like_each, quantified_conditions, quantified_value,
};
use super::window_constants;
use crate::error::{Error, ErrorKind};
use crate::functions::complete_time;
use crate::session::nodes::{call, case_of, result_of, select_of};
use crate::session::syntax::{self, Editor};

/// Expressions of a comparison with ANY or ALL.
const EXPRESSIONS: usize = 50_000;

/// Returns a statement that is read as the standard says.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if there is no such form of it; [`ErrorKind::Query`] for a join without a condition.
pub(in crate::session) fn as_standard(mut statement: Statement) -> Result<Statement> {
    if matches!(&statement, Statement::Statement(statement) if matches!(statement.as_ref(), Ast::CreateIndex(_))) {
        let error = Error::new(ErrorKind::Unsupported, "CREATE INDEX is not supported: tables have no indexes");
        return Err(error.advice("leave it out").into());
    }
    let mut reader = Standard { error: None };
    syntax::edit_statement(&mut statement, &mut reader);
    match reader.error {
        Some(error) => Err(error.into()),
        None => Ok(statement),
    }
}

struct Standard {
    /// The last error.
    error: Option<Error>,
}

impl Standard {
    fn refuse(&mut self, what: &str, advice: &str) {
        self.error = Some(Error::new(ErrorKind::Unsupported, what).advice(advice));
    }

    fn refuse_ignored(&mut self, ignored: Option<Ignored>) {
        if let Some((what, advice)) = ignored {
            self.refuse(what, advice);
        }
    }

    /// Turns FETCH into LIMIT, and a subquery that is a constant into the constant.
    fn limit(&mut self, query: &mut Query) {
        if let Some(fetch) = query.fetch.take() {
            if fetch.percent || fetch.with_ties {
                self.refuse(
                    "FETCH with PERCENT or WITH TIES is not supported",
                    "use FETCH FIRST n ROWS ONLY, or rank() OVER (ORDER BY …) in a subquery",
                );
            }
            let count = fetch.quantity.unwrap_or_else(|| Expr::Value(Value::Number("1".to_owned(), false).into()));
            match &mut query.limit_clause {
                None => {
                    let limit = Some(count);
                    query.limit_clause = Some(LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() });
                }
                Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => *limit = Some(count),
                Some(_) => self.refuse("LIMIT and FETCH together are not supported", "use one of the two"),
            }
        }
        let counts = match &mut query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                [limit.as_mut(), offset.as_mut().map(|offset| &mut offset.value)]
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => [Some(limit), Some(offset)],
            None => return,
        };
        for count in counts.into_iter().flatten() {
            let mut inner = &*count;
            while let Expr::Nested(nested) = inner {
                inner = nested;
            }
            if let Expr::Subquery(subquery) = inner {
                match constant(subquery) {
                    Some(constant) => *count = Expr::Nested(Box::new(constant.clone())),
                    None => self.refuse(
                        "a query as the number of LIMIT or OFFSET is not supported",
                        "use a number, or row_number() OVER (…) <= (SELECT …) in a subquery",
                    ),
                }
            }
        }
    }

    /// Replaces a call that the engine would misread, or refuses it.
    fn function(&mut self, expr: &mut Expr) {
        let Expr::Function(function) = expr else { return };
        window_constants::of_function(function);
        if let Some((what, advice)) = foreign_patterns(function) {
            self.refuse(&what, advice);
        } else if let Some(case) = window_constants::with_default(function) {
            *expr = case;
        } else if let Some(case) = dated_coalesce(function) {
            *expr = case;
        } else if is_from_the_end(function) {
            // The engine would count from the end.
            self.refuse("positions of nth_value are numbers from 1 on", "to count from the end, reverse the ORDER BY");
        } else if matches!(function.args, FunctionArguments::None) {
            if let Some(local) = local_time(&function.name.to_string()) {
                *expr = local;
            }
        } else if is_to_char_of_postgres(function) {
            function.name = ObjectName::from(vec![Ident::new("postgres_to_char")]);
        }
    }

    /// Replaces a comparison with the rows of a subquery, or with ANY or ALL of several values, or refuses it.
    fn quantified(&mut self, expr: &mut Expr) {
        let of_subquery = |right: &Expr| matches!(right, Expr::Subquery(_));
        match expr {
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } if of_subquery(right) && !is_row(left) => {
                *expr = within(left, right, false);
            }
            Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } if of_subquery(right) && !is_row(left) => {
                *expr = within(left, right, true);
            }
            _ => match quantified_value(expr) {
                Elsewhere::Own => {}
                // The subquery stands in it several times.
                Elsewhere::As(value) if syntax::count_expressions(value.as_ref(), EXPRESSIONS + 1) > EXPRESSIONS => {
                    self.refuse(
                        &format!("statement too complex: written out, an ANY or ALL has more than {EXPRESSIONS} parts"),
                        "compute nested comparisons in a subquery of FROM",
                    );
                }
                Elsewhere::As(value) => *expr = *value,
                Elsewhere::Refused => self.refuse(
                    "comparing a row with the rows of a subquery, or with ANY or ALL of them, is supported in WHERE and HAVING only",
                    "put the comparison there, or use IN, (SELECT min(…)) or (SELECT max(…))",
                ),
            },
        }
    }
}

impl Editor for Standard {
    fn pre_visit_query(&mut self, query: &mut Query) {
        self.refuse_ignored(ignored_clauses::of_query(query));
        self.limit(query);
        if let Some(OrderByKind::Expressions(keys)) = query.order_by.as_mut().map(|order| &mut order.kind) {
            keys.iter_mut().for_each(|key| without_parentheses(&mut key.expr));
        }
        distinct_keys::in_order_of_sort(query);
        let mut bodies = vec![query.body.as_mut()];
        while let Some(body) = bodies.pop() {
            if matches!(body, SetExpr::Table(_)) {
                self.refuse(
                    "TABLE with other clauses than ORDER BY, LIMIT, OFFSET and FETCH is not supported",
                    "write SELECT * FROM, the name, and the clauses",
                );
            }
            if let SetExpr::Values(values) = &*body
                && let Some(selected) = selected_rows(values)
            {
                *body = selected;
            }
            // A parenthesized query is visited separately.
            let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { continue };
            let all = matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
            if all && *op != SetOperator::Union {
                self.refuse(
                    "EXCEPT ALL and INTERSECT ALL are not supported: the engine ignores how often a row occurs",
                    "use EXCEPT or INTERSECT, or count the rows with GROUP BY and compare the counts",
                );
            }
            bodies.extend([left.as_mut(), right.as_mut()]);
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) {
        self.refuse_ignored(ignored_clauses::of_table(factor));
        if let TableFactor::Table { with_ordinality: true, .. } | TableFactor::Function { with_ordinality: true, .. } =
            factor
        {
            self.refuse(
                "WITH ORDINALITY is not supported here",
                "use row_number() OVER () in a subquery: SELECT *, row_number() OVER () AS n FROM …",
            );
        }
        match factor {
            TableFactor::Table { args: Some(args), .. } => args.args.iter_mut().for_each(with_whole_times),
            TableFactor::Function { args, .. } => args.iter_mut().for_each(with_whole_times),
            _ => {}
        }
        if let TableFactor::Function { lateral: true, name, args, alias, .. } = factor
            && name.to_string().eq_ignore_ascii_case("unnest")
            && let Some(array_exprs) = args.iter().map(plain_argument).collect()
        {
            *factor = TableFactor::UNNEST {
                alias: alias.take(),
                array_exprs,
                with_offset: false,
                with_offset_alias: None,
                with_ordinality: false,
            };
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) {
        self.refuse_ignored(ignored_clauses::of_select(select));
        if matches!(select.flavor, SelectFlavor::FromFirstNoSelect) {
            select.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
            select.flavor = SelectFlavor::Standard;
        }
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            keys.iter_mut().for_each(without_parentheses);
            *keys = std::mem::take(keys).into_iter().flat_map(members_of_key).collect();
        }
        window_constants::of_select(select);
        quantified_conditions(select);
        having_as_where(select);
        if let Err(error) = positions_of_groups(select).and_then(|()| positions_of_distinct(select)) {
            self.error = Some(error);
        }
        if let Some(error) = ambiguous_name(select) {
            self.error = Some(error);
        }
        if let Some(word) = join_without_condition(&select.from) {
            let error = Error::new(ErrorKind::Query, format!("{word} without a condition"));
            self.error = Some(error.advice("add ON or USING; CROSS JOIN is for all combinations of rows"));
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) {
        self.refuse_ignored(ignored_clauses::of_expr(expr));
        if let Some(exists) = first_operand(expr)
            && let Expr::Exists { negated, .. } = exists
            && *negated
        {
            // The parser attaches NOT to EXISTS at once, although it binds weaker than what follows.
            *negated = false;
            let operand = std::mem::replace(expr, Expr::Value(Value::Null.into()));
            *expr = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(operand) };
            return;
        }
        if is_row_with_subquery(expr) {
            self.refuse(
                "a row compared with a subquery is not supported",
                "use (a, b) IN (SELECT …), or compare each value: a = (SELECT …) AND b = (SELECT …)",
            );
            return;
        }
        if let Some(written) = any_as_all(expr).or_else(|| like_each(expr, EXPRESSIONS)) {
            *expr = written;
            return;
        }
        match expr {
            Expr::Function(_) => self.function(expr),
            Expr::AnyOp { .. } | Expr::AllOp { .. } | Expr::InSubquery { .. } => self.quantified(expr),
            Expr::Like { .. } | Expr::ILike { .. } | Expr::SimilarTo { .. } | Expr::BinaryOp { .. } => pattern(expr),
            // The engine puts the sign before the text, where it applies to the first unit only.
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand } if matches!(**operand, Expr::Interval(_)) => {
                let interval = std::mem::replace(operand.as_mut(), Expr::Value(Value::Null.into()));
                **operand = Expr::Nested(Box::new(interval));
            }
            Expr::RLike { .. } => {
                self.refuse("RLIKE and REGEXP are not supported", "use the operator ~, or regexp_like(x, '…')")
            }
            Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) if is_logical(right) => self.refuse(
                "IS DISTINCT FROM before AND or OR is not supported: the parser takes all of it as the right operand",
                "put the comparison in parentheses: (a IS DISTINCT FROM b) AND c",
            ),
            Expr::Identifier(name) if name.quote_style.is_none() => {
                if let Some(local) = local_time(&name.value) {
                    *expr = local;
                }
            }
            _ => {}
        }
    }
}

/// True for `to_char(t, 'YYYY-MM')`: a template without `%` has no pattern of the engine.
fn is_to_char_of_postgres(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    let [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(template))] = list.args.as_slice() else { return false };
    is_without_patterns(template) && is_called(function, &["to_char"])
}

/// Patterns of `date_format` in MySQL and Trino that mean the same in the engine. `%M`, `%i`, `%s`, `%e` and others do not.
const SHARED_PATTERNS: &str = "YmdHSyjTbap%";

/// A function that formats or parses times by patterns that the engine would take for other text, with what to write instead.
fn foreign_patterns(function: &Function) -> Option<(String, &'static str)> {
    const PARSERS: [&str; 8] = [
        "to_timestamp",
        "to_timestamp_seconds",
        "to_timestamp_millis",
        "to_timestamp_micros",
        "to_timestamp_nanos",
        "to_date",
        "to_time",
        "to_unixtime",
    ];
    let FunctionArguments::List(list) = &function.args else { return None };
    // The engine's second name of `to_char`.
    if is_called(function, &["date_format"]) {
        if list.args.get(1).and_then(plain_argument).is_some_and(|format| has_shared_patterns(&format)) {
            return None;
        }
        let what = "date_format is supported only with a constant format of %Y, %m, %d, %H, %S, %y, %j, %T, %b, %a and %p: \
                    other patterns have other meanings here";
        return Some((what.to_owned(), "write to_char(t, '%Y-%m-%d'), in which %M is the minute"));
    }
    if !is_called(function, &PARSERS) {
        return None;
    }
    let unknown = list.args.get(1..)?.iter().filter_map(plain_argument).find(is_without_patterns)?;
    let what = format!("{}: the format {unknown} has no pattern such as %Y", function.name);
    Some((what, "write the format with %Y, %m, %d, %H, %M and %S, as in to_date(text, '%d/%m/%Y')"))
}

/// True for a literal format with patterns, all of which are [`SHARED_PATTERNS`].
fn has_shared_patterns(format: &Expr) -> bool {
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = format else { return false };
    let mut patterns = 0;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == '%' {
            patterns += 1;
            if !letters.next().is_some_and(|pattern| SHARED_PATTERNS.contains(pattern)) {
                return false;
            }
        }
    }
    patterns > 0
}

/// True if a function has one of these names.
fn is_called(function: &Function, names: &[&str]) -> bool {
    let name = function.name.to_string();
    let name = name.trim_matches('"');
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// True for a constant text without `%`, in one literal or several.
fn is_without_patterns(template: &Expr) -> bool {
    let (mut text, mut known) = (false, true);
    syntax::expressions(template, &mut |part| match part {
        Expr::Value(ValueWithSpan { value: Value::Placeholder(_), .. })
        | Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Function(_)
        | Expr::Subquery(_) => known = false,
        Expr::Value(value) => {
            if let Some(literal) = value.clone().into_string() {
                text |= !literal.is_empty();
                known &= !literal.contains('%');
            }
        }
        _ => {}
    });
    text && known
}

/// Removes parentheses around a whole key, which mean nothing.
fn without_parentheses(key: &mut Expr) {
    while let Expr::Nested(inner) = key {
        *key = std::mem::replace(inner, Expr::Value(Value::Null.into()));
    }
}

/// `coalesce` with a literal that may be a time as CASE, which gives it the type of the other values.
fn dated_coalesce(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let values: Option<Vec<Expr>> = list.args.iter().map(plain_argument).collect();
    let (Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(literal), .. }), others) =
        values.as_deref().and_then(<[Expr]>::split_last).filter(|(_, others)| !others.is_empty())?
    else {
        return None;
    };
    let digits = |range: std::ops::Range<usize>| {
        literal.get(range).is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let time = digits(0..4) && digits(5..7) && digits(8..10) && literal.get(4..5) == Some("-");
    let plain = |value: &Expr| match value {
        Expr::Cast { expr, .. } => matches!(**expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)),
        value => matches!(value, Expr::Identifier(_) | Expr::CompoundIdentifier(_)),
    };
    if !time
        || !others.iter().all(plain)
        || !function.name.to_string().eq_ignore_ascii_case("coalesce")
        || function.over.is_some()
    {
        return None;
    }
    let pairs = others.iter().map(|value| {
        let known = Expr::IsNotNull(Box::new(Expr::Nested(Box::new(value.clone()))));
        (known, value.clone())
    });
    let literal = Expr::Value(Value::SingleQuotedString(literal.clone()).into());
    Some(case_of(pairs.collect(), Some(literal)))
}

/// True for `nth_value` with a position below 1.
fn is_from_the_end(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(position))) = list.args.get(1) else { return false };
    !may_be_a_position(position) && function.name.to_string().eq_ignore_ascii_case("nth_value")
}

/// True for a number from 1 on, and for what is not known here.
fn may_be_a_position(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner)
        | Expr::Cast { expr: inner, .. }
        | Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner } => may_be_a_position(inner),
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => {
            digits.parse::<u64>().is_ok_and(|position| position > 0)
        }
        Expr::Value(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_) => true,
        _ => false,
    }
}

/// Turns HAVING without aggregates and groups into WHERE: the rows of FROM are one group, of which nothing is asked.
fn having_as_where(select: &mut Select) {
    let ungrouped = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let constant = |expr: &Expr| {
        let mut constant = true;
        syntax::expressions(expr, &mut |part| {
            constant &= !matches!(
                part,
                Expr::Identifier(_)
                    | Expr::CompoundIdentifier(_)
                    | Expr::Function(_)
                    | Expr::Subquery(_)
                    | Expr::Exists { .. }
                    | Expr::InSubquery { .. }
            );
        });
        constant
    };
    let Some(having) = select.having.as_ref().filter(|having| ungrouped && constant(having)) else { return };
    let items = select.projection.iter().all(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => constant(expr),
        _ => false,
    });
    if items {
        select.selection = Some(having.clone());
        select.having = None;
        select.from = Vec::new();
    }
}

/// Replaces positions in ROLLUP, CUBE and GROUPING SETS by what is selected there.
fn positions_of_groups(select: &mut Select) -> Result<(), Error> {
    let GroupByExpr::Expressions(keys, _) = &mut select.group_by else { return Ok(()) };
    for key in keys {
        let (Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets)) = key else { continue };
        for member in sets.iter_mut().flatten() {
            if let Some(result) = at_position(member, &select.projection, "GROUP BY")? {
                *member = result;
            }
        }
    }
    Ok(())
}

/// Replaces positions in DISTINCT ON by what is selected there.
fn positions_of_distinct(select: &mut Select) -> Result<(), Error> {
    let Some(Distinct::On(keys)) = &mut select.distinct else { return Ok(()) };
    for key in keys {
        without_parentheses(key);
        if let Some(result) = at_position(key, &select.projection, "DISTINCT ON")? {
            *key = result;
        }
    }
    Ok(())
}

/// The result at the position that a key is; `None` for other keys.
fn at_position(key: &Expr, results: &[SelectItem], clause: &str) -> Result<Option<Expr>, Error> {
    let Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) = key else { return Ok(None) };
    // Positions behind `*` are not known.
    let known: Vec<&Expr> = results.iter().map_while(result_of).collect();
    match digits.parse::<usize>().ok().and_then(|at| known.get(at.checked_sub(1)?)) {
        Some(result) => Ok(Some((*result).clone())),
        None if known.len() < results.len() => {
            let message = format!("{clause} position {digits} is at or behind `*`");
            Err(Error::new(ErrorKind::Query, message).advice("write the name of the column"))
        }
        None => Err(Error::new(ErrorKind::Query, format!("{clause} position {digits} is not in the select list"))),
    }
}

/// The keys that a key of GROUP BY stands for: `(a, b)` is both, and `()` is one group of all rows.
fn members_of_key(key: Expr) -> Vec<Expr> {
    match key {
        Expr::Tuple(members) if members.is_empty() => vec![Expr::GroupingSets(vec![Vec::new()])],
        Expr::Tuple(members) => members,
        Expr::GroupingSets(sets) => vec![Expr::GroupingSets(sets.into_iter().flat_map(sets_of).collect())],
        key => vec![key],
    }
}

/// Members of a CUBE within GROUPING SETS, whose sets are written out.
const CUBE: usize = 10;

/// The sets of ROLLUP or CUBE within GROUPING SETS, which the parser takes for functions. Another set is one.
fn sets_of(set: Vec<Expr>) -> Vec<Vec<Expr>> {
    let [Expr::Function(function)] = set.as_slice() else { return vec![set] };
    let FunctionArguments::List(list) = &function.args else { return vec![set] };
    let Some(members) = list.args.iter().map(plain_argument).collect::<Option<Vec<Expr>>>() else { return vec![set] };
    let members: Vec<Vec<Expr>> = members
        .into_iter()
        .map(|member| match member {
            Expr::Tuple(members) => members,
            Expr::Nested(inner) => vec![*inner],
            member => vec![member],
        })
        .collect();
    match function.name.to_string().to_lowercase().as_str() {
        "rollup" => (0..=members.len()).rev().map(|length| members[..length].concat()).collect(),
        "cube" if members.len() <= CUBE => {
            let chosen = |chosen: usize| {
                let kept = members.iter().enumerate().filter(|(at, _)| chosen & (1 << at) != 0);
                kept.flat_map(|(_, member)| member.clone()).collect()
            };
            (0..1_usize << members.len()).rev().map(chosen).collect()
        }
        _ => vec![set],
    }
}

/// LOCALTIMESTAMP or LOCALTIME, which are reserved words and so no names of columns.
fn local_time(name: &str) -> Option<Expr> {
    let data_type = match name.to_ascii_lowercase().as_str() {
        "localtimestamp" => DataType::Timestamp(None, TimezoneInfo::None),
        "localtime" => DataType::Time(None, TimezoneInfo::None),
        _ => return None,
    };
    let expr = Box::new(call("now", Vec::new()));
    Some(Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None })
}

/// The expression of a query that is `SELECT expression`.
fn constant(query: &Query) -> Option<&Expr> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let bare =
        query.with.is_none() && query.limit_clause.is_none() && select.from.is_empty() && select.selection.is_none();
    match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] if bare => Some(expr),
        _ => None,
    }
}

/// The words of a join that needs a condition and has none.
fn join_without_condition(from: &[TableWithJoins]) -> Option<&'static str> {
    use JoinConstraint::None as Missing;
    let mut items: Vec<&TableWithJoins> = from.iter().collect();
    while let Some(item) = items.pop() {
        for factor in std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation)) {
            if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
                items.push(table_with_joins);
            }
        }
        let missing = item.joins.iter().find_map(|join| match &join.join_operator {
            JoinOperator::Join(Missing) | JoinOperator::Inner(Missing) => Some("JOIN"),
            JoinOperator::Left(Missing) | JoinOperator::LeftOuter(Missing) => Some("LEFT JOIN"),
            JoinOperator::Right(Missing) | JoinOperator::RightOuter(Missing) => Some("RIGHT JOIN"),
            JoinOperator::FullOuter(Missing) => Some("FULL JOIN"),
            JoinOperator::Semi(Missing) | JoinOperator::LeftSemi(Missing) | JoinOperator::RightSemi(Missing) => {
                Some("SEMI JOIN")
            }
            JoinOperator::Anti(Missing) | JoinOperator::LeftAnti(Missing) | JoinOperator::RightAnti(Missing) => {
                Some("ANTI JOIN")
            }
            _ => None,
        });
        if missing.is_some() {
            return missing;
        }
    }
    None
}

/// Writes a pattern that the engine would misread in another form.
fn pattern(expr: &mut Expr) {
    let text = |text: &str| Expr::Value(Value::SingleQuotedString(text.to_owned()).into());
    match expr {
        Expr::Like { pattern, escape_char, .. }
        | Expr::ILike { pattern, escape_char, .. }
        | Expr::SimilarTo { pattern, escape_char, .. }
            if escape_char.as_ref().is_some_and(is_empty) =>
        {
            *escape_char = None;
            **pattern = call("replace", vec![(**pattern).clone(), text("\\"), text("\\\\")]);
        }
        // The engine takes it for IS NOT NULL.
        Expr::BinaryOp { op, right, .. } if is_regex(op) && is_any(right) => **right = text("(?s:.*)"),
        // It may be one once it is computed.
        Expr::BinaryOp { op, right, .. } if is_regex(op) && is_computed(right) => {
            let pattern = Box::new(Expr::Nested(right.clone()));
            // An empty group, which matches anywhere.
            let (left, op) = (Box::new(text("()")), BinaryOperator::StringConcat);
            **right = Expr::Nested(Box::new(Expr::BinaryOp { left, op, right: pattern }));
        }
        _ => {}
    }
}

/// The rows of VALUES as SELECT, if one of them has a subquery; otherwise `None`.
fn selected_rows(values: &Values) -> Option<SetExpr> {
    let mut found = false;
    syntax::expressions(&values.rows, &mut |part| {
        found |= matches!(part, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. });
    });
    let rows = values.rows.iter().filter(|_| found).map(|row| {
        let items = row.content.iter().zip(1_usize..).map(|(value, number)| SelectItem::ExprWithAlias {
            expr: value.clone(),
            alias: Ident::new(format!("column{number}")),
        });
        SetExpr::Select(Box::new(select_of(items.collect(), Vec::new())))
    });
    union_of(rows.collect())
}

/// All rows of several queries, as a tree of little depth.
fn union_of(mut queries: Vec<SetExpr>) -> Option<SetExpr> {
    if queries.len() <= 1 {
        return queries.pop();
    }
    let rest = queries.split_off(queries.len() / 2);
    Some(SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        left: Box::new(union_of(queries)?),
        right: Box::new(union_of(rest)?),
    })
}

/// True for an operator that compares with a regular expression.
pub(crate) fn is_regex(op: &BinaryOperator) -> bool {
    use BinaryOperator::{PGRegexIMatch, PGRegexMatch, PGRegexNotIMatch, PGRegexNotMatch};
    matches!(op, PGRegexMatch | PGRegexIMatch | PGRegexNotMatch | PGRegexNotIMatch)
}

/// True for a pattern without columns that is not a literal.
fn is_computed(pattern: &Expr) -> bool {
    let mut computed = !matches!(pattern, Expr::Value(value) if !matches!(value.value, Value::Placeholder(_)));
    syntax::expressions(pattern, &mut |part| {
        computed &= !matches!(part, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_));
    });
    computed
}

fn is_any(pattern: &Expr) -> bool {
    matches!(pattern, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) if text == ".*")
}

fn is_empty(value: &ValueWithSpan) -> bool {
    matches!(&value.value, Value::SingleQuotedString(text) if text.is_empty())
}

/// The operand that an operator which binds stronger than NOT begins with.
fn first_operand(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::IsNull(first)
        | Expr::IsNotNull(first)
        | Expr::IsTrue(first)
        | Expr::IsNotTrue(first)
        | Expr::IsFalse(first)
        | Expr::IsNotFalse(first)
        | Expr::IsUnknown(first)
        | Expr::IsNotUnknown(first)
        | Expr::IsDistinctFrom(first, _)
        | Expr::IsNotDistinctFrom(first, _)
        | Expr::InList { expr: first, .. }
        | Expr::InSubquery { expr: first, .. }
        | Expr::Between { expr: first, .. } => Some(first),
        Expr::BinaryOp { left, op, .. }
            if !matches!(op, BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Xor) =>
        {
            Some(left)
        }
        _ => None,
    }
}

/// True for AND, OR and XOR without parentheses around them.
fn is_logical(expr: &Expr) -> bool {
    use BinaryOperator::{And, Or, Xor};
    matches!(expr, Expr::BinaryOp { op: And | Or | Xor, .. })
}

/// `left [NOT] IN (subquery)`.
fn within(left: &Expr, subquery: &Expr, negated: bool) -> Expr {
    match subquery {
        Expr::Subquery(query) => Expr::InSubquery { expr: Box::new(left.clone()), subquery: query.clone(), negated },
        other => other.clone(),
    }
}

/// The expression of an argument that is neither named nor a wildcard.
fn plain_argument(argument: &FunctionArg) -> Option<Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    }
}

/// Completes a literal time among the arguments of a table function: the engine computes them before rules see them.
fn with_whole_times(argument: &mut FunctionArg) {
    let (FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. } | FunctionArg::Unnamed(arg)) = argument;
    let FunctionArgExpr::Expr(expr) = arg else { return };
    syntax::edit_expressions(expr, &mut |part| {
        let literal = match part {
            Expr::Cast { expr, data_type: DataType::Timestamp(..) | DataType::Date, .. } => match expr.as_mut() {
                Expr::Value(value) => &mut value.value,
                _ => return,
            },
            Expr::TypedString(typed) => &mut typed.value.value,
            _ => return,
        };
        if let Value::SingleQuotedString(text) = literal
            && let Some(complete) = complete_time(text)
        {
            *text = complete;
        }
    });
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;
    use datafusion::sql::parser::DFParser;

    use super::*;
    use crate::cases::each;

    fn read(sql: &str) -> Result<String> {
        let statement = DFParser::parse_sql(sql).expect("valid syntax").pop_front().expect("a statement");
        Ok(as_standard(statement)?.to_string())
    }

    /// Another name of the engine for the function would take foreign patterns for text.
    #[test]
    fn the_engine_has_one_other_name_of_to_char() {
        let state = SessionContext::new().state();
        let to_char = state.scalar_functions().get("to_char").expect("a function of the engine");
        assert_eq!(to_char.aliases(), ["date_format"]);
    }

    #[test]
    fn comparisons_with_equal_forms_get_them() {
        let cases = [
            ("SELECT 1 WHERE a = ANY (SELECT a FROM t)", "SELECT 1 WHERE a IN (SELECT a FROM t)"),
            ("SELECT 1 WHERE a = SOME (SELECT a FROM t)", "SELECT 1 WHERE a IN (SELECT a FROM t)"),
            ("EXPLAIN SELECT 1 WHERE a <> ALL (SELECT a FROM t)", "EXPLAIN SELECT 1 WHERE a NOT IN (SELECT a FROM t)"),
            ("SELECT a FROM t FETCH FIRST 3 ROWS ONLY", "SELECT a FROM t LIMIT 3"),
            ("SELECT a FROM t OFFSET 2 ROWS FETCH NEXT ROW ONLY", "SELECT a FROM t LIMIT 1 OFFSET 2 ROWS"),
            ("SELECT a FROM (SELECT a FROM t FETCH FIRST 3 ROWS ONLY) q", "SELECT a FROM (SELECT a FROM t LIMIT 3) q"),
            ("SELECT a FROM t LIMIT (SELECT 2) OFFSET ((SELECT 1 + 1))", "SELECT a FROM t LIMIT (2) OFFSET (1 + 1)"),
            ("SELECT LOCALTIMESTAMP", "SELECT CAST(now() AS TIMESTAMP)"),
            (
                "SELECT 1 WHERE a < ANY (SELECT b FROM t)",
                "SELECT 1 WHERE EXISTS (SELECT 1 FROM (SELECT b FROM t) AS \"__rows\" (\"__column_1\") WHERE (a < \"__rows\".\"__column_1\"))",
            ),
            (
                "SELECT 1 WHERE x AND (a, b) NOT IN (SELECT c, d FROM t)",
                "SELECT 1 WHERE x AND NOT EXISTS (SELECT 1 FROM (SELECT c, d FROM t) AS \"__rows\" (\"__column_1\", \"__column_2\") \
                 WHERE ((a <> \"__rows\".\"__column_1\") OR (b <> \"__rows\".\"__column_2\")) IS NOT TRUE)",
            ),
            ("SELECT 1 FROM t HAVING true", "SELECT 1 WHERE true"),
            ("SELECT a, b FROM t GROUP BY ROLLUP (1, 2)", "SELECT a, b FROM t GROUP BY ROLLUP (a, b)"),
            ("SELECT to_char(t, 'YYYY-MM')", "SELECT postgres_to_char(t, 'YYYY-MM')"),
            ("SELECT \"to_char\"(t, 'YYYY' || '-MM')", "SELECT postgres_to_char(t, 'YYYY' || '-MM')"),
            ("SELECT a LIKE b ESCAPE ''", "SELECT a LIKE replace(b, '\\', '\\\\')"),
        ];
        each(cases, |(sql, expected)| {
            assert_eq!(read(sql).expect("supported").trim(), expected);
        });
    }

    #[test]
    fn what_would_be_misread_is_refused() {
        let cases = [
            "SELECT true IS DISTINCT FROM true AND false",
            "SELECT 1 WHERE x AND a IS NOT DISTINCT FROM b OR c",
            "CREATE VIEW v AS SELECT a IS DISTINCT FROM b AND c FROM t",
            "COPY (SELECT a IS DISTINCT FROM b AND c FROM t) TO 'f.csv'",
            "EXPLAIN ANALYZE SELECT a IS DISTINCT FROM b AND c FROM t",
            "SELECT 1 EXCEPT ALL SELECT 2",
            "SELECT 1 UNION SELECT 2 INTERSECT ALL SELECT 3",
            "SELECT 1 UNION ALL TABLE t",
            "SELECT * FROM (SELECT 1 UNION ALL (SELECT 2 EXCEPT ALL SELECT 3))",
            "SELECT a < ANY (SELECT a FROM t) FROM u",
            "SELECT (a, b) IN (SELECT a, b FROM t) FROM u",
            "SELECT 1 WHERE (a, b) = (SELECT a, b FROM t)",
            "SELECT 1 WHERE (SELECT a, b FROM t) < ROW(a, b)",
            "SELECT 1 FROM generate_series(1, 3) WITH ORDINALITY",
            "SELECT a FROM t FETCH FIRST 10 PERCENT ROWS ONLY",
            "SELECT a FROM t ORDER BY a FETCH FIRST 3 ROWS WITH TIES",
            "SELECT a FROM t LIMIT (SELECT count(*) FROM t)",
            "SELECT date_format(a, 'YYYY-MM') FROM t",
            "SELECT Date_Format(a, '%M %Y %s') FROM t GROUP BY 1",
            "SELECT date_format(a, '%Y-%m-%d %H:%i') FROM t",
            "SELECT date_format(a, '%Y-%m-%e') FROM t",
            "SELECT date_format(a, '%Y-%-d') FROM t",
            "SELECT date_format(a, '%Y%') FROM t",
            "SELECT date_format(a, '%Y' || '-%M') FROM t",
            "SELECT date_format(a, $1) FROM t",
            "SELECT date_format(a, '') FROM t",
            "SELECT \"date_format\"(a, b) FROM t",
            "SELECT to_date(a, 'DD/MM/YYYY') FROM t",
            "SELECT to_timestamp(a, '%Y-%m-%d', 'YYYY' || '-MM-DD') FROM t",
            "SELECT 1 FROM t WHERE to_unixtime(a, 'yyyy-MM-dd') > 0",
        ];
        each(cases, |sql| {
            let error = Error::find(&read(sql).expect_err(sql)).expect("our error").clone();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{sql}");
        });
    }

    #[test]
    fn a_join_needs_a_condition() {
        let cases = [
            "SELECT 1 FROM a JOIN b",
            "SELECT 1 FROM a INNER JOIN b WHERE a.x = b.x",
            "SELECT 1 FROM a LEFT JOIN b",
            "SELECT 1 FROM a JOIN b ON a.x = b.x FULL OUTER JOIN c",
            "SELECT 1 FROM c CROSS JOIN (a RIGHT JOIN b)",
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM a LEFT ANTI JOIN b)",
            "CREATE VIEW v AS SELECT 1 FROM a JOIN LATERAL (SELECT 1) q",
        ];
        each(cases, |sql| {
            let error = Error::find(&read(sql).expect_err(sql)).expect("our error").clone();
            assert_eq!(error.kind(), ErrorKind::Query, "{sql}");
        });
    }

    #[test]
    fn everything_else_stays() {
        let cases = [
            "SELECT a IS DISTINCT FROM (b AND c), (a IS DISTINCT FROM b) AND c FROM t",
            "SELECT c AND a IS DISTINCT FROM b FROM t",
            "SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3",
            "SELECT 1 WHERE a = ANY($1)",
            "SELECT to_char(a, '%Y'), to_char(a, '%Y' || b), to_char(a, $1), to_char(a, NULL), to_char(a, '')",
            "SELECT date_format(a, '%Y-%m-%d'), date_format(a, '%a, %d %b %y %T %p (%j, 100 %%)'), DATE_FORMAT(a, '%H h %S')",
            "SELECT to_date(a, '%d/%m/%Y'), to_timestamp(a), to_timestamp(a, b), to_unixtime(a, $1), to_time(a, '%H:%M')",
            "SELECT 1 WHERE a IN (SELECT a FROM t)",
            "SELECT 1 FROM a CROSS JOIN b NATURAL JOIN c, d LEFT JOIN e ON true",
        ];
        each(cases, |sql| {
            assert_eq!(read(sql).expect("supported"), sql);
        });
    }
}
