//! State that all calls share: sessions, limits, threads and metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use datafusion::arrow::datatypes::DataType;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as Parsed;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::instrument::WithSubscriber;

use super::auth::Auth;
use super::connection_limit::Standing;
use super::failure::{Code, Failure};
use super::lanes::{InLane, Lanes};
use super::metrics::Metrics;
use super::peer::Peer;
use super::planner::Statement;
#[cfg(any(test, feature = "distributed"))]
use super::sessions::Upstream;
use super::sessions::{Session, Sessions};
use super::settings::Limits;
use super::shares::SessionMemory;
use super::spec::HostSpec;
#[cfg(feature = "distributed")]
use crate::distributed::name_store;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::statements::{SPILLED, Statements};
use crate::memory::{StatementMemory, until_ended};
use crate::serving::{Operated, Trouble};
use crate::session::PlanningTurn;

/// Longest wait for the days of stopped statements to be stored.
#[cfg(feature = "store")]
const SETTLING: Duration = Duration::from_secs(10);

/// State that the fronts of a server share: users, sessions, limits, threads and metrics. The front that is started first has it,
/// and others can be started beside it.
#[derive(Debug)]
pub struct Host {
    pub(crate) sessions: Sessions,
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
    /// Open connections.
    pub(crate) standing: Arc<Standing>,
    /// Cancels all running queries and statements.
    pub(crate) cancelled: CancellationToken,
    /// Threads that plan and run statements, separate from those that serve sockets, which a long computation would
    /// block.
    pub(crate) lanes: Lanes,
    /// Statements that run, and the memory that they share.
    pub(crate) statements: Statements,
    /// Cancelled when so many lanes do not respond that none can be started in their place.
    worn_out: CancellationToken,
    ending: AtomicBool,
    streams: Arc<Semaphore>,
    /// Connections accepted so far.
    peers: AtomicU64,
}

/// A statement that may run: where, and the memory that counts for it.
pub(crate) struct Admitted {
    pub(crate) memory: Arc<StatementMemory>,
    pub(crate) lane: Arc<InLane>,
}

impl Host {
    /// Starts the threads, without a request to the service.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for unusable limits, an upstream that does not fit the authentication, or a store that workers
    /// cannot reach.
    pub(crate) fn start(spec: HostSpec) -> Result<Self> {
        spec.check()?;
        #[cfg(feature = "distributed")]
        let workers = spec.workers;
        let HostSpec { auth, upstream, tables, settings, limits, .. } = spec;
        let anonymous = matches!(auth, Auth::None);
        #[cfg(feature = "distributed")]
        if let (Some(_), Upstream::Own { connection, named }) = (&workers, &upstream) {
            name_store(connection)?;
            named.iter().try_for_each(|(_, connection)| name_store(connection))?;
        }
        let failed = |error: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Config, format!("cannot start the query engine: {error}"))
        };
        let spilled = (limits.memory_mib as u64).saturating_mul(SPILLED << 20);
        let runtime = RuntimeEnvBuilder::new().with_max_temp_directory_size(spilled);
        let runtime = runtime.build_arc().map_err(|error| failed(&error))?;
        let metrics = Metrics::new();
        let sessions = Sessions::new(auth, upstream, settings, limits.clone(), runtime, Arc::clone(&metrics));
        let sessions = sessions.with_tables(tables);
        #[cfg(feature = "distributed")]
        let sessions = sessions.with_workers(workers);
        let lanes = Lanes::start().map_err(|error| failed(&error))?;
        let statements = Statements::start(limits.memory_bytes() as u64).map_err(|error| failed(&error))?;
        let of_user = if anonymous { usize::MAX } else { limits.connections_per_principal };
        let no_login = metrics.rejected("no_login");
        let standing = Standing::new(limits.connections, of_user, limits.session_idle(), no_login);
        Ok(Self {
            sessions,
            metrics,
            standing: Arc::new(standing),
            cancelled: CancellationToken::new(),
            lanes,
            statements,
            worn_out: CancellationToken::new(),
            ending: AtomicBool::new(false),
            streams: Arc::new(Semaphore::new(limits.streams)),
            peers: AtomicU64::new(0),
            limits,
        })
    }

    /// Removes expired connections and sessions. Returns the sessions that remain.
    pub(crate) fn sweep(&self) -> Vec<Arc<Session>> {
        self.standing.sweep();
        self.lanes.watch();
        if self.lanes.are_worn_out() {
            self.worn_out.cancel();
        }
        self.sessions.sweep()
    }

    /// Numbers a new connection.
    pub(crate) fn next_peer(&self) -> Peer {
        Peer(self.peers.fetch_add(1, Ordering::Relaxed))
    }

    /// Acquires the permits for a running query of a session.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the session or the server has too many running queries.
    pub(crate) fn places(&self, session: &Session) -> Result<[OwnedSemaphorePermit; 2], Failure> {
        let place = |places: &Arc<Semaphore>, whose: &str, most: usize| {
            let place = Arc::clone(places).try_acquire_owned();
            place.map_err(|_| {
                let line = format!("too many running queries: {whose} is limited to {most}; finish reading some first");
                Failure::new(Code::ResourceExhausted, line)
            })
        };
        let Limits { streams, streams_per_session, .. } = self.limits;
        Ok([place(&session.streams, "the session", streams_per_session)?, place(&self.streams, "the server", streams)?])
    }

    /// Admits a statement of a session: waits until its memory is not short.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if memory stays short, or no lane responds.
    pub(crate) async fn admit(&self, session: &Session) -> Result<Admitted, Failure> {
        let memory = self.statements.admit(&session.principal.name).await.map_err(Failure::own)?;
        Ok(Admitted { memory, lane: self.lanes.enter(&session.lane, &session.principal.name)? })
    }

    /// As [`admit`](Self::admit), without waiting.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if memory is short, or no lane responds.
    pub(crate) fn admit_now(&self, session: &Session) -> Result<Admitted, Failure> {
        let memory = self.statements.admit_now(&session.principal.name).map_err(Failure::own)?;
        Ok(Admitted { memory, lane: self.lanes.enter(&session.lane, &session.principal.name)? })
    }

    /// Runs work that may compute for long in the session's lane, limited to the statement time and to the memory of the server.
    /// It is aborted if the client disconnects.
    ///
    /// # Errors
    /// Those of the work; RESOURCE_EXHAUSTED if memory is short, DEADLINE_EXCEEDED after the statement's time limit.
    pub(crate) fn away<'a, T: Send + 'static, E: From<Failure> + Send + 'static>(
        &'a self,
        session: &'a Session,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> impl Future<Output = Result<T, E>> + Send + 'a {
        // Boxed first: all who wait for it would be as large.
        let work = work.boxed();
        async move { self.away_within(self.admit(session).await?, work).await }
    }

    /// As [`away`](Self::away), for work that frees memory: it runs when memory is short as well.
    ///
    /// # Errors
    /// Those of [`away`](Self::away).
    pub(crate) async fn away_to_free<T: Send + 'static, E: From<Failure> + Send + 'static>(
        &self,
        session: &Session,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E> {
        let memory = self.statements.register(&session.principal.name);
        let lane = self.lanes.enter_to_free(&session.lane, &session.principal.name)?;
        self.away_within(Admitted { memory, lane }, work.boxed()).await
    }

    async fn away_within<T: Send + 'static, E: From<Failure> + Send + 'static>(
        &self,
        admitted: Admitted,
        work: BoxFuture<'static, Result<T, E>>,
    ) -> Result<T, E> {
        let Admitted { memory, lane } = admitted;
        let seconds = self.limits.statement_seconds;
        let mut abandoned = Abandoned::new(&memory);
        // The session stays in its lane until the work has ended, which may be after the client has disconnected.
        let handle = lane.handle().clone();
        let work = async move {
            let _lane = lane;
            until_ended(&memory, work).await.map_err(|error| E::from(Failure::own(error))).flatten()
        };
        // Its events go where those of this thread go.
        let work = AbortOnDropHandle::new(handle.spawn(work.with_current_subscriber()));
        let done = timeout(Duration::from_secs(seconds), work).await.map_err(|_| timed_out(seconds))?;
        abandoned.done();
        done.map_err(|_| Failure::new(Code::Internal, "internal error while running the statement"))?
    }

    /// Plans a statement without requests to the service.
    ///
    /// # Errors
    /// Errors of planning; RESOURCE_EXHAUSTED for a statement that is too long.
    pub(crate) async fn statement(&self, session: &Session, sql: &str) -> Result<Statement, Failure> {
        self.allow_length(sql)?;
        let digest = session.log_statement(sql);
        let turn = session.share.planning_of(sql).await;
        match Statement::of(&turn, &session.context, sql).await {
            Ok(statement) => Ok(Statement { digest, ..statement }),
            Err(error) => Err(session.failure_in(&error, sql).await),
        }
    }

    /// Plans a statement that is parsed already; `sql` is its text. See [`Statement::of_parsed`].
    ///
    /// # Errors
    /// Errors of planning.
    pub(crate) async fn statement_of(
        &self,
        turn: &PlanningTurn<'_>,
        session: &Session,
        sql: &str,
        parsed: Parsed,
        types: &[Option<DataType>],
        adapted: fn(LogicalPlan) -> datafusion::error::Result<LogicalPlan>,
    ) -> Result<Statement, Failure> {
        match Statement::of_parsed(turn, &session.context, parsed, types, adapted).await {
            Ok(statement) => Ok(statement),
            Err(error) => Err(session.failure_in(&error, sql).await),
        }
    }

    /// Checks the length of a statement, or of several.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED for a text that is longer than statements may be.
    pub(crate) fn allow_length(&self, sql: &str) -> Result<(), Failure> {
        let (has, most) = (sql.len(), self.limits.statement_bytes);
        if has <= most {
            return Ok(());
        }
        let line = format!("statement too long: {has} bytes, the limit is {most}");
        Err(Failure::new(Code::ResourceExhausted, line))
    }

    /// Closes the sessions of a closed connection.
    pub(crate) fn disconnected(&self, peer: Peer) {
        self.sessions.disconnected(peer);
    }

    /// Reads the users file and the API keys again. Users who were removed, or whose credentials changed, are logged out:
    /// their tokens are revoked, and their connections closed.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an invalid file; the users then stay as they are.
    pub(crate) async fn reload(&self) -> Result<()> {
        if let Auth::Users(users) = self.sessions.auth() {
            let changed = users.reload()?;
            self.sessions.close_of(&changed);
            self.standing.end_of(&changed);
        }
        for connection in self.sessions.connections() {
            connection.client().renew_key().await?;
        }
        Ok(())
    }

    /// Waits until no query has run for `time`.
    pub(crate) async fn quiet(&self, time: Duration) {
        let mut since = Instant::now();
        while since.elapsed() < time {
            sleep(Duration::from_millis(50)).await;
            if self.streams.available_permits() < self.limits.streams {
                since = Instant::now();
            }
        }
    }

    /// Waits until no query has run for `time`, so that clients can close what they have read. Returns earlier if no connection is
    /// open, or if a client begins another query.
    pub(crate) async fn closing_calls(&self, time: Duration) {
        let running = || self.limits.streams - self.streams.available_permits();
        let (mut since, mut last) = (Instant::now(), running());
        while self.standing.len() > 0 && since.elapsed() < time {
            sleep(Duration::from_millis(50)).await;
            let now = running();
            if now > last {
                return;
            }
            if now > 0 {
                since = Instant::now();
            }
            last = now;
        }
    }

    /// Waits until so many lanes do not respond that the server has to be restarted. Returns the reason.
    pub async fn worn_out(&self) -> Error {
        self.worn_out.cancelled().await;
        let (silent, all) = self.lanes.silent();
        let message = format!("{silent} of {all} execution lanes do not respond, and no more can be started");
        Error::new(ErrorKind::Unavailable, message).advice("the supervisor of the process has to start it again")
    }

    /// Waits until the days that stopped statements had read completely are stored, for a few seconds at most.
    #[cfg(feature = "store")]
    pub(crate) async fn settle(&self) {
        let settled = async {
            for connection in self.sessions.connections() {
                connection.settle_store().await;
            }
        };
        // One that takes longer has written no day.
        let _ = timeout(SETTLING, settled).await;
    }

    /// Cancels all queries and statements that run; their clients are told.
    pub fn cancel_queries(&self) {
        let queries = self.limits.streams.saturating_sub(self.streams.available_permits());
        if queries > 0 && !self.cancelled.is_cancelled() {
            tracing::warn!(queries, "shutting down: queries that still run are cancelled");
        }
        self.cancelled.cancel();
    }

    /// Marks the server as shutting down.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Reserves memory for something that a session keeps.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the user's share or the pool is used up.
    pub(crate) fn hold(&self, session: &Session, what: &'static str, bytes: usize) -> Result<SessionMemory, Failure> {
        session.share.keep(what, bytes).map_err(Failure::own)
    }
}

/// The failure of a statement that took too long.
pub(super) fn timed_out(seconds: u64) -> Failure {
    Failure::new(Code::DeadlineExceeded, format!("statement timed out after {seconds} s"))
}

/// Guard: ends a statement that nobody waits for any longer. It computes until it next asks.
pub(super) struct Abandoned(Option<Arc<StatementMemory>>);

impl Abandoned {
    pub(super) fn new(memory: &Arc<StatementMemory>) -> Self {
        Self(Some(Arc::clone(memory)))
    }

    /// The statement has ended by itself.
    pub(super) fn done(&mut self) {
        self.0 = None;
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.iter().for_each(|memory| memory.abandon());
    }
}

impl Operated for Host {
    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    fn trouble(&self) -> Option<Trouble> {
        match self.lanes.silent() {
            (0, _) => None,
            (silent, all) if silent == all => Some(Trouble::Down("no execution thread responds".to_owned())),
            (silent, all) => Some(Trouble::Degraded(format!("{silent} of {all} execution lanes do not respond"))),
        }
    }

    fn metrics_text(&self) -> Result<String, std::fmt::Error> {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.metrics.sessions.set(count(self.sessions.len()));
        self.metrics.connections.set(count(self.standing.len()));
        self.metrics.memory.set(self.statements.used().map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)));
        #[cfg(feature = "distributed")]
        self.metrics.set_workers(self.sessions.workers());
        self.metrics.text(&self.sessions.connections())
    }
}

#[cfg(test)]
impl Host {
    /// A host over a service to which no request is sent, with a session.
    pub(crate) async fn of_tests() -> (Self, Arc<Session>) {
        let key = crate::client::Secret::new("key").expect("a key");
        let connection = crate::connection::Connection::builder("http://127.0.0.1:9/v4", key);
        let upstream = Upstream::Own { connection: connection.build().expect("a connection"), named: Vec::new() };
        let host = Self::start(HostSpec::new(Auth::None, upstream)).expect("a host");
        let session = host.sessions.find(super::auth::Credentials::None, None).await.expect("a session");
        (host, session)
    }
}
