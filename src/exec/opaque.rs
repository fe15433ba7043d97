//! Conditions that are hidden from the engine's interval analysis, because it misreads them.
//!
//! From `t::date = DATE '…'`, DataFusion 55.2 derives that `t` itself is constant, because the analysis casts the day back to one
//! instant; integer division and multiplication have the same flaw. A sort by `t` above such a filter is then dropped.
//! `tests/it/engine_defects.rs` reproduces it in a plain session and fails once the engine is fixed; then this module can be removed.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal, lit};
use datafusion::physical_expr::intervals::utils::check_support;
use datafusion::physical_expr::{PhysicalExpr, conjunction, split_conjunction};

/// Returns a predicate over rows of this schema with the conditions wrapped that interval analysis would misread, which selects the
/// same rows; `None` if there are no such conditions.
pub(crate) fn opaque(predicate: &Arc<dyn PhysicalExpr>, schema: &Arc<Schema>) -> Option<Arc<dyn PhysicalExpr>> {
    let misread = |condition: &Arc<dyn PhysicalExpr>| !is_plain(condition) && check_support(condition, schema);
    let conditions = split_conjunction(predicate);
    if !conditions.iter().any(|condition| misread(condition)) {
        return None;
    }
    let wrapped = conditions.into_iter().map(|condition| match misread(condition) {
        // True if the condition is true, false if it is false or NULL; interval analysis does not support this
        // operator.
        true => Arc::new(BinaryExpr::new(Arc::clone(condition), Operator::IsNotDistinctFrom, lit(true))) as _,
        false => Arc::clone(condition),
    });
    Some(conjunction(wrapped))
}

/// True for a comparison of columns or literals, which interval analysis reads correctly.
fn is_plain(condition: &Arc<dyn PhysicalExpr>) -> bool {
    let plain = |side: &Arc<dyn PhysicalExpr>| {
        side.downcast_ref::<Column>().is_some() || side.downcast_ref::<Literal>().is_some()
    };
    match condition.downcast_ref::<BinaryExpr>() {
        Some(compare) => plain(compare.left()) && plain(compare.right()),
        None => plain(condition),
    }
}
