//! A catalog in a schema of PostgreSQL, which servers and synchronizations on several machines share.
//!
//! ```text
//! transaction ─▶ a session of the pool ─▶ the lock of all writers, or a snapshot of all tables ─▶ statements ─▶ commit
//!       ▲                                                                                            │
//!       └── again, for some seconds, if the server was gone or rolled it back ◀──────────────────────┘
//! ```
//!
//! After a server was gone for so long, reads fail at once for a while ([`circuit_breaker`](super::circuit_breaker)).
//!
//! The tables are those of SQLite, with PostgreSQL's types. A transaction that writes first updates the only row of
//! `savedsearch_store`, which it keeps locked: writers follow each other, and each sees what the one before has committed.
//!
//! Invariant: a transaction whose outcome is unknown counts as failed, and whoever repeats it examines what is there.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::io;
use std::iter::successors;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use chrono::{DateTime, Utc};
use postgres_protocol::types;
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Statement};

use super::circuit_breaker::{Breaker, Try};
use super::recorded::instant_of;
use super::sql::{Connection, SqlError, SqlResult, Value, values};
use super::tls::Tls;
use super::{Access, DUCKLAKE_VERSION, VERSION, ducklake, failure};
use crate::error::{Error, ErrorKind, Phrase, Result, Tool};
use crate::location::CatalogUrl;
use crate::store::network::{Network, Unfinished, pause_for, wait};

/// Time for which a transaction is repeated if the server was gone or rolled it back, and for which it waits for others.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for an answer of the server.
const ANSWER: Duration = Duration::from_secs(90);
/// Longest wait until the server has rewritten a table.
const REWRITE: Duration = Duration::from_secs(6 * 3_600);
/// Sessions that are kept open.
const IDLE: usize = 4;
/// State of a new session. What a statement waits for ends before [`ANSWER`], as does a transaction that does nothing.
const BEGIN: &str = "SET TIME ZONE 'UTC'; SET statement_timeout = '60s'; \
                     SET idle_in_transaction_session_timeout = '60s'; SET client_min_messages = 'warning'";
/// State of a session that rewrites tables. That may take long, but not the wait for the lock of a table: other processes wait behind.
const REWRITES: &str = "SET statement_timeout = 0; SET lock_timeout = '10s'";
/// Beginning of a transaction that reads.
const READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// Beginning of a transaction that writes.
const WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '10s'; \
                     UPDATE savedsearch_store SET commits = commits + 1";
/// Beginning of a transaction that does not wait for writers, because it changes no mentions.
const ASIDE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '10s'";
/// Beginning of a transaction that creates the tables. The number is that of no other program.
const CREATE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '10s'; \
                      SELECT pg_advisory_xact_lock(7311290714118218241)";
/// Tables that several machines need beside those of SQLite: the number of commits, and the id by which the files name the catalog.
const SHARED: &str = "ALTER TABLE savedsearch_store ADD COLUMN commits BIGINT NOT NULL DEFAULT 0, ADD COLUMN id TEXT";

/// Advice for a user who may not write.
const GRANT: &str = "grant the user all privileges on the schema, and on the database if the schema is missing";

/// A catalog on a server.
pub(super) struct Postgres {
    /// Address without secrets.
    shown: String,
    schema: String,
    config: Config,
    tls: Tls,
    network: Network,
    writes: bool,
    breaker: Breaker,
    idle: Mutex<Vec<Session>>,
}

/// A session of the server.
pub(super) struct Session {
    client: Client,
    /// Reads and writes its socket.
    socket: JoinHandle<()>,
    statements: Mutex<HashMap<String, Statement>>,
    /// Set if an answer is outstanding.
    broken: AtomicBool,
}

impl Postgres {
    /// True if there is a catalog at an address.
    pub(super) fn exists(url: &CatalogUrl) -> Result<bool> {
        Self::connect(url, Access::Read)?.transaction(Some(READ), exists)
    }

    /// Prepares connections to a server. None is made.
    fn connect(url: &CatalogUrl, access: Access) -> Result<Self> {
        let config = config(url)?;
        // Reading the authorities of this machine takes milliseconds.
        let tls = Tls::try_new(config.get_ssl_mode() == SslMode::Disable)?;
        let network = Network::start().map_err(|error| {
            Error::new(ErrorKind::Store, format!("cannot start the thread of the catalog: {error}"))
        })?;
        Ok(Self {
            shown: url.to_string(),
            schema: url.schema().to_owned(),
            config,
            tls,
            network,
            writes: access == Access::ReadWrite,
            breaker: Breaker::default(),
            idle: Mutex::default(),
        })
    }

    /// Opens the catalog. For writing, a missing one is created.
    pub(super) fn open(
        url: &CatalogUrl,
        access: Access,
        create: impl Fn(&Connection<'_>) -> SqlResult<()>,
    ) -> Result<Self> {
        let postgres = Self::connect(url, access)?;
        if !postgres.transaction(Some(READ), exists)? {
            if !postgres.writes {
                return Err(Error::new(ErrorKind::Store, format!("{postgres}: no store in this schema"))
                    .advice(Phrase::from("fill one with ") + Tool::Sync + ", or correct the address"));
            }
            postgres.transaction(Some(CREATE), |connection| {
                // Another process may have done it.
                if exists(connection)? {
                    return Ok(());
                }
                let sql = "SELECT count(*) FROM pg_namespace WHERE nspname = ?1";
                if connection.row(sql, values![postgres.schema], |row| row.get::<i64>(0))? == 0 {
                    connection.batch(&format!("CREATE SCHEMA {}", postgres.schema))?;
                }
                create(connection)?;
                super::checksums::create(connection)?;
                connection.batch(SHARED)?;
                connection.define(super::lease::TABLE)?;
                let id = format!("{:032x}", rand::random::<u128>());
                connection.execute("UPDATE savedsearch_store SET id = ?1", values![id]).map(drop)
            })?;
        }
        postgres.verify()?;
        if postgres.writes {
            postgres.verify_writable()?;
        }
        Ok(postgres)
    }

    /// Verifies that the tables can be written. A user may lack rights, and a standby refuses to write: each query would store files that
    /// no commit can name. No row is changed or locked.
    fn verify_writable(&self) -> Result<()> {
        let lacking = "SELECT min(c.relname::text) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                       WHERE n.nspname = ?1 AND c.relkind IN ('r', 'p') \
                         AND (c.relname LIKE 'savedsearch%' OR c.relname LIKE 'ducklake%') \
                         AND NOT (has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE') \
                                  AND has_table_privilege(c.oid, 'DELETE'))";
        let lacking = self.transaction(Some(ASIDE), |connection| {
            connection.execute("UPDATE savedsearch_store SET commits = commits WHERE false", values![])?;
            connection.row(lacking, values![self.schema], |row| row.get::<Option<String>>(0))
        })?;
        match lacking {
            None => Ok(()),
            Some(table) => {
                let what = format!("{self}: cannot be written: the user may not change the table {table}");
                Err(Error::new(ErrorKind::Store, what).advice(GRANT))
            }
        }
    }

    /// Verifies that the tables are of this version.
    fn verify(&self) -> Result<()> {
        let sql = "SELECT version, (SELECT value FROM ducklake_metadata WHERE key = 'version' AND scope IS NULL) \
                   FROM savedsearch_store";
        let versions =
            |connection: &Connection<'_>| connection.row(sql, values![], |row| Ok((row.get(0)?, row.get(1)?)));
        let (version, ducklake): (i64, String) = self.transaction(Some(READ), versions)?;
        let refused =
            |what: String, advice: &str| Err(Error::new(ErrorKind::Store, format!("{self}: {what}")).advice(advice));
        if version != VERSION {
            let what = format!("version {version} of the store; this program supports version {VERSION}");
            return refused(what, "use the program that the others use, or another schema");
        }
        if ducklake != DUCKLAKE_VERSION {
            let what = format!("DuckLake version {ducklake}; this program supports version {DUCKLAKE_VERSION}");
            return refused(
                what,
                "another program has upgraded the catalog; update this program, or use another schema",
            );
        }
        Ok(())
    }

    /// Reads in one transaction, so that several statements see the same state.
    pub(super) fn read<T>(&self, query: impl Fn(&Connection<'_>) -> SqlResult<T>) -> Result<T> {
        self.transaction(Some(READ), query)
    }

    /// Reads with one statement, in one round trip.
    pub(super) fn read_alone<T>(&self, query: impl Fn(&Connection<'_>) -> SqlResult<T>) -> Result<T> {
        self.transaction(None, query)
    }

    /// Writes in one transaction. Other writers wait for it to end.
    pub(super) fn write<T>(&self, change: impl Fn(&Connection<'_>) -> SqlResult<T>) -> Result<T> {
        if !self.writes {
            let message = format!("{self}: cannot be written: the store was opened read-only");
            return Err(Error::new(ErrorKind::Store, message));
        }
        self.transaction(Some(WRITE), change)
    }

    /// Changes a row beside the mentions in a transaction, without waiting for writers.
    pub(super) fn aside<T>(&self, change: impl Fn(&Connection<'_>) -> SqlResult<T>) -> Result<T> {
        self.transaction(Some(ASIDE), change)
    }

    /// Overwrites what the tables no longer have.
    pub(super) fn purge(&self) -> Result<()> {
        // Not within a transaction. The session ends afterwards, with its settings.
        let purged = self.session().and_then(|session| {
            session.batch(REWRITES)?;
            PURGED.iter().try_for_each(|table| session.batch_within(REWRITE, &format!("VACUUM FULL {table}")))
        });
        purged.map_err(|error| self.told(error))
    }

    /// Repeats the work while the server is gone or rolls it back. Without a beginning, it is one statement.
    fn transaction<T>(&self, begin: Option<&str>, work: impl Fn(&Connection<'_>) -> SqlResult<T>) -> Result<T> {
        let begun = Instant::now();
        let reads = begin.is_none_or(|begin| begin == READ);
        let patience = match reads.then(|| self.breaker.admit(begun)).transpose()? {
            Some(Try::Once) => Duration::ZERO,
            Some(Try::Repeatedly) | None => PATIENCE,
        };
        let mut pause = Duration::from_millis(20);
        loop {
            match self.attempt(begin, &work) {
                Ok(value) => {
                    self.breaker.answered();
                    return Ok(value);
                }
                Err(error) if may_pass(&error) && begun.elapsed() < patience => {
                    // Those that met each other do not meet again.
                    pause_for(pause.mul_f64(rand::random::<f64>() + 0.5));
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
                Err(error) => {
                    let gone = is_gone(&error);
                    let error = self.told(error);
                    if gone {
                        self.breaker.failed(Instant::now(), &error);
                        // The next try needs a new session, whether this machine knows yet that the others have ended or not.
                        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
                    } else {
                        self.breaker.answered();
                    }
                    return Err(error);
                }
            }
        }
    }

    fn attempt<T>(&self, begin: Option<&str>, work: &impl Fn(&Connection<'_>) -> SqlResult<T>) -> SqlResult<T> {
        let session = self.session()?;
        let end = |statement: &str| begin.map_or(Ok(()), |_| session.batch(statement));
        begin.map_or(Ok(()), |begin| session.batch(begin))?;
        match work(&Connection::Postgres(&session)) {
            Ok(value) => {
                end("COMMIT")?;
                self.keep(session);
                Ok(value)
            }
            Err(error) => {
                if end("ROLLBACK").is_ok() {
                    self.keep(session);
                }
                Err(error)
            }
        }
    }

    /// Returns an open session, or a new one.
    fn session(&self) -> SqlResult<Session> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some(session) = idle() {
            if !session.is_broken() {
                return Ok(session);
            }
        }
        let (config, tls) = (self.config.clone(), self.tls.clone());
        let connected = self.network.run(ANSWER, async move { config.connect(tls).await });
        let unfinished = |unfinished: Unfinished| match unfinished {
            Unfinished::Late(longest) => SqlError::Silent(longest),
            failed @ Unfinished::Failed(_) => SqlError::Own(Error::new(ErrorKind::Store, format!("{self}: {failed}"))),
        };
        let (client, connection) = connected.map_err(unfinished)??;
        let socket = self.network.spawn(async move {
            // Its error is that of the statement.
            let _ = connection.await;
        });
        let session = Session { client, socket, statements: Mutex::default(), broken: AtomicBool::new(false) };
        session.batch(&format!("{BEGIN}; SET search_path = {}", self.schema))?;
        Ok(session)
    }

    /// Keeps a session for later transactions.
    fn keep(&self, session: Session) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE && !session.is_broken() {
            idle.push(session);
        }
    }

    /// The error of a transaction in the user's terms.
    fn told(&self, error: SqlError) -> Error {
        let of = |what: String| Error::new(ErrorKind::Store, format!("{self}: {what}"));
        let error = match error {
            SqlError::Own(error) => return error,
            SqlError::Postgres(error) => error,
            SqlError::Silent(longest) => {
                return of(format!("the server did not answer within {} s", longest.as_secs()))
                    .advice("check the server and the network")
                    .passing();
            }
            SqlError::Sqlite(error) => return of(error.to_string()),
            error @ (SqlError::Invalid(_) | SqlError::NoRow) => return failure::damaged(self, &error),
        };
        let Some(cause) = error.as_db_error() else {
            let first: &(dyn StdError + 'static) = &error;
            let causes = successors(Some(first), |&error| error.source());
            // The others repeat those below them, or name their kind only.
            let cause = causes.last().map(ToString::to_string).unwrap_or_default();
            if !is_of_connection(&error) {
                return of(format!("the store cannot be used: {cause}")).advice(failure::damaged_advice());
            }
            return of(format!("the catalog cannot be reached: {cause}"))
                .advice("check the server, its address and the network")
                .passing();
        };
        let (code, what) = (cause.code(), cause.message());
        match code.code() {
            class if class.starts_with("28") => {
                of(format!("the server refuses the user: {what}")).advice("check user and password of the catalog")
            }
            class if class.starts_with("3D") => {
                of(what.to_owned()).advice("create the database, or correct the address")
            }
            "42501" | "25006" => of(format!("cannot be written: {what}")).advice(GRANT),
            "55P03" => of(format!("catalog locked by another process (waited {} s)", PATIENCE.as_secs()))
                .advice("retry, or stop that process")
                .passing(),
            class if class.starts_with("53") => of(format!("the server is short of resources: {what}")).passing(),
            _ if is_unavailable(code) || is_conflict(code) => {
                of(format!("the server interrupted the transaction: {what}")).passing()
            }
            // A missing table or column among them.
            code => of(format!("the store cannot be used: {what} ({code})"))
                .advice(Phrase::from("run ") + Tool::VerifyStore),
        }
    }
}

impl fmt::Display for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Postgres({self})")
    }
}

/// Tables that may contain texts of mentions, or conditions.
const PURGED: [&str; 5] = [
    "savedsearch_answer",
    "savedsearch_cursor",
    "savedsearch_coverage",
    "ducklake_file_column_stats",
    "ducklake_table_column_stats",
];

/// True if the schema has a catalog.
fn exists(connection: &Connection<'_>) -> SqlResult<bool> {
    connection.has_table("savedsearch_store")
}

/// True for the error of a transaction that may succeed if it is repeated.
fn may_pass(error: &SqlError) -> bool {
    is_gone(error) || code_of(error).is_some_and(is_conflict)
}

/// True if the server did not answer, or cannot be used at present.
fn is_gone(error: &SqlError) -> bool {
    match error {
        SqlError::Postgres(error) if error.as_db_error().is_none() => is_of_connection(error),
        SqlError::Silent(_) => true,
        error => code_of(error).is_some_and(is_unavailable),
    }
}

/// Code of an error that the server reports.
fn code_of(error: &SqlError) -> Option<&SqlState> {
    match error {
        SqlError::Postgres(error) => error.code(),
        _ => None,
    }
}

/// True if the server cannot be reached, or is gone.
fn is_of_connection(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || error.source().is_some_and(|cause| cause.is::<io::Error>())
}

/// True for a server that starts, ends or is full.
fn is_unavailable(code: &SqlState) -> bool {
    ["08", "57P", "53"].iter().any(|class| code.code().starts_with(class))
}

/// True for conflicts with other transactions, and for one that did nothing for too long. Two processes that create the same tables
/// violate a constraint.
fn is_conflict(code: &SqlState) -> bool {
    ["40", "55P03", "23505", "25P0"].iter().any(|class| code.code().starts_with(class))
}

/// Settings of connections to an address.
fn config(url: &CatalogUrl) -> Result<Config> {
    let bad = |what: String| {
        Error::new(ErrorKind::Config, format!("{url}: invalid address of the catalog: {what}"))
            .advice("use an address such as postgres://user@host/database?schema=savedsearch")
    };
    let mut config: Config = url.expose().parse().map_err(|error: tokio_postgres::Error| {
        bad(error.source().map_or_else(|| error.to_string(), ToString::to_string))
    })?;
    let explicit = url.expose().contains("sslmode=");
    config.ssl_mode(match (config.get_ssl_mode(), url.is_local()) {
        (SslMode::Prefer, true) if !explicit => SslMode::Disable,
        // The network may be anybody's: only `sslmode=disable` permits clear text.
        (SslMode::Prefer, false) => SslMode::Require,
        (mode, _) => mode,
    });
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(10));
    }
    if config.get_application_name().is_none() {
        config.application_name("savedsearch");
    }
    config.keepalives_idle(Duration::from_secs(30)).tcp_user_timeout(Duration::from_secs(60));
    Ok(config)
}

/// Statements that create tables, in the types of PostgreSQL. Texts are compared by their bytes, as SQLite does.
pub(super) fn ddl_of(ddl: &str) -> String {
    const TYPES: [(&str, &str); 16] = [
        ("INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
        ("INTEGER", "BIGINT"),
        ("BLOB", "BYTEA"),
        (" TEXT", " TEXT COLLATE \"C\""),
        ("snapshot_time VARCHAR", "snapshot_time TIMESTAMPTZ"),
        ("schedule_start VARCHAR", "schedule_start TIMESTAMPTZ"),
        ("schema_uuid VARCHAR", "schema_uuid UUID"),
        ("table_uuid VARCHAR", "table_uuid UUID"),
        ("view_uuid VARCHAR", "view_uuid UUID"),
        ("path_is_relative BIGINT", "path_is_relative BOOLEAN"),
        ("contains_nan BIGINT", "contains_nan BOOLEAN"),
        ("contains_null BIGINT", "contains_null BOOLEAN"),
        ("nulls_allowed BIGINT", "nulls_allowed BOOLEAN"),
        ("is_partition BIGINT", "is_partition BOOLEAN"),
        ("min_value VARCHAR", "min_value VARCHAR COLLATE \"C\""),
        ("max_value VARCHAR", "max_value VARCHAR COLLATE \"C\""),
    ];
    TYPES.iter().fold(ddl.to_owned(), |ddl, (sqlite, postgres)| ddl.replace(sqlite, postgres))
}

/// A statement with PostgreSQL's parameters.
fn with_parameters(sql: &str) -> String {
    let mut parts = sql.split('?');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let mark = if part.starts_with(|next: char| next.is_ascii_digit()) { '$' } else { '?' };
        format!("{text}{mark}{part}")
    })
}

impl Session {
    pub(super) fn execute(&self, sql: &str, values: &[Value<'_>]) -> SqlResult<u64> {
        let statement = self.statement(sql)?;
        self.answer(self.client.execute_raw(&statement, values.iter()))
    }

    pub(super) fn query(&self, sql: &str, values: &[Value<'_>]) -> SqlResult<Vec<tokio_postgres::Row>> {
        let statement = self.statement(sql)?;
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        self.answer(self.client.query(&statement, &values))
    }

    pub(super) fn batch(&self, sql: &str) -> SqlResult<()> {
        self.batch_within(ANSWER, sql)
    }

    /// Runs statements without parameters, which may take this time.
    fn batch_within(&self, longest: Duration, sql: &str) -> SqlResult<()> {
        self.answer_within(longest, self.client.batch_execute(sql))
    }

    /// A prepared statement, which is prepared once.
    fn statement(&self, sql: &str) -> SqlResult<Statement> {
        let statements = || self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(statement) = statements().get(sql) {
            return Ok(statement.clone());
        }
        let text = with_parameters(sql);
        let statement = self.answer(self.client.prepare(&text))?;
        statements().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn answer<T>(&self, sent: impl Future<Output = Result<T, tokio_postgres::Error>>) -> SqlResult<T> {
        self.answer_within(ANSWER, sent)
    }

    fn answer_within<T>(
        &self,
        longest: Duration,
        sent: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> SqlResult<T> {
        match wait(longest, sent) {
            Some(answer) => Ok(answer?),
            None => {
                self.broken.store(true, Ordering::Relaxed);
                Err(SqlError::Silent(longest))
            }
        }
    }

    fn is_broken(&self) -> bool {
        self.client.is_closed() || self.broken.load(Ordering::Relaxed)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.is_broken() {
            self.socket.abort();
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Value::Null => return Ok(IsNull::Yes),
            Value::TooLarge(number) => return Err(format!("{number} is too large").into()),
            Value::Integer(number) if *kind == Type::BOOL => types::bool_to_sql(*number != 0, out),
            Value::Integer(number) if *kind == Type::INT4 => types::int4_to_sql(i32::try_from(*number)?, out),
            Value::Integer(number) if *kind == Type::INT8 => types::int8_to_sql(*number, out),
            Value::Text(text) if *kind == Type::TIMESTAMPTZ => {
                return instant_of(text).ok_or("not an instant")?.to_sql(kind, out);
            }
            Value::Text(text) if *kind == Type::UUID => {
                let digits = text.replace('-', "");
                types::uuid_to_sql(u128::from_str_radix(&digits, 16)?.to_be_bytes(), out);
            }
            Value::Text(text) if [Type::TEXT, Type::VARCHAR, Type::NAME].contains(kind) => {
                types::text_to_sql(text, out)
            }
            Value::Blob(bytes) if *kind == Type::BYTEA => types::bytea_to_sql(bytes, out),
            Value::Integer(_) | Value::Text(_) | Value::Blob(_) => return Err(format!("a value for a {kind}").into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'v> FromSql<'v> for Value<'v> {
    fn from_sql(kind: &Type, raw: &'v [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(match *kind {
            Type::BOOL => Value::Integer(types::bool_from_sql(raw)?.into()),
            Type::INT4 => Value::Integer(types::int4_from_sql(raw)?.into()),
            Type::INT8 => Value::Integer(types::int8_from_sql(raw)?),
            Type::TIMESTAMPTZ => Value::Text(ducklake::timestamp(DateTime::<Utc>::from_sql(kind, raw)?).into()),
            Type::BYTEA => Value::Blob(types::bytea_from_sql(raw).into()),
            _ => Value::Text(types::text_from_sql(raw)?.into()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Value::Null)
    }

    fn accepts(kind: &Type) -> bool {
        let known =
            [Type::BOOL, Type::INT4, Type::INT8, Type::TIMESTAMPTZ, Type::BYTEA, Type::TEXT, Type::VARCHAR, Type::NAME];
        known.contains(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_numbered_parameters() {
        let sql = "SELECT a FROM b WHERE c = ?1 AND d = ?12 AND e = '?'";
        assert_eq!(with_parameters(sql), "SELECT a FROM b WHERE c = $1 AND d = $12 AND e = '?'");
    }

    #[test]
    fn tables_have_no_type_of_sqlite() {
        for ddl in [include_str!("ducklake.sql"), include_str!("store.sql"), include_str!("stamps.sql")] {
            let ddl = ddl_of(ddl);
            for kind in ["INTEGER", "BLOB", "AUTOINCREMENT", "uuid VARCHAR", "is_relative BIGINT"] {
                assert!(!ddl.contains(kind), "{kind}: {ddl}");
            }
        }
    }
}
