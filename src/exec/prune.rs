//! Pruning of saved searches by conditions on the aid alone, before any request is sent.
//!
//! Conditions come from the query itself (`aid LIKE …`, `aid <> …`) and from joins. A join has usually read its other side
//! before it needs the first row of the scan, so the engine knows which aids that side has. Nothing waits for a join. If a
//! join is not ready, it prunes nothing; the rows that it drops later cost requests, but do not change the result.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result;
use datafusion::common::cast::as_boolean_array;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;

/// Returns the aids that no condition excludes, in their order. `column` is the name of the aid column in the
/// conditions.
pub(crate) fn possible<'e>(
    aids: Vec<String>,
    conditions: impl IntoIterator<Item = &'e Arc<dyn PhysicalExpr>>,
    column: &str,
) -> Result<Vec<String>> {
    let mut possible = aids;
    for condition in conditions {
        // Takes what a join knows so far; other conditions stay as they are.
        let condition = snapshot_physical_expr(Arc::clone(condition))?;
        for part in split_conjunction(&condition) {
            let columns = collect_columns(part);
            if columns.len() == 1 && columns.iter().all(|used| used.name() == column) {
                possible = satisfying(possible, part, column)?;
            }
        }
    }
    Ok(possible)
}

fn satisfying(aids: Vec<String>, condition: &Arc<dyn PhysicalExpr>, column: &str) -> Result<Vec<String>> {
    let schema = Arc::new(Schema::new(vec![Field::new(column, DataType::Utf8, false)]));
    let condition = reassign_expr_columns(Arc::clone(condition), &schema)?;
    let batch = RecordBatch::try_new(schema, vec![Arc::new(StringArray::from_iter_values(&aids))])?;
    let flags = condition.evaluate(&batch)?.into_array(aids.len())?;
    let flags = as_boolean_array(&flags)?;
    let kept = aids.into_iter().enumerate().filter(|(row, _)| flags.is_valid(*row) && flags.value(*row));
    Ok(kept.map(|(_, aid)| aid).collect())
}
