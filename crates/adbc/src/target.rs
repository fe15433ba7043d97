//! The service that the options of a database name: an address with a key, a connection of the configuration file, or the demo data.
//!
//! As for the program `savedsearch`, options come before the environment, an address before the configuration file, and without
//! either the demo data is used.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, Weak};

use adbc_core::error::{Error, Result};
use adbc_core::options::{OptionDatabase, OptionValue};
use chrono::{DateTime, Utc};
use datafusion_saved_search::client::{Exchanges, HttpLimits, parse_base_url};
use datafusion_saved_search::config::Environment;
use datafusion_saved_search::connections::{Connections, key_from_command};
use datafusion_saved_search::embedded::{Code, Failure, Session};
use datafusion_saved_search::error::Phrase;
use datafusion_saved_search::simulator::{self, Running};
use datafusion_saved_search::{CatalogUrl, Clock, Connection, ConnectionBuilder, Location, Profile, Secret};
use tokio::sync::Mutex;

use crate::error::{failed, named_option, own, unknown_option, wrong};

/// Options of a database.
#[derive(Default)]
pub(crate) struct Options {
    uri: Option<String>,
    key: Option<Secret>,
    key_command: Option<String>,
    profile: Option<String>,
    store: Option<Location>,
    connection: Option<String>,
    config: Option<PathBuf>,
    insecure: bool,
    now: Option<DateTime<Utc>>,
    /// Session settings of its connections.
    pub(crate) settings: Vec<(String, String)>,
}

/// Names of the options, besides session settings.
const NAMES: [&str; 9] = [
    "uri",
    "savedsearch.api_key",
    "savedsearch.api_key_command",
    "savedsearch.profile",
    "savedsearch.store",
    "savedsearch.connection",
    "savedsearch.config",
    "savedsearch.insecure",
    "savedsearch.now",
];

impl Options {
    /// Reads an option.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an unknown option or an invalid value.
    pub(crate) fn set(&mut self, option: OptionDatabase, value: OptionValue) -> Result<()> {
        let name = option.as_ref().to_owned();
        let text = text_of(&name, value)?;
        match option {
            OptionDatabase::Uri => self.uri = Some(text).filter(|uri| !uri.is_empty()),
            OptionDatabase::Username | OptionDatabase::Password => {
                let message = format!("option {name} is not supported");
                return Err(wrong(message, Phrase::from("set ") + named_option("savedsearch.api_key")));
            }
            OptionDatabase::Other(_) => match name.as_str() {
                "savedsearch.api_key" => self.key = Some(Secret::new(&text).map_err(own)?),
                "savedsearch.api_key_command" => self.key_command = Some(text),
                "savedsearch.profile" => self.profile = Some(text),
                "savedsearch.store" => self.store = Some(Location::parse(text).map_err(own)?),
                "savedsearch.connection" => self.connection = Some(text),
                "savedsearch.config" => self.config = Some(text.into()),
                "savedsearch.insecure" => self.insecure = switch(&name, &text)?,
                "savedsearch.now" => {
                    let expected = "expected an instant such as 2026-07-01T12:00:00Z";
                    self.now = Some(text.parse().map_err(|_| invalid(&name, &text, expected))?);
                }
                setting if Session::is_setting(setting) => self.settings.push((name, text)),
                _ => return Err(unknown(&name)),
            },
            _ => return Err(unknown(&name)),
        }
        Ok(())
    }
}

fn unknown(name: &str) -> Error {
    let settings = Session::settings();
    // `store` is the folder here.
    let settings = settings.iter().map(String::as_str).filter(|name| !NAMES.contains(name));
    unknown_option(name, &NAMES.into_iter().chain(settings).collect::<Vec<_>>())
}

fn invalid(name: &str, value: &str, expected: &str) -> Error {
    wrong(Phrase::from(format!("invalid value `{value}` for ")) + named_option(name), expected)
}

/// Reads `true` or `false`.
///
/// # Errors
/// INVALID_ARGUMENT for other values.
pub(crate) fn switch(name: &str, value: &str) -> Result<bool> {
    value.parse().map_err(|_| invalid(name, value, "expected true or false"))
}

/// The text of a value.
///
/// # Errors
/// INVALID_ARGUMENT for bytes.
pub(crate) fn text_of(name: &str, value: OptionValue) -> Result<String> {
    match value {
        OptionValue::String(text) => Ok(text),
        OptionValue::Int(number) => Ok(number.to_string()),
        OptionValue::Double(number) => Ok(number.to_string()),
        _ => Err(wrong(Phrase::from("invalid value for ") + named_option(name), "expected text")),
    }
}

/// Open connections to a service. The demo data runs as long as it is used.
pub(crate) struct Target {
    pub(crate) connection: Arc<Connection>,
    /// Connections by name, including `connection`.
    pub(crate) named: Vec<(String, Arc<Connection>)>,
    pub(crate) demo: Option<Arc<Running>>,
}

/// Identity of a target: equal ones share a connection.
#[derive(PartialEq)]
enum Identity {
    Demo { profile: Box<Profile>, store: Option<StoreAt>, now: Option<DateTime<Utc>> },
    Service { base_url: String, key: [u8; 32], profile: Box<Profile>, store: Option<StoreAt>, insecure: bool },
    File { content: String, folder: PathBuf, connection: Option<String>, insecure: bool },
}

/// Targets of this process. A key has one connection to its service, since limits count its requests together.
static OPEN: Mutex<Vec<(Identity, Weak<Target>)>> = Mutex::const_new(Vec::new());
/// Demo data of this process, by the instant at which its clock stands still.
static DEMO: std::sync::Mutex<Vec<Demo>> = std::sync::Mutex::new(Vec::new());
type Demo = (Option<DateTime<Utc>>, Weak<Running>);

impl Target {
    /// Opens what the options name, or returns it if it is open already. No request is sent.
    ///
    /// # Errors
    /// Those of invalid options, keys, profiles, configuration files and stores.
    pub(crate) async fn open(options: &Options) -> Result<Arc<Self>> {
        let environment = Environment::read().map_err(own)?;
        let named = options.config.clone();
        let config = named.or_else(|| options.uri.is_none().then(|| environment.config_file()).flatten());
        let config = match config {
            // It configures the server alone.
            Some(file) if options.uri.is_none() && !Connections::are_defined(&file).map_err(own)? => None,
            config => config,
        };
        match config {
            Some(_) if options.uri.is_some() => {
                Err(wrong(named_option("savedsearch.config") + " cannot be combined with uri", "remove one of them"))
            }
            Some(config) => Self::configured(&config, options).await,
            None if options.connection.is_some() => Err(wrong(
                named_option("savedsearch.connection") + " requires a configuration file",
                Phrase::from("set ") + named_option("savedsearch.config") + " or SAVEDSEARCH_CONFIG",
            )),
            None => Self::single(options, environment).await,
        }
    }

    /// Opens the connections of a configuration file.
    async fn configured(file: &Path, options: &Options) -> Result<Arc<Self>> {
        if options.key.is_some()
            || options.key_command.is_some()
            || options.profile.is_some()
            || options.store.is_some()
        {
            let key = named_option("savedsearch.api_key") + ", " + named_option("savedsearch.api_key_command");
            let names = key + ", " + named_option("savedsearch.profile") + " and " + named_option("savedsearch.store");
            let message = names + " cannot be combined with a configuration file";
            let of_file = options.config.is_some() || options.connection.is_some();
            let instead = if of_file { "remove them" } else { "set uri" };
            return Err(wrong(message, format!("{instead}, or set them in the file")));
        }
        let connections = Connections::read(file, options.connection.as_deref()).map_err(own)?;
        let identity = Identity::File {
            // It was read successfully a moment ago.
            content: std::fs::read_to_string(file).unwrap_or_default(),
            folder: file.parent().unwrap_or(Path::new("")).to_owned(),
            connection: options.connection.clone(),
            insecure: options.insecure,
        };
        let insecure = options.insecure;
        shared(identity, || async move {
            let (connection, named) = connections.open(insecure, |_, _, _| Ok(Exchanges::Live)).map_err(own)?;
            Ok(Self { connection, named, demo: None })
        })
        .await
    }

    /// Opens a single service, or the demo data.
    async fn single(options: &Options, environment: Environment) -> Result<Arc<Self>> {
        let profile = options.profile.as_ref().map(PathBuf::from).or(environment.profile);
        let profile =
            profile.map_or_else(|| Ok(Profile::v4()), |name| Profile::named(Path::new(""), &name)).map_err(own)?;
        let store = options.store.clone().or(environment.store).map(|location| (location, environment.catalog));
        let Some(base_url) = options.uri.clone().or(environment.base_url) else {
            let keys = [
                (options.key.is_some(), "savedsearch.api_key"),
                (options.key_command.is_some(), "savedsearch.api_key_command"),
            ];
            if let Some((_, given)) = keys.into_iter().find(|(given, _)| *given) {
                let advice = "set uri to the base URL of the service, ending in /v4";
                return Err(wrong(named_option(given) + " requires uri", advice));
            }
            return Self::demo(profile, store, options.now).await;
        };
        parse_base_url(&base_url).map_err(own)?;
        if options.now.is_some() {
            return Err(wrong(named_option("savedsearch.now") + " is for the demo data", "remove it, or uri"));
        }
        let key = match (options.key.clone(), &options.key_command) {
            (Some(_), Some(_)) => {
                let message = named_option("savedsearch.api_key") + " cannot be combined with ";
                return Err(wrong(message + named_option("savedsearch.api_key_command"), "remove one of them"));
            }
            (Some(key), None) => key,
            (None, Some(command)) => {
                key_from_command(command, Path::new(""), named_option("savedsearch.api_key_command")).map_err(own)?
            }
            (None, None) => environment.api_key.ok_or_else(|| {
                let set = Phrase::from("set ") + named_option("savedsearch.api_key") + ", ";
                wrong("no API key", set + named_option("savedsearch.api_key_command") + " or SAVEDSEARCH_API_KEY")
            })?,
        };
        let insecure = options.insecure;
        let identity = Identity::Service {
            base_url: base_url.clone(),
            key: key.digest(&base_url),
            profile: Box::new(profile.clone()),
            store: store.clone(),
            insecure,
        };
        shared(identity, || async move {
            let limits = HttpLimits::default().insecure(insecure);
            let builder = Connection::builder(base_url, key).profile(profile).http_limits(limits);
            let builder = match store {
                Some(at) => with_store(builder, at),
                None => builder,
            };
            Ok(Self { connection: builder.build().map_err(own)?, named: Vec::new(), demo: None })
        })
        .await
    }

    async fn demo(profile: Profile, store: Option<StoreAt>, now: Option<DateTime<Utc>>) -> Result<Arc<Self>> {
        let identity = Identity::Demo { profile: Box::new(profile.clone()), store: store.clone(), now };
        shared(identity, || async move {
            let demo = demo_data(now).await?;
            let key = Secret::new(simulator::KEY).map_err(own)?;
            let builder = Connection::builder(demo.base_url(), key).profile(profile);
            let builder = builder.clock(now.map_or_else(Clock::system, Clock::stopped)).shown_as("built-in demo data");
            let builder = match (store, now) {
                (Some(at), Some(now)) => with_store(builder, at).store_owner(format!("demo data of {now}")),
                (Some(_), None) => {
                    let message =
                        named_option("savedsearch.store") + " with the demo data needs a clock that stands still";
                    return Err(wrong(message, Phrase::from("set ") + named_option("savedsearch.now")));
                }
                (None, _) => builder,
            };
            Ok(Self { connection: builder.build().map_err(own)?, named: Vec::new(), demo: Some(demo) })
        })
        .await
    }
}

/// Location of a store, and its catalog if that is in PostgreSQL.
type StoreAt = (Location, Option<CatalogUrl>);

fn with_store(builder: ConnectionBuilder, (location, catalog): StoreAt) -> ConnectionBuilder {
    let builder = builder.store_at(location);
    match catalog {
        Some(url) => builder.catalog(url),
        None => builder,
    }
}

/// Returns the open target of an identity, or opens one.
async fn shared<F: Future<Output = Result<Target>>>(
    identity: Identity,
    open: impl FnOnce() -> F,
) -> Result<Arc<Target>> {
    let mut known = OPEN.lock().await;
    known.retain(|(_, target)| target.strong_count() > 0);
    if let Some(target) = known.iter().find(|(other, _)| *other == identity).and_then(|(_, target)| target.upgrade()) {
        return Ok(target);
    }
    let target = Arc::new(open().await?);
    known.push((identity, Arc::downgrade(&target)));
    Ok(target)
}

/// Returns the demo data of this process, or starts it.
async fn demo_data(now: Option<DateTime<Utc>>) -> Result<Arc<Running>> {
    let known = |demos: &[Demo]| demos.iter().find(|(at, _)| *at == now).and_then(|(_, demo)| demo.upgrade());
    if let Some(demo) = known(&DEMO.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(demo);
    }
    let started = simulator::demo(now.map_or_else(Clock::system, Clock::fixed)).await;
    let started = started
        .map_err(|error| failed(&Failure::new(Code::Unavailable, format!("cannot start the demo data: {error}"))))?;
    let started = Arc::new(started);
    let mut demos = DEMO.lock().unwrap_or_else(PoisonError::into_inner);
    demos.retain(|(_, demo)| demo.strong_count() > 0);
    demos.push((now, Arc::downgrade(&started)));
    Ok(started)
}
