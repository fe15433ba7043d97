//! Candidates for windows, sort orders and filters, and further candidates derived from the outcomes.

use std::sync::Arc;

use chrono::SecondsFormat;
use serde_json::Value;

use super::asker::{Pair, Reply};
use super::effects::DAY;
use super::observations::Findings;
use super::refusal::{examples, unit_of_number, values};
use super::scheduler::{Dimension, Kind, Outcome, Try, number_in};
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

/// The first periods that are tried: a control, and a number of days that no list of usual windows has.
pub(super) fn periods() -> Dimension {
    let control = Try::new(NONSENSE, DURATION, NONSENSE);
    Dimension::new("period", [control, Try::relative(DURATION, 'd', "{n}d", LONG[unit_at('d')])])
}

/// Parts of words that mean an absolute window in other parameters.
const CUSTOM: [&str; 6] = ["custom", "range", "absolute", "between", "interval", "period"];

/// True for a word that means an absolute window in other parameters.
fn is_custom(hint: &str) -> bool {
    CUSTOM.iter().any(|word| plain(hint).contains(word))
}

/// Label of a word that stands for the ends of a window, sent without them: its refusal may name their parameters.
pub(super) const ALONE: &str = "ends alone";

/// Instant formats to try for the ends of a window before a refusal names one.
const WRITTEN: [&str; 3] = ["rfc3339", "date", "epoch_ms"];

/// Adds candidates for the window, based on the outcomes so far. `named`: the parameters that a strict service has, empty if it
/// does not list them.
pub(super) fn more_periods(
    found: &Findings,
    periods: &mut Dimension,
    newest: Option<i64>,
    named: Option<&[String]>,
    spoken: &[String],
) {
    refuse_unlisted_days(periods);
    let Some(hints) = PeriodHints::of(periods, spoken) else { return };
    // A number in a list is one of its values, not one of many.
    if let Some(listed) = hints.listed.as_ref().filter(|listed| listed.iter().all(|hint| slot(hint).is_none())) {
        let known = periods.queue.iter_mut().chain(periods.done.iter_mut().map(|(tried, _)| tried));
        let known = known.filter(|tried| is_relative(tried) && listed.contains(&tried.label));
        known.for_each(|tried| tried.kind = Kind::Value);
    }
    let works = has_effective(found, periods, newest, |tried| is_relative(tried) || is_in_days(tried));
    if works {
        // Names of a service that lists none are not needed any more.
        let is_guess = |label: &str| vocabulary::FAMILIES.iter().any(|family| family.contains(&label));
        periods.queue.retain(|tried| is_relative(tried) || !is_guess(&tried.label));
    }
    add_notations(found, periods, newest, &hints);
    add_names(found, periods, newest, &hints, works);
    // The other units of ISO 8601 durations are probably accepted as well.
    let is_iso = |tried: &Try| matches!(&tried.kind, Kind::Relative('d', template) if template == "P{n}D");
    let iso = periods.taken().find(|(tried, _)| is_iso(tried)).map(|(tried, _)| tried.label.clone());
    if iso.is_some_and(|label| has_effective(found, periods, newest, |tried| tried.label == label)) {
        periods.add(Try::relative(DURATION, 'h', "PT{n}H", 48));
    }
    absolute_periods(found, periods, newest, named, hints.listed.as_deref());
    // A service that refuses no value does not say which ones it takes: the likeliest one of each form comes first.
    let is_lax = [&hints.control, &hints.days].iter().all(|outcome| matches!(outcome, Outcome::Taken(_)));
    if is_lax && !has_effective(found, periods, newest, |_| true) {
        let rank = |tried: &Try| LIKELY.iter().position(|label| *label == tried.label).unwrap_or(LIKELY.len());
        periods.queue.make_contiguous().sort_by_key(rank);
    }
    // Where days work, absolute windows are worth more than other units.
    let is_days = |tried: &Try| matches!(tried.kind, Kind::Relative('d', _));
    if has_effective(found, periods, newest, is_days) {
        let is_other = |tried: &Try| is_relative(tried) && !is_days(tried);
        let (others, first): (Vec<Try>, Vec<Try>) = periods.queue.drain(..).partition(is_other);
        periods.queue.extend(first.into_iter().chain(others));
    }
    add_number_between(found, periods, newest, &hints);
}

/// The outcomes of the first periods, and values that refusals and responses have.
struct PeriodHints<'s> {
    /// The outcome of a value without a meaning, and that of `60d`.
    control: Outcome,
    days: Outcome,
    /// Values that a refusal tells, which are all that are accepted if it lists several.
    told: Vec<String>,
    listed: Option<Vec<String>>,
    /// Examples in a refusal.
    shown: Vec<String>,
    /// Windows of responses.
    spoken: &'s [String],
}

impl<'s> PeriodHints<'s> {
    /// `None` if the first periods are not done.
    fn of(periods: &Dimension, spoken: &'s [String]) -> Option<Self> {
        let (control, days) = (periods.outcome(NONSENSE)?.clone(), periods.outcome("60d")?.clone());
        let (told, shown) = match &control {
            Outcome::Refused(text) => (values(text), examples(text)),
            Outcome::Taken(_) | Outcome::Unknown => (Vec::new(), Vec::new()),
        };
        let listed = Some(told.clone()).filter(|told| told.len() > 1);
        Some(Self { control, days, told, listed, shown, spoken })
    }

    /// True if a list has a value with this text, or if there is no list.
    fn may_list(&self, text: &str) -> bool {
        self.listed.as_ref().is_none_or(|listed| listed.iter().any(|hint| hint.contains(text)))
    }

    /// True if `60d` was refused, and not because it is too long.
    fn refuses_days(&self) -> bool {
        matches!(&self.days, Outcome::Refused(text) if !text.contains("long"))
    }

    /// Names of windows of known length with their hours: a week first, then the longest ones.
    fn names(&self) -> Vec<(i64, String)> {
        let spoken = self.spoken.iter().chain(&self.shown).filter(|_| self.listed.is_none());
        let words = self.listed.iter().flatten().chain(spoken);
        let words = words.filter(|hint| self.listed.is_some() || notation(hint).is_none());
        let mut names: Vec<(i64, String)> = words.filter_map(|hint| Some((hours(hint)?, hint.clone()))).collect();
        names.sort_by_key(|(hours, _)| (*hours != 168, -hours));
        names
    }
}

fn is_relative(tried: &Try) -> bool {
    matches!(tried.kind, Kind::Relative(..))
}

/// True for the periods that show whether the notation of `60d` is accepted.
fn is_in_days(tried: &Try) -> bool {
    tried.label == "60d" || tried.label == "30d"
}

/// True if a period of this kind had an effect.
fn has_effective(
    found: &Findings,
    periods: &Dimension,
    newest: Option<i64>,
    is_of_kind: impl Fn(&Try) -> bool,
) -> bool {
    periods.taken().any(|(tried, reply)| is_of_kind(tried) && found.has_effect(periods, tried, reply, newest))
}

/// Takes the refusal of the control for that of `60d`, if it lists periods without days.
fn refuse_unlisted_days(periods: &mut Dimension) {
    let Some(Outcome::Refused(text)) = periods.outcome(NONSENSE).cloned() else { return };
    let days = periods.queue.iter().position(|tried| tried.label == "60d");
    let Some(at) = days.filter(|_| lists_no_letters(&text)) else { return };
    let (tried, listed) = (periods.queue.remove(at), values(&text));
    periods.done.extend(tried.map(|tried| (tried, Outcome::Refused(text))));
    // The same holds for an example's name with another number.
    periods.queue.retain(|tried| !is_relative(tried) || listed.contains(&tried.label));
    // A listed word for the ends of a window goes with the parameters that are known.
    let word = listed.into_iter().find(|hint| is_custom(hint));
    let alone = |tried: &&mut Try| tried.is_absolute() && tried.pairs.iter().all(|(name, _)| name != DURATION);
    for ends in periods.queue.iter_mut().filter(alone) {
        ends.pairs.extend(word.iter().map(|word| pair(DURATION, word)));
    }
}

/// Adds a shorter period if `60d` is too long, and notations that the service names or shows, or that its own windows have:
/// `last_7_days` may be one of many.
fn add_notations(found: &Findings, periods: &mut Dimension, newest: Option<i64>, hints: &PeriodHints<'_>) {
    if let Outcome::Refused(text) = &hints.days
        && number_in(text, None).is_some_and(|days| days >= 30)
        && text.contains("long")
    {
        periods.add(Try::relative(DURATION, 'd', "{n}d", 30));
    }
    for hint in hints.told.iter().chain(&hints.shown).chain(hints.spoken) {
        let open = slot(hint).is_some() || hint.starts_with('P') || hints.listed.is_none();
        let found = if hints.listed.is_none() { any_notation(hint) } else { notation(hint) };
        if let Some((unit, template)) = found.filter(|_| open) {
            periods.add_first(Try::relative(DURATION, unit, &template, LONG[unit_at(unit)]));
        }
    }
    if let Outcome::Refused(text) = &hints.control
        && let Some(unit) = unit_of_number(text)
    {
        periods.add_first(Try::relative(DURATION, unit, "{n}", LONG[unit_at(unit)]));
    }
    // A value that was given works in any case; its notation with another number is worth more.
    let of = |tried: &Try| any_notation(&tried.label).map(|(_, template)| template);
    let general: Vec<String> = periods
        .taken()
        .filter(|(tried, reply)| found.has_effect(periods, tried, reply, newest))
        .filter_map(|(tried, _)| match &tried.kind {
            Kind::Relative(_, template) => Some(template.clone()),
            Kind::Value | Kind::Absolute => None,
        })
        .collect();
    periods.queue.retain(|tried| tried.kind != Kind::Value || !of(tried).is_some_and(|of| general.contains(&of)));
}

/// Adds a number of days that a list of periods does not have, if two of them work that are alike but for their numbers: `7 jours` and
/// `30 jours`. Its effect shows that any number is accepted.
fn add_number_between(found: &Findings, periods: &mut Dimension, newest: Option<i64>, hints: &PeriodHints<'_>) {
    /// Days between two periods that tell a third one apart from both.
    const APART: u32 = 6;
    let is_number =
        |hint: &&String| hint.starts_with(|c: char| c.is_ascii_digit() || "-+P".contains(c)) && slot(hint).is_none();
    let numbered = hints.listed.iter().flatten().filter(is_number).filter_map(|hint| {
        let (_, template) = any_notation(hint).filter(|(unit, _)| *unit == 'd')?;
        let digits: String = hint.chars().filter(char::is_ascii_digit).collect();
        Some((template, digits.parse::<u32>().ok()?))
    });
    let mut numbered: Vec<(String, u32)> = numbered.collect();
    numbered.sort_unstable();
    let is_apart = |pair: &&[(String, u32)]| pair[0].0 == pair[1].0 && pair[1].1 - pair[0].1 >= APART;
    let Some([(template, less), (_, more)]) = numbered.windows(2).rev().find(is_apart) else { return };
    let works = |(tried, reply): &(&Try, &Arc<Reply>)| {
        vocabulary::is_of(&tried.label, template) && found.has_effect(periods, tried, reply, newest)
    };
    // Beside the search for mentions, its refusal would cost a request that looks for something else.
    if found.mentions.is_some() && periods.taken().filter(works).count() > 1 {
        periods.add(Try::relative(DURATION, 'd', template, (less + more) / 2));
    }
}

/// Adds hours and weeks if they may be written as days are, and names of windows. `works`: a period with a number had an effect.
fn add_names(found: &Findings, periods: &mut Dimension, newest: Option<i64>, hints: &PeriodHints<'_>, works: bool) {
    /// Names of a list that are worth a request each.
    const NAMES: usize = 4;
    let add = |periods: &mut Dimension, value: &str| periods.add(Try::new(value, DURATION, value));
    let names = hints.names();
    let refused = hints.refuses_days();
    let letters = has_effective(found, periods, newest, is_in_days);
    for (unit, n, hint) in [('h', 48, "<n>h"), ('w', 3, "<n>w")] {
        if (letters || (refused && hints.listed.is_some() && names.is_empty())) && hints.may_list(hint) {
            periods.add(Try::relative(DURATION, unit, &format!("{{n}}{unit}"), n));
        }
    }
    match names.is_empty() {
        false => names.iter().take(NAMES).for_each(|(_, name)| add(periods, name)),
        true if works => {}
        // The value was accepted, but means another window.
        true if !refused && matches!(hints.control, Outcome::Refused(_)) => {}
        true => add_guesses(found, periods, newest, &hints.control),
    }
    // Names of unknown length are tried if no others are known; their effect shows the length.
    let is_word = |hint: &str| hours(hint).is_none() && is_name(hint) && !is_custom(hint) && slot(hint).is_none();
    let unknown = hints.listed.iter().flatten().filter(|hint| is_word(hint) && !hints.may_list("<"));
    unknown.take(if names.is_empty() { NAMES } else { 0 }).for_each(|name| add(periods, name));
    // A window name that responses echo belongs to a family of names.
    if hints.listed.is_none() && !works {
        let of = |family: &&&[&str]| names.iter().any(|(_, name)| like(name, family[0]));
        for name in vocabulary::FAMILIES.iter().filter(of).flat_map(|family| family.iter()) {
            add(periods, name);
        }
    }
}

/// Adds names of a service that lists no values: one of each family until one works, then the others of that family.
fn add_guesses(found: &Findings, periods: &mut Dimension, newest: Option<i64>, control: &Outcome) {
    let numbered = |(unit, template): (char, String)| Try::relative(DURATION, unit, &template, LONG[unit_at(unit)]);
    let named = |name: &str| Try::new(name, DURATION, name);
    let works = |name: &str| has_effective(found, periods, newest, |tried| tried.label == name);
    let known = vocabulary::FAMILIES.iter().find(|family| works(family[0]));
    match known {
        Some(family) => {
            // Names come before absolute windows, which are queued again below.
            periods.queue.clear();
            // One of a few, or one of many.
            any_notation(family[0]).into_iter().for_each(|notation| periods.add(numbered(notation)));
            family[1..].iter().for_each(|name| periods.add(named(name)));
        }
        None => {
            for name in vocabulary::FAMILIES.iter().map(|family| family[0]) {
                // If nothing is refused, the effect of a duration of ISO 8601 shows its notation, as that of `60d` does.
                let is_open = name.starts_with('P') && matches!(control, Outcome::Taken(_));
                let notation = any_notation(name).filter(|_| is_open);
                periods.add(notation.map_or_else(|| named(name), numbered));
            }
        }
    }
}

/// True if a refusal lists periods without the notation of `60d`, a number before a letter. Lists are treated as complete, so `60d`
/// would be refused.
fn lists_no_letters(refusal: &str) -> bool {
    let listed = values(refusal);
    let letters = |hint: &String| any_notation(hint).is_some_and(|(_, template)| template == "{n}d");
    let is_open = |hint: &String| slot(hint).is_some() || letters(hint);
    listed.len() > 1 && listed.iter().any(|hint| hours(hint).is_some()) && !listed.iter().any(is_open)
}

/// Windows by their labels, one of each form, the likeliest first.
const LIKELY: [&str; 9] = [
    "P60D",
    "ends rfc3339",
    "LAST_90_DAYS",
    "last_year",
    "ends date",
    "{from}..{to} rfc3339",
    "last_90_days",
    "30 days",
    "ends epoch_ms",
];

/// Numbers of hours, days and weeks that no list of usual windows has.
pub(super) const LONG: [u32; 3] = [48, 60, 3];

pub(super) fn unit_at(unit: char) -> usize {
    "hdw".find(unit).unwrap_or_default()
}

/// The notation of a relative window with one number, as `{n}`, and its unit: `<n>d`, `P7D`, `7 days`, `last_N_days`. `None` for a
/// name that may be one of a few, such as `LAST_7_DAYS`.
pub(super) fn notation(hint: &str) -> Option<(char, String)> {
    let open = hint.starts_with(|c: char| c.is_ascii_digit() || c == 'P') || slot(hint).is_some();
    any_notation(hint).filter(|_| open)
}

/// A text with a place for a number, as `{n}`: `<n>d`, `last_N_days`, `Nd`.
fn slot(hint: &str) -> Option<String> {
    const SLOTS: [&str; 7] = ["{n}", "<n>", "<N>", "{N}", "<number>", "{number}", "%d"];
    if let Some(slot) = SLOTS.iter().find(|slot| hint.contains(*slot)) {
        return Some(hint.replacen(slot, "{n}", 1));
    }
    // A capital letter that is a word of its own, or stands before a unit.
    let (at, _) = hint.char_indices().find(|(at, c)| {
        let (before, after) = (hint[..*at].chars().next_back(), hint[at + 1..].chars().next());
        let begins = before.is_none_or(|c| !c.is_alphanumeric()) || ["P", "PT"].contains(&&hint[..*at]);
        let ends = after.is_none_or(|c| !c.is_alphanumeric()) || hint[at + 1..].chars().count() == 1;
        matches!(c, 'N' | 'X') && begins && ends
    })?;
    Some(format!("{}{{n}}{}", &hint[..at], &hint[at + 1..]))
}

/// The notation of a relative window, of a name as well.
pub(super) fn any_notation(hint: &str) -> Option<(char, String)> {
    let digits: String = hint.chars().filter(char::is_ascii_digit).collect();
    let number = || (!digits.is_empty() && hint.contains(&digits)).then(|| hint.replacen(&digits, "{n}", 1));
    let template = slot(hint).or_else(number)?;
    let of = |n: u32| hours(&template.replace("{n}", &n.to_string()));
    let (one, two) = (of(1)?, of(2)?);
    let unit = match one {
        1 => 'h',
        24 => 'd',
        168 => 'w',
        _ => return None,
    };
    (two == 2 * one).then_some((unit, template))
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

/// True if a refusal lists the periods that are accepted, or shows examples of them.
pub(super) fn are_told(periods: &Dimension) -> bool {
    let lists = matches!(periods.outcome(NONSENSE), Some(Outcome::Refused(text)) if values(text).len() > 1);
    let shows = |outcome: &Outcome| matches!(outcome, Outcome::Refused(text) if !examples(text).is_empty());
    lists || periods.done.iter().any(|(_, outcome)| shows(outcome))
}

/// Adds candidates for absolute windows. `listed`: all periods, if a refusal lists them.
fn absolute_periods(
    found: &Findings,
    periods: &mut Dimension,
    newest: Option<i64>,
    named: Option<&[String]>,
    listed: Option<&[String]>,
) {
    let Some(span) = newest.map(span) else { return };
    let ends_of = |tried: &Try| tried.pairs.iter().filter(|(name, _)| name != DURATION).count();
    let works = |(tried, reply): &(&Try, &Arc<Reply>)| found.has_effect(periods, tried, reply, newest);
    let done = periods.taken().filter(|(tried, _)| tried.is_absolute()).filter(works);
    if let Some(tried) = done.map(|(tried, _)| tried.clone()).min_by_key(ends_of) {
        return add_half(periods, tried);
    }
    let refusals: Vec<(Try, String)> = periods
        .done
        .iter()
        .filter_map(|(tried, outcome)| match outcome {
            Outcome::Refused(text) => Some((tried.clone(), text.clone())),
            Outcome::Taken(_) | Outcome::Unknown => None,
        })
        .collect();
    let ends = ends_to_try(found, periods, named);
    let ends = without_numbers(periods, ends, span, &refusals);
    add_named_ends(periods, &ends, span, &refusals);
    let says = |word: &str| listed.is_some_and(|listed| listed.iter().any(|hint| hint.contains(word)));
    if says("YYYY") {
        periods.add(window_in_one(span, ",", "date"));
    }
    // Two instants in an example: `2026-01-01/2026-02-01`, or letters for them with words about their form.
    let shown: Vec<(String, &str)> = refusals
        .iter()
        .flat_map(|(_, text)| examples(text).into_iter().filter_map(|example| template_of(&example, text)))
        .collect();
    for (separator, how) in &shown {
        periods.add(window_in_one(span, separator, how));
    }
    if says("FROM") {
        periods.add(window_in_one(span, "..", "rfc3339"));
    }
    if says("FROM") || says("YYYY") {
        return;
    }
    // What the refusal of a period lists or shows is all that it accepts.
    let told = are_told(periods);
    if !told && named.is_none_or(<[String]>::is_empty) {
        periods.add(window_in_one(span, "..", "rfc3339"));
    }
    // A word that stands for the ends in the other parameters.
    let words = listed.into_iter().flatten().filter(|name| is_custom(name));
    for word in words.filter(|_| !ends.is_empty()) {
        if named.is_none() {
            periods.add(Try::absolute(ALONE, vec![pair(DURATION, word)]));
        }
        for how in WRITTEN {
            periods.add(window_of(&ends, span, how, [pair(DURATION, word)]));
        }
    }
    match named {
        // A service that rejects other parameters without naming its own gets the usual pairs one by one.
        Some([]) => ends.chunks(1).for_each(|ends| periods.add(window_of(ends, span, WRITTEN[0], []))),
        _ if ends.is_empty() => {}
        _ => WRITTEN.iter().for_each(|how| periods.add(window_of(&ends, span, how, []))),
    }
    if !told {
        for (separator, how) in [("..", "rfc3339"), ("/", "rfc3339"), (",", "date"), (",", "rfc3339")] {
            periods.add(window_in_one(span, separator, how));
        }
    }
}

/// An absolute window in these pairs of parameters, and others beside them.
pub(super) fn window_of(
    ends: &[(String, String)],
    span: (i64, i64),
    how: &str,
    beside: impl IntoIterator<Item = Pair>,
) -> Try {
    let (from, to) = written(span, how);
    let pairs = ends.iter().flat_map(|(since, until)| [pair(since, &from), pair(until, &to)]);
    Try::absolute(format!("ends {how}"), pairs.chain(beside).collect())
}

/// An absolute window as a value of `duration`.
pub(super) fn window_in_one(span: (i64, i64), separator: &str, how: &str) -> Try {
    let (from, to) = written(span, how);
    let label = format!("{{from}}{separator}{{to}} {how}");
    Try::absolute(label, vec![pair(DURATION, format!("{from}{separator}{to}"))])
}

/// Adds half of the parameters of an absolute window that had an effect, and drops all others.
fn add_half(periods: &mut Dimension, tried: Try) {
    periods.queue.retain(|other| !other.is_absolute());
    let (beside, ends): (Vec<Pair>, Vec<Pair>) = tried.pairs.into_iter().partition(|(name, _)| name == DURATION);
    let half = half_of(&ends, 2, &|half| periods.has_done(&[half, beside.as_slice()].concat()));
    if let Some(half) = half {
        periods.add_first(Try::absolute(tried.label, [half, beside].concat()));
    }
}

/// The names of the ends of a window to try: those that the service names, or usual ones.
fn ends_to_try(found: &Findings, periods: &Dimension, named: Option<&[String]>) -> Vec<(String, String)> {
    /// Usual pairs of parameters that are worth a request each.
    const PAIRS: usize = 4;
    let usual = || vocabulary::usual_ends(found.has_brackets);
    let ends: Vec<(String, String)> = match named {
        Some([]) => usual().into_iter().take(PAIRS).collect(),
        Some(named) => vocabulary::ends_among(Some(named)),
        None => usual(),
    };
    // Parameters of which no name tells that they are ends: those that were tried because a response or an example has them.
    let tried = periods.done.iter().filter(|(tried, _)| tried.label.starts_with("ends "));
    let tried = tried.filter_map(|(tried, _)| match tried.pairs.as_slice() {
        [(since, _), (until, _), ..] => Some((since.clone(), until.clone())),
        _ => None,
    });
    if ends.is_empty() { tried.take(1).collect() } else { ends }
}

/// The ends of a window without those that take a number, which are tried alone as one of milliseconds and hide the effect of the others.
fn without_numbers(
    periods: &mut Dimension,
    ends: Vec<(String, String)>,
    span: (i64, i64),
    refusals: &[(Try, String)],
) -> Vec<(String, String)> {
    let (numbers, others): (Vec<_>, Vec<_>) = ends.into_iter().partition(|ends| takes_number(ends, refusals));
    if numbers.is_empty() || others.is_empty() {
        return [numbers, others].concat();
    }
    let has_number = |tried: &Try| numbers.iter().any(|(since, _)| tried.pairs.iter().any(|(name, _)| name == since));
    periods.queue.retain(|tried| !tried.label.starts_with("ends ") || !has_number(tried));
    periods.add_first(window_of(&numbers, span, "epoch_ms", []));
    others
}

/// True if the refusal of an end of a window says that it takes a number: the place of a page, or an instant.
fn takes_number((since, until): &(String, String), refusals: &[(Try, String)]) -> bool {
    const NUMBERS: [&str; 5] =
        ["whole number", "an integer", "must be a number", "expected a number", "must be integer"];
    refusals.iter().filter(|(tried, _)| tried.label.starts_with("ends ")).any(|(tried, text)| {
        let is_named = names_of(text).any(|word| word == since || word == until);
        let is_sent = tried.pairs.iter().any(|(name, _)| name == since);
        let lower = text.to_ascii_lowercase();
        is_named && is_sent && format_named(text).is_none() && NUMBERS.iter().any(|words| lower.contains(words))
    })
}

/// A condition on the names of two ends.
type IsKind<'k> = &'k dyn Fn(&&Pair) -> bool;

/// Adds the ends of a window in the parameters and the format that a refusal names, before all other candidates.
fn add_named_ends(periods: &mut Dimension, ends: &[(String, String)], span: (i64, i64), refusals: &[(Try, String)]) {
    // `from` and `to` may be words of the sentence.
    let own = |(since, _): &&(String, String)| since.contains(|c: char| c.is_ascii_uppercase() || c == '_');
    for (tried, text) in refusals.iter().filter(|(tried, _)| tried.label.starts_with("ends ")) {
        let sent = |since: &String| tried.pairs.iter().any(|(name, _)| name == since);
        let ends: Vec<(String, String)> = ends.iter().filter(|(since, _)| sent(since)).cloned().collect();
        let has = |name: &str| names_of(text).any(|word| word == name);
        let both = |(since, until): &&(String, String)| has(since) && has(until);
        let one = |(since, until): &&(String, String)| has(since) || has(until);
        let of_kind = |kinds: &[IsKind<'_>]| -> Vec<Pair> {
            ends.iter().filter(|pair| kinds.iter().all(|is| is(pair))).cloned().collect()
        };
        let told = [of_kind(&[&both, &own]), of_kind(&[&one, &own]), of_kind(&[&both]), of_kind(&[&one])];
        let told = told.into_iter().find(|told| !told.is_empty()).or((ends.len() == 1).then(|| ends.clone()));
        let Some(told) = told else { continue };
        let beside = tried.pairs.iter().filter(|(name, _)| name == DURATION).cloned();
        let how = format_named(text).or_else(|| format_shown(text)).or_else(|| tried.label.strip_prefix("ends "));
        if let Some(how) = how {
            periods.add_first(window_of(&told, span, how, beside));
        }
    }
    if let Some((word, text)) = refusals.iter().find(|(tried, _)| tried.label == ALONE) {
        let has = |name: &str| names_of(text).any(|word| word == name);
        let both = ends.iter().filter(|(since, until)| has(since) && has(until));
        if let Some(told) = both.clone().find(own).or(both.clone().next()) {
            let how = format_named(text).unwrap_or(WRITTEN[0]);
            periods.add_first(window_of(std::slice::from_ref(told), span, how, word.pairs.clone()));
        }
    }
}

/// The format of instants that a text names.
pub(super) fn format_named(text: &str) -> Option<&'static str> {
    // Patterns may have letters in quotes: `yyyy-MM-dd'T'HH:mm:ss'Z'`.
    let text = text.to_ascii_lowercase().replace('\'', "");
    let has = |word: &str| text.contains(word);
    // A time to the second, and what follows it.
    let behind = text.split_once("yyyy-mm-ddthh:mm:ss").map(|(_, behind)| behind);
    let is_local = behind.is_some_and(|behind| !behind.starts_with(['z', 'x', '+', '-', '.', '±', '[']));
    match () {
        () if has("millisecond") || has("epoch_ms") || has("epoch ms") => Some("epoch_ms"),
        () if has("epoch") || has("seconds since") || has("unix") => Some("epoch_s"),
        () if has("yyyy-mm-dd") && !has("yyyy-mm-ddt") => Some("date"),
        () if has("rfc 3339") || has("rfc3339") || has("iso 8601") || has("instant") || has("t00:00") => {
            Some("rfc3339")
        }
        () if behind.is_some() => Some(if is_local { "local" } else { "rfc3339" }),
        () if has("a date") || has("dates") || has("calendar day") => Some("date"),
        () => None,
    }
}

/// The format of the last date or time in a text. Before it, a refusal may repeat what was sent.
fn format_shown(text: &str) -> Option<&'static str> {
    let words = text.split(|c: char| c.is_whitespace() || "'\"`,;()[]".contains(c)).rev();
    let mut shown = words.filter_map(|word| shape_of_instant(word.trim_end_matches(['.', ':'])));
    // A number may be any.
    shown.find(|how| !how.starts_with("epoch"))
}

/// The words of a text that may be names of parameters.
fn names_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c)).map(|word| word.trim_matches(['.', '-']))
}

/// Half of the parameters that had an effect together, in groups of this size: the first half, or one of the second half if the
/// first one was done already, so without an effect. `None` for a single group.
fn half_of(pairs: &[Pair], group: usize, done: &dyn Fn(&[Pair]) -> bool) -> Option<Vec<Pair>> {
    let groups = pairs.len() / group;
    if groups < 2 {
        return None;
    }
    let (first, second) = pairs.split_at(groups.div_ceil(2) * group);
    if !done(first) {
        return Some(first.to_vec());
    }
    // That the second half has the effect needs no request, unless nothing of it is left to divide.
    match second.len() / group {
        1 => (!done(second)).then(|| second.to_vec()),
        _ => half_of(second, group, done),
    }
}

/// True for a word of letters and digits, such as `TODAY`.
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_- ".contains(c))
}

/// The format of an instant, by the profile's name for it.
pub(super) fn shape_of_instant(text: &str) -> Option<&'static str> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.len() {
        13 if digits => Some("epoch_ms"),
        10 if digits => Some("epoch_s"),
        10 if text.parse::<chrono::NaiveDate>().is_ok() => Some("date"),
        19 if text.parse::<chrono::NaiveDateTime>().is_ok() => Some("local"),
        20.. if chrono::DateTime::parse_from_rfc3339(text).is_ok() => Some("rfc3339"),
        _ => None,
    }
}

/// The separator and the format of instants of an absolute window, by an example of one and the words around it.
pub(super) fn template_of(example: &str, text: &str) -> Option<(String, &'static str)> {
    const SEPARATORS: [&str; 6] = ["..", "/", ",", "|", "~", "-"];
    let text = text.to_ascii_lowercase();
    let said = match () {
        () if text.contains("milli") => Some("epoch_ms"),
        () if text.contains("epoch") || text.contains("unix") || text.contains("seconds since") => Some("epoch_s"),
        () if text.contains("days") || text.contains("dates") || text.contains("yyyy-mm-dd") => Some("date"),
        () if text.contains("instant") || text.contains("rfc 3339") || text.contains("iso 8601") => Some("rfc3339"),
        () => None,
    };
    SEPARATORS.into_iter().find_map(|separator| {
        let at = example.len().checked_sub(separator.len())? / 2;
        let (from, rest) = example.split_at_checked(at)?;
        let to = rest.strip_prefix(separator)?;
        let letters = !from.is_empty() && from.len() < 6 && from.len() == to.len() && is_name(from) && is_name(to);
        let shape = shape_of_instant(from).filter(|how| shape_of_instant(to) == Some(how));
        let how = shape.or(said.filter(|_| letters))?;
        Some((separator.to_owned(), how))
    })
}

/// Formats the ends of a span as parameters. Dates name the last day, since it is included.
pub(super) fn written((from, to): (i64, i64), how: &str) -> (String, String) {
    let write = |at: i64| match how {
        "epoch_ms" => (at / 1_000).to_string(),
        "epoch_s" => (at / 1_000_000).to_string(),
        "date" => utc(at).date_naive().to_string(),
        "local" => utc(at).format("%Y-%m-%dT%H:%M:%S").to_string(),
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
pub(super) fn reverse(order: &str) -> String {
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

/// Adds candidates for the zone in a notation that a refusal shows.
pub(super) fn more_zones(zones: &mut Dimension) {
    let refusals: Vec<String> = zones
        .done
        .iter()
        .filter_map(|(_, outcome)| match outcome {
            Outcome::Refused(text) => Some(text.to_ascii_lowercase()),
            Outcome::Taken(_) | Outcome::Unknown => None,
        })
        .collect();
    for text in refusals {
        if text.contains("minutes") {
            zones.add_first(Try::new("330", TIMEZONE, "330"));
        }
        if text.contains("utc+") || text.contains("utc-") {
            zones.add_first(Try::new("UTC+05:30", TIMEZONE, "UTC+05:30"));
        }
    }
}

/// Adds candidates for the sort order: values that a refusal lists, values in responses, those of the same form with other
/// fields of mentions, or usual ones.
pub(super) fn more_orders(found: &Findings, orders: &mut Dimension, spoken: &[String]) {
    /// Sort orders that are worth a request each.
    const MOST: usize = 8;
    let Some(control) = orders.outcome(NONSENSE).cloned() else { return };
    let listed = match &control {
        Outcome::Refused(text) => [values(text), examples(text)].concat(),
        Outcome::Taken(_) | Outcome::Unknown => Vec::new(),
    };
    let listed: Vec<String> = listed.into_iter().filter(|hint| hint != NONSENSE).collect();
    if !listed.is_empty() {
        orders.queue.retain(|tried| listed.contains(&tried.label));
    }
    let own = own_orders(found);
    let usual = each_once(own.iter().cloned().chain(vocabulary::SORTS.iter().map(|value| (*value).to_owned())));
    // Sort orders by time come first.
    let by_time = |value: &String| {
        if own.contains(value) {
            return false;
        }
        let value = plain(value);
        !["date", "publ", "time", "new", "old", "recen", "chron", "asc"].iter().any(|word| value.contains(word))
    };
    // A service that refuses an unknown value takes those that its responses have.
    let is_known = !spoken.is_empty() && matches!(control, Outcome::Refused(_));
    let tells = !listed.is_empty();
    let mut values: Vec<String> = if !tells && !is_known { usual } else { listed };
    values.sort_by_key(by_time);
    if !spoken.is_empty() {
        orders.queue.retain(|tried| tried.label != vocabulary::SORTS[0]);
    }
    let taken: Vec<String> =
        orders.taken().map(|(tried, _)| tried.label.clone()).filter(|label| label != NONSENSE).collect();
    // One that a service takes, which refuses others, shows the form of the rest.
    if let (Some(first), Outcome::Refused(_), false) = (taken.first(), &control, tells) {
        values = vec![reverse(first)];
        values.extend(alike(first, found));
        orders.queue.retain(|tried| values.contains(&tried.label));
    }
    let alike =
        if values.is_empty() { taken.iter().flat_map(|order| alike(order, found)).collect() } else { Vec::new() };
    for value in spoken.iter().chain(&values).chain(&alike).take(MOST) {
        orders.add(Try::new(value, SORT, value));
    }
}

/// Sort orders by the time of mentions, by the name of its field, in usual forms: the likeliest first.
fn own_orders(found: &Findings) -> Vec<String> {
    let Some(own) = found.columns.path("published_at").and_then(|path| path.last()) else { return Vec::new() };
    let pairs = [format!("-{own}"), format!("{own}:desc"), format!("{own}_desc"), format!("{own}Desc")];
    let reversed = pairs.clone().map(|order| reverse(&order));
    let usual = ["date_desc", "date_asc", "newest", "oldest"].map(str::to_owned);
    let [minus, colon, under, camel] = pairs;
    let [plain, ascending, ..] = reversed;
    [vec![minus, plain, colon, ascending], usual.to_vec(), vec![under, camel]].concat()
}

/// Sort orders in the form of one that names a field: the same with the fields that are likely to be sorted by.
fn alike(order: &str, found: &Findings) -> Vec<String> {
    let columns = &found.columns;
    let named = |path: &Path| path.last().filter(|name| name.len() > 2 && order.contains(name.as_str())).cloned();
    let Some(own) = columns.path("published_at").and_then(named) else { return Vec::new() };
    let other = |path: &Path| {
        let (last, parent) = (path.last()?, path.iter().rev().nth(1));
        let generic = ["total", "count", "value", "sum"].contains(&plain(last).as_str());
        parent.filter(|_| generic).or(Some(last)).cloned()
    };
    let others = ["reach", "engagement"].iter().filter_map(|column| other(columns.path(column)?));
    let orders = others.map(|other| order.replacen(&own, &other, 1));
    orders.flat_map(|order| [order.clone(), reverse(&order)]).collect()
}

/// Adds candidates for filters: one by one, the parameters that had an effect together.
pub(super) fn more_filters(found: &Findings, filters: &mut Dimension) {
    let works = |(tried, reply): &(&Try, &Arc<Reply>)| found.is_filtered(tried, reply);
    let columns: Vec<String> = each_once(filters.taken().map(|(tried, _)| tried.label.clone()));
    for column in columns {
        let of = filters.taken().filter(|(tried, _)| tried.label == column).filter(works);
        let Some(tried) = of.map(|(tried, _)| tried.clone()).min_by_key(|tried| tried.pairs.len()) else { continue };
        let alone = tried.pairs.chunks(1).find(|one| tried.pairs.len() > 1 && !filters.has_done(one));
        if let Some(one) = alone.map(<[Pair]>::to_vec) {
            filters.add_first(Try { pairs: one, ..tried });
        }
    }
}

/// Two days that ended a day before the day of the newest mention.
pub(super) fn span(newest: i64) -> (i64, i64) {
    let day = newest.div_euclid(DAY) * DAY;
    (day - 3 * DAY, day - DAY)
}

/// Parameters that may filter by a field, the likeliest first: its name, its parent's name, and usual ones.
pub(super) fn parameters_of(column: &str, path: &[String]) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn a_service_that_refuses_nothing_is_asked_for_one_window_of_each_form() {
        let reply = Reply::new(&[], 200, http::HeaderMap::new(), "{\"total\": 3}".to_owned());
        let taken = |tried: Try| (tried, Outcome::Taken(Arc::new(reply.clone())));
        let mut periods = Dimension::new("period", []);
        let days = Try::relative(DURATION, 'd', "{n}d", 60);
        periods.done.extend([Try::new(NONSENSE, DURATION, NONSENSE), days].map(taken));
        more_periods(&Findings::default(), &mut periods, Some(1_780_000_000_000_000), None, &[]);
        let labels: Vec<&str> = periods.queue.iter().map(|tried| tried.label.as_str()).collect();
        assert_eq!(labels[..4], LIKELY[..4], "{labels:?}");
        assert!(labels[..8].contains(&"30 days"), "{labels:?}");
        assert_eq!(periods.queue[0].kind, Kind::Relative('d', "P{n}D".to_owned()));
        // The ends are sent under all of their usual names at once.
        assert!(periods.queue[1].pairs.len() >= 10, "{:?}", periods.queue[1]);
    }

    #[test]
    fn the_refusal_of_a_word_for_the_ends_of_a_window_names_their_parameters() {
        let listed = Outcome::Refused("duration: must be one of [LAST_7_DAYS, custom]".to_owned());
        let mut periods = Dimension::new("period", []);
        let days = Try::relative(DURATION, 'd', "{n}d", 60);
        periods.done.extend([Try::new(NONSENSE, DURATION, NONSENSE), days].map(|tried| (tried, listed.clone())));
        let more = |periods: &mut Dimension| {
            more_periods(&Findings::default(), periods, Some(1_780_000_000_000_000), None, &[]);
        };
        more(&mut periods);
        let alone = periods.queue.iter().find(|tried| tried.is_absolute()).expect("the word alone").clone();
        assert_eq!(alone.pairs, [pair(DURATION, "custom")]);
        periods.queue.retain(|tried| *tried != alone);
        let refusal = "duration: custom needs dateFrom and dateTo".to_owned();
        periods.done.push((alone, Outcome::Refused(refusal)));
        more(&mut periods);
        let next = periods.queue.front().expect("the ends that are named");
        let names: Vec<&str> = next.pairs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((next.label.as_str(), names), ("ends rfc3339", vec!["dateFrom", "dateTo", DURATION]));
    }

    #[test]
    fn ends_that_were_tried_are_written_as_the_date_in_their_refusal() {
        let listed = Outcome::Refused("periodo: no. Valores admitidos: ultimos_7_dias, ultimos_30_dias".to_owned());
        let refusal = "desde, hasta: deben ser dos fechas AAAA-MM-DD, por ejemplo 2026-01-31, ambas incluidas";
        let mut periods = Dimension::new("period", []);
        let days = Try::relative(DURATION, 'd', "{n}d", 60);
        periods.done.extend([Try::new(NONSENSE, DURATION, NONSENSE), days].map(|tried| (tried, listed.clone())));
        let ends = vec![pair("desde", "2026-05-27T00:00:00Z"), pair("hasta", "2026-05-29T00:00:00Z")];
        periods.done.push((Try::absolute("ends rfc3339", ends), Outcome::Refused(refusal.to_owned())));
        let named = ["tema", "desde", "hasta"].map(str::to_owned);
        more_periods(&Findings::default(), &mut periods, Some(1_780_000_000_000_000), Some(&named), &[]);
        let next = periods.queue.front().expect("the ends again");
        let names: Vec<&str> = next.pairs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((next.label.as_str(), names), ("ends date", vec!["desde", "hasta"]));
        assert_eq!(format_shown("since: 'x' is not an instant such as 2026-01-31T08:00:00Z."), Some("rfc3339"));
        assert_eq!(format_shown("no query 1998301772 and no date"), None);
    }

    #[test]
    fn an_end_that_takes_a_number_does_not_hide_the_others() {
        let mut periods = Dimension::new("period", []);
        let days = Try::relative(DURATION, 'd', "{n}d", 60);
        let taken = Reply::new(&[], 200, http::HeaderMap::new(), "{\"total\": 3}".to_owned());
        let taken = Outcome::Taken(Arc::new(taken));
        periods.done.extend([Try::new(NONSENSE, DURATION, NONSENSE), days].map(|tried| (tried, taken.clone())));
        let more = |periods: &mut Dimension| {
            more_periods(&Findings::default(), periods, Some(1_780_000_000_000_000), None, &[]);
        };
        more(&mut periods);
        let of = |periods: &Dimension, label: &str| periods.queue.iter().find(|tried| tried.label == label).cloned();
        let all = of(&periods, "ends rfc3339").expect("the usual names");
        periods.queue.retain(|tried| *tried != all);
        periods.done.push((all, Outcome::Refused("from: expected a whole number of 0 or more".to_owned())));
        more(&mut periods);
        let names = |tried: &Try| tried.pairs.iter().map(|(name, _)| name.clone()).collect::<Vec<String>>();
        assert!(periods.queue.iter().any(|tried| names(tried) == ["from", "to"]), "{:?}", periods.queue);
        let others = of(&periods, "ends rfc3339").map(|tried| names(&tried)).unwrap_or_default();
        assert!(others.len() > 10 && !others.contains(&"from".to_owned()), "{others:?}");
        let has_both = |tried: &Try| names(tried).len() > 2 && names(tried).contains(&"from".to_owned());
        assert!(!periods.queue.iter().any(has_both), "{:?}", periods.queue);
    }

    #[test]
    fn patterns_of_times_tell_their_format() {
        let cases = [
            ("start: must be formatted as YYYY-MM-DDTHH:MM:SS, without a zone", Some("local")),
            ("failed to parse date with format [yyyy-MM-dd'T'HH:mm:ss'Z']", Some("rfc3339")),
            ("expected YYYY-MM-DDTHH:MM:SS+HH:MM", Some("rfc3339")),
            ("write a date as YYYY-MM-DD", Some("date")),
            ("expected ISO 8601, as YYYY-MM-DDTHH:MM:SS", Some("rfc3339")),
            ("no such search", None),
        ];
        each(cases, |(text, format)| assert_eq!(format_named(text), format, "{text}"));
    }

    #[test]
    fn a_listed_word_for_the_ends_of_a_window_goes_with_parameters_that_are_known() {
        let ends = vec![pair("from", "2026-06-01"), pair("to", "2026-06-02")];
        let known = [Try::absolute("ends date", ends.clone()), Try::relative(DURATION, 'd', "{n}d", 60)];
        let cases = [("duration: one of [last-7-days, custom]", Some("custom")), ("duration: unknown", None)];
        for (refusal, word) in cases {
            let mut periods = Dimension::new("period", known.clone());
            let control = Outcome::Refused(refusal.to_owned());
            periods.done.push((Try::new(NONSENSE, DURATION, NONSENSE), control));
            more_periods(&Findings::default(), &mut periods, None, None, &[]);
            let word = word.map(|word| pair(DURATION, word));
            let expected: Vec<Pair> = ends.iter().cloned().chain(word).collect();
            assert_eq!(periods.queue[0].pairs, expected, "{refusal}");
        }
    }

    #[test]
    fn a_list_of_other_periods_stands_for_the_refusal_of_days() {
        let cases = [
            ("duration: one of [last-7-days, last-30-days]", false),
            ("duration; supported: P7D, P30D", false),
            ("duration: use one of 7 days, 1 month, 3 months", false),
            ("duration: one of [ultimos7dias, ultimos30dias]", false),
            // The list does not decide about `60d`.
            ("duration: one of [<n>d, <n>w]", true),
            ("duration: one of [7d, LAST_30_DAYS]", true),
            ("duration: one of [zadnjih7dni, zadnjih30dni]", true),
            ("duration: must be a period such as P7D", true),
            ("duration: unknown period", true),
        ];
        each(cases, |(refusal, is_asked)| {
            let days = ["{n}d", "LAST_{n}_DAYS"].map(|template| Try::relative(DURATION, 'd', template, 60));
            let mut periods = Dimension::new("period", days);
            let control = Outcome::Refused(refusal.to_owned());
            periods.done.push((Try::new(NONSENSE, DURATION, NONSENSE), control));
            more_periods(&Findings::default(), &mut periods, Some(1_780_000_000_000_000), None, &[]);
            let asked = ["60d", "LAST_60_DAYS"].map(|label| periods.queue.iter().any(|tried| tried.label == label));
            assert_eq!((asked, periods.outcome("60d").is_none()), ([is_asked; 2], is_asked), "{refusal}");
        });
    }

    #[test]
    fn the_only_pair_of_ends_that_works_is_found_within_five_requests() {
        let pairs: Vec<Pair> = (0..20).map(|n| pair(&format!("p{n}"), n)).collect();
        for own in pairs.chunks(2) {
            let works = |asked: &[Pair]| asked.chunks(2).any(|ends| ends == own);
            let next =
                |pairs: &[Pair], asked: &[Vec<Pair>]| half_of(pairs, 2, &|half| asked.iter().any(|done| done == half));
            let (mut smallest, mut asked) = (pairs.clone(), Vec::new());
            while let Some(half) = next(&smallest, &asked) {
                if works(&half) {
                    smallest = half.clone();
                }
                asked.push(half);
            }
            assert_eq!(smallest, own, "{asked:?}");
            assert!(asked.len() <= 5, "{asked:?}");
        }
    }

    #[test]
    fn a_refusal_that_lists_or_shows_periods_tells_them() {
        for (text, told) in [
            ("`zzq` is not a valid period: <n>d, <n>w, YYYY-MM-DD,YYYY-MM-DD", true),
            ("Invalid value for 'duration': expected a period such as P7D", true),
            ("Invalid value for 'duration'", false),
        ] {
            let mut periods = Dimension::new("period", []);
            periods.done.push((Try::new(NONSENSE, DURATION, NONSENSE), Outcome::Refused(text.to_owned())));
            assert_eq!(are_told(&periods), told, "{text}");
        }
    }

    #[test]
    fn a_notation_has_a_place_for_a_number() {
        let cases = [
            ("<n>d", Some(('d', "{n}d"))),
            ("Nd", Some(('d', "{n}d"))),
            ("last_N_days", Some(('d', "last_{n}_days"))),
            ("PTNH", Some(('h', "PT{n}H"))),
            ("7 days", Some(('d', "{n} days"))),
            ("now-<n>h", Some(('h', "now-{n}h"))),
            ("LAST_7_DAYS", None),
            ("NEWEST", None),
            ("now-7d", None),
        ];
        each(cases, |(hint, found)| {
            let found = found.map(|(unit, template)| (unit, template.to_owned()));
            assert_eq!(notation(hint), found, "{hint}");
        });
        assert_eq!(any_notation("now-7d"), Some(('d', "now-{n}d".to_owned())));
        assert_eq!(any_notation("last_24_hours"), Some(('h', "last_{n}_hours".to_owned())));
        assert_eq!(any_notation("2026-01-01"), None);
    }
}
