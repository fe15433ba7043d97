//! The end of a span, read together with the daily counts that confirm the days before it: a response with the newest mentions
//! of a window has the overview of the whole window.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{SortOptions, take_record_batch};
use chrono::DateTime;
use futures::StreamExt;

use super::candidates::is_limited;
use super::timeline::{Timeline, is_refused};
use crate::client::Prefetch;
use crate::error::{Error, ErrorKind, Result, own_or_query};
use crate::exec::answer::Answer;
use crate::exec::read_options::ReadOptions;
use crate::exec::scan_config::ScanConfig;
use crate::exec::stream::Driver;
use crate::profile::Zone;
use crate::pushdown::{ServiceOrder, service_order, windows_between};
use crate::request::{Pages, RequestPlan};
use crate::store::{Day, Division, Filters, FromStore, Regions, Subject, day_of, start_of};

/// Mentions at the end of a span, received with the daily counts of all of it.
pub(super) struct Tail {
    /// First instant, in microseconds since 1970.
    pub(super) start: i64,
    /// Rows of the output, in the sort order of the scan, if it has one.
    pub(super) rows: Vec<RecordBatch>,
}

impl Tail {
    /// Takes the last range of a division to read, if it is the one of these mentions.
    pub(super) fn is_last_of(&self, division: &mut Division) -> bool {
        division.read.pop_if(|read| read.start == self.start).is_some()
    }
}

/// Result of a request for the end of a span.
#[derive(Default)]
pub(super) struct Received {
    pub(super) tail: Option<Tail>,
    /// The daily counts of the span, if the response proves them.
    pub(super) timeline: Option<Timeline>,
}

/// Returns a batch in the opposite order.
pub(super) fn reversed(batch: &RecordBatch) -> Result<RecordBatch> {
    let rows = u32::try_from(batch.num_rows()).unwrap_or(u32::MAX);
    let order = UInt32Array::from_iter_values((0..rows).rev());
    take_record_batch(batch, &order).map_err(|error| Error::new(ErrorKind::Query, error.to_string()))
}

/// A request for the end of a span, newest first, whose response has the daily counts of all of it.
pub(super) struct TailRequest {
    /// Window to request.
    pub(super) words: String,
    pub(super) order: ServiceOrder,
    /// The instants to read, in microseconds since 1970.
    pub(super) instants: Range<i64>,
}

impl Driver {
    /// Returns the request that reads the end of a span together with the daily counts that confirm the days before it; `None`
    /// if one page is not expected to be enough.
    pub(super) fn tail_request(
        &self,
        from: &FromStore,
        plan: &RequestPlan,
        division: &Division,
        confirmed_by: &Filters,
        subject: &Subject,
        regions: &Regions,
    ) -> Option<TailRequest> {
        let ScanConfig { connection, spec, mode, .. } = self.config.as_ref();
        let profile = connection.profile();
        let confirms = division.to_confirm()?;
        let (instants, page) = (division.read.last()?.clone(), plan.pages?.size);
        // Without ids, a mention that moves between pages is not noticed.
        let (time, _) = (spec.time.as_ref()?, spec.id.as_ref()?);
        let newest_first = SortOptions { descending: true, nulls_first: false };
        let order = service_order(profile, time, newest_first)?;
        let follows = instants.start == start_of(division.stored.last()?.days.end);
        let by_time = mode.order().is_none_or(|order| order.column == *time);
        let same = confirmed_by == &subject.filters && plan.timezone == profile.timezone.words_of(Zone::UTC);
        if is_limited(&self.config) || !follows || !by_time || !same {
            return None;
        }
        let (stored, days) = (division.mentions(), division.stored_days());
        let known = |day: Day| {
            let same = regions.iter().filter(|(filters, _)| *filters == subject.filters);
            same.filter_map(|(_, region)| region.count_of(day)).max()
        };
        let expected: u64 =
            self.days_to_store(&instants).map(|day| known(day).unwrap_or(stored.div_ceil(days.max(1)))).sum();
        let reached = profile.depth.rows.is_none_or(|depth| stored + expected <= depth);
        if expected >= page || !reached {
            return None;
        }
        let end = match self.fills(from) {
            true => instants.end.max(start_of(self.days_to_store(&instants).end)),
            false => instants.end,
        };
        let windows = windows_between(&profile.window, start_of(confirms.start)..end, Zone::UTC).ok()?;
        let [(words, _)] = <[_; 1]>::try_from(windows).ok()?;
        Some(TailRequest { words, order, instants })
    }

    /// Reads the end of a span, newest first. Nothing is received if the service refuses this.
    pub(super) async fn read_tail(
        self: &Arc<Self>,
        from: &FromStore,
        plan: &RequestPlan,
        request: TailRequest,
    ) -> Result<Received> {
        let TailRequest { words, order, instants } = request;
        let until = DateTime::from_timestamp_micros(instants.start).map(|since| (order.clone(), since));
        let fill = self.fill(from, plan, &instants, &Arc::default());
        let first = Arc::new(OnceLock::new());
        let label = plan.named_window().map(str::to_owned);
        let start = instants.start;
        // Rows end there, although more is requested.
        let open = self.ends_open(plan).then_some(instants.end);
        let first_response = Some(Arc::clone(&first));
        let read = ReadOptions {
            within: Some(instants),
            label,
            fill: fill.clone(),
            until,
            first: first_response,
            ..ReadOptions::default()
        };
        let asked = RequestPlan {
            duration: Some(words),
            sort: Some(order.value),
            pages: plan.pages.map(|pages| Pages { ordered: true, ..pages }),
            ..plan.clone()
        };
        let mut pages = Arc::clone(self).window(asked, read, open, Prefetch::OnDemand);
        let mut rows = Vec::new();
        while let Some(batch) = pages.next().await {
            match batch {
                Ok(batch) => rows.push(batch),
                Err(error) => {
                    let error = own_or_query(&error);
                    // Pages that have to be in order prove less than those that need not.
                    if !is_refused(error.kind()) && !matches!(error.kind(), ErrorKind::Incomplete | ErrorKind::TooDeep)
                    {
                        return Err(error);
                    }
                    self.note(plan, &error);
                    return Ok(Received::default());
                }
            }
        }
        drop(pages);
        let as_of = self.query.begun + self.config.connection.client().ahead();
        let timeline = match first.get().map(|answer| self.timeline_in(answer, as_of)) {
            Some(Err(error)) if is_refused(error.kind()) => None,
            Some(timeline) => timeline?.ok(),
            None => None,
        };
        // The reading ended at the stored days without a proof, so the counts of the same response have to prove it.
        let counted = match (&timeline, first.get()) {
            (Some(timeline), Some(answer)) => counts_tail(timeline, answer, start)?,
            _ => false,
        };
        if !counted {
            return Ok(Received::default());
        }
        if let Some(fill) = fill {
            self.commit(fill, plan).await;
        }
        if self.config.mode.order().is_some_and(|order| !order.options.descending) {
            rows = rows.iter().rev().map(reversed).collect::<Result<_>>()?;
        }
        Ok(Received { tail: Some(Tail { start, rows }), timeline })
    }
}

/// True if the first page has as many mentions of each day from an instant on as the timeline of its response counts. If it does not
/// reach back to that instant, the pages after it have to link, and nothing is compared.
fn counts_tail(timeline: &Timeline, answer: &Answer, start: i64) -> Result<bool> {
    let Some(page) = answer.page().transpose()? else { return Ok(false) };
    let (Some(ids), Some(times)) = (&page.ids, &page.times) else { return Ok(false) };
    if page.records >= answer.request.size && times.iter().all(|time| *time >= start) {
        return Ok(true);
    }
    let mut counts: HashMap<Day, HashSet<u64>> = HashMap::new();
    for (time, id) in times.iter().zip(ids).filter(|(time, _)| **time >= start) {
        counts.entry(day_of(*time)).or_default().insert(*id);
    }
    let first = day_of(start);
    let expected = timeline.counts.iter().filter(|(day, count)| **day >= first && **count > 0);
    let expected: HashMap<Day, u64> = expected.map(|(day, count)| (*day, *count)).collect();
    Ok(counts.into_iter().map(|(day, ids)| (day, ids.len() as u64)).collect::<HashMap<_, _>>() == expected)
}
