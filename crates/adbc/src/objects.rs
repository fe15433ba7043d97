//! Catalogs, schemas, tables and columns as one nested batch (`AdbcConnectionGetObjects`). Built from the session's catalog, without
//! a request.
//!
//! Lists are built from the innermost outwards: the values of all parents in one array, with the number that each parent has.

use std::sync::Arc;

use adbc_core::error::Result;
use adbc_core::options::ObjectDepth;
use adbc_core::schemas::{
    COLUMN_SCHEMA, CONSTRAINT_SCHEMA, GET_OBJECTS_SCHEMA, OBJECTS_DB_SCHEMA_SCHEMA, TABLE_SCHEMA, USAGE_SCHEMA,
};
use arrow::array::{
    ArrayRef, Int16Array, Int32Array, ListArray, RecordBatch, StringArray, StructArray, new_empty_array, new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::like;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion_saved_search::embedded::{TableInfo, kind_named};

/// Patterns of names, as in LIKE, and types of tables; `None` matches all.
pub(crate) struct Wanted<'w> {
    pub(crate) catalog: Option<&'w str>,
    pub(crate) schema: Option<&'w str>,
    pub(crate) table: Option<&'w str>,
    pub(crate) kinds: Option<Vec<&'w str>>,
    pub(crate) column: Option<&'w str>,
}

/// Builds the result. `schemas` are all catalogs with their schemas.
///
/// # Errors
/// Errors of invalid patterns.
pub(crate) fn objects(
    depth: ObjectDepth,
    wanted: &Wanted<'_>,
    schemas: &[(String, Vec<String>)],
    tables: &[TableInfo],
) -> Result<RecordBatch> {
    let mut catalogs = Vec::new();
    let (mut names, mut per_catalog) = (Vec::new(), Vec::new());
    let (mut listed, mut per_schema) = (Vec::new(), Vec::new());
    let kinds: Option<Vec<String>> =
        wanted.kinds.as_ref().map(|kinds| kinds.iter().map(|kind| kind_named(kind)).collect());
    for (catalog, schemas) in schemas {
        if !matches(catalog, wanted.catalog)? {
            continue;
        }
        catalogs.push(catalog.as_str());
        let mut count = 0;
        for schema in schemas {
            if !matches(schema, wanted.schema)? {
                continue;
            }
            count += 1;
            names.push(schema.as_str());
            let mut in_schema = 0;
            for table in tables.iter().filter(|table| table.catalog == *catalog && table.schema == *schema) {
                let of_kind = kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| kind == table.kind));
                if of_kind && matches(&table.name, wanted.table)? {
                    listed.push(table);
                    in_schema += 1;
                }
            }
            per_schema.push(in_schema);
        }
        per_catalog.push(count);
    }
    let whole = matches!(depth, ObjectDepth::All | ObjectDepth::Columns);
    let described = match depth {
        ObjectDepth::Catalogs => absent(&OBJECTS_DB_SCHEMA_SCHEMA, catalogs.len()),
        _ => {
            let in_schemas = match depth {
                ObjectDepth::Schemas => absent(&TABLE_SCHEMA, names.len()),
                _ => list(&TABLE_SCHEMA, per_schema, described_tables(&listed, whole, wanted.column)?)?,
            };
            let schemas = structs(&OBJECTS_DB_SCHEMA_SCHEMA, vec![texts(names), in_schemas])?;
            list(&OBJECTS_DB_SCHEMA_SCHEMA, per_catalog, schemas)?
        }
    };
    Ok(RecordBatch::try_new(GET_OBJECTS_SCHEMA.clone(), vec![texts(catalogs), described])?)
}

/// Tables, with their columns and keys if `whole`.
fn described_tables(tables: &[&TableInfo], whole: bool, column: Option<&str>) -> Result<ArrayRef> {
    let names = texts(tables.iter().map(|table| table.name.as_str()).collect());
    let kinds = texts(tables.iter().map(|table| table.kind).collect());
    let (columns, keys) = if whole {
        (columns(tables, column)?, keys(tables)?)
    } else {
        (absent(&COLUMN_SCHEMA, tables.len()), absent(&CONSTRAINT_SCHEMA, tables.len()))
    };
    structs(&TABLE_SCHEMA, vec![names, kinds, columns, keys])
}

/// Matching columns of each table. What ADBC calls XDBC is left open, but for names of types and nullability.
fn columns(tables: &[&TableInfo], pattern: Option<&str>) -> Result<ArrayRef> {
    let (mut counts, mut found) = (Vec::new(), Vec::<(i32, &Field)>::new());
    for table in tables {
        let before = found.len();
        for (position, field) in (1..).zip(table.columns.fields()) {
            if matches(field.name(), pattern)? {
                found.push((position, field));
            }
        }
        counts.push(found.len() - before);
    }
    let types: Vec<String> = found.iter().map(|(_, field)| field.data_type().to_string()).collect();
    let DataType::Struct(fields) = &*COLUMN_SCHEMA else { return Ok(absent(&COLUMN_SCHEMA, tables.len())) };
    let values = fields.iter().map(|field| match field.name().as_str() {
        "column_name" => texts(found.iter().map(|(_, field)| field.name().as_str()).collect()),
        "ordinal_position" => Arc::new(found.iter().map(|(position, _)| Some(*position)).collect::<Int32Array>()),
        "xdbc_type_name" => texts(types.iter().map(String::as_str).collect()),
        "xdbc_nullable" => {
            Arc::new(found.iter().map(|(_, field)| Some(i16::from(field.is_nullable()))).collect::<Int16Array>())
        }
        "xdbc_is_nullable" => {
            texts(found.iter().map(|(_, field)| if field.is_nullable() { "YES" } else { "NO" }).collect())
        }
        _ => new_null_array(field.data_type(), found.len()),
    });
    let values = values.collect();
    list(&COLUMN_SCHEMA, counts, structs(&COLUMN_SCHEMA, values)?)
}

/// The primary key of each table that has one.
fn keys(tables: &[&TableInfo]) -> Result<ArrayRef> {
    let keyed: Vec<&&TableInfo> = tables.iter().filter(|table| !table.key.is_empty()).collect();
    let names: Vec<String> = keyed.iter().map(|table| format!("{}_key", table.name)).collect();
    let columns = texts(keyed.iter().flat_map(|table| &table.key).map(String::as_str).collect());
    let columns = list(&DataType::Utf8, keyed.iter().map(|table| table.key.len()).collect(), columns)?;
    let usage = absent(&USAGE_SCHEMA, keyed.len());
    let kinds = texts(vec!["PRIMARY KEY"; keyed.len()]);
    let keys =
        structs(&CONSTRAINT_SCHEMA, vec![texts(names.iter().map(String::as_str).collect()), kinds, columns, usage])?;
    list(&CONSTRAINT_SCHEMA, tables.iter().map(|table| usize::from(!table.key.is_empty())).collect(), keys)
}

/// True if a name matches a pattern of LIKE.
///
/// # Errors
/// Errors of an invalid pattern.
pub(crate) fn matches(name: &str, pattern: Option<&str>) -> Result<bool> {
    let Some(pattern) = pattern else { return Ok(true) };
    Ok(like(&StringArray::new_scalar(name), &StringArray::new_scalar(pattern))?.value(0))
}

/// An array of texts.
pub(crate) fn texts(texts: Vec<&str>) -> ArrayRef {
    Arc::new(StringArray::from(texts))
}

/// The field that lists of a type have for their items (`DataType::new_list`).
fn item(data_type: &DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(data_type.clone(), true))
}

/// Lists of these lengths over the values.
///
/// # Errors
/// Lengths or values that do not fit.
pub(crate) fn list(data_type: &DataType, lengths: Vec<usize>, values: ArrayRef) -> Result<ArrayRef> {
    Ok(Arc::new(ListArray::try_new(item(data_type), OffsetBuffer::from_lengths(lengths), values, None)?))
}

/// NULL in place of lists, beyond the depth.
fn absent(data_type: &DataType, count: usize) -> ArrayRef {
    new_null_array(&DataType::List(item(data_type)), count)
}

/// Values of a struct type.
///
/// # Errors
/// Columns that do not fit.
pub(crate) fn structs(data_type: &DataType, columns: Vec<ArrayRef>) -> Result<ArrayRef> {
    let DataType::Struct(fields) = data_type else { return Ok(new_empty_array(data_type)) };
    let fields: Fields = fields.clone();
    Ok(Arc::new(StructArray::try_new(fields, columns, None)?))
}
