//! Saved searches from the entries of a list: entries that name one aid are one row.
//!
//! ```text
//! saved  {aid 1, name A}              aid 1: kind saved, kinds [saved, recent], name A, searched_at T
//! team   {aid 2, name B}        ──▶   aid 2: kind team,  kinds [team],          name B
//! recent {aid 1, searchedAt T}
//! recent {query "x"}                  no aid: a row of `recent_searches` only
//! ```
//!
//! Each column has the value of the strongest entry that has one: `saved` before `team`, before other kinds, before
//! `recent`; of one kind, the first in the list. Taking all columns from one entry was rejected: the team of a saved search
//! and the time of its last search are in its other entries.
//!
//! Invariant: no two rows have the same aid, and every row has one. Rows come in the order in which the list first names
//! their aids, those of the history alone last: they have no names.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, RecordBatch, StringArray, StringBuilder, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, SchemaRef};

use super::schema::decoded_schema;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Origin, RECENT, TableSpec};

/// Returns the table of the list's entries as they come. Entries of the history may lack an aid, and none has the column
/// `kinds`.
pub(crate) fn entries_of(table: &TableSpec) -> TableSpec {
    let mut entries = table.clone();
    let derived = |name: &str, origin: &Origin| name == "aid" || *origin == Origin::Kinds;
    for column in &mut entries.columns {
        column.nullable |= derived(&column.name, &column.origin);
    }
    entries
}

/// Merges entries of a list into rows, one an aid. See the module documentation.
#[derive(Debug)]
pub(crate) struct OneRowAnAid {
    /// Schema of rows and entries, except that some columns of entries may be NULL.
    schema: SchemaRef,
    /// Columns `aid` and `kind`, by their position in the schema.
    aid: usize,
    kind: usize,
    origins: Vec<Origin>,
    /// Set if the profile allows an entry without an aid.
    nullable: bool,
}

impl OneRowAnAid {
    /// Positions in the table of the columns that are needed whether they are wanted or not.
    pub(crate) fn needed(table: &TableSpec) -> impl Iterator<Item = usize> {
        let position = |name| table.columns.iter().position(|column| column.name == name);
        ["aid", "kind"].into_iter().filter_map(position)
    }

    /// Creates the rule for entries with the columns at these positions of the table.
    ///
    /// # Errors
    /// [`ErrorKind::Profile`] if `aid` or `kind` is missing.
    pub(crate) fn try_new(table: &TableSpec, columns: &[usize]) -> Result<Self> {
        let schema = decoded_schema(table).project(columns);
        let missing = |error: String| Error::new(ErrorKind::Profile, format!("tables.saved_searches: {error}"));
        let schema = Arc::new(schema.map_err(|error| missing(error.to_string()))?);
        let of = |name| schema.index_of(name).map_err(|error| missing(error.to_string()));
        let (aid, kind) = (of("aid")?, of("kind")?);
        let origins = columns.iter().map(|column| table.columns[*column].origin.clone()).collect();
        let nullable = schema.field(aid).is_nullable();
        Ok(Self { schema, aid, kind, origins, nullable })
    }

    /// Returns the rows of all entries of a list.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] for an entry without an aid outside of the history.
    pub(crate) fn rows(&self, entries: &RecordBatch) -> Result<RecordBatch> {
        let (aids, kinds) = (texts(entries, self.aid)?, texts(entries, self.kind)?);
        let kind_of = |entry: usize| if kinds.is_valid(entry) { kinds.value(entry) } else { "" };
        if !self.nullable {
            check_aids(&aids, &kind_of)?;
        }
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut rows: Vec<Vec<usize>> = Vec::new();
        for entry in (0..aids.len()).filter(|entry| aids.is_valid(*entry)) {
            let place = *places.entry(aids.value(entry)).or_insert(rows.len());
            match rows.get_mut(place) {
                Some(row) => row.push(entry),
                None => rows.push(vec![entry]),
            }
        }
        for row in &mut rows {
            row.sort_by_key(|entry| strength(kind_of(*entry)));
        }
        rows.sort_by_key(|row| row.first().is_some_and(|entry| kind_of(*entry) == RECENT));
        let columns = entries.columns().iter().zip(&self.origins).map(|(column, origin)| match origin {
            Origin::Kinds => Ok(kinds_of(&rows, &kind_of)),
            _ => strongest(column, &rows),
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(failed)
    }
}

/// Checks that every entry outside of the history has an aid.
///
/// # Errors
/// [`ErrorKind::Contradiction`] if one has none.
pub(crate) fn check_aids<'k>(aids: &StringArray, kind_of: &impl Fn(usize) -> &'k str) -> Result<()> {
    let Some(entry) = (0..aids.len()).find(|entry| aids.is_null(*entry) && kind_of(*entry) != RECENT) else {
        return Ok(());
    };
    let message = format!("record {entry} of the response has a missing or invalid `aid`, which must not be NULL");
    Err(Error::new(ErrorKind::Contradiction, message)
        .advice("check the column's pointer and type in the profile, or set null = true"))
}

/// Rank of a kind: of several entries, the one with the lowest gives its values.
fn strength(kind: &str) -> u8 {
    match kind {
        "saved" => 0,
        "team" => 1,
        RECENT => 3,
        _ => 2,
    }
}

/// For each row, the first value of its entries that is not NULL.
fn strongest(column: &ArrayRef, rows: &[Vec<usize>]) -> Result<ArrayRef> {
    let first = |row: &Vec<usize>| {
        let valued = row.iter().find(|entry| column.is_valid(**entry)).or(row.first());
        valued.and_then(|entry| u32::try_from(*entry).ok())
    };
    let chosen: UInt32Array = rows.iter().map(first).collect();
    take(column, &chosen, None).map_err(failed)
}

fn kinds_of<'k>(rows: &[Vec<usize>], kind_of: &impl Fn(usize) -> &'k str) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in rows {
        let mut kinds: Vec<&str> = row.iter().map(|entry| kind_of(*entry)).collect();
        let mut known = std::collections::HashSet::new();
        kinds.retain(|kind| known.insert(*kind));
        kinds.iter().for_each(|kind| lists.values().append_value(kind));
        lists.append(true);
    }
    Arc::new(lists.finish())
}

fn texts(batch: &RecordBatch, at: usize) -> Result<StringArray> {
    Ok(cast(batch.column(at), &DataType::Utf8).map_err(failed)?.as_string::<i32>().clone())
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Contradiction, format!("cannot build the rows of the list: {error}"))
}
