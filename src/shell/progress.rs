//! Progress on stderr: on a terminal, a line that is updated; otherwise notes on long waits, or a line every few seconds.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::numbers::counted;

/// A line with rows, pages, requests and the wait for a rate limit, and a bar once the number of requests is known. Removed
/// on drop.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    ticking: Option<JoinHandle<()>>,
}

/// Templates of the line. It is cut at the end, where the least important parts are.
const SPINNER: &str = "{spinner} {wide_msg}";
const BAR: &str = "{spinner} {bar:16.cyan/dim} {wide_msg}";

impl Progress {
    /// Shows the activity of the connections during a query from now on. `quiet` shows nothing.
    pub(super) fn start(connections: Vec<Arc<Connection>>, quiet: bool) -> Self {
        if quiet {
            return Self { bar: ProgressBar::hidden(), ticking: None };
        }
        if !io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), ticking: Some(tokio::spawn(note_waits(connections))) };
        }
        let bar = new_bar();
        let shown = bar.clone();
        let before = Counts::of(&connections);
        let ticking = tokio::spawn(async move {
            let mut measured = false;
            loop {
                // Before the first line, so that a quick query shows none.
                tokio::time::sleep(Duration::from_millis(100)).await;
                let counts = Counts::of(&connections).since(&before);
                let required: u64 = connections.iter().map(|connection| connection.required_requests()).sum();
                if required > 1 && (measured || required > counts.requests) {
                    if !std::mem::replace(&mut measured, true) {
                        shown.set_style(style(BAR));
                    }
                    shown.set_length(required.max(counts.requests));
                    shown.set_position(counts.requests);
                }
                let waits = connections.iter().map(|connection| connection.client().throttled_for());
                let wait = waits.max().unwrap_or_default();
                shown.set_message(message(&counts, required, wait, shown.elapsed()));
                shown.tick();
            }
        });
        Self { bar, ticking: Some(ticking) }
    }

    /// Shows the activity of the connections during a command of many queries, without a terminal as well. A query counts its own
    /// requests only, so a bar needs [`steps`](Self::steps).
    pub fn of_queries(connections: Vec<Arc<Connection>>, quiet: bool) -> Self {
        let (before, begun) = (Counts::of(&connections), Instant::now());
        Self::of(quiet, move || {
            let waits = connections.iter().map(|connection| connection.client().throttled_for());
            let counts = Counts::of(&connections).since(&before);
            message(&counts, 0, waits.max().unwrap_or_default(), begun.elapsed())
        })
    }

    /// Shows a bar for the steps of a command: those that are done, and those that are left.
    pub fn steps(&self, done: u64, left: u64) {
        if self.bar.position() == 0 {
            self.bar.set_style(style(BAR));
        }
        self.bar.set_length(done + left);
        self.bar.set_position(done);
    }

    /// Shows a text that changes: in place on a terminal, otherwise as a line every few seconds. `quiet` shows nothing.
    pub fn of(quiet: bool, text: impl Fn() -> String + Send + 'static) -> Self {
        /// Pause between two lines.
        const LINES: Duration = Duration::from_secs(5);
        if quiet {
            return Self { bar: ProgressBar::hidden(), ticking: None };
        }
        if !io::stderr().is_terminal() {
            let ticking = tokio::spawn(async move {
                loop {
                    tokio::time::sleep(LINES).await;
                    eprintln!("{}", text());
                }
            });
            return Self { bar: ProgressBar::hidden(), ticking: Some(ticking) };
        }
        let bar = new_bar();
        let shown = bar.clone();
        let ticking = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(100)).await;
                shown.set_message(text());
                shown.tick();
            }
        });
        Self { bar, ticking: Some(ticking) }
    }

    /// Prints a line above the progress.
    pub fn line(&self, line: impl std::fmt::Display) {
        self.above(|| eprintln!("{line}"));
    }

    /// Prints something above the progress.
    pub fn above<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

/// A spinner with a text, on stderr.
fn new_bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_draw_target(ProgressDrawTarget::term_like_with_hz(Box::new(Narrow(Term::stderr())), 20));
    bar.set_style(style(SPINNER));
    bar
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants with known placeholders.
    ProgressStyle::with_template(template).expect("a valid template").progress_chars("██░")
}

/// Prints a note when a rate limit delays requests for some seconds: without a terminal nothing else shows that a query
/// waits and does not hang.
async fn note_waits(connections: Vec<Arc<Connection>>) {
    /// Shorter waits are not worth a line.
    const NOTED: Duration = Duration::from_secs(3);
    loop {
        let waits = connections.iter().map(|connection| connection.client().throttled_for());
        let wait = waits.max().unwrap_or_default();
        if wait > NOTED {
            eprintln!("note: waiting {} s for the rate limit", wait.as_secs() + 1);
        }
        tokio::time::sleep(wait.max(Duration::from_millis(250))).await;
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

/// A terminal that appears a few columns narrower: otherwise the echoed `^C` would wrap into a new line, and the progress
/// line above it would stay.
#[derive(Debug)]
struct Narrow(Term);

impl TermLike for Narrow {
    fn width(&self) -> u16 {
        self.0.size().1.saturating_sub(4).max(1)
    }

    fn height(&self) -> u16 {
        self.0.size().0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_up(n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_down(n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_right(n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_left(n)
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.0.write_line(line)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Counters of connections.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    pages: u64,
    rows: u64,
    requests: u64,
}

impl Counts {
    fn of(connections: &[Arc<Connection>]) -> Self {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        connections.iter().map(|connection| connection.client().log()).fold(Self::default(), |sum, log| Self {
            pages: sum.pages + read(&log.pages),
            rows: sum.rows + read(&log.rows),
            requests: sum.requests + read(&log.requests),
        })
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            pages: self.pages - before.pages,
            rows: self.rows - before.rows,
            requests: self.requests - before.requests,
        }
    }
}

/// Text of the line, most important part first.
fn message(counts: &Counts, required: u64, wait: Duration, elapsed: Duration) -> String {
    let mut text = String::new();
    if !wait.is_zero() {
        // Writing to a string cannot fail.
        let _ = write!(text, "rate limit: {} s · ", wait.as_secs() + 1);
    }
    let requests = match required > counts.requests.max(1) {
        true => format!("{} of {required} requests", counts.requests),
        false => counted(counts.requests, "request"),
    };
    let (rows, pages) = (counted(counts.rows, "row"), counted(counts.pages, "page"));
    let _ = write!(text, "{rows} · {requests} · {} s · {pages}", elapsed.as_secs());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_of_steps_is_full_at_the_last_one() {
        let progress = Progress { bar: ProgressBar::hidden(), ticking: None };
        for (done, left) in [(1, 23), (3, 21), (24, 0)] {
            progress.steps(done, left);
            assert_eq!((progress.bar.position(), progress.bar.length()), (done, Some(24)));
        }
    }

    #[test]
    fn the_wait_comes_first() {
        let counts = Counts { pages: 3, rows: 297, requests: 4 };
        let told = message(&counts, 12, Duration::from_millis(4_200), Duration::from_secs(9));
        assert_eq!(told, "rate limit: 5 s · 297 rows · 4 of 12 requests · 9 s · 3 pages");
        let counts = Counts { pages: 0, rows: 1, requests: 1 };
        assert_eq!(message(&counts, 1, Duration::ZERO, Duration::ZERO), "1 row · 1 request · 0 s · 0 pages");
    }
}
