//! Messages for operands and arguments of the wrong type: those of the engine list its signatures, and name no remedy.

use super::between;

/// The message for operands and arguments of the wrong type, or outside of GROUP BY.
pub(super) fn mistyped(text: &str) -> Option<String> {
    if let Some(name) = between(text, "Function '", "' failed to match any signature") {
        return Some(format!("wrong types of arguments for `{name}`"));
    }
    if let Some(column) = between(text, "column \"", "\" must appear in the GROUP BY clause") {
        return Some(format!("column `{column}` must be in GROUP BY or inside an aggregate function"));
    }
    if let Some(types) = text.strip_prefix("Cannot infer common argument type for comparison operation ") {
        return Some(format!("cannot compare {types}{}", advice_on_dates(types)));
    }
    if let Some((left, items)) = text
        .strip_prefix("Can not find compatible types to compare ")
        .and_then(|types| types.strip_suffix(']'))
        .and_then(|types| types.split_once(" with ["))
    {
        return Some(format!("IN cannot compare {left} with {items}{}", advice_on_dates(left)));
    }
    if let Some(types) = text.strip_prefix("Cannot infer common argument type for regex operation ") {
        return Some(format!("a regular expression compares text, not {types}; cast the operands: x::varchar"));
    }
    if let Some(types) = between(text, "Cannot coerce arithmetic expression ", " to valid types") {
        let advice = match types {
            "Utf8 + Utf8" => "; to join texts, write a || b",
            _ if is_time(types) => "; for spans of time use INTERVAL '7 days'",
            _ => "",
        };
        return Some(format!("cannot compute {types}{advice}"));
    }
    if text.starts_with("Dot access not supported for ") {
        return Some("(x).member reads a member of a column or a table; for other rows, write x['member']".to_owned());
    }
    if text == "ANY in LIKE expression" {
        return Some("LIKE ANY takes an array, such as ARRAY['a%', 'b%']".to_owned());
    }
    let line = wrong_types(text).or_else(|| not_an_array(text)).or_else(|| no_condition(text));
    line.or_else(|| no_member(text)).or_else(|| wrong_arguments(text))
}

/// True if types are those of a date or an instant.
fn is_time(types: &str) -> bool {
    types.contains("Timestamp") || types.contains("Date")
}

fn advice_on_dates(types: &str) -> &'static str {
    if is_time(types) { "; write dates in single quotes: '2026-05-01'" } else { "" }
}

/// The message for an expression whose parts have no common type.
pub(super) fn wrong_types(text: &str) -> Option<String> {
    if let Some(types) = between(text, "Failed to coerce types ", " in BETWEEN expression") {
        return Some(format!("BETWEEN cannot compare {types}"));
    }
    if let Some(types) = between(text, "Failed to coerce then (", ") to common types in CASE WHEN expression") {
        let types = types.trim_end_matches(") and else (None").replacen(") and else (", ", ", 1);
        return Some(format!("the results of CASE have no common type: {types}"));
    }
    if let Some(types) = between(text, "Failed to coerce case (", ") to common types in CASE WHEN expression") {
        return Some(format!("CASE cannot compare {}", types.replacen(") and when (", " with ", 1)));
    }
    let types = between(text, "There isn't a common type to coerce ", " in ")?;
    let (_, operator) = text.split_once(" in ")?;
    let operator = operator.split_once(" expression").map_or(operator, |(operator, _)| operator);
    Some(format!("{operator} compares text, not {types}; cast the operands: x::varchar"))
}

/// The message for an argument that is not an array. The engine computes ANY and ALL by functions of arrays.
fn not_an_array(text: &str) -> Option<String> {
    let (name, given) = match text.split_once(" does not support type ") {
        Some(refused) => refused,
        None => (
            between(text, "Failed to coerce arguments to satisfy a call to '", "'")?,
            between(text, ": coercion from ", " to the signature ").filter(|_| text.contains("ArraySignature("))?,
        ),
    };
    if given.split('(').next().is_some_and(|kind| kind.ends_with("List")) {
        return None;
    }
    let takes = match name {
        "array_has" | "array_position" | "cardinality" => format!("ANY, ALL and `{name}` take"),
        name if name.starts_with("array_") => format!("`{name}` takes"),
        _ => return None,
    };
    Some(format!("{takes} an array, such as ARRAY['a', 'b']"))
}

/// The message for a condition that is a value of another type.
fn no_condition(text: &str) -> Option<String> {
    let value = between(text, "Cannot create filter with non-boolean predicate '", "' returning ")?;
    let (_, kind) = text.rsplit_once("' returning ")?;
    let value = value.rsplit_once('.').map_or(value, |(_, column)| column);
    let written = if value.contains('(') { "x" } else { value };
    Some(format!("a condition cannot be a value of type {kind}; write a comparison, such as {written} <> …"))
}

/// The message for a member of a value that has none.
fn no_member(text: &str) -> Option<String> {
    let place = between(text, "Cannot access field at argument ", " is not Struct, Map, or Null")?;
    let (_, kind) = place.split_once("type ")?;
    Some(match kind {
        "Utf8" | "Utf8View" | "LargeUtf8" => "a text has no fields; for a field of JSON, write x->>'field'".to_owned(),
        kind => format!("a value of type {kind} has no fields"),
    })
}

/// The message for a call with arguments that a function does not take.
fn wrong_arguments(text: &str) -> Option<String> {
    // The reason that a function gives itself says more.
    if text.contains("user-defined coercion failed") {
        return None;
    }
    if let Some(call) = between(text, "No function matches the given name and argument types '", "'. ") {
        let name = call.split('(').next().unwrap_or(call);
        return Some(format!("wrong arguments for `{name}`: {call}"));
    }
    let name = between(text, "Failed to coerce arguments to satisfy a call to '", "' function: coercion from ")?;
    let given = between(text, ": coercion from ", " to the signature ")?;
    Some(format!("wrong arguments for `{name}`: {name}({given})"))
}

/// The message for a cast of a row or an array, such as `Casting from Struct("a": Int64) to Utf8 not supported`.
pub(super) fn uncast(text: &str) -> Option<String> {
    let (from, to) = between(text, "Casting from ", " not supported")?.rsplit_once(" to ")?;
    let (value, parts) = match from.split('(').next()? {
        "Struct" => ("a row", "members"),
        "List" | "LargeList" | "FixedSizeList" => ("an array", "items"),
        _ => return None,
    };
    Some(format!("{value} cannot be cast to {to}; cast its {parts}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn types_and_a_remedy_take_the_place_of_signatures() {
        let cases = [
            (
                "Can not find compatible types to compare List(Utf8) with [Utf8, Utf8]",
                "IN cannot compare List(Utf8) with Utf8, Utf8",
            ),
            (
                "Can not find compatible types to compare Timestamp(µs, \"UTC\") with [Int64]",
                "IN cannot compare Timestamp(µs, \"UTC\") with Int64; write dates in single quotes: '2026-05-01'",
            ),
            (
                "Cannot infer common argument type for regex operation Int64 ~ Utf8",
                "a regular expression compares text, not Int64 ~ Utf8; cast the operands: x::varchar",
            ),
            (
                "Cannot coerce arithmetic expression Utf8 + Utf8 to valid types",
                "cannot compute Utf8 + Utf8; to join texts, write a || b",
            ),
            (
                "Cannot create filter with non-boolean predicate 'mentions.reach' returning Int64",
                "a condition cannot be a value of type Int64; write a comparison, such as reach <> …",
            ),
            (
                "Cannot create filter with non-boolean predicate 'Int64(1)' returning Int64",
                "a condition cannot be a value of type Int64; write a comparison, such as x <> …",
            ),
            (
                "Cannot access field at argument 1: type Utf8 is not Struct, Map, or Null",
                "a text has no fields; for a field of JSON, write x->>'field'",
            ),
            (
                "Cannot access field at argument 1: type Int64 is not Struct, Map, or Null",
                "a value of type Int64 has no fields",
            ),
            (
                "Function 'lower' requires String, but received Int64 (DataType: Int64).. No function matches the given name and \
                 argument types 'lower(Int64)'. You might need to add explicit type casts.\n\tCandidate functions:\n\tlower(String)",
                "wrong arguments for `lower`: lower(Int64)",
            ),
            (
                "Failed to coerce arguments to satisfy a call to 'to_char' function: coercion from Timestamp(µs, \"UTC\") to the \
                 signature OneOf(Exact(Date32, Utf8))",
                "wrong arguments for `to_char`: to_char(Timestamp(µs, \"UTC\"))",
            ),
        ];
        each(cases, |(text, expected)| assert_eq!(mistyped(text).as_deref(), Some(expected)));
        let own = "Function 'f' user-defined coercion failed with: f takes a text. No function matches the given name and argument \
                   types 'f(Int64)'. You might";
        assert_eq!(mistyped(own), None);
    }
}
