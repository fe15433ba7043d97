//! Temporary tables of a session. Their memory counts against the user's share.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, downcast_dictionary_array};
use arrow::compute::cast;
use arrow::datatypes::{ArrowNativeType, DataType, SchemaRef};
use datafusion::catalog::{Session as Planning, TableProvider};
use datafusion::common::TableReference;
use datafusion::datasource::{MemTable, ViewTable};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;

use super::sessions::Session;
use super::shares::SessionMemory;
use super::type_compat::{plain_schema, sent_batch};
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
        let schema = plain_schema(&schema);
        Ok(Self { schema, batches: Vec::new(), held, bytes: 0, used, most })
    }

    /// Appends rows, in plain types: with a dictionary or a view, a few bytes stand for a long value in each row, which the engine
    /// would write out when it reads them.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] beyond the session's limit; errors of the memory pool if it is used up.
    pub(crate) fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let plain: u64 = batch.columns().iter().map(plain_bytes).fold(0, u64::saturating_add);
        // Rows without values cost work too.
        let bytes = plain.max(batch.num_rows() as u64);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.used.saturating_add(self.bytes) > self.most {
            let message = format!("the session's temporary tables would exceed {} bytes", self.most);
            return Err(Error::new(ErrorKind::TooLarge, message)
                .advice("select fewer columns or rows, or DROP a table")
                .into());
        }
        self.held.grow(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        self.batches.push(sent_batch(batch, &self.schema)?);
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

/// Bytes of an array's values in plain types: a value that several rows share counts in each of them. Unlike the sizes of single
/// values, by which functions are bounded, the sum takes no memory for each row, since a client chooses their number.
fn plain_bytes(array: &ArrayRef) -> u64 {
    let own = array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()) as u64;
    // The length is in the lowest 32 bits of a view.
    let length = |view: &u128| u64::try_from(view & u128::from(u32::MAX)).unwrap_or(u64::MAX);
    let of_views = |views: &[u128]| views.iter().map(length).sum::<u64>();
    let plain = match array.data_type() {
        DataType::Utf8View => of_views(array.as_string_view().views()),
        DataType::BinaryView => of_views(array.as_binary_view().views()),
        DataType::Dictionary(..) => of_dictionary(array),
        DataType::Struct(_) => array.as_struct().columns().iter().map(plain_bytes).fold(0, u64::saturating_add),
        DataType::List(_) => plain_bytes(array.as_list::<i32>().values()),
        DataType::LargeList(_) => plain_bytes(array.as_list::<i64>().values()),
        DataType::FixedSizeList(..) => plain_bytes(array.as_fixed_size_list().values()),
        DataType::Map(..) => array.as_map().entries().columns().iter().map(plain_bytes).fold(0, u64::saturating_add),
        // At most: each row may have all of it.
        DataType::RunEndEncoded(..) | DataType::ListView(_) | DataType::LargeListView(_) | DataType::Union(..) => {
            own.saturating_mul(array.len() as u64)
        }
        _ => own,
    };
    plain.max(own)
}

fn of_dictionary(array: &ArrayRef) -> u64 {
    downcast_dictionary_array!(
        array => {
            let values = array.values();
            let text = cast(values, &DataType::LargeBinary).ok();
            let length = |at: usize| match (values.data_type().primitive_width(), &text) {
                (Some(width), _) => width as u64,
                (None, Some(text)) => text.as_binary::<i64>().value_length(at).unsigned_abs(),
                // At most.
                (None, None) => plain_bytes(values),
            };
            let keys = array.keys().iter().flatten().map(|key| key.as_usize()).filter(|at| *at < values.len());
            keys.map(|at| length(at).saturating_add(8)).fold(0, u64::saturating_add)
        },
        _ => 0,
    )
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

#[cfg(test)]
mod tests {
    use arrow::array::{DictionaryArray, Int8Array, Int64Array, RunArray, StringArray, StringViewBuilder};
    use arrow::datatypes::{Int8Type, Int32Type};

    use super::*;

    #[test]
    fn a_value_counts_in_each_row_that_has_it() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1_000), "y".to_owned()]));
        let keys = Int8Array::from(vec![Some(0), Some(0), Some(1), None]);
        let dictionary: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, Arc::clone(&text)));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7, 8]));
        let of_numbers: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(Int8Array::from(vec![0; 100]), numbers));
        let mut views = StringViewBuilder::new();
        let block = views.append_block(vec![b'z'; 1_000].into());
        (0..50).for_each(|_| views.try_append_view(block, 0, 1_000).expect("a view"));
        let views: ArrayRef = Arc::new(views.finish());
        let ends = arrow::array::PrimitiveArray::<Int32Type>::from(vec![99, 100]);
        let runs: ArrayRef = Arc::new(RunArray::try_new(&ends, &text).expect("runs"));
        for (array, least, most) in [
            (text, 1_001, 1_100),
            (dictionary, 2_001, 2_100),
            (of_numbers, 800, 1_700),
            (views, 50_000, 52_000),
            (runs, 99_000, u64::MAX),
        ] {
            let bytes = plain_bytes(&array);
            assert!((least..=most).contains(&bytes), "{}: {bytes}", array.data_type());
        }
    }
}
