//! Statistics as one nested batch (`AdbcConnectionGetStatistics`): the rows of temporary tables, which are in memory.
//!
//! Tables of the service have none. What they contain depends on the window of a query, and numbers of stored mentions are not those
//! of a table. So no request is sent, and no number is approximate.

use std::sync::Arc;

use adbc_core::constants::ADBC_STATISTIC_ROW_COUNT_KEY;
use adbc_core::error::Result;
use adbc_core::schemas::{
    GET_STATISTICS_SCHEMA, STATISTIC_VALUE_SCHEMA, STATISTICS_DB_SCHEMA_SCHEMA, STATISTICS_SCHEMA,
};
use arrow::array::{
    ArrayRef, BooleanArray, Int16Array, Int64Array, RecordBatch, StringArray, UnionArray, new_empty_array,
};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::DataType;
use datafusion_saved_search::embedded::TableInfo;

use crate::objects::{list, structs, texts};

/// Builds the result from tables, by catalog and schema, with the number of rows of each.
///
/// # Errors
/// None in practice: the arrays have the types of the schema.
pub(crate) fn statistics(counts: &[(&TableInfo, i64)]) -> Result<RecordBatch> {
    let (mut catalogs, mut per_catalog) = (Vec::new(), Vec::<usize>::new());
    let (mut schemas, mut per_schema) = (Vec::new(), Vec::<usize>::new());
    for (table, _) in counts {
        let (catalog, schema) = (table.catalog.as_str(), table.schema.as_str());
        if catalogs.last() != Some(&catalog) {
            catalogs.push(catalog);
            per_catalog.push(0);
        }
        if schemas.last() != Some(&(catalog, schema)) {
            schemas.push((catalog, schema));
            per_schema.push(0);
            per_catalog.last_mut().into_iter().for_each(|count| *count += 1);
        }
        per_schema.last_mut().into_iter().for_each(|count| *count += 1);
    }
    let found: Vec<ArrayRef> = vec![
        texts(counts.iter().map(|(table, _)| table.name.as_str()).collect()),
        // They are those of a whole table.
        Arc::new(StringArray::new_null(counts.len())),
        Arc::new(Int16Array::from(vec![ADBC_STATISTIC_ROW_COUNT_KEY; counts.len()])),
        values(counts.iter().map(|(_, rows)| *rows).collect())?,
        Arc::new(BooleanArray::from(vec![false; counts.len()])),
    ];
    let found = list(&STATISTICS_SCHEMA, per_schema, structs(&STATISTICS_SCHEMA, found)?)?;
    let names = texts(schemas.into_iter().map(|(_, schema)| schema).collect());
    let in_schemas = structs(&STATISTICS_DB_SCHEMA_SCHEMA, vec![names, found])?;
    let in_catalogs = list(&STATISTICS_DB_SCHEMA_SCHEMA, per_catalog, in_schemas)?;
    Ok(RecordBatch::try_new(GET_STATISTICS_SCHEMA.clone(), vec![texts(catalogs), in_catalogs])?)
}

/// Integers as values of statistics.
fn values(values: Vec<i64>) -> Result<ArrayRef> {
    let DataType::Union(fields, _) = &*STATISTIC_VALUE_SCHEMA else {
        return Ok(new_empty_array(&STATISTIC_VALUE_SCHEMA));
    };
    let kinds = ScalarBuffer::from(vec![0_i8; values.len()]);
    let offsets = (0_i32..).take(values.len()).collect::<Vec<_>>();
    let values: ArrayRef = Arc::new(Int64Array::from(values));
    let children = fields.iter().map(|(_, field)| match field.data_type() {
        DataType::Int64 => Arc::clone(&values),
        other => new_empty_array(other),
    });
    let union = UnionArray::try_new(fields.clone(), kinds, Some(ScalarBuffer::from(offsets)), children.collect())?;
    Ok(Arc::new(union))
}
