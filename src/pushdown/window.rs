//! Time ranges as the smallest windows that can be requested from the service.

use chrono::{DateTime, TimeDelta, Utc};

use super::interval_set::{Range, Ranges};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Grid, WindowSpec, Zone};
use crate::request::CLOCK_SKEW;

/// Maximum number of windows for one time range in SQL; each takes at least one request. If the range has more pieces,
/// the smallest gaps between them are read too.
const WINDOWS: usize = 32;

/// Windows as the service writes them, disjoint and in order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Windows {
    pub(super) words: Vec<String>,
    /// Set if the windows contain the instants of the ranges and no others.
    pub(super) exact: bool,
    /// The windows split into pieces. Set if bounds within a second, or within a day if the service accepts only days, are
    /// all that prevents the windows from being exact.
    pub(super) pieces: Option<Vec<Piece>>,
    /// The earliest wanted instant, if the service accepts only periods that end now. It lies within the window; a
    /// reader that starts with the newest mentions may stop there.
    pub(super) since: Option<DateTime<Utc>>,
}

/// A part of a window. Ranges are in microseconds since 1970, half-open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// The window of this part alone.
    pub(super) words: String,
    /// Its instants.
    pub(super) range: Range,
    /// Those of them that the ranges contain.
    pub(super) wanted: Range,
}

impl Piece {
    /// A piece whose instants need not be known, since it is read in any case.
    pub(super) fn read(words: String) -> Self {
        Self { words, range: Range::OPEN, wanted: Range { from: 0, to: 0 } }
    }

    /// True if it contains only instants of the ranges.
    pub(super) fn is_whole(&self) -> bool {
        self.range == self.wanted
    }
}

/// Returns the smallest windows that cover the ranges of the column `time` in a zone. With `days`, they contain whole
/// days.
///
/// # Errors
/// [`ErrorKind::Query`] for a range that is open to the past if the profile declares no earliest day, and for one that
/// the service does not support.
pub(super) fn windows_of(
    spec: &WindowSpec,
    ranges: &Ranges,
    time: &str,
    zone: Zone,
    days: bool,
    now: DateTime<Utc>,
) -> Result<Windows> {
    if spec.is_unknown() && !ranges.spans().is_empty() {
        let message = format!("a range of `{time}` cannot be requested: the profile has no parameter of a period");
        return Err(Error::new(ErrorKind::Query, message).advice(
            "set [window] in the profile; without a condition on the time, a query reads the service's own period",
        ));
    }
    let ranges = if days { ranges.map(false, |range| whole_days(range, zone)) } else { ranges.clone() };
    let open_end = now + CLOCK_SKEW;
    let grid = spec.grid(zone);
    // An inclusive end adds one instant, which is filtered out here.
    let mut exact = ranges.exact && (spec.is_half_open() || ranges.spans().iter().all(|r| r.end().is_none()));
    let mut closed = Vec::with_capacity(ranges.spans().len());
    for range in ranges.spans() {
        // No mention is older.
        let earliest = spec.earliest.map(|earliest| earliest.timestamp_micros());
        let start = range.start().max(earliest);
        let Some(start) = start else {
            let error = Error::new(ErrorKind::Query, format!("no lower bound for `{time}`"));
            return Err(error.advice(lower_bound(spec, *range, time, now)));
        };
        let end = range.end().unwrap_or(open_end.timestamp_micros());
        // Bounds are widened to those that the service can express.
        let (from, to) = (grid.floor(start), grid.ceil(end));
        exact &= from == start && (to == end || range.end().is_none());
        // A range in the future must not become empty.
        closed.push(Range { from, to: to.max(grid.ceil(from.saturating_add(1))) });
    }
    let closed = Ranges::of(closed, exact).at_most(WINDOWS);
    if spec.takes_instants() {
        let sliced = |range: &Range| {
            let (from, to) = instants(*range, time)?;
            slices(spec, from, to, zone, days, time)
        };
        let mut words = Vec::new();
        for range in closed.spans() {
            words.extend(sliced(range)?.into_iter().map(|(from, to)| spec.words_of(from, to, zone)));
        }
        let apart = ranges.exact && spec.is_half_open() && closed.spans().len() == ranges.spans().len();
        let mut pieces = None;
        if apart && !closed.exact {
            let mut parts = Vec::new();
            for (exact, wide) in ranges.spans().iter().zip(closed.spans()) {
                for part in split(*exact, *wide, grid) {
                    parts.extend(sliced(&part)?.into_iter().map(|(from, to)| {
                        let range = Range { from: from.timestamp_micros(), to: to.timestamp_micros() };
                        let wanted = Range { from: range.from.max(exact.from), to: range.to.min(exact.to) };
                        Piece { words: spec.words_of(from, to, zone), range, wanted }
                    }));
                }
            }
            pieces = Some(parts);
        }
        return Ok(Windows { words, exact: closed.exact, pieces, since: None });
    }
    // Periods that end now: take the shortest one that reaches back to the first instant.
    let Some(first) = closed.spans().first() else {
        return Ok(Windows { words: vec![spec.default.clone()], exact: false, pieces: None, since: None });
    };
    let (from, _) = instants(*first, time)?;
    let reach = (now - from).max(TimeDelta::zero()) + CLOCK_SKEW;
    match spec.reaching(reach) {
        Some(words) if spec.check_words(&words).is_ok() => {
            Ok(Windows { words: vec![words], exact: false, pieces: None, since: Some(from) })
        }
        Some(_) => Err(too_long(time, &spec.longest.map(|longest| longest.to_string()).unwrap_or_default())),
        None => Err(too_long(time, &spec.forms())),
    }
}

/// Advice on a lower bound for a range: one with which instants of the range remain.
fn lower_bound(spec: &WindowSpec, range: Range, time: &str, now: DateTime<Utc>) -> String {
    const USUAL: TimeDelta = TimeDelta::days(30);
    let default = spec.length_of(&spec.default).unwrap_or_default().min(USUAL);
    let recent = now.checked_sub_signed(default).map_or(Range::OPEN.from, |at| at.timestamp_micros());
    let earlier = range.end().filter(|end| *end <= recent).and_then(DateTime::from_timestamp_micros);
    match earlier.and_then(|end| end.checked_sub_signed(USUAL)) {
        Some(from) => format!("add AND {time} >= '{}'", from.date_naive()),
        None => format!("add AND {time} >= now() - INTERVAL '30 days', or AND duration = '{}'", spec.default),
    }
}

/// Returns the windows that cover a span in microseconds since 1970, in order of time, each with the instants that it is
/// for: these are disjoint, while windows may be wider if the service accepts no others.
///
/// # Errors
/// [`ErrorKind::Query`] if the span is outside the calendar, or longer than the service accepts and cannot be cut.
#[cfg(feature = "store")]
pub(crate) fn windows_between(
    spec: &WindowSpec,
    span: std::ops::Range<i64>,
    zone: Zone,
) -> Result<Vec<(String, std::ops::Range<i64>)>> {
    /// Named in errors.
    const TIME: &str = "the time of mentions";
    let grid = spec.grid(zone);
    let wide = Range { from: grid.floor(span.start), to: grid.ceil(span.end) };
    let (from, to) = instants(wide, TIME)?;
    let slices = slices(spec, from, to, zone, false, TIME)?;
    let last = slices.len() - 1;
    let window = |(at, (from, to)): (usize, (DateTime<Utc>, DateTime<Utc>))| {
        let begin = if at == 0 { span.start } else { from.timestamp_micros() };
        let end = if at == last { span.end } else { to.timestamp_micros() };
        (spec.words_of(from, to, zone), begin..end)
    };
    Ok(slices.into_iter().enumerate().map(window).collect())
}

/// Splits a range widened to whole grid steps: the steps that it contains completely, and the partial ones at its ends.
fn split(exact: Range, wide: Range, grid: Grid) -> Vec<Range> {
    // A range may begin before the earliest mention; its window may not.
    let from = exact.start().map_or(wide.from, |at| grid.ceil(at)).max(wide.from);
    let to = exact.end().map_or(wide.to, |at| grid.floor(at)).min(wide.to);
    if from >= to {
        return vec![wide];
    }
    let pieces = [(wide.from, from), (from, to), (to, wide.to)];
    pieces.into_iter().filter(|(from, to)| from < to).map(|(from, to)| Range { from, to }).collect()
}

fn instants(range: Range, time: &str) -> Result<(DateTime<Utc>, DateTime<Utc>)> {
    let instant = DateTime::from_timestamp_micros;
    instant(range.from).zip(instant(range.to)).ok_or_else(|| {
        Error::new(ErrorKind::Query, format!("the range of `{time}` is outside the supported calendar"))
            .advice("narrow it")
    })
}

/// Cuts a window into pieces no longer than the service accepts; with `days`, at starts of days.
fn slices(
    spec: &WindowSpec,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    zone: Zone,
    days: bool,
    time: &str,
) -> Result<Vec<(DateTime<Utc>, DateTime<Utc>)>> {
    /// Maximum number of pieces; a query that needs more is likely a mistake.
    const MOST: usize = 1_000;
    let longest = match spec.longest {
        Some(longest) if to - from > longest.length() => longest,
        _ => return Ok(vec![(from, to)]),
    };
    // With inclusive ends, mentions at a shared bound would be in both pieces.
    if !spec.is_half_open() {
        return Err(too_long(time, &longest.to_string()));
    }
    let mut slices = Vec::new();
    let mut start = from;
    while start < to {
        let mut end = to.min(start + longest.length());
        if end < to {
            let cut = if days { Grid::Days(zone) } else { spec.grid(zone) }.floor(end.timestamp_micros());
            let cut = DateTime::from_timestamp_micros(cut).filter(|cut| *cut > start);
            end = cut.ok_or_else(|| too_long(time, &longest.to_string()))?;
        }
        slices.push((start, end));
        if slices.len() > MOST {
            return Err(too_long(time, &longest.to_string()));
        }
        start = end;
    }
    Ok(slices)
}

fn too_long(time: &str, longest: &str) -> Error {
    Error::new(ErrorKind::Query, format!("the range of `{time}` is longer than the service accepts ({longest})"))
        .advice("narrow it, or query parts of it separately")
}

/// Widens a range to whole days of the zone, so that daily buckets are complete.
fn whole_days(range: Range, zone: Zone) -> Range {
    let days = Grid::Days(zone);
    Range {
        from: range.start().map_or(Range::OPEN.from, |at| days.floor(at)),
        to: range.end().map_or(Range::OPEN.to, |at| days.ceil(at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{End, Instants, Profile};
    use crate::pushdown::granularity::SECOND;

    fn at(text: &str) -> i64 {
        text.parse::<DateTime<Utc>>().expect("valid timestamp").timestamp_micros()
    }

    fn range(from: Option<&str>, to: Option<&str>) -> Ranges {
        Ranges::of([Range { from: from.map_or(i64::MIN, at), to: to.map_or(i64::MAX, at) }], true)
    }

    fn now() -> DateTime<Utc> {
        "2026-07-01T12:00:00Z".parse().expect("valid timestamp")
    }

    fn pieces(windows: &Windows) -> Vec<(&str, bool)> {
        windows.pieces.iter().flatten().map(|piece| (piece.words.as_str(), piece.is_whole())).collect()
    }

    fn windows(spec: &WindowSpec, ranges: &Ranges) -> Windows {
        windows_of(spec, ranges, "published_at", Zone::UTC, false, now()).expect("valid window")
    }

    #[test]
    fn a_range_is_said_in_whole_seconds_and_an_open_end_reaches_past_a_slow_clock() {
        let spec = Profile::v4().window;
        let closed = windows(&spec, &range(Some("2026-01-01T00:00:00.5Z"), Some("2026-02-01T00:00:00.000001Z")));
        assert_eq!(closed.words, ["2026-01-01T00:00:00Z..2026-02-01T00:00:01Z"]);
        assert!(!closed.exact);
        let open = windows(&spec, &range(Some("2026-06-01T00:00:00Z"), None));
        assert_eq!(open.words, ["2026-06-01T00:00:00Z..2026-07-01T12:10:00Z"]);
        assert!(open.exact);
    }

    #[test]
    fn seconds_that_a_range_has_a_part_of_are_told_from_those_that_it_has_whole() {
        let spec = Profile::v4().window;
        let between = windows(&spec, &range(Some("2026-05-01T00:00:00Z"), Some("2026-05-02T00:00:00.000001Z")));
        let (day, rest) = ("2026-05-01T00:00:00Z..2026-05-02T00:00:00Z", "2026-05-02T00:00:00Z..2026-05-02T00:00:01Z");
        assert_eq!(pieces(&between), [(day, true), (rest, false)]);
        let within = windows(&spec, &range(Some("2026-05-01T00:00:00.2Z"), Some("2026-05-01T00:00:00.7Z")));
        assert_eq!(pieces(&within), [("2026-05-01T00:00:00Z..2026-05-01T00:00:01Z", false)]);
        // Two ranges that share a second share a piece, which would count its mentions twice.
        let shared = range(Some("2026-05-01T00:00:00Z"), Some("2026-05-01T12:00:00.2Z"))
            .or(&range(Some("2026-05-01T12:00:00.7Z"), Some("2026-05-02T00:00:00Z")));
        assert_eq!(windows(&spec, &shared).pieces, None);
        assert_eq!(windows(&spec, &range(Some("2026-05-01T00:00:00Z"), None)).pieces, None);
    }

    #[test]
    fn ranges_that_are_apart_are_asked_for_apart_and_those_that_meet_together() {
        let spec = Profile::v4().window;
        let day = |day| range(Some(day), None).and(&range(None, Some(&day.replace("T00", "T23"))));
        let (first, second) = (day("2026-05-01T00:00:00Z"), day("2026-05-09T00:00:00Z"));
        let both = windows(&spec, &second.or(&first));
        let words = ["2026-05-01T00:00:00Z..2026-05-01T23:00:00Z", "2026-05-09T00:00:00Z..2026-05-09T23:00:00Z"];
        assert_eq!((both.words, both.exact), (words.map(str::to_owned).to_vec(), true));
        // The gap is shorter than a second, which the grammar cannot express: one window, since two would share
        // mentions.
        let halves = range(Some("2026-05-01T00:00:00Z"), Some("2026-05-01T12:00:00.2Z"))
            .or(&range(Some("2026-05-01T12:00:00.7Z"), Some("2026-05-02T00:00:00Z")));
        let one = windows(&spec, &halves);
        assert_eq!((one.words.len(), one.exact), (1, false));
        let many = (0..100).map(|n| Range { from: n * 20 * SECOND, to: n * 20 * SECOND + SECOND + n });
        assert_eq!(windows(&spec, &Ranges::of(many, true)).words.len(), WINDOWS);
    }

    #[test]
    fn a_range_open_to_the_past_is_closed_by_the_profile_or_refused() {
        let mut spec = Profile::v4().window;
        let refused = |end| {
            let open = range(None, Some(end));
            windows_of(&spec, &open, "published_at", Zone::UTC, false, now()).expect_err("open range").to_string()
        };
        let recent = refused("2026-06-30T00:00:00Z");
        assert!(recent.ends_with("; add AND published_at >= now() - INTERVAL '30 days', or AND duration = '7d'"));
        // Neither bound would leave an instant of these ranges.
        let before = refused("2026-05-01T00:00:00Z");
        assert!(before.ends_with("; add AND published_at >= '2026-04-01'"), "{before}");
        let outside_period = refused("2026-06-24T12:00:00Z");
        assert!(outside_period.ends_with("; add AND published_at >= '2026-05-25'"), "{outside_period}");
        let open = range(None, Some("2026-06-01T00:00:00Z"));
        spec.earliest = Some("2025-01-01T00:00:00Z".parse().expect("valid timestamp"));
        assert_eq!(windows(&spec, &open).words, ["2025-01-01T00:00:00Z..2026-06-01T00:00:00Z"]);
    }

    #[test]
    fn a_service_of_relative_periods_is_asked_for_the_smallest_that_covers() {
        let mut spec = Profile::v4().window;
        spec.absolute = None;
        let recent = windows(&spec, &range(Some("2026-07-01T09:30:00Z"), None));
        assert_eq!(
            (recent.words, recent.since.map(|at| at.to_rfc3339())),
            (vec!["3h".to_owned()], Some("2026-07-01T09:30:00+00:00".to_owned()))
        );
        assert_eq!(windows(&spec, &range(Some("2026-07-01T08:55:00Z"), None)).words, ["4h"]);
        spec.longest = Some("7d".to_owned().try_into().expect("valid period"));
        let long = range(Some("2026-06-01T00:00:00Z"), None);
        let error = windows_of(&spec, &long, "t", Zone::UTC, false, now()).expect_err("range too long");
        assert!(error.to_string().contains("longer than the service accepts (7d)"), "{error}");
    }

    #[test]
    fn a_range_longer_than_the_longest_window_is_cut_into_several() {
        let mut spec = Profile::v4().window;
        spec.longest = Some("31d".to_owned().try_into().expect("valid period"));
        let quarter = range(Some("2026-01-01T00:00:00Z"), Some("2026-03-04T00:00:00Z"));
        let cut = windows(&spec, &quarter);
        let words = ["2026-01-01T00:00:00Z..2026-02-01T00:00:00Z", "2026-02-01T00:00:00Z..2026-03-04T00:00:00Z"];
        assert_eq!((cut.words, cut.exact), (words.map(str::to_owned).to_vec(), true));
        // Days of a zone are not cut, not even the shorter one in March.
        let zone: Zone = "Europe/Berlin".parse().expect("valid zone");
        let range = range(Some("2026-03-01T10:00:00Z"), Some("2026-04-05T00:00:00Z"));
        let cut = windows_of(&spec, &range, "t", zone, true, now()).expect("windows").words;
        let words = ["2026-02-28T23:00:00Z..2026-03-31T22:00:00Z", "2026-03-31T22:00:00Z..2026-04-05T22:00:00Z"];
        assert_eq!(cut, words);
    }

    #[test]
    fn a_service_of_days_is_asked_for_days_and_bounds_within_one_are_read_apart() {
        let zone: Zone = "+01:00".parse().expect("valid zone");
        let mut spec = Profile::v4().window;
        (spec.instants, spec.end) = (Instants::Date, End::Inclusive);
        let windows = |ranges: &Ranges| windows_of(&spec, ranges, "t", zone, false, now()).expect("windows");
        let whole = windows(&range(Some("2026-05-31T23:00:00Z"), Some("2026-06-02T23:00:00Z")));
        assert_eq!((whole.words, whole.exact), (vec!["2026-06-01..2026-06-02".to_owned()], true));
        let part = windows(&range(Some("2026-06-01T00:00:00Z"), Some("2026-06-03T00:00:00Z")));
        assert_eq!((part.words.as_slice(), part.exact), (&["2026-06-01..2026-06-03".to_owned()][..], false));
        let expected =
            [("2026-06-01..2026-06-01", false), ("2026-06-02..2026-06-02", true), ("2026-06-03..2026-06-03", false)];
        assert_eq!(pieces(&part), expected);
        spec.longest = Some("1d".to_owned().try_into().expect("valid period"));
        let days = windows_of(
            &spec,
            &range(Some("2026-05-31T23:00:00Z"), Some("2026-06-02T23:00:00Z")),
            "t",
            zone,
            false,
            now(),
        );
        assert_eq!(days.expect("windows").words, ["2026-06-01..2026-06-01", "2026-06-02..2026-06-02"]);
    }

    #[test]
    fn days_are_widened_to_whole_ones_of_the_zone() {
        let zone: Zone = "Europe/Berlin".parse().expect("valid zone");
        let widened =
            range(Some("2026-03-29T10:00:00Z"), Some("2026-03-29T22:00:00Z")).map(true, |r| whole_days(r, zone));
        assert_eq!(widened, range(Some("2026-03-28T23:00:00Z"), Some("2026-03-29T22:00:00Z")));
    }

    #[test]
    fn pieces_are_told_only_of_ranges_that_are_all_that_is_meant_and_of_windows_that_share_no_instant() {
        let mut spec = Profile::v4().window;
        let part = range(Some("2026-05-01T00:00:00Z"), Some("2026-05-02T00:00:00.5Z"));
        assert!(windows(&spec, &part).pieces.is_some());
        assert_eq!(windows(&spec, &part.clone().widened()).pieces, None);
        spec.end = End::Inclusive;
        assert_eq!(windows(&spec, &part).pieces, None);
    }

    #[test]
    fn where_ends_belong_to_windows_a_range_is_asked_for_whole_or_refused() {
        let mut spec = Profile::v4().window;
        spec.end = End::Inclusive;
        spec.longest = Some("31d".to_owned().try_into().expect("valid period"));
        let fits = range(Some("2026-01-01T00:00:00Z"), Some("2026-02-01T00:00:00Z"));
        assert_eq!(windows(&spec, &fits).words, ["2026-01-01T00:00:00Z..2026-02-01T00:00:00Z"]);
        let longer = range(Some("2026-01-01T00:00:00Z"), Some("2026-02-02T00:00:00Z"));
        let error = windows_of(&spec, &longer, "t", Zone::UTC, false, now()).expect_err("range too long");
        assert!(error.to_string().contains("longer than the service accepts (31d)"), "{error}");
    }
}
