//! Names of parameters by what a service shows of them: the values in an example, responses that repeat their request, and refusals
//! of values in parameters that a refusal lists.
//!
//! A name is a candidate: the effect of the parameter shows that it is the right one.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::asker::{Pair, Reply, own_name, usual_name};
use super::candidates::{AID, DURATION, NONSENSE, OFFSET, SIZE, SORT, TIMEZONE, pair, shape_of_instant};
use super::dialogue::{Dialogue, FEW};
use super::facts::names_among;
use super::refusal;
use super::shape::{self, Path, leaves, said, walk};
use super::vocabulary::{self, GIVEN, plain};
use crate::error::Result;
use crate::profile::Zone;

/// Numbers of mentions that are not the value of a parameter by chance.
const LEAST: u64 = 5;

/// Parameters that a refusal of a value may show.
const SHOWN: [&str; 5] = [DURATION, TIMEZONE, SIZE, OFFSET, SORT];

impl Dialogue {
    /// True if the service has another name for a parameter, which is not known: if it lists others, or has another one for the saved
    /// search.
    pub(super) fn is_open(&self, usual: &str) -> bool {
        let has = |of: &str| self.asker.names.iter().any(|(known, _)| known == of);
        let listed = &self.asker.listed;
        let is_other = if listed.is_empty() { has(AID) } else { !listed.iter().any(|name| name == usual) };
        is_other && !has(usual) && !self.known.facts.example.iter().any(|(name, _)| name == usual)
    }

    /// Takes names from an example that was answered, by the values of its parameters.
    pub(super) fn names_in_example(&mut self) {
        if self.is_example_answered {
            let names = by_values(&self.known.facts.example, |usual| self.is_open(usual));
            self.take_names(names, "its value in the example is of that kind");
        }
    }

    /// Takes names, and the ends of a window, from a response that repeats its request.
    pub(super) fn names_in_echo(&mut self, reply: &Reply) {
        let (usual, aid) = self.aid();
        let own = own_name(&usual, &self.asker.names).to_owned();
        let listed = self.asker.listed.clone();
        let Some(body) = reply.body.as_ref().filter(|_| own != AID || !listed.is_empty()) else { return };
        let Echo { mut names, ends } = Echo::of(body, &(own, aid), &listed, &lengths(reply));
        names.retain(|(usual, own)| self.is_open(usual) && (listed.is_empty() || listed.contains(own)));
        self.take_names(names, "a response repeats it");
        if self.known.facts.ends().is_none() && vocabulary::ends_among(Some(&listed)).is_empty() {
            self.known.facts.described_ends = ends;
        }
    }

    /// Names of parameters that a refusal misses: of a search without any, those that it names of the ones that the service has.
    pub(super) fn missed_by(&self, refused: &Reply) -> Vec<String> {
        let missed = refusal::required(&refused.statements());
        let listed = &self.asker.listed;
        if missed.iter().any(|name| listed.contains(name)) {
            return missed.into_iter().filter(|name| listed.contains(name)).collect();
        }
        let named = listed.iter().filter(|name| refused.asked.is_empty() && refused.mentions(name).is_some());
        let named: Vec<String> = named.cloned().collect();
        if named.is_empty() { missed } else { named }
    }

    /// Sends a meaningless value in parameters that a refusal lists, if several of the usual ones are not among them: its refusal shows
    /// which parameter it is. One that takes a number is the page size if as many mentions come.
    pub(super) async fn roles_of_listed(&mut self) -> Result<()> {
        /// Parameters that are tried.
        const NAMES: usize = 6;
        /// Usual ones that may be missing.
        const FEW_MISSING: usize = 1;
        /// Requests reserved for later steps.
        const RESERVE: u64 = 10;
        let open = |dialogue: &Self| SHOWN.into_iter().filter(|usual| dialogue.is_open(usual)).count();
        let listed = self.asker.listed.clone();
        if listed.is_empty() || open(self) <= FEW_MISSING {
            return Ok(());
        }
        let ends = vocabulary::ends_among(Some(&listed)).into_iter();
        let ends = ends.chain(self.known.facts.ends().map(|(since, until, _)| (since, until)));
        let ends: Vec<String> = ends.flat_map(|(since, until)| [since, until]).collect();
        let names = Arc::clone(&self.asker.names);
        let is_likely = |own: &&String| {
            let is_known = names.iter().any(|(_, known)| known == *own) || GIVEN.contains(&own.as_str());
            let is_filter = vocabulary::column(vocabulary::MENTION, &[vocabulary::filtered_by(own)]).is_some();
            let is_flag = vocabulary::FLAG_WORDS.iter().any(|word| plain(own).contains(word));
            !is_known && !is_filter && !is_flag && !ends.contains(own)
        };
        let mut places = Vec::new();
        for own in listed.iter().filter(is_likely).take(NAMES) {
            if open(self) == 0 || self.asker.left() <= RESERVE {
                break;
            }
            let Some(reply) = self.with_value(own, NONSENSE).await? else { continue };
            if !reply.is_refusal() || self.asker.refuses(own) {
                continue;
            }
            let usual = usual_in(&reply.message());
            let is_instant = reply.message().split_whitespace().any(|word| shape_of_instant(trimmed(word)).is_some());
            self.refusals.push(reply.clone());
            if let Some(usual) = usual.filter(|usual| self.is_open(usual)) {
                self.take_names(vec![(usual.to_owned(), own.clone())], "the refusal of a value shows it");
            } else if usual.is_none() && !is_instant && refusal::values(&reply.message()).is_empty() {
                let Some(reply) = self.with_value(own, &FEW.to_string()).await? else { continue };
                let (before, now) = (self.first.as_ref().map(lengths).unwrap_or_default(), lengths(&reply));
                if self.is_open(SIZE) && now.contains(&FEW) && !before.contains(&FEW) {
                    let names = vec![(SIZE.to_owned(), own.clone())];
                    self.take_names(names, "as many mentions came as were requested with it");
                } else if self.first.as_ref().is_some_and(|first| may_begin_elsewhere(first, &reply)) {
                    places.push(own.clone());
                }
            }
        }
        if let ([own], true) = (places.as_slice(), self.is_open(OFFSET)) {
            self.take_names(vec![(OFFSET.to_owned(), own.clone())], "it takes a number");
        }
        for name in self.parameters.iter_mut().flatten() {
            *name = usual_name(name, &self.asker.names).to_owned();
        }
        Ok(())
    }

    /// Requests a search with one more parameter.
    async fn with_value(&mut self, own: &str, value: &str) -> Result<Option<Reply>> {
        let asked = [vec![self.aid()], self.found.with.clone(), vec![pair(own, value)]].concat();
        self.asker.ask("search", &asked).await
    }

    /// Takes the only parameter of the example whose number is that of the mentions that came for the page size, unless that one is
    /// known.
    pub(super) fn name_of_number(&mut self, reply: &Reply) {
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

    /// Takes the names of the page size and of the offset from the links of a response to other pages of the same search.
    pub(super) fn names_in_links(&mut self, reply: &Reply) {
        let (name, aid) = self.aid();
        let of_search = pair(own_name(&name, &self.asker.names), aid);
        let texts = reply.body.iter().flat_map(leaves).filter_map(|(_, value)| value.as_str());
        let queries = texts.filter_map(|text| text.split_once('?')).map(|(_, query)| query);
        let queries = queries.map(|query| url::form_urlencoded::parse(query.as_bytes()).into_owned().collect());
        let of_this = queries.filter(|pairs: &Vec<Pair>| pairs.contains(&of_search));
        let numbers: Vec<Pair> = of_this.flatten().filter(|(_, value)| value.parse::<u64>().is_ok()).collect();
        let listed: Vec<String> = numbers.iter().map(|(name, _)| name.clone()).collect();
        let mut names = names_among(&listed);
        names.retain(|(usual, _)| usual == OFFSET || usual == SIZE);
        names.extend(size_in_links(&numbers, &names, &lengths(reply)));
        self.take_names(names, "a link of a response has it");
    }

    /// Sends names that the sort order may have, to a service that refuses unknown parameters and names none. The refusal of the value
    /// may list the others.
    pub(super) async fn name_of_sort(&mut self) -> Result<()> {
        /// Names that are tried.
        const NAMES: [&str; 4] = [SORT, "sort", "order_by", "sort_by"];
        let named = self.asker.names.iter().any(|(usual, _)| usual == SORT);
        let names = if self.found.has_brackets { [NAMES[1], NAMES[0], NAMES[2], NAMES[3]] } else { NAMES };
        if self.found.has_brackets && !named && self.parameters.is_none() {
            // Names with brackets are those of JSON:API, whose orders are `sort=-published`.
            self.name(SORT, names[0]);
            return Ok(());
        }
        if self.parameters.is_none() {
            return self.names_in_refusals().await;
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

    /// Sends a value that no service has in usual names of the sort order and of the zone, all at once, to a service that ignores unknown
    /// parameters and has another name for the page size. A refusal shows which of them it has. If it refuses none, no order is likely
    /// to be known to it.
    async fn names_in_refusals(&mut self) -> Result<()> {
        const NAMES: [(&str, &[&str]); 2] = [
            (SORT, &[SORT, "sort_by", "sort", "orderBy", "order_by", "order"]),
            (TIMEZONE, &[TIMEZONE, "tz", "time_zone", "timeZone"]),
        ];
        /// Those that are words of sentences as well.
        const WORDS: [&str; 2] = ["sort", "order"];
        /// Requests for it.
        const TRIES: usize = 3;
        /// Requests reserved for later steps.
        const RESERVE: u64 = 12;
        let is_named = |usual: &str| self.asker.names.iter().any(|(known, _)| known == usual);
        let is_given = |usual: &str| is_named(usual) || !self.known.facts.values(usual).is_empty();
        let is_other = self.found.asked.is_some() && is_named(SIZE);
        let mut open: Vec<(&str, &[&str])> =
            NAMES.into_iter().filter(|(usual, _)| is_other && !is_given(usual)).collect();
        // Once the name of the sort order is known, that of the zone is not worth a request.
        for _ in 0..TRIES {
            let has_order = open.iter().any(|(usual, _)| *usual == SORT);
            if !has_order || self.asker.left() <= RESERVE {
                break;
            }
            let names = || open.iter().flat_map(|(usual, names)| names.iter().map(move |name| (*usual, *name)));
            let sent: Vec<Pair> = names().map(|(_, name)| pair(name, NONSENSE)).collect();
            let asked = [vec![self.aid()], self.found.with.clone(), sent].concat();
            let Some(reply) = self.asker.ask("search", &asked).await? else { break };
            if !reply.is_refusal() {
                self.ignores_orders = true;
                break;
            }
            let told = names().filter_map(|(usual, name)| Some((reply.mentions(name)?, usual, name)));
            let told = told.min_by_key(|(at, _, name)| (WORDS.contains(name), *at));
            self.refusals.push(reply);
            let Some((_, usual, own)) = told else { break };
            if own != usual {
                self.take_names(vec![(usual.to_owned(), own.to_owned())], "the refusal of a value shows it");
            }
            open.retain(|(other, _)| *other != usual);
        }
        Ok(())
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
    pub(super) fn learn_names(&mut self, refusal: &str) -> bool {
        if !refusal::is_about_parameters(refusal) {
            return false;
        }
        let listed = refusal::parameters(refusal);
        let all = |(since, until): &(String, String)| listed.contains(since) && listed.contains(until);
        let mut ends = listed.iter().flat_map(|name| vocabulary::ends_of_time(name)).filter(all);
        if let Some((since, until)) = ends.next() {
            self.known.facts.described_ends.get_or_insert((since, until, "rfc3339"));
        }
        self.take_names(names_among(&listed), "a refusal lists it")
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
}

/// The page size by the usual name: the only other number beside the place of a page in links that is that of the mentions that came.
/// `names`: those that are known by their names. `rows`: lengths of the arrays that may have mentions.
fn size_in_links(numbers: &[Pair], names: &[(String, String)], rows: &[u64]) -> Option<(String, String)> {
    let is_named = |usual: &str| names.iter().any(|(known, _)| known == usual);
    let has = |usual: &str| is_named(usual) || numbers.iter().any(|(name, _)| name == usual);
    if has(SIZE) || !has(OFFSET) {
        return None;
    }
    let is_known = |own: &str| own == OFFSET || names.iter().any(|(_, known)| known == own);
    let is_size = |value: &str| value.parse::<u64>().is_ok_and(|number| number >= LEAST && rows.contains(&number));
    let fitting = numbers.iter().filter(|(name, value)| !is_known(name) && is_size(value));
    let own: BTreeSet<&String> = fitting.map(|(name, _)| name).collect();
    let own = own.first().filter(|_| own.len() == 1)?;
    Some((SIZE.to_owned(), (*own).clone()))
}

/// True if a response, to the first request with [`FEW`] in one more parameter, may be another page of the same search: with the same
/// counts, and with other mentions if any came.
pub(super) fn may_begin_elsewhere(first: &Reply, reply: &Reply) -> bool {
    let begin = |reply: &Reply| -> Vec<Value> {
        let arrays = reply.body.as_ref().map(shape::arrays).unwrap_or_default();
        arrays.iter().filter(|(_, rows)| shape::is_rich(rows)).map(|(_, rows)| rows[0].clone()).collect()
    };
    let (before, now) = (begin(first), begin(reply));
    let counted = counts_of(first);
    let has_same_counts = counts_of(reply).iter().all(|count| counted.contains(count));
    !reply.is_refusal() && has_same_counts && (before.is_empty() || before != now)
}

/// Numbers of a response outside its records, by their places, without those of clocks, and without [`FEW`], which it may repeat.
pub(super) fn counts_of(reply: &Reply) -> Vec<(Path, u64)> {
    let numbers = reply.body.iter().flat_map(leaves).filter_map(|(path, value)| Some((path, value.as_u64()?)));
    let of_clock = |(path, _): &(Path, u64)| {
        let name = path.last().map(|name| plain(name)).unwrap_or_default();
        name.ends_with("ms") || ["elapsed", "time", "took"].iter().any(|word| name.contains(word))
    };
    numbers.filter(|count| count.1 != FEW && !of_clock(count)).collect()
}

/// Lengths of the arrays of a response that may have mentions.
pub(super) fn lengths(reply: &Reply) -> Vec<u64> {
    let arrays = reply.body.as_ref().map(shape::arrays).unwrap_or_default();
    arrays.iter().filter(|(_, rows)| shape::is_rich(rows)).map(|(_, rows)| rows.len() as u64).collect()
}

/// A word of a sentence without the marks around it.
fn trimmed(word: &str) -> &str {
    word.trim_matches(['\'', '"', '`', '.', ',', ';', ':', '(', ')'])
}

/// The usual name of the parameter whose value a refusal is about, by the values that it lists or shows instead.
pub(super) fn usual_in(refusal: &str) -> Option<&'static str> {
    let zone = refusal.split_whitespace().map(trimmed).any(|word| word.contains('/') && is_zone(word));
    let told = [refusal::values(refusal), refusal::examples(refusal)].concat();
    let has = |usual: &str| told.iter().any(|value| usual_for(value) == Some(usual));
    match () {
        () if zone || has(TIMEZONE) => Some(TIMEZONE),
        () if !refusal::sizes(refusal).is_empty() => Some(SIZE),
        () if has(DURATION) || are_periods(&told) || refusal::unit_of_number(refusal).is_some() => Some(DURATION),
        () if has(SORT) => Some(SORT),
        () => None,
    }
}

/// The usual name of the parameter that takes such a value: a period, a time zone, or a sort order.
pub(super) fn usual_for(value: &str) -> Option<&'static str> {
    match () {
        () if is_zone(value) => Some(TIMEZONE),
        () if is_period(value) => Some(DURATION),
        () if is_order(value) => Some(SORT),
        () => None,
    }
}

/// True for the name of a zone, or its distance from UTC. Words such as `Cuba` are names of zones as well, and not taken for one.
fn is_zone(value: &str) -> bool {
    let has_form = value.contains('/') || value == "UTC" || value.starts_with(['+', '-']);
    has_form && value.parse::<Zone>().is_ok()
}

/// Usual numbers of hours, days or other units of a period.
const USUAL: [&str; 14] = ["1", "2", "3", "6", "7", "12", "14", "24", "28", "30", "60", "90", "180", "365"];

/// True if some of these values differ in usual numbers of periods alone, within words of any language: `kako_7nichi`, `kako_30nichi`.
fn are_periods(values: &[String]) -> bool {
    let parts = values.iter().filter_map(|value| {
        let digit = |c: char| c.is_ascii_digit();
        let number = value.split(|c: char| !digit(c)).find(|part| !part.is_empty())?;
        let words: Vec<&str> = value.split(digit).filter(|part| !part.is_empty()).collect();
        let letters = words.concat().chars().filter(|c| c.is_alphabetic()).count();
        (letters > 1 && USUAL.contains(&number)).then_some((words, number))
    });
    let parts: Vec<(Vec<&str>, &str)> = parts.collect();
    let same = |(words, number): &(Vec<&str>, &str)| parts.iter().any(|(other, with)| other == words && with != number);
    parts.iter().any(same)
}

/// True for a period with a number: `7d`, or a usual number between two words, as `ultimos_7_dias`.
fn is_period(value: &str) -> bool {
    let is_word = |text: &str| text.len() > 2 && text.chars().all(char::is_alphabetic);
    let parts: Vec<&str> = value.split(|c: char| !c.is_alphanumeric()).collect();
    match parts.as_slice() {
        [before, number, unit] if is_word(before) && is_word(unit) => USUAL.contains(number),
        _ => value.contains(|c: char| c.is_ascii_digit()) && vocabulary::hours(value).is_some(),
    }
}

/// True for a sort order: a field that is sorted by, or a word such as `newest`. A direction alone is none.
fn is_order(value: &str) -> bool {
    const WORDS: [&str; 8] = ["asc", "desc", "ascending", "descending", "newest", "oldest", "latest", "relevance"];
    let lower = value.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_told = |word: &&str| WORDS.contains(word) || ["recen", "recien"].iter().any(|stem| word.starts_with(stem));
    let field = vocabulary::column(vocabulary::MENTION, &[value.trim_start_matches(['-', '+']).to_owned()]);
    let is_field = field.is_some_and(|(column, _)| {
        vocabulary::COUNTS.contains(&column) || ["published_at", "indexed_at", "updated_at"].contains(&column)
    });
    let is_direction = matches!(words.as_slice(), [word] if WORDS[..4].contains(word));
    !is_direction && (is_field || words.iter().any(is_told))
}

/// Names of parameters of an example, each by the usual name of the only parameter that takes such a value. `example`: with the usual
/// names that are known. `is_open`: usual names of which the service's is not known.
pub(super) fn by_values(example: &[Pair], is_open: impl Fn(&str) -> bool) -> Vec<Pair> {
    let is_flag = |name: &str| vocabulary::FLAG_WORDS.iter().any(|word| plain(name).contains(word));
    let is_other =
        |(name, value): &&Pair| !GIVEN.contains(&name.as_str()) && !is_flag(name) && shape_of_instant(value).is_none();
    let others: Vec<&Pair> = example.iter().filter(is_other).collect();
    let size = example.iter().find(|(name, _)| name == SIZE).and_then(|(_, size)| size.parse::<u64>().ok());
    // The first page, or a row at which a page begins.
    let is_place = |value: &str| {
        let number = value.parse::<u64>().ok();
        number.zip(size).is_some_and(|(number, size)| number < 2 || (size > 0 && number % size == 0))
    };
    let only = |usual: &str| {
        let is = |value: &str| if usual == OFFSET { is_place(value) } else { usual_for(value) == Some(usual) };
        let mut found = others.iter().filter(|(_, value)| is(value));
        match (found.next(), found.next()) {
            (Some((own, _)), None) if is_open(usual) => Some((usual.to_owned(), own.clone())),
            _ => None,
        }
    };
    [DURATION, TIMEZONE, SORT, OFFSET].into_iter().filter_map(only).collect()
}

/// Parts of its request that a response repeats.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Echo {
    /// Names of parameters, each by its usual name.
    pub(super) names: Vec<Pair>,
    /// The ends of a window, and the format of their instants.
    pub(super) ends: Option<(String, String, &'static str)>,
}

impl Echo {
    /// Reads the objects that have the saved search under the name of its parameter, or several of the names that the service
    /// `listed`; and the numbers of a page beside each other. `rows`: lengths of the arrays that may have mentions.
    pub(super) fn of(body: &Value, saved_search: &Pair, listed: &[String], rows: &[u64]) -> Self {
        let mut echo = Self::default();
        for (_, value) in walk(body) {
            let Some(members) = value.as_object() else { continue };
            let scalars = members.iter().filter_map(|(name, value)| Some((name.clone(), said(value)?)));
            let scalars: Vec<Pair> = scalars.collect();
            let is_listed = |(name, _): &&Pair| listed.contains(name);
            let is_echo = scalars.contains(saved_search) || scalars.iter().filter(is_listed).count() > 1;
            let found = match is_echo {
                true => {
                    let of_list = |pair: &&Pair| listed.is_empty() || is_listed(pair);
                    let repeated: Vec<Pair> = scalars.iter().filter(of_list).cloned().collect();
                    echo.ends = echo.ends.or_else(|| ends_of(&repeated).filter(|_| !listed.is_empty()));
                    repeated_names(&repeated, rows)
                }
                false => page_names(&scalars, rows),
            };
            let new = found.into_iter().filter(|(usual, _)| echo.names.iter().all(|(known, _)| known != usual));
            echo.names.extend(new.collect::<Vec<Pair>>());
        }
        echo
    }
}

/// True if a member of a response may repeat the parameter with this usual name, by its value. The number of the mentions that came
/// is a member of its own: `count`.
fn may_be(usual: &str, (name, value): &Pair, rows: &[u64]) -> bool {
    const COUNTS: [&str; 6] = ["count", "hits", "results", "returned", "rows", "total"];
    let number = value.parse::<u64>().ok();
    match usual {
        SIZE if COUNTS.contains(&plain(name).as_str()) => false,
        SIZE => number.is_some_and(|number| number >= LEAST && rows.contains(&number)),
        // The request had no place.
        OFFSET => number.is_some_and(|number| number < 2),
        TIMEZONE => is_zone(value),
        DURATION => is_period(value) || vocabulary::hours(value).is_some(),
        SORT => number.is_none() && shape_of_instant(value).is_none(),
        _ => false,
    }
}

/// The parameters among those that a response repeats: by their names, or by their values alone.
fn repeated_names(repeated: &[Pair], rows: &[u64]) -> Vec<Pair> {
    let mut found: Vec<Pair> = Vec::new();
    for usual in [SIZE, OFFSET, TIMEZONE, DURATION, SORT] {
        let fitting = || repeated.iter().filter(|pair| may_be(usual, pair, rows));
        let names: Vec<String> = fitting().map(|(name, _)| name.clone()).collect();
        let by_name = names_among(&names).into_iter().find(|(of, _)| of == usual);
        // Any number may be 0 or 1, except beside a page size.
        let is_told = usual != OFFSET || found.iter().any(|(of, _)| of == SIZE);
        let mut alone = fitting().filter(|(_, value)| is_told && (usual != SORT || is_order(value)));
        let by_value = match (alone.next(), alone.next()) {
            (Some((own, _)), None) => Some((usual.to_owned(), own.clone())),
            _ => None,
        };
        let new = by_name.or(by_value).filter(|(_, own)| found.iter().all(|(_, known)| known != own));
        found.extend(new);
    }
    found
}

/// The page size and the place of a page, if both are in one object under usual names, which may have a word in common before them:
/// `resultsPage` and `resultsPageSize`.
fn page_names(scalars: &[Pair], rows: &[u64]) -> Vec<Pair> {
    let of = |shorten: &dyn Fn(&str) -> Option<String>| {
        let one = |usual: &str| {
            let fitting = scalars.iter().filter(|pair| may_be(usual, pair, rows));
            let names: Vec<String> = fitting.filter_map(|(name, _)| shorten(name)).collect();
            names_among(&names).into_iter().find(|(of, _)| of == usual)
        };
        Some(vec![one(SIZE)?, one(OFFSET)?])
    };
    of(&|name| Some(name.to_owned())).or_else(|| of(&without_first_word)).unwrap_or_default()
}

/// A name without its first word: `pageSize` of `resultsPageSize`, `page` of `results_page`.
fn without_first_word(name: &str) -> Option<String> {
    let at = name.char_indices().skip(1).find(|(_, c)| c.is_ascii_uppercase() || *c == '_').map(|(at, _)| at)?;
    let rest = name[at..].trim_start_matches('_');
    let first = rest.chars().next()?;
    Some(format!("{}{}", first.to_ascii_lowercase(), &rest[first.len_utf8()..]))
}

/// The only two instants of one format, the earlier one first.
fn ends_of(repeated: &[Pair]) -> Option<(String, String, &'static str)> {
    let instants = repeated.iter().filter_map(|(name, value)| Some((name, value, shape_of_instant(value)?)));
    let instants: Vec<(&String, &String, &'static str)> = instants.collect();
    let [(one, first, how), (other, second, same)] = instants.as_slice() else { return None };
    let (since, until) = if first <= second { (one, other) } else { (other, one) };
    (how == same && first != second).then(|| ((*since).clone(), (*until).clone(), *how))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use serde_json::json;

    use super::*;
    use crate::cases::each;
    use crate::probe::asker::Asker;
    use crate::probe::known::Known;
    use crate::probe::recorded::Recording;

    #[test]
    fn a_number_with_an_effect_on_the_counts_or_none_on_the_mentions_is_no_place_of_a_page() {
        let reply = |status: u16, total: u64, first: u64| {
            let (offset, took) = (first, 3 + first);
            let rows: Vec<Value> = (first..first + 5)
                .map(|n| json!({"id": format!("m{n}"), "text": format!("text {n}"), "at": "2026-06-30T11:00:00Z"}))
                .collect();
            Reply::new(
                &[],
                status,
                HeaderMap::new(),
                json!({"total": total, "offset": offset, "took": took, "items": rows}).to_string(),
            )
        };
        let first = reply(200, 40, 0);
        let cases = [
            (reply(200, 40, 13), true),
            // A filter, a parameter without an effect, and a refusal.
            (reply(200, 27, 13), false),
            (reply(200, 40, 0), false),
            (reply(400, 40, 13), false),
        ];
        each(cases, |(reply, may)| assert_eq!(may_begin_elsewhere(&first, &reply), may, "{}", reply.text));
    }

    fn pairs(texts: &[(&str, &str)]) -> Vec<Pair> {
        texts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_value_tells_its_parameter() {
        let cases = [
            ("ultimos_7_dias", Some(DURATION)),
            ("last_30_days", Some(DURATION)),
            ("7d", Some(DURATION)),
            ("t-4410", None),
            ("week", None),
            ("Europe/Madrid", Some(TIMEZONE)),
            ("+05:30", Some(TIMEZONE)),
            ("UTC", Some(TIMEZONE)),
            ("Cuba", None),
            ("recientes", Some(SORT)),
            ("-published_at", Some(SORT)),
            ("date:desc", Some(SORT)),
            ("reach", Some(SORT)),
            ("desc", None),
            ("description", None),
            ("de", None),
            ("50", None),
        ];
        each(cases, |(value, usual)| assert_eq!(usual_for(value), usual, "{value}"));
    }

    #[test]
    fn the_refusal_of_a_value_tells_its_parameter() {
        let cases = [
            ("periodo: valor no admitido. Valores admitidos: ultimas_24_horas, ultimos_7_dias", Some(DURATION)),
            ("last must be a number of days, an integer", Some(DURATION)),
            ("zona: no es una zona horaria IANA, por ejemplo Europe/Madrid", Some(TIMEZONE)),
            ("orden: valor no admitido. Valores admitidos: recientes, antiguas, alcance", Some(SORT)),
            ("kikan wa [honjitsu, kako_24jikan, kako_7nichi, kako_30nichi] no dore ka", Some(DURATION)),
            ("zeitraum: erlaubt sind heute, letzte-7-tage, letzte-30-tage", Some(DURATION)),
            ("narabi wa [shinchaku, furui, riichi] no dore ka", None),
            ("n: expected one of 10, 25, 50", Some(SIZE)),
            ("limite: debe ser un entero, 1 como mínimo", None),
            ("desde, hasta: deben ser dos fechas, por ejemplo 2026-01-31", None),
            ("tone must be one of positive, negative", None),
        ];
        each(cases, |(refusal, usual)| assert_eq!(usual_in(refusal), usual, "{refusal}"));
    }

    #[test]
    fn an_example_names_the_parameters_whose_values_it_has() {
        let example = pairs(&[
            (SIZE, "50"),
            ("periodo", "ultimos_7_dias"),
            ("desplazamiento", "0"),
            ("orden", "recientes"),
            ("desde", "2026-11-20"),
            ("idioma", "de"),
        ]);
        let found = [(DURATION, "periodo"), (SORT, "orden"), (OFFSET, "desplazamiento")];
        assert_eq!(by_values(&example, |_| true), pairs(&found));
        assert_eq!(by_values(&example, |usual| usual == SORT), pairs(&found[1..2]));
        // Two zones, two numbers, and a flag.
        let example = pairs(&[
            (SIZE, "50"),
            ("here", "Europe/Madrid"),
            ("there", "UTC"),
            ("p", "1"),
            ("starred", "0"),
            ("view", "reach"),
        ]);
        assert_eq!(by_values(&example, |_| true), pairs(&[]));
    }

    #[test]
    fn the_number_of_mentions_in_a_link_names_the_page_size() {
        let cases = [
            (vec![("offset", "10"), ("hpp", "10")], 10, Some("hpp")),
            (vec![("offset", "20"), ("hpp", "10"), ("version", "4")], 10, Some("hpp")),
            // Nothing tells which of two it is, and other numbers are none.
            (vec![("offset", "20"), ("hpp", "10"), ("version", "10")], 10, None),
            (vec![("offset", "20"), ("hpp", "10")], 25, None),
            (vec![("offset", "20"), ("limit", "10"), ("version", "10")], 10, None),
            (vec![("dataFrom", "10"), ("hpp", "10")], 10, Some("hpp")),
            (vec![("year", "10"), ("hpp", "10")], 10, None),
        ];
        each(cases, |(numbers, rows, own)| {
            let numbers = pairs(&numbers);
            let listed: Vec<String> = numbers.iter().map(|(name, _)| name.clone()).collect();
            let found = size_in_links(&numbers, &names_among(&listed), &[rows]);
            assert_eq!(found, own.map(|own| (SIZE.to_owned(), own.to_owned())), "{numbers:?}");
        });
    }

    #[test]
    fn a_response_that_repeats_its_request_names_the_parameters() {
        let tema = ("tema".to_owned(), "t-1".to_owned());
        let listed = ["tema", "periodo", "desde", "hasta", "zona", "desplazamiento", "limite", "orden", "idioma"];
        let listed = listed.map(str::to_owned);
        let body = json!({
            "consulta": {"tema": "t-1", "desde": "2026-06-01T00:00:00+02:00", "hasta": "2026-06-08T00:00:00+02:00",
                "zona": "Europe/Madrid", "orden": "recientes"},
            "resumen": {"total": 191, "autores": 1},
            "paginacion": {"total": 191, "desplazamiento": 0, "limite": 25}
        });
        let echo = Echo::of(&body, &tema, &listed, &[25]);
        let names = [(TIMEZONE, "zona"), (SORT, "orden"), (SIZE, "limite"), (OFFSET, "desplazamiento")];
        assert_eq!(echo.names, pairs(&names));
        assert_eq!(echo.ends, Some(("desde".to_owned(), "hasta".to_owned(), "rfc3339")));
        let id = |name: &str| (name.to_owned(), "7".to_owned());
        let cases = [
            (
                json!({"request": {"search_id": 7, "start": "2026-06-01T00:00:00", "tz": "UTC", "page": 1, "page_size": 25}}),
                id("search_id"),
                vec![(SIZE, "page_size"), (OFFSET, "page"), (TIMEZONE, "tz")],
            ),
            (
                json!({"data": {"pagination": {"page": 1, "per_page": 25, "pages": 6, "total": 129}}}),
                id("project_id"),
                vec![(SIZE, "per_page"), (OFFSET, "page")],
            ),
            (
                json!({"resultsTotal": 861, "resultsPage": 0, "resultsPageSize": 25}),
                id("queryId"),
                vec![(SIZE, "pageSize"), (OFFSET, "page")],
            ),
            // The number of mentions is not the page size.
            (json!({"topic": 7, "count": 191, "lang": "de"}), id("topic"), vec![]),
            (json!({"page": 1, "total": 25}), id("topic"), vec![]),
            (json!({"topic": 7, "total": 25, "count": 25, "page": 1}), id("topic"), vec![(OFFSET, "page")]),
            (json!({"page": 1, "count": 25, "total": 191}), id("topic"), vec![]),
        ];
        each(cases, |(body, saved_search, names)| {
            let echo = Echo::of(&body, &saved_search, &[], &[25]);
            assert_eq!(echo, Echo { names: pairs(&names), ends: None }, "{body}");
        });
    }

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
