//! Members of a response that say whether its totals are exact: `totalIsExact: false`, `trackTotalHits: false`, `relation: "gte"`.
//!
//! Closed by default: a member that is named after a total and its accuracy makes the total inexact, unless its value is the one
//! that calls it exact. So does a flag or a text that is named after a total in words that are not known here, such as
//! `totalFuzzy: true` and `countQualifier: "min"`. Numbers are of other things, unless their words are of a margin.

use serde_json::Value;

use super::Relation;
use super::json::Raw;

/// Numbers of mentions.
const NUMBERS: [&str; 9] = ["total", "totals", "count", "counts", "hits", "matches", "mentions", "number", "results"];
/// Words of a total: what is named after one of them is said of it. `results` and `hits` may be the mentions themselves.
const TOTALS: [&str; 4] = ["total", "totals", "count", "counts"];
/// Words of an exact number.
const EXACT: [&str; 4] = ["exact", "exactly", "accurate", "precise"];
/// Words of measures of accuracy, which other values have, too.
const MEASURES: [&str; 3] = ["accuracy", "exactness", "precision"];
/// Words of a number that is not exact.
const INEXACT: [&str; 23] = [
    "approx",
    "approximate",
    "approximated",
    "approximately",
    "approximation",
    "atleast",
    "atmost",
    "bound",
    "bounded",
    "capped",
    "clipped",
    "estimate",
    "estimated",
    "estimates",
    "estimation",
    "imprecise",
    "inaccurate",
    "inexact",
    "least",
    "lowerbound",
    "rounded",
    "sampled",
    "upperbound",
];
/// Words of the kind of a number.
const KINDS: [&str; 5] = ["kind", "method", "mode", "quality", "type"];
/// Words that say nothing alone.
const NEUTRAL: [&str; 11] = ["are", "as", "at", "is", "lower", "non", "not", "of", "only", "upper", "value"];
/// Subjects with numbers of their own.
const OTHERS: [&str; 12] = [
    "audience",
    "authors",
    "cost",
    "doc",
    "engagement",
    "impressions",
    "interactions",
    "list",
    "lists",
    "reach",
    "users",
    "views",
];

/// Words of a total that is sure, beside its own.
const SURE: [&str; 12] = [
    "available",
    "certain",
    "complete",
    "confirmed",
    "definitive",
    "final",
    "full",
    "known",
    "reliable",
    "trusted",
    "verified",
    "whole",
];
/// Words of a total that is not sure, beside its own.
const UNSURE: [&str; 13] = [
    "cut",
    "exceeded",
    "fuzzy",
    "incomplete",
    "limited",
    "minimum",
    "overflow",
    "partial",
    "rough",
    "stale",
    "truncated",
    "uncertain",
    "unreliable",
];
/// Words of the margin of a number.
const MARGINS: [&str; 5] = ["deviation", "fuzziness", "margin", "tolerance", "uncertainty"];
/// Words of what a response has, and of what a number counts: they say nothing about its accuracy.
const HARMLESS: [&str; 38] = [
    "as",
    "by",
    "currency",
    "date",
    "duration",
    "elapsed",
    "enabled",
    "field",
    "for",
    "from",
    "has",
    "have",
    "href",
    "id",
    "include",
    "included",
    "includes",
    "key",
    "language",
    "link",
    "name",
    "page",
    "pages",
    "path",
    "per",
    "period",
    "requested",
    "returned",
    "show",
    "size",
    "supported",
    "time",
    "to",
    "unit",
    "units",
    "url",
    "window",
    "with",
];
/// Words that are the value of a member about the kind of an exact number.
const WHOLE: [&str; 6] = ["actual", "all", "complete", "full", "real", "whole"];

/// True for a member that does not call the total beside it exact, by the words of its name.
pub(super) fn doubts_total(words: &[String], value: Raw<'_>) -> bool {
    // An object or an array is no flag, and takes time to parse.
    if matches!(value.first(), b'{' | b'[') {
        return false;
    }
    let leaves_exact: fn(&[String], &Value) -> bool = match (is_of_accuracy(words), is_of_total(words)) {
        (true, _) => trusts,
        (false, true) => says_nothing,
        (false, false) => return false,
    };
    serde_json::from_str(value.text).is_ok_and(|value| !leaves_exact(words, &value))
}

/// True for a name that mentions a number of mentions.
pub(super) fn names_a_number(words: &[String]) -> bool {
    has(words, &NUMBERS)
}

fn has(words: &[String], list: &[&str]) -> bool {
    words.iter().any(|word| list.contains(&word.as_str()))
}

/// True for a name that is said of the accuracy of a total: it mentions both, or it consists of words of accuracy.
fn is_of_accuracy(words: &[String]) -> bool {
    let lists: [&[&str]; 6] = [&NUMBERS, &EXACT, &MEASURES, &INEXACT, &KINDS, &NEUTRAL];
    let is_known = |word: &String| word == "relation" || lists.iter().any(|list| list.contains(&word.as_str()));
    let of_accuracy: [&[&str]; 5] = [&EXACT, &MEASURES, &INEXACT, &KINDS, &["relation", "track"]];
    let accurate = of_accuracy.iter().any(|list| has(words, list));
    accurate && !has(words, &OTHERS) && (names_a_number(words) || words.iter().all(is_known))
}

/// True for a name that is said of a total in other words than those of [`is_of_accuracy`].
fn is_of_total(words: &[String]) -> bool {
    words.len() > 1 && has(words, &TOTALS) && !has(words, &OTHERS) && !has(words, &HARMLESS)
}

/// True for a value with which a member of such a name leaves the total exact.
fn says_nothing(words: &[String], value: &Value) -> bool {
    let negated = has(words, &["not", "non"]);
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => true,
        Value::Bool(flag) if has(words, &UNSURE) => *flag == negated,
        Value::Bool(flag) => has(words, &SURE) && *flag != negated,
        Value::Number(number) => !has(words, &MARGINS) || number.as_f64() == Some(0.0),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" => says_nothing(words, &Value::Bool(true)),
            "false" | "no" => says_nothing(words, &Value::Bool(false)),
            text => is_number(text) || is_exact(text),
        },
    }
}

/// True for a text that is nothing but a number, perhaps with separators.
fn is_number(text: &str) -> bool {
    let separates = |character: char| ",. _'\u{a0}\u{202f}\u{2019}".contains(character);
    text.chars().all(|character| character.is_ascii_digit() || separates(character))
}

/// True for a word of an exact number.
fn is_exact(text: &str) -> bool {
    WHOLE.contains(&text) || Relation::of(Some(text.into())) == Relation::Exact
}

/// True for a value with which a member of such a name calls the total exact, or says nothing about it.
fn trusts(words: &[String], value: &Value) -> bool {
    let of_exact = has(words, &EXACT) || has(words, &["track"]);
    let positive = (of_exact && !has(words, &INEXACT)) != has(words, &["not", "non"]);
    // `type: "social"` and `precision: "day"` are said of something else.
    let is_kind = !of_exact && !has(words, &INEXACT) && !has(words, &["relation"]);
    let of_another = is_kind && !has(words, &TOTALS) && (has(words, &KINDS) || !names_a_number(words));
    match value {
        Value::Null => !positive,
        _ if of_another => !value.as_str().is_some_and(is_inexact),
        Value::Bool(flag) => *flag == positive,
        // `exactTotal: 450` is a number of its own, and `precision: 1` and `accuracy: 100` are all of it.
        Value::Number(number) if positive => !has(words, &["track"]) && number.as_f64() != Some(0.0),
        Value::Number(number) if has(words, &MEASURES) => [Some(1.0), Some(100.0)].contains(&number.as_f64()),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" => positive,
            "false" | "no" | "none" if !has(words, &["relation"]) => !positive,
            text if has(words, &KINDS) => is_exact(text),
            text => Relation::of(Some(text.into())) == Relation::Exact,
        },
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// True for a word of a number that is not exact.
fn is_inexact(text: &str) -> bool {
    has(&crate::error::notice::words(text), &INEXACT)
        || Relation::is_lower_bound(text)
        || Relation::of(Some(text.into())) == Relation::About
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;
    use crate::error::notice::words;

    fn doubts(name: &str, value: &str) -> bool {
        doubts_total(&words(name), Raw::of(value))
    }

    #[test]
    fn a_member_about_the_accuracy_of_a_total_is_believed_only_if_it_calls_it_exact() {
        let cases = [
            ("totalIsExact", "false", "true"),
            ("isTotalExact", "false", "true"),
            ("exactTotal", "false", "450"),
            ("totalIsEstimate", "true", "false"),
            ("totalCapped", "true", "false"),
            ("isLowerBound", "true", "false"),
            ("trackTotalHits", "false", "true"),
            ("track_total_hits", "10000", "true"),
            ("totalType", r#""approx""#, r#""exact""#),
            ("countMode", r#""estimated""#, r#""full""#),
            ("totalPrecision", r#""atLeast""#, r#""exact""#),
            ("accurate", "false", "true"),
            ("relation", r#""gte""#, r#""eq""#),
            ("totalRelation", r#""roughly""#, r#""=""#),
            ("approximate", "true", "false"),
            ("totalInexact", r#""yes""#, r#""no""#),
            ("estimatedTotalHits", "200", "0"),
            ("countAccuracy", "0.9", "1.0"),
            ("notExact", "true", "false"),
            ("type", r#""estimate""#, r#""social""#),
            ("precision", r#""atLeast""#, r#""day""#),
            // In words that are said of a total.
            ("totalFuzzy", "true", "false"),
            ("totalIsPartial", "true", "false"),
            ("countTruncated", r#""yes""#, r#""no""#),
            ("totalReliable", "false", "true"),
            ("totalNotFinal", "true", "false"),
            ("countQualifier", r#""min""#, r#""exact""#),
            ("totalPrefix", r#"">""#, r#""""#),
            ("totalFormatted", r#""10,000+""#, r#""10,000""#),
            ("countMargin", "12", "0"),
            ("totalWobbly", "true", "null"),
            ("countMode", r#""sloppy""#, r#""full""#),
            ("totalType", r#""hll""#, r#""exact""#),
        ];
        each(cases, |(name, doubted, trusted)| {
            assert_eq!((doubts(name, doubted), doubts(name, trusted)), (true, false), "{name}");
        });
    }

    #[test]
    fn members_about_something_else_do_not_doubt_a_total() {
        let cases = [
            ("totalMentions", "200"),
            ("totalReach", "5"),
            ("reachIsEstimate", "true"),
            ("estimatedReach", "true"),
            ("sampleSize", "1000"),
            ("exactPhrase", "false"),
            ("rateLimitCapped", "true"),
            ("mentions", "7"),
            ("totalPages", "5"),
            ("includeTotal", "true"),
            ("totalUnit", r#""mentions""#),
            ("countBy", r#""day""#),
            ("totalMentions", r#""1,234""#),
            ("matchType", r#""phrase""#),
            ("resultsOrder", r#""desc""#),
            ("totalReachIsKnown", "false"),
        ];
        each(cases, |(name, value)| assert!(!doubts(name, value), "{name}"));
    }
}
