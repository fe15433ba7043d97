//! A request that is spent before it is sent.
//!
//! ```text
//! limiter admits ─▶ SpendGuard: query, allowance of its caller ─▶ ledger ─┬─ sent ─▶ drop: it counts
//!                                                                         └─ drop: given back
//! ```
//!
//! What the ledger has recorded stays: a call may be dropped while its file is written, and other processes read that file.
//!
//! Invariant: a request that is not sent leaves the counts of the limiter, the query and its caller as they were before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use super::budget::QueryBudget;
use super::rate_limit::Limiter;
use crate::error::Result;

/// A request that is spent. Dropping it gives the request back, unless it was sent.
#[derive(Debug)]
#[must_use = "the request is given back on drop"]
pub(super) struct SpendGuard {
    query: Arc<QueryBudget>,
    /// Instant at which the query spent the request.
    spent: Instant,
    limiter: Arc<Limiter>,
    /// Instant at which the limiter admitted the request.
    admitted: Instant,
    /// Units of the limiter's windows that the request costs.
    units: u64,
    /// Set by the source that sends it.
    sent: Arc<AtomicBool>,
}

impl SpendGuard {
    /// Spends a request of a query that the limiter has admitted.
    ///
    /// # Errors
    /// Those of [`QueryBudget::spend`]. The limiter gets the units back.
    pub(super) fn spend(
        query: &Arc<QueryBudget>,
        limiter: &Arc<Limiter>,
        admitted: Instant,
        units: u64,
        sent: Arc<AtomicBool>,
    ) -> Result<Self> {
        let spent = query.spend().inspect_err(|_| limiter.give_back(admitted, units))?;
        let (query, limiter) = (Arc::clone(query), Arc::clone(limiter));
        Ok(Self { query, spent, limiter, admitted, units, sent })
    }
}

impl Drop for SpendGuard {
    fn drop(&mut self) {
        if !self.sent.load(Ordering::Relaxed) {
            self.query.give_back(self.spent);
            self.limiter.give_back(self.admitted, self.units);
        }
    }
}
