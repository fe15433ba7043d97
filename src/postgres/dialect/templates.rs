//! Templates such as `YYYY-MM-DD` as formats of the engine, such as `%Y-%m-%d`.

use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr as SqlExpr, Value};

use super::expressions::pair;

/// Patterns in any case, and their formats, empty if there is none. Longer ones first.
const NUMBERS: [(&str, &str); 20] = [
    ("sssss", ""),
    ("ssss", ""),
    ("iddd", ""),
    ("yyyy", "%Y"),
    ("yyy", ""),
    ("iyyy", "%G"),
    ("hh24", "%H"),
    ("hh12", "%I"),
    ("ddd", "%j"),
    ("yy", "%y"),
    ("mm", "%m"),
    ("dd", "%d"),
    ("hh", "%I"),
    ("mi", "%M"),
    ("ss", "%S"),
    ("ms", "%3f"),
    ("us", "%6f"),
    ("iw", "%V"),
    ("id", "%u"),
    ("q", "%q"),
];

/// Patterns in this case.
const NAMES: [(&str, &str); 8] = [
    ("Month", "%B"),
    ("Day", "%A"),
    ("Mon", "%b"),
    ("Dy", "%a"),
    ("AM", "%p"),
    ("PM", "%p"),
    ("am", "%P"),
    ("pm", "%P"),
];

/// True for a format of the engine, such as `%Y-%m-%d`. In a template, a percent sign stands for itself.
pub(super) fn is_format(text: &str) -> bool {
    let parts = text.split('%').skip(1);
    parts
        .into_iter()
        .any(|part| part.starts_with(|c: char| c.is_ascii_alphabetic() || ['-', '.', '3', '6', '9'].contains(&c)))
}

/// Returns the engine's format of a template that text is read with, or the part that has none.
pub(super) fn format_of(template: &str) -> Result<String, String> {
    let mut format = String::new();
    let mut rest = template;
    while let Some(next) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, after) = quoted.split_once('"').ok_or_else(|| rest.to_owned())?;
            format.push_str(text);
            rest = after;
            continue;
        }
        if let Some(fraction) = rest.get(..3).filter(|part| [".ms", ".us"].contains(&part.to_lowercase().as_str())) {
            // Of any number of digits.
            format.push_str("%.f");
            rest = &rest[fraction.len()..];
            continue;
        }
        let (unpadded, pattern) = match rest.get(..2).filter(|part| part.eq_ignore_ascii_case("fm")) {
            Some(_) => (true, &rest[2..]),
            None => (false, rest),
        };
        let number =
            |(name, _): &&(&str, &str)| pattern.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if let Some((name, named)) = NAMES.iter().find(|(name, _)| pattern.starts_with(name)) {
            format.push_str(named);
            rest = &pattern[name.len()..];
        } else if let Some((name, number)) = NUMBERS.iter().find(number) {
            if number.is_empty() {
                return Err((*name).to_uppercase());
            }
            format.push_str(&if unpadded { number.replace('%', "%-") } else { (*number).to_owned() });
            rest = &pattern[name.len()..];
        } else if next.is_alphabetic() {
            return Err(rest.chars().take_while(|character| character.is_alphanumeric()).collect());
        } else {
            format.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    Ok(format)
}

/// A text and its format with the minutes, and the half of the day, that PostgreSQL adds to an hour: the engine ignores a time
/// without them.
pub(super) fn with_minutes(text: &SqlExpr, format: &str) -> (SqlExpr, String) {
    let has = |parts: [&str; 2]| parts.iter().any(|part| format.contains(part));
    let (of_half, of_day) = (has(["%I", "%-I"]), has(["%H", "%-H"]));
    let mut added = (String::new(), String::new());
    if (of_half || of_day) && !has(["%M", "%-M"]) {
        added = (added.0 + " 00", added.1 + " %M");
    }
    if of_half && !has(["%p", "%P"]) {
        added = (added.0 + " AM", added.1 + " %p");
    }
    match added.0.is_empty() {
        true => (text.clone(), format.to_owned()),
        false => {
            let literal = SqlExpr::value(Value::SingleQuotedString(added.0));
            (pair(text.clone(), BinaryOperator::StringConcat, literal), format.to_owned() + &added.1)
        }
    }
}
