//! Determines offsets, the page limit, the depth of paging, the ends of windows, and filters with several values.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::SecondsFormat;
use serde_json::Value;

use super::asker::{Pair, Reply};
use super::candidates::{DURATION, OFFSET, SIZE, SORT, TIMEZONE, pair};
use super::dialogue::{Dialogue, LOOK};
use super::effects::{DAY, MINUTE};
use super::judge::{minutes_of, offset_text};
use super::observations::{Absolute, Depth, Form, Offset, PageFinding, Several, Zone};
use super::scheduler::number_in;
use super::shape::{Path, at, number, said, utc};
use super::vocabulary;
use crate::error::Result;

/// Requests reserved for trying the profile.
pub(super) const TRIAL: u64 = 2;

impl Dialogue {
    /// Determines if an absolute window is honoured exactly, and if its end is inclusive.
    pub(super) async fn ends(&mut self) -> Result<()> {
        let Some(absolute) = self.found.window.absolute.clone() else { return Ok(()) };
        let by_day = absolute.instants == "date";
        let unit = match absolute.instants {
            "date" => DAY,
            "epoch_ms" => 1_000,
            _ => 1_000_000,
        };
        let times = self.instants(&self.samples.iter().collect::<Vec<_>>());
        let times: Vec<i64> = times.into_iter().collect::<BTreeSet<_>>().into_iter().rev().collect();
        // Instants that the format can represent.
        let sayable = |at: &&i64| by_day || *at % unit == 0;
        let day = |at: i64| at.div_euclid(DAY);
        // Of a day that has passed, mentions show in which zone it begins and ends.
        let past =
            times.iter().copied().find(|at| by_day && times.first().is_some_and(|newest| day(*newest) > day(*at)));
        let Some(to) = past.or(times.iter().find(sayable).copied()) else { return self.no_end(absolute) };
        // On the same day: shows that more than the date is honoured.
        let before = times.iter().copied().find(|at| *at < to && day(*at) == day(to));
        let first = times.iter().filter(sayable).copied().filter(|at| (to - DAY..to).contains(at)).min();
        let from = if by_day { to } else { first.unwrap_or(to - DAY) };
        let write = |at: i64| match absolute.instants {
            "date" => utc(at).date_naive().to_string(),
            "local" => utc(at).format("%Y-%m-%dT%H:%M:%S").to_string(),
            "epoch_ms" => (at / 1_000).to_string(),
            "epoch_s" => (at / 1_000_000).to_string(),
            _ => utc(at).to_rfc3339_opts(SecondsFormat::Secs, true),
        };
        let size = self.accepted(self.found.page.map_or(LOOK, |page| page.max.clamp(1, 100)));
        let mut asked = self.asking(size);
        match &absolute.form {
            Form::Template(template) => {
                let words = template.replace("{from}", &write(from)).replace("{to}", &write(to));
                asked.push(pair(DURATION, words));
            }
            Form::Separate(since, until) => {
                asked.extend([pair(since, write(from)), pair(until, write(to))]);
                asked.extend(self.found.window.with.clone());
            }
        }
        asked.extend(self.newest_first());
        asked.extend(self.utc().filter(|_| by_day));
        let Some(reply) = self.asker.ask("search", &asked).await? else { return self.no_end(absolute) };
        let known = times;
        let times = self.found.times(&reply);
        self.keep(Some(size), &Arc::new(reply.clone()));
        let whole = (times.len() as u64) < size;
        if by_day && !times.is_empty() && !self.days_are_known(day(to), &times, &known, whole) {
            return self.void("the days of an absolute window are those of another zone");
        }
        let (oldest, newest) = (times.iter().min().copied(), times.iter().max().copied());
        let outside = |at: &i64| if by_day { day(*at).abs_diff(day(to)) > 1 } else { !(from..=to).contains(at) };
        let inclusive = match newest {
            _ if times.iter().any(outside) => {
                return self.void("an absolute window returned mentions outside of it");
            }
            _ if !by_day && whole && first.is_some() && oldest.is_some_and(|oldest| oldest > from) => {
                return self.void("an absolute window lacked a mention at its beginning");
            }
            newest if by_day => Some(newest.is_some()),
            // Without a sort order, the newest mention may be missing from an incomplete page.
            _ if !whole && self.newest_first().is_none() => None,
            Some(newest) if newest == to => Some(true),
            Some(newest) if before.is_some_and(|before| newest >= before) => Some(false),
            _ if before.is_some() => return self.void("the end of an absolute window is not honoured to the second"),
            _ => None,
        };
        let Some(inclusive) = inclusive else { return self.no_end(absolute) };
        let text = if inclusive { "the end of a window is inclusive" } else { "the end of a window is exclusive" };
        self.found.saw("window", text);
        self.found.window.absolute = Some(Absolute { inclusive: Some(inclusive), ..absolute });
        Ok(())
    }

    /// UTC as the value of the zone parameter, if a zone was accepted.
    fn utc(&self) -> Option<Pair> {
        let found = self.found.zone.as_ref().filter(|zone| zone.kind != "ignored").map(|zone| zone.default.as_str());
        found.or(self.found.zone_form.map(|(_, utc)| utc)).map(|utc| pair(TIMEZONE, utc))
    }

    /// True if the zone of the days of absolute windows is known: that of the profile, or one that the mentions of a day show.
    /// `known`: times of mentions, some of which may be missing in the window of the day.
    fn days_are_known(&mut self, day: i64, times: &[i64], known: &[i64], whole: bool) -> bool {
        let fits = |minutes: &i64| {
            let start = day * DAY - minutes * MINUTE;
            let within = |at: &&i64| (start..start + DAY).contains(*at);
            let missing = |at: &i64| !times.contains(at);
            times.iter().all(|at| within(&at)) && !(whole && known.iter().filter(within).any(missing))
        };
        let assumed = match &self.found.zone {
            Some(zone) if zone.kind == "ignored" => minutes_of(&zone.default),
            _ => 0,
        };
        if fits(&assumed) {
            return true;
        }
        let fitting: Vec<i64> = (-24..=28).map(|half| half * 30).filter(fits).collect();
        let hours: Vec<i64> = fitting.iter().copied().filter(|minutes| minutes % 60 == 0).collect();
        let one =
            match (self.found.time_zone.filter(|zone| fitting.contains(zone)), hours.as_slice(), fitting.as_slice()) {
                (Some(zone), ..) => Some(zone),
                (None, [one], _) | (None, [], [one]) => Some(*one),
                _ => None,
            };
        let Some(minutes) = one.filter(|_| self.found.zone.is_none()) else { return false };
        let zone = offset_text(minutes);
        self.found
            .saw("timezone", format!("days are those of {zone}, whatever is sent: the mentions of a day show it"));
        self.found.zone = Some(Zone { kind: "ignored", default: zone });
        true
    }

    /// Notes that the end is undetermined: it is assumed to be inclusive, and mentions at the end are dropped locally.
    fn no_end(&mut self, absolute: Absolute) -> Result<()> {
        self.found.could_not_tell("window", "the end of a window may be inclusive or exclusive; inclusive is assumed");
        self.found.window.absolute = Some(Absolute { inclusive: None, ..absolute });
        Ok(())
    }

    /// Discards absolute windows, which turned out to be unreliable.
    fn void(&mut self, why: &str) -> Result<()> {
        let text = format!(
            "{why}, so absolute windows are not used; if the service documents them, set `absolute` or `separate`, \
             `instants` and `end`"
        );
        self.found.could_not_tell("window", text);
        self.found.window.absolute = None;
        Ok(())
    }

    pub(super) fn newest_first(&self) -> Option<Pair> {
        let newest = self.found.sorts.iter().find(|sort| sort.column == "published_at" && sort.descending);
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

    /// Requests mentions at an offset and returns their ids; `None` if no request is left or mentions have no id.
    pub(super) async fn ids(&mut self, offset: u64, size: u64) -> Result<Option<(Vec<String>, Reply)>> {
        let mut asked = self.asking(size);
        asked.extend(self.widest());
        asked.extend(self.newest_first());
        asked.push(pair(OFFSET, offset));
        let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(None) };
        let from_the_first = self.found.offset.is_some_and(|known| known.first == offset);
        self.keep(from_the_first.then_some(size), &Arc::new(reply.clone()));
        self.found.widest_count = self.widest_count(&reply).or(self.found.widest_count);
        let ids = self.rows(&reply).iter().map(|row| self.found.name_of(row)).collect();
        Ok(Some((ids, reply)))
    }

    /// Determines the unit of an offset and its first value.
    pub(super) async fn offset(&mut self) -> Result<()> {
        if self.found.mentions.is_none() {
            return Ok(());
        }
        let small = self.accepted(5);
        let Some((one, _)) = self.ids(1, small).await? else { return self.no_offset() };
        let Some((zero, reply)) = self.ids(0, small).await? else { return self.no_offset() };
        if !self.found.has_rows(&reply) {
            self.refusals.push(reply);
        }
        let follows = |before: &[String], after: &[String]| match () {
            () if before.len() < 3 || after.len() < 3 => None,
            () if before[1..] == after[..before.len() - 1] => Some(false),
            () if before.iter().all(|id| !after.contains(id)) => Some(true),
            () => None,
        };
        let offset = if zero.is_empty() || zero == one {
            let Some((two, _)) = self.ids(2, small).await? else { return self.no_offset() };
            follows(&one, &two).map(|pages| Offset { pages, first: 1 })
        } else {
            follows(&zero, &one).map(|pages| Offset { pages, first: 0 })
        };
        match offset {
            Some(Offset { pages, first }) => {
                let what = if pages { "pages" } else { "rows" };
                self.found.saw("offset", format!("dataFrom counts {what} from {first}"));
                self.found.offset = offset;
                Ok(())
            }
            None => self.no_offset(),
        }
    }

    pub(super) fn no_offset(&mut self) -> Result<()> {
        let text =
            "dataFrom 0, 1 and 2 show no pattern; rows from 0 are assumed. Probe a saved search with more mentions";
        self.found.could_not_tell("offset", text);
        Ok(())
    }

    /// Determines the largest page size.
    pub(super) async fn page_bound(&mut self) -> Result<()> {
        const HUGE: u64 = 100_000;
        if self.found.mentions.is_none() {
            return Ok(());
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
        let Some((ids, reply)) = self.ids(first, HUGE).await? else { return self.page_seen() };
        if !ids.is_empty() {
            let rows = ids.len() as u64;
            let count = self.widest_count(&reply).or(self.found.widest_count);
            let all = count.is_none_or(|count| rows >= count);
            if all {
                let max = vocabulary::PAGE_BOUNDS.iter().copied().find(|bound| *bound <= rows).unwrap_or(rows);
                // This size was requested before and not refused.
                let max = max.max(LOOK);
                let text = format!("dataSize={HUGE} returned {rows} mentions, perhaps all there are; {max} is assumed");
                self.found.could_not_tell("page", text);
                self.found.page = Some(PageFinding { max, clamped: true });
            } else {
                self.found.saw("page", format!("dataSize={HUGE} returned {rows} mentions"));
                self.found.page = Some(PageFinding { max: rows, clamped: true });
            }
            return Ok(());
        }
        let hint = number_in(&reply.message());
        self.refusals.push(reply);
        let hint = self.known.facts.most(SIZE).or(hint);
        let bounds: Vec<u64> = hint.into_iter().chain(vocabulary::PAGE_BOUNDS.iter().copied()).collect();
        for max in bounds {
            // The remaining requests are reserved for the depth, so the service's own figure is used.
            let asked = if self.asker.left() <= 3 { None } else { self.ids(first, max).await? };
            let Some((ids, reply)) = asked else {
                if let Some(max) = hint.filter(|max| *max >= LOOK) {
                    self.found.saw("page", format!("dataSize={HUGE} was refused, naming {max} as the limit"));
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
            let text = format!("dataSize={HUGE} was refused, {max} was accepted");
            if told {
                self.found.saw("page", text)
            } else {
                self.found.could_not_tell("page", text)
            };
            self.found.page = Some(PageFinding { max, clamped: false });
            return Ok(());
        }
        // This size was requested before and not refused.
        let told = hint.is_some_and(|bound| bound == LOOK);
        let text = format!("dataSize={HUGE} was refused, {LOOK} was accepted");
        if told {
            self.found.saw("page", text)
        } else {
            self.found.could_not_tell("page", text)
        };
        self.found.page = Some(PageFinding { max: LOOK, clamped: false });
        Ok(())
    }

    /// Uses the largest page that was received, for lack of requests.
    fn page_seen(&mut self) -> Result<()> {
        let pages = self.seen.iter().map(|seen| self.found.rows(&seen.reply).len() as u64);
        let Some(max) = pages.max().filter(|max| *max > 0) else { return Ok(()) };
        self.found
            .could_not_tell("page", format!("no request was left to test page sizes; {max} mentions were received"));
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
        if self.asker.left() <= TRIAL {
            self.found.could_not_tell("depth", "no request was left to test how deep paging reaches");
            return Ok(());
        }
        let Some(total) = self.found.widest_count else { return self.no_depth(0) };
        let offset = self.found.offset.unwrap_or(Offset { pages: false, first: 0 });
        // The last record alone, or the last page.
        let total = total.max(1);
        let question = |row: u64| match offset.pages {
            true => (offset.first + row / page.max, page.max, (total - row / page.max * page.max).min(page.max)),
            false => (offset.first + row, self.accepted(2), (total - row).min(self.accepted(2))),
        };
        if total <= page.max {
            return self.no_depth(total);
        }
        let (from, size, expected) = question(total - 1);
        let Some((ids, reply)) = self.ids(from, size).await? else { return self.no_depth(0) };
        if ids.len() as u64 == expected {
            let text = format!("paging reaches all {total} mentions; a limit beyond that is unknown");
            self.found.saw("depth", text);
            return Ok(());
        }
        if ids.len() as u64 > expected {
            let step = if offset.pages { 1 } else { size };
            let Some((further, _)) = self.ids(from + step, size).await? else { return self.no_depth(total) };
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
        let told = number_in(&reply.message()).filter(|_| reply.is_refusal());
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

    pub(super) fn no_depth(&mut self, total: u64) -> Result<()> {
        let few = if total == 0 { "too few mentions".to_owned() } else { format!("{total} mentions are too few") };
        let text = format!("{few} to test how deep paging reaches; probe a larger saved search");
        self.found.could_not_tell("depth", text);
        Ok(())
    }
}
