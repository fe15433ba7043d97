//! Rounds of candidates, and what their responses show about time windows, zones, sort orders, filters and echoes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::asker::{Pair, Reply, own_name};
use super::candidates::{
    AID, ALONE, DURATION, LONG, NONSENSE, OFFSET, SIZE, SORT, Spoken, TIMEZONE, any_notation, are_told, more_filters,
    more_orders, more_periods, more_zones, notation, pair, parameters_of, span, template_of, unit_at,
    written as written_ends,
};
use super::dialogue::{Dialogue, LOOK};
use super::effects::{KOLKATA, ends_named, starts};
use super::observations::{Absolute, Findings, Form, MentionsParameter, Sort, WindowFinding, Zone};
use super::paging::TRIAL;
use super::scheduler::{self, Dimension, Kind, Outcome, Try, number_in};
use super::shape::{Path, Type, at, each_once, inside, instant, leaves, pointer, said};
use super::{vocabulary, zones as clocks};
use crate::error::{Result, one_line};
use crate::profile::Zone as Clock;

impl Dialogue {
    /// Tries windows, zones, sort orders and filters, several in one request.
    pub(super) async fn rounds(&mut self) -> Result<()> {
        /// Known periods, and sort orders, that are worth a request each.
        const PERIODS: usize = 5;
        const ORDERS: usize = 6;
        // Periods that were requested beside other parameters refer to the same time.
        let beside = self.beside.take().filter(|_| !self.knows_periods());
        let newest = beside.as_ref().and_then(|beside| beside.newest);
        let newest = newest.or_else(|| self.instants(&self.samples.iter().collect::<Vec<_>>()).into_iter().max());
        let mut periods = beside.map_or_else(super::candidates::periods, |beside| beside.periods);
        let zones = ["Asia/Kolkata", "+05:30"].map(|zone| Try::new(zone, TIMEZONE, zone));
        let mut zones = Dimension::new("zone", zones);
        let mut orders =
            Dimension::new("order", [NONSENSE, vocabulary::SORTS[0]].map(|value| Try::new(value, SORT, value)));
        let mut filters = Dimension::new("filter", self.filters());
        let facts = self.known.facts.clone();
        // A week first, then the longest ones.
        let mut known = facts.values(DURATION);
        known.sort_by_key(|value| vocabulary::hours(value).map_or((1, 0), |hours| (i64::from(hours != 168), -hours)));
        for value in known.into_iter().take(PERIODS).rev() {
            if facts.ends().is_some() && facts.all(DURATION).is_empty() && vocabulary::hours(&value).is_none() {
                continue;
            }
            // Of a complete list, no other number is one.
            let form = if facts.all(DURATION).is_empty() { self.notation_of(&value) } else { None };
            let tried = match (form, newest.zip(template_of(&value, ""))) {
                (Some((unit, template)), _) => Try::relative(DURATION, unit, &template, LONG[unit_at(unit)]),
                (None, Some((newest, (separator, how)))) => {
                    let (from, to) = written_ends(span(newest), how);
                    let label = format!("{{from}}{separator}{{to}} {how}");
                    Try::absolute(label, vec![pair(DURATION, format!("{from}{separator}{to}"))])
                }
                (None, None) => Try::new(value.clone(), DURATION, value.clone()),
            };
            // The control comes first, and a name as it was given comes after its notation with another number.
            let is_name = matches!(tried.kind, Kind::Relative(..)) && notation(&value).is_none();
            let as_given = is_name.then(|| Try::new(value.clone(), DURATION, value.clone()));
            for tried in as_given.into_iter().chain([tried]) {
                periods.queue.retain(|other| other.pairs != tried.pairs);
                periods.queue.insert(1, tried);
            }
        }
        if let (Some((since, until, how)), Some(newest)) = (facts.ends(), newest) {
            let (from, to) = written_ends(span(newest), how);
            let ends = vec![pair(&since, from), pair(&until, to)];
            // With a period beside them if there is one: `duration=custom`.
            for value in facts.values(DURATION).into_iter().filter(|value| vocabulary::hours(value).is_none()) {
                let ends = [ends.clone(), vec![pair(DURATION, value)]].concat();
                periods.queue.insert(1, Try::absolute(format!("ends {how}"), ends));
            }
            periods.queue.insert(1, Try::absolute(format!("ends {how}"), ends));
        }
        for value in facts.values(TIMEZONE) {
            let other = match kind_of_zone(&value).0 {
                "offset" => "+05:30",
                "utc_offset" => "UTC+05:30",
                "minutes" => "330",
                _ => continue,
            };
            zones.add_first(Try::new(other, TIMEZONE, other));
        }
        let given = facts.values(SORT);
        if !given.is_empty() {
            orders.queue.truncate(1);
            let all = facts.all(SORT);
            let reversed = |value: &String| all.is_empty().then(|| super::candidates::reverse(value));
            let tried = given.iter().flat_map(|value| [Some(value.clone()), reversed(value)]).flatten();
            for value in tried.take(ORDERS) {
                orders.add(Try::new(value.clone(), SORT, value));
            }
        }
        if self.found.mentions.is_none() {
            orders.queue.clear();
            filters.queue.clear();
        }
        if self.found.timeline.is_none() {
            // Without a timeline no effect would show, but the acceptance of a form does.
            zones = Dimension::new("zone", ["UTC", "+00:00"].map(|zone| Try::new(zone, TIMEZONE, zone)));
        }
        let (aid, asking) = (self.aid(), self.asking(self.accepted(LOOK)));
        if self.found.timeline.is_none() && self.found.mentions.is_some() {
            // Only the oldest mention shows how far back a window reaches.
            let mut some = [orders, zones];
            self.try_all(&asking, &mut some, newest).await?;
            [orders, zones] = some;
            orders.taken().for_each(|(_, reply)| self.keep(Some(self.accepted(LOOK)), reply));
            self.look_at_mentions();
            self.follow_zone(&zones);
            let oldest = orders.taken().find(|(_, reply)| {
                self.orders_of(&self.rows(reply), "").first().is_some_and(|(by, last)| by == "published_at" && !last)
            });
            let mut fixed = self.asking(self.accepted(LOOK));
            fixed.extend(oldest.map(|(tried, _)| pair(SORT, &tried.label)));
            let mut others = [periods, filters];
            self.try_all(&fixed, &mut others, newest).await?;
            [periods, filters] = others;
        } else if self.found.with_overview || self.found.mentions.is_none() || self.found.overview.is_none() {
            let mut all = [periods, zones, orders, filters];
            let fixed = if self.found.mentions.is_some() { asking } else { vec![aid] };
            self.try_all(&fixed, &mut all, newest).await?;
            [periods, zones, orders, filters] = all;
        } else {
            let mut some = [periods, zones];
            self.try_all(&[aid], &mut some, newest).await?;
            [periods, zones] = some;
            self.judge_periods(&periods, newest);
            let mut fixed = asking;
            fixed.extend(self.widest());
            let mut others = [orders, filters];
            self.try_all(&fixed, &mut others, newest).await?;
            [orders, filters] = others;
        }
        for (_, reply) in orders.taken().chain(filters.taken()).chain(periods.taken()) {
            let size = reply.asked.iter().find(|(name, _)| name == SIZE);
            let size: Option<u64> = size.and_then(|(_, size)| size.parse().ok());
            if !self.seen.iter().any(|seen| seen.reply.asked == reply.asked) {
                self.keep(size.or(Some(self.accepted(LOOK))), reply);
            }
        }
        self.look_at_mentions();
        self.follow_zone(&zones);
        if self.found.window.widest.is_none() {
            self.judge_periods(&periods, newest);
        }
        self.judge_zones(&zones);
        self.judge_orders(&orders);
        self.judge_filters(&filters);
        self.echoes(&periods, &zones);
        Ok(())
    }

    pub(super) async fn try_all<const N: usize>(
        &mut self,
        fixed: &[Pair],
        dimensions: &mut [Dimension; N],
        newest: Option<i64>,
    ) -> Result<()> {
        // Requests reserved for the remaining steps: for those that a profile cannot do without, or for all.
        const LEAST: u64 = 5;
        const ALL: u64 = 9;
        // For the zone of times that are written without one, once a period is known.
        const ZONE: u64 = 3;
        let parts = [self.found.overview.as_ref(), self.found.mentions.as_ref()];
        let parts: Vec<&Path> = parts.into_iter().flatten().collect();
        let spoken = self.seen.iter().rev().find_map(|seen| seen.reply.body.as_ref());
        let spoken = spoken.map(|body| Spoken::of(body, &parts)).unwrap_or_default();
        let is_local = self.found.time_zone.is_none()
            && self.samples.iter().any(|row| self.found.has_local_time(row) == Some(true));
        let [no_period, no_order, no_zone] = [DURATION, SORT, TIMEZONE].map(|usual| self.is_unnamed(usual));
        let Self { asker, found, parameters, .. } = self;
        // All pairs of ends are sent at once, which a strict service would reject if it does not name its parameters.
        let named = parameters.as_deref();
        let unasked = found.asked == Some(MentionsParameter::Always) && asker.refuses(SIZE);
        let mentions = unasked || fixed.iter().any(|(name, _)| name == SIZE);
        let is_data = |reply: &Reply| {
            !reply.is_refusal() && if mentions { found.has_rows(reply) } else { found.has_overview(reply) }
        };
        scheduler::run(asker, fixed, dimensions, is_data, |dimensions| {
            for dimension in dimensions.iter_mut() {
                match dimension.name {
                    "period" => next_periods(found, dimension, newest, named, &spoken.periods, no_period),
                    "order" if no_order => dimension.give_up(|_| true),
                    "order" => more_orders(found, dimension, &spoken.orders),
                    "filter" => more_filters(found, dimension),
                    "zone" if no_zone => dimension.give_up(|_| true),
                    "zone" if dimension.taken().next().is_none() => more_zones(dimension),
                    // If no entry of a timeline is an instant, a second zone would show nothing new.
                    "zone" if found.timeline.is_none() || found.has_plain_days => dimension.queue.clear(),
                    "zone" if dimension.taken().any(|(_, reply)| found.days_begin(reply) == Some(KOLKATA)) => {
                        dimension.queue.clear();
                    }
                    _ => {}
                }
            }
            // Periods of several lengths and two orders are worth more than what comes later.
            let lacks = |dimension: &Dimension| match dimension.name {
                "period" => are_periods_lacking(found, dimension, newest, named, is_local),
                "order" => dimension.taken().filter(|(tried, _)| tried.label != NONSENSE).count() < 2,
                _ => false,
            };
            let open = dimensions.iter().any(|dimension| lacks(dimension) && !dimension.queue.is_empty());
            let mut periods = dimensions.iter().filter(|dimension| dimension.name == "period");
            let has_period = periods.any(|dimension| {
                dimension.taken().any(|(tried, reply)| found.has_effect(dimension, tried, reply, newest))
            });
            (if open { LEAST } else { ALL }) + if is_local && has_period { ZONE } else { 0 }
        })
        .await
    }

    /// True for a parameter that is not among those that the service names, which are all that it has.
    fn is_unnamed(&self, usual: &str) -> bool {
        /// Names that are not a hint at a single parameter.
        const NAMES: usize = 4;
        let own = own_name(usual, &self.asker.names);
        let named = self.parameters.as_ref().filter(|named| named.len() >= NAMES);
        let is_answered = self.seen.iter().any(|seen| seen.reply.asked.iter().any(|(name, _)| name == usual));
        !is_answered && named.is_some_and(|named| !named.iter().any(|name| name == usual || name == own))
    }

    /// The reason why no value of a parameter was tried.
    fn untried(&self, usual: &str) -> String {
        match self.is_unnamed(usual) {
            true => format!("`{usual}` is not among the parameters that the service names"),
            false => format!("no value of `{usual}` was tried"),
        }
    }

    /// Candidates for filters: values that some of the received mentions have, but not all.
    pub(super) fn filters(&self) -> Vec<Try> {
        /// Distinct values that a filtered field has at most.
        const VALUES: usize = 12;
        /// Characters of a value that is filtered by.
        const WORD: usize = 40;
        /// Candidates that are worth a request each.
        const MOST: usize = 6;
        /// Parameters that are sent at once.
        const TOGETHER: usize = 6;
        // A parameter of the example whose value some mentions have.
        let mut tries = Vec::new();
        for (parameter, value) in self.known.facts.others() {
            let has =
                |path: &Path| self.samples.iter().any(|row| at(row, path).and_then(said).as_ref() == Some(&value));
            let column = self.found.columns.columns.iter().find(|(_, path, kind)| *kind == Type::Utf8 && has(path));
            tries.extend(column.map(|(column, ..)| Try::new(column.clone(), &parameter, value.clone())));
        }
        let known = vocabulary::FILTERED.iter().map(|column| (*column).to_owned());
        // Texts that are free are not filtered by.
        let free = ["id", "url", "title", "text", "snippet", "author_name", "author_handle"];
        let few = |column: &&(String, Path, Type)| {
            let values: BTreeSet<String> = self.samples.iter().filter_map(|row| said(at(row, &column.1)?)).collect();
            column.2 == Type::Utf8
                && (2..=VALUES).contains(&values.len())
                && self.samples.len() >= 2 * values.len()
                && !free.contains(&column.0.as_str())
                && values.iter().all(|value| value.len() <= WORD)
        };
        let others = self.found.columns.columns.iter().filter(few).map(|(column, ..)| column.clone());
        for column in each_once(known.chain(others)) {
            let Some(path) = self.found.columns.path(&column) else { continue };
            let Some((value, share)) = self.usual(&column) else { continue };
            if share == self.samples.len() {
                continue;
            }
            let names = parameters_of(&column, inside(path)).into_iter();
            let has_brackets = self.found.has_brackets;
            let names = names.flat_map(|name| [has_brackets.then(|| format!("filter[{name}]")), Some(name)]).flatten();
            let names = each_once(names.filter_map(|name| self.parameter_of(&name)));
            let names = names.into_iter();
            let told = self.parameters.as_ref().is_some_and(|known| !known.is_empty());
            match self.parameters {
                // All at once: the service ignores those that it does not have.
                None => tries.push(Try {
                    pairs: names.take(TOGETHER).map(|name| pair(&name, &value)).collect(),
                    ..Try::new(column.clone(), "", "")
                }),
                Some(_) => {
                    let names = names.take(if told { 2 } else { 1 });
                    tries.extend(names.map(|parameter| Try::new(column.clone(), &parameter, value.clone())));
                }
            }
        }
        tries.truncate(MOST);
        tries
    }

    /// The most frequent value among the received mentions, and its count.
    pub(super) fn usual(&self, column: &str) -> Option<(String, usize)> {
        let path = self.found.columns.path(column)?;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for value in self.samples.iter().filter_map(|row| said(at(row, path)?)) {
            *counts.entry(value).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count)
    }

    pub(super) fn judge_periods(&mut self, periods: &Dimension, newest: Option<i64>) {
        let effective: Vec<(Try, Arc<Reply>)> = periods
            .taken()
            .filter(|(tried, reply)| self.found.has_effect(periods, tried, reply, newest))
            .map(|(tried, reply)| (tried.clone(), Arc::clone(reply)))
            .collect();
        let mut notes = Vec::new();
        let mut window = WindowFinding::default();
        for (tried, reply) in &effective {
            let label = tried.label.as_str();
            match &tried.kind {
                Kind::Relative(unit, template) => {
                    if window.units.iter().all(|(known, _)| known != unit) {
                        window.units.push((*unit, template.clone()));
                    }
                    notes.push(format!("duration={label} works"));
                    continue;
                }
                Kind::Absolute | Kind::Value => {}
            }
            match label {
                label if tried.is_absolute() && label.starts_with('{') => {
                    let (template, instants) = label.split_once(' ').unwrap_or((label, "rfc3339"));
                    let instants = written(instants);
                    let form = Form::Template(template.to_owned());
                    window.absolute.get_or_insert(Absolute { form, instants, inclusive: None });
                    notes.push(format!("duration={} works", tried.pairs[0].1));
                }
                label if tried.is_absolute() && label.starts_with("ends ") => {
                    let instants = written(label);
                    if let [(since, _), (until, _), with @ ..] = tried.pairs.as_slice()
                        && with.iter().all(|(name, _)| name == DURATION)
                        && window.absolute.is_none()
                    {
                        window.with = with.to_vec();
                        window.working = vec![since.clone(), until.clone()];
                        let form = Form::Separate(since.clone(), until.clone());
                        window.absolute.get_or_insert(Absolute { form, instants, inclusive: None });
                        notes.push(format!("{since} and {until} work, with {instants} values"));
                    }
                }
                name => {
                    let known = vocabulary::hours(name).or_else(|| self.found.days_in(name, reply, newest));
                    // Of a number that is one of many, the notation is enough.
                    let general =
                        name.parse::<u16>().is_ok() && window.units.iter().any(|(_, template)| template == "{n}");
                    if let Some(hours) = self.found.lasting(reply, known, newest).filter(|_| !general) {
                        window.names.push((name.to_owned(), hours));
                        notes.push(format!("duration={name} covers {hours} h"));
                    }
                }
            }
        }
        for (_, outcome) in &periods.done {
            if let Outcome::Refused(text) = outcome
                && text.contains("longer")
            {
                window.longest = number_in(text, None);
                notes.extend(window.longest.map(|days| format!("an error names {days} days as the longest window")));
            }
        }
        let reach = |tried: &Try| match tried.label.as_str() {
            _ if matches!(tried.kind, Kind::Relative(..)) => tried.hours(),
            name => window.names.iter().find(|(known, _)| known == name).map(|(_, hours)| *hours),
        };
        let widest = effective.iter().filter_map(|(tried, reply)| Some((reach(tried)?, tried, reply)));
        let widest = widest.max_by_key(|(hours, ..)| *hours);
        window.widest = widest.map(|(_, tried, _)| (tried.label.clone(), tried.pairs.clone()));
        // The request had no filters, so this is the count of all mentions.
        let count = widest.filter(|_| !self.found.with_overview).and_then(|(.., reply)| self.found.count(reply));
        self.found.widest_count = count;
        let told = window.widest.is_some();
        let mut relative = periods.taken().filter(|(tried, _)| matches!(tried.kind, Kind::Relative(..)));
        window.is_checked = matches!(periods.outcome(NONSENSE), Some(Outcome::Refused(_))) && relative.next().is_some();
        let left: Vec<String> = periods
            .done
            .iter()
            .filter_map(|(_, outcome)| match outcome {
                Outcome::Refused(text) => Some(super::refusal::values(text)),
                Outcome::Taken(_) | Outcome::Unknown => None,
            })
            .max_by_key(Vec::len)
            .unwrap_or_default();
        let known = |name: &String| window.names.iter().any(|(known, _)| known == name) || name.contains(['<', '{']);
        let left: Vec<String> = left.into_iter().filter(|name| !known(name) && window.units.is_empty()).collect();
        if !left.is_empty() {
            let entries = left.iter().map(|name| {
                let hours = vocabulary::hours(name)
                    .or_else(|| days_named(name))
                    .map_or("…".to_owned(), |hours| format!("{hours}h"));
                format!("{} = \"{hours}\"", toml::Value::String(name.clone()))
            });
            let entries: Vec<String> = entries.collect();
            let text = format!(
                "the service also lists {}, whose lengths were not seen; if they end now rather than at midnight, add to \
                 [window]: names = {{ {} }}, and run `savedsearch profile check`",
                left.join(", "),
                entries.join(", ")
            );
            self.found.could_not_tell("window.names", text);
        }
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

    /// Requests UTC with each search from now on, if mentions have other times when a zone is requested. Responses without it no
    /// longer count, because their times are of another zone.
    fn follow_zone(&mut self, zones: &Dimension) {
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

    /// Determines whose days the timeline counts, and by which time of mentions.
    pub(super) async fn days(&mut self) -> Result<()> {
        if !self.found.counts_days {
            self.compare_zones().await?;
        }
        if self.found.counts_days {
            self.days_of_mentions();
        }
        Ok(())
    }

    /// Compares the same window in two zones: days that are named by dates do not show when they begin, but their counts do.
    async fn compare_zones(&mut self) -> Result<()> {
        if self.found.timeline.is_some() && !self.found.has_plain_days {
            let text = self.zone_parameter();
            self.open_zone(&format!("{text}, and the beginnings of the timeline's days fit several zones"));
            return Ok(());
        }
        let text = &format!("{}, and whose days the timeline counts was not seen", self.zone_parameter());
        let is_known = self.zone_days.is_some();
        let taken = self.zones_taken().filter(|_| is_known || self.asker.left() > TRIAL);
        let Some(Taken { kind, utc, other }) = taken else {
            self.days_alone(text);
            return Ok(());
        };
        if !is_known {
            self.zone_days = self.days_in_two_zones(other, utc).await?;
        }
        let Some([here, there]) = self.zone_days.clone() else {
            self.days_alone(text);
            return Ok(());
        };
        let common: Vec<&String> = here.keys().filter(|day| there.contains_key(*day)).collect();
        let moved = differ(&here, &there);
        let others = clocks::all().iter().copied().filter(|zone| self.found.named_zone != Some(*zone));
        let named: Vec<Clock> = self.found.named_zone.into_iter().chain(others).collect();
        let mut fitting = self.found.zones_of_days(&self.seen, &named);
        let is_open = fitting.as_ref().is_some_and(|fitting| self.found.told_zone(fitting).is_none());
        if common.len() >= 2 && !moved && is_open && self.asker.left() > TRIAL {
            // Old mentions are from before a change of clocks.
            self.oldest_page().await?;
            fitting = self.found.zones_of_days(&self.seen, &named);
        }
        match (common.len() >= 2, moved, fitting.as_deref()) {
            (true, true, _) => {
                self.found.saw("timezone", format!("the timeline's days have other counts with timezone={other}"));
                // Windows may have been seen to be of another zone, whatever is sent.
                if self.found.zone.is_none() {
                    self.found.zone = Some(Zone { kind, default: utc.to_owned() });
                    self.found.counts_days = true;
                }
            }
            (true, false, Some(fitting)) => self.days_are_of(fitting),
            (true, false, None) => self.open_zone("the timezone parameter has no effect"),
            (false, ..) => self.open_zone(text),
        }
        Ok(())
    }

    /// The effect of the parameter of the zone on the timeline, in words.
    fn zone_parameter(&self) -> &'static str {
        match () {
            () if self.found.timeline.is_none() => "no timeline shows an effect of the timezone parameter",
            () if self.found.with.iter().any(|(name, _)| name == TIMEZONE) => "each search requests UTC",
            () if self.found.takes_no_zone || self.asker.refuses(TIMEZONE) => "the service accepts no timezone",
            () if self.found.zone_taken.is_none() => "no search with the timezone parameter was answered",
            () => "the timezone parameter had no visible effect",
        }
    }

    /// The whole days of the widest window in two zones, of which one may be that of requests without a zone. `None` if there are not
    /// as many responses.
    async fn days_in_two_zones(&mut self, other: &str, utc: &str) -> Result<Option<[Days; 2]>> {
        // Days without a zone came before, on the pages of the widest window.
        let widest = self.widest();
        let plain = |name: &String| [AID, SIZE, OFFSET, SORT].contains(&name.as_str());
        let like = |reply: &Reply| {
            let extra = reply.asked.iter().filter(|(name, _)| !plain(name));
            let extra: Vec<&Pair> =
                extra.filter(|pair| !self.found.with.contains(pair) && !self.found.is_flag(&pair.0)).collect();
            extra.len() == widest.len() && widest.iter().all(|pair| extra.contains(&pair))
        };
        let before = self
            .seen
            .iter()
            .rev()
            .map(|seen| &seen.reply)
            .find(|reply| like(reply))
            .map(|reply| whole_days(&self.found, reply));
        let mut seen = before.filter(|days| days.len() > 1).into_iter().collect::<Vec<_>>();
        for zone in [other, utc] {
            if seen.len() == 2 && differ(&seen[0], &seen[1]) || self.asker.left() <= TRIAL {
                break;
            }
            let Some(reply) = self.oldest_in(zone).await? else { break };
            let entries = whole_days(&self.found, &reply);
            // The zone that applies by default may be the other one.
            seen.truncate(1);
            seen.push(entries);
        }
        Ok(seen.try_into().ok())
    }

    /// The widest window in a zone, with its oldest mentions if one response has both: those may be from before a change of clocks.
    async fn oldest_in(&mut self, zone: &str) -> Result<Option<Reply>> {
        if let Some((size, asked)) = self.asking_oldest().filter(|_| self.found.with_overview) {
            let asked = [asked, vec![pair(TIMEZONE, zone)]].concat();
            if let Some(reply) = self.asker.ask("search", &asked).await?.filter(|reply| !reply.is_refusal()) {
                self.keep(Some(size), &Arc::new(reply.clone()));
                return Ok(Some(reply));
            }
        }
        self.widest_in(zone).await
    }

    /// The widest window in a zone.
    async fn widest_in(&mut self, zone: &str) -> Result<Option<Reply>> {
        let asked = [vec![self.aid()], self.found.with.clone(), self.widest(), vec![pair(TIMEZONE, zone)]].concat();
        self.asker.ask("search", &asked).await
    }

    /// The zones that were accepted without a visible effect, if a timeline may show one.
    fn zones_taken(&self) -> Option<Taken> {
        let label = self.found.zone_taken.as_deref().filter(|_| self.found.timeline.is_some())?;
        let (kind, utc) = kind_of_zone(label);
        let other = match kind {
            "iana" => "Asia/Kolkata",
            "offset" => "+05:30",
            "utc_offset" => "UTC+05:30",
            _ => "330",
        };
        Some(Taken { kind, utc, other })
    }

    /// Determines if days that are dates are those of the requested zone, by their counts in two zones: the numbers of mentions since
    /// midnights of UTC then show the zone of times that are written without one. `true` if they are.
    pub(super) async fn days_follow_zone(&mut self) -> Result<bool> {
        /// Requests for it.
        const ZONES: u64 = 2;
        let is_open = self.found.has_plain_days && self.found.zone.is_none() && self.zone_days.is_none();
        let taken = self.zones_taken().filter(|_| is_open && self.asker.left() >= TRIAL + ZONES);
        let Some(Taken { utc, other, .. }) = taken else { return Ok(false) };
        let (Some(there), Some(here)) = (self.widest_in(other).await?, self.widest_in(utc).await?) else {
            return Ok(false);
        };
        let days = [&there, &here].map(|reply| whole_days(&self.found, reply));
        let follows = differ(&days[0], &days[1]);
        self.zone_days = Some(days);
        if follows {
            self.found.utc_days = Some(utc.to_owned());
            self.keep(None, &Arc::new(here));
        }
        Ok(follows)
    }

    /// Checks that the days of the timeline count mentions by the time that windows refer to. If mentions have several times, only
    /// their numbers show it.
    fn days_of_mentions(&mut self) {
        let zone = self.found.zone.as_ref().filter(|zone| zone.kind == "ignored");
        let zone = zone.and_then(|zone| zone.default.parse().ok()).unwrap_or(Clock::UTC);
        let times = self.found.columns.columns.iter().filter(|(.., kind)| *kind == Type::Timestamp).count();
        let text = match self.found.zones_of_days(&self.seen, &[zone]).as_deref() {
            Some([]) => "days of the timeline have other numbers of mentions than were read",
            None if times > 1 => {
                "mentions have several times, and no response showed which of them the timeline counts by"
            }
            _ => return,
        };
        self.found.counts_days = false;
        self.found.could_not_tell("counts.days", format!("{text}; mentions are counted by day one by one"));
    }

    /// Judges the days of the timeline without a response for another zone: if they are those of one zone, that one is sent.
    fn days_alone(&mut self, text: &str) {
        let among: Vec<Clock> = self.found.named_zone.into_iter().chain(clocks::all().iter().copied()).collect();
        match self.found.zones_of_days(&self.seen, &among) {
            Some(fitting) if self.found.told_zone(&fitting).is_some() => {
                self.days_are_of(&fitting);
                let text = "whether the timezone parameter has an effect was not seen; the same zone is always sent";
                self.found.could_not_tell("timezone", text);
            }
            _ => self.open_zone(text),
        }
    }

    /// Notes the zone of the days of a timeline that has the same days whatever is sent, if only one zone has so many mentions a
    /// day.
    fn days_are_of(&mut self, fitting: &[Clock]) {
        let Some(zone) = self.found.told_zone(fitting) else {
            let fits = match fitting {
                [] => "none that is known has as many mentions a day".to_owned(),
                _ => format!("{} have as many mentions a day as were read", clocks::listed(fitting)),
            };
            return self.open_zone(&format!(
                "the timezone parameter has no effect; the zone of the days of the timeline is unknown: {fits}"
            ));
        };
        let text = format!("the timeline's days are those of {zone}: the mentions of each day show it");
        self.found.saw("timezone", text);
        self.found.timeline_zone = Some(zone);
        let own = Zone { kind: "ignored", default: self.found.sent_as(zone) };
        // Windows may be of days of another zone.
        self.found.counts_days = self.found.zone.as_ref().is_none_or(|known| *known == own);
        self.found.zone.get_or_insert(own);
    }

    /// Notes that the zone of the timeline's days is not known. Days that are named by dates are not used then.
    fn open_zone(&mut self, text: &str) {
        self.found.zone_is_unknown = self.found.has_plain_days;
        let unused =
            if self.found.has_plain_days { ". Its days are not used; set [timezone] and [tables.volume]" } else { "" };
        self.found.could_not_tell("timezone", format!("{text}{unused}"));
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

    /// The notation of a period that was given. A number alone is one of days, unless the name of its parameter says otherwise.
    fn notation_of(&self, value: &str) -> Option<(char, String)> {
        let number = || value.parse::<u16>().is_ok_and(|number| number > 0);
        any_notation(value).or_else(|| {
            let own = vocabulary::plain(own_name(DURATION, &self.asker.names));
            let units = [('h', "hour"), ('w', "week")];
            let unit = units.into_iter().find(|(_, unit)| own.contains(unit)).map_or('d', |(unit, _)| unit);
            number().then(|| (unit, "{n}".to_owned()))
        })
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

    pub(super) fn judge_filters(&mut self, filters: &Dimension) {
        let mut notes = Vec::new();
        for (tried, reply) in filters.taken() {
            let [(parameter, wanted)] = tried.pairs.as_slice() else { continue };
            let rows = self.rows(reply);
            if self.found.is_filtered(tried, reply) && self.found.filters.iter().all(|(_, known)| *known != tried.label)
            {
                notes.push(format!("{parameter}={wanted} returned {} mentions, all matching", rows.len()));
                self.found.filters.push((parameter.clone(), tried.label.clone()));
            }
        }
        match notes.is_empty() {
            false => self.found.saw("filters", notes.join("; ")),
            true => self.found.could_not_tell(
                "filters",
                without_effect(
                    ["none of the filters tried had an effect", "no filter was tried"],
                    ", so filters are applied locally; if the service documents filters, set [filters]",
                    filters,
                ),
            ),
        }
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

/// Days of a timeline, with their counts.
pub(super) type Days = BTreeMap<String, u64>;

/// Zones that a service accepts: their kind, UTC, and another one.
struct Taken {
    kind: &'static str,
    utc: &'static str,
    other: &'static str,
}

/// The whole days of a timeline, with their counts: without the first and the last one, which the window may cut.
fn whole_days(found: &Findings, reply: &Reply) -> Days {
    let mut entries = found.timeline(reply);
    entries.pop();
    entries.into_iter().skip(1).map(|(day, count)| (day.to_string(), count)).collect()
}

/// True if several parameters had an effect together, so that those of the ends are not known, and no period is a number.
fn is_among_several(working: &[&Try]) -> bool {
    let absolute = working.iter().filter(|tried| tried.is_absolute());
    let ends = absolute.map(|tried| tried.pairs.iter().filter(|(name, _)| name != DURATION).count());
    let is_number = working.iter().any(|tried| matches!(tried.kind, Kind::Relative(..)));
    !is_number && ends.min().is_some_and(|ends| ends > 2)
}

/// Adds candidates for the window, and gives up those that are not worth a request. `is_unnamed`: the service has no parameter of the
/// period.
fn next_periods(
    found: &Findings,
    periods: &mut Dimension,
    newest: Option<i64>,
    named: Option<&[String]>,
    spoken: &[String],
    is_unnamed: bool,
) {
    let has_period = |tried: &Try| tried.pairs.iter().any(|(name, _)| name == DURATION);
    // The ends of a window are added once the first periods are done, and there may be no other round for them.
    periods.give_up(|tried| is_unnamed && has_period(tried));
    more_periods(found, periods, newest, named, spoken);
    let are_enough = are_ends_enough(found, periods, newest);
    periods.give_up(|tried| (is_unnamed && has_period(tried)) || (are_enough && !tried.is_absolute()));
}

/// True if the periods that are known are not enough, and others are worth a request. `named`: the parameters that the service names.
/// `is_local`: the zone of times is open.
fn are_periods_lacking(
    found: &Findings,
    periods: &Dimension,
    newest: Option<i64>,
    named: Option<&[String]>,
    is_local: bool,
) -> bool {
    /// Named periods that are enough; one with any number is, too.
    const PERIODS: usize = 3;
    /// Refused ends of a window after which no others are worth a request.
    const ENDS: usize = 3;
    let taken = periods.taken().filter(|(tried, _)| tried.label != NONSENSE);
    let working = taken.filter(|(tried, reply)| found.has_effect(periods, tried, reply, newest));
    let working: Vec<&Try> = working.map(|(tried, _)| tried).collect();
    let lengths = working.iter().map(|tried| match tried.kind {
        Kind::Relative(..) => PERIODS,
        Kind::Value | Kind::Absolute => 1,
    });
    // If all other periods are names, only windows with ends tell the zone of times. Find their parameters among those that had an
    // effect together.
    let is_divided = is_local && is_among_several(&working);
    // The service names the parameters of the ends of a window, or a refusal has the form of a window or says how its ends are written.
    let done = periods.done.iter().filter(|(tried, _)| tried.is_absolute());
    let refused = done.clone().filter(|(_, outcome)| matches!(outcome, Outcome::Refused(_))).count();
    let template = periods.queue.front().is_some_and(|tried| tried.label.starts_with('{'));
    // So does a word for them that the service lists.
    let word = periods.queue.front().is_some_and(|tried| tried.label == ALONE);
    let named = named.is_some_and(|named| !named.is_empty()) || word || (template && are_told(periods));
    let told = periods.queue.front().is_some_and(Try::is_absolute)
        && done.count() == refused
        && (usize::from(!named)..ENDS).contains(&refused);
    told || is_divided || lengths.sum::<usize>() < PERIODS
}

/// True if no other periods are worth a request: the ends of a window had an effect, and several values without ends had none.
fn are_ends_enough(found: &Findings, periods: &Dimension, newest: Option<i64>) -> bool {
    const VALUES: usize = 3;
    let has_effect = |tried: &Try, reply: &Reply| found.has_effect(periods, tried, reply, newest);
    let taken = periods.taken().filter(|(tried, _)| tried.label != NONSENSE);
    let (ends, values): (Vec<_>, Vec<_>) = taken.partition(|(tried, _)| tried.is_absolute());
    ends.iter().any(|(tried, reply)| has_effect(tried, reply))
        && values.len() >= VALUES
        && !values.iter().any(|(tried, reply)| has_effect(tried, reply))
}

/// True if a day has other counts in one timeline than in the other.
fn differ(one: &Days, other: &Days) -> bool {
    one.iter().any(|(day, count)| other.get(day).is_some_and(|there| there != count))
}

/// A note about candidates without an effect, with the service's first refusal of one; or about those that were not requested.
fn without_effect([tried, untried]: [&str; 2], rest: &str, dimension: &Dimension) -> String {
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

/// A distance from UTC in minutes, as services write it.
pub(super) fn offset_text(minutes: i64) -> String {
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

/// Hours of the days in a name, such as `ultimos7dias`.
fn days_named(name: &str) -> Option<i64> {
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    let days: i64 = digits.parse().ok().filter(|days| (1..=400).contains(days))?;
    Some(days * 24)
}

/// The profile's kind of zones like this one, and UTC as such a zone.
fn kind_of_zone(label: &str) -> (&'static str, &'static str) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::probe::asker::Asker;
    use crate::probe::known::Known;
    use crate::probe::shape::Columns;

    #[test]
    fn no_further_periods_are_tried_once_ends_have_an_effect_and_several_values_none() {
        let reply = |from: &str, to: &str, at: &str| {
            let body = json!({"from": from, "to": to, "items": [{"id": "a", "at": at}, {"id": "b", "at": at}]});
            Arc::new(Reply::new(&[], 200, http::HeaderMap::new(), body.to_string()))
        };
        let within = reply("2026-06-26T00:00:00Z", "2026-06-28T00:00:00Z", "2026-06-27T10:00:00Z");
        let usual = reply("2026-06-22T11:00:00Z", "2026-06-29T11:00:00Z", "2026-06-29T10:00:00Z");
        let mut found = Findings { mentions: Some(vec!["items".to_owned()]), ..Findings::default() };
        let time = vec!["at".to_owned()];
        found.columns = Columns::of(vocabulary::MENTION, &found.rows(&within), &[("published_at", &time)]);
        let newest = instant(&json!("2026-06-29T10:00:00Z"));
        let mut periods = Dimension::new("period", []);
        let mut take = |tried: Try, reply: &Arc<Reply>| {
            periods.done.push((tried, Outcome::Taken(Arc::clone(reply))));
            are_ends_enough(&found, &periods, newest)
        };
        assert!(!take(Try::new(NONSENSE, DURATION, NONSENSE), &usual));
        for days in ["60d", "P60D", "LAST_90_DAYS"] {
            assert!(!take(Try::new(days, DURATION, days), &usual), "{days}");
        }
        assert!(take(Try::absolute("ends rfc3339", vec![pair("from", "a"), pair("to", "b")]), &within));
        periods.add(Try::new("last_year", DURATION, "last_year"));
        periods.give_up(|tried| !tried.is_absolute());
        assert!(periods.queue.is_empty() && matches!(periods.outcome("last_year"), Some(Outcome::Unknown)));
    }

    #[test]
    fn the_ends_of_a_window_are_tried_in_the_first_round_if_the_service_has_no_periods() {
        let named = ["aid", "since", "until", "sortBy"].map(str::to_owned);
        let mut periods = crate::probe::candidates::periods();
        next_periods(&Findings::default(), &mut periods, Some(1_780_000_000_000_000), Some(&named), &[], true);
        let next = periods.queue.front().expect("the ends of a window");
        let names: Vec<&str> = next.pairs.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names == ["since", "until"] && periods.queue.iter().all(Try::is_absolute), "{:?}", periods.queue);
    }

    #[test]
    fn parameters_that_a_service_does_not_name_are_not_tried() {
        let mut dialogue = Dialogue::new(Asker::recorded(Arc::default()), Known::default());
        assert!(!dialogue.is_unnamed(DURATION));
        dialogue.parameters = Some(["aid", "since", "until", "sortBy"].map(str::to_owned).to_vec());
        assert!(dialogue.is_unnamed(DURATION) && !dialogue.is_unnamed(SORT));
        // A hint at a single one is no list.
        dialogue.parameters = Some(vec!["since".to_owned()]);
        assert!(!dialogue.is_unnamed(DURATION));
    }

    #[test]
    fn several_parameters_that_had_an_effect_together_are_divided_beside_names() {
        let of =
            |names: &[&str]| Try::absolute("ends date", names.iter().map(|name| pair(name, "2026-06-01")).collect());
        let (name, days) = (Try::new("week", DURATION, "week"), Try::relative(DURATION, 'd', "{n}d", 60));
        let (several, one) = (of(&["since", "until", "start", "end"]), of(&["start", "end", DURATION]));
        assert!(is_among_several(&[&name, &several]));
        assert!(!is_among_several(&[&name, &several, &one]));
        assert!(!is_among_several(&[&name]));
        // A number of days tells the zone as well.
        assert!(!is_among_several(&[&days, &several]));
    }
}
