//! Client sessions, identified by token or by connection.
//!
//! A handshake opens a session and returns its token, of which only a digest is stored. Clients that send credentials
//! with each call, or none at all, get one session per connection. Sessions end when they are closed or idle.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
#[cfg(feature = "distributed")]
use datafusion::common::TableReference;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::SessionContext;
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::auth::{Auth, Credentials, Principal, Rejection, anybody, key_holder};
use super::failure::{Failure, KeyOwner};
use super::lanes::OwnLane;
use super::metrics::Metrics;
use super::open_sessions::{Found, OpenSessions};
use super::own_tables::OwnTables;
use super::peer::{Caller, Peer};
use super::settings::Limits;
use super::shares::{Received, SessionMemory, Share, Shares};
use crate::catalog::catalog;
#[cfg(feature = "distributed")]
use crate::catalog::{CATALOG, SYSTEM_SCHEMA};
use crate::client::{self, Clean, Client, Secret, Warning};
use crate::config::SessionSettings;
use crate::connection::Connection;
#[cfg(feature = "distributed")]
use crate::distributed::{WorkerState, Workers, WorkersTable};
use crate::error::Result;
use crate::session::{bounded_session, session_config, session_with};

/// Connections behind the tables of sessions.
#[derive(Debug)]
#[non_exhaustive]
pub enum Upstream {
    /// Connections with the server's own API keys.
    Own {
        /// Default connection, for tables without a catalog name.
        connection: Arc<Connection>,
        /// All connections by catalog name, the default one too; empty if there is only one.
        named: Vec<(String, Arc<Connection>)>,
    },
    /// One connection for each API key that clients send.
    PassThrough(PassThrough),
}

/// Connections with the API keys that clients send; sessions with the same key share a connection.
pub struct PassThrough {
    connect: Box<Connect>,
    open: Mutex<HashMap<Arc<str>, Weak<Connection>>>,
}

type Connect = dyn Fn(Secret) -> Result<Arc<Connection>> + Send + Sync;

impl PassThrough {
    /// Creates a pass-through upstream. `connect` builds a connection for a key without sending requests.
    pub fn new(connect: impl Fn(Secret) -> Result<Arc<Connection>> + Send + Sync + 'static) -> Self {
        Self { connect: Box::new(connect), open: Mutex::default() }
    }

    fn connection(&self, principal: &Principal, key: &Secret) -> Result<Arc<Connection>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, connection| connection.strong_count() > 0);
        if let Some(connection) = open.get(&principal.name).and_then(Weak::upgrade) {
            return Ok(connection);
        }
        let connection = (self.connect)(key.clone())?;
        open.insert(Arc::clone(&principal.name), Arc::downgrade(&connection));
        Ok(connection)
    }
}

impl fmt::Debug for PassThrough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassThrough").field("open", &self.open).finish_non_exhaustive()
    }
}

/// State of a client session.
pub(crate) struct Session {
    /// Owner of the session.
    pub(crate) principal: Principal,
    /// DataFusion session: tables, settings, views and temporary tables.
    pub(crate) context: SessionContext,
    /// Permits for running queries.
    pub(crate) streams: Arc<Semaphore>,
    /// Held while a temporary table is created, so that the byte limit cannot be exceeded concurrently.
    pub(crate) making: tokio::sync::Mutex<()>,
    /// Lane in which statements of the session run.
    pub(crate) lane: OwnLane,
    /// Memory reserved for views, by view name.
    pub(crate) views: Mutex<HashMap<String, SessionMemory>>,
    /// The user's share of the memory.
    pub(crate) share: Arc<Share>,
    connections: Vec<Arc<Connection>>,
    owner: KeyOwner,
    used: Mutex<Instant>,
    busy: AtomicUsize,
    /// True once the credentials are verified: by this server, or by a successful response to the client's API key.
    proven: AtomicBool,
}

/// Guard that keeps a session from being idle.
pub(crate) struct Busy(Arc<Session>);

impl Drop for Busy {
    fn drop(&mut self) {
        // In this order, so that the session never appears idle since its previous use.
        self.0.touch();
        self.0.busy.fetch_sub(1, Ordering::Release);
    }
}

impl Session {
    /// Converts an error, with API keys redacted.
    pub(crate) fn failure(&self, error: &DataFusionError) -> Failure {
        Failure::of(error, self.owner, |text| self.redact(text))
    }

    /// Converts the error of a statement, with its place in the text and what was probably meant.
    pub(crate) async fn failure_in(&self, error: &DataFusionError, sql: &str) -> Failure {
        self.failure(error).in_text(error, sql, &self.context).await
    }

    /// Redacts the session's API keys from a text.
    pub(crate) fn redact(&self, text: &str) -> Clean {
        Client::redact_all(self.connections.iter().map(|connection| connection.client()), text)
    }

    /// Logs the text of a statement, at the level debug. Returns its digest, which the lines of its queries have as well: the
    /// beginning of the SHA-256 of the text without API keys. Some protocols cut a message into statements, so neither the semicolon
    /// at the end of a statement nor white space around it counts.
    pub(crate) fn log_statement(&self, sql: &str) -> String {
        let sql = self.redact(sql.trim().trim_end_matches(';').trim_end());
        let statement = digest_of(&sql);
        tracing::debug!(statement, principal = %self.principal.name, sql = sql.as_str(), "statement");
        statement
    }

    /// Warnings about a query of the session, such as an incomplete result.
    pub(crate) fn warnings(&self, query: &str) -> Vec<Warning> {
        let all = self.connections.iter().flat_map(|connection| connection.client().log().warnings());
        all.filter(|warning| warning.query == query).collect()
    }

    /// The connections behind its tables; that of unqualified names comes first.
    pub(crate) fn connections(&self) -> &[Arc<Connection>] {
        &self.connections
    }

    /// A copy of the session for one call, with settings of its own. Errors of its statements name their place.
    pub(crate) fn for_call(&self, change: impl FnOnce(SessionSettings) -> SessionSettings) -> SessionContext {
        let mut state = self.context.state();
        let options = state.config_mut().options_mut();
        options.sql_parser.collect_spans = true;
        let settings = change(SessionSettings::of(options));
        options.extensions.insert(settings);
        SessionContext::new_with_state(SessionStateBuilder::from(state).build())
    }

    /// A counter of what a call or a connection of the session has sent and is not decoded yet.
    pub(crate) fn received(&self) -> Received {
        Received::new(&self.share)
    }

    /// Marks the session as in use until the returned guard is dropped.
    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    /// Counts as a use.
    pub(super) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns the time since the last use; `None` while the session is in use.
    pub(super) fn idle(&self) -> Option<Duration> {
        let idle = self.busy.load(Ordering::Acquire) == 0;
        idle.then(|| self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed())
    }

    /// Marks the client's API key as accepted by the service; only now its owner is known to have logged in.
    pub(crate) fn prove(&self) {
        if !self.proven.swap(true, Ordering::Relaxed) {
            self.share.accept();
            log_login(&self.principal);
        }
    }

    /// True once the credentials are verified.
    pub(crate) fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Relaxed)
    }
}

/// Logs a login with verified credentials.
fn log_login(principal: &Principal) {
    tracing::info!(principal = %principal.name, "logged in");
}

fn digest_of(text: &str) -> String {
    /// Bytes of a digest that are shown, as two digits each.
    const SHOWN: usize = 6;
    data_encoding::HEXLOWER.encode(&Sha256::digest(text)[..SHOWN])
}

/// All sessions of a server.
pub(crate) struct Sessions {
    auth: Auth,
    upstream: Upstream,
    /// Those that sessions begin with.
    settings: SessionSettings,
    tables: OwnTables,
    limits: Limits,
    shares: Shares,
    /// Random salt for principal names derived from API keys, so that they are meaningless to other processes.
    salt: [u8; 32],
    open: Mutex<OpenSessions>,
    metrics: Arc<Metrics>,
    #[cfg(feature = "distributed")]
    workers: Option<Arc<Workers>>,
}

/// Prefix of session tokens, so that an expired one is not treated as an API key and sent to the service.
const TOKEN: &str = "sst_";

impl Sessions {
    pub(crate) fn new(
        auth: Auth,
        upstream: Upstream,
        settings: SessionSettings,
        limits: Limits,
        runtime: Arc<RuntimeEnv>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let open = OpenSessions::new(&limits, matches!(auth, Auth::None));
        Self {
            auth,
            upstream,
            settings,
            tables: OwnTables::default(),
            shares: Shares::new(limits.memory_mib, runtime),
            limits,
            salt: rand::random(),
            open: Mutex::new(open),
            metrics,
            #[cfg(feature = "distributed")]
            workers: None,
        }
    }

    /// Adds tables of the embedder to all sessions.
    pub(crate) fn with_tables(self, tables: OwnTables) -> Self {
        Self { tables, ..self }
    }

    /// Spreads queries of stores over workers.
    #[cfg(feature = "distributed")]
    pub(crate) fn with_workers(self, workers: Option<Arc<Workers>>) -> Self {
        Self { workers, ..self }
    }

    /// Returns the numbers of all workers and of the healthy ones.
    #[cfg(feature = "distributed")]
    pub(crate) fn workers(&self) -> [usize; 2] {
        let status = self.workers.as_ref().map(|workers| workers.status()).unwrap_or_default();
        [status.len(), status.iter().filter(|worker| worker.state == WorkerState::Healthy).count()]
    }

    /// Counts rejected credentials, and returns the error for the client.
    pub(crate) fn rejected(&self, rejection: Rejection) -> Failure {
        self.metrics.rejected(rejection.reason()).inc();
        rejection.into()
    }

    /// Opens a session. Returns it with its token.
    ///
    /// # Errors
    /// UNAUTHENTICATED for invalid credentials, RESOURCE_EXHAUSTED if there are too many sessions.
    pub(crate) async fn log_in(
        &self,
        credentials: &Credentials,
        caller: Option<Caller>,
    ) -> Result<(String, Arc<Session>), Failure> {
        let principal = match self.logged_in(credentials)? {
            Some(session) => session.principal.clone(),
            None => self.principal(credentials, caller).await?,
        };
        let token = format!("{TOKEN}{}", BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()));
        // Refused before it waits for others.
        self.open().check_room(&principal.name)?;
        let share = self.share(&principal).map_err(|error| self.failed(&principal, &error))?;
        let _turn = share.opening().await;
        let session = self.make(&principal)?;
        let session = self.open().add(Found::Token(Sha256::digest(&token).into()), session)?;
        if session.is_proven() {
            log_login(&principal);
        }
        Ok((token, session))
    }

    /// Finds or opens the session of a call: one for each connection of a principal, which may change it.
    ///
    /// # Errors
    /// UNAUTHENTICATED for invalid credentials, RESOURCE_EXHAUSTED if there are too many sessions.
    pub(crate) async fn find(&self, credentials: Credentials, caller: Option<Caller>) -> Result<Arc<Session>, Failure> {
        self.found(credentials, caller, caller.map(|caller| caller.peer)).await
    }

    /// As [`find`](Self::find), with one session for all connections of a principal, whose calls do not change it.
    ///
    /// # Errors
    /// Those of [`find`](Self::find).
    pub(crate) async fn find_shared(
        &self,
        credentials: Credentials,
        caller: Option<Caller>,
    ) -> Result<Arc<Session>, Failure> {
        self.found(credentials, caller, None).await
    }

    async fn found(
        &self,
        credentials: Credentials,
        caller: Option<Caller>,
        peer: Option<Peer>,
    ) -> Result<Arc<Session>, Failure> {
        if let Some(session) = self.logged_in(&credentials)? {
            return Ok(session);
        }
        let principal = self.principal(&credentials, caller).await?;
        if let Some(session) = self.open().used(&Found::Peer(Arc::clone(&principal.name), peer)) {
            return Ok(session);
        }
        let share = self.share(&principal).map_err(|error| self.failed(&principal, &error))?;
        let _turn = share.opening().await;
        self.of_principal(&principal, peer)
    }

    /// Finds or opens the session of a principal on a connection, or the one for all its connections.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there are too many sessions.
    pub(crate) fn of_principal(&self, principal: &Principal, peer: Option<Peer>) -> Result<Arc<Session>, Failure> {
        let found = Found::Peer(Arc::clone(&principal.name), peer);
        if let Some(session) = self.open().used(&found) {
            return Ok(session);
        }
        let session = self.make(principal)?;
        let open = self.open().add(found, Arc::clone(&session))?;
        // A call at the same time may have opened it. Without authentication, nobody logs in.
        if Arc::ptr_eq(&open, &session) && session.is_proven() && !matches!(self.auth, Auth::None) {
            log_login(principal);
        }
        Ok(open)
    }

    /// Authentication of clients.
    pub(crate) fn auth(&self) -> &Auth {
        &self.auth
    }

    /// Finds the session of a session token; `None` for other credentials.
    ///
    /// # Errors
    /// UNAUTHENTICATED for an expired or forged session token.
    fn logged_in(&self, credentials: &Credentials) -> Result<Option<Arc<Session>>, Failure> {
        let Credentials::Token(token) = credentials else { return Ok(None) };
        if !token.expose_secret().starts_with(TOKEN) {
            return Ok(None);
        }
        let found = Found::Token(Sha256::digest(token.expose_secret()).into());
        let session = self.open().used(&found);
        session.map(Some).ok_or_else(|| self.rejected(Rejection::UnknownToken))
    }

    /// Closes a session and revokes its token.
    pub(crate) fn close(&self, session: &Arc<Session>) {
        self.open().retain(|_, open| !Arc::ptr_eq(open, session));
    }

    /// Closes the sessions of users and revokes their tokens.
    pub(crate) fn close_of(&self, users: &HashSet<Arc<str>>) {
        self.open().retain(|_, open| !users.contains(&open.principal.name));
    }

    /// Closes the sessions of a closed connection.
    pub(crate) fn disconnected(&self, peer: Peer) {
        self.open().retain(|found, _| !matches!(found, Found::Peer(_, Some(other)) if *other == peer));
    }

    /// Closes sessions that have been idle for too long. Returns the remaining ones.
    pub(crate) fn sweep(&self) -> Vec<Arc<Session>> {
        self.open().sweep()
    }

    /// Returns the number of open sessions.
    pub(crate) fn len(&self) -> usize {
        self.open().len()
    }

    /// Returns the server's connections, or in pass-through mode those currently open for clients.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        match &self.upstream {
            Upstream::Own { connection, named } if named.is_empty() => vec![Arc::clone(connection)],
            Upstream::Own { named, .. } => named.iter().map(|(_, connection)| Arc::clone(connection)).collect(),
            Upstream::PassThrough(keys) => {
                let open = keys.open.lock().unwrap_or_else(PoisonError::into_inner);
                open.values().filter_map(Weak::upgrade).collect()
            }
        }
    }

    async fn principal(&self, credentials: &Credentials, caller: Option<Caller>) -> Result<Principal, Failure> {
        let principal = match &self.auth {
            Auth::None => Ok(anybody()),
            Auth::Users(users) => users.verify(credentials, caller).await,
            Auth::PassThrough => key_holder(credentials, &self.salt),
        };
        principal.map_err(|rejection| self.rejected(rejection))
    }

    /// Makes a session, if there is room for one: making it takes milliseconds of a thread that others need.
    fn make(&self, principal: &Principal) -> Result<Arc<Session>, Failure> {
        self.open().check_room(&principal.name)?;
        self.try_make(principal).map(Arc::new).map_err(|error| self.failed(principal, &error))
    }

    fn share(&self, principal: &Principal) -> DataFusionResult<Arc<Share>> {
        match principal.key {
            None => self.shares.of(&principal.name),
            Some(_) => self.shares.of_stranger(&principal.name),
        }
    }

    /// An error without a key.
    fn failed(&self, principal: &Principal, error: &DataFusionError) -> Failure {
        let redact = |text: &str| match &principal.key {
            Some(key) => key.redact(text),
            None => Client::redact_all(self.connections().iter().map(|connection| connection.client()), text),
        };
        Failure::of(error, KeyOwner::Client, redact)
    }

    fn try_make(&self, principal: &Principal) -> DataFusionResult<Session> {
        let (connection, named, owner) = match (&self.upstream, &principal.key) {
            (Upstream::Own { connection, named }, _) => (Arc::clone(connection), named.as_slice(), KeyOwner::Server),
            (Upstream::PassThrough(keys), Some(key)) => {
                (keys.connection(principal, key)?, &[] as &[_], KeyOwner::Client)
            }
            (Upstream::PassThrough(_), None) => {
                return Err(DataFusionError::Internal("a principal without a key".to_owned()));
            }
        };
        // Requests are scheduled fairly by user, regardless of the number of sessions; without users, by session.
        let share = match self.auth {
            Auth::Users(_) => Arc::clone(&principal.name),
            Auth::None | Auth::PassThrough => format!("session {:016x}", rand::random::<u64>()).into(),
        };
        let caller =
            client::Caller { name: Arc::clone(&principal.name), share, allowance: principal.allowance.clone() };
        let config = session_config().with_option_extension(self.settings.clone()).with_extension(Arc::new(caller));
        let own = self.share(principal)?;
        let context = session_with(&connection, config, Arc::clone(&own.runtime))?;
        for (name, other) in named {
            context.register_catalog(name, catalog(other)?);
        }
        self.tables.register(&context, principal)?;
        let context = bounded_session(&context)?;
        #[cfg(feature = "distributed")]
        let context = match &self.workers {
            Some(workers) => {
                let table = Arc::new(WorkersTable::new(Arc::clone(workers)));
                context.register_table(TableReference::full(CATALOG, SYSTEM_SCHEMA, "workers"), table)?;
                workers.session(&context)
            }
            None => context,
        };
        let mut connections = vec![connection];
        for (_, other) in named {
            // The first one may have a name as well.
            if !connections.iter().any(|known| Arc::ptr_eq(known, other)) {
                connections.push(Arc::clone(other));
            }
        }
        // Requests run on this runtime: in a lane, a long computation would delay requests that others wait for.
        connections.iter().for_each(|connection| connection.client().requests_run_here());
        Ok(Session {
            principal: principal.clone(),
            context,
            streams: Arc::new(Semaphore::new(self.limits.streams_per_session)),
            making: tokio::sync::Mutex::default(),
            lane: OwnLane::default(),
            views: Mutex::default(),
            share: own,
            connections,
            owner,
            used: Mutex::new(Instant::now()),
            busy: AtomicUsize::new(0),
            proven: AtomicBool::new(principal.key.is_none()),
        })
    }

    fn open(&self) -> MutexGuard<'_, OpenSessions> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("open", &self.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("principal", &self.principal.name).finish_non_exhaustive()
    }
}
