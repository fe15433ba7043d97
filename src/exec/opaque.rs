//! Conditions that are hidden from the engine's interval analysis, or from its pruning by statistics, because it misreads them.
//!
//! From `t::date = DATE '…'`, DataFusion 55.2 derives that `t` itself is constant, because the analysis casts the day back to one
//! instant; integer division and multiplication have the same flaw. A sort by `t` above such a filter is then dropped.
//!
//! Pruning computes the condition for the smallest and largest values of a file. It assumes that each cast keeps the order, which
//! `t::time < '06:00'` does not: files with matching rows are then skipped.
//!
//! `tests/it/engine_defects.rs` reproduces it in a plain session and fails once the engine is fixed; then this module can be removed.

use std::sync::Arc;

#[cfg(feature = "store")]
use arrow::datatypes::DataType;
use arrow::datatypes::Schema;
#[cfg(feature = "store")]
use datafusion::common::Result;
#[cfg(feature = "store")]
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal, lit};
#[cfg(feature = "store")]
use datafusion::physical_expr::expressions::{CastExpr, TryCastExpr};
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
        true => wrapped(condition),
        false => Arc::clone(condition),
    });
    Some(conjunction(wrapped))
}

/// Returns a predicate over the columns of files that selects the same rows, with the conditions wrapped that have a cast which
/// may not keep the order of values; `None` if there are none.
#[cfg(feature = "store")]
pub(crate) fn hidden_from_pruning(
    predicate: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let conditions = split_conjunction(predicate);
    let keep = conditions.iter().map(|condition| casts_keep_order(condition, schema)).collect::<Result<Vec<_>>>()?;
    if keep.iter().all(|keeps| *keeps) {
        return Ok(None);
    }
    let conditions = conditions.into_iter().zip(keep);
    Ok(Some(conjunction(
        conditions.map(|(condition, keeps)| if keeps { Arc::clone(condition) } else { wrapped(condition) }),
    )))
}

/// True if the condition is true, false if it is false or NULL; neither interval analysis nor pruning support this operator.
fn wrapped(condition: &Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    Arc::new(BinaryExpr::new(Arc::clone(condition), Operator::IsNotDistinctFrom, lit(true)))
}

#[cfg(feature = "store")]
fn casts_keep_order(condition: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<bool> {
    let mut keep = true;
    condition.apply(|part| {
        let cast = part.downcast_ref::<CastExpr>().map(|cast| (cast.expr(), cast.cast_type()));
        let cast = cast.or_else(|| part.downcast_ref::<TryCastExpr>().map(|cast| (cast.expr(), cast.cast_type())));
        if let Some((from, to)) = cast {
            keep &= keeps_order(&from.data_type(schema)?, to);
        }
        Ok(if keep { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(keep)
}

/// True for a cast whose results have the order of its operands. Local times of a zone do not: clocks are set back.
#[cfg(feature = "store")]
fn keeps_order(from: &DataType, to: &DataType) -> bool {
    let is_utc = |zone: &Option<Arc<str>>| zone.as_deref().is_none_or(|zone| ["UTC", "+00:00", "Z"].contains(&zone));
    match (from, to) {
        (from, to) if from == to => true,
        (from, to) if from.is_string() => to.is_string(),
        (from, to) if from.is_numeric() => to.is_numeric(),
        (DataType::Timestamp(_, from), DataType::Timestamp(_, to)) => from.is_some() == to.is_some() || is_utc(from),
        (DataType::Timestamp(_, zone), DataType::Date32 | DataType::Date64) => is_utc(zone),
        (DataType::Date32 | DataType::Date64, to) => {
            matches!(to, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
        }
        _ => false,
    }
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
