//! Rewrites literals in comparisons, so that they mean what users expect.
//!
//! *Numbers compared with keys*, as text: `aid = 183772` means `aid = '183772'`. Keys are strings that often look like numbers. The
//! engine would compare both sides as numbers, and so convert the column: no saved search could then be selected before its mentions
//! are read, and a single key such as `r-7` would fail the query.
//!
//! *Intervals compared with the time between two instants*, in nanoseconds: `indexed_at - published_at > INTERVAL '1 day'`. The engine
//! compares months, then days, then nanoseconds, so that 25 hours would be less than a day. As in PostgreSQL, a day has 24 hours
//! and a month 30 days.

use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::AnalyzerRule;

/// Rule for `=`, `<>` and `IN` between an integer literal and a string column named `id`, `aid` or `…_id`, and for comparisons and
/// BETWEEN with an interval literal. See the module's documentation.
#[derive(Debug)]
pub(super) struct Literals;

impl AnalyzerRule for Literals {
    fn name(&self) -> &str {
        "literals"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            // Columns of the result keep their names.
            let names = NamePreserver::new(&plan);
            let changed = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let expr = expr.transform_up(|expr| {
                    as_text(expr, &schema).transform_data(|expr| Ok(in_nanoseconds(expr, &schema)))
                })?;
                Ok(expr.update_data(|expr| name.restore(expr)))
            })?;
            if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
        })
        .map(|transformed| transformed.data)
    }
}

fn as_text(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(mut comparison) if matches!(comparison.op, Operator::Eq | Operator::NotEq) => {
            let text = if is_key(&comparison.left, schema) {
                text_of(&comparison.right).map(|text| comparison.right = text.into())
            } else if is_key(&comparison.right, schema) {
                text_of(&comparison.left).map(|text| comparison.left = text.into())
            } else {
                None
            };
            Transformed::new_transformed(Expr::BinaryExpr(comparison), text.is_some())
        }
        Expr::InList(mut list) if is_key(&list.expr, schema) && list.list.iter().all(is_literal) => {
            let mut changed = false;
            for item in &mut list.list {
                if let Some(text) = text_of(item) {
                    *item = text;
                    changed = true;
                }
            }
            Transformed::new_transformed(Expr::InList(list), changed)
        }
        other => Transformed::no(other),
    }
}

fn is_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(..))
}

/// True for a string column whose name is that of a key.
fn is_key(expr: &Expr, schema: &DFSchema) -> bool {
    let (column, kind) = match expr {
        Expr::Column(column) => (column, schema.data_type(column).ok().cloned()),
        Expr::OuterReferenceColumn(field, column) => (column, Some(field.data_type().clone())),
        _ => return false,
    };
    let named = matches!(column.name(), "id" | "aid") || column.name().ends_with("_id");
    named && matches!(kind, Some(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View))
}

/// An integer literal as a string literal.
fn text_of(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => Some(lit(number.to_string())),
        Expr::Literal(ScalarValue::UInt64(Some(number)), _) => Some(lit(number.to_string())),
        _ => None,
    }
}

/// Replaces the interval literals of a comparison with the time between two instants, or with each other.
fn in_nanoseconds(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let mut changed = false;
    let expr = match expr {
        Expr::BinaryExpr(mut comparison) if is_comparison(comparison.op) => {
            let sides = [&comparison.left, &comparison.right].map(|side| nanoseconds_of(side));
            let is_duration = |side: &Expr| matches!(side.get_type(schema), Ok(DataType::Duration(_)));
            match sides {
                [Some(left), Some(right)] => {
                    (comparison.left, comparison.right, changed) = (left.into(), right.into(), true);
                }
                [Some(left), None] if is_duration(&comparison.right) => {
                    (comparison.left, changed) = (left.into(), true)
                }
                [None, Some(right)] if is_duration(&comparison.left) => {
                    (comparison.right, changed) = (right.into(), true)
                }
                _ => {}
            }
            Expr::BinaryExpr(comparison)
        }
        Expr::Between(mut between) => {
            if let (Some(low), Some(high)) = (nanoseconds_of(&between.low), nanoseconds_of(&between.high))
                && matches!(between.expr.get_type(schema), Ok(DataType::Duration(_)))
            {
                (between.low, between.high, changed) = (low.into(), high.into(), true);
            }
            Expr::Between(between)
        }
        other => other,
    };
    Transformed::new_transformed(expr, changed)
}

fn is_comparison(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// An interval literal, or a negated one, with nanoseconds only; `None` for any other expression, and beyond 292 years.
fn nanoseconds_of(expr: &Expr) -> Option<Expr> {
    const DAY: i64 = 86_400_000_000_000;
    match expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), metadata) => {
            let days = i64::from(interval.months) * 30 + i64::from(interval.days);
            let nanoseconds = days.checked_mul(DAY)?.checked_add(interval.nanoseconds)?;
            let interval = IntervalMonthDayNano::new(0, 0, nanoseconds);
            Some(Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), metadata.clone()))
        }
        Expr::Negative(inner) => Some(Expr::Negative(nanoseconds_of(inner)?.into())),
        _ => None,
    }
}
