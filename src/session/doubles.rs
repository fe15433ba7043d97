//! Numbers of double precision beside decimals.
//!
//! The engine makes decimals with 15 digits after the point of both: 1e-20 equals 0, and 1e30 or NaN is an error. Where a double
//! and a decimal are compared, or are results of one expression or UNION, both are doubles, as in PostgreSQL and DuckDB. A literal
//! such as `0.1`, which the engine has as a double, is exact beside a decimal and stays.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, internal_datafusion_err};
use datafusion::logical_expr::expr::{InList, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, Union, cast,
};

use super::signed_numbers::with_outer_types;

/// Functions that return one of their arguments.
const CHOOSING: [&str; 5] = ["coalesce", "greatest", "least", "nullif", "nvl"];

/// Returns the plan with doubles where the engine would make decimals of them.
///
/// # Errors
/// None in practice: schemas are computed again.
pub(super) fn doubles(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_both(&plan)? {
        return Ok(plan);
    }
    with_outer_types(plan.transform_up_with_subqueries(with_doubles).data()?)
}

/// True for a plan with doubles and decimals, and without rows whose type is decided before.
fn has_both(plan: &LogicalPlan) -> Result<bool> {
    let (mut floats, mut decimals, mut recursive) = (false, false, false);
    plan.apply_with_subqueries(|node| {
        recursive |= matches!(node, LogicalPlan::RecursiveQuery(_));
        let schema = merge_schema(&node.inputs());
        let mut note = |data_type: &DataType| {
            floats |= data_type.is_floating();
            decimals |= data_type.is_decimal();
        };
        node.schema().fields().iter().for_each(|field| note(field.data_type()));
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::Cast(_) | Expr::TryCast(_) | Expr::ScalarFunction(_) = part
                    && let Ok(data_type) = part.get_type(&schema)
                {
                    note(&data_type);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(floats && decimals && !recursive)
}

fn with_doubles(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&plan.inputs());
    let names = NamePreserver::new(&plan);
    let plan = plan.map_expressions(|expr| {
        let saved = names.save(&expr);
        let expr = expr.transform_up(|part| with_doubles_within(part, &schema))?;
        Ok(expr.update_data(|expr| saved.restore(expr)))
    })?;
    // Inputs may have other types now.
    let changed = plan.transformed;
    let plan = match plan.data {
        LogicalPlan::Union(union) => return of_union(union, changed),
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                let mut both = [left, right];
                double_all(&mut both, &schema);
            }
            LogicalPlan::Join(join)
        }
        other => other,
    };
    Ok(Transformed::yes(plan.recompute_schema()?))
}

fn with_doubles_within(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { mut left, op, mut right }) if is_comparison(op) => {
            let changed = double_all(&mut [left.as_mut(), right.as_mut()], schema);
            Transformed::new_transformed(Expr::BinaryExpr(BinaryExpr { left, op, right }), changed)
        }
        Expr::Between(Between { mut expr, negated, mut low, mut high }) => {
            let changed = double_all(&mut [expr.as_mut(), low.as_mut(), high.as_mut()], schema);
            Transformed::new_transformed(Expr::Between(Between { expr, negated, low, high }), changed)
        }
        Expr::InList(InList { mut expr, mut list, negated }) => {
            let mut all: Vec<&mut Expr> = std::iter::once(expr.as_mut()).chain(&mut list).collect();
            let changed = double_all(&mut all, schema);
            Transformed::new_transformed(Expr::InList(InList { expr, list, negated }), changed)
        }
        Expr::InSubquery(InSubquery { mut expr, mut subquery, negated }) => {
            let of_rows = subquery.subquery.schema().field(0).data_type().clone();
            let of_value = expr.get_type(schema)?;
            let mut changed = false;
            if of_rows.is_floating() && of_value.is_decimal() {
                *expr = cast(expr.as_ref().clone(), DataType::Float64);
                changed = true;
            } else if of_rows.is_decimal() && of_value.is_floating() {
                let rows = doubled(subquery.subquery.as_ref().clone(), &[true])?;
                subquery = Subquery { subquery: Arc::new(rows), ..subquery };
                changed = true;
            }
            Transformed::new_transformed(Expr::InSubquery(InSubquery { expr, subquery, negated }), changed)
        }
        Expr::Case(mut case) => {
            let results = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            let mut results: Vec<&mut Expr> = results.chain(case.else_expr.as_deref_mut()).collect();
            let mut changed = double_all(&mut results, schema);
            if let Some(operand) = case.expr.as_deref_mut() {
                let values = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                let mut values: Vec<&mut Expr> = std::iter::once(operand).chain(values).collect();
                changed |= double_all(&mut values, schema);
            }
            Transformed::new_transformed(Expr::Case(case), changed)
        }
        Expr::ScalarFunction(mut function) if CHOOSING.contains(&function.func.name()) => {
            let mut args: Vec<&mut Expr> = function.args.iter_mut().collect();
            let changed = double_all(&mut args, schema);
            Transformed::new_transformed(Expr::ScalarFunction(function), changed)
        }
        other => Transformed::no(other),
    })
}

fn is_comparison(op: Operator) -> bool {
    op.supports_propagation() || matches!(op, Operator::NotEq | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom)
}

/// Casts decimals to doubles if they stand beside a double that is no literal. True if something changed.
fn double_all(exprs: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let is = |expr: &Expr, of: fn(&DataType) -> bool| expr.get_type(schema).is_ok_and(|data_type| of(&data_type));
    let is_double = |expr: &Expr| !matches!(expr, Expr::Literal(..)) && is(expr, DataType::is_floating);
    if !exprs.iter().any(|expr| is_double(expr)) {
        return false;
    }
    let mut changed = false;
    for expr in exprs.iter_mut().filter(|expr| is(expr, DataType::is_decimal)) {
        **expr = cast(expr.clone(), DataType::Float64);
        changed = true;
    }
    changed
}

/// A union whose columns are doubles if one of its inputs has doubles.
fn of_union(union: Union, changed: bool) -> Result<Transformed<LogicalPlan>> {
    let columns = union.schema.fields().len();
    let has = |at: usize, of: fn(&DataType) -> bool| {
        union.inputs.iter().any(|input| input.schema().fields().get(at).is_some_and(|field| of(field.data_type())))
    };
    let mixed: Vec<bool> =
        (0..columns).map(|at| has(at, DataType::is_floating) && has(at, DataType::is_decimal)).collect();
    if !mixed.contains(&true) {
        let plan = LogicalPlan::Union(union);
        return if changed { Ok(Transformed::yes(plan.recompute_schema()?)) } else { Ok(Transformed::no(plan)) };
    }
    let inputs = union.inputs.into_iter().map(|input| {
        let input = Arc::unwrap_or_clone(input);
        doubled(input, &mixed).map(Arc::new)
    });
    let union = Union::try_new_with_loose_types(inputs.collect::<Result<_>>()?)?;
    Ok(Transformed::yes(LogicalPlan::Union(union)))
}

/// A plan whose decimals in some columns are doubles.
fn doubled(plan: LogicalPlan, columns: &[bool]) -> Result<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    if !schema.fields().iter().zip(columns).any(|(field, column)| *column && field.data_type().is_decimal()) {
        return Ok(plan);
    }
    let exprs = schema.iter().enumerate().map(|(at, (qualifier, field))| {
        let expr = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        match columns.get(at).ok_or_else(|| internal_datafusion_err!("as many flags as columns"))? {
            true if field.data_type().is_decimal() => {
                Ok(cast(expr, DataType::Float64).alias_qualified(qualifier.cloned(), field.name()))
            }
            _ => Ok(expr),
        }
    });
    LogicalPlanBuilder::from(plan).project(exprs.collect::<Result<Vec<_>>>()?)?.build()
}
