//! Roles of mention fields, inferred from their values; names only rank the candidates. Pure.

use std::collections::{HashMap, HashSet};

use chrono::NaiveTime;
use serde_json::Value;

use super::effects::DAY;
use super::shape::{Path, at, instant, leaves, pattern_of, said, time_of_day};
use super::vocabulary;
use crate::profile::{Instant, instant_by};

/// Ranks a field as a candidate for a column by its name (0 is likeliest); `None` if the name suggests another column
/// or none.
fn named(column: &str, path: &Path) -> Option<usize> {
    vocabulary::column(vocabulary::MENTION, path).filter(|(name, _)| *name == column).map(|(_, rank)| rank)
}

/// True if two records may be one mention: most of their values agree. Times may be written in another zone.
fn agree(one: &Value, other: &Value) -> bool {
    let fields = leaves(one);
    let same = |path: &Path, value: &Value| match at(other, path) {
        Some(other) => value == other || instant(value).is_some_and(|at| instant(other) == Some(at)),
        None => value.is_null(),
    };
    let equal = fields.iter().filter(|(path, value)| same(path, value)).count();
    equal * 5 >= fields.len() * 3
}

/// True if the values at a path are a different one in each record of a page, and records of several pages that have the same
/// one agree.
fn identifies(pages: &[Vec<&Value>], value_of: impl Fn(&Value) -> Option<String>) -> bool {
    let mut known: HashMap<String, &Value> = HashMap::new();
    pages.iter().all(|page| {
        let mut seen = HashSet::new();
        page.iter().all(|record| {
            let Some(value) = value_of(record) else { return false };
            let first = *known.entry(value.clone()).or_insert(record);
            seen.insert(value) && agree(first, record)
        })
    })
}

/// Finds two fields that identify a mention together, for services whose mentions have no single one: a text or a number that
/// is unique among those with the same value of a short text.
pub(super) fn identity_of_two(pages: &[Vec<&Value>]) -> Option<[Path; 2]> {
    let record = pages.iter().flatten().next()?;
    let named = |path: &Path| {
        let name = path.last().map(|name| vocabulary::plain(name)).unwrap_or_default();
        ["id", "no", "number", "key", "nr", "ref", "num", "seq"].iter().any(|end| name.ends_with(end))
    };
    let fields: Vec<Path> = leaves(record).into_iter().map(|(path, _)| path).collect();
    let numbers = fields.iter().filter(|path| named(path));
    let mut pairs = numbers
        .flat_map(|number| fields.iter().filter(move |other| *other != number).map(move |other| [other, number]));
    pairs
        .find(|[other, number]| {
            let text = |record: &Value| {
                let other = at(record, other)?.as_str()?;
                let number = at(record, number).and_then(said)?;
                let short = !other.is_empty()
                    && other.len() <= 64
                    && !other.contains("://")
                    && instant(&Value::from(other)).is_none();
                short.then(|| format!("{other}:{number}"))
            };
            // The text is of one of a few sources, not a text of its own. A mention that came again counts once.
            let records = || pages.iter().flatten().copied();
            let sources: HashSet<&str> = records().filter_map(|record| at(record, other)?.as_str()).collect();
            let mentions: HashSet<String> = records().filter_map(text).collect();
            sources.len() * 2 <= mentions.len() && identifies(pages, text)
        })
        .map(|[other, number]| [other.clone(), number.clone()])
}

/// True if the name of a field ends like that of an id.
fn ends_like_id(path: &Path) -> bool {
    let name = path.last().map(|name| vocabulary::plain(name)).unwrap_or_default();
    ["id", "guid", "key"].iter().any(|end| name.ends_with(end))
}

/// Finds the id field: a different value in each mention, and the same one whenever a mention is returned again.
pub(super) fn identity(pages: &[Vec<&Value>]) -> Option<Path> {
    let records: Vec<&Value> = pages.iter().flatten().copied().collect();
    let candidates = leaves(records.first()?).into_iter().filter_map(|(path, _)| {
        let values: Vec<&Value> = records.iter().filter_map(|record| at(record, &path)).collect();
        let texts: HashSet<String> = values.iter().copied().filter_map(said).collect();
        let names = |text: &String| !text.is_empty() && text.len() <= 128 && !text.contains([' ', '\n']);
        let unique = identifies(pages, |record| at(record, &path).and_then(said));
        if !unique || !texts.iter().all(names) || values.iter().any(|value| value.is_f64()) {
            return None;
        }
        let whole = values.iter().all(|value| value.is_u64() || value.is_i64());
        // A count, or a time of day, may differ from record to record by chance.
        let other = vocabulary::column(vocabulary::MENTION, &path).map(|(column, _)| column);
        let counts = other.is_some_and(|column| vocabulary::COUNTS.contains(&column) || column.ends_with("_at"));
        let short = texts.iter().all(|text| text.len() < 7 && text.bytes().all(|byte| byte.is_ascii_digit()));
        let clock = texts.iter().all(|text| text.contains(':') && text.len() <= 8 && text.parse::<NaiveTime>().is_ok());
        // Two mentions of one time would be one. Digits may be an id as well, if the name says so.
        let time = values.iter().all(|value| instant(value).is_some())
            && (!ends_like_id(&path) || texts.iter().any(|text| text.contains(':')));
        if counts || clock || time || (short && !ends_like_id(&path)) {
            return None;
        }
        let shape = match () {
            () if values.iter().all(|value| instant(value).is_some()) => 300,
            () if texts.iter().any(|text| text.contains("://")) => 250,
            // A count may differ from record to record by chance.
            () if whole && texts.iter().any(|text| text.len() < 7) => 200,
            () => 100,
        };
        let rank = named("id", &path).or(ends_like_id(&path).then_some(200));
        Some((rank.map_or(shape * 10, |rank| rank + shape), path.len(), path))
    });
    let found = candidates.min().map(|(.., path)| path)?;
    Some(exact_id(&records, &found).unwrap_or(found))
}

/// The text beside an id that is a number, if the numbers are too large for JavaScript and the text has the same one or one that
/// was rounded to it.
fn exact_id(records: &[&Value], id: &Path) -> Option<Path> {
    const EXACT: u64 = 1 << 53;
    let (_, parent) = id.split_last()?;
    let beside = at(records.first()?, parent)?.as_object()?.keys();
    let mut others = beside.map(|name| [parent, std::slice::from_ref(name)].concat()).filter(|path| path != id);
    others.find(|path| {
        records.iter().all(|record| {
            let (Some(number), Some(text)) = (at(record, id).and_then(Value::as_u64), at(record, path)) else {
                return false;
            };
            let text = text.as_str().and_then(|text| text.parse::<u64>().ok());
            #[expect(clippy::cast_precision_loss, reason = "the loss is what is looked for")]
            text.is_some_and(|text| number > EXACT && text as f64 == number as f64)
        })
    })
}

/// Finds the publication time: an instant in each mention, not in the future, that mentions are sorted by or that has a
/// matching name; the earliest if there are several.
pub(super) fn moment(pages: &[Vec<&Value>], now: Option<i64>) -> Option<Path> {
    let records: Vec<&Value> = pages.iter().flatten().copied().collect();
    let candidates = leaves(records.first()?).into_iter().filter_map(|(path, _)| {
        let values: Vec<&Value> = records.iter().filter_map(|record| at(record, &path)).collect();
        let texts = values.iter().filter_map(|value| value.as_str());
        let pattern = if texts.clone().count() == values.len() { pattern_of(texts) } else { None };
        // A day without a time is the time together with another field.
        let daily = time_of_day(&records, &path);
        let read_at = |record: &Value| {
            let value = at(record, &path)?;
            let Some(time) = &daily else { return read_one(value, pattern) };
            let time = at(record, time)?.as_str()?;
            let seconds = if time.len() == 5 { ":00" } else { "" };
            instant(&Value::String(format!("{}T{time}{seconds}", value.as_str()?)))
        };
        let times: Vec<i64> = values.iter().filter_map(|value| read_one(value, pattern)).collect();
        let plausible = |at: &i64| now.is_none_or(|now| (now - 1_500 * DAY..=now + DAY).contains(at));
        if times.len() < records.len() || !times.iter().all(plausible) {
            return None;
        }
        let in_order = pages.iter().all(|page| {
            let times: Vec<i64> = page.iter().filter_map(|record| read_at(record)).collect();
            times.is_sorted() || times.is_sorted_by(|a, b| a >= b)
        });
        let other = vocabulary::column(vocabulary::MENTION, &path).is_some();
        let rank = named("published_at", &path).unwrap_or(if other { 900 } else { 500 });
        let sum: i128 = times.iter().map(|at| i128::from(*at)).sum();
        // A field with the right name is likelier than one that is only sorted.
        Some((rank + if in_order { 0 } else { 450 }, sum, path))
    });
    candidates.min().map(|(.., path)| path)
}

fn read_one(value: &Value, pattern: Option<&str>) -> Option<i64> {
    match (value.as_str(), pattern) {
        (Some(text), Some(pattern)) => instant_by(pattern, text).map(Instant::as_utc),
        _ => instant(value),
    }
}

/// Codes of frequent languages.
const LANGUAGES: &str = " ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv ms nl no pl pt ro ru sk sl \
                         sr sv ta th tr uk ur vi zh ";

/// Columns inferred from the form of values, for fields whose names suggest none.
pub(super) fn by_looks(records: &[&Value], taken: &[&Path]) -> Vec<(&'static str, Path)> {
    let mut found: Vec<(&'static str, Path)> = Vec::new();
    let Some(first) = records.first() else { return found };
    let mut texts: Vec<(usize, Path)> = Vec::new();
    for (path, _) in leaves(first) {
        if taken.contains(&&path) || vocabulary::column(vocabulary::MENTION, &path).is_some() {
            continue;
        }
        let values = records.iter().filter_map(|record| at(record, &path)?.as_str());
        let values: Vec<&str> = values.filter(|value| !vocabulary::NULLS.contains(value)).collect();
        if values.len() * 2 < records.len() {
            continue;
        }
        let all = |is: &dyn Fn(&str) -> bool| values.iter().all(|value| is(value));
        let several = values.iter().collect::<HashSet<_>>().len() > 1;
        match () {
            () if several && all(&|value| LANGUAGES.contains(&format!(" {value} "))) => found.push(("language", path)),
            () if several && all(&|value| value.len() == 2 && value.bytes().all(|b| b.is_ascii_uppercase())) => {
                found.push(("country", path));
            }
            () if all(&|value| value.starts_with("http://") || value.starts_with("https://")) => {
                found.push(("url", path));
            }
            () if all(&|value| value.contains(' ')) => texts.push((values.iter().map(|v| v.len()).sum(), path)),
            () => {}
        }
    }
    found.extend(texts.into_iter().max().map(|(_, path)| ("text", path)));
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn records() -> Vec<Value> {
        let record = |n: i64| {
            json!({"doc": {"bula": format!("m{:x}", 7_919 * n), "zoku": 1_780_000_000 - n * 60, "later": 1_780_000_500 - n * 60,
                "reach": n % 3, "note": format!("words of number {n}"), "tongue": if n % 2 == 0 { "en" } else { "de" }}})
        };
        (0..20).map(record).collect()
    }

    #[test]
    fn a_mention_that_comes_again_in_another_zone_is_the_same_one() {
        let record = |n: i64, zone: i64| {
            let at = chrono::DateTime::from_timestamp(1_780_000_000 + n * 60 + zone * 3_600, 0).expect("a time");
            let written = at.format("%Y-%m-%dT%H:%M:%S").to_string();
            json!({"uid": format!("x:{}", 7_919 * n), "rank": n % 5, "published": format!("{written}+0{zone}:00"), "label": "same"})
        };
        let (here, there): (Vec<Value>, Vec<Value>) =
            ((0..5).map(|n| record(n, 0)).collect(), (3..8).map(|n| record(n, 5)).collect());
        let pages = [here.iter().collect::<Vec<_>>(), there.iter().collect()];
        assert_eq!(identity(&pages), Some(path("uid")));
    }

    #[test]
    fn two_fields_may_identify_a_mention() {
        let source = |n: i64| if n % 2 == 0 { "x.com" } else { "blog" };
        let record = |n: i64| json!({"source": source(n), "no": n / 2, "text": "a b", "mood": "POS"});
        let records: Vec<Value> = (0..10).map(record).collect();
        let pages = [records[..6].iter().collect::<Vec<_>>(), records[4..].iter().collect()];
        assert_eq!(identity(&pages), None);
        assert_eq!(identity_of_two(&pages), Some([path("source"), path("no")]));
        // Texts of their own are no sources, although each came several times.
        let record = |n: i64| json!({"text": format!("words {n}"), "no": n / 2, "reach": n % 3});
        let records: Vec<Value> = (0..6).map(record).collect();
        let pages = vec![records.iter().collect::<Vec<_>>(); 3];
        assert_eq!(identity_of_two(&pages), None);
    }

    fn path(text: &str) -> Path {
        text.split('/').map(str::to_owned).collect()
    }

    #[test]
    fn roles_follow_from_values_whatever_fields_are_called() {
        let records = records();
        let all: Vec<&Value> = records.iter().collect();
        let pages = [all[..10].to_vec(), all[5..].to_vec()];
        assert_eq!(identity(&pages), Some(path("doc/bula")));
        assert_eq!(moment(&pages, Some(1_780_100_000_000_000)), Some(path("doc/zoku")), "the earlier of two");
        assert_eq!(moment(&pages, Some(1_000_000_000_000_000)), None, "instants that are to come");
        let looks = by_looks(&all, &[]);
        assert!(looks.contains(&("language", path("doc/tongue"))) && looks.contains(&("text", path("doc/note"))));
    }
}
