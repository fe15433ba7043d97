//! The period grammar: what a service can be told about time, and how instants are written for it.
//!
//! ```text
//! words "30d", "last_week", "2026-01-01T00:00:00Z..2026-02-01T00:00:00Z"   ◀─▶   a span of instants
//! ```

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::Deserialize;

use super::spec::Evidence;

/// The window parameter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowSpec {
    /// What it rests on.
    pub evidence: Evidence,
    /// Parameter name.
    pub parameter: String,
    /// Words sent where the query bounds no time. Always sent, as the seed recommends.
    pub default: String,
    /// Units of relative periods `<n><unit>`; empty: none.
    pub relative: Vec<Unit>,
    /// Template of an absolute period in `parameter`, with `{from}` and `{to}`; absent: none.
    pub absolute: Option<String>,
    /// Parameters of an absolute period where it has its own.
    pub separate: Option<Separate>,
    /// How instants are written.
    pub instants: Instants,
    /// Whether the end belongs to the window.
    pub end: End,
    /// Names of periods with their lengths.
    #[serde(default)]
    pub names: BTreeMap<String, Period>,
    /// The longest window.
    pub longest: Option<Period>,
    /// Nothing is older; closes ranges that are open to the past.
    pub earliest: Option<DateTime<Utc>>,
}

/// Parameters of an absolute period.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Separate {
    /// Parameter of the start.
    pub from: String,
    /// Parameter of the end.
    pub to: String,
}

/// How instants are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instants {
    /// RFC 3339 in UTC, whole seconds.
    Rfc3339,
    /// Local time in the zone that is sent along.
    Local,
    /// Local day in the zone that is sent along.
    Date,
    /// Seconds since 1970.
    EpochS,
    /// Milliseconds since 1970.
    EpochMs,
}

/// Whether the end belongs to the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Half-open.
    Exclusive,
    /// Closed.
    Inclusive,
}

/// A unit of relative periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
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

/// A length of time: `<n>h`, `<n>d` or `<n>w`, n at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Period {
    n: u32,
    unit: Unit,
}

impl Period {
    /// Its length.
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
            _ => return Err(format!("`{text}` is no period: expected <n>h, <n>d or <n>w")),
        };
        let digits = &text[..text.len() - 1];
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
        match digits.parse() {
            Ok(n) if plain => Ok(Self { n, unit }),
            _ => Err(format!("`{text}` is no period: expected <n>h, <n>d or <n>w with n from 1 to {}", u32::MAX)),
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.n, self.unit.letter())
    }
}

impl WindowSpec {
    /// Whether a span of instants can be asked for.
    pub fn takes_instants(&self) -> bool {
        self.absolute.is_some() || self.separate.is_some()
    }

    /// Whether `words` say a period in this grammar; the error tells what would.
    pub fn check_words(&self, words: &str) -> Result<(), String> {
        let fits = |length: TimeDelta| match self.longest {
            Some(longest) if length > longest.length() => {
                Err(format!("`{words}` is longer than this service takes, which is {longest}"))
            }
            _ => Ok(()),
        };
        if let Some(period) = self.names.get(words) {
            return fits(period.length());
        }
        if let Ok(period) = Period::try_from(words.to_owned())
            && self.relative.contains(&period.unit)
        {
            return fits(period.length());
        }
        match self.span_of(words) {
            Some((from, to)) if from < to => fits(to - from),
            Some(_) => Err(format!("`{words}` is no period: it ends before it starts")),
            None => Err(format!("`{words}` is no period of this service: it takes {}", self.forms())),
        }
    }

    /// The instants that absolute words say; `None` where they are none.
    pub fn span_of(&self, words: &str) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let template = self.absolute.as_deref().unwrap_or("{from}..{to}");
        let (head, rest) = template.split_once("{from}")?;
        let (middle, tail) = rest.split_once("{to}")?;
        let (from, to) = words.strip_prefix(head)?.strip_suffix(tail)?.split_once(middle)?;
        self.takes_instants().then_some(())?;
        Some((self.instants.read(from)?, self.instants.read(to)?))
    }

    /// The words for a span, [from, to). Bounds are widened to what the grammar can say.
    pub fn words_of(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> String {
        let template = self.absolute.as_deref().unwrap_or("{from}..{to}");
        template.replace("{from}", &self.instants.write(from)).replace("{to}", &self.instants.write(to))
    }

    /// The parameters that ask for these words.
    pub fn parameters(&self, words: &str) -> Vec<(String, String)> {
        match (&self.separate, self.span_of(words)) {
            (Some(Separate { from, to }), Some((start, end))) => {
                vec![(from.clone(), self.instants.write(start)), (to.clone(), self.instants.write(end))]
            }
            _ => vec![(self.parameter.clone(), words.to_owned())],
        }
    }

    /// The smallest relative period or name that reaches back `length`; `None` where none does.
    pub fn reaching(&self, length: TimeDelta) -> Option<String> {
        let relative = self.relative.iter().filter_map(|unit| {
            let hours = unit.hours();
            // Up to the next whole unit; a length of zero still needs one.
            let n = (length.num_seconds().max(1) + hours * 3600 - 1) / (hours * 3600);
            Some(Period { n: u32::try_from(n).ok()?, unit: *unit })
        });
        let periods = relative.map(|period| (period.length(), period.to_string()));
        let names = self.names.iter().map(|(name, period)| (period.length(), name.clone()));
        periods.chain(names).filter(|(reach, _)| *reach >= length).min().map(|(_, words)| words)
    }

    /// The forms that the grammar takes, for error messages.
    pub fn forms(&self) -> String {
        let mut forms: Vec<String> = self.relative.iter().map(|unit| format!("<n>{}", unit.letter())).collect();
        forms.extend(self.names.keys().cloned());
        if self.takes_instants() {
            let template = self.absolute.as_deref().unwrap_or("{from}..{to}");
            let example = self.instants.example();
            forms.push(template.replace("{from}", example).replace("{to}", example));
        }
        forms.join(", ")
    }
}

impl Instants {
    fn write(self, at: DateTime<Utc>) -> String {
        match self {
            Self::EpochS => at.timestamp().to_string(),
            Self::EpochMs => at.timestamp_millis().to_string(),
            // `Local` and `Date` are refused when the profile is parsed.
            Self::Rfc3339 | Self::Local | Self::Date => at.to_rfc3339_opts(SecondsFormat::Secs, true),
        }
    }

    fn read(self, text: &str) -> Option<DateTime<Utc>> {
        match self {
            Self::EpochS => DateTime::from_timestamp(text.parse().ok()?, 0),
            Self::EpochMs => DateTime::from_timestamp_millis(text.parse().ok()?),
            Self::Rfc3339 | Self::Local | Self::Date => {
                DateTime::parse_from_rfc3339(text).ok().map(|at| at.with_timezone(&Utc))
            }
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::EpochS => "1767225600",
            Self::EpochMs => "1767225600000",
            Self::Rfc3339 | Self::Local | Self::Date => "2026-01-01T00:00:00Z",
        }
    }
}
