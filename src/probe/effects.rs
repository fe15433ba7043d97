//! Reads from a response its counts, its records, the window it covers and the days it counts by. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use super::asker::Reply;
use super::candidates::{NONSENSE, span};
use super::observations::{Findings, Seen};
use super::scheduler::{Dimension, Outcome, Try};
use super::shape::{Path, at, instant, leaves, number, said};
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

    /// Identity of a mention: its id, or else all of its values except times.
    pub(super) fn name_of(&self, record: &Value) -> String {
        let of = |path: &Path| at(record, path).and_then(said);
        let two = || self.id_of_two.as_ref().and_then(|two| Some(format!("{}:{}", of(&two[0])?, of(&two[1])?)));
        self.columns.path("id").and_then(of).or_else(two).unwrap_or_else(|| {
            let values = leaves(record).into_iter().filter(|(_, value)| instant(value).is_none());
            values.map(|(path, value)| format!("{}={value};", path.concat())).collect()
        })
    }

    /// True if a parameter requests mentions.
    pub(super) fn is_flag(&self, parameter: &str) -> bool {
        matches!(&self.asked, Some(super::observations::Asked::Flag(name, _)) if name == parameter)
    }

    /// True if all mentions of a response have the value of a filter; `tried` has the name of its column.
    pub(super) fn is_filtered(&self, tried: &Try, reply: &Reply) -> bool {
        let (Some(path), Some((_, wanted))) = (self.columns.path(&tried.label), tried.pairs.first()) else {
            return false;
        };
        let rows = self.rows(reply);
        rows.len() >= 2 && rows.iter().all(|row| at(row, path).and_then(said).as_ref() == Some(wanted))
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
        let expected = vocabulary::hours(&tried.label);
        // A number of days of the calendar, today included, has no constant length, but a least one.
        let calendar = expected.filter(|_| begins_with && from % (HOUR / 4) == 0).is_some_and(|expected| {
            let whole = expected % 24 == 0 && tried.label.contains(|c: char| c.is_ascii_digit());
            whole && (expected - 24..expected).contains(&hours(to - from))
        });
        if !tried.is_absolute() && (!ends_now || (begins_with && !calendar)) {
            return false;
        }
        if calendar {
            return true;
        }
        if let Some(expected) = expected {
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

    /// Hours of the days that a name has, if the response covers about as many.
    pub(super) fn days_in(&self, name: &str, reply: &Reply, newest: Option<i64>) -> Option<i64> {
        let (from, to, exact) = self.extent(reply)?;
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        let known = digits.parse::<i64>().ok().filter(|days| (1..=400).contains(days)).map(|days| days * 24);
        let (hours, since) = ((to - from) / HOUR, (reply.date().or(newest)? - from) / HOUR);
        // Without a number, the whole days but the first one are a safe length.
        let safe = (since / 24 - 1) * 24;
        known.filter(|known| near(hours, *known, exact)).or((safe > 0 && !exact).then_some(safe))
    }

    /// Length in hours that the window of a response has at least, at any time of the day. `known`: the length that its name
    /// says.
    pub(super) fn lasting(&self, reply: &Reply, known: Option<i64>, newest: Option<i64>) -> Option<i64> {
        let (from, to, exact) = self.extent(reply)?;
        let hours = (to - from) / HOUR;
        if exact {
            // One that begins with a day of the calendar is a day shorter at the beginning of a day.
            let calendar = from % HOUR == 0 && to % HOUR != 0;
            let days = hours / 24 * 24;
            return if calendar { Some(days).filter(|days| *days > 0) } else { Some(hours) };
        }
        let known = known.filter(|known| near(hours, *known, false))?;
        // Its first day would begin before its own beginning, unless it begins with a day.
        let now = reply.date().or(newest)?;
        let since = (now - from) / HOUR;
        let least = if since < known { since / 24 * 24 } else { known };
        Some(least).filter(|least| *least > 0)
    }

    /// Distances from UTC in minutes at which all times that came lie in the windows that were requested, by the service's
    /// clock; for times without a zone. `None` if there are no such times, or none in a window of known length.
    pub(super) fn zones_of_times(&self, seen: &[Seen]) -> Option<Vec<i64>> {
        /// Difference of clocks, and time that a response takes.
        const SLACK: i64 = 120_000_000;
        let path = self.columns.path("published_at")?;
        let local = |record: &Value| {
            let value = at(record, path).and_then(Value::as_str)?;
            Some(!value.ends_with('Z') && chrono::DateTime::parse_from_rfc3339(value).is_err())
        };
        let mut known: Option<Vec<i64>> = None;
        for Seen { reply, .. } in seen {
            let asked = reply.asked.iter().find(|(name, _)| name == "duration").map(|(_, value)| value);
            // Days of the calendar begin before their length.
            let hours = asked
                .filter(|value| !value.to_ascii_uppercase().contains("LAST"))
                .and_then(|value| vocabulary::hours(value));
            let (Some(hours), Some(now)) = (hours, reply.date()) else { continue };
            let rows = self.rows(reply);
            let times = self.times(reply);
            if times.is_empty() || !rows.iter().all(|row| local(row) == Some(true)) {
                continue;
            }
            let fits = |minutes: &i64| {
                let within =
                    |at: &i64| (now - hours * HOUR - SLACK..=now + SLACK).contains(&(at - minutes * 60_000_000));
                times.iter().all(within)
            };
            let fitting = (-48..=56).map(|quarter| quarter * 15).filter(fits);
            known = Some(match known {
                Some(known) => known.into_iter().filter(fits).collect(),
                None => fitting.collect(),
            });
        }
        known
    }

    /// Distances from UTC in minutes at which the days of the timeline have as many mentions as came: of pages that are sorted
    /// by time and have all mentions of two days or more. `None` if there are none.
    pub(super) fn day_shifts(&self, seen: &[Seen]) -> Option<Vec<i64>> {
        const PLAIN: [&str; 6] = ["aid", "duration", "timezone", "dataFrom", "dataSize", "sortBy"];
        let plain = |name: &String| {
            PLAIN.contains(&name.as_str()) || self.is_flag(name) || self.with.iter().any(|(known, _)| known == name)
        };
        let zone = |value: &String| ["UTC", "+00:00", "UTC+00:00", "0"].contains(&value.as_str());
        let pages = seen.iter().filter(|seen| {
            let asked = &seen.reply.asked;
            seen.size.is_some() && asked.iter().all(|(name, value)| plain(name) && (name != "timezone" || zone(value)))
        });
        let mut known: Option<Vec<i64>> = None;
        for Seen { reply, .. } in pages {
            let (times, days) = (self.times(reply), self.timeline(reply));
            if times.len() < 10 || !times.is_sorted_by(|a, b| a >= b) || days.len() < 3 {
                continue;
            }
            let (oldest, newest) = (times[times.len() - 1], times[0]);
            let days: Vec<(i64, u64)> = days.iter().filter_map(|(day, count)| Some((instant(day)?, *count))).collect();
            let fits = |minutes: &i64| {
                let start = |day: i64| day - minutes * 60_000_000;
                let whole = days.iter().filter(|(day, _)| start(*day) > oldest && start(*day) + DAY <= newest);
                let whole: Vec<&(i64, u64)> = whole.collect();
                let counted =
                    |day: i64| times.iter().filter(|at| (start(day)..start(day) + DAY).contains(at)).count() as u64;
                (whole.len() >= 2).then(|| whole.iter().all(|(day, count)| counted(*day) == *count))
            };
            let candidates: Vec<i64> = (-24..=28).map(|half| half * 30).collect();
            if fits(&0).is_none() {
                continue;
            }
            let fitting: Vec<i64> = candidates.into_iter().filter(|minutes| fits(minutes) == Some(true)).collect();
            known = Some(match known {
                Some(known) => known.into_iter().filter(|minutes| fitting.contains(minutes)).collect(),
                None => fitting,
            });
        }
        known
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
