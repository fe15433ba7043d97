//! Reads from a response its counts, its records, the window it covers and the days it counts by. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::asker::Reply;
use super::candidates::{NONSENSE, span};
use super::observations::{Findings, Seen};
use super::scheduler::{Dimension, Outcome, Try};
use super::shape::{Path, at, instant, is_local, leaves, number, said};
use super::vocabulary::{self, plain};

/// UTC offset of Kolkata in microseconds: its days begin this long before midnight UTC.
pub(super) const KOLKATA: i64 = 19_800_000_000;
/// Microseconds per minute.
pub(super) const MINUTE: i64 = 60_000_000;
/// Difference of clocks, and time that a response takes.
const SLACK: i64 = 120_000_000;
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
            // Days may be those of another zone.
            let slack = if tried.label.ends_with("date") { 14 * HOUR } else { 0 };
            return newest.map(span).is_some_and(|span| self.lies_within(reply, span, slack));
        }
        // A name of unknown length.
        usual.is_none_or(|(since, until, _)| hours(until - since).abs_diff(hours(to - from)) > 1)
    }

    /// True if a response covers this span, judged by its mentions and, to the day, its timeline. A window stated in
    /// the response may merely echo the request.
    fn lies_within(&self, reply: &Reply, (since, until): (i64, i64), slack: i64) -> bool {
        let starts: Vec<i64> = self.bucket_starts(reply);
        let times = self.times(reply);
        let in_days = |at: &i64| (since - DAY..until + DAY).contains(at);
        let counted = self.sum(reply).is_some_and(|sum| sum > 0);
        match times.is_empty() {
            false => times.iter().all(|at| (since - slack..=until + slack).contains(at)) && starts.iter().all(in_days),
            true => counted && !starts.is_empty() && starts.iter().all(in_days),
        }
    }

    /// Start instants of the timeline entries.
    pub(super) fn bucket_starts(&self, reply: &Reply) -> Vec<i64> {
        self.timeline(reply).iter().filter_map(|(time, _)| instant(time)).collect()
    }

    /// Publication time of a mention.
    pub(super) fn time_of(&self, record: &Value) -> Option<i64> {
        let written = self.columns.instant(self.columns.path("published_at")?, record)?;
        let minutes = self.time_zone.filter(|_| self.has_local_time(record) == Some(true)).unwrap_or_default();
        Some(written - minutes * MINUTE)
    }

    /// True if the publication time of a mention is written without a zone.
    fn has_local_time(&self, record: &Value) -> Option<bool> {
        let path = self.columns.path("published_at")?;
        let value = at(record, path).filter(|value| value.is_string())?;
        let pattern = self.columns.patterns.iter().find(|(known, _)| known == path);
        Some(pattern.map_or_else(|| is_local(value), |(_, pattern)| !pattern.contains("%z")))
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

    /// Distances from UTC in minutes at which no time that came is later than the service's clock, nor before the window that was
    /// requested; for times without a zone. `None` if there are no such times.
    pub(super) fn zones_of_times(&self, seen: &[Seen]) -> Option<Vec<i64>> {
        let mut known: Option<Vec<i64>> = None;
        for Seen { reply, .. } in seen {
            let (rows, times) = (self.rows(reply), self.times(reply));
            let Some(now) = reply.date().filter(|_| !times.is_empty()) else { continue };
            if !rows.iter().all(|row| self.has_local_time(row) == Some(true)) {
                continue;
            }
            // Days of a name may be those of the calendar before the current one.
            let named = reply.asked.iter().any(|(_, value)| value.to_ascii_uppercase().contains("LAST"));
            let hours = self.rolling(reply).map(|hours| if named { hours + 24 } else { hours });
            let fits = |minutes: &i64| {
                let within = |written: &i64| {
                    let at = written - minutes * MINUTE;
                    at <= now + SLACK && hours.is_none_or(|hours| now - hours * HOUR - SLACK <= at)
                };
                times.iter().all(within)
            };
            known = Some(match known {
                Some(known) => known.into_iter().filter(fits).collect(),
                None => (-48..=56).map(|quarter| quarter * 15).filter(fits).collect(),
            });
        }
        known
    }

    /// Hours of the window that was requested, if it ends now and has the same length at any time of the day.
    fn rolling(&self, reply: &Reply) -> Option<i64> {
        let (_, asked) = reply.asked.iter().find(|(name, _)| name == "duration")?;
        let is_unit = |(_, template): &(char, String)| {
            let (head, tail) = template.split_once("{n}").unwrap_or((template, ""));
            asked.strip_prefix(head).is_some_and(|rest| rest.ends_with(tail))
        };
        // Names of days may mean those of the calendar.
        let named = asked.to_ascii_uppercase().contains("LAST") && !self.window.units.iter().any(is_unit);
        vocabulary::hours(asked).filter(|_| !named)
    }

    /// True if a request has no filter.
    pub(super) fn is_plain(&self, reply: &Reply) -> bool {
        const PLAIN: [&str; 6] = ["aid", "duration", "timezone", "dataFrom", "dataSize", "sortBy"];
        let other = |name: &str| self.is_flag(name) || self.with.iter().any(|(known, _)| known == name);
        reply.asked.iter().all(|(name, _)| PLAIN.contains(&name.as_str()) || other(name))
    }

    /// Windows that end now, with their beginnings and the number of their mentions, the smallest number first. `true` if they are
    /// a number of days.
    fn counted_windows(&self, seen: &[Seen]) -> Vec<(u64, i64, bool)> {
        let of = |seen: &Seen| {
            let reply = &seen.reply;
            let hours = self.rolling(reply).filter(|_| self.is_plain(reply))?;
            let count = self.count(reply)?;
            Some((count, reply.date()? - hours * HOUR, hours % 24 == 0))
        };
        let mut found: Vec<(u64, i64, bool)> = seen.iter().filter_map(of).collect();
        found.sort_unstable();
        found.dedup_by_key(|(count, ..)| *count);
        found
    }

    /// Times of the longest page of the newest mentions, newest first, as they are written.
    fn newest_times(&self, seen: &[Seen]) -> Option<Vec<i64>> {
        let newest = |seen: &Seen| {
            let times = self.times(&seen.reply);
            let asked = seen.reply.asked.iter().find(|(name, _)| name == "duration");
            let ends_now = asked.is_none_or(|(_, words)| vocabulary::hours(words).is_some());
            let all = seen.size.is_some() && ends_now && self.is_plain(&seen.reply);
            (all && times.is_sorted_by(|a, b| a >= b)).then_some(times)
        };
        seen.iter().filter_map(newest).max_by_key(Vec::len)
    }

    /// The edges of windows that end now, by their numbers of mentions and the times of the newest ones.
    pub(super) fn edges(&self, seen: &[Seen]) -> Vec<Edge> {
        let times = self.newest_times(seen).unwrap_or_default();
        let of = |(count, start, days): (u64, i64, bool)| {
            let count = usize::try_from(count).ok()?;
            // An empty window is younger than all mentions.
            let inside = count.checked_sub(1).map_or(Some(start + 2 * DAY), |last| times.get(last).copied());
            Edge::new(start, inside?, *times.get(count)?, days)
        };
        self.counted_windows(seen).into_iter().filter_map(of).collect()
    }

    /// The window that ends now whose number of mentions tells these distances from UTC apart best; `None` if none does.
    pub(super) fn telling_window(&self, seen: &[Seen], zones: &[i64]) -> Option<String> {
        /// Numbers of a unit that are tried.
        const NUMBERS: i64 = 60;
        let times = self.newest_times(seen)?;
        let now = seen.iter().rev().find_map(|seen| seen.reply.date())?;
        let (first, most) = (zones.iter().min()?, zones.len());
        let windows = self.window.units.iter().flat_map(|(unit, template)| {
            let hours = match unit {
                'h' => 1,
                'd' => 24,
                _ => 168,
            };
            (1..=NUMBERS).map(move |n| (n * hours, template.replace("{n}", &n.to_string())))
        });
        let counted = |start: i64| times.iter().filter(|at| **at >= start).count();
        let worth = |(hours, words): (i64, String)| {
            let start = now - hours * HOUR;
            // All mentions that may be in the window came, and some before it.
            if times.last().is_none_or(|oldest| start + first * MINUTE <= *oldest) {
                return None;
            }
            let mut groups: BTreeMap<usize, usize> = BTreeMap::new();
            zones.iter().for_each(|minutes| *groups.entry(counted(start + minutes * MINUTE)).or_default() += 1);
            Some((groups.into_values().max()?, hours, words))
        };
        windows.filter_map(worth).min().filter(|(largest, ..)| *largest < most).map(|(.., words)| words)
    }

    /// Distances from UTC in minutes at which the days of the timeline have as many mentions as came: of pages that are sorted
    /// by time and have all mentions of two days or more, and of timelines without mentions. `None` if there are none.
    pub(super) fn day_shifts(&self, seen: &[Seen]) -> Option<Vec<i64>> {
        let zone = |value: &String| ["UTC", "+00:00", "UTC+00:00", "0"].contains(&value.as_str());
        let pages = seen.iter().filter(|seen| {
            let in_utc = seen.reply.asked.iter().all(|(name, value)| name != "timezone" || zone(value));
            let first = seen.size.is_some() || !self.has_rows(&seen.reply);
            first && self.is_plain(&seen.reply) && in_utc
        });
        let mut known: Option<Vec<i64>> = None;
        let longest = self.newest_times(seen).unwrap_or_default();
        for Seen { reply, .. } in pages {
            let days = self.timeline(reply);
            // Of a response without mentions, those of the longest page.
            let times = if self.has_rows(reply) { self.times(reply) } else { longest.clone() };
            if times.len() < 10 || !times.is_sorted_by(|a, b| a >= b) || days.len() < 3 {
                continue;
            }
            // The window may begin within its first day.
            let days = &days[1..];
            let (oldest, newest) = (times[times.len() - 1], times[0]);
            let days: Vec<(i64, u64)> = days.iter().filter_map(|(day, count)| Some((instant(day)?, *count))).collect();
            let fits = |minutes: &i64| {
                let start = |day: i64| day - minutes * MINUTE;
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

/// The edge of a window: its beginning, the oldest time in it, and the next older one, as they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge {
    start: i64,
    inside: i64,
    outside: i64,
}

impl Edge {
    /// `None` for an edge that shows nothing: between equal times, or at a midnight, where a window of calendar days begins.
    pub(super) fn new(start: i64, inside: i64, outside: i64, days: bool) -> Option<Self> {
        let midnight = days && inside.div_euclid(DAY) != outside.div_euclid(DAY);
        (outside < inside && !midnight).then_some(Self { start, inside, outside })
    }

    /// True if times are so many minutes ahead of UTC.
    pub(super) fn fits(&self, minutes: i64) -> bool {
        let start = self.start + minutes * MINUTE;
        self.outside <= start + SLACK && start - SLACK <= self.inside
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mentions_at_the_edge_of_a_window_show_the_zone_of_their_times() {
        let at = |text: &str| instant(&Value::from(text)).expect("an instant");
        let edge = Edge::new(at("2026-06-01T12:00:00Z"), at("2026-06-01 15:20:00"), at("2026-06-01 14:40:00"), true);
        let fitting: Vec<i64> = (-12..=14).map(|hour| hour * 60).filter(|m| edge.is_some_and(|e| e.fits(*m))).collect();
        assert_eq!(fitting, [180]);
        let midnight =
            Edge::new(at("2026-06-01T12:00:00Z"), at("2026-06-02 00:10:00"), at("2026-06-01 23:40:00"), true);
        assert_eq!(midnight, None);
    }
}
