//! What an answer looks like: where its records, lists, times and numbers lie. Pure.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use serde_json::Value;

use super::vocabulary::{self, Names, plain};

/// Steps to a member.
pub(super) type Path = Vec<String>;

/// A path as a JSON pointer (RFC 6901).
pub(super) fn pointer(path: &[String]) -> String {
    path.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect()
}

/// The value at a path.
pub(super) fn at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| value.get(step))
}

/// Every value below objects, with its path, outermost first; arrays are not entered.
pub(super) fn walk(value: &Value) -> Vec<(Path, &Value)> {
    let mut found = vec![(Path::new(), value)];
    let mut next = 0;
    while let Some((path, value)) = found.get(next).cloned() {
        if let Value::Object(members) = value {
            for (name, member) in members {
                let mut path = path.clone();
                path.push(name.clone());
                found.push((path, member));
            }
        }
        next += 1;
    }
    found
}

/// The values below objects that are none themselves.
pub(super) fn leaves(value: &Value) -> Vec<(Path, &Value)> {
    walk(value).into_iter().filter(|(path, value)| !path.is_empty() && !value.is_object()).collect()
}

/// The records of an array of objects.
pub(super) fn objects(value: &Value) -> Option<Vec<&Value>> {
    let items = value.as_array()?;
    (!items.is_empty() && items.iter().all(Value::is_object)).then(|| items.iter().collect())
}

/// Where mentions are: the array of the richest objects that have an id and a time, the longest of equals.
pub(super) fn mentions(answer: &Value) -> Option<(Path, Vec<&Value>)> {
    let arrays = walk(answer).into_iter().filter_map(|(path, value)| Some((path, objects(value)?)));
    let rich = arrays.filter(|(_, records)| {
        let columns = Columns::of(vocabulary::MENTION, records);
        columns.path("id").is_some() && columns.path("published_at").is_some() && columns.columns.len() >= 3
    });
    rich.max_by_key(|(_, records)| (leaves(records[0]).len(), records.len()))
}

/// Where saved searches are: every array of objects with an aid.
pub(super) fn saved_searches<'v>(answer: &'v Value, aid: &str) -> Vec<(Path, Vec<&'v Value>)> {
    let arrays = walk(answer).into_iter().filter_map(|(path, value)| Some((path, objects(value)?)));
    arrays.filter(|(_, records)| records.iter().all(|record| record.get(aid).is_some())).collect()
}

/// Where the overview is: the object with the most numbers and lists of its own.
pub(super) fn overview(answer: &Value) -> Option<Path> {
    let total = |members: &serde_json::Map<String, Value>| {
        let path = |name: &String| [name.clone()];
        members.iter().any(|(name, value)| {
            value.is_u64()
                && vocabulary::column(vocabulary::OVERVIEW, &path(name)).is_some_and(|(c, _)| c == "total_mentions")
        })
    };
    let score = |value: &Value| {
        let members = value.as_object()?;
        let worth = |value: &Value| match value {
            Value::Number(_) => 1,
            value if Timeline::of(value).is_some() || List::of(value).is_some() => 3,
            _ => 0,
        };
        Some(members.values().map(worth).sum::<u32>()).filter(|score| *score >= 4 || total(members))
    };
    walk(answer).into_iter().filter_map(|(path, value)| Some((score(value)?, path))).max().map(|(_, path)| path)
}

/// An array of numbers over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Timeline {
    pub(super) start: String,
    pub(super) end: Option<String>,
    pub(super) count: String,
}

impl Timeline {
    pub(super) fn of(value: &Value) -> Option<Self> {
        let first = objects(value)?[0].as_object()?;
        let times: Vec<&String> =
            first.iter().filter(|(name, value)| instant(name, value).is_some()).map(|m| m.0).collect();
        let start = times.iter().find(|name| starts(name)).or(times.first())?;
        let end = times.iter().find(|name| *name != start && !starts(name));
        let mut numbers = first.iter().filter(|(name, value)| value.is_number() && !times.contains(name));
        let counts =
            |name: &str| ["count", "n", "mentions", "results", "total", "value"].contains(&plain(name).as_str());
        let count = numbers.clone().find(|(name, _)| counts(name)).or_else(|| numbers.next())?;
        (leaves(&objects(value)?[0].clone()).len() <= 6).then(|| Self {
            start: (*start).clone(),
            end: end.map(|end| (*end).clone()),
            count: count.0.clone(),
        })
    }
}

fn starts(name: &str) -> bool {
    ["start", "from", "since", "t", "date", "day", "time", "begin"].contains(&plain(name).as_str())
}

/// An array of names with a number each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct List {
    pub(super) name: String,
    pub(super) count: String,
}

impl List {
    pub(super) fn of(value: &Value) -> Option<Self> {
        let records = objects(value)?;
        let first = records[0].as_object().filter(|first| (2..=4).contains(&first.len()))?;
        let name = first.iter().find(|(name, value)| value.is_string() && instant(name, value).is_none())?;
        let count = first.iter().find(|(_, value)| value.is_u64())?;
        Some(Self { name: name.0.clone(), count: count.0.clone() })
    }
}

/// An object of numbers by name.
pub(super) fn is_entries(value: &Value) -> bool {
    value.as_object().is_some_and(|members| members.len() >= 2 && members.values().all(Value::is_u64))
}

/// An instant in microseconds since 1970: RFC 3339, a local time, a date, or an epoch number in a field that is named for
/// it.
pub(super) fn instant(name: &str, value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => {
            if let Ok(at) = DateTime::parse_from_rfc3339(text) {
                return Some(at.timestamp_micros());
            }
            // Some write a blank in the middle.
            let text = text.replacen(' ', "T", 1);
            if let Ok(at) = DateTime::parse_from_rfc3339(&text) {
                return Some(at.timestamp_micros());
            }
            let local = text.parse::<NaiveDateTime>().ok();
            let local = local.or_else(|| Some(text.parse::<NaiveDate>().ok()?.and_time(NaiveTime::MIN)));
            local.map(|local| local.and_utc().timestamp_micros())
        }
        Value::Number(number) => {
            const WORDS: [&str; 17] = [
                "time",
                "date",
                "ts",
                "published",
                "created",
                "updated",
                "indexed",
                "collected",
                "edited",
                "modified",
                "since",
                "until",
                "start",
                "end",
                "from",
                "to",
                "t",
            ];
            let name = plain(name);
            let named = WORDS.iter().any(|word| name == *word || (word.len() > 3 && name.contains(word)))
                || name.ends_with("at")
                || name.ends_with("ts");
            let number = number.as_i64().filter(|_| named)?;
            match number {
                // From 2001 to 2128.
                1_000_000_000..5_000_000_000 => number.checked_mul(1_000_000),
                1_000_000_000_000..5_000_000_000_000 => number.checked_mul(1_000),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A type of the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Utf8,
    Int64,
    Float64,
    Boolean,
    Timestamp,
    Utf8List,
}

impl Type {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf8",
            Self::Int64 => "int64",
            Self::Float64 => "float64",
            Self::Boolean => "boolean",
            Self::Timestamp => "timestamp",
            Self::Utf8List => "utf8_list",
        }
    }

    /// The type of a value; `None` for NULL and for what no type holds.
    fn of(name: &str, value: &Value) -> Option<Self> {
        match value {
            _ if instant(name, value).is_some() => Some(Self::Timestamp),
            Value::String(_) => Some(Self::Utf8),
            Value::Bool(_) => Some(Self::Boolean),
            Value::Number(number) if number.is_i64() => Some(Self::Int64),
            Value::Number(_) => Some(Self::Float64),
            Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
                Some(Self::Utf8List)
            }
            _ => None,
        }
    }

    /// The type that holds values of both.
    fn with(self, other: Self) -> Option<Self> {
        match (self, other) {
            _ if self == other => Some(self),
            (Self::Int64, Self::Float64) | (Self::Float64, Self::Int64) => Some(Self::Float64),
            // A text that looks like a time now and then is a text.
            (Self::Utf8, Self::Timestamp) | (Self::Timestamp, Self::Utf8) => Some(Self::Utf8),
            _ => None,
        }
    }
}

/// The columns that records have.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    /// Name, path and type, in the order in which records have them.
    pub(super) columns: Vec<(String, Path, Type)>,
    /// Paths whose values have no type in common: they stay in `extra`.
    pub(super) untyped: Vec<Path>,
}

impl Columns {
    /// The columns of these records, by the names that fields usually become.
    pub(super) fn of(names: Names, records: &[&Value]) -> Self {
        let mut order: Vec<Path> = Vec::new();
        let mut types: BTreeMap<Path, Option<Type>> = BTreeMap::new();
        let mut untyped: Vec<Path> = Vec::new();
        for (path, value) in records.iter().flat_map(|record| leaves(record)) {
            if !types.contains_key(&path) {
                order.push(path.clone());
                types.insert(path.clone(), None);
            }
            if value.is_null() || untyped.contains(&path) {
                continue;
            }
            let found = Type::of(path.last().map_or("", |name| name), value);
            let known = types.get(&path).copied().flatten();
            match (found, known) {
                (Some(found), None) => drop(types.insert(path, Some(found))),
                (Some(found), Some(known)) if known.with(found).is_some() => {
                    types.insert(path, known.with(found));
                }
                _ => untyped.push(path),
            }
        }
        order.retain(|path| !untyped.contains(path));
        // Of several fields that could become a column, the likeliest does.
        let best = |path: &Path| vocabulary::column(names, path);
        let mut columns: Vec<(String, Path, Type)> = Vec::new();
        for path in &order {
            // What was never there is taken for a text.
            let kind = types.get(path).copied().flatten().unwrap_or(Type::Utf8);
            let taken = |column: &str, likely: usize| {
                order.iter().any(|other| other != path && best(other).is_some_and(|(c, l)| c == column && l < likely))
            };
            let standard =
                best(path).filter(|(column, likely)| !taken(column, *likely)).map(|(column, _)| column.to_owned());
            let unused = |name: &String| columns.iter().all(|(known, ..)| known != name);
            let own = snake(path);
            let numbered = (2..).map(|n| format!("{own}_{n}"));
            let name = standard.into_iter().chain([own.clone()]).chain(numbered).find(unused);
            columns.push((name.unwrap_or(own), path.clone(), kind));
        }
        Self { columns, untyped }
    }

    pub(super) fn path(&self, column: &str) -> Option<&Path> {
        self.columns.iter().find(|(name, ..)| name == column).map(|(_, path, _)| path)
    }

    pub(super) fn kind(&self, column: &str) -> Option<Type> {
        self.columns.iter().find(|(name, ..)| name == column).map(|(.., kind)| *kind)
    }
}

/// A path as the name of a column.
fn snake(path: &[String]) -> String {
    let mut name = String::new();
    for c in path.join("_").chars() {
        match c {
            c if c.is_ascii_uppercase() && name.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()) => {
                name.push('_');
                name.push(c.to_ascii_lowercase());
            }
            c if c.is_ascii_alphanumeric() => name.push(c.to_ascii_lowercase()),
            _ if name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    name.trim_matches('_').to_owned()
}

/// A number that an answer has at a path.
pub(super) fn number(answer: &Value, path: &[String]) -> Option<u64> {
    at(answer, path)?.as_u64()
}

/// A scalar as it would be sent as a parameter.
pub(super) fn said(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// An instant as text.
pub(super) fn utc(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_become_columns_by_what_they_are_called_and_hold() {
        let records = [
            json!({"id": 9_007_199_254_740_993_i64, "published": 1_781_042_400_000_i64, "lang": "en", "author": {"name": "A", "screen_name": "a"},
                "score": 1, "odd": 1, "tags": ["x"], "likesCount": null}),
            json!({"id": 2, "published": null, "lang": null, "author": null, "score": 0.5, "odd": "text", "tags": [], "likesCount": 3}),
        ];
        let columns = Columns::of(vocabulary::MENTION, &records.iter().collect::<Vec<_>>());
        let said: Vec<_> =
            columns.columns.iter().map(|(name, path, kind)| (name.as_str(), pointer(path), kind.name())).collect();
        let find =
            |name: &str| said.iter().find(|(known, ..)| *known == name).map(|(_, path, kind)| (path.as_str(), *kind));
        assert_eq!(find("id"), Some(("/id", "int64")));
        assert_eq!(find("published_at"), Some(("/published", "timestamp")));
        assert_eq!(find("language"), Some(("/lang", "utf8")));
        assert_eq!(find("author_handle"), Some(("/author/screen_name", "utf8")));
        assert_eq!(find("sentiment_score"), Some(("/score", "float64")));
        assert_eq!(find("tags"), Some(("/tags", "utf8_list")));
        assert_eq!(find("likes_count"), Some(("/likesCount", "int64")));
        assert_eq!(columns.untyped, [vec!["odd".to_owned()]]);
    }

    #[test]
    fn instants_are_told_from_numbers_by_their_names_and_size() {
        assert_eq!(instant("ts", &json!(1_781_042_400)), Some(1_781_042_400_000_000));
        assert_eq!(instant("publishedAt", &json!(1_781_042_400_000_i64)), Some(1_781_042_400_000_000));
        assert_eq!(instant("reach", &json!(1_781_042_400)), None);
        assert_eq!(instant("count", &json!(12)), None);
        assert_eq!(instant("day", &json!("2026-06-10")), Some(1_781_049_600_000_000));
        assert_eq!(instant("name", &json!("x.com")), None);
    }
}
