//! Who asks, where one process asks for several: whose turn it is at the key's limit, and what each may spend.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::sliding_window::SlidingWindows;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::RateWindow;

/// Who the queries of a session are for. An extension of the session's configuration; a session without one is alone.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Whose requests and warnings its system tables show.
    pub name: Arc<str>,
    /// Whom its requests count as where several wait for a place: those who wait take turns.
    pub share: Arc<str>,
    /// What it may spend in all its sessions together; `None`: what the key may.
    pub allowance: Option<Arc<Allowance>>,
}

/// Requests that somebody may spend in rolling windows, retries included. What was spent is forgotten with the process.
#[derive(Debug)]
pub struct Allowance {
    name: String,
    windows: Mutex<SlidingWindows>,
}

impl Allowance {
    /// An allowance of which nothing is spent. `name` says in errors whose it is.
    pub fn new(name: impl Into<String>, windows: impl IntoIterator<Item = RateWindow>) -> Self {
        Self { name: name.into(), windows: Mutex::new(SlidingWindows::new(windows)) }
    }

    /// Takes one request out of it.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] where none is left, with the time until there is.
    pub fn spend(&self) -> Result<()> {
        let now = Instant::now();
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(free) = windows.free_at(now, 1) {
            return Err(self.used_up("its budget is used up", free, now));
        }
        windows.spend(now, 1);
        Ok(())
    }

    /// Refuses what needs more requests than are left, before the first one.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] with the time until there are as many.
    pub fn allow(&self, needed: u64) -> Result<()> {
        let now = Instant::now();
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        match windows.free_at(now, needed) {
            Some(_) if windows.exceeded(needed) => {
                let message =
                    format!("{}: the query needs {needed} requests or more, which its share never allows", self.name);
                Err(Error::new(ErrorKind::Budget, message)
                    .advice("narrow the query by aid or published_at, or add a LIMIT"))
            }
            Some(free) => Err(self.used_up(&format!("the query needs {needed} requests or more"), free, now)),
            None => Ok(()),
        }
    }

    /// The windows, each with the requests that count against it.
    pub fn standing(&self) -> Vec<(RateWindow, u64)> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner).standing(Instant::now())
    }

    fn used_up(&self, what: &str, free: Instant, now: Instant) -> Error {
        let seconds = free.saturating_duration_since(now).as_secs_f64().ceil();
        Error::new(ErrorKind::Budget, format!("{}: {what}, more than its share allows now", self.name))
            .advice(format!("ask again in {seconds} s, or for less: narrow the query by aid or published_at"))
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
        assert!(never.contains("never allows") && !never.contains("again"), "{never}");
        allowance.spend().expect("the first");
        allowance.allow(2).expect("two are left");
        let error = allowance.allow(3).expect_err("more than are left").to_string();
        assert!(error.starts_with("ada: the query needs 3 requests or more"), "{error}");
        assert!(error.contains("ask again in 60 s"), "{error}");
        allowance.spend().expect("the second");
        allowance.spend().expect("the third");
        assert_eq!(allowance.spend().expect_err("a fourth").kind(), ErrorKind::Budget);
        tokio::time::advance(Duration::from_secs(60)).await;
        allowance.spend().expect("a minute later");
    }
}
