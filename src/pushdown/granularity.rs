//! Steps: monotone functions of an instant, such as `date_trunc('day', t)`, `t::date` or a cast to seconds.

use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveTime, TimeDelta, Utc};

/// A function that maps an instant to the start of the step containing it, all in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// A fixed length, counted from 1970; length 1 maps an instant to itself.
    Micros(i64),
    /// Weeks that start on Monday, UTC.
    Week,
    /// Calendar months, UTC.
    Months(u32),
}

pub(super) const SECOND: i64 = 1_000_000;
pub(super) const DAY: i64 = 86_400 * SECOND;

impl Step {
    /// Returns the step of `date_trunc` with this unit.
    pub(super) fn of_unit(unit: &str) -> Option<Self> {
        Some(match unit.to_lowercase().as_str() {
            "microsecond" | "nanosecond" => Self::Micros(1),
            "millisecond" => Self::Micros(1_000),
            "second" => Self::Micros(SECOND),
            "minute" => Self::Micros(60 * SECOND),
            "hour" => Self::Micros(3_600 * SECOND),
            "day" => Self::Micros(DAY),
            "week" => Self::Week,
            "month" => Self::Months(1),
            "quarter" => Self::Months(3),
            "year" => Self::Months(12),
            _ => return None,
        })
    }

    /// Composes two steps; `None` for weeks with months, which overlap.
    pub(super) fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Week, Self::Months(_)) | (Self::Months(_), Self::Week) => None,
            _ => Some(self.max(other)),
        }
    }

    /// Returns the start of the step that contains `at`; `None` outside the calendar.
    pub(super) fn floor(self, at: i64) -> Option<i64> {
        match self {
            Self::Micros(length) => Some(at.div_euclid(length) * length),
            Self::Week => {
                let day = date(at)?;
                Some(start(day - TimeDelta::days(day.weekday().num_days_from_monday().into())))
            }
            Self::Months(n) => {
                let day = date(at)?;
                Some(start(day.with_day(1)?.with_month0(day.month0() / n * n)?))
            }
        }
    }

    /// Returns the start of the step after the one that contains `at`.
    pub(super) fn next(self, at: i64) -> Option<i64> {
        let floor = self.floor(at)?;
        match self {
            Self::Micros(length) => floor.checked_add(length),
            Self::Week => floor.checked_add(7 * DAY),
            Self::Months(n) => Some(start(date(floor)?.checked_add_months(Months::new(n))?)),
        }
    }

    /// Returns the first step start that is not before `at`.
    pub(super) fn ceil(self, at: i64) -> Option<i64> {
        if self.floor(at)? == at { Some(at) } else { self.next(at) }
    }
}

fn date(at: i64) -> Option<NaiveDate> {
    Some(DateTime::<Utc>::from_timestamp_micros(at)?.date_naive())
}

fn start(day: NaiveDate) -> i64 {
    day.and_time(NaiveTime::MIN).and_utc().timestamp_micros()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cases::each;

    const STEPS: [&str; 9] =
        ["microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter"];

    proptest! {
        #[test]
        fn an_instant_lies_between_its_step_and_the_next(
            at in -4_000_000_000_000_000_i64..4_000_000_000_000_000, unit in 0..STEPS.len(),
        ) {
            let step = Step::of_unit(STEPS[unit]).expect("valid unit");
            let (floor, next) = (step.floor(at).expect("floor"), step.next(at).expect("next"));
            prop_assert!(floor <= at && at < next);
            prop_assert_eq!(step.floor(floor), Some(floor));
            prop_assert_eq!(step.floor(next - 1), Some(floor));
            prop_assert_eq!(step.ceil(floor), Some(floor));
            prop_assert_eq!(step.ceil(next - 1), Some(if next - 1 == floor { floor } else { next }));
        }
    }

    #[test]
    fn a_step_begins_where_its_unit_does() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().expect("valid timestamp").timestamp_micros();
        let cases = [
            ("second", "2026-08-05T13:45:10Z"),
            ("minute", "2026-08-05T13:45:00Z"),
            ("hour", "2026-08-05T13:00:00Z"),
            ("day", "2026-08-05T00:00:00Z"),
            ("week", "2026-08-03T00:00:00Z"),
            ("month", "2026-08-01T00:00:00Z"),
            ("quarter", "2026-07-01T00:00:00Z"),
            ("year", "2026-01-01T00:00:00Z"),
        ];
        each(cases, |(unit, begin)| {
            let step = Step::of_unit(unit).expect("valid unit");
            assert_eq!(step.floor(at("2026-08-05T13:45:10.5Z")), Some(at(begin)), "{unit}");
        });
    }
}
