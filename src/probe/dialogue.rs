//! The conversation with a service: what is asked, in what order, and what each answer shows.
//!
//! ```text
//! key, list ─▶ a search ─▶ what asks for mentions ─▶ rounds: period, zone, order, filters ─▶ ends, offset, size, depth
//! ```
//!
//! Nothing is believed because of a status. A candidate has an effect only where the data shows it, and a nonsense value
//! is the control: what the data shows for that as well is no effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{Days, SecondsFormat};
use serde_json::Value;

use super::asker::{Asker, Pair, Reply};
use super::findings::{
    Absolute, Asked, Breakdown, Depth, ErrorShape, Findings, Form, Offset, Page, SavedSearches, Several, Sort, Zone,
};
use super::rounds::{self, Dimension, Outcome, Try, hints, number_in};
use super::shape::{self, Columns, List, Path, Timeline, Type, at, instant, leaves, number, pointer, said, utc, walk};
use super::vocabulary::{self, plain};
use crate::error::{Error, ErrorKind, Result};

/// A value that means nothing to any service.
const NONSENSE: &str = "zzq";
/// Mentions that are asked for to look at.
const LOOK: u64 = 20;
/// Parameters whose names are given (seed sections 4.2 and 7).
const AID: &str = "aid";
const DURATION: &str = "duration";
const TIMEZONE: &str = "timezone";
const OFFSET: &str = "dataFrom";
const SIZE: &str = "dataSize";
const SORT: &str = "sortBy";

/// A conversation under way.
pub(super) struct Dialogue {
    pub(super) asker: Asker,
    pub(super) found: Findings,
    /// Mentions that were seen.
    samples: Vec<Value>,
    /// Entries of saved searches that were seen.
    listed: Vec<String>,
    /// Answers that were none: to other forms of the key, and to other questions.
    key_refusals: Vec<Reply>,
    refusals: Vec<Reply>,
    /// The overview without any word about period, zone or filter.
    first: Option<Reply>,
}

fn pair(name: &str, value: impl ToString) -> Pair {
    (name.to_owned(), value.to_string())
}

impl Dialogue {
    pub(super) fn new(asker: Asker) -> Self {
        let found = Findings::default();
        Self {
            asker,
            found,
            samples: Vec::new(),
            listed: Vec::new(),
            key_refusals: Vec::new(),
            refusals: Vec::new(),
            first: None,
        }
    }

    /// Asks all that can be asked.
    ///
    /// # Errors
    /// Where no form of the key gives a list, or no search an overview, and where the service cannot be reached.
    pub(super) async fn run(&mut self) -> Result<()> {
        self.key().await?;
        self.search().await?;
        self.what_asks_for_mentions().await?;
        self.rounds().await?;
        self.offset().await?;
        self.page_bound().await?;
        self.ends().await?;
        self.depth().await?;
        self.several_values().await?;
        self.totals();
        self.errors().await?;
        self.found.could_not_tell(
            "throttle",
            "limits are not provoked: status 429 is assumed; take [throttle] and the windows of [budget] from your manual",
        );
        let records: Vec<&Value> = self.samples.iter().collect();
        self.found.columns = Columns::of(vocabulary::MENTION, &records);
        if self.found.mentions.is_some() {
            let untyped: Vec<String> = self.found.columns.untyped.iter().map(|path| pointer(path)).collect();
            let kept =
                if untyped.is_empty() { String::new() } else { format!("; {} stay in extra", untyped.join(", ")) };
            let text = format!("{} columns from {} records{kept}", self.found.columns.columns.len(), records.len());
            self.found.saw("tables.mentions", text);
        }
        Ok(())
    }

    /// The form of the key, by the list.
    async fn key(&mut self) -> Result<()> {
        for (header, format) in vocabulary::KEYS {
            self.asker.send_key(header, format);
            let Some(reply) = self.asker.ask("list", &[]).await? else { break };
            let lists = reply.body.as_ref().map(|body| shape::saved_searches(body, AID)).unwrap_or_default();
            if lists.is_empty() {
                self.key_refusals.push(reply);
                continue;
            }
            self.found.auth = Some(((*header).to_owned(), (*format).to_owned()));
            self.found.saw("auth", format!("the list came with {header}: {format}"));
            self.list(&lists);
            return Ok(());
        }
        let last = self.key_refusals.last().map(Reply::line).unwrap_or_default();
        Err(Error::new(ErrorKind::Unauthorized, format!("no form of the key gives a list of saved searches ({last})"))
            .advice("check the base URL and the key; a profile with another [auth] can be written by hand"))
    }

    fn list(&mut self, lists: &[(Path, Vec<&Value>)]) {
        let mut records = Vec::new();
        for (path, entries) in lists {
            let name = path.last().map(|name| plain(name)).unwrap_or_default();
            let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
            let (label, fan_out) = match () {
                () if is(&["recent", "history", "last"]) => ("recent", false),
                () if is(&["team", "shared", "group"]) => ("team", true),
                () => ("saved", true),
            };
            if fan_out {
                self.listed.extend(entries.iter().filter_map(|entry| said(&entry[AID])));
            }
            records.extend(entries.iter().copied());
            self.found.saw(
                "tables.saved_searches",
                format!("{} entries at `{}`, taken for {label}", entries.len(), pointer(path)),
            );
            self.found.lists.push(SavedSearches { at: path.clone(), label: label.to_owned(), fan_out });
        }
        self.found.saved_searches = Columns::of(vocabulary::SAVED_SEARCH, &records);
    }

    /// A search of a saved search that has mentions.
    async fn search(&mut self) -> Result<()> {
        let aids: Vec<String> = self.listed.iter().take(3).cloned().collect();
        for aid in aids {
            let Some(reply) = self.asker.ask("search", &[pair(AID, &aid)]).await? else { break };
            let Some(overview) = reply.body.as_ref().and_then(shape::overview) else {
                self.refusals.push(reply);
                continue;
            };
            self.found.overview = Some(overview);
            self.found.aid = Some(aid);
            self.look_at_overview(&reply);
            let some = self.count(&reply).is_none_or(|count| count > 0);
            self.first = Some(reply);
            if some {
                break;
            }
        }
        if self.first.is_none() {
            let last = self.refusals.last().map(Reply::line).unwrap_or_default();
            return Err(Error::new(ErrorKind::Contradiction, format!("no search gives an overview ({last})"))
                .advice("check that the key may read a saved search"));
        }
        Ok(())
    }

    fn look_at_overview(&mut self, reply: &Reply) {
        let (Some(path), Some(body)) = (self.found.overview.clone(), &reply.body) else { return };
        let Some(overview) = at(body, &path) else { return };
        let mut scalars = overview.clone();
        let (mut timeline, mut breakdowns) = (None, Vec::new());
        for (below, value) in walk(overview).into_iter().filter(|(below, _)| below.len() == 1) {
            let at: Path = path.iter().chain(&below).cloned().collect();
            let name = plain(&below[0]);
            let label = vocabulary::BREAKDOWNS.iter().find(|(_, words)| words.iter().any(|word| name.contains(word)));
            if let Some(line) = Timeline::of(value) {
                timeline = timeline.or(Some((at, line)));
            } else if let (Some((label, _)), Some(list)) = (label, List::of(value)) {
                let names = shape::objects(value).unwrap_or_default();
                let names = names.into_iter().filter_map(|entry| said(&entry[&list.name]));
                let missing = missing_of(names);
                breakdowns.push(Breakdown { at, label: (*label).to_owned(), list: Some(list), missing });
            } else if let (Some((label, _)), true) = (label, shape::is_entries(value)) {
                let names = value.as_object().into_iter().flatten().map(|(name, _)| name.clone());
                let missing = missing_of(names);
                breakdowns.push(Breakdown { at, label: (*label).to_owned(), list: None, missing });
                continue;
            }
            if let (true, Some(members)) = (value.is_array(), scalars.as_object_mut()) {
                members.remove(&below[0]);
            }
        }
        self.found.overview_columns = Columns::of(vocabulary::OVERVIEW, &[&scalars]);
        let total = self.found.overview_columns.path("total_mentions").map(|path| pointer(path));
        self.found.saw(
            "tables.overview",
            format!("at `{}`, the number of mentions at `{}`", pointer(&path), total.unwrap_or_default()),
        );
        match &timeline {
            Some((at, line)) => {
                let text = format!("at `{}`, by `{}` and `{}`", pointer(at), line.start, line.count);
                self.found.saw("tables.volume", text);
            }
            None => self.found.could_not_tell("tables.volume", "no timeline in the overview: the table stays empty"),
        }
        let labels: Vec<&str> = breakdowns.iter().map(|breakdown| breakdown.label.as_str()).collect();
        self.found.saw("tables.breakdowns", format!("lists of {}", labels.join(", ")));
        (self.found.timeline, self.found.breakdowns) = (timeline, breakdowns);
    }

    fn count(&self, reply: &Reply) -> Option<u64> {
        self.found.count(reply)
    }

    fn rows<'r>(&self, reply: &'r Reply) -> Vec<&'r Value> {
        self.found.rows(reply)
    }

    /// Remembers the mentions of an answer, and whether its numbers agree.
    fn keep(&mut self, reply: &Reply) {
        let count = self.found.count(reply);
        let total = self.found.total.as_ref().and_then(|path| number(reply.body.as_ref()?, path));
        self.found.agreements.extend(count.zip(total));
        self.found.sums.extend(count.zip(self.found.sum(reply)));
        let room = 500_usize.saturating_sub(self.samples.len());
        let rows: Vec<Value> = self.rows(reply).into_iter().take(room).cloned().collect();
        self.samples.extend(rows);
    }

    fn aid(&self) -> Pair {
        pair(AID, self.found.aid.as_deref().unwrap_or_default())
    }

    /// What asks for so many mentions.
    fn asking(&self, size: u64) -> Vec<Pair> {
        let mut pairs = vec![self.aid()];
        if let Some(Asked::Flag(name, value)) = &self.found.asked {
            pairs.push(pair(name, value));
        }
        pairs.push(pair(SIZE, size));
        pairs
    }

    async fn what_asks_for_mentions(&mut self) -> Result<()> {
        let unasked = self.first.clone().filter(|first| first.body.as_ref().and_then(shape::mentions).is_some());
        if let Some(reply) = unasked {
            return self.mentions_come(&reply, Asked::Always, "mentions came unasked");
        }
        let (name, value) = vocabulary::FLAGS[0];
        let sized = [self.aid(), pair(SIZE, LOOK)];
        let flagged = [sized.as_slice(), &[pair(name, value)]].concat();
        let Some(with) = self.asker.ask("search", &flagged).await? else { return Ok(()) };
        let Some(without) = self.asker.ask("search", &sized).await? else { return Ok(()) };
        let come = |reply: &Reply| reply.body.as_ref().and_then(shape::mentions).is_some();
        if come(&without) {
            return self.mentions_come(&without, Asked::Size, "mentions came with dataSize above 0");
        }
        if come(&with) {
            let text = format!("mentions came with {name}={value}, and not without");
            return self.mentions_come(&with, Asked::Flag(name.into(), value.into()), &text);
        }
        // All others at once, then halves of them.
        let mut left: Vec<(&str, &str)> = vocabulary::FLAGS[1..].to_vec();
        let mut last = None;
        loop {
            let half = if last.is_none() { left.clone() } else { left[..left.len().div_ceil(2)].to_vec() };
            let tried: Vec<Pair> = half.iter().map(|(name, value)| pair(name, value)).collect();
            let Some(reply) = self.asker.ask("search", &[sized.as_slice(), &tried].concat()).await? else {
                return Ok(());
            };
            if come(&reply) {
                left = half;
                last = Some(reply);
            } else if last.is_none() {
                let named = left.iter().position(|(name, _)| reply.mentions(name).is_some());
                match named.filter(|_| left.len() > 1) {
                    Some(at) => drop(left.remove(at)),
                    None => {
                        self.found.could_not_tell(
                            "mentions",
                            "nothing that was tried brought mentions; find the parameter in your manual and set [mentions] \
                             requested_by and flag, then the section of tables.mentions",
                        );
                        return Ok(());
                    }
                }
            } else {
                left.drain(..half.len());
            }
            if let ([(name, value)], Some(reply)) = (left.as_slice(), &last) {
                let text = format!("mentions came with {name}={value}, and not without");
                let (asked, reply) = (Asked::Flag((*name).into(), (*value).into()), reply.clone());
                return self.mentions_come(&reply, asked, &text);
            }
        }
    }

    fn mentions_come(&mut self, reply: &Reply, asked: Asked, text: &str) -> Result<()> {
        self.found.saw("mentions", text);
        self.found.asked = Some(asked);
        let body = reply.body.clone().unwrap_or_default();
        if let Some((path, _)) = shape::mentions(&body) {
            self.found.saw("tables.mentions", format!("records at `{}`", pointer(&path)));
            self.found.mentions = Some(path);
        }
        self.found.with_overview = self.found.has_overview(reply);
        self.keep(reply);
        let records: Vec<&Value> = self.samples.iter().collect();
        self.found.columns = Columns::of(vocabulary::MENTION, &records);
        self.found.total = self.total_of(reply);
        self.found.relation = self.found.total.as_ref().and_then(|total| relation_beside(reply, total));
        self.headers(reply);
        Ok(())
    }

    /// Where an answer tells the number of records: near them, and no less than there are.
    fn total_of(&self, reply: &Reply) -> Option<Path> {
        let (records, overview) = (self.found.mentions.as_ref()?, self.found.overview.as_ref());
        let body = reply.body.as_ref()?;
        let rows = self.rows(reply).len() as u64;
        let totals = leaves(body).into_iter().filter(|(path, value)| {
            let named = path.last().is_some_and(|name| vocabulary::TOTALS.contains(&plain(name).as_str()));
            let apart = overview.is_none_or(|overview| overview.is_empty() || !path.starts_with(overview));
            named && apart && value.as_u64().is_some_and(|total| total >= rows)
        });
        let shared = |path: &Path| path.iter().zip(records).take_while(|(a, b)| a == b).count();
        totals.max_by_key(|(path, _)| shared(path)).map(|(path, _)| path)
    }

    /// Headers about limits.
    fn headers(&mut self, reply: &Reply) {
        for (name, value) in &reply.headers {
            let (words, text) = (plain(name.as_str()), value.to_str().unwrap_or_default());
            if !words.contains("ratelimit") {
                continue;
            }
            let name = name.as_str().to_owned();
            let throttle = &mut self.found.throttle;
            match () {
                () if words.ends_with("remaining") => throttle.remaining = Some(name),
                () if words.ends_with("limit") => throttle.limit = Some(name),
                () if words.ends_with("reset") => {
                    let format = match text.parse::<i64>() {
                        Ok(number) if number > 1_000_000_000 => "epoch_s",
                        Ok(_) => "seconds",
                        Err(_) => "iso",
                    };
                    throttle.reset = Some((name, format));
                }
                () => {}
            }
        }
    }

    /// Periods, zones, orders and filters, several in one call.
    async fn rounds(&mut self) -> Result<()> {
        let newest = self.instants(&self.samples.iter().collect::<Vec<_>>()).into_iter().max();
        let mut periods = Dimension::new("period", [NONSENSE, "60d"].map(|value| Try::new(value, DURATION, value)));
        let zones = ["Asia/Kolkata", "+05:30"].map(|zone| Try::new(zone, TIMEZONE, zone));
        let mut zones = Dimension::new("zone", zones);
        let mut orders =
            Dimension::new("order", [NONSENSE, vocabulary::SORTS[0]].map(|value| Try::new(value, SORT, value)));
        let mut filters = Dimension::new("filter", self.filters());
        if self.found.mentions.is_none() {
            orders.queue.clear();
            filters.queue.clear();
        }
        let (aid, asking) = (self.aid(), self.asking(LOOK));
        if self.found.with_overview || self.found.mentions.is_none() {
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
        let mut seen: Vec<Arc<Reply>> = Vec::new();
        for (_, reply) in orders.taken().chain(filters.taken()).chain(periods.taken()) {
            if !seen.iter().any(|known| Arc::ptr_eq(known, reply)) {
                self.keep(reply);
                seen.push(Arc::clone(reply));
            }
        }
        let records: Vec<&Value> = self.samples.iter().collect();
        self.found.columns = Columns::of(vocabulary::MENTION, &records);
        if self.found.window.widest.is_none() {
            self.judge_periods(&periods, newest);
        }
        self.judge_zones(&zones);
        self.judge_orders(&orders);
        self.judge_filters(&filters);
        self.echoes(&periods, &zones);
        Ok(())
    }

    async fn try_all<const N: usize>(
        &mut self,
        fixed: &[Pair],
        dimensions: &mut [Dimension; N],
        newest: Option<i64>,
    ) -> Result<()> {
        // The rest of the conversation needs some calls as well.
        const RESERVE: u64 = 9;
        let Self { asker, found, .. } = self;
        let mentions = fixed.iter().any(|(name, _)| name == SIZE);
        let is_data = |reply: &Reply| if mentions { found.has_rows(reply) } else { found.has_overview(reply) };
        rounds::run(asker, RESERVE, fixed, dimensions, is_data, |dimensions| {
            for dimension in dimensions {
                match dimension.name {
                    "period" => more_periods(found, dimension, newest),
                    "order" => more_orders(dimension),
                    "zone" if dimension.taken().any(|(_, reply)| found.days_begin(reply) == Some(KOLKATA)) => {
                        dimension.queue.clear();
                    }
                    _ => {}
                }
            }
        })
        .await
    }

    /// Candidates for filters: what some of the mentions seen have, and not all.
    fn filters(&self) -> Vec<Try> {
        let mut tries = Vec::new();
        for column in vocabulary::FILTERED {
            let Some(path) = self.found.columns.path(column) else { continue };
            let Some((value, share)) = self.usual(column) else { continue };
            if share < self.samples.len() {
                tries.push(Try::new(column, &parameter_of(column, path), value));
            }
        }
        tries
    }

    /// The value that most of the mentions seen have, and how many do.
    fn usual(&self, column: &str) -> Option<(String, usize)> {
        let path = self.found.columns.path(column)?;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for value in self.samples.iter().filter_map(|row| said(at(row, path)?)) {
            *counts.entry(value).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count)
    }

    fn instants(&self, rows: &[&Value]) -> Vec<i64> {
        let Some(path) = self.found.columns.path("published_at") else { return Vec::new() };
        let name = path.last().map_or("", |name| name);
        rows.iter().filter_map(|row| instant(name, at(row, path)?)).collect()
    }

    fn judge_periods(&mut self, periods: &Dimension, newest: Option<i64>) {
        let effective: Vec<(Try, Arc<Reply>)> = periods
            .taken()
            .filter(|(tried, reply)| self.found.has_effect(periods, tried, reply, newest))
            .map(|(tried, reply)| (tried.clone(), Arc::clone(reply)))
            .collect();
        let mut notes = Vec::new();
        let mut window = super::findings::Window::default();
        for (tried, reply) in &effective {
            match tried.label.as_str() {
                label @ ("60d" | "30d" | "48h" | "3w") => {
                    window.units.extend(label.chars().last().filter(|unit| !window.units.contains(unit)));
                    notes.push(format!("{label} had its effect"));
                }
                label if label.starts_with('{') => {
                    let (template, instants) = label.split_once(' ').unwrap_or((label, "rfc3339"));
                    let instants = if instants == "date" { "date" } else { "rfc3339" };
                    let form = Form::Template(template.to_owned());
                    window.absolute.get_or_insert(Absolute { form, instants, inclusive: None });
                    notes.push(format!("{} had its effect", tried.pairs[0].1));
                }
                label if label.starts_with("ends ") => {
                    let instants = if label.ends_with("epoch_ms") { "epoch_ms" } else { "rfc3339" };
                    if let [(since, _), (until, _)] = tried.pairs.as_slice() {
                        let form = Form::Separate(since.clone(), until.clone());
                        window.absolute.get_or_insert(Absolute { form, instants, inclusive: None });
                        notes.push(format!("{since} and {until} in {instants} had their effect"));
                    }
                }
                name => {
                    let known = vocabulary::PERIODS.iter().find(|(known, _)| *known == name).map(|(_, hours)| *hours);
                    if let Some(hours) = self.found.hours(reply, known) {
                        window.names.push((name.to_owned(), hours));
                        notes.push(format!("{name} reached back {hours} h"));
                    }
                }
            }
        }
        for (_, outcome) in &periods.done {
            if let Outcome::Refused(text) = outcome
                && text.contains("longer")
            {
                window.longest = number_in(text);
                notes.extend(window.longest.map(|days| format!("a refusal names {days} days as the longest")));
            }
        }
        let reach = |label: &str| match label {
            "60d" => Some(60 * 24),
            "30d" => Some(30 * 24),
            "3w" => Some(21 * 24),
            "48h" => Some(48),
            name => window.names.iter().find(|(known, _)| known == name).map(|(_, hours)| *hours),
        };
        let widest = effective.iter().filter_map(|(tried, reply)| Some((reach(&tried.label)?, tried, reply)));
        let widest = widest.max_by_key(|(hours, ..)| *hours);
        window.widest = widest.map(|(_, tried, _)| (tried.label.clone(), tried.pairs.clone()));
        // Without filters it is the number of all.
        let count = widest.filter(|_| !self.found.with_overview).and_then(|(.., reply)| self.found.count(reply));
        self.found.widest_count = count;
        let told = window.widest.is_some();
        self.found.window = window;
        match told {
            true => self.found.saw("window", notes.join("; ")),
            false => self.found.could_not_tell(
                "window",
                "no period that was tried had an effect; find the values of `duration` in your manual and set [window]",
            ),
        }
    }

    fn widest(&self) -> Vec<Pair> {
        self.found.window.widest.as_ref().map(|(_, pairs)| pairs.clone()).unwrap_or_default()
    }

    fn judge_zones(&mut self, zones: &Dimension) {
        let view = &self.found;
        let moved = zones
            .taken()
            .find(|(_, reply)| view.days_begin(reply) == Some(KOLKATA))
            .map(|(tried, _)| tried.label.clone());
        let stays = zones.taken().find_map(|(_, reply)| view.days_begin(reply));
        match (moved, stays) {
            (Some(label), _) => {
                let (kind, default) = if label.starts_with('+') { ("offset", "+00:00") } else { ("iana", "UTC") };
                self.found.saw("timezone", format!("the timeline's days moved with timezone={label}"));
                self.found.zone = Some(Zone { kind, default: default.to_owned() });
            }
            (None, Some(0)) => {
                self.found.saw("timezone", "the timeline's days are those of UTC whatever timezone says");
                self.found.zone = Some(Zone { kind: "ignored", default: "UTC".to_owned() });
            }
            _ => self.found.could_not_tell(
                "timezone",
                "the timeline shows no effect of the zone; ask for two zones yourself and compare the days",
            ),
        }
    }

    /// The columns that rows are in the order of, each with its direction.
    fn orders_of(&self, rows: &[&Value]) -> Vec<(String, bool)> {
        let mut orders = Vec::new();
        for (name, path, kind) in &self.found.columns.columns {
            if !matches!(kind, Type::Timestamp | Type::Int64 | Type::Float64) || rows.len() < 4 {
                continue;
            }
            let last = path.last().map_or("", |name| name);
            let key = |row: &&Value| {
                let value = at(row, path)?;
                #[expect(clippy::cast_precision_loss, reason = "instants and counts are compared, not kept")]
                instant(last, value).map(|at| at as f64).or_else(|| value.as_f64())
            };
            let keys: Vec<Option<f64>> = rows.iter().map(key).collect();
            let known: Vec<f64> = keys.iter().copied().flatten().collect();
            let nulls_last = keys.iter().skip_while(|key| key.is_some()).all(Option::is_none);
            let distinct = known.windows(2).filter(|pair| pair[0] != pair[1]).count();
            if distinct < 2 || !nulls_last {
                continue;
            }
            if known.is_sorted() {
                orders.push((name.clone(), false));
            } else if known.is_sorted_by(|a, b| a >= b) {
                orders.push((name.clone(), true));
            }
        }
        // The rank of a record goes with its time.
        let rank =
            |name: &str| ["published_at", "reach", "engagement"].iter().position(|known| *known == name).unwrap_or(9);
        orders.sort_by_key(|(name, _)| rank(name));
        orders
    }

    fn judge_orders(&mut self, orders: &Dimension) {
        let usual = match orders.outcome(NONSENSE) {
            Some(Outcome::Taken(reply)) => self.orders_of(&self.rows(reply)).first().cloned(),
            _ => None,
        };
        let mut notes = Vec::new();
        let mut sorts: Vec<Sort> = Vec::new();
        for (tried, reply) in orders.taken().filter(|(tried, _)| tried.label != NONSENSE) {
            let Some((column, descending)) = self.orders_of(&self.rows(reply)).into_iter().next() else { continue };
            // Equal times in two orders are one and the same here.
            let known = sorts.iter().any(|sort| (&sort.column, sort.descending) == (&column, descending));
            let as_usual = usual.as_ref() == Some(&(column.clone(), descending));
            if known {
                continue;
            }
            let direction = if descending { "largest" } else { "smallest" };
            let besides = if as_usual { " (as they do with nonsense)" } else { "" };
            notes.push(format!("with {} the {direction} {column} comes first{besides}", tried.label));
            sorts.push(Sort { value: tried.label.clone(), column, descending });
        }
        match sorts.is_empty() {
            false => self.found.saw("sort", notes.join("; ")),
            true => self.found.could_not_tell(
                "sort",
                "no value of sortBy that was tried had an effect; find the values in your manual and set [sort]",
            ),
        }
        self.found.sorts = sorts;
    }

    fn judge_filters(&mut self, filters: &Dimension) {
        let mut notes = Vec::new();
        for (tried, reply) in filters.taken() {
            let [(parameter, wanted)] = tried.pairs.as_slice() else { continue };
            let Some(path) = self.found.columns.path(&tried.label) else { continue };
            let rows = self.rows(reply);
            let all = rows.iter().all(|row| at(row, path).and_then(said).as_ref() == Some(wanted));
            if rows.len() >= 2 && all {
                notes.push(format!("with {parameter}={wanted} all of {} mentions had it", rows.len()));
                self.found.filters.push((parameter.clone(), tried.label.clone()));
            }
        }
        match notes.is_empty() {
            false => self.found.saw("filters", notes.join("; ")),
            true => self.found.could_not_tell(
                "filters",
                "no filter that was tried had an effect: all conditions are applied here; see your manual for [filters]",
            ),
        }
    }

    /// What answers repeat of their questions.
    fn echoes(&mut self, periods: &Dimension, zones: &Dimension) {
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
        // A window of two instants that is the one that was asked for.
        let bounds = |body: &Value| -> Option<(Path, Path, i64, i64)> {
            let moments: Vec<(Path, i64)> = leaves(body)
                .into_iter()
                .filter_map(|(path, value)| Some((path, value.as_str()?.contains('T').then(|| instant("", value))??)))
                .collect();
            moments.iter().find_map(|(from, since)| {
                let ends = |path: &Path| path.len() == from.len() && path[..path.len() - 1] == from[..from.len() - 1];
                let named = from.last().is_some_and(|name| starts(name));
                let until = moments.iter().find(|(to, until)| named && ends(to) && until > since && ends_named(to))?;
                Some((from.clone(), until.0.clone(), *since, until.1))
            })
        };
        for (tried, reply) in periods.taken() {
            let expected = match tried.label.as_str() {
                "60d" => 60 * 24,
                "30d" => 30 * 24,
                "3w" => 21 * 24,
                "48h" => 48,
                _ => continue,
            };
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
            self.found.saw("echo", format!("an answer repeats {}", said.join(", ")));
        }
        self.found.echoes = found;
    }

    /// Whether the end of a period belongs to it.
    async fn ends(&mut self) -> Result<()> {
        let Some(absolute) = self.found.window.absolute.clone() else { return Ok(()) };
        let samples: Vec<&Value> = self.samples.iter().collect();
        let Some(newest) = self.instants(&samples).into_iter().max() else { return Ok(()) };
        let (from, write): (i64, Box<dyn Fn(i64) -> String>) = match absolute.instants {
            // One day by itself: there is none if its end does not belong to it.
            "date" => (newest, Box::new(|at| utc(at).date_naive().to_string())),
            "epoch_ms" => (newest - DAY, Box::new(|at: i64| (at / 1_000).to_string())),
            _ => (newest - DAY, Box::new(|at| utc(at).to_rfc3339_opts(SecondsFormat::Secs, true))),
        };
        let mut asked = self.asking(LOOK);
        match &absolute.form {
            Form::Template(template) => {
                let words = template.replace("{from}", &write(from)).replace("{to}", &write(newest));
                asked.push(pair(DURATION, words));
            }
            Form::Separate(since, until) => asked.extend([pair(since, write(from)), pair(until, write(newest))]),
        }
        asked.extend(self.newest_first());
        let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(()) };
        let times = self.instants(&self.rows(&reply));
        let inclusive = match absolute.instants {
            "date" => Some(!times.is_empty()),
            _ if times.is_empty() => None,
            _ => Some(times.iter().any(|at| *at / 1_000_000 == newest / 1_000_000)),
        };
        if let Some(inclusive) = inclusive {
            let text = if inclusive { "the end belongs to a period" } else { "a period ends before its end" };
            self.found.saw("window", text);
        } else {
            self.found.could_not_tell("window", "whether the end belongs to a period: it is taken not to");
        }
        self.found.window.absolute = Some(Absolute { inclusive, ..absolute });
        Ok(())
    }

    fn newest_first(&self) -> Option<Pair> {
        let newest = self.found.sorts.iter().find(|sort| sort.column == "published_at" && sort.descending);
        newest.map(|sort| pair(SORT, &sort.value))
    }

    /// How several values of a filter are said.
    async fn several_values(&mut self) -> Result<()> {
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
        let ways: [(&str, Vec<Pair>); 3] = [
            (",", vec![pair(&parameter, format!("{first},{second}"))]),
            ("again", vec![pair(&parameter, &first), pair(&parameter, &second)]),
            ("|", vec![pair(&parameter, format!("{first}|{second}"))]),
        ];
        for (way, pairs) in ways {
            let mut asked = self.asking(LOOK);
            asked.extend(self.widest().into_iter().chain(pairs));
            let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(()) };
            let rows = self.rows(&reply);
            let values: BTreeSet<String> = rows.iter().filter_map(|row| said(at(row, &path)?)).collect();
            let both = values.contains(&first) && values.contains(&second);
            if both && values.len() == 2 && rows.iter().all(|row| at(row, &path).and_then(said).is_some()) {
                let (several, text) = match way {
                    "again" => (Several::Repeated, "by the parameter again".to_owned()),
                    separator => (Several::Separated(separator.to_owned()), format!("separated by `{separator}`")),
                };
                self.found.saw("filters", format!("several values are said {text}"));
                self.found.several = Some(several);
                return Ok(());
            }
        }
        self.found.saw("filters", "several values of a filter had no effect together: one at a time is sent");
        self.found.several = Some(Several::One);
        Ok(())
    }

    /// The ids of mentions asked for with an offset; `None` where there are none.
    async fn ids(&mut self, offset: u64, size: u64) -> Result<Option<(Vec<String>, Reply)>> {
        let mut asked = self.asking(size);
        asked.extend(self.widest());
        asked.extend(self.newest_first());
        asked.push(pair(OFFSET, offset));
        let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(None) };
        let Some(path) = self.found.columns.path("id").cloned() else { return Ok(None) };
        self.keep(&reply);
        self.found.widest_count = self.widest_count(&reply).or(self.found.widest_count);
        let ids = self.rows(&reply).iter().filter_map(|row| said(at(row, &path)?)).collect();
        Ok(Some((ids, reply)))
    }

    /// What an offset counts, and from where.
    async fn offset(&mut self) -> Result<()> {
        const SMALL: u64 = 5;
        if self.found.mentions.is_none() {
            return Ok(());
        }
        let Some((one, _)) = self.ids(1, SMALL).await? else { return self.no_offset() };
        let Some((zero, reply)) = self.ids(0, SMALL).await? else { return self.no_offset() };
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
            let Some((two, _)) = self.ids(2, SMALL).await? else { return self.no_offset() };
            follows(&one, &two).map(|pages| Offset { pages, first: 1 })
        } else {
            follows(&zero, &one).map(|pages| Offset { pages, first: 0 })
        };
        match offset {
            Some(Offset { pages, first }) => {
                let what = if pages { "pages" } else { "rows" };
                self.found.saw("offset", format!("dataFrom counts {what} from {first}, by what came for 0, 1 and 2"));
                self.found.offset = offset;
                Ok(())
            }
            None => self.no_offset(),
        }
    }

    fn no_offset(&mut self) -> Result<()> {
        let text =
            "dataFrom of 0, 1 and 2 show no rule; rows from 0 are assumed. Probe a saved search with more mentions";
        self.found.could_not_tell("offset", text);
        Ok(())
    }

    /// How many records a page has at most.
    async fn page_bound(&mut self) -> Result<()> {
        const HUGE: u64 = 100_000;
        if self.found.mentions.is_none() {
            return Ok(());
        }
        let first = self.found.offset.map_or(0, |offset| offset.first);
        let Some((ids, reply)) = self.ids(first, HUGE).await? else { return Ok(()) };
        if !ids.is_empty() {
            let rows = ids.len() as u64;
            let count = self.widest_count(&reply).or(self.found.widest_count);
            let all = count.is_none_or(|count| rows >= count);
            if all {
                let max = vocabulary::PAGE_BOUNDS.iter().copied().find(|bound| *bound <= rows).unwrap_or(rows);
                let text = format!("a page of {rows} came, which may be all there is: {max} is sent");
                self.found.could_not_tell("page", text);
                self.found.page = Some(Page { max, clamped: true });
            } else {
                self.found.saw("page", format!("{HUGE} were asked for, and {rows} came"));
                self.found.page = Some(Page { max: rows, clamped: true });
            }
            return Ok(());
        }
        let hint = number_in(&reply.message());
        self.refusals.push(reply);
        let bounds: Vec<u64> = hint.into_iter().chain(vocabulary::PAGE_BOUNDS.iter().copied()).collect();
        for max in bounds {
            // Some calls are for the depth.
            if self.asker.left() <= 3 {
                break;
            }
            let Some((ids, reply)) = self.ids(first, max).await? else { break };
            if ids.is_empty() {
                self.refusals.push(reply);
                continue;
            }
            let told = ids.len() as u64 == max || self.widest_count(&reply).is_some_and(|count| count <= max);
            let text = format!("{HUGE} were refused, and {max} were not");
            if told {
                self.found.saw("page", text)
            } else {
                self.found.could_not_tell("page", text)
            };
            self.found.page = Some(Page { max, clamped: false });
            return Ok(());
        }
        self.found.could_not_tell("page", "no size that was tried was taken; 10 is assumed");
        self.found.page = Some(Page { max: 10, clamped: false });
        Ok(())
    }

    /// The number of mentions within the widest period.
    fn widest_count(&self, reply: &Reply) -> Option<u64> {
        self.count(reply).or_else(|| self.found.total.as_ref().and_then(|path| number(reply.body.as_ref()?, path)))
    }

    /// How far paging reaches.
    async fn depth(&mut self) -> Result<()> {
        let (Some(_), Some(page)) = (&self.found.mentions, self.found.page) else { return Ok(()) };
        let Some(total) = self.found.widest_count else { return self.no_depth(0) };
        let offset = self.found.offset.unwrap_or(Offset { pages: false, first: 0 });
        // The last record by itself, or the last page.
        let question = |row: u64| match offset.pages {
            true => (offset.first + row / page.max, page.max, (total - row / page.max * page.max).min(page.max)),
            false => (offset.first + row, 2, (total - row).min(2)),
        };
        if total <= page.max {
            return self.no_depth(total);
        }
        let (from, size, expected) = question(total - 1);
        let Some((ids, reply)) = self.ids(from, size).await? else { return self.no_depth(0) };
        if ids.len() as u64 == expected {
            let text = format!("the last of {total} mentions came by paging; how much further it reaches is not known");
            self.found.saw("depth", text);
            return Ok(());
        }
        let beyond = match (ids.is_empty(), reply.status) {
            (false, _) => "last_page",
            (true, 404) => "not_found",
            (true, 200..=299) if self.found.has_rows(&reply) => "empty",
            (true, _) => "bad_request",
        };
        for rows in vocabulary::DEPTHS.iter().rev().copied().filter(|rows| *rows < total && *rows >= page.max) {
            let (from, size) = match offset.pages {
                true => (offset.first + rows.div_ceil(page.max) - 1, page.max),
                false => (offset.first + rows - 1, 1),
            };
            let Some((ids, _)) = self.ids(from, size).await? else { break };
            let reached = !ids.is_empty() && (beyond != "last_page" || ids.len() as u64 == size);
            if reached {
                self.found.saw("depth", format!("row {rows} came and row {total} did not ({beyond})"));
                self.found.depth = Some(Depth { rows, beyond });
                return Ok(());
            }
        }
        self.found
            .could_not_tell("depth", format!("row {total} did not come ({beyond}), and no less was found that does"));
        self.found.depth = Some(Depth { rows: page.max, beyond });
        Ok(())
    }

    fn no_depth(&mut self, total: u64) -> Result<()> {
        let text = format!("{total} mentions are too few to see how far paging reaches; probe a larger saved search");
        self.found.could_not_tell("depth", text);
        Ok(())
    }

    /// Whether numbers agree with each other.
    fn totals(&mut self) {
        let agreed = &self.found.agreements;
        let (same, all) = (agreed.iter().filter(|(a, b)| a == b).count(), agreed.len());
        if self.found.total.is_some() {
            self.found.total_is_exact = all > 0 && same == all;
            let text = format!("the total was the overview's in {same} of {all} answers");
            self.found.saw("total", text);
        } else {
            self.found.saw("total", "answers with mentions tell no total");
        }
        let sums = &self.found.sums;
        let (same, all) = (sums.iter().filter(|(a, b)| a == b).count(), sums.len());
        self.found.counts =
            all > 0 && same == all && (self.found.total.is_none() || self.found.total_is_exact || same >= 3);
        match self.found.counts {
            true => {
                self.found.saw("counts", format!("the overview's total was the sum of its timeline in {all} answers"))
            }
            false => self.found.could_not_tell(
                "counts",
                "the overview's total could not be checked against its timeline: mentions are counted one by one",
            ),
        }
    }

    /// How an error looks.
    async fn errors(&mut self) -> Result<()> {
        if self.refusals.is_empty() && self.key_refusals.is_empty() {
            let Some(reply) = self.asker.ask("search", &[pair(AID, NONSENSE)]).await? else { return Ok(()) };
            self.refusals.push(reply);
        }
        let refusals = self.key_refusals.iter().chain(&self.refusals);
        let Some(refusal) =
            refusals.rev().find(|refusal| !self.found.has_overview(refusal) && !self.found.has_rows(refusal))
        else {
            return Ok(());
        };
        let mut error = ErrorShape { inside_success: (200..300).contains(&refusal.status), ..ErrorShape::default() };
        match &refusal.body {
            None => error.text = true,
            Some(body) => {
                let texts: Vec<Path> =
                    leaves(body).into_iter().filter(|(_, v)| v.is_string()).map(|(path, _)| path).collect();
                let named = |names: &[&str]| {
                    let of =
                        |name: &&str| texts.iter().find(|path| path.last().is_some_and(|last| plain(last) == **name));
                    names.iter().find_map(of).cloned()
                };
                error.code = named(&["code", "reason", "type", "error"]);
                error.message = named(&["message", "detail", "description", "title"]);
                error.field = named(&["field", "parameter", "param"]);
            }
        }
        if error.inside_success {
            let code = |reply: &Reply| said(at(reply.body.as_ref()?, error.code.as_ref()?)?);
            error.statuses = self.key_refusals.iter().filter_map(code).map(|code| (code, 401)).collect();
            error.statuses.dedup();
        }
        let text = format!("a refusal looked like this: {}", refusal.line());
        self.found.saw("error", text);
        self.found.error = Some(error);
        Ok(())
    }
}

impl Findings {
    /// The number of mentions that the overview tells.
    fn count(&self, reply: &Reply) -> Option<u64> {
        let below = self.overview_columns.path("total_mentions")?;
        number(at(reply.body.as_ref()?, self.overview.as_ref()?)?, below)
    }

    /// The mentions of an answer.
    fn rows<'r>(&self, reply: &'r Reply) -> Vec<&'r Value> {
        let found = self.mentions.as_ref().and_then(|path| at(reply.body.as_ref()?, path)?.as_array());
        found.map(|rows| rows.iter().filter(|row| row.is_object()).collect()).unwrap_or_default()
    }

    fn has_rows(&self, reply: &Reply) -> bool {
        let path = self.mentions.as_ref();
        path.and_then(|path| at(reply.body.as_ref()?, path)).is_some_and(Value::is_array)
    }

    fn has_overview(&self, reply: &Reply) -> bool {
        self.count(reply).is_some()
    }

    /// The entries of the timeline.
    fn timeline<'r>(&self, reply: &'r Reply) -> Vec<&'r Value> {
        let found = self.timeline.as_ref().and_then(|(path, _)| at(reply.body.as_ref()?, path)?.as_array());
        found.map(|entries| entries.iter().collect()).unwrap_or_default()
    }

    /// The sum of the timeline.
    fn sum(&self, reply: &Reply) -> Option<u64> {
        let (_, line) = self.timeline.as_ref()?;
        let entries = self.timeline(reply);
        (!entries.is_empty()).then(|| entries.iter().filter_map(|entry| entry[&line.count].as_u64()).sum())
    }

    /// The period that an answer is about, and whether that is exact: what it says, or what its timeline covers.
    fn extent(&self, reply: &Reply) -> Option<(i64, i64, bool)> {
        let body = reply.body.as_ref()?;
        let moments: Vec<(Path, i64)> = leaves(body)
            .into_iter()
            .filter_map(|(path, value)| Some((instant(path.last()?, value)?, path)))
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
            let (_, line) = self.timeline.as_ref()?;
            let entries = self.timeline(reply);
            let start = |entry: &Value| instant(&line.start, &entry[&line.start]);
            let (first, last) = (start(entries.first()?)?, start(entries.last()?)?);
            Some((first.min(last), first.max(last) + DAY, false))
        })
    }

    /// Whether a candidate for the period did what it says, and nonsense did not.
    fn has_effect(&self, periods: &Dimension, tried: &Try, reply: &Reply, newest: Option<i64>) -> bool {
        let Some((from, to, exact)) = self.extent(reply) else { return false };
        let usual = match periods.outcome(NONSENSE) {
            Some(Outcome::Taken(reply)) => self.extent(reply),
            _ => None,
        };
        let hours = |micros: i64| micros / 3_600_000_000;
        let relative = match tried.label.as_str() {
            NONSENSE => return false,
            "60d" => Some(60 * 24),
            "30d" => Some(30 * 24),
            "48h" => Some(48),
            "3w" => Some(21 * 24),
            name => vocabulary::PERIODS.iter().find(|(known, _)| *known == name).map(|(_, hours)| *hours),
        };
        if let Some(expected) = relative {
            return near(hours(to - from), expected, exact);
        }
        if tried.label.starts_with(['{', 'e']) && tried.label.contains(' ') {
            let Some((since, until)) = newest.map(span) else { return false };
            return since - DAY <= from && to <= until + DAY;
        }
        // A name that nobody knows.
        usual.is_none_or(|(since, until, _)| hours(until - since).abs_diff(hours(to - from)) > 1)
    }

    /// The length of the period that an answer is about, in hours.
    fn hours(&self, reply: &Reply, known: Option<i64>) -> Option<i64> {
        let (from, to, exact) = self.extent(reply)?;
        let hours = (to - from) / 3_600_000_000;
        if exact { Some(hours) } else { known.filter(|known| near(hours, *known, false)) }
    }

    /// How long before midnight UTC the days of the timeline begin, in microseconds; `None` where that is not to be seen.
    fn days_begin(&self, reply: &Reply) -> Option<i64> {
        let (_, line) = self.timeline.as_ref()?;
        // The first one may begin where the period does.
        let entries = self.timeline(reply).into_iter().skip(1);
        let begins: BTreeSet<i64> =
            entries.filter_map(|entry| Some((-instant(&line.start, &entry[&line.start])?).rem_euclid(DAY))).collect();
        begins.first().copied().filter(|_| begins.len() == 1)
    }
}

/// Whether a length in hours is as expected: to the hour, which a change of clocks may take, or to the days of a timeline.
fn near(hours: i64, expected: i64, exact: bool) -> bool {
    let (less, more) = if exact { (1, 1) } else { (25, 50) };
    (expected - less..=expected + more).contains(&hours)
}

/// More candidates for the period, by what became of the first ones.
fn more_periods(found: &Findings, periods: &mut Dimension, newest: Option<i64>) {
    let effective = |periods: &Dimension, label: &str| {
        periods.taken().any(|(tried, reply)| tried.label == label && found.has_effect(periods, tried, reply, newest))
    };
    let (control, days) = (periods.outcome(NONSENSE).cloned(), periods.outcome("60d").cloned());
    let (Some(control), Some(days)) = (control, days) else { return };
    // What a refusal lists is all there is.
    let listed = match &control {
        Outcome::Refused(text) => Some(hints(text)).filter(|hints| !hints.is_empty()),
        Outcome::Taken(_) => None,
    };
    let lists = |word: &str| listed.as_ref().is_none_or(|hints| hints.iter().any(|hint| hint.contains(word)));
    let add = |periods: &mut Dimension, value: &str| periods.add(Try::new(value, DURATION, value));
    let works = effective(periods, "60d");
    if let Outcome::Refused(text) = &days
        && number_in(text).is_some_and(|days| days >= 30)
        && text.contains("long")
    {
        add(periods, "30d");
    }
    let units = works || matches!(days, Outcome::Refused(_));
    for (value, unit) in [("48h", "<n>h"), ("3w", "<n>w")] {
        if units && lists(unit) {
            add(periods, value);
        }
    }
    let names: Vec<String> = match &listed {
        Some(hints) => hints
            .iter()
            .filter(|hint| !hint.contains(['<', '>']) && hint.chars().any(|c| c.is_ascii_lowercase()))
            .cloned()
            .collect(),
        None if units => Vec::new(),
        None => vocabulary::PERIODS[..5].iter().map(|(name, _)| (*name).to_owned()).collect(),
    };
    for name in names.iter().filter(|name| *name != NONSENSE) {
        add(periods, name);
    }
    let Some((from, to)) = newest.map(span) else { return };
    let absolute = |tried: &Try| tried.label.contains(' ');
    let done =
        periods.taken().find(|(tried, reply)| absolute(tried) && found.has_effect(periods, tried, reply, newest));
    if let Some((tried, _)) = done.map(|(tried, reply)| (tried.clone(), Arc::clone(reply))) {
        periods.queue.retain(|other| !absolute(other) || (tried.pairs.len() > 2 && other.label == tried.label));
        if tried.pairs.len() > 2 {
            let single = periods.taken().any(|(other, reply)| {
                other.label == tried.label && other.pairs.len() == 2 && found.has_effect(periods, other, reply, newest)
            });
            if single {
                periods.queue.retain(|other| !absolute(other));
            } else {
                for pairs in tried.pairs.chunks(2) {
                    periods.add(Try { label: tried.label.clone(), pairs: pairs.to_vec() });
                }
            }
        }
        return;
    }
    let instant = |at: i64| utc(at).to_rfc3339_opts(SecondsFormat::Secs, true);
    let millis = |at: i64| (at / 1_000).to_string();
    let day = |at: i64| utc(at).date_naive();
    if lists("FROM") {
        periods.add(Try::new("{from}..{to} rfc3339", DURATION, format!("{}..{}", instant(from), instant(to))));
    }
    if lists("YYYY") && (units || listed.is_some()) {
        // The last day is named where it is included.
        let last = day(to).checked_sub_days(Days::new(1)).unwrap_or_default();
        periods.add(Try::new("{from},{to} date", DURATION, format!("{},{last}", day(from))));
    }
    let in_words =
        listed.as_ref().is_some_and(|hints| hints.iter().any(|hint| hint.contains("FROM") || hint.contains("YYYY")));
    if !in_words {
        let ends = |write: &dyn Fn(i64) -> String| {
            vocabulary::ENDS
                .iter()
                .flat_map(|(since, until)| [pair(since, write(from)), pair(until, write(to))])
                .collect()
        };
        periods.add(Try { label: "ends epoch_ms".into(), pairs: ends(&millis) });
        if units {
            periods.add(Try { label: "ends rfc3339".into(), pairs: ends(&instant) });
        }
    }
}

/// More candidates for the order: what a refusal lists, or what is usual.
fn more_orders(orders: &mut Dimension) {
    /// Orders that are worth a call each.
    const MOST: usize = 7;
    let Some(control) = orders.outcome(NONSENSE).cloned() else { return };
    let listed = match &control {
        Outcome::Refused(text) => hints(text),
        Outcome::Taken(_) => Vec::new(),
    };
    let listed: Vec<String> = listed.into_iter().filter(|hint| hint != NONSENSE).collect();
    if !listed.is_empty() {
        orders.queue.retain(|tried| listed.contains(&tried.label));
    }
    let usual = vocabulary::SORTS.iter().map(|value| (*value).to_owned());
    let values: Vec<String> = if listed.is_empty() { usual.collect() } else { listed };
    for value in values.iter().take(MOST) {
        orders.add(Try::new(value, SORT, value));
    }
}

/// How long before midnight UTC a day of Kolkata begins, in microseconds.
const KOLKATA: i64 = 19_800_000_000;
/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// Two days that ended a day before the newest mention's began.
fn span(newest: i64) -> (i64, i64) {
    let day = newest.div_euclid(DAY) * DAY;
    (day - 3 * DAY, day - DAY)
}

fn starts(name: &str) -> bool {
    ["from", "since", "start", "begin", "windowfrom"].contains(&plain(name).as_str())
}

fn ends_named(path: &Path) -> bool {
    path.last().is_some_and(|name| ["to", "until", "end", "finish", "windowto"].contains(&plain(name).as_str()))
}

/// The name that stands for no value.
fn missing_of(mut names: impl Iterator<Item = String>) -> Option<String> {
    names.find(|name| vocabulary::MISSING.contains(&plain(name).as_str()))
}

/// What says beside a total whether that is exact.
fn relation_beside(reply: &Reply, total: &Path) -> Option<Path> {
    let says = |value: &Value| matches!(value.as_str(), Some("eq" | "gte"));
    let mut found = leaves(reply.body.as_ref()?).into_iter().filter(|(path, value)| {
        says(value) && path.len() == total.len() && path[..path.len() - 1] == total[..total.len() - 1]
    });
    found.next().map(|(path, _)| path)
}

/// The parameter that would filter by a field: its name, or that of what it belongs to.
fn parameter_of(column: &str, path: &Path) -> String {
    let generic = ["name", "label", "type", "code", "value", "key"];
    let mut steps = path.iter().rev();
    let last = steps.next().cloned().unwrap_or_else(|| column.to_owned());
    match steps.next() {
        Some(parent) if generic.contains(&plain(&last).as_str()) => parent.clone(),
        _ => last,
    }
}
