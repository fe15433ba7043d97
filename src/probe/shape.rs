//! Structure of a response: the places of its records, lists, times and numbers. Pure.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use serde_json::Value;

use super::vocabulary::{self, Names, plain};
use crate::profile::{Instant, completed_instant, instant_by, message_instant};

/// Member names from the top level to a value.
pub(super) type Path = Vec<String>;

/// A path as a JSON pointer (RFC 6901).
pub(super) fn pointer(path: &[String]) -> String {
    path.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect()
}

/// A path in messages: the JSON pointer, or a description of the empty pointer.
pub(super) fn place(path: &[String]) -> String {
    if path.is_empty() { "the top level".to_owned() } else { format!("`{}`", pointer(path)) }
}

/// Replaces JSON in strings around the data by its value, as the decoder does.
pub(super) fn opened(value: Value) -> Value {
    let inner = |text: &str| {
        let begins = text.trim_start().starts_with(['{', '[']);
        begins.then(|| serde_json::from_str::<Value>(text).ok()).flatten()
    };
    match value {
        Value::String(text) => match inner(&text) {
            Some(value) => opened(value),
            None => Value::String(text),
        },
        Value::Object(members) => tabled(members.into_iter().map(|(name, member)| (name, opened(member))).collect()),
        Value::Array(items) if items.len() == 1 => Value::Array(items.into_iter().map(opened).collect()),
        value => value,
    }
}

/// Begins the name of a member that is no part of the response: the names of the fields of records that are arrays.
const FIELDS_OF: &str = "\u{1}fields of ";

/// An object in which records that are arrays, with the names of their fields beside them, are objects.
fn tabled(mut members: serde_json::Map<String, Value>) -> Value {
    let names = |value: &Value| -> Option<Vec<String>> {
        let names: Vec<String> =
            value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?;
        (names.len() >= 3 && names.iter().collect::<HashSet<_>>().len() == names.len()).then_some(names)
    };
    let Some(names) = members.values().find_map(names) else { return Value::Object(members) };
    let row = |row: &Value| -> Option<Value> {
        let values = row.as_array().filter(|values| values.len() == names.len())?;
        Some(Value::Object(names.iter().cloned().zip(values.iter().cloned()).collect()))
    };
    let rows = |value: &Value| -> Option<Vec<Value>> {
        value.as_array().filter(|rows| !rows.is_empty())?.iter().map(row).collect()
    };
    let found = members.iter().find_map(|(name, value)| Some((name.clone(), rows(value)?)));
    if let Some((name, rows)) = found {
        members.insert(format!("{FIELDS_OF}{name}"), Value::from(names));
        members.insert(name, Value::Array(rows));
    }
    Value::Object(members)
}

/// The names of the fields of records that are arrays, in their order; `None` for records that are objects.
pub(super) fn fields_of(body: &Value, records: &[String]) -> Option<Vec<String>> {
    let (name, parent) = records.split_last()?;
    let names = at(body, parent)?.get(format!("{FIELDS_OF}{name}"))?.as_array()?;
    Some(names.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect())
}

/// The value at a path.
pub(super) fn at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    })
}

/// All values reachable through objects, with their paths, outermost first; arrays are not entered, except one around the
/// whole response.
pub(super) fn walk(value: &Value) -> Vec<(Path, &Value)> {
    let mut found = vec![(Path::new(), value)];
    if let Some([body]) = value.as_array().map(Vec::as_slice)
        && body
            .as_object()
            .is_some_and(|members| members.values().any(|member| member.is_object() || member.is_array()))
    {
        found.push((vec!["0".to_owned()], body));
    }
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

/// The values in the same object as the one at a path.
pub(super) fn beside<'v>(value: &'v Value, path: &[String]) -> Vec<(Path, &'v Value)> {
    let Some((_, parent)) = path.split_last() else { return Vec::new() };
    let members = at(value, parent).and_then(Value::as_object).into_iter().flatten();
    let of = |(name, member): (&String, &'v Value)| ([parent, std::slice::from_ref(name)].concat(), member);
    members.map(of).filter(|(other, _)| other != path).collect()
}

/// The records of an array of objects.
pub(super) fn objects(value: &Value) -> Option<Vec<&Value>> {
    let items = value.as_array()?;
    (!items.is_empty() && items.iter().all(Value::is_object)).then(|| items.iter().collect())
}

/// All arrays of records, with their paths.
pub(super) fn arrays(answer: &Value) -> Vec<(Path, Vec<&Value>)> {
    let found = walk(answer).into_iter().filter_map(|(path, value)| Some((path, objects(value)?)));
    // An array around the whole response has no records.
    found.filter(|(path, records)| !path.is_empty() || records.len() > 1).collect()
}

/// True if records could be mentions: several values, one of them a string, and more than a name with a number.
pub(super) fn is_rich(records: &[&Value]) -> bool {
    let leaves = leaves(records[0]);
    leaves.len() >= 3 && leaves.iter().any(|(_, value)| value.is_string()) && Series::by_name_of(records).is_none()
}

/// A list of saved searches in a response.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundList<'v> {
    pub(super) at: Path,
    pub(super) entries: Vec<&'v Value>,
    /// Ids of the entries.
    pub(super) aids: Vec<String>,
    /// Path of the aid in an entry.
    pub(super) aid: Path,
    pub(super) layout: ListLayout,
}

/// Layout of a list of saved searches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum ListLayout {
    /// An array of entries.
    #[default]
    Records,
    /// An object whose members are the entries, each named by its aid. Set if the entries have their aids as well.
    Map(bool),
    /// An array of folders: the path of the entries in a folder, and of the folders in it.
    Folders(Path, Option<Path>),
}

/// Lists of saved searches: every array of records with an aid, else every object of such records, else every array of folders
/// with such records. A history beside them is an array, whatever they are.
pub(super) fn saved_searches<'v>(answer: &'v Value, aid: &str) -> Vec<FoundList<'v>> {
    let place = |records: &[&Value]| {
        let named = |(below, _): &(Path, &Value)| below.last().is_some_and(|name| name == aid || plain(name) == aid);
        let (below, _) = leaves(records.first()?).into_iter().find(named)?;
        records.iter().all(|record| at(record, &below).is_some()).then_some(below)
    };
    let aids = |entries: &[&Value], aid: &Path| entries.iter().filter_map(|entry| said(at(entry, aid)?)).collect();
    let arrays_with = arrays(answer).into_iter().filter_map(|(path, entries)| {
        let aid = place(&entries)?;
        Some(FoundList { at: path, aids: aids(&entries, &aid), entries, aid, layout: ListLayout::Records })
    });
    let found: Vec<FoundList<'v>> = arrays_with.collect();
    let (history, found): (Vec<_>, Vec<_>) = found.into_iter().partition(|list| is_history(&list.at));
    if !found.is_empty() {
        return history.into_iter().chain(found).collect();
    }
    let maps = walk(answer).into_iter().filter_map(|(path, value)| {
        let members = value.as_object().filter(|members| members.len() > 1 && !are_links(&path, members))?;
        let names = |entry: &Value| entry.as_object().map(|entry| entry.keys().cloned().collect::<Vec<String>>());
        let first = names(members.values().next()?).filter(|names| !names.is_empty())?;
        let same = members.values().all(|entry| names(entry).as_ref() == Some(&first));
        let worded = members.values().all(|entry| leaves(entry).iter().any(|(_, leaf)| leaf.is_string()));
        let entries: Vec<&Value> = members.values().collect();
        let keys = members.keys().cloned().collect();
        (same && worded).then(|| match place(&entries) {
            Some(aid) => {
                FoundList { at: path, aids: aids(&entries, &aid), entries, aid, layout: ListLayout::Map(true) }
            }
            None => {
                FoundList { at: path, aids: keys, entries, aid: vec![aid.to_owned()], layout: ListLayout::Map(false) }
            }
        })
    });
    let maps: Vec<FoundList<'v>> = maps.collect();
    if !maps.is_empty() {
        return maps.into_iter().chain(history).collect();
    }
    let folders = arrays(answer).into_iter().filter_map(|(path, folders)| {
        let inside = inside_of(&folders, &place, 4)?;
        let is_folder = |value: &Value| {
            objects(value).is_some_and(|inner| inner.iter().any(|record| at(record, &inside).is_some()))
        };
        let deeper =
            folders.iter().flat_map(|folder| leaves(folder)).find(|(_, value)| is_folder(value)).map(|(path, _)| path);
        let mut entries = Vec::new();
        let mut open = folders;
        while let Some(folder) = open.pop() {
            entries.extend(at(folder, &inside).and_then(Value::as_array).into_iter().flatten());
            let inner = deeper.as_ref().and_then(|deeper| at(folder, deeper)?.as_array());
            open.extend(inner.into_iter().flatten());
        }
        let aid = place(&entries)?;
        let layout = ListLayout::Folders(inside, deeper);
        Some(FoundList { at: path, aids: aids(&entries, &aid), entries, aid, layout })
    });
    folders.chain(history).collect()
}

/// True for the links of a response, which may be objects: `links: {self: {href: …}, next: {href: …}}`.
fn are_links(at: &[String], members: &serde_json::Map<String, Value>) -> bool {
    const RELATIONS: [&str; 9] = ["self", "next", "prev", "previous", "first", "last", "related", "up", "describedby"];
    let is_relation = |name: &String| RELATIONS.contains(&plain(name).as_str());
    at.last().is_some_and(|name| plain(name) == "links") || members.keys().all(is_relation)
}

/// True if a list is named like a history of searches.
pub(super) fn is_history(at: &[String]) -> bool {
    let name = at.last().map(|name| plain(name)).unwrap_or_default();
    ["recent", "history", "last"].iter().any(|word| name.contains(word))
}

/// Path in a folder of the array of records with an aid, in folders of this depth at most.
fn inside_of(folders: &[&Value], place: &impl Fn(&[&Value]) -> Option<Path>, depth: usize) -> Option<Path> {
    let inner =
        || folders.iter().flat_map(|folder| leaves(folder)).filter_map(|(path, value)| Some((path, objects(value)?)));
    let here = inner().find(|(_, records)| place(records).is_some()).map(|(path, _)| path);
    here.or_else(|| {
        let deeper = depth.checked_sub(1)?;
        inner().find_map(|(_, records)| inside_of(&records, place, deeper))
    })
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
            value if Series::by_name(value).is_some() || !facets(value).is_empty() => 3,
            // A list inside its own envelope.
            Value::Object(inner) if inner.values().any(|value| Series::over_time(value).is_some()) => 4,
            Value::Object(inner)
                if inner.values().any(|value| value.is_array() && Series::by_name(value).is_some()) =>
            {
                3
            }
            _ => 0,
        };
        let score = members.iter().map(worth).sum::<u32>();
        // An object of counts by name or by day is a list of the object around it.
        let is_list = Counts::of(value).is_some() && !path.is_empty() && !members.keys().any(named);
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
    /// An object of objects, each with a number.
    Nested,
}

/// Counts over time or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Series {
    pub(super) layout: Layout,
    /// Member of an entry with its time or name; the position in a pair.
    pub(super) name: String,
    /// Member of an entry with its count; the position in a pair; for a count in an object of its own, its path with slashes.
    pub(super) count: String,
    /// Member with the end time of an entry.
    pub(super) end: Option<String>,
    /// Pattern of days that no standard form fits.
    pub(super) pattern: Option<&'static str>,
    /// The record that holds the entries, if there are lists of several fields.
    pub(super) within: Option<Facet>,
}

/// One of several lists in an array of records: `[{field: "language", values: [{value: "de", count: 3}]}]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facet {
    /// Member of a record with the name of its list.
    pub(super) name: String,
    /// The name.
    pub(super) is: String,
    /// Member of a record with the entries.
    pub(super) entries: String,
}

/// A series, by what it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Counts {
    OverTime(Series),
    ByName(Series),
}

impl Counts {
    fn of(value: &Value) -> Option<Self> {
        Series::over_time(value).map(Self::OverTime).or_else(|| Series::by_name(value).map(Self::ByName))
    }

    pub(super) fn series(&self) -> &Series {
        let (Self::OverTime(series) | Self::ByName(series)) = self;
        series
    }
}

/// All series at a place: one, or that of each field if there are lists of several fields.
pub(super) fn counts_at(value: &Value) -> Vec<Counts> {
    let own = Counts::of(value);
    if own.as_ref().is_some_and(|counts| !counts.series().count.contains("/0/")) {
        return own.into_iter().collect();
    }
    let lists = facets(value);
    // The only entry of each list has the name of a value, or else a count in a list of one: `{name: "de", values: [{n: 3}]}`.
    let names: HashSet<String> =
        lists.iter().flat_map(|counts| counts.series().entries(value)).map(|(name, _)| name.to_string()).collect();
    if own.is_some() && names.len() < 2 { own.into_iter().collect() } else { lists }
}

/// The series of an array of records that have a name and a list each.
fn facets(value: &Value) -> Vec<Counts> {
    /// Records of such an array.
    const MOST: usize = 40;
    /// Members that usually have the name.
    const NAMES: [&str; 8] = ["field", "name", "key", "id", "facet", "dimension", "attribute", "label"];
    let Some(records) = objects(value).filter(|records| records.len() <= MOST) else { return Vec::new() };
    let named = |member: &str| -> Option<Vec<String>> {
        let text = |record: &&Value| {
            let name = record.get(member)?;
            let text = name.as_str().filter(|text| !text.is_empty() && text.len() <= 64)?;
            instant(name).is_none().then(|| text.to_owned())
        };
        let names: Vec<String> = records.iter().map(text).collect::<Option<_>>()?;
        // Each list has a name of its own.
        (names.iter().collect::<HashSet<_>>().len() == names.len()).then_some(names)
    };
    let members: Vec<&String> = records[0].as_object().into_iter().flat_map(serde_json::Map::keys).collect();
    let rank = |member: &str| NAMES.iter().position(|known| *known == plain(member)).unwrap_or(NAMES.len());
    let name = members.iter().filter_map(|member| Some((rank(member), *member, named(member)?)));
    let Some((_, name, names)) = name.min_by_key(|(rank, ..)| *rank) else { return Vec::new() };
    let lists = |member: &str| {
        let of = |(record, is): (&&Value, &String)| {
            let mut counts = Counts::of(record.get(member)?)?;
            let (Counts::OverTime(series) | Counts::ByName(series)) = &mut counts;
            // The pictures of a mention have numbers as well.
            let is_count =
                series.layout != Layout::Objects || series.count.rsplit('/').next().is_some_and(self::counts);
            if !is_count {
                return None;
            }
            series.within = Some(Facet { name: name.clone(), is: is.clone(), entries: member.to_owned() });
            Some(counts)
        };
        records.iter().zip(&names).filter_map(of).collect::<Vec<Counts>>()
    };
    let found = members.iter().filter(|member| **member != name).map(|member| lists(member));
    found.max_by_key(Vec::len).unwrap_or_default()
}

impl Series {
    /// A series whose entries have no members: pairs, or an object.
    fn without_names(layout: Layout) -> Self {
        let [name, count] = if layout == Layout::Pairs { ["0", "1"] } else { ["", ""] }.map(str::to_owned);
        Self { layout, name, count, end: None, pattern: None, within: None }
    }

    /// Recognizes counts over time, of days without separators as well: `"20261119": 15`.
    pub(super) fn over_time(value: &Value) -> Option<Self> {
        Self::of_times(value).or_else(|| {
            let dated = with_days(value)?;
            Some(Self { pattern: Some(COMPACT_DAY), ..Self::of_times(&dated)? })
        })
    }

    fn of_times(value: &Value) -> Option<Self> {
        if let Some(records) = objects(value) {
            let first = records[0].as_object().filter(|_| leaves(records[0]).len() <= 6)?;
            let all = |name: &str, is: &dyn Fn(&Value) -> bool| records.iter().all(|record| is(&record[name]));
            let times: Vec<&String> =
                first.keys().filter(|name| all(name, &|value| instant(value).is_some())).collect();
            let moment = |name: &&String| instant(&first[name.as_str()]).unwrap_or_default();
            let start = times.iter().find(|name| starts(name)).copied().or(times.iter().copied().min_by_key(moment))?;
            let end = times.iter().find(|name| **name != start && moment(name) > moment(&start));
            // The only other member may be a count as text, whatever its name.
            let is_only = |name: &str| first.len() == 2 && !times.iter().any(|time| *time == name);
            let is_number = |name: &&String| {
                let texts = (counts(name) || is_only(name)) && all(name, &|value| whole(value).is_some());
                all(name, &Value::is_u64) || texts
            };
            let mut numbers = first.keys().filter(|name| !times.contains(name) && is_number(name));
            let count = numbers.clone().find(|name| counts(name)).or_else(|| numbers.next()).cloned();
            let count = count.or_else(|| inner_count(&records))?;
            let end = end.map(|end| (*end).clone());
            return Some(Self {
                layout: Layout::Objects,
                name: start.clone(),
                count,
                end,
                pattern: None,
                within: None,
            });
        }
        if pairs(value).is_some_and(|pairs| pairs.iter().all(|(time, _)| instant(time).is_some())) {
            return Some(Self::without_names(Layout::Pairs));
        }
        let members = value.as_object().filter(|members| members.len() >= 2)?;
        let moment = |name: &String| instant(&Value::String(name.clone())).is_some();
        if !members.keys().all(moment) {
            return None;
        }
        match members.values().all(|value| whole(value).is_some()) {
            true => Some(Self::without_names(Layout::Map)),
            false => Self::nested(members),
        }
    }

    /// Recognizes an object whose members are objects that have a count each.
    fn nested(members: &serde_json::Map<String, Value>) -> Option<Self> {
        let first = members.values().next()?.as_object().filter(|first| first.len() <= 6)?;
        let all = |name: &str| members.values().all(|value| value.get(name).and_then(whole).is_some());
        let mut numbers = first.keys().filter(|name| all(name));
        let count = numbers.clone().find(|name| counts(name)).or_else(|| numbers.next())?;
        Some(Self {
            layout: Layout::Nested,
            name: String::new(),
            count: count.clone(),
            end: None,
            pattern: None,
            within: None,
        })
    }

    /// Recognizes counts by name.
    pub(super) fn by_name(value: &Value) -> Option<Self> {
        if let Some(records) = objects(value) {
            return Self::by_name_of(&records);
        }
        if pairs(value).is_some_and(|pairs| pairs.iter().all(|(name, _)| name.is_string() && instant(name).is_none())) {
            return Some(Self::without_names(Layout::Pairs));
        }
        let members = value.as_object().filter(|members| members.len() >= 2)?;
        let moment = |name: &String| instant(&Value::String(name.clone())).is_some();
        if members.keys().any(moment) || with_days(value).is_some() {
            return None;
        }
        match members.values().all(|value| whole(value).is_some()) {
            true => Some(Self::without_names(Layout::Map)),
            false => Self::nested(members).filter(|series| counts(&series.count)),
        }
    }

    fn by_name_of(records: &[&Value]) -> Option<Self> {
        let first = records[0].as_object().filter(|first| (2..=4).contains(&first.len()))?;
        let all = |name: &str, is: &dyn Fn(&Value) -> bool| records.iter().all(|record| is(&record[name]));
        let text = |value: &Value| value.is_string() && instant(value).is_none();
        let number = |value: &Value| whole(value).is_some();
        // What all entries have in common, such as the `type` of mentions, names none of them.
        let differs = |name: &str| records.len() == 1 || records.iter().any(|record| record[name] != first[name]);
        let mut texts = first.keys().filter(|name| all(name, &text) && differs(name));
        let name = texts.clone().find(|name| !all(name, &number)).or_else(|| texts.next())?;
        // The only other member may be a count as text, whatever its name; times are no counts.
        let is_no_time = |value: &Value| number(value) && instant(value).is_none();
        let is_text = |name: &&String| (counts(name) || first.len() == 2) && all(name, &is_no_time);
        let is_count = |name: &&String| all(name, &|value| value.is_u64() && instant(value).is_none());
        let mut numbers = first.keys().filter(|other| *other != name);
        let is_named = |name: &&String| counts(name) && is_count(name);
        let count = numbers.clone().find(is_named).or_else(|| numbers.clone().find(is_count));
        let count = count.or_else(|| numbers.find(is_text)).cloned();
        let count = count.or_else(|| inner_count(records))?;
        Some(Self { layout: Layout::Objects, name: name.clone(), count, end: None, pattern: None, within: None })
    }

    /// Entries of a value in this layout: time or name, and count.
    pub(super) fn entries(&self, value: &Value) -> Vec<(Value, u64)> {
        let number = |value: &Value| whole(value).unwrap_or_default();
        if let Some(facet) = &self.within {
            let mut records = value.as_array().into_iter().flatten();
            let record = records.find(|record| record.get(&facet.name).is_some_and(|name| *name == facet.is));
            let entries = record.and_then(|record| record.get(&facet.entries));
            return entries.map(|entries| Self { within: None, ..self.clone() }.entries(entries)).unwrap_or_default();
        }
        if self.pattern.is_some() {
            return with_days(value)
                .map(|dated| Self { pattern: None, ..self.clone() }.entries(&dated))
                .unwrap_or_default();
        }
        match self.layout {
            Layout::Nested => {
                let members = value.as_object().into_iter().flatten();
                members.map(|(name, value)| (Value::String(name.clone()), number(&value[&self.count]))).collect()
            }
            Layout::Objects => {
                let records = value.as_array().into_iter().flatten();
                let count = path_of(&self.count);
                let number = |record: &Value| at(record, &count).map(number).unwrap_or_default();
                records.map(|record| (record[&self.name].clone(), number(record))).collect()
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

/// Pattern of a day without separators.
const COMPACT_DAY: &str = "%Y%m%d";

/// A list or an object whose entries are named by days without separators, with these days as `YYYY-MM-DD`. `None` if there are
/// no such days.
fn with_days(value: &Value) -> Option<Value> {
    let day = |text: &str| {
        let plain = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit()) && text.starts_with("20");
        plain.then(|| NaiveDate::parse_from_str(text, COMPACT_DAY).ok()).flatten().map(|day| day.to_string())
    };
    let of = |value: &Value| match value.as_str().and_then(day) {
        Some(day) => Value::String(day),
        None => value.clone(),
    };
    match value {
        Value::Object(members) if members.len() >= 2 => {
            let members = members.iter().map(|(name, value)| Some((day(name)?, value.clone())));
            members.collect::<Option<_>>().map(Value::Object)
        }
        Value::Array(items) => {
            let items: Vec<Value> = items
                .iter()
                .map(|item| match item {
                    Value::Object(members) => {
                        Value::Object(members.iter().map(|(name, value)| (name.clone(), of(value))).collect())
                    }
                    Value::Array(pair) => Value::Array(pair.iter().map(of).collect()),
                    item => item.clone(),
                })
                .collect();
            let changed = Value::Array(items);
            (changed != *value).then_some(changed)
        }
        _ => None,
    }
}

/// Path of the only count in an object of each record, or in a list of one: `values: [{value: 3}]`.
fn inner_count(records: &[&Value]) -> Option<String> {
    let all = |path: &str| records.iter().all(|record| at(record, &path_of(path)).and_then(whole).is_some());
    let members = records.first()?.as_object()?.iter();
    let mut found = members.filter_map(|(name, value)| {
        let (prefix, inner) = match value {
            Value::Object(inner) => (name.clone(), inner),
            Value::Array(items) => match items.as_slice() {
                [Value::Object(inner)] => (format!("{name}/0"), inner),
                _ => return None,
            },
            _ => return None,
        };
        let count = inner.keys().find(|member| counts(member))?;
        Some(format!("{prefix}/{count}")).filter(|path| all(path))
    });
    found.next().filter(|_| found.next().is_none())
}

/// The steps of a path with slashes.
pub(super) fn path_of(path: &str) -> Path {
    path.split('/').map(str::to_owned).collect()
}

/// The first two items of each inner array of an array, if every second item is an unsigned integer.
fn pairs(value: &Value) -> Option<Vec<(&Value, &Value)>> {
    let pair = |item: &'_ Value| item.as_array().is_some_and(|item| item.len() >= 2 && whole(&item[1]).is_some());
    let items = value.as_array().filter(|items| !items.is_empty() && items.iter().all(pair))?;
    Some(items.iter().map(|item| (&item[0], &item[1])).collect())
}

/// True if a member is named like a count.
fn counts(name: &str) -> bool {
    ["count", "n", "mentions", "results", "total", "value", "docs", "hits", "documents", "doccount", "number"]
        .contains(&plain(name).as_str())
}

/// An unsigned integer, also as text, and also with separators of thousands.
pub(super) fn whole(value: &Value) -> Option<u64> {
    let text = match value {
        Value::Number(number) => return number.as_u64(),
        Value::String(text) => text,
        _ => return None,
    };
    let separator = text.chars().find(|c| !c.is_ascii_digit());
    let Some(separator) = separator else { return text.parse().ok() };
    let groups: Vec<&str> = text.split(separator).collect();
    let digits = |group: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&group.len()) && group.bytes().all(|byte| byte.is_ascii_digit())
    };
    let grouped = digits(groups[0], 1..=3) && groups[1..].iter().all(|group| digits(group, 3..=3));
    (grouped && [',', ' ', '_', '\'', '\u{a0}', '\u{202f}', '\u{2019}'].contains(&separator))
        .then(|| groups.concat().parse().ok())?
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
            if let Some(at) = message_instant(text) {
                return Some(at);
            }
            let text = &*completed_instant(text);
            if let Ok(at) = DateTime::parse_from_rfc3339(text) {
                return Some(at.timestamp_micros());
            }
            // Some services write a space instead of the `T`.
            let text = text.replacen(' ', "T", 1);
            if let Ok(at) = DateTime::parse_from_rfc3339(&text) {
                return Some(at.timestamp_micros());
            }
            if let Some(at) = compact(&text) {
                return Some(at);
            }
            // An offset without a colon, or without minutes, which the decoder reads as well.
            if let Ok(at) = DateTime::parse_from_str(&text, "%Y-%m-%dT%H:%M:%S%.f%#z") {
                return Some(at.timestamp_micros());
            }
            // A count as text, of seconds or milliseconds.
            if matches!(text.len(), 10 | 13) && text.bytes().all(|byte| byte.is_ascii_digit()) {
                return instant(&Value::from(text.parse::<i64>().ok()?));
            }
            let local = text.parse::<NaiveDateTime>().ok();
            let local = local.or_else(|| Some(text.parse::<NaiveDate>().ok()?.and_time(NaiveTime::MIN)));
            local.map(|local| local.and_utc().timestamp_micros())
        }
        // Seconds with a fraction.
        Value::Number(number) if number.is_f64() => {
            let seconds = number.as_f64().filter(|seconds| (1.0e9..2.2e9).contains(seconds))?;
            #[expect(clippy::cast_possible_truncation, reason = "within the range of plausible instants, rounded")]
            Some((seconds * 1e6).round() as i64)
        }
        Value::Number(number) => match number.as_i64()? {
            number @ 1_000_000_000..2_200_000_000 => number.checked_mul(1_000_000),
            number @ 1_000_000_000_000..2_200_000_000_000 => number.checked_mul(1_000),
            number @ 1_000_000_000_000_000..2_200_000_000_000_000 => Some(number),
            number => compact(&number.to_string()),
        },
        _ => None,
    }
}

/// Reads a time of the calendar without separators: `20261124T101213Z`, `20261124101213`.
fn compact(text: &str) -> Option<i64> {
    let plain = text.replacen('T', "", 1);
    let (digits, zone) = plain.split_at(plain.find(|c: char| !c.is_ascii_digit()).unwrap_or(plain.len()));
    if digits.len() != 14 || !(digits.starts_with("19") || digits.starts_with("20")) {
        return None;
    }
    let local = NaiveDateTime::parse_from_str(digits, "%Y%m%d%H%M%S").ok()?;
    let zoned = || DateTime::parse_from_str(&format!("{digits}{zone}"), "%Y%m%d%H%M%S%z").ok();
    match zone {
        "" | "Z" => Some(local.and_utc().timestamp_micros()),
        _ => Some(zoned()?.timestamp_micros()),
    }
}

/// True for a time of the calendar that is written without a zone.
pub(super) fn is_local(value: &Value) -> bool {
    let zone = |(at, c): (usize, char)| at > 0 && (c.is_alphabetic() || matches!(c, '+' | '-'));
    value.as_str().filter(|_| instant(value).is_some()).is_some_and(|text| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.get(10..) {
            // A count, or a time without separators.
            _ if digits => text.len() == 14,
            None => true,
            Some(time) if text.contains('-') => !time.char_indices().any(zone),
            Some(time) => !time.contains(|c: char| c.is_alphabetic() || matches!(c, '+' | '-')),
        }
    })
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
            (Self::Float64, Self::Timestamp) | (Self::Timestamp, Self::Float64) => Some(Self::Float64),
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
    /// Days whose time of day is in another field.
    pub(super) times_of_day: Vec<(Path, Path)>,
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
        // Counts may be written as text.
        for (path, kind) in types.iter_mut().filter(|(_, kind)| **kind == Some(Type::Utf8)) {
            let is_count =
                vocabulary::column(names, path).is_some_and(|(column, _)| vocabulary::COUNTS.contains(&column));
            let mut values = records.iter().filter_map(|record| at(record, path)).filter(|value| !value.is_null());
            if is_count && values.all(|value| whole(value).is_some()) {
                *kind = Some(Type::Int64);
            }
        }
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
            // The name of a known role is that of its own field.
            let free = |name: &String| roles.iter().all(|(role, known)| role != name || *known == path);
            let unused = |name: &String| free(name) && columns.iter().all(|(known, ..)| known != name);
            let own = snake(inside(path));
            let numbered = (2..).map(|n| format!("{own}_{n}"));
            let name = standard.into_iter().chain([own.clone()]).chain(numbered).find(unused);
            columns.push((name.unwrap_or(own), path.clone(), kind));
        }
        let times_of_day = columns.iter().filter(|(_, _, kind)| *kind == Type::Timestamp);
        let times_of_day =
            times_of_day.filter_map(|(_, path, _)| Some((path.clone(), time_of_day(records, path)?))).collect();
        Self { columns, untyped, patterns, times_of_day }
    }

    /// Reads the instant in a field.
    pub(super) fn instant(&self, path: &Path, record: &Value) -> Option<i64> {
        let value = at(record, path)?;
        if let Some((_, time)) = self.times_of_day.iter().find(|(day, _)| day == path) {
            let time = at(record, time)?.as_str()?;
            let seconds = if time.len() == 5 { ":00" } else { "" };
            return instant(&Value::String(format!("{}T{time}{seconds}", value.as_str()?)));
        }
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

/// The field beside a day that has its time of day.
pub(super) fn time_of_day(records: &[&Value], day: &Path) -> Option<Path> {
    let days = |record: &&Value| {
        at(record, day).is_some_and(|day| day.as_str().is_none_or(|day| day.parse::<NaiveDate>().is_ok()))
    };
    let record = records.first().filter(|_| records.iter().all(days))?;
    let clock = |value: &Value| {
        value.as_str().is_none_or(|text| {
            let time = text.get(..8).unwrap_or(text);
            let form = if time.len() == 5 { "%H:%M" } else { "%H:%M:%S" };
            NaiveTime::parse_from_str(time, form).is_ok()
        })
    };
    let beside = |path: &Path| path.len() == day.len() && path[..path.len() - 1] == day[..day.len() - 1];
    let mut others = leaves(record).into_iter().map(|(path, _)| path).filter(|path| path != day && beside(path));
    others.find(|path| {
        let values: Vec<&Value> = records.iter().filter_map(|record| at(record, path)).collect();
        values.iter().any(|value| value.is_string()) && values.iter().all(|value| clock(value))
    })
}

/// A path without the object around all fields of a record.
pub(super) fn inside(path: &[String]) -> &[String] {
    const ENVELOPES: [&str; 6] = ["attributes", "properties", "fields", "document", "doc", "record"];
    match path {
        [outer, rest @ ..]
            if !rest.is_empty() && (outer.starts_with('_') || ENVELOPES.contains(&plain(outer).as_str())) =>
        {
            rest
        }
        _ => path,
    }
}

/// Turns a path into a column name. Letters of all scripts stay: `interações` needs no quotes in SQL.
pub(super) fn snake(path: &[String]) -> String {
    let mut name = String::new();
    for c in path.join("_").chars() {
        match c {
            c if c.is_uppercase() && name.ends_with(|c: char| c.is_lowercase() || c.is_ascii_digit()) => {
                name.push('_');
                name.extend(c.to_lowercase());
            }
            c if c.is_alphanumeric() => name.extend(c.to_lowercase()),
            _ if name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    let name = name.trim_matches('_');
    if name.is_empty() { "field".to_owned() } else { name.to_owned() }
}

/// The unsigned integer at a path.
pub(super) fn number(answer: &Value, path: &[String]) -> Option<u64> {
    whole(at(answer, path)?)
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
    use crate::cases::each;

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
        let enclosed =
            json!({"id": "a", "attributes": {"source": {"host": "x.com"}, "feedTime": "2026-11-24 10:12:13"}});
        let columns = Columns::of(vocabulary::MENTION, &[&enclosed], &[]);
        let mut names: Vec<&str> = columns.columns.iter().map(|(name, ..)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["feed_time", "id", "source"]);
    }

    #[test]
    fn names_of_columns_keep_letters_of_all_scripts() {
        let cases = [
            (&["interações", "Total"][..], "interações_total"),
            (&["author", "screenName"], "author_screen_name"),
            (&["本文"], "本文"),
            (&["key.with dots", "Élan"], "key_with_dots_élan"),
            (&["#"], "field"),
        ];
        each(cases, |(path, name)| {
            let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
            assert_eq!(snake(&path), name);
        });
        let records = [json!({"#": "a", "%": "b"})];
        let columns = Columns::of(vocabulary::MENTION, &records.iter().collect::<Vec<_>>(), &[]);
        let names: Vec<&str> = columns.columns.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["field", "field_2"]);
    }

    #[test]
    fn a_list_is_found_in_whatever_layout() {
        let found = |answer: Value| {
            let found = saved_searches(&answer, "aid");
            found.into_iter().map(|list| (pointer(&list.at), list.aids, list.layout)).collect::<Vec<_>>()
        };
        let entry = |aid: &str| json!({"aid": aid, "name": "n"});
        let aids = |aids: &[&str]| aids.iter().map(|aid| (*aid).to_owned()).collect::<Vec<String>>();
        let array = json!({"data": {"items": [entry("1"), entry("2")], "tags": ["x"]}});
        assert_eq!(found(array), [("/data/items".to_owned(), aids(&["1", "2"]), ListLayout::Records)]);
        let map = json!({"searches": {"1": {"name": "n"}, "2": {"name": "m"}}});
        assert_eq!(found(map), [("/searches".to_owned(), aids(&["1", "2"]), ListLayout::Map(false))]);
        let beside = json!({"recent": [entry("2")], "topics": {"1": {"name": "n"}, "2": {"name": "m"}}});
        let (map, history) = (ListLayout::Map(false), ListLayout::Records);
        let both = [("/topics".to_owned(), aids(&["1", "2"]), map), ("/recent".to_owned(), aids(&["2"]), history)];
        assert_eq!(found(beside), both);
        let folders =
            json!({"tree": [{"title": "a", "sub": [{"title": "b", "sub": [], "held": [entry("2")]}], "held": []}]});
        let layout = ListLayout::Folders(vec!["held".to_owned()], Some(vec!["sub".to_owned()]));
        assert_eq!(found(folders), [("/tree".to_owned(), aids(&["2"]), layout)]);
        assert_eq!(found(json!({"error": {"code": "x", "message": "no"}, "meta": {"version": "1"}})), []);
        for links in ["links", "_links", "pages"] {
            let links = json!({links: {"self": {"href": "/list"}, "next": {"href": "/list?page=2"}}, "data": []});
            assert_eq!(found(links), []);
        }
    }

    #[test]
    fn numbers_as_text_and_json_in_strings_are_read() {
        let cases = [
            (json!("1,234"), Some(1_234)),
            (json!("12 345 678"), Some(12_345_678)),
            (json!(7), Some(7)),
            (json!("1.234"), None),
            (json!("1,23"), None),
            (json!("2026-11-01"), None),
            (json!(""), None),
        ];
        each(cases, |(value, number)| {
            assert_eq!(whole(&value), number, "{value}");
        });
        let body = json!({"payload": "{\"total\": 3}"});
        assert_eq!(opened(body), json!({"payload": {"total": 3}}));
        assert_eq!(opened(json!(["[1]"])), json!([[1]]));
        let compact = json!("20261124T101213Z");
        assert_eq!(instant(&compact), instant(&json!("2026-11-24T10:12:13Z")));
    }

    #[test]
    fn times_without_a_zone_are_told_from_others() {
        for local in ["2026-11-24T10:12:13", "2026-11-24 10:12:13.5", "20261124101213", "20261124T101213", "2026-11-24"]
        {
            assert!(is_local(&json!(local)), "{local}");
        }
        let cases = [
            "2026-11-24T10:12:13Z",
            "2026-11-24 10:12:13+0000",
            "2026-11-24T10:12:13-05:00",
            "20261124T101213Z",
            "1781042400",
            "x",
        ];
        each(cases, |zoned| {
            assert!(!is_local(&json!(zoned)), "{zoned}");
        });
    }

    #[test]
    fn a_day_and_a_time_in_another_field_are_one_instant() {
        let records = [
            json!({"id": "a", "date": "2026-11-24", "clock": "10:12:13"}),
            json!({"id": "b", "date": "2026-11-23", "clock": "23:00:00"}),
        ];
        let records: Vec<&Value> = records.iter().collect();
        let columns = Columns::of(vocabulary::MENTION, &records, &[]);
        let at = columns.instant(columns.path("published_at").expect("a time"), records[0]);
        assert_eq!(at, instant(&json!("2026-11-24T10:12:13Z")));
    }

    #[test]
    fn instants_are_told_from_numbers_by_their_size() {
        assert_eq!(instant(&json!(1_781_042_400)), Some(1_781_042_400_000_000));
        assert_eq!(instant(&json!(1_781_042_400_000_i64)), Some(1_781_042_400_000_000));
        assert_eq!(instant(&json!(12)), None);
        assert_eq!(instant(&json!("2026-06-10")), Some(1_781_049_600_000_000));
        assert_eq!(instant(&json!("x.com")), None);
        let at = instant(&json!("2026-06-10T08:00:00.500Z"));
        for same in ["2026-06-10T08:00:00.500+0000", "2026-06-10 09:00:00.5 +0100", "2026-06-10T03:00:00.500-05"] {
            assert_eq!(instant(&json!(same)), at, "{same}");
        }
        assert_eq!((instant(&json!(1_781_078_400.5)), instant(&json!(0.5))), (at, None));
        let minute = instant(&json!("2026-06-10T08:00:00Z"));
        for same in ["2026-06-10T08:00Z", "2026-06-10T08:00:00,000Z", "2026-06-10T10:00+02:00[Europe/Berlin]"] {
            assert_eq!(instant(&json!(same)), minute, "{same}");
        }
        assert_eq!(instant(&json!("2026-06-10T08:00.5Z")), None, "half a minute");
        // Ambiguous: days up to 12 could be months.
        assert_eq!(pattern_of(["10/06/2026 08:00:00", "28/05/2026 09:30:00"].into_iter()), Some(PATTERNS[0]));
        assert_eq!(pattern_of(["10/06/2026 08:00:00", "08/05/2026 09:30:00"].into_iter()), None);
    }

    #[test]
    fn numbers_over_time_and_by_names_are_seen_in_whatever_layout() {
        let day = |n: i64| 1_781_042_400_000_i64 + n * 86_400_000;
        let cases = [
            json!([{"zub": day(0), "ka": 3}, {"zub": day(1), "ka": 4}]),
            json!([{"zub": day(0), "ka": "3"}, {"zub": day(1), "ka": "4"}]),
            json!([{"id": day(0), "values": [{"name": "n", "value": 3}]}, {"id": day(1), "values": [{"name": "n", "value": 4}]}]),
            json!([[day(0), 3], [day(1), 4]]),
            json!({"2026-06-10": 3, "2026-06-11": 4}),
        ];
        each(cases, |value| {
            let series = Series::over_time(&value).unwrap_or_else(|| panic!("{value}"));
            assert_eq!(series.entries(&value).iter().map(|(_, count)| *count).collect::<Vec<_>>(), [3, 4]);
            assert_eq!(Series::by_name(&value), None, "{value}");
        });
        for value in [
            json!([{"term": "en", "n": 3}, {"term": "de", "n": 4}]),
            json!([{"zub": "3", "term": "en"}, {"zub": "1,004", "term": "de"}]),
            json!([["en", 3], ["de", 4]]),
            json!({"en": 3, "de": 4}),
        ] {
            let series = Series::by_name(&value).unwrap_or_else(|| panic!("{value}"));
            assert_eq!(series.entries(&value).len(), 2);
            assert_eq!(Series::over_time(&value), None, "{value}");
        }
    }

    #[test]
    fn records_of_one_type_are_no_list_by_name() {
        let mention = |id: u64| {
            let attributes = json!({"text": "a text", "at": "2026-06-10T08:00:00Z", "reach": 4_000 + id, "lang": "en"});
            json!({"type": "mention", "id": 700_000 + id, "attributes": attributes})
        };
        let mentions: Vec<Value> = (0..3).map(mention).collect();
        assert!(is_rich(&mentions.iter().collect::<Vec<_>>()));
        assert_eq!(counts_at(&json!(mentions)), []);
        // A type in common, and an id, beside name and count.
        let list = json!([{"id": 1, "type": "language", "code": "de", "n": 3}, {"id": 2, "type": "language", "code": "en", "n": 4}]);
        let series = Series::by_name(&list).expect("a list by name");
        assert_eq!(series.entries(&list), [(json!("de"), 3), (json!("en"), 4)]);
        let one = json!([{"type": "mention", "count": 3}]);
        assert!(Series::by_name(&one).is_some());
    }

    #[test]
    fn an_object_of_days_is_part_of_the_overview_around_it() {
        let days = json!({"2026-06-10": 5, "2026-06-11": 2, "2026-06-12": 1});
        for stats in [
            json!({"daily": days, "influence": 7}),
            json!({"daily": {"buckets": days}, "languages": {"buckets": {"de": 5, "en": 3}}}),
        ] {
            let body = json!({"data": {"stats": stats}, "took": 3});
            assert_eq!(overview(&body, None).map(|path| pointer(&path)).as_deref(), Some("/data/stats"), "{body}");
        }
    }

    #[test]
    fn lists_of_several_fields_stand_in_one_array() {
        let day = |n: i64| 1_781_042_400_000_i64 + n * 86_400_000;
        for value in [
            json!([{"field": "lang", "values": [{"value": "de", "count": 3}, {"value": "en", "count": 4}]},
                {"field": "day", "values": [{"value": day(0), "count": 7}]}, {"field": "mood", "values": []}]),
            json!([{"values": {"de": 3, "en": 4}, "title": "Languages", "name": "lang"},
                {"values": {"2026-06-10": 5, "2026-06-11": 2}, "title": "Days", "name": "day"}]),
            json!([{"key": "lang", "total": 2, "data": [["de", 3], ["en", 4]]}, {"key": "day", "data": [["2026-06-10", 7]]}]),
        ] {
            let found = counts_at(&value);
            let told: Vec<(&str, u64, bool)> = found
                .iter()
                .map(|counts| {
                    let series = counts.series();
                    let sum = series.entries(&value).iter().map(|(_, count)| count).sum();
                    let field = series.within.as_ref().expect("a field").is.as_str();
                    (field, sum, matches!(counts, Counts::OverTime(_)))
                })
                .collect();
            assert_eq!(told, [("lang", 7, false), ("day", 7, true)], "{value}");
        }
        let no_counts = json!([{"id": "a", "tags": ["x"]}, {"id": "a", "tags": ["y"]}]);
        assert_eq!(counts_at(&no_counts), []);
    }
}
