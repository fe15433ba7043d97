//! Period grammar: conversion between the service's notation of time windows and spans of instants.
//!
//! ```text
//! "30d", "last_week", "2026-01-01T00:00:00Z..2026-02-01T00:00:00Z"   ◀─▶   a span of instants
//! ```

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::Deserialize;

use super::spec::{Checks, Evidence};
use super::zone::Zone;

/// Time window parameter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowSpec {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Parameter name. Absent: none is known. No period is sent, responses cover the service's own one, which `default` names, and a
    /// query with a time filter is an error.
    pub parameter: Option<String>,
    /// Period sent when the query has no time filter. The parameter is always sent, as the API description recommends.
    pub default: String,
    /// Units of relative periods `<n><unit>`. Empty: there are no relative periods.
    pub relative: Vec<Unit>,
    /// Form in which relative periods are sent. Absent: as periods.
    #[serde(default)]
    pub relative_as: RelativeAs,
    /// Notation of relative periods by unit, with `{n}` for the number, such as `P{n}D` or `{n} days`. Absent for a unit:
    /// `{n}` and the unit.
    #[serde(default)]
    pub written: BTreeMap<Unit, String>,
    /// Template of an absolute period in `parameter`, with `{from}` and `{to}`. Absent: the service takes no such
    /// periods.
    pub absolute: Option<String>,
    /// Separate parameters for the bounds of an absolute period.
    pub separate: Option<Separate>,
    /// Notation of instants.
    pub instants: Instants,
    /// Inclusion of the end instant in the window.
    pub end: End,
    /// Unit to which the service rounds down the bounds of a window. Absent: they are used as they are.
    pub granularity: Option<Granularity>,
    /// Named periods and their lengths.
    #[serde(default)]
    pub names: BTreeMap<String, Period>,
    /// Maximum length of a window. Absent: unlimited.
    pub longest: Option<Period>,
    /// Instant before which the service has no mentions. It becomes the start of ranges that have none.
    pub earliest: Option<DateTime<Utc>>,
}

/// Form in which relative periods are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RelativeAs {
    /// In the service's own notation.
    #[default]
    Period,
    /// As an absolute period that ends now, because the service takes no relative ones. It begins with a whole hour or day if the
    /// service takes no other instants.
    Instants,
}

/// Parameters for the bounds of an absolute period.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Separate {
    /// Parameter for the start.
    pub from: String,
    /// Parameter for the end.
    pub to: String,
    /// Further parameters that are sent with the bounds, such as `duration = "custom"`.
    #[serde(default)]
    pub with: BTreeMap<String, String>,
}

/// Notation of instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Instants {
    /// RFC 3339 in UTC, whole seconds.
    Rfc3339,
    /// Local time in the requested zone.
    Local,
    /// Local date in the requested zone.
    Date,
    /// Seconds since 1970.
    EpochS,
    /// Milliseconds since 1970.
    EpochMs,
}

/// Unit of the bounds of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// Whole minutes.
    Minute,
    /// Whole hours.
    Hour,
}

impl Granularity {
    /// Length in microseconds.
    fn micros(self) -> i64 {
        match self {
            Self::Minute => 60_000_000,
            Self::Hour => 3_600_000_000,
        }
    }
}

/// Treatment of the end of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The end is excluded: windows are half-open.
    Exclusive,
    /// The end is included: windows are closed.
    Inclusive,
}

/// A unit of relative periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
pub enum Unit {
    /// Hours.
    #[serde(rename = "h")]
    Hour,
    /// Days of 24 hours.
    #[serde(rename = "d")]
    Day,
    /// Seven days.
    #[serde(rename = "w")]
    Week,
}

impl Unit {
    fn hours(self) -> i64 {
        match self {
            Self::Hour => 1,
            Self::Day => 24,
            Self::Week => 168,
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Hour => 'h',
            Self::Day => 'd',
            Self::Week => 'w',
        }
    }
}

/// A length of time: `<n>h`, `<n>d` or `<n>w`, with n at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct Period {
    n: u32,
    unit: Unit,
}

impl Period {
    /// A period of this many days.
    pub(super) fn days(n: u32) -> Self {
        Self { n, unit: Unit::Day }
    }

    /// Length of the period.
    pub fn length(self) -> TimeDelta {
        TimeDelta::hours(i64::from(self.n) * self.unit.hours())
    }
}

impl TryFrom<String> for Period {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let unit = match text.as_bytes().last() {
            Some(b'h') => Unit::Hour,
            Some(b'd') => Unit::Day,
            Some(b'w') => Unit::Week,
            _ => return Err(format!("invalid period `{text}`: expected <n>h, <n>d or <n>w")),
        };
        let digits = &text[..text.len() - 1];
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
        match digits.parse() {
            Ok(n) if plain => Ok(Self { n, unit }),
            _ => Err(format!("invalid period `{text}`: expected <n>h, <n>d or <n>w with n from 1 to {}", u32::MAX)),
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.n, self.unit.letter())
    }
}

impl WindowSpec {
    pub(super) fn check(&self, checks: &mut Checks) {
        let template = |template: &String| {
            template.matches("{from}").count() == 1
                && template.matches("{to}").count() == 1
                && template.find("{from}") < template.find("{to}")
                && template.find("{from}{to}").is_none()
        };
        let counted = |template: &String| template.matches("{n}").count() == 1;
        checks.expect(
            self.written.values().all(counted) && self.written.keys().all(|unit| self.relative.contains(unit)),
            "window.written",
            "expected strings with {n}, for units in `relative`",
        );
        checks.expect(
            self.absolute.as_ref().is_none_or(template),
            "window.absolute",
            "expected a string with {from}, a separator and {to}, in this order",
        );
        let local = matches!(self.instants, Instants::Local | Instants::Date);
        checks.expect(
            self.granularity.is_none() || !local,
            "window.granularity",
            "expected `instants` to be rfc3339, epoch_s or epoch_ms",
        );
        checks.expect(
            !self.sends_instants() || self.takes_instants(),
            "window.relative_as",
            "expected `absolute` or `separate`",
        );
        checks.expect(
            !self.sends_instants() || !self.relative.is_empty(),
            "window.relative",
            "expected units, because `relative_as` is set",
        );
        checks.expect(
            !(self.sends_instants() && self.instants == Instants::Date && self.relative.contains(&Unit::Hour)),
            "window.relative",
            "expected days and weeks, because `instants` are dates",
        );
        let takes_relative = !self.relative.is_empty() && !self.sends_instants();
        let takes_periods = takes_relative || !self.names.is_empty() || self.absolute.is_some();
        checks.expect(
            self.parameter.is_some() || !takes_periods,
            "window.parameter",
            "expected the name of the parameter of the periods",
        );
        if let Err(message) = self.check_words(&self.default) {
            checks.expect(false, "window.default", message);
        }
    }

    /// True if no way to request a period is known.
    pub fn is_unknown(&self) -> bool {
        self.parameter.is_none() && self.separate.is_none()
    }

    /// True if the service takes spans of instants.
    pub fn takes_instants(&self) -> bool {
        self.absolute.is_some() || self.separate.is_some()
    }

    /// True if relative periods are sent as instants.
    fn sends_instants(&self) -> bool {
        self.relative_as == RelativeAs::Instants
    }

    /// Length of a relative period that is sent as instants; `None` for any other period.
    pub(crate) fn length_in_instants(&self, words: &str) -> Option<TimeDelta> {
        self.period_of(words).filter(|_| self.sends_instants()).map(Period::length)
    }

    /// Checks that `words` are a period in this grammar. The error describes the expected value.
    pub fn check_words(&self, words: &str) -> Result<(), String> {
        let fits = |length: TimeDelta| match self.longest {
            Some(longest) if length > longest.length() => {
                Err(format!("period `{words}` is longer than the service's maximum of {longest}"))
            }
            _ => Ok(()),
        };
        if self.is_unknown() {
            let own = format!("no parameter of a period is known: the service always returns `{}`", self.default);
            return if words == self.default { Ok(()) } else { Err(format!("invalid period `{words}`: {own}")) };
        }
        if let Some(period) = self.names.get(words) {
            return fits(period.length());
        }
        if let Some(period) = self.period_of(words) {
            // Its end is a little later than now.
            if let Some(longest) =
                self.longest.filter(|longest| self.sends_instants() && period.length() >= longest.length())
            {
                return Err(format!("period `{words}` is not shorter than the service's maximum of {longest}"));
            }
            return fits(period.length());
        }
        match self.span_of(words, Zone::UTC) {
            Some((from, to)) if from < to => fits(to - from),
            Some(_) => Err(format!("invalid period `{words}`: expected an end after the start")),
            None => Err(format!("invalid period `{words}`: the service takes {}", self.forms())),
        }
    }

    /// Parses a relative period in the service's notation.
    fn period_of(&self, words: &str) -> Option<Period> {
        self.relative.iter().find_map(|unit| {
            let (head, tail) = match self.written.get(unit) {
                Some(template) => template.split_once("{n}")?,
                None => return Period::try_from(words.to_owned()).ok().filter(|period| period.unit == *unit),
            };
            let digits = words.strip_prefix(head)?.strip_suffix(tail)?;
            Period::try_from(format!("{digits}{}", unit.letter())).ok()
        })
    }

    /// Formats a relative period in the service's notation.
    fn relative_words(&self, period: Period) -> String {
        match self.written.get(&period.unit) {
            Some(template) => template.replace("{n}", &period.n.to_string()),
            None => period.to_string(),
        }
    }

    /// Splits an absolute period into its bounds, as written; `None` for any other period.
    fn ends_of<'w>(&self, words: &'w str) -> Option<(&'w str, &'w str)> {
        let (head, rest) = self.template().split_once("{from}")?;
        let (middle, tail) = rest.split_once("{to}")?;
        self.takes_instants().then_some(())?;
        words.strip_prefix(head)?.strip_suffix(tail)?.split_once(middle)
    }

    /// Converts an absolute period to a span [from, to); `None` for any other period. An inclusive end that is an
    /// instant, not a day, is treated as exclusive: the span lacks that single instant.
    pub fn span_of(&self, words: &str, zone: Zone) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let (from, to) = self.ends_of(words)?;
        let to = match (self.instants, self.end) {
            (Instants::Date, End::Inclusive) => zone.day_start(to.parse::<NaiveDate>().ok()?.succ_opt()?)?,
            _ => self.instants.read(to, zone)?,
        };
        Some((self.instants.read(from, zone)?, to))
    }

    /// Formats a span [from, to), whose ends lie on the [grid](Self::grid).
    pub fn words_of(&self, from: DateTime<Utc>, to: DateTime<Utc>, zone: Zone) -> String {
        let last = match (self.instants, self.end) {
            // The last day of the span.
            (Instants::Date, End::Inclusive) => to - TimeDelta::microseconds(1),
            _ => to,
        };
        self.template()
            .replace("{from}", &self.instants.write(from, zone))
            .replace("{to}", &self.instants.write(last, zone))
    }

    /// Instants at which windows can begin and end.
    pub fn grid(&self, zone: Zone) -> Grid {
        match self.instants {
            Instants::Rfc3339 | Instants::EpochS | Instants::EpochMs if self.granularity.is_some() => {
                Grid::Steps(self.granularity.map_or(1, Granularity::micros))
            }
            Instants::Rfc3339 | Instants::EpochS => Grid::Steps(1_000_000),
            Instants::EpochMs => Grid::Steps(1_000),
            Instants::Local => Grid::Local(zone),
            Instants::Date => Grid::Days(zone),
        }
    }

    /// Length of a relative or named period that ends now; `None` for any other period.
    pub fn length_of(&self, words: &str) -> Option<TimeDelta> {
        self.names.get(words).copied().or_else(|| self.period_of(words)).map(Period::length)
    }

    /// True if the words mean the same period in every zone.
    pub fn is_fixed(&self, words: &str) -> bool {
        let local = matches!(self.instants, Instants::Local | Instants::Date) && self.ends_of(words).is_some();
        !local && !self.names.contains_key(words)
    }

    /// True if windows can be adjacent without sharing an instant.
    pub fn is_half_open(&self) -> bool {
        self.end == End::Exclusive || self.instants == Instants::Date
    }

    fn template(&self) -> &str {
        self.absolute.as_deref().unwrap_or("{from}..{to}")
    }

    /// Request parameters for this period.
    pub fn parameters(&self, words: &str) -> Vec<(String, String)> {
        match (&self.separate, self.ends_of(words)) {
            (Some(Separate { from, to, with }), Some((start, end))) => {
                let ends = [(from.clone(), start.to_owned()), (to.clone(), end.to_owned())];
                ends.into_iter().chain(with.iter().map(|(name, value)| (name.clone(), value.clone()))).collect()
            }
            _ => self.parameter.iter().map(|name| (name.clone(), words.to_owned())).collect(),
        }
    }

    /// Smallest relative or named period that is at least `length` long; `None` if there is none.
    pub fn reaching(&self, length: TimeDelta) -> Option<String> {
        let relative = self.relative.iter().filter_map(|unit| {
            let hours = unit.hours();
            // Rounds up to a whole unit, and a length of zero to one unit.
            let n = (length.num_seconds().max(1) + hours * 3600 - 1) / (hours * 3600);
            Some(Period { n: u32::try_from(n).ok()?, unit: *unit })
        });
        let periods = relative.map(|period| (period.length(), self.relative_words(period)));
        let names = self.names.iter().map(|(name, period)| (period.length(), name.clone()));
        periods.chain(names).filter(|(reach, _)| *reach >= length).min().map(|(_, words)| words)
    }

    /// Common periods, in words that the grammar accepts.
    pub fn usual(&self) -> Vec<String> {
        let known = |words: &&str| self.check_words(words).is_ok();
        let usual =
            [(1, Unit::Hour), (24, Unit::Hour), (1, Unit::Day), (7, Unit::Day), (30, Unit::Day), (90, Unit::Day)];
        let usual = usual.into_iter().chain([(1, Unit::Week), (4, Unit::Week)]);
        let usual =
            usual.map(|(n, unit)| self.relative_words(Period { n, unit })).filter(|words| known(&words.as_str()));
        usual.chain(self.names.keys().cloned()).collect()
    }

    /// Accepted forms, for error messages.
    pub fn forms(&self) -> String {
        let form = |unit: &Unit| match self.written.get(unit) {
            Some(template) => template.replace("{n}", "<n>"),
            None => format!("<n>{}", unit.letter()),
        };
        let mut forms: Vec<String> = self.relative.iter().map(form).collect();
        forms.extend(self.names.keys().cloned());
        if self.takes_instants() {
            let (from, to) = self.instants.example();
            forms.push(self.template().replace("{from}", from).replace("{to}", to));
        }
        forms.join(", ")
    }
}

impl Instants {
    fn write(self, at: DateTime<Utc>, zone: Zone) -> String {
        match self {
            Self::EpochS => at.timestamp().to_string(),
            Self::EpochMs => at.timestamp_millis().to_string(),
            Self::Rfc3339 => at.to_rfc3339_opts(SecondsFormat::Secs, true),
            Self::Local => zone.local(at).format("%Y-%m-%dT%H:%M:%S").to_string(),
            Self::Date => zone.local(at).date().to_string(),
        }
    }

    fn read(self, text: &str, zone: Zone) -> Option<DateTime<Utc>> {
        match self {
            Self::EpochS => DateTime::from_timestamp(text.parse().ok()?, 0),
            Self::EpochMs => DateTime::from_timestamp_millis(text.parse().ok()?),
            Self::Rfc3339 => DateTime::parse_from_rfc3339(text).ok().map(|at| at.with_timezone(&Utc)),
            Self::Local => zone.instants(text.parse::<NaiveDateTime>().ok()?).earliest(),
            Self::Date => zone.day_start(text.parse().ok()?),
        }
    }

    /// The beginning and the end of January.
    fn example(self) -> (&'static str, &'static str) {
        match self {
            Self::EpochS => ("1767225600", "1769904000"),
            Self::EpochMs => ("1767225600000", "1769904000000"),
            Self::Rfc3339 => ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"),
            Self::Local => ("2026-01-01T00:00:00", "2026-02-01T00:00:00"),
            Self::Date => ("2026-01-01", "2026-02-01"),
        }
    }
}

/// Instants at which the service's windows can begin and end, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grid {
    /// Multiples of this number of microseconds.
    Steps(i64),
    /// Full seconds of a zone whose local time is unambiguous.
    Local(Zone),
    /// First instants of the days of a zone.
    Days(Zone),
}

impl Grid {
    /// Returns the last grid instant that is not after `at`, or `at` itself at the end of the calendar.
    pub fn floor(self, at: i64) -> i64 {
        match self {
            Self::Steps(step) => at.div_euclid(step).saturating_mul(step),
            Self::Local(zone) => plain(zone, Self::Steps(1_000_000).floor(at), -1),
            Self::Days(zone) => day(zone, at, 0).unwrap_or(at),
        }
    }

    /// Returns the first grid instant that is not before `at`, or `at` itself at the end of the calendar.
    pub fn ceil(self, at: i64) -> i64 {
        match self {
            Self::Steps(step) => at.checked_add(step - 1).map_or(at, |at| Self::Steps(step).floor(at)),
            Self::Local(zone) => plain(zone, Self::Steps(1_000_000).ceil(at), 1),
            Self::Days(zone) if day(zone, at, 0) == Some(at) => at,
            Self::Days(zone) => day(zone, at, 1).unwrap_or(at),
        }
    }
}

/// First instant of the day that is this many days after the day of `at`.
fn day(zone: Zone, at: i64, days: u64) -> Option<i64> {
    Some(zone.day_after(DateTime::from_timestamp_micros(at)?, days)?.timestamp_micros())
}

/// Nearest full second in a direction whose local time is unambiguous; `at` is a full second.
fn plain(zone: Zone, at: i64, direction: i64) -> i64 {
    const SECOND: i64 = 1_000_000;
    /// Clocks are set back by multiples of a quarter of an hour, by a day at most.
    const QUARTER: i64 = 900 * SECOND;
    let single = |at: i64| {
        let local = DateTime::from_timestamp_micros(at).map(|at| zone.instants(zone.local(at)));
        local.is_some_and(|instants| instants.single().is_some())
    };
    if single(at) {
        return at;
    }
    let steps = (1..=96).filter_map(|n| at.checked_add(direction * n * QUARTER));
    let Some(mut inside) = steps.into_iter().find(|at| single(*at)) else { return at };
    // The ambiguous times end between this instant and the one a step before it.
    let mut beyond = inside - direction * QUARTER;
    while (inside - beyond).abs() > SECOND {
        let middle = beyond + (inside - beyond) / SECOND / 2 * SECOND;
        if single(middle) { inside = middle } else { beyond = middle }
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;
    use crate::profile::Profile;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("an instant")
    }

    fn spec(instants: Instants, end: End) -> WindowSpec {
        WindowSpec { instants, end, ..Profile::v4().window }
    }

    #[test]
    fn a_span_is_said_and_read_back_in_every_form() {
        let berlin: Zone = "Europe/Berlin".parse().expect("a zone");
        let (from, to) = (at("2026-06-09T22:00:00Z"), at("2026-06-11T22:00:00Z"));
        let cases = [
            (Instants::Rfc3339, End::Exclusive, "2026-06-09T22:00:00Z..2026-06-11T22:00:00Z"),
            (Instants::Local, End::Exclusive, "2026-06-10T00:00:00..2026-06-12T00:00:00"),
            (Instants::Date, End::Exclusive, "2026-06-10..2026-06-12"),
            (Instants::Date, End::Inclusive, "2026-06-10..2026-06-11"),
            (Instants::EpochS, End::Inclusive, "1781042400..1781215200"),
            (Instants::EpochMs, End::Exclusive, "1781042400000..1781215200000"),
        ];
        each(cases, |(instants, end, words)| {
            let spec = spec(instants, end);
            assert_eq!(spec.words_of(from, to, berlin), words);
            assert_eq!(spec.span_of(words, berlin), Some((from, to)), "{words}");
            assert_eq!(spec.check_words(words), Ok(()));
        });
    }

    #[test]
    fn the_grid_of_local_times_leaves_out_those_that_come_twice() {
        let berlin: Zone = "Europe/Berlin".parse().expect("a zone");
        let grid = spec(Instants::Local, End::Exclusive).grid(berlin);
        let micros = |text: &str| at(text).timestamp_micros();
        // The clock shows 02:00 to 03:00 twice on this day.
        let twice = micros("2026-10-25T00:30:00Z");
        for minutes in 0..120 {
            let at = micros("2026-10-25T00:00:00Z") + minutes * 60_000_000;
            assert_eq!(grid.floor(at), micros("2026-10-24T23:59:59Z"), "{minutes}");
            assert_eq!(grid.ceil(at), micros("2026-10-25T02:00:00Z"), "{minutes}");
        }
        for plain in ["2026-10-24T23:59:59Z", "2026-10-25T02:00:00Z"] {
            assert_eq!((grid.floor(micros(plain)), grid.ceil(micros(plain))), (micros(plain), micros(plain)));
        }
        let plain = micros("2026-10-25T12:00:00.5Z");
        assert_eq!((grid.floor(plain), grid.ceil(plain)), (plain - 500_000, plain + 500_000));
        let minutes = WindowSpec { granularity: Some(Granularity::Minute), ..spec(Instants::EpochMs, End::Exclusive) }
            .grid(berlin);
        let minute = micros("2026-10-25T12:00:00Z");
        assert_eq!((minutes.floor(plain), minutes.ceil(plain)), (minute, minute + 60_000_000));
        let days = spec(Instants::Date, End::Inclusive).grid(berlin);
        assert_eq!(days.floor(twice), micros("2026-10-24T22:00:00Z"));
        assert_eq!(days.ceil(twice), micros("2026-10-25T23:00:00Z"));
        assert_eq!(days.ceil(micros("2026-10-24T22:00:00Z")), micros("2026-10-24T22:00:00Z"));
    }
}
