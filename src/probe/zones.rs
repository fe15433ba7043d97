//! The zones that times and days of a service may be of: all those of the database, one of each kind. Pure.
//!
//! A fixed offset and a zone with daylight saving time look alike for months, so evidence from both sides of a change of clocks
//! is needed to tell them apart.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use chrono::{DateTime, NaiveDate, TimeDelta};
use serde_json::Value;

use super::shape::utc;
use crate::profile::Zone;

/// Zones with daylight saving time, one of each kind, the most usual first. Those of fewer than half a million people are left out:
/// some of them differ from UTC for half of the year only.
const CHANGING: [&str; 18] = [
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Los_Angeles",
    "America/Chicago",
    "America/Denver",
    "Europe/Athens",
    "Australia/Sydney",
    "Pacific/Auckland",
    "Asia/Jerusalem",
    "Africa/Cairo",
    "America/Santiago",
    "America/Halifax",
    "America/St_Johns",
    "Australia/Adelaide",
    "America/Anchorage",
    "Africa/Casablanca",
    "Asia/Gaza",
];

/// Zones with different clocks, UTC first: zones with daylight saving time, and the offsets of the database.
pub(super) fn all() -> &'static [Zone] {
    static ALL: LazyLock<Vec<Zone>> = LazyLock::new(|| {
        let zone = |name: &str| name.parse::<Zone>().ok();
        let offset = |zone: Zone| {
            let clocks = clocks(zone, 7);
            clocks.iter().all(|offset| *offset == clocks[0]).then(|| clocks[0].num_minutes())
        };
        let offsets: BTreeSet<i64> = Zone::names().filter_map(|name| offset(zone(name)?)).collect();
        let offsets = offsets.into_iter().filter(|offset| *offset != 0);
        let fixed = offsets.filter_map(|offset| zone(&offset_text(offset)));
        [Zone::UTC].into_iter().chain(CHANGING.into_iter().filter_map(zone)).chain(fixed).collect()
    });
    &ALL
}

/// Distances of a zone from UTC every so many days, over the years in which services are probed. Clocks that change on the same day
/// count as the same.
fn clocks(zone: Zone, days: usize) -> Vec<TimeDelta> {
    let first = DateTime::UNIX_EPOCH + TimeDelta::days(55 * 365) + TimeDelta::hours(12);
    let at = (0..365 * 4).step_by(days).map(|day| first + TimeDelta::days(day));
    at.map(|at| zone.local(at) - at.naive_utc()).collect()
}

/// The local time of an instant, as the instant at which UTC has it. All in microseconds since 1970.
pub(super) fn local(zone: Zone, at: i64) -> i64 {
    zone.local(utc(at)).and_utc().timestamp_micros()
}

/// The instant of a local time that is written so; the earlier one if there are two.
pub(super) fn instant(zone: Zone, written: i64) -> i64 {
    let local = utc(written).naive_utc();
    let found = zone.instants(local).earliest().map(|at| at.timestamp_micros());
    // Clocks are set forward over it.
    found.unwrap_or_else(|| written - (self::local(zone, written) - written))
}

/// First instant of a day, given as its midnight in UTC.
pub(super) fn day_start(zone: Zone, midnight: i64) -> Option<i64> {
    let day: NaiveDate = utc(midnight).date_naive();
    zone.day_start(day).map(|at| at.timestamp_micros())
}

/// The IANA zone that a text names; `None` for UTC, which says nothing, and for abbreviations such as `EST`.
pub(super) fn named(text: &str) -> Option<Zone> {
    let named = text.contains('/') && text.len() < 40 && !text.starts_with("Etc/");
    named.then(|| text.parse().ok()).flatten()
}

/// All IANA zones that a response names, sorted.
pub(super) fn names_in(value: &Value) -> Vec<Zone> {
    let mut found: Vec<Zone> = match value {
        Value::String(text) => named(text).into_iter().collect(),
        Value::Array(items) => items.iter().flat_map(names_in).collect(),
        Value::Object(members) => members.values().flat_map(names_in).collect(),
        _ => Vec::new(),
    };
    found.sort_by_key(Zone::to_string);
    found
}

/// Zones in words: one, or how many and some of them.
pub(super) fn listed(zones: &[Zone]) -> String {
    const SHOWN: usize = 4;
    let names: Vec<String> = zones.iter().take(SHOWN).map(Zone::to_string).collect();
    let rest = if zones.len() > SHOWN { format!(" and {} more", zones.len() - SHOWN) } else { String::new() };
    format!("{}{rest}", names.join(", "))
}

/// A distance from UTC in minutes, as services write it.
fn offset_text(minutes: i64) -> String {
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_kind_of_clock_is_there_once() {
        let known: HashSet<Vec<TimeDelta>> = all().iter().map(|zone| clocks(*zone, 1)).collect();
        assert_eq!(known.len(), all().len());
        let parsed = |name: &&str| clocks(name.parse().expect("a zone"), 1);
        let left_out: Vec<&str> = Zone::names().filter(|name| !known.contains(&parsed(name))).collect();
        let small = [
            "America/Adak",
            "America/Atka",
            "America/Godthab",
            "America/Miquelon",
            "America/Nuuk",
            "America/Scoresbysund",
            "Antarctica/Troll",
            "Atlantic/Azores",
            "Australia/LHI",
            "Australia/Lord_Howe",
            "Chile/EasterIsland",
            "NZ-CHAT",
            "Pacific/Chatham",
            "Pacific/Easter",
            "Pacific/Norfolk",
            "US/Aleutian",
        ];
        assert_eq!(left_out, small);
        let [berlin, summer] = ["Europe/Berlin", "2026-07-01T00:00:00Z"];
        let (berlin, at) = (berlin.parse().expect("a zone"), summer.parse::<DateTime<chrono::Utc>>().expect("a time"));
        let at = at.timestamp_micros();
        assert_eq!((local(berlin, at) - at, instant(berlin, local(berlin, at))), (7_200_000_000, at));
        assert_eq!((named("Europe/Berlin"), named("UTC"), named("a/b")), (Some(berlin), None, None));
    }
}
