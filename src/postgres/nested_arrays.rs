//! Arrays of arrays, which are refused. PostgreSQL has arrays of several dimensions instead, of which the engine's functions take
//! one: `unnest` returns the inner arrays, for example.

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::error::{Error, ErrorKind};
use crate::functions::TypeIn;

/// Refuses a plan that makes arrays of arrays.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if it does.
pub(super) fn refuse_nested_arrays(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                // Other expressions return what is made elsewhere. The type of a parameter may not be known yet.
                let makes = matches!(
                    part,
                    Expr::ScalarFunction(_)
                        | Expr::HigherOrderFunction(_)
                        | Expr::AggregateFunction(_)
                        | Expr::WindowFunction(_)
                        | Expr::Cast(_)
                        | Expr::TryCast(_)
                        | Expr::Literal(..)
                );
                if makes && part.type_in(&schema).is_ok_and(|data_type| is_nested(&data_type)) {
                    return Err(Error::new(ErrorKind::Unsupported, "arrays of arrays are not supported")
                        .advice("use a row for each inner array, or a text")
                        .into());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

fn is_nested(data_type: &DataType) -> bool {
    let item = |data_type: &DataType| match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item.data_type().clone())
        }
        _ => None,
    };
    item(data_type).is_some_and(|inner| item(&inner).is_some())
}
