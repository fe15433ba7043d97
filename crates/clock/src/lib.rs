//! Access to the wall clock.
//!
//! Windows, `Retry-After` dates and the request log use a [`Clock`]; no other code may read the wall clock
//! (enforced by `clippy.toml`). Timeouts and waits use tokio's monotonic time and need no clock.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};

/// Source of the current time.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>,
    /// The instant that SQL's `now()` returns as well.
    stopped: Option<DateTime<Utc>>,
    is_system: bool,
}

impl Clock {
    /// The system clock.
    pub fn system() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the only place that reads the wall clock")]
        let clock = Self::of(Utc::now);
        Self { is_system: true, ..clock }
    }

    /// A clock that always returns the same instant, for tests and for corpora that end at a fixed time.
    pub fn fixed(now: DateTime<Utc>) -> Self {
        Self::of(move || now)
    }

    /// A clock that has stopped, for data that ends at that instant. SQL's `now()`, `current_date` and `current_time` follow it.
    pub fn stopped(now: DateTime<Utc>) -> Self {
        Self { stopped: Some(now), ..Self::fixed(now) }
    }

    /// A clock that starts at the given instant and advances with tokio's monotonic time, which tests can fast-forward.
    pub fn starting_at(now: DateTime<Utc>) -> Self {
        let begun = tokio::time::Instant::now();
        Self::of(move || now + begun.elapsed())
    }

    fn of(now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self { now: Arc::new(now), stopped: None, is_system: false }
    }

    /// The instant at which it has [stopped](Self::stopped); `None` if it runs or is only fixed.
    pub fn stopped_at(&self) -> Option<DateTime<Utc>> {
        self.stopped
    }

    /// True for the [system](Self::system) clock. Other machines show about the same time.
    pub fn is_system(&self) -> bool {
        self.is_system
    }

    /// Returns the current time.
    pub fn now(&self) -> DateTime<Utc> {
        (self.now)()
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
