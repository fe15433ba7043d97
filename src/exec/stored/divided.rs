//! Division of a plan between the store and the service.
//!
//! ```text
//! all days stored and fresh ──────────────────────────▶ files
//! a relative period ─ a timeline, which resolves it ─┬─▶ files of days whose counts agree, requests for all others
//! other windows ─ timelines, or the end of the span ─┘
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::candidates::{Decided, Timelines, can_confirm, direct, is_limited, subject_of};
use super::tail::{Received, Tail};
use super::timeline::{DailyCounts, Expected, Timeline, is_refused};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::stand_ins::{Proved, Unproved, WindowTotal};
use crate::exec::stream::Driver;
use crate::request::RequestPlan;
use crate::store::{Division, Filters, FromStore, Region, Regions, Terms, divide, divide_for_timeline, span_of};

/// A plan divided between the store and the service.
pub(super) struct Divided {
    pub(super) division: Division,
    /// The instants that belong to the window, in microseconds since 1970.
    pub(super) span: Range<i64>,
    /// The daily counts of the service, as far as they are known.
    pub(super) timeline: DailyCounts,
    /// Number of requests for these counts.
    pub(super) confirming: u64,
    /// The mentions at the end of the span, if they were received with the daily counts.
    pub(super) tail: Option<Tail>,
}

/// A plan with stored days that the service's daily counts have to confirm.
struct Unconfirmed<'c> {
    from: &'c FromStore,
    plan: &'c RequestPlan,
    decided: &'c Decided,
    /// Regions whose files are complete.
    regions: &'c Regions,
    division: Division,
    /// The filters of the days that the counts confirm.
    confirmed_by: Filters,
    timelines: Timelines,
}

impl Divided {
    /// A plan whose daily counts are not known.
    fn of(division: Division, span: Range<i64>) -> Self {
        Self { division, span, timeline: DailyCounts::default(), confirming: 0, tail: None }
    }

    /// A plan of which nothing comes from the store, after this number of requests for daily counts.
    fn unstored(span: Range<i64>, confirming: u64) -> Self {
        let division = Division { stored: Vec::new(), read: vec![span.clone()] };
        Self { confirming, ..Self::of(division, span) }
    }
}

impl Driver {
    /// Divides a plan like [`divided`](Self::divided), after reads of its days by other queries have ended.
    pub(super) async fn divided_alone(
        self: &Arc<Self>,
        from: &FromStore,
        plan: &RequestPlan,
    ) -> Result<Option<Divided>> {
        // A query with a limit may need less than what others read.
        if !from.writes || is_limited(&self.config) {
            return self.divided(from, plan).await;
        }
        let (in_flight, deadline) = (from.store.in_flight(), self.query.budget.deadline);
        let asked = plan.clone();
        if let Some(missing) = self.aside(move |driver| driver.missing(&asked)).await? {
            in_flight.wait(&subject_of(plan), &missing, &self.config.query, deadline).await;
        }
        let divided = self.divided(from, plan).await?;
        if let Some(Divided { division, tail: None, .. }) = &divided
            && in_flight.wait(&subject_of(plan), &division.read, &self.config.query, deadline).await
        {
            // Now the store has them.
            return self.divided(from, plan).await;
        }
        Ok(divided)
    }

    /// Divides a plan. `None` if it is requested as it is, because that takes no more requests, and nothing is stored.
    async fn divided(self: &Arc<Self>, from: &FromStore, plan: &RequestPlan) -> Result<Option<Divided>> {
        let (store, asked) = (from.clone(), plan.clone());
        let decided = match self.aside(move |driver| driver.divisions.of(&driver.config, &store, &asked)).await? {
            Ok(Some(decided)) => decided,
            Ok(None) => return Ok(None),
            Err(error) => {
                self.note(plan, &error);
                return Ok(None);
            }
        };
        let (regions, all) = self.sound(from, plan, &decided).await;
        let (division, confirmed_by) = match all {
            true => (decided.division.clone(), decided.confirmed_by.clone()),
            false => divide_for_timeline(&decided.span, &decided.subject.filters, &regions, &decided.terms),
        };
        if division.is_stored() {
            return Ok(Some(Divided::of(division, decided.span.clone())));
        }
        let (store, asked, relative) = (from.clone(), plan.clone(), decided.relative);
        let answered = move |driver: &Self| {
            let timelines = Timelines::of(&driver.config, &store, &asked, &division, &confirmed_by, relative);
            (division, confirmed_by, timelines)
        };
        let (division, confirmed_by, timelines) = self.aside(answered).await?;
        let timelines = timelines?;
        let (regions, decided) = (&regions, decided.as_ref());
        let unconfirmed = Unconfirmed { from, plan, decided, regions, division, confirmed_by, timelines };
        match decided.relative {
            true => self.divided_by_period(unconfirmed).await,
            false => self.divided_by_days(unconfirmed).await,
        }
    }

    /// Divides a relative period, which the service resolves.
    async fn divided_by_period(&self, unconfirmed: Unconfirmed<'_>) -> Result<Option<Divided>> {
        let Unconfirmed { from, plan, decided, regions, division, confirmed_by, timelines } = unconfirmed;
        let (filters, terms, confirming) = (&decided.subject.filters, decided.terms, timelines.requests());
        let invests = from.invests() && !is_limited(&self.config);
        let is_direct = direct(&self.config, plan, &division, confirming);
        if !can_confirm(self.config.connection.profile()) || (is_direct && !invests) {
            return Ok(None);
        }
        let words = plan.duration.as_deref().unwrap_or_default();
        let timeline = match self.timeline(plan, &confirmed_by, words).await {
            Err(error) if is_refused(error.kind()) => {
                self.note(plan, &error);
                None
            }
            timeline => timeline?.ok(),
        };
        let Some(Timeline { window: Some(span), counts, as_of, shown }) = timeline else { return Ok(None) };
        let (division, by) = divide_for_timeline(&span, filters, regions, &terms);
        if by != confirmed_by && division.to_confirm().is_some() {
            return Ok(None);
        }
        let expected = Expected { asked: span.clone(), counts, as_of, filters: confirmed_by, shown };
        let timeline = expected.whole(filters);
        let division = self.confirmed(from, terms, plan, division, &span, expected).await;
        Ok(Some(Divided { timeline, confirming, ..Divided::of(division, span) }))
    }

    /// Divides a window whose instants are known.
    async fn divided_by_days(self: &Arc<Self>, unconfirmed: Unconfirmed<'_>) -> Result<Option<Divided>> {
        let Unconfirmed { from, plan, decided, regions, mut division, confirmed_by, timelines } = unconfirmed;
        let (filters, terms, confirming) = (&decided.subject.filters, decided.terms, timelines.requests());
        let span = decided.span.clone();
        // Days are stored completely.
        let tail = match confirming > 0 {
            true => self.tail_request(from, plan, &division, &confirmed_by, &decided.subject, regions),
            false => None,
        };
        // What reads the tail confirms as well.
        let apart = confirming - u64::from(tail.is_some());
        if direct(&self.config, plan, &division, apart) {
            // Everything is read, and kept.
            return Ok((from.writes && !is_limited(&self.config)).then(|| Divided::unstored(span, 0)));
        }
        let Some(days) = division.to_confirm() else {
            return Ok(Some(Divided { confirming, ..Divided::of(division, span) }));
        };
        let Received { tail, timeline: received } = match tail {
            Some(request) => self.read_tail(from, plan, request).await?,
            None => Received::default(),
        };
        let counts = match received {
            Some(timeline) => vec![Ok(timeline)],
            None => match self.timelines(plan, &confirmed_by, &timelines.windows).await? {
                Some(counts) => counts,
                None => return Ok(Some(Divided::unstored(span, confirming))),
            },
        };
        let asked = span_of(&days);
        let contradiction = contradiction(&counts, &division, &confirmed_by, &asked);
        let expected = match Expected::of(asked, confirmed_by, counts) {
            Ok(expected) => expected,
            Err(_) if let Some(what) = contradiction => {
                let message = format!("the daily counts of the service {what}: reading them");
                let error = Error::new(ErrorKind::Contradiction, message);
                self.note(
                    plan,
                    &error.advice("set trust = \"advisory\" in [counts] of the profile if they always differ"),
                );
                return Ok(Some(Divided::unstored(span, confirming)));
            }
            Err(_) => {
                let proved = |(of, region): &(Filters, Arc<Region>)| {
                    of == filters && (region.sealed || region.confirmed > region.as_of)
                };
                if regions.iter().any(proved) {
                    // They did before: this response alone says nothing about the stored days.
                    return Ok(Some(Divided::unstored(span, confirming)));
                }
                // The counts prove nothing, and are not expected to soon.
                self.distrust(from, &decided.subject, plan).await;
                let rescan = self.config.connection.profile().store.rescan.length();
                let division = divide(&span, filters, regions, &Terms { rescan: Some(rescan), ..terms });
                return Ok(Some(Divided { confirming, ..Divided::of(division, span) }));
            }
        };
        let timeline = expected.whole(filters);
        let tail = tail.filter(|tail| tail.is_last_of(&mut division));
        let division = self.confirmed(from, terms, plan, division, &span, expected).await;
        Ok(Some(Divided { timeline, confirming, tail, ..Divided::of(division, span) }))
    }

    /// Requests the daily counts of windows, up to the first one whose response proves none. `None` if the service refuses one of
    /// them: it may answer the next query, and says nothing about the stored days.
    async fn timelines(
        &self,
        plan: &RequestPlan,
        filters: &Filters,
        windows: &[String],
    ) -> Result<Option<Vec<Proved<Timeline>>>> {
        let mut counts = Vec::with_capacity(windows.len());
        for words in windows {
            let timeline = match self.timeline(plan, filters, words).await {
                Ok(timeline) => timeline,
                Err(error) if is_refused(error.kind()) => {
                    self.note(plan, &error);
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            let proves = timeline.is_ok();
            counts.push(timeline);
            if !proves {
                break;
            }
        }
        Ok(Some(counts))
    }
}

/// Says how the last daily counts differ from the other numbers of their response, or from the stored days; `None` if they do not.
fn contradiction(
    counts: &[Proved<Timeline>],
    division: &Division,
    confirmed_by: &Filters,
    asked: &Range<i64>,
) -> Option<String> {
    match counts.last() {
        Some(Err(Unproved::Contradictory)) => Some("differ from its total and confirm no stored days".to_owned()),
        Some(Err(Unproved::NoCounts(Some(WindowTotal { total, from, to })))) => {
            // All days of the window are stored.
            let of_days = division.read.is_empty() && division.stored.iter().all(|part| part.filters == *confirmed_by);
            let same = *asked == (from.timestamp_micros()..to.timestamp_micros());
            let stored = division.mentions();
            (of_days && same && *total != stored)
                .then(|| format!("are missing, and its total of {total} is not that of the stored days, {stored}"))
        }
        _ => None,
    }
}
