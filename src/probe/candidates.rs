//! Candidates for windows, sort orders and filters, and further candidates derived from the outcomes.

use chrono::SecondsFormat;
use serde_json::Value;

use super::asker::Pair;
use super::effects::DAY;
use super::observations::Findings;
use super::refusal::values;
use super::scheduler::{Dimension, Outcome, Try, number_in};
use super::shape::{Path, each_once, leaves, utc};
use super::vocabulary::{self, hours, plain};

/// A value that means nothing to any service.
pub(super) const NONSENSE: &str = "zzq";
/// Parameters with fixed names (API description, sections 4.2 and 7).
pub(super) const AID: &str = "aid";
pub(super) const DURATION: &str = "duration";
pub(super) const TIMEZONE: &str = "timezone";
pub(super) const OFFSET: &str = "dataFrom";
pub(super) const SIZE: &str = "dataSize";
pub(super) const SORT: &str = "sortBy";

/// A parameter with its value.
pub(super) fn pair(name: &str, value: impl ToString) -> Pair {
    (name.to_owned(), value.to_string())
}

/// Instant formats to try for the ends of a window before a refusal names one.
const WRITTEN: [&str; 3] = ["rfc3339", "date", "epoch_ms"];

/// Adds candidates for the window, based on the outcomes so far. `takes` returns true if a parameter may be sent.
pub(super) fn more_periods(
    found: &Findings,
    periods: &mut Dimension,
    newest: Option<i64>,
    takes: &dyn Fn(&str) -> bool,
    spoken: &[String],
) {
    /// Names of a list that are worth a request each.
    const NAMES: usize = 4;
    let effective = |periods: &Dimension, label: &str| {
        periods.taken().any(|(tried, reply)| tried.label == label && found.has_effect(periods, tried, reply, newest))
    };
    let (control, days) = (periods.outcome(NONSENSE).cloned(), periods.outcome("60d").cloned());
    let (Some(control), Some(days)) = (control, days) else { return };
    // A list in a refusal is treated as exhaustive.
    let listed = match &control {
        Outcome::Refused(text) => Some(values(text)).filter(|values| values.len() > 1),
        Outcome::Taken(_) => None,
    };
    let lists = |word: &str| listed.as_ref().is_none_or(|listed| listed.iter().any(|hint| hint.contains(word)));
    let add = |periods: &mut Dimension, value: &str| periods.add(Try::new(value, DURATION, value));
    let works = effective(periods, "60d") || effective(periods, "30d");
    if let Outcome::Refused(text) = &days
        && number_in(text).is_some_and(|days| days >= 30)
        && text.contains("long")
    {
        add(periods, "30d");
    }
    // Names of known length: a week first, then the longest ones.
    let words = listed.iter().flatten().chain(spoken.iter().filter(|_| listed.is_none()));
    let mut names: Vec<(i64, String)> = words.filter_map(|hint| Some((hours(hint)?, hint.clone()))).collect();
    names.sort_by_key(|(hours, _)| (*hours != 168, -hours));
    let too_long = matches!(&days, Outcome::Refused(text) if text.contains("long"));
    let refused = matches!(days, Outcome::Refused(_)) && !too_long;
    for (value, unit) in [("48h", "<n>h"), ("3w", "<n>w")] {
        if (works || (refused && listed.is_some() && names.is_empty())) && lists(unit) {
            add(periods, value);
        }
    }
    match names.is_empty() {
        false => names.iter().take(NAMES).for_each(|(_, name)| add(periods, name)),
        true if works => {}
        // The value was accepted, but means another window.
        true if !refused && matches!(control, Outcome::Refused(_)) => {}
        // The service lists no values: one name of each family is tried until one works.
        true => {
            let done = vocabulary::FAMILIES.iter().find(|family| effective(periods, family[0]));
            match done {
                Some(family) => {
                    // Names come before absolute windows, which are queued again below.
                    periods.queue.clear();
                    family[1..].iter().for_each(|name| add(periods, name));
                }
                None => vocabulary::FAMILIES.iter().for_each(|family| add(periods, family[0])),
            }
        }
    }
    // A window name that responses echo belongs to a family of names.
    if listed.is_none() && !works {
        let of = |family: &&&[&str]| names.iter().any(|(_, name)| like(name, family[0]));
        for name in vocabulary::FAMILIES.iter().filter(of).flat_map(|family| family.iter()) {
            add(periods, name);
        }
    }
    // ISO 8601 durations of other lengths are probably accepted as well.
    if names.iter().any(|(_, name)| name.starts_with('P') && effective(periods, name)) {
        for value in ["P7D", "P30D", "P90D"] {
            add(periods, value);
        }
    }
    absolute_periods(found, periods, newest, takes, &listed);
}

/// True if two names have the same style: case, separator and position of digits.
fn like(one: &str, other: &str) -> bool {
    let kind = |name: &str| {
        let upper = name.chars().any(|c| c.is_ascii_uppercase()) && !name.chars().any(|c| c.is_ascii_lowercase());
        let mark = name.chars().find(|c| !c.is_ascii_alphanumeric());
        (name.chars().next().map(|c| c.is_ascii_digit()), upper, mark, name.chars().any(|c| c.is_ascii_digit()))
    };
    kind(one) == kind(other)
}

/// Adds candidates for absolute windows.
fn absolute_periods(
    found: &Findings,
    periods: &mut Dimension,
    newest: Option<i64>,
    takes: &dyn Fn(&str) -> bool,
    listed: &Option<Vec<String>>,
) {
    let Some(span) = newest.map(span) else { return };
    let absolute = Try::is_absolute;
    let done =
        periods.taken().find(|(tried, reply)| absolute(tried) && found.has_effect(periods, tried, reply, newest));
    if let Some(tried) = done.map(|(tried, _)| tried.clone()) {
        periods.queue.retain(|other| !absolute(other) || (tried.pairs.len() > 2 && other.label == tried.label));
        if tried.pairs.len() > 2 {
            let single = periods.taken().any(|(other, reply)| {
                other.label == tried.label && other.pairs.len() == 2 && found.has_effect(periods, other, reply, newest)
            });
            if single {
                periods.queue.retain(|other| !absolute(other));
            } else {
                for pairs in tried.pairs.chunks(2) {
                    periods.add(Try { label: tried.label.clone(), pairs: pairs.to_vec() });
                }
            }
        }
        return;
    }
    let ends: Vec<(&str, &str)> =
        vocabulary::ENDS.iter().filter(|(since, until)| takes(since) && takes(until)).copied().collect();
    let of = |ends: &[(&str, &str)], how: &str| {
        let (from, to) = written(span, how);
        let pairs = ends.iter().flat_map(|(since, until)| [pair(since, &from), pair(until, &to)]);
        Try { label: format!("ends {how}"), pairs: pairs.collect() }
    };
    // A format named in a refusal comes first.
    let refused: Vec<(Try, String)> = periods
        .done
        .iter()
        .filter(|(tried, _)| tried.label.starts_with("ends "))
        .filter_map(|(tried, outcome)| match outcome {
            Outcome::Refused(text) => Some((tried.clone(), text.clone())),
            Outcome::Taken(_) => None,
        })
        .collect();
    for (tried, text) in &refused {
        let text = text.to_ascii_lowercase();
        let has = |name: &str| text.contains(&name.to_ascii_lowercase());
        let named: Vec<(&str, &str)> = ends
            .iter()
            .filter(|(since, until)| {
                tried.pairs.iter().any(|(name, _)| name == since)
                    && (has(&format!("'{since}'")) || has(&format!("'{until}'")) || tried.pairs.len() == 2)
            })
            .copied()
            .collect();
        let how = match () {
            () if has("millisecond") => "epoch_ms",
            () if has("epoch") || has("seconds since") || has("unix") => "epoch_s",
            () if has("yyyy-mm-dd") && !has("yyyy-mm-ddt") => "date",
            () if has("rfc 3339") || has("iso 8601") || has("instant") || has("t00:00") => "rfc3339",
            () => continue,
        };
        if !named.is_empty() {
            periods.add(of(&named, how));
        }
    }
    let template = |periods: &mut Dimension, separator: &str, how: &str| {
        let (from, to) = written(span, how);
        periods.add(Try::new(format!("{{from}}{separator}{{to}} {how}"), DURATION, format!("{from}{separator}{to}")));
    };
    let says = |word: &str| listed.as_ref().is_some_and(|listed| listed.iter().any(|hint| hint.contains(word)));
    if says("YYYY") {
        template(periods, ",", "date");
    }
    if says("FROM") || !says("YYYY") {
        template(periods, "..", "rfc3339");
    }
    if says("FROM") || says("YYYY") {
        return;
    }
    if !ends.is_empty() {
        WRITTEN.iter().for_each(|how| periods.add(of(&ends, how)));
    }
    for (separator, how) in [("/", "rfc3339"), (",", "date"), (",", "rfc3339")] {
        template(periods, separator, how);
    }
}

/// Formats the ends of a span as parameters. Dates name the last day, since it is included.
fn written((from, to): (i64, i64), how: &str) -> (String, String) {
    let write = |at: i64| match how {
        "epoch_ms" => (at / 1_000).to_string(),
        "epoch_s" => (at / 1_000_000).to_string(),
        "date" => utc(at).date_naive().to_string(),
        _ => utc(at).to_rfc3339_opts(SecondsFormat::Secs, true),
    };
    (write(from), write(if how == "date" { to - DAY } else { to }))
}

/// Candidate values that responses contain outside the data.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    pub(super) periods: Vec<String>,
    pub(super) orders: Vec<String>,
}

impl Spoken {
    /// Collects the values of a response outside of these parts.
    pub(super) fn of(body: &Value, parts: &[&Path]) -> Self {
        let mut spoken = Self::default();
        for (path, value) in leaves(body) {
            let (Some(name), Some(text)) = (path.last().map(|name| plain(name)), value.as_str()) else { continue };
            let within = |part: &&Path| !part.is_empty() && path.starts_with(part);
            if parts.iter().any(within) || text.len() > 40 || text == "default" {
                continue;
            }
            if hours(text).is_some() {
                spoken.periods.push(text.to_owned());
            } else if name.contains("sort") || name.contains("order") {
                spoken.orders.extend([text.to_owned(), reverse(text)]);
            }
        }
        spoken
    }
}

/// Returns the value that probably reverses a sort order.
fn reverse(order: &str) -> String {
    const PAIRS: [(&str, &str); 5] =
        [("desc", "asc"), ("DESC", "ASC"), ("newest", "oldest"), ("Desc", "Asc"), ("latest", "earliest")];
    if let Some(rest) = order.strip_prefix('-') {
        return rest.to_owned();
    }
    let other = PAIRS.iter().find_map(|(one, other)| match () {
        () if order.contains(one) => Some(order.replacen(one, other, 1)),
        () if order.contains(other) => Some(order.replacen(other, one, 1)),
        () => None,
    });
    other.unwrap_or_else(|| format!("-{order}"))
}

/// Adds candidates for the sort order: values that a refusal lists, values in responses, or usual ones.
pub(super) fn more_orders(orders: &mut Dimension, spoken: &[String]) {
    /// Sort orders that are worth a request each.
    const MOST: usize = 7;
    let Some(control) = orders.outcome(NONSENSE).cloned() else { return };
    let listed = match &control {
        Outcome::Refused(text) => values(text),
        Outcome::Taken(_) => Vec::new(),
    };
    let listed: Vec<String> = listed.into_iter().filter(|hint| hint != NONSENSE).collect();
    if !listed.is_empty() {
        orders.queue.retain(|tried| listed.contains(&tried.label));
    }
    let usual = vocabulary::SORTS.iter().map(|value| (*value).to_owned());
    // Sort orders by time come first.
    let by_time = |value: &String| {
        let value = plain(value);
        !["date", "publ", "time", "new", "old", "recen", "chron", "asc"].iter().any(|word| value.contains(word))
    };
    let mut values: Vec<String> = if listed.is_empty() { usual.collect() } else { listed };
    values.sort_by_key(by_time);
    if !spoken.is_empty() {
        orders.queue.retain(|tried| tried.label == NONSENSE);
    }
    for value in spoken.iter().chain(&values).take(MOST) {
        orders.add(Try::new(value, SORT, value));
    }
}

/// Two days that ended a day before the day of the newest mention.
pub(super) fn span(newest: i64) -> (i64, i64) {
    let day = newest.div_euclid(DAY) * DAY;
    (day - 3 * DAY, day - DAY)
}

/// Parameters that may filter by a field, the likeliest first: its name, its parent's name, and usual ones.
pub(super) fn parameters_of(column: &str, path: &Path) -> Vec<String> {
    let generic = ["name", "label", "type", "code", "value", "key"];
    let mut steps = path.iter().rev().cloned();
    let last = steps.next().unwrap_or_else(|| column.to_owned());
    let parent = steps.next();
    let usual = vocabulary::FILTERS.iter().filter(|(known, _)| *known == column).flat_map(|(_, names)| names.iter());
    let usual = usual.map(|name| (*name).to_owned());
    let own: Vec<String> = match parent {
        Some(parent) if generic.contains(&plain(&last).as_str()) => vec![parent, last],
        Some(parent) => vec![last, parent],
        None => vec![last],
    };
    each_once(own.into_iter().chain(usual))
}
