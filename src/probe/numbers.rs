//! Finds the number that counts mentions: it is the same on every page, changes with window and filters, and equals the
//! sum of the timeline or, in a complete response, the number of mentions received. Pure.

use serde_json::Value;

use super::asker::Reply;
use super::candidates::{OFFSET, SIZE};
use super::observations::{Findings, Seen};
use super::shape::{Counts, Layout, Path, Series, at, beside, counts_at, instant, leaves, number, walk, whole};
use super::vocabulary;
use crate::client::value_of;

/// Measures how many mentions a response covers: the largest sum of a series, then the sum of all integers that are not
/// timestamps.
pub(super) fn mass(answer: &Value) -> (u64, u64) {
    let sum = |value: &Value| {
        let of = |counts: &Counts| {
            // An object of numbers may mean anything.
            let known = matches!(counts, Counts::OverTime(_)) || counts.series().layout != Layout::Map;
            known.then(|| counts.series().entries(value).iter().map(|(_, count)| *count).fold(0, u64::saturating_add))
        };
        counts_at(value).iter().filter_map(of).max()
    };
    let sums = walk(answer).into_iter().filter(|(path, _)| !path.is_empty()).filter_map(|(_, value)| sum(value));
    (sums.max().unwrap_or_default(), all(answer))
}

fn all(answer: &Value) -> u64 {
    match answer {
        Value::Number(n) if instant(answer).is_none() => n.as_u64().unwrap_or_default(),
        Value::Array(items) => items.iter().map(all).fold(0, u64::saturating_add),
        Value::Object(members) => members.values().map(all).fold(0, u64::saturating_add),
        _ => 0,
    }
}

/// Counts of responses that confirm a number as the total, and of those that contradict it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Evidence {
    confirmed: usize,
    /// Those of other numbers than the sum of the timeline.
    doubted: usize,
    contradicted: usize,
    /// Complete pages with as many mentions, and full ones with fewer.
    complete: usize,
    larger: usize,
}

impl Evidence {
    fn say(&mut self, holds: bool) {
        if holds { self.confirmed += 1 } else { self.contradicted += 1 }
    }
}

/// Path of the total in responses with the overview.
pub(super) fn counted(found: &Findings, seen: &[Seen], timeline: Option<&(Path, Series)>) -> Option<Path> {
    let with = seen.iter().filter(|seen| found.overview.as_ref().is_some_and(|path| has(seen, path)));
    best(found, with.collect(), timeline, |_| false)
}

/// Path of the total in responses with mentions, preferably next to them rather than in the overview.
pub(super) fn total(found: &Findings, seen: &[Seen]) -> Option<Path> {
    let with: Vec<&Seen> = seen.iter().filter(|seen| found.has_rows(&seen.reply)).collect();
    let inside = |path: &Path| found.overview.as_ref().is_some_and(|o| !o.is_empty() && path.starts_with(o));
    best(found, with, found.timeline.as_ref(), inside)
}

fn has(seen: &Seen, path: &Path) -> bool {
    seen.reply.body.as_ref().is_some_and(|body| at(body, path).is_some())
}

fn best(
    found: &Findings,
    seen: Vec<&Seen>,
    timeline: Option<&(Path, Series)>,
    last: impl Fn(&Path) -> bool,
) -> Option<Path> {
    let body = seen.first()?.reply.body.as_ref()?;
    let whole = |(path, value): (Path, &Value)| (whole(value).is_some() && instant(value).is_none()).then_some(path);
    let within = |path: &Path| {
        let lists = timeline.iter().map(|(at, _)| at).chain(found.breakdowns.iter().map(|list| &list.at));
        lists.chain(&found.mentions).any(|list| !list.is_empty() && path.starts_with(list))
    };
    let candidates = leaves(body).into_iter().filter_map(whole).filter(|path| !within(path) && !is_echo(&seen, path));
    let ranked = candidates.filter_map(|path| {
        let Evidence { confirmed, doubted, contradicted, complete, larger } = evidence(found, &seen, timeline, &path);
        let named = vocabulary::total_rank(&path);
        // On a small page, the number of anything may be that of its mentions.
        let alone = named.is_none() && (larger == 0 || vocabulary::counts_others(&path));
        let confirmed = if alone { confirmed } else { confirmed + complete };
        // An unconfirmed number is accepted only if it is named like a total.
        let fits = contradicted == 0 && (confirmed > 0 || named.is_some());
        let known = (named.is_none(), usize::MAX - confirmed, path.len(), named);
        let rank = (usize::MAX - confirmed.min(1), doubted > 0, known);
        fits.then(|| (last(&path), rank, path))
    });
    ranked.min().map(|(.., path)| path)
}

/// True if a number repeats a parameter wherever that was sent.
fn is_echo(seen: &[&Seen], path: &Path) -> bool {
    let named = path.last().map(|name| vocabulary::plain(name)).unwrap_or_default();
    let pairs = |parameter: &str| {
        let of = |seen: &&Seen| {
            let (_, sent) = seen.reply.asked.iter().find(|(name, _)| name == parameter)?;
            Some((sent.parse::<u64>().ok()?, number(seen.reply.body.as_ref()?, path)?))
        };
        seen.iter().filter_map(of).collect::<Vec<(u64, u64)>>()
    };
    [SIZE, OFFSET].iter().any(|parameter| {
        let pairs = pairs(parameter);
        let (several, same) =
            (pairs.iter().any(|pair| pair.0 != pairs[0].0), pairs.iter().all(|(sent, said)| sent == said));
        !pairs.is_empty()
            && same
            && (several || ["size", "limit", "pagesize", "perpage"].iter().any(|word| named.ends_with(word)))
    })
}

fn evidence(found: &Findings, seen: &[&Seen], timeline: Option<&(Path, Series)>, path: &Path) -> Evidence {
    let mut evidence = Evidence::default();
    for seen in seen {
        let Some(body) = &seen.reply.body else { continue };
        let Some(count) = number(body, path).filter(|_| !is_bound(body, path)) else { continue };
        let sum = timeline.and_then(|(at_line, series)| Some(series.entries(at(body, at_line)?)));
        if let Some(sum) = sum.filter(|sum| !sum.is_empty()) {
            // A timeline may begin before the window, or omit some mentions.
            let sum: u64 = sum.iter().map(|(_, count)| count).sum();
            if sum == count {
                evidence.say(true);
            } else if sum.abs_diff(count) > sum.max(count) / 2 {
                evidence.say(false);
            } else {
                evidence.doubted += 1;
            }
        }
        // A header does not confirm itself.
        if let Some(told) = counted_in_header(seen).filter(|_| found.total_header.is_none()) {
            evidence.say(told == count);
        }
        // Two lists that count as many mentions count all of them, or all that have a value.
        match common_sum(found, body) {
            Some(sum) if sum == count => evidence.say(true),
            Some(sum) if sum > count => evidence.say(false),
            _ => {}
        }
        let rows = found.rows(&seen.reply).len() as u64;
        if found.mentions.is_none() || !found.has_rows(&seen.reply) {
            continue;
        }
        if rows > count {
            evidence.say(false);
        } else if seen.size.is_some_and(|size| rows < size) && rows > 0 {
            // A page cut short by the service's page limit proves nothing.
            evidence.complete += usize::from(rows == count);
        } else {
            evidence.larger += usize::from(rows < count);
        }
    }
    evidence
}

/// The number of mentions in a header such as `X-Total-Count`.
fn counted_in_header(seen: &Seen) -> Option<u64> {
    total_header(&seen.reply).map(|(_, total)| total)
}

/// The header with the number of mentions, such as `X-Total-Count` or `Content-Range: items 0-49/300`, and the number.
pub(super) fn total_header(reply: &Reply) -> Option<(&str, u64)> {
    /// Parts of the names of such headers. Others count pages, or requests.
    const PARTS: [&str; 10] =
        ["x", "total", "count", "results", "items", "records", "hits", "mentions", "rows", "pagination"];
    let counts = |name: &&str| {
        let total = name.contains("total") && name.split('-').all(|part| PARTS.contains(&part));
        let range = reply.headers.get(*name).and_then(|value| value.to_str().ok());
        total || (*name == "content-range" && range.is_some_and(|range| !range.starts_with("bytes")))
    };
    let mut names = reply.headers.keys().map(http::HeaderName::as_str).filter(counts);
    names.find_map(|name| Some((name, value_of(&reply.headers, name)?.as_u64()?)))
}

/// The header with the number of mentions, if the body does not have that number.
pub(super) fn only_in_header(reply: &Reply) -> Option<&str> {
    /// A number that nothing else has by chance.
    const LARGE: u64 = 20;
    let (name, total) = total_header(reply)?;
    let is_total = |(path, value): (Path, &Value)| {
        whole(value) == Some(total) && (total > LARGE || vocabulary::total_rank(&path).is_some())
    };
    let in_body = leaves(reply.body.as_ref()?).into_iter().any(is_total);
    (!in_body && !reply.is_refusal()).then_some(name)
}

/// The largest sum that several lists of a response have in common, outside the mentions.
fn common_sum(found: &Findings, body: &Value) -> Option<u64> {
    let outside = |path: &Path| found.mentions.as_ref().is_none_or(|mentions| !path.starts_with(mentions));
    let sums = walk(body).into_iter().filter(|(path, _)| !path.is_empty() && outside(path));
    let of = |value: &Value| -> Vec<u64> {
        let lists = counts_at(value).into_iter().filter(|counts| matches!(counts, Counts::ByName(_)));
        let sum = |counts: Counts| counts.series().entries(value).iter().map(|(_, count)| count).sum();
        lists.map(sum).collect()
    };
    let mut sums: Vec<u64> = sums.flat_map(|(_, value)| of(value)).collect();
    sums.sort_unstable();
    sums.windows(2).rev().find(|pair| pair[0] == pair[1] && pair[0] > 0).map(|pair| pair[0])
}

/// True if a response says that its total is not the exact number: `relation: "gte"`, `exact: false`.
pub(super) fn is_bound(answer: &Value, total: &Path) -> bool {
    accuracy(answer, total).is_some_and(|(_, exact)| !exact)
}

/// Path of the value beside a total that says if it is exact, and what it says.
pub(super) fn accuracy(answer: &Value, total: &Path) -> Option<(Path, bool)> {
    const INEXACT: [&str; 7] = ["approx", "estimat", "capped", "lowerbound", "limited", "rounded", "truncated"];
    let of = |(path, value): (Path, &Value)| {
        let name = path.last().map(|name| vocabulary::plain(name)).unwrap_or_default();
        let says = match value {
            Value::String(text) => match text.to_ascii_lowercase().as_str() {
                "eq" | "exact" => true,
                "gte" | "gt" | "lower_bound" | "at_least" | "approximate" | "estimated" => false,
                _ => return None,
            },
            Value::Bool(flag) if name.contains("exact") || name.contains("precise") => *flag,
            Value::Bool(flag) if INEXACT.iter().any(|word| name.contains(word)) => !flag,
            _ => return None,
        };
        Some((path, says))
    };
    beside(answer, total).into_iter().find_map(of)
}

/// True if the counts of a timeline are running sums: they only grow, and the last one is a total of the response.
pub(super) fn is_running(entries: &[(Value, u64)], answer: &Value) -> bool {
    let counts: Vec<u64> = entries.iter().map(|(_, count)| *count).collect();
    let grows = counts.windows(2).filter(|pair| pair[0] < pair[1]).count();
    let Some(last) = counts.last().filter(|_| counts.is_sorted() && grows >= 3) else { return false };
    let sum = counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
    let numbers: Vec<u64> = leaves(answer).into_iter().filter_map(|(_, value)| whole(value)).collect();
    numbers.contains(last) && !numbers.contains(&sum)
}

/// Pairs of numbers that should be equal.
#[derive(Debug, Default)]
pub(super) struct Agreements {
    /// The overview's count and the total of the same response.
    pub(super) totals: Vec<(u64, u64)>,
    /// The overview's count and the sum of its timeline.
    pub(super) sums: Vec<(u64, u64)>,
    /// The number of mentions received and the total, for responses with fewer mentions than requested.
    pub(super) short: Vec<(u64, u64)>,
}

pub(super) fn agreements(found: &Findings, seen: &[Seen]) -> Agreements {
    let mut agreed = Agreements::default();
    for Seen { size, reply } in seen {
        let exact = |path: &Path| reply.body.as_ref().is_some_and(|body| !is_bound(body, path));
        let count = found.count(reply).filter(|_| found.counted.as_ref().is_some_and(exact));
        let total = found.total.as_ref().filter(|path| exact(path));
        let total = total.and_then(|path| number(reply.body.as_ref()?, path));
        if found.has_rows(reply) {
            agreed.totals.extend(count.zip(total));
        }
        agreed.sums.extend(count.zip(found.sum(reply)));
        let rows = found.rows(reply).len() as u64;
        let most = found.page.map_or(u64::MAX, |page| page.max);
        if size.is_some_and(|size| rows < size.min(most)) && rows > 0 {
            agreed.short.extend(Some(rows).zip(total));
        }
    }
    agreed
}
