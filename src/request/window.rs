//! The requested window, and its comparison with the one that a response reports, in an [`Echo`].
//!
//! ```text
//! decode ─▶ Echo::try_new: some of the window ─▶ check_mentions: all of it · check_counts: nothing else ─▶ check_lag: of now
//! ```
//!
//! A decoder makes the echo of each response from the request as it was sent. Its two windows are compared here alone.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

use super::CLOCK_SKEW;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{WindowSpec, Zone};

/// A window that ends so recently may be reported as ending now.
const CURRENT: TimeDelta = TimeDelta::hours(1);

/// The window that a response reports, [from, to).
type Stated = (DateTime<Utc>, DateTime<Utc>);

/// Current time at a response, by two clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    /// By the clock of this machine.
    pub(crate) ours: DateTime<Utc>,
    /// By the service's, according to its last response; ours if it has sent no time.
    pub(crate) service: DateTime<Utc>,
}

/// Echo of a window: the requested one, the one that the response reports, and the instant up to which the service's data was
/// complete.
///
/// Rows of a response are used once one of its checks has passed; which one depends on their use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Echo {
    asked: Option<RequestedWindow>,
    stated: Option<Stated>,
    as_of: Option<DateTime<Utc>>,
}

impl Echo {
    /// Compares the window that a response reports with the requested one. A service may clip a window to its data, at the beginning
    /// and at the current time.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`], naming both windows, for one that is empty or has nothing of the requested one. In the latter
    /// case another attempt may succeed.
    pub(crate) fn try_new(
        asked: Option<RequestedWindow>,
        stated: Option<Stated>,
        as_of: Option<DateTime<Utc>>,
    ) -> Result<Self> {
        RequestedWindow::check_overlap(asked, stated)?;
        Ok(Self { asked, stated, as_of })
    }

    /// The window that the service resolved the request to, [from, to), if the response reports one.
    pub fn window(&self) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        self.stated
    }

    /// Instant up to which the service's data was complete, if the response states it.
    pub fn as_of(&self) -> Option<DateTime<Utc>> {
        self.as_of
    }

    /// Checks that a response with mentions covers the requested window, and that its data was complete until the end. Returns true if
    /// the response covers more than was requested.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`], naming both windows or both instants.
    pub(crate) fn check_mentions(&self, clocks: Clocks) -> Result<bool> {
        self.check_as_of(clocks.service)?;
        let stated = self.asked.zip(self.stated);
        stated.map_or(Ok(false), |(asked, stated)| asked.covered_by(stated, clocks.service))
    }

    /// Does the same for counts, whose mentions cannot be filtered: the windows have to be equal. A service may end a window that
    /// reaches into the future at its current time.
    ///
    /// # Errors
    /// Those of [`check_mentions`](Self::check_mentions).
    pub(crate) fn check_counts(&self, clocks: Clocks) -> Result<()> {
        self.check_as_of(clocks.service)?;
        let stated = self.asked.zip(self.stated);
        stated.map_or(Ok(()), |(asked, stated)| asked.equal_to(stated, clocks.service))
    }

    /// Time by which a response lags behind this machine's clock, at the end of a window that ends now or later: newer mentions are
    /// not in it. `None` if it is not known to, as for a window that has ended. `end`: that of the range that a period stands for.
    pub(crate) fn lag(&self, Clocks { ours, service }: Clocks, end: Option<DateTime<Utc>>) -> Option<TimeDelta> {
        // The response has all of the range, whatever the time is now.
        if end.is_some_and(|end| end <= service) {
            return None;
        }
        let lag = match (self.asked?, self.stated) {
            // A response that reports the requested end is one to this request, whatever its date.
            (asked @ RequestedWindow::Instants(_, to), Some(stated)) => to.min(ours) - asked.half_open(stated).1,
            (RequestedWindow::Instants(_, to), None) if to < ours => return None,
            _ => ours - service,
        };
        Some(lag).filter(|lag| *lag > TimeDelta::zero())
    }

    /// Checks that a response to a window that ends now does not lag behind this machine's clock, as an old one that a cache repeats.
    /// Its date and its window may agree with each other. `end`: that of the range that a period stands for.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`], naming both clocks.
    pub(crate) fn check_lag(&self, clocks: Clocks, end: Option<DateTime<Utc>>) -> Result<()> {
        // Clocks that differ are no lag.
        let Some(lag) = self.lag(clocks, end).filter(|lag| *lag > CURRENT + CLOCK_SKEW) else { return Ok(()) };
        let [ours, service] = [clocks.ours, clocks.service].map(|at| at.trunc_subsecs(0));
        let ends = self.stated.map_or_else(String::new, |(_, until)| format!(", and its window ends at {until}"));
        let message = format!(
            "the response is {} old by this machine's clock, {ours}: the service's clock shows {service}{ends}; newer mentions would \
             be missing",
            length_of(lag)
        );
        Err(Error::new(ErrorKind::Contradiction, message).advice(
            "a cache may repeat an old response, or one of the clocks is wrong: correct this machine's clock, use an address without \
             the cache, or end the range of published_at before the response",
        ))
    }

    /// True if a response does not say where it ends within the requested instants: it may be up to date, whatever its date.
    pub(crate) fn may_reach_end(&self) -> bool {
        matches!((self.asked, self.stated), (Some(RequestedWindow::Instants(..)), None))
    }

    /// Checks that a response to a period, which was requested for a range, covers the range; one without an end reaches to now.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`], naming both.
    pub(crate) fn check_range(
        &self,
        (from, to): (DateTime<Utc>, Option<DateTime<Utc>>),
        now: DateTime<Utc>,
    ) -> Result<()> {
        let range = RequestedWindow::Instants(from, to.unwrap_or(now));
        self.stated.map_or(Ok(()), |stated| range.covered_by(stated, now).map(drop))
    }

    /// Checks that the data of a response was complete until the end of its window, or the service's current time.
    fn check_as_of(&self, now: DateTime<Utc>) -> Result<()> {
        let requested = match self.asked {
            Some(RequestedWindow::Instants(_, to)) => Some(to),
            _ => None,
        };
        let end = self.stated.map(|(_, until)| until).or(requested).map_or(now, |end| end.min(now));
        let Some(as_of) = self.as_of.filter(|as_of| end - *as_of > CURRENT) else { return Ok(()) };
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
}

/// A length of time in words, in units of which there are at least two.
pub(crate) fn length_of(length: TimeDelta) -> String {
    match (length.num_days(), length.num_hours(), length.num_minutes()) {
        (0..2, 0..2, minutes) => format!("{minutes} minutes"),
        (0..2, hours, _) => format!("{hours} hours"),
        (days, _, _) => format!("{days} days"),
    }
}

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
    fn cover(self, length: TimeDelta, (since, until): Stated, now: DateTime<Utc>) -> bool {
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

    /// Checks that a response is for some of the requested window. A service may clip a window to its data, at the beginning and
    /// at the current time. `told`: the window that the response reports.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`], naming both windows, for one that is empty or has nothing of the requested one. In the latter
    /// case another attempt may succeed.
    fn check_overlap(asked: Option<Self>, told: Option<Stated>) -> Result<()> {
        let asked = match asked {
            Some(Self::Instants(from, to)) => Some((from, to)),
            _ => None,
        };
        match (asked, told) {
            // A window without any instant: the service has no data for what was requested.
            (_, Some((since, until))) if until <= since => Err(Error::new(
                ErrorKind::Contradiction,
                match asked {
                    Some((from, to)) => {
                        format!("requested {from} to {to}, but the response covers nothing of it: {since} to {until}")
                    }
                    None => format!("the response covers an empty window: {since} to {until}"),
                },
            )
            .advice(
                "the service may keep mentions for a shorter time: check [window] in the profile, whose `earliest` is the \
                 beginning of the data",
            )),
            (Some((from, to)), Some((since, until))) if until <= from || to <= since => Err(Error::new(
                ErrorKind::Contradiction,
                format!("requested {from} to {to}, but the response is for {since} to {until}"),
            )
            .advice("the service ignores the time window or interprets it differently; check [window] in the profile")
            .passing()),
            _ => Ok(()),
        }
    }

    /// Compares it with the window that a response reports. `now` is the service's current time. Returns true if the response
    /// covers more than was requested.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`], naming both windows, if the response does not cover the requested one.
    fn covered_by(self, told: Stated, now: DateTime<Utc>) -> Result<bool> {
        let (since, until) = self.half_open(told);
        let (covers, exceeds) = match self {
            // A service may end the window at the current time.
            Self::Instants(from, to) => (since <= from && until >= to.min(now - CURRENT), since < from || until > to),
            Self::Length(length, steps) => (steps.cover(length, (since, until), now), false),
        };
        if covers && since < until { Ok(exceeds) } else { Err(self.differs((since, until))) }
    }

    fn equal_to(self, told: Stated, now: DateTime<Utc>) -> Result<()> {
        let Self::Instants(from, to) = self else { return self.covered_by(told, now).map(drop) };
        let (since, until) = self.half_open(told);
        let ends = until == to || (now - TimeDelta::minutes(10) <= until && until < to);
        if since == from && ends && since < until { Ok(()) } else { Err(self.differs(told)) }
    }

    /// The reported window with an end of its own. Some services report the last instant within it, by their precision.
    fn half_open(self, (since, until): Stated) -> Stated {
        let precisions = [TimeDelta::microseconds(1), TimeDelta::milliseconds(1), TimeDelta::seconds(1)];
        match self {
            Self::Instants(_, to) if precisions.contains(&(to - until)) => (since, to),
            _ => (since, until),
        }
    }

    /// The error for a response that does not cover the requested window.
    fn differs(self, (since, until): Stated) -> Error {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;
    use crate::profile::Profile;

    fn at(text: &str) -> DateTime<Utc> {
        format!("2026-06-{text}:00Z").parse().expect("an instant")
    }

    #[test]
    fn a_response_of_another_time_lacks_the_newest_mentions() {
        let spec = Profile::v4().window;
        let ours = at("30T12:00");
        let lag = |words: &str, stated: Option<Stated>, service: DateTime<Utc>| {
            let asked = RequestedWindow::of(&spec, words, Zone::UTC);
            let echo = Echo::try_new(asked, stated, None).expect("some of the window");
            let clocks = Clocks { ours, service };
            let accepted = echo.check_mentions(clocks).is_ok() && echo.check_lag(clocks, None).is_ok();
            (echo.lag(clocks, None).map_or(0, |lag| lag.num_minutes()), accepted)
        };
        let open = "2026-06-23T12:00:00Z..2026-06-30T12:10:00Z";
        let past = "2026-06-10T00:00:00Z..2026-06-12T00:00:00Z";
        let of = |from: &str, to: &str| Some((at(from), at(to)));
        // Everything in the response is of two hours ago, or of a week ago.
        assert_eq!(lag("7d", of("23T10:00", "30T10:00"), at("30T10:00")), (120, false));
        assert_eq!(lag("7d", of("16T12:00", "23T12:00"), at("23T12:00")), (7 * 24 * 60, false));
        assert_eq!(lag("7d", None, at("30T10:00")), (120, false), "by its date alone");
        assert_eq!(lag("7d", of("23T11:30", "30T11:30"), at("30T11:30")), (30, true));
        assert_eq!(lag("7d", of("23T10:50", "30T10:50"), at("30T10:50")), (70, true), "clocks may differ");
        assert_eq!(lag("7d", of("23T10:49", "30T10:49"), at("30T10:49")), (71, false));
        assert_eq!(lag("7d", of("23T12:00", "30T12:00"), ours), (0, true));
        // The service ends the window at its own time, or at the requested one.
        assert_eq!(lag(open, of("23T12:00", "30T10:00"), at("30T10:00")), (120, false));
        assert_eq!(lag(open, of("23T12:00", "30T12:10"), at("30T10:00")), (0, true));
        assert_eq!(lag(open, None, at("30T10:00")), (120, false));
        assert_eq!(lag(past, of("10T00:00", "12T00:00"), at("30T10:00")), (0, true));
        assert_eq!(lag(past, None, at("30T10:00")), (0, true));
        // The period stands for a range, of which the response has all, or not the end.
        let echo = Echo::try_new(RequestedWindow::of(&spec, "7d", Zone::UTC), of("23T10:00", "30T10:00"), None);
        let (echo, clocks) = (echo.expect("some of the window"), Clocks { ours, service: at("30T10:00") });
        let accepts = |end: &str| echo.check_lag(clocks, Some(at(end))).is_ok();
        assert_eq!(["29T00:00", "30T10:00", "30T10:01"].map(accepts), [true, true, false]);
        let reaches = |words: &str, stated: Option<Stated>| {
            let echo = Echo::try_new(RequestedWindow::of(&spec, words, Zone::UTC), stated, None);
            echo.expect("some of the window").may_reach_end()
        };
        assert!(reaches(open, None) && !reaches(open, of("23T12:00", "30T10:00")) && !reaches("7d", None));
    }

    #[test]
    fn a_response_has_to_cover_the_window() {
        let spec = Profile::v4().window;
        let now = at("30T12:00");
        let asked = |words: &str| RequestedWindow::of(&spec, words, Zone::UTC).expect("a period");
        let days = asked("2026-06-10T00:00:00Z..2026-06-12T00:00:00Z");
        let of = |from: &str, to: &str| (at(from), at(to));
        assert_eq!(days.covered_by(of("10T00:00", "12T00:00"), now).ok(), Some(false));
        assert_eq!(days.covered_by(of("09T00:00", "12T00:00"), now).ok(), Some(true));
        let cases = [
            of("11T00:00", "12T00:00"),
            of("10T00:00", "11T00:00"),
            of("28T12:00", "12T00:00"),
            of("28T12:00", "28T12:00"),
            of("28T12:00", "30T12:00"),
        ];
        each(cases, |other| {
            assert!(days.covered_by(other, now).is_err(), "{other:?}");
            assert!(days.equal_to(other, now).is_err(), "{other:?}");
        });
        assert!(days.equal_to(of("09T00:00", "12T00:00"), now).is_err(), "counts cannot be filtered");
        let open = asked("2026-06-28T00:00:00Z..2026-06-30T12:10:00Z");
        assert!(open.equal_to(of("28T00:00", "30T12:00"), now).is_ok(), "it ends now");
        let week = asked("7d");
        assert!(week.covered_by(of("24T00:00", "30T12:00"), now).is_ok(), "begins with a full day");
        assert!(week.covered_by(of("26T12:00", "30T12:00"), now).is_err(), "cut at its start");
        assert!(week.covered_by(of("20T12:00", "27T12:00"), now).is_err(), "of last week");
        assert!(week.covered_by(of("23T00:00", "30T00:00"), now).is_ok(), "whole days");
        for since in ["22T00:00", "22T12:00", "23T00:00"] {
            let ended = of(since, "30T12:00");
            assert_eq!(
                week.covered_by(ended, now).is_ok(),
                since == "23T00:00",
                "{since}: longer, unless it begins with a full day"
            );
        }
        assert!(week.covered_by(of("22T15:00", "30T12:00"), now).is_ok(), "a full day of another zone");
        for (words, since) in [("2d", "27T12:00"), ("6d", "23T12:00"), ("1d", "28T12:00"), ("1h", "30T10:00")] {
            assert!(asked(words).covered_by(of(since, "30T12:00"), now).is_err(), "{words} since {since}");
        }
        let future = "2026-06-30T21:00:00Z".parse().expect("an instant");
        assert!(week.covered_by((at("23T21:00"), future), now).is_err(), "it ends in nine hours");
        let tomorrow = "2026-07-01T00:00:00Z".parse().expect("an instant");
        assert!(week.covered_by((at("24T00:00"), tomorrow), now).is_ok(), "whole days, with all of today");
        assert!(asked("48h").covered_by(of("29T12:00", "30T12:00"), now).is_err(), "hours have no such reason");
        let cut = [("2d", "29T12:00"), ("3d", "28T12:00"), ("7d", "24T12:00"), ("1d", "30T11:00"), ("2h", "30T11:00")];
        for (words, since) in cut {
            assert!(asked(words).covered_by(of(since, "30T12:00"), now).is_err(), "{words} since {since}");
        }
        assert!(asked("7d").covered_by(of("24T00:00", "30T00:00"), now).is_err(), "six whole days");
        assert!(asked("7d").covered_by(of("22T12:00", "29T12:00"), now).is_err(), "it ended a day ago");
        assert!(asked("1d").covered_by(of("30T00:00", "30T12:00"), now).is_ok(), "today");
        let last = "2026-06-29T23:59:59Z".parse().expect("an instant");
        assert!(asked("7d").covered_by((at("23T00:00"), last), now).is_ok(), "whole days, with their last second");
        assert!(asked("2h").covered_by(of("30T11:00", "30T12:30"), at("30T12:30")).is_ok(), "begins with a full hour");
        let midnight = at("30T00:00");
        assert!(asked("2d").covered_by(of("29T00:00", "30T00:00"), midnight).is_err(), "one day of two, at midnight");
        assert!(asked("2d").covered_by(of("28T00:00", "30T00:00"), midnight).is_ok());
    }
}
