//! The exchange with a service: the requests, their order, and what each response shows.
//!
//! ```text
//! key, list ─▶ a search ─▶ an unknown parameter ─▶ the parameter that requests mentions
//!           ─▶ rounds: window, zone, sort order, filters ─▶ offset, page size, ends of windows, depth
//! ```
//!
//! A status proves nothing. A candidate has an effect only if the data shows it. A meaningless value is the control: if it
//! has the same effect, the effect does not count.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::asker::{Asker, Pair, Reply, reset_format};
use super::beside::Beside;
use super::candidates::{AID, DURATION, NONSENSE, OFFSET, SIZE, SORT, pair, shape_of_instant, written};
use super::effects;
use super::facts;
use super::judge::Days;
use super::known::Known;
use super::names;
use super::observations::{Breakdown, ErrorShape, Findings, MentionsParameter, Note, SavedSearches, Seen};
use super::paging::{TRIAL, written_at};
use super::refusal;
use super::scheduler::Outcome;
use super::shape::{self, Columns, Counts, Layout, Path, Series, at, leaves, place, pointer, said, walk};
use super::vocabulary::{self, plain};
use super::{numbers, roles, zones};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{ResetFormat, Zone as Clock};

/// Mentions requested as samples.
pub(super) const LOOK: u64 = 20;
/// Mentions requested to find their array: a length that no other array has by chance.
pub(super) const FEW: u64 = 13;
/// Values named in a refusal that are tried.
const VALUES: usize = 3;
/// Requests reserved for later steps during the search for the parameter that requests mentions.
const MENTIONS_RESERVE: u64 = 8;

/// State of a running probe.
pub(super) struct Dialogue {
    pub(super) asker: Asker,
    pub(super) found: Findings,
    /// Received mentions.
    pub(super) samples: Vec<Value>,
    /// Ids of the saved searches in the list.
    pub(super) listed: Vec<String>,
    /// Saved searches that were requested in search of one with mentions, with the responses.
    pub(super) visited: Vec<(String, Reply)>,
    /// Refusals of other forms of the key, and of other requests.
    key_refusals: Vec<Reply>,
    pub(super) refusals: Vec<Reply>,
    /// The overview without window, zone or filter parameters.
    pub(super) first: Option<Reply>,
    /// Responses with data.
    pub(super) seen: Vec<Seen>,
    pub(super) known: Known,
    /// The response to a request for a few mentions with a parameter that the service ignored.
    sized: Option<Reply>,
    /// Periods that are requested beside parameters that may request mentions.
    pub(super) beside: Option<Beside>,
    /// Set if two saved searches have other numbers than each other.
    aids_differ: bool,
    /// Set if the example was answered as it is.
    pub(super) is_example_answered: bool,
    /// Set once a search was requested without a saved search.
    has_tried_bare: bool,
    /// Set once a search was requested with the ends of a window that a refusal misses.
    has_tried_ends: bool,
    /// The days of the widest window in two zones.
    pub(super) zone_days: Option<[Days; 2]>,
    /// Parameters named by a service that rejects unknown ones, empty if it names none; `None` if it accepts any
    /// parameter.
    pub(super) parameters: Option<Vec<String>>,
}

impl Dialogue {
    pub(super) fn new(asker: Asker, known: Known) -> Self {
        let has_brackets = asker.names.iter().any(|(_, own)| own.contains('['));
        let found = Findings { has_brackets, ..Findings::default() };
        Self {
            asker,
            found,
            samples: Vec::new(),
            listed: Vec::new(),
            visited: Vec::new(),
            key_refusals: Vec::new(),
            refusals: Vec::new(),
            first: None,
            seen: Vec::new(),
            sized: None,
            beside: None,
            aids_differ: false,
            is_example_answered: false,
            has_tried_bare: false,
            has_tried_ends: false,
            zone_days: None,
            parameters: None,
            known,
        }
    }

    /// Runs all steps of the probe.
    ///
    /// # Errors
    /// Fails if no form of the key returns a list, if no saved search returns an overview, and if the service cannot be
    /// reached.
    pub(super) async fn run(&mut self) -> Result<()> {
        self.key().await?;
        if let Some(own) = self.known.facts.name_of_aid(&self.listed).cloned() {
            self.name(AID, &own);
        }
        self.as_given().await?;
        self.search().await?;
        if self.first.is_none() {
            return self.errors().await;
        }
        // Parameters that each search needs may be those that select it.
        let needs_others = !self.found.with.is_empty();
        if needs_others {
            self.other_search().await?;
        }
        self.found.sizes = self.known.facts.sizes();
        self.found.least = self.known.facts.least(SIZE);
        let described = self.known.facts.described.clone();
        if described.is_empty() {
            self.unknown_parameter().await?;
            self.roles_of_listed().await?;
        } else {
            self.parameters = Some(described.clone());
        }
        self.what_asks_for_mentions().await?;
        self.name_of_sort().await?;
        if self.found.asked.is_none() && !described.is_empty() {
            // The parameter may be missing in the description.
            self.found.notes.retain(|note| note.section != "mentions");
            self.parameters = None;
            self.unknown_parameter().await?;
            self.what_asks_for_mentions().await?;
        }
        self.rounds().await?;
        self.offset().await?;
        self.page_bound().await?;
        self.find_window_time();
        if self.found.time_zone.is_none() {
            self.zone_of_times().await?;
        }
        self.ends().await?;
        self.tell_instants();
        self.depth().await?;
        // The oldest mentions of a window came.
        self.find_window_time();
        self.days().await?;
        self.several_values().await?;
        if !needs_others {
            self.other_search().await?;
        }
        self.totals();
        self.find_idle_links().await?;
        self.errors().await?;
        self.found.could_not_tell(
            "throttle",
            "a probe does not provoke rate limits; status 429 is assumed. Set [throttle] and the windows of [budget] \
             as documented by the service",
        );
        self.look_at_mentions();
        let records: Vec<&Value> = self.samples.iter().collect();
        if self.found.mentions.is_some() {
            let untyped: Vec<String> = self.found.columns.untyped.iter().map(|path| pointer(path)).collect();
            let kept =
                if untyped.is_empty() { String::new() } else { format!("; {} kept in extra", untyped.join(", ")) };
            let text = format!("{} columns from {} records{kept}", self.found.columns.columns.len(), records.len());
            self.found.saw("tables.mentions", text);
            self.show();
        }
        Ok(())
    }

    /// Determines the zone of times that are written without one: they lie in their windows, and the number of mentions in a window
    /// shows between which two of them it begins. A zone is known only if no other one fits, so windows from both sides of a change
    /// of clocks are needed.
    async fn zone_of_times(&mut self) -> Result<()> {
        /// Requests for windows and a page of old mentions.
        const REQUESTS: usize = 6;
        /// Days among them.
        const DAYS: usize = 3;
        /// Zones that further pages are likely to tell apart.
        const FEW_ZONES: usize = 4;
        /// Requests that are left for trying the profile: without a zone, mentions have no time, and there is little to try.
        const LEFT: u64 = 1;
        let named = self.found.named_zone;
        let others = zones::all().iter().copied().filter(|zone| named != Some(*zone));
        let among: Vec<Clock> = named.into_iter().chain(others).collect();
        let Some(mut fitting) = self.found.zones_of_times(&self.seen, &among) else { return Ok(()) };
        if fitting.is_empty() {
            fitting = self.zones_of_other_times(&among);
        }
        let name = self.found.columns.path(self.found.time_name()).and_then(|path| path.last());
        let name = name.map(|name| plain(name)).unwrap_or_default();
        self.found.utc_is_named = ["utc", "gmt"].iter().any(|zone| name.starts_with(zone) || name.ends_with(zone));
        let (mut units, mut oldest) = (Vec::new(), self.found.oldest_times(&self.seen).is_some());
        let (mut spans, mut done, mut pages) = (Vec::new(), Vec::new(), 0);
        let mut has_other_days = false;
        for _ in 0..REQUESTS {
            if fitting.is_empty() || self.found.told_zone_of_times(&fitting).is_some() || self.asker.left() <= LEFT {
                break;
            }
            let window = self.found.telling_window(&self.seen, &fitting, &units);
            let absolute = self.found.window.absolute.clone().filter(|absolute| {
                ["rfc3339", "epoch_ms", "epoch_s"].contains(&absolute.instants) && window.is_none() && spans.len() < 2
            });
            let span = absolute.zip(self.found.telling_span(&self.seen, &fitting, &spans));
            if let Some((absolute, (from, to))) = span {
                spans.push((from, to));
                let [from, to] = [from, to].map(|at| written_at(at, absolute.instants));
                self.within(&absolute, (&from, &to), None).await?;
                fitting = self.found.zones_of_times(&self.seen, &among).unwrap_or_default();
                continue;
            }
            if window.is_none() && self.differ_now(&fitting) && self.days_follow_zone().await? {
                fitting = self.found.zones_of_times(&self.seen, &among).unwrap_or_default();
                continue;
            }
            // Old days of the requested zone, if windows are of days and none that ends now tells.
            let days = self.found.window.absolute.clone().filter(|absolute| {
                absolute.instants == "date" && window.is_none() && (oldest || fitting.len() < 4) && done.len() < DAYS
            });
            if let Some((absolute, (_, zone))) = days.zip(self.other_zone()) {
                let Some(day) = super::paging::old_day(&self.known_times(), &fitting, &done) else { break };
                done.push(day);
                let word = shape::utc(day).date_naive().to_string();
                self.within(&absolute, (&word, &word), Some(zone)).await?;
                fitting = self.found.zones_of_times(&self.seen, &among).unwrap_or_default();
                continue;
            }
            // The days of another zone begin at other instants.
            let is_timed = self.seen.iter().any(|seen| self.found.has_timed_entries(&seen.reply));
            let other = self.other_zone().filter(|_| oldest && is_timed && !has_other_days);
            let asked = match (&window, other) {
                (Some((_, words)), _) => [vec![self.aid(), pair(DURATION, words)], self.found.with.clone()].concat(),
                (None, Some((_, zone))) => {
                    has_other_days = true;
                    [vec![self.aid()], self.found.with.clone(), self.widest(), vec![zone]].concat()
                }
                // Old mentions are from before a change of clocks.
                (None, None) if !oldest => {
                    oldest = true;
                    if !self.oldest_page().await? {
                        break;
                    }
                    self.count_of_widest().await?;
                    fitting = self.found.zones_of_times(&self.seen, &among).unwrap_or_default();
                    continue;
                }
                (None, None) => {
                    pages += 1;
                    if fitting.len() > FEW_ZONES || !self.further_page(pages).await? {
                        break;
                    }
                    fitting = self.found.zones_of_times(&self.seen, &among).unwrap_or_default();
                    continue;
                }
            };
            let Some(reply) = self.asker.ask("search", &asked).await? else { break };
            self.keep(None, &Arc::new(reply));
            let before = fitting.len();
            fitting = self.found.zones_of_times(&self.seen, &among).unwrap_or_default();
            units.extend(window.filter(|_| fitting.len() == before).map(|(unit, _)| unit));
        }
        match (self.found.told_zone_of_times(&fitting), fitting.as_slice()) {
            (Some(zone), fitting) => {
                let why = match fitting {
                    [_] => "they fit the requested windows in no other zone",
                    _ if self.found.utc_is_named => {
                        "the field is named after it, and they fit the windows that were requested"
                    }
                    _ => "it is named, and they fit the windows that were requested",
                };
                self.found.saw("tables.mentions", format!("times without a zone are those of {zone}: {why}"));
                self.found.time_zone = Some(zone).filter(|zone| *zone != Clock::UTC);
            }
            (None, [first, others @ ..]) if self.found.agree_on_times(fitting.as_slice(), &self.samples) => {
                let text = format!(
                    "times have no zone; they are those of one of {}, in which all that came are the same instants. A time on which \
                     these zones differ is an error. State the zone with --fact 'timezone.default = \"…\"'",
                    zones::listed(&fitting)
                );
                self.found.could_not_tell("tables.mentions", text);
                (self.found.time_zone, self.found.other_time_zones) = (Some(*first), others.to_vec());
            }
            (None, fitting) => {
                let fits = match fitting {
                    [] => "none that is known fits the windows".to_owned(),
                    _ => format!("{} fit the windows", zones::listed(fitting)),
                };
                let not_utc = if fitting.contains(&Clock::UTC) { "" } else { " and are not those of UTC" };
                let text = format!(
                    "the times of mentions have no zone{not_utc}: {fits}. A fixed offset and a zone with daylight saving time \
                     look alike for months, so the times are texts. State the zone with --fact 'timezone.default = \"…\"', or \
                     make the columns timestamps with `zone`, and set `time`"
                );
                self.found.could_not_tell("tables.mentions", text);
                let local = |path: &Path| self.samples.iter().any(|row| self.found.has_local(path, row) == Some(true));
                let columns = self.found.columns.columns.iter().filter(|(.., kind)| *kind == shape::Type::Timestamp);
                let unknown = columns.map(|(_, path, _)| path.clone()).filter(local).collect();
                self.found.unknown_times = unknown;
                if self.found.usable_sorts().count() < self.found.sorts.len() {
                    self.found
                        .could_not_tell("sort", "orders by time are not used: the zone of the times is not known");
                }
            }
        }
        Ok(())
    }

    /// Zones that fit the windows if these refer to another time of mentions than that of the publication, which fits in none. Empty if
    /// no other time does, or several.
    fn zones_of_other_times(&mut self, among: &[Clock]) -> Vec<Clock> {
        if self.found.window_time.is_some() {
            return Vec::new();
        }
        let times = self.found.columns.columns.iter().filter(|(.., kind)| *kind == shape::Type::Timestamp);
        let others: Vec<(String, Path)> = times
            .filter(|(name, ..)| name != "published_at")
            .map(|(name, path, _)| (name.clone(), path.clone()))
            .collect();
        let mut fits = Vec::new();
        for (name, path) in others {
            self.found.window_time = Some(path.clone());
            let zones = self.found.zones_of_times(&self.seen, among).unwrap_or_default();
            fits.extend((!zones.is_empty()).then_some((name, path, zones)));
        }
        self.found.window_time = None;
        let [(name, path, zones)] = fits.as_slice() else { return Vec::new() };
        let text = format!(
            "windows refer to {name}: the times of publication fit the requested windows in no zone. Conditions on {name} are \
             sent to the service"
        );
        self.found.window_time = Some(path.clone());
        self.found.saw("tables.mentions", text);
        zones.clone()
    }

    /// Requests the oldest mentions of the widest window, unless they came before. `false` if no sort order has them first, or if no
    /// request is left.
    pub(super) async fn oldest_page(&mut self) -> Result<bool> {
        let Some((size, asked)) = self.asking_oldest() else { return Ok(false) };
        let is_known =
            |seen: &Seen| effects::in_utc(&seen.reply) && asked.iter().all(|pair| seen.reply.asked.contains(pair));
        if self.seen.iter().any(is_known) {
            return Ok(true);
        }
        let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(false) };
        self.keep(Some(size), &Arc::new(reply));
        Ok(true)
    }

    /// The page size and the parameters that request the oldest mentions of the widest window; `None` if no sort order has them first.
    pub(super) fn asking_oldest(&self) -> Option<(u64, Vec<Pair>)> {
        let order = self.found.sorts.iter().find(|sort| sort.column == self.found.time_name() && !sort.descending)?;
        let size = self.accepted(self.found.page.map_or(LOOK, |page| page.max.clamp(1, 100)));
        Some((size, [self.asking(size), self.widest(), vec![pair(SORT, &order.value)]].concat()))
    }

    /// Requests the widest window alone if its number of mentions came with other parameters only, which may have an effect on it.
    async fn count_of_widest(&mut self) -> Result<()> {
        let widest = self.widest();
        let counts = |reply: &Reply| {
            let is_widest = widest.iter().all(|pair| reply.asked.contains(pair));
            is_widest && self.found.is_plain(reply) && self.found.count(reply).is_some()
        };
        if widest.is_empty() || self.asker.left() <= TRIAL || self.seen.iter().any(|seen| counts(&seen.reply)) {
            return Ok(());
        }
        let asked = [vec![self.aid()], self.found.with.clone(), widest].concat();
        if let Some(reply) = self.asker.ask("search", &asked).await? {
            self.keep(None, &Arc::new(reply));
        }
        Ok(())
    }

    /// Finds the time that windows refer to, if mentions came whose publication lies outside of the requested window: another
    /// time of each mention that lies within.
    pub(super) fn find_window_time(&mut self) {
        let found = &self.found;
        let path = found.columns.path(found.time_name());
        if found.window_time.is_some() || path.and_then(|path| found.fits_windows(path, &self.seen)) != Some(false) {
            return;
        }
        let columns = found.columns.columns.iter().filter(|(.., kind)| *kind == shape::Type::Timestamp);
        let fitting: Vec<(String, Path)> = columns
            .filter(|(_, path, _)| found.fits_windows(path, &self.seen) == Some(true))
            .map(|(name, path, _)| (name.clone(), path.clone()))
            .collect();
        let text = match fitting.as_slice() {
            [(name, path)] => {
                let text = format!(
                    "windows refer to {name}: mentions were returned whose other times are outside the requested window. \
                     Conditions on {name} are sent to the service"
                );
                self.found.window_time = Some(path.clone());
                return self.found.saw("tables.mentions", text);
            }
            // A window may be longer than its name says.
            [] => return,
            _ => {
                "mentions were returned whose publication time is outside the requested window, and several of their other times are inside it; \
                 set `time` to the one that windows refer to"
            }
        };
        self.found.could_not_tell("tables.mentions", text);
        self.found.window_time = Some(Vec::new());
    }

    /// Shows what was understood: a mention by its columns, its time beside the service's clock, and counts beside each other.
    fn show(&mut self) {
        /// Characters of a value that are shown.
        const SHOWN: usize = 40;
        let columns = &self.found.columns;
        let Some(mention) = self.samples.first() else { return };
        let value = |path: &Path| match at(mention, path) {
            None | Some(Value::Null) => "NULL".to_owned(),
            Some(value) => {
                let text: String = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let shown: String = text.chars().take(SHOWN).collect();
                if shown.len() < text.len() { format!("{shown}…") } else { shown }
            }
        };
        let two = self.found.id_of_two.as_ref().map(|[one, other]| format!("id = {}:{}", value(one), value(other)));
        let values = columns.columns.iter().map(|(name, path, _)| format!("{name} = {}", value(path)));
        let text = two.into_iter().chain(values).collect::<Vec<_>>().join(" | ");
        self.found.saw("one mention", crate::error::one_line(&text));
        let newest = self.instants(&self.samples.iter().collect::<Vec<_>>()).into_iter().max();
        let clock = self.seen.iter().rev().find_map(|seen| seen.reply.date());
        if let (Some(newest), Some(clock)) = (newest, clock) {
            let (at, now) = (shape::utc(newest), shape::utc(clock));
            let ahead = newest > clock + 600_000_000;
            let text =
                format!("the newest mention is of {}; the service's clock says {}", at.to_rfc3339(), now.to_rfc3339());
            match ahead {
                true => self.found.could_not_tell(
                    "their times",
                    format!("{text}: set `zone` of the time column in [tables.mentions]"),
                ),
                false => self.found.saw("their times", text),
            }
        }
        let pages = self.seen.iter().map(|seen| self.found.times(&seen.reply));
        if let Some(times) = pages.max_by_key(Vec::len)
            && let [first, .., last] = times.as_slice()
        {
            let [first, last] = [*first, *last].map(|at| shape::utc(at).to_rfc3339());
            let text = format!("{} mentions; the first is of {first}, the last of {last}", times.len());
            self.found.saw("one page", text);
        }
        let sums = self.seen.iter().filter_map(|seen| {
            Some((self.found.timeline(&seen.reply).len(), self.found.sum(&seen.reply)?, self.count(&seen.reply)?))
        });
        if let Some((days, sum, total)) = sums.max() {
            self.found.saw(
                "their counts",
                format!("{days} entries of the timeline sum up to {sum}; the overview's total says {total}"),
            );
        }
    }

    /// Determines the form of the key by requesting the list.
    pub(super) async fn key(&mut self) -> Result<()> {
        // Requests for the list itself and a search.
        const RESERVE: u64 = 3;
        let mut forms: VecDeque<(String, String)> =
            vocabulary::KEYS.iter().map(|(header, format)| ((*header).to_owned(), (*format).to_owned())).collect();
        for form in [self.known.auth.clone(), self.known.facts.auth.clone()].into_iter().flatten() {
            forms.push_front(form);
        }
        let mut tried = Vec::new();
        while let Some((header, format)) = forms.pop_front() {
            if tried.contains(&(header.clone(), format.clone())) {
                continue;
            }
            if self.asker.left() <= RESERVE && !tried.is_empty() {
                break;
            }
            self.asker.send_key(&header, &format);
            let Some(reply) = self.asker.ask("list", &[]).await? else {
                match self.asker.is_recording() {
                    true => continue,
                    false => break,
                }
            };
            let accepted = (200..300).contains(&reply.status) && !reply.is_refusal();
            let names = [AID].iter().chain(vocabulary::IDS.iter().filter(|_| accepted));
            let lists = |name: &str| reply.body.as_ref().map(|body| shape::saved_searches(body, name));
            let lists = names.filter_map(|name| lists(name)).find(|lists| !lists.is_empty()).unwrap_or_default();
            if !lists.is_empty() {
                self.found.saw("auth", format!("the list was returned for `{header}: {format}`"));
                self.found.auth = Some((header, format));
                self.list(&lists);
                (self.found.named_zone, self.found.zone_is_stated) = self.zone_named(&reply);
                let aid = lists[0].aid.clone();
                return self.list_pages(&reply, &aid).await;
            }
            // The key was accepted, and the response is of another form than any list that is known.
            let holds = |body: &Value| leaves(body).iter().any(|(_, value)| value.is_array());
            if accepted && reply.body.as_ref().is_some_and(holds) {
                self.found.saw("auth", format!("status {} for `{header}: {format}`", reply.status));
                let text = format!(
                    "no list of entries with an `aid` in the response of the list; set `sections` and `columns`. It was: {}",
                    reply.line()
                );
                self.found.could_not_tell("tables.saved_searches", text);
                self.found.auth = Some((header, format));
                return Ok(());
            }
            // Forms named in the refusal are tried next.
            for form in refusal::key_forms(&reply.headers, &reply.text).into_iter().rev() {
                forms.push_front(form);
            }
            tried.push((header, format));
            self.key_refusals.push(reply);
        }
        let last = self.key_refusals.last().map(|reply| format!(" (last response: {})", reply.line()));
        let message = format!("no known form of the key returned a list of saved searches{}", last.unwrap_or_default());
        Err(Error::new(ErrorKind::Unauthorized, message).advice(
            "check the base URL and the key; if the key needs another form, write a profile with an [auth] section",
        ))
    }

    /// The zone that a person or the list names, if it is only one.
    fn zone_named(&self, list: &Reply) -> (Option<Clock>, bool) {
        let mut found: Vec<Clock> = list.body.as_ref().map(zones::names_in).unwrap_or_default();
        found.dedup();
        let given =
            self.known.facts.entries().iter().find(|[section, key, _]| section == "timezone" && key == "default");
        let given = given.and_then(|[.., value]| value.trim_matches('"').parse().ok());
        (given.or(found.first().copied().filter(|_| found.len() == 1)), given.is_some())
    }

    pub(super) fn list(&mut self, lists: &[shape::FoundList<'_>]) {
        let mut records = Vec::new();
        for shape::FoundList { at: path, entries, aids, aid, layout } in lists {
            let name = path.last().map(|name| plain(name)).unwrap_or_default();
            let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
            let (label, fan_out) = match () {
                () if shape::is_history(path) => ("recent", false),
                () if is(&["team", "shared", "group"]) => ("team", true),
                () => ("saved", true),
            };
            if fan_out {
                self.listed.extend(aids.iter().cloned());
            }
            records.extend(entries.iter().copied());
            self.found.saw(
                "tables.saved_searches",
                format!("list at {} (length {}), treated as `{label}`", place(path), entries.len()),
            );
            let (at, aid, layout) = (path.clone(), aid.clone(), layout.clone());
            self.found.lists.push(SavedSearches { at, label: label.to_owned(), fan_out, aid, layout });
        }
        // All lists share the same columns.
        let aid = self.found.lists.first().map(|list| list.aid.clone());
        self.found.lists.retain(|list| Some(&list.aid) == aid.as_ref());
        self.found.saved_searches = Columns::of(vocabulary::SAVED_SEARCH, &records, &[]);
        let times = self
            .found
            .saved_searches
            .columns
            .iter()
            .filter(|(.., kind)| *kind == shape::Type::Timestamp)
            .map(|(_, path, _)| path);
        let local = times.filter(|path| records.iter().any(|record| at(record, path).is_some_and(shape::is_local)));
        self.found.local_in_list = local.cloned().collect();
        if !self.found.local_in_list.is_empty() {
            let paths: Vec<String> = self.found.local_in_list.iter().map(|path| pointer(path)).collect();
            let text = format!("the times at {} have no zone; they are texts", paths.join(", "));
            self.found.could_not_tell("tables.saved_searches.zone", text);
        }
    }

    /// Sends the example as it is, before its parameters are tried one by one.
    async fn as_given(&mut self) -> Result<()> {
        let facts = &self.known.facts;
        let aid = facts.aid.clone().or_else(|| self.listed.first().cloned());
        let (Some(aid), false) = (aid, facts.example.is_empty()) else { return Ok(()) };
        let asked = [vec![pair(AID, aid)], facts.example.clone()].concat();
        let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(()) };
        match reply.is_refusal() {
            true => {
                let text = format!("the example was refused as it is: {}", reply.line());
                self.found.notes.push(Note { section: "your facts", observed: false, text });
                self.refusals.push(reply);
            }
            false => {
                self.name_of_number(&reply);
                self.is_example_answered = true;
                self.names_in_example();
                self.seen.push(Seen { size: None, reply: Arc::new(reply) });
            }
        }
        Ok(())
    }

    /// Takes the only parameter of the example whose number is that of the mentions that came for the page size, unless that one is
    /// known.
    fn name_of_number(&mut self, reply: &Reply) {
        /// A number that is not one by chance.
        const LEAST: usize = 5;
        let is_known = self.asker.names.iter().any(|(usual, _)| usual == SIZE);
        let example = &self.known.facts.example;
        if is_known || example.iter().any(|(name, _)| name == SIZE) {
            return;
        }
        let arrays = reply.body.as_ref().map(shape::arrays).unwrap_or_default();
        let lengths = arrays.iter().filter(|(_, records)| shape::is_rich(records)).map(|(_, records)| records.len());
        let lengths: Vec<String> = lengths.filter(|length| *length >= LEAST).map(|length| length.to_string()).collect();
        let mut sizes = example.iter().filter(|(_, value)| lengths.contains(value)).map(|(name, _)| name.clone());
        if let (Some(own), None) = (sizes.next(), sizes.next()) {
            self.take_names(vec![(SIZE.to_owned(), own)], "as many mentions came as the example has there");
        }
    }

    /// The ends of a window in the example, if it was answered.
    fn ends_of_example(&self) -> Option<Vec<Pair>> {
        let (since, until, _) = self.known.facts.ends().filter(|_| !self.seen.is_empty())?;
        let of = |name: &String| self.known.facts.example.iter().find(|(known, _)| known == name).cloned();
        Some(vec![of(&since)?, of(&until)?])
    }

    /// Requests the overview of a few saved searches and continues with the one that has the most mentions.
    pub(super) async fn search(&mut self) -> Result<()> {
        /// Saved searches requested at most.
        const LOOKED_AT: usize = 4;
        /// Mentions that are enough to stop at a saved search.
        const ENOUGH: u64 = 100;
        /// Mentions that may arrive between two requests.
        const MEANWHILE: u64 = 10;
        let given = self.known.facts.aid.clone();
        let others = self.listed.iter().filter(|aid| given.as_ref() != Some(aid)).cloned();
        let aids: Vec<String> = given.clone().into_iter().chain(others).take(LOOKED_AT).collect();
        let mut best: Option<((u64, u64), String, Reply)> = None;
        let mut masses: Vec<u64> = Vec::new();
        let aids_known = !aids.is_empty();
        for aid in aids {
            let asked = [vec![pair(AID, &aid)], self.found.with.clone()].concat();
            let Some(mut reply) = self.asker.ask("search", &asked).await? else {
                match self.asker.is_recording() {
                    true => continue,
                    false => break,
                }
            };
            if reply.is_refusal() && self.learn_names(&reply.message()) {
                self.refusals.push(reply);
                let Some(again) = self.asker.ask("search", &asked).await? else { break };
                reply = again;
            }
            if reply.is_refusal() && self.asker.refuses(AID) && !self.has_tried_bare {
                // Without the parameter, a refusal may say which one is missing.
                self.refusals.push(reply);
                let Some(again) = self.asker.ask("search", &self.found.with.clone()).await? else { break };
                self.has_tried_bare = true;
                reply = again;
                self.learn_names(&reply.message());
            }
            // The name of the saved search may have to be known before the ends of a window, or after them.
            if reply.is_refusal()
                && let Some(again) = self.within_ends(&reply, &asked).await?
            {
                reply = again;
            }
            if reply.is_refusal()
                && let Some(again) = self.as_required(&reply, &asked).await?
            {
                reply = again;
            }
            if reply.is_refusal()
                && let Some(again) = self.within_ends(&reply, &asked).await?
            {
                reply = again;
            }
            if reply.is_refusal()
                && self.asker.ends.is_empty()
                && let Some(ends) = self.ends_of_example()
            {
                // The ends of a window in an example that was answered.
                self.asker.ends = ends;
                let Some(again) = self.asker.ask("search", &asked).await? else { break };
                match again.is_refusal() {
                    true => self.asker.ends.clear(),
                    false => {
                        self.found.saw("search", "each search needs the ends of a window, as the example has them")
                    }
                }
                reply = if again.is_refusal() { reply } else { again };
            }
            let needed = self.known.facts.others();
            if reply.is_refusal() && self.found.with.is_empty() && !needed.is_empty() {
                // Parameters of the example that each search needs.
                self.refusals.push(reply);
                let asked = [asked, needed.clone()].concat();
                let Some(again) = self.asker.ask("search", &asked).await? else { break };
                reply = again;
                if !reply.is_refusal() {
                    self.found.with = needed;
                }
            }
            if reply.is_refusal() {
                self.refusals.push(reply);
                continue;
            }
            let mass = mass(&reply);
            let enough = mass.0 >= ENOUGH || given.as_ref() == Some(&aid);
            masses.push(mass.1);
            self.visited.push((aid.clone(), reply.clone()));
            if best.as_ref().is_none_or(|(most, ..)| mass > *most) {
                best = Some((mass, aid, reply));
            }
            if enough {
                break;
            }
        }
        let Some((_, aid, mut reply)) = best else {
            let last = self.refusals.last().map(|reply| format!(". Last refusal: {}", reply.line()));
            let why = if aids_known { "no search was answered" } else { "no saved search is known" };
            let text = format!(
                "{why}; state the parameter of the saved search with --fact 'search.aid = \"NAME\"', or give a request that works \
                 with --example{}",
                last.unwrap_or_default()
            );
            self.found.could_not_tell("search", text);
            return Ok(());
        };
        // Mentions that arrived meanwhile make a small difference.
        let (least, most) = (masses.iter().min(), masses.iter().max());
        self.aids_differ = least.zip(most).is_some_and(|(least, most)| *most > least.saturating_mul(2) + MEANWHILE);
        if self.reads_total_of_header(&reply) {
            reply = reply.with_header(self.asker.total_header.as_deref());
        }
        self.found.overview = reply.body.as_ref().and_then(|body| shape::overview(body, None));
        self.found.aid = Some(aid);
        self.seen.push(Seen { size: None, reply: Arc::new(reply.clone()) });
        self.look_at_overview(&reply);
        self.ends_in_response(&reply);
        self.names_in_links(&reply);
        self.names_in_echo(&reply);
        self.first = Some(reply);
        Ok(())
    }

    /// Reads a header with the total as part of each search from now on, if the response has it there and nowhere else. `true` if that
    /// is new.
    fn reads_total_of_header(&mut self, reply: &Reply) -> bool {
        let known = self.asker.total_header.is_some();
        let Some(name) = numbers::only_in_header(reply).filter(|_| !known).map(str::to_owned) else { return false };
        self.found
            .saw("search", format!("the number of mentions is in the header `{name}` only, which is read as well"));
        for seen in &mut self.seen {
            seen.reply = Arc::new(seen.reply.as_ref().clone().with_header(Some(name.as_str())));
        }
        self.first = self.first.take().map(|first| first.with_header(Some(name.as_str())));
        for (_, outcome) in self.beside.iter_mut().flat_map(|beside| &mut beside.periods.done) {
            if let Outcome::Taken(reply) = outcome {
                *reply = Arc::new(reply.as_ref().clone().with_header(Some(name.as_str())));
            }
        }
        (self.found.total_header, self.asker.total_header) = (Some(name.clone()), Some(name));
        true
    }

    /// Takes the names of the page size and of the offset from the links of a response to other pages of the same search.
    fn names_in_links(&mut self, reply: &Reply) {
        let (name, aid) = self.aid();
        let of_search = pair(super::asker::own_name(&name, &self.asker.names), aid);
        let texts = reply.body.iter().flat_map(leaves).filter_map(|(_, value)| value.as_str());
        let queries = texts.filter_map(|text| text.split_once('?')).map(|(_, query)| query);
        let queries = queries.map(|query| url::form_urlencoded::parse(query.as_bytes()).into_owned().collect());
        let of_this = queries.filter(|pairs: &Vec<Pair>| pairs.contains(&of_search));
        let numbers = of_this.flatten().filter(|(_, value)| value.parse::<u64>().is_ok());
        let listed: Vec<String> = numbers.map(|(name, _)| name).collect();
        let mut names = facts::names_among(&listed);
        names.retain(|(usual, _)| usual == OFFSET || usual == SIZE);
        self.take_names(names, "a link of a response has it");
    }

    /// Takes the names and the form of the ends of a window from a response that repeats them, if they are unusual.
    fn ends_in_response(&mut self, reply: &Reply) {
        let facts = &self.known.facts;
        let open = facts.ends().is_none() && facts.values(DURATION).is_empty();
        let Some(body) = reply.body.as_ref().filter(|_| open) else { return };
        let leaves = leaves(body);
        let texts: Vec<(&String, String)> =
            leaves.iter().filter_map(|(path, value)| Some((path.last()?, said(value)?))).collect();
        let of = |name: &String| texts.iter().find(|(known, _)| *known == name).map(|(_, text)| text);
        let usual = vocabulary::ends_among(None);
        let found = texts.iter().find_map(|(name, _)| {
            vocabulary::ends_of_time(name).find_map(|(since, until)| {
                let (from, to) = (of(&since)?, of(&until)?);
                let how = shape_of_instant(from).filter(|how| shape_of_instant(to) == Some(how))?;
                let unusual = how != "rfc3339" || !usual.contains(&(since.clone(), until.clone()));
                (from < to && unusual).then_some((since, until, how))
            })
        });
        self.known.facts.described_ends = found;
    }

    /// Sends names that the sort order may have, to a service that refuses unknown parameters and names none. The refusal of the value
    /// may list the others.
    async fn name_of_sort(&mut self) -> Result<()> {
        /// Names that are tried.
        const NAMES: [&str; 4] = [SORT, "sort", "order_by", "sort_by"];
        let named = self.asker.names.iter().any(|(usual, _)| usual == SORT);
        let names = if self.found.has_brackets { [NAMES[1], NAMES[0], NAMES[2], NAMES[3]] } else { NAMES };
        if self.found.has_brackets && !named && self.parameters.is_none() {
            // Names with brackets are those of JSON:API, whose orders are `sort=-published`.
            self.name(SORT, names[0]);
            return Ok(());
        }
        if self.found.asked.is_none() || named || self.parameters.as_ref().is_none_or(|known| !known.is_empty()) {
            return Ok(());
        }
        for own in names {
            let asked = [vec![self.aid()], self.found.with.clone(), vec![pair(own, NONSENSE)]].concat();
            let Some(reply) = self.asker.ask("search", &asked).await? else { break };
            if !self.asker.refuses(own) {
                if own != SORT {
                    self.name(SORT, own);
                    self.found.saw(
                        "sort",
                        format!("`{own}` is the parameter of the sort order: it is not refused as unknown"),
                    );
                }
                if reply.is_refusal() {
                    self.refusals.push(reply);
                }
                break;
            }
        }
        Ok(())
    }

    /// Sends names that a page size may have. Returns the one after which as many mentions came as were requested.
    async fn name_of_size(
        &mut self,
        mentions_in: &impl Fn(&Reply) -> Option<Path>,
    ) -> Result<Option<(&'static str, Reply, Path)>> {
        /// Names that are tried alone with a service that refuses unknown parameters.
        const ALONE: usize = 4;
        let mut left: Vec<&'static str> = vocabulary::SIZES.to_vec();
        // Of the style of the offset, if a link has it: `page[size]` beside `page[number]`.
        let offset = super::asker::own_name(OFFSET, &self.asker.names).to_owned();
        left.sort_by_key(|name| !['[', '$'].iter().any(|mark| name.contains(*mark) && offset.contains(*mark)));
        let strict = self.parameters.is_some();
        let listed = self.asker.listed.clone();
        left.retain(|name| listed.is_empty() || listed.iter().any(|known| known == name));
        left.truncate(if strict { ALONE } else { left.len() });
        let all = left.len();
        let mut last = None;
        while !left.is_empty() && self.asker.left() > MENTIONS_RESERVE {
            let half = match left.len() {
                _ if strict => left[..1].to_vec(),
                _ if last.is_none() => left.clone(),
                many if many == all => left[..2].to_vec(),
                many => left[..many.div_ceil(2)].to_vec(),
            };
            let sizes = half.iter().map(|name| pair(name, FEW));
            let asked = [vec![self.aid()], self.found.with.clone(), sizes.collect()].concat();
            let Some(reply) = self.asker.ask("search", &asked).await? else { break };
            let sizes = if reply.is_refusal() { refusal::sizes(&reply.message()) } else { Vec::new() };
            // The longest name: a shorter one, such as `limit`, may be a word of the sentence.
            let named = half.iter().copied().filter(|own| reply.mentions(own).is_some()).max_by_key(|own| own.len());
            if let Some(own) = named.filter(|_| !sizes.is_empty()) {
                // Of a page size that is one of a few, the refusal of another one shows the name.
                let before = (Arc::clone(&self.asker.names), std::mem::replace(&mut self.found.sizes, sizes));
                self.refusals.push(reply);
                self.name(SIZE, own);
                let sized = vec![self.aid(), pair(SIZE, self.telling_size())];
                let reply = self.asker.ask("search", &[sized, self.found.with.clone()].concat()).await?;
                let came = reply.and_then(|reply| Some((own, mentions_in(&reply)?, reply)));
                if came.is_none() {
                    (self.asker.names, self.found.sizes) = before;
                }
                return Ok(came.map(|(own, path, reply)| (own, reply, path)));
            }
            match mentions_in(&reply) {
                Some(path) => {
                    left = half;
                    last = Some((reply, path));
                }
                None if last.is_none() && !strict => break,
                None => drop(left.drain(..half.len())),
            }
            if let ([name], Some((reply, path))) = (left.as_slice(), &last) {
                return Ok(Some((name, reply.clone(), path.clone())));
            }
        }
        Ok(None)
    }

    /// Sends a parameter under this name from now on.
    pub(super) fn name(&mut self, usual: &str, own: &str) {
        let mut names = self.asker.names.to_vec();
        names.retain(|(known, _)| known != usual);
        names.push((usual.to_owned(), own.to_owned()));
        self.found.has_brackets |= own.contains('[');
        let facts = std::mem::take(&mut self.known.facts);
        self.known.facts = facts.with_usual_names(&names);
        self.asker.names = Arc::new(names);
    }

    /// Takes the names of parameters from a refusal of an unknown one that lists all. `true` if names are learnt.
    fn learn_names(&mut self, refusal: &str) -> bool {
        if !refusal::is_about_parameters(refusal) {
            return false;
        }
        let listed = refusal::parameters(refusal);
        let all = |(since, until): &(String, String)| listed.contains(since) && listed.contains(until);
        let mut ends = listed.iter().flat_map(|name| vocabulary::ends_of_time(name)).filter(all);
        if let Some((since, until)) = ends.next() {
            self.known.facts.described_ends.get_or_insert((since, until, "rfc3339"));
        }
        self.take_names(facts::names_among(&listed), "a refusal lists it")
    }

    /// Takes names of parameters, each for the parameter that it seems to be, unless another one is known. `true` if names are learnt.
    pub(super) fn take_names(&mut self, mut names: Vec<(String, String)>, why: &str) -> bool {
        let before = Arc::clone(&self.asker.names);
        let known = |usual: &String| before.iter().any(|(known, _)| known == usual);
        names.retain(|(usual, own)| !known(usual) && !before.iter().any(|(_, known)| known == own));
        if names.is_empty() {
            return false;
        }
        self.found.has_brackets |= names.iter().any(|(_, own)| own.contains('['));
        for (usual, own) in &names {
            let what = match usual.as_str() {
                AID => "saved search",
                SIZE => "number of mentions of a page",
                OFFSET => "place of a page",
                SORT => "sort order",
                DURATION => "period",
                _ => "time zone",
            };
            self.found.saw("search", format!("`{own}` is the parameter of the {what}: {why}"));
        }
        let facts = std::mem::take(&mut self.known.facts);
        self.known.facts = facts.with_usual_names(&names);
        self.asker.names = Arc::new(before.iter().cloned().chain(names).collect());
        true
    }

    /// Adds the note about relative windows if none had an effect, once it is known whether absolute ones are used.
    fn tell_instants(&mut self) {
        let window = &self.found.window;
        if window.widest.is_some() || !self.found.notes.iter().any(|note| note.section == "window" && note.observed) {
            return;
        }
        match window.is_of_instants() {
            true => self.found.saw("window", "no relative window had an effect: they are sent as instants"),
            false => self.found.could_not_tell(
                "window",
                "no relative window had an effect; look them up in the service's documentation and set [window]",
            ),
        }
    }

    /// Requests a search with the ends of a window that its refusal misses, and sends them with each search from now on. Returns the
    /// first response that is none.
    async fn within_ends(&mut self, refusal: &Reply, asked: &[Pair]) -> Result<Option<Reply>> {
        /// Days of the window, which no named period has.
        const DAYS: i64 = 37;
        /// Requests for it.
        const TRIES: usize = 3;
        let missed = refusal::required(&refusal.statements());
        let Some(now) = refusal.date().filter(|_| !self.has_tried_ends) else { return Ok(None) };
        let given =
            self.known.facts.ends().filter(|(since, until, _)| missed.contains(since) || missed.contains(until));
        let mut ends: Vec<(String, String)> = missed.iter().flat_map(|name| vocabulary::ends_with(name)).collect();
        ends.sort_by_key(|(since, until)| !(missed.contains(since) && missed.contains(until)));
        let usual = ends
            .into_iter()
            .take(1)
            .flat_map(|(since, until)| ["rfc3339", "date", "epoch_ms"].map(|how| (since.clone(), until.clone(), how)));
        for (since, until, how) in given.into_iter().chain(usual).take(TRIES) {
            let (from, to) = written((now - DAYS * effects::DAY, now), how);
            self.has_tried_ends = true;
            self.asker.ends = vec![pair(&since, from), pair(&until, to)];
            let Some(reply) = self.asker.ask("search", asked).await? else { break };
            if !reply.is_refusal() {
                self.found.saw("search", format!("each search needs `{since}` and `{until}`, which a refusal names"));
                self.known.facts.described_ends.get_or_insert((since, until, how));
                return Ok(Some(reply));
            }
        }
        self.asker.ends.clear();
        Ok(None)
    }

    /// Requests a search under the names of parameters that its refusal misses. Returns the first response that is none, or that
    /// misses another one.
    async fn as_required(&mut self, refusal: &Reply, asked: &[Pair]) -> Result<Option<Reply>> {
        /// Names tried.
        const NAMES: usize = 2;
        let before = Arc::clone(&self.asker.names);
        if before.iter().any(|(usual, _)| usual == AID) {
            return Ok(None);
        }
        let given = self.known.facts.others();
        let is_end = |own: &str| !vocabulary::ends_with(own).is_empty();
        let missed = self.missed_by(refusal);
        let before_ends = !missed.iter().any(|name| is_end(name));
        let other = |own: &String| own != AID && !is_end(own) && !given.iter().any(|(name, _)| name == own);
        for own in missed.into_iter().filter(other).take(NAMES) {
            self.name(AID, &own);
            let Some(reply) = self.asker.ask("search", asked).await? else { break };
            let missed = refusal::required(&reply.statements());
            let next = before_ends && !missed.contains(&own) && missed.iter().any(|name| is_end(name));
            if !reply.is_refusal() || next {
                self.found.saw("search", format!("the saved search is sent as `{own}`, which a refusal names"));
                return Ok(Some(reply));
            }
            self.asker.names = Arc::clone(&before);
        }
        Ok(None)
    }

    /// Requests a saved search that does not exist, unless two that exist had other numbers: a service that returns the same for it
    /// ignores the parameter.
    async fn other_search(&mut self) -> Result<()> {
        let is_open = self.listed.len() > 1 && !self.aids_differ;
        let Some(first) = self.first.as_ref().filter(|_| is_open) else { return Ok(()) };
        let of_first = mass(first);
        let asked = [vec![pair(AID, NONSENSE)], self.found.with.clone()].concat();
        let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(()) };
        if reply.is_refusal() {
            self.refusals.push(reply);
        } else if of_first.0 > 0 && mass(&reply) == of_first {
            let own = super::asker::own_name(AID, &self.asker.names);
            let text = format!(
                "`{own}` makes no difference: a saved search that does not exist has the same numbers. State the parameter of \
                 the saved search with --fact 'search.aid = \"NAME\"'"
            );
            self.found.aid_ignored = true;
            self.found.could_not_tell("search", text);
        }
        Ok(())
    }

    /// Sends a parameter that no service has: strict services reject it, and some name the parameters that they accept. A page of
    /// mentions is requested with it, which others return.
    pub(super) async fn unknown_parameter(&mut self) -> Result<()> {
        let unknown = vec![self.aid(), pair(NONSENSE, NONSENSE)];
        let mut reply = None;
        // Sizes that are smaller than the service accepts are learnt once.
        for _ in 0..2 {
            let sized = [unknown.clone(), self.found.with.clone(), vec![pair(SIZE, self.telling_size())]].concat();
            reply = self.asker.ask("search", &sized).await?;
            let Some(refusal) = reply.clone().filter(Reply::is_refusal) else { break };
            if refusal.mentions(NONSENSE).is_some() || !self.learn_sizes(&refusal) {
                break;
            }
            self.refusals.push(refusal);
        }
        let told = |reply: &Reply| {
            let unknown = refusal::is_about_parameters(&reply.message()) || reply.mentions(NONSENSE).is_some();
            !reply.is_refusal() || unknown
        };
        if reply.as_ref().is_none_or(|reply| !told(reply)) {
            // Something else was refused, or a recording lacks the request.
            reply = self.asker.ask("search", &unknown).await?;
        }
        let Some(mut reply) = reply else { return Ok(()) };
        if !reply.is_refusal() && reply.asked.iter().any(|(name, _)| name == SIZE) {
            reply.asked.retain(|(name, _)| name != NONSENSE);
            self.sized = Some(reply);
            return Ok(());
        }
        if reply.is_refusal() {
            self.learn_names(&reply.message());
            if let Some(first) = self.first.clone() {
                self.names_in_echo(&first);
            }
            self.names_in_example();
            let named = refusal::parameters(&reply.message()).into_iter().map(|name| (name, String::new()));
            let named = super::asker::usual(&named.collect::<Vec<Pair>>(), &self.asker.names);
            self.parameters = Some(named.into_iter().map(|(name, _)| name).collect());
            self.refusals.push(reply);
        }
        Ok(())
    }

    /// The parameter for a filter of this name: itself if the service named it or named none, or one such as `filter[lang]`.
    pub(super) fn parameter_of(&self, name: &str) -> Option<String> {
        let Some(known) = self.parameters.as_ref().filter(|known| !known.is_empty()) else {
            return Some(name.to_owned());
        };
        let alike = |known: &&String| vocabulary::filtered_by(known) == plain(name);
        known.iter().find(|known| *known == name).or_else(|| known.iter().find(alike)).cloned()
    }

    pub(super) fn look_at_overview(&mut self, reply: &Reply) {
        let Some(body) = &reply.body else { return };
        // Mentions may be the top-level array of a response; a response with the overview has no such array.
        let mentions = self.found.mentions.clone().filter(|path| at(body, path).is_some_and(Value::is_array));
        self.found.overview = shape::overview(body, mentions.as_ref());
        // Without an overview, a total may be anywhere.
        let Some(path) = self.found.overview.clone() else {
            self.found.counted = None;
            return;
        };
        let Some(overview) = at(body, &path) else { return };
        let (mut timeline, mut breakdowns) = (None, Vec::new());
        let inside = |at: &Path| mentions.as_ref().is_some_and(|mentions| at.starts_with(mentions));
        for (below, value) in walk(overview).into_iter().filter(|(below, _)| (1..=2).contains(&below.len())) {
            let at: Path = path.iter().chain(&below).cloned().collect();
            if inside(&at) {
                continue;
            }
            for counts in shape::counts_at(value) {
                let entries = counts.series().entries(value);
                let field = counts.series().within.iter().map(|facet| facet.is.clone());
                let steps: Path = below.iter().cloned().chain(field).collect();
                match counts {
                    Counts::OverTime(series) => {
                        let mut entries = entries;
                        entries.sort_by_key(|(time, _)| shape::instant(time));
                        match numbers::is_running(&entries, body) {
                            true => self.found.running = Some(at.clone()),
                            false => timeline = timeline.or(Some((at.clone(), series))),
                        }
                    }
                    Counts::ByName(series) => self.add_list(&mut breakdowns, &at, &steps, series, &entries),
                }
            }
        }
        self.found.counted = numbers::counted(&self.found, &self.seen, timeline.as_ref());
        let mut scalars = overview.clone();
        let lists = timeline.iter().map(|(at, _)| at).chain(breakdowns.iter().map(|b| &b.at));
        let lists: Vec<Path> = lists.cloned().chain(mentions.clone()).collect();
        for at in lists.iter().filter(|at| at.starts_with(&path)) {
            remove(&mut scalars, &at[path.len()..]);
        }
        let total = self.found.counted.as_ref().and_then(|total| Some(total.strip_prefix(path.as_slice())?.to_vec()));
        let roles: Vec<(&str, &Path)> = total.iter().map(|path| ("total_mentions", path)).collect();
        self.found.overview_columns = Columns::of(vocabulary::OVERVIEW, &[&scalars], &roles);
        (self.found.timeline, self.found.breakdowns) = (timeline, breakdowns);
        let mut days = self.found.timeline(reply).into_iter().map(|(day, _)| day);
        self.found.has_plain_days = days.any(|day| shape::is_local(&day));
    }

    /// Adds a list of counts by name, at a place with these steps below the overview, if it may be one.
    fn add_list(
        &self,
        breakdowns: &mut Vec<Breakdown>,
        at: &Path,
        steps: &[String],
        series: Series,
        entries: &[(Value, u64)],
    ) {
        let name = plain(&steps.concat());
        let known = vocabulary::BREAKDOWNS.iter().find(|(_, words)| words.iter().any(|word| name.contains(word)));
        let is_map = series.layout == Layout::Map && series.within.is_none();
        // An object of numbers deep in the overview may mean anything.
        if is_map && known.is_none() && steps.len() > 1 {
            return;
        }
        let names: Vec<String> = entries.iter().filter_map(|(name, _)| said(name)).collect();
        let missing = missing_of(&names);
        // The label is the mention column that the list is named after, or whose values these names are.
        let own = vocabulary::listed_column(steps).filter(|label| self.found.columns.path(label).is_some());
        let own = own.map(str::to_owned).or_else(|| self.field_of(&names));
        let field = own.or(known.map(|(label, _)| (*label).to_owned()));
        let Some(label) = field.or((!is_map).then(|| shape::snake(steps))) else { return };
        // Two lists of one field: one of them is of another.
        let mut others = breakdowns.iter_mut().filter(|other| other.label == label);
        let is_doubtful = others.next().map(|other| other.is_doubtful = true).is_some();
        let label = if is_doubtful { shape::snake(steps) } else { label };
        breakdowns.push(Breakdown { at: at.clone(), label, series, missing, names, is_usable: false, is_doubtful });
    }

    /// Returns the mention column whose values these names are.
    fn field_of(&self, names: &[String]) -> Option<String> {
        let columns = self.found.columns.columns.iter().filter(|(.., kind)| *kind == shape::Type::Utf8);
        let shares = columns.filter_map(|(column, path, _)| {
            let values: HashSet<String> = self.samples.iter().filter_map(|row| said(at(row, path)?)).collect();
            let known = names.iter().filter(|name| values.contains(*name)).count();
            (known >= 2 || (known == 1 && names.len() <= 2)).then_some((known, column))
        });
        shares
            .max_by_key(|(known, _)| *known)
            .filter(|(known, _)| known * 2 >= names.len())
            .map(|(_, column)| column.clone())
    }

    /// Adds the notes about the overview.
    fn tell_overview(&mut self) {
        let Some(path) = self.found.overview.clone() else {
            self.found.could_not_tell("tables.overview", "no response has numbers that could be an overview");
            return;
        };
        let total = self.found.counted.clone();
        match &total {
            Some(total) => {
                let text = format!("overview at {}, its total at {}", place(&path), place(total));
                self.found.saw("tables.overview", text);
            }
            None => self.found.could_not_tell(
                "tables.overview",
                format!("overview at {}, but none of its numbers is the count of mentions", place(&path)),
            ),
        }
        match &self.found.timeline {
            Some((at, _)) => {
                let text = format!("timeline at {}", place(at));
                self.found.saw("tables.volume", text);
            }
            None => {
                let running = self.found.running.as_ref().map(|at| {
                    format!(
                        "the numbers at {} are running sums, not counts of days; the table cannot be read",
                        place(at)
                    )
                });
                let text =
                    running.unwrap_or_else(|| "no timeline in the overview; the table cannot be read".to_owned());
                self.found.could_not_tell("tables.volume", text);
            }
        }
        let labels: Vec<&str> = self.found.breakdowns.iter().map(|breakdown| breakdown.label.as_str()).collect();
        let text = if labels.is_empty() { "none".to_owned() } else { labels.join(", ") };
        self.found.saw("tables.breakdowns", format!("top lists: {text}"));
    }

    /// Infers the columns of mentions from all received ones.
    pub(super) fn look_at_mentions(&mut self) {
        let pages: Vec<Vec<&Value>> = self.seen.iter().map(|seen| self.found.rows(&seen.reply)).collect();
        let now = self.first.as_ref().and_then(Reply::date);
        let records: Vec<&Value> = self.samples.iter().collect();
        let pages: Vec<Vec<&Value>> = pages.into_iter().filter(|page| !page.is_empty()).collect();
        let id = roles::identity(&pages);
        self.found.id_of_two = if id.is_none() { roles::identity_of_two(&pages) } else { None };
        let time = roles::moment(&pages, now);
        let known = [("id", &id), ("published_at", &time)];
        let mut named: Vec<(&str, &Path)> =
            known.iter().filter_map(|(role, path)| Some((*role, path.as_ref()?))).collect();
        let taken: Vec<&Path> = named.iter().map(|(_, path)| *path).collect();
        let looks = roles::by_looks(&records, &taken);
        let columns = Columns::of(vocabulary::MENTION, &records, &named);
        named.extend(looks.iter().filter(|(role, _)| columns.path(role).is_none()).map(|(role, path)| (*role, path)));
        self.found.columns = Columns::of(vocabulary::MENTION, &records, &named);
        let columns = &self.found.columns.columns;
        // Texts that are free are as they are.
        let free = ["id", "url", "title", "text", "snippet", "author_name"];
        let samples = &self.samples;
        let few = columns.iter().filter(|(name, _, kind)| *kind == shape::Type::Utf8 && !free.contains(&name.as_str()));
        let words = few.flat_map(|(name, path, _)| {
            let known = vocabulary::FILTERED.contains(&name.as_str());
            let has = move |word: &&&str| {
                let plain = known || word.chars().any(char::is_alphabetic);
                plain && samples.iter().any(|row| at(row, path).and_then(Value::as_str) == Some(**word))
            };
            vocabulary::NULLS.iter().filter(has).map(|word| (path.clone(), (*word).to_owned()))
        });
        self.found.null_words = words.collect();
    }

    pub(super) fn count(&self, reply: &Reply) -> Option<u64> {
        self.found.count(reply)
    }

    pub(super) fn rows<'r>(&self, reply: &'r Reply) -> Vec<&'r Value> {
        self.found.rows(reply)
    }

    /// Keeps a response and its mentions, unless already kept. `size` is the number of mentions requested from the
    /// first on.
    pub(super) fn keep(&mut self, size: Option<u64>, reply: &Arc<Reply>) {
        let recorded = self.asker.is_recording();
        let same = |seen: &Seen| Arc::ptr_eq(&seen.reply, reply) || (recorded && seen.reply.asked == reply.asked);
        if reply.is_refusal() || self.seen.iter().any(same) {
            return;
        }
        self.seen.push(Seen { size, reply: Arc::clone(reply) });
        let starts = self.found.bucket_starts(reply);
        self.found.gaps |= starts.windows(2).any(|pair| (pair[1] - pair[0]).abs() > effects::DAY + effects::HOUR);
        let room = 500_usize.saturating_sub(self.samples.len());
        let rows: Vec<Value> = self.rows(reply).into_iter().take(room).cloned().collect();
        self.samples.extend(rows);
    }

    pub(super) fn aid(&self) -> Pair {
        pair(AID, self.found.aid.as_deref().unwrap_or_default())
    }

    /// A page size that the service accepts, at least this one if it has one as large. One without an effect is the number of mentions
    /// that come.
    pub(super) fn accepted(&self, size: u64) -> u64 {
        if let Some(rows) = self.found.idle_size {
            return rows;
        }
        let size = size.max(self.found.least.unwrap_or(1));
        let larger = self.found.sizes.iter().copied().find(|known| *known >= size);
        larger.or(self.found.sizes.last().copied()).unwrap_or(size)
    }

    /// A page size for a few mentions, which shows an effect: other than the number of those that come unasked.
    fn telling_size(&self) -> u64 {
        let size = self.accepted(FEW);
        let unasked = self.first.as_ref().map(names::lengths).unwrap_or_default();
        let other = self.found.sizes.iter().copied().find(|known| !unasked.contains(known));
        other.filter(|_| unasked.contains(&size)).unwrap_or(size)
    }

    /// Learns page sizes from the refusal of one.
    pub(super) fn learn_sizes(&mut self, refusal: &Reply) -> bool {
        if !refusal.is_refusal() || refusal.mentions(SIZE).is_none() {
            return false;
        }
        let (message, before) = (refusal.message(), (self.found.sizes.clone(), self.found.least));
        let sizes = refusal::sizes(&message);
        if !sizes.is_empty() {
            self.found.sizes = sizes;
        } else if let Some(least) = refusal::least(&message).filter(|least| (2..=1_000).contains(least)) {
            self.found.least = Some(least);
        }
        before != (self.found.sizes.clone(), self.found.least)
    }

    /// Parameters that request this many mentions, or the next accepted number of them; as many as come, if there is no such
    /// parameter.
    pub(super) fn asking(&self, size: u64) -> Vec<Pair> {
        let mut pairs = vec![self.aid()];
        pairs.extend(self.found.with.clone());
        if let Some(MentionsParameter::Flag(name, value)) = &self.found.asked {
            pairs.push(pair(name, value));
        }
        if !self.asker.refuses(SIZE) {
            pairs.push(pair(SIZE, size));
        }
        pairs
    }

    /// Determines how mentions are requested. Their array is the one that is as long as requested.
    pub(super) async fn what_asks_for_mentions(&mut self) -> Result<()> {
        let bare = self.first.clone();
        let mut sized = vec![self.aid(), pair(SIZE, self.telling_size())];
        sized.extend(self.found.with.clone());
        let mentions_in = |reply: &Reply| {
            let few = reply.asked.iter().find(|(name, _)| name == SIZE).and_then(|(_, size)| size.parse().ok());
            let few: u64 = few.unwrap_or(FEW);
            let body = reply.body.as_ref().filter(|_| !reply.is_refusal())?;
            let before = |path: &Path| Some(at(bare.as_ref()?.body.as_ref()?, path)?.as_array()?.len());
            let arrays = shape::arrays(body).into_iter().filter(|(_, records)| shape::is_rich(records));
            let fits = arrays.filter_map(|(path, records)| {
                let (now, before) = (records.len() as u64, before(&path));
                // As many as requested, or fewer if there was no such array before.
                let rank = match before {
                    before if now == few && before != Some(records.len()) => 0,
                    None if now < few => 1,
                    // Possibly all mentions that there are.
                    Some(before) if now < few && before == records.len() => 2,
                    _ => return None,
                };
                Some((rank, usize::MAX - records.len(), path))
            });
            fits.min().map(|(.., path)| path)
        };
        let first = match self.sized.take() {
            Some(reply) => Some(reply),
            None => self.asker.ask("search", &sized).await?,
        };
        let Some(mut reply) = first else { return Ok(()) };
        if self.learn_sizes(&reply) {
            self.refusals.push(reply.clone());
            sized[1] = pair(SIZE, self.telling_size());
            let Some(again) = self.asker.ask("search", &sized).await? else { return Ok(()) };
            reply = again;
        }
        if let Some(path) = mentions_in(&reply) {
            let unasked = bare
                .as_ref()
                .and_then(|bare| at(bare.body.as_ref()?, &path)?.as_array())
                .is_some_and(|a| !a.is_empty());
            let (asked, text) = match unasked {
                true => (MentionsParameter::Always, "every search returns mentions, as many as dataSize requests"),
                false => (MentionsParameter::Size, "mentions are returned if dataSize is above 0"),
            };
            return self.mentions_come(&reply, path, asked, text);
        }
        if reply.is_refusal() {
            self.refusals.push(reply);
        }
        // Mentions that come unasked may come in another number under another name of the size.
        if bare.as_ref().and_then(|bare| unasked_mentions(bare.body.as_ref()?)).is_some()
            && let Some((own, reply, path)) = self.name_of_size(&mentions_in).await?
        {
            self.name(SIZE, own);
            let text = format!("every search returns mentions, as many as {own} requests");
            return self.mentions_come(&reply, path, MentionsParameter::Always, &text);
        }
        if let Some((name, value)) = self.known.flag.clone() {
            let asked: Vec<Pair> = sized.iter().cloned().chain([pair(&name, &value)]).collect();
            let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(()) };
            if let Some(path) = mentions_in(&reply) {
                return self.flag_works(&reply, path, &name, value);
            }
        }
        let given: Vec<Pair> = self.known.facts.others().into_iter().filter(|pair| !sized.contains(pair)).collect();
        if !given.is_empty() {
            let asked = [sized.clone(), given.clone()].concat();
            let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(()) };
            if let Some(path) = mentions_in(&reply) {
                for (name, value) in given.iter().filter(|_| given.len() > 1) {
                    let asked: Vec<Pair> = sized.iter().cloned().chain([pair(name, value)]).collect();
                    let Some(alone) = self.asker.ask("search", &asked).await? else { break };
                    if let Some(path) = mentions_in(&alone) {
                        return self.flag_works(&alone, path, name, value.clone());
                    }
                }
                // One alone, or none of them without the others.
                if let Some(((name, value), with)) = given.split_last() {
                    self.found.with.extend(with.iter().cloned());
                    return self.flag_works(&reply, path, name, value.clone());
                }
            }
        }
        for (name, value) in self.known.facts.flags.clone() {
            if self.asker.left() <= MENTIONS_RESERVE {
                break;
            }
            let asked: Vec<Pair> = sized.iter().cloned().chain([pair(&name, &value)]).collect();
            let Some(reply) = self.asker.ask("search", &asked).await? else { continue };
            if let Some(path) = mentions_in(&reply) {
                return self.flag_works(&reply, path, &name, value);
            }
        }
        let (names, values) = self.flags();
        self.begin_beside();
        for value in values {
            let mut left = names.clone();
            let mut last: Option<(Path, Reply)> = None;
            // All at once if the service accepts that, then halves. Periods that are known need no request later.
            while !left.is_empty() && self.asker.left() > MENTIONS_RESERVE.saturating_sub(self.done_beside()) {
                let half = match (&last, &self.parameters) {
                    (None, None) => left.clone(),
                    (None, Some(_)) => left[..1].to_vec(),
                    // The likeliest ones alone.
                    (Some(_), _) if left.len() == names.len() && left.len() > 4 => left[..2].to_vec(),
                    (Some(_), _) => left[..left.len().div_ceil(2)].to_vec(),
                };
                let tried = half.iter().map(|name| pair(name, vocabulary::flag_value(name, &value)));
                let (tried, period): (Vec<Pair>, Vec<Pair>) = (tried.collect(), self.next_beside());
                let asked = [sized.as_slice(), &tried, &period].concat();
                let Some(reply) = self.asker.ask("search", &asked).await? else {
                    if period.is_empty() || !self.asker.is_recording() {
                        return Ok(());
                    }
                    // A recording may have the request without a period.
                    self.end_beside();
                    continue;
                };
                let came = mentions_in(&reply);
                if !period.is_empty() && !self.answers_beside(&reply, &tried, came.as_ref()) {
                    continue;
                }
                match came {
                    Some(path) => {
                        left = half;
                        last = Some((path, reply));
                    }
                    None if last.is_some() => drop(left.drain(..half.len())),
                    None if half.len() == 1 && reply.is_refusal() => {
                        drop(left.drain(..1));
                        // Values that the refusal names as accepted.
                        let told = refusal::values(&reply.message());
                        for value in told.into_iter().filter(|told| *told != value).take(VALUES) {
                            let asked: Vec<Pair> = sized.iter().cloned().chain([pair(&half[0], &value)]).collect();
                            let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(()) };
                            if let Some(path) = mentions_in(&reply) {
                                return self.flag_works(&reply, path, &half[0], value);
                            }
                        }
                    }
                    None => {
                        let named = half.iter().position(|name| reply.mentions(name).is_some());
                        match named.filter(|_| half.len() > 1 && reply.is_refusal()) {
                            Some(at) => drop(left.remove(at)),
                            None => drop(left.drain(..half.len())),
                        }
                    }
                }
                if let (Some((path, reply)), [name]) = (&last, left.as_slice()) {
                    let value = vocabulary::flag_value(name, &value);
                    return self.flag_works(&reply.clone(), path.clone(), name, value);
                }
            }
        }
        // Records with a time that come unasked are mentions, however many were asked for.
        if let Some(bare) = bare.clone()
            && let Some(path) = bare.body.as_ref().and_then(unasked_mentions)
        {
            let text = "every search returns mentions; no other number of them came than without dataSize";
            return self.mentions_come(&bare, path, MentionsParameter::Always, text);
        }
        let words = self.refusals.last().map(|refusal| format!(". Last refusal: {}", refusal.line()));
        let text = format!(
            "none of the parameters tried returned mentions; look it up in the service's documentation, set \
             requested_by and flag in [mentions], and complete [tables.mentions]{}",
            words.unwrap_or_default()
        );
        self.found.could_not_tell("mentions", text);
        Ok(())
    }

    /// Parameters that may request mentions, and values to try: the likeliest ones named by the service, or usual ones.
    fn flags(&self) -> (Vec<String>, Vec<String>) {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let (usual, values) = (owned(vocabulary::FLAGS), owned(vocabulary::FLAG_VALUES));
        let told = self.parameters.iter().flatten().filter(|name| !vocabulary::GIVEN.contains(&name.as_str()));
        let is_likely = |name: &String| vocabulary::FLAG_WORDS.iter().any(|word| plain(name).contains(word));
        let (likely, others): (Vec<String>, Vec<String>) = told.cloned().partition(is_likely);
        // Of a description only likely ones are tried: what requests mentions may be missing in it.
        let described = Some(&self.known.facts.described).filter(|names| !names.is_empty());
        if likely.is_empty() && described.is_some() && described == self.parameters.as_ref() {
            return (Vec::new(), Vec::new());
        }
        match (&self.parameters, likely.is_empty(), others.is_empty()) {
            (None, ..) => (usual, values),
            // These are tried one by one, so with a single value.
            (Some(_), true, true) => (usual, values[..1].to_vec()),
            (Some(_), true, false) => (others, values),
            (Some(_), false, _) => (likely, values),
        }
    }

    fn flag_works(&mut self, reply: &Reply, path: Path, name: &str, value: String) -> Result<()> {
        let text = format!("mentions are returned only with {name}={value}");
        self.mentions_come(reply, path, MentionsParameter::Flag(name.to_owned(), value), &text)
    }

    pub(super) fn mentions_come(
        &mut self,
        reply: &Reply,
        path: Path,
        asked: MentionsParameter,
        text: &str,
    ) -> Result<()> {
        self.found.saw("mentions", text);
        self.found.asked = Some(asked);
        let (mut reply, mut path) = (reply.clone(), path);
        if self.reads_total_of_header(&reply) {
            reply = reply.with_header(self.asker.total_header.as_deref());
            path.insert(0, "body".to_owned());
        }
        let reply = &reply;
        self.found.fields = reply.body.as_ref().and_then(|body| shape::fields_of(body, &path));
        let arrays =
            if self.found.fields.is_some() { ", as arrays with the names of their fields beside them" } else { "" };
        self.found.saw("tables.mentions", format!("records at {}{arrays}", place(&path)));
        self.found.mentions = Some(path);
        let size = reply.asked.iter().find(|(name, _)| name == SIZE).and_then(|(_, size)| size.parse().ok());
        self.keep(size, &Arc::new(reply.clone()));
        self.look_at_mentions();
        if let Some(first) = self.first.clone() {
            self.look_at_overview(&first);
        }
        self.found.with_overview = self.found.has_overview(reply);
        self.headers(reply);
        Ok(())
    }

    /// Notes the rate-limit headers of a response.
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
                    let format = match reset_format(text) {
                        ResetFormat::EpochS => "epoch_s",
                        ResetFormat::Seconds => "seconds",
                        ResetFormat::Iso => "iso",
                    };
                    throttle.reset = Some((name, format));
                }
                () => {}
            }
        }
    }

    pub(super) fn instants(&self, rows: &[&Value]) -> Vec<i64> {
        rows.iter().filter_map(|row| self.found.time_of(row)).collect()
    }

    pub(super) fn widest(&self) -> Vec<Pair> {
        self.found.window.widest.as_ref().map(|(_, pairs)| pairs.clone()).unwrap_or_default()
    }

    /// Checks which counts agree with each other.
    pub(super) fn totals(&mut self) {
        if let Some(first) = self.first.clone() {
            self.look_at_overview(&first);
        }
        self.found.total = numbers::total(&self.found, &self.seen);
        let accuracy = |path: &Path| {
            let bodies = self.seen.iter().filter_map(|seen| seen.reply.body.as_ref());
            bodies.filter_map(|body| Some((body, numbers::accuracy(body, path)?.0))).next_back()
        };
        // Words that the profile understands.
        let words = |(body, path): (&Value, Path)| {
            Some(path.clone()).filter(|_| at(body, &path).is_some_and(|word| word == "eq" || word == "gte"))
        };
        let [total, counted] = [&self.found.total, &self.found.counted].map(|path| path.as_ref().and_then(accuracy));
        let unsaid = |found: &Option<(&Value, Path)>| found.clone().is_some_and(|found| words(found).is_none());
        let [total_is_unsaid, counted_is_unsaid] = [unsaid(&total), unsaid(&counted)];
        (self.found.relation, self.found.counted_relation) = (total.and_then(words), counted.and_then(words));
        self.tell_overview();
        let agreed = numbers::agreements(&self.found, &self.seen);
        let (same, all) = (agreed.totals.iter().filter(|(a, b)| a == b).count(), agreed.totals.len());
        // An approximate total may be slightly too high.
        let agreed_all =
            same == all || agreed.totals.iter().all(|(count, total)| count <= total && total - count < 1_000);
        let summed = agreed.sums.iter().all(|(count, sum)| count == sum);
        let proofs = agreed.sums.len() + agreed.short.len();
        let short = agreed.short.iter().all(|(rows, total)| rows == total);
        if self.found.total.is_some() {
            self.found.total_is_exact =
                same == all && summed && short && proofs > 0 && !self.found.is_capped && !total_is_unsaid;
            let text = format!(
                "the total equals the overview's in {same} of {all} responses, and {}",
                match agreed.short.as_slice() {
                    [] => "no response had all mentions".to_owned(),
                    short => format!(
                        "the number of mentions in {} of {} complete ones",
                        short.iter().filter(|(rows, total)| rows == total).count(),
                        short.len()
                    ),
                }
            );
            self.found.saw("total", text);
            let inside = self.found.overview.as_ref().filter(|overview| !overview.is_empty());
            let inside = inside.filter(|_| self.found.total_header.is_none());
            if self.found.total.as_ref().zip(inside).is_some_and(|(total, overview)| total.starts_with(overview)) {
                self.found.could_not_tell("total", "it is that of the overview: mentions have no total of their own");
            }
        } else {
            let text = match self.found.mentions.is_some() {
                true => "no number beside the mentions was seen to count them; pages are read until one is empty",
                false => "no mentions were seen, so neither was their total",
            };
            self.found.could_not_tell("total", text);
        }
        let sums = &agreed.sums;
        let (same, all) = (sums.iter().filter(|(a, b)| a == b).count(), sums.len());
        // The effect of a filter shows in the total or in the lists.
        let checked = match &self.found.total {
            Some(_) => agreed_all,
            None => self.found.breakdowns.iter().any(|breakdown| breakdown.series.layout != Layout::Map),
        };
        self.found.counts = all > 0 && same == all && checked && !counted_is_unsaid;
        self.usable_lists();
        match self.found.counts {
            true => {
                let of = if all == 1 { "1 response".to_owned() } else { format!("all {all} responses") };
                self.found.saw("counts", format!("the overview's total equals the sum of its timeline in {of}"));
            }
            false => self.found.could_not_tell(
                "counts",
                "the overview's total could not be checked against its timeline; mentions are counted one by one",
            ),
        }
    }

    /// Marks the lists whose names are all values of a mention field: only these count mentions by that field.
    fn usable_lists(&mut self) {
        for breakdown in &mut self.found.breakdowns {
            let Some(path) = self.found.columns.path(&breakdown.label) else { continue };
            let values: Vec<Option<String>> = self.samples.iter().map(|row| said(at(row, path)?)).collect();
            let seen = |name: &String| values.iter().flatten().any(|value| value == name);
            let nulls = values.iter().any(Option::is_none);
            breakdown.missing = breakdown.missing.take().filter(|name| !seen(name) && nulls);
            let missing = breakdown.missing.clone();
            let all = breakdown.names.iter().all(|name| seen(name) || Some(name) == missing.as_ref());
            breakdown.is_usable = all && !breakdown.is_doubtful;
        }
    }

    /// Determines the format of error responses.
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
                (error.code, error.message, error.field) = refusal::places(body);
            }
        }
        if error.inside_success {
            let code = |reply: &Reply| said(at(reply.body.as_ref()?, error.code.as_ref()?)?);
            error.statuses = self.key_refusals.iter().filter_map(code).map(|code| (code, 401)).collect();
            error.statuses.dedup();
        }
        let text = format!("example of an error: {}", refusal.line());
        self.found.saw("error", text);
        self.found.error = Some(error);
        Ok(())
    }
}

/// Measures how many mentions a response covers, by its header with the total as well.
fn mass(reply: &Reply) -> (u64, u64) {
    let (sum, all) = reply.body.as_ref().map(numbers::mass).unwrap_or_default();
    (numbers::total_header(reply).map_or(sum, |(_, total)| total.max(sum)), all)
}

/// Path of the records that a search returns without being asked for any: several of them, each with a time.
fn unasked_mentions(body: &Value) -> Option<Path> {
    let dated = |records: &[&Value]| {
        let timed = |record: &&Value| leaves(record).iter().any(|(_, value)| shape::instant(value).is_some());
        records.len() >= 5 && shape::is_rich(records) && records.iter().all(timed)
    };
    let found = shape::arrays(body).into_iter().filter(|(_, records)| dated(records));
    found.max_by_key(|(_, records)| leaves(records[0]).len()).map(|(path, _)| path)
}

/// Removes a member from an object.
fn remove(value: &mut Value, path: &[String]) {
    match path {
        [] => {}
        [last] => drop(value.as_object_mut().and_then(|members| members.remove(last))),
        [first, rest @ ..] => {
            if let Some(inner) = value.get_mut(first) {
                remove(inner, rest);
            }
        }
    }
}

/// Returns the name that means "no value".
fn missing_of(names: &[String]) -> Option<String> {
    names.iter().find(|name| vocabulary::MISSING.contains(&plain(name).as_str())).cloned()
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use serde_json::json;

    use super::*;
    use crate::cases::each;
    use crate::probe::recorded::Recording;

    fn dialogue(example: &str) -> Dialogue {
        let mut known = Known::default();
        known.facts.example(&format!("https://x.test/v4/search?{example}"), None).expect("an example");
        Dialogue::new(Asker::recorded(Arc::new(Recording::default())), known)
    }

    #[test]
    fn the_number_of_mentions_that_came_for_an_example_names_the_page_size() {
        let cases = [
            ("aid=7&many=6&part=2", 6, Some("many")),
            ("aid=7&many=6&part=6", 6, None),
            ("aid=7&many=7&part=2", 6, None),
            // A few may be there by chance.
            ("aid=7&many=3&part=2", 3, None),
            ("aid=7&dataSize=50&part=6", 6, None),
        ];
        each(cases, |(example, mentions, name)| {
            let mut dialogue = dialogue(example);
            let mention = |n: usize| json!({"id": format!("m{n}"), "text": "a text", "at": "2026-06-10T08:00:00Z"});
            let body = json!({"items": (0..mentions).map(mention).collect::<Vec<_>>(), "total": mentions});
            dialogue.name_of_number(&Reply::new(&[], 200, HeaderMap::new(), body.to_string()));
            let own = dialogue.asker.names.iter().find(|(usual, _)| usual == SIZE).map(|(_, own)| own.as_str());
            assert_eq!(own, name, "{example}");
        });
    }
}
