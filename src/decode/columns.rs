//! Columns of a batch that are made of others, and what is read from columns.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, TimestampMicrosecondBuilder};
use arrow::datatypes::{DataType, Int64Type, TimestampMicrosecondType};

use super::envelope::Envelope;
use super::value::{Instants, joined};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::Pointer;
use crate::request::PageRequest;

/// Texts that consist of the values of several columns, with `:` between them; NULL if one of them is.
pub(super) fn joined_texts(parts: &[ArrayRef]) -> ArrayRef {
    let parts: Vec<&StringArray> = parts.iter().filter_map(|part| part.as_string_opt::<i32>()).collect();
    let rows = parts.first().map_or(0, |part| part.len());
    let text = |row: usize| {
        let values = parts.iter().map(|part| part.is_valid(row).then(|| part.value(row)));
        values.collect::<Option<Vec<&str>>>().map(|values| values.join(":"))
    };
    Arc::new((0..rows).map(text).collect::<StringArray>())
}

/// Joins days and times of day, and counts those that are none.
pub(super) fn joined_instants(instants: &mut Instants, days: &ArrayRef, times: &ArrayRef) -> (ArrayRef, u64) {
    let (mut builder, mut unfit) = (TimestampMicrosecondBuilder::new().with_timezone("UTC"), 0);
    for (day, time) in days.as_string::<i32>().iter().zip(times.as_string::<i32>()) {
        let instant = match (day, time) {
            (Some(day), Some(time)) => joined(instants, day, time),
            (Some(day), None) => instants.read(day),
            (None, _) => None,
        };
        unfit += u64::from(instant.is_none() && day.is_some());
        builder.append_option(instant);
    }
    (Arc::new(builder.finish()), unfit)
}

/// Captured counts beside the first page, each with its entry; `None` if they have other values than counts.
pub(super) fn counts_of(
    request: &PageRequest,
    answer: &Envelope<'_>,
    (slot, count): &(usize, Option<Pointer>),
) -> Option<Vec<(serde_json::Value, u64)>> {
    // One response is enough, and further pages are decoded faster without.
    let first = request.row <= request.plan.pages.map_or(0, |pages| pages.skip);
    let entries = answer.raw(*slot).filter(|_| first)?;
    let entries = match serde_json::from_str(entries.text).ok()? {
        serde_json::Value::Array(entries) => entries,
        serde_json::Value::Object(entries) => entries.into_iter().map(|(_, entry)| entry).collect(),
        _ => return None,
    };
    let counted = entries.into_iter().map(|entry| {
        let number = count.as_ref().map_or(Some(&entry), |count| count.member_of(&entry))?.as_u64()?;
        Some((entry, number))
    });
    counted.collect()
}

pub(super) fn sum_of(counts: &[(serde_json::Value, u64)]) -> Option<u64> {
    counts.iter().try_fold(0, |sum: u64, (_, count)| sum.checked_add(*count))
}

pub(super) fn constant(value: Option<&str>, count: usize) -> ArrayRef {
    Arc::new(match value {
        Some(value) => StringArray::new_repeated(value, count),
        None => StringArray::new_null(count),
    })
}

/// Microseconds of a timestamp column; `i64::MIN` for NULL.
pub(super) fn micros(column: &ArrayRef) -> Vec<i64> {
    let column = column.as_primitive::<TimestampMicrosecondType>();
    match column.null_count() {
        0 => column.values().to_vec(),
        _ => column.iter().map(|at| at.unwrap_or(i64::MIN)).collect(),
    }
}

/// Checks that entries of a timeline, given by their starts in microseconds, can be days. The first one may be the part of a day in
/// which the window begins, and days without mentions may be missing.
///
/// # Errors
/// [`ErrorKind::Contradiction`] if entries are hours apart, or all by the same number of days.
pub(super) fn check_days(starts: &[i64]) -> Result<()> {
    const HOUR: i64 = 3_600_000_000;
    let mut starts: Vec<i64> = starts.iter().copied().filter(|start| *start != i64::MIN).collect();
    starts.sort_unstable();
    starts.dedup();
    let apart: Vec<i64> = starts.windows(2).skip(1).map(|pair| (pair[1] - pair[0] + HOUR / 2) / HOUR).collect();
    let (Some(least), Some(most)) = (apart.iter().min(), apart.iter().max()) else { return Ok(()) };
    let what = match apart.len() {
        // Clocks are changed by two hours at most.
        _ if *least < 22 => format!("{least} h"),
        3.. if *least > 26 && most - least <= 2 => format!("{} days", (least + 2) / 24),
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::Contradiction, format!("the entries of the timeline are {what} apart, and are no days"))
        .advice("count mentions by day: SELECT published_at::date, count(*) FROM mentions … GROUP BY 1"))
}

/// A hash of each value. The hasher's keys are fixed, so equal ids have equal hashes on every page.
pub(super) fn hashes(column: &ArrayRef) -> Vec<u64> {
    let hash = |value: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        value(&mut hasher);
        hasher.finish()
    };
    match column.data_type() {
        DataType::Int64 => {
            column.as_primitive::<Int64Type>().values().iter().map(|id| hash(&|hasher| id.hash(hasher))).collect()
        }
        // The profile allows strings and integers as ids.
        _ => column.as_string::<i32>().iter().map(|id| hash(&|hasher| id.hash(hasher))).collect(),
    }
}
