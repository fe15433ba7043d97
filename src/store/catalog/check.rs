//! Consistency of the catalog: of SQLite's file, of our tables, and of ours with those of DuckLake.

use super::Catalog;
use super::sql::{Connection, SqlResult, values};
use crate::error::Result;

impl Catalog {
    /// Returns the problems of the catalog, in words; none if it is sound. Files are not read.
    pub(crate) fn check(&self) -> Result<Vec<String>> {
        self.read(|connection| {
            let mut problems = Vec::new();
            let of_numbers = match connection.is_shared() {
                true => POSTGRES,
                false => {
                    let found = texts(connection, "PRAGMA quick_check")?.into_iter().filter(|problem| problem != "ok");
                    problems.extend(found.map(|problem| format!("damaged file: {problem}")));
                    SQLITE
                }
            };
            let (of_files, of_readers) = CHECKS.split_at(OF_FILES);
            for check in of_files.iter().chain(&of_numbers).chain(of_readers) {
                problems.extend(texts(connection, &dated(connection, check))?);
            }
            Ok(problems)
        })
    }
}

fn texts(connection: &Connection<'_>, sql: &str) -> SqlResult<Vec<String>> {
    connection.rows(sql, values![], |row| row.get(0))
}

/// A check with `DATE(…)`, the date of a day that is counted from 1970-01-01, in the words of the database.
fn dated(connection: &Connection<'_>, check: &str) -> String {
    let mut text = String::new();
    let mut parts = check.split("DATE(");
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (day, rest) = part.split_once(')').unwrap_or((part, ""));
        text.push_str(&match connection.is_shared() {
            true => format!("CAST(DATE '1970-01-01' + CAST({day} AS integer) AS text)"),
            false => format!("date({day} * 86400, 'unixepoch')"),
        });
        text.push_str(rest);
    }
    text
}

/// Number of the first checks, which are of files.
const OF_FILES: usize = 8;

/// Queries for problems, one text per row. Tables 1, 2 and 3 are `mentions`, `mentions_filtered` and
/// `mentions_deleted`.
const CHECKS: [&str; 11] = [
    // Files of regions.
    "SELECT 'aid ' || c.aid || ' from ' || DATE(c.from_day) || ': file ' || \
            coalesce(d.path, CAST(r.data_file_id AS text)) || ' was removed by another program' \
     FROM savedsearch_coverage c JOIN savedsearch_region_file r ON r.region = c.id \
     LEFT JOIN ducklake_data_file d ON d.data_file_id = r.data_file_id \
     WHERE d.data_file_id IS NULL OR d.end_snapshot IS NOT NULL",
    "SELECT 'file ' || d.path || ': another program deleted rows' \
     FROM ducklake_delete_file e JOIN ducklake_data_file d ON d.data_file_id = e.data_file_id \
     WHERE e.end_snapshot IS NULL AND d.end_snapshot IS NULL \
       AND e.delete_file_id NOT IN (SELECT delete_file_id FROM savedsearch_delete_file)",
    "SELECT 'file ' || r.data_file_id || ' belongs to region ' || r.region || ', which does not exist' \
     FROM savedsearch_region_file r WHERE r.region NOT IN (SELECT id FROM savedsearch_coverage)",
    "SELECT 'file ' || d.path || ' belongs to no region' FROM ducklake_data_file d \
     WHERE d.table_id IN (1, 2) AND d.end_snapshot IS NULL \
       AND d.data_file_id NOT IN (SELECT data_file_id FROM savedsearch_region_file)",
    // Files of deleted mentions.
    "SELECT 'aid ' || s.aid || ': file ' || coalesce(d.path, CAST(s.data_file_id AS text)) || ' of deleted mentions was removed by \
            another program' \
     FROM savedsearch_deleted s LEFT JOIN ducklake_data_file d ON d.data_file_id = s.data_file_id \
     WHERE d.data_file_id IS NULL OR d.end_snapshot IS NOT NULL",
    "SELECT 'file ' || d.path || ' of deleted mentions belongs to no saved search' FROM ducklake_data_file d \
     WHERE d.table_id = 3 AND d.end_snapshot IS NULL \
       AND d.data_file_id NOT IN (SELECT data_file_id FROM savedsearch_deleted)",
    // Files of all tables.
    "SELECT 'file ' || d.path || ' is current twice' FROM ducklake_data_file d \
     WHERE d.end_snapshot IS NULL GROUP BY d.table_id, d.path HAVING count(*) > 1",
    "SELECT 'file ' || d.path || ' of table ' || d.table_id || ' has a region of aid ' || c.aid || ' with filters ' || c.filters \
     FROM savedsearch_coverage c JOIN savedsearch_region_file r ON r.region = c.id \
     JOIN ducklake_data_file d ON d.data_file_id = r.data_file_id \
     LEFT JOIN ducklake_file_partition_value v ON v.data_file_id = d.data_file_id \
     WHERE (v.partition_value IS NOT NULL AND v.partition_value <> c.aid) OR d.table_id <> CASE WHEN c.filters = '{}' THEN 1 ELSE 2 END",
    "SELECT 'aid ' || a.aid || ': regions from ' || DATE(a.from_day) || ' and ' || \
            DATE(b.from_day) || ' overlap' \
     FROM savedsearch_coverage a JOIN savedsearch_coverage b ON b.aid = a.aid AND b.filters = a.filters \
      AND b.id <> a.id AND b.from_day >= a.from_day AND b.from_day < a.to_day \
     WHERE b.from_day > a.from_day OR b.id > a.id",
    // What DuckLake readers see.
    "SELECT 'table ' || s.table_id || ': row count lower than the rows in files' FROM ducklake_table_stats s \
     WHERE s.record_count < (SELECT sum(record_count) FROM ducklake_data_file d \
                             WHERE d.table_id = s.table_id AND d.end_snapshot IS NULL) \
        OR s.next_row_id < (SELECT max(row_id_start + record_count) FROM ducklake_data_file d \
                            WHERE d.table_id = s.table_id)",
    "SELECT 'table ' || table_id || ': another program may keep rows in ' || table_name \
     FROM ducklake_inlined_data_tables WHERE table_id IN (1, 2, 3)",
];

/// Queries for wrong numbers of regions, in SQLite.
const SQLITE: [&str; 3] = [
    "SELECT 'aid ' || aid || ' from ' || DATE(from_day) || ': invalid daily counts' \
     FROM savedsearch_coverage \
     WHERE NOT json_valid('[' || counts || ']') OR from_day >= to_day \
        OR iif(json_valid('[' || counts || ']'), json_array_length('[' || counts || ']'), 0) <> to_day - from_day",
    "SELECT 'aid ' || aid || ' from ' || DATE(from_day) || ': mentions without a file' \
     FROM savedsearch_coverage WHERE id NOT IN (SELECT region FROM savedsearch_region_file) \
        AND EXISTS (SELECT 1 FROM json_each(iif(json_valid('[' || counts || ']'), '[' || counts || ']', '[]')) WHERE value > 0)",
    "WITH named AS MATERIALIZED \
        (SELECT r.data_file_id AS file, r.first_row AS first, r.first_row + \
                (SELECT coalesce(sum(value), 0) FROM \
                 json_each(iif(json_valid('[' || counts || ']'), '[' || counts || ']', '[]'))) AS last \
         FROM savedsearch_region_file r JOIN savedsearch_coverage c ON c.id = r.region), \
     ordered AS \
        (SELECT file, first, last, lag(last, 1, 0) OVER (PARTITION BY file ORDER BY first, last) AS before FROM named) \
     SELECT 'file ' || d.path || ': ' || d.record_count || ' rows, of which regions have ' || sum(o.last - o.first) || \
            ' and ' || coalesce(max(e.delete_count), 0) || ' are deleted' \
     FROM ordered o JOIN ducklake_data_file d ON d.data_file_id = o.file AND d.end_snapshot IS NULL \
     LEFT JOIN ducklake_delete_file e ON e.data_file_id = o.file AND e.end_snapshot IS NULL \
        AND e.delete_file_id IN (SELECT delete_file_id FROM savedsearch_delete_file) \
     GROUP BY o.file \
     HAVING d.record_count <> sum(o.last - o.first) + coalesce(max(e.delete_count), 0) \
         OR min(o.first - o.before) < 0 OR max(o.last) > d.record_count",
];

/// The same queries in PostgreSQL, which has no functions that examine texts of JSON.
const POSTGRES: [&str; 3] = [
    "SELECT 'aid ' || aid || ' from ' || DATE(from_day) || ': invalid daily counts' FROM savedsearch_coverage \
     WHERE counts !~ '^[0-9]+(,[0-9]+)*$' OR from_day >= to_day \
        OR cardinality(string_to_array(counts, ',')) <> to_day - from_day",
    "SELECT 'aid ' || aid || ' from ' || DATE(from_day) || ': mentions without a file' \
     FROM savedsearch_coverage WHERE id NOT IN (SELECT region FROM savedsearch_region_file) AND counts ~ '[1-9]'",
    "WITH named AS MATERIALIZED \
        (SELECT r.data_file_id AS file, r.first_row AS first, r.first_row + \
                (SELECT CAST(coalesce(sum(CAST(count AS bigint)), 0) AS bigint) FROM \
                 unnest(string_to_array(CASE WHEN c.counts ~ '^[0-9]+(,[0-9]+)*$' THEN c.counts ELSE '0' END, ',')) \
                 AS counts(count)) AS last \
         FROM savedsearch_region_file r JOIN savedsearch_coverage c ON c.id = r.region), \
     ordered AS \
        (SELECT file, first, last, lag(last, 1, CAST(0 AS bigint)) OVER (PARTITION BY file ORDER BY first, last) AS before \
         FROM named) \
     SELECT 'file ' || d.path || ': ' || d.record_count || ' rows, of which regions have ' || sum(o.last - o.first) || \
            ' and ' || coalesce(max(e.delete_count), 0) || ' are deleted' \
     FROM ordered o JOIN ducklake_data_file d ON d.data_file_id = o.file AND d.end_snapshot IS NULL \
     LEFT JOIN ducklake_delete_file e ON e.data_file_id = o.file AND e.end_snapshot IS NULL \
        AND e.delete_file_id IN (SELECT delete_file_id FROM savedsearch_delete_file) \
     GROUP BY o.file, d.path, d.record_count \
     HAVING d.record_count <> sum(o.last - o.first) + coalesce(max(e.delete_count), 0) \
         OR min(o.first - o.before) < 0 OR max(o.last) > d.record_count",
];
