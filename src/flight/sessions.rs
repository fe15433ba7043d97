//! What each client may see and has set: sessions, by token or by connection.
//!
//! A handshake opens a session and gives its token, of which only the digest is kept. Clients that send their credentials
//! with each call, or none, have a session for each connection. Sessions end when they are closed or idle.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::memory_pool::{MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::SessionContext;
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tonic::transport::server::TlsConnectInfo;
use tonic::{Request, Status};

use super::auth::{Auth, Credentials, Principal, anybody, key_holder, unknown_token};
use super::lanes::OwnLane;
use super::peer::{Caller, Peer};
use super::settings::Limits;
use super::status::{KeyOwner, status};
use crate::catalog::catalog;
use crate::client::{self, Secret};
use crate::connection::Connection;
use crate::error::Result;
use crate::session::{bounded_session, session_config, session_with};

/// What the tables of sessions are over.
#[derive(Debug)]
pub enum Upstream {
    /// Connections with the server's own keys.
    Own {
        /// The one that tables are of where a query names no catalog.
        connection: Arc<Connection>,
        /// All of them by name, where there are several.
        named: Vec<(String, Arc<Connection>)>,
    },
    /// A connection for each key that clients bring.
    PassThrough(PassThrough),
}

/// Connects with the keys that clients bring; sessions of one key share a connection.
pub struct PassThrough {
    connect: Box<Connect>,
    open: Mutex<HashMap<Arc<str>, Weak<Connection>>>,
}

type Connect = dyn Fn(Secret) -> Result<Arc<Connection>> + Send + Sync;

impl PassThrough {
    /// `connect` makes a connection with a key, without a request.
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

/// What a client may see and has set.
pub(super) struct Session {
    /// Whose it is.
    pub(super) principal: Principal,
    /// The engine's part: tables, settings, views and temporary tables.
    pub(super) context: SessionContext,
    /// Places for results being fetched.
    pub(super) streams: Arc<Semaphore>,
    /// Held by who makes a temporary table, so that their bytes can be counted.
    pub(super) making: tokio::sync::Mutex<()>,
    /// Where it runs what it runs.
    pub(super) lane: OwnLane,
    /// The memory of its views, by their names.
    pub(super) views: Mutex<HashMap<String, MemoryReservation>>,
    connections: Vec<Arc<Connection>>,
    owner: KeyOwner,
    used: Mutex<Instant>,
    busy: AtomicUsize,
    /// Whether whose it is has been found right: by us, or by the service that has answered with his key.
    proven: AtomicBool,
}

/// Keeps a session from being idle.
pub(super) struct Busy(Arc<Session>);

impl Drop for Busy {
    fn drop(&mut self) {
        // In this order: it is never idle since long ago.
        self.0.touch();
        self.0.busy.fetch_sub(1, Ordering::Release);
    }
}

impl Session {
    /// The status of an error, without a key in it.
    pub(super) fn status(&self, error: &DataFusionError) -> Status {
        status(error, self.owner, |text| self.redact(text))
    }

    /// A text without the keys of the session.
    pub(super) fn redact(&self, text: &str) -> String {
        self.connections.iter().fold(text.to_owned(), |text, connection| connection.client().redact(&text))
    }

    /// It is in use until what is returned is dropped.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// How long nobody has used it; `None` while somebody does.
    fn idle(&self) -> Option<Duration> {
        let idle = self.busy.load(Ordering::Acquire) == 0;
        idle.then(|| self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed())
    }

    /// The service has answered with the key of whose it is.
    pub(super) fn prove(&self) {
        self.proven.store(true, Ordering::Relaxed);
    }

    /// Whether it is known whose it is.
    pub(super) fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Relaxed)
    }
}

/// What a session is found by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Found {
    /// The digest of its token.
    Token([u8; 32]),
    /// Whose it is, and his connection.
    Peer(Arc<str>, Option<Peer>),
}

/// All sessions of a server.
pub(super) struct Sessions {
    auth: Auth,
    upstream: Upstream,
    limits: Limits,
    runtime: Arc<RuntimeEnv>,
    /// Makes names of keys that say nothing to another process.
    salt: [u8; 32],
    open: Mutex<HashMap<Found, Arc<Session>>>,
}

/// What tokens begin with, so that an old one is not taken for a key.
const TOKEN: &str = "sst_";
/// A session that was idle for less makes no room for another.
const RECENT: Duration = Duration::from_secs(60);

impl Sessions {
    pub(super) fn new(auth: Auth, upstream: Upstream, limits: Limits, runtime: Arc<RuntimeEnv>) -> Self {
        Self { auth, upstream, limits, runtime, salt: rand::random(), open: Mutex::default() }
    }

    /// Opens a session for these credentials. Gives its token, and whether it is known whose it is.
    ///
    /// # Errors
    /// UNAUTHENTICATED for credentials that are refused, RESOURCE_EXHAUSTED where there are too many sessions.
    pub(super) async fn log_in(
        &self,
        credentials: &Credentials,
        caller: Option<Caller>,
    ) -> Result<(String, bool), Status> {
        let principal = match self.logged_in(credentials)? {
            Some(session) => session.principal.clone(),
            None => self.principal(credentials, caller).await?,
        };
        let token = format!("{TOKEN}{}", BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()));
        let session = self.make(&principal)?;
        let session = self.insert(Found::Token(Sha256::digest(&token).into()), session)?;
        tracing::info!(principal = %principal.name, "logged in");
        Ok((token, session.is_proven()))
    }

    /// The session of a call.
    ///
    /// # Errors
    /// UNAUTHENTICATED for credentials that are refused, RESOURCE_EXHAUSTED where there are too many sessions.
    pub(super) async fn find(&self, credentials: Credentials, caller: Option<Caller>) -> Result<Arc<Session>, Status> {
        if let Some(session) = self.logged_in(&credentials)? {
            return Ok(session);
        }
        let principal = self.principal(&credentials, caller).await?;
        let found = Found::Peer(Arc::clone(&principal.name), caller.map(|caller| caller.peer));
        {
            let mut open = self.open();
            match open.get(&found) {
                Some(session) if self.has_expired(session) => drop(open.remove(&found)),
                Some(session) => {
                    session.touch();
                    return Ok(Arc::clone(session));
                }
                None => {}
            }
        }
        let session = self.make(&principal)?;
        self.insert(found, session)
    }

    /// The session of a token of ours; `None` for other credentials.
    ///
    /// # Errors
    /// UNAUTHENTICATED for a token that was ours, or pretends to be.
    fn logged_in(&self, credentials: &Credentials) -> Result<Option<Arc<Session>>, Status> {
        let Credentials::Token(token) = credentials else { return Ok(None) };
        if !token.expose_secret().starts_with(TOKEN) {
            return Ok(None);
        }
        let found = Found::Token(Sha256::digest(token.expose_secret()).into());
        let session = self.open().get(&found).filter(|session| !self.has_expired(session)).cloned();
        let session = session.ok_or_else(unknown_token)?;
        session.touch();
        Ok(Some(session))
    }

    /// Ends a session and its token.
    pub(super) fn close(&self, session: &Arc<Session>) {
        self.open().retain(|_, open| !Arc::ptr_eq(open, session));
    }

    /// Ends the sessions of a connection that has ended.
    pub(super) fn hung_up(&self, peer: Peer) {
        self.open().retain(|found, _| !matches!(found, Found::Peer(_, Some(other)) if *other == peer));
    }

    /// Ends what was idle for too long. Gives what is left.
    pub(super) fn sweep(&self) -> Vec<Arc<Session>> {
        let mut open = self.open();
        open.retain(|_, session| !self.has_expired(session));
        open.values().cloned().collect()
    }

    fn has_expired(&self, session: &Session) -> bool {
        session.idle().is_some_and(|time| time >= self.limits.session_idle())
    }

    /// The memory that all queries share.
    pub(super) fn pool(&self) -> &Arc<dyn MemoryPool> {
        &self.runtime.memory_pool
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.open().len()
    }

    /// The connections of the server, or those of the clients that are there.
    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        match &self.upstream {
            Upstream::Own { connection, named } if named.is_empty() => vec![Arc::clone(connection)],
            Upstream::Own { named, .. } => named.iter().map(|(_, connection)| Arc::clone(connection)).collect(),
            Upstream::PassThrough(keys) => {
                let open = keys.open.lock().unwrap_or_else(PoisonError::into_inner);
                open.values().filter_map(Weak::upgrade).collect()
            }
        }
    }

    async fn principal(&self, credentials: &Credentials, caller: Option<Caller>) -> Result<Principal, Status> {
        match &self.auth {
            Auth::None => Ok(anybody()),
            Auth::Users(users) => users.verify(credentials, caller).await,
            Auth::PassThrough => key_holder(credentials, &self.salt),
        }
    }

    fn make(&self, principal: &Principal) -> Result<Arc<Session>, Status> {
        let session = self.try_make(principal);
        session.map(Arc::new).map_err(|error| status(&error, KeyOwner::Client, str::to_owned))
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
        // A user has one turn, however many sessions; elsewhere nothing but sessions tells clients apart.
        let share = match self.auth {
            Auth::Users(_) => Arc::clone(&principal.name),
            Auth::None | Auth::PassThrough => format!("session {:016x}", rand::random::<u64>()).into(),
        };
        let caller =
            client::Caller { name: Arc::clone(&principal.name), share, allowance: principal.allowance.clone() };
        let config = session_config().with_extension(Arc::new(caller));
        let context = session_with(&connection, config, Arc::clone(&self.runtime))?;
        let context = bounded_session(&context)?;
        let mut connections = vec![connection];
        for (name, other) in named {
            context.register_catalog(name, catalog(other)?);
            connections.push(Arc::clone(other));
        }
        // A statement that computes for long holds up its lane, and must not hold up requests that others wait for.
        connections.iter().for_each(|connection| connection.client().requests_run_here());
        Ok(Session {
            principal: principal.clone(),
            context,
            streams: Arc::new(Semaphore::new(self.limits.streams_per_session)),
            making: tokio::sync::Mutex::default(),
            lane: OwnLane::default(),
            views: Mutex::default(),
            connections,
            owner,
            used: Mutex::new(Instant::now()),
            busy: AtomicUsize::new(0),
            proven: AtomicBool::new(principal.key.is_none()),
        })
    }

    fn insert(&self, found: Found, session: Arc<Session>) -> Result<Arc<Session>, Status> {
        let mut open = self.open();
        if !matches!(self.auth, Auth::None) {
            let own = |other: &Session| other.principal.name == session.principal.name;
            let whose = format!("{} has", session.principal.name);
            self.make_room(&mut open, self.limits.sessions_per_principal, &whose, own)?;
        }
        self.make_room(&mut open, self.limits.sessions, "the server has", |_| true)?;
        // Two first calls of a connection may come at the same time.
        Ok(Arc::clone(open.entry(found).or_insert(session)))
    }

    /// Ends a session where there are as many as there may be: first one whose key nobody has found right yet, else the one
    /// that was idle longest.
    fn make_room(
        &self,
        open: &mut HashMap<Found, Arc<Session>>,
        most: usize,
        whose: &str,
        counts: impl Fn(&Session) -> bool,
    ) -> Result<(), Status> {
        let counted = || open.iter().filter(|(_, session)| counts(session));
        if counted().count() < most {
            return Ok(());
        }
        let idle =
            counted().filter_map(|(found, session)| Some((!session.is_proven(), session.idle()?, found.clone())));
        match idle.max_by_key(|(unproven, time, _)| (*unproven, *time)) {
            Some((unproven, time, found)) if unproven || time >= RECENT => {
                open.remove(&found);
                Ok(())
            }
            _ => {
                Err(Status::resource_exhausted(format!("{whose} its {most} sessions: close some, or try again later")))
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Found, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who makes a call, told from its extensions.
pub(super) fn caller_of(extensions: &http::Extensions) -> Option<Caller> {
    let inside = extensions.get::<TlsConnectInfo<Caller>>().map(TlsConnectInfo::get_ref);
    extensions.get::<Caller>().or(inside).copied()
}

/// The session of a call, which the gate has found.
///
/// # Errors
/// UNAUTHENTICATED for a call that did not come through it.
pub(super) fn session_of<T>(request: &Request<T>) -> Result<Arc<Session>, Status> {
    let session = request.extensions().get::<Arc<Session>>();
    session.cloned().ok_or_else(|| Status::unauthenticated("log in first"))
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
