//! The tables that a session makes: theirs is the memory that queries share, and they give it back.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session as Planning, TableProvider};
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::metadata::for_each;
use super::sessions::Session;
use super::type_compat::bytes_of;
use crate::error::{Error, ErrorKind};

/// A table of a session, in memory.
#[derive(Debug)]
pub(super) struct TemporaryTable {
    rows: MemTable,
    bytes: u64,
    /// Given back when the last query has done with the table.
    _held: MemoryReservation,
}

/// A table that is being made.
#[derive(Debug)]
pub(super) struct Making {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    held: MemoryReservation,
    bytes: u64,
    /// Bytes of the other tables of the session, the one that it may replace among them: both are there for a while.
    used: u64,
    most: u64,
}

impl Making {
    /// Begins a table. `most` bytes are allowed to all tables of the session.
    ///
    /// # Errors
    /// A name that is there twice; those of a table that cannot be found.
    pub(super) async fn begin(session: &Session, schema: SchemaRef, most: u64) -> Result<Self> {
        let mut names = HashSet::new();
        if let Some(twice) = schema.fields().iter().find(|field| !names.insert(field.name())) {
            let message = format!("the table would have two columns `{}`", twice.name());
            return Err(Error::new(ErrorKind::Query, message).advice("name one of them: … AS other").into());
        }
        let mut used = 0;
        for_each(&session.context, |_, _, table| {
            used += table.downcast_ref::<TemporaryTable>().map_or(0, |table| table.bytes);
            Ok(())
        })
        .await?;
        let pool = &session.context.runtime_env().memory_pool;
        let held = MemoryConsumer::new("temporary table").register(pool);
        Ok(Self { schema, batches: Vec::new(), held, bytes: 0, used, most })
    }

    /// Takes rows.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] where the session has no room for them, those of the pool where nobody has.
    pub(super) fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let bytes = bytes_of(batch);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.used.saturating_add(self.bytes) > self.most {
            let message = format!("the temporary tables of the session would take more than {} bytes", self.most);
            return Err(Error::new(ErrorKind::TooLarge, message)
                .advice("keep fewer columns or rows, or DROP one")
                .into());
        }
        self.held.try_grow(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        self.batches.push(RecordBatch::try_new(Arc::clone(&self.schema), batch.columns().to_vec())?);
        Ok(())
    }

    /// The table; it takes the place of one that is there.
    ///
    /// # Errors
    /// Those of the catalog: a table of the service stays.
    pub(super) fn register(self, session: &Session, name: TableReference) -> Result<u64> {
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

/// The name of a table to be made.
pub(super) fn name(catalog: Option<String>, schema: Option<String>, table: String) -> TableReference {
    let named = |name: Option<String>| name.filter(|name| !name.is_empty());
    match (named(catalog), named(schema)) {
        (Some(catalog), Some(schema)) => TableReference::full(catalog, schema, table),
        (None, Some(schema)) => TableReference::partial(schema, table),
        _ => TableReference::bare(table),
    }
}

#[async_trait]
impl TableProvider for TemporaryTable {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn table_type(&self) -> TableType {
        // Of the kind that DROP TABLE drops.
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Planning,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.rows.scan(state, projection, filters, limit).await
    }
}
