//! What the arguments and the environment connect to: a service, several, a recording, or the demo.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion_saved_search::client::{
    Exchanges, HttpFailure, HttpLimits, HttpRequest, HttpResponse, HttpService, Network, Recorder, Replay,
    parse_base_url,
};
use datafusion_saved_search::config::Environment;
use datafusion_saved_search::connections::{Connections, Named};
use datafusion_saved_search::flight::PassThrough;
use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, Running, Settings};
use datafusion_saved_search::{Clock, Connection, ErrorKind, Profile, Secret};

use crate::{Arguments, DEMO_MENTIONS, DEMO_SEARCHES, DEMO_SEED, Exit, FAILED};

/// What a session is over.
pub(crate) struct Connected {
    pub(crate) connection: Arc<Connection>,
    /// Connections by name, the first one among them.
    pub(crate) others: Vec<(String, Arc<Connection>)>,
    /// The service inside this process.
    pub(crate) demo: Option<Running>,
}

/// An address with a key, and how it is talked to.
pub(crate) struct Target {
    pub(crate) base_url: String,
    pub(crate) key: Secret,
    pub(crate) service: Arc<dyn HttpService>,
    pub(crate) exchanges: Exchanges,
    pub(crate) clock: Clock,
    pub(crate) demo: Option<Running>,
}

/// The connections that the arguments and the environment name, or the demo.
pub(crate) async fn connect(arguments: &Arguments) -> Result<Connected, Exit> {
    let environment = Environment::read()?;
    let Some(config) = config_file(arguments, &environment) else {
        if arguments.connection.is_some() {
            return Err(Exit::usage("--connection goes with --config, or with the variable SAVEDSEARCH_CONFIG"));
        }
        let profile = profile(arguments, &environment)?;
        let Target { base_url, key, service, exchanges, clock, demo } = target(arguments).await?;
        let builder = Connection::builder(base_url, key).profile(profile).service(service).exchanges(exchanges);
        let connection = builder.clock(clock).build()?;
        return Ok(Connected { connection, others: Vec::new(), demo });
    };
    if arguments.profile.is_some() || arguments.api_key_file.is_some() {
        return Err(Exit::usage("--profile and --api-key-file do not go with connections: unset SAVEDSEARCH_CONFIG"));
    }
    let Connections { default, named } = Connections::read(config, arguments.connection.as_deref())?;
    let mut others = Vec::new();
    for (name, Named { base_url, key, profile, insecure }) in named {
        let key = key.ok_or_else(|| {
            Exit::usage(format!(
                "{}: connection `{name}`: expected either api_key_env or api_key_file",
                config.display()
            ))
        })?;
        let folder = arguments.record.as_ref().map(|folder| folder.join(&name));
        let service = network(&base_url, insecure || arguments.insecure)?;
        let exchanges = recorded(&base_url, &key, folder.as_deref())?;
        let builder = Connection::builder(base_url, key).profile(profile).service(service);
        others.push((name, builder.exchanges(exchanges).build()?));
    }
    let chosen = others.iter().find(|(name, _)| *name == default).map(|(_, connection)| Arc::clone(connection));
    let connection = chosen.ok_or_else(|| Exit::usage(format!("there is no connection `{default}`")))?;
    Ok(Connected { connection, others, demo: None })
}

/// The profile that the arguments or the environment name.
pub(crate) fn profile(arguments: &Arguments, environment: &Environment) -> Result<Profile, Exit> {
    match arguments.profile.as_ref().or(environment.profile.as_ref()) {
        Some(name) => Ok(Profile::named(Path::new(""), name)?),
        None => Ok(Profile::v4()),
    }
}

/// The one service that the arguments and the environment name, or the demo.
pub(crate) async fn target(arguments: &Arguments) -> Result<Target, Exit> {
    if arguments.config.is_some() || arguments.connection.is_some() {
        return Err(Exit::usage("this command asks one service: name it with --base-url instead of --config"));
    }
    if let Some(folder) = &arguments.replay {
        let replay = Replay::read(folder)?;
        let (base_url, clock) = (replay.base_url().to_owned(), Clock::fixed(replay.begun()));
        // Nobody is sent this one.
        let key = Secret::new("replayed")?;
        let exchanges = Exchanges::Replayed(Arc::new(replay));
        return Ok(Target { base_url, key, service: Arc::new(Unasked), exchanges, clock, demo: None });
    }
    let environment = Environment::read()?;
    let key = match &arguments.api_key_file {
        Some(path) => Some(Secret::read(path)?),
        None => environment.api_key,
    };
    let (base_url, demo) = address(arguments.base_url.clone().or(environment.base_url)).await?;
    let key = match demo {
        Some(_) => Secret::new(simulator::KEY)?,
        None => key.ok_or_else(|| {
            Exit::usage("there is no API key: set SAVEDSEARCH_API_KEY, or name a file with --api-key-file")
        })?,
    };
    let service = network(&base_url, arguments.insecure)?;
    let exchanges = recorded(&base_url, &key, arguments.record.as_deref())?;
    Ok(Target { base_url, key, service, exchanges, clock: Clock::system(), demo })
}

/// The service of a replay, which is never asked.
#[derive(Debug)]
struct Unasked;

#[async_trait]
impl HttpService for Unasked {
    async fn call(&self, _request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
        let message = "a replay asks no service".to_owned();
        Err(HttpFailure { kind: ErrorKind::Connect, message, temporary: false })
    }
}

/// The network to a service.
fn network(base_url: &str, insecure: bool) -> Result<Arc<dyn HttpService>, Exit> {
    let limits = HttpLimits::default().insecure(insecure);
    Ok(Arc::new(Network::try_new(limits, &parse_base_url(base_url)?)?))
}

/// Answers from the service, which are written down where a folder for that is named.
fn recorded(base_url: &str, key: &Secret, folder: Option<&Path>) -> Result<Exchanges, Exit> {
    let Some(folder) = folder else { return Ok(Exchanges::Live) };
    Ok(Exchanges::Recorded(Recorder::begin(key.clone(), folder, base_url, Clock::system().now())?))
}

/// The address that is named, or that of the demo.
async fn address(named: Option<String>) -> Result<(String, Option<Running>), Exit> {
    if let Some(base_url) = named {
        return Ok((base_url, None));
    }
    let demo = demo().await?;
    eprintln!("note: no --base-url: answering from demo data, by the simulator in this process");
    Ok((demo.base_url(), Some(demo)))
}

/// What connects with the keys that clients bring, and the demo if it is that.
pub(crate) async fn pass_through(arguments: &Arguments) -> Result<(PassThrough, Option<Running>), Exit> {
    if arguments.record.is_some() || arguments.replay.is_some() || arguments.api_key_file.is_some() {
        return Err(Exit::usage("clients bring the keys: there is no --api-key-file, --record or --replay"));
    }
    let environment = Environment::read()?;
    let (base_url, profile, insecure, demo) = match config_file(arguments, &environment) {
        Some(config) => {
            let Connections { default, mut named } = Connections::read(config, arguments.connection.as_deref())?;
            let Named { base_url, profile, insecure, .. } =
                named.remove(&default).ok_or_else(|| Exit::usage(format!("there is no connection `{default}`")))?;
            (base_url, profile, insecure, None)
        }
        None => {
            let profile = profile(arguments, &environment)?;
            let (base_url, demo) = address(arguments.base_url.clone().or(environment.base_url)).await?;
            (base_url, profile, false, demo)
        }
    };
    let service = network(&base_url, insecure || arguments.insecure)?;
    let connect = move |key| {
        let builder = Connection::builder(base_url.clone(), key).profile(profile.clone());
        builder.service(Arc::clone(&service)).build()
    };
    Ok((PassThrough::new(connect), demo))
}

/// The file of connections that the arguments or the environment name.
pub(crate) fn config_file<'a>(arguments: &'a Arguments, environment: &'a Environment) -> Option<&'a PathBuf> {
    let named = arguments.base_url.is_some() || arguments.replay.is_some();
    arguments.config.as_ref().or(environment.config.as_ref().filter(|_| !named))
}

async fn demo() -> Result<Running, Exit> {
    let spec =
        CorpusSpec { seed: DEMO_SEED, searches: DEMO_SEARCHES, mentions: DEMO_MENTIONS, now: Clock::system().now() };
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    simulator::start(listen, Arc::new(Corpus::generate(spec)), Settings::default())
        .await
        .map_err(|error| Exit(FAILED, Some(format!("cannot start the simulator: {error}"))))
}
