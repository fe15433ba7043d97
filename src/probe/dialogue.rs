//! The conversation with a service: what is asked, in what order, and what each answer shows.
//!
//! ```text
//! key, list ─▶ a search ─▶ what asks for mentions ─▶ rounds: period, zone, order, filters ─▶ ends, offset, size, depth
//! ```
//!
//! Nothing is believed because of a status. A candidate has an effect only where the data shows it, and a nonsense value
//! is the control: what the data shows for that as well is no effect.

use serde_json::Value;

use super::asker::{Asker, Pair, Reply};
use super::candidates::{AID, NONSENSE, SIZE, pair};
use super::effects;
use super::findings::{Asked, Breakdown, ErrorShape, Findings, SavedSearches};
use super::shape::{self, Columns, List, Path, Timeline, at, instant, leaves, number, pointer, said, walk};
use super::vocabulary::{self, plain};
use crate::error::{Error, ErrorKind, Result};

/// Mentions that are asked for to look at.
pub(super) const LOOK: u64 = 20;

/// A conversation under way.
pub(super) struct Dialogue {
    pub(super) asker: Asker,
    pub(super) found: Findings,
    /// Mentions that were seen.
    pub(super) samples: Vec<Value>,
    /// Entries of saved searches that were seen.
    listed: Vec<String>,
    /// Answers that were none: to other forms of the key, and to other questions.
    key_refusals: Vec<Reply>,
    pub(super) refusals: Vec<Reply>,
    /// The overview without any word about period, zone or filter.
    first: Option<Reply>,
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
    pub(super) async fn key(&mut self) -> Result<()> {
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

    pub(super) fn list(&mut self, lists: &[(Path, Vec<&Value>)]) {
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
    pub(super) async fn search(&mut self) -> Result<()> {
        let aids: Vec<String> = self.listed.iter().take(5).cloned().collect();
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

    pub(super) fn look_at_overview(&mut self, reply: &Reply) {
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
            } else if let Some((label, _)) = label
                && let Some((list, names)) = entries_of(value)
            {
                let missing = missing_of(&names);
                let label = (*label).to_owned();
                breakdowns.push(Breakdown { at, label, list, missing, names, is_usable: false });
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

    pub(super) fn count(&self, reply: &Reply) -> Option<u64> {
        self.found.count(reply)
    }

    pub(super) fn rows<'r>(&self, reply: &'r Reply) -> Vec<&'r Value> {
        self.found.rows(reply)
    }

    /// Remembers the mentions of an answer, and whether its numbers agree.
    pub(super) fn keep(&mut self, reply: &Reply) {
        let count = self.found.count(reply);
        let total = self.found.total.as_ref().and_then(|path| number(reply.body.as_ref()?, path));
        self.found.agreements.extend(count.zip(total));
        self.found.sums.extend(count.zip(self.found.sum(reply)));
        let starts = self.found.bucket_starts(reply);
        self.found.gaps |= starts.windows(2).any(|pair| (pair[1] - pair[0]).abs() > effects::DAY + effects::HOUR);
        let room = 500_usize.saturating_sub(self.samples.len());
        let rows: Vec<Value> = self.rows(reply).into_iter().take(room).cloned().collect();
        self.samples.extend(rows);
    }

    pub(super) fn aid(&self) -> Pair {
        pair(AID, self.found.aid.as_deref().unwrap_or_default())
    }

    /// What asks for so many mentions.
    pub(super) fn asking(&self, size: u64) -> Vec<Pair> {
        let mut pairs = vec![self.aid()];
        if let Some(Asked::Flag(name, value)) = &self.found.asked {
            pairs.push(pair(name, value));
        }
        pairs.push(pair(SIZE, size));
        pairs
    }

    pub(super) async fn what_asks_for_mentions(&mut self) -> Result<()> {
        let unasked = self.first.as_ref().and_then(|first| Some(shape::mentions(first.body.as_ref()?)?.0));
        if let Some(path) = &unasked {
            // A few that stand in every overview are none.
            const FEW: u64 = 3;
            let Some(reply) = self.asker.ask("search", &[self.aid(), pair(SIZE, FEW)]).await? else { return Ok(()) };
            let rows = reply.body.as_ref().and_then(|body| at(body, path)?.as_array()).map(Vec::len);
            if let Some(first) = self.first.clone().filter(|_| rows.is_some_and(|rows| rows as u64 == FEW)) {
                return self.mentions_come(&first, Asked::Always, "mentions came unasked, as many as dataSize said");
            }
        }
        let (name, value) = vocabulary::FLAGS[0];
        let sized = [self.aid(), pair(SIZE, LOOK)];
        let flagged = [sized.as_slice(), &[pair(name, value)]].concat();
        let Some(with) = self.asker.ask("search", &flagged).await? else { return Ok(()) };
        let Some(without) = self.asker.ask("search", &sized).await? else { return Ok(()) };
        let come = |reply: &Reply| {
            let found = reply.body.as_ref().and_then(|body| Some(shape::mentions(body)?.0));
            found.is_some() && found != unasked
        };
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

    pub(super) fn mentions_come(&mut self, reply: &Reply, asked: Asked, text: &str) -> Result<()> {
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
    pub(super) fn total_of(&self, reply: &Reply) -> Option<Path> {
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
    pub(super) fn headers(&mut self, reply: &Reply) {
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

    pub(super) fn instants(&self, rows: &[&Value]) -> Vec<i64> {
        let Some(path) = self.found.columns.path("published_at") else { return Vec::new() };
        let name = path.last().map_or("", |name| name);
        rows.iter().filter_map(|row| instant(name, at(row, path)?)).collect()
    }

    pub(super) fn widest(&self) -> Vec<Pair> {
        self.found.window.widest.as_ref().map(|(_, pairs)| pairs.clone()).unwrap_or_default()
    }

    /// Whether numbers agree with each other.
    pub(super) fn totals(&mut self) {
        let agreed = &self.found.agreements;
        let (same, all) = (agreed.iter().filter(|(a, b)| a == b).count(), agreed.len());
        // A total that is a hint may be right by and by.
        let agreed_all = same == all || agreed.iter().all(|(count, total)| count <= total && total - count < 1_000);
        let summed = self.found.sums.iter().all(|(count, sum)| count == sum);
        if self.found.total.is_some() {
            self.found.total_is_exact = all > 0 && same == all && summed && !self.found.is_capped;
            let text = format!("the total was the overview's in {same} of {all} answers");
            self.found.saw("total", text);
        } else {
            self.found.saw("total", "answers with mentions tell no total");
        }
        let sums = &self.found.sums;
        let (same, all) = (sums.iter().filter(|(a, b)| a == b).count(), sums.len());
        // A filter shows in the total, or in the lists.
        let checked = match &self.found.total {
            Some(_) => agreed_all,
            None => self.found.breakdowns.iter().any(|breakdown| breakdown.list.is_some()),
        };
        self.found.counts = all > 0 && same == all && checked;
        self.usable_lists();
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

    /// The lists count mentions by a field only where their names are its values.
    fn usable_lists(&mut self) {
        for breakdown in &mut self.found.breakdowns {
            let Some(path) = self.found.columns.path(&breakdown.label) else { continue };
            let values: Vec<Option<String>> = self.samples.iter().map(|row| said(at(row, path)?)).collect();
            let seen = |name: &String| values.iter().flatten().any(|value| value == name);
            let nulls = values.iter().any(Option::is_none);
            breakdown.missing = breakdown.missing.take().filter(|name| !seen(name) && nulls);
            let missing = breakdown.missing.clone();
            breakdown.is_usable = breakdown.names.iter().all(|name| seen(name) || Some(name) == missing.as_ref());
        }
    }

    /// How an error looks.
    pub(super) async fn errors(&mut self) -> Result<()> {
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

/// The members of a list, and the names of its entries: an array of names with numbers, or an object of numbers by name.
fn entries_of(value: &Value) -> Option<(Option<List>, Vec<String>)> {
    if let Some(list) = List::of(value) {
        let entries = shape::objects(value)?.into_iter();
        let names = entries.filter_map(|entry| said(&entry[&list.name])).collect();
        return Some((Some(list), names));
    }
    let members = value.as_object().filter(|_| shape::is_entries(value))?;
    Some((None, members.keys().cloned().collect()))
}

/// The name that stands for no value.
fn missing_of(names: &[String]) -> Option<String> {
    names.iter().find(|name| vocabulary::MISSING.contains(&plain(name).as_str())).cloned()
}

/// What says beside a total whether that is exact.
fn relation_beside(reply: &Reply, total: &Path) -> Option<Path> {
    let says = |value: &Value| matches!(value.as_str(), Some("eq" | "gte"));
    let mut found = leaves(reply.body.as_ref()?).into_iter().filter(|(path, value)| {
        says(value) && path.len() == total.len() && path[..path.len() - 1] == total[..total.len() - 1]
    });
    found.next().map(|(path, _)| path)
}
