//! Ticks of a time axis: at round minutes, hours, days, months and years. If the day or the year changes at a tick, it is
//! shown as well.

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveDateTime, TimeDelta, Timelike};

/// A mark of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    /// Place on the axis.
    pub(super) at: f64,
    pub(super) text: String,
    /// Second line of the text: the day or the year, where it changes.
    pub(super) below: Option<String>,
}

/// Distance between two ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Minutes(u32),
    Hours(u32),
    Days(u32),
    Months(u32),
    Years(i32),
}

/// Steps from short to long.
const STEPS: [Step; 22] = [
    Step::Minutes(1),
    Step::Minutes(5),
    Step::Minutes(15),
    Step::Minutes(30),
    Step::Hours(1),
    Step::Hours(3),
    Step::Hours(6),
    Step::Hours(12),
    Step::Days(1),
    Step::Days(2),
    Step::Days(7),
    Step::Days(14),
    Step::Months(1),
    Step::Months(2),
    Step::Months(3),
    Step::Months(6),
    Step::Years(1),
    Step::Years(2),
    Step::Years(5),
    Step::Years(10),
    Step::Years(20),
    Step::Years(50),
];
/// Least distance of two labels in pixels.
const APART: f64 = 64.0;

impl Step {
    /// Approximate length in seconds.
    fn length(self) -> f64 {
        match self {
            Self::Minutes(minutes) => f64::from(minutes) * 60.0,
            Self::Hours(hours) => f64::from(hours) * 3_600.0,
            Self::Days(days) => f64::from(days) * 86_400.0,
            Self::Months(months) => f64::from(months) * 2_629_746.0,
            Self::Years(years) => f64::from(years) * 31_556_952.0,
        }
    }

    /// First tick at or after a time.
    fn first(self, from: NaiveDateTime) -> Option<NaiveDateTime> {
        let day = from.date();
        let begin = match self {
            Self::Minutes(minutes) => day.and_hms_opt(from.hour(), from.minute() / minutes * minutes, 0)?,
            Self::Hours(hours) => day.and_hms_opt(from.hour() / hours * hours, 0, 0)?,
            // Weeks begin with the first one of the axis, so that points of days have labels.
            Self::Days(_) => day.and_hms_opt(0, 0, 0)?,
            Self::Months(months) => {
                NaiveDate::from_ymd_opt(day.year(), day.month0() / months * months + 1, 1)?.and_hms_opt(0, 0, 0)?
            }
            Self::Years(years) => {
                NaiveDate::from_ymd_opt(day.year().div_euclid(years) * years, 1, 1)?.and_hms_opt(0, 0, 0)?
            }
        };
        if begin < from { self.next(begin) } else { Some(begin) }
    }

    fn next(self, at: NaiveDateTime) -> Option<NaiveDateTime> {
        match self {
            Self::Minutes(minutes) => at.checked_add_signed(TimeDelta::minutes(i64::from(minutes))),
            Self::Hours(hours) => at.checked_add_signed(TimeDelta::hours(i64::from(hours))),
            Self::Days(days) => at.checked_add_days(Days::new(u64::from(days))),
            Self::Months(months) => at.checked_add_months(Months::new(months)),
            Self::Years(years) => at.checked_add_months(Months::new(u32::try_from(years).ok()? * 12)),
        }
    }

    fn text(self, at: NaiveDateTime) -> String {
        match self {
            Self::Minutes(_) | Self::Hours(_) => at.format("%H:%M").to_string(),
            Self::Days(_) => at.format("%-d %b").to_string(),
            Self::Months(_) => at.format("%b").to_string(),
            Self::Years(_) => at.format("%Y").to_string(),
        }
    }

    /// The second line, which ticks that follow each other may have in common.
    fn below(self, at: NaiveDateTime) -> Option<String> {
        match self {
            Self::Minutes(_) | Self::Hours(_) => Some(at.format("%-d %b %Y").to_string()),
            Self::Days(_) | Self::Months(_) => Some(at.format("%Y").to_string()),
            Self::Years(_) => None,
        }
    }
}

/// Ticks from one time to another, in local seconds since 1970, on an axis of this many pixels.
/// Ticks are not closer than the points, which are `apart` seconds from each other.
pub(super) fn time_ticks(first: f64, last: f64, apart: f64, width: f64) -> Vec<Tick> {
    #[expect(clippy::cast_possible_truncation, reason = "labels have a resolution of seconds")]
    let time = |at: f64| DateTime::from_timestamp(at as i64, 0).map(|at| at.naive_utc());
    let (Some(begin), Some(end)) = (time(first.ceil()), time(last)) else { return Vec::new() };
    let most = (width / APART).max(2.0);
    let fits = |step: &Step| (last - first) / step.length() <= most && step.length() > apart * 0.9;
    let step = STEPS.into_iter().find(fits).unwrap_or(STEPS[STEPS.len() - 1]);
    let (mut ticks, mut last_below, mut at) = (Vec::new(), None, step.first(begin));
    while let Some(time) = at.filter(|at| *at <= end) {
        let below = step.below(time);
        let shown = below.clone().filter(|_| below != last_below);
        ticks.push(Tick { at: time.and_utc().timestamp() as f64, text: step.text(time), below: shown });
        (last_below, at) = (below, step.next(time));
    }
    if ticks.is_empty() {
        // Within a minute.
        let text = begin.format("%H:%M:%S").to_string();
        ticks.push(Tick { at: first, text, below: Some(begin.format("%-d %b %Y").to_string()) });
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(from: &str, to: &str, width: f64) -> Vec<String> {
        let at = |text: &str| text.parse::<NaiveDateTime>().expect("a time").and_utc().timestamp() as f64;
        let join = |tick: Tick| tick.below.map_or(tick.text.clone(), |below| format!("{}/{below}", tick.text));
        time_ticks(at(from), at(to), 0.0, width).into_iter().map(join).collect()
    }

    #[test]
    fn ticks_are_not_closer_than_the_points() {
        let month = 28.0 * 86_400.0;
        let ticks: Vec<String> = time_ticks(0.0, 2.0 * month, month, 900.0).into_iter().map(|tick| tick.text).collect();
        assert_eq!(ticks, ["Jan", "Feb"]);
    }

    #[test]
    fn ticks_are_round_and_name_the_year_where_it_changes() {
        assert_eq!(
            texts("2025-12-20T00:00:00", "2026-01-10T00:00:00", 300.0),
            ["20 Dec/2025", "27 Dec", "3 Jan/2026", "10 Jan"]
        );
        assert_eq!(
            texts("2025-10-01T00:00:00", "2026-03-01T00:00:00", 500.0),
            ["Oct/2025", "Nov", "Dec", "Jan/2026", "Feb", "Mar"]
        );
        assert_eq!(
            texts("2026-06-30T21:00:00", "2026-07-01T09:00:00", 400.0),
            ["21:00/30 Jun 2026", "00:00/1 Jul 2026", "03:00", "06:00", "09:00"]
        );
        assert_eq!(
            texts("2001-05-01T00:00:00", "2026-05-01T00:00:00", 400.0),
            ["2005", "2010", "2015", "2020", "2025"]
        );
        assert_eq!(texts("2026-06-30T21:08:00", "2026-06-30T21:21:00", 400.0), ["21:10/30 Jun 2026", "21:15", "21:20"]);
        assert_eq!(texts("2026-06-30T21:10:01", "2026-06-30T21:10:09", 400.0), ["21:10:01/30 Jun 2026"]);
    }
}
