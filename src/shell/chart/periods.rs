//! Times on the axis of a chart, and the periods that they begin.

use chrono::{DateTime, Datelike, NaiveDateTime, TimeDelta};

use crate::profile::Zone;

/// Seconds of an hour, a day and a week.
const PERIODS: [f64; 3] = [3_600.0, 86_400.0, 604_800.0];
/// A month, a quarter and a year: their numbers of months, and their fewest and most days.
const OF_MONTHS: [(u32, f64, f64); 3] = [(1, 28.0, 31.0), (3, 90.0, 92.0), (12, 365.0, 366.0)];

/// Length of the periods whose beginnings the times of a chart are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Period {
    /// A month, a quarter or a year, in months.
    Months(u32),
    /// An hour, a day or a week, in seconds.
    Seconds(f64),
}

impl Period {
    /// `None` for times that are not the beginnings of equal periods, or that are all equal.
    pub(super) fn of(instants: &[f64]) -> Option<Self> {
        let (first, least) = (*instants.first()?, least_gap(instants));
        let days = least / PERIODS[1];
        let begins =
            |months: u32| instants.iter().all(|at| month_begun(*at).is_some_and(|month| month.is_multiple_of(months)));
        let months = OF_MONTHS.into_iter().find(|(months, from, to)| (*from..=*to).contains(&days) && begins(*months));
        if let Some((months, ..)) = months {
            return Some(Self::Months(months));
        }
        let period = PERIODS.into_iter().rev().find(|period| least.is_finite() && least % period == 0.0)?;
        let aligned = instants.iter().all(|at| (at - first) % period == 0.0 && at % period.min(PERIODS[1]) == 0.0);
        aligned.then_some(Self::Seconds(period))
    }

    /// The beginning of the next period.
    pub(super) fn next(self, at: f64) -> f64 {
        match self {
            Self::Seconds(period) => at + period,
            Self::Months(months) => {
                let next = time_of(at).and_then(|time| time.checked_add_months(chrono::Months::new(months)));
                next.map_or(at, |next| next.and_utc().timestamp() as f64)
            }
        }
    }
}

/// The smallest distance of two times; infinite if they are all equal.
pub(super) fn least_gap(instants: &[f64]) -> f64 {
    instants.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0).fold(f64::INFINITY, f64::min)
}

/// The month of the year, from 0, that begins at a time; `None` for other times.
fn month_begun(at: f64) -> Option<u32> {
    let time = time_of(at)?;
    (time.day() == 1 && at % PERIODS[1] == 0.0).then(|| time.month0())
}

/// True if each of the times is the beginning of a day.
pub(in crate::shell) fn are_days(mut times: impl Iterator<Item = f64>) -> bool {
    times.all(|at| at % PERIODS[1] == 0.0)
}

/// A time in seconds since 1970.
pub(super) fn time_of(at: f64) -> Option<NaiveDateTime> {
    #[expect(clippy::cast_possible_truncation, reason = "periods and labels have a resolution of seconds")]
    let time = DateTime::from_timestamp(at as i64, 0)?;
    Some(time.naive_utc())
}

/// A period, and its zone if it is known, in words. The end is the first time after it.
pub(super) fn period(from: NaiveDateTime, to: NaiveDateTime, zone: Option<Zone>) -> String {
    let zone = zone.map_or(String::new(), |zone| format!(", {zone}"));
    let last = to.checked_sub_signed(TimeDelta::microseconds(1)).filter(|last| *last > from).unwrap_or(from);
    let end = last.format("%-d %b %Y");
    match (from.date() == last.date(), from.year() == last.year()) {
        (true, _) => format!("{end}{zone}"),
        (false, true) => format!("{} to {end}{zone}", from.format("%-d %b")),
        (false, false) => format!("{} to {end}{zone}", from.format("%-d %b %Y")),
    }
}

/// An instant, in seconds since 1970.
pub(super) fn instant(at: f64, format: &str) -> String {
    time_of(at).map_or(String::new(), |time| time.format(format).to_string())
}
