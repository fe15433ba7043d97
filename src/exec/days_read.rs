//! Days of the mentions that were read, compared with those that the timeline of the first response counts.
//!
//! Times may be wrong although nothing in them shows it: local times that are written as UTC, or times without a zone that are not of
//! the zone in the profile. They are all shifted by some hours, so that mentions near midnight are on another day.
//!
//! Invariant: only what was read anyway is compared. If mentions were added and removed meanwhile, as many may be on other days. So it
//! is an error only if one shift of all times, or two that differ by an hour, explain all days, and none does not.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::TimestampMicrosecondType;
use chrono::{DateTime, Utc};

use super::buckets::outside;
use super::stream::Driver;
use crate::decode::{CountedBucket, Decoded};
use crate::error::{Error, ErrorKind, Result};
use crate::request::RequestPlan;

/// Unit of differences between time zones, in microseconds. Days of all zones begin at a multiple of it.
const QUARTER: i64 = 15 * 60 * 1_000_000;
/// Largest difference from UTC, in quarters of an hour.
const FARTHEST: i64 = 14 * 4;
/// Mentions that may be on other days since several responses differ.
const FEW: u64 = 2;

/// Times of the mentions that were read, and the timeline of their first response.
#[derive(Default)]
pub(super) struct DaysRead {
    buckets: Option<Arc<[CountedBucket]>>,
    /// The window that the first response reports.
    window: Option<(DateTime<Utc>, DateTime<Utc>)>,
    /// Mentions by the quarter of an hour since 1970.
    quarters: HashMap<i64, u64>,
    responses: u64,
}

impl DaysRead {
    /// Notes the mentions of a page, whose times are in the column `time`.
    pub(super) fn see(&mut self, page: &Decoded, time: Option<usize>) {
        if self.responses == 0 {
            (self.buckets, self.window) = (page.buckets.clone(), page.echo.window());
        }
        self.responses += 1;
        if self.buckets.is_none() {
            return;
        }
        let times = time.and_then(|at| page.batch.column(at).as_primitive_opt::<TimestampMicrosecondType>());
        let Some(times) = times.filter(|times| times.null_count() == 0) else {
            self.buckets = None;
            return;
        };
        let quarter = |time: &i64| time.div_euclid(QUARTER);
        for run in times.values().chunk_by(|one, next| quarter(one) == quarter(next)) {
            *self.quarters.entry(quarter(&run[0])).or_default() += run.len() as u64;
        }
    }

    /// The shift in quarters of an hour with which all mentions are on the days that the timeline counts, if they are not without one.
    fn shift(&self, buckets: &[CountedBucket]) -> Option<i64> {
        let counted: u64 = buckets.iter().map(|(_, count)| *count).sum();
        if counted != self.quarters.values().sum::<u64>() {
            return None;
        }
        let placed = |by: i64| Placed::new(buckets, &self.quarters, by);
        let astray = placed(0).map_or(counted, |placed| placed.astray(buckets));
        if astray == 0 || (self.responses > 1 && astray <= FEW) {
            return None;
        }
        // Several may explain it; most zones differ by hours.
        let hours = (4..=FARTHEST).step_by(4);
        let others = (1..FARTHEST).filter(|by| by % 4 != 0);
        let mut shifts = hours.clone().chain(others).flat_map(|by| [by, -by]);
        let constant = shifts.find(|by| placed(*by).is_some_and(|placed| placed.differs_from(buckets) == 0));
        // Clocks may have changed by an hour meanwhile.
        let mut changed = hours.flat_map(|by| [by, -by]).filter(|by| {
            let Some(before) = placed(*by) else { return false };
            [by - 4, by + 4].into_iter().filter_map(placed).any(|after| before.changes_to(&after, buckets))
        });
        constant.or_else(|| changed.next())
    }
}

/// Mentions whose times are shifted, by the buckets of a timeline.
struct Placed {
    before: u64,
    counts: Vec<u64>,
    after: u64,
}

impl Placed {
    /// Shifts mentions by some quarters of an hour; `None` if one is then between two buckets.
    fn new(buckets: &[CountedBucket], quarters: &HashMap<i64, u64>, by: i64) -> Option<Self> {
        let mut placed = Self { before: 0, counts: vec![0; buckets.len()], after: 0 };
        for (quarter, count) in quarters {
            let from = (quarter + by).saturating_mul(QUARTER);
            let to = from.saturating_add(QUARTER);
            // The first and the last bucket may begin and end with the window, within a quarter.
            let Some(at) = buckets.partition_point(|((start, _), _)| *start < to).checked_sub(1) else {
                placed.before += count;
                continue;
            };
            match buckets[at].0.1.is_none_or(|end| from < end) {
                true => placed.counts[at] += count,
                false if at + 1 == buckets.len() => placed.after += count,
                false => return None,
            }
        }
        Some(placed)
    }

    /// Number of mentions that no bucket counts.
    fn astray(&self, buckets: &[CountedBucket]) -> u64 {
        let more = self.counts.iter().zip(buckets).map(|(count, (_, counted))| count.saturating_sub(*counted));
        self.before + more.sum::<u64>() + self.after
    }

    /// Number of buckets that count other numbers, and of mentions outside of all.
    fn differs_from(&self, buckets: &[CountedBucket]) -> u64 {
        let others = self.counts.iter().zip(buckets).filter(|(count, (_, counted))| *count != counted).count();
        self.before + others as u64 + self.after
    }

    /// True if the first buckets count these mentions, and the last ones those of another shift; one bucket is between them.
    fn changes_to(&self, other: &Self, buckets: &[CountedBucket]) -> bool {
        /// Buckets with mentions that agree on each side of a change.
        const ENOUGH: usize = 3;
        let counted = buckets.iter().map(|(_, count)| count);
        let first = self.counts.iter().zip(counted.clone()).take_while(|(count, counted)| count == counted);
        let last = other.counts.iter().zip(counted).rev().take_while(|(count, counted)| count == counted);
        let all = first.clone().count() + last.clone().count() + 1 >= buckets.len();
        let enough = |some: usize| some >= ENOUGH;
        let (first, last) = (first.filter(|(count, _)| **count > 0), last.filter(|(count, _)| **count > 0));
        all && self.before == 0 && other.after == 0 && enough(first.count()) && enough(last.count())
    }
}

impl Driver {
    /// Checks that the mentions of a plan, all of which were read, have the days that the timeline of the first response counts, if
    /// its buckets are the days of the requested zone and add up to as many.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] if they would have them with times that are some hours earlier or later.
    pub(super) fn check_days_read(&self, plan: &RequestPlan, read: &DaysRead) -> Result<()> {
        let Some(buckets) = &read.buckets else { return Ok(()) };
        let Some(shift) = read.shift(buckets) else { return Ok(()) };
        let profile = self.config.connection.profile();
        let days = buckets.iter().map(|(bucket, _)| *bucket).collect();
        let are_days = self.have_days(plan.zone(profile), days, plan, read.window);
        let counted = buckets.iter().map(|(bucket, count)| (*bucket, i64::try_from(*count).unwrap_or(i64::MAX)));
        let window = self.window_of(plan, read.window);
        if !are_days || window.is_some_and(|window| outside(counted.collect(), window, true).is_some()) {
            return Ok(());
        }
        Err(self.at_plan(shifted(profile.tables.mentions.time.as_deref().unwrap_or_default(), shift), plan))
    }
}

fn shifted(time: &str, quarters: i64) -> Error {
    let (hours, minutes) = (quarters.abs() / 4, quarters.abs() % 4 * 15);
    let by = match (hours, minutes) {
        (hours, 0) => format!("{hours} h"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    };
    let side = if quarters > 0 { "later" } else { "earlier" };
    let message = format!(
        "the timeline does not count the mentions on the days that they have, but would if `{time}` were {side}, such as by {by}"
    );
    Error::new(ErrorKind::Contradiction, message).advice(format!(
        "its times may be local ones that are written as UTC, or of another zone than the profile says: set `zone`, and `pattern` if \
         they name a zone, of the column `{time}` in the profile; if they are right, set days = false in [counts]"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<DateTime<Utc>>().expect("an instant").timestamp_micros()
    }

    fn day(day: u32, count: u64) -> CountedBucket {
        let start = at(&format!("2026-06-{day:02}T00:00:00Z"));
        ((start, Some(start + 96 * QUARTER)), count)
    }

    fn read(times: &[&str], responses: u64) -> DaysRead {
        let mut quarters: HashMap<i64, u64> = HashMap::new();
        times.iter().for_each(|time| *quarters.entry(at(time).div_euclid(QUARTER)).or_default() += 1);
        DaysRead { quarters, responses, ..DaysRead::default() }
    }

    #[test]
    fn a_shift_of_all_times_is_found() {
        let days = [day(1, 2), day(2, 1), day(3, 1)];
        // Four hours early.
        let early = ["2026-05-31T20:10:00Z", "2026-06-01T19:59:00Z", "2026-06-02T10:00:00Z", "2026-06-02T20:00:00Z"];
        assert_eq!(read(&early, 1).shift(&days), Some(16));
        assert_eq!(read(&early, 2).shift(&days), None, "others may have come and gone");
        let right = ["2026-06-01T00:10:00Z", "2026-06-01T23:59:00Z", "2026-06-02T14:00:00Z", "2026-06-03T00:00:00Z"];
        assert_eq!(read(&right, 1).shift(&days), None);
        assert_eq!(read(&right[..3], 1).shift(&days), None, "fewer than are counted");
        let apart = ["2026-06-01T12:00:00Z", "2026-06-01T12:01:00Z", "2026-06-01T12:02:00Z", "2026-06-03T12:00:00Z"];
        assert_eq!(read(&apart, 1).shift(&days), None, "no shift explains it");
    }

    /// Three mentions a day, five hours early until the clocks change, and four hours afterwards.
    #[test]
    fn a_shift_that_changes_by_an_hour_is_found() {
        let (mut quarters, mut days) = (HashMap::<i64, u64>::new(), Vec::new());
        let change = at("2026-06-10T07:00:00Z");
        for number in 1..=20_u32 {
            days.push(day(number, 3));
            for hour in [number * 7, number * 13 + 5, number * 5 + 11] {
                let time = at(&format!("2026-06-{number:02}T{:02}:10:00Z", hour % 24));
                let early = if time < change { 20 } else { 16 };
                *quarters.entry(time.div_euclid(QUARTER) - early).or_default() += 1;
            }
        }
        let read = DaysRead { quarters, responses: 1, ..DaysRead::default() };
        assert_eq!(read.shift(&days), Some(20));
        assert_eq!(Placed::new(&days, &read.quarters, 20).map(|placed| placed.differs_from(&days) > 0), Some(true));
    }

    #[test]
    fn buckets_may_begin_and_end_with_the_window() {
        let (from, to) = (at("2026-06-01T12:07:00Z"), at("2026-06-02T12:07:00Z"));
        let midnight = at("2026-06-02T00:00:00Z");
        let days = [((from, Some(midnight)), 1), ((midnight, Some(to)), 1)];
        assert_eq!(read(&["2026-06-01T12:08:00Z", "2026-06-02T12:06:00Z"], 1).shift(&days), None);
    }
}
