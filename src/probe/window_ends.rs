//! Determines if absolute windows are exact: if their end is inclusive, if their bounds are rounded, and whose days they have.
//!
//! A window that is not exact would lose mentions without a sign, so it is used only if the mentions that came show its bounds.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use chrono::SecondsFormat;

use super::asker::{Pair, Reply};
use super::candidates::{DURATION, TIMEZONE, pair};
use super::dialogue::{Dialogue, LOOK, TRIAL};
use super::effects::{DAY, HOUR, MINUTE, starts};
use super::observations::{Absolute, Form, Zone as FoundZone};
use super::shape::{self, Path, utc};
use super::zones;
use crate::error::Result;
use crate::profile::Zone;

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
        if let Some(other) = self.zone_with_effect() {
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

    /// As [`other_zone`](Self::other_zone), also if only the days of the timeline show the effect.
    fn zone_with_effect(&self) -> Option<(Zone, Pair)> {
        self.other_zone().or_else(|| self.zone_of_other_days())
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
        let other = self.zone_with_effect();
        let fixed: Vec<Zone> = named.into_iter().chain(others).collect();
        let mut search = DaySearch { fixed, follows: other.is_some(), ..DaySearch::default() };
        let requested: Vec<(Zone, Pair)> = other.into_iter().chain(self.utc().map(|utc| (Zone::UTC, utc))).collect();
        // Set once a window from a day to the same day had no mentions, and one to the next day had them.
        let mut exclusive = false;
        // Set once a window had mentions: a zone that a person states says nothing about the end.
        let mut has_come = false;
        // A recording may have any day.
        let days = if self.asker.is_recording() { 100 } else { DAYS };
        while search.done.len() < days && self.asker.left() > TRIAL {
            let DaySearch { fixed, follows, .. } = &search;
            let is_known = if *follows { fixed.is_empty() } else { self.found.told_zone(fixed).is_some() };
            if (is_known && has_come) || fixed.is_empty() {
                break;
            }
            let zone = requested.get(search.done.len() % requested.len().max(1)).cloned();
            let asked = zone.as_ref().map(|(zone, _)| *zone).filter(|_| search.follows);
            let Some((day, known)) = self.next_day(&mut search, asked).await? else { break };
            search.done.push(day);
            let word = |day: i64| utc(day).date_naive().to_string();
            let pair = zone.map(|(_, pair)| pair);
            let end = if exclusive { day + DAY } else { day };
            let asked_for = self.within(&absolute, (&word(day), &word(end)), pair.clone()).await?;
            let Some((mut reply, mut size)) = asked_for else { continue };
            let has_known = || known.iter().any(|at| (day..day + DAY).contains(at));
            if self.found.times(&reply).is_empty() && !has_come && !exclusive && has_known() {
                if self.asker.left() <= TRIAL {
                    return self.void("a window from a day to itself had no mentions, and no longer one was tried");
                }
                let Some(next) = self.within(&absolute, (&word(day), &word(day + DAY)), pair).await? else { continue };
                exclusive = !self.found.times(&next.0).is_empty();
                (reply, size) = if exclusive { next } else { (reply, size) };
            }
            let is_far = |at: &i64| (at - day).abs() > 2 * DAY;
            let mut received = self.found.times(&reply);
            if received.iter().any(is_far) {
                self.find_window_time();
                received = self.found.times(&reply);
            }
            if received.is_empty() && known.iter().all(is_far) {
                continue;
            }
            if received.is_empty() || received.iter().any(is_far) {
                return self.void("an absolute window of a day did not return the mentions of that day alone");
            }
            // The newest ones came, or all.
            let sorted = self.newest_first().is_some() && received.is_sorted_by(|a, b| a >= b);
            let whole = (received.len() as u64) < size;
            let oldest = received.iter().min().copied().filter(|_| !whole).unwrap_or(i64::MIN);
            let (complete_from, begins) = ((whole || sorted).then_some(oldest), told_start(&reply, day));
            has_come |= !received.is_empty();
            let mentions = DayMentions { day, received, known, complete_from, begins };
            search.follows = asked.is_some_and(|zone| mentions.fit(zone));
            search.fixed.retain(|zone| mentions.fit(*zone));
        }
        if !has_come && self.found.told_zone(&search.fixed).is_some() {
            return self.void("no window of a day had mentions");
        }
        if self.tell_zone_of_days(search.follows, &search.fixed)? {
            let zone = self.found.told_zone(&search.fixed).filter(|_| !search.follows);
            let known = self.known_times();
            let came = (self.seen.as_slice(), known.as_slice());
            let is_other = |zone| self.found.contradicts_end(&absolute, !exclusive, came, zone);
            if zone.is_some_and(is_other) {
                return self.void("windows of one day and of several days show different ends");
            }
            let end = if exclusive { "exclusive: a window from a day to itself is empty" } else { "inclusive" };
            self.found.saw("window", format!("the end of a window is {end}"));
            self.found.window.absolute = Some(Absolute { inclusive: Some(!exclusive), ..absolute });
        }
        Ok(())
    }

    /// The day to request next, and the times of mentions that are known; `None` if no day tells zones apart. `asked`: the zone that is
    /// requested, if its days may be those of windows. Otherwise, the zone that the list names is told apart first.
    async fn next_day(&mut self, search: &mut DaySearch, asked: Option<Zone>) -> Result<Option<(i64, Vec<i64>)>> {
        let mut known = self.known_times();
        // The zone that the list names is the likeliest one.
        let likely = asked.or(self.found.named_zone.filter(|zone| search.fixed.contains(zone)));
        let mut day = telling_day(&known, &search.fixed, likely, &search.done);
        if day.is_none() && !std::mem::replace(&mut search.has_oldest, true) && self.oldest_page().await? {
            known = self.known_times();
            day = telling_day(&known, &search.fixed, likely, &search.done);
        }
        // Without known mentions, an old day from before a change of clocks.
        let among: Vec<Zone> = search.fixed.iter().copied().chain(asked).collect();
        let day = day.or_else(|| old_day(&known, &among, &search.done));
        Ok(day.map(|day| (day, known)))
    }

    /// Takes the zone whose days windows have. `false` if it is not known, or not that of the timeline: windows are not used then.
    fn tell_zone_of_days(&mut self, follows: bool, fixed: &[Zone]) -> Result<bool> {
        match (follows, self.found.told_zone(fixed), &self.found.zone) {
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
                let text = format!("the days of an absolute window are those of {zone}, and the timeline's are not");
                return self.void(&text).map(|()| false);
            }
            (follows, ..) => {
                let fits = match (follows, fixed) {
                    (true, fixed) => format!("of the requested zone, or always of {}", zones::listed(fixed)),
                    (false, []) => "of none that is known".to_owned(),
                    (false, fixed) => format!("of {}", zones::listed(fixed)),
                };
                return self.void(&format!("the days of an absolute window may be {fits}")).map(|()| false);
            }
        }
        Ok(true)
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
}

/// Zones whose days windows may have, and what was requested to tell them apart.
#[derive(Debug, Default)]
struct DaySearch {
    /// Zones that fit whatever is requested.
    fixed: Vec<Zone>,
    /// Set while the requested zone fits.
    follows: bool,
    /// Days that were requested.
    done: Vec<i64>,
    /// Set once the oldest mentions were requested.
    has_oldest: bool,
}

/// Times of the mentions that came for a day, and of those that were known before.
#[derive(Debug)]
struct DayMentions {
    day: i64,
    received: Vec<i64>,
    known: Vec<i64>,
    /// Time of the mention after which none is missing; `None` if any may be.
    complete_from: Option<i64>,
    /// Beginning of the window as the response says it.
    begins: Option<i64>,
}

impl DayMentions {
    /// True if they may be those of the day in this zone.
    fn fit(&self, zone: Zone) -> bool {
        let span = zones::day_start(zone, self.day).zip(zones::day_start(zone, self.day + DAY));
        span.is_some_and(|(from, to)| {
            let within = |at: &&i64| (from..to).contains(*at);
            let missing =
                |at: &i64| self.complete_from.is_some_and(|oldest| *at > oldest) && !self.received.contains(at);
            self.begins.is_none_or(|begins| begins == from)
                && self.received.iter().all(|at| within(&at))
                && !self.known.iter().filter(within).any(missing)
        })
    }
}

/// The day, as its midnight in UTC, whose mentions tell these zones apart best, or from the likely one; `None` if none does.
/// `known`: times of mentions, newest first. `but`: days that were asked for.
fn telling_day(known: &[i64], zones: &[Zone], likely: Option<Zone>, but: &[i64]) -> Option<i64> {
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
        let alike = match likely {
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
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_likely_zone_is_told_apart_first() {
        let at = |text: &str| shape::instant(&Value::from(text)).expect("an instant");
        // Days of Kyiv begin at 22:00 in UTC, those of +01:30 at 22:30, and those of +01:00 at 23:00.
        let known =
            ["25T12:00", "20T12:00", "19T22:15", "18T12:00", "17T22:45"].map(|day| at(&format!("2026-11-{day}:00Z")));
        let zones = ["Europe/Kyiv", "UTC", "+01:00", "+01:30"].map(|zone| zone.parse::<Zone>().expect("a zone"));
        let day = |likely: Option<Zone>| telling_day(&known, &zones, likely, &[]);
        assert_eq!(day(None), Some(at("2026-11-18T00:00:00Z")));
        assert_eq!(day(Some(zones[0])), Some(at("2026-11-20T00:00:00Z")));
    }
}
