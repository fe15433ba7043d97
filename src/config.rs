//! Settings of a session (`SET savedsearch.… = …`) and the one reader of the environment.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::time::Duration;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use serde::de::DeserializeOwned;

use crate::client::{Completeness, QueryBudget};
use crate::error::{Error, ErrorKind, Result, nearest, one_line};
use crate::profile::Zone;

/// The settings of a session, a DataFusion config extension with the prefix `savedsearch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    /// Requests that one query may issue, retries included. A query that needs more is refused as soon as that is
    /// known: before its first request, or after the first page has told the total.
    pub max_requests: u64,
    /// Whether mentions are counted by the numbers of the overview.
    pub count_from_overview: CountFromOverview,
    /// What happens where not all mentions can be had: `strict` ends the query in an error, `report` gives what came
    /// and warns.
    pub completeness: Completeness,
    /// Whether a query over several saved searches goes on without those that the service refuses (403, 404), and warns.
    pub partial: bool,
    /// Whether texts that say no character, such as half a surrogate pair, are replaced and counted. Otherwise they make
    /// an answer malformed.
    pub lossy_text: bool,
    /// Zone sent where a query names none; empty: the profile's default.
    pub timezone: String,
    /// Requests that one scan keeps under way. The limiter of the key bounds all scans together.
    pub concurrency: usize,
    /// Longest time for one attempt at a request.
    pub request_timeout: Duration,
    /// Longest time for a query, waits for rate limits included.
    pub query_deadline: Duration,
}

/// Whether mentions are counted by the numbers of the overview, one request a saved search, instead of one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountFromOverview {
    /// Where the profile says that they are exact, and the answer does not say otherwise.
    Exact,
    /// Wherever there are such numbers, approximate ones included.
    Always,
    /// Nowhere.
    Never,
}

impl CountFromOverview {
    /// The value as it is set.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            max_requests: 1_000,
            count_from_overview: CountFromOverview::Exact,
            completeness: Completeness::Strict,
            partial: false,
            lossy_text: false,
            timezone: String::new(),
            concurrency: 4,
            request_timeout: QueryBudget::USUAL_TIMEOUT,
            query_deadline: Duration::from_secs(900),
        }
    }
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
        /// Requests at once that a scan can make use of.
        const MOST: usize = 256;
        let bad = |expected: &str| {
            DataFusionError::from(Error::new(
                ErrorKind::Config,
                format!("savedsearch.{key} takes {expected}, found `{value}`"),
            ))
        };
        let switch = || match value {
            "on" | "true" => Ok(true),
            "off" | "false" => Ok(false),
            _ => Err(bad("on or off")),
        };
        let number = || value.parse::<u64>().ok().filter(|n| *n > 0).ok_or_else(|| bad("a whole number from 1"));
        let seconds = || {
            let longest = QueryBudget::LONGEST_DEADLINE;
            let number = value.parse().ok().filter(|n| (1..=longest).contains(n));
            number.map(Duration::from_secs).ok_or_else(|| bad(&format!("a number of seconds from 1 to {longest}")))
        };
        match key {
            "max_requests" => self.max_requests = number()?,
            "count_from_overview" => {
                let all = [CountFromOverview::Exact, CountFromOverview::Always, CountFromOverview::Never];
                let named = all.into_iter().find(|choice| choice.name() == value);
                self.count_from_overview = named.ok_or_else(|| bad("exact, always or never"))?;
            }
            "partial" => self.partial = switch()?,
            "lossy_text" => self.lossy_text = switch()?,
            "completeness" => {
                let all = [Completeness::Strict, Completeness::Report];
                let named = all.into_iter().find(|choice| choice.name() == value);
                self.completeness = named.ok_or_else(|| bad("strict or report"))?;
            }
            "timezone" => {
                // Names are case-sensitive; SET lower-cases what is not quoted.
                let known = value.is_empty() || value.parse::<Zone>().is_ok();
                known.then(|| self.timezone = value.to_owned()).ok_or_else(|| {
                    let near = nearest(value, Zone::names()).map(|near| format!(", such as '{near}'"));
                    let near = near.unwrap_or_default();
                    bad(&format!("the quoted name of an IANA zone{near}, or a distance from UTC such as +01:00"))
                })?;
            }
            "concurrency" => {
                let expected = format!("a whole number from 1 to {MOST}");
                let number = value.parse().ok().filter(|number| (1..=MOST).contains(number));
                self.concurrency = number.ok_or_else(|| bad(&expected))?;
            }
            "request_timeout" => self.request_timeout = seconds()?,
            "query_deadline" => self.query_deadline = seconds()?,
            _ => {
                let known: Vec<_> = self.entries().into_iter().map(|entry| entry.key).collect();
                let full = format!("{}.{key}", Self::PREFIX);
                let advice = match nearest(&full, known.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("the settings are {}", known.join(", ")),
                };
                return Err(Error::new(ErrorKind::Config, format!("there is no setting {full}")).advice(advice).into());
            }
        }
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |key: &str, value: String, description| ConfigEntry {
            key: format!("{}.{key}", Self::PREFIX),
            value: Some(value),
            description,
        };
        vec![
            entry("max_requests", self.max_requests.to_string(), "requests that one query may issue"),
            entry(
                "count_from_overview",
                self.count_from_overview.name().to_owned(),
                "whether mentions are counted by the overview: exact, always or never",
            ),
            entry(
                "completeness",
                self.completeness.name().to_owned(),
                "what happens where not all mentions can be had: strict (an error) or report (a warning)",
            ),
            entry("partial", on_off(self.partial), "whether a query goes on without saved searches that are refused"),
            entry("lossy_text", on_off(self.lossy_text), "whether texts that say no character are replaced"),
            entry("timezone", self.timezone.clone(), "zone sent where a query names none; empty: the profile's"),
            entry("concurrency", self.concurrency.to_string(), "requests that one scan keeps under way"),
            entry("request_timeout", self.request_timeout.as_secs().to_string(), "seconds for one attempt"),
            entry("query_deadline", self.query_deadline.as_secs().to_string(), "seconds for a whole query"),
        ]
    }
}

fn on_off(switch: bool) -> String {
    if switch { "on" } else { "off" }.to_owned()
}

/// What the environment says. Options of the command line come first, each where both are given.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `SAVEDSEARCH_BASE_URL`.
    pub base_url: Option<String>,
    /// `SAVEDSEARCH_API_KEY`.
    pub api_key: Option<crate::client::Secret>,
    /// `SAVEDSEARCH_PROFILE`.
    pub profile: Option<PathBuf>,
    /// `SAVEDSEARCH_CONFIG`.
    pub config: Option<PathBuf>,
}

/// The folder for what is to outlast the process: `savedsearch` in `XDG_STATE_HOME`, else in `~/.local/state` (XDG Base
/// Directory Specification).
pub fn state_folder() -> Option<PathBuf> {
    let state = variable("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/state")));
    state.map(|state| state.join("savedsearch"))
}

/// Reads a TOML file.
///
/// # Errors
/// [`ErrorKind::Config`] naming the file, and the line of a mistake without what stands there.
pub fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bad = |what: String| Error::new(ErrorKind::Config, format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| bad(format!("cannot be read: {error}")))?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        bad(format!("line {line}: {}", one_line(error.message())))
    })
}

/// A variable of the process; an empty one counts as none.
pub fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "this is the one home of the environment")]
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

impl Environment {
    /// Reads the variables of the process. An empty variable counts as none.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a key that cannot be one.
    pub fn read() -> Result<Self> {
        Ok(Self {
            base_url: variable("SAVEDSEARCH_BASE_URL"),
            api_key: variable("SAVEDSEARCH_API_KEY").map(|key| crate::client::Secret::new(&key)).transpose()?,
            profile: variable("SAVEDSEARCH_PROFILE").map(PathBuf::from),
            config: variable("SAVEDSEARCH_CONFIG").map(PathBuf::from),
        })
    }
}
