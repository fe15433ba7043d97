//! `[counts]`: which numbers of the overview stand for counting mentions one by one.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::column::{ColumnType, Pointer, TableSpec};
use super::{Checks, Evidence, Tables, Trust};

/// Which numbers of the overview count the mentions that match, so that they need not be read to be counted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// What it rests on.
    pub evidence: Evidence,
    /// How far they are believed; by advisory ones a query counts only if it says so.
    pub trust: Trust,
    /// Column of `overview` with the number of all mentions that match.
    pub total: String,
    /// Column of `overview` that says `eq` where the total is exact; absent, or NULL there: it is.
    pub relation: Option<String>,
    /// Whether the buckets of `volume` are the days of the zone that was asked for, and count the window's mentions.
    pub days: bool,
    /// The lists of `breakdowns` that count each mention of a column's value.
    pub lists: Vec<CountList>,
}

impl Counts {
    pub(super) fn check(&self, tables: &Tables, checks: &mut Checks) {
        for (key, column) in [("counts.total", Some(&self.total)), ("counts.relation", self.relation.as_ref())] {
            let known = column.is_none_or(|column| tables.overview.column(column).is_some());
            checks.expect(known, key, "expected a column of tables.overview");
        }
        let has = |table: &TableSpec, columns: [&str; 2]| columns.iter().all(|name| table.column(name).is_some());
        let days = tables.volume.time.as_deref().is_some_and(|time| has(&tables.volume, [time, "mentions"]));
        checks.expect(!self.days || days, "counts.days", "expected tables.volume with a time and a column `mentions`");
        for CountList { column, dimension, .. } in &self.lists {
            let counted = tables.mentions.column(column).is_some_and(|column| column.kind == ColumnType::Utf8);
            let section = tables.breakdowns.sections.iter().any(|section| section.label == *dimension);
            checks.expect(
                counted && section && has(&tables.breakdowns, ["name", "mentions"]),
                "counts.lists",
                format!(
                    "expected a text column of tables.mentions and a label of tables.breakdowns, found `{column}` and \
                     `{dimension}`"
                ),
            );
        }
    }
}

/// A list of `breakdowns` that counts the mentions of each value of a column.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountList {
    /// Column of `mentions`.
    pub column: String,
    /// Label of the section of `breakdowns`.
    pub dimension: String,
    /// Name of the entry for mentions without a value.
    pub missing: Option<String>,
    /// The service's manual promises that the list has every value, so that mentions which it does not count have none.
    /// Honored only with `evidence = "documented"`; otherwise a list counts only where its numbers add up to the total.
    #[serde(default)]
    pub whole: bool,
    /// Where the overview tells the number of mentions whose values the list leaves out, from the record of `overview`.
    pub rest: Option<Pointer>,
}
