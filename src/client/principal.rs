//! Principals that share a key in one process: their turns at its rate limit, and the requests each may spend.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::sliding_window::SlidingWindows;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::RateWindow;

/// Caller that the queries of a session run for. An extension of the session's configuration; a session without one has
/// a share of its own.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Name; the system tables show only its own requests and warnings.
    pub name: Arc<str>,
    /// Share that its requests count towards: shares that wait for a permit take turns.
    pub share: Arc<str>,
    /// Allowance of all its sessions together; `None` if only the limits of the key apply.
    pub allowance: Option<Arc<Allowance>>,
}

/// Requests that a caller may spend in rolling windows, retries included. The count is lost when the process ends.
#[derive(Debug)]
pub struct Allowance {
    name: String,
    windows: Mutex<SlidingWindows>,
}

impl Allowance {
    /// Creates an unspent allowance. `name` identifies its owner in errors.
    pub fn new(name: impl Into<String>, windows: impl IntoIterator<Item = RateWindow>) -> Self {
        Self { name: name.into(), windows: Mutex::new(SlidingWindows::new(windows)) }
    }

    /// Spends one request, and returns the instant.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] if none is left, with the time until one is.
    pub fn spend(&self) -> Result<Instant> {
        let now = Instant::now();
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(free) = windows.free_at(now, 1) {
            return Err(self.used_up("the request budget is used up", free, now, true));
        }
        windows.spend(now, 1);
        Ok(now)
    }

    /// Gives back a request that was spent at this instant and not sent.
    pub(super) fn give_back(&self, spent: Instant) {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner).give_back(spent, 1);
    }

    /// Fails if fewer requests are left than needed, before the first one is sent.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] with the time until they are available.
    pub fn allow(&self, needed: u64) -> Result<()> {
        let now = Instant::now();
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = if needed == 1 { "1 request".to_owned() } else { format!("{needed} requests") };
        match windows.free_at(now, needed) {
            Some(_) if windows.exceeded(needed) => {
                let message = format!(
                    "{}: the query needs at least {requests}, which exceeds the whole request budget",
                    self.name
                );
                Err(Error::new(ErrorKind::Budget, message)
                    .advice("narrow the query by aid or published_at, or add a LIMIT"))
            }
            Some(free) => Err(self.used_up(
                &format!("the query needs at least {requests}, more than are left in the request budget"),
                free,
                now,
                needed > 1,
            )),
            None => Ok(()),
        }
    }

    /// Returns the windows with the requests counted against each.
    pub fn standing(&self) -> Vec<(RateWindow, u64)> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner).standing(Instant::now())
    }

    /// The error of a budget that has too little left until `free`. `can_narrow` is false if no query needs less.
    fn used_up(&self, what: &str, free: Instant, now: Instant, can_narrow: bool) -> Error {
        let seconds = free.saturating_duration_since(now).as_secs_f64().ceil();
        let narrower = if can_narrow { ", or narrow the query by aid or published_at" } else { "" };
        Error::new(ErrorKind::Budget, format!("{}: {what}", self.name))
            .advice(format!("retry in {seconds} s{narrower}"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_allowance_is_refused_beforehand_and_comes_back_with_time() {
        let allowance = Allowance::new("ada", [RateWindow { requests: 3, seconds: 60 }]);
        let never = allowance.allow(4).expect_err("more than there ever is").to_string();
        assert!(never.contains("exceeds the whole") && !never.contains("retry"), "{never}");
        allowance.spend().expect("the first");
        allowance.allow(2).expect("two are left");
        let error = allowance.allow(3).expect_err("more than are left").to_string();
        assert!(error.starts_with("ada: the query needs at least 3 requests"), "{error}");
        assert!(error.contains("retry in 60 s, or narrow the query"), "{error}");
        allowance.spend().expect("the second");
        allowance.spend().expect("the third");
        let error = allowance.allow(1).expect_err("none is left").to_string();
        assert!(error.ends_with("; retry in 60 s"), "no query needs less: {error}");
        assert_eq!(allowance.spend().expect_err("a fourth").kind(), ErrorKind::Budget);
        tokio::time::advance(Duration::from_secs(60)).await;
        allowance.spend().expect("a minute later");
    }
}
