//! Settings of a session (`SET savedsearch.… = …`). Each is declared once, in [`SessionSettings`]: its field, default,
//! description, and how it is read and written as text.

use std::any::Any;
use std::time::Duration;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::error::{DataFusionError, Result as DataFusionResult};

use crate::client::{Completeness, QueryBudget};
use crate::error::{Error, ErrorKind, nearest};
use crate::profile::Zone;

/// Requests at once that a scan can make use of.
const MOST_AT_ONCE: usize = 256;

/// Declares the settings: for each its field and default, what `information_schema` says of it, how it is read from a text,
/// and how it is written as one. A text that cannot be read is answered with what was expected.
macro_rules! settings {
    ($(#[$about:meta])* pub struct $name:ident {
        $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr, $description:literal, $read:expr, $write:expr;)*
    }) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $name {
            /// Takes a value as text; the name is without the prefix. `None`: there is no such setting.
            fn read(&mut self, name: &str, text: &str) -> Option<Result<(), String>> {
                match name {
                    $(stringify!($field) => {
                        let read: fn(&str) -> Result<$type, String> = $read;
                        Some(read(text).map(|value| self.$field = value))
                    })*
                    _ => None,
                }
            }

            /// All settings: name, value as text, description.
            fn written(&self) -> Vec<(&'static str, String, &'static str)> {
                vec![$({
                    let write: fn(&$type) -> String = $write;
                    (stringify!($field), write(&self.$field), $description)
                },)*]
            }
        }
    };
}

settings! {
    /// The settings of a session, a DataFusion config extension with the prefix `savedsearch`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct SessionSettings {
        /// Requests that one query may issue, retries included. A query that needs more is refused as soon as that is
        /// known: before its first request, or after the first page has told the total.
        max_requests: u64 = 1_000, "requests that one query may issue", whole_number, ToString::to_string;
        /// Whether mentions are counted by the numbers of the overview.
        count_from_overview: CountFromOverview = CountFromOverview::Exact,
            "whether mentions are counted by the overview: exact, always or never",
            |text| one_of(CountFromOverview::ALL, CountFromOverview::name, text), |choice| choice.name().to_owned();
        /// What happens where not all mentions can be had: `strict` ends the query in an error, `report` gives what came
        /// and warns.
        completeness: Completeness = Completeness::Strict,
            "what happens where not all mentions can be had: strict (an error) or report (a warning)",
            |text| one_of([Completeness::Strict, Completeness::Report], Completeness::name, text),
            |choice| choice.name().to_owned();
        /// Whether a query over several saved searches goes on without those that the service refuses (403, 404), and warns.
        partial: bool = false, "whether a query goes on without saved searches that are refused", switch, on_off;
        /// Whether invalid UTF-8 and escapes in texts, such as half a surrogate pair, are replaced and counted. Otherwise
        /// they make an answer malformed.
        lossy_text: bool = false, "whether invalid UTF-8 and escapes in texts are replaced", switch, on_off;
        /// Zone sent where a query names none; empty: the profile's default.
        timezone: String = String::new(), "zone sent where a query names none; empty: the profile's", zone, String::clone;
        /// Requests that one scan keeps under way. The limiter of the key bounds all scans together.
        concurrency: usize = 4, "requests that one scan keeps under way", at_once, ToString::to_string;
        /// Longest time for one attempt.
        request_timeout: Duration = QueryBudget::USUAL_TIMEOUT, "seconds for one attempt", seconds, in_seconds;
        /// Longest time for a query, waits for rate limits included.
        query_deadline: Duration = Duration::from_secs(900), "seconds for a whole query", seconds, in_seconds;
    }
}

/// Whether mentions are counted by the numbers of the overview, one request a saved search, instead of one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CountFromOverview {
    /// Where the profile says that they are exact, and the answer does not say otherwise.
    Exact,
    /// Wherever there are such numbers, approximate ones included.
    Always,
    /// Nowhere.
    Never,
}

impl CountFromOverview {
    const ALL: [Self; 3] = [Self::Exact, Self::Always, Self::Never];

    /// The value as it is set.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

fn whole_number(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "a whole number from 1".to_owned())
}

fn at_once(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_AT_ONCE).contains(number));
    number.ok_or_else(|| format!("a whole number from 1 to {MOST_AT_ONCE}"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let longest = QueryBudget::LONGEST_DEADLINE;
    let number = text.parse().ok().filter(|number| (1..=longest).contains(number));
    number.map(Duration::from_secs).ok_or_else(|| format!("a number of seconds from 1 to {longest}"))
}

fn in_seconds(time: &Duration) -> String {
    time.as_secs().to_string()
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => Err("on or off".to_owned()),
    }
}

fn on_off(switch: &bool) -> String {
    if *switch { "on" } else { "off" }.to_owned()
}

fn one_of<T: Copy, const N: usize>(all: [T; N], name: fn(T) -> &'static str, text: &str) -> Result<T, String> {
    let expected = || match all.map(name).as_slice() {
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
        [] => String::new(),
    };
    all.into_iter().find(|choice| name(*choice) == text).ok_or_else(expected)
}

fn zone(text: &str) -> Result<String, String> {
    // Names are case-sensitive; SET lower-cases what is not quoted.
    if text.is_empty() || text.parse::<Zone>().is_ok() {
        return Ok(text.to_owned());
    }
    let near = nearest(text, Zone::names()).map(|near| format!(", such as '{near}'")).unwrap_or_default();
    Err(format!("the quoted name of an IANA zone{near}, or a distance from UTC such as +01:00"))
}

impl SessionSettings {
    /// The settings of a session; the defaults where the session does not know them.
    pub fn of(options: &ConfigOptions) -> Self {
        options.extensions.get::<Self>().cloned().unwrap_or_default()
    }
}

impl ConfigExtension for SessionSettings {
    const PREFIX: &'static str = "savedsearch";
}

impl ExtensionOptions for SessionSettings {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> DataFusionResult<()> {
        let refused = |message: String| Error::new(ErrorKind::Config, message);
        match self.read(key, value) {
            Some(Ok(())) => Ok(()),
            Some(Err(expected)) => Err(refused(format!("savedsearch.{key} takes {expected}, found `{value}`")).into()),
            None => {
                let known: Vec<_> = self.entries().into_iter().map(|entry| entry.key).collect();
                let full = format!("{}.{key}", Self::PREFIX);
                let advice = match nearest(&full, known.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("the settings are {}", known.join(", ")),
                };
                Err(DataFusionError::from(refused(format!("there is no setting {full}")).advice(advice)))
            }
        }
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |(name, value, description)| ConfigEntry {
            key: format!("{}.{name}", Self::PREFIX),
            value: Some(value),
            description,
        };
        self.written().into_iter().map(entry).collect()
    }
}
