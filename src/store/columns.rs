//! Columns of files that were written with an earlier profile.
//!
//! ```text
//! version of a file ─ columns of today ─▶ all are there ─────────────────────────────▶ its rows are used
//!                                   ├───▶ some were declared later, and may be NULL ─▶ its rows are used, with NULL and a note
//!                                   └───▶ some were other columns, or decide rows ───▶ its days are requested
//! ```
//!
//! Invariant: NULL in a column that was declared later changes values, never which rows a scan returns, or in which order.

use super::catalog::FileColumn;
use super::{Store, is_stored};
use crate::error::Result;
use crate::profile::{ColumnSpec, Origin};

/// Columns of a scan in files of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Columns {
    /// The files have them as they are today.
    All,
    /// The files have all but these, which the profile declared later.
    Without(Vec<String>),
    /// The files cannot answer the scan.
    Others,
}

impl Store {
    /// True if files of this version have the columns of today.
    pub(crate) fn is_current(&self, version: i64) -> bool {
        version == self.catalog.schema()
    }

    /// Names of the columns that a file of this version has as they are today. A column of the same name and another
    /// type is another column.
    pub(crate) fn readable(&self, version: i64) -> Result<Vec<String>> {
        let today = self.catalog.columns_of(self.catalog.schema())?;
        if self.is_current(version) {
            return Ok(today.into_iter().map(|column| column.name).collect());
        }
        let then = self.catalog.columns_of(version)?;
        let same = |id: i64| then.iter().any(|column| column.id == id);
        Ok(today.into_iter().filter(|column| same(column.id)).map(|column| column.name).collect())
    }

    /// Returns which of some columns the files of this version have, as they are today. `deciding`: columns that decide which rows
    /// are returned, and their order; `others`: those that are merely returned.
    pub(crate) fn columns_in(&self, version: i64, deciding: &[&ColumnSpec], others: &[&ColumnSpec]) -> Result<Columns> {
        let differs = |column: &&ColumnSpec| match column.origin {
            // What belongs to no column depends on all columns.
            Origin::Extra => !self.differing.is_empty(),
            _ => is_stored(&column.origin) && self.differing.contains(&column.name),
        };
        if deciding.iter().chain(others).any(differs) {
            return Ok(Columns::Others);
        }
        let current = self.catalog.schema();
        if version == current {
            return Ok(Columns::All);
        }
        Ok(columns(&self.catalog.columns_of(current)?, &self.catalog.columns_of(version)?, deciding, others))
    }
}

/// See [`Store::columns_in`]. `today` and `then`: the columns of files.
fn columns(today: &[FileColumn], then: &[FileColumn], deciding: &[&ColumnSpec], others: &[&ColumnSpec]) -> Columns {
    let is_among = |column: &FileColumn, all: &[FileColumn]| all.iter().any(|other| other.id == column.id);
    let is_same = |name: &str| today.iter().any(|column| column.name == name && is_among(column, then));
    let is_new = |name: &str| !then.iter().any(|column| column.name.eq_ignore_ascii_case(name));
    // The store's own columns have no source.
    let of_profile = |column: &&FileColumn| !column.source.is_empty();
    let added = today.iter().filter(of_profile).filter(|column| is_new(&column.name));
    let added: Vec<&String> = added.map(|column| &column.name).collect();
    // Fields of columns that were declared then, and no longer are, would be in `extra` today.
    let all_stay = then.iter().filter(of_profile).all(|column| is_among(column, today));
    let mut without: Vec<String> = Vec::new();
    for (column, decides) in
        deciding.iter().map(|column| (column, true)).chain(others.iter().map(|column| (column, false)))
    {
        match column.origin {
            // Where the instant is not known, it is NULL.
            Origin::Aid | Origin::FirstSeen => {}
            // It has the fields of columns that were declared later.
            Origin::Extra if is_same(&column.name) && all_stay && (!decides || added.is_empty()) => {
                without.extend(added.iter().copied().cloned());
            }
            Origin::Extra => return Columns::Others,
            _ if !is_stored(&column.origin) || is_same(&column.name) => {}
            _ if !decides && column.nullable && is_new(&column.name) => without.push(column.name.clone()),
            _ => return Columns::Others,
        }
    }
    without.sort_unstable();
    without.dedup();
    if without.is_empty() { Columns::All } else { Columns::Without(without) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{ColumnType, Pointer, Scope};

    fn file_columns(names: &[(&str, i64)]) -> Vec<FileColumn> {
        let column = |(name, id): &(&str, i64)| FileColumn {
            name: (*name).to_owned(),
            kind: ColumnType::Utf8,
            source: if *name == "as_of" { String::new() } else { format!("source of {name}") },
            id: *id,
        };
        names.iter().map(column).collect()
    }

    #[test]
    fn files_of_an_earlier_profile_lack_what_was_declared_later() {
        let then = file_columns(&[("aid", 3), ("title", 4), ("tone", 5), ("extra", 6)]);
        let more = file_columns(&[("aid", 3), ("title", 4), ("tone", 5), ("extra", 6), ("as_of", 7), ("place", 8)]);
        let fewer = file_columns(&[("aid", 3), ("title", 4), ("extra", 6), ("as_of", 7), ("place", 8)]);
        let other = file_columns(&[("aid", 3), ("title", 9), ("tone", 5), ("extra", 6)]);
        let spec = |name: &str| {
            let at = Pointer::of(["field"]);
            let origin = if name == "extra" { Origin::Extra } else { Origin::Field(at, Scope::Record) };
            ColumnSpec::new(name, ColumnType::Utf8, origin).nullable()
        };
        let [title, tone, place, extra] = ["title", "tone", "place", "extra"].map(spec);
        let required = ColumnSpec { nullable: false, ..place.clone() };
        let place_only = Columns::Without(vec!["place".to_owned()]);
        for (today, deciding, others, expected) in [
            (&more, vec![&title], vec![&tone], Columns::All),
            (&more, vec![&title], vec![&place, &extra], place_only.clone()),
            (&more, vec![], vec![&extra], place_only.clone()),
            // Which rows there are must not depend on a value that nobody has read.
            (&more, vec![&place], vec![], Columns::Others),
            (&more, vec![&extra], vec![], Columns::Others),
            (&more, vec![], vec![&required], Columns::Others),
            // `tone` would be in `extra` today.
            (&fewer, vec![], vec![&place], place_only),
            (&fewer, vec![], vec![&extra], Columns::Others),
            // Another column of the same name.
            (&other, vec![], vec![&title], Columns::Others),
            (&other, vec![], vec![&tone], Columns::All),
        ] {
            let found = columns(today, &then, &deciding, &others);
            assert_eq!(found, expected, "{deciding:?} {others:?}");
        }
    }
}
