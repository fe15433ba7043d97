//! Determines offsets, the page limit, the depth of paging, the ends of windows, and filters with several values.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use chrono::SecondsFormat;
use serde_json::Value;

use super::asker::{Pair, Reply};
use super::candidates::{AID, DURATION, OFFSET, SIZE, SORT, TIMEZONE, pair};
use super::dialogue::{Dialogue, FEW, LOOK};
use super::effects::{DAY, HOUR, MINUTE, starts};
use super::observations::{
    Absolute, CursorPlace, Depth, Findings, Form, NoOffset, Offset, PageFinding, Seen, Several, Zone as FoundZone,
};
use super::scheduler::number_in;
use super::shape::{self, Path, at, number, place, said, utc};
use super::{vocabulary, zones};
use crate::error::Result;
use crate::profile::Zone;

/// The day, as its midnight in UTC, whose mentions tell these zones apart best, or from the requested one; `None` if none does.
/// `known`: times of mentions, newest first. `but`: days that were asked for.
fn telling_day(known: &[i64], zones: &[Zone], requested: Option<Zone>, but: &[i64]) -> Option<i64> {
    let newest = known.first()?.div_euclid(DAY) * DAY;
    let days: BTreeSet<i64> = known.iter().map(|at| at.div_euclid(DAY) * DAY).collect();
    let worth = |day: i64| {
        let mentions = |zone: Zone| {
            let (from, to) = zones::day_start(zone, day).zip(zones::day_start(zone, day + DAY))?;
            let before = |end: i64| known.partition_point(|at| *at >= end);
            Some((before(from), before(to)))
        };
        let mut groups: HashMap<(usize, usize), usize> = HashMap::new();
        for zone in zones {
            *groups.entry(mentions(*zone)?).or_default() += 1;
        }
        let alike = match requested {
            Some(zone) => groups.get(&mentions(zone)?).copied().unwrap_or_default(),
            None => groups.into_values().max()?,
        };
        Some((alike, -day, day))
    };
    let past = days.into_iter().filter(|day| *day < newest && !but.contains(day));
    past.filter_map(worth).min().filter(|(alike, ..)| *alike < zones.len()).map(|(.., day)| day)
}

/// A day about two months before the newest of these times on which these zones have other clocks than each other.
pub(super) fn old_day(known: &[i64], zones: &[Zone], but: &[i64]) -> Option<i64> {
    let newest = known.first()?.div_euclid(DAY) * DAY;
    let differ = |day: &i64| {
        let starts: BTreeSet<Option<i64>> = zones.iter().map(|zone| zones::day_start(*zone, *day)).collect();
        starts.len() > 1 && !but.contains(day)
    };
    (40..60).rev().map(|days| newest - days * DAY).find(differ)
}

/// An instant in a format for windows.
pub(super) fn written_at(at: i64, how: &str) -> String {
    match how {
        "epoch_ms" => (at / 1_000).to_string(),
        "epoch_s" => (at / 1_000_000).to_string(),
        _ => utc(at).to_rfc3339_opts(SecondsFormat::Secs, true),
    }
}

/// Requests reserved for trying the profile.
pub(super) const TRIAL: u64 = 2;

impl Dialogue {
    /// Determines if an absolute window is honoured exactly, and if its end is inclusive.
    pub(super) async fn ends(&mut self) -> Result<()> {
        let Some(absolute) = self.found.window.absolute.clone() else { return Ok(()) };
        if !self.found.unknown_times.is_empty() {
            return self.void("the zone of the times is not known");
        }
        if absolute.instants == "date" {
            return self.ends_of_days(absolute).await;
        }
        let times = self.known_times();
        let utc = self.utc().filter(|_| absolute.instants == "local").map(|pair| (Zone::UTC, pair));
        if !self.end_of(&absolute, &times, utc.as_ref()).await? || absolute.instants != "local" {
            return Ok(());
        }
        if let Some(other) = self.other_zone() {
            // Local times of the requested zone.
            if self.asker.left() <= TRIAL {
                return self.void("whether local times of a window are those of the requested zone was not seen");
            }
            return self.end_of(&absolute, &times, Some(&other)).await.map(drop);
        }
        // Local times of a zone with daylight saving time are those of UTC for half of the year only.
        let differs = |at: &i64| {
            zones::all().iter().any(|zone| self.as_utc_now(*zone, &times) && zones::local(*zone, *at) != *at)
        };
        let old: Vec<i64> = times.iter().copied().filter(differs).collect();
        if old.len() < 2 || self.asker.left() <= TRIAL {
            return self.void("whether local times of a window are those of UTC throughout the year was not seen");
        }
        self.end_of(&absolute, &old, None).await.map(drop)
    }

    /// A zone other than UTC as the value of the zone parameter, if that was seen to have an effect.
    pub(super) fn other_zone(&self) -> Option<(Zone, Pair)> {
        let word = match self.found.zone.as_ref()?.kind {
            "iana" => "Asia/Kolkata",
            "offset" => "+05:30",
            "utc_offset" => "UTC+05:30",
            "minutes" => "330",
            _ => return None,
        };
        Some(("+05:30".parse().ok()?, pair(TIMEZONE, word)))
    }

    /// True if a zone has the time of UTC at the newest of these instants.
    fn as_utc_now(&self, zone: Zone, times: &[i64]) -> bool {
        times.first().is_some_and(|at| zones::local(zone, *at) == *at)
    }

    /// True if these zones have several local times at the last response.
    pub(super) fn differ_now(&self, among: &[Zone]) -> bool {
        let local = |now: i64| among.iter().map(|zone| zones::local(*zone, now)).collect::<BTreeSet<i64>>();
        let now = self.seen.iter().rev().find_map(|seen| seen.reply.date());
        now.is_some_and(|now| local(now).len() > 1)
    }

    /// Times of all mentions that came, newest first.
    pub(super) fn known_times(&self) -> Vec<i64> {
        let times = self.instants(&self.samples.iter().collect::<Vec<_>>());
        times.into_iter().collect::<BTreeSet<_>>().into_iter().rev().collect()
    }

    /// Requests mentions of an absolute window, the newest ones first.
    pub(super) async fn within(
        &mut self,
        absolute: &Absolute,
        (from, to): (&str, &str),
        zone: Option<Pair>,
    ) -> Result<Option<(Reply, u64)>> {
        let size = self.accepted(self.found.page.map_or(LOOK, |page| page.max.clamp(1, 100)));
        let mut asked = self.asking(size);
        match &absolute.form {
            Form::Template(template) => {
                asked.push(pair(DURATION, template.replace("{from}", from).replace("{to}", to)));
            }
            Form::Separate(since, until) => {
                asked.extend([pair(since, from), pair(until, to)]);
                asked.extend(self.found.window.with.clone());
            }
        }
        asked.extend(self.newest_first());
        asked.extend(zone);
        let reply = self.asker.ask("search", &asked).await?;
        if let Some(reply) = &reply {
            self.keep(Some(size), &Arc::new(reply.clone()));
        }
        Ok(reply.map(|reply| (reply, size)))
    }

    /// Determines the end of windows of instants from one between two of these times, newest first. `false` if such windows are
    /// not used.
    async fn end_of(&mut self, absolute: &Absolute, times: &[i64], zone: Option<&(Zone, Pair)>) -> Result<bool> {
        let unit = if absolute.instants == "epoch_ms" { 1_000 } else { 1_000_000 };
        // Instants that the format can represent.
        let sayable = |at: &&i64| *at % unit == 0;
        let day = |at: i64| at.div_euclid(DAY);
        // Within a minute, to see if seconds are honoured.
        let uneven = |at: &&i64| sayable(at) && *at % MINUTE != 0 && (*at + unit) % MINUTE != 0;
        let write = |at: i64| match absolute.instants {
            "local" => {
                let local = zones::local(zone.map_or(Zone::UTC, |(zone, _)| *zone), at);
                utc(local).format("%Y-%m-%dT%H:%M:%S").to_string()
            }
            how => written_at(at, how),
        };
        let to = times.iter().find(uneven).or(times.iter().find(sayable)).copied();
        let Some(to) = to else {
            // All times have fractions of a second, so that none can be an end.
            let last = times.iter().copied().find(|at| (*at - at.rem_euclid(unit) + unit) % MINUTE != 0);
            let honoured = match last {
                Some(last) => self.is_honoured(absolute, (last - DAY, last), unit, &write, zone).await?,
                None => return self.void("no mention shows whether absolute windows have an effect").map(|()| false),
            };
            return if honoured { self.no_end(absolute.clone()).map(|()| true) } else { Ok(false) };
        };
        // On the same day: shows that more than the date is honoured.
        let before = times.iter().copied().find(|at| *at < to && day(*at) == day(to));
        let first = times.iter().filter(sayable).copied().filter(|at| (to - DAY..to).contains(at)).min();
        let from = first.unwrap_or(to - DAY);
        let Some((reply, size)) =
            self.within(absolute, (&write(from), &write(to)), zone.map(|(_, pair)| pair.clone())).await?
        else {
            return self.no_end(absolute.clone()).map(|()| true);
        };
        if self.found.times(&reply).iter().any(|at| !(from..=to).contains(at)) {
            self.find_window_time();
        }
        let received = self.found.times(&reply);
        let whole = (received.len() as u64) < size;
        let (oldest, newest) = (received.iter().min().copied(), received.iter().max().copied());
        let inclusive = match newest {
            _ if received.iter().any(|at| !(from..=to).contains(at)) => {
                return self.void("an absolute window returned mentions outside of it").map(|()| false);
            }
            _ if whole && first.is_some() && oldest.is_some_and(|oldest| oldest > from) => {
                return self.void("an absolute window lacked a mention at its beginning").map(|()| false);
            }
            // Without a sort order, the newest mention may be missing from an incomplete page.
            _ if !whole && self.newest_first().is_none() => None,
            Some(newest) if newest == to => Some(true),
            Some(newest) if before.is_some_and(|before| newest >= before) => Some(false),
            _ if before.is_some() => {
                return self.void("absolute windows do not end at exactly the requested second").map(|()| false);
            }
            _ => None,
        };
        if inclusive != Some(true) && !self.is_honoured(absolute, (from, to), unit, &write, zone).await? {
            return Ok(false);
        }
        let Some(inclusive) = inclusive else { return self.no_end(absolute.clone()).map(|()| true) };
        let text = if inclusive { "the end of a window is inclusive" } else { "the end of a window is exclusive" };
        self.found.saw("window", text);
        self.found.window.absolute = Some(Absolute { inclusive: Some(inclusive), ..absolute.clone() });
        Ok(true)
    }

    /// Determines if a window that ends just after the time of a mention has that mention, or if bounds are rounded down. `false`
    /// if windows are not used.
    async fn is_honoured(
        &mut self,
        absolute: &Absolute,
        (from, last): (i64, i64),
        unit: i64,
        write: &(impl Fn(i64) -> String + Sync),
        zone: Option<&(Zone, Pair)>,
    ) -> Result<bool> {
        let rounded = "whether the bounds of a window are rounded down was not seen";
        if self.asker.left() <= TRIAL {
            if absolute.instants == "local" {
                return self.void(rounded).map(|()| false);
            }
            // Whole hours are the same, rounded or not.
            self.found.could_not_tell("window.granularity", format!("{rounded}; whole hours are sent"));
            self.found.window.granularity = Some("hour");
            return Ok(true);
        }
        let to = last - last.rem_euclid(unit) + unit;
        let Some((reply, _)) =
            self.within(absolute, (&write(from), &write(to)), zone.map(|(_, pair)| pair.clone())).await?
        else {
            return self.void(rounded).map(|()| false);
        };
        let (received, known) = (self.found.times(&reply), self.known_times());
        let newest = received.iter().max().copied();
        if newest.is_some_and(|newest| newest >= last) {
            return Ok(true);
        }
        let floor = |step: i64| to.div_euclid(step) * step;
        let expected = |end: i64| known.iter().copied().find(|at| (from..end).contains(at));
        let fits = |step: i64| newest.is_some() && floor(step) <= last && newest == expected(floor(step));
        let found = [("hour", HOUR), ("minute", MINUTE)].into_iter().find(|(_, step)| fits(*step));
        let Some((name, _)) = found.filter(|_| absolute.instants != "local") else {
            return self.void("a window lacked a mention just before its end").map(|()| false);
        };
        self.found.saw("window", format!("the bounds of a window are rounded down to the {name}"));
        self.found.window.granularity = Some(name);
        Ok(true)
    }

    /// Determines whose days absolute windows of days have: always those of one zone, or those of the requested one. Either is known
    /// only if nothing else fits, so days are chosen that tell zones apart, and two zones are requested in turn.
    async fn ends_of_days(&mut self, absolute: Absolute) -> Result<()> {
        /// Days that are worth a request each.
        const DAYS: usize = 3;
        let named = self.found.named_zone;
        let others = zones::all().iter().copied().filter(|zone| named != Some(*zone));
        let mut fixed: Vec<Zone> = named.into_iter().chain(others).collect();
        let other = self.other_zone();
        let mut follows = other.is_some();
        let requested: Vec<(Zone, Pair)> = other.into_iter().chain(self.utc().map(|utc| (Zone::UTC, utc))).collect();
        let (mut done, mut oldest_read) = (Vec::new(), false);
        // Set once a window from a day to the same day had no mentions, and one to the next day had them.
        let mut exclusive = false;
        // A recording may have any day.
        let days = if self.asker.is_recording() { 100 } else { DAYS };
        while done.len() < days && self.asker.left() > TRIAL {
            let is_known = if follows { fixed.is_empty() } else { self.found.told_zone(&fixed).is_some() };
            if is_known || fixed.is_empty() {
                break;
            }
            let zone = requested.get(done.len() % requested.len().max(1)).cloned();
            let asked = zone.as_ref().map(|(zone, _)| *zone).filter(|_| follows);
            let among: Vec<Zone> = fixed.iter().copied().chain(asked).collect();
            let mut known = self.known_times();
            let mut day = telling_day(&known, &fixed, asked, &done);
            if day.is_none() && !std::mem::replace(&mut oldest_read, true) && self.oldest_page().await? {
                known = self.known_times();
                day = telling_day(&known, &fixed, asked, &done);
            }
            // Without known mentions, an old day from before a change of clocks.
            let day = day.or_else(|| old_day(&known, &among, &done));
            let Some(day) = day else { break };
            done.push(day);
            let word = |day: i64| utc(day).date_naive().to_string();
            let pair = zone.map(|(_, pair)| pair);
            let end = if exclusive { day + DAY } else { day };
            let asked_for = self.within(&absolute, (&word(day), &word(end)), pair.clone()).await?;
            let Some((mut reply, mut size)) = asked_for else { continue };
            let has_known = || known.iter().any(|at| (day..day + DAY).contains(at));
            if self.found.times(&reply).is_empty() && done.len() == 1 && has_known() {
                if self.asker.left() <= TRIAL {
                    return self.void("a window from a day to itself had no mentions, and no longer one was tried");
                }
                let Some(next) = self.within(&absolute, (&word(day), &word(day + DAY)), pair).await? else { continue };
                exclusive = !self.found.times(&next.0).is_empty();
                (reply, size) = if exclusive { next } else { (reply, size) };
            }
            let mut received = self.found.times(&reply);
            if received.iter().any(|at| (at - day).abs() > 2 * DAY) {
                self.find_window_time();
                received = self.found.times(&reply);
            }
            if received.is_empty() && known.iter().all(|at| (at - day).abs() > 2 * DAY) {
                continue;
            }
            if received.is_empty() || received.iter().any(|at| (at - day).abs() > 2 * DAY) {
                return self.void("an absolute window of a day did not return the mentions of that day alone");
            }
            // The newest ones came, or all.
            let sorted = self.newest_first().is_some() && received.is_sorted_by(|a, b| a >= b);
            let whole = (received.len() as u64) < size;
            let oldest = received.iter().min().copied().filter(|_| !whole).unwrap_or(i64::MIN);
            let fits = |zone: &Zone| {
                let span = zones::day_start(*zone, day).zip(zones::day_start(*zone, day + DAY));
                span.is_some_and(|(from, to)| {
                    let within = |at: &&i64| (from..to).contains(*at);
                    let missing = |at: &i64| *at > oldest && !received.contains(at);
                    let all = whole || sorted;
                    received.iter().all(|at| within(&at)) && !(all && known.iter().filter(within).any(missing))
                })
            };
            let begins = told_start(&reply, day);
            let told = |zone: &Zone| begins.is_none_or(|begins| zones::day_start(*zone, day) == Some(begins));
            follows = asked.is_some_and(|zone| fits(&zone) && told(&zone));
            fixed.retain(|zone| fits(zone) && told(zone));
        }
        match (follows, self.found.told_zone(&fixed), &self.found.zone) {
            (true, ..) if fixed.is_empty() => {}
            (false, Some(zone), Some(known))
                if known.kind == "ignored" && Zone::named_otherwise(&known.default) == Some(zone) => {}
            (false, Some(zone), None) => {
                let text = format!("days of absolute windows are those of {zone}: the mentions of a day show it");
                self.found.saw("timezone", text);
                let default = self.found.sent_as(zone);
                self.found.zone = Some(FoundZone { kind: "ignored", default });
            }
            (false, Some(zone), Some(_)) => {
                return self
                    .void(&format!("the days of an absolute window are those of {zone}, and the timeline's are not"));
            }
            (follows, ..) => {
                let fits = match (follows, fixed.as_slice()) {
                    (true, fixed) => format!("of the requested zone, or always of {}", zones::listed(fixed)),
                    (false, []) => "of none that is known".to_owned(),
                    (false, fixed) => format!("of {}", zones::listed(fixed)),
                };
                return self.void(&format!("the days of an absolute window may be {fits}"));
            }
        }
        let end = if exclusive { "exclusive: a window from a day to itself is empty" } else { "inclusive" };
        self.found.saw("window", format!("the end of a window is {end}"));
        self.found.window.absolute = Some(Absolute { inclusive: Some(!exclusive), ..absolute });
        Ok(())
    }

    /// UTC as the value of the zone parameter, if a zone was accepted.
    fn utc(&self) -> Option<Pair> {
        let found = self.found.zone.as_ref().filter(|zone| zone.kind != "ignored").map(|zone| zone.default.as_str());
        found.or(self.found.zone_form.map(|(_, utc)| utc)).map(|utc| pair(TIMEZONE, utc))
    }

    /// Notes that the end is undetermined: it is assumed to be inclusive, and mentions at the end are dropped locally.
    fn no_end(&mut self, absolute: Absolute) -> Result<()> {
        self.found.could_not_tell("window", "the end of a window may be inclusive or exclusive; inclusive is assumed");
        self.found.window.absolute = Some(Absolute { inclusive: None, ..absolute });
        Ok(())
    }

    /// Discards absolute windows, which turned out to be unreliable.
    fn void(&mut self, why: &str) -> Result<()> {
        // Without the ends that each search needs, none is answered.
        let needed = match self.asker.ends.is_empty() {
            true => "",
            false => ". Until then, no query works: each search needs them",
        };
        let text = format!(
            "{why}, so absolute windows are not used; if the service documents them, set `absolute` or `separate`, \
             `instants` and `end`{needed}"
        );
        self.found.could_not_tell("window", text);
        self.found.window.absolute = None;
        Ok(())
    }

    pub(super) fn newest_first(&self) -> Option<Pair> {
        let newest = self.found.sorts.iter().find(|sort| sort.column == self.found.time_name() && sort.descending);
        newest.map(|sort| pair(SORT, &sort.value))
    }

    /// Determines how several values of a filter are sent.
    pub(super) async fn several_values(&mut self) -> Result<()> {
        let mut choice = None;
        for (parameter, column) in &self.found.filters {
            let Some(path) = self.found.columns.path(column) else { continue };
            let values: BTreeSet<String> = self.samples.iter().filter_map(|row| said(at(row, path)?)).collect();
            let mut counts: Vec<(usize, &String)> = values
                .iter()
                .map(|value| {
                    let has = |row: &&Value| at(row, path).and_then(said).as_ref() == Some(value);
                    (self.samples.iter().filter(has).count(), value)
                })
                .collect();
            counts.sort_by(|a, b| b.cmp(a));
            if let [(_, first), (_, second), _, ..] = counts.as_slice() {
                choice = Some((parameter.clone(), path.clone(), (*first).clone(), (*second).clone()));
                break;
            }
        }
        let Some((parameter, path, first, second)) = choice else { return Ok(()) };
        let mut ways: Vec<(&str, Vec<Pair>)> = vec![
            (",", vec![pair(&parameter, format!("{first},{second}"))]),
            ("again", vec![pair(&parameter, &first), pair(&parameter, &second)]),
            ("|", vec![pair(&parameter, format!("{first}|{second}"))]),
        ];
        // The described way comes first.
        let described = match &self.known.facts.several {
            Some(Several::Repeated) => "again",
            Some(Several::Separated(separator)) => separator.as_str(),
            _ => ",",
        };
        ways.sort_by_key(|(way, _)| *way != described);
        for (way, pairs) in ways {
            let mut asked = self.asking(self.accepted(LOOK));
            asked.extend(self.widest().into_iter().chain(pairs));
            let left = self.asker.left() > TRIAL;
            let Some(reply) = (if left { self.asker.ask("search", &asked).await? } else { None }) else {
                let text =
                    "no request was left to test filters with several values; filters are sent with a single value";
                self.found.could_not_tell("filters", text);
                return Ok(());
            };
            let rows = self.rows(&reply);
            let values: BTreeSet<String> = rows.iter().filter_map(|row| said(at(row, &path)?)).collect();
            let both = values.contains(&first) && values.contains(&second);
            if both && values.len() == 2 && rows.iter().all(|row| at(row, &path).and_then(said).is_some()) {
                let (several, text) = match way {
                    "again" => (Several::Repeated, "by repeating the parameter".to_owned()),
                    separator => (Several::Separated(separator.to_owned()), format!("separated by `{separator}`")),
                };
                self.found.saw("filters", format!("several values are sent {text}"));
                self.found.several = Some(several);
                return Ok(());
            }
        }
        self.found.saw("filters", "several values in a filter have no effect; filters are sent with a single value");
        self.found.several = Some(Several::One);
        Ok(())
    }

    /// Requests mentions at an offset and returns their ids; `None` if no request is left or mentions have no id. Where cursors name
    /// the pages, the first ones.
    pub(super) async fn ids(&mut self, offset: u64, size: u64) -> Result<Option<(Vec<String>, Reply)>> {
        if self.found.no_offset == Some(NoOffset::Refused) && self.found.cursor.is_none() {
            // Only the first page can be requested.
            return if offset == 0 { self.page_at(None, size, true).await } else { Ok(None) };
        }
        let counted = self.found.cursor.is_none();
        let from_the_first = !counted || self.found.offset.is_some_and(|known| known.first == offset);
        self.page_at(counted.then(|| pair(OFFSET, offset)), size, from_the_first).await
    }

    /// Requests the page of this number behind the newest mentions of the widest window, whose mentions may show when the entries of a
    /// timeline begin. `false` if no timeline names instants, or if pages are not found by an offset.
    pub(super) async fn further_page(&mut self, number: u64) -> Result<bool> {
        let is_timed = self.seen.iter().any(|seen| self.found.has_timed_entries(&seen.reply));
        let (Some(offset), true, true) = (self.found.offset, is_timed, self.newest_first().is_some()) else {
            return Ok(false);
        };
        let size = self.accepted(self.found.page.map_or(LOOK, |page| page.max.clamp(1, 100)));
        let rows = if offset.pages { number } else { number * size };
        Ok(self.ids(offset.first + rows, size).await?.is_some_and(|(ids, _)| !ids.is_empty()))
    }

    /// As [`ids`](Self::ids), in a window that tells the zone of times if there is one. All windows that end now have the same newest
    /// mentions.
    async fn newest_ids(&mut self, offset: u64, size: u64) -> Result<Option<(Vec<String>, Reply)>> {
        if let Some(reply) = self.recorded_newest(offset, size) {
            self.keep(None, &Arc::new(reply.clone()));
            let is_widest = self.widest().iter().all(|pair| reply.asked.contains(pair));
            self.found.widest_count = self.widest_count(&reply).filter(|_| is_widest).or(self.found.widest_count);
            let ids = self.rows(&reply).iter().map(|row| self.found.name_of(row)).collect();
            return Ok(Some((ids, reply)));
        }
        let period = self.telling_period(size).unwrap_or_else(|| self.widest());
        self.page_within(period, vec![pair(OFFSET, offset)], size, false).await
    }

    /// The response of a recording to such a request, in whatever window it was made.
    fn recorded_newest(&mut self, offset: u64, size: u64) -> Option<Reply> {
        let order = self.newest_first()?;
        loop {
            let asked = [self.aid(), pair(SIZE, self.accepted(size)), pair(OFFSET, offset), order.clone()];
            let replies = self.asker.recorded_with(&asked);
            let found = replies.iter().find(|reply| self.found.has_rows(reply) || reply.mentions(OFFSET).is_some());
            // Sizes that are smaller than the service accepts are learnt once.
            if found.is_some() || !replies.iter().any(|reply| self.learn_sizes(reply)) {
                return found.cloned();
            }
        }
    }

    /// A period of whole days that ends now and has three pages of this size, whose number of mentions tells zones of times apart.
    fn telling_period(&self, size: u64) -> Option<Vec<Pair>> {
        self.newest_first().filter(|_| self.found.time_zone.is_none())?;
        let fitting = self.found.zones_of_times(&self.seen, zones::all())?;
        let is_told = self.found.told_zone_of_times(&fitting).is_some();
        let (_, words) = self.found.telling_window(&self.seen, &fitting, &['h']).filter(|_| !is_told)?;
        let (known, hours) = (self.known_times(), self.found.hours(&words)?);
        let recent = known.iter().filter(|at| known[0] - **at < hours * HOUR).count() as u64;
        (recent >= 3 * self.accepted(size)).then(|| vec![pair(DURATION, words)])
    }

    /// Requests mentions at a place, the first ones if there is none, and returns their ids.
    async fn page_at(
        &mut self,
        place: Option<Pair>,
        size: u64,
        from_the_first: bool,
    ) -> Result<Option<(Vec<String>, Reply)>> {
        self.page_within(self.widest(), place.into_iter().collect(), size, from_the_first).await
    }

    /// Requests mentions of a period. Of several parameters, one may be the place.
    async fn page_within(
        &mut self,
        period: Vec<Pair>,
        places: Vec<Pair>,
        size: u64,
        from_the_first: bool,
    ) -> Result<Option<(Vec<String>, Reply)>> {
        let is_widest = period == self.widest();
        let rest: Vec<Pair> = period.into_iter().chain(self.newest_first()).chain(places).collect();
        let asked = |found: &Self, size| [found.asking(size), rest.clone()].concat();
        let mut size = if size < LOOK { self.accepted(size) } else { size };
        let Some(mut reply) = self.asker.ask("search", &asked(self, size)).await? else { return Ok(None) };
        // Smaller than the service accepts.
        if size < LOOK && self.learn_sizes(&reply) {
            size = self.accepted(size);
            let Some(again) = self.asker.ask("search", &asked(self, size)).await? else { return Ok(None) };
            reply = again;
        }
        self.keep(from_the_first.then_some(size), &Arc::new(reply.clone()));
        self.found.widest_count = self.widest_count(&reply).filter(|_| is_widest).or(self.found.widest_count);
        let ids = self.rows(&reply).iter().map(|row| self.found.name_of(row)).collect();
        Ok(Some((ids, reply)))
    }

    /// Determines how the pages of mentions are found: by a cursor that each page names, or by an offset. A link that has the offset as
    /// a number shows an offset.
    pub(super) async fn offset(&mut self) -> Result<()> {
        let is_numbered = self.has_numbered_link();
        if self.found.mentions.is_none() || (!is_numbered && self.cursor().await?) {
            return Ok(());
        }
        self.numbered_offset(None).await?;
        if is_numbered && self.found.offset.is_none() {
            self.cursor().await?;
        }
        if self.found.offset.is_none() && self.found.cursor.is_none() {
            self.place_of_last().await?;
        }
        if self.found.offset.is_none() && self.found.cursor.is_none() {
            self.other_place().await?;
        }
        if self.found.offset.is_some() || self.found.cursor.is_some() { Ok(()) } else { self.no_offset() }
    }

    /// True if a page links to the next one by an offset.
    fn has_numbered_link(&self) -> bool {
        let own = super::asker::own_name(OFFSET, &self.asker.names);
        let is_offset = |(name, value): &Pair| name == own && value.parse::<u64>().is_ok_and(|place| place < 1_000_000);
        let links = |reply: &Reply| {
            let next = reply.body.as_ref().map(|body| self.next_pages(body)).unwrap_or_default();
            next.iter().any(|(pairs, _)| pairs.iter().any(is_offset))
        };
        self.seen.iter().any(|seen| self.found.has_rows(&seen.reply) && links(&seen.reply))
    }

    /// Determines the unit of an offset and its first value. `second`: the response for 2, if it came before.
    async fn numbered_offset(&mut self, second: Option<(Vec<String>, Reply)>) -> Result<()> {
        let small = self.accepted(5);
        let newest = self.newest_known();
        let Some((one, _)) = self.newest_ids(1, small).await? else { return Ok(()) };
        let zero = match first_page(&newest, &one) {
            Some(first) => first,
            None => {
                let Some((zero, reply)) = self.newest_ids(0, small).await? else { return Ok(()) };
                let is_refused = reply.is_refusal() && one.is_empty() && reply.mentions(OFFSET).is_some();
                self.found.no_offset = is_refused.then_some(NoOffset::Refused);
                if !self.found.has_rows(&reply) {
                    self.refusals.push(reply);
                }
                zero
            }
        };
        let follows = |before: &[String], after: &[String]| match () {
            () if before.len() < 3 || after.len() < 3 => None,
            () if before[1..] == after[..before.len() - 1] => Some(false),
            () if before.iter().all(|id| !after.contains(id)) => Some(true),
            () => None,
        };
        let offset = if zero.is_empty() || zero == one {
            let second = if second.is_none() { self.newest_ids(2, small).await? } else { second };
            let Some((two, reply)) = second else { return Ok(()) };
            match !two.is_empty() && zero == one && one == two {
                true => self.rounded_offset(&two, &reply, small).await?,
                false => follows(&one, &two).map(|pages| Offset { pages, first: 1, aligned: false }),
            }
        } else {
            follows(&zero, &one).map(|pages| Offset { pages, first: 0, aligned: false })
        };
        if let Some(Offset { pages, first, aligned }) = offset {
            let what = if pages { "pages" } else { "rows" };
            let how = if aligned { ", rounded down to a multiple of the page size" } else { "" };
            self.found.saw("offset", format!("dataFrom counts {what} from {first}{how}"));
            (self.found.offset, self.found.no_offset) = (offset, None);
        }
        Ok(())
    }

    /// Determines if an offset within the first page has no effect because the service rounds offsets down: that of a whole page has one.
    /// `first`: names of the first mentions, which came with a response for another offset in pages of this size.
    async fn rounded_offset(&mut self, first: &[String], reply: &Reply, size: u64) -> Result<Option<Offset>> {
        let rows = first.len() as u64;
        if self.widest_count(reply).is_none_or(|count| count <= rows) {
            return Ok(None);
        }
        let Some((next, _)) = self.newest_ids(rows, size).await? else { return Ok(None) };
        if next == first {
            self.found.no_offset = Some(NoOffset::Ignored);
        }
        let is_next = !next.is_empty() && next.iter().all(|id| !first.contains(id));
        Ok(is_next.then_some(Offset { pages: false, first: 0, aligned: true }))
    }

    /// Sends usual names of the place of a page, if the service has other names than the usual ones for other parameters.
    async fn other_place(&mut self) -> Result<()> {
        const NAMES: [&str; 2] = ["page", "offset"];
        /// Requests reserved for later steps.
        const RESERVE: u64 = 6;
        let before = Arc::clone(&self.asker.names);
        let is_named = before.iter().any(|(usual, _)| usual == OFFSET);
        if before.is_empty() || is_named || !self.asker.listed.is_empty() {
            return Ok(());
        }
        let (small, known) = (self.accepted(5), self.newest_known());
        for own in NAMES {
            if self.asker.left() <= RESERVE {
                break;
            }
            self.name(OFFSET, own);
            // The third row or the second page: neither begins with the first mention.
            let second = self.newest_ids(2, small).await?;
            if second.as_ref().is_some_and(|(ids, _)| !ids.is_empty() && ids.first() != known.first()) {
                self.numbered_offset(second).await?;
            }
            if self.found.offset.is_some() {
                return Ok(());
            }
            self.asker.names = Arc::clone(&before);
        }
        Ok(())
    }

    /// Names of the newest mentions of the longest page that begins with the first one.
    fn newest_known(&self) -> Vec<String> {
        let names = |reply: &Reply| self.rows(reply).iter().map(|row| self.found.name_of(row)).collect::<Vec<String>>();
        let first = self.newest_replies().filter(|reply| reply.asked.iter().all(|(name, _)| name != OFFSET));
        first.map(names).max_by_key(Vec::len).unwrap_or_default()
    }

    /// Determines if a page names the next one. `false` if no page does.
    async fn cursor(&mut self) -> Result<bool> {
        /// Names of the parameter that are tried.
        const NAMES: usize = 3;
        let names_a_page = |reply: &Reply| reply.body.as_ref().is_some_and(|body| !self.next_pages(body).is_empty());
        if !self.seen.iter().any(|seen| self.found.has_rows(&seen.reply) && names_a_page(&seen.reply)) {
            return Ok(false);
        }
        let small = self.accepted(5);
        let Some((first, reply)) = self.page_at(None, small, true).await? else { return Ok(false) };
        let next = reply.body.as_ref().map(|body| self.next_pages(body)).unwrap_or_default();
        for (pairs, path) in next.into_iter().take(NAMES) {
            // A link repeats the parameters of the request.
            let sent = |name: &String| {
                let usual = super::asker::usual_name(name, &self.asker.names);
                reply.asked.iter().any(|(asked, _)| asked == usual)
            };
            let Some((name, value)) = pairs.into_iter().rev().find(|(name, _)| !sent(name)) else { continue };
            let Some((second, _)) = self.page_at(Some(pair(&name, value)), small, false).await? else { break };
            if !second.is_empty() && second.iter().all(|id| !first.contains(id)) {
                let text =
                    format!("each page names the next one at {}: `{name}` returned other mentions", place(&path));
                self.found.saw("offset", text);
                self.found.cursor = Some((name, CursorPlace::Response(path)));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Finds links to a next page in responses with all mentions of a window or a saved search: they say nothing about what follows.
    pub(super) async fn find_idle_links(&mut self) -> Result<()> {
        let cursor = self.found.cursor.as_ref().map(|(_, place)| place.clone());
        let is_open = |at: &Path| cursor != Some(CursorPlace::Response(at.clone()));
        let with_rows = self.seen.iter().filter(|seen| self.found.has_rows(&seen.reply));
        let is_linked = with_rows.flat_map(|seen| self.links_in(&seen.reply)).any(|at| is_open(&at));
        let is_unknown = is_linked && !self.seen.iter().any(|seen| self.has_all(seen));
        let few = match is_unknown {
            true => self.few_mentions().await?,
            false => None,
        };
        let all = self.seen.iter().chain(&few).filter(|seen| self.has_all(seen));
        let mut links = all.map(|seen| self.links_in(&seen.reply));
        let first = links.next().unwrap_or_default();
        let idle = links.fold(first, |idle, links| idle.intersection(&links).cloned().collect());
        for at in idle.into_iter().filter(is_open) {
            let text = format!("{} is there with the last mention as well, and says nothing about more", place(&at));
            self.found.saw("complete", text);
            self.found.idle_links.push(at);
        }
        Ok(())
    }

    /// True for a response with all mentions of its window.
    fn has_all(&self, seen: &Seen) -> bool {
        let largest = self.found.page.map_or(u64::MAX, |page| page.max);
        let rows = self.found.rows(&seen.reply).len() as u64;
        let total = self.found.total.as_ref().and_then(|total| number(seen.reply.body.as_ref()?, total));
        rows > 0 && seen.size.is_some_and(|size| rows < size.min(largest)) && total.is_none_or(|total| total == rows)
    }

    /// Places of links to a next page in a response.
    fn links_in(&self, reply: &Reply) -> BTreeSet<Path> {
        let body = reply.body.as_ref();
        body.map(|body| self.next_pages(body)).into_iter().flatten().map(|(_, at)| at).collect()
    }

    /// All mentions of another saved search that has a few, requested in a larger page. `None` if none is known, or if no request is
    /// left.
    async fn few_mentions(&mut self) -> Result<Option<Seen>> {
        let size = self.accepted(FEW);
        let few =
            |(_, reply): &&(String, Reply)| self.found.count(reply).is_some_and(|count| (1..size).contains(&count));
        let aid = self.visited.iter().find(few).map(|(aid, _)| aid.clone());
        let Some(aid) = aid.filter(|_| self.asker.left() > TRIAL) else { return Ok(None) };
        let mut asked = self.asking(size);
        asked.retain(|(name, _)| name != AID);
        asked.insert(0, pair(AID, aid));
        let reply = self.asker.ask("search", &asked).await?;
        Ok(reply.map(|reply| Seen { size: Some(size), reply: Arc::new(reply) }))
    }

    /// Determines if a page is requested by the id of the mention before it: the page after the third mention begins with the fourth.
    async fn place_of_last(&mut self) -> Result<()> {
        /// Requests for it.
        const TRIES: usize = 7;
        /// Mentions that it takes.
        const LEAST: usize = 5;
        let Some(at) = self.found.columns.path("id").cloned().filter(|_| self.found.fields.is_none()) else {
            return Ok(());
        };
        let small = self.accepted(5);
        let of = |found: &Findings, reply: &Reply| -> Vec<String> {
            found.rows(reply).into_iter().filter_map(|row| said(shape::at(row, &at)?)).collect()
        };
        let known = self.newest_replies().map(|reply| of(&self.found, reply)).find(|ids| ids.len() >= LEAST);
        let first = match known {
            Some(ids) => ids,
            None => {
                let Some((_, reply)) = self.page_at(None, small, true).await? else { return Ok(()) };
                of(&self.found, &reply)
            }
        };
        let [_, _, third, fourth, fifth, ..] = first.as_slice() else { return Ok(()) };
        let known = |name: &&str| {
            let named = self.parameters.as_ref().filter(|named| !named.is_empty());
            named.is_none_or(|named| named.iter().any(|known| known == name))
        };
        let mut left: Vec<&'static str> = vocabulary::PLACES.iter().copied().filter(known).collect();
        // A service that refuses unknown parameters is asked for them one by one.
        let (strict, all) = (self.parameters.is_some(), left.len());
        let mut works = false;
        for _ in 0..TRIES {
            let size = if strict { 1 } else { tried_together(all, left.len(), works) };
            let names: Vec<&'static str> = left.iter().copied().take(size).collect();
            if names.is_empty() || self.asker.left() <= TRIAL {
                break;
            }
            let places = names.iter().map(|name| pair(name, third)).collect();
            let Some((_, reply)) = self.page_within(self.widest(), places, small, false).await? else { break };
            if !of(&self.found, &reply).starts_with(&[fourth.clone(), fifth.clone()]) {
                left.drain(..names.len());
            } else if let [name] = names.as_slice() {
                let text = format!("`{name}` with the id of a mention returned the mentions after it");
                self.found.saw("offset", text);
                self.found.cursor = Some(((*name).to_owned(), CursorPlace::LastRecord(at.clone())));
                break;
            } else {
                (left, works) = (names, true);
            }
        }
        Ok(())
    }

    /// Responses with the newest mentions of a window that ends now, the last one first.
    fn newest_replies(&self) -> impl Iterator<Item = &Reply> {
        let order = self.newest_first();
        let is_newest = move |seen: &&Seen| {
            let sort = seen.reply.asked.iter().find(|(name, _)| name == SORT);
            let all = seen.size.is_some() && self.found.is_plain(&seen.reply) && self.found.ends_now(&seen.reply);
            all && sort == order.as_ref()
        };
        self.seen.iter().rev().filter(is_newest).map(|seen| seen.reply.as_ref())
    }

    /// Values in a response that may name the next page of mentions, those of parameters that the service names first.
    fn next_pages(&self, body: &Value) -> Vec<(Vec<Pair>, Path)> {
        let mentions = self.found.mentions.as_deref();
        let inside = |path: &Path| mentions.is_some_and(|at| !at.is_empty() && path.starts_with(at));
        let mut found = super::list_pages::next_pages(body);
        found.retain(|(_, path)| !inside(path));
        let told =
            |pairs: &[Pair]| pairs.last().is_some_and(|(name, _)| self.parameters.iter().flatten().any(|n| n == name));
        found.sort_by_key(|(pairs, _)| !told(pairs));
        found
    }

    pub(super) fn no_offset(&mut self) -> Result<()> {
        let asked = self.seen.iter().flat_map(|seen| &seen.reply.asked).filter(|(name, _)| name == OFFSET);
        let offsets: BTreeSet<&str> = asked.map(|(_, offset)| offset.as_str()).collect();
        let offsets: Vec<&str> = offsets.into_iter().collect();
        let text = match (self.found.no_offset, offsets.join(", ")) {
            (Some(NoOffset::Refused), _) => {
                "dataFrom is refused, and nothing that was tried requests the page after a mention; set [offset]"
                    .to_owned()
            }
            (Some(NoOffset::Ignored), offsets) => format!(
                "dataFrom has no effect: the first mentions came for {offsets} as well, and there are more. Nothing \
                 that was tried requests the page after a mention; set [offset]"
            ),
            (None, offsets) if offsets.is_empty() => {
                "no mentions came for a request with dataFrom; rows from 0 are assumed".to_owned()
            }
            (None, offsets) => format!(
                "dataFrom {offsets} show no pattern; rows from 0 are assumed. Probe a saved search with more mentions"
            ),
        };
        self.found.could_not_tell("offset", text);
        Ok(())
    }

    /// Determines the largest page size.
    pub(super) async fn page_bound(&mut self) -> Result<()> {
        const HUGE: u64 = 100_000;
        const UNTRIED: &str = "no request was left to test page sizes";
        if self.found.mentions.is_none() {
            return Ok(());
        }
        if self.asker.refuses(SIZE) {
            return self.page_seen("dataSize is refused; set [page] to the parameter of the page size");
        }
        let first = self.found.offset.map_or(0, |offset| offset.first);
        if let Some(max) = self.found.sizes.last().copied() {
            let sizes: Vec<String> = self.found.sizes.iter().map(u64::to_string).collect();
            let Some((ids, reply)) = self.ids(first, max).await? else {
                let text = format!("dataSize must be one of {}; the largest was not tried", sizes.join(", "));
                self.found.could_not_tell("page", text);
                self.found.page = Some(PageFinding { max, clamped: false });
                return Ok(());
            };
            let all = self.widest_count(&reply).is_some_and(|count| count <= max);
            let text = format!("dataSize must be one of {}; {max} returned {} mentions", sizes.join(", "), ids.len());
            match ids.len() as u64 == max || (all && !ids.is_empty()) {
                true => self.found.saw("page", text),
                false => self.found.could_not_tell("page", text),
            }
            self.found.page = Some(PageFinding { max, clamped: false });
            return Ok(());
        }
        let Some((ids, reply)) = self.ids(first, HUGE).await? else { return self.page_seen(UNTRIED) };
        if !ids.is_empty() {
            self.largest_page(HUGE, ids.len() as u64, &reply);
            return Ok(());
        }
        let is_refused = reply.is_refusal_of(&[SIZE]);
        if reply.is_refusal() && !is_refused {
            return self.page_seen("a request for a larger page was refused because of another parameter");
        }
        let what = if is_refused { "was refused" } else { "returned no mentions" };
        let hint = number_in(&reply.message(), Some(HUGE));
        self.refusals.push(reply);
        let hint = self.known.facts.most(SIZE).or(hint);
        let bounds: Vec<u64> = hint.into_iter().chain(vocabulary::PAGE_BOUNDS.iter().copied()).collect();
        for max in bounds {
            // The remaining requests are reserved for the depth, so the service's own figure is used.
            let asked = if self.asker.left() <= 3 { None } else { self.ids(first, max).await? };
            let Some((ids, reply)) = asked else {
                if let Some(max) = hint.filter(|max| *max >= LOOK) {
                    self.found.saw("page", format!("dataSize={HUGE} {what}, naming {max} as the limit"));
                    self.found.page = Some(PageFinding { max, clamped: false });
                    return Ok(());
                }
                break;
            };
            if ids.is_empty() {
                self.refusals.push(reply);
                continue;
            }
            let told = ids.len() as u64 == max || self.widest_count(&reply).is_some_and(|count| count <= max);
            let text = format!("dataSize={HUGE} {what}, {max} was accepted");
            if told {
                self.found.saw("page", text)
            } else {
                self.found.could_not_tell("page", text)
            };
            self.found.page = Some(PageFinding { max, clamped: false });
            return Ok(());
        }
        let accepted = self.seen.iter().any(|seen| seen.reply.asked.contains(&pair(SIZE, LOOK)));
        let told = accepted && hint.is_some_and(|bound| bound == LOOK);
        let how = if accepted { "was accepted" } else { "is assumed" };
        let text = format!("dataSize={HUGE} {what}, {LOOK} {how}");
        if told {
            self.found.saw("page", text)
        } else {
            self.found.could_not_tell("page", text)
        };
        self.found.page = Some(PageFinding { max: LOOK, clamped: false });
        Ok(())
    }

    /// Records the page that came for a size that is larger than any service accepts.
    fn largest_page(&mut self, size: u64, rows: u64, reply: &Reply) {
        let count = self.widest_count(reply).or(self.found.widest_count);
        let has_all = count.is_none_or(|count| rows >= count);
        // A service may return a least number of mentions for smaller sizes: the size has an effect unless as many come for this one.
        let mut max = rows;
        if self.idle_size() == Some(rows) {
            let text = format!(
                "dataSize has no effect: a page has {rows} mentions, whatever is requested; set [page] to the parameter \
                 of the page size"
            );
            self.found.could_not_tell("page", text);
            self.found.idle_size = Some(rows);
            self.seen.iter_mut().for_each(|seen| seen.size = seen.size.and(Some(rows)));
        } else if has_all {
            let usual = vocabulary::PAGE_BOUNDS.iter().copied().find(|bound| *bound <= rows);
            // This size was requested before and not refused.
            max = usual.unwrap_or(rows).max(LOOK);
            let text = format!("dataSize={size} returned {rows} mentions, perhaps all there are; {max} is assumed");
            self.found.could_not_tell("page", text);
        } else {
            self.found.saw("page", format!("dataSize={size} returned {rows} mentions"));
        }
        self.found.page = Some(PageFinding { max, clamped: true });
    }

    /// The number of mentions of a page, if as many came for several sizes, and for one that is smaller.
    fn idle_size(&self) -> Option<u64> {
        let of = |seen: &Seen| {
            let size = seen.reply.asked.iter().find(|(name, _)| name == SIZE)?.1.parse::<u64>().ok()?;
            let rows = self.found.rows(&seen.reply).len() as u64;
            // All mentions of a window come for any size.
            let has_more = self.widest_count(&seen.reply).is_none_or(|count| count > rows);
            (has_more && self.found.is_plain(&seen.reply)).then_some((size, rows))
        };
        let came: BTreeSet<(u64, u64)> = self.seen.iter().filter_map(of).collect();
        let (smallest, rows) = came.first().copied()?;
        let is_same = came.len() > 1 && came.iter().all(|(_, other)| *other == rows);
        Some(rows).filter(|rows| is_same && *rows > smallest)
    }

    /// Uses the largest page that was received, if nothing shows a larger one.
    fn page_seen(&mut self, why: &str) -> Result<()> {
        let pages = self.seen.iter().map(|seen| self.found.rows(&seen.reply).len() as u64);
        let Some(max) = pages.max().filter(|max| *max > 0) else { return Ok(()) };
        self.found.could_not_tell("page", format!("{why}; {max} mentions were received"));
        self.found.page = Some(PageFinding { max, clamped: false });
        Ok(())
    }

    /// Number of mentions within the widest window.
    pub(super) fn widest_count(&self, reply: &Reply) -> Option<u64> {
        let body = reply.body.as_ref()?;
        // A capped total says less than the timeline.
        let exact = |path: &Path| number(body, path).filter(|_| !super::numbers::is_bound(body, path));
        let totals = [&self.found.counted, &self.found.total];
        totals.into_iter().flatten().find_map(exact).or_else(|| self.found.sum(reply))
    }

    /// Determines how deep paging reaches.
    pub(super) async fn depth(&mut self) -> Result<()> {
        let (Some(_), Some(page)) = (&self.found.mentions, self.found.page) else { return Ok(()) };
        if self.found.cursor.is_some() {
            self.found.could_not_tell("depth", "how far cursors reach was not tried; all mentions are assumed");
            return Ok(());
        }
        if self.found.has_first_page_only() {
            self.found.could_not_tell("depth", "nothing is known that requests a further page");
            return Ok(());
        }
        if self.asker.left() <= TRIAL {
            return self.untried_depth();
        }
        let Some(total) = self.found.widest_count else {
            let text = "the depth of paging was not tested: no page came that counts the mentions of its window";
            self.found.could_not_tell("depth", text);
            return Ok(());
        };
        let offset = self.found.offset.unwrap_or_default();
        let total = total.max(1);
        if total <= page.max {
            return self.no_depth(total);
        }
        let (from, size, expected) = self.last_offset(total, offset, page.max);
        let Some((ids, reply)) = self.ids(from, size).await? else { return self.untried_depth() };
        if ids.len() as u64 == expected {
            let text = format!("paging reaches all {total} mentions; a limit beyond that is unknown");
            self.found.saw("depth", text);
            return Ok(());
        }
        if ids.len() as u64 > expected {
            let step = if offset.pages { 1 } else { size };
            let Some((further, _)) = self.ids(from + step, size).await? else { return self.untried_depth() };
            if further != ids {
                self.found.is_capped = true;
                self.found.could_not_tell("depth", format!("paging returned more mentions than the total of {total}"));
                return Ok(());
            }
        }
        let beyond = match (ids.is_empty(), reply.status) {
            (false, _) => "last_page",
            (true, 404) => "not_found",
            (true, 200..=299) if self.found.has_rows(&reply) => "empty",
            (true, _) => "bad_request",
        };
        // A limit named in the refusal comes first.
        let told = number_in(&reply.message(), Some(total)).filter(|_| reply.is_refusal());
        let usual = vocabulary::DEPTHS.iter().rev().copied();
        for rows in told.into_iter().chain(usual).filter(|rows| *rows < total && *rows >= page.max) {
            let (from, size) = match offset.pages {
                true => (offset.first + rows.div_ceil(page.max) - 1, page.max),
                false => (offset.first + rows - self.accepted(1).min(rows), self.accepted(1)),
            };
            let Some((ids, _)) = self.ids(from, size).await? else {
                if told == Some(rows) {
                    self.found.saw("depth", format!("row {total} was refused, naming {rows} as the limit ({beyond})"));
                    self.found.depth = Some(Depth { rows, beyond });
                    return Ok(());
                }
                break;
            };
            let reached = !ids.is_empty() && (beyond != "last_page" || ids.len() as u64 == size);
            if reached {
                self.found.saw("depth", format!("row {rows} was returned, row {total} was not ({beyond})"));
                self.found.depth = Some(Depth { rows, beyond });
                return Ok(());
            }
        }
        self.found.could_not_tell("depth", format!("row {total} was not returned ({beyond}); the limit was not found"));
        // A scan discovers the limit itself.
        Ok(())
    }

    /// The request for the last of these mentions, alone or with its page: its offset, its size, and the mentions that it returns.
    fn last_offset(&self, total: u64, offset: Offset, largest: u64) -> (u64, u64, u64) {
        let size = if offset.pages { largest } else { self.accepted(2) };
        let row = total - 1;
        let row = if offset.pages || offset.aligned { row / size * size } else { row };
        let place = if offset.pages { row / size } else { row };
        (offset.first + place, size, (total - row).min(size))
    }

    fn untried_depth(&mut self) -> Result<()> {
        self.found.could_not_tell("depth", "no request was left to test how deep paging reaches");
        Ok(())
    }

    fn no_depth(&mut self, total: u64) -> Result<()> {
        let text = format!("{total} mentions are too few to test how deep paging reaches; probe a larger saved search");
        self.found.could_not_tell("depth", text);
        Ok(())
    }
}

/// The first page of the newest mentions, in the size of another page, if that page shows where it lies among them: at the first mention,
/// at the second one, or behind the first page.
fn first_page(newest: &[String], page: &[String]) -> Option<Vec<String>> {
    /// Mentions that do not follow each other by chance.
    const LEAST: usize = 3;
    let size = page.len();
    let first = newest.get(..size).filter(|_| size >= LEAST && newest.len() >= 2 * size)?;
    [0, 1, size].into_iter().any(|from| newest[from..from + size] == *page).then(|| first.to_vec())
}

/// Number of parameters that are tried next, if one of `all` has an effect: all of them, then the likeliest one of those that work
/// together, then half of those that are left.
fn tried_together(all: usize, left: usize, works: bool) -> usize {
    match works {
        false => left,
        true if left == all => 1,
        true => left.div_ceil(2),
    }
}

/// The instant at which a response says that its window begins, which was requested from this day on. A time without a zone is
/// none.
fn told_start(reply: &Reply, day: i64) -> Option<i64> {
    let leaves = reply.body.as_ref().map(shape::leaves).unwrap_or_default();
    let named = |path: &Path| path.last().is_some_and(|name| starts(name));
    let begins = leaves.into_iter().filter(|(path, value)| named(path) && !shape::is_local(value));
    let mut instants = begins.filter_map(|(_, value)| shape::instant(value)).filter(|at| (at - day).abs() <= DAY);
    let first = instants.next()?;
    instants.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::asker::Asker;
    use crate::probe::known::Known;

    /// A probe that received pages of these sizes with these numbers of the 400 mentions.
    fn paged(pages: &[(u64, u64)]) -> Dialogue {
        let mut dialogue = Dialogue::new(Asker::recorded(Arc::default()), Known::default());
        (dialogue.found.mentions, dialogue.found.total) =
            (Some(vec!["items".to_owned()]), Some(vec!["total".to_owned()]));
        for (size, rows) in pages {
            let rows: Vec<Value> = (0..*rows).map(|n| serde_json::json!({"id": n})).collect();
            let body = serde_json::json!({"total": 400, "items": rows}).to_string();
            let reply = Reply::new(&[pair(SIZE, size)], 200, http::HeaderMap::new(), body);
            dialogue.seen.push(Seen { size: Some(*size), reply: Arc::new(reply) });
        }
        dialogue
    }

    #[test]
    fn a_size_that_never_has_an_effect_is_no_size() {
        let cases = [
            (vec![(13, 25), (20, 25), (5, 25)], Some(25)),
            // As many as requested, at most 25.
            (vec![(13, 13), (100, 25)], None),
            // The next one of several sizes.
            (vec![(13, 25), (5, 10)], None),
            // One size, and sizes that may be larger than what there is.
            (vec![(13, 25)], None),
            (vec![(13, 8), (20, 8)], None),
        ];
        crate::cases::each(cases, |(pages, idle)| assert_eq!(paged(&pages).idle_size(), idle));
    }

    #[test]
    fn a_least_page_size_is_not_one_without_an_effect() {
        for (rows, idle) in [(25, Some(25)), (100, None)] {
            let mut dialogue = paged(&[(13, 25), (20, 25), (5, 25), (100_000, rows)]);
            let huge = Arc::clone(&dialogue.seen[3].reply);
            dialogue.largest_page(100_000, rows, &huge);
            let page = Some(PageFinding { max: rows, clamped: true });
            assert_eq!((dialogue.found.idle_size, dialogue.found.page), (idle, page));
        }
    }

    #[test]
    fn the_last_mention_is_requested_where_a_page_may_begin() {
        let dialogue = paged(&[]);
        let of = |pages, first, aligned| dialogue.last_offset(40, Offset { pages, first, aligned }, 25);
        assert_eq!([of(false, 0, false), of(false, 1, false)], [(39, 2, 1), (40, 2, 1)]);
        assert_eq!([of(false, 0, true), of(true, 1, false)], [(38, 2, 2), (2, 25, 15)]);
    }

    #[test]
    fn newest_mentions_show_the_place_of_another_page() {
        let names = |range: std::ops::Range<usize>| range.map(|n| format!("m{n}")).collect::<Vec<String>>();
        let cases = [
            // The same page, the next row, the next page.
            (20, 0..5, true),
            (20, 1..6, true),
            (20, 5..10, true),
            // Elsewhere, or with another mention.
            (20, 2..7, false),
            (20, 18..23, false),
            // Too few mentions to see the next page, or to be there by no chance.
            (9, 1..6, false),
            (20, 0..2, false),
            (20, 0..0, false),
        ];
        for (newest, page, shown) in cases {
            let first = first_page(&names(0..newest), &names(page.clone()));
            assert_eq!(first, shown.then(|| names(0..page.len())), "{newest} {page:?}");
        }
    }

    #[test]
    fn the_only_parameter_that_works_is_found_within_seven_requests_and_the_likeliest_within_two() {
        let all = vocabulary::PLACES.len();
        for own in 0..all {
            let (mut left, mut works, mut requests) = ((0..all).collect::<Vec<usize>>(), false, 0);
            loop {
                let tried: Vec<usize> = left.iter().copied().take(tried_together(all, left.len(), works)).collect();
                requests += 1;
                match (tried.contains(&own), tried.len()) {
                    (true, 1) => break,
                    (true, _) => (left, works) = (tried, true),
                    (false, len) => drop(left.drain(..len)),
                }
            }
            let most = if own == 0 { 2 } else { 7 };
            assert!(requests <= most, "{own}: {requests} requests");
        }
    }
}
