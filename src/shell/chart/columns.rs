//! Values of the columns of a chart.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use chrono::DateTime;

use super::NONE;
use super::periods::{are_days, instant};
use crate::error::one_line;
use crate::profile::Zone;
use crate::session::type_name;

/// True for a column of numbers.
pub(super) fn is_number(column: &ArrayRef) -> bool {
    column.data_type().is_numeric()
}

/// Values of a column, each on one line.
pub(super) fn names(column: &ArrayRef) -> Result<Vec<String>, ArrowError> {
    let options = FormatOptions::default().with_null(NONE);
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options)?;
    let texts: Vec<String> = (0..column.len()).map(|row| one_line(&formatter.value(row).to_string())).collect();
    let short = time_numbers(column)?.and_then(|times| names_of_times(column, &times, &texts));
    Ok(short.unwrap_or(texts))
}

/// Names of times: dates if all of them are midnights, otherwise with minutes; `None` if this would make different times equal.
fn names_of_times(column: &ArrayRef, times: &[f64], texts: &[String]) -> Option<Vec<String>> {
    let known = (0..times.len()).filter(|row| column.is_valid(*row)).map(|row| times[row]);
    let format = if are_days(known) { "%Y-%m-%d" } else { "%Y-%m-%d %H:%M" };
    let name = |(row, text): (usize, &String)| match column.is_valid(row) {
        true => Some(instant(times[row], format)).filter(|name| !name.is_empty()),
        false => Some(text.clone()),
    };
    let short = texts.iter().enumerate().map(name).collect::<Option<Vec<String>>>()?;
    let distinct = |names: &[String]| names.iter().collect::<HashSet<_>>().len();
    (distinct(&short) == distinct(texts)).then_some(short)
}

/// The kind of the values of a column.
pub(super) fn kind_in_words(kind: &DataType) -> String {
    match kind {
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => "a time".to_owned(),
        DataType::Boolean => "true or false".to_owned(),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => "a list".to_owned(),
        DataType::Null => "NULL".to_owned(),
        kind if kind.is_numeric() => "a number".to_owned(),
        kind if kind.is_string() => "text".to_owned(),
        kind => type_name(kind),
    }
}

/// Values of a numeric column; `None` for NaN and infinity, which are not drawn.
pub(in crate::shell) fn floats(column: &ArrayRef) -> Result<Vec<Option<f64>>, ArrowError> {
    let values = cast(column, &DataType::Float64)?;
    Ok(values.as_primitive::<Float64Type>().iter().map(|value| value.filter(|value| value.is_finite())).collect())
}

/// Zone in which a column of times is shown; `None` for dates and times without a zone.
pub(in crate::shell) fn zone_of(kind: &DataType) -> Option<Zone> {
    let DataType::Timestamp(_, Some(zone)) = kind else { return None };
    zone.parse().ok()
}

/// Local times of a column in its zone, in seconds since 1970; `None` if its type is not a time.
pub(in crate::shell) fn time_numbers(column: &ArrayRef) -> Result<Option<Vec<f64>>, ArrowError> {
    if !matches!(column.data_type(), DataType::Timestamp(..) | DataType::Date32 | DataType::Date64) {
        return Ok(None);
    }
    let zone = zone_of(column.data_type()).unwrap_or(Zone::UTC);
    let micros = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))?;
    let micros = cast(&micros, &DataType::Int64)?;
    let local = |micros: i64| {
        let at = DateTime::from_timestamp_micros(micros).map(|at| zone.local(at).and_utc().timestamp_micros());
        at.unwrap_or(micros) as f64 / 1e6
    };
    Ok(Some(micros.as_primitive::<Int64Type>().values().iter().map(|micros| local(*micros)).collect()))
}
