//! A result by weekday and hour: times, which are counted or whose numbers are added, or columns with a weekday, an hour and a
//! number.

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};

use super::axis_names::in_words;
use super::chart::{Covered, are_days, floats, time_numbers, zone_of};
use crate::error::one_line;
use crate::profile::Zone;

/// Numbers by weekday and hour.
#[derive(Debug, PartialEq)]
pub(super) struct HeatMap {
    pub(super) title: Option<String>,
    /// Period and zone, as far as they are known.
    pub(super) subtitle: Option<String>,
    /// Zone of the hours, if it is known.
    pub(super) zone: Option<Zone>,
    /// Number of each hour of each weekday, from Monday on.
    pub(super) hours: [[f64; 24]; 7],
    /// The weekdays, from Monday on, of which the period that was read has more than of others.
    pub(super) often: [bool; 7],
}

/// Seconds of a day.
const DAY: f64 = 86_400.0;

impl HeatMap {
    /// The heat map of a result. Rows without a time or a number add nothing.
    ///
    /// # Errors
    /// One line naming the columns that a heat map takes, or saying that the times are days.
    pub(super) fn of(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Self, String> {
        let Some(columns) = heat_columns(schema) else {
            let is_date = |field: &&FieldRef| matches!(field.data_type(), DataType::Date32 | DataType::Date64);
            if let Some(field) = schema.fields().first().filter(is_date) {
                return Err(without_hours(field.name()));
            }
            return Err(
                "expected a time, or a weekday, an hour and a number, as in SELECT date_part('dow', published_at), \
                        date_part('hour', published_at), count(*)"
                    .to_owned(),
            );
        };
        let mut map = Self { title: None, subtitle: None, zone: None, hours: [[0.0; 24]; 7], often: [false; 7] };
        if columns.len() < 3 {
            let times = batches.iter().map(|batch| known_times(batch.column(columns[0])));
            let times = times.collect::<Result<Vec<_>, _>>()?.concat();
            if !times.is_empty() && are_days(times.into_iter()) {
                return Err(without_hours(schema.field(columns[0]).name()));
            }
        }
        for batch in batches {
            map.add(batch, &columns)?;
        }
        let number = columns.get(if columns.len() == 3 { 2 } else { 1 });
        let name = number.map(|at| schema.field(*at).name().as_str());
        let name = match name {
            Some(name) => in_words(name).unwrap_or_else(|| "value".to_owned()),
            None => "count".to_owned(),
        };
        let kind = schema.field(columns[0]).data_type();
        let zone = (columns.len() < 3).then(|| zone_of(kind)).flatten();
        let subtitle = zone.map(|zone| zone.to_string());
        Ok(Self { title: Some(format!("{name} by weekday and hour")), subtitle, zone, ..map })
    }

    fn add(&mut self, batch: &RecordBatch, columns: &[usize]) -> Result<(), String> {
        let numbers = |at: usize| floats(batch.column(columns[at])).map_err(|error| error.to_string());
        if let [_, _, _] = columns {
            let (days, hours, values) = (numbers(0)?, numbers(1)?, numbers(2)?);
            for ((day, hour), value) in days.into_iter().zip(hours).zip(values) {
                let (Some(day), Some(hour), Some(value)) = (day, hour, value) else { continue };
                let (day, hour) = numbered(day, hour)?;
                self.hours[day][hour] += value;
            }
            return Ok(());
        }
        let column = batch.column(columns[0]);
        let times = time_numbers(column).map_err(|error| error.to_string())?.unwrap_or_default();
        let values = if columns.len() == 2 { numbers(1)? } else { vec![Some(1.0); times.len()] };
        for (row, (at, value)) in times.into_iter().zip(values).enumerate() {
            let Some(value) = value.filter(|_| column.is_valid(row)) else { continue };
            let (day, hour) = place(at);
            self.hours[day][hour] += value;
        }
        Ok(())
    }

    /// Replaces the title; an empty one removes it.
    pub(super) fn titled(self, title: Option<&str>) -> Self {
        let Some(title) = title else { return self };
        Self { title: Some(one_line(title)).filter(|title| !title.is_empty()), ..self }
    }

    /// Adds the period that the query has read.
    pub(super) fn covering(self, covered: Option<Covered>) -> Self {
        let covered = covered.map(|covered| Covered { zone: covered.zone.or(self.zone), ..covered });
        let often = covered.map_or(self.often, more_often);
        Self { subtitle: covered.map(Covered::in_words).or(self.subtitle), often, ..self }
    }
}

/// The weekdays, from Monday on, of which a period has more than of others; none if the zone is unknown or the times are shifted. A part
/// of a day counts as that part.
fn more_often(period: Covered) -> [bool; 7] {
    /// Days by which weekdays may differ because clocks change.
    const CHANGE: f64 = 0.1;
    let Some(zone) = period.zone.filter(|_| !period.shifted) else { return [false; 7] };
    let [from, to] = [period.from, period.to].map(|at| zone.local(at).and_utc().timestamp() as f64);
    let mut days = [0.0; 7];
    let mut at = from;
    while at < to {
        let next = ((at / DAY).floor() * DAY + DAY).min(to);
        days[place(at).0] += (next - at) / DAY;
        at = next;
    }
    let least = days.iter().copied().fold(f64::INFINITY, f64::min);
    days.map(|days| days > least + CHANGE)
}

/// An error about a column of days.
fn without_hours(column: &str) -> String {
    let name = one_line(column);
    format!("{name} has days without hours; a chart by weekday and hour needs times, such as published_at")
}

/// Times of a column, without those that are NULL.
fn known_times(column: &ArrayRef) -> Result<Vec<f64>, String> {
    let times = time_numbers(column).map_err(|error| error.to_string())?.unwrap_or_default();
    Ok(times.into_iter().enumerate().filter(|(row, _)| column.is_valid(*row)).map(|(_, at)| at).collect())
}

/// Positions of the columns that a heat map takes: a time, and a number if there is one; or three numbers.
pub(crate) fn heat_columns(schema: &Schema) -> Option<Vec<usize>> {
    let fields = schema.fields();
    let is_number = |at: usize| fields.get(at).is_some_and(|field| field.data_type().is_numeric());
    match fields.first()?.data_type() {
        DataType::Timestamp(..) => Some([0].into_iter().chain((1..fields.len()).find(|at| is_number(*at))).collect()),
        _ => (0..3).all(is_number).then(|| vec![0, 1, 2]),
    }
}

/// Weekday, from Monday on, and hour of a local time in seconds since 1970.
fn place(at: f64) -> (usize, usize) {
    let day = (at / DAY).floor();
    // 1970 began on a Thursday.
    let (weekday, hour) = ((day + 3.0).rem_euclid(7.0), ((at - day * DAY) / 3_600.0).clamp(0.0, 23.0));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "they are from 0 to 6, and from 0 to 23"
    )]
    let place = (weekday as usize, hour as usize);
    place
}

/// Weekday and hour by their numbers: 1 is Monday; 0 and 7 are Sunday.
fn numbered(day: f64, hour: f64) -> Result<(usize, usize), String> {
    if !(0.0..=7.0).contains(&day) || !(0.0..24.0).contains(&hour) {
        return Err(format!("expected a weekday from 0 to 7 and an hour from 0 to 23, found {day} and {hour}"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    let (day, hour) = (day as usize, hour as usize);
    Ok(((day + 6) % 7, hour))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, Int64Array, StringArray, TimestampMicrosecondArray};

    use super::*;

    fn map(columns: Vec<(&str, ArrayRef)>) -> Result<HeatMap, String> {
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        HeatMap::of(&batch.schema(), &[batch])
    }

    fn numbers(values: Vec<Option<i64>>) -> ArrayRef {
        Arc::new(Int64Array::from(values))
    }

    #[test]
    fn times_are_counted_in_their_zone() {
        // Sunday, 2025-11-16, at 23:30 in UTC, which is Monday in Berlin; and a row without a time.
        let times =
            TimestampMicrosecondArray::from(vec![Some(1_763_335_800_000_000), Some(1_763_335_800_000_000), None]);
        let of =
            |zone: &str| map(vec![("at", Arc::new(times.clone().with_timezone(zone)) as ArrayRef)]).expect("a map");
        let (utc, berlin) = (of("UTC"), of("Europe/Berlin"));
        assert_eq!((utc.hours[6][23], berlin.hours[0][0]), (2.0, 2.0));
        assert_eq!(utc.hours.iter().flatten().sum::<f64>(), 2.0);
        assert_eq!(berlin.subtitle.as_deref(), Some("Europe/Berlin"));
        assert_eq!(utc.title.as_deref(), Some("count by weekday and hour"));
        let plain = map(vec![("at", Arc::new(times) as ArrayRef)]).expect("a map");
        assert_eq!((plain.hours, plain.subtitle), (utc.hours, None), "of an unknown zone");
    }

    #[test]
    fn days_are_refused_as_they_have_no_hours() {
        let day = 86_400_000_000;
        // Midnights in Berlin, an hour before those of UTC.
        let berlin: Vec<Option<i64>> = vec![Some(day - 3_600_000_000), None, Some(2 * day - 3_600_000_000)];
        let berlin = TimestampMicrosecondArray::from(berlin).with_timezone("Europe/Berlin");
        let utc = TimestampMicrosecondArray::from(vec![0, day]).with_timezone("UTC");
        let dates = Date32Array::from(vec![0, 1]);
        let columns: [ArrayRef; 3] = [Arc::new(berlin), Arc::new(utc), Arc::new(dates)];
        for column in columns {
            let n = numbers(vec![Some(1); column.len()]);
            let refused = map(vec![("day", column), ("n", n)]).expect_err("no hours");
            assert!(refused.starts_with("day has days without hours; a chart by weekday and hour needs"), "{refused}");
        }
        let mixed = TimestampMicrosecondArray::from(vec![0, 3_600_000_000]).with_timezone("UTC");
        let hours = map(vec![("at", Arc::new(mixed) as ArrayRef)]).expect("a map").hours;
        assert_eq!((hours[3][0], hours[3][1]), (1.0, 1.0));
    }

    #[test]
    fn weekdays_that_a_period_has_more_of_are_known() {
        let at = |text: &str| text.parse().expect("an instant");
        let of = |from: &str, to: &str| {
            more_often(Covered { from: at(from), to: at(to), zone: Some(Zone::UTC), shifted: false, ordered: true })
        };
        // From a Wednesday at noon.
        assert_eq!(of("2026-06-24T12:00:00Z", "2026-07-01T12:00:00Z"), [false; 7], "a week");
        let unknown = Covered {
            from: at("2026-06-01T00:00:00Z"),
            to: at("2026-06-03T00:00:00Z"),
            zone: None,
            shifted: false,
            ordered: true,
        };
        assert_eq!(more_often(unknown), [false; 7], "days of an unknown zone");
        let shifted = Covered { zone: Some(Zone::UTC), shifted: true, ..unknown };
        assert_eq!(more_often(shifted), [false; 7], "days that begin at another time");
        let month = of("2026-06-01T12:00:00Z", "2026-07-01T12:00:00Z");
        assert_eq!(month, [true, true, true, false, false, false, false], "from a Monday, four weeks and two days");
        assert_eq!(of("2026-06-01T00:00:00Z", "2026-06-29T00:00:00Z"), [false; 7], "four weeks");
    }

    #[test]
    fn numbers_beside_a_time_or_an_hour_are_added() {
        let at = TimestampMicrosecondArray::from(vec![0, 1]).with_timezone("UTC");
        let reach = numbers(vec![Some(5), Some(7)]);
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let times = map(vec![("at", Arc::new(at) as ArrayRef), ("t", text), ("total_reach", reach)]).expect("a map");
        assert_eq!((times.hours[3][0], times.title.as_deref()), (12.0, Some("total reach by weekday and hour")));
        let hours = |days: Vec<Option<i64>>| {
            let (hour, n) = (numbers(vec![Some(9); days.len()]), numbers(vec![Some(2); days.len()]));
            map(vec![("dow", numbers(days)), ("hour", hour), ("n", n)])
        };
        let sundays = hours(vec![Some(0), Some(7), Some(1), None]).expect("a map");
        assert_eq!((sundays.hours[6][9], sundays.hours[0][9], sundays.subtitle), (4.0, 2.0, None));
        assert!(hours(vec![Some(8)]).expect_err("no such day").contains("a weekday from 0 to 7"));
        let wrong = map(vec![("n", numbers(vec![Some(1)]))]).expect_err("too few columns");
        assert!(wrong.starts_with("expected a time, or a weekday"), "{wrong}");
    }
}
