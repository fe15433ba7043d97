//! Members that say how long a list is, or that it continues.

use super::{Member, Says, count_of, has_items, is_of_lists, members_of, tells};
use crate::decode::json::{Json, Raw};
use crate::error::notice::words;

/// Objects whose numbers are not about entries: `credits: {remaining: 970}`.
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

/// Words of the names of numbers of entries.
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

/// Words after `next` in the names of what leads to the next page.
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

/// Words of the names of what is shown of a list.
const LISTED: [&str; 10] =
    ["entries", "hits", "items", "listed", "matches", "objects", "records", "results", "returned", "rows"];

/// Objects whose members are not about entries: `_shards: {total: 5}`.
const OTHERS: [&str; 6] = ["shards", "clusters", "nodes", "quota", "usage", "rate"];

/// Length of a list, as a member describes it. `within`: the names of the objects around it.
pub(super) fn length(words: &[String], within: &[String], raw: Raw<'_>, siblings: &[Member<'_>]) -> Option<Says> {
    let within_one_of = |list: &[&str]| within.iter().any(|name| has(&self::words(name), list));
    if within_one_of(&OTHERS) || (raw.first().is_ascii_digit() && within_one_of(&ACCOUNTS)) {
        return None;
    }
    match raw.first() {
        first @ (b't' | b'f') => length_by_flag(words, first == b't'),
        b'0'..=b'9' => length_by_number(words, within, count_of(raw)?, siblings),
        b'"' => length_by_text(words, within, raw, siblings),
        b'n' if has(words, &["next", "continuation"]) => continues(false),
        // `next: {href: …}`
        b'{' if matches!(words, [word] if word == "next") => continues(tells(raw, 0)),
        // The key behind which the next page begins.
        b'{' if is_last_key(words) && tells(raw, 0) => continues(true),
        // `search_after: [1764547200000, "x"]`
        b'[' if is_place(words, within) && has_items(raw) => Some(Says::Place),
        // `links: [{rel: "next", href: …}]`
        b'[' if matches!(words, [word] if word == "links" || word == "link") && has_next(raw) => continues(true),
        _ => None,
    }
}

/// True if one of the words is in a list.
fn has(words: &[String], list: &[&str]) -> bool {
    words.iter().any(|word| list.contains(&word.as_str()))
}

/// True if the last word is in [`PLACES`].
fn ends_with_a_place(words: &[String]) -> bool {
    words.last().is_some_and(|word| PLACES.contains(&word.as_str()))
}

/// A list that continues, or does not.
fn continues(more: bool) -> Option<Says> {
    Some(if more { Says::More } else { Says::NoMore })
}

/// As [`length`], of a member that is true or false.
fn length_by_flag(words: &[String], yes: bool) -> Option<Says> {
    let has = |list: &[&str]| has(words, list);
    match () {
        () if has(&["more"]) || has(&["truncated"]) || (has(&["has", "is"]) && has(&["next"])) => continues(yes),
        // `exceededTransferLimit: true`
        () if has(&["exceeded"]) && has(&["transfer", "page", "result", "results", "row", "rows"]) => continues(yes),
        // `end_of_stream: false`
        () if is_end(words) => continues(!yes),
        () if has(&["last", "final"]) && !has(&["updated", "seen", "run"]) => continues(!yes),
        () if matches!(words, [word] if word == "done" || word == "finished" || word == "exhausted") => continues(!yes),
        // `next: false`
        () if words.last().is_some_and(|word| word == "next") && !yes => continues(false),
        () => None,
    }
}

/// As [`length`], of a member with a number.
fn length_by_number(words: &[String], within: &[String], number: u64, siblings: &[Member<'_>]) -> Option<Says> {
    let has = |list: &[&str]| has(words, list);
    let pages = has(&["pages"]) || (has(&["page"]) && has(&["count", "last", "total"]));
    // `total: {value: 6}`, and `from: 1, to: 3, of: 6`
    let of_total = words == ["value"] && within.last().is_some_and(|name| self::words(name) == ["total"]);
    let of = words == ["of"] && siblings.iter().any(|(name, _)| self::words(name) == ["to"]);
    match () {
        () if of_total || of => Some(Says::Entries(number)),
        () if pages && has(&["remaining", "left", "more"]) => continues(number > 0),
        () if pages && !has(&["per", "size", "max"]) => {
            Some(if has(&["last"]) { Says::LastPage(number) } else { Says::Pages(number) })
        }
        () if has(&["remaining", "left"]) && words.len() == 1 => continues(number > 0),
        () if is_page_size(words) => Some(Says::Size(number)),
        // `counts: {savedSearches: 30}`
        () if is_of_entries(words)
            && (has(&["total", "count", "found", "hits", "matches", "nb", "num", "number"])
                || within.last().is_some_and(|name| is_of_counts(&self::words(name)))) =>
        {
            Some(Says::Entries(number))
        }
        // The end of a list, for some services.
        () if has(&["next"]) && ends_with_a_place(words) => continues(number > 0),
        () if is_cursor(words, within) => (number > 0).then_some(Says::Place),
        () => None,
    }
}

/// As [`length`], of a member with a text.
fn length_by_text(words: &[String], within: &[String], raw: Raw<'_>, siblings: &[Member<'_>]) -> Option<Says> {
    let has = |list: &[&str]| has(words, list);
    match () {
        () if has(&["next", "continuation"]) && ends_with_a_place(words) => continues(names_a_place(raw.inner())),
        () if is_last_key(words) && names_a_place(raw.inner()) => continues(true),
        // The place behind the last entry, unless it is a time that was asked for.
        () if matches!(words, [word] if word == "after") && is_around_rows(within) => {
            let ended = |(name, raw): &Member<'_>| length(&self::words(name), within, *raw, &[]) == Some(Says::NoMore);
            let more = !raw.inner().is_empty() && !siblings.iter().any(ended);
            continues(more).filter(|_| !is_date(raw.inner()))
        }
        () if is_place(words, within) && names_a_place(raw.inner()) => Some(Says::Place),
        () if is_page_size(words) => count_of(raw).map(Says::Size),
        () if has(&["total", "count", "nb"]) && is_of_entries(words) => count_of(raw).map(Says::Entries),
        // `range: "0-4/12"`
        () if words.last().is_some_and(|word| word == "range") => total_of_range(raw.inner()).map(Says::Entries),
        () if is_page(words) => pages_of(raw.inner()).map(Says::Pages),
        // Some services go on from a time.
        () if is_cursor(words, within)
            && names_a_place(raw.inner())
            && (has(&["cursor", "cursors"]) || !is_time(raw.inner())) =>
        {
            Some(Says::Place)
        }
        // A time at which something happens next is no place, and neither is a text for people.
        () if is_next(words, within)
            && names_a_place(raw.inner())
            && !is_time(raw.inner())
            && !raw.inner().contains(' ') =>
        {
            Some(Says::Place)
        }
        () => shown_of(words, raw.inner()),
    }
}

/// True for words of numbers of entries alone.
fn is_of_entries(words: &[String]) -> bool {
    words.iter().all(|word| ENTRIES.contains(&word.as_str()))
}

/// True for the name of an object of numbers of entries.
pub(super) fn is_of_counts(words: &[String]) -> bool {
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
    // `cursors: {before: "x", after: "y"}`
    let is_cursor =
        |name: &String| matches!(self::words(name).as_slice(), [word] if word == "cursor" || word == "cursors");
    if names == ["after"] && within.last().is_some_and(is_cursor) {
        return true;
    }
    around
        && matches!(
            names.as_slice(),
            ["cursor" | "marker"]
                | ["page" | "paging" | "pagination" | "scroll", "cursor" | "token" | "marker"]
                | ["scroll", "id"]
                | ["search", "after"]
        )
}

/// True for any name of a place behind the entries that it stands around: `endCursor`, `resumeToken`.
fn is_cursor(words: &[String], within: &[String]) -> bool {
    const PLACES: [&str; 6] = ["bookmark", "continuation", "cursor", "cursors", "marker", "token"];
    // Other places, and tokens that are none.
    const OTHERS: [&str; 33] = [
        "access", "account", "api", "app", "auth", "bearer", "before", "change", "client", "csrf", "delta", "device",
        "embed", "first", "id", "jwt", "prev", "previous", "public", "push", "refresh", "request", "security", "self",
        "session", "share", "start", "sync", "team", "trace", "user", "version", "xsrf",
    ];
    let place = words.last().is_some_and(|word| PLACES.contains(&word.as_str()));
    is_beside_entries(within) && place && !has(words, &OTHERS)
}

/// True for a name that may say what follows the entries that it stands around: `nextAid`, `moreResults`.
fn is_next(words: &[String], within: &[String]) -> bool {
    const OTHERS: [&str; 20] = [
        "billing", "charge", "details", "help", "info", "invoice", "learn", "plan", "read", "refresh", "release",
        "renewal", "reset", "run", "step", "steps", "sync", "update", "updates", "version",
    ];
    is_beside_entries(within) && has(words, &["next", "more"]) && !has(words, &OTHERS)
}

/// True for the response itself, or an object about its pages or entries.
fn is_beside_entries(within: &[String]) -> bool {
    within.last().is_none_or(|name| is_of_lists(name) && words(name) != ["search"])
}

/// Reads a text that says how many of all entries are shown, such as `Showing 1 of 2 saved searches`, or which of the pages.
/// `name`: the words of its name. Others count what is used of an allowance.
fn shown_of(name: &[String], text: &str) -> Option<Says> {
    /// Bytes of a text that is read.
    const LONGEST: usize = 1_000;
    let other = |mark: char| !mark.is_ascii_digit() && mark != ',';
    let number = |part: &str| part.replace(',', "").parse::<u64>().ok();
    let words: Vec<&str> = if text.len() <= LONGEST { text.split_whitespace().collect() } else { Vec::new() };
    let of = |word: &&str| word.trim_matches(|mark: char| !mark.is_alphabetic()).eq_ignore_ascii_case("of");
    let at = words.iter().position(of)?;
    let (before, after) = (&words[..at], &words[at + 1..]);
    let place = before.iter().rposition(|word| word.contains(|mark: char| mark.is_ascii_digit()))?;
    let shown = before[place].trim_end_matches(other).rsplit(other).next().and_then(number)?;
    let all = after.iter().find_map(|word| word.trim_start_matches(other).split(other).next().and_then(number))?;
    let is_page = place > 0 && before[place - 1].eq_ignore_ascii_case("page");
    let is_list = || is_of_list(name, text, is_page || ends_with_a_range(&before[..=place]));
    match shown < all && is_list() {
        true if is_page => Some(Says::Pages(all)),
        true => Some(Says::Shown(shown, all)),
        false => None,
    }
}

/// True for a text about entries of a list, by its words or those of its name. `placed`: it names a page or a range.
fn is_of_list(name: &[String], text: &str, placed: bool) -> bool {
    const SHOWN: [&str; 8] = ["display", "displayed", "displaying", "displays", "show", "showing", "shown", "shows"];
    const ALLOWED: [&str; 14] = [
        "allowance",
        "allowed",
        "left",
        "limit",
        "limits",
        "plan",
        "quota",
        "remaining",
        "seat",
        "seats",
        "usage",
        "use",
        "used",
        "using",
    ];
    let said = [name, words(text).as_slice()].concat();
    has(&said, &SHOWN) || ((placed || has(&said, &LISTED)) && !has(&said, &ALLOWED))
}

/// True for words that end with a range of numbers: `1-10`, `1 to 10`.
fn ends_with_a_range(words: &[&str]) -> bool {
    let is_number = |word: &str| word.contains(|mark: char| mark.is_ascii_digit());
    match words {
        [.., last] if last.split(['-', '\u{2013}']).filter(|part| is_number(part)).count() > 1 => true,
        [.., first, to, _] => is_number(first) && ["-", "\u{2013}", "to", "through"].contains(to),
        _ => false,
    }
}

/// True for the name of the largest number of entries of a page: `limit`, `maxItems`, `per_page`. A `size` alone may be the number of
/// the entries.
fn is_page_size(words: &[String]) -> bool {
    const LARGEST: [&str; 5] = ["limit", "max", "maximum", "per", "top"];
    const ENTRIES: [&str; 11] = [
        "count", "elements", "entries", "items", "number", "objects", "page", "records", "results", "rows", "searches",
    ];
    let is_in = |word: &String, list: &[&str]| list.contains(&word.as_str());
    let largest = words.iter().any(|word| is_in(word, &LARGEST));
    let of_entries = |word: &String| is_in(word, &LARGEST) || is_in(word, &ENTRIES) || word == "size";
    let names: Vec<&str> = words.iter().map(String::as_str).collect();
    (largest && words.iter().all(of_entries)) || matches!(names.as_slice(), ["page" | "batch" | "chunk", "size"])
}

/// True for a text that begins as a date does and is no number.
fn is_time(text: &str) -> bool {
    is_date(text) && text.contains('-')
}

/// True for a text that names a place in a list, and not its end.
fn names_a_place(text: &str) -> bool {
    !["", "0", "-1", "end", "false", "n", "no", "none", "null"].contains(&&*text.trim().to_lowercase())
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
