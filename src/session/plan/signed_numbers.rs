//! Signed numbers in place of the engine's unsigned ones.
//!
//! Row numbers, ranks, lengths and positions are unsigned in the engine. SQL has no such type: `row_number() OVER () / 2`
//! would have a fraction, `-row_number() OVER ()` is refused, and clients receive the numbers as decimals. Results of
//! functions, aggregates, windows and tables are cast to the next larger signed type, or to BIGINT. A number that does not
//! fit into BIGINT is an error; a literal that does not fit is a decimal. If a statement itself casts to an unsigned type,
//! the type is kept.
//!
//! Invariant: no result is unsigned by default. The types in a plan decide, not names of functions.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};

use crate::functions::TypeIn;

/// Column of the engine that distinguishes grouping sets. Other nodes expect its type.
const GROUPING_ID: &str = "__grouping_id";
/// Functions whose type the statement names.
const NAMED: [&str; 4] = ["arrow_cast", "arrow_try_cast", "cast_to_type", "try_cast_to_type"];
/// Digits of the largest unsigned number.
const DIGITS: u8 = 20;

/// Returns the plan with signed numbers.
///
/// # Errors
/// None in practice: schemas are computed again.
pub(in crate::session) fn signed_numbers(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_unsigned(&plan)? {
        return Ok(plan);
    }
    with_outer_types(plan.transform_up_with_subqueries(signed).data()?)
}

/// The plan with the types of columns that subqueries take from the query around them.
///
/// # Errors
/// None in practice: schemas are computed again.
pub(crate) fn with_outer_types(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_down_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        plan.map_subqueries(|subquery| {
            subquery.transform_down_with_subqueries(|inner| {
                let inner = inner.map_expressions(|expr| {
                    expr.transform_up(|expr| {
                        Ok(match expr {
                            Expr::OuterReferenceColumn(field, column) => match schema.field_from_column(&column) {
                                Ok(known) if known.data_type() != field.data_type() => {
                                    Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(known), column))
                                }
                                _ => Transformed::no(Expr::OuterReferenceColumn(field, column)),
                            },
                            other => Transformed::no(other),
                        })
                    })
                })?;
                match inner.transformed {
                    true => inner.map_data(LogicalPlan::recompute_schema),
                    false => Ok(inner),
                }
            })
        })
        .map(|found| Transformed::new(found.data, found.transformed, TreeNodeRecursion::Continue))
    })?;
    Ok(plan.data)
}

fn has_unsigned(plan: &LogicalPlan) -> Result<bool> {
    let (mut found, mut recursive) = (false, false);
    plan.apply_with_subqueries(|node| {
        // The rows of its first part have a type that the others were planned with.
        recursive |= matches!(node, LogicalPlan::RecursiveQuery(_));
        found |= node.schema().fields().iter().any(|field| signed_type(field.data_type()).is_some());
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                found |= match part {
                    // Its type depends on its arguments.
                    Expr::ScalarFunction(_) => true,
                    Expr::Literal(value, _) => value.data_type() == DataType::UInt64,
                    _ => false,
                };
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    })?;
    Ok(found && !recursive)
}

fn signed(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Values(_) = &plan {
        return with_signed_columns(plan);
    }
    let mut schema = DFSchema::empty();
    plan.inputs().into_iter().for_each(|input| schema.merge(input.schema()));
    let names = NamePreserver::new(&plan);
    let plan = plan.map_expressions(|expr| {
        let saved = names.save(&expr);
        let expr = expr.transform_up(|part| Ok(signed_part(part, &schema)))?;
        Ok(expr.update_data(|expr| saved.restore(expr)))
    })?;
    // Inputs may have other types now.
    let plan = plan.map_data(LogicalPlan::recompute_schema)?;
    match &plan.data {
        LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) | LogicalPlan::TableScan(_) | LogicalPlan::Extension(_) => {
            plan.transform_data(with_signed_columns)
        }
        _ => Ok(plan),
    }
}

fn signed_part(part: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match part {
        Expr::Literal(ScalarValue::UInt64(Some(number)), metadata) => {
            let signed = match i64::try_from(number) {
                Ok(number) => ScalarValue::Int64(Some(number)),
                Err(_) => ScalarValue::Decimal128(Some(number.into()), DIGITS, 0),
            };
            Transformed::yes(Expr::Literal(signed, metadata))
        }
        Expr::OuterReferenceColumn(field, column) => match signed_type(field.data_type()) {
            Some(data_type) => {
                let field = Arc::new(field.as_ref().clone().with_data_type(data_type));
                Transformed::yes(Expr::OuterReferenceColumn(field, column))
            }
            None => Transformed::no(Expr::OuterReferenceColumn(field, column)),
        },
        Expr::ScalarFunction(function) if !NAMED.contains(&function.func.name()) => {
            let call = Expr::ScalarFunction(function);
            match call.type_in(schema).ok().as_ref().and_then(signed_type) {
                Some(data_type) => Transformed::yes(cast(call, data_type)),
                None => Transformed::no(call),
            }
        }
        part => Transformed::no(part),
    }
}

/// The node with a projection above it that casts its unsigned columns.
fn with_signed_columns(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    // Only a literal beyond BIGINT makes such a row.
    let literals = matches!(plan, LogicalPlan::Values(_));
    let mut changed = false;
    let columns: Vec<Expr> = plan
        .schema()
        .iter()
        .map(|(qualifier, field)| {
            let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
            match signed_type(field.data_type()).filter(|_| field.name() != GROUPING_ID) {
                Some(data_type) => {
                    changed = true;
                    let to = if literals { DataType::Decimal128(DIGITS, 0) } else { data_type };
                    cast(column, to).alias_qualified(qualifier.cloned(), field.name())
                }
                None => column,
            }
        })
        .collect();
    match changed {
        true => Ok(Transformed::yes(LogicalPlanBuilder::from(plan).project(columns)?.build()?)),
        false => Ok(Transformed::no(plan)),
    }
}

/// The signed type that holds the numbers of an unsigned one, also within lists; `None` for other types.
fn signed_type(data_type: &DataType) -> Option<DataType> {
    let inner = |field: &Arc<Field>| {
        signed_type(field.data_type()).map(|item| Arc::new(field.as_ref().clone().with_data_type(item)))
    };
    Some(match data_type {
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::List(item) => DataType::List(inner(item)?),
        DataType::LargeList(item) => DataType::LargeList(inner(item)?),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(inner(item)?, *size),
        _ => return None,
    })
}
