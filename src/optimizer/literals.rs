//! Literals of another type than the one that is meant.
//!
//! - Numbers compared with keys are texts: `aid = 183772` means `aid = '183772'`.
//! - The number of digits in `round(x, 2)` and `trunc(x, 2)` has 32 bits. Of one that has to be converted, the engine knows the value
//!   only once constants are computed, and gives a decimal another type then: `round(x, 2) > 0` was an error.
//!
//! Keys are strings that often look like numbers. The engine would compare both sides as numbers, and so convert the column.
//! No saved search could then be selected before its mentions are read, and a single key such as `r-7` would make the query
//! fail.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, lit};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::rewrite_expressions;

/// See the module's documentation. A key is a string column named `id`, `aid` or `…_id`.
#[derive(Debug)]
pub(super) struct Literals;

impl AnalyzerRule for Literals {
    fn name(&self) -> &str {
        "literals"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_expressions(plan, |expr, schema| Ok(as_meant(expr, schema)), |plan| Ok(Transformed::no(plan)))
    }
}

fn as_meant(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
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
        Expr::ScalarFunction(mut function) if matches!(function.name(), "round" | "trunc") => {
            let places = match function.args.as_slice() {
                [_, Expr::Literal(ScalarValue::Int64(Some(places)), _)] => i32::try_from(*places).ok(),
                _ => None,
            };
            if let Some(places) = places {
                function.args[1] = lit(places);
            }
            Transformed::new_transformed(Expr::ScalarFunction(function), places.is_some())
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
