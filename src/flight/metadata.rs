//! Catalogs, schemas, tables and keys, read from the session's catalog without requests to the service.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow_flight::sql::metadata::{GetCatalogsBuilder, GetDbSchemasBuilder};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetTableTypes, CommandGetTables,
};
use datafusion::catalog::TableProvider;
use datafusion::common::{Constraint, Constraints};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;
use datafusion::prelude::SessionContext;

use crate::host::temporary::for_each;
use crate::host::type_compat::table_schema;
use crate::table::{ApiTable, ServedTable};

/// Table type of the tables of the service, and of a server's embedder.
pub const TABLE: &str = "TABLE";
/// Table type of the session's views and of system tables.
pub const VIEW: &str = "VIEW";
/// Table type of the session's own tables.
pub const TEMPORARY: &str = "LOCAL TEMPORARY";

/// Lists the catalogs.
///
/// # Errors
/// None in practice: errors of building a batch.
pub(super) fn catalogs(context: &SessionContext, _: CommandGetCatalogs) -> Result<RecordBatch> {
    let mut builder = GetCatalogsBuilder::new();
    for name in context.catalog_names() {
        builder.append(name);
    }
    builder.build().map_err(external)
}

/// Lists the matching schemas; without a catalog, those of all catalogs.
///
/// # Errors
/// None in practice: errors of building a batch.
pub(super) fn schemas(context: &SessionContext, command: CommandGetDbSchemas) -> Result<RecordBatch> {
    let mut builder: GetDbSchemasBuilder = command.into_builder();
    for catalog in context.catalog_names() {
        let schemas = context.catalog(&catalog).map(|catalog| catalog.schema_names());
        for schema in schemas.into_iter().flatten() {
            builder.append(&catalog, schema);
        }
    }
    builder.build().map_err(external)
}

/// Lists the matching tables; without a catalog, those of all catalogs. Table types are case-insensitive, and the
/// aliases that drivers use are accepted.
///
/// # Errors
/// Errors of looking up a table.
pub(super) async fn tables(context: &SessionContext, command: CommandGetTables) -> Result<RecordBatch> {
    let mut builder = CommandGetTables { table_types: kinds(&command.table_types), ..command }.into_builder();
    for_each(context, |place, name, table| {
        builder.append(&place[0], &place[1], name, kind(table), &table_schema(&table.schema())).map_err(external)
    })
    .await?;
    builder.build().map_err(external)
}

/// The table type of a name: types are case-insensitive, and drivers use aliases.
pub fn kind_named(name: &str) -> String {
    match name.to_uppercase().as_str() {
        TABLE | "BASE TABLE" => TABLE.to_owned(),
        TEMPORARY | "TEMPORARY" | "LOCAL TEMPORARY TABLE" => TEMPORARY.to_owned(),
        other => other.to_owned(),
    }
}

/// The known table types among the names, each once. The builder compares all tables with each. If none is known, an unknown name
/// is left, which selects nothing.
fn kinds(names: &[String]) -> Vec<String> {
    let known = [TABLE, VIEW, TEMPORARY].into_iter();
    let known = known.filter(|kind| names.iter().any(|name| kind_named(name) == **kind));
    let known: Vec<String> = known.map(str::to_owned).collect();
    if known.is_empty() { names.iter().take(1).cloned().collect() } else { known }
}

/// Lists the table types.
///
/// # Errors
/// None in practice: errors of building a batch.
pub(super) fn table_types(command: CommandGetTableTypes) -> Result<RecordBatch> {
    let mut builder = command.into_builder();
    for kind in [TABLE, VIEW, TEMPORARY] {
        builder.append(kind);
    }
    builder.build().map_err(external)
}

/// Returns the primary key of a table: for the service's tables, the columns that identify a row.
///
/// # Errors
/// Errors of looking up a table.
pub(super) async fn primary_keys(context: &SessionContext, command: CommandGetPrimaryKeys) -> Result<RecordBatch> {
    let (mut places, mut names, mut columns, mut positions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let wanted =
        |asked: &Option<String>, found: &str| asked.as_deref().is_none_or(|asked| asked.is_empty() || asked == found);
    for_each(context, |place, name, table| {
        if name == command.table && wanted(&command.catalog, &place[0]) && wanted(&command.db_schema, &place[1]) {
            let schema = table.schema();
            for (at, column) in key(table.constraints()).into_iter().enumerate() {
                let position = i32::try_from(at + 1).unwrap_or(i32::MAX);
                places.push(place.clone());
                names.push(name.to_owned());
                columns.push(schema.field(column).name().clone());
                positions.push(position);
            }
        }
        Ok(())
    })
    .await?;
    let texts = |texts: Vec<String>| Arc::new(StringArray::from(texts));
    let keys = names.iter().map(|name| format!("{name}_key")).collect();
    let [catalogs, schemas] = [0, 1].map(|part| places.iter().map(|place: &[String; 2]| place[part].clone()).collect());
    let columns = [catalogs, schemas, names, columns, keys].map(|column| texts(column) as ArrayRef);
    let columns = columns.into_iter().chain([Arc::new(Int32Array::from(positions)) as ArrayRef]);
    Ok(RecordBatch::try_new(primary_key_schema(), columns.collect())?)
}

/// Returns an empty batch for all foreign key requests: there are no foreign keys.
pub(super) fn foreign_keys() -> RecordBatch {
    RecordBatch::new_empty(foreign_key_schema())
}

/// Returns the result schema of primary key requests (FlightSql.proto, CommandGetPrimaryKeys).
pub(super) fn primary_key_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("catalog_name", DataType::Utf8, true),
        Field::new("db_schema_name", DataType::Utf8, true),
        Field::new("table_name", DataType::Utf8, false),
        Field::new("column_name", DataType::Utf8, false),
        Field::new("key_name", DataType::Utf8, true),
        Field::new("key_sequence", DataType::Int32, false),
    ]))
}

/// Returns the result schema of foreign key requests in either direction (FlightSql.proto, CommandGetExportedKeys).
fn foreign_key_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("pk_catalog_name", DataType::Utf8, true),
        Field::new("pk_db_schema_name", DataType::Utf8, true),
        Field::new("pk_table_name", DataType::Utf8, false),
        Field::new("pk_column_name", DataType::Utf8, false),
        Field::new("fk_catalog_name", DataType::Utf8, true),
        Field::new("fk_db_schema_name", DataType::Utf8, true),
        Field::new("fk_table_name", DataType::Utf8, false),
        Field::new("fk_column_name", DataType::Utf8, false),
        Field::new("key_sequence", DataType::Int32, false),
        Field::new("fk_key_name", DataType::Utf8, true),
        Field::new("pk_key_name", DataType::Utf8, true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]))
}

/// Type of a table.
pub(crate) fn kind(table: &dyn TableProvider) -> &'static str {
    if table.table_type() == TableType::View {
        VIEW
    } else if table.downcast_ref::<ApiTable>().is_some() || table.downcast_ref::<ServedTable>().is_some() {
        TABLE
    } else {
        TEMPORARY
    }
}

/// Positions of the columns of the primary key.
pub(crate) fn key(constraints: Option<&Constraints>) -> Vec<usize> {
    let keys = constraints.into_iter().flat_map(|constraints| constraints.iter());
    keys.filter_map(|constraint| match constraint {
        Constraint::PrimaryKey(columns) => Some(columns.clone()),
        Constraint::Unique(_) => None,
    })
    .next()
    .unwrap_or_default()
}

fn external(error: arrow_flight::error::FlightError) -> datafusion::error::DataFusionError {
    datafusion::error::DataFusionError::External(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_types_are_compared_once() {
        let kinds = |names: &[&str]| kinds(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(kinds(&[]), Vec::<String>::new());
        assert_eq!(kinds(&vec!["x"; 100_000]), ["x"]);
        assert_eq!(kinds(&["view", "x", "base table", "TABLE", "temporary"]), ["TABLE", "VIEW", "LOCAL TEMPORARY"]);
    }
}
