//! Values of two types that become one, if the engine would choose a type that loses something.
//!
//! | types | in the engine | here |
//! | --- | --- | --- |
//! | a double and a decimal | decimals with 15 digits after the point: 1e-20 equals 0, and 1e30 or NaN is an error | doubles |
//! | an instant and a date | times without a zone: two instants of the hour that clocks repeat are one | instants |
//! | a number of `lag` or `lead`, and a default of a wider type | the default is cut | the wider type |
//! | two types of numbers in EXCEPT or INTERSECT | the type on the left: half of 3 is 1 | the type that UNION has |
//! | an instant and a date or local time in EXCEPT or INTERSECT | the type on the left | instants |
//!
//! So it is in PostgreSQL, and in DuckDB but for defaults. They are results of one expression, items of one array, or rows of one
//! UNION; doubles and decimals are also compared. A literal such as `0.1`, which the engine has as a double, is exact beside a
//! decimal and stays. Dates that are compared with instants are made instants by the rule `local_times`.
//!
//! Rows of VALUES, and statements WITH RECURSIVE, stay as they are: their types are decided before.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, Result, ScalarValue};
use datafusion::logical_expr::expr::{InList, InSubquery, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Between, BinaryExpr, Expr, Join, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, Union, cast,
};

use super::signed_numbers::with_outer_types;
use crate::functions::TypeIn;

/// Functions that return one of their arguments, beside those of arrays.
const CHOOSING: [&str; 6] = ["coalesce", "greatest", "least", "make_array", "nullif", "nvl"];

/// Returns the plan with types that lose nothing.
///
/// # Errors
/// None in practice: schemas are computed again.
pub(in crate::session) fn common_types(plan: LogicalPlan) -> Result<LogicalPlan> {
    let found = Found::of(&plan)?;
    let pairs: Vec<Pair> = [Pair::Doubles, Pair::Instants].into_iter().filter(|pair| found.has(*pair)).collect();
    if pairs.is_empty() && !found.shifted && !found.sets || found.recursive {
        return Ok(plan);
    }
    with_outer_types(plan.transform_up_with_subqueries(|node| with_common_types(node, &pairs)).data()?)
}

/// A type, and one beside it whose values become values of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pair {
    /// Doubles, and decimals beside them.
    Doubles,
    /// Instants, and dates beside them.
    Instants,
}

impl Pair {
    /// The type that both become, if this is the first one.
    fn first(self, data_type: &DataType) -> Option<DataType> {
        match (self, data_type) {
            (Self::Doubles, data_type) if data_type.is_floating() => Some(DataType::Float64),
            (Self::Instants, DataType::Timestamp(_, Some(_))) => Some(data_type.clone()),
            _ => None,
        }
    }

    fn is_second(self, data_type: &DataType) -> bool {
        match self {
            Self::Doubles => data_type.is_decimal(),
            Self::Instants => matches!(data_type, DataType::Date32 | DataType::Date64),
        }
    }

    /// The type of an expression beside one whose values become `to`, if it is the second one, or a list of it.
    fn changed(self, data_type: &DataType, to: &DataType) -> Option<DataType> {
        match data_type {
            DataType::List(item) => self.changed(item.data_type(), to).map(|item| DataType::new_list(item, true)),
            data_type => self.is_second(data_type).then(|| to.clone()),
        }
    }

    /// Casts values of the second type, if one of the first is beside them that is no literal of a double. True if something
    /// changed.
    fn unite(self, exprs: &mut [&mut Expr], schema: &DFSchema) -> bool {
        let first = |expr: &Expr| match expr {
            Expr::Literal(..) if self == Self::Doubles => None,
            expr => self.first(item_of(&expr.type_in(schema).ok()?)),
        };
        let Some(to) = exprs.iter().find_map(|expr| first(expr)) else { return false };
        let mut changed = false;
        for expr in exprs {
            if let Some(to) = expr.type_in(schema).ok().and_then(|data_type| self.changed(&data_type, &to)) {
                **expr = cast(expr.clone(), to);
                changed = true;
            }
        }
        changed
    }
}

/// The type of the items of a list, or the type itself.
fn item_of(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::List(item) => item_of(item.data_type()),
        other => other,
    }
}

/// Types in a plan: one without them stays as it is.
#[derive(Default)]
struct Found {
    first: [bool; 2],
    second: [bool; 2],
    /// Set by `lag` or `lead` with a default.
    shifted: bool,
    /// Set by EXCEPT or INTERSECT of two types.
    sets: bool,
    /// Set by rows whose type is decided before.
    recursive: bool,
}

impl Found {
    fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut found = Self::default();
        plan.apply_with_subqueries(|node| {
            found.recursive |= matches!(node, LogicalPlan::RecursiveQuery(_));
            found.sets |=
                matches!(node, LogicalPlan::Join(join) if is_of_sets(join) && !types_of_sets(join).is_empty());
            let schema = merge_schema(&node.inputs());
            node.schema().fields().iter().for_each(|field| found.note(field.data_type()));
            node.apply_expressions(|expr| {
                expr.apply(|part| {
                    found.shifted |= matches!(part, Expr::WindowFunction(function) if is_shifted(function));
                    if let Expr::Cast(_) | Expr::TryCast(_) | Expr::ScalarFunction(_) = part
                        && let Ok(data_type) = part.type_in(&schema)
                    {
                        found.note(&data_type);
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(found)
    }

    fn note(&mut self, data_type: &DataType) {
        let item = item_of(data_type);
        for pair in [Pair::Doubles, Pair::Instants] {
            self.first[pair as usize] |= pair.first(item).is_some();
            self.second[pair as usize] |= pair.is_second(item);
        }
    }

    fn has(&self, pair: Pair) -> bool {
        self.first[pair as usize] && self.second[pair as usize]
    }
}

/// True for `lag` or `lead` with a default.
fn is_shifted(function: &WindowFunction) -> bool {
    ["lag", "lead"].contains(&function.fun.name()) && function.params.args.len() > 2
}

fn with_common_types(plan: LogicalPlan, pairs: &[Pair]) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&plan.inputs());
    let names = NamePreserver::new(&plan);
    let plan = plan.map_expressions(|expr| {
        let saved = names.save(&expr);
        let expr = expr.transform_up(|part| united(part, &schema, pairs))?;
        Ok(expr.update_data(|expr| saved.restore(expr)))
    })?;
    // Inputs may have other types now.
    let changed = plan.transformed;
    let plan = match plan.data {
        LogicalPlan::Union(union) => return of_union(union, changed, pairs),
        LogicalPlan::Join(join) if is_of_sets(&join) => with_types_of_sets(join)?,
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                compared(pairs, &mut [left, right], &schema);
            }
            LogicalPlan::Join(join)
        }
        other => other,
    };
    Ok(Transformed::yes(plan.recompute_schema()?))
}

/// Unites values that are compared.
fn compared(pairs: &[Pair], exprs: &mut [&mut Expr], schema: &DFSchema) -> bool {
    pairs.contains(&Pair::Doubles) && Pair::Doubles.unite(exprs, schema)
}

fn united(expr: Expr, schema: &DFSchema, pairs: &[Pair]) -> Result<Transformed<Expr>> {
    let all = |exprs: &mut [&mut Expr]| pairs.iter().fold(false, |changed, pair| pair.unite(exprs, schema) | changed);
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { mut left, op, mut right }) if is_comparison(op) => {
            let changed = compared(pairs, &mut [left.as_mut(), right.as_mut()], schema);
            Transformed::new_transformed(Expr::BinaryExpr(BinaryExpr { left, op, right }), changed)
        }
        Expr::Between(Between { mut expr, negated, mut low, mut high }) => {
            let changed = compared(pairs, &mut [expr.as_mut(), low.as_mut(), high.as_mut()], schema);
            Transformed::new_transformed(Expr::Between(Between { expr, negated, low, high }), changed)
        }
        Expr::InList(InList { mut expr, mut list, negated }) => {
            let mut members: Vec<&mut Expr> = std::iter::once(expr.as_mut()).chain(&mut list).collect();
            let changed = compared(pairs, &mut members, schema);
            Transformed::new_transformed(Expr::InList(InList { expr, list, negated }), changed)
        }
        Expr::InSubquery(InSubquery { mut expr, mut subquery, negated }) => {
            let of_rows = subquery.subquery.schema().field(0).data_type().clone();
            let of_value = expr.type_in(schema)?;
            let mut changed = false;
            for pair in pairs {
                if let Some(to) = pair.first(&of_rows).filter(|_| pair.is_second(&of_value)) {
                    *expr = cast(expr.as_ref().clone(), to);
                    changed = true;
                } else if let Some(to) = pair.first(&of_value).filter(|_| pair.is_second(&of_rows)) {
                    let rows = with_columns(subquery.subquery.as_ref().clone(), |_, known| pair.changed(known, &to))?;
                    subquery = Subquery { subquery: Arc::new(rows), ..subquery };
                    changed = true;
                }
            }
            Transformed::new_transformed(Expr::InSubquery(InSubquery { expr, subquery, negated }), changed)
        }
        Expr::Case(mut case) => {
            let results = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            let mut results: Vec<&mut Expr> = results.chain(case.else_expr.as_deref_mut()).collect();
            let mut changed = all(&mut results);
            if let Some(operand) = case.expr.as_deref_mut() {
                let values = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                let mut values: Vec<&mut Expr> = std::iter::once(operand).chain(values).collect();
                changed |= all(&mut values);
            }
            Transformed::new_transformed(Expr::Case(case), changed)
        }
        Expr::ScalarFunction(mut function) if chooses(function.func.name()) => {
            let changed = all(&mut function.args.iter_mut().collect::<Vec<_>>());
            Transformed::new_transformed(Expr::ScalarFunction(function), changed)
        }
        Expr::WindowFunction(mut function) if is_shifted(&function) => {
            let mut changed = false;
            if let [value, _, default, ..] = function.params.args.as_mut_slice() {
                changed = all(&mut [value, default]) | widened(value, default, schema)?;
            }
            Transformed::new_transformed(Expr::WindowFunction(function), changed)
        }
        other => Transformed::no(other),
    })
}

fn chooses(name: &str) -> bool {
    CHOOSING.contains(&name) || name.starts_with("array_")
}

/// Gives a number the type of a wider default, unless that is a literal that its own type can hold. True if something changed.
fn widened(value: &mut Expr, default: &Expr, schema: &DFSchema) -> Result<bool> {
    let (of_value, of_default) = (value.type_in(schema)?, default.type_in(schema)?);
    let fits = |literal: &ScalarValue| {
        let back = literal.cast_to(&of_value).and_then(|cut| cut.cast_to(&of_default));
        back.is_ok_and(|back| back == *literal)
    };
    let held = matches!(default, Expr::Literal(literal, _) if fits(literal));
    if held || !of_value.is_numeric() || !of_default.is_numeric() {
        return Ok(false);
    }
    let wider = type_union_coercion(&of_value, &of_default).filter(|wider| *wider != of_value);
    let Some(wider) = wider else { return Ok(false) };
    *value = cast(value.clone(), wider);
    Ok(true)
}

fn is_comparison(op: Operator) -> bool {
    op.supports_propagation() || matches!(op, Operator::NotEq | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom)
}

/// A union whose columns have the first type of a pair if one of its inputs has it.
fn of_union(union: Union, changed: bool, pairs: &[Pair]) -> Result<Transformed<LogicalPlan>> {
    let columns = union.schema.fields().len();
    let types_of = |at: usize| {
        let inputs = union.inputs.iter();
        inputs.filter_map(move |input| Some(input.schema().fields().get(at)?.data_type().clone())).collect::<Vec<_>>()
    };
    let common = |at: usize| {
        let types = types_of(at);
        let of_pair = |pair: &Pair| {
            let to = types.iter().find_map(|data_type| pair.first(item_of(data_type)))?;
            types.iter().any(|data_type| pair.changed(data_type, &to).is_some()).then_some((*pair, to))
        };
        pairs.iter().find_map(of_pair)
    };
    let mixed: Vec<Option<(Pair, DataType)>> = (0..columns).map(common).collect();
    if mixed.iter().all(Option::is_none) {
        let plan = LogicalPlan::Union(union);
        return if changed { Ok(Transformed::yes(plan.recompute_schema()?)) } else { Ok(Transformed::no(plan)) };
    }
    let inputs = union.inputs.into_iter().map(|input| {
        let input = Arc::unwrap_or_clone(input);
        let to = |at: usize, known: &DataType| mixed.get(at)?.as_ref().and_then(|(pair, to)| pair.changed(known, to));
        with_columns(input, to).map(Arc::new)
    });
    let union = Union::try_new_with_loose_types(inputs.collect::<Result<_>>()?)?;
    Ok(Transformed::yes(LogicalPlan::Union(union)))
}

/// True for the join that the engine has for EXCEPT and INTERSECT.
pub(crate) fn is_of_sets(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftAnti | JoinType::LeftSemi)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.on.len() == join.left.schema().fields().len()
        && join.on.len() == join.right.schema().fields().len()
}

/// EXCEPT or INTERSECT whose columns have one type on both sides.
///
/// # Errors
/// Errors of the engine's projection.
pub(crate) fn with_types_of_sets(mut join: Join) -> Result<LogicalPlan> {
    let types = types_of_sets(&join);
    let to = |at: usize, known: &DataType| types.get(&at).filter(|to| *to != known).cloned();
    let changed = types.iter().any(|(at, to)| join.left.schema().field(*at).data_type() != to);
    let left = with_columns(Arc::unwrap_or_clone(join.left), to)?;
    // Rows that differ may be equal once they have the common type.
    let left = if changed { LogicalPlanBuilder::from(left).distinct()?.build()? } else { left };
    join.left = Arc::new(left);
    join.right = Arc::new(with_columns(Arc::unwrap_or_clone(join.right), to)?);
    Ok(LogicalPlan::Join(join))
}

/// The common types of the columns of EXCEPT or INTERSECT, by their places, where those of the sides differ.
fn types_of_sets(join: &Join) -> HashMap<usize, DataType> {
    let sides = join.left.schema().fields().iter().zip(join.right.schema().fields()).enumerate();
    sides.filter_map(|(at, (left, right))| Some((at, type_of_both(left.data_type(), right.data_type())?))).collect()
}

/// The type that numbers of two types have in UNION, and the type of an instant beside a date or a local time; `None` for one type,
/// and for others.
fn type_of_both(left: &DataType, right: &DataType) -> Option<DataType> {
    let is_local =
        |data_type: &DataType| matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, None));
    match (left, right) {
        _ if left == right => None,
        (instant @ DataType::Timestamp(_, Some(_)), local) | (local, instant @ DataType::Timestamp(_, Some(_)))
            if is_local(local) =>
        {
            Some(instant.clone())
        }
        _ if !left.is_numeric() || !right.is_numeric() => None,
        _ if left.is_floating() && right.is_decimal() || left.is_decimal() && right.is_floating() => {
            Some(DataType::Float64)
        }
        _ => type_union_coercion(left, right),
    }
}

/// A plan with columns cast to the types that are given for their places and types.
///
/// # Errors
/// Errors of the engine's projection.
pub(crate) fn with_columns(
    plan: LogicalPlan,
    to: impl Fn(usize, &DataType) -> Option<DataType>,
) -> Result<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    let types: Vec<_> = schema.fields().iter().enumerate().map(|(at, field)| to(at, field.data_type())).collect();
    if types.iter().all(Option::is_none) {
        return Ok(plan);
    }
    let exprs = schema.iter().zip(types).map(|((qualifier, field), to)| {
        let expr = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        match to {
            Some(to) => cast(expr, to).alias_qualified(qualifier.cloned(), field.name()),
            None => expr,
        }
    });
    LogicalPlanBuilder::from(plan).project(exprs.collect::<Vec<_>>())?.build()
}
