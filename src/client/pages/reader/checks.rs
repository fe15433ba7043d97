//! Numbers of a response that contradict its mentions, its window or each other. Each is checked as a page arrives.
//!
//! A response that passes may still lack mentions: that is for the proof at the end of a window to find. These checks find a service
//! that ignores a part of the request, also where the reader stops before an end.

use chrono::DateTime;

use super::super::page_policy::RowRange;
use super::super::{Page, PageDecoder, PageFacts, Prefetch};
use super::{PageAnswer, PageReader};
use crate::client::evidence;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Direction, Zone};
use crate::request::Beside;

impl<D: PageDecoder> PageReader<D> {
    /// Checks that the window that the service reports covers the requested period.
    pub(super) fn check_window(&mut self, range: RowRange, facts: &PageFacts) -> Result<()> {
        let exceeds = facts.echo.check_mentions(self.client.clocks());
        let exceeds = exceeds.map_err(|error| error.at(self.place(range)))?;
        self.window.exceeded |= exceeds;
        self.history.exceeded |= exceeds;
        Ok(())
    }

    /// Checks that a response to a relative period has no mentions, and counts none, from well before it: the service ignores the
    /// period. If the service reports the window of its response, that is checked instead.
    pub(super) fn check_period(&self, range: RowRange, answer: &PageAnswer<D::Page>) -> Result<()> {
        let words = self.plan.duration.as_deref().filter(|_| self.window.instants.is_none());
        let earliest =
            words.filter(|_| answer.facts.echo.window().is_none()).and_then(|words| self.client.earliest(words));
        let counted = answer.facts.counted_days.and_then(|days| days.first_end);
        let mut found = answer.page.times().into_iter().flatten().copied().chain(counted);
        let before = earliest.and_then(|earliest| found.find(|at| *at < earliest));
        let (Some(words), Some(at)) = (words, before) else { return Ok(()) };
        let at = DateTime::from_timestamp_micros(at).unwrap_or_default();
        let message = format!("the response has or counts mentions of {at}, but `{words}` was requested");
        Err(Error::new(ErrorKind::Contradiction, message)
            .advice("the service ignores the period: check [window] in the profile")
            .at(self.place(range)))
    }

    /// True if the first rows of a sort order are wanted, and no proof at the end judges the others.
    fn wants_first(&self) -> bool {
        let ordered = self.sort.is_some() && self.plan.pages.is_some_and(|pages| pages.ordered);
        ordered && (self.prefetch == Prefetch::OnDemand || self.plan.pages.is_some_and(|pages| pages.fetch.is_some()))
    }

    /// Checks that the first rows of a sort order are not those of a part of the mentions, by the numbers of their response: overview
    /// and timeline do not both count more than its total, and no day of the timeline is outside of the window.
    pub(super) fn check_beside_first(&self, range: RowRange, facts: PageFacts) -> Result<()> {
        if !self.wants_first() {
            return Ok(());
        }
        let both = facts.total.and_then(|total| Some((total, facts.beside.both_above(total)?)));
        if let Some((total, count)) = both {
            let message = format!(
                "the total of the response is {total}, but its overview and timeline both count {count}: its first mentions may be \
                 those of a part"
            );
            return Err(Error::new(ErrorKind::Contradiction, message).advice(evidence::WHICH).at(self.place(range)));
        }
        // A response may cover more than the window, and report it.
        let told = facts.echo.window().map(|(from, to)| (from.timestamp_micros(), to.timestamp_micros()));
        let asked = self.window.wider.or(self.window.instants);
        let window = match (asked, told) {
            (Some((from, to)), Some((first, last))) => Some((from.min(first), to.max(last))),
            (asked, told) => asked.or(told),
        };
        let (Some(days), Some((from, to))) = (facts.counted_days, window) else { return Ok(()) };
        let zones = self.slack_of_days(days.instants, from);
        let before = days.first_end.filter(|end| *end <= from.saturating_sub(zones)).map(|end| (end, "before"));
        // A window may include its end.
        let after = Some(days.last_start).filter(|start| *start > to.saturating_add(zones)).map(|at| (at, "from"));
        let Some((at, side)) = before.or(after) else { return Ok(()) };
        let instant = |at: i64| DateTime::from_timestamp_micros(at).unwrap_or_default();
        let message = format!(
            "the timeline counts mentions {side} {}, but the window is from {} to {}: the first mentions may be those of another one",
            instant(at),
            instant(from),
            instant(to)
        );
        Err(Error::new(ErrorKind::Contradiction, message)
            .advice(
                "the service uses another window than requested, or its timeline has other buckets: check [window] and \
                 tables.volume in the profile, or set days = false in [counts]",
            )
            .at(self.place(range)))
    }

    /// Microseconds by which the labels of days may differ from the instants at which these begin. `instants`: set if the labels have
    /// a zone.
    fn slack_of_days(&self, instants: bool, at: i64) -> i64 {
        // Labels without a zone may be those of any, and others may be local times that are written as UTC.
        let at = DateTime::from_timestamp_micros(at).unwrap_or_default();
        let slack = if instants { (self.zone.local(at) - at.naive_utc()).abs() } else { Zone::FARTHEST };
        slack.num_microseconds().unwrap_or_default()
    }

    /// Checks that the first of mentions sorted by time is of the day with which the timeline of its response begins or ends. A
    /// service that sorts each page alone would return any mentions as the first ones.
    pub(super) fn check_first(&self, range: RowRange, answer: &PageAnswer<D::Page>) -> Result<()> {
        let PageFacts { total, beside: Beside { overview, timeline, .. }, counted_days, .. } = answer.facts;
        // Numbers that differ count other mentions, and a timeline alone may ignore the filters.
        let mut counts = [total, overview].into_iter().flatten().peekable();
        let alone = counts.peek().is_none() && !self.plan.filters.is_empty();
        let agrees = !alone && counts.clone().all(|count| Some(count) == timeline);
        // Without filters, a timeline that counts more has mentions that the pages may lack.
        let more = self.plan.filters.is_empty() && self.wants_first() && counts.all(|count| Some(count) < timeline);
        let (Some(order), Some(days), true) = (self.order, counted_days, (agrees || more) && range.row == 0) else {
            return Ok(());
        };
        let Some(first) = answer.page.times().and_then(<[i64]>::first).copied() else { return Ok(()) };
        // All mentions are compared with the counts at their end.
        let early = self.prefetch == Prefetch::OnDemand || self.plan.pages.is_some_and(|pages| pages.fetch.is_some());
        let zones = self.slack_of_days(days.instants && early, first);
        let missed = match order {
            Direction::Desc => Some(days.last_start).filter(|start| first < start.saturating_sub(zones)),
            Direction::Asc => days.first_end.filter(|end| first >= end.saturating_add(zones)),
        };
        let Some(missed) = missed else { return Ok(()) };
        let instant = |at: i64| DateTime::from_timestamp_micros(at).unwrap_or_default();
        let side = if order == Direction::Desc { "after" } else { "before" };
        let (first, missed) = (instant(first), instant(missed));
        let message = format!("the first mention is of {first}, but the timeline counts mentions {side} {missed}");
        Err(Error::new(ErrorKind::Contradiction, message)
            .advice(
                "the service does not sort all mentions by time, or its timeline has other buckets: check [sort] and \
                     tables.volume in the profile",
            )
            .at(self.place(range)))
    }

    /// Checks that a response contains no mentions outside the requested period. A service that ignores the period would
    /// return others instead, or those of one period for several.
    pub(super) fn check_times(&self, range: RowRange, page: &D::Page) -> Result<()> {
        let mut outside = Page::times(page).into_iter().flatten().filter(|at| !self.window.may_have(**at));
        outside.next().map_or(Ok(()), |at| Err(self.outside(range, *at)))
    }

    pub(super) fn outside(&self, range: RowRange, at: i64) -> Error {
        let shift = self.window.wider.or(self.window.instants).map(|(from, to)| {
            let (distance, side) = if at < from { (from - at, "before its start") } else { (at - to, "after its end") };
            let (instant, minutes) = (DateTime::from_timestamp_micros(at).unwrap_or_default(), distance / 60_000_000);
            format!(", such as one of {instant}, {} h {} min {side}", minutes / 60, minutes % 60)
        });
        let message = "the response contains mentions outside the requested period";
        Error::new(ErrorKind::Contradiction, format!("{message}{}", shift.unwrap_or_default()))
            .advice(
                "the service ignores the period or interprets it differently: check the profile's [window], and `zone` of the \
                 column if its times have no zone",
            )
            .at(self.place(range))
    }
}

/// Says why mentions before the requested row may be hidden: the total does not reach it, and another count of the response does.
pub(super) fn hidden_behind(skip: u64, facts: PageFacts) -> Option<String> {
    let total = facts.total.filter(|total| facts.rows == 0 && *total <= skip)?;
    let (count, name) = facts.beside.above(total).filter(|(count, _)| *count > skip)?;
    Some(format!(
        "the total is {total}, but the {name} of the same response counts {count}, and row {skip} was requested"
    ))
}

/// Checks that a response has no mentions behind its total.
pub(super) fn check_offset(skip: u64, range: RowRange, facts: PageFacts) -> Result<()> {
    let Some(total) = facts.total.filter(|total| skip > 0 && facts.rows > 0 && range.row + facts.rows > *total) else {
        return Ok(());
    };
    let message =
        format!("the total is {total}, but a response to a request for mentions from row {skip} on has {}", facts.rows);
    Err(Error::new(ErrorKind::Contradiction, message).advice(
        "the service ignores, rounds or limits the offset: check [offset], its `aligned`, [depth] and [total] in the profile",
    ))
}
