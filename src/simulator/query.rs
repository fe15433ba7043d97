//! A search request: its parameters checked, its window resolved, its mentions selected and ordered.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use chrono::offset::LocalResult;
use chrono::{DateTime, NaiveDateTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use super::dataset::{Facts, SavedSearch};

/// A validated request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Query {
    pub(super) aid: String,
    pub(super) from: DateTime<Utc>,
    pub(super) to: DateTime<Utc>,
    pub(super) timezone: Tz,
    pub(super) filters: Vec<(Filter, Vec<String>)>,
    pub(super) sort: Order,
    pub(super) data_from: u64,
    pub(super) data_size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Filter {
    Language,
    Country,
    Source,
    Sentiment,
    Type,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Order {
    key: Key,
    descending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Date,
    Reach,
    Engagement,
}

/// A parameter that is wrong: its name and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Invalid {
    pub(super) field: String,
    pub(super) message: String,
}

fn invalid(field: &str, message: impl Into<String>) -> Invalid {
    Invalid { field: field.to_owned(), message: message.into() }
}

impl Query {
    /// Checks the parameters of a request that arrives at `now`.
    pub(super) fn parse(
        parameters: &[(String, String)],
        now: DateTime<Utc>,
        largest_page: u64,
    ) -> Result<Self, Invalid> {
        let mut given: HashMap<&str, &str> = HashMap::new();
        for (name, value) in parameters {
            if given.insert(name, value).is_some() {
                return Err(invalid(name, "given twice"));
            }
        }
        let mut take = |name: &str| given.remove(name);
        let aid = take("aid").filter(|aid| !aid.is_empty()).ok_or_else(|| invalid("aid", "is required"))?;
        let zone = take("timezone").unwrap_or("UTC");
        let timezone: Tz = zone.parse().map_err(|_| invalid("timezone", format!("`{zone}` is no IANA zone")))?;
        let (from, to) = window(take("duration").unwrap_or("7d"), timezone, now)?;
        let sort = order(take("sortBy").unwrap_or("date_desc"))?;
        let data_from = number("dataFrom", take("dataFrom"))?;
        let data_size = number("dataSize", take("dataSize"))?;
        if data_size > largest_page {
            return Err(invalid("dataSize", format!("at most {largest_page}")));
        }
        let mut filters = Vec::new();
        for (name, filter) in [
            ("language", Filter::Language),
            ("country", Filter::Country),
            ("source", Filter::Source),
            ("sentiment", Filter::Sentiment),
            ("type", Filter::Type),
        ] {
            if let Some(values) = take(name) {
                if values.split(',').any(str::is_empty) {
                    return Err(invalid(name, "has an empty value"));
                }
                filters.push((filter, values.split(',').map(str::to_owned).collect()));
            }
        }
        let aid = aid.to_owned();
        if let Some(name) = given.keys().min() {
            return Err(invalid(name, "is no parameter of search"));
        }
        Ok(Self { aid, from, to, timezone, filters, sort, data_from, data_size })
    }

    /// The positions of the matching mentions, in the order of publication.
    pub(super) fn matching(&self, search: &SavedSearch) -> Vec<u32> {
        let mentions = &search.mentions;
        let start = mentions.partition_point(|mention| mention.facts.published < self.from);
        let end = mentions.partition_point(|mention| mention.facts.published < self.to).max(start);
        let positions = (start..end).filter(|at| self.takes(&mentions[*at].facts));
        positions.map(|at| u32::try_from(at).unwrap_or(u32::MAX)).collect()
    }

    fn takes(&self, facts: &Facts) -> bool {
        self.filters.iter().all(|(filter, values)| {
            let value = match filter {
                Filter::Language => &facts.language,
                Filter::Country => &facts.country,
                Filter::Source => &facts.source,
                Filter::Sentiment => &facts.sentiment,
                Filter::Type => &facts.kind,
            };
            value.as_ref().is_some_and(|value: &Arc<str>| values.iter().any(|wanted| **wanted == **value))
        })
    }

    /// Puts positions into an order of its own, which is none.
    pub(super) fn shuffle(search: &SavedSearch, positions: &mut [u32]) {
        positions.sort_by_cached_key(|at| {
            let mut hasher = DefaultHasher::new();
            search.mentions[*at as usize].facts.id.hash(&mut hasher);
            hasher.finish()
        });
    }

    /// Puts positions into the order asked for, NULLs last. Ties keep the order of publication, or come in an order of
    /// this request's own where a `shuffle` is given.
    pub(super) fn sort(&self, search: &SavedSearch, positions: &mut [u32], shuffle: Option<u64>) {
        let Order { key, descending } = self.sort;
        let value = |at: u32| {
            let facts = &search.mentions[at as usize].facts;
            match key {
                Key::Date => Some(facts.published.timestamp_micros()),
                Key::Reach => facts.reach,
                Key::Engagement => facts.engagement,
            }
        };
        let tie = |at: u32| {
            shuffle.map_or(u64::from(at), |salt| {
                let mut hasher = DefaultHasher::new();
                (salt, at).hash(&mut hasher);
                hasher.finish()
            })
        };
        positions.sort_by(|a, b| {
            let order = match (value(*a), value(*b)) {
                (Some(a), Some(b)) if descending => b.cmp(&a),
                (Some(a), Some(b)) => a.cmp(&b),
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
            };
            order.then_with(|| tie(*a).cmp(&tie(*b)))
        });
    }
}

fn number(name: &str, value: Option<&str>) -> Result<u64, Invalid> {
    let Some(value) = value else { return Ok(0) };
    let plain = value.bytes().all(|byte| byte.is_ascii_digit());
    value.parse().ok().filter(|_| plain).ok_or_else(|| invalid(name, format!("`{value}` is no whole number from 0")))
}

fn order(value: &str) -> Result<Order, Invalid> {
    let (key, direction) = value.rsplit_once('_').unwrap_or((value, ""));
    let key = match key {
        "date" => Key::Date,
        "reach" => Key::Reach,
        "engagement" => Key::Engagement,
        _ => return Err(invalid("sortBy", format!("`{value}` is no order"))),
    };
    match direction {
        "asc" => Ok(Order { key, descending: false }),
        "desc" => Ok(Order { key, descending: true }),
        _ => Err(invalid("sortBy", format!("`{value}` is no order"))),
    }
}

fn window(duration: &str, zone: Tz, now: DateTime<Utc>) -> Result<(DateTime<Utc>, DateTime<Utc>), Invalid> {
    let bad = || invalid("duration", format!("`{duration}` is no period: <n>h, <n>d, <n>w or FROM..TO"));
    if let Some((from, to)) = duration.split_once("..") {
        let (from, to) = (instant(from, zone).ok_or_else(bad)?, instant(to, zone).ok_or_else(bad)?);
        return if from < to { Ok((from, to)) } else { Err(invalid("duration", "ends before it starts")) };
    }
    let split = duration.len().checked_sub(1).filter(|at| duration.is_char_boundary(*at)).ok_or_else(bad)?;
    let (digits, unit) = duration.split_at(split);
    let n: u32 =
        digits.parse().ok().filter(|n| *n > 0 && digits.bytes().all(|b| b.is_ascii_digit())).ok_or_else(bad)?;
    let hours = match unit {
        "h" => 1,
        "d" => 24,
        "w" => 168,
        _ => return Err(bad()),
    };
    let to = DateTime::from_timestamp(now.timestamp(), 0).ok_or_else(bad)?;
    let length = TimeDelta::try_hours(i64::from(n) * hours).ok_or_else(bad)?;
    Ok((to.checked_sub_signed(length).filter(|from| from.timestamp() > -30_000_000_000).ok_or_else(bad)?, to))
}

/// An RFC 3339 instant, or a local time in the zone: the earlier one where the clock was set back, none where it was
/// set forward.
fn instant(text: &str, zone: Tz) -> Option<DateTime<Utc>> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.with_timezone(&Utc));
    }
    let local: NaiveDateTime = text.parse().ok()?;
    match zone.from_local_datetime(&local) {
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Some(at.with_timezone(&Utc)),
        LocalResult::None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<Query, Invalid> {
        let now = "2026-07-01T12:00:00.5Z".parse().expect("an instant");
        let mut all = vec![("aid".to_owned(), "1".to_owned())];
        all.extend(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
        Query::parse(&all, now, 100)
    }

    #[test]
    fn windows_are_half_open_and_in_whole_seconds() {
        let query = parse(&[("duration", "2d")]).expect("a query");
        assert_eq!(query.from.to_string(), "2026-06-29 12:00:00 UTC");
        assert_eq!(query.to.to_string(), "2026-07-01 12:00:00 UTC");
        let berlin = [("timezone", "Europe/Berlin"), ("duration", "2026-03-29T00:00:00..2026-03-30T00:00:00")];
        let query = parse(&berlin).expect("a query");
        assert_eq!((query.to - query.from).num_hours(), 23);
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        for (name, value) in [
            ("duration", "7 days"),
            ("duration", "0d"),
            ("duration", "é"),
            ("duration", ""),
            ("duration", "4294967295w"),
            ("duration", "2026-01-02T00:00:00Z..2026-01-01T00:00:00Z"),
            ("timezone", "Mars/Olympus"),
            ("dataFrom", "-1"),
            ("dataSize", "101"),
            ("sortBy", "date"),
            ("language", "en,"),
            ("colour", "red"),
        ] {
            assert_eq!(parse(&[(name, value)]).expect_err(value).field, name);
        }
        assert_eq!(parse(&[("aid", "2")]).expect_err("twice").message, "given twice");
    }
}
