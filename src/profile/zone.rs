//! Time zones in the notations of services, and their days.

use std::fmt;
use std::str::FromStr;

use chrono::offset::LocalResult;
use chrono::{DateTime, Days, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

/// A time zone: an IANA zone, or a UTC offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Zone {
    /// `Europe/Berlin`.
    Named(Tz),
    /// `+01:00`.
    Offset(FixedOffset),
}

impl Zone {
    /// Largest distance from UTC (Kiribati).
    pub const FARTHEST: TimeDelta = TimeDelta::hours(14);

    /// Names in the IANA database.
    pub fn names() -> impl Iterator<Item = &'static str> {
        chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name())
    }

    /// Parses a zone in one of the notations in which services repeat it: as users write it, or an offset with `UTC` or
    /// `GMT`.
    pub fn named_otherwise(text: &str) -> Option<Self> {
        let offset = || {
            let text = text.trim();
            let rest = ["UTC", "GMT"].iter().find_map(|name| text.strip_prefix(name))?;
            Self::meant(rest)
        };
        Self::meant(text).or_else(offset)
    }

    /// True if both zones have the same local times on each day from 1990 to 2039.
    pub fn has_rules_of(self, other: Self) -> bool {
        let first = DateTime::UNIX_EPOCH + TimeDelta::days(20 * 365) + TimeDelta::minutes(30);
        self == other
            || (0..50 * 366).map(|day| first + TimeDelta::days(day)).all(|at| self.local(at) == other.local(at))
    }

    /// Coordinated Universal Time.
    pub const UTC: Self = Self::Named(Tz::UTC);

    /// The zone of the database with the same local times; `None` if it has none with this offset from UTC.
    pub fn in_database(self) -> Option<Tz> {
        match self {
            Self::Named(zone) => Some(zone),
            Self::Offset(offset) => match (offset.local_minus_utc() / 3_600, offset.local_minus_utc() % 3_600) {
                (0, 0) => Some(Tz::UTC),
                // Their signs are those of POSIX: west of Greenwich is positive.
                (hours, 0) => format!("Etc/GMT{:+}", -hours).parse().ok(),
                _ => None,
            },
        }
    }

    /// Returns the zone that a user means: a name in any case, or an offset such as `+02:00`, `+0200`, `-7` or `5.5`. `None`
    /// if there is no such zone.
    pub fn meant(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(name) = Self::names().find(|name| name.eq_ignore_ascii_case(text)) {
            return name.parse().ok();
        }
        if text.eq_ignore_ascii_case("z") {
            return Some(Self::UTC);
        }
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<i64>().ok()).flatten();
        let (hours, minutes) = match (digits.split_once(':'), digits.split_once('.')) {
            (Some((hours, minutes)), _) if minutes.len() == 2 => (number(hours)?, number(minutes)?),
            // Seconds of a distance, which are zero today.
            (Some((hours, rest)), _) => (number(hours)?, number(rest.strip_suffix(":00")?)?),
            (None, Some((hours, part))) => {
                let part = format!("{part:0<2}");
                (number(hours)?, number(part.get(..2)?)? * 60 / 100)
            }
            (None, None) if digits.len() == 4 => (number(digits.get(..2)?)?, number(digits.get(2..)?)?),
            (None, None) => (number(digits)?, 0),
        };
        let minutes = Some(minutes).filter(|minutes| *minutes < 60)?;
        let seconds = (hours.checked_mul(60)?.checked_add(minutes)?).checked_mul(60 * sign)?;
        let seconds = i32::try_from(seconds).ok().filter(|seconds| seconds.abs() <= 14 * 3_600)?;
        match seconds {
            0 => Some(Self::UTC),
            _ => FixedOffset::east_opt(seconds).map(Self::Offset),
        }
    }

    /// The distance of this many minutes ahead of UTC; `None` beyond fourteen hours.
    pub(super) fn east(minutes: i32) -> Option<FixedOffset> {
        FixedOffset::east_opt(minutes.checked_mul(60).filter(|seconds| seconds.abs() <= 14 * 3_600)?)
    }

    /// Local time of an instant.
    pub fn local(self, at: DateTime<Utc>) -> NaiveDateTime {
        match self {
            Self::Named(zone) => at.with_timezone(&zone).naive_local(),
            Self::Offset(offset) => at.with_timezone(&offset).naive_local(),
        }
    }

    /// Instants that have this local time: none if the clock is set forward over it, two if it is set back.
    pub fn instants(self, local: NaiveDateTime) -> LocalResult<DateTime<Utc>> {
        match self {
            Self::Named(zone) => zone.from_local_datetime(&local).map(|at| at.to_utc()),
            Self::Offset(offset) => offset.from_local_datetime(&local).map(|at| at.to_utc()),
        }
    }

    /// First instant of a local day: midnight, or the end of the gap if the clock skips midnight.
    pub fn day_start(self, day: NaiveDate) -> Option<DateTime<Utc>> {
        let midnight = day.and_time(NaiveTime::MIN);
        (0..24 * 60).find_map(|n| self.instants(midnight + TimeDelta::minutes(n)).earliest())
    }

    /// First instant of the local day that is this many days after the day of `at`.
    pub fn day_after(self, at: DateTime<Utc>, days: u64) -> Option<DateTime<Utc>> {
        self.day_start(self.local(at).date().checked_add_days(Days::new(days))?)
    }
}

impl FromStr for Zone {
    type Err = String;

    /// Parses an IANA name, or `+HH:MM` or `-HH:MM` up to fourteen hours.
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("invalid time zone `{text}`");
        if !text.starts_with(['+', '-']) {
            return text.parse().map(Self::Named).map_err(|_| bad());
        }
        let plain = text.len() == 6 && text.is_char_boundary(1) && text.as_bytes()[3] == b':';
        let digits = plain && text.bytes().enumerate().all(|(at, byte)| at == 0 || at == 3 || byte.is_ascii_digit());
        if !digits {
            return Err(bad());
        }
        let number = |range: std::ops::Range<usize>| text[range].parse::<i32>().map_err(|_| bad());
        let (hours, minutes) = (number(1..3)?, number(4..6)?);
        let seconds = (hours * 60 + minutes) * 60 * if text.starts_with('-') { -1 } else { 1 };
        let offset = FixedOffset::east_opt(seconds).filter(|_| minutes < 60 && seconds.abs() <= 14 * 3_600);
        offset.map(Self::Offset).ok_or_else(bad)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(zone) => f.write_str(zone.name()),
            Self::Offset(offset) => write!(f, "{offset}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn names_and_distances_are_zones_and_nothing_else_is() {
        each(["UTC", "Europe/Berlin", "+05:30", "-08:00", "+14:00"], |text| {
            assert_eq!(text.parse::<Zone>().map(|zone| zone.to_string()).as_deref(), Ok(text));
        });
        each(["", "Mars/Olympus", "+5:30", "+05:60", "+15:00", "+0530", "+05:3é", "+-5:30", "05:30"], |text| {
            assert!(text.parse::<Zone>().is_err(), "{text}");
        });
    }

    #[test]
    fn a_zone_is_found_by_what_people_write() {
        let cases = [
            ("utc", "UTC"),
            ("Z", "UTC"),
            ("europe/berlin", "Europe/Berlin"),
            ("ETC/GMT-2", "Etc/GMT-2"),
            ("+02:00", "+02:00"),
            ("+00:00", "UTC"),
            ("00:00", "UTC"),
            ("-08:00:00", "-08:00"),
            ("+0530", "+05:30"),
            ("-7", "-07:00"),
            ("5.5", "+05:30"),
            ("0", "UTC"),
        ];
        each(cases, |(text, zone)| {
            assert_eq!(Zone::meant(text).map(|zone| zone.to_string()).as_deref(), Some(zone), "{text}");
        });
        each(["", "+", "Mars/Olympus", "15", "+05:60", "1e3", "99999999999", "+02:00:01", "--2", "5.é"], |text| {
            assert_eq!(Zone::meant(text), None, "{text}");
        });
        let east = "+02:00".parse::<Zone>().expect("a zone");
        assert_eq!(east.in_database().map(|zone| zone.name()), Some("Etc/GMT-2"));
        assert_eq!("+05:30".parse::<Zone>().expect("a zone").in_database(), None);
    }

    #[test]
    fn a_zone_has_other_names() {
        let same = |zone: &str, other: &str| {
            let zone: Zone = zone.parse().expect("a zone");
            Zone::named_otherwise(other).is_some_and(|other| zone.has_rules_of(other))
        };
        let cases = [
            ("UTC", "Etc/UTC"),
            ("UTC", "+00:00"),
            ("UTC", "Z"),
            ("UTC", "utc"),
            ("UTC", "GMT"),
            ("UTC", "UTC+0"),
            ("Asia/Kolkata", "Asia/Calcutta"),
            ("Asia/Kolkata", "UTC+05:30"),
            ("Asia/Tokyo", "+0900"),
            ("Asia/Tokyo", "GMT+9"),
            ("+05:30", "Asia/Kolkata"),
            ("Europe/Berlin", "europe/berlin"),
        ];
        each(cases, |(zone, other)| {
            assert!(same(zone, other), "{zone} {other}");
        });
        let cases = [
            ("UTC", "Europe/London"),
            ("Europe/Berlin", "+01:00"),
            ("Europe/Berlin", "Europe/London"),
            ("America/New_York", "America/Havana"),
            ("UTC", ""),
            ("UTC", "+01:00"),
            ("UTC", "local"),
        ];
        each(cases, |(zone, other)| {
            assert!(!same(zone, other), "{zone} {other}");
        });
    }

    #[test]
    fn days_begin_where_the_clock_says() {
        let start = |zone: &str, day: &str| {
            let zone: Zone = zone.parse().expect("a zone");
            zone.day_start(day.parse().expect("a day")).expect("a start").to_rfc3339()
        };
        assert_eq!(start("Europe/Berlin", "2026-06-10"), "2026-06-09T22:00:00+00:00");
        assert_eq!(start("+05:30", "2026-06-10"), "2026-06-09T18:30:00+00:00");
        // Midnight itself is skipped here.
        assert_eq!(start("America/Sao_Paulo", "2018-11-04"), "2018-11-04T03:00:00+00:00");
    }
}
