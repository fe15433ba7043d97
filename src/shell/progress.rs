//! What a query is doing, on stderr, on a terminal only.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use console::{Term, truncate_str};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinHandle;

use super::report::counted;
use crate::connection::Connection;

/// A line with rows, pages, requests and the wait for a rate limit, and a bar once it is known how many requests it will
/// be; it goes away when dropped.
pub(super) struct Progress {
    bar: ProgressBar,
    ticking: Option<JoinHandle<()>>,
}

/// What the line is made of; what does not fit is cut at the end, where it matters least.
const SPINNER: &str = "{spinner} {msg}";
const BAR: &str = "{spinner} {bar:16.cyan/dim} {msg}";
/// Columns of a line beside the message: those of the spinner, of the bar, and some for the `^C` that terminals show, which
/// would begin a line of its own otherwise.
const BESIDE: [usize; 3] = [2, 17, 4];

impl Progress {
    /// Shows what the connection does from now on.
    pub(super) fn start(connection: Arc<Connection>) -> Self {
        if !io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), ticking: None };
        }
        let bar = ProgressBar::new_spinner();
        // The templates are constants with known placeholders.
        let style = |template| ProgressStyle::with_template(template).expect("a valid template").progress_chars("██░");
        bar.set_style(style(SPINNER));
        let shown = bar.clone();
        let before = Counts::of(&connection);
        let ticking = tokio::spawn(async move {
            let mut measured = false;
            loop {
                // Before the line, so that a quick query shows none.
                tokio::time::sleep(Duration::from_millis(100)).await;
                let counts = Counts::of(&connection).since(&before);
                let announced = connection.announced().max(counts.requests);
                if announced > 1 {
                    if !std::mem::replace(&mut measured, true) {
                        shown.set_style(style(BAR));
                    }
                    shown.set_length(announced);
                    shown.set_position(counts.requests);
                }
                let wait = connection.client().throttled_for();
                let [spinner, bar, spare] = BESIDE;
                let room = usize::from(Term::stderr().size().1);
                let room = room.saturating_sub(spinner + spare + if measured { bar } else { 0 });
                let message = message(&counts, announced, wait, shown.elapsed());
                shown.set_message(truncate_str(&message, room, "…").into_owned());
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

/// What a connection has done.
#[derive(Debug, Clone, Copy)]
struct Counts {
    pages: u64,
    rows: u64,
    requests: u64,
}

impl Counts {
    fn of(connection: &Connection) -> Self {
        let log = connection.client().log();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Self { pages: read(&log.pages), rows: read(&log.rows), requests: read(&log.requests) }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            pages: self.pages - before.pages,
            rows: self.rows - before.rows,
            requests: self.requests - before.requests,
        }
    }
}

/// What the line says; the most important first.
fn message(counts: &Counts, announced: u64, wait: Duration, elapsed: Duration) -> String {
    let mut text = String::new();
    if !wait.is_zero() {
        // Writing into a text cannot fail.
        let _ = write!(text, "rate limit: {} s · ", wait.as_secs() + 1);
    }
    let requests = match announced {
        0 | 1 => counted(counts.requests, "request"),
        announced => format!("{} of {announced} requests", counts.requests),
    };
    let (rows, pages) = (counted(counts.rows, "row"), counted(counts.pages, "page"));
    let _ = write!(text, "{rows} · {requests} · {} s · {pages}", elapsed.as_secs());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_comes_first() {
        let counts = Counts { pages: 3, rows: 297, requests: 4 };
        let told = message(&counts, 12, Duration::from_millis(4_200), Duration::from_secs(9));
        assert_eq!(told, "rate limit: 5 s · 297 rows · 4 of 12 requests · 9 s · 3 pages");
        let counts = Counts { pages: 0, rows: 1, requests: 1 };
        assert_eq!(message(&counts, 1, Duration::ZERO, Duration::ZERO), "1 row · 1 request · 0 s · 0 pages");
    }
}
