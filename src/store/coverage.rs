//! Division of a time span into the part that a store can answer and the part that has to be requested. In Dar et al.,
//! "Semantic Data Caching and Replacement" (1996), they are the probe query and the remainder query; here, they consist of
//! days.
//!
//! ```text
//! span, regions ─▶ stored: days of regions ─ not fresh: confirmed by one timeline ─ numbers differ ─┐
//!              └─▶ read: all other instants ◀─────────────────────────────────────────────────────┘
//! ```
//!
//! Pure. A day of a region can be used if it is *fresh* (seen at the service within the freshness that the query accepts),
//! or if it had *settled* when it was read: then only its count has to be confirmed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::region::{Day, Filters, Region};
use crate::request::CLOCK_SKEW;

/// Length of a day in microseconds.
pub(crate) const DAY: i64 = 86_400_000_000;

/// Conditions under which a stored day may be used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// Current time of the service.
    pub(crate) now: DateTime<Utc>,
    /// Time after its end until a day is not expected to change any more.
    pub(crate) settling: TimeDelta,
    /// Days that were seen at the service after this instant need no confirmation.
    pub(crate) since: DateTime<Utc>,
    /// Age at which settled days are read again if no timeline can confirm them; `None`: a timeline can.
    pub(crate) rescan: Option<TimeDelta>,
}

/// A span of time divided between the store and the service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Division {
    /// Parts that the store has, disjoint and in order of time.
    pub(crate) stored: Vec<Stored>,
    /// Half-open ranges of instants to request, in microseconds since 1970, disjoint and in order of time.
    pub(crate) read: Vec<Range<i64>>,
}

/// Days of a region that are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The region.
    pub(crate) region: Arc<Region>,
    /// Its filters.
    pub(crate) filters: Filters,
    /// The days, within those of the region.
    pub(crate) days: Range<Day>,
    /// Set if their numbers need not be confirmed.
    pub(crate) fresh: bool,
}

/// True if a region was read before the current time. Otherwise a clock was wrong then, and what the region says of its age is as well.
pub(super) fn is_credible(region: &Region, now: DateTime<Utc>) -> bool {
    region.as_of <= now + CLOCK_SKEW
}

/// The latest instant at which the service was seen to have the mentions of a region, and true if all its days had settled then. A
/// confirmation at a time that has not come yet does not count, because a clock was wrong then: the days are as they were read.
pub(super) fn last_seen(region: &Region, now: DateTime<Utc>) -> (DateTime<Utc>, bool) {
    match region.confirmed <= now + CLOCK_SKEW {
        true => (region.confirmed, region.sealed),
        false => (region.as_of, false),
    }
}

/// Number of days of a region that were read or confirmed after they had settled: the first ones.
pub(super) fn settled_days(region: &Region, settling: TimeDelta) -> u64 {
    let settling = settling.num_microseconds().unwrap_or(i64::MAX);
    let open = match region.sealed {
        true => region.days.end,
        false => day_of(region.as_of.timestamp_micros().saturating_sub(settling)).min(region.days.end),
    };
    (region.days.start..open).len() as u64
}

/// Returns the day of an instant in microseconds since 1970.
pub(crate) fn day_of(at: i64) -> Day {
    Day::try_from(at.div_euclid(DAY)).unwrap_or(if at < 0 { Day::MIN } else { Day::MAX })
}

/// Returns the first instant of a day in microseconds since 1970.
pub(crate) fn start_of(day: Day) -> i64 {
    i64::from(day).saturating_mul(DAY)
}

/// Returns the span of these days in microseconds since 1970.
pub(crate) fn span_of(days: &Range<Day>) -> Range<i64> {
    start_of(days.start)..start_of(days.end)
}

/// True if the ranges share a day.
pub(crate) fn overlap(a: &Range<Day>, b: &Range<Day>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Returns the days that have an instant of the span.
pub(crate) fn days_of(span: &Range<i64>) -> Range<Day> {
    if span.start >= span.end {
        return 0..0;
    }
    day_of(span.start)..day_of(span.end - 1).saturating_add(1)
}

/// Divides a span of mentions that match `filters`.
pub(crate) fn divide(
    span: &Range<i64>,
    filters: &Filters,
    regions: &[(Filters, Arc<Region>)],
    terms: &Terms,
) -> Division {
    let days = days_of(span);
    let mut best: Vec<Option<(usize, bool)>> = vec![None; days.len()];
    let usable = regions.iter().enumerate().filter(|(_, (of, _))| of.cover(filters));
    for (index, (_, region)) in usable {
        for day in days.start.max(region.days.start)..days.end.min(region.days.end) {
            let Some(fresh) = terms.allow(region, day) else { continue };
            let slot = &mut best[(day - days.start) as usize];
            let seen = |region: &Region| last_seen(region, terms.now).0;
            let better =
                slot.is_none_or(|(other, other_fresh)| (fresh, seen(region)) > (other_fresh, seen(&regions[other].1)));
            if better {
                *slot = Some((index, fresh));
            }
        }
    }
    let mut division = Division::default();
    let mut begin = 0;
    while begin < best.len() {
        let same = best[begin..].iter().take_while(|slot| **slot == best[begin]).count();
        let day = |at: usize| days.start.saturating_add(Day::try_from(at).unwrap_or(Day::MAX));
        let run = day(begin)..day(begin + same);
        match best[begin] {
            Some((index, fresh)) => {
                let (of, region) = &regions[index];
                division.stored.push(Stored { region: Arc::clone(region), filters: of.clone(), days: run, fresh });
            }
            None => {
                let run = span_of(&run);
                division.read.push(run.start.max(span.start)..run.end.min(span.end));
            }
        }
        begin += same;
    }
    division
}

/// Divides a span of mentions that match `filters`, so that one timeline can confirm the stored days: unless they are fresh,
/// all are of regions with the same filters, which are returned.
pub(crate) fn divide_for_timeline(
    span: &Range<i64>,
    filters: &Filters,
    regions: &[(Filters, Arc<Region>)],
    terms: &Terms,
) -> (Division, Filters) {
    let division = divide(span, filters, regions, terms);
    let mut mentions: BTreeMap<&Filters, u64> = BTreeMap::new();
    for stored in division.stored.iter().filter(|stored| !stored.fresh) {
        *mentions.entry(&stored.filters).or_default() += stored.counts().map(|(_, count)| count + 1).sum::<u64>();
    }
    let Some(most) = mentions.iter().max_by_key(|(_, count)| **count).map(|(of, _)| (*of).clone()) else {
        return (division, filters.clone());
    };
    if mentions.len() == 1 {
        return (division, most);
    }
    let same = |(of, region): &&(Filters, Arc<Region>)| *of == most || last_seen(region, terms.now).0 > terms.since;
    let regions: Vec<_> = regions.iter().filter(same).cloned().collect();
    (divide(span, filters, &regions, terms), most)
}

impl Terms {
    /// True if a region could be used for a day without a request; `Some(false)` if the number has to be confirmed;
    /// `None` if the day has to be read.
    fn allow(&self, region: &Region, day: Day) -> Option<bool> {
        if !is_credible(region, self.now) {
            return None;
        }
        let (seen, sealed) = last_seen(region, self.now);
        if seen > self.since {
            return Some(true);
        }
        if !sealed && !self.had_settled(region.as_of, day) {
            return None;
        }
        match self.is_outdated(region) {
            None => Some(false),
            Some(outdated) => (!outdated).then_some(true),
        }
    }

    /// True if settled days of a region are read again because of their age; `None` if a timeline can confirm them.
    fn is_outdated(&self, region: &Region) -> Option<bool> {
        let age = self.now.checked_sub_signed(self.rescan?);
        Some(age.is_some_and(|age| region.as_of <= age))
    }

    /// True if other conditions decide the same of a region, so that a division of its days is the same under both.
    pub(crate) fn agree(&self, other: &Self, region: &Region) -> bool {
        let decided = |terms: &Self| {
            let (seen, sealed) = last_seen(region, terms.now);
            (is_credible(region, terms.now), seen, sealed, seen > terms.since, terms.is_outdated(region))
        };
        self.settling == other.settling && decided(self) == decided(other)
    }

    /// True if a day had settled at an instant.
    pub(crate) fn had_settled(&self, at: DateTime<Utc>, day: Day) -> bool {
        let end = start_of(day.saturating_add(1));
        at.timestamp_micros().saturating_sub(self.settling.num_microseconds().unwrap_or(i64::MAX)) >= end
    }
}

impl Stored {
    /// Number of mentions of each used day.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (Day, u64)> {
        let skipped = (self.days.start - self.region.days.start) as usize;
        self.days.clone().zip(self.region.counts.iter().skip(skipped).copied())
    }

    /// Number of mentions of the used days.
    pub(crate) fn mentions(&self) -> u64 {
        self.counts().map(|(_, count)| count).sum()
    }

    /// Size of the mentions of the used days in their file, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.region.file().map_or(0, |file| file.share(self.mentions()))
    }

    /// True if all days of the region are used.
    pub(crate) fn is_whole(&self) -> bool {
        self.days == self.region.days
    }
}

impl Division {
    /// The days whose counts are compared with the timeline; `None` if none has to be confirmed.
    pub(crate) fn to_confirm(&self) -> Option<Range<Day>> {
        let (first, last) = (self.stored.first()?, self.stored.last()?);
        // All of them: it takes no more requests, and shows whether a mention has changed its day.
        self.stored.iter().any(|stored| !stored.fresh).then_some(first.days.start..last.days.end)
    }

    /// Number of stored days that are used.
    pub(crate) fn stored_days(&self) -> u64 {
        self.stored.iter().map(|stored| stored.days.len() as u64).sum()
    }

    /// Number of days of which at least a part is read.
    pub(crate) fn read_days(&self) -> u64 {
        self.read.iter().map(|span| days_of(span).len() as u64).sum()
    }

    /// Number of stored mentions of the used days.
    pub(crate) fn mentions(&self) -> u64 {
        self.stored.iter().map(Stored::mentions).sum()
    }

    /// True if no request is needed.
    pub(crate) fn is_stored(&self) -> bool {
        self.read.is_empty() && self.to_confirm().is_none()
    }

    /// True if the store certainly saves no request: reading everything takes no more than confirming and reading the
    /// rest, at pages of this size. `confirming`: number of requests that confirm.
    pub(crate) fn saves_nothing(&self, page: u64, confirming: u64) -> bool {
        let needed = confirming + self.read.len() as u64;
        needed > 0 && self.mentions() < page.saturating_mul(needed)
    }

    /// Moves stored days between two spans to read into the spans, if the days hold less than a page of mentions: one
    /// request reads all of them.
    #[must_use]
    pub(crate) fn with_fewer_gaps(self, page: u64) -> Self {
        let Self { stored, read } = self;
        let mut division = Self { stored, read: Vec::with_capacity(read.len()) };
        for span in read {
            let gap = division.read.last().map(|last| last.end..span.start);
            let between = |stored: &Stored| {
                let days = span_of(&stored.days);
                gap.as_ref().is_some_and(|gap| gap.start < days.end && days.start < gap.end)
            };
            let held: u64 =
                division.stored.iter().filter(|stored| between(stored)).flat_map(Stored::counts).map(|(_, n)| n).sum();
            match division.read.last_mut() {
                Some(last) if held < page => {
                    last.end = span.end;
                    division.stored.retain(|stored| !between(stored));
                }
                _ => division.read.push(span),
            }
        }
        division
    }

    /// Moves stored days to those that are read. `is_changed` selects them.
    #[must_use]
    pub(crate) fn without(self, span: &Range<i64>, is_changed: impl Fn(Day) -> bool) -> Self {
        let mut division = Self { stored: Vec::new(), read: Vec::new() };
        let mut read: Vec<Range<i64>> = self.read;
        for stored in self.stored {
            let mut begin = stored.days.start;
            let mut keep = |days: Range<Day>| {
                if !days.is_empty() {
                    division.stored.push(Stored { days, ..stored.clone() });
                }
            };
            for day in stored.days.clone().filter(|day| is_changed(*day)) {
                keep(begin..day);
                begin = day + 1;
                let changed = span_of(&(day..day + 1));
                read.push(changed.start.max(span.start)..changed.end.min(span.end));
            }
            keep(begin..stored.days.end);
        }
        read.sort_unstable_by_key(|span| span.start);
        for span in read {
            match division.read.last_mut() {
                Some(last) if last.end == span.start => last.end = span.end,
                _ => division.read.push(span),
            }
        }
        division
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(days: i64, hours: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(days * DAY + hours * 3_600_000_000).expect("an instant")
    }

    fn terms(freshness: i64) -> Terms {
        Terms {
            now: at(100, 12),
            settling: TimeDelta::hours(72),
            since: at(100, 12) - TimeDelta::hours(freshness),
            rescan: None,
        }
    }

    fn region(days: Range<Day>, as_of: DateTime<Utc>) -> (Filters, Arc<Region>) {
        let counts = vec![10; days.len()];
        let region =
            Region { id: None, days, counts, as_of, confirmed: as_of, sealed: false, rows: None, stamps: None };
        (Filters::default(), Arc::new(region))
    }

    #[test]
    fn settled_days_are_confirmed_open_ones_and_missing_ones_are_read() {
        // Read on day 100 at 06:00: days up to 96 had settled.
        let regions = [region(80..101, at(100, 6))];
        let span = span_of(&(70..101));
        let division = divide(&span, &Filters::default(), &regions, &terms(0));
        assert_eq!(division.to_confirm(), Some(80..97));
        assert_eq!(division.read, [span_of(&(70..80)), span_of(&(97..101))]);
        assert_eq!((division.stored_days(), division.read_days(), division.mentions()), (17, 14, 170));
        let fresh = divide(&span, &Filters::default(), &regions, &terms(7));
        assert_eq!((fresh.to_confirm(), fresh.read), (None, vec![span_of(&(70..80))]));
        let changed = division.without(&span, |day| day == 80 || day == 90);
        assert_eq!(changed.read, [span_of(&(70..81)), span_of(&(90..91)), span_of(&(97..101))]);
        assert_eq!(changed.stored.iter().map(|stored| stored.days.clone()).collect::<Vec<_>>(), [81..90, 91..97]);
    }

    #[test]
    fn a_clock_that_was_ahead_once_discards_no_day_that_was_read_before() {
        // Read on day 98 at 06:00: days up to 94 had settled. A confirmation came from a clock that was 30 days ahead.
        let (filters, read) = region(80..98, at(98, 6));
        let wrong = Region { confirmed: at(130, 0), sealed: true, ..read.as_ref().clone() };
        let span = span_of(&(80..98));
        for freshness in [0, 7] {
            let regions = [(filters.clone(), Arc::new(wrong.clone()))];
            let division = divide(&span, &Filters::default(), &regions, &terms(freshness));
            assert_eq!((division.to_confirm(), division.read), (Some(80..95), vec![span_of(&(95..98))]));
        }
        // What was read with such a clock has no known age.
        let unknown = Region { as_of: at(130, 0), ..wrong };
        let division = divide(&span, &filters, &[(filters.clone(), Arc::new(unknown))], &terms(0));
        assert_eq!((division.to_confirm(), division.read), (None, vec![span.clone()]));
    }

    #[test]
    fn a_region_serves_equal_and_narrower_filters() {
        let of = |values: &[&str]| {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            Filters([("language".to_owned(), values)].into())
        };
        let (_, stored) = region(80..90, at(100, 6));
        let regions = [(of(&["de", "en"]), stored)];
        let uses = |filters: &Filters| divide(&span_of(&(80..90)), filters, &regions, &terms(0)).stored_days() > 0;
        assert!(uses(&of(&["de"])) && uses(&of(&["de", "en"])));
        assert!(!uses(&of(&["de", "fr"])) && !uses(&Filters::default()));
    }

    #[test]
    fn without_a_timeline_settled_days_are_read_again_after_a_while() {
        let rescan = Terms { rescan: Some(TimeDelta::days(7)), ..terms(0) };
        let divided = |as_of| divide(&span_of(&(80..85)), &Filters::default(), &[region(80..85, as_of)], &rescan);
        assert!(divided(at(94, 0)).is_stored());
        assert_eq!(divided(at(93, 0)).stored_days(), 0);
    }

    #[test]
    fn few_mentions_are_not_worth_a_confirmation() {
        let regions = [region(80..90, at(100, 6))];
        let division = divide(&span_of(&(80..91)), &Filters::default(), &regions, &terms(0));
        assert!(division.saves_nothing(51, 1) && !division.saves_nothing(50, 1));
        let fresh = divide(&span_of(&(80..90)), &Filters::default(), &regions, &terms(7));
        assert!(fresh.is_stored() && !fresh.saves_nothing(1_000, 0));
    }

    proptest! {
        /// Conditions that agree on all regions divide a span in the same way.
        #[test]
        fn a_division_holds_while_the_conditions_agree(
            regions in prop::collection::vec((0..110_i32, 1..20_i32, 0..110_i64, any::<bool>()), 0..6),
            freshness in 0..72_i64, later in 0..72_i64, rescan in prop::option::of(1..30_i64),
        ) {
            let regions: Vec<_> = regions.into_iter().map(|(first, days, as_of, sealed)| {
                let (filters, mut region) = region(first..first + days, at(as_of, 0));
                Arc::make_mut(&mut region).sealed = sealed;
                (filters, region)
            }).collect();
            let one = Terms { rescan: rescan.map(TimeDelta::days), ..terms(freshness) };
            let more = TimeDelta::hours(later);
            let other = Terms { now: one.now + more, since: one.since + more, ..one };
            if regions.iter().all(|(_, region)| one.agree(&other, region)) {
                let divided = |terms: &Terms| divide(&span_of(&(0..120)), &Filters::default(), &regions, terms);
                prop_assert_eq!(divided(&one), divided(&other));
            }
            prop_assert!(regions.iter().all(|(_, region)| one.agree(&one, region)));
        }

        /// Every instant of the span is stored or read, never both, and nothing else is.
        #[test]
        fn a_division_has_every_instant_once(
            regions in prop::collection::vec((0..110_i32, 1..20_i32, 0..110_i64, any::<bool>()), 0..6),
            from in 0..100 * 24_i64, length in 1..40 * 24_i64, freshness in 0..72_i64, changed in 0..110_i32,
        ) {
            let regions: Vec<_> = regions.into_iter().map(|(first, days, as_of, sealed)| {
                let (filters, mut region) = region(first..first + days, at(as_of, 0));
                Arc::make_mut(&mut region).sealed = sealed;
                (filters, region)
            }).collect();
            let hour = DAY / 24;
            let span = from * hour..(from + length) * hour;
            let terms = terms(freshness);
            let division = divide(&span, &Filters::default(), &regions, &terms);
            let without = division.clone().without(&span, |day| day == changed);
            for division in [division.clone(), without.clone(), without.with_fewer_gaps(25)] {
                for instant in (span.start - DAY..span.end + DAY).step_by(usize::try_from(hour).expect("positive")) {
                    let stored = division.stored.iter().filter(|stored| stored.days.contains(&day_of(instant))).count();
                    let read = division.read.iter().filter(|read| read.contains(&instant)).count();
                    if span.contains(&instant) {
                        prop_assert_eq!(stored + read, 1, "{}", instant);
                    } else {
                        prop_assert_eq!(read, 0);
                    }
                }
                for stored in &division.stored {
                    for day in stored.days.clone() {
                        prop_assert!(stored.region.days.contains(&day));
                        prop_assert!(stored.fresh || stored.region.sealed || terms.had_settled(stored.region.as_of, day));
                    }
                }
                prop_assert!(division.read.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }
}
