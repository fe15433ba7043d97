//! Verdicts on the claims of a service. Every response is evidence, and no claim decides about rows on its own.
//!
//! | claim | confirmed by | contradicted by | what happens then |
//! | --- | --- | --- | --- |
//! | *all rows were returned*: they end at the total | overview or timeline of the same response | one of them counts more | the rest is requested as a window of its own; if that is not possible, the error names both numbers |
//! | *there are more*: the total exceeds what came | rows behind the last one | overview or timeline end with the last row | refused after one pass, with both numbers |
//! | *there are more*, and there is no other count | rows behind the last one | nothing new arrives | the window is cut; three passes at most ([`allowance`]), then an error with both numbers |
//! | *all rows were returned*, without a total | another count, the far side of a cut | the last row is a round number ([`is_round`]) | the first page of the opposite order has to begin with rows that are known; without that order, the overview has to count as many |
//! | *all rows were returned* | the page behind the last one is empty | a member of the response says that more follow, on the empty page as well | refused, naming the member |
//! | *the parts of a window are complete* | the total of the window before it was cut | their sum differs from it | the total is requested once more: if it is the same, the error names both numbers |
//! | *all rows were returned*: as many as the total | overview or timeline count as many or fewer | both count the same number, and it is larger | refused, with both numbers |
//! | *the far side of a cut has all* its mentions | it has those at its edge again | it lacks one, and another count contradicts the total | as above |
//! | *this is the window that was requested* | the echo covers it ([`RequestedWindow::check`]) | it ends before, starts after, or lies outside | refused; a store keeps its days |
//! | *these are the mentions of the window* | the instant up to which the data is complete ([`check_as_of`]) | it is earlier than the end of the window | refused, with both instants; a store keeps what it read later |
//! | *windows are half-open*, [from, to) | no mention of the instant at which they end | there is one, and none of the first instant | the first instant is requested again: a mention of it is an error |
//! | *the first rows* of a sort order were returned | each page begins at the row that its offset counts | rows are missing between them, although the total is unchanged | refused |
//! | *the first rows* by time were returned | the first one is of the day with which the timeline begins or ends | it is of another day | refused |
//! | *this many match*: a count of the overview | total of the mention in the same response | they differ | the mentions are read |
//! | *this many match* in this window | the days of the timeline lie in it | one with mentions does not | the mentions are read |
//! | *this many match* a filter | a list whose requested values add up to the count, or all rows | the list has other values, or a smaller sum | refused if it has other values, else the mentions are read |
//! | *this is the largest value*, and it is NULL | there are no other mentions; the opposite order begins with NULL as well | it begins with a value | refused; with NULL at both ends, all mentions are read |
//! | *a page has at most this many rows* | no earlier page had more | one had | the number is the depth of paging, not the size of a page |
//!
//! Pure. Requests are sent by [`pages`](super::pages) and by the operator.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

use crate::error::{Error, ErrorKind, Result};
use crate::profile::{WindowSpec, Zone};
use crate::request::Beside;

/// Passes over the mentions of a scan before it is incomplete.
pub(super) const PASSES: u32 = 3;
/// Requests beyond them, for pages that came short once, and for those that show an end.
const SLACK: u64 = 8;
/// A window that ends so recently may be reported as ending now.
const CURRENT: TimeDelta = TimeDelta::hours(1);

impl Beside {
    fn counts(self) -> impl Iterator<Item = (u64, &'static str)> {
        let named = [
            (self.overview, "overview"),
            (self.timeline, "timeline"),
            (self.lists, "sum of two lists"),
            (self.listed, "list"),
        ];
        named.into_iter().filter_map(|(count, name)| Some((count?, name)))
    }

    /// The exact count, of the overview or else of the timeline, if it exceeds a number of mentions, and its name.
    pub(crate) fn exact_above(self, number: u64) -> Option<(u64, &'static str)> {
        let exact = self.overview.map(|count| (count, "overview")).or(self.timeline.map(|sum| (sum, "timeline")));
        exact.filter(|(count, _)| *count > number)
    }

    /// The count that exceeds a total the most, and its name. A list counts a mention twice if it has several values, so it
    /// contradicts only a total that may be a limit.
    pub(crate) fn above(self, total: u64) -> Option<(u64, &'static str)> {
        self.counts().filter(|(count, name)| *count > total && (*name != "list" || is_round(total))).max()
    }

    /// The count of the overview, if the timeline has the same one and it exceeds a number of mentions: two counts against one.
    pub(super) fn both_above(self, number: u64) -> Option<u64> {
        self.overview.filter(|count| *count > number && self.timeline == Some(*count))
    }

    /// True if an exact count differs from a total, or a list exceeds it.
    pub(crate) fn contradicts(self, total: u64) -> bool {
        self.above(total).is_some() || [self.overview, self.timeline].into_iter().flatten().any(|count| count != total)
    }

    /// The largest of a total and the counts beside it.
    pub(crate) fn most(self, total: u64) -> u64 {
        self.above(total).map_or(total, |(count, _)| count)
    }

    /// The names of the counts of this number.
    pub(crate) fn equal_to(self, number: u64) -> Vec<&'static str> {
        self.counts().filter(|(count, name)| *count == number && !name.contains("list")).map(|(_, name)| name).collect()
    }

    /// The name of a count that ends with this row, if none goes beyond it.
    pub(crate) fn ends_at(self, row: u64) -> Option<&'static str> {
        let exact = self.counts().find(|(count, name)| *count == row && !name.contains("list"));
        exact.filter(|_| self.above(row).is_none()).map(|(_, name)| name)
    }
}

/// Requests that a scan may spend, given the distinct mentions that it has received: three passes over as many of an honest
/// service, in pages of this size.
pub(crate) fn allowance(mentions: u64, page: u64) -> u64 {
    // Pages share a row.
    let advance = if page > 4 { page - 1 } else { page.max(1) };
    mentions.div_ceil(advance).max(1).saturating_mul(u64::from(PASSES)).saturating_add(SLACK)
}

/// True for a number of rows at which services stop to page.
pub(crate) fn is_round(rows: u64) -> bool {
    rows >= 100 && (rows.is_multiple_of(100) || rows.is_power_of_two())
}

/// Advice for counts of one response that differ.
pub(crate) const WHICH: &str = "set trust = \"advisory\" in the profile's [total] or [counts], whichever is wrong";

/// Advice for a service that needs more requests than three passes take.
pub(crate) const LEFT_OUT: &str = "paging may end early, pages may lack mentions, or the number may count other mentions: \
                                   narrow the range of published_at, or check the profile's [depth], [page] and [total]";

/// Advice for pages that name the next one, where nothing else shows that they are complete.
pub(crate) const CURSORS: &str = "if a cursor is a place in the order of mentions, set stable = true in [offset] of the profile; if \
                                  windows exclude their end, set end = \"exclusive\" in [window]; narrow the window";

/// Advice for parts of a window with fewer mentions than the window.
pub(crate) const PARTS: &str = "windows may exclude their first or last instant: check [window] in the profile";

/// Advice for an end that is not proven.
pub(crate) const NARROWER: &str = "narrow the range of published_at, or set [depth] in the profile";

/// Advice for a response that says that more mentions follow, although none do.
pub(crate) const FOLLOWS: &str = "the service limits what it returns: narrow the range of published_at; if the member means \
                                  something else, declare it in [complete] of the profile";

/// Window that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestedWindow {
    /// The instants [from, to).
    Instants(DateTime<Utc>, DateTime<Utc>),
    /// A period of this length that ends now.
    Length(TimeDelta, Steps),
}

/// Steps of time with which a relative period may begin and end, instead of at its length before now, and now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Steps {
    /// With a whole day of the zone, or of any.
    Days { zone: Zone, any: bool },
    /// With a whole hour.
    Hours,
    /// Anywhere within this time, because months and the like differ in length.
    Within { zone: Zone, slack: TimeDelta },
}

impl Steps {
    /// Length of a step.
    fn length(self) -> TimeDelta {
        match self {
            Self::Days { .. } => TimeDelta::days(1),
            Self::Hours => TimeDelta::hours(1),
            Self::Within { slack, .. } => slack,
        }
    }

    /// Time by which any period of this kind may be shorter: services count whole minutes, and days have 23 or 25 hours.
    fn tolerance(self) -> TimeDelta {
        match self {
            Self::Days { .. } => TimeDelta::hours(1),
            Self::Hours => TimeDelta::minutes(1),
            Self::Within { slack, .. } => slack,
        }
    }

    /// True if a step begins at this instant.
    fn begin_at(self, at: DateTime<Utc>) -> bool {
        match self {
            // Some services count days of UTC, whatever the zone.
            Self::Days { zone, .. } | Self::Within { zone, .. } => {
                [zone, Zone::UTC].into_iter().any(|zone| zone.day_start(zone.local(at).date()) == Some(at))
            }
            Self::Hours => at.timestamp().rem_euclid(3_600) == 0,
        }
    }

    /// True for a number of whole steps, which another period has.
    fn is_whole(self, length: TimeDelta) -> bool {
        let (step, minute) = (self.length().num_seconds(), 60);
        (length.num_seconds() + minute).rem_euclid(step) <= 2 * minute
    }

    /// True if a reported window is such a period of this length that ends now.
    fn cover(self, length: TimeDelta, (since, until): (DateTime<Utc>, DateTime<Utc>), now: DateTime<Utc>) -> bool {
        let (lag, step, tolerance) = (now - until, self.length(), self.tolerance());
        // The last instant of the last whole step may be reported, by the precision of the service.
        let mut ends_of = [0, 1, 1_000, 1_000_000].into_iter().map(|micros| until + TimeDelta::microseconds(micros));
        let whole_end = ends_of.find(|end| self.begin_at(*end));
        let reported = whole_end.unwrap_or(until) - since;
        let of_any_zone = matches!(self, Self::Days { any: true, .. }) && !self.is_whole(reported);
        let begins =
            reported >= length - tolerance || ((self.begin_at(since) || of_any_zone) && reported > length - step);
        let tomorrow = TimeDelta::hours(25).min(step + tolerance);
        let ends = (lag <= CURRENT.max(tolerance) && lag >= -CURRENT)
            || (whole_end.is_some() && lag <= step + tolerance && lag >= -tomorrow);
        // One that is longer is another one, unless it begins with a whole step, of whatever zone.
        let longer = match self {
            Self::Within { slack, .. } => slack,
            _ if self.begin_at(since) && since > now - length - step => step + tolerance,
            _ if !self.is_whole(reported) => step + tolerance,
            _ => tolerance,
        };
        begins && ends && reported <= length + longer
    }
}

impl RequestedWindow {
    /// Reads the value of a period parameter; `None` if its meaning is not known.
    pub(crate) fn of(spec: &WindowSpec, words: &str, zone: Zone) -> Option<Self> {
        if let Some((from, to)) = spec.span_of(words, zone) {
            return Some(Self::Instants(from, to));
        }
        /// Length of the shortest month.
        const MONTH: TimeDelta = TimeDelta::days(28);
        /// Days by which a month differs from its mean.
        const DIFFERENCE: TimeDelta = TimeDelta::days(3);
        let length = spec.length_of(words)?;
        let steps = match spec.names.contains_key(words) {
            true if length >= MONTH => Steps::Within { zone, slack: DIFFERENCE.max(length / 24) },
            // Calendar days, of a zone that the service may not name. One that is cut cannot be told from `today`.
            true if length >= TimeDelta::days(1) => Steps::Days { zone, any: length > TimeDelta::days(1) },
            false if length >= TimeDelta::days(1) && !words.ends_with('h') => Steps::Days { zone, any: false },
            _ => Steps::Hours,
        };
        Some(Self::Length(length, steps))
    }

    /// Compares it with the window that the response reports. `now` is the service's current time. Returns true if the
    /// response covers more than was requested.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`], naming both windows, if the response does not cover the requested one.
    pub(crate) fn check(self, told: (DateTime<Utc>, DateTime<Utc>), now: DateTime<Utc>) -> Result<bool> {
        let (since, until) = self.half_open(told);
        let (covers, exceeds) = match self {
            // A service may end the window at the current time.
            Self::Instants(from, to) => (since <= from && until >= to.min(now - CURRENT), since < from || until > to),
            Self::Length(length, steps) => (steps.cover(length, (since, until), now), false),
        };
        if covers && since < until { Ok(exceeds) } else { Err(self.differs((since, until))) }
    }

    /// Does the same for counts, whose mentions cannot be filtered: the windows have to be equal. A service may end a window that
    /// reaches into the future at its current time.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`], naming both windows.
    pub(crate) fn check_equal(self, told: (DateTime<Utc>, DateTime<Utc>), now: DateTime<Utc>) -> Result<()> {
        let Self::Instants(from, to) = self else { return self.check(told, now).map(drop) };
        let (since, until) = self.half_open(told);
        let ends = until == to || (now - TimeDelta::minutes(10) <= until && until < to);
        if since == from && ends && since < until { Ok(()) } else { Err(self.differs(told)) }
    }

    /// The reported window with an end of its own. Some services report the last instant within it, by their precision.
    fn half_open(self, (since, until): (DateTime<Utc>, DateTime<Utc>)) -> (DateTime<Utc>, DateTime<Utc>) {
        let precisions = [TimeDelta::microseconds(1), TimeDelta::milliseconds(1), TimeDelta::seconds(1)];
        match self {
            Self::Instants(_, to) if precisions.contains(&(to - until)) => (since, to),
            _ => (since, until),
        }
    }

    /// The error for a response that does not cover the requested window.
    pub(crate) fn differs(self, (since, until): (DateTime<Utc>, DateTime<Utc>)) -> Error {
        let asked = match self {
            Self::Instants(from, to) => format!("{from} to {to}"),
            Self::Length(length, _) if length.num_hours() % 24 == 0 => format!("{} days", length.num_days()),
            Self::Length(length, _) => format!("{} hours", length.num_hours()),
        };
        let only = if matches!(self, Self::Length(length, _) if until - since > length) { "" } else { "only " };
        let covers = match since < until {
            true => format!("covers {only}{since} to {until}"),
            false => format!("covers nothing of it: {since} to {until}"),
        };
        Error::new(ErrorKind::Contradiction, format!("requested {asked}, but the response {covers}")).advice(
            "the service shortens the period or interprets it differently: check [window] in the profile, whose \
             `longest` is the longest period and whose `earliest` is the beginning of the data",
        )
    }
}

/// Checks that the data of a response was complete until the end of its window, or the service's current time.
///
/// # Errors
/// [`ErrorKind::Contradiction`], naming both instants.
pub(crate) fn check_as_of(
    as_of: Option<DateTime<Utc>>,
    asked: Option<RequestedWindow>,
    told: Option<(DateTime<Utc>, DateTime<Utc>)>,
    now: DateTime<Utc>,
) -> Result<()> {
    let requested = match asked {
        Some(RequestedWindow::Instants(_, to)) => Some(to),
        _ => None,
    };
    let end = told.map(|(_, until)| until).or(requested).map_or(now, |end| end.min(now));
    let Some(as_of) = as_of.filter(|as_of| end - *as_of > CURRENT) else { return Ok(()) };
    let (as_of, end) = (as_of.trunc_subsecs(0), end.trunc_subsecs(0));
    Err(Error::new(
        ErrorKind::Contradiction,
        format!("the response has the mentions known at {as_of}, but its window ends at {end}"),
    )
    .advice(
        "the service may answer from an old copy: try again later, end the range of published_at before that, or remove `as_of` \
         from [complete] of the profile if it means something else",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        format!("2026-06-{text}:00Z").parse().expect("an instant")
    }

    #[test]
    fn counts_beside_a_total_contradict_it() {
        let beside = Beside { overview: Some(200), timeline: Some(450), listed: Some(440), lists: None };
        assert_eq!((beside.above(200), beside.most(200)), (Some((450, "timeline")), 450));
        assert_eq!((beside.above(450), beside.most(500)), (None, 500));
        assert_eq!((beside.ends_at(450), beside.ends_at(200), beside.ends_at(440)), (Some("timeline"), None, None));
        assert_eq!(Beside::default().above(0), None);
    }

    #[test]
    fn three_passes_are_allowed() {
        assert_eq!(allowance(0, 100), 11);
        assert_eq!(allowance(950, 100), 38);
        assert_eq!(allowance(450, 100), 23);
        assert_eq!(allowance(3, 1), 17);
    }

    #[test]
    fn services_stop_at_round_rows() {
        assert!([100, 500, 1_000, 1_024, 10_000].into_iter().all(is_round));
        assert!([0, 64, 99, 973, 1_605].into_iter().all(|rows| !is_round(rows)));
    }

    #[test]
    fn a_response_has_to_cover_the_window() {
        let spec = crate::profile::Profile::v4().window;
        let now = at("30T12:00");
        let asked = |words: &str| RequestedWindow::of(&spec, words, Zone::UTC).expect("a period");
        let days = asked("2026-06-10T00:00:00Z..2026-06-12T00:00:00Z");
        let of = |from: &str, to: &str| (at(from), at(to));
        assert_eq!(days.check(of("10T00:00", "12T00:00"), now).ok(), Some(false));
        assert_eq!(days.check(of("09T00:00", "12T00:00"), now).ok(), Some(true));
        for other in [
            of("11T00:00", "12T00:00"),
            of("10T00:00", "11T00:00"),
            of("28T12:00", "12T00:00"),
            of("28T12:00", "28T12:00"),
            of("28T12:00", "30T12:00"),
        ] {
            assert!(days.check(other, now).is_err(), "{other:?}");
            assert!(days.check_equal(other, now).is_err(), "{other:?}");
        }
        assert!(days.check_equal(of("09T00:00", "12T00:00"), now).is_err(), "counts cannot be filtered");
        let open = asked("2026-06-28T00:00:00Z..2026-06-30T12:10:00Z");
        assert!(open.check_equal(of("28T00:00", "30T12:00"), now).is_ok(), "it ends now");
        let week = asked("7d");
        assert!(week.check(of("24T00:00", "30T12:00"), now).is_ok(), "begins with a full day");
        assert!(week.check(of("26T12:00", "30T12:00"), now).is_err(), "cut at its start");
        assert!(week.check(of("20T12:00", "27T12:00"), now).is_err(), "of last week");
        assert!(week.check(of("23T00:00", "30T00:00"), now).is_ok(), "whole days");
        for since in ["22T00:00", "22T12:00", "23T00:00"] {
            let ended = of(since, "30T12:00");
            assert_eq!(
                week.check(ended, now).is_ok(),
                since == "23T00:00",
                "{since}: longer, unless it begins with a full day"
            );
        }
        assert!(week.check(of("22T15:00", "30T12:00"), now).is_ok(), "a full day of another zone");
        for (words, since) in [("2d", "27T12:00"), ("6d", "23T12:00"), ("1d", "28T12:00"), ("1h", "30T10:00")] {
            assert!(asked(words).check(of(since, "30T12:00"), now).is_err(), "{words} since {since}");
        }
        let future = "2026-06-30T21:00:00Z".parse().expect("an instant");
        assert!(week.check((at("23T21:00"), future), now).is_err(), "it ends in nine hours");
        let tomorrow = "2026-07-01T00:00:00Z".parse().expect("an instant");
        assert!(week.check((at("24T00:00"), tomorrow), now).is_ok(), "whole days, with all of today");
        assert!(asked("48h").check(of("29T12:00", "30T12:00"), now).is_err(), "hours have no such reason");
        let cut = [("2d", "29T12:00"), ("3d", "28T12:00"), ("7d", "24T12:00"), ("1d", "30T11:00"), ("2h", "30T11:00")];
        for (words, since) in cut {
            assert!(asked(words).check(of(since, "30T12:00"), now).is_err(), "{words} since {since}");
        }
        assert!(asked("7d").check(of("24T00:00", "30T00:00"), now).is_err(), "six whole days");
        assert!(asked("7d").check(of("22T12:00", "29T12:00"), now).is_err(), "it ended a day ago");
        assert!(asked("1d").check(of("30T00:00", "30T12:00"), now).is_ok(), "today");
        let last = "2026-06-29T23:59:59Z".parse().expect("an instant");
        assert!(asked("7d").check((at("23T00:00"), last), now).is_ok(), "whole days, with their last second");
        assert!(asked("2h").check(of("30T11:00", "30T12:30"), at("30T12:30")).is_ok(), "begins with a full hour");
        let midnight = at("30T00:00");
        assert!(asked("2d").check(of("29T00:00", "30T00:00"), midnight).is_err(), "one day of two, at midnight");
        assert!(asked("2d").check(of("28T00:00", "30T00:00"), midnight).is_ok());
    }
}
