//! Conclusions from the responses to candidates: which windows, zones and sort orders have an effect, and what responses echo.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::asker::Reply;
use super::candidates::{DURATION, NONSENSE, SORT, TIMEZONE, pair};
use super::dialogue::Dialogue;
use super::effects::{KOLKATA, ends_named, starts};
use super::observations::{Absolute, Findings, Form, Sort, WindowFinding, Zone};
use super::scheduler::{Dimension, Kind, Outcome, Try, number_in};
use super::shape::{Path, Type, at, instant, leaves, pointer, said};
use super::{vocabulary, zones as clocks};
use crate::error::{Tool, one_line};
use crate::profile::Zone as Clock;

impl Dialogue {
    /// Determines the windows that the service has, and the widest one of them.
    pub(super) fn judge_periods(&mut self, periods: &Dimension, newest: Option<i64>) {
        let works = |(tried, reply): &(&Try, &Arc<Reply>)| self.found.has_effect(periods, tried, reply, newest);
        let effective: Vec<(&Try, &Arc<Reply>)> = periods.taken().filter(works).collect();
        let mut notes = Vec::new();
        let mut window = WindowFinding::default();
        for (tried, reply) in &effective {
            notes.extend(self.add_period(&mut window, tried, reply, newest));
        }
        for (tried, outcome) in &periods.done {
            if let Outcome::Refused(text) = outcome
                && text.contains("longer")
            {
                // A refusal may repeat the days that were requested.
                let asked = tried.hours().and_then(|hours| u64::try_from(hours / 24).ok());
                window.longest = number_in(text, asked);
                notes.extend(window.longest.map(|days| format!("an error names {days} days as the longest window")));
            }
        }
        let longest = longest_listed(periods, &effective);
        match longest {
            Some(days) if window.absolute.is_none() => {
                window.longest = window.longest.or(Some(days));
                notes.push(format!("a number of days that is not listed works; {days} is the largest listed one"));
            }
            // Absolute windows reach further.
            Some(_) => {
                let names = window.names.clone();
                let is_listed = |notation: &str| names.iter().any(|(name, _)| vocabulary::is_of(name, notation));
                window.units.retain(|(_, notation)| !is_listed(notation));
            }
            None => {}
        }
        // Of a number that is one of many, the notation is enough.
        let units = window.units.clone();
        let is_numbered = |name: &str| units.iter().any(|(_, notation)| vocabulary::is_of(name, notation));
        window.names.retain(|(name, _)| !is_numbered(name));
        let reach = |tried: &Try| match tried.label.as_str() {
            _ if matches!(tried.kind, Kind::Relative(..)) => tried.hours(),
            name if is_numbered(name) => tried.hours(),
            name => window.names.iter().find(|(known, _)| known == name).map(|(_, hours)| *hours),
        };
        let widest = effective.into_iter().filter_map(|(tried, reply)| Some((reach(tried)?, tried, reply)));
        let widest = widest.max_by_key(|(hours, ..)| *hours);
        window.widest = widest.map(|(_, tried, _)| (tried.label.clone(), tried.pairs.clone()));
        // The request had no filters, so this is the count of all mentions.
        let count = widest.filter(|_| !self.found.with_overview).and_then(|(.., reply)| self.found.count(reply));
        self.found.widest_count = count;
        let told = window.widest.is_some();
        let mut relative = periods.taken().filter(|(tried, _)| matches!(tried.kind, Kind::Relative(..)));
        window.is_checked = matches!(periods.outcome(NONSENSE), Some(Outcome::Refused(_))) && relative.next().is_some();
        self.tell_listed_periods(periods, &window);
        self.found.window = window;
        // Whether absolute windows are used is not known yet.
        match told || self.found.window.absolute.is_some() {
            true => self.found.saw("window", notes.join("; ")),
            false => self.found.could_not_tell(
                "window",
                without_effect(
                    ["none of the values tried for `duration` had an effect", &self.untried(DURATION)],
                    "; look them up in the service's documentation and set [window]",
                    periods,
                ),
            ),
        }
    }

    /// Adds a period that had an effect to the window. Returns the note about it; `None` if nothing was added.
    fn add_period(
        &self,
        window: &mut WindowFinding,
        tried: &Try,
        reply: &Reply,
        newest: Option<i64>,
    ) -> Option<String> {
        let label = tried.label.as_str();
        match &tried.kind {
            Kind::Relative(unit, template) => {
                if window.units.iter().all(|(known, _)| known != unit) {
                    window.units.push((*unit, template.clone()));
                }
                Some(format!("duration={label} works"))
            }
            Kind::Absolute if label.starts_with('{') => {
                let (template, instants) = label.split_once(' ').unwrap_or((label, "rfc3339"));
                let instants = written(instants);
                let form = Form::Template(template.to_owned());
                window.absolute.get_or_insert(Absolute { form, instants, inclusive: None });
                Some(format!("duration={} works", tried.pairs[0].1))
            }
            Kind::Absolute if label.starts_with("ends ") => {
                let instants = written(label);
                let [(since, _), (until, _), with @ ..] = tried.pairs.as_slice() else { return None };
                if with.iter().any(|(name, _)| name != DURATION) || window.absolute.is_some() {
                    return None;
                }
                window.with = with.to_vec();
                window.working = vec![since.clone(), until.clone()];
                let form = Form::Separate(since.clone(), until.clone());
                window.absolute = Some(Absolute { form, instants, inclusive: None });
                Some(format!("{since} and {until} work, with {instants} values"))
            }
            Kind::Absolute | Kind::Value => {
                let known = vocabulary::hours(label).or_else(|| self.found.days_in(label, reply, newest));
                // Of a number that is one of many, the notation is enough.
                let general =
                    label.parse::<u16>().is_ok() && window.units.iter().any(|(_, template)| template == "{n}");
                let hours = self.found.lasting(reply, known, newest).filter(|_| !general)?;
                window.names.push((label.to_owned(), hours));
                Some(format!("duration={label} reaches back {hours} h at least"))
            }
        }
    }

    /// Notes the periods that the service lists and whose lengths were not seen.
    fn tell_listed_periods(&mut self, periods: &Dimension, window: &WindowFinding) {
        let listed = periods.done.iter().filter_map(|(_, outcome)| match outcome {
            Outcome::Refused(text) => Some(super::refusal::values(text)),
            Outcome::Taken(_) | Outcome::Unknown => None,
        });
        let mut left = listed.max_by_key(Vec::len).unwrap_or_default();
        let known = |name: &String| window.names.iter().any(|(known, _)| known == name) || name.contains(['<', '{']);
        left.retain(|name| !known(name) && window.units.is_empty());
        if left.is_empty() {
            return;
        }
        let entries = left.iter().map(|name| {
            let hours = vocabulary::hours(name)
                .or_else(|| days_named(name))
                .map_or("…".to_owned(), |hours| format!("{hours}h"));
            format!("{} = \"{hours}\"", toml::Value::String(name.clone()))
        });
        let entries: Vec<String> = entries.collect();
        let text = format!(
            "the service also lists {}, whose lengths were not seen; if they end now rather than at midnight, add to \
             [window]: names = {{ {} }}, and run {}",
            left.join(", "),
            entries.join(", "),
            Tool::CheckProfile
        );
        self.found.could_not_tell("window.names", text);
    }

    /// Requests UTC with each search from now on, if mentions have other times when a zone is requested. Responses without it no
    /// longer count, because their times are of another zone.
    pub(super) fn follow_zone(&mut self, zones: &Dimension) {
        let zone_of =
            |reply: &Reply| reply.asked.iter().find(|(name, _)| name == TIMEZONE).map(|(_, zone)| zone.clone());
        let plain: Vec<&Reply> =
            self.seen.iter().map(|seen| seen.reply.as_ref()).filter(|reply| zone_of(reply).is_none()).collect();
        let moved = zones.taken().find(|(_, reply)| plain.iter().any(|other| self.found.times_differ(other, reply)));
        let Some((tried, _)) = moved.filter(|_| self.found.time_zone.is_none()) else { return };
        let utc = kind_of_zone(&tried.label).1;
        let text = format!(
            "times are written without a zone, and mentions have other times for timezone={}: each search requests timezone={utc}",
            tried.label
        );
        self.found.saw("timezone", text);
        self.found.with.push(pair(TIMEZONE, utc));
        self.found.takes_no_zone = true;
        self.found.time_zone = Some(Clock::UTC);
        self.seen.retain(|seen| zone_of(&seen.reply).as_deref() == Some(utc));
        let rows: Vec<Value> = self.seen.iter().flat_map(|seen| self.found.rows(&seen.reply)).cloned().collect();
        if !rows.is_empty() {
            self.samples = rows;
        }
    }

    pub(super) fn judge_zones(&mut self, zones: &Dimension) {
        if self.found.takes_no_zone {
            return;
        }
        if self.is_unnamed(TIMEZONE) {
            self.found.takes_no_zone = true;
            self.found.saw("timezone", "timezone is not among the parameters that the service names: none is sent");
        } else if zones.taken().next().is_none()
            && zones.done.iter().any(|(_, outcome)| matches!(outcome, Outcome::Refused(_)))
        {
            self.found.takes_no_zone = true;
            self.found.saw("timezone", "each value of timezone was refused: none is sent");
        }
        let view = &self.found;
        let moved = zones
            .taken()
            .find(|(_, reply)| view.days_begin(reply) == Some(KOLKATA))
            .map(|(tried, _)| tried.label.clone());
        // Days that begin at the same times whatever is sent are those of one zone.
        let taken = zones.taken().map(|(_, reply)| reply.as_ref());
        let all: Vec<&Reply> = taken.chain(self.seen.iter().map(|seen| seen.reply.as_ref())).collect();
        let stays = view.zones_of_starts(all.into_iter(), clocks::all()).filter(|_| zones.taken().next().is_some());
        match (moved, stays.as_deref()) {
            (Some(label), _) => {
                let (kind, default) = kind_of_zone(&label);
                self.found.saw("timezone", format!("the timeline's days follow timezone={label}"));
                self.found.zone = Some(Zone { kind, default: default.to_owned() });
                self.found.counts_days = true;
            }
            (None, Some([zone])) => {
                let text = format!("the timeline's days are those of {zone}; the timezone parameter has no effect");
                self.found.saw("timezone", text);
                self.found.zone = Some(Zone { kind: "ignored", default: zone.to_string() });
                self.found.timeline_zone = Some(*zone);
                self.found.counts_days = true;
            }
            _ => {
                // A service may reject either zone names or UTC offsets.
                let refused = |label: &str| matches!(zones.outcome(label), Some(Outcome::Refused(_)));
                let taken = |label: &str| matches!(zones.outcome(label), Some(Outcome::Taken(_)));
                self.found.distances =
                    (refused("Asia/Kolkata") && taken("+05:30")) || (refused("UTC") && taken("+00:00"));
                self.found.zone_taken = zones.taken().next().map(|(tried, _)| tried.label.clone());
                self.found.zone_form = self.found.zone_taken.as_deref().map(kind_of_zone);
            }
        }
    }

    /// Returns the columns by which rows are sorted, each with true if descending; a column named in `value` comes
    /// first.
    pub(super) fn orders_of(&self, rows: &[&Value], value: &str) -> Vec<(String, bool)> {
        /// Differing neighbours required to rule out an order by chance.
        const DISTINCT: usize = 4;
        let value = vocabulary::plain(value);
        let called = |name: &str| value.contains(&vocabulary::plain(name));
        let mut orders = Vec::new();
        for (name, path, kind) in &self.found.columns.columns {
            if !matches!(kind, Type::Timestamp | Type::Int64 | Type::Float64) || rows.len() < 4 {
                continue;
            }
            let key = |row: &&Value| {
                let time = self.found.columns.instant(path, row).filter(|_| *kind == Type::Timestamp);
                #[expect(clippy::cast_precision_loss, reason = "instants and counts are compared, not kept")]
                time.map(|at| at as f64).or_else(|| at(row, path)?.as_f64())
            };
            let keys: Vec<Option<f64>> = rows.iter().map(key).collect();
            let known: Vec<f64> = keys.iter().copied().flatten().collect();
            let nulls_last = keys.iter().skip_while(|key| key.is_some()).all(Option::is_none);
            let distinct = known.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let enough = if called(name) || name == "published_at" { 2 } else { DISTINCT };
            if distinct < enough || !nulls_last {
                continue;
            }
            if known.is_sorted() {
                orders.push((name.clone(), false));
            } else if known.is_sorted_by(|a, b| a >= b) {
                orders.push((name.clone(), true));
            }
        }
        // A sequence number is in the order of the time as well.
        let rank =
            |name: &str| ["published_at", "reach", "engagement"].iter().position(|known| *known == name).unwrap_or(9);
        orders.sort_by_key(|(name, _)| (!called(name), rank(name)));
        orders
    }

    pub(super) fn judge_orders(&mut self, orders: &Dimension) {
        let usual = match orders.outcome(NONSENSE) {
            Some(Outcome::Taken(reply)) => self.orders_of(&self.rows(reply), "").first().cloned(),
            _ => None,
        };
        let mut notes = Vec::new();
        let mut sorts: Vec<Sort> = Vec::new();
        for (tried, reply) in orders.taken().filter(|(tried, _)| tried.label != NONSENSE) {
            let Some((column, descending)) = self.orders_of(&self.rows(reply), &tried.label).into_iter().next() else {
                continue;
            };
            // Two values for the same order count once.
            let known = sorts.iter().any(|sort| (&sort.column, sort.descending) == (&column, descending));
            let as_usual = usual.as_ref() == Some(&(column.clone(), descending));
            if known {
                continue;
            }
            let direction = if descending { "descending" } else { "ascending" };
            let besides = if as_usual { " (as does an unknown value)" } else { "" };
            notes.push(format!("sortBy={} sorts by {column}, {direction}{besides}", tried.label));
            sorts.push(Sort { value: tried.label.clone(), column, descending });
        }
        match sorts.is_empty() {
            false => self.found.saw("sort", notes.join("; ")),
            true => self.found.could_not_tell(
                "sort",
                without_effect(
                    ["none of the values tried for `sortBy` had an effect", &self.untried(SORT)],
                    "; look them up in the service's documentation and set [sort]",
                    orders,
                ),
            ),
        }
        self.found.sorts = sorts;
    }

    /// Finds the request values that responses echo.
    pub(super) fn echoes(&mut self, periods: &Dimension, zones: &Dimension) {
        let mut found: Vec<(&'static str, Path)> = Vec::new();
        let aid = self.found.aid.clone().unwrap_or_default();
        let outside = |found: &Findings, path: &Path| {
            found.overview.as_ref().is_none_or(|o| o.is_empty() || !path.starts_with(o))
        };
        if let Some((_, reply)) = periods.taken().chain(zones.taken()).next()
            && let Some(body) = &reply.body
        {
            for (path, value) in leaves(body).into_iter().filter(|(path, _)| outside(&self.found, path)) {
                if said(value).as_deref() == Some(&aid) {
                    found.push(("aid", path));
                }
            }
        }
        if let Some((tried, reply)) = zones.taken().next()
            && let Some(body) = &reply.body
        {
            for (path, value) in leaves(body).into_iter().filter(|(path, _)| outside(&self.found, path)) {
                if value.as_str() == Some(&tried.label) {
                    found.push(("timezone", path));
                }
            }
        }
        // Two instants that span the requested window.
        let bounds = |body: &Value| -> Option<(Path, Path, i64, i64)> {
            let moments: Vec<(Path, i64)> = leaves(body)
                .into_iter()
                .filter_map(|(path, value)| Some((path, value.as_str()?.contains('T').then(|| instant(value))??)))
                .collect();
            moments.iter().find_map(|(from, since)| {
                let ends = |path: &Path| path.len() == from.len() && path[..path.len() - 1] == from[..from.len() - 1];
                let named = from.last().is_some_and(|name| starts(name));
                let until = moments.iter().find(|(to, until)| named && ends(to) && until > since && ends_named(to))?;
                Some((from.clone(), until.0.clone(), *since, until.1))
            })
        };
        for (tried, reply) in periods.taken() {
            let Some(expected) = tried.hours() else { continue };
            if let Some((from, to, since, until)) = reply.body.as_ref().and_then(bounds)
                && (until - since) / 3_600_000_000 == expected
            {
                found.extend([("from", from), ("to", to)]);
                break;
            }
        }
        let mut known = BTreeSet::new();
        found.retain(|(name, _)| known.insert(*name));
        if !found.is_empty() {
            let said: Vec<String> = found.iter().map(|(name, path)| format!("{name} at `{}`", pointer(path))).collect();
            self.found.saw("echo", format!("responses echo {}", said.join(", ")));
        }
        self.found.echoes = found;
    }
}

/// The largest listed number of days in the notation of a smaller one that is not listed, of periods that had an effect. A service may cut
/// periods that are longer without a sign.
fn longest_listed(periods: &Dimension, effective: &[(&Try, &Arc<Reply>)]) -> Option<u64> {
    let listed = match periods.outcome(NONSENSE)? {
        Outcome::Refused(text) => super::refusal::values(text),
        Outcome::Taken(_) | Outcome::Unknown => return None,
    };
    let numbers = effective.iter().filter_map(|(tried, _)| match &tried.kind {
        Kind::Relative('d', notation) => Some((notation, tried.hours()?)),
        _ => None,
    });
    let longest = numbers.filter_map(|(notation, hours)| {
        let is_listed = |other: &Try| listed.contains(&other.label) && vocabulary::is_of(&other.label, notation);
        let hours_listed =
            effective.iter().filter(|(other, _)| is_listed(other)).filter_map(|(other, _)| other.hours());
        hours_listed.max().filter(|longest| *longest > hours)
    });
    u64::try_from(longest.max()? / 24).ok()
}

/// A note about candidates without an effect, with the service's first refusal of one; or about those that were not requested.
pub(super) fn without_effect([tried, untried]: [&str; 2], rest: &str, dimension: &Dimension) -> String {
    let text = format!("{}{rest}", if dimension.is_untried() { untried } else { tried });
    let refused = dimension.done.iter().find_map(|(tried, outcome)| match outcome {
        Outcome::Refused(text) => Some((tried, text)),
        Outcome::Taken(_) | Outcome::Unknown => None,
    });
    match refused {
        Some((tried, words)) => {
            let words = one_line(words);
            format!("{text}. The service refused `{}`: {words}", tried.label)
        }
        None => text,
    }
}

/// Hours of the days in a name, such as `ultimos7dias`.
fn days_named(name: &str) -> Option<i64> {
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    let days: i64 = digits.parse().ok().filter(|days| (1..=400).contains(days))?;
    Some(days * 24)
}

/// The profile's kind of zones like this one, and UTC as such a zone.
pub(super) fn kind_of_zone(label: &str) -> (&'static str, &'static str) {
    match label {
        _ if label.starts_with('+') => ("offset", "+00:00"),
        _ if label.starts_with("UTC+") => ("utc_offset", "UTC+00:00"),
        _ if label.starts_with(|c: char| c.is_ascii_digit()) => ("minutes", "0"),
        _ => ("iana", "UTC"),
    }
}

/// Returns the profile's name for the instant format of a candidate, by its label.
fn written(label: &str) -> &'static str {
    let ways = ["date", "epoch_ms", "epoch_s", "local"];
    ways.into_iter().find(|way| label.ends_with(way)).unwrap_or("rfc3339")
}
