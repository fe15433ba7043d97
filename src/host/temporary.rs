//! Temporary tables of a session. Their memory counts against the user's share.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session as Planning, TableProvider};
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
#[cfg(feature = "postgres")]
use datafusion::datasource::ViewTable;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;

use super::sessions::Session;
use super::shares::SessionMemory;
use super::type_compat::bytes_of;
use crate::boxed_future::boxed_futures;
use crate::error::{Error, ErrorKind};

/// Bytes of a table without rows and columns.
const TABLE: usize = 1 << 10;

/// An in-memory table of a session.
#[derive(Debug)]
struct TemporaryTable {
    rows: MemTable,
    bytes: u64,
    /// Released when the last query that uses the table ends.
    _held: SessionMemory,
}

/// A temporary table under construction.
#[derive(Debug)]
pub(crate) struct Making {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    held: SessionMemory,
    bytes: u64,
    /// Bytes of the session's existing tables, including one to be replaced, since both exist for a while.
    used: u64,
    most: u64,
}

impl Making {
    /// Starts building a table. `most` limits the bytes of all temporary tables of the session.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] for a duplicate column name; errors of looking up a table.
    pub(crate) async fn begin(session: &Session, schema: SchemaRef, most: u64) -> Result<Self> {
        let mut names = HashSet::new();
        if let Some(twice) = schema.fields().iter().find(|field| !names.insert(field.name())) {
            let message = format!("duplicate column name `{}`", twice.name());
            return Err(Error::new(ErrorKind::Query, message).advice("rename one: … AS other").into());
        }
        let mut used = 0;
        for_each(&session.context, |_, _, table| {
            used += table.downcast_ref::<TemporaryTable>().map_or(0, |table| table.bytes);
            Ok(())
        })
        .await?;
        let held = session.share.keep("temporary table", TABLE + schema.fields().size())?;
        Ok(Self { schema, batches: Vec::new(), held, bytes: 0, used, most })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] beyond the session's limit; errors of the memory pool if it is used up.
    pub(crate) fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let bytes = bytes_of(batch);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.used.saturating_add(self.bytes) > self.most {
            let message = format!("the session's temporary tables would exceed {} bytes", self.most);
            return Err(Error::new(ErrorKind::TooLarge, message)
                .advice("select fewer columns or rows, or DROP a table")
                .into());
        }
        self.held.grow(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        self.batches.push(RecordBatch::try_new(Arc::clone(&self.schema), batch.columns().to_vec())?);
        Ok(())
    }

    /// Registers the finished table, replacing an existing one. Returns the number of rows.
    ///
    /// # Errors
    /// Errors of the catalog: built-in tables cannot be replaced.
    pub(crate) fn register(self, session: &Session, name: TableReference) -> Result<u64> {
        let Self { schema, batches, held, bytes, .. } = self;
        let count = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let rows = MemTable::try_new(schema, vec![batches])?;
        if session.context.table_exist(name.clone())? {
            session.context.deregister_table(name.clone())?;
        }
        session.context.register_table(name, Arc::new(TemporaryTable { rows, bytes, _held: held }))?;
        Ok(count)
    }
}

/// Builds a table reference; empty names count as missing.
pub(crate) fn name(catalog: Option<String>, schema: Option<String>, table: String) -> TableReference {
    let named = |name: Option<String>| name.filter(|name| !name.is_empty());
    match (named(catalog), named(schema)) {
        (Some(catalog), Some(schema)) => TableReference::full(catalog, schema, table),
        (None, Some(schema)) => TableReference::partial(schema, table),
        _ => TableReference::bare(table),
    }
}

/// Calls `each` for every table, with its catalog and schema.
pub(crate) async fn for_each(
    context: &SessionContext,
    mut each: impl FnMut(&[String; 2], &str, &dyn TableProvider) -> Result<()> + Send,
) -> Result<()> {
    for catalog_name in context.catalog_names() {
        let Some(catalog) = context.catalog(&catalog_name) else { continue };
        for schema_name in catalog.schema_names() {
            let Some(schema) = catalog.schema(&schema_name) else { continue };
            let place = [catalog_name.clone(), schema_name];
            for name in schema.table_names() {
                // The table may have been dropped meanwhile.
                if let Some(table) = schema.table(&name).await? {
                    each(&place, &name, table.as_ref())?;
                }
            }
        }
    }
    Ok(())
}

/// Drops all temporary tables and views.
///
/// # Errors
/// Errors of looking up a table.
#[cfg(feature = "postgres")]
pub(crate) async fn drop_all(context: &SessionContext) -> Result<()> {
    let mut found = Vec::new();
    for_each(context, |[catalog, schema], name, table| {
        if table.downcast_ref::<TemporaryTable>().is_some() || table.downcast_ref::<ViewTable>().is_some() {
            found.push(TableReference::full(catalog.as_str(), schema.as_str(), name));
        }
        Ok(())
    })
    .await?;
    for name in found {
        context.deregister_table(name)?;
    }
    Ok(())
}

impl TableProvider for TemporaryTable {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn table_type(&self) -> TableType {
        // DROP TABLE accepts only base tables.
        TableType::Base
    }

    boxed_futures! {
        fn scan<'this, 'state, 'projection, 'filters>(
            &'this self,
            state: &'state dyn Planning,
            projection: Option<&'projection Vec<usize>>,
            filters: &'filters [Expr],
            limit: Option<usize>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            self.rows.scan(state, projection, filters, limit)
        }
    }
}
