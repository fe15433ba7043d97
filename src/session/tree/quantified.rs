//! Comparisons with the rows of a subquery that the engine refuses or misreads, rewritten to EXISTS, and comparisons with ANY item
//! of an array.
//!
//! | statement | as a whole condition of WHERE | within a condition |
//! | --- | --- | --- |
//! | `(a, b) IN (q)`, `x < ANY (q)` | `EXISTS (… WHERE comparison)` | true, NULL or false by two EXISTS |
//! | `(a, b) NOT IN (q)`, `x >= ALL (q)` | `NOT EXISTS (… WHERE comparison IS NOT TRUE)` | the same |
//!
//! WHERE treats NULL and false in the same way, so a whole condition reads the subquery once. In other places, only
//! constants can be compared in this way. `x IN (q)` is left to the engine. In HAVING, `<`, `<=`, `>` and `>=` compare with the
//! smallest or largest value, because an aggregate cannot be a part of the subquery.
//!
//! If an array contains NULL, the engine computes `x = ANY (a)` as false although the standard requires NULL, but `x <> ALL (a)` as
//! it should. So the former becomes `NOT (x <> ALL (a))`. `x = ANY (ARRAY[a, b])` becomes `x IN (a, b)`, which is NULL as required,
//! and is sent to the service. A parameter that is compared with a column stays: the engine makes such a list of it.
//!
//! Source: PostgreSQL documentation, "Subquery Expressions" and "Row-wise Comparison".

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query,
    Select, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, UnaryOperator, Value,
};

use crate::session::nodes::{call, case_of, joined, members, pair, query_of, quoted};
use crate::session::syntax;

/// A comparison of a row with the rows of a subquery.
struct Quantified {
    members: Vec<Expr>,
    op: BinaryOperator,
    subquery: Box<Query>,
    all: bool,
}

/// Rewrites the comparisons in WHERE and HAVING, because the engine supports EXISTS everywhere in them.
pub(in crate::session) fn quantified_conditions(select: &mut Select) {
    let mut conditions: Vec<&mut Expr> = select.selection.iter_mut().collect();
    while let Some(condition) = conditions.pop() {
        match condition {
            Expr::Nested(inner) => conditions.push(inner),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                conditions.extend([left.as_mut(), right.as_mut()]);
            }
            condition => {
                if let Some(found) = read(condition) {
                    let comparison = found.comparison();
                    *condition = match found.all {
                        false => found.exists(comparison, false),
                        true => found.exists(Expr::IsNotTrue(Box::new(comparison)), true),
                    };
                }
            }
        }
    }
    if let Some(condition) = &mut select.selection {
        syntax::edit_expressions(condition, &mut |expr| {
            if let Some(found) = read(expr) {
                *expr = found.value();
            }
        });
    }
    if let Some(condition) = &mut select.having {
        syntax::edit_expressions(condition, &mut |expr| {
            if let Some(found) = read(expr) {
                *expr = found.by_extreme().unwrap_or_else(|| found.value());
            }
        });
    }
}

/// The form of a comparison elsewhere.
pub(in crate::session) enum Elsewhere {
    /// The engine's own.
    Own,
    /// Another expression: the operands are the same for all rows.
    As(Box<Expr>),
    /// None in the engine.
    Refused,
}

/// A comparison with any item of an array as a list, or as a comparison with all of them; `None` for other expressions, and if it
/// makes no difference.
pub(in crate::session) fn any_as_all(expr: &Expr) -> Option<Expr> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let Expr::AnyOp { left, compare_op, right, .. } = expr else { return None };
    if is_row(left) || matches!(unnested(right), Expr::Subquery(_)) {
        return None;
    }
    if *compare_op == Eq
        && let Some(list) = items(right)
    {
        if list.is_empty() {
            return Some(Expr::Value(Value::Boolean(false).into()));
        }
        return Some(Expr::InList { expr: left.clone(), list, negated: false });
    }
    if *compare_op == Eq && is_given(right) && !is_constant(left) {
        return None;
    }
    let compare_op = match compare_op {
        Eq => NotEq,
        NotEq => Eq,
        Lt => GtEq,
        LtEq => Gt,
        Gt => LtEq,
        GtEq => Lt,
        _ => return None,
    };
    let all = Expr::AllOp { left: left.clone(), compare_op, right: right.clone() };
    Some(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(all))) })
}

/// `x LIKE ANY (…)` and `x LIKE ALL (…)`, also of ILIKE and with NOT, as a comparison with the items of an array: its operands, the
/// operator, and true for ALL.
pub(crate) fn like_of_many(expr: &Expr) -> Option<(&Expr, BinaryOperator, &Expr, bool)> {
    use BinaryOperator::{PGILikeMatch, PGLikeMatch, PGNotILikeMatch, PGNotLikeMatch};
    let (negated, any, left, pattern, of_case) = match expr {
        Expr::Like { negated, any, expr, pattern, escape_char: None } => (*negated, *any, expr, pattern, true),
        Expr::ILike { negated, any, expr, pattern, escape_char: None } => (*negated, *any, expr, pattern, false),
        _ => return None,
    };
    let op = match (of_case, negated) {
        (true, false) => PGLikeMatch,
        (true, true) => PGNotLikeMatch,
        (false, false) => PGILikeMatch,
        (false, true) => PGNotILikeMatch,
    };
    if any {
        return Some((left, op, pattern, false));
    }
    // The parser takes ALL for a function.
    let Expr::Function(function) = pattern.as_ref() else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))]
            if function.name.to_string().eq_ignore_ascii_case("all") =>
        {
            Some((left, op, array, true))
        }
        _ => None,
    }
}

/// The comparison with each item of an array that is written out; `None` for other arrays, and if it would have more than `most`
/// expressions.
pub(in crate::session) fn like_each(expr: &Expr, most: usize) -> Option<Expr> {
    let (left, op, array, all) = like_of_many(expr)?;
    let joint = if all { BinaryOperator::And } else { BinaryOperator::Or };
    let items = items(array)?;
    let each = most / items.len().max(1);
    if syntax::count_expressions(left, each + 1) > each {
        return None;
    }
    let each = items.into_iter().map(|item| pair(left.clone(), op.clone(), item));
    joined(each.collect(), &joint).or_else(|| Some(Expr::Value(Value::Boolean(all).into())))
}

/// The items of an array that is written out, each with the type that the array is cast to; `None` for other arrays, and for one of
/// arrays.
fn items(array: &Expr) -> Option<Vec<Expr>> {
    match array {
        Expr::Array(array) => {
            let flat = array.elem.iter().all(|item| !matches!(unnested(item), Expr::Array(_)));
            flat.then(|| array.elem.clone())
        }
        Expr::Nested(inner) => items(inner),
        Expr::Cast { expr: inner, data_type: DataType::Array(of), .. } => {
            let of = match of {
                ArrayElemTypeDef::AngleBracket(of)
                | ArrayElemTypeDef::SquareBracket(of, _)
                | ArrayElemTypeDef::Parenthesis(of) => of,
                ArrayElemTypeDef::None => return None,
            };
            let cast = |item: Expr| {
                let mut cast = array.clone();
                if let Expr::Cast { expr, data_type, .. } = &mut cast {
                    (**expr, *data_type) = (item, (**of).clone());
                }
                cast
            };
            Some(items(inner)?.into_iter().map(cast).collect())
        }
        _ => None,
    }
}

/// True for a parameter, and for a text that is read as an array.
fn is_given(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) => true,
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => is_given(inner),
        _ => false,
    }
}

/// True for an expression without columns and subqueries.
fn is_constant(expr: &Expr) -> bool {
    let mut constant = true;
    syntax::expressions(expr, &mut |part| {
        constant &= !matches!(part, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_));
    });
    constant
}

/// A comparison outside of WHERE and HAVING.
pub(in crate::session) fn quantified_value(expr: &Expr) -> Elsewhere {
    let Some(found) = read(expr) else { return Elsewhere::Own };
    if found.members.iter().all(is_constant) { Elsewhere::As(Box::new(found.value())) } else { Elsewhere::Refused }
}

/// True for a row such as `(a, b)`.
pub(in crate::session) fn is_row(expr: &Expr) -> bool {
    members(expr).is_some()
}

/// True for a row that is compared with the only row of a subquery.
pub(in crate::session) fn is_row_with_subquery(expr: &Expr) -> bool {
    let Expr::BinaryOp { left, right, .. } = expr else { return false };
    let is_subquery = |side: &Expr| matches!(unnested(side), Expr::Subquery(_));
    (is_row(left) && is_subquery(right)) || (is_subquery(left) && is_row(right))
}

fn read(expr: &Expr) -> Option<Quantified> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let (left, op, right, all) = match expr {
        Expr::InSubquery { expr, subquery, negated } => {
            let members = members(expr)?;
            let op = if *negated { NotEq } else { Eq };
            return Some(Quantified { members, op, subquery: subquery.clone(), all: *negated });
        }
        Expr::AnyOp { left, compare_op, right, .. } => (left, compare_op, right, false),
        Expr::AllOp { left, compare_op, right } => (left, compare_op, right, true),
        _ => return None,
    };
    let Expr::Subquery(subquery) = unnested(right) else { return None };
    let members = match members(left) {
        Some(members) => members,
        // As IN and NOT IN.
        None if matches!((op, all), (Eq, false) | (NotEq, true)) => return None,
        None => vec![left.as_ref().clone()],
    };
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq).then(|| Quantified {
        members,
        op: op.clone(),
        subquery: subquery.clone(),
        all,
    })
}

impl Quantified {
    /// True, NULL or false.
    fn value(&self) -> Expr {
        let boolean = |value: bool| Expr::value(Value::Boolean(value));
        let nested = || Box::new(self.comparison());
        let decides = if self.all { Expr::IsFalse(nested()) } else { *nested() };
        let pairs = vec![
            (self.exists(decides, false), boolean(!self.all)),
            (self.exists(Expr::IsNull(nested()), false), Self::unknown()),
        ];
        case_of(pairs, Some(boolean(self.all)))
    }

    /// True, NULL or false by the smallest or largest value of the subquery, for an aggregate of HAVING, which no subquery may contain;
    /// `None` for rows, `=` and `<>`.
    fn by_extreme(&self) -> Option<Expr> {
        use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, Or};
        let [value] = self.members.as_slice() else { return None };
        let function = match (&self.op, self.all) {
            (Gt | GtEq, true) | (Lt | LtEq, false) => "max",
            (Lt | LtEq, true) | (Gt | GtEq, false) => "min",
            _ => return None,
        };
        let column = || Expr::CompoundIdentifier(vec![quoted(ROWS), quoted(&Self::column(0))]);
        let of_rows = |item: Expr| Expr::Subquery(self.over_rows(item));
        let is_null = || Expr::IsNull(Box::new(column()));
        let binary = |left: Expr, op: BinaryOperator, right: Expr| {
            Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }))
        };
        let number = |digits: &str| Expr::value(Value::Number(digits.to_owned(), false));
        let boolean = |value: bool| Expr::value(Value::Boolean(value));
        let holds = binary(value.clone(), self.op.clone(), of_rows(call(function, vec![column()])));
        let decides = match self.all {
            true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(holds) },
            false => holds,
        };
        let empty = binary(of_rows(call("count", vec![number("1")])), Eq, number("0"));
        let unknown = of_rows(call("bool_or", vec![Expr::Nested(Box::new(is_null()))]));
        let unknown = binary(Expr::IsNull(Box::new(Expr::Nested(Box::new(value.clone())))), Or, unknown);
        let pairs = vec![(empty, boolean(self.all)), (decides, boolean(!self.all)), (unknown, Self::unknown())];
        Some(case_of(pairs, Some(boolean(self.all))))
    }

    /// NULL as a truth value.
    fn unknown() -> Expr {
        Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(Expr::value(Value::Null)),
            data_type: DataType::Boolean,
            array: false,
            format: None,
        }
    }

    /// `(SELECT item FROM subquery)`.
    fn over_rows(&self, item: Expr) -> Box<Query> {
        let columns = (0..self.members.len())
            .map(|at| TableAliasColumnDef { name: quoted(&Self::column(at)), data_type: None })
            .collect();
        let alias = TableAlias { explicit: true, name: quoted(ROWS), columns, at: None };
        let relation =
            TableFactor::Derived { lateral: false, subquery: self.subquery.clone(), alias: Some(alias), sample: None };
        query_of(vec![SelectItem::UnnamedExpr(item)], vec![TableWithJoins { relation, joins: Vec::new() }])
    }

    fn column(at: usize) -> String {
        format!("__column_{}", at + 1)
    }

    /// The comparison with a row of the subquery, member by member.
    fn comparison(&self) -> Expr {
        use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
        let pair = |left: Expr, op: &BinaryOperator, right: Expr| {
            Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) }))
        };
        let sides = self.members.iter().enumerate().map(|(at, member)| {
            (member.clone(), Expr::CompoundIdentifier(vec![quoted(ROWS), quoted(&Self::column(at))]))
        });
        let strict = match self.op {
            LtEq => Lt,
            GtEq => Gt,
            ref op => op.clone(),
        };
        // The first members that differ decide.
        let whole = sides.rev().fold(None, |rest, (member, column)| {
            Some(match rest {
                None => pair(member, &self.op, column),
                Some(rest) => match self.op {
                    Eq => pair(pair(member, &Eq, column), &And, rest),
                    NotEq => pair(pair(member, &NotEq, column), &Or, rest),
                    _ => {
                        let same = pair(pair(member.clone(), &Eq, column.clone()), &And, rest);
                        pair(pair(member, &strict, column), &Or, same)
                    }
                },
            })
        });
        whole.unwrap_or_else(|| Expr::value(Value::Boolean(true)))
    }

    /// `[NOT] EXISTS (SELECT 1 FROM subquery WHERE condition)`.
    fn exists(&self, condition: Expr, negated: bool) -> Expr {
        let mut subquery = self.over_rows(Expr::value(Value::Number("1".to_owned(), false)));
        if let SetExpr::Select(select) = subquery.body.as_mut() {
            select.selection = Some(condition);
        }
        match negated {
            false => Expr::Exists { subquery, negated: false },
            true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Exists { subquery, negated: false }) },
        }
    }
}

/// Name of the subquery's rows.
const ROWS: &str = "__rows";

fn unnested(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => unnested(inner),
        other => other,
    }
}
