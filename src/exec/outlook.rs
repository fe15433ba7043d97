//! Cost of the saved searches of a scan that have not been read yet, estimated once the first pages show how many mentions
//! there are.
//!
//! ```text
//! first page of a plan ─ others as remembered, or alike ─ within the budget ─▶ go on
//!                                    └ beyond it ─▶ first pages of the others, the largest first ─ too many ─▶ refused
//!                                                        └ they are kept for their plans ─▶ go on
//! ```
//!
//! With a store, a plan is estimated only if nothing of it is stored; for other plans, it is not known how much is missing.
//!
//! Invariant: no request is sent that the scan does not need, unless it is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
    plan: RequestPlan,
    /// Set once the plan is being read, which announces its requests.
    begun: AtomicBool,
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
    pub(super) fn new(plans: &[RequestPlan]) -> Self {
        let waiting = |plan: &RequestPlan| Waiting {
            plan: plan.clone(),
            begun: AtomicBool::new(false),
            further: AtomicU64::new(0),
        };
        Self { plans: plans.iter().map(waiting).collect(), state: Mutex::default() }
    }

    /// Records that a plan is being read. `window`: its own, if another one is requested.
    pub(super) fn begin(&self, plan: &RequestPlan, window: Option<&String>) {
        let window = window.or(plan.duration.as_ref());
        let is_it = |known: &RequestPlan| {
            (&known.aid, known.duration.as_ref(), &known.filters) == (&plan.aid, window, &plan.filters)
        };
        if let Some(waiting) = self.plans.iter().find(|waiting| is_it(&waiting.plan)) {
            waiting.begun.store(true, Ordering::Relaxed);
        }
    }

    fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.plans.iter().filter(|waiting| !waiting.begun.load(Ordering::Relaxed))
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
        // Each plan has announced its first request, and each that was begun the further ones.
        let query = &self.scan.query;
        let needs = |more: u64| query.allow(query.announced().saturating_add(more));
        let expected = || outlook.waiting().map(|waiting| waiting.further.load(Ordering::Relaxed)).sum::<u64>();
        if state.complete {
            return needs(expected());
        }
        let alike = state.further.div_ceil(state.known);
        let client = self.config.connection.client();
        // A remembered total may be outdated: it decides what is asked first, and what is refused is known.
        let guess = |waiting: &Waiting| {
            let total = client.expected_total(waiting.plan.clone());
            total.map_or(alike, |total| requests_for(total.saturating_sub(size), size))
        };
        let mut guessed: Vec<(u64, &Waiting)> = outlook.waiting().map(|waiting| (guess(waiting), waiting)).collect();
        if needs(guessed.iter().map(|(further, _)| further).sum()).is_ok() {
            return Ok(());
        }
        guessed.sort_by_key(|(further, _)| std::cmp::Reverse(*further));
        for (_, waiting) in guessed {
            let request = PageRequest { size, ..PageRequest::first(Arc::new(self.first_of(&waiting.plan))) };
            let decode = |body: &Bytes| {
                let page = self.reader.decoder.decode(&request, body)?;
                let rows = page.records;
                Ok(((page, body.clone()), rows))
            };
            // What is wrong with a plan is reported when it is read.
            let Ok((page, body)) = client.fetch(&self.scan, &request, decode).await else { continue };
            waiting.further.store(further_of(&page, size).unwrap_or_default(), Ordering::Relaxed);
            state.memory.push(self.scan.hold(body.len())?);
            self.scan.keep(request.key(self.config.connection.profile()), body);
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
