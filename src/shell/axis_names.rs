//! Names of columns in words, for titles and axes of charts: `count(*)` is `count`, `date_trunc('day', published_at)` is `day`.
//!
//! A column without an alias is called as its expression was typed, or as the engine calls it. Invariant: an expression that is
//! not understood has no words, so that no chart names something else than it shows.

/// A name of a column as users write it, and the usual expressions in words. `None` for other expressions.
pub(super) fn in_words(name: &str) -> Option<String> {
    let name = name.trim();
    // An alias of several words is used as it is.
    if is_plain(&name.replace(' ', "_")) {
        return Some(plain_words(name));
    }
    if let Some((value, kind)) = name.rsplit_once("::") {
        return (is_date(kind) && is_single(value)).then(|| "day".to_owned());
    }
    if let Some(column) = column(name) {
        return Some(column);
    }
    let (function, arguments) = call(name)?;
    let words = match (function.as_str(), arguments.as_slice()) {
        ("count", ["*" | "1" | "Int64(1)"]) => "count".to_owned(),
        ("count", [of]) => format!("count of {}", column_or_distinct(of)?),
        ("sum", [of]) => format!("sum of {}", column_or_distinct(of)?),
        ("avg" | "mean", [of]) => format!("average {}", column(of)?),
        ("median", [of]) => format!("median {}", column(of)?),
        ("min", [of]) => format!("lowest {}", column(of)?),
        ("max", [of]) => format!("highest {}", column(of)?),
        ("date_trunc" | "date_part", [unit, _] | [unit, _, _]) => unit_of_time(literal(unit)?)?,
        ("extract", [of]) => unit_of_time(of.split_whitespace().next()?)?,
        ("date", [_]) => "day".to_owned(),
        ("cast", [of]) => {
            let at = of.to_ascii_lowercase().rfind(" as ")?;
            is_date(of.get(at + 4..)?).then(|| "day".to_owned())?
        }
        _ => return None,
    };
    Some(words)
}

/// The words of a column of a chart; an expression that has none is used as it is.
pub(super) fn in_words_or_typed(name: &str) -> String {
    in_words(name).unwrap_or_else(|| name.to_owned())
}

/// True for the name of a column, false for the text of an expression.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// The buckets of `volume` are called days, because they are days.
fn plain_words(name: &str) -> String {
    match name {
        "bucket_start" => "day".to_owned(),
        name => name.replace('_', " ").trim().to_owned(),
    }
}

/// The words of a column that may be in quotes, or have the name of its table before it.
fn column(name: &str) -> Option<String> {
    let mut last = None;
    for part in name.split('.') {
        let part = part.strip_prefix('"').and_then(|part| part.strip_suffix('"')).unwrap_or(part);
        last = Some(part).filter(|part| is_plain(part) && !part.chars().all(|c| c.is_ascii_digit()));
        last?;
    }
    last.map(plain_words)
}

/// The words of a column, or of its distinct values.
fn column_or_distinct(text: &str) -> Option<String> {
    match text.split_once(' ') {
        Some((first, of)) if first.eq_ignore_ascii_case("distinct") => Some(format!("distinct {}", column(of)?)),
        _ => column(text),
    }
}

/// True for the name of the type of dates.
fn is_date(kind: &str) -> bool {
    let kind = kind.trim();
    kind.eq_ignore_ascii_case("date") || kind.eq_ignore_ascii_case("date32")
}

/// A unit of time as the name of an axis.
fn unit_of_time(unit: &str) -> Option<String> {
    let unit = unit.to_ascii_lowercase();
    match unit.as_str() {
        "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year" => Some(unit),
        "dow" | "isodow" => Some("weekday".to_owned()),
        _ => None,
    }
}

/// The text of a string literal, as typed or as the engine shows it.
fn literal(text: &str) -> Option<&str> {
    let typed = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    typed.or_else(|| text.strip_prefix("Utf8(\"")?.strip_suffix("\")"))
}

/// The name of a function in small letters, and its arguments; `None` if the text is not a single call.
fn call(text: &str) -> Option<(String, Vec<&str>)> {
    let (name, inside) = text.split_once('(')?;
    let arguments = parts(inside.strip_suffix(')')?)?;
    is_plain(name).then(|| (name.to_ascii_lowercase(), arguments))
}

/// True for a column, a call, or an expression in parentheses.
fn is_single(text: &str) -> bool {
    let enclosed = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    column(text).is_some() || call(text).is_some() || enclosed.is_some_and(|inside| parts(inside).is_some())
}

/// The parts of a text between its commas, except for those in parentheses and quotes; `None` if these are not closed.
fn parts(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0_usize);
    let mut quote: Option<char> = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(end), c) if end == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.checked_sub(1)?,
            (None, ',') if depth == 0 => {
                parts.push(text[begin..at].trim());
                begin = at + 1;
            }
            (None, _) => {}
        }
    }
    if depth > 0 || quote.is_some() {
        return None;
    }
    parts.push(text[begin..].trim());
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn usual_expressions_have_words_and_others_have_none() {
        let cases = [
            ("reach", "reach"),
            ("total_reach", "total reach"),
            ("bucket_start", "day"),
            ("Zahl der Erwähnungen", "Zahl der Erwähnungen"),
            ("m.total_reach", "total reach"),
            ("m.\"Reach\"", "Reach"),
            ("count(*)", "count"),
            ("COUNT(*)", "count"),
            ("count(1)", "count"),
            ("count(Int64(1))", "count"),
            ("count(author_name)", "count of author name"),
            ("count(DISTINCT m.author_name)", "count of distinct author name"),
            ("sum(mentions.reach)", "sum of reach"),
            ("avg(sentiment_score)", "average sentiment score"),
            ("median(reach)", "median reach"),
            ("min(reach)", "lowest reach"),
            ("max(reach)", "highest reach"),
            ("date_trunc('day', published_at)", "day"),
            ("date_trunc('Week', published_at AT TIME ZONE 'Europe/Berlin')", "week"),
            ("date_trunc('month', published_at, 'Europe/Berlin')", "month"),
            ("date_trunc(Utf8(\"hour\"),mentions.published_at)", "hour"),
            ("date_part('dow', published_at)", "weekday"),
            ("EXTRACT(HOUR FROM published_at)", "hour"),
            ("published_at::DATE", "day"),
            ("(published_at AT TIME ZONE 'Europe/Berlin')::date", "day"),
            ("CAST(published_at AS DATE)", "day"),
            ("date(published_at)", "day"),
        ];
        each(cases, |(name, words)| {
            assert_eq!(in_words(name).as_deref(), Some(words), "{name}");
        });
        let cases = [
            "",
            "count(*) FILTER (WHERE reach > 5)",
            "count(a) + sum(b)",
            "sum(reach) / count(*)",
            "sum(reach * 2)",
            "a.reach + b.reach",
            "2 * m.reach",
            "-m.reach",
            "sum(2 * m.reach)",
            "'a' || m.source",
            "100.0 * sum(x) / m.total",
            "round(avg(reach), 1)",
            "upper(a)",
            "reach::int",
            "now() - published_at::date",
            "(a) - (b)::date",
            "date_trunc('decade', published_at)",
            "1.5",
            "'a, b'",
            "max('",
            "count(",
        ];
        each(cases, |name| {
            assert_eq!(in_words(name), None, "{name}");
        });
        assert_eq!(in_words_or_typed("upper(a)"), "upper(a)");
    }
}
