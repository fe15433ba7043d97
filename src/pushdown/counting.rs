//! Windows in which mentions are counted instead of read.
//!
//! The overview counts all mentions of a window. Windows consist of full seconds, but `published_at > '2026-06-01'` excludes
//! some mentions of the window's first second. There are two ways to count the other mentions:
//!
//! ```text
//! apart      count [00:00:01, end)  +  read [00:00:00, 00:00:01)                     two requests
//! at an edge count [00:00:00, end), whose first page, oldest first, shows            one request
//!            which mentions of the first second do not belong
//! ```
//!
//! Counting at an edge needs an overview and mentions in one response, and a page that reaches past the second. Otherwise
//! the two parts are requested separately.

use arrow::compute::SortOptions;
use chrono::DateTime;

use super::interval_set::Range;
use super::plan::ScanPlan;
use super::sort::{ServiceOrder, service_order};
use super::summary::{Summary, SummaryRows};
use super::window::Piece;
use crate::profile::{Profile, Zone};
use crate::pushdown::granularity::SECOND;

/// Mentions to request at an edge: a second rarely has more.
pub(crate) const EDGE_PAGE: u64 = 10;

/// A window, and how the mentions in it are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountedWindow {
    /// The window as the service expects it.
    pub words: String,
    pub counting: Counting,
}

/// The way to count the mentions of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Counting {
    /// By the overview.
    Overview,
    /// One by one: the window contains mentions that do not satisfy all conjuncts.
    Read,
    /// By the overview, without some mentions at one of its ends.
    Edge(Edge),
}

/// The end of a window at which some mentions do not satisfy all conjuncts. Instants are in microseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    /// Sort order that begins with the mentions at this end.
    pub order: ServiceOrder,
    /// The step of the window's grid in which mentions may not belong.
    step: Range,
    /// The part of it in which they do.
    wanted: Range,
    /// All instants of the window.
    window: Range,
    /// The window without the step, and the step alone.
    pub apart: [String; 2],
}

impl Edge {
    /// Returns the mentions on a page that do not belong, given the times of its mentions in the order received; `None` if
    /// the page does not show all of them. `all`: the page has all mentions of the window.
    pub(crate) fn excluded(&self, times: &[i64], all: bool) -> Option<Vec<usize>> {
        let descending = self.order.options.descending;
        let sorted = times.windows(2).all(|pair| if descending { pair[0] >= pair[1] } else { pair[0] <= pair[1] });
        let inside = |range: Range, at: i64| range.from <= at && at < range.to;
        // Two times show the direction, and one past the step that no mention of it is missing.
        let distinct = times.first() != times.last();
        let reaches_past = distinct && times.iter().any(|at| !inside(self.step, *at));
        if !sorted || !times.iter().all(|at| inside(self.window, *at)) || !(reaches_past || all) {
            return None;
        }
        let outside = |(row, at): (usize, &i64)| (inside(self.step, *at) && !inside(self.wanted, *at)).then_some(row);
        Some(times.iter().enumerate().filter_map(outside).collect())
    }
}

/// Returns the windows in which the mentions of a scan are counted, in order of time.
pub(crate) fn counted_windows(profile: &Profile, plan: &ScanPlan, summary: &Summary) -> Vec<CountedWindow> {
    let Some(pieces) = &plan.pieces else {
        let counted = |words: &String| CountedWindow { words: words.clone(), counting: Counting::Overview };
        return plan.windows.iter().map(counted).collect();
    };
    let edges = summary.with_mentions && !matches!(summary.rows, SummaryRows::Firsts(_));
    let mut windows = Vec::with_capacity(pieces.len());
    let mut rest = pieces.as_slice();
    while let [first, others @ ..] = rest {
        let edge = others.first().filter(|_| edges).and_then(|second| at_edge(profile, plan, first, second));
        rest = if edge.is_some() { &others[1..] } else { others };
        windows.push(edge.unwrap_or_else(|| CountedWindow {
            words: first.words.clone(),
            counting: if first.is_whole() { Counting::Overview } else { Counting::Read },
        }));
    }
    windows
}

/// Joins a whole piece with the partial step before or after it.
fn at_edge(profile: &Profile, plan: &ScanPlan, first: &Piece, second: &Piece) -> Option<CountedWindow> {
    let (whole, part) = match (first.is_whole(), second.is_whole()) {
        (true, false) => (first, second),
        (false, true) => (second, first),
        _ => return None,
    };
    // In a longer step, such as a day, the first page would rarely show all mentions.
    let short = part.range.to - part.range.from <= SECOND;
    if !short || first.range.to != second.range.from {
        return None;
    }
    let window = Range { from: first.range.from, to: second.range.to };
    let [from, to] = [window.from, window.to].map(DateTime::from_timestamp_micros);
    let (from, to) = from.zip(to)?;
    if profile.window.longest.is_some_and(|longest| to - from > longest.length()) {
        return None;
    }
    let time = profile.tables.mentions.time.as_deref()?;
    let options = SortOptions { descending: part.range.from >= whole.range.to, nulls_first: false };
    let order = service_order(profile, time, options)?;
    plan.template.pages?;
    let zone = plan.template.timezone.as_deref().map_or(Ok(Zone::UTC), |zone| profile.timezone.zone_of(zone)).ok()?;
    let words = profile.window.words_of(from, to, zone);
    let apart = [whole.words.clone(), part.words.clone()];
    let edge = Edge { order, step: part.range, wanted: part.wanted, window, apart };
    Some(CountedWindow { words, counting: Counting::Edge(edge) })
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{Expr, col};

    use super::super::plan::plan_scan;
    use super::super::summary::{Wanted, summarize};
    use super::*;

    fn counted(conjuncts: &[Expr]) -> Vec<CountedWindow> {
        let profile = Profile::v4();
        let now = "2026-07-01T12:00:00Z".parse().expect("valid timestamp");
        let plan = plan_scan(&profile, &profile.tables.mentions, conjuncts, "", now).expect("valid plan");
        let wanted = Wanted { counts: true, ..Wanted::default() };
        let summary = summarize(&profile, &plan, &wanted, false).expect("summary");
        counted_windows(&profile, &plan, &summary)
    }

    fn at_instant(text: &str) -> Expr {
        use datafusion::common::ScalarValue;
        let at = text.parse::<DateTime<chrono::Utc>>().expect("valid timestamp").timestamp_micros();
        Expr::Literal(ScalarValue::TimestampMicrosecond(Some(at), Some("UTC".into())), None)
    }

    #[test]
    fn a_bound_within_a_second_is_an_edge() {
        let at = col("published_at");
        let after = counted(&[
            at.clone().gt(at_instant("2026-06-01T00:00:00Z")),
            at.clone().lt(at_instant("2026-06-09T00:00:00Z")),
        ]);
        let [CountedWindow { words, counting: Counting::Edge(edge) }] = after.as_slice() else { panic!("{after:?}") };
        assert_eq!(words, "2026-06-01T00:00:00Z..2026-06-09T00:00:00Z");
        assert_eq!(edge.order.value, "date_asc");
        let through = counted(&[
            at.clone().gt_eq(at_instant("2026-06-01T00:00:00Z")),
            at.clone().lt_eq(at_instant("2026-06-09T00:00:00Z")),
        ]);
        let [CountedWindow { words, counting: Counting::Edge(edge) }] = through.as_slice() else {
            panic!("{through:?}")
        };
        assert_eq!(words, "2026-06-01T00:00:00Z..2026-06-09T00:00:01Z");
        assert_eq!(edge.order.value, "date_desc");
        // Two edges: one request can show only one of them.
        let both =
            counted(&[at.clone().gt(at_instant("2026-06-01T00:00:00Z")), at.lt_eq(at_instant("2026-06-09T00:00:00Z"))]);
        assert!(
            matches!(
                &both[..],
                [CountedWindow { counting: Counting::Edge(_), .. }, CountedWindow { counting: Counting::Read, .. }]
            ),
            "{both:?}"
        );
    }

    #[test]
    fn an_edge_excludes_what_its_page_proves() {
        let second = |n: i64| n * SECOND;
        let profile = Profile::v4();
        let order = |descending| {
            service_order(&profile, "published_at", SortOptions { descending, nulls_first: false }).expect("sort order")
        };
        let edge = Edge {
            order: order(false),
            step: Range { from: 0, to: second(1) },
            wanted: Range { from: 1, to: second(1) },
            window: Range { from: 0, to: second(60) },
            apart: [String::new(), String::new()],
        };
        assert_eq!(edge.excluded(&[0, 0, 500, second(2)], false), Some(vec![0, 1]));
        assert_eq!(edge.excluded(&[0, 0, 500], false), None, "there may be more in the second");
        assert_eq!(edge.excluded(&[0, 0, 500], true), Some(vec![0, 1]));
        assert_eq!(edge.excluded(&[500, 0, second(2)], true), None, "not sorted as requested");
        assert_eq!(edge.excluded(&[0, second(90)], true), None, "outside the window");
        assert_eq!(edge.excluded(&[second(2), second(2)], false), None, "no direction");
        assert_eq!(edge.excluded(&[], true), Some(Vec::new()));
        assert_eq!(edge.excluded(&[], false), None);
    }
}
