//! Proof that the buckets of a timeline are the days of a zone, and that they count mentions of the window. For a long
//! window, a service may return longer buckets. It may also return days of another zone or of another window than requested.

use chrono::{DateTime, TimeDelta, Utc};

use crate::profile::Zone;

/// Start of a bucket and its end, if the response has it, in microseconds since 1970.
pub(super) type Bucket = (i64, Option<i64>);

/// True if each bucket is a day of the zone, or a part of one at an end of the window. `window` has the instants between
/// which mentions were counted, as far as they are known.
pub(super) fn are_days(zone: Zone, mut buckets: Vec<Bucket>, window: (Option<i64>, Option<i64>)) -> bool {
    buckets.sort_unstable();
    let day_after = |at: i64, days| {
        let at = DateTime::from_timestamp_micros(at)?;
        zone.day_after(at, days).map(|day| day.timestamp_micros())
    };
    let following = buckets.iter().skip(1).map(|(start, _)| Some(*start)).chain([None]);
    buckets.iter().zip(following).all(|((start, end), following)| {
        let begins = day_after(*start, 0) == Some(*start) || window.0 == Some(*start);
        let Some(next) = day_after(*start, 1) else { return false };
        let apart = following.is_none_or(|following| following >= next);
        let ends = match (end, following) {
            (Some(end), _) => start < end && *end <= next,
            // Buckets without an end last until the next one, or to the end of the window.
            (None, Some(following)) => following == next,
            (None, None) => window.1.is_some_and(|to| to <= next),
        };
        begins && apart && ends
    })
}

/// The start of a bucket that counts mentions and lies outside the window, and its count. A bucket without an end lasts until
/// the next one begins. `days`: set if the buckets are known to be the days of the requested zone; others may be labelled in
/// another one.
pub(super) fn outside(
    mut buckets: Vec<(Bucket, i64)>,
    (from, to): (DateTime<Utc>, DateTime<Utc>),
    days: bool,
) -> Option<(DateTime<Utc>, i64)> {
    buckets.sort_unstable();
    let slack = if days { TimeDelta::zero() } else { Zone::FARTHEST };
    let (from, to) = ((from - slack).timestamp_micros(), (to + slack).timestamp_micros());
    let following = buckets.iter().skip(1).map(|((start, _), _)| Some(*start)).chain([None]);
    let outside = buckets.iter().zip(following).find(|(((start, end), count), following)| {
        *count != 0 && (*start >= to || end.or(*following).is_some_and(|end| end <= from))
    });
    outside.and_then(|(((start, _), count), _)| Some((DateTime::from_timestamp_micros(*start)?, *count)))
}

/// The first of these instants that no bucket counts.
pub(super) fn uncounted(mut buckets: Vec<(Bucket, i64)>, times: &[i64]) -> Option<DateTime<Utc>> {
    buckets.sort_unstable();
    let uncounted = times.iter().find(|time| {
        let bucket = buckets.partition_point(|((start, _), _)| start <= *time).checked_sub(1);
        match bucket.and_then(|at| buckets.get_mut(at)) {
            Some(((_, end), left)) if end.is_none_or(|end| **time < end) => {
                *left -= 1;
                *left < 0
            }
            _ => true,
        }
    });
    uncounted.and_then(|time| DateTime::from_timestamp_micros(*time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<DateTime<Utc>>().expect("an instant").timestamp_micros()
    }

    fn bucket(start: &str, end: &str) -> Bucket {
        (at(start), (!end.is_empty()).then(|| at(end)))
    }

    #[test]
    fn only_days_of_the_zone_are_days() {
        let berlin: Zone = "Europe/Berlin".parse().expect("a zone");
        let (utc, open) = (Zone::UTC, (None, None));
        let june =
            |from: u32, to: u32| bucket(&format!("2026-06-{from:02}T00:00:00Z"), &format!("2026-06-{to:02}T00:00:00Z"));
        assert!(are_days(utc, vec![june(3, 4), june(1, 2), june(2, 3)], open), "in any order");
        assert!(are_days(utc, vec![june(1, 2), june(9, 10)], open), "days without mentions may be left out");
        assert!(!are_days(utc, vec![june(1, 8), june(8, 15)], open), "weeks");
        assert!(!are_days(utc, vec![june(1, 2), june(1, 2)], open), "a day twice");
        assert!(!are_days(berlin, vec![june(1, 2), june(2, 3)], open), "days of another zone");
        let clock_set_back = bucket("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z");
        assert!(are_days(berlin, vec![clock_set_back], open), "a day of 25 hours");
        let clipped = [bucket("2026-06-01T05:00:00Z", "2026-06-02T00:00:00Z"), june(2, 3)];
        assert!(!are_days(utc, clipped.to_vec(), open));
        assert!(are_days(utc, clipped.to_vec(), (Some(at("2026-06-01T05:00:00Z")), None)), "as the window begins");
    }

    #[test]
    fn buckets_without_an_end_last_until_the_next_one() {
        let starts = |days: &[u32]| days.iter().map(|day| bucket(&format!("2026-06-{day:02}T00:00:00Z"), "")).collect();
        let until = |to: &str| (None, Some(at(to)));
        assert!(are_days(Zone::UTC, starts(&[1, 2, 3]), until("2026-06-03T12:00:00Z")));
        assert!(!are_days(Zone::UTC, starts(&[1, 2, 3]), until("2026-06-05T00:00:00Z")), "the last may be longer");
        assert!(!are_days(Zone::UTC, starts(&[1, 8]), until("2026-06-09T00:00:00Z")), "weeks, or days left out");
        assert!(!are_days(Zone::UTC, starts(&[1]), (None, None)));
        assert!(are_days(Zone::UTC, Vec::new(), (None, None)));
    }

    #[test]
    fn mentions_of_days_outside_the_window_are_found_in_any_zone_of_labels() {
        let window =
            ("2026-06-02T05:00:00Z".parse().expect("an instant"), "2026-06-04T05:00:00Z".parse().expect("one"));
        let days = |of: &[(u32, i64)]| -> Vec<(Bucket, i64)> {
            of.iter().map(|(day, count)| (bucket(&format!("2026-06-{day:02}T00:00:00Z"), ""), *count)).collect()
        };
        let found = |of: &[(u32, i64)]| outside(days(of), window, false).map(|(_, count)| count);
        assert_eq!(found(&[(2, 1), (3, 1), (4, 1)]), None);
        assert_eq!(found(&[(1, 0), (2, 1), (3, 1), (4, 1), (5, 0)]), None, "days without mentions may be there");
        assert_eq!(found(&[(4, 1), (30, 0)]), None);
        assert_eq!(found(&[(1, 7), (2, 1)]), None, "a label of another zone");
        assert_eq!(found(&[(5, 7), (3, 1)]), Some(7), "in any order");
        assert_eq!(outside(days(&[(1, 7), (2, 1)]), window, true).map(|(_, count)| count), Some(7), "of the zone");
        let before = [(bucket("2026-05-31T00:00:00Z", "2026-06-01T00:00:00Z"), 7)];
        assert_eq!(outside(before.to_vec(), window, false).map(|(_, count)| count), Some(7), "with an end");
        let weeks = [(bucket("2026-05-28T00:00:00Z", ""), 7), (bucket("2026-06-04T00:00:00Z", ""), 1)];
        assert_eq!(outside(weeks.to_vec(), window, false), None, "a week");
        let alone = [(bucket("2026-05-01T00:00:00Z", ""), 7)];
        assert_eq!(outside(alone.to_vec(), window, false), None, "a month, perhaps");
    }

    #[test]
    fn each_mention_is_counted_by_the_bucket_of_its_instant() {
        let days: Vec<(Bucket, i64)> =
            vec![(bucket("2026-06-02T00:00:00Z", ""), 2), (bucket("2026-06-01T00:00:00Z", ""), 0)];
        let times = |times: &[&str]| times.iter().map(|time| at(time)).collect::<Vec<i64>>();
        let found = |of: &[&str]| uncounted(days.clone(), &times(of)).map(|time| time.to_rfc3339());
        assert_eq!(found(&["2026-06-02T10:00:00Z", "2026-06-02T11:00:00Z"]), None);
        assert!(found(&["2026-06-02T10:00:00Z"; 3]).is_some(), "more than are counted");
        assert!(found(&["2026-06-01T10:00:00Z"]).is_some());
        assert!(found(&["2026-05-31T10:00:00Z"]).is_some(), "before all of them");
    }
}
