//! The fields that records were seen to have: those that no column takes, and those that stop coming.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};

use crate::decode::Decoded;

/// Records in which a field must have come, each of them, before its absence means anything.
const STEADY: u64 = 100;
/// Records of an answer that must all lack it.
const GONE: u64 = 20;

/// A field that no column takes.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Records that had a column's field, by table and column; none where some record lacked it.
    steady: HashMap<(String, String), Option<u64>>,
}

impl Fields {
    /// Takes note of a page. Gives the columns whose fields came in all records before, and in none of these.
    pub(super) fn note(&mut self, table: &str, page: &Decoded, now: DateTime<Utc>) -> Vec<String> {
        for (at, records) in &page.unknown {
            let key = (table.to_owned(), at.clone());
            let known = self.unknown.entry(key).or_insert_with(|| UnknownField {
                table: table.to_owned(),
                at: at.clone(),
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
            let known = self.steady.entry((table.to_owned(), name.clone())).or_insert(Some(0));
            match known {
                Some(before) if *before >= STEADY && *present == 0 && page.records >= GONE => gone.push(name),
                Some(before) if *present == page.records => *before += present,
                _ => *known = None,
            }
        }
        gone
    }

    /// The fields that no column takes, by table and place.
    pub(super) fn unknown(&self) -> Vec<UnknownField> {
        self.unknown.values().cloned().collect()
    }
}
