//! `[counts]`: overview numbers that replace counting mentions one by one.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::column::{ColumnType, Pointer, TableSpec};
use super::{Checks, Evidence, Tables, Trust};

/// Overview numbers that count matching mentions, so that a count need not read them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Trust in the numbers. Advisory ones are used only if the query asks for it.
    pub trust: Trust,
    /// Column of `overview` with the total of matching mentions.
    pub total: String,
    /// Column of `overview` that is `eq` if the total is exact. Absent, or NULL: the total is exact.
    pub relation: Option<String>,
    /// True if the buckets of `volume` are days of the requested zone and count only mentions of the window.
    pub days: bool,
    /// Lists of `breakdowns` that count the mentions of each value of a column.
    pub lists: Vec<CountList>,
}

impl Counts {
    pub(super) fn check(&self, tables: &Tables, checks: &mut Checks) {
        for (key, column) in [("counts.total", Some(&self.total)), ("counts.relation", self.relation.as_ref())] {
            let unknown = column.filter(|column| tables.overview.column(column).is_none());
            let found = unknown.map(String::as_str).unwrap_or_default();
            checks.expect(unknown.is_none(), key, format!("expected a column of tables.overview, found `{found}`"));
        }
        let has = |table: &TableSpec, columns: [&str; 2]| columns.iter().all(|name| table.column(name).is_some());
        let days = tables.volume.time.as_deref().is_some_and(|time| has(&tables.volume, [time, "mentions"]));
        checks.expect(
            !self.days || days,
            "counts.days",
            "expected tables.volume to have `time` and a column `mentions`",
        );
        for CountList { column, dimension, .. } in &self.lists {
            let counted = tables.mentions.column(column).is_some_and(|column| column.kind == ColumnType::Utf8);
            let section = tables.breakdowns.sections.iter().any(|section| section.label == *dimension);
            checks.expect(
                counted && section && has(&tables.breakdowns, ["name", "mentions"]),
                "counts.lists",
                format!(
                    "expected a utf8 column of tables.mentions and a section label of tables.breakdowns, found \
                     `{column}` and `{dimension}`"
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
    /// Name of the entry for mentions that have no value.
    pub missing: Option<String>,
    /// Set if the service's manual promises that the list contains every value, so that mentions not counted by it have
    /// no value. Used only with `evidence = "documented"`; otherwise a list counts only if its numbers add up to the
    /// total.
    #[serde(default)]
    pub whole: bool,
    /// Pointer, within the record of `overview`, to the count of mentions whose values the list omits.
    pub rest: Option<Pointer>,
}
