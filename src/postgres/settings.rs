//! PostgreSQL's settings of a connection: those that clients set or read, and those that the server reports.
//!
//! Settings of this server, `savedsearch.…`, belong to the session of the engine, and so does the time zone of literals.

use std::collections::BTreeMap;
use std::time::Duration;

use super::command::is_utf8;
use super::report::Report;
use crate::catalog::{CATALOG, SCHEMA};
use crate::host::planner::may_set;
use crate::host::sessions::Session;

/// Version of PostgreSQL whose behavior clients may expect.
const VERSION: &str = "15.0";

/// Settings with their defaults. Clients may change those marked true.
const DEFAULTS: [(&str, &str, bool); 40] = [
    ("application_name", "", true),
    ("bytea_output", "hex", false),
    ("client_encoding", "UTF8", false),
    ("client_min_messages", "notice", true),
    ("DateStyle", "ISO, MDY", false),
    ("default_transaction_isolation", "read committed", true),
    ("default_transaction_read_only", "on", true),
    ("enable_hashjoin", "on", true),
    ("enable_mergejoin", "on", true),
    ("enable_nestloop", "on", true),
    ("extra_float_digits", "1", true),
    ("geqo", "on", true),
    ("idle_in_transaction_session_timeout", "0", true),
    ("in_hot_standby", "off", false),
    ("integer_datetimes", "on", false),
    ("IntervalStyle", "postgres", false),
    ("is_superuser", "off", false),
    ("jit", "off", true),
    ("lc_collate", "C", false),
    ("lc_ctype", "C", false),
    ("lc_messages", "C", true),
    ("lc_monetary", "C", true),
    ("lc_numeric", "C", true),
    ("lc_time", "C", true),
    ("lock_timeout", "0", true),
    ("max_identifier_length", "63", false),
    ("max_index_keys", "32", false),
    ("row_security", "on", true),
    ("search_path", SCHEMA, true),
    ("server_encoding", "UTF8", false),
    ("server_version", VERSION, false),
    ("server_version_num", "150000", false),
    ("session_authorization", "", false),
    ("standard_conforming_strings", "on", false),
    ("statement_timeout", "0", true),
    ("synchronize_seqscans", "on", true),
    ("TimeZone", "UTC", true),
    ("transaction_isolation", "read committed", true),
    ("transaction_read_only", "on", true),
    ("vacuum_cost_delay", "0", true),
];

/// Settings that are announced when a connection starts, and when they change (PostgreSQL documentation, "Asynchronous
/// Operations").
const ANNOUNCED: [&str; 13] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
];

/// The settings of a connection.
#[derive(Debug)]
pub(super) struct Settings {
    /// By name in lower case.
    values: BTreeMap<String, String>,
    /// Values after the startup message, for RESET.
    first: BTreeMap<String, String>,
    /// Settings of the engine's session in the startup message, in their order.
    engine: Vec<(String, String)>,
    user: String,
    /// The catalog that the client connected to.
    database: String,
}

impl Settings {
    /// Creates the settings of a user. The database is a catalog of the session; `postgres` and the name of the user stand for
    /// the first one.
    ///
    /// # Errors
    /// 3D000 for an unknown database.
    pub(super) fn new(user: &str, database: &str, session: &Session) -> Result<Self, Report> {
        let catalogs = session.context.catalog_names();
        let database = match database {
            known if catalogs.iter().any(|name| name == known) => known.to_owned(),
            other if other == user || other == "postgres" || other == CATALOG => CATALOG.to_owned(),
            other => {
                let mut names = catalogs;
                names.sort();
                let line = format!("database \"{other}\" does not exist; databases: {}", names.join(", "));
                return Err(Report::error("3D000", line));
            }
        };
        let values = BTreeMap::from([("session_authorization".to_owned(), user.to_owned())]);
        Ok(Self { first: values.clone(), values, engine: Vec::new(), user: user.to_owned(), database })
    }

    pub(super) fn user(&self) -> &str {
        &self.user
    }

    pub(super) fn database(&self) -> &str {
        &self.database
    }

    /// Settings of the engine's session in the startup message, in their order.
    pub(super) fn of_engine(&self) -> &[(String, String)] {
        &self.engine
    }

    /// Sets a value of the startup message, which is the default from then on. Settings of the engine's session are set once
    /// there is one.
    ///
    /// # Errors
    /// Those of [`set`](Self::set), except for unknown names: drivers send their own.
    pub(super) fn begin_with(&mut self, name: &str, value: &str) -> Result<(), Report> {
        // By its other names.
        let zone = ["savedsearch.timezone", "datafusion.execution.time_zone"].contains(&name.to_lowercase().as_str());
        let name = if zone { "timezone" } else { name };
        if known(name).is_some() {
            self.set(name, Some(value))?;
            self.first = self.values.clone();
        } else if may_set(&name.to_lowercase()) {
            self.engine.push((name.to_lowercase(), value.to_owned()));
        }
        Ok(())
    }

    /// Sets the values of the option `options`, such as `-c statement_timeout=1000`.
    ///
    /// # Errors
    /// 42601 for options that are not understood; those of [`begin_with`](Self::begin_with).
    pub(super) fn set_options(&mut self, options: &str) -> Result<(), Report> {
        let mut words = options.split_whitespace();
        while let Some(word) = words.next() {
            let setting = match word {
                "-c" => words.next(),
                word => word.strip_prefix("--").or_else(|| word.strip_prefix("-c")),
            };
            let setting = setting.and_then(|setting| setting.split_once('='));
            let Some((name, value)) = setting else {
                return Err(Report::error("42601", "options must be given as -c name=value"));
            };
            self.begin_with(&name.replace('-', "_"), value)?;
        }
        Ok(())
    }

    /// Changes a setting; `None` restores its default. Returns the name and value to announce.
    ///
    /// # Errors
    /// 42704 for an unknown name, 55P02 for one that cannot be changed, 22023 for an invalid value.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>) -> Result<Option<(String, String)>, Report> {
        let Some((shown, default, may_change)) = known(name) else {
            return Err(Report::error("42704", format!("unrecognized configuration parameter \"{name}\"")));
        };
        let key = shown.to_lowercase();
        let Some(value) = value else {
            match self.first.get(&key) {
                Some(first) => self.values.insert(key, first.clone()),
                None => self.values.remove(&key),
            };
            return Ok(self.announced(shown));
        };
        let same = match shown {
            "client_encoding" => is_utf8(value),
            // The order of day and month matters only for input, which is read as ISO.
            "DateStyle" => value.to_uppercase().contains("ISO"),
            _ => value.eq_ignore_ascii_case(default),
        };
        if !may_change && !same {
            let line = format!("parameter \"{shown}\" cannot be changed to \"{value}\": it is always {default}");
            return Err(Report::error(if shown == "client_encoding" { "22023" } else { "55P02" }, line));
        }
        if shown.ends_with("_timeout") && milliseconds(value).is_none() {
            return Err(Report::error("22023", format!("invalid value for parameter \"{shown}\": \"{value}\"")));
        }
        if may_change {
            self.values.insert(key, value.to_owned());
        }
        Ok(self.announced(shown))
    }

    /// Returns the value of the startup message, which RESET restores.
    pub(super) fn first_value(&self, name: &str) -> Option<String> {
        self.first.get(&name.to_lowercase()).cloned()
    }

    /// Restores all defaults. Returns what to announce.
    pub(super) fn reset(&mut self) -> Vec<(String, String)> {
        self.values = self.first.clone();
        self.announcements()
    }

    /// All names and values to announce.
    pub(super) fn announcements(&self) -> Vec<(String, String)> {
        ANNOUNCED.iter().filter_map(|name| self.announced(name)).collect()
    }

    fn announced(&self, name: &str) -> Option<(String, String)> {
        let name = ANNOUNCED.iter().find(|known| known.eq_ignore_ascii_case(name))?;
        Some(((*name).to_owned(), self.get(name)?))
    }

    /// Returns a value; `None` for an unknown name.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let (shown, default, _) = known(name)?;
        Some(self.values.get(&shown.to_lowercase()).cloned().unwrap_or_else(|| default.to_owned()))
    }

    /// All names and values, in the order of names.
    pub(super) fn all(&self) -> Vec<(String, String)> {
        DEFAULTS.iter().filter_map(|(name, ..)| Some(((*name).to_owned(), self.get(name)?))).collect()
    }

    /// The time that a statement may take; `None` without a limit.
    pub(super) fn statement_timeout(&self) -> Option<Duration> {
        let value = self.get("statement_timeout")?;
        milliseconds(&value).filter(|limit| *limit > 0).map(Duration::from_millis)
    }

    /// True if the client wants to know what a statement is estimated to cost, and what it did cost.
    pub(super) fn tells_costs(&self) -> bool {
        let level = self.level();
        level == "log" || level.starts_with("debug")
    }

    /// True if the client wants notices.
    pub(super) fn tells_notices(&self) -> bool {
        !["warning", "error", "fatal", "panic"].contains(&self.level().as_str())
    }

    /// The least severity that the client wants to know.
    fn level(&self) -> String {
        self.get("client_min_messages").unwrap_or_default().to_lowercase()
    }
}

/// Name as shown, default, and whether it may be changed.
fn known(name: &str) -> Option<(&'static str, &'static str, bool)> {
    DEFAULTS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name)).copied()
}

/// A duration such as `1500`, `1500ms`, `30s` or `5min`, in milliseconds.
fn milliseconds(value: &str) -> Option<u64> {
    let value = value.trim();
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    let factor = match unit.trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(
            ["0", "1500", "30s", "5 min", "x", "1y"].map(milliseconds),
            [Some(0), Some(1_500), Some(30_000), Some(300_000), None, None]
        );
    }
}
