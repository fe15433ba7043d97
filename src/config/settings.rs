//! Session settings (`SET savedsearch.… = …`): types, defaults, and conversion from and to text. [`Setting`] has their names and
//! descriptions.

use std::any::Any;
use std::time::Duration;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::error::Result as DataFusionResult;

use crate::client::{Completeness, QueryBudget};
use crate::error::{Error, ErrorKind, Phrase, Setting, Tool, nearest};
use crate::profile::Zone;

/// Largest useful number of concurrent requests of one scan.
const MOST_AT_ONCE: usize = 256;

/// Declares the settings: field, default, parser and formatter. A parser's error is a description of the expected value.
macro_rules! settings {
    ($(#[$about:meta])* pub struct $name:ident {
        $($(#[$doc:meta])* $setting:ident => $field:ident: $type:ty = $default:expr, $read:expr, $write:expr;)*
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
            /// Sets a value from text.
            fn read(&mut self, setting: Setting, text: &str) -> Result<(), String> {
                match setting {
                    $(Setting::$setting => {
                        let read: fn(&str) -> Result<$type, String> = $read;
                        read(text).map(|value| self.$field = value)
                    })*
                }
            }

            /// A value as text.
            fn written(&self, setting: Setting) -> String {
                match setting {
                    $(Setting::$setting => {
                        let write: fn(&$type) -> String = $write;
                        write(&self.$field)
                    })*
                }
            }
        }
    };
}

settings! {
    /// Session settings: a DataFusion config extension with the prefix `savedsearch`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct SessionSettings {
        /// Maximum number of requests per query, retries included. A query that needs more is refused as soon as that
        /// is known: before its first request, or once the first page has reported the total.
        MaxRequests => max_requests: u64 = 1_000, whole_number, ToString::to_string;
        /// Controls whether mentions are counted from the overview.
        CountFromOverview => count_from_overview: CountFromOverview = CountFromOverview::Exact,
            |text| one_of(CountFromOverview::ALL, CountFromOverview::name, text), |choice| choice.name().to_owned();
        /// Behaviour when not all mentions can be received: `strict` fails the query, `report` returns the received
        /// rows with a warning.
        Completeness => completeness: Completeness = Completeness::Strict,
            |text| one_of([Completeness::Strict, Completeness::Report], Completeness::name, text),
            |choice| choice.name().to_owned();
        /// Set to skip saved searches that the service refuses (403, 404), with a warning, instead of failing a query
        /// over several.
        Partial => partial: bool = false, switch, on_off;
        /// Set to replace invalid UTF-8 and escapes in strings, such as unpaired surrogates, and to count them.
        /// Otherwise they make a response malformed.
        LossyText => lossy_text: bool = false, switch, on_off;
        /// Time zone of the session: of its days, literals and printed times, and of requests that name none. Empty: UTC, and
        /// the profile's default for requests.
        Timezone => timezone: String = String::new(), zone, String::clone;
        /// Use of the connection's store, if it has one.
        Store => store: StoreUse = StoreUse::ReadWrite,
            |text| one_of(StoreUse::ALL, StoreUse::name, text), |choice| choice.name().to_owned();
        /// Age up to which stored rows and responses need no confirmation by the service. Zero: a query asks for what may
        /// have changed.
        Freshness => freshness: Duration = Duration::ZERO, age, in_units;
        /// Set to keep mentions in the store that the service has deleted; `system.deleted_mentions` has them.
        KeepDeleted => keep_deleted: bool = false, switch, on_off;
        /// Requests that an estimate may send.
        Estimate => estimate: EstimateBy = EstimateBy::Known,
            |text| one_of(EstimateBy::ALL, EstimateBy::name, text), |choice| choice.name().to_owned();
        /// Maximum number of requests that one scan keeps in flight. The key's limiter bounds all scans together.
        Concurrency => concurrency: usize = 4, at_once, ToString::to_string;
        /// Timeout of a single attempt.
        RequestTimeout => request_timeout: Duration = QueryBudget::USUAL_TIMEOUT, seconds, in_seconds;
        /// Deadline of a query's last response, waits for rate limits included.
        QueryDeadline => query_deadline: Duration = Duration::from_secs(900), seconds, in_seconds;
    }
}

/// Source of the numbers of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EstimateBy {
    /// Earlier responses; an estimate sends no request.
    Known,
    /// The service: the list if it is unknown, and one overview for each saved search and window of which the size is.
    Ask,
}

impl EstimateBy {
    const ALL: [Self; 2] = [Self::Known, Self::Ask];

    /// Value as written in `SET`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Ask => "ask",
        }
    }
}

/// Use of a connection's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreUse {
    /// Neither read nor write it.
    Off,
    /// Read it.
    Read,
    /// Read it, and write what queries read completely.
    ReadWrite,
    /// Write what queries read completely, and request all of it.
    Write,
}

impl StoreUse {
    const ALL: [Self; 4] = [Self::Off, Self::Read, Self::ReadWrite, Self::Write];

    /// Value as written in `SET`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Read => "read",
            Self::ReadWrite => "read-write",
            Self::Write => "write",
        }
    }
}

/// Controls whether mentions are counted from the overview, with one request per saved search, instead of one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CountFromOverview {
    /// Count from the overview if the profile declares its numbers exact and the response does not say otherwise.
    Exact,
    /// Count from the overview wherever it has the numbers, approximate ones included.
    Always,
    /// Never count from the overview.
    Never,
}

impl CountFromOverview {
    const ALL: [Self; 3] = [Self::Exact, Self::Always, Self::Never];

    /// Value as written in `SET`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

fn whole_number(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "a whole number of at least 1".to_owned())
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

/// Reads a length of time: a number with one of the units s, m, h and d.
fn age(text: &str) -> Result<Duration, String> {
    let expected = || "a number with a unit: '0s', '15m', '12h' or '7d'".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(expected)?;
    let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(expected)?;
    let number: u64 = number.parse().map_err(|_| expected())?;
    number.checked_mul(*seconds).map(Duration::from_secs).filter(|age| *age <= OLDEST).ok_or_else(expected)
}

/// Units of ages, in seconds, the largest first.
const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
/// Largest age that can be set.
const OLDEST: Duration = Duration::from_secs(100 * 366 * 86_400);

fn in_units(age: &Duration) -> String {
    let seconds = age.as_secs();
    let whole = UNITS.iter().find(|(_, unit)| seconds > 0 && seconds.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{seconds}s"), |(name, unit)| format!("{}{name}", seconds / unit))
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
    if text.is_empty() {
        return Ok(String::new());
    }
    if let Some(zone) = Zone::meant(text) {
        return Ok(zone.to_string());
    }
    let near = nearest(text, Zone::names()).map(|near| format!(" such as '{near}'")).unwrap_or_default();
    Err(format!("an IANA time zone name{near}, or a UTC offset such as '+01:00'"))
}

impl SessionSettings {
    /// Settings of a session; the defaults if the session has none.
    pub fn of(options: &ConfigOptions) -> Self {
        options.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Time zone of a session: that of the setting `timezone`, or else that of the engine if it is not UTC. Empty: UTC, and
    /// for requests the profile's default.
    pub(crate) fn zone(options: &ConfigOptions) -> String {
        let own = options.extensions.get::<Self>().map(|own| own.timezone.clone()).unwrap_or_default();
        let engine = || options.execution.time_zone.clone().filter(|zone| zone != "UTC").unwrap_or_default();
        if own.is_empty() { engine() } else { own }
    }

    /// Checks the value of a setting of a server or driver; `name` has no prefix. Their estimates send no request: a page
    /// estimates with each change of a statement, and no protocol announces requests before the response that they are for.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for `estimate = 'ask'`.
    pub fn check_for_server(name: &str, value: &str) -> DataFusionResult<()> {
        if name != "estimate" || !value.eq_ignore_ascii_case(EstimateBy::Ask.name()) {
            return Ok(());
        }
        let message = Phrase::from(Setting::Estimate) + " = 'ask' is supported in the shell only";
        let error = Error::new(ErrorKind::Unsupported, message);
        Err(error
            .advice(
                Phrase::from("estimates of servers and drivers send no request; use ")
                    + Tool::AskingEstimate
                    + " for this one",
            )
            .into())
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
        let Some(setting) = Setting::named(key) else {
            // Without the prefix, which would make all names alike.
            let names = Setting::ALL.iter().map(|setting| setting.name());
            let advice = match nearest(key, names) {
                Some(near) => format!("did you mean {}.{near}?", Self::PREFIX),
                None => {
                    let known: Vec<_> = Setting::ALL.iter().map(Setting::to_string).collect();
                    format!("available: {}", known.join(", "))
                }
            };
            let message = format!("unknown setting {}.{key}", Self::PREFIX);
            return Err(Error::new(ErrorKind::Config, message).advice(advice).into());
        };
        self.read(setting, value).map_err(|expected| {
            let message = Phrase::from(format!("invalid value `{value}` for ")) + setting;
            Error::new(ErrorKind::Config, message).advice(format!("expected {expected}")).into()
        })
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |setting: &Setting| ConfigEntry {
            key: setting.to_string(),
            value: Some(self.written(*setting)),
            description: setting.about(),
        };
        Setting::ALL.iter().map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn fields_have_the_names_of_their_settings() {
        let fields = format!("{:?}", SessionSettings::default());
        each(Setting::ALL, |setting| assert!(fields.contains(&format!(" {}: ", setting.name())), "{fields}"));
    }
}
