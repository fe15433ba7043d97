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
        matches!(self, Self::Entries(_) | Self::Pages(_) | Self::LastPage(_) | Self::Size(_))
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
mod tests {
    use super::*;
    use crate::cases::each;
    use crate::profile::Profile;

    fn of(text: &str, list: bool) -> Evidence {
        let mut evidence = Evidence::new(list, vec!["error".to_owned()]);
        let members = members_of(Raw::of(text)).expect("an object");
        evidence.object(&mut Vec::new(), &members).expect("valid members");
        evidence
    }

    #[test]
    fn failures_that_a_response_reports_are_found_whatever_they_are_called() {
        let cases = [
            r#"{"errors":[{"code":"SHARD_FAILED"}]}"#,
            r#"{"timed_out":true}"#,
            r#"{"window":{"from":"2026-11-20T00:00:00Z","clipped":true}}"#,
            r#"{"timedOut":true}"#,
            r#"{"meta":{"isPartial":true}}"#,
            r#"{"_shards":{"total":5,"failed":2,"successful":3}}"#,
            r#"{"_shards":{"total":5,"successful":3}}"#,
            r#"{"incompleteResults":true}"#,
            r#"{"complete":false}"#,
            r#"{"success":false}"#,
            r#"{"status":"partial"}"#,
            r#"{"status":{"state":"TIMED_OUT"}}"#,
            r#"{"error":"shard 3 is down"}"#,
            r#"{"data":{"errors":{"team":"unavailable"}}}"#,
            r#"{"failedShards":1}"#,
            r#"{"terminated_early":true}"#,
            r#"{"_clusters":{"total":3,"successful":2,"skipped":1}}"#,
            r#"{"status":"PARTIAL_RESULTS"}"#,
            r#"{"state":"PROCESSING"}"#,
            r#"{"isComplete":"false"}"#,
            r#"{"completeness":0.6}"#,
            r#"{"coverage":60}"#,
            r#"{"meta":{"sample_rate":0.1}}"#,
            r#"{"containsSampledData":true}"#,
            r#"{"partialFailures":1}"#,
            r#"{"unavailable_shards":2}"#,
            r#"{"missingSources":["x.com"]}"#,
            r#"{"warnings":["Results may be incomplete: 2 sources did not answer"]}"#,
            r#"{"message":"query timed out"}"#,
            r#"{"code":50001,"msg":"internal error"}"#,
            r#"{"status":500}"#,
            r#"{"meta":{"statusCode":"503"}}"#,
            r#"{"errno":7}"#,
            r#"{"error_code":3}"#,
            r#"{"ret":-1}"#,
            r#"{"status":"fail"}"#,
            r#"{"status":"running"}"#,
            r#"{"meta":{"state":"NOT READY"}}"#,
            r#"{"exception":{"class":"Timeout"}}"#,
            r#"{"fault":{"faultstring":"Rate limit quota violation"}}"#,
            r#"{"meta":{"problems":["a shard did not answer"]}}"#,
            r#"{"quotaExceeded":true}"#,
            r#"{"limit_reached":true}"#,
            r#"{"exhaustive":false}"#,
            r#"{"percentComplete":60}"#,
            r#"{"processing":true}"#,
            r#"{"meta":{"ready":false}}"#,
            r#"{"warnings":["2 of 3 indexes did not answer"]}"#,
            r#"{"failedSources":["x.com"]}"#,
            r#"{"omittedResults":225}"#,
            r#"{"meta":{"sources":[{"name":"x.com","status":"timeout"},{"name":"reddit.com","status":"ok"}]}}"#,
            r#"{"shards":[{"id":1,"ok":false}]}"#,
            r#"{"sources":{"x.com":"timeout"}}"#,
            r#"{"nodes":[{"id":"a","shards":[{"failed":true}]}]}"#,
            r#"{"partial":1}"#,
            r#"{"timed_out":1}"#,
            r#"{"isPartial":"Y"}"#,
            r#"{"timedOut":"yes"}"#,
            r#"{"truncated":"1"}"#,
            r#"{"backfillInProgress":true}"#,
            r#"{"isComplete":"no"}"#,
            r#"{"complete":0}"#,
            r#"{"meta":{"success":"0"}}"#,
            r#"{"resultsComplete":"N"}"#,
            r#"{"complete":0.75}"#,
            r#"{"errors":2}"#,
            r#"{"meta":{"errorCount":3}}"#,
            r#"{"error_count":"1"}"#,
            r#"{"failed":2}"#,
            r#"{"responseMetadata":{"numFailures":1}}"#,
            r#"{"timeouts":1}"#,
            r#"{"error":7}"#,
            r#"{"status":206}"#,
            r#"{"responseStatus":"206 Partial Content"}"#,
            r#"{"meta":{"httpStatusCode":"503 Service Unavailable"}}"#,
            r#"{"nodes":{"total":5,"responded":3}}"#,
            r#"{"sources":{"queried":5,"healthy":3}}"#,
            r#"{"meta":{"sourcesQueried":5,"sourcesResponded":3}}"#,
            r#"{"completion":0.75}"#,
            r#"{"meta":{"coverage":"60%"}}"#,
            r#"{"quality":"degraded"}"#,
            r#"{"unreachableNodes":2}"#,
            r#"{"indexing":{"inProgress":true}}"#,
            r#"{"reindexing":{"status":"running"}}"#,
            r#"{"backfill":{"complete":false}}"#,
            r#"{"sampling":{"enabled":true,"rate":0.5}}"#,
            r#"{"sampling":{"enabled":true}}"#,
            r#"{"hosts":{"total":5,"responded":3}}"#,
            r#"{"warnings":["2 user feeds timed out"]}"#,
            r#"{"sampling":true}"#,
            r#"{"window":{"sampling":0.5}}"#,
            r#"{"sampling":{"percentage":"10%"}}"#,
            r#"{"samplingLevel":"SMALL"}"#,
            r#"{"meta":{"sampling":{"level":"LARGE"}}}"#,
            r#"{"mentions":{"omitted":89}}"#,
            r#"{"warnings":["renew your account","results were truncated"]}"#,
            r#"{"warnings":["Your account reads incomplete results"]}"#,
            r#"{"shard3":{"status":"failed"}}"#,
            r#"{"sources":{"user-posts":{"status":"pending"}}}"#,
            r#"{"lake":{"status":"partial"},"pond":{"truncated":true}}"#,
            r#"{"teamSearchesIncomplete":true}"#,
            r#"{"aggregations":{"complete":false}}"#,
            r#"{"facets":{"complete":false}}"#,
            r#"{"documents":{"status":"failed"}}"#,
            r#"{"articles":{"success":false}}"#,
            r#"{"articles":{"success":"no"}}"#,
            r#"{"provider":{"status":"failed"}}"#,
            r#"{"project":{"truncated":true}}"#,
            r#"{"campaign":{"partial":true}}"#,
            r#"{"user":{"timedOut":"yes","status":"failed"}}"#,
            r#"{"samplingLevel":"SMALL","successRate":100}"#,
            r#"{"samplingLevel":"SMALL","alertsEnabled":false}"#,
            r#"{"samplingRate":0.5}"#,
            r#"{"excludedShards":2}"#,
            r#"{"warnings":[[{"text":"results were truncated"}]]}"#,
            r#"{"warnings":[{"code":"PARTIAL_RESULTS"}]}"#,
            r#"{"meta":{"warnings":[{"code":"PARTIAL_RESULTS","message":"3 of 5 shards failed"}]}}"#,
            r#"{"warnings":["not all searches could be loaded"]}"#,
            r#"{"searchWarning":"something was left out"}"#,
            r#"{"warnings":{"reddit":"could not be reached"}}"#,
            r#"{"teamSavedSearches":null,"teamError":"upstream timeout"}"#,
            r#"{"data":{"teamErrors":["upstream timeout"]}}"#,
            r#"{"errors":{"team":"upstream timeout"}}"#,
            r#"{"errorDescription":"a shard is down"}"#,
            r#"{"pending":true}"#,
            r#"{"mentions":{"running":true}}"#,
            r#"{"unavailable":["reddit"]}"#,
            r#"{"unavailable":"reddit"}"#,
            r#"{"unreachable":2}"#,
            r#"{"omitted":["x.com"]}"#,
            r#"{"mentions":{"cut":true}}"#,
            r#"{"maxReached":true}"#,
            r#"{"overview":{"state":"RUNNING"}}"#,
            r#"{"overview":{"done":false}}"#,
            r#"{"overview":{"inProgress":true}}"#,
            r#"{"overview":{"errorCount":2}}"#,
            r#"{"overview":{"truncated":true}}"#,
        ];
        each(cases, |text| {
            assert!(of(text, false).check().is_err(), "{text}");
        });
    }

    #[test]
    fn large_and_deep_objects_take_little_time() {
        let members =
            |of: &dyn Fn(usize) -> String| format!("{{{}}}", (0..20_000).map(of).collect::<Vec<_>>().join(","));
        let cases = [
            (members(&|at| format!(r#""a{at}":{at}"#)), true),
            (members(&|at| format!(r#""sampling_{at}_rate":1"#)), true),
            (
                members(&|at| format!(r#""a{at}":{at}"#)).replace(r#""a19999":19999"#, r#""samplingLevel":"SMALL""#),
                false,
            ),
            (format!(r#"{{"warnings":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000)), true),
            (format!(r#"{{"warnings":"{}truncated"}}"#, " ".repeat(LONGEST)), true),
        ];
        each(cases, |(text, complete)| {
            let start = std::time::Instant::now();
            assert_eq!(of(&text, false).check().is_ok(), complete, "{text:.60}");
            assert!(start.elapsed().as_secs() < 5, "{text:.60}");
        });
    }

    #[test]
    fn the_states_of_other_things_are_not_those_of_the_response() {
        let cases = [
            r#"{"user":{"status":"pending"},"currentUser":{"errors":2}}"#,
            r#"{"billing":{"status":"failed"},"data":{"export":{"status":"pending","progress":0.4}}}"#,
            r#"{"autoComplete":{"complete":false}}"#,
            r#"{"autoComplete":false,"billingStatus":"failed","profileIncomplete":true}"#,
            r#"{"notices":["Your account profile is incomplete"]}"#,
            r#"{"notices":["this version will be unavailable soon"],"message":"Your user profile is incomplete"}"#,
            r#"{"features":{"partialResults":true},"onboarding":{"complete":0}}"#,
            r#"{"lake":{"status":"pending","ready":false,"completion":0.5}}"#,
            r#"{"webhooks":{"failed":3,"total":5},"surveys":{"total":5,"responded":2}}"#,
            r#"{"user":{"status":"pending"}}"#,
            r#"{"billing":{"status":"failed"}}"#,
            r#"{"export":{"status":"pending"}}"#,
            r#"{"lake":{"status":"queued","ready":"no"}}"#,
            r#"{"warnings":[{"source":"account","message":"Your user profile is incomplete"}]}"#,
        ];
        each(cases, |text| {
            assert!(of(text, false).check().is_ok(), "{text}");
        });
        // The profile reads from this object: its sections are those of a team.
        let mut evidence = Evidence::new(true, Vec::new());
        let members = members_of(Raw::of(r#"{"partial":true}"#)).expect("an object");
        evidence.object(&mut vec!["team".to_owned()], &members).expect("valid members");
        assert!(evidence.check().is_err());
    }

    #[test]
    fn responses_that_report_none_are_complete() {
        let cases = [
            r#"{"errors":[]}"#,
            r#"{"errors":null,"error":""}"#,
            r#"{"errors":{}}"#,
            r#"{"page":{"size":100,"clamped":1}}"#,
            r#"{"timed_out":false,"took":5}"#,
            r#"{"_shards":{"total":5,"failed":0,"successful":5}}"#,
            r#"{"_shards":{"total":5,"skipped":2,"successful":3}}"#,
            r#"{"complete":true,"success":true,"status":"ok"}"#,
            r#"{"search":{"status":"running"},"savedSearch":{"state":"waiting"}}"#,
            r#"{"allowPartialResults":true,"timeout":30,"timeout_ms":"500"}"#,
            r#"{"error":{"code":"x"}}"#,
            r#"{"error":false,"errorCount":0}"#,
            r#"{"warnings":["deprecated"]}"#,
            r#"{"sources":[{"name":"timeout","count":5},"failed",3],"regions":{"eu":"ok"}}"#,
            r#"{"query":"errors","name":"partial"}"#,
            r#"{"stats":{"failed":3}}"#,
            r#"{"textTruncated":true}"#,
            r#"{"incomplete":true,"hasMore":true}"#,
            r#"{"coverage":1,"completeness":100,"progress":1.0,"sampleRate":1}"#,
            r#"{"_clusters":{"total":3,"successful":3,"skipped":0}}"#,
            r#"{"message":"ok","warnings":["parameter x is deprecated"]}"#,
            r#"{"missingSources":[],"search":{"state":"RUNNING"}}"#,
            r#"{"code":0,"errno":0,"status":200,"ret":0,"error_code":"0"}"#,
            r#"{"code":20000,"status":1,"postalCode":50001,"account":{"code":50001}}"#,
            r#"{"partial":0,"timed_out":"no","isPartial":"N","timeout":1,"retries":1,"page":1}"#,
            r#"{"partialMatches":1,"truncatedFields":1,"summary":{"inProgress":1},"counts":{"partial":1}}"#,
            r#"{"account":{"exportInProgress":true},"importInProgress":true}"#,
            r#"{"rateLimitExceeded":true,"failedSources":[],"omittedResults":0,"exception":null,"fault":{},"problems":[],"percentComplete":100}"#,
            r#"{"errors":0,"failed":"0","timeouts":0,"error":200,"meta":{"errorRate":0.5}}"#,
            r#"{"isComplete":"yes","complete":1,"success":"1","completion":1,"quality":"high","stale":true}"#,
            r#"{"counts":{"complete":0},"jobs":{"complete":0,"total":7},"successful":0}"#,
            r#"{"nodes":{"total":5,"responded":5},"sources":{"total":40,"active":3}}"#,
            r#"{"sampling":{"enabled":true,"rate":1},"samplingLevel":"NONE"}"#,
            r#"{"sampling":"off","samplingLevel":"DEFAULT","sampleSize":1000,"sample":50}"#,
            r#"{"samplingLevel":"FULL","window":{"sampling":1},"sampling_rate":"100%"}"#,
            r#"{"sampling":{"enabled":false,"rate":0.5,"method":"random"},"sample":{"type":"news"}}"#,
            r#"{"query":{"excludedSources":["x.com"]},"excludedSources":["x.com"],"indexing":{"inProgress":false}}"#,
            r#"{"status":"200 OK","responseStatus":200,"mentions":{"omitted":0}}"#,
            r#"{"samplingEnabled":false,"samplingRate":0.5}"#,
            r#"{"samplingMode":"auto"}"#,
            r#"{"total":300,"answered":20}"#,
            r#"{"data":{"code":4711},"results":{"code":"50123"}}"#,
            r#"{"warnings":[{"code":"DEPRECATED","link":"https://x.test/partial"}],"warningCount":0}"#,
            r#"{"warnings":["rate limit: 3 of 60 requests left","see ticket 4711"]}"#,
            r#"{"lastError":"timeout","teamError":null,"errorMessage":"","search":{"running":true,"pending":true}}"#,
            r#"{"pending":false,"unavailable":[],"unreachable":0,"cut":false,"fallback":true,"limited":true}"#,
            r#"{"done":false,"overview":{"done":true,"truncated":false,"errorCount":0}}"#,
        ];
        each(cases, |text| {
            assert!(of(text, false).check().is_ok(), "{text}");
        });
    }

    #[test]
    fn what_may_mean_a_part_is_a_doubt() {
        let cases = [
            (r#"{"warnings":["see ticket 4711"]}"#, true),
            (r#"{"meta":{"warning":{"code":"E7"}}}"#, true),
            (r#"{"warningCount":2}"#, true),
            (r#"{"limited":true}"#, true),
            (r#"{"mentions":{"fallback":"eu-2"}}"#, true),
            (r#"{"warnings":[],"warning":null,"warningCount":0}"#, false),
            (r#"{"warnings":["the parameter `x` is deprecated"],"message":"welcome","notices":["hello"]}"#, false),
            (r#"{"limited":false,"cached":true,"search":{"limited":true},"user":{"restricted":true}}"#, false),
        ];
        each(cases, |(text, doubts)| {
            let evidence = of(text, false);
            assert_eq!((evidence.check().is_ok(), evidence.doubt().is_some()), (true, doubts), "{text}");
        });
    }

    #[test]
    fn the_rest_of_a_list_is_told_in_many_words() {
        let table = &Profile::v4().tables.saved_searches;
        let rest = |text: &str| of(text, true).rest(table, &[8, 2, 0], None);
        let cases = [
            r#"{"paging":{"next":"/v4/list?dataFrom=10"}}"#,
            r#"{"data":{"total":30}}"#,
            r#"{"data":{"total":"1,030"}}"#,
            r#"{"totalCount":11}"#,
            r#"{"data":{"hasMore":true}}"#,
            r#"{"meta":{"page":1,"pages":3}}"#,
            r#"{"meta":{"last":false}}"#,
            r#"{"_links":{"next":{"href":"/x"}}}"#,
            r#"{"nextPageToken":"abc"}"#,
            r#"{"@odata.nextLink":"https://x"}"#,
            r#"{"nextOffset":10}"#,
            r#"{"isTruncated":true}"#,
            r#"{"done":false}"#,
            r#"{"hits":{"total":{"value":30,"relation":"eq"}}}"#,
            r#"{"from":1,"to":10,"of":30}"#,
            r#"{"links":[{"rel":"self","href":"/a"},{"rel":"next","href":"/b"}]}"#,
            r#"{"link":[{"relation":"next","url":"/b"}]}"#,
            r#"{"end_of_stream":false}"#,
            r#"{"data":{"after":"t3_x","before":null}}"#,
            r#"{"exceededTransferLimit":true}"#,
            r#"{"search_metadata":{"next_results":"?max_id=1"}}"#,
            r#"{"meta":{"counts":{"savedSearches":30}}}"#,
            r#"{"@odata.count":12}"#,
            r#"{"odata.count":"12"}"#,
            r#"{"hydra:totalItems":12}"#,
            r#"{"opensearch:totalResults":12}"#,
            r#"{"nbHits":12}"#,
            r#"{"itemCount":12}"#,
            r#"{"range":"0-9/12"}"#,
            r#"{"meta":{"contentRange":"items 0-9/12"}}"#,
            r#"{"page":"1/3"}"#,
            r#"{"paging":{"page":"1 of 3"}}"#,
            r#"{"NextMarker":"abc"}"#,
            r#"{"marker":"abc"}"#,
            r#"{"data":{"pageToken":"abc"}}"#,
            r#"{"cursor":"abc"}"#,
            r#"{"cursor":"abc","count":10}"#,
            r#"{"_scroll_id":"abc"}"#,
            r#"{"LastEvaluatedKey":{"aid":{"S":"7"}}}"#,
            r#"{"LastEvaluatedKey":"abc"}"#,
            r#"{"search_after":[1764547200000,"7"]}"#,
            r#"{"savedSearches":{"total":12}}"#,
            r#"{"searchMetadata":{"total":12},"users":{"total":3}}"#,
            r#"{"notifications":{"hasMore":false},"cursor":"abc"}"#,
            r#"{"cursor":"abc","nextRun":null}"#,
            r#"{"lake":{"hasMore":true}}"#,
            r#"{"autoTruncated":true}"#,
            r#"{"paging":{"cursors":{"before":"x","after":"y"}}}"#,
            r#"{"limit":10,"returned":10,"offset":0}"#,
            r#"{"maxItems":10}"#,
            r#"{"paging":{"per_page":"10"}}"#,
            r#"{"data":{"pageSize":10,"count":10}}"#,
        ];
        each(cases, |text| {
            assert!(matches!(rest(text), Rest::More(_)), "{text}: {:?}", rest(text));
        });
        let cases = [
            r#"{"data":{"total":10,"size":10}}"#,
            r#"{"paging":{"next":null}}"#,
            r#"{"hasMore":false,"pages":1,"page":1}"#,
            r#"{"next":""}"#,
            r#"{"done":true}"#,
            r#"{"end_of_stream":true}"#,
            r#"{"data":{"after":""}}"#,
            r#"{"paging":{"hasMore":false,"after":"x"}}"#,
            r#"{"exceededTransferLimit":false}"#,
            r#"{"counts":{"savedSearches":10}}"#,
            r#"{"cursor":"abc","total":10}"#,
            r#"{"paging":{"hasMore":false},"_scroll_id":"abc"}"#,
            r#"{"@odata.count":10,"range":"0-9/10","page":"1/1"}"#,
            r#"{"users":{"total":300},"total":10}"#,
            r#"{"next_cursor":0}"#,
            r#"{"links":{"next":null}}"#,
            r#"{"limit":10,"total":10}"#,
            r#"{"limit":10,"hasMore":false}"#,
            r#"{"paging":{"cursors":{"after":"y"},"hasMore":false}}"#,
        ];
        each(cases, |text| {
            assert_eq!(rest(text), Rest::None, "{text}");
        });
        let cases = [
            r#"{"limit":100,"perPage":50,"max":1000,"quota":5000}"#,
            r#"{"totalMentions":16332,"unreadCount":40}"#,
            r#"{"requestId":"1","nextUpdate":"2026-01-01"}"#,
            r#"{"after":"2026-01-01","query":{"after":"x"},"links":[{"rel":"self","href":"/a"},{"rel":"next","href":""},5]}"#,
            r#"{"counts":{"mentions":30},"endDate":"2026-01-01"}"#,
            r#"{"user":{"isEndUser":false},"end_of_life":false,"endOfDay":false}"#,
            r#"{"_shards":{"total":50,"successful":50,"failed":0},"rateLimit":{"remaining":99}}"#,
            r#"{"users":{"total":300},"teams":{"count":40},"folders":{"count":40},"tags":{"total":40}}"#,
            r#"{"alerts":{"total":40,"pages":4},"dashboards":{"count":40},"organisation":{"count":40}}"#,
            r#"{"data":{"team":{"members":{"total":40}},"stats":{"total":40},"archived":{"total":40}}}"#,
            r#"{"users":{"paging":{"total":300,"remaining":5}},"seats":{"remaining":5}}"#,
            r#"{"cursor":"","marker":null,"pageToken":"0","query":{"cursor":"abc"},"search_after":[]}"#,
            r#"{"notifications":{"hasMore":true}}"#,
            r#"{"notifications":{"hasMore":false},"lake":{"hasMore":false}}"#,
            r#"{"range":"2026-01-01/2026-02-01","page":"overview","user":{"marker":"x"},"contentRange":"bytes 0-9/99"}"#,
        ];
        each(cases, |text| {
            assert_eq!(rest(text), Rest::Unknown, "{text}");
        });
    }

    #[test]
    fn a_page_of_a_list_says_how_many_pages_there_are_and_how_many_entries_it_has() {
        let table = &Profile::v4().tables.saved_searches;
        // Ten entries on each page.
        let rest = |text: &str, pages: u64, first: u64| {
            let last = [8, 2, 0];
            of(text, true).rest(table, &last.map(|entries| entries * pages), Some((&last, (pages, first))))
        };
        for text in [r#"{"data":{"count":10}}"#, r#"{"numResults":10}"#] {
            assert_eq!((rest(text, 1, 1), rest(text, 2, 1)), (Rest::Unknown, Rest::Unknown), "{text}");
        }
        for (text, first) in
            [(r#"{"pages":3}"#, 0), (r#"{"totalPages":3}"#, 1), (r#"{"lastPage":3}"#, 1), (r#"{"lastPage":2}"#, 0)]
        {
            assert!(matches!(rest(text, 2, first), Rest::More(_)), "{text}");
            assert_eq!(rest(text, 3, first), Rest::None, "{text}");
        }
        assert!(matches!(rest(r#"{"pagesRemaining":1}"#, 3, 1), Rest::More(_)));
        assert_eq!(rest(r#"{"pagesRemaining":0}"#, 4, 1), Rest::None);
        assert_eq!(rest(r#"{"data":{"total":10}}"#, 1, 1), Rest::None);
        assert_eq!(rest(r#"{"data":{"count":20}}"#, 2, 1), Rest::None);
    }

    #[test]
    fn mentions_that_follow_are_told_by_words_and_not_by_numbers() {
        let cases = [
            (r#"{"mentions":{"hasMore":true}}"#, Some("`/mentions/hasMore` is true")),
            (r#"{"paging":{"next":"/search?x=1"}}"#, Some(r#"`/paging/next` is "/search?x=1""#)),
            (r#"{"hasMore":false,"nextCursor":"abc"}"#, Some(r#"`/nextCursor` is "abc""#)),
            (r#"{"truncated":true}"#, Some("`/truncated` is true")),
            (r#"{"autoTruncated":true}"#, Some("`/autoTruncated` is true")),
            (
                r#"{"mentions":{"links":[{"rel":"next","href":"/b"}]}}"#,
                Some(r#"`/mentions/links` is [{"rel":"next","href":"/b"}]"#),
            ),
            (r#"{"end_of_stream":false}"#, Some("`/end_of_stream` is false")),
            (r#"{"hasMore":false,"next":null}"#, None),
            (r#"{"total":450,"totalPages":5,"nextOffset":"200"}"#, None),
            (r#"{"cursor":"abc","_scroll_id":"abc","page":"2/3","range":"0-4/12"}"#, None),
            (r#"{"NextMarker":"abc"}"#, Some(r#"`/NextMarker` is "abc""#)),
        ];
        each(cases, |(text, says)| {
            assert_eq!(of(text, false).more().as_deref(), says, "{text}");
        });
    }

    #[test]
    fn a_number_counts_the_sections_that_it_stands_beside() {
        let mut table = Profile::v4().tables.saved_searches;
        table.sections[0].at = Pointer::of(["data", "saved", "items"]);
        table.sections[1].at = Pointer::of(["data", "team", "items"]);
        let rest = |text: &str| of(text, true).rest(&table, &[10, 10, 0], None);
        assert!(matches!(rest(r#"{"data":{"saved":{"total":15},"team":{"total":10}}}"#), Rest::More(_)));
        assert_eq!(rest(r#"{"data":{"saved":{"total":10},"team":{"total":10}},"total":20}"#), Rest::None);
    }
}
