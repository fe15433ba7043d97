//! Evidence in a response that it is not everything: failures and partial results that it reports outside its records, and signs
//! that a list continues on another page.
//!
//! A service has its own names for these, so they are recognized by the words of a name together with the value: `timedOut: true`,
//! `_shards: {total: 5, failed: 2}`, `status: "partial"`, `coverage: 0.6`, `code: 50001`. Words that are also said of whole
//! results, such as `limited`, `stale` or `approximate`, are none of them. A field that the profile declares in `[complete]` is
//! judged by what the profile says about it, and by that alone.
//!
//! The name of the object around a member says what the member is about ([`About`]): `user: {status: "pending"}` is no state of the
//! response, and `users: {total: 300}` no number of its entries. Objects that the profile reads from are about the response.

mod failures;
mod lengths;
mod subject;

use std::borrow::Cow;

use self::failures::{may_report_failure, reports_failure};
use self::lengths::length;
use self::subject::{About, is_of_parts};
use super::accuracy::{doubts_total, names_a_number};
use super::estimate::calls_estimate;
use super::json::{Json, Raw};
use crate::error::notice::words;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Pointer, TableSpec};

/// Objects within objects that are examined.
const DEPTH: usize = 4;
/// Bytes of an undeclared object that is examined.
const LONGEST: usize = 256 << 10;
/// Characters of a value that an error shows.
const SHOWN: usize = 120;

/// A member of an object outside the records that no column takes.
pub(super) type Member<'t> = (Cow<'t, str>, Raw<'t>);

/// Evidence of a response about itself.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Set for responses whose sections may continue on another page.
    list: bool,
    /// Members of the response that are errors by the profile, and examined elsewhere if they are objects.
    errors: Vec<String>,
    /// Place and value of the first member that says that the response is incomplete.
    incomplete: Option<(String, String)>,
    /// Place and value of the first member that may say so.
    doubtful: Option<(String, String)>,
    /// Members beside the sections of a list that say how long it is.
    lengths: Vec<ListLength>,
    /// Members that call a count an estimate.
    estimates: Vec<Estimate>,
}

/// A member that calls a count an estimate.
#[derive(Debug)]
struct Estimate {
    /// Names of the objects around it.
    within: Vec<String>,
    /// The member with its value.
    said: String,
    /// Set if it is said of totals, wherever they stand, rather than of the counts beside it.
    of_totals: bool,
    /// Set if its name mentions a number of mentions.
    of_number: bool,
}

/// A member beside the sections of a list that says how long it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListLength {
    /// Names of the objects around it.
    within: Vec<String>,
    name: String,
    value: String,
    says: Says,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// The number of entries of the sections that it stands beside, in all or on this page.
    Entries(u64),
    /// The number of entries that are shown, if as many came, and that of all.
    Shown(u64, u64),
    /// The number of pages.
    Pages(u64),
    /// The number of the last page.
    LastPage(u64),
    /// There is another page.
    More,
    /// There is none.
    NoMore,
    /// The largest number of entries of a page: if as many came, there is another page, unless something says that all entries
    /// came.
    Size(u64),
    /// A place in the list, which was not asked for: there is another page, unless something says that all entries came. Some
    /// services name the place behind the last entry, too.
    Place,
}

impl Says {
    fn is_number(self) -> bool {
        matches!(self, Self::Entries(_) | Self::Shown(..) | Self::Pages(_) | Self::LastPage(_) | Self::Size(_))
    }
}

/// Rest of a list, as the pages that were read describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// Nothing.
    Unknown,
    /// There is none.
    None,
    /// There is more: the reason.
    More(String),
}

impl Evidence {
    pub(super) fn new(list: bool, errors: Vec<String>) -> Self {
        Self { list, errors, ..Self::default() }
    }

    /// Examines the members of an object. `within`: the names of the objects around it, and its own.
    pub(super) fn object(&mut self, within: &mut Vec<String>, members: &[Member<'_>]) -> Result<()> {
        // The profile reads from the objects around it.
        self.examine(within, within.len(), members)
    }

    /// Examines the members of an object. `declared`: how many of the objects around them the profile reads from.
    fn examine(&mut self, within: &mut Vec<String>, declared: usize, members: &[Member<'_>]) -> Result<()> {
        let about = About::of(&within[declared..]);
        for (name, raw) in members {
            let words = words(name);
            let stated = within.is_empty() && self.errors.iter().any(|error| error == name);
            let other = (stated && raw.first() == b'{') || is_of_text(&words);
            if self.doubtful.is_none() && !other && may_report_failure(&words, within, about, *raw) {
                self.doubtful = Some((path(within, name), shown(*raw)));
            }
            if self.incomplete.is_none() && !other && reports_failure(&words, within, about, *raw, members) {
                self.incomplete = Some((path(within, name), shown(*raw)));
            }
            let of_totals = doubts_total(&words, *raw);
            if of_totals || calls_estimate(&words, *raw) {
                let said = format!("`{}` is {}", path(within, name), shown(*raw));
                let of_number = names_a_number(&words);
                self.estimates.push(Estimate { within: within.clone(), said, of_totals, of_number });
            }
            if (self.list || !is_number(*raw))
                && let Some(says) = length(&words, within, *raw, members)
                && (self.list || !says.is_number())
            {
                let (within, name) = (within.clone(), name.clone().into_owned());
                self.lengths.push(ListLength { within, name, value: shown(*raw), says });
            }
            if raw.first() == b'{' && within.len() < DEPTH && raw.text.len() <= LONGEST && !stated {
                let inner = members_of(*raw)?;
                within.push(name.clone().into_owned());
                self.examine(within, declared, &inner)?;
                within.pop();
            }
            if raw.first() == b'[' && is_of_parts(&words) && within.len() < DEPTH && raw.text.len() <= LONGEST {
                let (mut json, mut first, mut at) = (Json::new(raw.text), true, 0);
                json.enter();
                within.push(name.clone().into_owned());
                while json.item(&mut first)? {
                    let part = json.value()?;
                    if part.first() == b'{' {
                        within.push(at.to_string());
                        self.examine(within, declared, &members_of(part)?)?;
                        within.pop();
                    }
                    at += 1;
                }
                within.pop();
            }
        }
        Ok(())
    }

    /// # Errors
    /// [`ErrorKind::Incomplete`] if the response says that it is incomplete.
    pub(super) fn check(&self) -> Result<()> {
        match &self.incomplete {
            None => Ok(()),
            Some((at, value)) => Err(incomplete(at, value)),
        }
    }

    /// Describes the member that may say that the response is incomplete, if there is one.
    pub(super) fn doubt(&self) -> Option<String> {
        let (at, value) = self.doubtful.as_ref().filter(|_| self.incomplete.is_none())?;
        Some(format!(
            "`{at}` of the response is {value}, which may say that it is not complete: declare what it means in [complete] fields of \
             the profile"
        ))
    }

    /// Place and value of the member that says that more mentions follow, if there is one. Numbers are no evidence here: they may
    /// be those of the account, or of other mentions.
    pub(super) fn more(&self) -> Option<String> {
        let more = |says: &Says| matches!(says, Says::More | Says::Pages(2..) | Says::LastPage(2..));
        let says = self.lengths.iter().find(|length| more(&length.says))?;
        Some(format!("`{}` is {}", path(&says.within, &says.name), says.value))
    }

    /// The member that does not call the totals at these places exact, with its value: beside one of them, in an object around
    /// them, or by its name in another object about the response.
    pub(super) fn inexact(&self, totals: &[&Pointer]) -> Option<String> {
        let parents = || totals.iter().filter_map(|total| Some(total.steps().split_last()?.1));
        let doubts = |estimate: &&Estimate| {
            let Estimate { within, of_totals, of_number, .. } = estimate;
            let around = parents().any(|parent| parent.starts_with(within));
            match of_totals {
                true => around || (*of_number && About::of(within) == About::Response),
                false => parents().any(|parent| parent == within.as_slice()),
            }
        };
        self.estimates.iter().find(doubts).map(|estimate| estimate.said.clone())
    }

    /// Number of all entries of a list, if the response states it.
    pub(super) fn total(&self) -> Option<u64> {
        let total = |length: &ListLength| match length.says {
            Says::Entries(number) if is_of_all(&length.within, &length.name) => Some(number),
            _ => None,
        };
        let of_list = self.lengths.iter().filter(|length| length.within.iter().all(|name| is_of_lists(name)));
        of_list.chain(&self.lengths).find_map(total)
    }

    /// Judges the rest of a list of which these numbers of entries were read, by section. `paged`: the entries of the last page, the
    /// number of pages that were read, and that of the first one, if the list is read in pages.
    pub(super) fn rest(&self, table: &TableSpec, entries: &[u64], paged: Option<(&[u64], (u64, u64))>) -> Rest {
        let (read_pages, first) = paged.map_or((1, 1), |(_, pages)| pages);
        // `whole`: all entries came, rather than all of this page.
        let (mut rest, mut whole, mut place) = (Rest::Unknown, false, None);
        for ListLength { within, name, value, says } in &self.lengths {
            let at = path(within, name);
            let number = says.is_number() || value.starts_with(|first: char| first.is_ascii_digit());
            let links = within.last().is_some_and(|name| words(name) == ["links"]);
            // An object about something unknown may say that there is more, but not that there is none.
            let counts = number || (*says == Says::NoMore && !links) || About::of(within) == About::Other;
            if counts && counts_others(table, within) {
                continue;
            }
            match says {
                Says::More => return Rest::More(format!("`{at}` is {value}")),
                // `nextRun: null` may be about something else.
                Says::NoMore => (rest, whole) = (Rest::None, whole || value != "null"),
                // If the pages are declared, each may name its place.
                Says::Place | Says::Size(_) if paged.is_some() => {}
                Says::Size(size) => {
                    let full = read_beside(table, entries, within) == *size || entries.contains(size);
                    if full && *size > 0 {
                        place = place.or_else(|| Some(format!("`{at}` is {value}, and as many entries were received")));
                    }
                }
                Says::Place => place = place.or_else(|| Some(format!("`{at}` is {value}"))),
                Says::Pages(pages) | Says::LastPage(pages) => {
                    let before = if matches!(says, Says::LastPage(_)) { first.saturating_sub(1) } else { 0 };
                    let zero_based = matches!(says, Says::LastPage(_)) && first == 0;
                    let pages = pages.saturating_sub(before) + u64::from(zero_based);
                    if pages > read_pages {
                        return Rest::More(format!("`{at}` is {value}"));
                    }
                    (rest, whole) = (Rest::None, true);
                }
                Says::Shown(shown, all) => {
                    let read = read_beside(table, entries, within);
                    let last = paged.map_or(read, |(last, _)| read_beside(table, last, within));
                    if *all > read && (*shown == read || *shown == last) {
                        return Rest::More(format!("`{at}` is {value}"));
                    }
                }
                // The number of entries of a page says nothing about those after it.
                Says::Entries(number)
                    if !is_of_all(within, name)
                        && paged.is_some_and(|(last, _)| read_beside(table, last, within) == *number) => {}
                Says::Entries(total) => {
                    let read = read_beside(table, entries, within);
                    if *total > read {
                        return Rest::More(format!("`{at}` is {value}, and {read} entries were received"));
                    }
                    rest = Rest::None;
                    whole |= is_of_all(within, name);
                }
            }
        }
        place.filter(|_| !whole).map_or(rest, Rest::More)
    }
}

/// True for an object about something else than the entries of a list: it holds no section, and is not named after pages or results,
/// such as `users: {total: 300}`.
fn counts_others(table: &TableSpec, within: &[String]) -> bool {
    let holds =
        |length: &usize| table.sections.iter().any(|section| section.at.steps().starts_with(&within[..*length]));
    let around = (0..=within.len()).rev().find(holds).unwrap_or_default();
    let is_section = |name: &String| table.sections.iter().any(|section| section.at.steps().last() == Some(name));
    !within[around..].iter().all(|name| is_of_lists(name) || is_section(name))
}

/// True for the name of an object about the pages or the entries of a list.
fn is_of_lists(name: &str) -> bool {
    const LISTS: [&str; 53] = [
        "all",
        "body",
        "collection",
        "content",
        "count",
        "counts",
        "cursor",
        "data",
        "elements",
        "embedded",
        "entries",
        "envelope",
        "feed",
        "found",
        "header",
        "headers",
        "hits",
        "hydra",
        "info",
        "information",
        "item",
        "items",
        "list",
        "listing",
        "lists",
        "matches",
        "meta",
        "metadata",
        "number",
        "objects",
        "odata",
        "output",
        "page",
        "pager",
        "pages",
        "paginator",
        "pagination",
        "paging",
        "payload",
        "range",
        "records",
        "response",
        "result",
        "results",
        "rows",
        "saved",
        "search",
        "searches",
        "set",
        "size",
        "summary",
        "total",
        "totals",
    ];
    words(name).iter().all(|word| LISTS.contains(&word.as_str()))
}

/// Error for a response that says that it is incomplete.
pub(super) fn incomplete(at: &str, value: &str) -> Error {
    Error::new(ErrorKind::Incomplete, format!("the response says that it is incomplete: `{at}` is {value}"))
        .advice(format!(
            "try again later; if this value means a complete response, declare it in the profile: [complete] fields = \
             [{{ at = \"{at}\", values = […] }}]"
        ))
        .passing()
}

/// Entries of the sections that an object stands beside: those in the same object, else all in the nearest object around it.
fn read_beside(table: &TableSpec, entries: &[u64], within: &[String]) -> u64 {
    let sum = |of: &dyn Fn(&[String]) -> bool| {
        let sections = table.sections.iter().zip(entries).filter(|(section, _)| of(section.at.steps()));
        let (count, sum) = sections.fold((0, 0_u64), |(count, sum), (_, entries)| (count + 1, sum + entries));
        (count > 0).then_some(sum)
    };
    let beside = sum(&|steps| steps.split_last().is_some_and(|(_, parent)| parent == within));
    let around = || (0..=within.len()).rev().find_map(|length| sum(&|steps| steps.starts_with(&within[..length])));
    beside.or_else(around).unwrap_or_default()
}

/// True for a name that says something about a text: `textTruncated`, `partialTitle`.
fn is_of_text(words: &[String]) -> bool {
    const TEXTS: [&str; 7] = ["text", "title", "content", "snippet", "summary", "body", "description"];
    words.len() > 1 && words[0] != "error" && words.iter().any(|word| TEXTS.contains(&word.as_str()))
}

/// True for a number that counts all entries, whatever page it is on: `total`, `totalCount`, `total: {value: …}`.
fn is_of_all(within: &[String], name: &str) -> bool {
    const OF_ALL: [&str; 10] =
        ["total", "totals", "of", "found", "matches", "all", "available", "odata", "nb", "range"];
    within
        .last()
        .map(String::as_str)
        .into_iter()
        .chain([name])
        .flat_map(words)
        .any(|word| OF_ALL.contains(&word.as_str()))
}

/// The number of a count: an integer, in whatever notation, with or without separators of thousands.
pub(super) fn count_of(raw: Raw<'_>) -> Option<u64> {
    super::value::integer_in(raw).ok()?.and_then(|number| u64::try_from(number).ok())
}

/// True for a number, also in quotes.
fn is_number(raw: Raw<'_>) -> bool {
    bare(raw).parse::<f64>().is_ok()
}

/// A value without its quotes.
fn bare(raw: Raw<'_>) -> &str {
    if raw.first() == b'"' { raw.inner() } else { raw.text }
}

/// True if an array has an item.
fn has_items(raw: Raw<'_>) -> bool {
    !raw.text[1..raw.text.len() - 1].trim().is_empty()
}

/// True if a value says something: not null, zero, false, empty, or that all is well.
fn tells(raw: Raw<'_>, depth: usize) -> bool {
    match raw.first() {
        b'{' => {
            members_of(raw).is_ok_and(|members| depth < DEPTH && members.iter().any(|(_, raw)| tells(*raw, depth + 1)))
        }
        b'[' => has_items(raw),
        b'"' => !is_none(&raw.inner().to_lowercase()),
        _ => !matches!(raw.text, "null" | "false" | "0" | "200"),
    }
}

/// True for a word that means that there is no error.
fn is_none(word: &str) -> bool {
    ["", "0", "200", "none", "null", "ok", "okay", "success", "successful", "false", "no error", "no_error"]
        .contains(&word)
}

/// The members of an object.
fn members_of<'t>(raw: Raw<'t>) -> Result<Vec<Member<'t>>> {
    let (mut json, mut first, mut members) = (Json::new(raw.text), true, Vec::new());
    json.enter();
    while let Some(name) = json.member(&mut first)? {
        members.push((name.unquoted()?, json.value()?));
    }
    Ok(members)
}

/// The JSON pointer of a member.
fn path(within: &[String], name: &str) -> String {
    Pointer::of(within.iter().map(String::as_str).chain([name])).to_string()
}

/// The beginning of a value.
pub(super) fn shown(raw: Raw<'_>) -> String {
    let text: String = raw.text.chars().take(SHOWN).collect();
    if text.len() < raw.text.len() { text + "…" } else { text }
}

#[cfg(test)]
mod tests;
