//! Time zones in the forms that services use: IANA names, or offsets from UTC.

use chrono::{DateTime, Days, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

/// A time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Zone {
    /// `Europe/Berlin`.
    Named(Tz),
    /// `+01:00`.
    Distance(FixedOffset),
}

impl Zone {
    pub(super) const UTC: Self = Self::Named(Tz::UTC);

    /// Parses `+HH:MM` or `-HH:MM`, at most 14 hours.
    pub(super) fn distance(text: &str) -> Option<Self> {
        let (sign, rest) = match text.split_at_checked(1)? {
            ("+", rest) => (1, rest),
            ("-", rest) => (-1, rest),
            _ => return None,
        };
        let (hours, minutes) = rest.split_once(':')?;
        let number = |text: &str| text.parse::<i32>().ok().filter(|_| text.len() == 2 && !text.starts_with(['+', '-']));
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        let seconds = Some(sign * (hours * 3_600 + minutes * 60)).filter(|_| hours <= 14 && minutes < 60)?;
        FixedOffset::east_opt(seconds).map(Self::Distance)
    }

    /// Returns the name in the form of the parameter.
    pub(super) fn name(self) -> String {
        match self {
            Self::Named(zone) => zone.name().to_owned(),
            Self::Distance(distance) => distance.to_string(),
        }
    }

    /// The local time of an instant.
    pub(super) fn local(self, at: DateTime<Utc>) -> DateTime<FixedOffset> {
        match self {
            Self::Named(zone) => {
                let local = at.with_timezone(&zone);
                local.with_timezone(&local.offset().fix())
            }
            Self::Distance(distance) => at.with_timezone(&distance),
        }
    }

    /// The first instant with this local time, if there is one.
    pub(super) fn earliest(self, local: NaiveDateTime) -> Option<DateTime<FixedOffset>> {
        match self {
            Self::Named(zone) => {
                let at = zone.from_local_datetime(&local).earliest()?;
                Some(at.with_timezone(&at.offset().fix()))
            }
            Self::Distance(distance) => distance.from_local_datetime(&local).earliest(),
        }
    }

    /// The first instant of a local day: midnight, or the end of the gap if midnight was skipped.
    pub(super) fn start_of(self, day: NaiveDate) -> Option<DateTime<FixedOffset>> {
        let midnight = day.and_time(NaiveTime::MIN);
        (0..24 * 60).find_map(|minute| self.earliest(midnight + TimeDelta::minutes(minute)))
    }

    /// The first instant of the following day.
    pub(super) fn end_of(self, day: NaiveDate) -> Option<DateTime<FixedOffset>> {
        self.start_of(day.checked_add_days(Days::new(1))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn days_have_23_24_or_25_hours() {
        let hours = |day: &str, zone: &str| {
            let (day, zone): (NaiveDate, Tz) = (day.parse().expect("a day"), zone.parse().expect("a zone"));
            let zone = Zone::Named(zone);
            (zone.end_of(day).expect("an end") - zone.start_of(day).expect("a start")).num_hours()
        };
        assert_eq!(hours("2026-03-29", "Europe/Berlin"), 23);
        assert_eq!(hours("2026-10-25", "Europe/Berlin"), 25);
        assert_eq!(hours("2026-06-01", "Europe/Berlin"), 24);
        // This zone skips midnight itself.
        assert_eq!(hours("2018-11-04", "America/Sao_Paulo"), 23);
    }

    #[test]
    fn a_distance_is_signed_hours_and_minutes() {
        let name = |text: &str| Zone::distance(text).map(Zone::name);
        assert_eq!(name("+05:30").as_deref(), Some("+05:30"));
        assert_eq!(name("-08:00").as_deref(), Some("-08:00"));
        each(["Z", "05:30", "+5:30", "+05:60", "+15:00", "+05", "++5:30", "é"], |text| {
            assert_eq!(name(text), None, "{text}");
        });
    }
}
