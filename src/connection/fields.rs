//! Fields seen in records: those that belong to no column, and those that stop coming. Values of columns, as services write them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::array::{AsArray, RecordBatch};
use chrono::{DateTime, Utc};

use crate::decode::Decoded;

/// Number of consecutive records that must have a field before its absence means anything.
const STEADY: u64 = 100;
/// Number of consecutive records that must lack a field before it counts as removed.
const GONE: u64 = 20;

/// Maximum number of remembered fields, and of columns whose fields are watched: a service may make up names without
/// end.
const REMEMBERED: usize = 10_000;
/// Maximum length of a remembered pointer, in bytes.
const LONG: usize = 500;
/// Records of a page whose values are remembered.
const SAMPLE: usize = 100;
/// Maximum number of remembered values of a column: those that people compare with are few.
const VALUES: usize = 200;
/// Placeholder for all further fields.
const FURTHER: &str = "(further fields)";

/// A field that belongs to no column.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownField {
    /// Table of the records.
    pub table: String,
    /// JSON pointer within a record.
    pub at: String,
    /// Time when it was first seen.
    pub first_seen: DateTime<Utc>,
    /// Time when it was last seen.
    pub last_seen: DateTime<Utc>,
    /// Number of records seen with it.
    pub records: u64,
}

/// Fields seen so far.
#[derive(Debug, Default)]
pub(super) struct Fields {
    unknown: BTreeMap<(String, String), UnknownField>,
    /// Steadiness of a column's field, by a hash of the request and by column.
    steady: HashMap<(u64, String), Steadiness>,
    /// Values by table and column, as `table.column`.
    values: HashMap<String, BTreeSet<String>>,
}

/// Regularity of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Steadiness {
    /// Present in all of the first records (their count), then absent from all later ones (their count).
    Steady(u64, u64),
    /// Present in some records only.
    Irregular,
}

impl Fields {
    /// Records the fields of a page; `asked` is a hash of its request. Returns the columns whose fields used to be in all
    /// records and are in none of the latest.
    pub(super) fn note(&mut self, table: &str, asked: u64, page: &Decoded, now: DateTime<Utc>) -> Vec<String> {
        for (at, records) in &page.unknown {
            let key = (table.to_owned(), at.clone());
            let room = at.len() <= LONG && (self.unknown.len() < REMEMBERED || self.unknown.contains_key(&key));
            let at = if room { at.as_str() } else { FURTHER };
            let key = (table.to_owned(), at.to_owned());
            let known = self.unknown.entry(key).or_insert_with(|| UnknownField {
                table: table.to_owned(),
                at: at.to_owned(),
                first_seen: now,
                last_seen: now,
                records: 0,
            });
            known.last_seen = now;
            known.records += records;
        }
        let mut gone = Vec::new();
        for (column, present) in &page.present {
            let name = page.batch.schema_ref().field(*column).name().clone();
            let key = (asked, format!("{table}.{name}"));
            if self.steady.len() >= REMEMBERED && !self.steady.contains_key(&key) {
                // Steadiness has to be shown again.
                self.steady.clear();
            }
            let known = self.steady.entry(key).or_insert(Steadiness::Steady(0, 0));
            *known = match *known {
                Steadiness::Steady(had, lacked) if *present == 0 => Steadiness::Steady(had, lacked + page.records),
                Steadiness::Steady(had, 0) if *present == page.records => Steadiness::Steady(had + present, 0),
                _ => Steadiness::Irregular,
            };
            match *known {
                Steadiness::Steady(had, lacked) if had >= STEADY && lacked >= GONE => gone.push(name),
                // Too few records to call it steady.
                Steadiness::Steady(had, lacked) if lacked > 0 && had < STEADY => *known = Steadiness::Irregular,
                _ => {}
            }
        }
        gone
    }

    /// Remembers values of these columns of a table, from rows of a response.
    pub(super) fn note_values<'c>(
        &mut self,
        table: &str,
        columns: impl Iterator<Item = &'c String>,
        rows: &RecordBatch,
    ) {
        for name in columns {
            let column = rows.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
            let Some(column) = column else { continue };
            let known = self.values.entry(format!("{table}.{name}")).or_default();
            for value in column.iter().take(SAMPLE).flatten() {
                if known.len() < VALUES && value.len() <= LONG && !known.contains(value) {
                    known.insert(value.to_owned());
                }
            }
        }
    }

    /// Values of a column of a table that were seen.
    pub(super) fn values(&self, table: &str, column: &str) -> impl Iterator<Item = &str> {
        self.values.get(&format!("{table}.{column}")).into_iter().flatten().map(String::as_str)
    }

    /// Fields that belong to no column, by table and pointer.
    pub(super) fn unknown(&self) -> Vec<UnknownField> {
        self.unknown.values().cloned().collect()
    }
}
