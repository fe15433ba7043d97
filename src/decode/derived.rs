//! Values that follow from the rows of a response: ids of records without one, traits that distinguish mentions, keys of sort
//! orders, and days that are counted.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType};
use sha2::{Digest, Sha256};

use super::body::read_text;
use super::value::Instants;
use super::{CountPlaces, CountedBucket, Days, Decoder, places};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Direction, Nulls, Pointer, TableSpec};
use crate::request::{CountedDays, PageRequest, Traits};

/// Beginning of an id that is derived from other columns.
const DERIVED: &str = "~";

impl Decoder {
    /// The fields in the column `extra`, each with the number of records that have it.
    pub(super) fn unknown(&self, batch: &RecordBatch) -> Vec<(String, u64)> {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        let texts = self.extra.and_then(|extra| batch.column(extra).as_string_opt::<i32>());
        for text in texts.into_iter().flatten().flatten().filter(|text| *text != "{}") {
            places::each(text, |at| *found.entry(at.to_owned()).or_default() += 1);
        }
        found.into_iter().collect()
    }

    /// Derives an id from the `stand_in` columns for rows without one, and returns the number of such rows.
    pub(super) fn name(&self, request: &PageRequest, text: &str, columns: &mut [ArrayRef]) -> Result<u64> {
        let Some(at) = self.id.filter(|id| columns[*id].null_count() > 0 && !self.table.stand_in.is_empty()) else {
            return Ok(0);
        };
        let stand_in: Vec<usize> = (0..self.table.columns.len())
            .filter(|c| self.table.stand_in.contains(&self.table.columns[*c].name))
            .collect();
        let table =
            TableSpec { id: None, time: None, version: None, stand_in: Vec::new(), ..self.table.as_ref().clone() };
        let decoder = Self::new(Arc::clone(&self.profile), Arc::new(table), &stand_in);
        let parts = read_text(&[(&decoder, request)], &CountPlaces::default(), text).0.swap_remove(0)?.0.batch;
        let parts: Vec<ArrayRef> = parts
            .columns()
            .iter()
            .map(|part| arrow::compute::cast(part, &DataType::Utf8))
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| {
                Error::new(ErrorKind::Profile, format!("cannot cast the `stand_in` columns to text: {error}"))
            })?;
        let known = columns[at].as_string::<i32>();
        let named = |row: usize| {
            if known.is_valid(row) {
                return Some(known.value(row).to_owned());
            }
            let mut digest = Sha256::new();
            for part in &parts {
                let part = part.as_string::<i32>();
                let part = part.is_valid(row).then(|| part.value(row));
                digest.update(part.map_or(u64::MAX, |part| part.len() as u64).to_le_bytes());
                digest.update(part.unwrap_or_default());
            }
            let any = parts.iter().any(|part| part.is_valid(row));
            any.then(|| digest.finalize()[..12].iter().fold(DERIVED.to_owned(), |id, byte| format!("{id}{byte:02x}")))
        };
        let ids: StringArray = (0..known.len()).map(named).collect();
        let unnamed = known.null_count() - ids.null_count();
        columns[at] = Arc::new(ids);
        Ok(unnamed as u64)
    }

    /// Checks that no two rows have the same derived id, if no total shows whether they are one mention or two.
    pub(super) fn check_stand_ins(&self, columns: &[ArrayRef]) -> Result<()> {
        let ids = self.id.and_then(|id| columns[id].as_string_opt::<i32>());
        let mut seen = HashSet::new();
        let mut derived = ids.into_iter().flatten().flatten().filter(|id| id.starts_with(DERIVED));
        if derived.all(|id| seen.insert(id)) {
            return Ok(());
        }
        let columns = self.table.stand_in.join("`, `");
        let message = format!(
            "two mentions of a response have no id and are equal in `{columns}`: they may be one or two, and no total is exact"
        );
        Err(Error::new(ErrorKind::Contradiction, message)
            .advice("add columns in which they differ to `stand_in` in the profile, or declare [total]"))
    }

    /// Traits that distinguish mentions apart from their ids.
    pub(super) fn traits<'c>(&self, times: &[i64], columns: &'c [ArrayRef]) -> Vec<Traits> {
        let column =
            |name: &str| self.schema.index_of(name).ok().and_then(|at| columns.get(at)?.as_string_opt::<i32>());
        let texts = [column("url"), column("source")];
        let of = |row: usize| {
            let text = |column: Option<&'c StringArray>| {
                column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
            };
            let hashed = |text: &str| {
                let mut hasher = DefaultHasher::new();
                text.hash(&mut hasher);
                hasher.finish()
            };
            let [url, source] = texts.map(text);
            let (url, source) = (url.map(|url| hashed(place_of(url))), source.map(hashed));
            Traits::new(times[row], url, source)
        };
        (0..times.len()).map(of).collect()
    }

    /// The ends of the buckets that count mentions, and all buckets if their labels are instants. `in_zone`: set if the response
    /// repeats the zone of its days.
    pub(super) fn counted_days(&self, buckets: &[(serde_json::Value, u64)], in_zone: bool) -> Option<Days> {
        let (at, form) = self.start.as_ref()?;
        let mut starts = Instants::of(form.clone());
        let mut ends = self.end.as_ref().map(|(at, form)| (at, Instants::of(form.clone())));
        let counted = buckets.iter().map(|(bucket, count)| {
            let start = instant_at(bucket, at, &mut starts)?;
            let end = ends.as_mut().and_then(|(at, ends)| instant_at(bucket, at, ends));
            Some(((start, end), *count))
        });
        let mut counted = counted.collect::<Option<Vec<CountedBucket>>>()?;
        counted.sort_unstable();
        let counting = |(_, count): &CountedBucket| *count > 0;
        let first = counted.iter().position(counting)?;
        let last = counted.iter().rposition(counting)?;
        let first_end = counted.get(first + 1).map(|((start, _), _)| *start);
        let are_instants = |read: &Instants| read.assumed.is_none() && read.days == 0;
        let zoned = are_instants(&starts);
        let days = CountedDays { first_end, last_start: counted[last].0.0, instants: in_zone && zoned };
        let zoned = zoned && ends.is_none_or(|(_, ends)| are_instants(&ends));
        Some((days, zoned.then(|| counted.into())))
    }

    /// Numbers in the order in which the service sorts the rows, if that is by another column than the time.
    pub(super) fn sort_keys(&self, request: &PageRequest, columns: &[ArrayRef]) -> Option<Vec<i64>> {
        let sort = self.profile.sort.values.iter().find(|sort| Some(&sort.value) == request.plan.sort.as_ref())?;
        let at = self.schema.index_of(&sort.column).ok().filter(|_| Some(&sort.column) != self.table.time.as_ref())?;
        let column = columns.get(at)?;
        let null = match (sort.direction, sort.nulls) {
            (Direction::Asc, Nulls::First) | (Direction::Desc, Nulls::Last) => i64::MIN,
            (Direction::Asc, Nulls::Last) | (Direction::Desc, Nulls::First) => i64::MAX,
        };
        Some(match column.data_type() {
            DataType::Int64 => column.as_primitive::<Int64Type>().iter().map(|key| key.unwrap_or(null)).collect(),
            DataType::Float64 => {
                // The bits of floats, as IEEE 754 orders them.
                let number = |key: f64| {
                    let bits = (key + 0.0).to_bits().cast_signed();
                    if bits < 0 { bits ^ i64::MAX } else { bits }
                };
                column.as_primitive::<Float64Type>().iter().map(|key| key.map_or(null, number)).collect()
            }
            DataType::Timestamp(..) => {
                column.as_primitive::<TimestampMicrosecondType>().iter().map(|key| key.unwrap_or(null)).collect()
            }
            _ => return None,
        })
    }
}

/// A url without its query and fragment, which may be signed anew for each response; all of it if nothing else distinguishes it
/// from others of its host.
fn place_of(url: &str) -> &str {
    let place = url.split(['?', '#']).next().unwrap_or(url);
    let path = place.split_once("://").map_or(place, |(_, rest)| rest).split_once('/').map_or("", |(_, path)| path);
    if path.is_empty() { url } else { place }
}

/// The instant at a place in a value, in microseconds since 1970.
fn instant_at(value: &serde_json::Value, at: &Pointer, instants: &mut Instants) -> Option<i64> {
    match at.member_of(value)? {
        serde_json::Value::String(text) => instants.read(text),
        serde_json::Value::Number(number) => instants.read(&number.to_string()),
        _ => None,
    }
}
