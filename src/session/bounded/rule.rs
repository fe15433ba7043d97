//! Limits in a plan: functions that the planner creates itself, the operator `||`, types with sizes, patterns, and
//! numeric arguments of aggregates.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, Like, LogicalPlan, Operator, ScalarUDF, TryCast};
use datafusion::optimizer::AnalyzerRule;

use super::aggregates::check_known;
use super::demand::Calls;
use super::function::{Joined, bounded, growth_of};
use super::matching::{as_function, is_matching, is_regex};
use super::time::check_pattern;
use crate::error::{Error, ErrorKind};
use crate::functions::TypeIn;

/// Maximum number of slots of a fixed-size list, or bytes of a fixed-size value: each row has as many, NULL or not.
const SLOTS: usize = 4_096;
/// Maximum nesting depth of a type.
const DEPTH: usize = 32;
/// Maximum number of parameterized types in a type name, which is parsed recursively.
const NAMED: usize = 256;
/// Maximum number of types that make up a type.
const PARTS: usize = 10_000;
/// Maximum number of centroids of an approximate percentile, which are allocated for each group.
const CENTROIDS: u64 = 10_000;

/// Puts limits on the expressions of a plan. Runs once types are known.
#[derive(Debug)]
pub(super) struct BoundedExpressions;

impl AnalyzerRule for BoundedExpressions {
    fn name(&self) -> &'static str {
        "savedsearch_bounded_expressions"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        check_sizes(&plan)?;
        let calls = calls_of(&plan)?;
        plan.transform_up_with_subqueries(|plan| {
            let schema = Arc::new(merged(&plan)?);
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let saved = names.save(&expr);
                let changed = expr.transform_up(|expr| bound(expr, &schema, calls))?;
                Ok(changed.update_data(|expr| saved.restore(expr)))
            })?
            .map_data(LogicalPlan::recompute_schema)
        })
        .data()
    }
}

/// Columns that the expressions of a node may refer to.
fn merged(plan: &LogicalPlan) -> Result<datafusion::common::DFSchema> {
    let mut schema = datafusion::common::DFSchema::empty();
    for input in plan.inputs() {
        schema.merge(input.schema());
    }
    if let LogicalPlan::TableScan(_) = plan {
        schema.merge(plan.schema());
    }
    Ok(schema)
}

/// Calls in a statement that share a limit.
fn calls_of(plan: &LogicalPlan) -> Result<Calls> {
    let mut calls = Calls::default();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                match part {
                    Expr::ScalarFunction(function) => {
                        if let Some(growth) = growth_of(&function.func) {
                            calls.add(growth);
                        }
                    }
                    Expr::BinaryExpr(BinaryExpr { op: Operator::StringConcat, .. }) => calls.growing += 1,
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(calls)
}

fn bound(expr: Expr, schema: &datafusion::common::DFSchema, calls: Calls) -> Result<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) => Ok(match bounded(&func, calls) {
            Some(bounded) => Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(bounded), args))),
            None => Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })),
        }),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) => {
            let (of_left, of_right) = (left.type_in(schema), right.type_in(schema));
            let text =
                |of: &DataType| of.is_string() || (of.is_binary() && !matches!(of, DataType::FixedSizeBinary(_)));
            match (of_left, of_right) {
                (Ok(one), Ok(other)) if one == other && text(&one) => {
                    let (joined, args) = (ScalarUDF::new_from_impl(Joined::new(calls.growing)), vec![*left, *right]);
                    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(joined), args))))
                }
                _ => Err(too_large("|| on these types", "cast both operands to text")),
            }
        }
        Expr::BinaryExpr(BinaryExpr { op, right, .. })
            if is_regex(op) && (right.any_column_refs() || right.contains_outer() || right.is_volatile()) =>
        {
            Err(too_large("a regular expression that varies by row", "use a literal pattern"))
        }
        expr => {
            check_known(&expr)?;
            if let Expr::Like(Like { pattern, .. }) = &expr
                && let Expr::Literal(pattern, _) = pattern.as_ref()
                && let Some(pattern) = pattern.try_as_str().flatten()
            {
                check_pattern(pattern)?;
            }
            // Constants are computed by the optimizer, before it replaces the operators that remain.
            match is_matching(&expr) && !expr.any_column_refs() && !expr.contains_outer() {
                true => Ok(as_function(expr, schema)),
                false => Ok(Transformed::no(expr)),
            }
        }
    }
}

/// Rejects literal sizes in a plan that are too large: of types, and of aggregates.
///
/// # Errors
/// [`ErrorKind::TooLarge`] naming the type or function.
pub(crate) fn check_sizes(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        for field in node.schema().fields() {
            check_type(field.data_type())?;
        }
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                match part {
                    Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) => {
                        check_type(field.data_type())?
                    }
                    Expr::AggregateFunction(function) => check_aggregate(function)?,
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// Rejects numbers that determine how much an aggregate allocates.
fn check_aggregate(function: &AggregateFunction) -> Result<()> {
    if !function.func.name().starts_with("approx_percentile_cont") {
        return Ok(());
    }
    let number = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::UInt64(Some(number)), _) => Some(*number),
        Expr::Literal(value, _) => match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(number))) if !value.data_type().is_floating() => u64::try_from(number).ok(),
            _ => None,
        },
        // Its value is known when the statement is bound.
        Expr::Placeholder(_) => None,
        // It may evaluate to any number.
        other => (!other.any_column_refs()).then_some(u64::MAX),
    };
    // The centroids come after the value, an optional weight, and the percentile.
    let before = if function.func.name().ends_with("with_weight") { 3 } else { 2 };
    match function.params.args.iter().skip(before).filter_map(number).find(|number| *number > CENTROIDS) {
        Some(_) => {
            let what = format!("{} with more than {CENTROIDS} centroids", function.func.name());
            Err(too_large(&what, "omit the number to use the default of 100"))
        }
        None => Ok(()),
    }
}

/// Rejects a type name that is nested too deeply to be parsed, or that has a large size.
pub(super) fn check_type_name(name: &str) -> Result<()> {
    // The nesting depth is at most the number of opening parentheses. Field names may contain any characters, so
    // parentheses are not matched.
    if name.bytes().filter(|byte| *byte == b'(').count() > NAMED {
        return Err(too_large(&format!("a type name with more than {NAMED} nested types"), "use a simpler type"));
    }
    // The engine reports invalid names.
    name.parse::<DataType>().map_or(Ok(()), |data_type| check_type(&data_type))
}

/// Rejects types with too many slots per row, or made up of too many types to traverse.
pub(super) fn check_type(data_type: &DataType) -> Result<()> {
    let (mut open, mut parts) = (vec![(data_type, 1_usize, 0_usize)], 0);
    while let Some((data_type, slots, depth)) = open.pop() {
        parts += 1;
        if parts > PARTS || depth > DEPTH {
            return Err(too_large(
                &format!("a type with more than {PARTS} parts or {DEPTH} levels"),
                "use a simpler type",
            ));
        }
        let mut inner = |data_type, factor: usize| {
            let slots = slots.saturating_mul(factor);
            open.push((data_type, slots, depth + 1));
            slots
        };
        let slots = match data_type {
            DataType::FixedSizeBinary(size) => slots.saturating_mul(usize::try_from(*size).unwrap_or_default()),
            DataType::FixedSizeList(item, size) => inner(item.data_type(), usize::try_from(*size).unwrap_or_default()),
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::Map(item, _) => inner(item.data_type(), 1),
            DataType::Struct(fields) => {
                fields.iter().for_each(|field| {
                    inner(field.data_type(), 1);
                });
                slots
            }
            DataType::Union(fields, _) => {
                fields.iter().for_each(|(_, field)| {
                    inner(field.data_type(), 1);
                });
                slots
            }
            DataType::Dictionary(_, values) => inner(values, 1),
            DataType::RunEndEncoded(_, values) => inner(values.data_type(), 1),
            _ => slots,
        };
        if slots > SLOTS {
            return Err(too_large(&format!("a type with {slots} slots per row"), &format!("the limit is {SLOTS}")));
        }
    }
    Ok(())
}

fn too_large(what: &str, advice: &str) -> datafusion::error::DataFusionError {
    Error::new(ErrorKind::TooLarge, format!("{what} is not allowed here")).advice(advice).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_refused_by_their_names_and_sizes() {
        for fine in ["Utf8", "FixedSizeBinary(16)", "FixedSizeList(1536 x Float32)", "Timestamp(s, \"UTC\")", "no type"]
        {
            check_type_name(fine).unwrap_or_else(|error| panic!("{fine}: {error}"));
        }
        let nested = format!("{}Utf8{}", "List(".repeat(200_000), ")".repeat(200_000));
        for wrong in
            ["FixedSizeBinary(2147483647)", "FixedSizeList(5000 x Float32)", "List(FixedSizeBinary(1000000))", &nested]
        {
            check_type_name(wrong).expect_err("too large");
        }
    }
}
