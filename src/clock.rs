//! Access to the wall clock.
//!
//! Windows, `Retry-After` dates and the request log use a [`Clock`]; no other module may read the wall clock
//! (enforced by `clippy.toml`). Timeouts and waits use tokio's monotonic time and need no clock.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};

/// Source of the current time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>);

impl Clock {
    /// The system clock.
    pub fn system() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the only place that reads the wall clock")]
        Self(Arc::new(Utc::now))
    }

    /// A clock that always returns the same instant, for tests and for corpora that end at a fixed time.
    pub fn fixed(now: DateTime<Utc>) -> Self {
        Self(Arc::new(move || now))
    }

    /// A clock that starts at the given instant and advances with tokio's monotonic time, which tests can fast-forward.
    pub fn starting_at(now: DateTime<Utc>) -> Self {
        let begun = tokio::time::Instant::now();
        Self(Arc::new(move || now + begun.elapsed()))
    }

    /// Returns the current time.
    pub fn now(&self) -> DateTime<Utc> {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
