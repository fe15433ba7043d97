//! What a query is doing, on stderr, on a terminal only.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinHandle;

use crate::connection::Connection;

/// A line with pages, rows, requests and the wait for a rate limit; it goes away when dropped.
pub(super) struct Progress {
    bar: ProgressBar,
    ticking: Option<JoinHandle<()>>,
}

impl Progress {
    /// Shows what the connection does from now on.
    pub(super) fn start(connection: Arc<Connection>) -> Self {
        if !io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), ticking: None };
        }
        let bar = ProgressBar::new_spinner();
        // The template is a constant with known placeholders.
        bar.set_style(ProgressStyle::with_template("{spinner} {msg} [{elapsed}]").expect("a valid template"));
        let shown = bar.clone();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = Arc::clone(&connection);
        let log = counters.client().log();
        let [pages, rows, requests] = [read(&log.pages), read(&log.rows), read(&log.requests)];
        let ticking = tokio::spawn(async move {
            let log = connection.client().log();
            loop {
                // Before the line, so that a quick query shows none.
                tokio::time::sleep(Duration::from_millis(100)).await;
                let wait = connection.client().throttled_for();
                let mut message = format!(
                    "{} pages, {} rows, {} requests",
                    read(&log.pages) - pages,
                    read(&log.rows) - rows,
                    read(&log.requests) - requests,
                );
                if !wait.is_zero() {
                    message.push_str(&format!(", waiting {} s for the rate limit", wait.as_secs() + 1));
                }
                shown.set_message(message);
                shown.tick();
            }
        });
        Self { bar, ticking: Some(ticking) }
    }

    /// Does something that may print, with the line out of the way.
    pub(super) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(ticking) = &self.ticking {
            ticking.abort();
        }
        self.bar.finish_and_clear();
    }
}
