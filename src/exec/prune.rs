//! Which saved searches can have rows at all: conditions on the aid alone decide before anything is asked.
//!
//! Conditions come from the query itself (`aid LIKE …`, `aid <> …`) and from joins, whose other side has been read by the
//! time the first row is wanted here: the engine then knows which aids it holds. Nothing is waited for. A join that
//! does not know yet prunes nothing, and the rows that it drops later cost requests, never an answer.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result;
use datafusion::common::cast::as_boolean_array;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;

/// The aids that no condition excludes, in their order. `column` is the name of the aid column in the conditions.
pub(crate) fn possible<'e>(
    aids: Vec<String>,
    conditions: impl IntoIterator<Item = &'e Arc<dyn PhysicalExpr>>,
    column: &str,
) -> Result<Vec<String>> {
    let mut possible = aids;
    for condition in conditions {
        // What a join knows by now; other conditions stay as they are.
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
