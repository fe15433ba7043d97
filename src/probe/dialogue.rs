//! The steps of a probe in their order, and what they share: the state, the form of the key, samples, and the format of errors.
//!
//! ```text
//! key, list ─▶ a search ─▶ an unknown parameter ─▶ the parameter that requests mentions
//!           ─▶ rounds: window, zone, sort order, filters ─▶ offset, page size, ends of windows, depth
//! ```
//!
//! A status proves nothing. A candidate has an effect only if the data shows it. A meaningless value is the control: if it
//! has the same effect, the effect does not count.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::asker::{Asker, Pair, Reply, reset_format};
use super::beside::Beside;
use super::candidates::{AID, NONSENSE, SIZE, pair};
use super::effects;
use super::known::Known;
use super::list_members::id_members;
use super::names;
use super::observations::{ErrorShape, Findings, MentionsParameter, Note, SavedSearches, Seen};
use super::refusal;
use super::scheduler::Dimension;
use super::shape::{self, Columns, Path, at, leaves, place, pointer, said};
use super::timeline_days::Days;
use super::vocabulary::{self, plain};
use super::{roles, zones};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{ResetFormat, Zone as Clock};

/// Mentions requested as samples.
pub(super) const LOOK: u64 = 20;
/// Mentions requested to find their array: a length that no other array has by chance.
pub(super) const FEW: u64 = 13;
/// Requests reserved for trying the profile.
pub(super) const TRIAL: u64 = 2;

/// State of a running probe.
pub(super) struct Dialogue {
    pub(super) asker: Asker,
    pub(super) found: Findings,
    /// Received mentions.
    pub(super) samples: Vec<Value>,
    /// Ids of the saved searches in the list.
    pub(super) listed: Vec<String>,
    /// The list, and the members of its entries that may be their ids, the likeliest first.
    list_body: Option<Value>,
    pub(super) members: Vec<String>,
    /// Those that are tried as the id if no search is answered with a value of the one before: none if that one has a usual name, or
    /// if a request that works has one of its values.
    pub(super) other_members: VecDeque<String>,
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
    pub(super) sized: Option<Reply>,
    /// Periods that are requested beside parameters that may request mentions.
    pub(super) beside: Option<Beside>,
    /// Periods that were tried, and the newest mention before.
    pub(super) periods: (Dimension, Option<i64>),
    /// Set if two saved searches have other numbers than each other.
    pub(super) aids_differ: bool,
    /// Set if the example was answered as it is.
    pub(super) is_example_answered: bool,
    /// The response to it.
    pub(super) answer_to_example: Option<Reply>,
    /// Names of the parameter of the saved search that were tried because the list or a refusal has them, with their values.
    pub(super) tried_members: Vec<Pair>,
    /// Set if the service took a value without a meaning under all usual names of the sort order.
    pub(super) ignores_orders: bool,
    /// Set once a search was requested without a saved search.
    pub(super) has_tried_bare: bool,
    /// Set once a search was requested with the ends of a window that a refusal misses.
    pub(super) has_tried_ends: bool,
    /// The days of the widest window in two zones.
    pub(super) zone_days: Option<[Days; 2]>,
    /// The days of the widest window by the zones in which they were requested.
    pub(super) days_of_zones: BTreeMap<String, Days>,
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
            list_body: None,
            members: Vec::new(),
            other_members: VecDeque::new(),
            visited: Vec::new(),
            key_refusals: Vec::new(),
            refusals: Vec::new(),
            first: None,
            seen: Vec::new(),
            sized: None,
            beside: None,
            periods: (Dimension::default(), None),
            aids_differ: false,
            is_example_answered: false,
            answer_to_example: None,
            tried_members: Vec::new(),
            ignores_orders: false,
            has_tried_bare: false,
            has_tried_ends: false,
            zone_days: None,
            days_of_zones: BTreeMap::new(),
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
        self.roles_of_example().await?;
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
        self.found.has_looked_for_zone = true;
        self.days_in_other_zone().await?;
        self.ends_of_periods().await?;
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
        self.tell_end_of_cursor();
        self.errors().await?;
        self.found.could_not_tell(
            "throttle",
            "a probe does not provoke rate limits; status 429 is assumed. Set [throttle] and the windows of [budget] \
             as documented by the service",
        );
        self.look_at_mentions();
        self.tell_unread_times();
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
            let lists = match &reply.body {
                Some(body) if accepted => self.lists_in(body),
                Some(body) => shape::saved_searches(body, AID),
                None => Vec::new(),
            };
            if !lists.is_empty() {
                self.found.saw("auth", format!("the list was returned for `{header}: {format}`"));
                self.found.auth = Some((header, format));
                self.list(&lists);
                (self.found.named_zone, self.found.zone_is_stated) = self.zone_named(&reply);
                let aid = lists[0].aid.clone();
                self.list_body.clone_from(&reply.body);
                return self.list_pages(&reply, &aid).await;
            }
            // The key was accepted, and the response is of another form than any list that is known.
            let holds = |body: &Value| leaves(body).iter().any(|(_, value)| value.is_array());
            if accepted && reply.body.as_ref().is_some_and(holds) {
                self.found.saw("auth", format!("status {} for `{header}: {format}`", reply.status));
                let text = format!(
                    "no list of entries that have an id and a name in the response of the list; set `sections` and `columns`. \
                     It was: {}",
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

    /// The lists of a response by the id of their entries: a member with a value of the example, a usual name, or else the likeliest
    /// member.
    fn lists_in<'v>(&mut self, body: &'v Value) -> Vec<shape::FoundList<'v>> {
        /// Other members that are tried.
        const OTHERS: usize = 2;
        let facts = &self.known.facts;
        let given = match &facts.aid {
            Some(aid) => vec![pair(AID, aid)],
            None => facts.example.clone(),
        };
        let members = id_members(body, &given);
        self.members = members.iter().map(|member| member.name.clone()).collect();
        let is_given = |name: &str| members.iter().any(|member| member.is_given && member.name == name);
        let given = members.iter().filter(|member| member.is_given).map(|member| member.name.as_str());
        let usual = [AID].into_iter().chain(vocabulary::IDS.iter().copied());
        let usual: Vec<&str> = given.chain(usual).collect();
        let lists = |name: &str| Some(shape::saved_searches(body, name)).filter(|lists| !lists.is_empty());
        if let Some(found) = usual.iter().find_map(|name| lists(name)) {
            return found;
        }
        let mut others = self.members.iter().filter(|name| !is_given(name));
        let found = others.by_ref().find_map(|name| lists(name)).unwrap_or_default();
        self.other_members = others.take(OTHERS).cloned().collect();
        found
    }

    /// Takes another member of the entries of the list for their id.
    pub(super) fn list_by(&mut self, member: &str) {
        let Some(body) = self.list_body.clone() else { return };
        let lists = shape::saved_searches(&body, member);
        if lists.is_empty() {
            return;
        }
        self.listed.clear();
        self.found.lists.clear();
        self.found.notes.retain(|note| !note.section.starts_with("tables.saved_searches"));
        self.list(&lists);
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
            let has_unusual_id = aid.last().is_some_and(|id| !vocabulary::is_usual_id(id));
            // The saved searches of another list, of which it says less.
            let is_part = lists.iter().any(|other| {
                let says_less = || leaves(entries[0]).len() < leaves(other.entries[0]).len();
                other.at != *path
                    && !shape::is_history(&other.at)
                    && aids.iter().all(|aid| other.aids.contains(aid))
                    && says_less()
            });
            let (label, fan_out) = match () {
                () if shape::is_history(path) || (is_part && has_unusual_id) => ("recent", false),
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
        if facts.example.is_empty() {
            return Ok(());
        }
        let asked = aid.map(|aid| pair(AID, aid)).into_iter().chain(facts.example.clone()).collect::<Vec<Pair>>();
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
                self.answer_to_example = Some(reply.clone());
                self.seen.push(Seen { size: None, reply: Arc::new(reply) });
            }
        }
        Ok(())
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
    pub(super) fn telling_size(&self) -> u64 {
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
        } else if let Some(least) = self.least_in(refusal) {
            self.found.least = Some(least);
        }
        before != (self.found.sizes.clone(), self.found.least)
    }

    /// The least page size that the refusal of one names beside it, or after usual words, if no smaller page came.
    fn least_in(&self, refusal: &Reply) -> Option<u64> {
        let least = size_in(refusal).and_then(|sent| refusal::least_beside(&refusal.message(), sent));
        self.possible_least(least.or_else(|| refusal::least(&refusal.message())))
    }

    /// Takes the least page size from the refusal of one that is too large.
    pub(super) fn learn_least(&mut self, refusal: &Reply) {
        let sent = size_in(refusal).filter(|_| refusal.is_refusal() && refusal.mentions(SIZE).is_some());
        let least = self.possible_least(sent.and_then(|sent| refusal::least_beside(&refusal.message(), sent)));
        self.found.least = self.found.least.or(least);
    }

    /// A least page size, unless it is usual, or a smaller page came.
    fn possible_least(&self, least: Option<u64>) -> Option<u64> {
        let least = least.filter(|least| (2..=1_000).contains(least))?;
        let is_smaller =
            |seen: &Seen| self.found.has_rows(&seen.reply) && size_in(&seen.reply).is_some_and(|size| size < least);
        (!self.seen.iter().any(is_smaller)).then_some(least)
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
        self.learn_limits(error.code.as_ref());
        self.found.error = Some(error);
        Ok(())
    }

    /// Takes the statuses of rate limits other than 429: with the code of the error, which no other refusal has. `code`: its place.
    fn learn_limits(&mut self, code: Option<&Path>) {
        let code_of = |reply: &Reply| said(at(reply.body.as_ref()?, code?)?);
        for reply in self.asker.limited() {
            let rule = (reply.status, code_of(&reply));
            let mut others = self.key_refusals.iter().chain(&self.refusals);
            let is_of_others = others.any(|other| (other.status, code_of(other)) == rule);
            // Any request may be forbidden; a service that is unavailable is asked again.
            let is_told = rule.1.is_some() || rule.0 == 503;
            if is_of_others || !is_told || self.found.throttle.rules.contains(&rule) {
                continue;
            }
            let code = rule.1.as_ref().map(|code| format!(" with the code {code}")).unwrap_or_default();
            let text = format!("status {}{code} is a rate limit: the request was answered after a wait", rule.0);
            self.found.saw("throttle", text);
            self.found.throttle.rules.push(rule);
        }
    }
}

/// The page size of a request.
fn size_in(reply: &Reply) -> Option<u64> {
    reply.asked.iter().find(|(name, _)| name == SIZE).and_then(|(_, size)| size.parse().ok())
}
