//! Counts that call themselves estimates: `estimated: true`, `docCountErrorUpperBound: 12` or `totalIsExact: false`, beside a total
//! or a list, or in an entry of the list.

use serde_json::Value;

use super::Relation;
use super::evidence::words;
use super::json::Raw;
use crate::profile::Pointer;

/// The first member that calls the list at this place of a response an estimate, with its value.
pub(crate) fn estimated_list(body: &[u8], list: &Pointer) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let entries: Vec<&Value> = match list.member_of(&body)? {
        Value::Array(entries) => entries.iter().collect(),
        Value::Object(entries) => entries.values().collect(),
        _ => return None,
    };
    let mut within = entries.into_iter().flat_map(members);
    beside(&body, list).or_else(|| Some(described(within.find(said_of_counts)?)))
}

/// The first member that calls the total at this place of a response an estimate, with its value.
pub(crate) fn estimated_total(body: &[u8], total: &Pointer) -> Option<String> {
    beside(&serde_json::from_slice(body).ok()?, total)
}

/// Beside a count, `estimatedReach: true` is said of another number.
fn beside(body: &Value, place: &Pointer) -> Option<String> {
    let (_, parent) = place.steps().split_last()?;
    let around = Pointer::of(parent.iter().map(String::as_str)).member_of(body)?;
    members(around).find(said_of_counts).map(described)
}

/// True for a member that calls counts estimates.
fn said_of_counts((name, value): &(&String, &Value)) -> bool {
    let words = words(name);
    is_of_counts(&words) && is_estimate(&words, value)
}

/// True for a member that calls the counts beside it estimates, by the words of its name.
pub(super) fn calls_estimate(words: &[String], value: Raw<'_>) -> bool {
    // An object, such as the one with the mentions, is none, and takes time to parse.
    let simple = !matches!(value.first(), b'{' | b'[');
    simple && is_of_counts(words) && serde_json::from_str(value.text).is_ok_and(|value| is_estimate(words, &value))
}

fn described((name, value): (&String, &Value)) -> String {
    format!("`{name}` is {value}")
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// True for a name that is said of counts, and of nothing else.
fn is_of_counts(words: &[String]) -> bool {
    const COUNTS: [&str; 25] = [
        "accuracy",
        "are",
        "approx",
        "approximate",
        "bound",
        "count",
        "counts",
        "doc",
        "error",
        "estimate",
        "estimated",
        "estimates",
        "exact",
        "is",
        "list",
        "lists",
        "margin",
        "max",
        "mentions",
        "relation",
        "sampled",
        "total",
        "totals",
        "type",
        "upper",
    ];
    words.iter().all(|word| COUNTS.contains(&word.as_str()))
}

fn is_estimate(words: &[String], value: &Value) -> bool {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    match value {
        Value::Bool(true) => has(&["approx", "approximate", "estimate", "estimated", "estimates", "sampled"]),
        Value::Bool(false) => has(&["exact"]),
        Value::Number(number) => {
            has(&["error"]) && has(&["bound", "margin", "upper", "max"]) && number.as_f64() != Some(0.0)
        }
        Value::String(text) => {
            has(&["accuracy", "relation", "type", "kind", "quality"])
                && Relation::of(Some(text.as_str().into())) == Relation::About
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_may_call_itself_an_estimate() {
        let of = |entry: &str, beside: &str| {
            let body = format!(r#"{{"overview":{{"languages":[{{"name":"de","count":7{entry}}}]{beside}}}}}"#);
            estimated_list(body.as_bytes(), &Pointer::of(["overview", "languages"]))
        };
        for (entry, beside) in [
            (r#","estimated":true"#, ""),
            (r#","docCountErrorUpperBound":12"#, ""),
            (r#","countType":"approximate""#, ""),
            (r#","exact":false"#, ""),
            ("", r#","doc_count_error_upper_bound":3"#),
            ("", r#","countsAreEstimates":true"#),
        ] {
            assert!(of(entry, beside).is_some(), "{entry} {beside}");
        }
        for (entry, beside) in [
            ("", ""),
            (r#","docCountErrorUpperBound":0"#, r#","estimatedReach":true"#),
            (r#","estimated":false,"exact":true"#, r#","reachEstimated":true"#),
            (r#","type":"social","reachEstimated":true"#, r#","sampleSize":1000"#),
        ] {
            assert_eq!(of(entry, beside), None, "{entry} {beside}");
        }
    }

    #[test]
    fn a_total_may_call_itself_an_estimate() {
        let of = |beside: &str| {
            let body = format!(r#"{{"mentions":{{"total":7,"items":[]{beside}}}}}"#);
            estimated_total(body.as_bytes(), &Pointer::of(["mentions", "total"]))
        };
        for beside in [r#","totalIsEstimate":true"#, r#","isExact":false"#, r#","totalType":"estimate""#] {
            assert!(of(beside).is_some(), "{beside}");
        }
        for beside in ["", r#","totalIsEstimate":false"#, r#","totalRelation":"eq""#, r#","reachIsEstimate":true"#] {
            assert_eq!(of(beside), None, "{beside}");
        }
    }
}
