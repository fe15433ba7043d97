//! Tables of an embedder, as the clients of its server see them.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider};
use datafusion::common::{Constraints, Statistics};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::boxed_future::boxed_futures;

/// A table or view that clients only read. Scans are those of its provider. Calls that write are not passed on: the trait refuses them.
#[derive(Debug)]
pub(crate) struct ServedTable(Arc<dyn TableProvider>);

impl ServedTable {
    /// Wraps a table, unless it is one of ours.
    pub(crate) fn wrap(table: Arc<dyn TableProvider>) -> Arc<dyn TableProvider> {
        if super::is_read_only(&table) { table } else { Arc::new(Self(table)) }
    }
}

impl TableProvider for ServedTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.0.constraints()
    }

    fn table_type(&self) -> TableType {
        self.0.table_type()
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.0.get_table_definition()
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        self.0.get_logical_plan()
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.0.get_column_default(column)
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.0.supports_filters_pushdown(filters)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.0.statistics()
    }

    boxed_futures! {
        fn scan<'this, 'state, 'projection, 'filters>(
            &'this self,
            state: &'state dyn Session,
            projection: Option<&'projection Vec<usize>>,
            filters: &'filters [Expr],
            limit: Option<usize>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            self.0.scan(state, projection, filters, limit)
        }

        fn scan_with_args<'args, 'this, 'state>(
            &'this self,
            state: &'state dyn Session,
            args: ScanArgs<'args>,
        ) -> Result<ScanResult> {
            self.0.scan_with_args(state, args)
        }
    }
}
