//! Names that services of this kind use: candidates to try, and field names with their columns.
//!
//! Names are guesses until a response shows an effect. Field names are compared without case and punctuation, first by
//! the full path, then by its last step.

/// Column names with the field names that map to them, the likeliest first.
pub(super) type Names = &'static [(&'static str, &'static [&'static str])];

pub(super) const MENTION: Names = &[
    ("id", &["id", "idstr", "mentionid", "uuid", "guid", "documentid"]),
    ("seq", &["seq", "sequence", "position", "number"]),
    ("url", &["url", "link", "permalink"]),
    ("title", &["title", "headline", "subject"]),
    ("text", &["text", "body", "content", "fulltext", "message"]),
    ("snippet", &["snippet", "excerpt", "abstract"]),
    (
        "published_at",
        &[
            "publishedat",
            "published",
            "publicationdate",
            "publishdate",
            "pubdate",
            "date",
            "ts",
            "timestamp",
            "time",
            "postedat",
            "createdat",
            "created",
            "publishedtime",
            "publisheddate",
            "createdtime",
            "createdutc",
        ],
    ),
    ("indexed_at", &["indexedat", "indexed", "indexedts", "collectedat", "collected", "crawledat", "addedat"]),
    ("updated_at", &["updatedat", "updated", "modifiedat", "modified", "editedat", "edited", "editedts"]),
    (
        "source",
        &["sourcename", "source", "sitename", "site", "domain", "sourcehost", "sourcedomain", "hostname", "host"],
    ),
    ("source_type", &["sourcetype", "sourcecategory", "mediatype"]),
    ("platform", &["sourceplatform", "platform", "network"]),
    ("author_id", &["authorid", "authoridstr"]),
    ("author_name", &["authorname", "authorfullname", "authordisplayname"]),
    (
        "author_handle",
        &["authorhandle", "authorscreenname", "authorusername", "author", "handle", "screenname", "username"],
    ),
    ("author_followers", &["authorfollowers", "authorfollowerscount", "followers", "followerscount"]),
    ("language", &["language", "lang", "languagecode", "langcode"]),
    ("country", &["country", "countrycode"]),
    ("sentiment", &["sentimentlabel", "sentiment", "tone", "polarity", "mood"]),
    ("sentiment_score", &["sentimentscore", "score"]),
    ("reach", &["reach", "audience", "potentialreach", "impressions", "reachestimate", "estimatedreach"]),
    ("likes", &["engagementlikes", "interactionslikes", "likes"]),
    ("comments", &["engagementcomments", "interactionscomments", "comments"]),
    ("shares", &["engagementshares", "interactionsshares", "shares"]),
    ("views", &["engagementviews", "interactionsviews", "views"]),
    ("engagement", &["engagementtotal", "interactionstotal", "engagement", "interactions"]),
    ("type", &["type", "kind", "contenttype", "mentiontype"]),
    ("parent_id", &["parentid"]),
    ("tags", &["tags"]),
    ("hashtags", &["hashtags"]),
    ("images", &["images"]),
];

pub(super) const SAVED_SEARCH: Names = &[
    (
        "name",
        &["name", "title", "label", "displayname", "queryname", "searchname", "topicname", "monitorname", "alertname"],
    ),
    ("kind", &["scope", "type", "kind", "category"]),
    ("query", &["query", "q", "expression", "keywords"]),
    ("team_id", &["teamid"]),
    ("team_name", &["teamname", "ownerteam", "team"]),
    ("owner", &["owner", "ownername", "createdby"]),
    ("languages", &["languages"]),
    ("created_at", &["createdat", "created", "createdon"]),
    ("updated_at", &["updatedat", "updated", "modified"]),
    ("searched_at", &["searchedat", "at"]),
];

pub(super) const OVERVIEW: Names = &[
    ("total_mentions", &["totalmentions", "totalresults", "mentions", "results", "count", "total", "hits"]),
    ("total_relation", &["totalrelation", "relation"]),
    ("unique_authors", &["uniqueauthors", "authors"]),
    ("total_reach", &["totalreach", "sumreach", "reachsum", "reach", "audience"]),
    ("total_engagement", &["totalengagement", "sumengagement", "engagement", "interactions"]),
    ("positive", &["sentimentpositive", "bysentimentpositive", "positive"]),
    ("neutral", &["sentimentneutral", "bysentimentneutral", "neutral"]),
    ("negative", &["sentimentnegative", "bysentimentnegative", "negative"]),
    ("unknown", &["sentimentunknown", "bysentimentnone", "sentimentnone", "unknown"]),
];

/// Columns that are counts.
pub(super) const COUNTS: &[&str] = &[
    "author_followers",
    "reach",
    "likes",
    "comments",
    "shares",
    "views",
    "engagement",
    "total_mentions",
    "unique_authors",
    "total_reach",
    "total_engagement",
    "positive",
    "neutral",
    "negative",
    "unknown",
];

/// Labels of top lists, with words that their names contain.
pub(super) const BREAKDOWNS: &[(&str, &[&str])] = &[
    ("source", &["source", "site", "domain"]),
    ("author", &["author"]),
    ("keyword", &["keyword", "topic", "phrase"]),
    ("hashtag", &["hashtag"]),
    ("language", &["lang"]),
    ("country", &["countr"]),
    ("sentiment", &["sentiment", "tone", "mood", "polarity"]),
];

/// Columns that services filter by, the likeliest first.
pub(super) const FILTERED: [&str; 5] = ["language", "sentiment", "source", "type", "country"];

/// Usual parameter names of filters, besides the field's own name.
pub(super) const FILTERS: &[(&str, &[&str])] = &[
    ("language", &["language", "lang", "languages"]),
    ("sentiment", &["sentiment", "tone"]),
    ("source", &["source", "site", "domain", "sources"]),
    ("type", &["type", "kind"]),
    ("country", &["country", "countries"]),
];

/// Names of list entries that count mentions without a value.
pub(super) const MISSING: &[&str] = &["unknown", "none", "null", "missing", "unset", "undefined", "notset"];

/// Values of a field that mean NULL to everyone.
pub(super) const NULLS: &[&str] = &["", "-", "--", "n/a", "N/A", "null", "NULL", "None", "nil", "undefined"];

/// Names of totals.
const TOTALS: &[&str] =
    &["total", "totalresults", "totalcount", "count", "hits", "resultcount", "numfound", "totalmentions"];

/// Words in the names of totals of other things than mentions.
const OTHER_TOTALS: [&str; 15] = [
    "author",
    "user",
    "reach",
    "engage",
    "interact",
    "view",
    "like",
    "share",
    "comment",
    "impression",
    "audience",
    "page",
    "shard",
    "follower",
    "source",
];

/// Rank of the name of a number as that of a total, 0 for the likeliest; `None` for a number of another name. For `…/value`, the
/// parent's name decides.
pub(super) fn total_rank(path: &[String]) -> Option<usize> {
    let named = |name: &String| {
        let name = plain(name);
        let usual = TOTALS.iter().position(|known| *known == name);
        let other = OTHER_TOTALS.iter().any(|word| name.contains(word));
        usual.or((name.contains("total") && !other).then_some(TOTALS.len()))
    };
    match path {
        [.., parent, last] if plain(last) == "value" => named(parent),
        [.., last] => named(last),
        [] => None,
    }
}

/// True if a number is named like one of other things than mentions.
pub(super) fn counts_others(path: &[String]) -> bool {
    path.last().is_some_and(|name| OTHER_TOTALS.iter().any(|word| plain(name).contains(word)))
}

/// Key forms, the likeliest first: header and value.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("Authorization", "Bearer {key}"),
    ("Authorization", "Token {key}"),
    ("Authorization", "Basic {base64}"),
    ("Authorization", "{key}"),
    ("X-Api-Key", "{key}"),
    ("Authorization", "ApiKey {key}"),
    ("Authorization", "Token token={key}"),
    ("X-Auth-Token", "{key}"),
    ("Api-Key", "{key}"),
];

/// Parameters with fixed names (API description, sections 4.2 and 7).
pub(super) const GIVEN: [&str; 6] = ["aid", "duration", "timezone", "dataFrom", "dataSize", "sortBy"];

/// Names of the id of a saved search in lists without an `aid`, the likeliest first, as [`plain`] returns them.
pub(super) const IDS: &[&str] =
    &["searchid", "savedsearchid", "queryid", "topicid", "alertid", "monitorid", "projectid", "id"];

/// True for a usual name of the id of a saved search.
pub(super) fn is_usual_id(name: &str) -> bool {
    let name = plain(name);
    name == "aid" || IDS.contains(&name.as_str())
}

/// Parameters that may request mentions.
pub(super) const FLAGS: &[&str] = &[
    "mentions",
    "include",
    "view",
    "withMentions",
    "includeMentions",
    "withData",
    "data",
    "results",
    "expand",
    "details",
    "includeData",
    "withResults",
    "documents",
    "items",
];
/// Words in the names of other parameters that may request mentions.
pub(super) const FLAG_WORDS: &[&str] = &[
    "data", "mention", "result", "view", "include", "with", "full", "expand", "detail", "record", "doc", "item",
    "show", "return", "hits",
];

/// Values that switch a flag on.
pub(super) const FLAG_VALUES: &[&str] = &["true", "1", "yes"];

/// Returns the value that switches a parameter on, if a parameter of this name usually takes another one.
pub(super) fn flag_value(name: &str, value: &str) -> String {
    match (name, value) {
        ("include" | "expand" | "fields", "true") => "mentions".to_owned(),
        ("view" | "mode" | "detail", "true") => "full".to_owned(),
        _ => value.to_owned(),
    }
}

/// Relative windows that test a unit, and their hours.
pub(super) const UNITS: &[(&str, i64)] = &[("60d", 1_440), ("30d", 720), ("48h", 48), ("3w", 504)];

/// Hours of a relative or named window: `60d`, `P30D`, `PT48H`, `LAST_7_DAYS`, `last-month`.
pub(super) fn hours(label: &str) -> Option<i64> {
    if let Some((_, hours)) = UNITS.iter().chain(PERIODS).find(|(known, _)| *known == label) {
        return Some(*hours);
    }
    let name = plain(label);
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    let words: String = name.chars().filter(|c| !c.is_ascii_digit()).collect();
    let number: i64 = if digits.is_empty() { 1 } else { digits.parse().ok().filter(|n| (1..100_000).contains(n))? };
    let one_number =
        name.trim_start_matches(|c: char| !c.is_ascii_digit()).trim_start_matches(|c: char| c.is_ascii_digit());
    if !digits.is_empty() && one_number.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let before = ["last", "past", "previous", "trailing", "rolling", "now"];
    let words = before.iter().fold(words.as_str(), |words, word| words.trim_start_matches(word));
    if !digits.is_empty()
        && let Some(hours) = hours_elsewhere(words)
    {
        return Some(number * hours);
    }
    let unit = match words {
        "h" | "hour" | "hours" | "hr" | "hrs" | "pth" => 1,
        "d" | "day" | "days" | "pd" => 24,
        "w" | "week" | "weeks" | "pw" => 168,
        "month" | "months" | "pm" => 720,
        "quarter" => 2_184,
        "year" | "years" | "py" | "y" => 8_760,
        _ => return None,
    };
    // Without a number, a word such as `week` is a window, but one or two letters are not.
    (!digits.is_empty() || words.len() > 2).then_some(number * unit)
}

/// Hours of a unit in Spanish, Portuguese, French, Italian or German, which may have a word for `last` before it.
fn hours_elsewhere(words: &str) -> Option<i64> {
    const LAST: [&str; 13] = [
        "ultimos",
        "ultimas",
        "ultimo",
        "ultima",
        "ultimi",
        "ultime",
        "derniers",
        "dernieres",
        "derniere",
        "dernier",
        "letzten",
        "letzter",
        "letzte",
    ];
    const UNITS: [(i64, &[&str]); 5] = [
        (1, &["hora", "horas", "heure", "heures", "ora", "ore", "stunde", "stunden"]),
        (24, &["dia", "dias", "jour", "jours", "giorno", "giorni", "tage", "tagen"]),
        (168, &["semana", "semanas", "semaine", "semaines", "settimana", "settimane", "woche", "wochen"]),
        (720, &["mes", "meses", "mois", "mese", "mesi", "monat", "monate", "monaten"]),
        (8_760, &["anos", "annee", "annees", "anno", "anni", "jahr", "jahre", "jahren"]),
    ];
    let unit = LAST.iter().find_map(|last| words.strip_prefix(last)).unwrap_or(words);
    UNITS.iter().find(|(_, names)| names.contains(&unit)).map(|(hours, _)| *hours)
}

/// True if a value is a number in a notation with `{n}`.
pub(super) fn is_of(value: &str, template: &str) -> bool {
    number_of(value, template).is_some()
}

/// Hours of a value in a notation with `{n}` of hours, days or weeks: of `60` in `{n}` of days.
pub(super) fn hours_as(value: &str, unit: char, template: &str) -> Option<i64> {
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        _ => 168,
    };
    let number: i64 = number_of(value, template)?.parse().ok()?;
    (1..100_000).contains(&number).then_some(number * hours)
}

/// The notation of hours that goes with one of days: `PT{n}H` with `P{n}D`, `{n}h` with `{n}d`, `{n} hours` with `{n} days`.
pub(super) fn hourly(days: &str) -> Option<String> {
    let (head, tail) = days.split_once("{n}")?;
    let (head, tail) = match (head, tail) {
        ("P", "D") => ("PT", "H"),
        (head, "d") => (head, "h"),
        (head, "D") => (head, "H"),
        (head, "days") => (head, "hours"),
        (head, " days") => (head, " hours"),
        _ => return None,
    };
    Some(format!("{head}{{n}}{tail}"))
}

/// The digits of a value in a notation with `{n}`.
fn number_of<'v>(value: &'v str, template: &str) -> Option<&'v str> {
    let (head, tail) = template.split_once("{n}").unwrap_or((template, ""));
    let number = value.strip_prefix(head)?.strip_suffix(tail)?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

/// Names of windows, and their hours.
pub(super) const PERIODS: &[(&str, i64)] = &[
    ("last_year", 8_760),
    ("last_week", 168),
    ("last_month", 720),
    ("last_day", 24),
    ("last_quarter", 2_184),
    ("day", 24),
    ("week", 168),
    ("month", 720),
    ("year", 8_760),
];

/// Window names to try if a refusal lists none: the first of each family, and the others of a family that works.
pub(super) const FAMILIES: &[&[&str]] = &[
    &["P60D"],
    &["LAST_90_DAYS", "LAST_7_DAYS", "LAST_30_DAYS"],
    &["last_year", "last_week", "last_month", "last_quarter", "last_day"],
    &["last_90_days", "last_7_days", "last_30_days"],
    &["month", "week", "day", "year"],
    &["90days", "7days", "30days"],
    &["last-90-days", "last-7-days", "last-30-days"],
    &["Last90Days", "Last7Days", "Last30Days"],
    &["30 days", "7 days", "90 days"],
];

/// Pairs of parameters that usually take the ends of a window.
const ENDS: &[(&str, &str)] = &[
    ("from", "to"),
    ("since", "until"),
    ("start", "end"),
    ("dateFrom", "dateTo"),
    ("startDate", "endDate"),
    ("begin", "finish"),
    ("after", "before"),
    ("fromDate", "toDate"),
    ("start_date", "end_date"),
    ("date_from", "date_to"),
];

/// Words for the beginning of a window in the name of a parameter, each with the word for its end.
const END_WORDS: &[(&str, &str)] = &[
    ("from", "to"),
    ("since", "until"),
    ("since", "till"),
    ("start", "end"),
    ("start", "stop"),
    ("begin", "end"),
    ("after", "before"),
    ("min", "max"),
    ("first", "last"),
    ("gte", "lte"),
    ("gte", "lt"),
    ("lower", "upper"),
];

/// Usual pairs of parameters that take the ends of a window, those with brackets first if a service has such names.
pub(super) fn usual_ends(has_brackets: bool) -> Vec<(String, String)> {
    let plain = ENDS.iter().map(|(since, until)| ((*since).to_owned(), (*until).to_owned()));
    let bracketed = ENDS.iter().map(|(since, until)| (format!("filter[{since}]"), format!("filter[{until}]")));
    bracketed.filter(|_| has_brackets).chain(plain).collect()
}

/// Pairs of parameters that may take the ends of a window: those of the named parameters whose names differ in a word such as
/// `from` and `to`, or the usual ones if none are named.
pub(super) fn ends_among(named: Option<&[String]>) -> Vec<(String, String)> {
    let Some(named) = named else { return usual_ends(false) };
    let is_pair = |since: &String, until: &String| {
        let (one, other) = (plain(since), plain(until));
        let differ = |(word, end): &(&str, &str)| {
            one.match_indices(word).any(|(at, _)| format!("{}{end}{}", &one[..at], &one[at + word.len()..]) == other)
        };
        END_WORDS.iter().any(differ)
    };
    let free = || named.iter().filter(|name| !GIVEN.contains(&name.as_str()));
    let pairs = free().flat_map(|since| free().map(move |until| (since.clone(), until.clone())));
    pairs.filter(|(since, until)| is_pair(since, until)).collect()
}

/// The two ends of a window of which a parameter is one, by its name: `startDate` and `endDate`. Several, if other names are
/// possible; none, if its name is that of neither end.
pub(super) fn ends_with(name: &str) -> Vec<(String, String)> {
    /// Parts of a name that may stand beside such a word without a mark between them.
    const BESIDE: [&str; 5] = ["", "date", "time", "day", "timestamp"];
    let swapped = |word: &str, other: &str| {
        let lower = name.to_ascii_lowercase();
        let of_word = |at: &usize| {
            let (before, rest, after) = (&name[..*at], &name[*at..], &lower[at + word.len()..]);
            let capital = |text: &str| text.starts_with(|c: char| c.is_ascii_uppercase());
            let mark = |c: Option<char>| c.is_some_and(|c| !c.is_ascii_alphanumeric());
            (BESIDE.contains(&&lower[..*at]) || mark(before.chars().next_back()) || capital(rest))
                && (BESIDE.contains(&after) || mark(after.chars().next()) || capital(&name[at + word.len()..]))
        };
        let at = lower.match_indices(word).map(|(at, _)| at).find(of_word)?;
        let other = match name[at..].starts_with(|c: char| c.is_ascii_uppercase()) {
            true => format!("{}{}", other[..1].to_ascii_uppercase(), &other[1..]),
            false => other.to_owned(),
        };
        Some(format!("{}{other}{}", &name[..at], &name[at + word.len()..]))
    };
    let pairs = END_WORDS.iter().filter(|_| name.is_ascii()).flat_map(|(start, end)| {
        let until = swapped(start, end).map(|until| (name.to_owned(), until));
        [until, swapped(end, start).map(|since| (since, name.to_owned()))]
    });
    pairs.flatten().collect()
}

/// As [`ends_with`], without names that are more often those of numbers: `min_reach` and `max_reach`.
pub(super) fn ends_of_time(name: &str) -> impl Iterator<Item = (String, String)> {
    let of_numbers =
        |since: &str| ["min", "max", "first", "last", "lower", "upper", "gte"].iter().any(|word| since.contains(word));
    ends_with(name).into_iter().filter(move |(since, _)| !of_numbers(&since.to_lowercase()))
}

/// Other names of the page size, the likeliest first.
pub(super) const SIZES: [&str; 13] = [
    "limit",
    "per_page",
    "page_size",
    "pageSize",
    "perPage",
    "page[size]",
    "size",
    "count",
    "rows",
    "max_results",
    "maxResults",
    "$top",
    "num",
];

/// Names of the place of a page, the likeliest first, each with true if it usually counts pages.
pub(super) const OFFSETS: [(&str, bool); 14] = [
    ("page", true),
    ("offset", false),
    ("skip", false),
    ("from", false),
    ("start", false),
    ("pageNumber", true),
    ("page_number", true),
    ("page[number]", true),
    ("startIndex", false),
    ("start_index", false),
    ("pageIndex", true),
    ("page_index", true),
    ("page[offset]", false),
    ("dataFrom", false),
];

/// Parameters that take the id of the mention before a page, the likeliest first.
pub(super) const PLACES: [&str; 14] = [
    "after",
    "starting_after",
    "after_id",
    "max_id",
    "last_id",
    "startingAfter",
    "afterId",
    "maxId",
    "lastId",
    "from_id",
    "search_after",
    "page[after]",
    "cursor",
    "since_id",
];

/// Values of the sort parameter, the likeliest first.
pub(super) const SORTS: &[&str] = &[
    "date_desc",
    "date_asc",
    "reach_desc",
    "newest",
    "oldest",
    "recent",
    "-date",
    "date",
    "date:desc",
    "date:asc",
    "DATE_DESC",
    "DATE_ASC",
    "-published_at",
    "published_at",
    "reach",
    "engagement_desc",
];

/// Usual page limits.
pub(super) const PAGE_BOUNDS: &[u64] = &[1_000, 500, 250, 200, 100, 50, 20, 10];
/// Usual limits of paging depth.
pub(super) const DEPTHS: &[u64] = &[500, 1_000, 2_000, 5_000, 10_000];

/// Subject of a filter parameter, without case and punctuation: `filter[lang]`, `filter.lang`, `lang[]`.
pub(super) fn filtered_by(parameter: &str) -> String {
    let name = parameter.trim_end_matches("[]");
    let inner = name.split_once('[').and_then(|(_, rest)| rest.strip_suffix(']'));
    let inner = inner.unwrap_or(name);
    let rest = ["filters", "filter"].iter().find_map(|word| inner.strip_prefix(word));
    plain(rest.filter(|rest| rest.starts_with(['.', '_', '-', ':'])).unwrap_or(inner))
}

/// A name without case and punctuation.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns the column that a field maps to, with its rank (0 is likeliest): by the full path, then by its last step.
pub(super) fn column(names: Names, path: &[String]) -> Option<(&'static str, usize)> {
    let last = path.last().map(|step| plain(step)).unwrap_or_default();
    let find = |name: &str| {
        let mut found = names.iter().filter_map(|(column, known)| {
            let at = known.iter().position(|known| *known == name)?;
            Some((*column, at))
        });
        found.next()
    };
    // Objects around a field say less about it than its own: `attributes/source/name` is a source's name.
    let inner = || (1..path.len().saturating_sub(1)).find_map(|start| find(&plain(&path[start..].concat())));
    // `user/name` is the name of a user, not a user name.
    let of_user = || {
        let [.., parent, _] = path else { return None };
        let user = ["user", "poster", "creator", "profile"].contains(&plain(parent).as_str());
        user.then(|| find(&format!("author{last}"))).flatten()
    };
    of_user()
        .or_else(|| find(&plain(&path.concat())))
        .or_else(|| inner().map(|(column, at)| (column, at + 50)))
        .or_else(|| find(&last).map(|(column, at)| (column, at + 100)))
}

/// Returns the column of mentions that a list is named after: `countries`, `bySite`, `topLanguages`.
pub(super) fn listed_column(path: &[String]) -> Option<&'static str> {
    path.iter().rev().find_map(|step| {
        let name = plain(step);
        let name = ["by", "top", "per"].iter().find_map(|word| name.strip_prefix(word)).unwrap_or(&name);
        let one = name.strip_suffix("ies").map(|stem| format!("{stem}y"));
        let singular = [Some(name.to_owned()), one, name.strip_suffix('s').map(str::to_owned)];
        singular.into_iter().flatten().find_map(|name| column(MENTION, &[name])).map(|(column, _)| column)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn hours_are_written_as_days_are() {
        let cases = [
            ("P{n}D", Some("PT{n}H")),
            ("{n}d", Some("{n}h")),
            ("-{n}D", Some("-{n}H")),
            ("{n} days", Some("{n} hours")),
            ("{n}days", Some("{n}hours")),
            ("{n}", None),
            ("last_{n}_days", None),
            ("{n}w", None),
            ("60", None),
        ];
        each(cases, |(days, hours)| assert_eq!(hourly(days).as_deref(), hours, "{days}"));
    }

    #[test]
    fn the_other_end_of_a_window_follows_from_the_name_of_one() {
        let cases = [
            ("startDate", Some(("startDate", "endDate"))),
            ("end_date", Some(("start_date", "end_date"))),
            ("dateFrom", Some(("dateFrom", "dateTo"))),
            ("until", Some(("since", "until"))),
            ("publishedAfter", Some(("publishedAfter", "publishedBefore"))),
            ("fromdate", Some(("fromdate", "todate"))),
            ("filter[to]", Some(("filter[from]", "filter[to]"))),
            ("topic", None),
            ("endpoint", None),
            ("platform", None),
            ("queryId", None),
        ];
        each(cases, |(name, pair)| {
            let found = ends_with(name);
            let expected = pair.map(|(since, until)| (since.to_owned(), until.to_owned()));
            assert_eq!(found.first(), expected.as_ref(), "{name}: {found:?}");
        });
    }

    #[test]
    fn fields_are_recognized_inside_of_envelopes() {
        let cases = [
            ("user/name", Some("author_name")),
            ("user/screen_name", Some("author_handle")),
            ("username", Some("author_handle")),
            ("attributes/source/name", Some("source")),
            ("attributes/author/id", Some("author_id")),
            ("_source/site", Some("source")),
            ("attributes/lang/code", Some("language")),
            ("id", Some("id")),
            ("attributes/zub", None),
        ];
        each(cases, |(path, name)| {
            let path: Vec<String> = path.split('/').map(str::to_owned).collect();
            assert_eq!(column(MENTION, &path).map(|(column, _)| column), name, "{path:?}");
        });
        let rank = |name: &str| total_rank(&[name.to_owned()]);
        assert!(rank("totalMentions") < rank("resultsTotal") && rank("resultsTotal").is_some());
        assert_eq!([rank("totalAuthors"), rank("totalPages"), rank("totalReach")], [None; 3]);
        let cases = [
            ("filter[lang]", "lang"),
            ("filter.site", "site"),
            ("lang[]", "lang"),
            ("filter_by", "by"),
            ("Filtered", "filtered"),
        ];
        each(cases, |(parameter, of)| {
            assert_eq!(filtered_by(parameter), of);
        });
        let cases = [
            ("now-7d", Some(168)),
            ("last_24_hours", Some(24)),
            ("1y", Some(8_760)),
            ("now", None),
            ("ultimos_7_dias", Some(168)),
            ("letzte-24-stunden", Some(24)),
            ("dia", None),
        ];
        each(cases, |(period, known)| assert_eq!(hours(period), known, "{period}"));
    }

    #[test]
    fn a_list_is_named_after_a_column() {
        let cases = [
            ("countries", Some("country")),
            ("bySite", Some("source")),
            ("topLanguages", Some("language")),
            ("source_types", Some("source_type")),
            ("keywords", None),
        ];
        each(cases, |(name, column)| {
            assert_eq!(listed_column(&[name.to_owned()]), column, "{name}");
        });
    }

    #[test]
    fn the_ends_of_a_window_are_two_parameters_whose_names_differ_in_a_word() {
        for (named, ends) in [
            (["aid", "publishedFrom", "publishedTo"], Some(("publishedFrom", "publishedTo"))),
            (["min_date", "lang", "max_date"], Some(("min_date", "max_date"))),
            (["before", "view", "after"], Some(("after", "before"))),
            (["dataFrom", "to", "site"], None),
        ] {
            let named = named.map(str::to_owned);
            let found = ends_among(Some(&named));
            let expected = ends.map(|(since, until)| (since.to_owned(), until.to_owned()));
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{named:?}");
        }
        assert!(ends_among(None).len() > 5 && ends_among(Some(&[])).is_empty());
        let [(since, until), ..] = &usual_ends(true)[..] else { panic!("no pairs") };
        assert_eq!((since.as_str(), until.as_str()), ("filter[from]", "filter[to]"));
    }
}
