//! Columns of a table, as expressions over the columns of files.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, cast, lit};

use crate::decode::arrow_schema;
use crate::profile::{Origin, TableSpec};
use crate::store::AID;

/// Columns of files whose rows have the window and the zone of their requests in common.
pub(super) struct FileColumns<'c> {
    spec: &'c TableSpec,
    /// Schema of the table.
    table: SchemaRef,
    /// Schema of the files.
    files: SchemaRef,
    /// Saved searches of the rows.
    aids: BTreeSet<Option<&'c str>>,
    duration: Option<&'c str>,
    timezone: Option<&'c str>,
}

impl<'c> FileColumns<'c> {
    pub(super) fn new(
        spec: &'c TableSpec,
        files: SchemaRef,
        aids: BTreeSet<Option<&'c str>>,
        duration: Option<&'c str>,
        timezone: Option<&'c str>,
    ) -> Self {
        Self { spec, table: arrow_schema(spec), files, aids, duration, timezone }
    }

    /// Schema of the files.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.files
    }

    /// The value of a column of the table, by its position, in a row of a file.
    pub(super) fn value(&self, at: usize) -> Result<Arc<dyn PhysicalExpr>> {
        let Some(column) = self.spec.columns.get(at) else { return Ok(lit(1_i64)) };
        let text = |text: Option<&str>| lit(ScalarValue::Utf8(text.map(str::to_owned)));
        let of_file = match column.origin {
            Origin::Aid if self.aids.len() == 1 => return Ok(text(self.aids.first().copied().flatten())),
            Origin::Aid => self.named(AID),
            Origin::Duration => return Ok(text(self.duration)),
            Origin::Timezone => return Ok(text(self.timezone)),
            _ => self.named(&column.name),
        };
        // Files have instants in UTC.
        let shown = self.table.field(at).data_type();
        match of_file {
            Some(column) if matches!(shown, DataType::Timestamp(..)) && self.spec.zone.is_some() => {
                cast(column, &self.files, shown.clone())
            }
            Some(column) => Ok(column),
            None => Ok(lit(ScalarValue::try_from(shown)?)),
        }
    }

    fn named(&self, name: &str) -> Option<Arc<dyn PhysicalExpr>> {
        self.files.index_of(name).ok().map(|at| Arc::new(Column::new(name, at)) as _)
    }
}

/// Returns an expression over columns of files as one over those that are read, whose positions are in order.
pub(super) fn placed(expr: Arc<dyn PhysicalExpr>, read: &[usize]) -> Result<Arc<dyn PhysicalExpr>> {
    let moved = expr.transform(|expr| match expr.downcast_ref::<Column>() {
        Some(column) => match read.binary_search(&column.index()) {
            Ok(at) => Ok(Transformed::yes(Arc::new(Column::new(column.name(), at)) as _)),
            Err(_) => internal_err!("column {} is not read", column.name()),
        },
        None => Ok(Transformed::no(expr)),
    })?;
    Ok(moved.data)
}
