//! Connections named by arguments and environment: a service, several services, a recording, or demo data.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use datafusion_saved_search::client::{Exchanges, HttpLimits, HttpService, Network, Recorder, Replay, parse_base_url};
use datafusion_saved_search::config::{Environment, catalog_url, is_blank};
use datafusion_saved_search::connections::{Connections, Named, Unavailable, WatchRule};
use datafusion_saved_search::host::{PassThrough, ServeDocument};
use datafusion_saved_search::simulator::{self, Running};
use datafusion_saved_search::{CatalogUrl, Clock, Connection, Error, ErrorKind, Location, Profile, Secret, has_store};
use tracing::Level;

use crate::stderr::tell;
use crate::{Arguments, Exit, FAILED};

/// Connections of a session.
pub(crate) struct Connected {
    pub(crate) connection: Arc<Connection>,
    /// Connections by name, including `connection`.
    pub(crate) others: Vec<(String, Arc<Connection>)>,
    /// The simulator behind the demo data.
    pub(crate) demo: Option<Running>,
}

/// Variable of the base URL.
const BASE_URL: &str = "SAVEDSEARCH_BASE_URL";

/// Name under which people are shown the address of the demo data.
const DEMO: &str = "built-in demo data";

/// A single service with its key and transport.
pub(crate) struct Target {
    pub(crate) base_url: String,
    pub(crate) key: Secret,
    pub(crate) service: Arc<dyn HttpService>,
    pub(crate) exchanges: Exchanges,
    pub(crate) clock: Clock,
    pub(crate) demo: Option<Running>,
}

/// Stores that a command opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stores {
    /// All. Missing ones are created.
    All,
    /// Those that exist.
    Existing,
}

impl Stores {
    /// True if a store is opened. One that may exist is: the error of opening it says why that is not known.
    fn opens(self, location: &Location, catalog: Option<&CatalogUrl>) -> bool {
        self == Self::All || !matches!(has_store(location, catalog), Ok(false))
    }
}

/// Connects to the services that arguments and environment name, or to the demo data.
pub(crate) async fn connect(arguments: &Arguments) -> Result<Connected, Exit> {
    connect_with(arguments, Stores::All).await
}

/// As [`connect`], with some of the stores.
pub(crate) async fn connect_with(arguments: &Arguments, stores: Stores) -> Result<Connected, Exit> {
    let environment = Environment::read()?;
    let Some(config) = config_file(arguments, &environment)? else {
        if arguments.connection.is_some() {
            return Err(Exit::usage(NO_CONFIGURATION));
        }
        let profile = profile(arguments, &environment)?;
        let Target { base_url, key, service, exchanges, clock, demo } = target(arguments).await?;
        let lasts = demo.is_none() && arguments.replay.is_none();
        let builder = Connection::builder(base_url, key).profile(profile).service(service).exchanges(exchanges);
        let builder = if lasts { builder.keep_estimates() } else { builder };
        let builder = if demo.is_some() { builder.shown_as(DEMO) } else { builder };
        let stored = given_store(arguments, &environment)?;
        if stored.is_some() && demo.is_some() && arguments.now.is_none() {
            return Err(Exit::usage(MOVING));
        }
        let builder = match stored.filter(|(location, catalog)| stores.opens(location, catalog.as_ref())) {
            Some((location, catalog)) => {
                let builder = builder.store_at(location);
                let builder = match catalog {
                    Some(url) => builder.catalog(url),
                    None => builder,
                };
                match arguments.now.filter(|_| demo.is_some()) {
                    Some(now) => builder.store_owner(format!("demo data of {now}")),
                    None => builder,
                }
            }
            None => builder,
        };
        let connection = builder.clock(clock).build().map_err(|error| match error.kind() {
            ErrorKind::Config if demo.is_some() => {
                error.advice("use the --now with which the store was made, or another folder")
            }
            _ => error,
        })?;
        return Ok(Connected { connection, others: Vec::new(), demo });
    };
    check_alone(arguments)?;
    if arguments.store.is_some() || environment.store.is_some() {
        return Err(Exit::usage(
            "--store and SAVEDSEARCH_STORE cannot be combined with a configuration file; set `store` of its connections",
        ));
    }
    if arguments.catalog.is_some() || environment.catalog.is_some() {
        return Err(Exit::usage(
            "--catalog and SAVEDSEARCH_CATALOG cannot be combined with a configuration file; set `catalog` of its connections",
        ));
    }
    let mut connections = Connections::read(&config, arguments.connection.as_deref())?;
    for named in connections.named.values_mut() {
        let stays_closed = |location: &Location| !stores.opens(location, named.catalog.as_ref());
        if named.store.as_ref().is_some_and(stays_closed) {
            (named.store, named.catalog) = (None, None);
        }
    }
    let (connection, others) = connections.open(arguments.insecure, |name, base_url, key| {
        let folder = arguments.record.as_ref().map(|folder| folder.join(name));
        recorded(base_url, key, folder.as_deref())
    })?;
    Ok(Connected { connection, others, demo: None })
}

const MOVING: &str = "--store with the demo data needs --now INSTANT: otherwise its mentions move with the clock";

const NO_CONFIGURATION: &str = "--connection requires a configuration file: use --config or SAVEDSEARCH_CONFIG, or create \
                                savedsearch/savedsearch.toml in your configuration folder";

/// Location of a store, and its catalog if that is in PostgreSQL.
pub(crate) type StoreAt = (Location, Option<CatalogUrl>);

/// Returns the default connection's store, if it has one.
pub(crate) fn store_of(arguments: &Arguments) -> Result<Option<StoreAt>, Exit> {
    let environment = Environment::read()?;
    Ok(match config_file(arguments, &environment)? {
        Some(config) => {
            let Named { store, catalog, .. } =
                Connections::read(&config, arguments.connection.as_deref())?.into_default();
            store.map(|location| (location, catalog))
        }
        None => given_store(arguments, &environment)?,
    })
}

/// Returns the store that arguments or environment name.
fn given_store(arguments: &Arguments, environment: &Environment) -> Result<Option<StoreAt>, Exit> {
    let location = match &arguments.store {
        Some(given) => Some(Location::parse(given)?),
        None => environment.store.clone(),
    };
    let catalog = match &arguments.catalog {
        Some(given) => Some(catalog_url(given)?),
        None => environment.catalog.clone(),
    };
    match (location, catalog) {
        (Some(location), catalog) => Ok(Some((location, catalog))),
        (None, Some(_)) => Err(Exit::usage("--catalog and SAVEDSEARCH_CATALOG need a store; set --store")),
        (None, None) => Ok(None),
    }
}

/// Returns the files of keys that arguments or configuration file name.
pub(crate) fn key_files(arguments: &Arguments) -> Result<Vec<PathBuf>, Exit> {
    Ok(match config_file(arguments, &Environment::read()?)? {
        Some(config) => {
            let Connections { named, .. } = Connections::read(&config, arguments.connection.as_deref())?;
            named.values().filter_map(|named| named.key_file().map(Path::to_owned)).collect()
        }
        None => arguments.api_key_file.clone().into_iter().collect(),
    })
}

/// Settings of a synchronization.
#[derive(Debug, Default)]
pub(crate) struct SyncSettings {
    /// Age in days beyond which nothing stays in the store.
    pub(crate) retain: Option<u32>,
    /// Size of the store in bytes.
    pub(crate) quota: Option<u64>,
    /// Rules to evaluate afterwards.
    pub(crate) watch: Vec<WatchRule>,
}

/// Returns the settings of synchronizations of the default connection that the configuration file has.
pub(crate) fn sync_settings(arguments: &Arguments) -> Result<SyncSettings, Exit> {
    Ok(match config_file(arguments, &Environment::read()?)? {
        Some(config) => {
            let named = Connections::read(&config, arguments.connection.as_deref())?.into_default();
            SyncSettings { retain: named.retain, quota: named.quota, watch: named.watch }
        }
        None => SyncSettings::default(),
    })
}

/// Returns the locations of all stores that arguments, environment or configuration file name.
pub(crate) fn store_locations(arguments: &Arguments) -> Result<Vec<Location>, Exit> {
    Ok(all_stores(arguments)?.into_iter().map(|(location, _)| location).collect())
}

/// Returns the locations of those stores that do not exist.
pub(crate) fn missing_stores(arguments: &Arguments) -> Result<Vec<Location>, Exit> {
    let mut stores = all_stores(arguments)?;
    stores.retain(|(location, catalog)| !Stores::Existing.opens(location, catalog.as_ref()));
    Ok(stores.into_iter().map(|(location, _)| location).collect())
}

/// Returns all stores that arguments, environment or configuration file name.
fn all_stores(arguments: &Arguments) -> Result<Vec<StoreAt>, Exit> {
    let environment = Environment::read()?;
    Ok(match config_file(arguments, &environment)? {
        Some(config) => {
            let Connections { named, .. } = Connections::read(&config, arguments.connection.as_deref())?;
            let store = |Named { store, catalog, .. }: Named| store.map(|location| (location, catalog));
            named.into_values().filter_map(store).collect()
        }
        None => given_store(arguments, &environment)?.into_iter().collect(),
    })
}

/// Refuses options that a configuration file would make meaningless.
fn check_alone(arguments: &Arguments) -> Result<(), Exit> {
    match arguments.profile.is_some() || arguments.api_key_file.is_some() {
        true => Err(Exit::usage(
            "--profile and --api-key-file cannot be combined with connections of a configuration file; set them in the file, or use \
             --base-url instead of the file",
        )),
        false => Ok(()),
    }
}

/// Reads the profile that arguments or environment name.
pub(crate) fn profile(arguments: &Arguments, environment: &Environment) -> Result<Profile, Exit> {
    match arguments.profile.as_ref().or(environment.profile.as_ref()) {
        Some(name) => Ok(Profile::named(Path::new(""), name)?),
        None => Ok(Profile::v4()),
    }
}

/// Returns the single service that arguments, environment or configuration file name, or the demo data.
pub(crate) async fn target(arguments: &Arguments) -> Result<Target, Exit> {
    target_or(arguments, None, None).await
}

/// As [`target`], with an address and a key for the case that nothing else names them.
pub(crate) async fn target_or(
    arguments: &Arguments,
    base_url: Option<String>,
    key: Option<Secret>,
) -> Result<Target, Exit> {
    let environment = Environment::read()?;
    if let Some(config) = config_file(arguments, &environment)? {
        check_alone(arguments)?;
        let named = Connections::read(&config, arguments.connection.as_deref())?.into_default();
        let key = named.key()?;
        let Named { base_url, insecure, .. } = named;
        let service = network(&base_url, insecure || arguments.insecure)?;
        let exchanges = recorded(&base_url, &key, arguments.record.as_deref())?;
        return Ok(Target { base_url, key, service, exchanges, clock: Clock::system(), demo: None });
    }
    if arguments.connection.is_some() {
        return Err(Exit::usage(NO_CONFIGURATION));
    }
    if let Some(folder) = &arguments.replay {
        let replay = Replay::read(folder)?;
        let (base_url, clock) = (replay.base_url().to_owned(), Clock::fixed(replay.begun()));
        let key = Secret::unused();
        let exchanges = Exchanges::Replayed(Arc::new(replay));
        return Ok(Target {
            base_url,
            key,
            service: Arc::new(Unavailable("a replay sends no requests".to_owned())),
            exchanges,
            clock,
            demo: None,
        });
    }
    let key = match &arguments.api_key_file {
        Some(path) => Some(Secret::read(path)?),
        None => environment.api_key.or(key),
    };
    let base_url = arguments.base_url.clone().or(environment.base_url).or(base_url);
    let (base_url, demo) = address(base_url, key.is_some(), arguments).await?;
    if demo.is_some() && key.is_some() && !arguments.quiet {
        tell(Level::WARN, "warning: ", "the API key is not used, because no base URL is set; use --base-url");
    }
    let key = match demo {
        Some(_) => Secret::new(simulator::KEY)?,
        None => key.ok_or_else(|| Exit::usage("no API key; set SAVEDSEARCH_API_KEY or use --api-key-file"))?,
    };
    let service = network(&base_url, arguments.insecure)?;
    let exchanges = recorded(&base_url, &key, arguments.record.as_deref())?;
    let clock = arguments.now.filter(|_| demo.is_some()).map_or_else(Clock::system, Clock::stopped);
    Ok(Target { base_url, key, service, exchanges, clock, demo })
}

/// Transport to a service.
fn network(base_url: &str, insecure: bool) -> Result<Arc<dyn HttpService>, Exit> {
    let limits = HttpLimits::default().insecure(insecure);
    Ok(Arc::new(Network::try_new(limits, &parse_base_url(base_url)?)?))
}

/// Source of responses: the service, recorded if a folder is given.
fn recorded(base_url: &str, key: &Secret, folder: Option<&Path>) -> Result<Exchanges, Error> {
    let Some(folder) = folder else { return Ok(Exchanges::Live) };
    Ok(Exchanges::Recorded(Recorder::begin(key.clone(), folder, base_url, Clock::system().now())?))
}

/// Returns the given base URL, or that of the demo data. `has_key` is set if there are keys of a service, so that an empty
/// variable is a mistake.
async fn address(
    named: Option<String>,
    has_key: bool,
    arguments: &Arguments,
) -> Result<(String, Option<Running>), Exit> {
    if let Some(base_url) = named {
        return Ok((base_url, None));
    }
    if has_key && is_blank(BASE_URL) {
        return Err(Exit::usage(format!(
            "{BASE_URL} is empty; set it to the URL of the service, or remove the variable"
        )));
    }
    let demo = demo(arguments.now).await?;
    if !arguments.quiet {
        tell(Level::INFO, "note: ", &format!("no --base-url: using {DEMO}"));
    }
    Ok((demo.base_url(), Some(demo)))
}

/// Returns a factory of connections for the keys that clients send, and the demo data if it serves them.
pub(crate) async fn pass_through(arguments: &Arguments) -> Result<(PassThrough, Option<Running>), Exit> {
    if arguments.record.is_some() || arguments.replay.is_some() || arguments.api_key_file.is_some() {
        return Err(Exit::usage("--auth pass-through cannot be combined with --api-key-file, --record or --replay"));
    }
    let environment = Environment::read()?;
    if arguments.store.is_some() || environment.store.is_some() {
        return Err(Exit::usage("--auth pass-through cannot be combined with a store: a store belongs to one key"));
    }
    let (base_url, profile, insecure, demo) = match config_file(arguments, &environment)? {
        Some(config) => {
            check_alone(arguments)?;
            let connections = Connections::read(&config, arguments.connection.as_deref())?;
            let Named { base_url, profile, insecure, .. } = connections.into_default();
            (base_url, profile, insecure, None)
        }
        None => {
            let profile = profile(arguments, &environment)?;
            // Clients would send their keys.
            let (base_url, demo) =
                address(arguments.base_url.clone().or(environment.base_url), true, arguments).await?;
            (base_url, profile, false, demo)
        }
    };
    let service = network(&base_url, insecure || arguments.insecure)?;
    let is_demo = demo.is_some();
    let connect = move |key| {
        let builder = Connection::builder(base_url.clone(), key).profile(profile.clone());
        let builder = if is_demo { builder.shown_as(DEMO) } else { builder };
        builder.service(Arc::clone(&service)).build()
    };
    Ok((PassThrough::new(connect), demo))
}

/// Returns the configuration file that names the connections: of the arguments, the environment, or the user's configuration
/// folder. The latter two give way to a base URL or a replay.
pub(crate) fn config_file(arguments: &Arguments, environment: &Environment) -> Result<Option<PathBuf>, Exit> {
    let elsewhere = arguments.base_url.is_some() || arguments.replay.is_some();
    let file = match &arguments.config {
        Some(file) => file.clone(),
        None if elsewhere => return Ok(None),
        None => match environment.config_file() {
            Some(file) => file,
            None => return Ok(None),
        },
    };
    if !Connections::are_defined(&file)? {
        return Ok(None);
    }
    if elsewhere {
        let file = file.display();
        return Err(Exit::usage(format!(
            "--base-url cannot be combined with --config {file}, which defines connections"
        )));
    }
    Ok(Some(file))
}

/// Reads the `[serve]` table of the configuration file. A file that the environment names gives way with its connections.
pub(crate) fn serve_document(arguments: &Arguments) -> Result<ServeDocument, Exit> {
    let environment = Environment::read()?;
    let alone = match arguments.config.as_ref().or(environment.config.as_ref()) {
        Some(file) if !Connections::are_defined(file)? => Some(file.clone()),
        _ => None,
    };
    let file = match alone {
        Some(file) => Some(file),
        None => config_file(arguments, &environment)?,
    };
    match (file, environment.config) {
        (Some(file), _) => Ok(ServeDocument::read(&file)?),
        (None, Some(unused)) if !arguments.quiet => {
            let line =
                format!("SAVEDSEARCH_CONFIG={} is not used: the service is named by an option", unused.display());
            tell(Level::INFO, "note: ", &line);
            Ok(ServeDocument::default())
        }
        (None, _) => Ok(ServeDocument::default()),
    }
}

async fn demo(now: Option<DateTime<Utc>>) -> Result<Running, Exit> {
    let started = simulator::demo(now.map_or_else(Clock::system, Clock::fixed)).await;
    started.map_err(|error| Exit(FAILED, Some(format!("cannot start the demo data: {error}"))))
}
