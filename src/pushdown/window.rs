//! A range of time into the smallest window that the service can be asked for.

use chrono::{DateTime, Days, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use super::filter::Range;
use super::step::{SECOND, Step};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{End, WindowSpec};

/// How far the service's clock may be ahead of or behind ours (a range that ends "now" must not lose its newest rows).
const CLOCK_SKEW: TimeDelta = TimeDelta::minutes(10);

/// A window in the service's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) words: String,
    /// Whether it holds the instants of the range and no others.
    pub(super) exact: bool,
}

/// The smallest window that covers the range of the column `time` of table `table`.
///
/// # Errors
/// [`ErrorKind::Query`] for a range that is open to the past, where the profile knows no earliest day, and for one that
/// is longer than the service takes.
pub(super) fn window_of(spec: &WindowSpec, range: Range, time: &str, now: DateTime<Utc>) -> Result<Window> {
    let instant = |micros: Option<i64>| micros.and_then(DateTime::from_timestamp_micros);
    // Bounds are written in whole seconds, so they are widened to those.
    let second = Step::Micros(SECOND);
    let from = range.from.and_then(|at| second.floor(at));
    let to = range.to.and_then(|at| second.ceil(at));
    let (whole_start, whole_end) = (from == range.from, to == range.to);
    let Some(from) = instant(from).or(spec.earliest) else {
        return Err(Error::new(ErrorKind::Query, format!("nothing says where the range of `{time}` begins")).advice(
            format!("add a bound, such as {time} >= now() - INTERVAL '30 days', or duration = '{}'", spec.default),
        ));
    };
    let open = to.is_none();
    let to = match instant(to) {
        Some(to) => to,
        None => {
            let end = now + CLOCK_SKEW;
            instant(second.ceil(end.timestamp_micros())).unwrap_or(end)
        }
    };
    // A range that lies in the future still is one.
    let to = to.max(from + TimeDelta::seconds(1));
    if spec.takes_instants() {
        if let Some(longest) = spec.longest
            && to - from > longest.length()
        {
            return Err(too_long(time, &longest.to_string()));
        }
        // An end that belongs to the window takes in one instant more, which is dropped here.
        let ends = open || (whole_end && spec.end == End::Exclusive);
        return Ok(Window { words: spec.words_of(from, to), exact: range.exact && whole_start && ends });
    }
    let reach = (now - from).max(TimeDelta::zero()) + CLOCK_SKEW;
    match spec.reaching(reach) {
        Some(words) if spec.check_words(&words).is_ok() => Ok(Window { words, exact: false }),
        Some(_) => Err(too_long(time, &spec.longest.map(|longest| longest.to_string()).unwrap_or_default())),
        None => Err(too_long(time, &spec.forms())),
    }
}

fn too_long(time: &str, longest: &str) -> Error {
    Error::new(ErrorKind::Query, format!("the range of `{time}` is longer than the service takes ({longest})"))
        .advice("narrow it, or ask for its parts one by one")
}

/// The range widened to whole days of the zone, so that buckets of days are counted whole.
pub(super) fn whole_days(range: Range, zone: Tz) -> Range {
    let midnight = |micros: i64, days: u64| {
        let local = DateTime::from_timestamp_micros(micros)?.with_timezone(&zone);
        let day = local.date_naive().checked_add_days(Days::new(days))?;
        let midnight = day.and_time(NaiveTime::MIN);
        // Where the clock skips midnight, the day starts with the first instant after the gap.
        let start =
            (0..24 * 60).find_map(|n| zone.from_local_datetime(&(midnight + TimeDelta::minutes(n))).earliest())?;
        Some(start.timestamp_micros())
    };
    Range {
        from: range.from.and_then(|at| midnight(at, 0)),
        // The end is the start of the day after the last instant.
        to: range.to.and_then(|at| midnight(at - 1, 1)),
        exact: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn range(from: Option<&str>, to: Option<&str>) -> Range {
        let at = |text: &str| text.parse::<DateTime<Utc>>().expect("an instant").timestamp_micros();
        Range { from: from.map(at), to: to.map(at), exact: true }
    }

    fn now() -> DateTime<Utc> {
        "2026-07-01T12:00:00Z".parse().expect("an instant")
    }

    fn words(spec: &WindowSpec, range: Range) -> String {
        window_of(spec, range, "published_at", now()).expect("a window").words
    }

    #[test]
    fn a_range_is_said_in_whole_seconds_and_an_open_end_reaches_past_a_slow_clock() {
        let spec = Profile::v4().window;
        let closed = range(Some("2026-01-01T00:00:00.5Z"), Some("2026-02-01T00:00:00.000001Z"));
        assert_eq!(words(&spec, closed), "2026-01-01T00:00:00Z..2026-02-01T00:00:01Z");
        assert!(!window_of(&spec, closed, "t", now()).expect("a window").exact);
        let open = range(Some("2026-06-01T00:00:00Z"), None);
        assert_eq!(words(&spec, open), "2026-06-01T00:00:00Z..2026-07-01T12:10:00Z");
        assert!(window_of(&spec, open, "t", now()).expect("a window").exact);
    }

    #[test]
    fn a_range_open_to_the_past_is_closed_by_the_profile_or_refused() {
        let mut spec = Profile::v4().window;
        let open = range(None, Some("2026-06-01T00:00:00Z"));
        let error = window_of(&spec, open, "published_at", now()).expect_err("open");
        assert!(error.to_string().contains("published_at >= now()"), "{error}");
        spec.earliest = Some("2025-01-01T00:00:00Z".parse().expect("an instant"));
        assert_eq!(words(&spec, open), "2025-01-01T00:00:00Z..2026-06-01T00:00:00Z");
    }

    #[test]
    fn a_service_of_relative_periods_is_asked_for_the_smallest_that_covers() {
        let mut spec = Profile::v4().window;
        spec.absolute = None;
        assert_eq!(words(&spec, range(Some("2026-07-01T09:30:00Z"), None)), "3h");
        assert_eq!(words(&spec, range(Some("2026-07-01T08:55:00Z"), None)), "4h");
        spec.longest = Some("7d".to_owned().try_into().expect("a period"));
        let error = window_of(&spec, range(Some("2026-06-01T00:00:00Z"), None), "t", now()).expect_err("too long");
        assert!(error.to_string().contains("longer than the service takes (7d)"), "{error}");
    }

    #[test]
    fn days_are_widened_to_whole_ones_of_the_zone() {
        let zone: Tz = "Europe/Berlin".parse().expect("a zone");
        let widened = whole_days(range(Some("2026-03-29T10:00:00Z"), Some("2026-03-29T22:00:00Z")), zone);
        let expected = range(Some("2026-03-28T23:00:00Z"), Some("2026-03-29T22:00:00Z"));
        assert_eq!((widened.from, widened.to), (expected.from, expected.to));
    }
}
