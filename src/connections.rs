//! Named connections, read from a file: several services or keys in one session, each a catalog.
//!
//! ```toml
//! default = "comms"                       # absent: the first one by name
//!
//! [connections.comms]
//! base_url = "https://api.example.com/v4"
//! api_key_env = "COMMS_KEY"               # or api_key_file = "comms.key", or api_key_command = "pass show comms";
//!                                         # none of them if clients bring the key
//! profile = "mine.toml"                   # or the name of a built-in profile; absent: v4
//! store = "mentions"                      # folder of a store
//! catalog = "postgres://me@db/mentions"   # catalog of the store, if several machines share it; the password is in PGPASSWORD
//! retain = "400d"                         # `sync` removes older days from the store
//! quota = "20GB"                          # `sync` removes the oldest days of a store that is larger
//!
//! [connections.comms.watch.surge]         # `sync` hands an alert to a command (or `webhook`, `webhook_env`), once for each day
//! when = "count > 3 * weekday_mean"
//! command = "mail -s alert me@example.com"
//!
//! [connections.other]
//! base_url = "https://api.example.org/v4"
//! insecure = true                         # allows an http address beyond this machine: the key travels in clear text
//! ```
//!
//! A table `[serve]` in the same file configures the server ([`ServeDocument`](crate::host::ServeDocument)). A file may have
//! that table alone; the service is then named elsewhere. Keys are never part of the file: it names a variable, a file or a
//! command that holds one. Paths are relative to the file's folder, and commands run there, in `sh`.
//!
//! Keys are read by [`Named::key`], for the connections that are used: one that cannot be read affects its connection only.

use std::collections::BTreeMap;
use std::fmt;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::catalog::CATALOG;
use crate::client::{Exchanges, HttpFailure, HttpLimits, HttpRequest, HttpResponse, HttpService, Secret};
use crate::config::{catalog_url, read_toml, variable};
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Phrase, Result};
use crate::location::{CatalogUrl, Location};
use crate::profile::Profile;

/// Service of a connection that must not send requests, with the reason.
#[derive(Debug)]
pub struct Unavailable(pub String);

#[async_trait]
impl HttpService for Unavailable {
    async fn call(&self, _request: HttpRequest) -> std::result::Result<HttpResponse, HttpFailure> {
        Err(HttpFailure { kind: ErrorKind::Config, message: self.0.clone(), temporary: false })
    }
}

/// Connections defined in a file.
#[derive(Debug)]
pub struct Connections {
    /// Name of the default connection, whose tables queries use when they name no catalog.
    pub default: String,
    /// All connections by name.
    pub named: BTreeMap<String, Named>,
}

/// Settings of a connection.
#[derive(Debug)]
pub struct Named {
    /// Address of the service.
    pub base_url: String,
    /// Source of the key; `None` if the file names none.
    key: Option<KeySource>,
    /// Profile.
    pub profile: Profile,
    /// True if the key may be sent in clear text beyond this machine.
    pub insecure: bool,
    /// Location of the store.
    pub store: Option<Location>,
    /// Catalog of the store if it is in PostgreSQL.
    pub catalog: Option<CatalogUrl>,
    /// Age in days beyond which a synchronization removes days from the store.
    pub retain: Option<u32>,
    /// Size in bytes beyond which a synchronization removes the oldest days from the store.
    pub quota: Option<u64>,
    /// Rules that a synchronization evaluates.
    pub watch: Vec<WatchRule>,
    /// File and name, for errors.
    place: String,
}

/// A rule that watches the daily counts of a store.
#[derive(Debug, Clone)]
pub struct WatchRule {
    /// Name.
    pub name: String,
    /// Saved searches; empty: all that are stored.
    pub aids: Vec<String>,
    /// Condition in SQL.
    pub when: String,
    receiver: ReceiverSource,
    /// File, connection and name, for errors.
    place: String,
}

/// Receiver of the alerts of a rule.
pub enum AlertReceiver {
    /// A command, which runs in `sh` with an alert on its stdin.
    Command(String),
    /// A URL, to which an alert is sent by POST.
    Webhook(String),
}

/// Source of a receiver. Commands and URLs may contain secrets, which `Debug` does not show.
#[derive(Clone)]
enum ReceiverSource {
    Command(String),
    Webhook(String),
    /// The variable with the URL.
    WebhookIn(String),
}

impl fmt::Debug for ReceiverSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(_) => f.write_str("Command(..)"),
            Self::Webhook(_) => f.write_str("Webhook(..)"),
            Self::WebhookIn(name) => f.debug_tuple("WebhookIn").field(name).finish(),
        }
    }
}

impl fmt::Debug for AlertReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(_) => f.write_str("Command(..)"),
            Self::Webhook(_) => f.write_str("Webhook(..)"),
        }
    }
}

impl WatchRule {
    /// The receiver of the alerts.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the variable with its URL is not set.
    pub fn receiver(&self) -> Result<AlertReceiver> {
        Ok(match &self.receiver {
            ReceiverSource::Command(command) => AlertReceiver::Command(command.clone()),
            ReceiverSource::Webhook(url) => AlertReceiver::Webhook(url.clone()),
            ReceiverSource::WebhookIn(name) => match variable(name) {
                Some(url) => AlertReceiver::Webhook(url),
                None => {
                    let what = format!("{}: environment variable {name} is not set", self.place);
                    return Err(Error::new(ErrorKind::Config, what).advice("set it to the URL of the webhook"));
                }
            },
        })
    }

    /// The rule of an entry of the file. `place`: file, connection and name.
    fn of(name: String, entry: WatchEntry, place: String) -> Result<Self> {
        let bad = |what: &str| Error::new(ErrorKind::Config, format!("{place}: {what}"));
        let WatchEntry { aid, when, command, webhook, webhook_env } = entry;
        let aids = match aid {
            None => Vec::new(),
            Some(OneOrMore::One(aid)) => vec![aid],
            Some(OneOrMore::More(aids)) => aids,
        };
        let receiver = match (command, webhook, webhook_env) {
            (Some(command), None, None) => ReceiverSource::Command(command),
            (None, Some(url), None) => ReceiverSource::Webhook(url),
            (None, None, Some(name)) => ReceiverSource::WebhookIn(name),
            _ => return Err(bad("expected one of command, webhook and webhook_env")),
        };
        Ok(Self { name, aids, when, receiver, place })
    }
}

/// Source of a key.
#[derive(Debug)]
enum KeySource {
    Variable(String),
    File(PathBuf),
    /// A command, and the folder that it runs in.
    Command(String, PathBuf),
}

impl Named {
    /// File that the key is read from; `None` if it comes from elsewhere.
    pub fn key_file(&self) -> Option<&Path> {
        match &self.key {
            Some(KeySource::File(file)) => Some(file),
            _ => None,
        }
    }

    /// Reads the key. A command may ask the user questions.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the file names no source, or the key cannot be read from it.
    pub fn key(&self) -> Result<Secret> {
        let bad = |what: &str| Error::new(ErrorKind::Config, format!("{}: {what}", self.place));
        match &self.key {
            None => Err(bad("expected one of api_key_env, api_key_file and api_key_command")),
            Some(KeySource::Variable(name)) => match variable(name) {
                Some(key) => Secret::new(&key),
                None => Err(bad(&format!("environment variable {name} is not set")).advice("set it to the API key")),
            },
            Some(KeySource::File(file)) => Secret::read(file),
            Some(KeySource::Command(command, folder)) => {
                key_from_command(command, folder, format!("{}: api_key_command", self.place))
            }
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    default: Option<String>,
    connections: Option<BTreeMap<String, Entry>>,
    serve: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    base_url: String,
    api_key_env: Option<String>,
    api_key_file: Option<PathBuf>,
    api_key_command: Option<String>,
    profile: Option<PathBuf>,
    #[serde(default)]
    insecure: bool,
    store: Option<PathBuf>,
    catalog: Option<String>,
    retain: Option<String>,
    quota: Option<String>,
    #[serde(default)]
    watch: BTreeMap<String, WatchEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WatchEntry {
    aid: Option<OneOrMore>,
    when: String,
    command: Option<String>,
    webhook: Option<String>,
    webhook_env: Option<String>,
}

/// Shows no command and no URL, which may contain secrets.
impl fmt::Debug for WatchEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchEntry").field("aid", &self.aid).field("when", &self.when).finish_non_exhaustive()
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// Connections that are open, by name, and the default one among them.
pub type Open = (Arc<Connection>, Vec<(String, Arc<Connection>)>);

impl Connections {
    /// Opens all connections. No request is sent. A connection whose key cannot be read can be described and estimated; a query that
    /// reads it fails with the reason.
    ///
    /// `insecure` allows all of them to send keys in clear text. `exchanges` is the source of the responses of a connection, by
    /// name, address and key.
    ///
    /// # Errors
    /// That of the default connection's key, and those of [`ConnectionBuilder::build`](crate::ConnectionBuilder::build).
    pub fn open(self, insecure: bool, exchanges: impl Fn(&str, &str, &Secret) -> Result<Exchanges>) -> Result<Open> {
        let Self { default, named } = self;
        let (mut chosen, mut others) = (None, Vec::new());
        for (name, named) in named {
            let key = named.key();
            let Named { base_url, profile, insecure: allowed, store, catalog, .. } = named;
            let readable = key.is_ok();
            let builder = match key {
                Ok(key) => {
                    let exchanges = exchanges(&name, &base_url, &key)?;
                    let limits = HttpLimits::default().insecure(insecure || allowed);
                    let builder = Connection::builder(base_url, key).profile(profile).http_limits(limits);
                    builder.exchanges(exchanges).keep_estimates()
                }
                Err(error) if name == default => return Err(error),
                Err(error) => Connection::builder(base_url, Secret::unused())
                    .profile(profile)
                    .service(Arc::new(Unavailable(error.to_string()))),
            };
            #[cfg(feature = "store")]
            let builder = match store.filter(|_| readable) {
                Some(location) => builder.store_at(location),
                None => builder,
            };
            #[cfg(feature = "store")]
            let builder = match catalog {
                Some(url) => builder.catalog(url),
                None => builder,
            };
            #[cfg(not(feature = "store"))]
            let _ = (readable, store, catalog);
            let connection = builder.build()?;
            if name == default {
                chosen = Some(Arc::clone(&connection));
            }
            others.push((name, connection));
        }
        let unknown = || Error::new(ErrorKind::Config, format!("unknown connection `{default}`"));
        Ok((chosen.ok_or_else(unknown)?, others))
    }

    /// False if a file configures the server alone, and the service is named elsewhere.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an invalid file.
    pub fn are_defined(path: &Path) -> Result<bool> {
        let Document { default, connections, serve } = read_toml(path)?;
        Ok(default.is_some() || connections.is_some() || serve.is_none())
    }

    /// Reads a file. `choice` overrides the file's default connection.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an invalid file or name; those of [`Profile::named`].
    pub fn read(path: &Path, choice: Option<&str>) -> Result<Self> {
        let bad = |what: String| Error::new(ErrorKind::Config, format!("{}: {what}", path.display()));
        let document: Document = read_toml(path)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut named = BTreeMap::new();
        for (name, entry) in document.connections.unwrap_or_default() {
            let bad = |what: &str| bad(format!("connection `{name}`: {what}"));
            let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
            if !plain
                || name.is_empty()
                || name.starts_with(|first: char| first.is_ascii_digit())
                || [CATALOG, "datafusion", "information_schema"].contains(&name.as_str())
            {
                return Err(bad(&format!(
                    "invalid name: expected lowercase letters, digits and `_`, no leading digit, and none of {CATALOG}, \
                     datafusion and information_schema"
                )));
            }
            let key = match (entry.api_key_env, entry.api_key_file, entry.api_key_command) {
                (Some(name), None, None) => Some(KeySource::Variable(name)),
                (None, Some(file), None) => Some(KeySource::File(folder.join(file))),
                (None, None, Some(command)) => Some(KeySource::Command(command, folder.to_owned())),
                (None, None, None) => None,
                _ => return Err(bad("expected one of api_key_env, api_key_file and api_key_command")),
            };
            let profile =
                entry.profile.map_or_else(|| Ok(Profile::v4()), |profile| Profile::named(folder, &profile))?;
            let place = format!("{}: connection `{name}`", path.display());
            let (base_url, insecure) = (entry.base_url, entry.insecure);
            let store = entry.store.map(Location::parse).transpose().map_err(|error| bad(&error.to_string()))?;
            let store = store.map(|store| store.below(folder));
            let catalog = match &entry.catalog {
                None => None,
                Some(_) if store.is_none() => return Err(bad("catalog needs a store: set `store` as well")),
                Some(url) => Some(catalog_url(url).map_err(|error| bad(&error.to_string()))?),
            };
            let retain = match &entry.retain {
                None => None,
                Some(_) if store.is_none() => return Err(bad("retain needs a store: set `store` as well")),
                Some(age) => match parse_days(age) {
                    Some(days) => Some(days),
                    None => {
                        return Err(bad(&format!("invalid retain `{age}`: expected a number of days, such as 400d")));
                    }
                },
            };
            let quota = match &entry.quota {
                None => None,
                Some(_) if store.is_none() => return Err(bad("quota needs a store: set `store` as well")),
                Some(size) => match parse_size(size) {
                    Some(bytes) => Some(bytes),
                    None => {
                        return Err(bad(&format!("invalid quota `{size}`: expected a size, such as 500MB or 20GB")));
                    }
                },
            };
            if store.is_none() && !entry.watch.is_empty() {
                return Err(bad("watch needs a store: set `store` as well"));
            }
            let rule = |(rule, entry): (String, WatchEntry)| {
                let place = format!("{place}: watch.{rule}");
                WatchRule::of(rule, entry, place)
            };
            let watch = entry.watch.into_iter().map(rule).collect::<Result<_>>()?;
            named.insert(name, Named { base_url, key, profile, insecure, store, catalog, retain, quota, watch, place });
        }
        let default = choice.map(str::to_owned).or(document.default).or_else(|| named.keys().next().cloned());
        let default = default.ok_or_else(|| bad("no connections are defined".to_owned()))?;
        if !named.contains_key(&default) {
            let names: Vec<&str> = named.keys().map(String::as_str).collect();
            let error = bad(format!("unknown connection `{default}`"));
            return Err(error.advice(format!("available: {}", names.join(", "))));
        }
        Ok(Self { default, named })
    }

    /// Returns the default connection alone.
    ///
    /// # Panics
    /// If the fields were changed, so that the default is none of the connections.
    pub fn into_default(mut self) -> Named {
        self.named.remove(&self.default).expect("`read` refuses a default that is not defined")
    }
}

/// Parses a number of days, at least one, such as `400d`.
pub fn parse_days(text: &str) -> Option<u32> {
    text.strip_suffix('d').and_then(|number| number.parse().ok()).filter(|days| *days > 0)
}

/// Parses a size of whole megabytes, gigabytes or terabytes, at least one, such as `20GB`, in bytes. A megabyte has 1,000,000 bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    let units = [("MB", 1_000_000_u64), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000)];
    let (number, unit) = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse::<u64>().ok().filter(|number| digits && *number > 0)?.checked_mul(*unit)
}

/// Reads a key from a command, and again when the service no longer accepts the key. Errors begin with the name of the setting.
///
/// # Errors
/// [`ErrorKind::Config`] if the command fails or prints no key.
pub fn key_from_command(command: &str, folder: &Path, setting: impl Into<Phrase>) -> Result<Secret> {
    let (command, folder, setting) = (command.to_owned(), folder.to_owned(), setting.into());
    let ask = move || {
        key_of_command(&command, &folder).map_err(|what| {
            Error::new(ErrorKind::Config, setting.clone() + what)
                .advice("run the command in a shell: it must print the key alone")
        })
    };
    Ok(ask()?.renewed_by(ask))
}

/// Runs a command that prints a key, such as that of a password manager, which may ask its own questions on the terminal.
///
/// The output is never part of an error: a part of it may be the key. An error continues the name of the setting.
fn key_of_command(command: &str, folder: &Path) -> std::result::Result<Secret, String> {
    // `Command` takes an empty path for a missing folder.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut process = Command::new("sh");
    // Statements on a pipe are not for the command.
    let stdin = if std::io::stdin().is_terminal() { Stdio::inherit() } else { Stdio::null() };
    process.args(["-c", command]).current_dir(folder).stdin(stdin).stderr(Stdio::inherit());
    let output = process.output().map_err(|error| format!(": cannot run the command: {error}"))?;
    if !output.status.success() {
        return Err(format!(" failed: {}", output.status));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| " did not print UTF-8 text".to_owned())?;
    match text.trim() {
        "" => Err(" printed nothing".to_owned()),
        key => Secret::new(key).map_err(|error| format!(": {error}")),
    }
}
