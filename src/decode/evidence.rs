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

use std::borrow::Cow;

use super::estimate::calls_estimate;
use super::json::{Json, Raw};
use crate::error::notice::{Notice, words};
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
    /// The names of the objects around members that call a count an estimate.
    estimates: Vec<Vec<String>>,
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
    /// A place in the list, which was not asked for: there is another page, unless something says that all entries came. Some
    /// services name the place behind the last entry, too.
    Place,
}

impl Says {
    fn is_number(self) -> bool {
        matches!(self, Self::Entries(_) | Self::Pages(_) | Self::LastPage(_))
    }
}

/// The subject of the members of an object, by the names of the objects around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    /// The response: `meta`, `shards`, `result`.
    Response,
    /// Unknown: states of work that goes on, such as `pending`, do not count, and all others do.
    Unknown,
    /// Something else: `user`, `billing`. Its states and errors do not count, and flags such as `truncated` do.
    Other,
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
            if calls_estimate(&words, *raw) {
                self.estimates.push(within.clone());
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

    /// True if a member beside the total at this place calls it an estimate.
    pub(super) fn calls_estimate(&self, total: &Pointer) -> bool {
        total.steps().split_last().is_some_and(|(_, parent)| self.estimates.iter().any(|within| within == parent))
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
                Says::Place if paged.is_some() => {}
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

impl About {
    /// The subject of what stands within objects of these names, outermost first.
    fn of(names: &[String]) -> Self {
        let mut about = Self::Response;
        for name in names {
            let words = words(name);
            // `shard3`, and the plural.
            let is = |list: &[&str]| {
                words.iter().any(|word| {
                    let word = word.trim_end_matches(|last: char| last.is_ascii_digit());
                    list.contains(&word) || word.strip_suffix('s').is_some_and(|word| list.contains(&word))
                })
            };
            // Below a part of a service, names are those of parts.
            if is(&PARTS) {
                return about;
            }
            if is(&THINGS)
                || completes_input(&words)
                || words.iter().any(|word| BEGINNINGS.iter().any(|begin| word.starts_with(begin)))
            {
                return Self::Other;
            }
            // An item of an array has a number.
            if !is(&RESPONSE) && !name.bytes().all(|byte| byte.is_ascii_digit()) {
                about = Self::Unknown;
            }
        }
        about
    }
}

/// True for the name of completions of what is typed.
fn completes_input(words: &[String]) -> bool {
    words.windows(2).any(|two| two == ["auto", "complete"])
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

/// True if a member reports a failure, or a partial result. `within`: the names of the objects around it.
fn reports_failure(words: &[String], within: &[String], about: About, raw: Raw<'_>, siblings: &[Member<'_>]) -> bool {
    const BAD: [&str; 16] = [
        "error",
        "errors",
        "failed",
        "failure",
        "failures",
        "incomplete",
        "partial",
        "partially",
        "truncated",
        "degraded",
        "aborted",
        "interrupted",
        "timeout",
        "timedout",
        "sampled",
        "clipped",
    ];
    const GOOD: [&str; 9] =
        ["complete", "completed", "success", "successful", "succeeded", "ok", "whole", "exhaustive", "ready"];
    // Those that are true or false, in whatever notation.
    const FLAGS: [&str; 8] =
        ["incomplete", "partial", "partially", "truncated", "degraded", "aborted", "interrupted", "clipped"];
    // Not yet the answer, or not from the data.
    const BUSY: [&str; 4] = ["processing", "indexing", "reindexing", "maintenance"];
    // The same, said of the response itself: a saved search may run as well.
    const UNREADY: [&str; 9] =
        ["building", "calculating", "computing", "loading", "pending", "queued", "refreshing", "running", "unfinished"];
    const AWAY: [&str; 3] = ["unavailable", "unreachable", "unresponsive"];
    // What was asked for, or is possible, is not what happened.
    const OPTION: [&str; 13] = [
        "allow", "allowed", "allows", "accept", "support", "supports", "include", "ignore", "retry", "show", "return",
        "enable", "can",
    ];
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    // Objects whose members are options.
    const OPTIONS: [&str; 5] = ["capabilities", "features", "permissions", "preferences", "settings"];
    let option = |word: &String| OPTIONS.contains(&word.as_str());
    let options = about == About::Other && within.last().is_some_and(|name| self::words(name).iter().any(option));
    if has(&OPTION) || options {
        return false;
    }
    let member = !matches!(raw.first(), b'{' | b'[') && is_of_another(words);
    let about = if member { About::Other } else { about };
    let pairs = [
        ("timed", "out"),
        ("time", "out"),
        ("terminated", "early"),
        ("cut", "off"),
        ("search", "cutoff"),
        ("quota", "exceeded"),
        ("limit", "exceeded"),
        ("limit", "reached"),
        ("cap", "reached"),
        ("max", "reached"),
        ("maximum", "reached"),
    ];
    // The limit of requests says nothing about a result.
    let pair = !has(&["rate"]) && words.windows(2).any(|two| pairs.contains(&(two[0].as_str(), two[1].as_str())));
    let bad = has(&BAD) || pair;
    let last_two = words.last_chunk::<2>().map(|[first, second]| (first.as_str(), second.as_str()));
    let flag = words.last().is_some_and(|word| FLAGS.contains(&word.as_str()))
        || last_two.is_some_and(|two| pair && pairs.contains(&two));
    let in_counts = within.last().is_some_and(|name| is_of_counts(&self::words(name)));
    let flag = flag && !in_counts;
    // `indexingInProgress: true`
    const INDEXES: [&str; 6] = ["backfill", "index", "indexing", "reindex", "reindexing", "search"];
    let indexes = words.len() == 2 || has(&INDEXES);
    // `indexing: {inProgress: true}`
    let indexed = within.last().is_some_and(|name| {
        matches!(&*self::words(name), [word] if INDEXES[..5].contains(&word.as_str()) || BUSY.contains(&word.as_str()))
    });
    let in_progress = (last_two == Some(("in", "progress")) && indexes && (is_of_response(within) || indexed))
        || (indexed && matches!(words, [word] if ["active", "ongoing", "pending", "running"].contains(&word.as_str())));
    let failure = |word: &String| BAD[..5].contains(&word.as_str());
    let of_response = is_of_response(within);
    let in_overview = within.last().is_some_and(|name| self::words(name) == ["overview"]);
    let alone = |list: &[&str]| of_response && matches!(words, [word] if list.contains(&word.as_str()));
    // Numbers of sources that are excluded may be those of the request, elsewhere.
    let absent = |word: &String| {
        ["missing", "unavailable", "unreachable", "unresponsive", "skipped"].contains(&word.as_str())
            || (of_response && ["excluded", "omitted", "dropped"].contains(&word.as_str()))
    };
    // Where rows continue on another page, this one is not all of them, and says so.
    let paged = has(&["incomplete", "partial", "truncated"])
        && !in_overview
        && siblings.iter().any(|(name, raw)| {
            matches!(
                length(&self::words(name), within, *raw, &[]),
                Some(Says::More | Says::Pages(2..) | Says::LastPage(2..))
            )
        });
    let error =
        |word: &String| ["exception", "exceptions", "fault", "faults", "problem", "problems"].contains(&word.as_str());
    // A text beside an error is its message, `timeout: 1` is a duration, and `partialMatches: 1` a count.
    let affirmed = match raw.first() {
        b't' => true,
        b'"' => match &*raw.inner().to_lowercase() {
            "true" => true,
            "yes" | "y" | "1" => flag,
            _ => false,
        },
        _ => raw.text == "1" && flag,
    };
    if about == About::Other {
        let timed_out = words.windows(2).any(|two| two == ["timed", "out"]);
        // `profileIncomplete: true`
        let of_account =
            matches!(words, [.., of, last] if last == "incomplete" && ["account", "profile"].contains(&of.as_str()));
        let part = has(&["incomplete", "partial", "partially", "timedout", "truncated"]) || timed_out;
        return affirmed && part && !of_account;
    }
    if is_error_code(words, within, raw)
        || (of_response && counts_failures(words, raw))
        || (words.last().is_some_and(error) && tells(raw, 0))
        || is_sampled(words, within, raw, siblings)
    {
        return true;
    }
    if affirmed && bad {
        return !paged;
    }
    if affirmed && (alone(&["capped", "cut"]) || alone(&AWAY) || alone(&UNREADY)) {
        return true;
    }
    let known = about == About::Response;
    let share = matches!(raw.first(), b'0'..=b'9' | b'"') && is_fraction(words, about, raw);
    // `complete: 0` and `complete: "no"`; a number beside others is a count.
    let whole = !bad && !paged && !in_counts && words.last().is_some_and(|word| GOOD.contains(&word.as_str()));
    const FLAGS_OF_ALL: [&str; 6] = ["complete", "exhaustive", "ok", "ready", "success", "whole"];
    let is_flag = words.last().is_some_and(|word| FLAGS_OF_ALL.contains(&word.as_str()))
        && (words.len() == 1 || has(&["all", "is", "result", "results", "search"]));
    let fails = has(&GOOD) && !bad && !paged && (known || !has(&["ready"]));
    match raw.first() {
        b't' => in_progress || (known && matches!(words, [word] if BUSY.contains(&word.as_str()))),
        b'f' => fails || (in_overview && alone(&["done", "final", "finished"])),
        b'[' | b'{' if is_warning(words) => notice_of(raw, 0) >= Notice::Suspicious,
        b'[' if warns(words) => speaks_of_a_part(raw, 0),
        b'[' => {
            // Sources that are excluded are the choice of the saved search.
            let parts = has(&PARTS) && !has(&["excluded"]) && (words.iter().any(absent) || words.iter().any(failure));
            let left_out = alone(&AWAY) || alone(&["dropped", "missing", "omitted", "skipped"]);
            (words.last().is_some_and(failure) || parts || left_out) && has_items(raw)
        }
        b'{' => (words.last().is_some_and(failure) || alone(&AWAY)) && tells(raw, 0),
        b'"' if matches!(raw.inner(), "false" | "False" | "FALSE") => fails,
        b'"' if matches!(&*raw.inner().to_lowercase(), "no" | "n") && whole => fails,
        b'"' if raw.inner() == "0" && whole && is_flag => fails,
        b'0' if raw.text == "0" && whole && is_flag && known && siblings_are_no_counts(siblings) => true,
        b'"' if is_warning(words) => notice_of(raw, 0) >= Notice::Suspicious,
        b'"' if warns(words) => speaks_of_a_part(raw, 0),
        b'0'..=b'9' | b'"' if share => true,
        b'"' => {
            const STATES: [&str; 9] =
                ["status", "state", "result", "completeness", "coverage", "outcome", "quality", "health", "fidelity"];
            let text = raw.inner().to_lowercase();
            let text = text.replace([' ', '-'], "_");
            const UNFINISHED: [&str; 4] = ["pending", "processing", "in_progress", "queued"];
            // A saved search may run, wait or have expired as well.
            const OF_RESPONSE: [&str; 14] = [
                "running",
                "started",
                "starting",
                "waiting",
                "loading",
                "computing",
                "calculating",
                "building",
                "refreshing",
                "unfinished",
                "not_ready",
                "canceled",
                "cancelled",
                "expired",
            ];
            let partial = BAD.contains(&text.as_str())
                || ["timed_out", "fail"].contains(&&*text)
                || text.starts_with("partial_")
                || (known && UNFINISHED.contains(&&*text))
                || ((of_response || indexed) && OF_RESPONSE.contains(&&*text));
            // `teamError: "upstream timeout"`, and not one of an earlier response or of a saved search.
            let own = known && !has(&["last", "latest", "margin", "previous"]) && within.len() <= 2;
            let message = (words.last().is_some_and(|word| ["error", "errors", "failure"].contains(&word.as_str()))
                && (own || words.len() == 1))
                || matches!(words, [first, second] if first == "error" && ERROR_TEXTS.contains(&second.as_str()));
            // The state of a part may stand under its name: `sources: {"x.com": "timeout"}`.
            let state = words.last().is_some_and(|word| STATES.contains(&word.as_str()))
                || within.last().is_some_and(|name| is_of_parts(&self::words(name)));
            (state && partial) || ((message || (alone(&AWAY) && text != "no")) && !is_none(&text))
        }
        b'1'..=b'9' => {
            let of =
                |name: &str| siblings.iter().find(|(sibling, _)| self::words(sibling) == [name]).map(|(_, raw)| *raw);
            let number = |name: &str| of(name).and_then(|raw| raw.text.parse::<u64>().ok());
            let parts = || has(&PARTS) || ["total", "successful", "succeeded"].iter().any(|name| of(name).is_some());
            // Shards that were skipped need not be read.
            let missing = answered(words, within, siblings).is_some_and(|good| {
                let skipped = number("skipped").unwrap_or_default();
                count_of(raw).is_some_and(|all| good.saturating_add(skipped) < all)
            });
            // Shards that a query need not read are skipped, too, but clusters are not.
            let clusters = || within.last().is_some_and(|name| self::words(name).contains(&"clusters".to_owned()));
            let lacks = (words.iter().any(absent) && (has(&PARTS) || clusters())) || alone(&AWAY);
            let left_out = has(&["omitted", "suppressed", "dropped", "withheld"])
                && (has(&["count", "results", "result", "mentions", "items", "records", "rows", "documents"])
                    || (words.len() == 1 && of_response));
            (words.iter().any(failure) && (parts() || has(&["partial"]))) || missing || lacks || left_out
        }
        _ => false,
    }
}

/// True for the name of a member about something else than the response: `billingStatus`, `autoComplete`. Those of objects say so
/// themselves.
fn is_of_another(words: &[String]) -> bool {
    const RESULT: [&str; 9] =
        ["data", "list", "mentions", "query", "response", "result", "results", "search", "searches"];
    let named = |word: &String| {
        // The entries of a list may be those of a team.
        !["team", "teams", "folder", "folders"].contains(&word.as_str())
            && About::of(std::slice::from_ref(word)) == About::Other
    };
    words.len() > 1
        && (words.iter().any(named) || completes_input(words))
        && !words.iter().any(|word| RESULT.contains(&word.as_str()))
}

/// True for the number of failures of a response: `errors: 2`, `errorCount: 3`, `failed: 1`.
fn counts_failures(words: &[String], raw: Raw<'_>) -> bool {
    const FAILURES: [&str; 7] = ["error", "errors", "exceptions", "failed", "failure", "failures", "timeouts"];
    const COUNTED: [&str; 9] = ["count", "counts", "fatal", "num", "number", "of", "queries", "search", "total"];
    let failures = |word: &String| FAILURES.contains(&word.as_str());
    // The names of counts are those of failures and of counting. `error: 7` is a code, and 200 none of an error.
    let counts = words.iter().any(failures)
        && words.iter().all(|word| failures(word) || COUNTED.contains(&word.as_str()) || word == "timeout");
    let timeouts = matches!(words, [first, second] if first == "timeout" && second == "count");
    let number = matches!(raw.first(), b'0'..=b'9' | b'"').then(|| count_of(raw)).flatten();
    (counts || timeouts) && number.is_some_and(|number| number > 0 && !(number == 200 && words == ["error"]))
}

/// The number of those that answered, beside the number of all of them: `total: 5, successful: 3`, `sourcesQueried: 5,
/// sourcesResponded: 3`.
fn answered(words: &[String], within: &[String], siblings: &[Member<'_>]) -> Option<u64> {
    const ALL: [&str; 4] = ["total", "expected", "queried", "requested"];
    const GOOD: [&str; 2] = ["successful", "succeeded"];
    // Said of parts, these are about the response. Mentions may be answered, too.
    const WELL: [&str; 9] =
        ["answered", "completed", "healthy", "ok", "online", "reachable", "responded", "responding", "up"];
    let place = |words: &[String], list: &[&str]| words.iter().position(|word| list.contains(&word.as_str()));
    let without = |words: &[String], place: usize| {
        let (before, after) = (&words[..place], &words[place + 1..]);
        [before, after].concat()
    };
    let kind = without(words, place(words, &ALL)?);
    let of_parts = kind.iter().any(|word| PARTS.contains(&word.as_str()))
        || within.last().map(|name| self::words(name)).is_some_and(|name| is_of_parts(&name) || name == ["hosts"]);
    if !of_parts && !kind.is_empty() {
        return None;
    }
    let numbers = siblings.iter().filter_map(|(name, raw)| {
        let words = self::words(name);
        let place = place(&words, &GOOD).or_else(|| place(&words, &WELL).filter(|_| of_parts))?;
        (without(&words, place) == kind).then(|| count_of(*raw))?
    });
    numbers.max()
}

/// True if none of the members of an object counts what is not complete.
fn siblings_are_no_counts(siblings: &[Member<'_>]) -> bool {
    const COUNTS: [&str; 7] = ["failed", "incomplete", "pending", "queued", "remaining", "running", "total"];
    !siblings.iter().any(|(name, raw)| {
        matches!(&*words(name), [word] if COUNTS.contains(&word.as_str())) && count_of(*raw).is_some()
    })
}

/// True if a member says that a result is computed from a sample: `sampling: 0.5`, `samplingLevel: "SMALL"`, `enabled: true` in an
/// object `sampling`.
fn is_sampled(words: &[String], within: &[String], raw: Raw<'_>, siblings: &[Member<'_>]) -> bool {
    const LEVELS: [&str; 5] = ["level", "method", "mode", "strategy", "type"];
    const RATES: [&str; 7] = ["factor", "fraction", "percent", "percentage", "rate", "ratio", "share"];
    const SWITCHES: [&str; 4] = ["active", "applied", "enabled", "on"];
    // Levels that read everything, or that need not be of a sample.
    const WHOLE: [&str; 17] = [
        "",
        "100%",
        "all",
        "auto",
        "complete",
        "default",
        "disabled",
        "exact",
        "false",
        "full",
        "never",
        "no",
        "none",
        "null",
        "off",
        "unsampled",
        "whole",
    ];
    let contains = |words: &[String], list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let around = |list: &[&str]| within.last().is_some_and(|name| contains(&self::words(name), list));
    let inside = |list: &[&str]| words.len() == 1 && around(list);
    let alone = matches!(words, [word] if word == "sampling");
    let last = |list: &[&str]| words.last().is_some_and(|word| list.contains(&word.as_str()));
    // A sample may be of a type without being one of the result.
    let sampling = contains(words, &["sampling"]) || inside(&["sampling"]) || words == ["sample", "level"];
    let level = alone || (sampling && last(&LEVELS));
    let rate = alone || ((sampling || contains(words, &["sample"]) || inside(&["sample"])) && contains(words, &RATES));
    let on = alone || (inside(&["sampling"]) && last(&SWITCHES));
    let sampled = match raw.first() {
        b't' => on,
        b'0'..=b'9' => rate && is_part(raw),
        b'"' if share_of(raw).is_some() => rate && is_part(raw),
        b'"' => {
            let text = raw.inner().to_lowercase();
            (level && !WHOLE.contains(&text.trim())) || (on && text == "true")
        }
        _ => false,
    };
    // `enabled: false, rate: 0.5`, and `enabled: true, rate: 1`
    let whole = |(name, raw): &Member<'_>| {
        let words = self::words(name);
        let named = |list: &[&str]| words.last().is_some_and(|word| list.contains(&word.as_str()));
        (around(&["sample", "sampling"]) || contains(&words, &["sample", "sampling"]))
            && ((named(&SWITCHES) && raw.first() == b'f')
                || (named(&RATES) && share_of(*raw).is_some_and(|share| share == 1.0 || share == 100.0)))
    };
    sampled && (alone || !siblings.iter().any(whole))
}

/// A share of a whole as it is written, also in quotes and with a percent sign.
fn share_of(raw: Raw<'_>) -> Option<f64> {
    bare(raw).trim().trim_end_matches('%').trim_end().parse().ok()
}

/// True for the share of a whole, as a fraction or in percent, that is less than all of it.
fn is_part(raw: Raw<'_>) -> bool {
    share_of(raw).is_some_and(|share| (share > 0.0 && share < 1.0) || (share > 1.0 && share < 100.0))
        || (bare(raw).contains('%') && share_of(raw).is_some_and(|share| share == 1.0))
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

/// Names of the texts of an error.
const ERROR_TEXTS: [&str; 9] = ["code", "description", "detail", "details", "message", "msg", "reason", "text", "type"];

/// Parts of a service that may fail alone.
const PARTS: [&str; 20] = [
    "connectors",
    "engines",
    "feeds",
    "indexes",
    "providers",
    "shard",
    "shards",
    "node",
    "nodes",
    "partition",
    "partitions",
    "backend",
    "backends",
    "replicas",
    "servers",
    "sources",
    "clusters",
    "indices",
    "segments",
    "regions",
];

/// Things with a state and with errors of their own.
const THINGS: [&str; 64] = [
    "account",
    "alert",
    "autocomplete",
    "avatar",
    "billing",
    "campaign",
    "capabilities",
    "companies",
    "company",
    "contact",
    "contract",
    "credit",
    "customer",
    "dashboard",
    "device",
    "digest",
    "download",
    "email",
    "export",
    "feature",
    "folder",
    "import",
    "integration",
    "invitation",
    "invite",
    "invoice",
    "license",
    "login",
    "me",
    "member",
    "membership",
    "newsletter",
    "notification",
    "onboarding",
    "organisation",
    "organization",
    "owner",
    "payment",
    "permission",
    "plugin",
    "poll",
    "preference",
    "profile",
    "project",
    "registration",
    "reminder",
    "role",
    "schedule",
    "seat",
    "session",
    "setting",
    "setup",
    "subscription",
    "survey",
    "tag",
    "team",
    "template",
    "ticket",
    "tour",
    "trial",
    "tutorial",
    "upload",
    "widget",
    "workspace",
];

/// First letters of things whose names have several forms, such as users and web hooks.
const BEGINNINGS: [&str; 3] = ["user", "verification", "webhook"];

/// The response, its parts, and the work that it is the result of.
const RESPONSE: [&str; 92] = [
    "api",
    "async",
    "backfill",
    "body",
    "calculation",
    "cluster",
    "completeness",
    "completion",
    "computation",
    "content",
    "count",
    "coverage",
    "crawl",
    "cursor",
    "data",
    "database",
    "dataset",
    "diagnostics",
    "elastic",
    "elasticsearch",
    "engine",
    "envelope",
    "error",
    "execution",
    "feed",
    "fetch",
    "freshness",
    "gateway",
    "header",
    "health",
    "hit",
    "host",
    "index",
    "indexing",
    "info",
    "ingest",
    "ingestion",
    "item",
    "job",
    "list",
    "load",
    "loading",
    "mention",
    "meta",
    "metadata",
    "operation",
    "outcome",
    "output",
    "overview",
    "page",
    "pagination",
    "paging",
    "payload",
    "performance",
    "pipeline",
    "processing",
    "progress",
    "quality",
    "query",
    "reindexing",
    "replica",
    "replication",
    "request",
    "response",
    "result",
    "retrieval",
    "row",
    "run",
    "sample",
    "sampling",
    "scan",
    "search",
    "searches",
    "segment",
    "server",
    "service",
    "snapshot",
    "source",
    "state",
    "stats",
    "status",
    "stream",
    "summary",
    "system",
    "task",
    "timeline",
    "timing",
    "truncation",
    "volume",
    "warning",
    "window",
    "worker",
];

/// True for the name of the parts of a service.
fn is_of_parts(words: &[String]) -> bool {
    words.last().is_some_and(|word| PARTS.contains(&word.as_str()))
}

/// True for the name of a message.
fn warns(words: &[String]) -> bool {
    const MESSAGES: [&str; 6] = ["message", "messages", "notice", "notices", "info", "notes"];
    words.len() == 1 && MESSAGES.contains(&words[0].as_str())
}

/// True for the name of a warning, whose words are judged more strictly than those of a message.
fn is_warning(words: &[String]) -> bool {
    const TEXTS: [&str; 10] =
        ["code", "codes", "count", "data", "list", "message", "messages", "response", "search", "text"];
    words.iter().any(|word| word == "warning" || word == "warnings")
        && words.iter().all(|word| word == "warning" || word == "warnings" || TEXTS.contains(&word.as_str()))
}

/// The meaning of a warning, or the worst one of several. The texts of an object, such as its code, are one message.
fn notice_of(raw: Raw<'_>, depth: usize) -> Notice {
    if raw.text.len() > LONGEST {
        return Notice::Unknown;
    }
    match raw.first() {
        b'[' if depth < DEPTH => {
            let (mut json, mut first, mut worst) = (Json::new(raw.text), true, Notice::Harmless);
            json.enter();
            while let Ok(true) = json.item(&mut first) {
                let Ok(warning) = json.value() else { return Notice::Unknown };
                worst = worst.max(notice_of(warning, depth + 1));
            }
            worst
        }
        b'{' => {
            let mut texts = Vec::new();
            texts_of(raw, depth, &mut texts);
            notice_of_text(&texts.join(" "))
        }
        b'"' => notice_of_text(raw.inner()),
        _ if tells(raw, 0) => Notice::Unknown,
        _ => Notice::Harmless,
    }
}

/// The texts in an object of a warning.
fn texts_of(raw: Raw<'_>, depth: usize, texts: &mut Vec<String>) {
    match raw.first() {
        b'{' if depth < DEPTH => {
            members_of(raw).unwrap_or_default().iter().for_each(|(_, raw)| texts_of(*raw, depth + 1, texts));
        }
        // Links name pages, not what happened.
        b'"' if !raw.inner().starts_with("http") => texts.push(raw.inner().to_owned()),
        _ => {}
    }
}

fn notice_of_text(text: &str) -> Notice {
    let notice = Notice::of(text);
    // `Your team has members who did not answer the survey`
    let other = words(text).iter().any(|word| About::of(std::slice::from_ref(word)) == About::Other);
    if other && notice == Notice::Suspicious { Notice::Unknown } else { notice }
}

/// True if a member may report a failure or a partial result, as far as anyone knows: a warning of unknown meaning, or a word that is
/// also said of whole results.
fn may_report_failure(words: &[String], within: &[String], about: About, raw: Raw<'_>) -> bool {
    const FLAGS: [&str; 6] = ["approximate", "fallback", "limited", "reduced", "restricted", "stale"];
    if about == About::Other {
        return false;
    }
    if is_warning(words) {
        return !raw.is_null() && notice_of(raw, 0) == Notice::Unknown;
    }
    let flag = matches!(words, [word] if FLAGS.contains(&word.as_str()));
    is_of_response(within) && flag && (raw.first() == b't' || (raw.first() == b'"' && tells(raw, 0)))
}

/// True if a message, or one of several, says that a result is not all of it.
fn speaks_of_a_part(raw: Raw<'_>, depth: usize) -> bool {
    // Said of results, or of what they come from.
    const SIGNS: [&str; 10] = [
        "partial result",
        "results are partial",
        "result is partial",
        "timed out",
        "did not answer",
        "did not respond",
        "not all results",
        "some results",
        "results may be missing",
        "results were omitted",
    ];
    // Also said of other things.
    const OF_ANYTHING: [&str; 3] = ["incomplete", "truncated", "unavailable"];
    // Results, and what they come from, beside the parts of a service.
    const RESULT: [&str; 14] = [
        "coverage", "data", "index", "list", "mentions", "query", "records", "response", "result", "results", "rows",
        "search", "searches", "source",
    ];
    if raw.text.len() > LONGEST {
        return false;
    }
    match raw.first() {
        b'[' if depth < DEPTH => {
            let (mut json, mut first) = (Json::new(raw.text), true);
            json.enter();
            while let Ok(true) = json.item(&mut first) {
                let Ok(message) = json.value() else { return false };
                if speaks_of_a_part(message, depth + 1) {
                    return true;
                }
            }
            return false;
        }
        b'{' if depth < DEPTH => {
            let speaks = |(_, raw): &Member<'_>| speaks_of_a_part(*raw, depth + 1);
            return members_of(raw).is_ok_and(|members| members.iter().any(speaks));
        }
        b'"' => {}
        _ => return false,
    }
    let text = raw.inner().to_lowercase();
    let words = words(&text);
    // `Your account profile is incomplete`
    let of_result = words.iter().any(|word| RESULT.contains(&word.as_str()) || PARTS.contains(&word.as_str()));
    let other = !of_result && words.iter().any(|word| About::of(std::slice::from_ref(word)) == About::Other);
    // An announcement says nothing about this result.
    let announced = text.contains("will be unavailable");
    SIGNS.iter().any(|sign| text.contains(sign))
        || (!other && OF_ANYTHING.iter().any(|sign| text.contains(sign) && !(announced && *sign == "unavailable")))
}

/// True for an object that describes the response, rather than something that it contains. `within`: the names of the objects
/// around its members.
fn is_of_response(within: &[String]) -> bool {
    const AROUND: [&str; 14] = [
        "data",
        "diagnostics",
        "error",
        "execution",
        "header",
        "mentions",
        "meta",
        "metadata",
        "overview",
        "response",
        "result",
        "results",
        "search",
        "status",
    ];
    within.last().is_none_or(|name| {
        let words = words(name);
        words.iter().all(|word| AROUND.contains(&word.as_str())) && words != ["search"]
    })
}

/// True for the code of an error in a response of success: `code: 50001`, `status: 500`, `errno: 7`, `ret: -1`.
fn is_error_code(words: &[String], within: &[String], raw: Raw<'_>) -> bool {
    let names: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = bare(raw);
    // `206 Partial Content`
    let text = match text.split_once(' ') {
        Some((code, reason)) if code.len() == 3 && reason.starts_with(|first: char| first.is_alphabetic()) => code,
        _ => text,
    };
    let Ok(code) = text.parse::<i64>() else { return false };
    // Elsewhere, a code is one of the data.
    const AROUND: [&str; 6] = ["error", "header", "meta", "response", "result", "status"];
    if within.last().is_some_and(|name| !AROUND.contains(&name.as_str())) {
        return false;
    }
    match names.as_slice() {
        ["errno" | "errcode"] | ["err" | "error", "no" | "code" | "number"] => code != 0 && code != 200,
        ["status" | "code" | "ret" | "retcode"]
        | ["status" | "http" | "response" | "return" | "ret", "code" | "status"]
        | ["http" | "response", "status", "code"] => {
            // Codes of HTTP, and those of services that begin with them.
            let of_http = (3..=5).contains(&text.len()) && matches!(text.as_bytes()[0], b'4' | b'5');
            code < 0 || code == 206 || of_http
        }
        _ => false,
    }
}

/// True for the share of a whole, as a fraction or in percent, that is less than all of it: `coverage: 0.6`.
fn is_fraction(words: &[String], about: About, raw: Raw<'_>) -> bool {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    // A service may know the sentiment of a part of its mentions, and return all of them.
    let of_values = has(&["author", "emotion", "geo", "language", "location", "sentiment"]);
    let completion = about == About::Response
        && has(&["completion"])
        && words.iter().all(|word| {
            ["completion", "index", "percent", "percentage", "query", "rate", "ratio", "result", "search"]
                .contains(&word.as_str())
        });
    // A number may count what is complete, a fraction may not.
    let complete = about == About::Response
        && matches!(words, [word] if word == "complete")
        && share_of(raw).is_some_and(|share| share < 1.0);
    let share = completion
        || complete
        || (has(&["completeness", "coverage"]) && !of_values)
        || (has(&["progress"]) && !of_values && about == About::Response)
        || (has(&["percent", "percentage", "pct"]) && has(&["complete", "completed", "done", "processed", "searched"]));
    share && is_part(raw)
}

/// Length of a list, as a member describes it. `within`: the names of the objects around it.
fn length(words: &[String], within: &[String], raw: Raw<'_>, siblings: &[Member<'_>]) -> Option<Says> {
    const ENTRIES: [&str; 36] = [
        "element",
        "hydra",
        "item",
        "list",
        "nb",
        "object",
        "odata",
        "opensearch",
        "pagination",
        "paging",
        "record",
        "row",
        "total",
        "count",
        "counts",
        "number",
        "num",
        "of",
        "found",
        "hits",
        "matches",
        "all",
        "available",
        "results",
        "result",
        "items",
        "records",
        "entries",
        "entry",
        "rows",
        "elements",
        "objects",
        "searches",
        "search",
        "saved",
        "size",
    ];
    const PLACES: [&str; 17] = [
        "next",
        "marker",
        "after",
        "results",
        "result",
        "page",
        "link",
        "url",
        "uri",
        "href",
        "cursor",
        "token",
        "offset",
        "start",
        "from",
        "key",
        "continuation",
    ];
    // Objects whose members are not about entries: `_shards: {total: 5}`.
    const OTHERS: [&str; 6] = ["shards", "clusters", "nodes", "quota", "usage", "rate"];
    // Objects whose numbers are not about entries: `credits: {remaining: 970}`.
    const ACCOUNTS: [&str; 14] = [
        "account",
        "allowance",
        "billing",
        "budget",
        "credit",
        "credits",
        "license",
        "limit",
        "limits",
        "plan",
        "requests",
        "subscription",
        "throttle",
        "throttling",
    ];
    let within_one_of =
        |list: &[&str]| within.iter().any(|name| self::words(name).iter().any(|word| list.contains(&word.as_str())));
    if within_one_of(&OTHERS) || (raw.first().is_ascii_digit() && within_one_of(&ACCOUNTS)) {
        return None;
    }
    let is = |list: &[&str]| words.iter().all(|word| list.contains(&word.as_str()));
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let told = |more: bool| Some(if more { Says::More } else { Says::NoMore });
    match raw.first() {
        first @ (b't' | b'f') => {
            let yes = first == b't';
            match () {
                () if has(&["more"]) || has(&["truncated"]) || (has(&["has", "is"]) && has(&["next"])) => told(yes),
                // `exceededTransferLimit: true`
                () if has(&["exceeded"]) && has(&["transfer", "page", "result", "results", "row", "rows"]) => told(yes),
                // `end_of_stream: false`
                () if is_end(words) => told(!yes),
                () if has(&["last", "final"]) && !has(&["updated", "seen", "run"]) => told(!yes),
                () if matches!(words, [word] if word == "done" || word == "finished" || word == "exhausted") => {
                    told(!yes)
                }
                // `next: false`
                () if words.last().is_some_and(|word| word == "next") && !yes => told(false),
                () => None,
            }
        }
        b'0'..=b'9' => {
            let number = count_of(raw)?;
            let pages = has(&["pages"]) || (has(&["page"]) && has(&["count", "last", "total"]));
            // `total: {value: 6}`, and `from: 1, to: 3, of: 6`
            let of_total = words == ["value"] && within.last().is_some_and(|name| self::words(name) == ["total"]);
            let of = words == ["of"] && siblings.iter().any(|(name, _)| self::words(name) == ["to"]);
            match () {
                () if of_total || of => Some(Says::Entries(number)),
                () if pages && has(&["remaining", "left", "more"]) => told(number > 0),
                () if pages && !has(&["per", "size", "max"]) => {
                    Some(if has(&["last"]) { Says::LastPage(number) } else { Says::Pages(number) })
                }
                () if has(&["remaining", "left"]) && words.len() == 1 => told(number > 0),
                // `counts: {savedSearches: 30}`
                () if is(&ENTRIES)
                    && (has(&["total", "count", "found", "hits", "matches", "nb", "num", "number"])
                        || within.last().is_some_and(|name| is_of_counts(&self::words(name)))) =>
                {
                    Some(Says::Entries(number))
                }
                // The end of a list, for some services.
                () if has(&["next"]) && words.last().is_some_and(|word| PLACES.contains(&word.as_str())) => {
                    told(number > 0)
                }
                () => None,
            }
        }
        b'"' => {
            let link =
                has(&["next", "continuation"]) && words.last().is_some_and(|word| PLACES.contains(&word.as_str()));
            match () {
                () if link => told(!raw.inner().is_empty()),
                () if is_last_key(words) && names_a_place(raw.inner()) => told(true),
                // The place behind the last entry, unless it is a time that was asked for.
                () if matches!(words, [word] if word == "after") && is_around_rows(within) => {
                    let ended =
                        |(name, raw): &Member<'_>| length(&self::words(name), within, *raw, &[]) == Some(Says::NoMore);
                    let more = !raw.inner().is_empty() && !siblings.iter().any(ended);
                    (!is_date(raw.inner())).then_some(if more { Says::More } else { Says::NoMore })
                }
                () if is_place(words, within) && names_a_place(raw.inner()) => Some(Says::Place),
                () if has(&["total", "count", "nb"]) && is(&ENTRIES) => count_of(raw).map(Says::Entries),
                // `range: "0-4/12"`
                () if words.last().is_some_and(|word| word == "range") => {
                    total_of_range(raw.inner()).map(Says::Entries)
                }
                () if is_page(words) => pages_of(raw.inner()).map(Says::Pages),
                () => None,
            }
        }
        b'n' if has(&["next", "continuation"]) => told(false),
        // `next: {href: …}`
        b'{' if matches!(words, [word] if word == "next") => told(tells(raw, 0)),
        // The key behind which the next page begins.
        b'{' if is_last_key(words) && tells(raw, 0) => told(true),
        // `search_after: [1764547200000, "x"]`
        b'[' if is_place(words, within) && has_items(raw) => Some(Says::Place),
        // `links: [{rel: "next", href: …}]`
        b'[' if matches!(words, [word] if word == "links" || word == "link") && has_next(raw) => told(true),
        _ => None,
    }
}

/// True for the name of an object of numbers of entries.
fn is_of_counts(words: &[String]) -> bool {
    matches!(words, [word] if ["count", "counts", "total", "totals"].contains(&word.as_str()))
}

/// True for the key behind which the next page begins: `LastEvaluatedKey`. The last page has none.
fn is_last_key(words: &[String]) -> bool {
    matches!(words, [last, evaluated, key] if last == "last" && evaluated == "evaluated" && key == "key")
}

/// True for the name of a place in a list that stands around its entries, rather than in what was asked for: `cursor`, `_scroll_id`.
fn is_place(words: &[String], within: &[String]) -> bool {
    const AROUND: [&str; 8] = ["items", "list", "response", "result", "results", "search", "searches", "saved"];
    let around = within.is_empty()
        || is_around_rows(within)
        || within.last().is_some_and(|name| {
            let words = self::words(name);
            words.iter().all(|word| AROUND.contains(&word.as_str())) && words != ["search"]
        });
    let names: Vec<&str> = words.iter().map(String::as_str).collect();
    around
        && matches!(
            names.as_slice(),
            ["cursor" | "marker"]
                | ["page" | "paging" | "pagination" | "scroll", "cursor" | "token" | "marker"]
                | ["scroll", "id"]
                | ["search", "after"]
        )
}

/// True for a text that names a place in a list, and not its end.
fn names_a_place(text: &str) -> bool {
    !["", "0", "-1", "end", "false", "none", "null"].contains(&&*text.trim().to_lowercase())
}

/// The number of all entries in the range of those of a page: `0-4/12`, `items 0-4/12`.
fn total_of_range(text: &str) -> Option<u64> {
    let (range, total) = text.rsplit_once('/')?;
    let (first, last) = range.rsplit(' ').next().filter(|_| !range.starts_with("bytes"))?.split_once('-')?;
    let (first, last, total): (u64, u64, u64) =
        (first.trim().parse().ok()?, last.trim().parse().ok()?, total.trim().parse().ok()?);
    (first <= last && last <= total).then_some(total)
}

/// True for the name of the number of a page.
fn is_page(words: &[String]) -> bool {
    let names: Vec<&str> = words.iter().map(String::as_str).collect();
    matches!(names.as_slice(), ["page"] | ["current", "page"] | ["page", "number"])
}

/// The number of pages beside that of a page: `1/3`, `1 of 3`.
fn pages_of(text: &str) -> Option<u64> {
    let (page, pages) = text.split_once('/').or_else(|| text.split_once(" of "))?;
    let (page, pages): (u64, u64) = (page.trim().parse().ok()?, pages.trim().parse().ok()?);
    (page <= pages).then_some(pages)
}

/// True for an object that rows may stand in, rather than one that repeats what was asked for.
fn is_around_rows(within: &[String]) -> bool {
    const AROUND: [&str; 6] = ["data", "meta", "metadata", "page", "paging", "pagination"];
    within.last().is_some_and(|name| AROUND.contains(&name.to_lowercase().as_str()))
}

/// True for a name that says whether the end was reached: `end`, `isEnd`, `endReached`, `end_of_stream`.
fn is_end(words: &[String]) -> bool {
    const ENDS: [&str; 7] = ["stream", "results", "list", "data", "items", "page", "pages"];
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["end"] | ["is", "end"] | ["end", "reached"] => true,
        ["end", "of", what] => ENDS.contains(&what),
        _ => false,
    }
}

/// True for a text that begins as a date does.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 8
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && (bytes[4] == b'-' || bytes.iter().all(u8::is_ascii_digit))
}

/// True for a list of links of which one is to the next page.
fn has_next(raw: Raw<'_>) -> bool {
    let (mut json, mut first) = (Json::new(raw.text), true);
    json.enter();
    while let Ok(true) = json.item(&mut first) {
        let Ok(link) = json.value() else { return false };
        let members = if link.first() == b'{' { members_of(link).unwrap_or_default() } else { Vec::new() };
        let named = |(name, raw): &Member<'_>| {
            matches!(&**name, "rel" | "relation" | "type" | "name") && raw.inner().eq_ignore_ascii_case("next")
        };
        let leads = |(name, raw): &Member<'_>| {
            matches!(&**name, "href" | "url" | "uri") && raw.first() == b'"' && !raw.inner().is_empty()
        };
        if members.iter().any(|member| member.1.first() == b'"' && named(member)) && members.iter().any(leads) {
            return true;
        }
    }
    false
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
            r#"{"paging":{"cursors":{"before":"x","after":"y"}}}"#,
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
