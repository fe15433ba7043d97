//! What is tried for the period, the order and the filters, and what follows from what became of it.

use chrono::{Days, SecondsFormat};

use super::asker::Pair;
use super::effects::DAY;
use super::findings::Findings;
use super::rounds::{Dimension, Outcome, Try, hints, number_in};
use super::shape::{Path, utc};
use super::vocabulary::{self, plain};

/// A value that means nothing to any service.
pub(super) const NONSENSE: &str = "zzq";
/// Parameters whose names are given (seed sections 4.2 and 7).
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

/// More candidates for the period, by what became of the first ones.
pub(super) fn more_periods(found: &Findings, periods: &mut Dimension, newest: Option<i64>) {
    let effective = |periods: &Dimension, label: &str| {
        periods.taken().any(|(tried, reply)| tried.label == label && found.has_effect(periods, tried, reply, newest))
    };
    let (control, days) = (periods.outcome(NONSENSE).cloned(), periods.outcome("60d").cloned());
    let (Some(control), Some(days)) = (control, days) else { return };
    // What a refusal lists is all there is.
    let listed = match &control {
        Outcome::Refused(text) => Some(hints(text)).filter(|hints| !hints.is_empty()),
        Outcome::Taken(_) => None,
    };
    let lists = |word: &str| listed.as_ref().is_none_or(|hints| hints.iter().any(|hint| hint.contains(word)));
    let add = |periods: &mut Dimension, value: &str| periods.add(Try::new(value, DURATION, value));
    let works = effective(periods, "60d");
    if let Outcome::Refused(text) = &days
        && number_in(text).is_some_and(|days| days >= 30)
        && text.contains("long")
    {
        add(periods, "30d");
    }
    let units = works || matches!(days, Outcome::Refused(_));
    for (value, unit) in [("48h", "<n>h"), ("3w", "<n>w")] {
        if units && lists(unit) {
            add(periods, value);
        }
    }
    let names: Vec<String> = match &listed {
        Some(hints) => hints
            .iter()
            .filter(|hint| !hint.contains(['<', '>']) && hint.chars().any(|c| c.is_ascii_lowercase()))
            .cloned()
            .collect(),
        None if units => Vec::new(),
        None => vocabulary::PERIODS[..5].iter().map(|(name, _)| (*name).to_owned()).collect(),
    };
    for name in names.iter().filter(|name| *name != NONSENSE) {
        add(periods, name);
    }
    let Some((from, to)) = newest.map(span) else { return };
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
    let instant = |at: i64| utc(at).to_rfc3339_opts(SecondsFormat::Secs, true);
    let millis = |at: i64| (at / 1_000).to_string();
    let day = |at: i64| utc(at).date_naive();
    if lists("FROM") {
        periods.add(Try::new("{from}..{to} rfc3339", DURATION, format!("{}..{}", instant(from), instant(to))));
    }
    if lists("YYYY") && (units || listed.is_some()) {
        // The last day is named where it is included.
        let last = day(to).checked_sub_days(Days::new(1)).unwrap_or_default();
        periods.add(Try::new("{from},{to} date", DURATION, format!("{},{last}", day(from))));
    }
    let in_words =
        listed.as_ref().is_some_and(|hints| hints.iter().any(|hint| hint.contains("FROM") || hint.contains("YYYY")));
    if !in_words {
        let ends = |write: &dyn Fn(i64) -> String| {
            vocabulary::ENDS
                .iter()
                .flat_map(|(since, until)| [pair(since, write(from)), pair(until, write(to))])
                .collect()
        };
        periods.add(Try { label: "ends epoch_ms".into(), pairs: ends(&millis) });
        if units {
            periods.add(Try { label: "ends rfc3339".into(), pairs: ends(&instant) });
        }
    }
}

/// More candidates for the order: what a refusal lists, or what is usual.
pub(super) fn more_orders(orders: &mut Dimension) {
    /// Orders that are worth a call each.
    const MOST: usize = 7;
    let Some(control) = orders.outcome(NONSENSE).cloned() else { return };
    let listed = match &control {
        Outcome::Refused(text) => hints(text),
        Outcome::Taken(_) => Vec::new(),
    };
    let listed: Vec<String> = listed.into_iter().filter(|hint| hint != NONSENSE).collect();
    if !listed.is_empty() {
        orders.queue.retain(|tried| listed.contains(&tried.label));
    }
    let usual = vocabulary::SORTS.iter().map(|value| (*value).to_owned());
    let values: Vec<String> = if listed.is_empty() { usual.collect() } else { listed };
    for value in values.iter().take(MOST) {
        orders.add(Try::new(value, SORT, value));
    }
}

/// Two days that ended a day before the newest mention's began.
pub(super) fn span(newest: i64) -> (i64, i64) {
    let day = newest.div_euclid(DAY) * DAY;
    (day - 3 * DAY, day - DAY)
}

/// The parameter that would filter by a field: its name, or that of what it belongs to.
pub(super) fn parameter_of(column: &str, path: &Path) -> String {
    let generic = ["name", "label", "type", "code", "value", "key"];
    let mut steps = path.iter().rev();
    let last = steps.next().cloned().unwrap_or_else(|| column.to_owned());
    match steps.next() {
        Some(parent) if generic.contains(&plain(&last).as_str()) => parent.clone(),
        _ => last,
    }
}
