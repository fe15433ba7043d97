//! Reads from a response its counts, its records, the window it covers and the days it counts by. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use super::asker::Reply;
use super::candidates::{NONSENSE, span};
use super::observations::Findings;
use super::scheduler::{Dimension, Outcome, Try};
use super::shape::{Path, at, instant, leaves, number};
use super::vocabulary::{self, plain};

/// UTC offset of Kolkata in microseconds: its days begin this long before midnight UTC.
pub(super) const KOLKATA: i64 = 19_800_000_000;
/// Microseconds per hour.
pub(super) const HOUR: i64 = 3_600_000_000;
/// Microseconds per day.
pub(super) const DAY: i64 = 86_400_000_000;

impl Findings {
    /// The overview's count of mentions.
    pub(super) fn count(&self, reply: &Reply) -> Option<u64> {
        number(reply.body.as_ref()?, self.counted.as_ref()?)
    }

    /// The mentions of a response.
    pub(super) fn rows<'r>(&self, reply: &'r Reply) -> Vec<&'r Value> {
        let found = self.mentions.as_ref().and_then(|path| at(reply.body.as_ref()?, path)?.as_array());
        found.map(|rows| rows.iter().filter(|row| row.is_object()).collect()).unwrap_or_default()
    }

    pub(super) fn has_rows(&self, reply: &Reply) -> bool {
        let path = self.mentions.as_ref();
        path.and_then(|path| at(reply.body.as_ref()?, path)).is_some_and(Value::is_array)
    }

    /// True if a response has the overview's numbers.
    pub(super) fn has_overview(&self, reply: &Reply) -> bool {
        let has = |path: &Path| reply.body.as_ref().is_some_and(|body| at(body, path).is_some());
        !reply.is_refusal()
            && self.overview.as_ref().is_some_and(has)
            && (self.counted.is_none() || self.count(reply).is_some())
    }

    /// Time and count of each timeline entry, in order of time.
    pub(super) fn timeline(&self, reply: &Reply) -> Vec<(Value, u64)> {
        let Some((path, series)) = &self.timeline else { return Vec::new() };
        let value = reply.body.as_ref().and_then(|body| at(body, path));
        let mut entries = value.map(|value| series.entries(value)).unwrap_or_default();
        entries.sort_by_key(|(time, _)| instant(time));
        entries
    }

    /// The sum of the timeline's counts; `None` without a timeline.
    pub(super) fn sum(&self, reply: &Reply) -> Option<u64> {
        let entries = self.timeline(reply);
        (!entries.is_empty()).then(|| entries.iter().map(|(_, count)| count).sum())
    }

    /// The window that a response covers, and true if it is exact: as the response states it, else as estimated from
    /// its timeline or its mentions.
    pub(super) fn extent(&self, reply: &Reply) -> Option<(i64, i64, bool)> {
        let body = reply.body.as_ref()?;
        let moments: Vec<(Path, i64)> = leaves(body)
            .into_iter()
            .filter_map(|(path, value)| Some((instant(value)?, path)))
            .map(|(at, path)| (path, at))
            .collect();
        let said =
            moments.iter().filter(|(path, _)| path.last().is_some_and(|name| starts(name))).find_map(|(path, from)| {
                let beside =
                    |other: &Path| other.len() == path.len() && other[..other.len() - 1] == path[..path.len() - 1];
                let end = moments.iter().find(|(other, to)| beside(other) && ends_named(other) && to > from)?;
                Some((*from, end.1, true))
            });
        said.or_else(|| {
            let starts = self.bucket_starts(reply);
            Some((*starts.first()?, starts.last()? + DAY, false))
        })
        .or_else(|| {
            // In ascending order, the first mention is close to the start of the window.
            let times = self.times(reply);
            let ascending = times.len() > 2 && times.is_sorted() && times.first() < times.last();
            Some((*times.first().filter(|_| ascending)?, reply.date()? + HOUR, false))
        })
    }

    /// True if a candidate for the window did what its name says and the nonsense value did not.
    pub(super) fn has_effect(&self, periods: &Dimension, tried: &Try, reply: &Reply, newest: Option<i64>) -> bool {
        let Some((from, to, exact)) = self.extent(reply) else { return false };
        let usual = match periods.outcome(NONSENSE) {
            Some(Outcome::Taken(reply)) => self.extent(reply),
            _ => None,
        };
        let hours = |micros: i64| micros / 3_600_000_000;
        if tried.label == NONSENSE {
            return false;
        }
        // A window that does not end now is not a relative one, and one that begins on the full hour or day has another
        // length later.
        let now = reply.date().or(newest);
        let ends_now = now.is_none_or(|now| if exact { (to - now).abs() <= HOUR || to >= now } else { to > now });
        let begins_with = exact && from % HOUR == 0 && to % HOUR != 0;
        if !tried.is_absolute() && (!ends_now || begins_with) {
            return false;
        }
        if let Some(expected) = vocabulary::hours(&tried.label) {
            // The same extent as for the nonsense value is no effect, unless another window was seen to have one.
            let as_usual = usual.is_some_and(|(since, until, _)| hours(until - since).abs_diff(hours(to - from)) <= 1);
            let other = || {
                periods.taken().any(|(other, reply)| {
                    let length = vocabulary::hours(&other.label).filter(|length| *length != expected);
                    length
                        .zip(self.extent(reply))
                        .is_some_and(|(length, (from, to, exact))| near(hours(to - from), length, exact))
                })
            };
            return near(hours(to - from), expected, exact) && (!as_usual || other());
        }
        if tried.is_absolute() {
            return newest.map(span).is_some_and(|span| self.lies_within(reply, span));
        }
        // A name of unknown length.
        usual.is_none_or(|(since, until, _)| hours(until - since).abs_diff(hours(to - from)) > 1)
    }

    /// True if a response covers this span, judged by its mentions and, to the day, its timeline. A window stated in
    /// the response may merely echo the request.
    fn lies_within(&self, reply: &Reply, (since, until): (i64, i64)) -> bool {
        let starts: Vec<i64> = self.bucket_starts(reply);
        let times = self.times(reply);
        let in_days = |at: &i64| (since - DAY..until + DAY).contains(at);
        let counted = self.sum(reply).is_some_and(|sum| sum > 0);
        match times.is_empty() {
            false => times.iter().all(|at| (since..=until).contains(at)) && starts.iter().all(in_days),
            true => counted && !starts.is_empty() && starts.iter().all(in_days),
        }
    }

    /// Start instants of the timeline entries.
    pub(super) fn bucket_starts(&self, reply: &Reply) -> Vec<i64> {
        self.timeline(reply).iter().filter_map(|(time, _)| instant(time)).collect()
    }

    /// Publication time of a mention.
    pub(super) fn time_of(&self, record: &Value) -> Option<i64> {
        self.columns.instant(self.columns.path("published_at")?, record)
    }

    /// Publication times of the mentions of a response.
    pub(super) fn times(&self, reply: &Reply) -> Vec<i64> {
        self.rows(reply).iter().filter_map(|row| self.time_of(row)).collect()
    }

    /// Length of the window that a response covers, in hours.
    pub(super) fn hours(&self, reply: &Reply, known: Option<i64>) -> Option<i64> {
        let (from, to, exact) = self.extent(reply)?;
        let hours = (to - from) / 3_600_000_000;
        if exact { Some(hours) } else { known.filter(|known| near(hours, *known, false)) }
    }

    /// Time by which the timeline's days begin before midnight UTC, in microseconds; `None` if the timeline does not
    /// show it.
    pub(super) fn days_begin(&self, reply: &Reply) -> Option<i64> {
        // The first entry may begin with the window rather than with a day.
        let entries = self.timeline(reply).into_iter().skip(1);
        // A date without a time does not show when the day begins.
        let entries = entries.filter(|(time, _)| time.as_str().is_none_or(|text| text.len() > 10));
        let begins: BTreeSet<i64> = entries.filter_map(|(time, _)| Some((-instant(&time)?).rem_euclid(DAY))).collect();
        begins.first().copied().filter(|_| begins.len() == 1)
    }
}

/// True if a length in hours is as expected: to the hour (daylight saving time) if exact, else to the days of a
/// timeline.
fn near(hours: i64, expected: i64, exact: bool) -> bool {
    let (less, more) = if exact { (1, 1) } else { (25, 50) };
    (expected - less..=expected + more).contains(&hours)
}

pub(super) fn starts(name: &str) -> bool {
    ["from", "since", "start", "begin", "windowfrom"].contains(&plain(name).as_str())
}

pub(super) fn ends_named(path: &Path) -> bool {
    path.last().is_some_and(|name| ["to", "until", "end", "finish", "windowto"].contains(&plain(name).as_str()))
}
