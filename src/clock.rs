//! The one reader of wall time.
//!
//! Windows, `Retry-After` dates and the request log ask a [`Clock`]; nothing else in the crate may read the wall clock
//! (`clippy.toml` holds that). Time-outs and waits use tokio's monotonic time and need no clock.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};

/// A source of the current instant.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>);

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is the one home of the wall clock")]
        Self(Arc::new(Utc::now))
    }

    /// A clock that stands still, for tests and for corpora that end at a fixed instant.
    pub fn fixed(now: DateTime<Utc>) -> Self {
        Self(Arc::new(move || now))
    }

    /// A clock that begins at an instant and goes on with tokio's monotonic time, which tests can make go faster.
    pub fn starting_at(now: DateTime<Utc>) -> Self {
        let begun = tokio::time::Instant::now();
        Self(Arc::new(move || now + begun.elapsed()))
    }

    /// The current instant.
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
