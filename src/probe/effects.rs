//! Reads from a response its counts, its records, the window it covers and the days it counts by. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::asker::Reply;
use super::candidates::{NONSENSE, span};
use super::observations::{Absolute, Findings, Form, Seen};
use super::scheduler::{Dimension, Outcome, Try};
use super::shape::{Path, Type, at, instant, is_local, leaves, number, said};
use super::vocabulary::{self, plain};
use super::zones;
use crate::profile::Zone;

/// UTC offset of Kolkata in microseconds: its days begin this long before midnight UTC.
pub(super) const KOLKATA: i64 = 19_800_000_000;
/// Difference of clocks, and time that a response takes.
const SLACK: i64 = 120_000_000;
/// Microseconds per minute.
pub(super) const MINUTE: i64 = 60_000_000;
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
        matches!(&self.asked, Some(super::observations::MentionsParameter::Flag(name, _)) if name == parameter)
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
        let control: Option<&Reply> = match periods.outcome(NONSENSE) {
            Some(Outcome::Taken(reply)) => Some(reply.as_ref()),
            _ => None,
        };
        if tried.is_absolute() {
            // Days may be those of another zone.
            let slack = if tried.label.ends_with("date") { 14 * HOUR } else { 0 };
            let is_within = newest.map(span).is_some_and(|span| self.lies_within(reply, span, slack));
            let times = self.times(reply);
            return is_within && (times.is_empty() || control.is_none_or(|control| self.times(control) != times));
        }
        let Some((from, to, exact)) = self.extent(reply) else { return false };
        let usual = control.and_then(|control| self.extent(control));
        let hours = |micros: i64| micros / 3_600_000_000;
        if tried.label == NONSENSE {
            return false;
        }
        // A window that does not end now is not a relative one, and one that begins on the full hour or day has another
        // length later.
        let now = reply.date().or(newest);
        let ends_now = now.is_none_or(|now| if exact { (to - now).abs() <= HOUR || to >= now } else { to > now });
        let begins_with = exact && from % HOUR == 0 && to % HOUR != 0;
        let expected = tried.hours();
        // A number of days of the calendar, today included, has no constant length, but a least one.
        let calendar = expected.filter(|_| begins_with && from % (HOUR / 4) == 0).is_some_and(|expected| {
            let whole = expected % 24 == 0 && tried.label.contains(|c: char| c.is_ascii_digit());
            whole && (expected - 24..expected).contains(&hours(to - from))
        });
        if !ends_now || (begins_with && !calendar) {
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
                    let length = other.hours().filter(|length| *length != expected);
                    length
                        .zip(self.extent(reply))
                        .is_some_and(|(length, (from, to, exact))| near(hours(to - from), length, exact))
                })
            };
            // So is that of a shorter window.
            let as_shorter = periods.taken().any(|(other, reply)| {
                let shorter = other.hours().is_some_and(|length| length < expected);
                shorter && self.extent(reply).is_some_and(|(since, until, _)| hours(until - since) == hours(to - from))
            });
            return near(hours(to - from), expected, exact) && (!(as_usual || as_shorter) || other());
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

    /// True if the times in a field of all mentions lie within the windows that were requested; `None` if some have none, or if
    /// there are no windows with known bounds.
    pub(super) fn fits_windows(&self, path: &Path, seen: &[Seen]) -> Option<bool> {
        let mut fits = None;
        for Seen { reply, .. } in seen {
            let rows = self.rows(reply);
            let Some((from, to)) = self.requested(reply).filter(|_| !rows.is_empty()) else { continue };
            if rows.iter().any(|row| self.has_local(path, row) == Some(true) && self.time_zone.is_none()) {
                continue;
            }
            let times: Option<Vec<i64>> = rows.iter().map(|row| self.time_at(path, row)).collect();
            let within = times?.iter().all(|at| (from - SLACK..=to + SLACK).contains(at));
            fits = Some(fits.unwrap_or(true) && within);
        }
        fits
    }

    /// The ends of the absolute window that a request asks for, as they are written.
    pub(super) fn ends_asked<'r>(&self, absolute: &Absolute, reply: &'r Reply) -> Option<(&'r str, &'r str)> {
        let of =
            |parameter: &str| reply.asked.iter().find(|(name, _)| name == parameter).map(|(_, value)| value.as_str());
        match &absolute.form {
            // Without the parameters that go with them, they are no window.
            Form::Separate(since, until) => {
                let has = |pair: &(String, String)| reply.asked.contains(pair);
                of(since).zip(of(until)).filter(|_| self.window.with.iter().all(has))
            }
            Form::Template(template) => {
                let separator = template.trim_start_matches("{from}").trim_end_matches("{to}");
                of("duration").and_then(|words| words.split_once(separator))
            }
        }
    }

    /// The absolute window that a request asks for, if it is one of instants.
    fn absolute(&self, reply: &Reply) -> Option<(i64, i64)> {
        let of =
            |parameter: &str| reply.asked.iter().find(|(name, _)| name == parameter).map(|(_, value)| value.as_str());
        let moment = |text: &str| {
            let number = text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from);
            super::candidates::shape_of_instant(text).filter(|how| !["date", "local"].contains(how))?;
            instant(&number)
        };
        let absolute = self.window.absolute.as_ref()?;
        let (from, to) = self.ends_asked(absolute, reply)?;
        // Those in another form had no effect.
        if [from, to].iter().any(|end| super::candidates::shape_of_instant(end) != Some(absolute.instants)) {
            return None;
        }
        if absolute.instants != "date" {
            return moment(from).zip(moment(to));
        }
        // Days of the requested zone, if the timeline was seen to follow it, or of UTC: windows need not do as the timeline does.
        let follows = self.zone.as_ref().is_some_and(|zone| zone.kind != "ignored");
        let zone = Zone::named_otherwise(of("timezone").filter(|_| follows)?)?;
        let day = |text: &str| instant(&Value::from(text));
        let (first, last) = (day(from)?, day(to)? + DAY);
        let begins = zones::day_start(zone, first).zip(zones::day_start(Zone::UTC, first));
        let ends = zones::day_start(zone, last).zip(zones::day_start(Zone::UTC, last));
        begins.zip(ends).map(|((here, there), (end_here, end_there))| (here.min(there), end_here.max(end_there)))
    }

    /// The window that a request asks for, if it is one of instants or one that ends now.
    fn requested(&self, reply: &Reply) -> Option<(i64, i64)> {
        let of =
            |parameter: &str| reply.asked.iter().find(|(name, _)| name == parameter).map(|(_, value)| value.as_str());
        if let Some(ends) = self.absolute(reply) {
            return Some(ends);
        }
        // Names may mean days of the calendar.
        let counted =
            |(_, template): &(char, String)| of("duration").is_some_and(|words| vocabulary::is_of(words, template));
        let hours = self.rolling(reply).filter(|_| self.window.units.iter().any(counted))?;
        Some((reply.date()? - hours * HOUR, reply.date()?))
    }

    /// Publication time of a mention, or the time that windows refer to.
    pub(super) fn time_of(&self, record: &Value) -> Option<i64> {
        self.time_at(self.columns.path(self.time_name())?, record)
    }

    /// The time in a field of a mention.
    fn time_at(&self, path: &Path, record: &Value) -> Option<i64> {
        let written = self.columns.instant(path, record)?;
        let zone = self.time_zone.filter(|_| self.has_local(path, record) == Some(true));
        let Some(zone) = zone else { return Some(written) };
        // A time that is another instant in one of the zones is not known.
        let instant = zones::instant(zone, written);
        self.other_time_zones.iter().all(|other| zones::instant(*other, written) == instant).then_some(instant)
    }

    /// True if the publication time of a mention is written without a zone.
    pub(super) fn has_local_time(&self, record: &Value) -> Option<bool> {
        self.has_local(self.columns.path(self.time_name())?, record)
    }

    /// True if the time in a field of a mention is written without a zone.
    pub(super) fn has_local(&self, path: &Path, record: &Value) -> Option<bool> {
        let value = at(record, path).filter(|value| value.is_string())?;
        let pattern = self.columns.patterns.iter().find(|(known, _)| known == path);
        Some(pattern.map_or_else(|| is_local(value), |(_, pattern)| !pattern.contains("%z")))
    }

    /// True if a mention of both responses has another time in each, written without a zone.
    pub(super) fn times_differ(&self, one: &Reply, other: &Reply) -> bool {
        let (Some(id), Some(time)) = (self.columns.path("id"), self.columns.path(self.time_name())) else {
            return false;
        };
        let written = |reply| -> BTreeMap<String, String> {
            let local = self.rows(reply).into_iter().filter(|row| self.has_local(time, row) == Some(true));
            local.filter_map(|row| Some((said(at(row, id)?)?, said(at(row, time)?)?))).collect()
        };
        let other = written(other);
        written(one).iter().any(|(id, time)| other.get(id).is_some_and(|later| later != time))
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

    /// Zones in which no time that came is later than the service's clock, nor before the window that was requested, and in which
    /// windows begin between the times that their numbers of mentions say; for times without a zone. `None` if there are no such
    /// times.
    pub(super) fn zones_of_times(&self, seen: &[Seen], among: &[Zone]) -> Option<Vec<Zone>> {
        let mut known: Option<Vec<Zone>> = None;
        let all: BTreeSet<i64> =
            seen.iter().filter(|one| self.is_plain(&one.reply)).flat_map(|one| self.times(&one.reply)).collect();
        for one in seen {
            let reply = &one.reply;
            let (rows, times) = (self.rows(reply), self.times(reply));
            let Some(now) = reply.date().filter(|_| !times.is_empty()) else { continue };
            if !rows.iter().all(|row| self.has_local_time(row) == Some(true)) {
                continue;
            }
            // Days of a name may be those of the calendar before the current one.
            let named = reply.asked.iter().any(|(_, value)| value.to_ascii_uppercase().contains("LAST"));
            let hours = self.rolling(reply).map(|hours| if named { hours + 24 } else { hours });
            // Of an absolute window without a filter, all that came lie within, and all others outside.
            let ends = self.absolute(reply);
            let by_day = self.window.absolute.as_ref().is_some_and(|absolute| absolute.instants == "date");
            let complete =
                one.size.is_some_and(|size| (rows.len() as u64) < size) && self.is_unfiltered(reply) && !by_day;
            let fits = |zone: &Zone| {
                let latest = zones::local(*zone, now + SLACK);
                let earliest = hours.map(|hours| zones::local(*zone, now - hours * HOUR - SLACK));
                let spans = ends.is_none_or(|(from, to)| {
                    let (from, to) = (zones::local(*zone, from), zones::local(*zone, to));
                    let other = |at: &i64| from < *at && *at < to && !times.contains(at);
                    times.iter().all(|at| (from..=to).contains(at)) && !(complete && all.iter().any(other))
                });
                spans && times.iter().all(|at| *at <= latest && earliest.is_none_or(|earliest| earliest <= *at))
            };
            let before = known.unwrap_or_else(|| among.to_vec());
            known = Some(before.into_iter().filter(fits).collect());
        }
        // Entries of a timeline with an instant each say how many mentions lie between them.
        let intervals = self.counted_intervals(seen);
        for times in self.sorted_pages(seen) {
            let (newest, oldest) = (times[0], times[times.len() - 1]);
            let fits = |zone: &Zone| {
                intervals.iter().all(|(start, end, count)| {
                    let (from, to) = (zones::local(*zone, *start), zones::local(*zone, *end));
                    let inside = times.partition_point(|at| *at >= from) - times.partition_point(|at| *at >= to);
                    from <= oldest || to > newest || inside as u64 == *count
                })
            };
            known = known.map(|zones| zones.into_iter().filter(fits).collect());
        }
        // Mentions that come or go in between show nothing.
        let narrowed = |zones: Vec<Zone>, edge: Edge| {
            let fitting: Vec<Zone> = zones.iter().copied().filter(|zone| edge.fits(*zone)).collect();
            if fitting.is_empty() { zones } else { fitting }
        };
        known.map(|zones| self.edges(seen).into_iter().fold(zones, narrowed))
    }

    /// True if all times of these mentions that are written without a zone are the same instants in these zones.
    pub(super) fn agree_on_times(&self, zones: &[Zone], samples: &[Value]) -> bool {
        let columns = self.columns.columns.iter().filter(|(.., kind)| *kind == Type::Timestamp);
        let local = columns.flat_map(|(_, path, _)| {
            let rows = samples.iter().filter(move |row| self.has_local(path, row) == Some(true));
            rows.filter_map(move |row| self.columns.instant(path, row))
        });
        let mut local = local.map(|written| {
            let instants: BTreeSet<i64> = zones.iter().map(|zone| zones::instant(*zone, written)).collect();
            instants.len() == 1
        });
        local.all(|agree| agree)
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
        self.hours(asked).filter(|_| !named)
    }

    /// Hours of the words of a period.
    pub(super) fn hours(&self, words: &str) -> Option<i64> {
        let as_unit = |(unit, template): &(char, String)| vocabulary::hours_as(words, *unit, template);
        vocabulary::hours(words).or_else(|| self.window.units.iter().find_map(as_unit))
    }

    /// True if a request has neither a filter nor the ends of a window.
    pub(super) fn is_plain(&self, reply: &Reply) -> bool {
        reply.asked.iter().all(|(name, _)| self.is_plain_parameter(name))
    }

    /// True if a request has no filter.
    pub(super) fn is_unfiltered(&self, reply: &Reply) -> bool {
        let of_window = |name: &String| match self.window.absolute.as_ref().map(|absolute| &absolute.form) {
            Some(Form::Separate(since, until)) => {
                [since, until].contains(&name) || self.window.with.iter().any(|(known, _)| known == name)
            }
            Some(Form::Template(_)) | None => false,
        };
        reply.asked.iter().all(|(name, _)| self.is_plain_parameter(name) || of_window(name))
    }

    fn is_plain_parameter(&self, name: &str) -> bool {
        const PLAIN: [&str; 6] = ["aid", "duration", "timezone", "dataFrom", "dataSize", "sortBy"];
        PLAIN.contains(&name) || self.is_flag(name) || self.with.iter().any(|(known, _)| known == name)
    }

    /// Pages with mentions of all kinds that are sorted by time, newest first, as the times are written.
    fn sorted_pages(&self, seen: &[Seen]) -> Vec<Vec<i64>> {
        let of = |one: &Seen| {
            let mut times = self.times(&one.reply);
            if times.is_sorted() {
                times.reverse();
            }
            let sorted = times.len() >= 3 && times.is_sorted_by(|a, b| a >= b);
            (one.size.is_some() && self.is_plain(&one.reply) && sorted).then_some(times)
        };
        seen.iter().filter_map(of).collect()
    }

    /// The instant at which an entry of a timeline begins; `None` for a date, unless it is a day of UTC, which was requested.
    fn entry_start(&self, reply: &Reply, time: &Value) -> Option<i64> {
        let utc = |(name, value): &(String, String)| name == "timezone" && self.utc_days.as_ref() == Some(value);
        let begins = instant(time)?;
        let is_day = begins % DAY == 0 && reply.asked.iter().any(utc);
        (!is_local(time) || is_day).then_some(begins)
    }

    /// True if entries of a timeline begin at known instants.
    pub(super) fn has_timed_entries(&self, reply: &Reply) -> bool {
        self.timeline(reply).iter().any(|(time, _)| !is_local(time) && instant(time).is_some())
    }

    /// Entries of timelines that are instants: beginning, end and count of mentions of all kinds. Without the first and the last one,
    /// which a window may cut.
    fn counted_intervals(&self, seen: &[Seen]) -> Vec<(i64, i64, u64)> {
        let mut found = Vec::new();
        for Seen { reply, .. } in seen.iter().filter(|one| self.is_plain(&one.reply)) {
            let entries = self.timeline(reply);
            let entries: Vec<(i64, u64)> = entries
                .iter()
                .filter(|(time, _)| !is_local(time))
                .filter_map(|(time, count)| Some((instant(time)?, *count)))
                .collect();
            found.extend(entries.windows(2).skip(1).map(|pair| (pair[0].0, pair[1].0, pair[0].1)));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// A window of instants between the times of a page that tells these zones apart best; `None` if none does. It is of whole minutes,
    /// because services may round the ends down. `but`: windows that were requested.
    pub(super) fn telling_span(&self, seen: &[Seen], zones: &[Zone], but: &[(i64, i64)]) -> Option<(i64, i64)> {
        /// Mentions in such a window.
        const LENGTHS: [usize; 3] = [3, 8, 20];
        let mut best: Option<(usize, (i64, i64))> = None;
        for times in self.sorted_pages(seen) {
            for length in LENGTHS {
                for first in (1..times.len().saturating_sub(length)).step_by(3) {
                    let minute = |at: i64| at - at.rem_euclid(MINUTE);
                    let (from, to) = (minute(times[first + length - 1]), minute(times[first]) + MINUTE);
                    if but.contains(&(from, to)) {
                        continue;
                    }
                    let mut groups: BTreeMap<(usize, usize), usize> = BTreeMap::new();
                    let place = |at: i64| times.partition_point(|time| *time >= at);
                    for zone in zones {
                        let span = (place(zones::local(*zone, to)), place(zones::local(*zone, from)));
                        *groups.entry(span).or_default() += 1;
                    }
                    let largest = groups.values().max().copied().unwrap_or_default();
                    if largest < zones.len() && best.is_none_or(|(least, _)| largest < least) {
                        best = Some((largest, (from, to)));
                    }
                }
            }
        }
        best.map(|(_, span)| span)
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
        found.dedup();
        found
    }

    /// Times of the longest page of the newest mentions, newest first, as they are written.
    fn newest_times(&self, seen: &[Seen]) -> Option<Vec<i64>> {
        let newest = |seen: &Seen| {
            let times = self.times(&seen.reply);
            let all = seen.size.is_some() && self.ends_now(&seen.reply) && self.is_plain(&seen.reply);
            (all && times.is_sorted_by(|a, b| a >= b)).then_some(times)
        };
        seen.iter().filter_map(newest).max_by_key(Vec::len)
    }

    /// Times of the longest page of the oldest mentions of a window that ends now, newest first, as they are written, and the number
    /// of mentions of the window that are newer.
    pub(super) fn oldest_times(&self, seen: &[Seen]) -> Option<(usize, Vec<i64>)> {
        let period = |reply: &Reply| reply.asked.iter().find(|(name, _)| name == "duration").cloned();
        let oldest = |one: &Seen| {
            let mut times = self.times(&one.reply);
            self.rolling(&one.reply).filter(|_| one.size.is_some() && self.is_plain(&one.reply))?;
            if times.len() < 3 || !times.is_sorted() || times.first() == times.last() {
                return None;
            }
            // The window may be counted in a response without mentions.
            let same = |other: &&Seen| period(&other.reply) == period(&one.reply) && self.is_plain(&other.reply);
            let elsewhere = || seen.iter().filter(same).find_map(|other| self.count(&other.reply));
            let count = usize::try_from(self.count(&one.reply).or_else(elsewhere)?).ok()?;
            times.reverse();
            Some((count.checked_sub(times.len())?, times))
        };
        seen.iter().filter_map(oldest).max_by_key(|(_, times)| times.len())
    }

    /// The edges of windows that end now, by their numbers of mentions and the times of the newest and the oldest ones, and those of the
    /// entries of a timeline.
    fn edges(&self, seen: &[Seen]) -> Vec<Edge> {
        let newest = self.newest_times(seen).unwrap_or_default();
        let (before, oldest) = self.oldest_times(seen).unwrap_or_default();
        let ranked = |rank: usize| newest.get(rank).or_else(|| oldest.get(rank.checked_sub(before)?)).copied();
        let of = |(count, start, days): (u64, i64, bool)| {
            let count = usize::try_from(count).ok()?;
            // An empty window is younger than all mentions.
            let inside = count.checked_sub(1).map_or(Some(start + 2 * DAY), ranked);
            Edge::new(start, inside?, ranked(count)?, days)
        };
        let counted = self.counted_windows(seen).into_iter().chain(self.counted_days(seen)).filter_map(of);
        // On a page at a known place, the counts of a timeline say between which two mentions its entries begin.
        let starts = seen.iter().flat_map(|one| self.day_starts(&one.reply, seen, None)).filter(|start| !start.named);
        let between = starts.filter_map(|start| Edge::new(start.day, start.after?, start.before?, false));
        counted.chain(between).collect()
    }

    /// Known beginnings of the entries of timelines that end now, with the number of mentions since then.
    fn counted_days(&self, seen: &[Seen]) -> Vec<(u64, i64, bool)> {
        let mut found = Vec::new();
        for Seen { reply, .. } in seen {
            if !self.ends_now(reply) || !self.is_plain(reply) || self.absolute(reply).is_some() {
                continue;
            }
            let entries: Vec<(Value, u64)> = self.timeline(reply).into_iter().skip(1).collect();
            let mut sum = 0;
            for (time, count) in entries.iter().rev() {
                sum += count;
                found.extend(self.entry_start(reply, time).map(|start| (sum, start, false)));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The window that ends now whose number of mentions tells these zones apart best, of those whose number is not known; `None` if
    /// none does. `but`: units of windows that are not accepted. Hours are tried where only days are known, if no days have such a
    /// number of mentions: a service that rounds hours to days would tell nothing.
    pub(super) fn telling_window(&self, seen: &[Seen], zones: &[Zone], but: &[char]) -> Option<(char, String)> {
        let now = seen.iter().rev().find_map(|seen| seen.reply.date())?;
        let newest = self.newest_times(seen).map(|times| (0, times));
        let pages: Vec<(usize, Vec<i64>)> = newest.into_iter().chain(self.oldest_times(seen)).collect();
        let (known, beside) = (self.window.units.as_slice(), self.hours_beside_days());
        let counted = self.counted_words(seen);
        let windows =
            known.iter().chain(&beside).filter(|(unit, _)| !but.contains(unit)).flat_map(|(unit, template)| {
                let (hours, most) = match unit {
                    'h' => (1, 999),
                    'd' => (24, 99),
                    _ => (168, 14),
                };
                (1..=most).map(move |n| (n * hours, *unit, template.replace("{n}", &n.to_string())))
            });
        let starts = |hours: i64| zones.iter().map(move |zone| zones::local(*zone, now - hours * HOUR));
        let worth = |(hours, unit, words): (i64, char, String)| {
            if counted.contains(&words) {
                return None;
            }
            let (first, last) = (starts(hours).min()?, starts(hours).max()?);
            // All mentions that may be in the window came, and some before it.
            let covers = |(before, times): &&(usize, Vec<i64>)| {
                times.last().is_some_and(|oldest| *oldest < first) && (*before == 0 || times.first() >= Some(&last))
            };
            let (_, times) = pages.iter().find(covers)?;
            let since = |hours: i64| starts(hours).map(move |start| times.partition_point(|at| *at >= start));
            // A mention that is as close to the beginning as clocks differ may be in the window or not.
            let mut groups: BTreeMap<usize, usize> = BTreeMap::new();
            for start in starts(hours) {
                let least = times.partition_point(|at| *at > start + SLACK);
                for count in least..=times.partition_point(|at| *at >= start - SLACK) {
                    *groups.entry(count).or_default() += 1;
                }
            }
            let is_guess = known.iter().all(|(known, _)| *known != unit);
            let days = [hours / 24 * 24, (hours + 23) / 24 * 24];
            if is_guess && days.into_iter().flat_map(since).any(|count| groups.contains_key(&count)) {
                return None;
            }
            Some((is_guess, groups.into_values().max()?, hours, unit, words))
        };
        let tells = |(_, largest, ..): &(bool, usize, i64, char, String)| *largest < zones.len();
        windows.filter_map(worth).filter(tells).min().map(|(.., unit, words)| (unit, words))
    }

    /// Words of periods whose numbers of mentions of all kinds are known.
    fn counted_words(&self, seen: &[Seen]) -> BTreeSet<String> {
        let replies = seen.iter().map(|one| &one.reply);
        let counted = replies.filter(|reply| self.is_plain(reply) && self.count(reply).is_some());
        let words = counted.flat_map(|reply| reply.asked.iter().filter(|(name, _)| name == "duration"));
        words.map(|(_, words)| words.clone()).collect()
    }

    /// The notation of hours that goes with that of days, `PT{n}H` with `P{n}D`, if hours have none, and if the service was seen to
    /// refuse a period that it does not understand.
    fn hours_beside_days(&self) -> Option<(char, String)> {
        let units = &self.window.units;
        let is_open = self.window.is_checked && units.iter().all(|(unit, _)| *unit != 'h');
        let (_, days) = units.iter().find(|(unit, _)| *unit == 'd').filter(|_| is_open)?;
        Some(('h', vocabulary::hourly(days)?))
    }

    /// Of these zones, those whose days have as many mentions as the timeline says: the rank of a mention by time shows in which
    /// entry it is counted. `None` if too few mentions came, or if the zone of their times is not known.
    pub(super) fn zones_of_days(&self, seen: &[Seen], among: &[Zone]) -> Option<Vec<Zone>> {
        /// Beginnings of days that have to be seen.
        const LEAST: usize = 2;
        if !self.unknown_times.is_empty() {
            return None;
        }
        let mut starts: Vec<DayStart> = seen.iter().flat_map(|one| self.day_starts(&one.reply, seen, None)).collect();
        starts.extend(self.starts_of_windows(seen));
        let seen = starts.iter().filter(|start| start.is_seen).count();
        (seen >= LEAST)
            .then(|| among.iter().copied().filter(|zone| starts.iter().all(|start| start.fits(*zone))).collect())
    }

    /// True if responses in a zone, which was requested by this value, count mentions on other days than its own.
    pub(super) fn counts_other_days(&self, seen: &[Seen], zone: Zone, value: &str) -> bool {
        let mut starts = seen.iter().flat_map(|one| self.day_starts(&one.reply, seen, Some(value)));
        starts.any(|start| !start.fits(zone))
    }

    /// Beginnings of days that a timeline counts for windows of days of a known zone. If its entries run from the first day of a
    /// window to the last one and sum up to the total, all mentions of the window are of these days, also those that came elsewhere.
    fn starts_of_windows(&self, seen: &[Seen]) -> Vec<DayStart> {
        let absolute = self.window.absolute.as_ref().filter(|absolute| absolute.instants == "date");
        let zone = self.zone.as_ref().filter(|zone| zone.kind == "ignored");
        let zone = zone.and_then(|zone| zone.default.parse::<Zone>().ok());
        let known = absolute.and_then(|absolute| Some((absolute, absolute.inclusive?)));
        let (Some((absolute, inclusive)), Some(zone)) = (known, zone) else { return Vec::new() };
        let times: BTreeSet<i64> = seen.iter().flat_map(|one| self.times(&one.reply)).collect();
        let day = |text: &str| instant(&Value::from(text));
        let of = |one: &Seen| {
            let reply = &one.reply;
            let (from, to) = self.ends_asked(absolute, reply).filter(|_| self.is_unfiltered(reply))?;
            let (first, last) = (day(from)?, day(to)? - if inclusive { 0 } else { DAY });
            let entries = self.timeline(reply);
            let named = entries.iter().all(|(label, _)| is_local(label));
            let runs = instant(&entries.first()?.0) == Some(first) && instant(&entries.last()?.0) == Some(last);
            if !named || !runs || self.count(reply) != self.sum(reply) {
                return None;
            }
            let (begin, end) = zones::day_start(zone, first).zip(zones::day_start(zone, last + DAY))?;
            let mut within = times.range(begin..end).copied().filter(|_| reply.date().is_some_and(|now| end <= now));
            let oldest = within.next()?;
            let newest = within.next_back().unwrap_or(oldest);
            let start = |day, before, after| DayStart { day, named: true, before, after, is_seen: false };
            Some([start(first, None, Some(oldest)), start(last + DAY, Some(newest), None)])
        };
        seen.iter().filter_map(of).flatten().collect()
    }

    /// Beginnings of the timeline's entries between mentions of a response, if these are sorted by time. A response without a
    /// timeline has the newest mentions that those without mentions count. `zone`: the requested zone; `None` for UTC, or none, or one
    /// that has no effect.
    fn day_starts(&self, reply: &Reply, seen: &[Seen], zone: Option<&str>) -> Vec<DayStart> {
        /// Mentions that are not sorted by chance.
        const SORTED: usize = 10;
        let mut times = self.times(reply);
        let oldest_first = times.is_sorted();
        if oldest_first {
            times.reverse();
        }
        let sorted = times.len() >= SORTED && times.is_sorted_by(|a, b| a >= b);
        let is_meant = |reply: &Reply| match zone {
            Some(zone) => reply.asked.iter().any(|(name, value)| name == "timezone" && value == zone),
            None => self.has_days_of_utc(reply),
        };
        let rank = self.rank(reply).filter(|_| sorted && self.is_unfiltered(reply) && is_meant(reply));
        let Some(rank) = rank else { return Vec::new() };
        let own = self.timeline(reply);
        let others = || {
            let counted = seen.iter().map(|one| &one.reply).filter(|other| !self.has_rows(other));
            // Instants are the same in each zone that is requested; dates are not.
            let counted = counted.filter(|other| is_meant(other) || self.has_timed_entries(other));
            let counted = counted.filter(|other| self.is_plain(other) && self.ends_now(other));
            let newest = !oldest_first && self.is_plain(reply) && self.ends_now(reply);
            counted.filter(|_| newest).map(|other| self.timeline(other)).collect()
        };
        let timelines: Vec<Vec<(Value, u64)>> = if own.is_empty() { others() } else { vec![own] };
        let mut starts = Vec::new();
        for entries in timelines.into_iter().filter(|entries| !entries.is_empty()) {
            let sum: u64 = entries.iter().map(|(_, count)| count).sum();
            let Ok(sum_of_all) = usize::try_from(sum) else { continue };
            let newer = match oldest_first {
                true if self.count(reply) == Some(sum) => sum_of_all.checked_sub(rank + times.len()),
                true => None,
                false => Some(rank),
            };
            let Some(newer) = newer else { continue };
            let is_whole = rank == 0 && times.len() == sum_of_all;
            let named = entries.iter().all(|(day, _)| is_local(day));
            let days: Vec<(i64, u64)> =
                entries.iter().filter_map(|(day, count)| Some((instant(day)?, *count))).collect();
            let daily = days.windows(2).all(|pair| pair[1].0 - pair[0].0 == DAY);
            let has_end = named && daily && (days.len() > 1 || !self.is_plain(reply));
            let end = days.last().filter(|_| has_end).map(|(day, _)| (day + DAY, 0));
            let mut left = sum_of_all;
            for (day, count) in days.iter().copied().chain(end) {
                let at = |rank: usize| times.get(rank.checked_sub(newer)?).copied();
                let (before, after) = (at(left), left.checked_sub(1).and_then(at));
                let is_seen = (before.is_some() && after.is_some()) || is_whole;
                starts.push(DayStart { day, named, before, after, is_seen });
                left = left.saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
            }
        }
        starts
    }

    /// True if the days of a response that are dates are those of requests without a zone, or with UTC.
    pub(super) fn has_days_of_utc(&self, reply: &Reply) -> bool {
        let zone = reply.asked.iter().find(|(name, _)| name == "timezone").map(|(_, zone)| zone);
        let is_utc = |zone: &String| zone == "0" || Zone::named_otherwise(zone) == Some(Zone::UTC);
        zone.is_none_or(|zone| is_utc(zone) || self.idle_zone.as_ref() == Some(zone))
    }

    /// The number of mentions before the first one of a response; `None` if its offset is not understood.
    fn rank(&self, reply: &Reply) -> Option<usize> {
        let of =
            |name: &str| reply.asked.iter().find(|(known, _)| known == name).map(|(_, value)| value.parse::<u64>());
        let Some(from) = of("dataFrom") else { return Some(0) };
        let offset = self.offset?;
        let from = from.ok()?.checked_sub(offset.first)?;
        let size = of("dataSize")?.ok()?.min(self.page.map_or(u64::MAX, |page| page.max));
        usize::try_from(if offset.pages { from.checked_mul(size)? } else { from }).ok()
    }

    /// True if a request asks for the usual window or one that ends now.
    pub(super) fn ends_now(&self, reply: &Reply) -> bool {
        let asked = reply.asked.iter().find(|(name, _)| name == "duration");
        asked.is_none_or(|(_, words)| self.hours(words).is_some())
    }

    /// Of these zones, those in which each entry of these timelines begins with a day. `None` if there are no entries with a
    /// time.
    pub(super) fn zones_of_starts<'r>(
        &self,
        replies: impl Iterator<Item = &'r Reply>,
        among: &[Zone],
    ) -> Option<Vec<Zone>> {
        let entries = replies.flat_map(|reply| self.timeline(reply).into_iter().skip(1));
        let entries = entries.filter(|(time, _)| !is_local(time));
        let starts: BTreeSet<i64> = entries.filter_map(|(time, _)| instant(&time)).collect();
        let begins = |zone: &Zone, at: i64| zones::local(*zone, at).rem_euclid(DAY) == 0;
        let fitting = among.iter().copied().filter(|zone| starts.iter().all(|at| begins(zone, *at)));
        (!starts.is_empty()).then(|| fitting.collect())
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

/// The beginning of an entry of a timeline, and the times of the mentions next to it.
#[derive(Debug)]
struct DayStart {
    /// As it is written: midnight of a day in UTC if `named`.
    day: i64,
    named: bool,
    before: Option<i64>,
    after: Option<i64>,
    /// Set if the mentions on both sides came, or all there are.
    is_seen: bool,
}

impl DayStart {
    /// True if it may be the beginning of a day of this zone.
    fn fits(&self, zone: Zone) -> bool {
        let start = if self.named { zones::day_start(zone, self.day) } else { Some(self.day) };
        start.is_some_and(|start| {
            self.before.is_none_or(|before| before < start) && self.after.is_none_or(|after| start <= after)
        })
    }
}

impl Edge {
    /// `None` for an edge that shows nothing: between equal times, or at a midnight, where a window of calendar days begins.
    pub(super) fn new(start: i64, inside: i64, outside: i64, days: bool) -> Option<Self> {
        let midnight = days && inside.div_euclid(DAY) != outside.div_euclid(DAY);
        (outside < inside && !midnight).then_some(Self { start, inside, outside })
    }

    /// True if times may be of this zone.
    pub(super) fn fits(&self, zone: Zone) -> bool {
        let start = zones::local(zone, self.start);
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
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::probe::shape::Columns;

    #[test]
    fn a_window_that_tells_zones_apart_is_of_whole_minutes_and_not_requested_twice() {
        let record = |n: i64| {
            let at = chrono::DateTime::from_timestamp(1_782_820_007 - n * 4_800, 0).expect("a time");
            json!({"id": format!("m{n}"), "at": at.format("%Y-%m-%d %H:%M:%S").to_string()})
        };
        let body = json!({"items": (0..20).map(record).collect::<Vec<_>>()});
        let reply = Reply::new(&[], 200, http::HeaderMap::new(), body.to_string());
        let mut found = Findings { mentions: Some(vec!["items".to_owned()]), ..Findings::default() };
        let time = vec!["at".to_owned()];
        found.columns = Columns::of(vocabulary::MENTION, &found.rows(&reply), &[("published_at", &time)]);
        let seen = [Seen { size: Some(20), reply: Arc::new(reply) }];
        let first = found.telling_span(&seen, zones::all(), &[]).expect("a window");
        let second = found.telling_span(&seen, zones::all(), &[first]).expect("another window");
        assert_ne!(first, second);
        for (from, to) in [first, second] {
            assert!(from < to && from % MINUTE == 0 && to % MINUTE == 0, "{from} to {to}");
        }
    }

    #[test]
    fn days_of_a_timeline_that_begin_between_mentions_of_a_further_page_show_the_zone_of_their_times() {
        let at = |text: &str| instant(&Value::from(text)).expect("an instant");
        // A mention every 48 minutes, thirty a day, from 16:02 in +05:30 on; the days are those of UTC.
        let newest = at("2026-06-30T10:32:00Z");
        let zone: Zone = "+05:30".parse().expect("a zone");
        let mention = |n: i64| {
            let local = chrono::DateTime::from_timestamp_micros(zones::local(zone, newest - n * 48 * MINUTE));
            json!({"id": format!("m{n}"), "at": local.expect("a time").format("%Y-%m-%d %H:%M:%S").to_string()})
        };
        let day = |day: &str| {
            let of = |n: &i64| (at(day)..at(day) + DAY).contains(&(newest - n * 48 * MINUTE));
            json!({"start": day, "count": (0..100).filter(of).count()})
        };
        let days = ["2026-06-27T00:00:00Z", "2026-06-28T00:00:00Z", "2026-06-29T00:00:00Z", "2026-06-30T00:00:00Z"];
        let timeline: Vec<Value> = days.into_iter().map(day).collect();
        let rows: Vec<Value> = (40..60).map(mention).collect();
        let body = json!({"items": rows, "volume": timeline});
        let asked = [("dataFrom", "40"), ("dataSize", "20")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let reply = Reply::new(&asked, 200, http::HeaderMap::new(), body.to_string());
        let (path, time) = (vec!["volume".to_owned()], vec!["at".to_owned()]);
        let series = crate::probe::shape::Series::over_time(&body["volume"]).expect("a timeline");
        let mut found = Findings { mentions: Some(vec!["items".to_owned()]), ..Findings::default() };
        found.timeline = Some((path, series));
        found.offset = Some(crate::probe::observations::Offset { pages: false, first: 0, aligned: false });
        found.columns = Columns::of(vocabulary::MENTION, &found.rows(&reply), &[("published_at", &time)]);
        assert!(found.has_timed_entries(&reply));
        let seen = [Seen { size: None, reply: Arc::new(reply) }];
        let edges = found.edges(&seen);
        // The day begins between the mentions of 00:08 and of 23:20 in UTC.
        let [edge] = edges.as_slice() else { panic!("{edges:?}") };
        assert_eq!(edge.start, at("2026-06-29T00:00:00Z"));
        let fitting: Vec<String> = zones::all().iter().filter(|zone| edge.fits(**zone)).map(Zone::to_string).collect();
        assert_eq!(fitting, ["+05:00", "+05:30"]);
    }

    #[test]
    fn days_of_a_timeline_in_another_zone_begin_between_mentions_as_well() {
        let at = |text: &str| instant(&Value::from(text)).expect("an instant");
        let newest = at("2026-06-30T10:32:00Z");
        let mention = |n: i64| {
            let time = chrono::DateTime::from_timestamp_micros(newest - n * 48 * MINUTE).expect("a time");
            json!({"id": format!("m{n}"), "at": time.format("%Y-%m-%d %H:%M:%S").to_string()})
        };
        let day = |day: &str| {
            let of = |n: &i64| (at(day)..at(day) + DAY).contains(&(newest - n * 48 * MINUTE));
            json!({"start": day, "count": (0..60).filter(of).count()})
        };
        let counted = |zone: &str, days: &[&str]| {
            let volume: Vec<Value> = days.iter().map(|name| day(name)).collect();
            let asked = [("timezone".to_owned(), zone.to_owned())];
            Reply::new(&asked, 200, http::HeaderMap::new(), json!({"volume": volume}).to_string())
        };
        let instants = ["2026-06-29T00:00:00+05:30", "2026-06-30T00:00:00+05:30"];
        let rows: Vec<Value> = (0..30).map(mention).collect();
        let asked = [("dataSize".to_owned(), "30".to_owned())];
        let page = Reply::new(&asked, 200, http::HeaderMap::new(), json!({"items": rows}).to_string());
        let mut found = Findings { mentions: Some(vec!["items".to_owned()]), ..Findings::default() };
        let time = vec!["at".to_owned()];
        found.columns = Columns::of(vocabulary::MENTION, &found.rows(&page), &[("published_at", &time)]);
        let other = counted("Asia/Kolkata", &instants);
        let volume = &other.body.as_ref().expect("a body")["volume"];
        let series = crate::probe::shape::Series::over_time(volume).expect("a timeline");
        found.timeline = Some((vec!["volume".to_owned()], series));
        let seen = |other: Reply| {
            [(Some(30), page.clone()), (None, other)].map(|(size, reply)| Seen { size, reply: Arc::new(reply) })
        };
        let starts = |seen: &[Seen]| -> Vec<i64> {
            let starts = seen.iter().flat_map(|one| found.day_starts(&one.reply, seen, None));
            starts.filter(|start| start.before.is_some() && start.after.is_some()).map(|start| start.day).collect()
        };
        assert_eq!(starts(&seen(other)), [at("2026-06-29T18:30:00Z")]);
        // Dates are those of the requested zone, which is not UTC.
        assert!(starts(&seen(counted("Asia/Kolkata", &["2026-06-29", "2026-06-30"]))).is_empty());
        assert_eq!(starts(&seen(counted("UTC", &["2026-06-29", "2026-06-30"]))), [at("2026-06-30T00:00:00Z")]);
    }

    #[test]
    fn mentions_show_whose_days_a_response_in_another_zone_counts() {
        // A mention every 48 minutes.
        let newest = instant(&Value::from("2026-06-30T10:32:00Z")).expect("an instant");
        let times: Vec<i64> = (0..60).map(|n| newest - n * 48 * MINUTE).collect();
        let written = |at: i64| chrono::DateTime::from_timestamp_micros(at).expect("a time");
        let rows: Vec<Value> = times.iter().map(|at| json!({"id": at, "at": written(*at).to_rfc3339()})).collect();
        let in_kolkata = |zone: Zone| {
            let mut days: BTreeMap<String, u64> = BTreeMap::new();
            let day = |at: &i64| written(zones::local(zone, *at)).date_naive().to_string();
            times.iter().for_each(|at| *days.entry(day(at)).or_default() += 1);
            let days: Vec<Value> = days.iter().map(|(day, count)| json!({"day": day, "count": count})).collect();
            let asked =
                [("timezone", "+05:30"), ("dataSize", "60")].map(|(name, value)| (name.to_owned(), value.to_owned()));
            let body = json!({"items": rows, "days": days});
            Seen { size: Some(60), reply: Arc::new(Reply::new(&asked, 200, http::HeaderMap::new(), body.to_string())) }
        };
        let [utc, kolkata] = ["UTC", "+05:30"].map(|zone| zone.parse::<Zone>().expect("a zone"));
        let [fixed, requested] = [utc, kolkata].map(|zone| [in_kolkata(zone)]);
        let days = &fixed[0].reply.body.as_ref().expect("a body")["days"];
        let series = crate::probe::shape::Series::over_time(days).expect("a timeline");
        let mut found = Findings { mentions: Some(vec!["items".to_owned()]), ..Findings::default() };
        found.timeline = Some((vec!["days".to_owned()], series));
        let time = vec!["at".to_owned()];
        found.columns = Columns::of(vocabulary::MENTION, &found.rows(&fixed[0].reply), &[("published_at", &time)]);
        assert!(found.counts_other_days(&fixed, kolkata, "+05:30"));
        assert!(!found.counts_other_days(&requested, kolkata, "+05:30"));
        // If the zone has no effect, the days are those of any request.
        assert_eq!(found.zones_of_days(&fixed, &[utc, kolkata]), None);
        found.idle_zone = Some("+05:30".to_owned());
        assert_eq!(found.zones_of_days(&fixed, &[utc, kolkata]), Some(vec![utc]));
    }

    #[test]
    fn a_timeline_that_ends_with_the_days_of_a_window_counts_the_same_days() {
        let at = |text: &str| instant(&Value::from(text)).expect("an instant");
        // A mention every two hours, the last one at 20:30, but none at 22:30 of the 27th. Days of Warsaw begin at 22.
        let item = |n: i64| {
            let time = chrono::DateTime::from_timestamp_micros(at("2026-06-29T20:30:00Z") - n * 2 * HOUR);
            json!({"id": format!("m{n}"), "at": time.expect("a time").to_rfc3339()})
        };
        let headers = || {
            let date = http::HeaderValue::from_static("Tue, 30 Jun 2026 12:00:00 GMT");
            http::HeaderMap::from_iter([(http::header::DATE, date)])
        };
        let window = |day: &str, rows: std::ops::Range<i64>, total: u64| {
            let asked = [("from".to_owned(), day.to_owned()), ("to".to_owned(), day.to_owned())];
            let rows: Vec<Value> = rows.map(item).collect();
            let body = json!({"total": total, "items": rows, "days": [{"day": day, "count": total}]});
            Reply::new(&asked, 200, headers(), body.to_string())
        };
        // The oldest mention of the 29th, at 22:30 of the 28th in UTC, comes on another page.
        let (last, whole) = (window("2026-06-29", 0..11, 12), window("2026-06-28", 12..23, 11));
        let other = Reply::new(&[], 200, headers(), json!({"items": [item(11)]}).to_string());
        let days = json!([{"day": "2026-06-28", "count": 11}, {"day": "2026-06-29", "count": 12}]);
        let series = crate::probe::shape::Series::over_time(&days);
        let mut found = Findings { mentions: Some(vec!["items".to_owned()]), ..Findings::default() };
        let time = vec!["at".to_owned()];
        found.columns = Columns::of(vocabulary::MENTION, &found.rows(&whole), &[("published_at", &time)]);
        found.timeline = Some((vec!["days".to_owned()], series.expect("a timeline")));
        found.counted = Some(vec!["total".to_owned()]);
        let form = Form::Separate("from".to_owned(), "to".to_owned());
        found.window.absolute = Some(Absolute { form, instants: "date", inclusive: Some(true) });
        let seen = [last, whole, other].map(|reply| Seen { size: Some(11), reply: Arc::new(reply) });
        let zones = ["Europe/Warsaw", "UTC"].map(|zone| zone.parse::<Zone>().expect("a zone"));
        assert_eq!(found.zones_of_days(&seen, &zones), Some(zones.to_vec()));
        let default = "Europe/Warsaw".to_owned();
        found.zone = Some(crate::probe::observations::Zone { kind: "ignored", default });
        assert_eq!(found.zones_of_days(&seen, &zones), Some(zones[..1].to_vec()));
    }

    #[test]
    fn hours_tell_zones_apart_where_days_do_not_and_their_notation_is_that_of_days() {
        // A mention each hour, except before each noon of UTC: there, windows of days begin, with the same mentions in both zones.
        let times: Vec<String> = (0..60)
            .map(|n: i64| {
                let gap = (n / 19) * 5 * 3_600;
                let at = chrono::DateTime::from_timestamp(1_782_820_000 - n * 3_600 - gap, 0).expect("a time");
                at.format("%Y-%m-%d %H:%M:%S").to_string()
            })
            .collect();
        let rows: Vec<Value> =
            times.iter().enumerate().map(|(n, at)| json!({"id": format!("m{n}"), "at": at})).collect();
        let body = json!({"items": rows}).to_string();
        // 2026-06-30T12:00:00Z
        let headers = http::HeaderMap::from_iter([(
            http::header::DATE,
            http::HeaderValue::from_static("Tue, 30 Jun 2026 12:00:00 GMT"),
        )]);
        let reply = Reply::new(&[], 200, headers, body);
        let time = vec!["at".to_owned()];
        let mut found = Findings { mentions: Some(vec!["items".to_owned()]), ..Findings::default() };
        found.columns = Columns::of(vocabulary::MENTION, &found.rows(&reply), &[("published_at", &time)]);
        found.window.units = vec![('d', "P{n}D".to_owned())];
        let seen = [Seen { size: Some(60), reply: Arc::new(reply) }];
        let zones = ["UTC", "+01:00"].map(|zone| zone.parse::<Zone>().expect("a zone"));
        assert_eq!(found.telling_window(&seen, &zones, &[]), None);
        found.window.is_checked = true;
        let told = found.telling_window(&seen, &zones, &[]);
        let hours = told.as_ref().and_then(|(_, words)| vocabulary::hours(words));
        assert!(matches!(&told, Some(('h', words)) if words.starts_with("PT") && words.ends_with('H')), "{told:?}");
        assert!(hours.is_some_and(|hours| hours % 24 != 0), "{told:?}");
        assert_eq!(found.telling_window(&seen, &zones, &['h']), None);
        // What is known is not requested again.
        let words = told.map(|(_, words)| words).expect("a window");
        let asked = [("duration".to_owned(), words.clone())];
        found.counted = Some(vec!["total".to_owned()]);
        let counted = Reply::new(&asked, 200, http::HeaderMap::new(), json!({"total": 3}).to_string());
        let more = [seen[0].clone(), Seen { size: None, reply: Arc::new(counted) }];
        let next = found.telling_window(&more, &zones, &[]);
        assert!(next.as_ref().is_some_and(|(unit, other)| *unit == 'h' && *other != words), "{next:?}");
        // Where it is known that hours are accepted, their own notation counts.
        found.window.units.push(('h', "{n}h".to_owned()));
        let told = found.telling_window(&seen, &zones, &[]);
        assert!(matches!(&told, Some(('h', words)) if !words.starts_with('P')), "{told:?}");
    }

    #[test]
    fn a_mention_next_to_the_beginning_of_a_window_does_not_tell_zones_apart() {
        let now = instant(&Value::from("2026-06-30T12:00:00Z")).expect("an instant");
        let zones = ["+05:30", "+05:45"].map(|zone| zone.parse::<Zone>().expect("a zone"));
        // The second one is 13 minutes after the beginning of the last two hours, and the fourth one 10 minutes after that of five.
        let rows = [45, 107, 194, 290, 364].map(|minutes| {
            let at = chrono::DateTime::from_timestamp_micros(zones::local(zones[0], now - minutes * MINUTE));
            json!({"id": minutes, "at": at.expect("a time").format("%Y-%m-%d %H:%M:%S").to_string()})
        });
        let date = http::HeaderValue::from_static("Tue, 30 Jun 2026 12:00:00 GMT");
        let headers = http::HeaderMap::from_iter([(http::header::DATE, date)]);
        let reply = Reply::new(&[], 200, headers, json!({"items": rows}).to_string());
        let time = vec!["at".to_owned()];
        let mut found = Findings { mentions: Some(vec!["items".to_owned()]), ..Findings::default() };
        found.columns = Columns::of(vocabulary::MENTION, &found.rows(&reply), &[("published_at", &time)]);
        found.window.units = vec![('h', "{n}h".to_owned())];
        let seen = [Seen { size: Some(20), reply: Arc::new(reply) }];
        assert_eq!(found.telling_window(&seen, &zones, &[]), Some(('h', "5h".to_owned())));
    }

    #[test]
    fn the_mentions_at_the_edge_of_a_window_show_the_zone_of_their_times() {
        let at = |text: &str| instant(&Value::from(text)).expect("an instant");
        let edge = Edge::new(at("2026-06-01T12:00:00Z"), at("2026-06-01 15:20:00"), at("2026-06-01 14:40:00"), true);
        let fitting = zones::all().iter().filter(|zone| edge.is_some_and(|edge| edge.fits(**zone)));
        assert_eq!(
            fitting.map(Zone::to_string).collect::<Vec<_>>(),
            ["Europe/Athens", "Asia/Jerusalem", "Africa/Cairo", "Asia/Gaza", "+03:00"]
        );
        let midnight =
            Edge::new(at("2026-06-01T12:00:00Z"), at("2026-06-02 00:10:00"), at("2026-06-01 23:40:00"), true);
        assert_eq!(midnight, None);
    }
}
