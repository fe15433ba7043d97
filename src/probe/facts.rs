//! Facts that the user knows about a service before the first request: a request that works, and single facts.
//!
//! ```text
//! --example 'curl …' | URL | HAR   ─▶ form of the key, parameters with values that the service takes
//! --openapi FILE                   ─▶ names, values, formats and limits of parameters, header of the key (`openapi`)
//! --fact 'dataSize one of 10, 25'  ─▶ values of a parameter, or an entry of the profile
//! ```
//!
//! Facts are tried before anything else, and the report states which of them the responses confirmed. A key in an example is
//! returned as a [`Secret`], and is in no other value. Pure.

use std::collections::BTreeMap;

use serde_json::Value;
use url::Url;

use super::asker::Pair;
use super::candidates::{AID, DURATION, OFFSET, SIZE, SORT, TIMEZONE, shape_of_instant};
use super::observations::{Absolute, Depth, Findings, Form, MentionsParameter, Several};
use super::refusal::key_format;
use super::vocabulary::{filtered_by, is_of, plain};
use crate::client::Secret;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::Zone;

/// Other names of the parameters with fixed names, without case and punctuation.
const OTHER_NAMES: [(&str, &[&str]); 6] = [
    (
        AID,
        &[
            "searchid",
            "savedsearchid",
            "savedsearch",
            "queryid",
            "alertid",
            "topicid",
            "projectid",
            "monitorid",
            "topic",
            "monitor",
            "alert",
            "id",
        ],
    ),
    (
        DURATION,
        &[
            "period",
            "timerange",
            "range",
            "interval",
            "timeframe",
            "last",
            "timespan",
            "datepreset",
            "daterange",
            "timeperiod",
            "lookback",
            "days",
            "hours",
        ],
    ),
    (TIMEZONE, &["tz", "zone", "timezone"]),
    (OFFSET, &["page", "offset", "pagenumber", "skip"]),
    (
        SIZE,
        &[
            "perpage",
            "pagesize",
            "limit",
            "size",
            "rows",
            "count",
            "maxresults",
            "take",
            "top",
            "pagelimit",
            "resultsperpage",
            "itemsperpage",
        ],
    ),
    (SORT, &["sort", "orderby", "sortby", "order", "rank", "ranking"]),
];

/// Other names of the place of a page, which are those of the beginning of a window as well: only a number tells them apart.
const BEGINNINGS: [&str; 6] = ["from", "start", "first", "startindex", "startat", "startrow"];

/// True for a value that the parameter with this usual name may have in an example: a period, a zone, the place of a page, or a sort
/// order. Names of the saved search and of the page size need other evidence.
fn is_value_of(usual: &str, value: &str) -> bool {
    /// Rows that are not a time in seconds.
    const ROWS: u64 = 1_000_000;
    let number = value.parse::<u64>().ok();
    match usual {
        DURATION => super::names::usual_for(value) == Some(DURATION),
        TIMEZONE => value.parse::<Zone>().is_ok(),
        OFFSET => number.is_some_and(|number| number < ROWS),
        // A direction alone goes with another parameter.
        SORT => {
            number.is_none() && shape_of_instant(value).is_none() && !["asc", "desc"].contains(&plain(value).as_str())
        }
        _ => false,
    }
}

/// Names of the parameters with fixed names among these, which are all that a service has, by their usual names.
pub(super) fn names_among(all: &[String]) -> Vec<(String, String)> {
    let missing = OTHER_NAMES.iter().filter(|(usual, _)| !all.iter().any(|name| name == usual));
    let found = missing.filter_map(|(usual, words)| {
        // `filter[period]` as well.
        let is = |name: &str, word: &str| plain(name) == word || filtered_by(name) == word;
        // The same word in other languages: `periodo`, `limite`.
        let is_like = |name: &str, word: &str| {
            let ends = ["a", "e", "o"];
            word.len() > 4 && plain(name).strip_prefix(word).is_some_and(|end| ends.contains(&end))
        };
        let named =
            |is: &dyn Fn(&str, &str) -> bool| words.iter().find_map(|word| all.iter().find(|name| is(name, word)));
        let own = named(&is).or_else(|| named(&is_like).filter(|_| *usual != AID))?;
        Some(((*usual).to_owned(), own.clone()))
    });
    found.collect()
}

/// Facts that the user knows about a service.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The form of the key: header and value.
    pub(super) auth: Option<(String, String)>,
    /// A saved search that exists.
    pub(super) aid: Option<String>,
    /// Address of the service.
    pub(super) base_url: Option<String>,
    /// Parameters of a request that works.
    pub(super) example: Vec<Pair>,
    /// Values that the service takes, by parameter, in the order in which they were given.
    pub(super) given: Vec<Pair>,
    /// Parameters for which these values are all.
    pub(super) complete: Vec<(String, Vec<String>)>,
    /// Largest and smallest values, by parameter.
    pub(super) most: Vec<(String, u64)>,
    pub(super) least: Vec<(String, u64)>,
    /// The parameters of a search, if a document describes them.
    pub(super) described: Vec<String>,
    /// Of these, the ones with the ends of a window, and the format of their instants.
    pub(super) described_ends: Option<(String, String, &'static str)>,
    /// Those that may request mentions, with their values.
    pub(super) flags: Vec<Pair>,
    /// Form of several values of a filter.
    pub(super) several: Option<Several>,
    /// Statements of a document that the probe does not use.
    pub(super) unused: Vec<String>,
    /// Entries of the profile: section, key and value as TOML.
    entries: Vec<[String; 3]>,
}

impl Facts {
    /// Adds a request that works: a `curl` command, a URL, or the text of a HAR file. Returns the key if the request has one
    /// other than `key`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if it is none of these, or if the key is a parameter of the URL.
    pub fn example(&mut self, text: &str, key: Option<&Secret>) -> Result<Option<Secret>> {
        let request = Request::read(text.trim())?;
        let mut base = request.url.clone();
        base.set_query(None);
        base.set_fragment(None);
        if let Ok(mut segments) = base.path_segments_mut() {
            segments.pop_if_empty().pop();
        }
        self.base_url = Some(base.as_str().trim_end_matches('/').to_owned());
        self.example.clear();
        let mut other = None;
        for (name, value) in &request.headers {
            let Some((format, found)) = form_of(name, value, key) else { continue };
            self.auth = Some((name.clone(), format));
            other = found.map(|found| Secret::new(&found)).transpose()?;
        }
        for (name, value) in request.url.query_pairs() {
            let has_key = key.is_some_and(|key| key.is_in(&value));
            let named = ["key", "apikey", "token", "accesstoken", "authtoken", "secret", "password"];
            if has_key || named.contains(&plain(&name).as_str()) {
                let message = format!("the example sends its key in the parameter `{name}`");
                return Err(Error::new(ErrorKind::Config, message).advice(
                    "send the key in a header: in a URL, it would appear in the logs of every server on the way",
                ));
            }
            match name.as_ref() {
                AID => self.aid = Some(value.into_owned()),
                _ => {
                    let pair: Pair = (name.into_owned(), value.into_owned());
                    self.example.push(pair.clone());
                    self.given.push(pair);
                }
            }
        }
        Ok(other)
    }

    /// The value that a person stated last for an entry of the profile, as TOML.
    fn stated(&self, section: &str, key: &str) -> Option<&str> {
        let mut entries = self.entries.iter().filter(|entry| entry[0] == section && entry[1] == key);
        Some(&entries.next_back()?[2])
    }

    /// The form of the key that entries of the profile state: header, and value.
    fn stated_auth(&self) -> Option<(String, String)> {
        let stated = |key: &str| Some(self.stated("auth", key)?.trim_matches(['"', '\'']).to_owned());
        let (header, format) = (stated("header"), stated("format"));
        if header.is_none() && format.is_none() {
            return None;
        }
        // What is not stated is that of an example.
        let (known_header, known_format) = self.auth.clone().unzip();
        let header = header.or(known_header).unwrap_or_else(|| "Authorization".to_owned());
        Some((header, format.or(known_format).unwrap_or_else(|| "{key}".to_owned())))
    }

    /// Makes the findings agree with the entries of the profile that a person stated, so that no section contradicts them.
    pub(super) fn apply(&self, found: &mut Findings) {
        let stated = |section: &str, key: &str| {
            let table = format!("value = {}", self.stated(section, key)?).parse::<toml::Table>().ok()?;
            table.get("value").cloned()
        };
        let text = |value: &toml::Value| value.as_str().map(str::to_owned);
        let separate = stated("window", "separate")
            .and_then(|ends| Some(Form::Separate(text(ends.get("from")?)?, text(ends.get("to")?)?)));
        let template = stated("window", "absolute").and_then(|template| text(&template)).map(Form::Template);
        let known = ["rfc3339", "local", "date", "epoch_s", "epoch_ms"];
        let instants = stated("window", "instants")
            .and_then(|instants| known.into_iter().find(|known| Some(*known) == instants.as_str()));
        if let Some(form) = separate.or(template) {
            let absolute = found.window.absolute.take().filter(|absolute| absolute.form == form);
            let absolute = absolute.unwrap_or(Absolute { form, instants: "rfc3339", inclusive: None });
            found.window.absolute = Some(absolute);
        }
        if let (Some(instants), Some(absolute)) = (instants, &mut found.window.absolute) {
            absolute.instants = instants;
        }
        if stated("offset", "unit").is_some_and(|unit| unit.as_str() != Some("cursor")) {
            found.cursor = None;
        }
        if self.entries.iter().any(|[section, ..]| section == "offset") {
            found.no_offset = None;
        }
        if let Some(rows) = stated("depth", "rows").and_then(|rows| u64::try_from(rows.as_integer()?).ok()) {
            let beyond = found.depth.map_or("empty", |depth| depth.beyond);
            found.depth = Some(Depth { rows, beyond });
        }
    }

    /// Adds a fact: `NAME one of A, B, C`, `NAME at most N`, `NAME at least N`, `NAME = VALUE` for a parameter that requests
    /// have, or `SECTION.KEY = VALUE` for an entry of the profile as TOML.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if it is none of these.
    pub fn fact(&mut self, text: &str) -> Result<()> {
        let text = text.trim();
        let name = |name: &str| name.trim().trim_matches('`').to_owned();
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let bad = |what: &str| {
            Error::new(ErrorKind::Config, format!("invalid fact `{text}`: {what}")).advice(
                "write `NAME one of A, B`, `NAME at most N`, `NAME at least N`, `NAME = VALUE`, or `SECTION.KEY = VALUE` in TOML",
            )
        };
        if let Some((of, values)) = text.split_once(" one of ") {
            let values = values.trim().trim_start_matches('[').trim_end_matches(']').split(',');
            let values: Vec<String> = values.map(|value| value.trim().trim_matches(['"', '\'']).to_owned()).collect();
            self.complete.push((name(of), values));
            return Ok(());
        }
        for (word, of) in [(" at most ", &mut self.most), (" at least ", &mut self.least)] {
            if let Some((parameter, value)) = text.split_once(word) {
                let value = number(value).ok_or_else(|| bad("expected a number"))?;
                of.push((name(parameter), value));
                return Ok(());
            }
        }
        let (left, value) = text.split_once('=').ok_or_else(|| bad("unknown form"))?;
        let (left, value) = (left.trim(), value.trim());
        match left.rsplit_once('.') {
            Some((section, key)) => {
                let entry = format!("{key} = {value}").parse::<toml::Table>();
                entry.map_err(|error| bad(&crate::error::one_line(error.message())))?;
                self.entries.push([section.to_owned(), key.to_owned(), value.to_owned()]);
                self.auth = self.stated_auth().or_else(|| self.auth.take());
            }
            None => self.given.push((name(left), value.trim_matches(['"', '\'']).to_owned())),
        }
        Ok(())
    }

    /// Names of parameters that differ from the usual ones, by the usual names: as stated, or else as in an example. An example
    /// without an `aid` has another name for it, and so for the other parameters as well; one with an `aid` may have other names for
    /// parameters whose values are of their kind.
    pub(super) fn names(&self) -> Vec<(String, String)> {
        const ENTRIES: [(&str, &str, &str); 6] = [
            (AID, "search", "aid"),
            (DURATION, "window", "parameter"),
            (TIMEZONE, "timezone", "parameter"),
            (OFFSET, "offset", "parameter"),
            (SIZE, "page", "parameter"),
            (SORT, "sort", "parameter"),
        ];
        let stated = |section: &str, key: &str| Some(self.stated(section, key)?.trim_matches('"').to_owned());
        let names = ENTRIES.iter().filter_map(|(usual, section, key)| {
            let own = stated(section, key).or_else(|| self.guessed(usual)).filter(|own| own != usual)?;
            Some(((*usual).to_owned(), own))
        });
        names.collect()
    }

    /// The parameter of the example that is the one with this usual name by its own name, unless the example has the usual one.
    fn guessed(&self, usual: &str) -> Option<String> {
        let example = || self.example.iter();
        if example().any(|(name, _)| name == usual) {
            return None;
        }
        let alike = |name: &str| {
            // `filter[aid]`
            let inner = name.strip_suffix(']').and_then(|name| name.rsplit_once('[')).map(|(_, inner)| plain(inner));
            let is = |word: &str| OTHER_NAMES.iter().any(|(of, words)| *of == usual && words.contains(&word));
            is(&plain(name)) || inner.is_some_and(|inner| inner == plain(usual) || is(&inner))
        };
        // Beside the saved search under its usual name, a parameter may be another one of the service.
        let is_told = |value: &str| self.aid.is_none() || is_value_of(usual, value);
        let is_place = |name: &str, value: &str| {
            usual == OFFSET && BEGINNINGS.contains(&plain(name).as_str()) && is_value_of(OFFSET, value)
        };
        let mut named = example().filter(|(name, value)| alike(name) && is_told(value)).map(|(name, _)| name);
        let mut placed = example().filter(|(name, value)| is_place(name, value)).map(|(name, _)| name);
        let by_name = named.next().or_else(|| placed.next());
        by_name.or_else(|| self.period().filter(|_| usual == DURATION)).cloned()
    }

    /// The only parameter of the example whose value is a period, such as `30d`.
    fn period(&self) -> Option<&String> {
        let is_period = |value: &str| {
            let unit = value.trim_start_matches(|c: char| c.is_ascii_digit());
            let words = ["h", "d", "w", "m", "hours", "days", "weeks", "months", "hour", "day", "week", "month"];
            unit.len() < value.len() && words.contains(&unit.trim().to_lowercase().as_str())
        };
        let mut periods = self.example.iter().filter(|(_, value)| is_period(value)).map(|(name, _)| name);
        periods.next().filter(|_| periods.next().is_none())
    }

    /// The only parameter of the example whose value is one of these saved searches.
    pub(super) fn name_of_aid(&self, listed: &[String]) -> Option<&String> {
        let mut names = self.example.iter().filter(|(_, value)| listed.contains(value)).map(|(name, _)| name);
        names.next().filter(|_| names.next().is_none() && self.aid.is_none())
    }

    /// These facts with the usual names of parameters.
    pub(super) fn with_usual_names(mut self, names: &[(String, String)]) -> Self {
        let usual = |name: &String| super::asker::usual_name(name, names).to_owned();
        self.given = super::asker::usual(&self.given, names);
        self.example = super::asker::usual(&self.example, names);
        self.example.retain(|(name, _)| name != AID);
        self.complete.iter_mut().for_each(|(name, _)| *name = usual(name));
        self.most.iter_mut().chain(&mut self.least).for_each(|(name, _)| *name = usual(name));
        self.described.iter_mut().for_each(|name| *name = usual(name));
        if let Some(at) = self.given.iter().position(|(name, _)| name == AID) {
            self.aid = Some(self.given.remove(at).1);
        }
        self
    }

    /// The address of the service in an example, without the endpoint.
    pub fn base_url(&self) -> Option<&str> {
        self.base_url.as_deref()
    }

    /// Known values of a parameter.
    pub(super) fn values(&self, parameter: &str) -> Vec<String> {
        let given = self.given.iter().filter(|(name, _)| name == parameter).map(|(_, value)| value.clone());
        given.chain(self.all(parameter)).collect()
    }

    /// The values of a parameter, if these are all; otherwise none.
    pub(super) fn all(&self, parameter: &str) -> Vec<String> {
        let all = self.complete.iter().find(|(name, _)| name == parameter);
        all.map(|(_, values)| values.clone()).unwrap_or_default()
    }

    pub(super) fn most(&self, parameter: &str) -> Option<u64> {
        self.most.iter().find(|(name, _)| name == parameter).map(|(_, most)| *most)
    }

    pub(super) fn least(&self, parameter: &str) -> Option<u64> {
        self.least.iter().find(|(name, _)| name == parameter).map(|(_, least)| *least)
    }

    /// Known page sizes, if these are all, in ascending order.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.all(SIZE).iter().filter_map(|size| size.parse().ok()).collect();
        sizes.sort_unstable();
        sizes
    }

    /// Parameters without a fixed name, except the ends of a window.
    pub(super) fn others(&self) -> Vec<Pair> {
        let ends = self.ends();
        let is_end = |name: &String| ends.as_ref().is_some_and(|(since, until, _)| name == since || name == until);
        let fixed = [AID, DURATION, TIMEZONE, OFFSET, SIZE, SORT];
        let other = |(name, _): &&Pair| !fixed.contains(&name.as_str()) && !is_end(name);
        let first = self.complete.iter().filter_map(|(name, values)| Some((name.clone(), values.first()?.clone())));
        let given: Vec<Pair> = self.given.iter().filter(other).cloned().collect();
        let known: Vec<String> = given.iter().map(|(name, _)| name.clone()).collect();
        let first = first.filter(|pair| other(&pair) && !known.contains(&pair.0));
        given.into_iter().chain(first).collect()
    }

    /// Parameters with the ends of a window, and the format of their instants.
    pub(super) fn ends(&self) -> Option<(String, String, &'static str)> {
        self.given_ends().or_else(|| self.described_ends.clone())
    }

    /// The ends of a window in a request that works.
    fn given_ends(&self) -> Option<(String, String, &'static str)> {
        let instants: Vec<(&String, &String, &'static str)> = self
            .given
            .iter()
            .filter(|(name, _)| ![AID, DURATION, TIMEZONE, OFFSET, SIZE, SORT].contains(&name.as_str()))
            .filter_map(|(name, value)| Some((name, value, shape_of_instant(value)?)))
            .collect();
        let [(one, first, how), (other, second, same)] = instants.as_slice() else { return None };
        // Of one format, the earlier one is the smaller text.
        let (since, until) = if first <= second { (one, other) } else { (other, one) };
        (how == same).then(|| ((*since).clone(), (*until).clone(), *how))
    }

    /// Entries of the profile, as section, key and value.
    pub(super) fn entries(&self) -> &[[String; 3]] {
        &self.entries
    }

    /// For each fact, whether the responses confirmed it, in words.
    pub(super) fn verdicts(&self, found: &Findings) -> Vec<(bool, String)> {
        let mut verdicts = Vec::new();
        let mut say = |holds: bool, what: String, how: &str| {
            let text = format!("{what}: {how}");
            verdicts.push((holds, text.trim_end_matches([':', ' ']).to_owned()));
        };
        if let Some((header, format)) = &self.auth {
            let holds = found.auth.as_ref() == Some(&(header.clone(), format.clone()));
            let how =
                if holds { "confirmed, the list was returned" } else { "contradicted, the list was not returned" };
            say(holds, format!("{header}: {format}"), how);
        }
        if let Some(aid) = &self.aid {
            let holds = found.aid.as_ref() == Some(aid);
            say(
                holds,
                format!("aid={aid}"),
                if holds { "confirmed, it was probed" } else { "not confirmed, another one was probed" },
            );
        }
        for (name, value) in &self.given {
            let (holds, how) = standing(name, value, found, self);
            say(holds, format!("{name}={value}"), &how);
        }
        for (name, values) in &self.complete {
            let sizes = || values.iter().map(|value| value.parse().ok()).collect::<Option<Vec<u64>>>();
            let (holds, how) = match name.as_str() {
                SIZE if found.page.is_some_and(|page| sizes().is_some_and(|sizes| sizes.contains(&page.max))) => {
                    (true, "confirmed, the largest was returned".to_owned())
                }
                SIZE => (false, "not confirmed".to_owned()),
                name => {
                    let held: Vec<&str> = values
                        .iter()
                        .filter(|value| standing(name, value, found, self).0)
                        .map(String::as_str)
                        .collect();
                    (!held.is_empty(), format!("{} of {} had an effect", held.len(), values.len()))
                }
            };
            say(holds, format!("{name} one of {}", values.join(", ")), &how);
        }
        for (name, most) in &self.most {
            let (holds, how) = match found.page.filter(|_| name == SIZE && found.is_told("page")) {
                Some(page) if page.max == *most => (true, "confirmed".to_owned()),
                Some(page) => (false, format!("contradicted, the largest page has {} mentions", page.max)),
                None => (false, "not confirmed".to_owned()),
            };
            say(holds, format!("{name} at most {most}"), &how);
        }
        for (name, least) in &self.least {
            say(true, format!("{name} at least {least}"), "taken as given");
        }
        let fixed = [AID, DURATION, TIMEZONE, OFFSET, SIZE, SORT];
        for name in self.described.iter().filter(|name| !fixed.contains(&name.as_str())) {
            let (holds, how) = standing(name, "", found, self);
            say(holds, format!("the parameter {name}"), &how);
        }
        for what in &self.unused {
            say(false, what.clone(), "");
        }
        for [section, key, value] in &self.entries {
            say(true, format!("{section}.{key} = {value}"), "taken as given, marked as documented");
        }
        verdicts
    }
}

/// Outcome of a value of a parameter.
fn standing(name: &str, value: &str, found: &Findings, facts: &Facts) -> (bool, String) {
    let yes = |how: &str| (true, format!("confirmed, {how}"));
    let no = |how: &str| (false, format!("not confirmed, {how}"));
    let window = &found.window;
    let of_unit = |template: &String| is_of(value, template);
    let in_example = facts.example.iter().any(|(given, _)| given == name);
    let of = |requests: &BTreeMap<String, usize>| requests.get(name).copied().unwrap_or_default();
    // A response of a recording may be that to another request.
    let (sent, answered) = (of(&found.sent).max(of(&found.answered)), of(&found.answered));
    match name {
        DURATION if window.names.iter().any(|(known, _)| known == value) => yes("its window was returned"),
        DURATION if window.units.iter().any(|(_, template)| of_unit(template)) => {
            yes("windows of this form were returned")
        }
        DURATION if window.with.iter().any(|(known, _)| known == name) => yes("it is sent with the ends of a window"),
        SORT if found.sorts.iter().any(|sort| sort.value == value) => yes("mentions came in its order"),
        DURATION | SORT if sent == 0 => no("it was not sent"),
        DURATION | SORT => no("no effect was seen"),
        SIZE => match (found.page, value.parse::<u64>()) {
            (Some(page), Ok(size)) if size <= page.max => yes("pages of this size were returned"),
            _ => no("no page of this size was seen"),
        },
        OFFSET if found.offset.is_some() => yes("another page came for another number"),
        OFFSET if found.no_offset.is_some() => no("no effect was seen"),
        OFFSET | TIMEZONE => (true, "taken".to_owned()),
        _ => match (&found.asked, &window.absolute) {
            (Some(MentionsParameter::Flag(flag, _)), _) if flag == name => yes("mentions are returned with it only"),
            (_, Some(absolute)) if matches!(&absolute.form, Form::Separate(since, until) if name == since || name == until) => {
                yes("it is an end of the window")
            }
            _ if found.cursor.as_ref().is_some_and(|(cursor, _)| cursor == name) => yes("it names the next page"),
            _ if found.filters.iter().any(|(parameter, _)| parameter == name) => yes("it filters mentions"),
            _ if found.with.iter().any(|(known, _)| known == name) => yes("it is sent with each search"),
            _ if found.ends.iter().any(|known| known == name) => yes("each search needs it"),
            _ if window.working.iter().any(|known| known == name) => {
                yes("it had an effect as an end of a window; [window] says why it is not used")
            }
            _ if sent == 0 => no("it was not sent"),
            // Among others, it may have had any effect.
            _ if in_example && answered <= 1 => {
                no("its effect was not tested: no request with it but the example was answered")
            }
            _ if answered == 0 => no("no request with it was answered"),
            _ => no("no effect was seen, so it is not sent"),
        },
    }
}

/// A request as users write it.
struct Request {
    url: Url,
    headers: Vec<Pair>,
}

impl Request {
    fn read(text: &str) -> Result<Self> {
        let bad = |what: String| {
            Error::new(ErrorKind::Config, what)
                .advice("give a curl command, a URL, or a HAR file with a search that works")
        };
        let url = |text: &str| Url::parse(text).map_err(|error| bad(format!("invalid URL in the example: {error}")));
        if text.starts_with('{') {
            return Self::of_har(text).ok_or_else(|| bad("the HAR file has no request to /search".to_owned()));
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(Self { url: url(text)?, headers: Vec::new() });
        }
        let words = shell_words::split(text).map_err(|error| bad(format!("the example is not a command: {error}")))?;
        let mut words = words.into_iter();
        if words.next().is_none_or(|first| !first.ends_with("curl")) {
            return Err(bad("the example is neither a curl command nor a URL".to_owned()));
        }
        let (mut address, mut headers, mut data, mut get) = (None, Vec::new(), Vec::new(), false);
        while let Some(word) = words.next() {
            // `-Hx` and `--header=x` are short for two words.
            let (option, joined) = match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option.to_owned(), Some(value.to_owned())),
                _ if word.starts_with('-')
                    && !word.starts_with("--")
                    && word.len() > 2
                    && "HudXoAem".contains(&word[1..2]) =>
                {
                    (word[..2].to_owned(), Some(word[2..].to_owned()))
                }
                _ => (word, None),
            };
            let mut value = || joined.clone().or_else(|| words.next()).unwrap_or_default();
            match option.as_str() {
                "-H" | "--header" => {
                    let header = value();
                    headers.extend(
                        header.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())),
                    );
                }
                "-u" | "--user" => {
                    let user = value();
                    let key = user.strip_suffix(':').unwrap_or(&user).to_owned();
                    headers.push(("Authorization".to_owned(), format!("{USER} {key}")));
                }
                "-d" | "--data" | "--data-raw" | "--data-urlencode" | "--data-ascii" | "--data-binary" => {
                    data.push((option.clone(), value()))
                }
                "-G" | "--get" => get = true,
                "--url" => address = Some(value()),
                "-X" | "--request" | "-o" | "--output" | "-A" | "--user-agent" | "-e" | "--referer" | "-m"
                | "--max-time" | "--connect-timeout" | "-b" | "--cookie" | "-w" | "--write-out" | "--retry" => {
                    drop(value())
                }
                option if option.starts_with('-') => {}
                _ => address = Some(option),
            }
        }
        let mut address = url(&address.ok_or_else(|| bad("the curl command has no URL".to_owned()))?)?;
        if get {
            let mut pairs = address.query_pairs_mut();
            for (option, text) in data {
                match (option.as_str(), text.split_once('=')) {
                    ("--data-urlencode", Some((name, value))) => {
                        pairs.append_pair(name, value);
                    }
                    _ => {
                        pairs.extend_pairs(url::form_urlencoded::parse(text.as_bytes()));
                    }
                }
            }
        }
        Ok(Self { url: address, headers })
    }

    /// The last search of a HAR file.
    fn of_har(text: &str) -> Option<Self> {
        let har: Value = serde_json::from_str(text).ok()?;
        let entries = har.pointer("/log/entries")?.as_array()?;
        let mut requests = entries.iter().filter_map(|entry| {
            let request = entry.get("request")?;
            let url = Url::parse(request.get("url")?.as_str()?).ok()?;
            let headers = request.get("headers").and_then(Value::as_array).into_iter().flatten();
            let pair = |header: &Value| {
                let text = |name: &str| header.get(name).and_then(Value::as_str).map(str::to_owned);
                Some((text("name")?, text("value")?))
            };
            Some(Self { headers: headers.filter_map(pair).collect(), url })
        });
        requests.rfind(|request| request.url.path().ends_with("/search"))
    }
}

/// Stands for the scheme of `curl -u`.
const USER: &str = "curl-user";

/// The form of the key in a header, with `{key}` or `{base64}`, and the key itself if it is not the known one. `None` for a
/// header that has no key.
fn form_of(name: &str, value: &str, key: Option<&Secret>) -> Option<(String, Option<String>)> {
    let known = |text: &str| key.is_some_and(|key| key.is_in(text));
    let placeholder = |text: &str| {
        let text = text.trim_matches(['"', '\'']);
        let capitals = text.contains("KEY") || text.contains("TOKEN") || text.contains("SECRET");
        text.starts_with(['$', '<', '{', '[', '…']) || text.contains("...") || (capitals && text.to_uppercase() == text)
    };
    let other = |text: &str| (!known(text) && !placeholder(text)).then(|| text.trim_matches(['"', '\'']).to_owned());
    if let Some(user) = value.strip_prefix(USER) {
        return Some(("Basic {base64}".to_owned(), other(user.trim())));
    }
    let words = plain(name);
    let named = words == "authorization"
        || ["apikey", "token", "auth", "accesskey", "key"].iter().any(|end| words.ends_with(end));
    if !(named || known(value)) {
        return None;
    }
    // The key is the last word, or what follows an equals sign in it.
    let open = value.ends_with('>').then(|| value.rfind('<')).flatten();
    let last = open.or_else(|| value.rfind(' ').map(|at| at + 1)).unwrap_or_default();
    let last = value[last..].find('=').filter(|at| value[last..].len() > at + 3).map_or(last, |at| last + at + 1);
    let (scheme, secret) = value.split_at(last);
    let quote = secret.starts_with('"') && secret.ends_with('"') && secret.len() > 1;
    let format = match () {
        () if scheme.trim_end() == "Basic" => "Basic {base64}".to_owned(),
        () if placeholder(secret) && !secret.starts_with('"') => format!("{scheme}{}", key_format(secret)),
        () if quote => format!("{scheme}\"{{key}}\""),
        () => format!("{scheme}{{key}}"),
    };
    if scheme.trim_end() == "Basic" {
        // What the encoded text holds is not needed: the key itself is.
        return Some((format, None));
    }
    Some((format, other(secret)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    fn facts(example: &str, key: Option<&str>) -> (Facts, Option<String>) {
        let mut facts = Facts::default();
        let key = key.map(|key| Secret::new(key).expect("a key"));
        let other = facts.example(example, key.as_ref()).expect("an example");
        let shown = other.map(|other| other.redact("hk_other").replace("hk_other", "not the key"));
        (facts, shown)
    }

    #[test]
    fn an_example_shows_the_form_of_the_key_and_never_the_key() {
        let cases = [
            ("Authorization: Token token=hk_1234567", "Authorization: Token token={key}"),
            ("Authorization: Token token=\\\"hk_1234567\\\"", "Authorization: Token token=\"{key}\""),
            ("Authorization: Bearer $SAVEDSEARCH_API_KEY", "Authorization: Bearer {key}"),
            ("X-Auth-Token: <your key>", "X-Auth-Token: {key}"),
            ("Authorization: hk_1234567", "Authorization: {key}"),
        ];
        each(cases, |(header, form)| {
            let text = format!(
                "curl -sS -H \"{header}\" -H 'Accept: application/json' 'https://x.test/v4/search?aid=7&duration=30d'"
            );
            for key in [Some("hk_1234567"), None] {
                let (facts, _) = facts(&text, key);
                assert_eq!(
                    facts.auth.as_ref().map(|(name, format)| format!("{name}: {format}")).as_deref(),
                    Some(form),
                    "{text}"
                );
                assert!(!format!("{facts:?}").contains("hk_1234567"), "{facts:?}");
            }
        });
        let (_, other) = facts("curl -H 'X-Api-Key: hk_other' https://x.test/v4/list", None);
        assert_eq!(other.as_deref(), Some("<redacted>"));
    }

    #[test]
    fn an_example_shows_parameters_and_their_values() {
        let (facts, _) = facts(
            "curl -G https://x.test/v4/search -d aid=7 -d duration=custom --data-urlencode 'since=2026-11-01' \\\n -d until=2026-11-08 -d withData=true -d dataSize=25",
            None,
        );
        assert_eq!((facts.aid.as_deref(), facts.values(DURATION)), (Some("7"), vec!["custom".to_owned()]));
        assert_eq!(facts.ends(), Some(("since".to_owned(), "until".to_owned(), "date")));
        assert_eq!(facts.others(), [("withData".to_owned(), "true".to_owned())]);
        let har = r#"{"log": {"entries": [{"request": {"url": "https://x.test/v4/search?aid=9&sortBy=new", "headers": [{"name": "X-Api-Key", "value": "k-123456"}]}}]}}"#;
        let mut facts = Facts::default();
        facts.example(har, None).expect("an example");
        assert_eq!((facts.aid.as_deref(), facts.values(SORT)), (Some("9"), vec!["new".to_owned()]));
        for bad in ["wget https://x.test", "curl -H 'a: b'", "{}", "curl 'https://x.test/v4/search?api_key=secret'"] {
            let error = Facts::default().example(bad, None).expect_err(bad);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn an_effect_that_was_not_tested_is_not_denied() {
        let (facts, _) = facts("https://x.test/v4/search?aid=7&from=2026-11-01&to=2026-11-08&mode=full&lang=de", None);
        let mut found = Findings { ends: vec!["from".to_owned()], ..Findings::default() };
        found.window.working = vec!["to".to_owned()];
        let names = ["from", "to", "mode", "lang"];
        let counts = |numbers: [usize; 4]| names.map(str::to_owned).into_iter().zip(numbers).collect();
        (found.sent, found.answered) = (counts([2, 2, 2, 3]), counts([1, 1, 1, 3]));
        let cases = [
            ("from", true, "each search needs it"),
            ("to", true, "it had an effect as an end of a window"),
            ("mode", false, "its effect was not tested"),
            ("lang", false, "no effect was seen"),
            ("size", false, "it was not sent"),
        ];
        each(cases, |(name, holds, how)| {
            let (held, text) = standing(name, "", &found, &facts);
            assert!(held == holds && text.contains(how), "{text}");
        });
    }

    #[test]
    fn an_example_without_an_aid_has_other_names() {
        let url = "https://x.test/v4/search?search_id=7&period=30d&per_page=50&page=1&lang=de";
        let mut facts = facts(&format!("curl '{url}'"), None).0;
        facts.fact("timezone.parameter = \"zone_name\"").expect("a fact");
        let names = facts.names();
        let own = |usual: &str| names.iter().find(|(name, _)| name == usual).map(|(_, own)| own.as_str());
        assert_eq!(
            [AID, DURATION, SIZE, OFFSET, TIMEZONE, SORT].map(own),
            [Some("search_id"), Some("period"), Some("per_page"), Some("page"), Some("zone_name"), None]
        );
        let facts = facts.with_usual_names(&names);
        assert_eq!((facts.aid.as_deref(), facts.values(DURATION)), (Some("7"), vec!["30d".to_owned()]));
        assert_eq!(facts.others(), [("lang".to_owned(), "de".to_owned())]);
        let facts = self::facts("curl 'https://x.test/v4/search?filter[aid]=7&last=30d&topic=9'", None).0;
        let names = facts.names();
        assert_eq!(names, [(AID.to_owned(), "filter[aid]".to_owned()), (DURATION.to_owned(), "last".to_owned())]);
        assert_eq!(facts.name_of_aid(&["9".to_owned()]).map(String::as_str), Some("topic"));
        assert_eq!(facts.name_of_aid(&["9".to_owned(), "7".to_owned()]), None);
    }

    #[test]
    fn an_example_with_an_aid_may_have_other_names() {
        // The period, the zone, the place of a page, its size and the sort order.
        let cases = [
            (
                "startDate=2026-11-01T00:00:00.000%2B0000&endDate=2026-11-20T00:00:00.000%2B0000&pageSize=50&page=0&orderBy=date\
                 &orderDirection=desc&timezone=UTC",
                [None, None, Some("page"), None, Some("orderBy")],
            ),
            (
                "start=2026-11-01T00:00:00&end=2026-11-20T00:00:00&tz=UTC&page=1&page_size=50&sort_by=date&sort_order=desc",
                [None, Some("tz"), Some("page"), None, Some("sort_by")],
            ),
            (
                "period[begin]=2026-11-01T00:00:00Z&period[end]=2026-11-20T00:00:00Z&from=0&size=50&sort=date:desc",
                [None, None, Some("from"), None, Some("sort")],
            ),
            (
                "from=2026-11-01&to=2026-11-20&skip=0&size=50&orderBy=publishedDesc",
                [None, None, Some("skip"), None, Some("orderBy")],
            ),
            ("period=30d&lang=de", [Some("period"), None, None, None, None]),
            // Other parameters of a service that has the usual names, and values of another kind.
            ("dataFrom=0&page=2&order=desc&last=5&zone=north&sortBy=new&sort=reach", [None; 5]),
        ];
        each(cases, |(parameters, expected)| {
            let facts = facts(&format!("https://x.test/v4/search?aid=7&{parameters}"), None).0;
            let names = facts.names();
            let own = |usual: &str| names.iter().find(|(name, _)| name == usual).map(|(_, own)| own.as_str());
            assert_eq!([DURATION, TIMEZONE, OFFSET, SIZE, SORT].map(own), expected, "{parameters}");
            assert_eq!(own(AID), None, "{parameters}");
        });
    }

    #[test]
    fn names_with_brackets_are_recognized() {
        let all = ["filter[search_id]", "filter[period]", "page[size]", "page[number]", "sort", "filter[lang]"];
        let names = names_among(&all.map(str::to_owned));
        let own = |usual: &str| names.iter().find(|(name, _)| name == usual).map(|(_, own)| own.as_str());
        assert_eq!(
            [AID, DURATION, SIZE, OFFSET, TIMEZONE, SORT].map(own),
            [Some(all[0]), Some(all[1]), Some(all[2]), Some(all[3]), None, Some(all[4])]
        );
        let names = names_among(&["tema", "periodo", "limite", "country"].map(str::to_owned));
        let expected = [(DURATION, "periodo"), (SIZE, "limite")].map(|(usual, own)| (usual.to_owned(), own.to_owned()));
        assert_eq!(names, expected);
    }

    #[test]
    fn a_fact_says_one_thing() {
        let mut facts = Facts::default();
        for fact in
            ["dataSize one of 100, 10, 25", "dataFrom at most 1000", "withData = true", "total.trust = \"absent\""]
        {
            facts.fact(fact).expect(fact);
        }
        assert_eq!((facts.sizes(), facts.most(OFFSET)), (vec![10, 25, 100], Some(1_000)));
        assert_eq!(facts.others(), [("withData".to_owned(), "true".to_owned())]);
        assert_eq!(facts.entries(), [["total".to_owned(), "trust".to_owned(), "\"absent\"".to_owned()]]);
        for bad in ["dataSize", "page.max = fifty", "dataSize at most many"] {
            assert!(Facts::default().fact(bad).is_err(), "{bad}");
        }
    }
}
