//! The tables that a session makes: their names, and the room that they may take.

use arrow::array::RecordBatch;
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use datafusion::error::Result;

use super::metadata::for_each;
use super::sessions::Session;
use super::settings::Limits;
use crate::error::{Error, ErrorKind};

/// The room that is left for a table that is being made.
#[derive(Debug)]
pub(super) struct Room {
    used: u64,
    most: u64,
}

impl Room {
    /// The room that the session's tables leave. What the new one replaces still counts: both are there for a while.
    ///
    /// # Errors
    /// Those of a table that cannot be found.
    pub(super) async fn of(session: &Session, limits: &Limits) -> Result<Self> {
        let mut tables = Vec::new();
        for_each(&session.context, |_, _, table| {
            if let Some(table) = table.downcast_ref::<MemTable>() {
                tables.extend(table.batches.iter().cloned());
            }
            Ok(())
        })
        .await?;
        let mut used = 0;
        for partition in tables {
            used += partition.read().await.iter().map(|batch| batch.get_array_memory_size() as u64).sum::<u64>();
        }
        Ok(Self { used, most: limits.temporary_bytes })
    }

    /// Takes room for a batch.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] where there is none.
    pub(super) fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        self.used = self.used.saturating_add(batch.get_array_memory_size() as u64);
        if self.used <= self.most {
            return Ok(());
        }
        let message = format!("the temporary tables of the session would take more than {} bytes", self.most);
        Err(Error::new(ErrorKind::TooLarge, message).advice("keep fewer columns or rows, or DROP one").into())
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
