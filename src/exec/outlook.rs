//! Cost of the saved searches of a scan that have not been read yet, estimated once the first pages show how many mentions
//! there are.
//!
//! ```text
//! first page of a plan ─ others as remembered, or alike ─ within the budget ─▶ go on
//!                                    └ beyond it ─▶ first pages of the others, the largest first ─ too many ─▶ refused
//!                                                        └ they are kept for their plans ─▶ go on
//! ```
//!
//! With a store, a plan is estimated only if nothing of it is stored and its windows are known; for other plans, it is not known how
//! much is missing. A store requests whole days, so that the first window of a plan is not always that of the query.
//!
//! Invariant: no request is sent twice, nor one that the scan does not need, unless it is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::Mutex;

use super::stream::Driver;
use crate::client::Held;
use crate::decode::Decoded;
use crate::error::Result;
use crate::request::{PageRequest, RequestPlan};

/// Plans of a scan that are read completely.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    plans: Vec<Waiting>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct Waiting {
    /// The plan of its first request.
    first: RequestPlan,
    /// Set once the plan is being read: its requests then count as required. Locked while its first page is requested for the estimate.
    begun: Mutex<bool>,
    /// Requests for its mentions behind the first page, if that is known.
    further: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Plans that are being read and whose first pages have arrived, and their further requests.
    known: u64,
    further: u64,
    /// Set once the first pages of all plans were requested.
    complete: bool,
    /// Memory of the kept pages.
    memory: Vec<Held>,
}

impl Outlook {
    /// The outlook on plans with these first requests.
    pub(super) fn new(firsts: impl Iterator<Item = RequestPlan>) -> Self {
        let waiting = |first| Waiting { first, begun: Mutex::default(), further: AtomicU64::new(0) };
        Self { plans: firsts.map(waiting).collect(), state: Mutex::default() }
    }

    /// Records that a plan is being read, once its first page is not being requested for the estimate.
    pub(super) async fn begin(&self, plan: &RequestPlan) {
        let is_it = |first: &RequestPlan| {
            (&first.aid, &first.duration, &first.filters) == (&plan.aid, &plan.duration, &plan.filters)
        };
        if let Some(waiting) = self.plans.iter().find(|waiting| is_it(&waiting.first)) {
            *waiting.begun.lock().await = true;
        }
    }

    /// The plans that are not being read.
    fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        // One that is locked begins now.
        self.plans.iter().filter(|waiting| waiting.begun.try_lock().is_ok_and(|begun| !*begun))
    }
}

impl Driver {
    /// Refuses the scan if the first page of a plan, together with those of the others, shows that it exceeds the query's budget.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`](crate::error::ErrorKind::Budget), naming the requests needed.
    pub(super) async fn look_ahead(&self, first: &Decoded) -> Result<()> {
        let Some(outlook) = self.outlook.get() else { return Ok(()) };
        let mut state = outlook.state.lock().await;
        let size = self.config.plan.template.pages.map_or(1, |pages| pages.size);
        let Some(further) = further_of(first, size) else { return Ok(()) };
        (state.known, state.further) = (state.known + 1, state.further + further);
        // The first request of each plan counts as required, and the further ones of each that was begun.
        let query = &self.scan.query;
        let needs = |more: u64| query.allow(query.required().saturating_add(more));
        let expected = || outlook.waiting().map(|waiting| waiting.further.load(Ordering::Relaxed)).sum::<u64>();
        if state.complete {
            return needs(expected());
        }
        let alike = state.further.div_ceil(state.known);
        let client = self.config.connection.client();
        // A remembered total may be outdated: it decides what is asked first, and what is refused is known.
        let guess = |waiting: &Waiting| {
            let total = client.expected_total(waiting.first.clone());
            total.map_or(alike, |total| requests_for(total.saturating_sub(size), size))
        };
        let mut guessed: Vec<(u64, &Waiting)> = outlook.waiting().map(|waiting| (guess(waiting), waiting)).collect();
        if needs(guessed.iter().map(|(further, _)| further).sum()).is_ok() {
            return Ok(());
        }
        guessed.sort_by_key(|(further, _)| std::cmp::Reverse(*further));
        for (_, waiting) in guessed {
            let begun = waiting.begun.lock().await;
            // Other plans are read while this one waits for responses.
            if *begun {
                continue;
            }
            let request = PageRequest { size, ..PageRequest::first(Arc::new(waiting.first.clone())) };
            let decode = |body: &Bytes| {
                let page = self.converter.decoder.decode(&request, body)?;
                let rows = page.records;
                Ok(((page, body.clone()), rows))
            };
            // What is wrong with a plan is reported when it is read.
            let Ok((page, body)) = client.fetch(&self.scan, &request, decode).await else { continue };
            waiting.further.store(further_of(&page, size).unwrap_or_default(), Ordering::Relaxed);
            state.memory.push(self.scan.hold(body.len())?);
            self.scan.keep(request.key(self.config.connection.profile()), body);
            drop(begun);
            needs(expected())?;
        }
        state.complete = true;
        Ok(())
    }
}

/// Requests for the mentions behind a first page of this size; `None` without a total.
fn further_of(page: &Decoded, size: u64) -> Option<u64> {
    Some(requests_for(page.total?.saturating_sub(page.records), size))
}

/// Requests for this many mentions behind a page of this size.
pub(super) fn requests_for(mentions: u64, size: u64) -> u64 {
    mentions.div_ceil(if size > 4 { size - 1 } else { size.max(1) })
}
