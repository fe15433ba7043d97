//! Summary line after a result: rows, time, requests, waits, time window and completeness.

use std::time::Duration;

use crate::exec::{Spent, WindowRead};
use crate::numbers::counted;

/// Extent to which a result was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Shown {
    /// Rows printed.
    pub(crate) rows: usize,
    /// State of the remaining rows.
    pub(crate) rest: Rest,
    /// Columns hidden because the terminal is too narrow.
    pub(crate) hidden: usize,
}

/// State of the rows that were not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(not(feature = "shell"), allow(dead_code, reason = "other fronts show all rows"))]
pub(crate) enum Rest {
    /// There are no further rows.
    #[default]
    Nothing,
    /// There are further rows.
    Some,
    /// Unknown: the display was full, and the next batch was not awaited.
    Unknown,
    /// Unknown: the pager was closed.
    Left,
}

/// Summary of a statement.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    /// Rows printed; `None` for a statement without a result.
    pub(crate) shown: Option<Shown>,
    /// Time from the statement to its plan.
    pub(crate) planning: Duration,
    /// Time from the statement to its first rows.
    pub(crate) first: Option<Duration>,
    /// Time from the statement to the end of its result.
    pub(crate) elapsed: Duration,
    pub(crate) spent: Spent,
    pub(crate) windows: Vec<WindowRead>,
    /// Set if a warning was issued.
    pub(crate) warned: bool,
}

/// Shorter waits in milliseconds are not shown.
const NOTICED: u64 = 500;
/// Windows shown by name; a query may have hundreds.
const NAMED: usize = 2;

impl Report {
    /// Returns the summary as one line. `timing` adds planning time and time to the first row.
    pub(crate) fn line(&self, timing: bool) -> String {
        let Self { shown, planning, first, elapsed, spent, windows, warned } = self;
        if shown.is_none() && spent.requests == 0 {
            return "done".to_owned();
        }
        let rest = shown.map_or(Rest::Nothing, |shown| shown.rest);
        let shown = shown.unwrap_or_default();
        let mut parts = vec![match rest {
            _ if self.shown.is_none() => "done".to_owned(),
            Rest::Nothing => counted(shown.rows as u64, "row"),
            Rest::Some => format!("first {} shown; \\rows 0 shows all", counted(shown.rows as u64, "row")),
            Rest::Left => "pager closed, remaining rows not requested".to_owned(),
            Rest::Unknown => {
                let rows = counted(shown.rows as u64, "row");
                format!("first {rows} shown, remaining rows not requested; \\rows 0 shows all")
            }
        }];
        if shown.hidden > 0 {
            parts
                .push(format!("{} hidden: terminal too narrow; \\x shows all", counted(shown.hidden as u64, "column")));
        }
        parts.push(seconds(*elapsed));
        if timing {
            let rows = first.map_or(String::new(), |first| format!(", first rows after {}", seconds(first)));
            parts.push(format!("planned in {}{rows}", seconds(*planning)));
        }
        parts.push(match spent.requests {
            0 => "no requests".to_owned(),
            requests => counted(requests, "request"),
        });
        if spent.retries > 0 {
            parts.push(counted(spent.retries, "retry"));
        }
        if spent.wait_ms >= NOTICED {
            parts.push(format!("waited {}", seconds(Duration::from_millis(spent.wait_ms))));
        }
        if !windows.is_empty() {
            let named = windows.iter().take(NAMED).map(|window| {
                let zone = window.timezone.as_deref().filter(|zone| *zone != "UTC");
                let zone = zone.map_or(String::new(), |zone| format!(" {zone}"));
                let default = if window.default { " (default)" } else { "" };
                format!("{}{zone}{default}", window.words)
            });
            let named = named.collect::<Vec<_>>().join(", ");
            let more = windows.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            parts.push(format!("window {named}{more}"));
        }
        if spent.incomplete > 0 || *warned {
            parts.push("INCOMPLETE".to_owned());
        } else if rest == Rest::Nothing && (spent.requests > 0 || !windows.is_empty()) {
            parts.push("complete".to_owned());
        }
        parts.join(" · ")
    }
}

/// The summary of a result that is shown completely.
pub(crate) fn summary(rows: usize, elapsed: Duration, spent: Spent, windows: Vec<WindowRead>, warned: bool) -> String {
    let shown = Some(Shown { rows, ..Shown::default() });
    Report { shown, planning: Duration::ZERO, first: None, elapsed, spent, windows, warned }.line(false)
}

#[cfg(feature = "shell")]
/// Message for a cancelled statement that had sent this many requests.
pub fn cancelled(requests: u64) -> String {
    match requests {
        0 => "cancelled; no requests sent".to_owned(),
        requests => format!("cancelled; {} sent", counted(requests, "request")),
    }
}

/// A duration as people read it.
fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        all => format!("{} min {} s", all / 60, all % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(shown: Shown, spent: Spent) -> Report {
        let [planning, elapsed] = [2, 1_250].map(Duration::from_millis);
        let first = Some(Duration::from_millis(30));
        Report { shown: Some(shown), planning, first, elapsed, spent, windows: Vec::new(), warned: false }
    }

    #[test]
    fn the_summary_names_what_is_known() {
        let shown = Shown { rows: 1, ..Shown::default() };
        assert_eq!(report(shown, Spent::default()).line(false), "1 row · 1.2 s · no requests");
        let spent = Spent { requests: 12, retries: 2, wait_ms: 900, incomplete: 0 };
        let window = |words: &str, zone: &str, default| WindowRead {
            words: words.into(),
            timezone: Some(zone.into()),
            default,
            time: None,
            days: None,
        };
        let windows = vec![window("7d", "UTC", true), window("1d", "Europe/Berlin", false), window("2d", "UTC", false)];
        let whole = Report { windows, ..report(Shown { rows: 1_000, ..Shown::default() }, spent) };
        assert_eq!(
            whole.line(true),
            "1,000 rows · 1.2 s · planned in 2 ms, first rows after 30 ms · 12 requests · 2 retries · waited 900 ms · \
             window 7d (default), 1d Europe/Berlin and 1 more · complete"
        );
    }

    #[test]
    fn a_result_of_the_store_is_complete_without_a_request() {
        let window = WindowRead { words: "30d".to_owned(), timezone: None, default: false, time: None, days: None };
        let line = summary(1, Duration::from_millis(5), Spent::default(), vec![window], false);
        assert_eq!(line, "1 row · 5 ms · no requests · window 30d · complete");
        let line = summary(1, Duration::from_millis(5), Spent::default(), Vec::new(), false);
        assert_eq!(line, "1 row · 5 ms · no requests");
    }

    #[test]
    fn an_incomplete_result_is_not_called_complete() {
        let one = Spent { requests: 1, ..Spent::default() };
        let cut = report(Shown { rows: 5, rest: Rest::Unknown, hidden: 3 }, one).line(false);
        assert_eq!(
            cut,
            "first 5 rows shown, remaining rows not requested; \\rows 0 shows all · 3 columns hidden: terminal too narrow; \\x shows all · 1.2 s · 1 request"
        );
        let less = report(Shown { rows: 5, ..Shown::default() }, Spent { incomplete: 1, ..one }).line(false);
        assert!(less.ends_with("INCOMPLETE"), "{less}");
        let warned = Report { warned: true, ..report(Shown::default(), one) }.line(false);
        assert!(warned.ends_with("INCOMPLETE"), "{warned}");
        let done = Report { shown: None, ..report(Shown::default(), one) }.line(false);
        assert_eq!(done, "done · 1.2 s · 1 request · complete");
    }
}
