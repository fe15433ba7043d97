//! Rows of a DuckLake catalog: snapshots, tables, files and their bounds, in the notation of DuckDB 1.5.
//!
//! ```text
//! Snapshot::begin ─▶ end_file, add_file, delete_rows, … (each notes a change) ─▶ finish: a snapshot, if anything changed
//! ```
//!
//! A file may have the mentions of many saved searches. Rows of it that are no longer mentions are named by a delete file,
//! of which a file has one at a time.
//!
//! Readers skip files by the bounds of `ducklake_file_column_stats`, and all of a table by those of
//! `ducklake_table_column_stats`, so neither may be too narrow. A file without bounds is never skipped. The bounds of a
//! table begin with its first file and only widen, as in catalogs that DuckDB writes, because readers of older versions use
//! them too. If a file has no bounds, the bounds of the table are removed permanently. The counts of rows and bytes also
//! only grow, so DuckDB knows that the bounds may be wider than the rows.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike, Utc};

use super::columns::FileColumn;
use super::recorded;
use super::sql::{Connection, SqlResult, values};
use crate::profile::ColumnType;
use crate::store::region::{DataFile, Filters, Subject};

/// Id of the column `filters`.
pub(super) const FILTERS_ID: i64 = 1;
/// Id of the column `deleted_at`.
pub(super) const DELETED_AT_ID: i64 = 2;
/// Id of the column `aid`. Ids of other columns follow; all tables share them.
const AID_ID: i64 = 3;
/// Unfiltered regions.
pub(super) const MENTIONS: Table = Table { id: 1, name: "mentions" };
/// Regions of filtered reads.
pub(super) const FILTERED: Table = Table { id: 2, name: "mentions_filtered" };
/// Mentions that were in a region, and that the service no longer has.
pub(super) const DELETED: Table = Table { id: 3, name: "mentions_deleted" };
/// All tables.
pub(super) const TABLES: [Table; 3] = [MENTIONS, FILTERED, DELETED];

/// DuckLake table of mentions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    pub(super) id: i64,
    /// Name of the table, and of the folder below the data folder.
    pub(super) name: &'static str,
}

/// Changes of a transaction, which become one snapshot.
#[derive(Debug)]
pub(super) struct Snapshot<'c> {
    connection: &'c Connection<'c>,
    latest: i64,
    schema_version: i64,
    next_catalog_id: i64,
    next_file_id: i64,
    changes: BTreeSet<String>,
    at: DateTime<Utc>,
}

/// Least and greatest values of the columns in a file that are the same for all mentions of a region.
#[derive(Debug, Clone)]
pub(super) struct Labels {
    pub(super) aids: (String, String),
    pub(super) filters: (String, String),
}

impl Labels {
    pub(super) fn of(subject: &Subject) -> Self {
        let (aid, filters) = (subject.aid.clone(), text_of(&subject.filters));
        Self { aids: (aid.clone(), aid), filters: (filters.clone(), filters) }
    }

    pub(super) fn include(&mut self, subject: &Subject) {
        let widen = |(least, most): &mut (String, String), text: String| {
            if text < *least {
                *least = text;
            } else if text > *most {
                *most = text;
            }
        };
        widen(&mut self.aids, subject.aid.clone());
        widen(&mut self.filters, text_of(&subject.filters));
    }
}

/// Least and greatest value of a column in a file.
struct Bounds {
    column: i64,
    least: String,
    most: String,
    /// Number of values, if none is NULL; `None` if that is not known.
    values: Option<u64>,
}

/// The table that has the regions with these filters.
pub(super) fn table_of(filters: &Filters) -> Table {
    if filters.is_empty() { MENTIONS } else { FILTERED }
}

/// Ids of all tables, for a list in SQL.
pub(super) fn table_ids() -> String {
    TABLES.map(|table| table.id.to_string()).join(", ")
}

/// Text of filters, as in the column `filters`: a JSON object, `{}` for none.
pub(super) fn text_of(filters: &Filters) -> String {
    serde_json::to_string(&filters.0).unwrap_or_default()
}

/// Text of an instant. The texts sort as the instants do, from year 1 to year 9999.
pub(super) fn timestamp(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S%.6f+00").to_string()
}

/// Writes the snapshot and the schema that every DuckLake begins with.
pub(super) fn create(connection: &Connection<'_>, now: DateTime<Utc>) -> SqlResult<()> {
    connection.execute("INSERT INTO ducklake_snapshot VALUES (0, ?1, 0, 1, 0)", values![timestamp(now)])?;
    let sql = "INSERT INTO ducklake_snapshot_changes (snapshot_id, changes_made) VALUES (0, 'created_schema:\"main\"')";
    connection.execute(sql, values![])?;
    // The folders of tables are next to each other in the data folder, without one for the schema.
    connection
        .execute("INSERT INTO ducklake_schema VALUES (0, ?1, 0, NULL, 'main', '', true)", values![uuid()])
        .map(drop)
}

impl<'c> Snapshot<'c> {
    /// Begins a snapshot after the latest. The transaction must be writing, so that there is no later one. Its time is `now`, but not
    /// before that of the latest: a version that is selected by its time has all commits before it.
    pub(super) fn begin(connection: &'c Connection<'c>, now: DateTime<Utc>) -> SqlResult<Self> {
        let sql = "SELECT snapshot_id, schema_version, next_catalog_id, next_file_id, snapshot_time \
                   FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1";
        connection.row(sql, values![], |row| {
            let latest: Option<String> = row.get(4)?;
            Ok(Self {
                connection,
                latest: row.get(0)?,
                schema_version: row.get(1)?,
                next_catalog_id: row.get(2)?,
                next_file_id: row.get(3)?,
                changes: BTreeSet::new(),
                at: now.max(latest.and_then(|at| recorded::instant_of(&at)).unwrap_or(now)),
            })
        })
    }

    /// Its time.
    pub(super) fn at(&self) -> DateTime<Utc> {
        self.at
    }

    /// Id of the snapshot that has the changes noted so far; of the latest if there are none.
    pub(super) fn id(&self) -> i64 {
        self.latest + i64::from(!self.changes.is_empty())
    }

    /// Writes the tables, still without columns. Returns the snapshot's id.
    pub(super) fn create_tables(&mut self) -> SqlResult<i64> {
        for Table { id, name } in TABLES {
            self.changes.insert(format!("created_table:\"main\".\"{name}\""));
            let begin = self.id();
            let sql = "INSERT INTO ducklake_table VALUES (?1, ?2, ?3, NULL, 0, ?4, ?5, true)";
            self.connection.execute(sql, values![id, uuid(), begin, name, format!("{name}/")])?;
        }
        self.next_catalog_id = DELETED.id + 1;
        self.new_schema_version()
    }

    /// Notes that columns of all tables change. Returns the snapshot's id.
    pub(super) fn alter_tables(&mut self) -> SqlResult<i64> {
        self.changes.extend(TABLES.map(|table| format!("altered_table:{}", table.id)));
        self.new_schema_version()
    }

    fn new_schema_version(&mut self) -> SqlResult<i64> {
        self.schema_version += 1;
        let begin = self.id();
        for table in TABLES {
            let sql = "INSERT INTO ducklake_schema_versions VALUES (?1, ?2, ?3)";
            self.connection.execute(sql, values![begin, self.schema_version, table.id])?;
        }
        Ok(begin)
    }

    /// Ends a current file, and with it the one that names its deleted rows. Nothing changes if another program has ended or
    /// removed it.
    pub(super) fn end_file(&mut self, file: i64) -> SqlResult<()> {
        let sql = "UPDATE ducklake_data_file SET end_snapshot = ?1 \
                   WHERE data_file_id = ?2 AND end_snapshot IS NULL RETURNING table_id";
        let ended = self.connection.first(sql, values![self.latest + 1, file], |row| row.get::<i64>(0))?;
        self.changes.extend(ended.map(|table| format!("deleted_from_table:{table}")));
        self.end_deletes(file)
    }

    pub(super) fn end_deletes(&self, file: i64) -> SqlResult<()> {
        let sql = "UPDATE ducklake_delete_file SET end_snapshot = ?1 WHERE data_file_id = ?2 AND end_snapshot IS NULL";
        self.connection.execute(sql, values![self.latest + 1, file]).map(drop)
    }

    /// Adds a file to a table, with the time column of its version. Returns its id.
    pub(super) fn add_file(
        &mut self,
        table: Table,
        labels: &Labels,
        file: &DataFile,
        time: Option<&FileColumn>,
    ) -> SqlResult<i64> {
        self.changes.insert(format!("inserted_into_table:{}", table.id));
        let id = self.next_file_id;
        self.next_file_id += 1;
        let first_row = self.grow(table, file)?;
        let sql = "INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative, \
                   file_format, record_count, file_size_bytes, footer_size, row_id_start) \
                   VALUES (?1, ?2, ?3, ?4, true, 'parquet', ?5, ?6, ?7, ?8)";
        let DataFile { path, rows, bytes, footer, times, .. } = file;
        self.connection.execute(sql, values![id, table.id, self.id(), path, rows, bytes, footer, first_row])?;

        let labelled = |column, (least, most): &(String, String)| Bounds {
            column,
            least: least.clone(),
            most: most.clone(),
            values: Some(*rows),
        };
        let mut bounds = vec![labelled(AID_ID, &labels.aids)];
        if table.id == FILTERED.id {
            bounds.push(labelled(FILTERS_ID, &labels.filters));
        }
        if let (Some(time), Some(least), Some(most)) = (time, bound(times.0), bound(times.1)) {
            bounds.push(Bounds { column: time.id, least, most, values: None });
        }
        self.bound_file(table, id, &bounds)?;
        self.bound_table(table, first_row == 0, &bounds)?;
        Ok(id)
    }

    /// Names the deleted rows of a file by a file of this snapshot, instead of the one before. Returns its id.
    pub(super) fn delete_rows(&mut self, table: i64, file: i64, deletes: &DataFile) -> SqlResult<i64> {
        self.end_deletes(file)?;
        self.changes.insert(format!("deleted_from_table:{table}"));
        let id = self.next_file_id;
        self.next_file_id += 1;
        let sql = "INSERT INTO ducklake_delete_file (delete_file_id, table_id, begin_snapshot, data_file_id, path, \
                   path_is_relative, format, delete_count, file_size_bytes, footer_size) \
                   VALUES (?1, ?2, ?3, ?4, ?5, true, 'parquet', ?6, ?7, ?8)";
        let DataFile { path, rows, bytes, footer, .. } = deletes;
        self.connection.execute(sql, values![id, table, self.id(), file, path, rows, bytes, footer])?;
        Ok(id)
    }

    fn bound_file(&self, table: Table, file: i64, bounds: &[Bounds]) -> SqlResult<()> {
        let sql = "INSERT INTO ducklake_file_column_stats (data_file_id, table_id, column_id, value_count, null_count, \
                   min_value, max_value) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        for Bounds { column, least, most, values } in bounds {
            let nulls = values.map(|_| 0_i64);
            self.connection.execute(sql, values![file, table.id, column, values, nulls, least, most])?;
        }
        Ok(())
    }

    /// Widens the bounds of a table by those of a file, and gives up those that the file has not.
    fn bound_table(&self, table: Table, first: bool, bounds: &[Bounds]) -> SqlResult<()> {
        const BEGIN: &str = "INSERT INTO ducklake_table_column_stats (table_id, column_id, min_value, max_value, \
                             contains_null) VALUES (?1, ?2, ?3, ?4, ?5)";
        const WIDEN: &str = "UPDATE ducklake_table_column_stats \
                             SET min_value = CASE WHEN ?3 < min_value THEN ?3 ELSE min_value END, \
                                 max_value = CASE WHEN ?4 > max_value THEN ?4 ELSE max_value END, contains_null = ?5 \
                             WHERE table_id = ?1 AND column_id = ?2";
        for Bounds { column, least, most, values } in bounds {
            let nulls = values.map(|_| 0_i64);
            self.connection
                .execute(if first { BEGIN } else { WIDEN }, values![table.id, column, least, most, nulls])?;
        }
        // At least that of `aid`.
        let bounded: Vec<String> = bounds.iter().map(|bounds| bounds.column.to_string()).collect();
        let sql = "DELETE FROM ducklake_table_column_stats WHERE table_id = ?1 AND column_id NOT IN";
        self.connection.execute(&format!("{sql} ({})", bounded.join(", ")), values![table.id]).map(drop)
    }

    /// Counts a file in its table's totals. Returns the id of its first row, 0 for the first file ever.
    fn grow(&self, table: Table, file: &DataFile) -> SqlResult<i64> {
        let sql = "UPDATE ducklake_table_stats SET record_count = record_count + ?2, next_row_id = next_row_id + ?2, \
                   file_size_bytes = file_size_bytes + ?3 WHERE table_id = ?1 RETURNING next_row_id - ?2";
        let row = values![table.id, file.rows, file.bytes];
        if let Some(first) = self.connection.first(sql, row, |row| row.get(0))? {
            return Ok(first);
        }
        self.connection.execute("INSERT INTO ducklake_table_stats VALUES (?1, ?2, ?2, ?3)", row)?;
        Ok(0)
    }

    /// Writes the snapshot, with a message for users. Without changes, nothing is written.
    pub(super) fn finish(self, message: &str) -> SqlResult<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let id = self.id();
        let sql = "INSERT INTO ducklake_snapshot VALUES (?1, ?2, ?3, ?4, ?5)";
        let at = timestamp(self.at);
        let row = values![id, at, self.schema_version, self.next_catalog_id, self.next_file_id];
        self.connection.execute(sql, row)?;
        recorded::follow(self.connection, self.latest, id)?;
        let changes: Vec<String> = self.changes.into_iter().collect();
        let sql = "INSERT INTO ducklake_snapshot_changes (snapshot_id, changes_made, author, commit_message) \
                   VALUES (?1, ?2, 'savedsearch', ?3)";
        self.connection.execute(sql, values![id, changes.join(","), message]).map(drop)
    }
}

/// Returns the column that files of a version are ordered by.
pub(super) fn time_column<'f>(columns: &'f [FileColumn], name: &str) -> Option<&'f FileColumn> {
    columns.iter().find(|column| column.name == name && column.kind == ColumnType::Timestamp)
}

/// Text of a bound; none if texts would not sort as the instants do.
fn bound(micros: i64) -> Option<String> {
    DateTime::from_timestamp_micros(micros).filter(|at| (1..=9999).contains(&at.year())).map(timestamp)
}

/// A random UUID, version 4.
fn uuid() -> String {
    let random: u128 = rand::random();
    let bits = random & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let digits = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
}
