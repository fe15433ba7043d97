//! What is said, quietly, after a result: rows, time, requests, waits, the window, and whether it is whole.

use std::time::Duration;

use super::screen::{Rest, Shown};
use crate::exec::{Spent, WindowRead};

/// What a statement came to.
#[derive(Debug, Clone)]
pub(super) struct Report {
    /// What was printed; `None` where there was nothing to print.
    pub(super) shown: Option<Shown>,
    /// From the statement to its plan.
    pub(super) planning: Duration,
    /// From the statement to its first rows, where there are some.
    pub(super) first: Option<Duration>,
    /// From the statement to the end of its result.
    pub(super) elapsed: Duration,
    pub(super) spent: Spent,
    pub(super) windows: Vec<WindowRead>,
    /// Whether it was warned that something is missing.
    pub(super) warned: bool,
}

/// Milliseconds of waiting that somebody may notice.
const NOTICED: u64 = 500;
/// Windows that are named; there may be hundreds.
const NAMED: usize = 2;

impl Report {
    /// In one line. `timing` says where the time went.
    pub(super) fn line(&self, timing: bool) -> String {
        let Self { shown, planning, first, elapsed, spent, windows, warned } = self;
        if shown.is_none() && spent.requests == 0 {
            return "done".to_owned();
        }
        let rest = shown.map_or(Rest::Nothing, |shown| shown.rest);
        let shown = shown.unwrap_or_default();
        let mut parts = vec![match rest {
            _ if self.shown.is_none() => "done".to_owned(),
            Rest::Nothing => counted(shown.rows as u64, "row"),
            Rest::Some => format!("the first {} of more: \\rows 0 shows all", counted(shown.rows as u64, "row")),
            Rest::Left => "the pager was left, no more rows were asked for".to_owned(),
            Rest::Unknown => {
                let rows = counted(shown.rows as u64, "row");
                format!("the first {rows}, no more were asked for: \\rows 0 asks for all")
            }
        }];
        if shown.hidden > 0 {
            parts.push(format!("{} without room: \\x shows all", counted(shown.hidden as u64, "column")));
        }
        parts.push(seconds(*elapsed));
        if timing {
            let rows = first.map_or(String::new(), |first| format!(", first rows after {}", seconds(first)));
            parts.push(format!("planned in {}{rows}", seconds(*planning)));
        }
        parts.push(match spent.requests {
            0 => "no request".to_owned(),
            requests => counted(requests, "request"),
        });
        if spent.retries > 0 {
            parts.push(format!("{} repeated", spent.retries));
        }
        if spent.wait_ms >= NOTICED {
            // Of requests side by side each counts.
            parts.push(format!("waits of {}", seconds(Duration::from_millis(spent.wait_ms))));
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
            parts.push("NOT WHOLE".to_owned());
        } else if rest == Rest::Nothing && spent.requests > 0 {
            parts.push("complete".to_owned());
        }
        parts.join(" · ")
    }
}

/// A number with what it counts.
pub(super) fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A time as people read it.
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
    fn what_is_known_is_said() {
        let shown = Shown { rows: 1, ..Shown::default() };
        assert_eq!(report(shown, Spent::default()).line(false), "1 row · 1.2 s · no request");
        let spent = Spent { requests: 12, retries: 2, wait_ms: 61_000, incomplete: 0 };
        let window =
            |words: &str, zone: &str, default| WindowRead { words: words.into(), timezone: Some(zone.into()), default };
        let windows = vec![window("7d", "UTC", true), window("1d", "Europe/Berlin", false), window("2d", "UTC", false)];
        let whole = Report { windows, ..report(Shown { rows: 1_000, ..Shown::default() }, spent) };
        assert_eq!(
            whole.line(true),
            "1000 rows · 1.2 s · planned in 2 ms, first rows after 30 ms · 12 requests · 2 repeated · waits of 1 min 1 s · \
             window 7d (default), 1d Europe/Berlin and 1 more · complete"
        );
    }

    #[test]
    fn what_is_not_whole_is_not_called_complete() {
        let one = Spent { requests: 1, ..Spent::default() };
        let cut = report(Shown { rows: 5, rest: Rest::Unknown, hidden: 3 }, one).line(false);
        assert_eq!(
            cut,
            "the first 5 rows, no more were asked for: \\rows 0 asks for all · 3 columns without room: \\x shows all · 1.2 s · 1 request"
        );
        let less = report(Shown { rows: 5, ..Shown::default() }, Spent { incomplete: 1, ..one }).line(false);
        assert!(less.ends_with("NOT WHOLE"), "{less}");
        let warned = Report { warned: true, ..report(Shown::default(), one) }.line(false);
        assert!(warned.ends_with("NOT WHOLE"), "{warned}");
        let done = Report { shown: None, ..report(Shown::default(), one) }.line(false);
        assert_eq!(done, "done · 1.2 s · 1 request · complete");
    }
}
