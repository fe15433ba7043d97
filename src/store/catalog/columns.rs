//! Columns of the stored files. Each version is a set of columns; a column keeps its id through all versions.
//!
//! Files carry the ids as Parquet field ids, by which readers of DuckLake find a column in files of any version: a file
//! without the id has NULLs. If a column returns with its former name and type, it gets its former id, so that the values in
//! older files are visible again.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::ducklake::{DELETED, DELETED_AT_ID, FILTERED, FILTERS_ID, Snapshot, TABLES, table_ids};
use super::sql::{Connection, Row, SqlError, SqlResult, invalid, values};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::ColumnType;

/// The first of all columns.
const AID: &str = "aid";
/// Additional column of the filtered table.
const FILTERS: &str = "filters";
/// Additional column of the table of deleted mentions.
const DELETED_AT: &str = "deleted_at";

/// Column to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredColumn {
    /// Name in SQL.
    pub(crate) name: String,
    /// Type in SQL.
    pub(crate) kind: ColumnType,
    /// Source of its values: a column with another source is another column.
    pub(crate) source: String,
}

/// Column in the files of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileColumn {
    /// Name in SQL.
    pub(crate) name: String,
    /// Type in SQL.
    pub(crate) kind: ColumnType,
    /// Source of its values.
    pub(crate) source: String,
    /// Id in DuckLake, to be written as Parquet's field id.
    pub(crate) id: i64,
}

impl FileColumn {
    /// Id of the elements of a list, to be written as the field id of the list's inner field.
    pub(crate) fn element(&self) -> Option<i64> {
        (self.kind == ColumnType::Utf8List).then_some(self.id + 1)
    }

    /// The column that files of filtered regions have in addition, as the last: the JSON text of the filters.
    pub(crate) fn filters() -> Self {
        Self { name: FILTERS.to_owned(), kind: ColumnType::Json, source: String::new(), id: FILTERS_ID }
    }

    /// The column that files of deleted mentions have in addition, as the last: the instant by the service's clock at which
    /// the mention was first missing.
    pub(crate) fn deleted_at() -> Self {
        Self { name: DELETED_AT.to_owned(), kind: ColumnType::Timestamp, source: String::new(), id: DELETED_AT_ID }
    }
}

/// Rejects columns that cannot be stored.
pub(super) fn validate(columns: &[StoredColumn]) -> Result<()> {
    let refused = |what: &str| Err(Error::new(ErrorKind::Store, format!("mentions cannot be stored: {what}")));
    if columns.first().is_none_or(|first| first.name != AID || first.kind != ColumnType::Utf8) {
        return refused("the first column must be `aid` of type utf8");
    }
    let own = |column: &&StoredColumn| [FILTERS, DELETED_AT].iter().any(|own| column.name.eq_ignore_ascii_case(own));
    if let Some(column) = columns.iter().find(own) {
        return refused(&format!("column name `{}` is reserved by the store; rename it in the profile", column.name));
    }
    let names: BTreeSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    match names.len() == columns.len() {
        true => Ok(()),
        false => refused("two columns have the same name"),
    }
}

/// Returns the latest version.
pub(super) fn current(connection: &Connection<'_>) -> SqlResult<i64> {
    connection.row("SELECT max(schema) FROM savedsearch_column", values![], |row| row.get(0))
}

/// Returns the columns of a version.
pub(super) fn of(connection: &Connection<'_>, schema: i64) -> SqlResult<Vec<FileColumn>> {
    let sql = "SELECT name, kind, id, source FROM savedsearch_column WHERE schema = ?1 ORDER BY position";
    let columns: Vec<FileColumn> = connection.rows(sql, values![schema], column)?;
    match columns.is_empty() {
        true => Err(SqlError::NoRow),
        false => Ok(columns),
    }
}

fn same(stored: &FileColumn, column: &StoredColumn) -> bool {
    stored.name == column.name && stored.kind == column.kind && stored.source == column.source
}

/// True if the columns are the same, in any order.
pub(super) fn equal(stored: &[FileColumn], columns: &[StoredColumn]) -> bool {
    stored.len() == columns.len() && columns.iter().all(|column| stored.iter().any(|one| same(one, column)))
}

/// Writes the first version, into tables without columns.
pub(super) fn create(connection: &Connection<'_>, columns: &[StoredColumn], now: DateTime<Utc>) -> SqlResult<()> {
    let mut snapshot = Snapshot::begin(connection, now)?;
    let begin = snapshot.create_tables()?;
    // Last among the columns of any version.
    add(connection, FILTERED.id, &FileColumn::filters(), begin, 1_000_000)?;
    add(connection, DELETED.id, &FileColumn::deleted_at(), begin, 1_000_000)?;
    write(connection, begin, 1, columns)?;
    snapshot.finish("created the store")
}

/// Makes these columns the current version, if they are not. Returns the current version.
pub(super) fn adopt(connection: &Connection<'_>, columns: &[StoredColumn], now: DateTime<Utc>) -> SqlResult<i64> {
    let current = current(connection)?;
    let stored = of(connection, current)?;
    if equal(&stored, columns) {
        return Ok(current);
    }
    let mut snapshot = Snapshot::begin(connection, now)?;
    let begin = snapshot.alter_tables()?;
    for gone in stored.iter().filter(|one| !columns.iter().any(|new| same(one, new))) {
        let sql = format!(
            "UPDATE ducklake_column SET end_snapshot = ?1 \
             WHERE (column_id = ?2 OR parent_column = ?2) AND table_id IN ({}) AND end_snapshot IS NULL",
            table_ids()
        );
        connection.execute(&sql, values![begin, gone.id])?;
    }
    write(connection, begin, current + 1, columns)?;
    snapshot.finish("adopted the columns of the profile")?;
    Ok(current + 1)
}

/// Writes a version; columns that the tables do not have at present are added to them.
fn write(connection: &Connection<'_>, begin: i64, schema: i64, columns: &[StoredColumn]) -> SqlResult<()> {
    for (position, StoredColumn { name, kind, source }) in (0_i64..).zip(columns) {
        let known = "SELECT name, kind, id, source FROM savedsearch_column WHERE name = ?1 AND kind = ?2 AND source = ?3 \
                     ORDER BY schema DESC LIMIT 1";
        let known = connection.first(known, values![name.as_str(), text_of(*kind), source.as_str()], column)?;
        let column = match known {
            Some(column) => column,
            None => {
                let next = "SELECT max(column_id) + 1 FROM ducklake_column";
                let id = connection.row(next, values![], |row| row.get(0))?;
                FileColumn { name: name.clone(), kind: *kind, source: source.clone(), id }
            }
        };
        let sql =
            "INSERT INTO savedsearch_column (schema, position, name, kind, id, source) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        connection.execute(sql, values![schema, position, name, text_of(*kind), column.id, source])?;
        for table in TABLES {
            let sql = "SELECT count(*) FROM ducklake_column \
                       WHERE table_id = ?1 AND column_id = ?2 AND end_snapshot IS NULL";
            if connection.row(sql, values![table.id, column.id], |row| row.get::<i64>(0))? == 0 {
                add(connection, table.id, &column, begin, column.id)?;
            }
        }
    }
    Ok(())
}

/// Adds a column to a DuckLake table.
fn add(connection: &Connection<'_>, table: i64, column: &FileColumn, begin: i64, order: i64) -> SqlResult<()> {
    let sql = "INSERT INTO ducklake_column (column_id, begin_snapshot, table_id, column_order, column_name, \
               column_type, default_value, nulls_allowed, parent_column, default_value_type, default_value_dialect) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'NULL', true, ?7, ?8, 'duckdb')";
    let (kind, default) = match column.kind {
        ColumnType::Utf8 | ColumnType::Json => ("varchar", "literal"),
        ColumnType::Int64 => ("int64", "literal"),
        ColumnType::Float64 => ("float64", "literal"),
        ColumnType::Boolean => ("boolean", "literal"),
        ColumnType::Timestamp => ("timestamptz", "literal"),
        ColumnType::Utf8List => ("list", ""),
    };
    let parent: Option<i64> = None;
    connection.execute(sql, values![column.id, begin, table, order, column.name, kind, parent, default])?;
    if let Some(element) = column.element() {
        let child = values![element, begin, table, element, "element", "varchar", column.id, "literal"];
        connection.execute(sql, child)?;
    }
    Ok(())
}

fn column(row: &Row<'_>) -> SqlResult<FileColumn> {
    let text: String = row.get(1)?;
    let kind =
        KINDS.into_iter().find(|kind| text_of(*kind) == text).ok_or_else(|| invalid(1, "unknown column type"))?;
    Ok(FileColumn { name: row.get(0)?, kind, source: row.get(3)?, id: row.get(2)? })
}

const KINDS: [ColumnType; 7] = [
    ColumnType::Utf8,
    ColumnType::Int64,
    ColumnType::Float64,
    ColumnType::Boolean,
    ColumnType::Timestamp,
    ColumnType::Utf8List,
    ColumnType::Json,
];

/// Name of a type in our own tables. DuckLake has one type for two of ours.
fn text_of(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Utf8 => "utf8",
        ColumnType::Int64 => "int64",
        ColumnType::Float64 => "float64",
        ColumnType::Boolean => "boolean",
        ColumnType::Timestamp => "timestamp",
        ColumnType::Utf8List => "utf8_list",
        ColumnType::Json => "json",
    }
}
