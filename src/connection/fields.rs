//! The fields that records were seen to have: those that no column takes, and those that stop coming.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};

use crate::decode::Decoded;

/// Records in which a field must have come, each of them, before its absence means anything.
const STEADY: u64 = 100;
/// Records in a row that must all lack it then.
const GONE: u64 = 20;

/// Fields that are remembered, and columns whose fields are watched: a service may make up names without end.
const REMEMBERED: usize = 10_000;
/// Bytes of a place that is remembered.
const LONG: usize = 500;
/// Stands for all fields beyond those.
const FURTHER: &str = "(further fields)";

/// A field that no column takes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownField {
    /// Table whose records have it.
    pub table: String,
    /// Where in a record, as a JSON pointer.
    pub at: String,
    /// When it was first and last seen.
    pub first_seen: DateTime<Utc>,
    /// See above.
    pub last_seen: DateTime<Utc>,
    /// Records that were seen to have it.
    pub records: u64,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Fields {
    unknown: BTreeMap<(String, String), UnknownField>,
    /// What is known of a column's field, by a hash of what was asked for, and the column.
    steady: HashMap<(u64, String), Steadiness>,
}

/// Whether a field comes in every record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Steadiness {
    /// It has: so many had it, and since then so many have not.
    Steady(u64, u64),
    /// It comes now and then.
    Irregular,
}

impl Fields {
    /// Takes note of a page of what was `asked` for. Gives the columns whose fields came in all records before, and in none
    /// of late.
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
                // What was steady has to show it again.
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
                // Too few to call it steady.
                Steadiness::Steady(had, lacked) if lacked > 0 && had < STEADY => *known = Steadiness::Irregular,
                _ => {}
            }
        }
        gone
    }

    /// The fields that no column takes, by table and place.
    pub(super) fn unknown(&self) -> Vec<UnknownField> {
        self.unknown.values().cloned().collect()
    }
}
