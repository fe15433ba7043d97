//! Stored days of several plans, which are read together: each file is opened once, however many saved searches share it.
//!
//! ```text
//! all plans stored ─┬─ sorted by time ─▶ tiers of days, one after another until the limit is reached
//!                   └─ otherwise ──────▶ one scan of the files
//! some need requests ─▶ each plan requests what the store lacks ─▶ one scan of the files for the rest
//! ```

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

use async_stream::try_stream;
use datafusion::error::Result as DataFusionResult;
use futures::StreamExt;

use super::StoredPart;
use super::candidates::{subject_of, usable};
use crate::exec::stream::{Batches, Driver};
use crate::request::RequestPlan;
use crate::store::{Day, FromStore, Stored, divide};

/// Mentions of the first tier of days, if conditions may reject some of them.
const FIRST: u64 = 8_192;
/// Mentions of a tier, at most, unless a day has more.
const MOST: u64 = 131_072;

impl Driver {
    /// Returns the mentions of all plans if none needs a request, in the sort order of the scan.
    pub(in crate::exec) async fn all_stored(
        self: &Arc<Self>,
        plans: &[RequestPlan],
    ) -> DataFusionResult<Option<Batches>> {
        let Some(from) = usable(&self.config).cloned() else { return Ok(None) };
        let Some(parts) = self.stored_plans(&from, plans).await else { return Ok(None) };
        let caller = self.query.budget.caller.as_ref();
        let connection = &self.config.connection;
        for part in &parts {
            if let Some(caller) = caller {
                connection.note_conditions(caller, &subject_of(&part.plan).filters);
            }
            let days = part.stored.iter().map(|stored| stored.days.len() as u64).sum();
            let mentions: u64 = part.stored.iter().map(Stored::mentions).sum();
            let page = part.plan.pages.map_or(1, |pages| pages.size);
            from.store.counters().divided(days, 0, mentions.div_ceil(page));
        }
        let order = self.config.mode.order();
        let by_time = order.is_some_and(|order| self.config.spec.time.as_ref() == Some(&order.column));
        let limit = self.config.mode.slice().fetch;
        let tiers = match by_time {
            true => self.tiers(&parts, order.is_some_and(|order| order.options.descending)),
            false => vec![parts],
        };
        let driver = Arc::clone(self);
        let stream = try_stream! {
            let mut left = limit.unwrap_or(usize::MAX);
            for parts in tiers {
                let mut rows = driver.files(&from, parts)?;
                while left > 0 && let Some(batch) = rows.next().await {
                    let batch = batch?;
                    let batch = batch.slice(0, batch.num_rows().min(left));
                    left -= batch.num_rows();
                    yield batch;
                }
                if left == 0 {
                    break;
                }
            }
        };
        Ok(Some(stream.boxed()))
    }

    /// Returns the stored days of plans; `None` if one of them needs a request.
    async fn stored_plans(self: &Arc<Self>, from: &FromStore, plans: &[RequestPlan]) -> Option<Vec<StoredPart>> {
        if plans.is_empty() || plans.iter().any(|plan| plan.pages.is_none()) {
            return None;
        }
        let asked = plans.to_vec();
        let decided = move |driver: &Self| -> Option<Vec<_>> {
            let of = |plan| driver.decided(plan).filter(|decided| decided.division.is_stored());
            asked.iter().map(of).collect()
        };
        // An unknown or damaged store is noted where each plan is read.
        let decided = self.aside(decided).await.ok().flatten()?;
        let mut parts = Vec::with_capacity(plans.len());
        for (plan, decided) in plans.iter().zip(&decided) {
            let (regions, all) = self.sound(from, plan, decided).await;
            let division = match all {
                true => decided.division.clone(),
                false => divide(&decided.span, &decided.subject.filters, &regions, &decided.terms),
            };
            if decided.relative || !division.is_stored() {
                return None;
            }
            parts.push(StoredPart { plan: plan.clone(), stored: division.stored, span: decided.span.clone() });
        }
        for part in &parts {
            self.note_declared_later(from, &part.plan, &part.stored).await;
        }
        Some(parts)
    }

    /// Divides stored days into tiers that follow each other in time. The first has as many mentions as are wanted, if that is
    /// known.
    fn tiers(&self, parts: &[StoredPart], descending: bool) -> Vec<Vec<StoredPart>> {
        let mut counts: BTreeMap<Day, u64> = BTreeMap::new();
        for (day, count) in parts.iter().flat_map(|part| &part.stored).flat_map(Stored::counts) {
            *counts.entry(day).or_default() += count;
        }
        let wanted = self.config.mode.slice().fetch.or(self.config.mode.wanted()).map(|rows| rows as u64);
        let mut size = match wanted {
            Some(wanted) if self.config.has_conditions() => wanted.max(FIRST),
            Some(wanted) => wanted,
            None => MOST,
        };
        let mut days: Vec<(Day, u64)> = counts.into_iter().collect();
        if descending {
            days.reverse();
        }
        let mut tiers: Vec<Range<Day>> = Vec::new();
        let mut mentions = u64::MAX;
        for (day, count) in days {
            match tiers.last_mut().filter(|_| mentions < size) {
                Some(tier) => *tier = tier.start.min(day)..tier.end.max(day + 1),
                None => {
                    size = if tiers.is_empty() { size } else { size.saturating_mul(4).clamp(FIRST, MOST) };
                    tiers.push(day..day + 1);
                    mentions = 0;
                }
            }
            mentions += count;
        }
        tiers.into_iter().map(|days| parts.iter().map(|part| part.within(&days)).collect()).collect()
    }

    /// Returns the rows of stored days that [`segments`](Self::segments) has put aside.
    pub(in crate::exec) fn rows_together(self: &Arc<Self>) -> DataFusionResult<Batches> {
        let parts =
            self.together.get().map(|parts| std::mem::take(&mut *parts.lock().unwrap_or_else(PoisonError::into_inner)));
        match (usable(&self.config), parts) {
            (Some(from), Some(parts)) => self.files(from, parts),
            _ => Ok(futures::stream::empty().boxed()),
        }
    }
}

impl StoredPart {
    /// Returns the part of some days.
    fn within(&self, days: &Range<Day>) -> Self {
        let cut = |stored: &Stored| {
            let days = stored.days.start.max(days.start)..stored.days.end.min(days.end);
            (days.start < days.end).then(|| Stored { days, ..stored.clone() })
        };
        let stored = self.stored.iter().filter_map(cut).collect();
        Self { plan: self.plan.clone(), stored, span: self.span.clone() }
    }
}
