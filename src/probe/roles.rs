//! Roles of mention fields, inferred from their values; names only rank the candidates. Pure.

use std::collections::HashSet;

use serde_json::Value;

use super::effects::DAY;
use super::shape::{Path, at, instant, leaves, pattern_of, said};
use super::vocabulary;
use crate::profile::{Instant, instant_by};

/// Ranks a field as a candidate for a column by its name (0 is likeliest); `None` if the name suggests another column
/// or none.
fn named(column: &str, path: &Path) -> Option<usize> {
    vocabulary::column(vocabulary::MENTION, path).filter(|(name, _)| *name == column).map(|(_, rank)| rank)
}

/// Records that differ from each other.
fn distinct<'r>(records: &[&'r Value]) -> Vec<&'r Value> {
    let mut seen = HashSet::new();
    records.iter().copied().filter(|record| seen.insert(record.to_string())).collect()
}

/// Finds the id field: a different value in each mention, and the same one whenever a mention is returned again.
pub(super) fn identity(records: &[&Value]) -> Option<Path> {
    let records = distinct(records);
    let candidates = leaves(records.first()?).into_iter().filter_map(|(path, _)| {
        let values: Vec<&Value> = records.iter().filter_map(|record| at(record, &path)).collect();
        let texts: HashSet<String> = values.iter().copied().filter_map(said).collect();
        let names = |text: &String| !text.is_empty() && text.len() <= 128 && !text.contains([' ', '\n']);
        if texts.len() < records.len() || !texts.iter().all(names) || values.iter().any(|value| value.is_f64()) {
            return None;
        }
        let whole = values.iter().all(|value| value.is_u64() || value.is_i64());
        let shape = match () {
            () if values.iter().all(|value| instant(value).is_some()) => 300,
            () if texts.iter().any(|text| text.contains("://")) => 250,
            // A count may differ from record to record by chance.
            () if whole && texts.iter().any(|text| text.len() < 7) => 200,
            () => 100,
        };
        Some((named("id", &path).map_or(shape * 10, |rank| rank + shape), path.len(), path))
    });
    candidates.min().map(|(.., path)| path)
}

/// Finds the publication time: an instant in each mention, not in the future, that mentions are sorted by or that has a
/// matching name; the earliest if there are several.
pub(super) fn moment(pages: &[Vec<&Value>], now: Option<i64>) -> Option<Path> {
    let records: Vec<&Value> = pages.iter().flatten().copied().collect();
    let candidates = leaves(records.first()?).into_iter().filter_map(|(path, _)| {
        let values: Vec<&Value> = records.iter().filter_map(|record| at(record, &path)).collect();
        let texts = values.iter().filter_map(|value| value.as_str());
        let pattern = if texts.clone().count() == values.len() { pattern_of(texts) } else { None };
        let read = |value: &Value| match (value.as_str(), pattern) {
            (Some(text), Some(pattern)) => instant_by(pattern, text).map(Instant::as_utc),
            _ => instant(value),
        };
        let times: Vec<i64> = values.iter().filter_map(|value| read(value)).collect();
        let plausible = |at: &i64| now.is_none_or(|now| (now - 1_500 * DAY..=now + DAY).contains(at));
        if times.len() < records.len() || !times.iter().all(plausible) {
            return None;
        }
        let in_order = pages.iter().all(|page| {
            let times: Vec<i64> = page.iter().filter_map(|record| read(at(record, &path)?)).collect();
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
        let values: Vec<&str> = records.iter().filter_map(|record| at(record, &path)?.as_str()).collect();
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

    fn path(text: &str) -> Path {
        text.split('/').map(str::to_owned).collect()
    }

    #[test]
    fn roles_follow_from_values_whatever_fields_are_called() {
        let records = records();
        let all: Vec<&Value> = records.iter().collect();
        assert_eq!(identity(&all), Some(path("doc/bula")));
        let pages = [all[..10].to_vec(), all[5..].to_vec()];
        assert_eq!(moment(&pages, Some(1_780_100_000_000_000)), Some(path("doc/zoku")), "the earlier of two");
        assert_eq!(moment(&pages, Some(1_000_000_000_000_000)), None, "instants that are to come");
        let looks = by_looks(&all, &[]);
        assert!(looks.contains(&("language", path("doc/tongue"))) && looks.contains(&("text", path("doc/note"))));
    }
}
