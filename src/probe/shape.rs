//! Structure of a response: the places of its records, lists, times and numbers. Pure.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use serde_json::Value;

use super::vocabulary::{self, Names, plain};
use crate::profile::{Instant, instant_by};

/// Member names from the top level to a value.
pub(super) type Path = Vec<String>;

/// A path as a JSON pointer (RFC 6901).
pub(super) fn pointer(path: &[String]) -> String {
    path.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect()
}

/// A path for people: the JSON pointer, or words for the empty one.
pub(super) fn place(path: &[String]) -> String {
    if path.is_empty() { "the top level".to_owned() } else { format!("`{}`", pointer(path)) }
}

/// The value at a path.
pub(super) fn at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| value.get(step))
}

/// All values reachable through objects, with their paths, outermost first; arrays are not entered.
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

/// All values reachable through objects that are not objects themselves.
pub(super) fn leaves(value: &Value) -> Vec<(Path, &Value)> {
    walk(value).into_iter().filter(|(path, value)| !path.is_empty() && !value.is_object()).collect()
}

/// The records of an array of objects.
pub(super) fn objects(value: &Value) -> Option<Vec<&Value>> {
    let items = value.as_array()?;
    (!items.is_empty() && items.iter().all(Value::is_object)).then(|| items.iter().collect())
}

/// All arrays of records, with their paths.
pub(super) fn arrays(answer: &Value) -> Vec<(Path, Vec<&Value>)> {
    walk(answer).into_iter().filter_map(|(path, value)| Some((path, objects(value)?))).collect()
}

/// True if records could be mentions: several values, one of them a string, and more than a name with a number.
pub(super) fn is_rich(records: &[&Value]) -> bool {
    let leaves = leaves(records[0]);
    leaves.len() >= 3 && leaves.iter().any(|(_, value)| value.is_string()) && Series::by_name_of(records).is_none()
}

/// Lists of saved searches: every array of records with an aid, and the path of the aid in a record.
pub(super) fn saved_searches<'v>(answer: &'v Value, aid: &str) -> Vec<(Path, Vec<&'v Value>, Path)> {
    let with_aid = arrays(answer).into_iter().filter_map(|(path, records)| {
        let (below, _) =
            leaves(records[0]).into_iter().find(|(below, _)| below.last().is_some_and(|name| name == aid))?;
        records.iter().all(|record| at(record, &below).is_some()).then_some((path, records, below))
    });
    with_aid.collect()
}

/// Path of the overview: the object outside the mentions that has the most numbers and lists of its own.
pub(super) fn overview(answer: &Value, mentions: Option<&Path>) -> Option<Path> {
    let named = |name: &String| {
        vocabulary::column(vocabulary::OVERVIEW, std::slice::from_ref(name)).is_some_and(|(c, _)| c == "total_mentions")
    };
    let score = |path: &Path, value: &Value| {
        let members = value.as_object()?;
        let outside = |name: &String| {
            mentions
                .is_none_or(|mentions| !mentions.starts_with(&[path.as_slice(), std::slice::from_ref(name)].concat()))
        };
        let worth = |(name, value): (&String, &Value)| match value {
            _ if !outside(name) => 0,
            Value::Number(_) if named(name) => 3,
            Value::Number(_) => 1,
            value if Series::over_time(value).is_some() => 4,
            value if Series::by_name(value).is_some() => 3,
            // A list inside its own envelope.
            Value::Object(inner)
                if inner.values().any(|value| value.is_array() && Series::over_time(value).is_some()) =>
            {
                4
            }
            Value::Object(inner)
                if inner.values().any(|value| value.is_array() && Series::by_name(value).is_some()) =>
            {
                3
            }
            _ => 0,
        };
        let score = members.iter().map(worth).sum::<u32>();
        // An object of counts by name is a list of the object around it.
        let is_list = Series::by_name(value).is_some() && !path.is_empty() && !members.keys().any(named);
        Some(if is_list { 1 } else { score }).filter(|score| *score > 0)
    };
    let scored = walk(answer).into_iter().filter_map(|(path, value)| Some((score(&path, value)?, path)));
    scored.max_by(|(a, here), (b, there)| a.cmp(b).then(there.len().cmp(&here.len()))).map(|(_, path)| path)
}

/// Layout of a series of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// An array of objects.
    Objects,
    /// An array of arrays.
    Pairs,
    /// An object of numbers.
    Map,
}

/// Counts over time or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Series {
    pub(super) layout: Layout,
    /// Member of an entry with its time or name; the position in a pair.
    pub(super) name: String,
    /// Member of an entry with its count; the position in a pair.
    pub(super) count: String,
    /// Member with the end time of an entry.
    pub(super) end: Option<String>,
}

impl Series {
    /// A series whose entries have no members: pairs, or an object.
    fn without_names(layout: Layout) -> Self {
        let [name, count] = if layout == Layout::Pairs { ["0", "1"] } else { ["", ""] }.map(str::to_owned);
        Self { layout, name, count, end: None }
    }

    /// Recognizes counts over time.
    pub(super) fn over_time(value: &Value) -> Option<Self> {
        if let Some(records) = objects(value) {
            let first = records[0].as_object().filter(|_| leaves(records[0]).len() <= 6)?;
            let all = |name: &str, is: &dyn Fn(&Value) -> bool| records.iter().all(|record| is(&record[name]));
            let times: Vec<&String> =
                first.keys().filter(|name| all(name, &|value| instant(value).is_some())).collect();
            let moment = |name: &&String| instant(&first[name.as_str()]).unwrap_or_default();
            let start = times.iter().find(|name| starts(name)).copied().or(times.iter().copied().min_by_key(moment))?;
            let end = times.iter().find(|name| **name != start && moment(name) > moment(&start));
            let mut numbers = first.keys().filter(|name| !times.contains(name) && all(name, &Value::is_u64));
            let counts =
                |name: &str| ["count", "n", "mentions", "results", "total", "value"].contains(&plain(name).as_str());
            let count = numbers.clone().find(|name| counts(name)).or_else(|| numbers.next())?;
            let end = end.map(|end| (*end).clone());
            return Some(Self { layout: Layout::Objects, name: start.clone(), count: count.clone(), end });
        }
        if pairs(value).is_some_and(|pairs| pairs.iter().all(|(time, _)| instant(time).is_some())) {
            return Some(Self::without_names(Layout::Pairs));
        }
        let members = value.as_object().filter(|members| members.len() >= 2)?;
        let moment = |name: &String| instant(&Value::String(name.clone())).is_some();
        members.iter().all(|(name, value)| moment(name) && value.is_u64()).then(|| Self::without_names(Layout::Map))
    }

    /// Recognizes counts by name.
    pub(super) fn by_name(value: &Value) -> Option<Self> {
        if let Some(records) = objects(value) {
            return Self::by_name_of(&records);
        }
        if pairs(value).is_some_and(|pairs| pairs.iter().all(|(name, _)| name.is_string() && instant(name).is_none())) {
            return Some(Self::without_names(Layout::Pairs));
        }
        let members = value.as_object().filter(|members| members.len() >= 2 && members.values().all(Value::is_u64))?;
        let moment = |name: &String| instant(&Value::String(name.clone())).is_some();
        (!members.keys().any(moment)).then(|| Self::without_names(Layout::Map))
    }

    fn by_name_of(records: &[&Value]) -> Option<Self> {
        let first = records[0].as_object().filter(|first| (2..=4).contains(&first.len()))?;
        let all = |name: &str, is: &dyn Fn(&Value) -> bool| records.iter().all(|record| is(&record[name]));
        let text = |value: &Value| value.is_string() && instant(value).is_none();
        let name = first.keys().find(|name| all(name, &text))?;
        let count = first.keys().find(|name| all(name, &Value::is_u64))?;
        Some(Self { layout: Layout::Objects, name: name.clone(), count: count.clone(), end: None })
    }

    /// Entries of a value in this layout: time or name, and count.
    pub(super) fn entries(&self, value: &Value) -> Vec<(Value, u64)> {
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        match self.layout {
            Layout::Objects => {
                let records = value.as_array().into_iter().flatten();
                records.map(|record| (record[&self.name].clone(), number(&record[&self.count]))).collect()
            }
            Layout::Pairs => {
                let pairs = value.as_array().into_iter().flatten();
                pairs.map(|pair| (pair[0].clone(), number(&pair[1]))).collect()
            }
            Layout::Map => {
                let members = value.as_object().into_iter().flatten();
                members.map(|(name, value)| (Value::String(name.clone()), number(value))).collect()
            }
        }
    }
}

/// The first two items of each inner array of an array, if every second item is an unsigned integer.
fn pairs(value: &Value) -> Option<Vec<(&Value, &Value)>> {
    let pair = |item: &'_ Value| item.as_array().is_some_and(|item| item.len() >= 2 && item[1].is_u64());
    let items = value.as_array().filter(|items| !items.is_empty() && items.iter().all(pair))?;
    Some(items.iter().map(|item| (&item[0], &item[1])).collect())
}

fn starts(name: &str) -> bool {
    ["start", "from", "since", "t", "date", "day", "time", "begin"].contains(&plain(name).as_str())
}

/// Patterns for timestamps that no standard form fits.
pub(super) const PATTERNS: &[&str] = &[
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%a %b %d %H:%M:%S %z %Y",
    "%a, %d %b %Y %H:%M:%S %z",
];

/// Returns the pattern that fits all of these strings; `None` if none does, or if two do and disagree.
pub(super) fn pattern_of<'t>(texts: impl Iterator<Item = &'t str> + Clone) -> Option<&'static str> {
    let fits = |pattern: &&&str| texts.clone().all(|text| instant_by(pattern, text).is_some());
    let mut fitting = PATTERNS.iter().filter(fits);
    let (first, second) = (fitting.next()?, fitting.next());
    let same = |other: &&str| texts.clone().all(|text| instant_by(first, text) == instant_by(other, text));
    (texts.clone().next().is_some() && second.is_none_or(same)).then_some(*first)
}

/// Reads an instant as microseconds since 1970: RFC 3339, a local time, a date, or an epoch number of seconds,
/// milliseconds or microseconds from 2001 to 2039.
pub(super) fn instant(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => {
            if let Ok(at) = DateTime::parse_from_rfc3339(text) {
                return Some(at.timestamp_micros());
            }
            // Some services write a space instead of the `T`.
            let text = text.replacen(' ', "T", 1);
            if let Ok(at) = DateTime::parse_from_rfc3339(&text) {
                return Some(at.timestamp_micros());
            }
            let local = text.parse::<NaiveDateTime>().ok();
            let local = local.or_else(|| Some(text.parse::<NaiveDate>().ok()?.and_time(NaiveTime::MIN)));
            local.map(|local| local.and_utc().timestamp_micros())
        }
        Value::Number(number) => match number.as_i64()? {
            number @ 1_000_000_000..2_200_000_000 => number.checked_mul(1_000_000),
            number @ 1_000_000_000_000..2_200_000_000_000 => number.checked_mul(1_000),
            number @ 1_000_000_000_000_000..2_200_000_000_000_000 => Some(number),
            _ => None,
        },
        _ => None,
    }
}

/// A column type of the profile.
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

    /// The type of a value; `None` for NULL and for values that no type holds.
    fn of(value: &Value) -> Option<Self> {
        match value {
            _ if instant(value).is_some() => Some(Self::Timestamp),
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

    /// The type that holds values of both types.
    fn with(self, other: Self) -> Option<Self> {
        match (self, other) {
            _ if self == other => Some(self),
            (Self::Int64, Self::Float64) | (Self::Float64, Self::Int64) => Some(Self::Float64),
            // A field that looks like a time only now and then is not one.
            (Self::Utf8, Self::Timestamp) | (Self::Timestamp, Self::Utf8) => Some(Self::Utf8),
            (Self::Int64, Self::Timestamp) | (Self::Timestamp, Self::Int64) => Some(Self::Int64),
            _ => None,
        }
    }
}

/// The columns of records.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    /// Name, path and type, in the order of the records' members.
    pub(super) columns: Vec<(String, Path, Type)>,
    /// Paths whose values have no common type: they stay in `extra`.
    pub(super) untyped: Vec<Path>,
    /// Timestamps that need a pattern.
    pub(super) patterns: Vec<(Path, &'static str)>,
}

impl Columns {
    /// Infers the columns of these records: known roles first, other fields by their usual names.
    pub(super) fn of(names: Names, records: &[&Value], roles: &[(&str, &Path)]) -> Self {
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
            let found = Type::of(value);
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
        let mut patterns = Vec::new();
        for (path, kind) in types.iter_mut().filter(|(_, kind)| **kind == Some(Type::Utf8)) {
            let texts = records.iter().filter_map(|record| at(record, path)?.as_str());
            if let Some(pattern) = pattern_of(texts) {
                *kind = Some(Type::Timestamp);
                patterns.push((path.clone(), pattern));
            }
        }
        // If several fields could become a column, the likeliest one does.
        let best = |path: &Path| match roles.iter().find(|(_, known)| *known == path) {
            Some((role, _)) => names.iter().find(|(column, _)| column == role).map(|(column, _)| (*column, 0)),
            // A known role is not given to another field.
            None => vocabulary::column(names, path).filter(|(column, _)| roles.iter().all(|(role, _)| role != column)),
        };
        let mut columns: Vec<(String, Path, Type)> = Vec::new();
        for path in &order {
            // A field that was always NULL is treated as a string.
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
        Self { columns, untyped, patterns }
    }

    /// Reads the instant in a field.
    pub(super) fn instant(&self, path: &Path, record: &Value) -> Option<i64> {
        let value = at(record, path)?;
        match self.patterns.iter().find(|(known, _)| known == path) {
            Some((_, pattern)) => instant_by(pattern, value.as_str()?).map(Instant::as_utc),
            None => instant(value),
        }
    }

    pub(super) fn path(&self, column: &str) -> Option<&Path> {
        self.columns.iter().find(|(name, ..)| name == column).map(|(_, path, _)| path)
    }

    pub(super) fn kind(&self, column: &str) -> Option<Type> {
        self.columns.iter().find(|(name, ..)| name == column).map(|(.., kind)| *kind)
    }
}

/// Turns a path into a column name.
pub(super) fn snake(path: &[String]) -> String {
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

/// The unsigned integer at a path.
pub(super) fn number(answer: &Value, path: &[String]) -> Option<u64> {
    at(answer, path)?.as_u64()
}

/// Strings in their order, without duplicates.
pub(super) fn each_once(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut known = HashSet::new();
    texts.filter(|text| known.insert(text.clone())).collect()
}

/// A scalar in the form in which it is sent as a parameter.
pub(super) fn said(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// Microseconds since 1970 as a UTC instant.
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
        let columns = Columns::of(vocabulary::MENTION, &records.iter().collect::<Vec<_>>(), &[]);
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
    fn instants_are_told_from_numbers_by_their_size() {
        assert_eq!(instant(&json!(1_781_042_400)), Some(1_781_042_400_000_000));
        assert_eq!(instant(&json!(1_781_042_400_000_i64)), Some(1_781_042_400_000_000));
        assert_eq!(instant(&json!(12)), None);
        assert_eq!(instant(&json!("2026-06-10")), Some(1_781_049_600_000_000));
        assert_eq!(instant(&json!("x.com")), None);
        // Ambiguous: days up to 12 could be months.
        assert_eq!(pattern_of(["10/06/2026 08:00:00", "28/05/2026 09:30:00"].into_iter()), Some(PATTERNS[0]));
        assert_eq!(pattern_of(["10/06/2026 08:00:00", "08/05/2026 09:30:00"].into_iter()), None);
    }

    #[test]
    fn numbers_over_time_and_by_names_are_seen_in_whatever_layout() {
        let day = |n: i64| 1_781_042_400_000_i64 + n * 86_400_000;
        for value in [
            json!([{"zub": day(0), "ka": 3}, {"zub": day(1), "ka": 4}]),
            json!([[day(0), 3], [day(1), 4]]),
            json!({"2026-06-10": 3, "2026-06-11": 4}),
        ] {
            let series = Series::over_time(&value).unwrap_or_else(|| panic!("{value}"));
            assert_eq!(series.entries(&value).iter().map(|(_, count)| *count).collect::<Vec<_>>(), [3, 4]);
            assert_eq!(Series::by_name(&value), None, "{value}");
        }
        for value in [
            json!([{"term": "en", "n": 3}, {"term": "de", "n": 4}]),
            json!([["en", 3], ["de", 4]]),
            json!({"en": 3, "de": 4}),
        ] {
            let series = Series::by_name(&value).unwrap_or_else(|| panic!("{value}"));
            assert_eq!(series.entries(&value).len(), 2);
            assert_eq!(Series::over_time(&value), None, "{value}");
        }
    }
}
